"""`nova tasks`: profiles of recurring tasks and their runs, for the person who wants to know what agents work on."""

import json as text_json
from collections.abc import Sequence
from typing import Annotated, Any, NoReturn, TypeVar

import typer

from nova_mcp.cli.options import AsJson, DataDir, Store, alone, read_settings
from nova_mcp.cli.store.open_store import opened
from nova_mcp.cli.terminal import EXIT_FAILED, fail, moment, note, print_json, print_table, say, visible
from nova_mcp.core.clock import SystemClock
from nova_mcp.core.keywords import cut, some
from nova_mcp.memory.tasks import overview
from nova_mcp.memory.tasks.content_codec import content_json
from nova_mcp.memory.tasks.overview import OwnedProfile, RunBrief, RunWhole
from nova_mcp.memory.tasks.profiles.confidence import Tuning
from nova_mcp.memory.tasks.profiles.rules import Profile
from nova_mcp.memory.tasks.profiles.service import tuning_of
from nova_mcp.memory.tasks.runs.rules import CheckMark
from nova_mcp.storage.engine import Database
from nova_mcp.tools.times import utc

app = typer.Typer(add_completion=False)

T = TypeVar("T")

LISTED = 500
UNITS = 50
EVENTS = 20
_CELL = 60

Principal = Annotated[
    str | None, typer.Option("--principal", metavar="NAME", help="Only what belongs to this principal.")
]


@app.callback(invoke_without_command=True)
def everything(ctx: typer.Context, json: AsJson = False, data_dir: DataDir = None, store: Store = None) -> None:
    """Show recurring tasks and their runs: what each needs, how far it is, what of it was seen.

    Without a subcommand the profiles and the runs that are open.
    """
    if not alone(ctx):
        return
    now_ms = SystemClock().now_ms()
    with opened(read_settings(data_dir, store)) as database:
        recurring, going_on = _profiles(database, None), _runs(database, None)
    if json:
        print_json({**_profiles_json(recurring, now_ms), **_runs_json(going_on)})
        return
    if not recurring and not going_on:
        note("There are no profiles and no open runs; `nova tasks runs --all` shows those that have ended.")
    if recurring:
        _show_profiles(recurring, now_ms)
    if recurring and going_on:
        say("")
    if going_on:
        _show_runs(going_on)


def _listed(every: Sequence[T], what: str) -> Sequence[T]:
    if len(every) > LISTED:
        note(f"Only the first {LISTED} {what} are shown; narrow them down with --principal.")
    return every[:LISTED]


# -- profiles


def _profiles(database: Database, principal: str | None, *, archived: bool = False) -> Sequence[OwnedProfile]:
    return _listed(database.read_sync(overview.profiles, principal, LISTED + 1, archived=archived), "profiles")


def _profiles_json(found: Sequence[OwnedProfile], now_ms: int) -> dict[str, Any]:
    return {"profiles": [_brief_json(one, now_ms) for one in found]}


@app.command()
def profiles(
    principal: Principal = None,
    archived: Annotated[bool, typer.Option("--archived", help="Archived ones too.")] = False,
    json: AsJson = False,
    data_dir: DataDir = None,
    store: Store = None,
) -> None:
    """List the profiles of recurring tasks, last changed first."""
    now_ms = SystemClock().now_ms()
    with opened(read_settings(data_dir, store)) as database:
        found = _profiles(database, principal, archived=archived)
    if json:
        print_json(_profiles_json(found, now_ms))
    else:
        _show_profiles(found, now_ms)


def _show_profiles(found: Sequence[OwnedProfile], now_ms: int) -> None:
    columns = (
        "profile",
        "principal",
        "type",
        "name",
        "domain",
        "revision",
        "confidence",
        "runs",
        "completed",
        "changed",
    )
    print_table(columns, [_row(one, now_ms) for one in found])


def _row(one: OwnedProfile, now_ms: int) -> tuple[object, ...]:
    kept, content = one.profile, one.profile.content
    name = cut(content.display_name, _CELL) + (" (archived)" if kept.archived else "")
    sure = f"{tuning_of(kept, now_ms).effective:.2f}"
    counts = (kept.content_rev, sure, kept.runs, kept.completed)
    return (
        kept.profile_id,
        one.principal,
        content.task_type,
        name,
        content.domain or "-",
        *counts,
        moment(kept.updated_at_ms),
    )


def _brief_json(one: OwnedProfile, now_ms: int) -> dict[str, Any]:
    kept = one.profile
    return {
        "principal": one.principal,
        "profileId": kept.profile_id,
        "taskType": kept.content.task_type,
        "displayName": kept.content.display_name,
        "domain": kept.content.domain,
        "platform": kept.content.platform,
        "contentRev": kept.content_rev,
        "archived": kept.archived,
        "confidence": round(tuning_of(kept, now_ms).effective, 4),
        "runs": kept.runs,
        "completed": kept.completed,
        "failed": kept.failed,
        "aborted": kept.aborted,
        "updatedAtUtc": utc(kept.updated_at_ms),
    }


@app.command()
def profile(
    profile_id: Annotated[str, typer.Argument(metavar="ID", help="The profile's id.")],
    principal: Principal = None,
    json: AsJson = False,
    data_dir: DataDir = None,
    store: Store = None,
) -> None:
    """Show one profile whole: goal, guidance, checks, when the task is done."""
    now_ms = SystemClock().now_ms()
    with opened(read_settings(data_dir, store)) as database:
        found = database.read_sync(overview.profiles_called, profile_id, principal)
    if not found:
        _nothing(f"there is no profile {profile_id}", "`nova tasks profiles` lists those there are")
    if json:
        print_json({"profiles": [{**_brief_json(one, now_ms), **content_json(one.profile.content)} for one in found]})
        return
    for one in found:
        _say_profile(one.principal, one.profile, tuning_of(one.profile, now_ms))


def _say_profile(principal: str, one: Profile, tuning: Tuning) -> None:
    content, condition = one.content, one.content.completion_condition
    say(f"{visible(one.profile_id)} of {visible(principal)}: {visible(content.display_name)}")
    say(f"  {visible(content.goal)}")
    where = [visible(part) for part in (content.task_type, content.task_kind, content.domain, content.platform) if part]
    say(f"  {', '.join(where)}; revision {one.content_rev}{', archived' if one.archived else ''}")
    stop = f"{condition.stop_metric}{'' if condition.stop_value is None else f' {condition.stop_value}'}"
    say(f"  done when: {condition.coverage_mode} by {condition.unit_kind}, {stop}, evidence {condition.evidence.mode}")
    runs = f"{some(one.runs, 'run')}, {one.completed} completed, {one.failed} failed, {one.aborted} aborted"
    say(f"  confidence {tuning.effective:.2f} from {tuning.base:.2f}; {runs}")
    rows: list[tuple[object, ...]] = [("guidance", item.kind, item.text) for item in content.stable_guidance]
    rows += [
        ("check" if item.required else "optional check", item.check_id, item.description)
        for item in content.mandatory_checks
    ]
    rows += [("exception", "-", text) for text in content.known_exceptions]
    rows += [("step", f"{item.step_id} {item.tool}", item.description) for item in content.verification]
    if rows:
        print_table(("what", "which", "text"), rows)


# -- runs


def _runs(database: Database, principal: str | None, *, ended: bool = False) -> Sequence[RunBrief]:
    return _listed(database.read_sync(overview.runs, principal, LISTED + 1, ended=ended), "runs")


def _runs_json(found: Sequence[RunBrief]) -> dict[str, Any]:
    return {"runs": [_run_json(one) for one in found]}


@app.command()
def runs(
    principal: Principal = None,
    ended: Annotated[bool, typer.Option("--all", help="Runs that have ended too.")] = False,
    json: AsJson = False,
    data_dir: DataDir = None,
    store: Store = None,
) -> None:
    """List runs that are open, last active first."""
    with opened(read_settings(data_dir, store)) as database:
        found = _runs(database, principal, ended=ended)
    if json:
        print_json(_runs_json(found))
    else:
        _show_runs(found)


def _show_runs(found: Sequence[RunBrief]) -> None:
    columns = ("run", "principal", "task", "status", "revision", "units", "done", "target", "last active")
    print_table(columns, [_run_row(one) for one in found])


def _run_row(one: RunBrief) -> tuple[object, ...]:
    run, tally = one.run, one.tally
    name = run.profile_id or cut(run.content.display_name, _CELL)
    target = cut(run.target_url or "-", _CELL)
    done = f"{tally.percent_complete} %"
    return (
        *(run.instance_id, run.principal, name, run.state.status, run.state.rev, tally.total, done, target),
        moment(run.last_activity_at_ms),
    )


def _run_json(one: RunBrief) -> dict[str, Any]:
    run, tally = one.run, one.tally
    return {
        "instanceId": run.instance_id,
        "principal": run.principal,
        "profileId": run.profile_id,
        "displayName": run.content.display_name,
        "status": run.state.status,
        "discoveryState": run.state.discovery,
        "instanceRev": run.state.rev,
        "targetUrl": run.target_url,
        "endedReason": run.state.ended_reason,
        "units": {
            "total": tally.total,
            "checked": tally.checked,
            "excluded": tally.excluded,
            "remaining": tally.remaining,
            "blocked": tally.blocked,
            "failed": tally.failed,
            "late": tally.late,
        },
        "percentComplete": tally.percent_complete,
        "startedAtUtc": utc(run.started_at_ms),
        "lastActivityAtUtc": utc(run.last_activity_at_ms),
        "endedAtUtc": None if run.ended_at_ms is None else utc(run.ended_at_ms),
    }


@app.command("run")
def one_run(
    instance_id: Annotated[str, typer.Argument(metavar="ID", help="The run's id.")],
    json: AsJson = False,
    data_dir: DataDir = None,
    store: Store = None,
) -> None:
    """Show one run: its members, its units with what was seen of them, and its latest events."""
    with opened(read_settings(data_dir, store)) as database:
        found = database.read_sync(overview.run, instance_id, UNITS, EVENTS)
    if found is None:
        _nothing(f"there is no run {instance_id}", "`nova tasks runs --all` lists those there are")
    if json:
        print_json(_whole_json(found))
    else:
        _say_run(found)


def _whole_json(found: RunWhole) -> dict[str, Any]:
    return {
        **_run_json(RunBrief(found.run, found.tally)),
        "covered": found.covered,
        "checks": {
            one.check_id: found.run.state.checks.get(one.check_id, CheckMark()).state
            for one in found.run.content.mandatory_checks
        },
        "resumeState": dict(found.run.state.resume),
        "effectiveContext": text_json.loads(found.run.effective_context),
        "members": [{"agentId": one.agent_id, "joinedAtUtc": utc(one.joined_at_ms)} for one in found.members],
        "unitsShown": [
            {
                "unitKey": one.unit_key,
                "url": one.url,
                "label": one.label,
                "status": one.status,
                "reason": one.reason,
                "grade": one.grade.name,
                "covered": one.covered,
            }
            for one in found.units
        ],
        "events": [
            {"rev": one.rev_after, "kind": one.kind, "agentId": one.agent_id, "atUtc": utc(one.at_ms)}
            for one in found.events
        ],
    }


def _say_run(found: RunWhole) -> None:
    run, tally = found.run, found.tally
    why = f" ({visible(run.state.ended_reason)})" if run.state.ended_reason else ""
    say(f"{run.instance_id} of {visible(run.principal)}: {visible(run.content.display_name)}")
    say(f"  {run.state.status}{why}, revision {run.state.rev}, discovery {run.state.discovery}")
    say(f"  started {moment(run.started_at_ms)}, last active {moment(run.last_activity_at_ms)}")
    told = f"{tally.checked} checked, {tally.excluded} excluded, {tally.remaining} remaining"
    told += f", {tally.blocked} blocked, {tally.failed} failed"
    say(f"  {tally.total} units: {told}; {found.covered} covered")
    say(f"  members: {', '.join(visible(one.agent_id) for one in found.members) or '-'}")
    if found.units:
        rows = [
            (one.url or one.unit_key, one.status, one.grade.name, one.covered, one.reason or "-") for one in found.units
        ]
        print_table(("unit", "says the agent", "was seen", "covered", "reason"), rows)
    if tally.total > len(found.units):
        note(f"Only the first {len(found.units)} of {tally.total} units are shown.")
    if found.events:
        events = [(one.rev_after, one.kind, one.agent_id, moment(one.at_ms)) for one in found.events]
        print_table(("revision", "event", "agent", "at"), events)


def _nothing(message: str, hint: str) -> NoReturn:
    fail(message, hint, EXIT_FAILED)
