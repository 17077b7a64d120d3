"""`nova replay`: is what was derived from observations still what they come to; a subcommand for each kind."""

from collections.abc import Callable
from typing import Any

import typer
from sqlalchemy import Connection

from nova_mcp.cli.options import AsJson, DataDir, Store, read_settings
from nova_mcp.cli.stored import opened
from nova_mcp.cli.terminal import EXIT_FAILED, note, print_json, say, visible
from nova_mcp.facts.replay import Difference, Replayed, replay
from nova_mcp.settings import Settings

app = typer.Typer(add_completion=False)

SHOWN = 20


def _facts(conn: Connection) -> dict[str, Any]:
    return _told(replay(conn))


# Everything that can be played back, by the name of its subcommand.
REPLAYS: dict[str, Callable[[Connection], dict[str, Any]]] = {"facts": _facts}


@app.callback(invoke_without_command=True)
def everything(ctx: typer.Context, json: AsJson = False, data_dir: DataDir = None, store: Store = None) -> None:
    """Rebuild what was derived from observations and compare it with what is stored.

    Without a name everything that can be replayed is; exit code 1 when something differs.
    """
    if ctx.invoked_subcommand is None:
        _run(tuple(REPLAYS), read_settings(data_dir, store), json=json)


@app.command()
def facts(json: AsJson = False, data_dir: DataDir = None, store: Store = None) -> None:
    """Rebuild every fact from its observations."""
    _run(("facts",), read_settings(data_dir, store), json=json)


def _run(names: tuple[str, ...], settings: Settings, *, json: bool) -> None:
    with opened(settings) as database:
        told = {name: database.read_sync(REPLAYS[name]) for name in names}
    if json:
        print_json({"ok": all(one["ok"] for one in told.values()), **told})
    else:
        for name, one in told.items():
            _say(name, one)
    if not all(one["ok"] for one in told.values()):
        raise typer.Exit(EXIT_FAILED)


def _told(done: Replayed) -> dict[str, Any]:
    return {
        "ok": not done.differences,
        "scopes": done.bindings,
        "observations": done.observations,
        "facts": done.facts,
        "differences": [_difference(one) for one in done.differences],
    }


def _difference(one: Difference) -> dict[str, str | int]:
    return {
        "scope": one.binding_id,
        "key": one.key,
        "version": one.version,
        "field": one.field,
        "stored": one.stored,
        "replayed": one.replayed,
    }


def _say(name: str, told: dict[str, Any]) -> None:
    counts = f"{told['observations']} observations in {told['scopes']} scopes"
    if told["ok"]:
        say(f"{name}: {counts} lead to exactly the {told['facts']} facts that are stored.")
        return
    for one in told["differences"][:SHOWN]:
        where = f"{one['scope']} {one['key']} version {one['version']}"
        say(visible(f"DIFFERS {where}: {one['field']} is {one['stored']}, replayed {one['replayed']}"))
    note(f"{name}: {len(told['differences'])} differences among {told['facts']} facts from {counts}.")
