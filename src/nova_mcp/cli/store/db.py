"""`nova db`: schema, retention and integrity of the store."""

from collections import Counter
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any

import typer
from rich.console import Console

import nova_mcp
from nova_mcp.cli.options import AsJson, DataDir, Store, read_settings
from nova_mcp.cli.store.open_store import opened, opened_for_writing, shown_url
from nova_mcp.cli.store.store_check import store_problems
from nova_mcp.cli.terminal import EXIT_FAILED, person, print_json, print_table, say, size, visible
from nova_mcp.core.clock import SystemClock, SystemIds
from nova_mcp.evidence.erasure import Eraser
from nova_mcp.evidence.janitor import retention_policy
from nova_mcp.evidence.model import ServerId
from nova_mcp.evidence.pruner import PruneReport, PruneRequest, prune
from nova_mcp.evidence.recorder import describe_server
from nova_mcp.evidence.store import end_server
from nova_mcp.memory.claims import retention as claim_retention
from nova_mcp.memory.facts import retention as fact_endings
from nova_mcp.memory.retention import (
    Chore,
    claims_due,
    facts_due,
    holds,
    journal_chore,
    journal_due,
    learning_chore,
    learning_due,
    runs_due,
    transitions_due,
)
from nova_mcp.memory.tasks.runs import retention as run_retention
from nova_mcp.settings import RetentionSettings, Settings
from nova_mcp.storage.engine import Database
from nova_mcp.storage.schema import current_revision
from nova_mcp.verification.retention import forgetting

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Look after the store; safe beside running servers.")

# Bodies per transaction: a server that wants to write waits for one such step, not for the whole run.
STEP = 500


@app.command()
def upgrade(data_dir: DataDir = None, store: Store = None) -> None:
    """Create the store or bring its schema up to date; servers do the same when they start."""
    settings = read_settings(data_dir, store)
    with opened_for_writing(settings, create=True) as database:
        revision = database.read_sync(current_revision)
    say(f"{shown_url(settings)} is at schema {revision}.")


@app.command("prune")
def prune_store(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
    json: AsJson = False,
    data_dir: DataDir = None,
    store: Store = None,
) -> None:
    """Erase the bodies of calls whose time is over; the chain links stay, so the ledger still verifies."""
    settings = read_settings(data_dir, store)
    store_of = opened if dry_run else opened_for_writing
    with store_of(settings) as database, Console(stderr=True).status("Looking for old calls") as status:
        now_ms = SystemClock().now_ms()
        by = _eraser(now_ms)
        request = PruneRequest(
            by=by,
            policy=retention_policy(settings.retention),
            holds=database.read_sync(holds),
            dry_run=dry_run,
            limit=STEP,
        )
        erased: Counter[str] = Counter()
        kept: Counter[str] = Counter()
        freed = 0
        while True:
            report = _step(database, now_ms, request)
            erased.update(report.erased)
            kept.update(report.kept)
            freed += report.bytes
            status.update(f"{erased.total() + kept.total()} old calls looked at")
            if report.resume is None:
                break
            request = replace(request, resume=report.resume)
        forgotten = _forget(database, settings.retention, now_ms, dry_run=dry_run)
        if not dry_run:
            database.write_sync(end_server, by.server_id, SystemClock().now_ms(), "prune ended")
    _print(PruneReport(erased, kept, freed), forgotten, settings, dry_run=dry_run, json=json)


def _eraser(now_ms: int) -> Eraser:
    """This command with a chain of its own, which begins with the first erasure."""
    ids = SystemIds(SystemClock())
    info = describe_server(ServerId(ids.token(16)), now_ms, nova_mcp.__version__)
    return Eraser(info.server_id, ids.call_id, f"nova db prune, run by {person()}", info)


def _step(database: Database, now_ms: int, request: PruneRequest) -> PruneReport:
    run = database.read_sync if request.dry_run else database.write_sync
    return run(prune, now_ms, request)


@dataclass(frozen=True, slots=True)
class Forgotten:
    """Rows beside the ledger that went or would go."""

    transitions: int
    claims: int
    journal: int
    facts: int
    learning: int
    runs: int


def _forget(database: Database, kept: RetentionSettings, now_ms: int, *, dry_run: bool) -> Forgotten:
    if dry_run:
        every = (transitions_due, claims_due, journal_due, facts_due, learning_due, runs_due)
        return Forgotten(*(database.read_sync(count, now_ms, kept) for count in every))
    chores = (
        forgetting(kept.transition_days),
        claim_retention.forgetting(kept.claim_days),
        journal_chore(kept),
        fact_endings.forgetting(kept.fact_days),
        learning_chore(kept),
        run_retention.forgetting,
    )
    return Forgotten(*(_in_steps(database, chore, now_ms) for chore in chores))


def _in_steps(database: Database, chore: Chore, now_ms: int) -> int:
    gone = 0
    while step := database.write_sync(chore, now_ms):
        gone += step
    return gone


def _print(report: PruneReport, forgotten: Forgotten, settings: Settings, *, dry_run: bool, json: bool) -> None:
    if json:
        answer: dict[str, Any] = {"dryRun": dry_run, "total": report.total, "bytes": report.bytes}
        answer |= {"erased": dict(report.erased), "kept": dict(report.kept)}
        answer |= asdict(forgotten)
        print_json(answer)
        return
    days = {
        "ended": settings.retention.ended_days,
        "gaps": settings.retention.gap_days,
        "other": settings.retention.other_days,
    }
    if report.total or report.kept:
        rows = [(f"{rule} (after {days[rule]} days)", count) for rule, count in sorted(report.erased.items())]
        rows += [(f"kept: {reason}", count) for reason, count in sorted(report.kept.items())]
        print_table(("rule", "calls"), rows)
    say(f"bodies of calls: {report.total} {'would go' if dry_run else 'erased'}, {size(report.bytes)}.")
    for what, count, why in _beside_the_ledger(forgotten, settings.retention):
        if count:
            say(f"{what}: {count} {'would go' if dry_run else 'forgotten'} ({why}).")
    if forgotten.runs:
        verb = "would end or lose their details" if dry_run else "ended or lost their details"
        say(
            f"runs of tasks: {forgotten.runs} {verb} (idle for 90 days, or ended 180 days ago); what they proved stays."
        )


def _beside_the_ledger(forgotten: Forgotten, kept: RetentionSettings) -> list[tuple[str, int, str]]:
    """What went, how much of it, and after how long it does."""
    return [
        ("transitions and goals", forgotten.transitions, f"after {kept.transition_days} days"),
        ("claims, tabs and sandboxes", forgotten.claims, f"after {kept.claim_days} days"),
        (
            "rows of the journal",
            forgotten.journal,
            f"observations after {kept.journal_days} days, tool events after {kept.other_days}, repeats after 1",
        ),
        ("scopes of live facts", forgotten.facts, f"closed for {kept.fact_days} days"),
        ("rows about knowledge", forgotten.learning, f"after {kept.journal_days} days; its levels stay"),
    ]


@app.command()
def check(json: AsJson = False, data_dir: DataDir = None, store: Store = None) -> None:
    """Check the database itself; changes nothing. `nova ledger verify` checks what is written in it."""
    settings = read_settings(data_dir, store)
    problems = store_problems(settings)
    if json:
        print_json({"ok": not problems, "store": shown_url(settings), "problems": problems})
    elif problems:
        for problem in problems:
            say(f"BROKEN {visible(problem)}")
    else:
        say(f"{shown_url(settings)}: sound.")
    if problems:
        raise typer.Exit(EXIT_FAILED)
