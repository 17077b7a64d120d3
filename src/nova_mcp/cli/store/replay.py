"""`nova replay`: is what was derived from observations still what they come to; a subcommand for each kind."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import typer
from sqlalchemy import Connection

from nova_mcp.cli.options import AsJson, DataDir, Store, alone, read_settings
from nova_mcp.cli.store.open_store import opened
from nova_mcp.cli.terminal import EXIT_FAILED, note, print_json, say, visible
from nova_mcp.core.keywords import some
from nova_mcp.memory.facts.replay import Difference, replay
from nova_mcp.memory.promotion.replay import replay_levels
from nova_mcp.settings import Settings

app = typer.Typer(add_completion=False)

SHOWN = 20


@dataclass(frozen=True, slots=True)
class Told:
    """What a replay came to: the body for programs, a sentence for each ending, and a line for each difference."""

    body: dict[str, Any]
    fine: str
    broken: str
    lines: tuple[str, ...]

    @property
    def ok(self) -> bool:
        return not self.lines


def _facts(conn: Connection) -> Told:
    done = replay(conn)
    counts = f"{some(done.observations, 'observation')} in {some(done.bindings, 'scope')}"
    return Told(
        body={
            "scopes": done.bindings,
            "observations": done.observations,
            "facts": done.facts,
            "differences": [_difference(one) for one in done.differences],
        },
        fine=f"{counts} led to exactly what is stored: {some(done.facts, 'fact')}.",
        broken=f"{some(len(done.differences), 'difference')} among {some(done.facts, 'fact')} from {counts}.",
        lines=tuple(
            f"{one.binding_id} {one.key} version {one.version}: {one.field} is {one.stored}, replayed {one.replayed}"
            for one in done.differences
        ),
    )


def _levels(conn: Connection) -> Told:
    done = replay_levels(conn)
    entries = some(done.entries, "entry", "entries")
    return Told(
        body={
            "entries": done.entries,
            "steps": done.steps,
            "differences": [
                {
                    "scope": one.scope,
                    "stableId": one.stable_id,
                    "slot": one.slot,
                    "field": one.field,
                    "stored": one.stored,
                    "replayed": one.replayed,
                }
                for one in done.differences
            ],
        },
        fine=f"{some(done.steps, 'step')} led to exactly the levels that are stored: {entries}.",
        broken=f"{some(len(done.differences), 'difference')} among {entries} from {some(done.steps, 'step')}.",
        lines=tuple(
            f"{one.scope} {one.stable_id} {one.slot}: {one.field} is {one.stored}, replayed {one.replayed}"
            for one in done.differences
        ),
    )


# Everything that can be played back, by the name of its subcommand.
REPLAYS: dict[str, Callable[[Connection], Told]] = {"facts": _facts, "levels": _levels}


@app.callback(invoke_without_command=True)
def everything(ctx: typer.Context, json: AsJson = False, data_dir: DataDir = None, store: Store = None) -> None:
    """Rebuild what was derived from observations and compare it with what is stored.

    Without a name everything that can be replayed is; exit code 1 when something differs.
    """
    if alone(ctx):
        _run(tuple(REPLAYS), read_settings(data_dir, store), json=json)


@app.command()
def facts(json: AsJson = False, data_dir: DataDir = None, store: Store = None) -> None:
    """Rebuild every fact from its observations."""
    _run(("facts",), read_settings(data_dir, store), json=json)


@app.command()
def levels(json: AsJson = False, data_dir: DataDir = None, store: Store = None) -> None:
    """Play the history of every entry of knowledge back and compare where it leads: level, retirement, revision."""
    _run(("levels",), read_settings(data_dir, store), json=json)


def _run(names: tuple[str, ...], settings: Settings, *, json: bool) -> None:
    with opened(settings) as database:
        told = {name: database.read_sync(REPLAYS[name]) for name in names}
    fine = all(one.ok for one in told.values())
    if json:
        print_json({"ok": fine, **{name: {"ok": one.ok, **one.body} for name, one in told.items()}})
    else:
        for name, one in told.items():
            _say(name, one)
    if not fine:
        raise typer.Exit(EXIT_FAILED)


def _difference(one: Difference) -> dict[str, str | int]:
    return {
        "scope": one.binding_id,
        "key": one.key,
        "version": one.version,
        "field": one.field,
        "stored": one.stored,
        "replayed": one.replayed,
    }


def _say(name: str, told: Told) -> None:
    if told.ok:
        say(f"{name}: {told.fine}")
        return
    for line in told.lines[:SHOWN]:
        say(visible(f"DIFFERS {line}"))
    note(f"{name}: {told.broken}")
