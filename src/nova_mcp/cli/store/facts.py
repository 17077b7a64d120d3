"""`nova facts`: what is held true right now, for the person who asks why an agent believes it."""

import json as text_json
from typing import Annotated, Any

import typer

from nova_mcp.cli.options import AsJson, DataDir, Store, read_settings
from nova_mcp.cli.store.open_store import opened
from nova_mcp.cli.terminal import moment, note, print_json, print_table
from nova_mcp.core.keywords import cut
from nova_mcp.memory.facts.model import Fact
from nova_mcp.memory.facts.reader import LISTED, FactFilter, ListedFact, listed

app = typer.Typer(add_completion=False)

SHOWN_CHARS = 60


@app.command()
def facts(
    target: Annotated[str | None, typer.Option("--target", metavar="TAB", help="Only this tab.")] = None,
    service: Annotated[str | None, typer.Option("--service", metavar="KEY", help="Only this service.")] = None,
    history: Annotated[bool, typer.Option("--history", help="Earlier versions too.")] = False,
    closed: Annotated[bool, typer.Option("--closed", help="Facts of tabs that have ended too.")] = False,
    json: AsJson = False,
    data_dir: DataDir = None,
    store: Store = None,
) -> None:
    """Show what is held true right now, tab by tab; --history adds what was held true before."""
    wanted = FactFilter(target, service, history or json, closed, LISTED + 1)
    with opened(read_settings(data_dir, store)) as database:
        every = database.read_sync(listed, wanted)
    found = every[:LISTED]
    if len(every) > LISTED:
        note(f"Only the first {LISTED} facts are shown; narrow them down with --target or --service.")
    if json:
        print_json({"facts": [_as_json(one) for one in found]})
        return
    rows = [row for one in found for row in _rows(one, history=history)]
    if not rows:
        note("No facts match; --closed adds those of tabs that have ended.")
    print_table(("tab", "service", "signal", "value", "state", "certainty", "seen", "last seen"), rows)


def _rows(one: ListedFact, *, history: bool) -> list[tuple[object, ...]]:
    versions = [one.fact, *(one.history if history else ())]
    return [
        (
            one.target_id,
            one.service_key,
            version.key,
            cut(version.value, SHOWN_CHARS),
            version.state if version.valid_to_ms is None else f"until {moment(version.valid_to_ms)}",
            version.certainty,
            version.support,
            moment(version.last_observed_at_ms),
        )
        for version in versions
    ]


def _as_json(one: ListedFact) -> dict[str, Any]:
    return {
        "targetId": one.target_id,
        "sandboxId": one.sandbox_id,
        "principal": one.principal,
        "serviceKey": one.service_key,
        "account": one.account_hash,
        **_version(one.fact),
        "history": [_version(old) for old in one.history],
    }


def _version(fact: Fact) -> dict[str, Any]:
    return {
        "key": fact.key,
        "version": fact.version,
        "value": text_json.loads(fact.value),
        "state": fact.state,
        "certaintyLevel": fact.certainty,
        "confidence": fact.confidence / 1000,
        "source": fact.source,
        "support": fact.support,
        "contradictions": fact.contradictions,
        "urlAtObservation": fact.url,
        "firstObservedAtMs": fact.first_observed_at_ms,
        "lastObservedAtMs": fact.last_observed_at_ms,
        "validFromMs": fact.valid_from_ms,
        "validToMs": fact.valid_to_ms,
        "supersededBy": fact.superseded_by,
    }
