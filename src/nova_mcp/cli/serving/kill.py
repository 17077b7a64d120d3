"""`nova kill`: the switches that keep agents from committing, or from applying what was learned."""

from typing import Annotated

import typer

from nova_mcp.cli.options import AsJson, DataDir, Store, read_settings
from nova_mcp.cli.store.open_store import opened, opened_for_writing
from nova_mcp.cli.terminal import EXIT_CONFIGURATION, fail, moment, note, person, print_json, print_table, say
from nova_mcp.core.clock import SystemClock
from nova_mcp.verification.kill_switches import (
    FORMS,
    Switch,
    SwitchName,
    UnknownSwitch,
    clear_switch,
    parse_switch,
    set_switch,
    switches,
)

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Switch commits or applied playbooks off, everywhere or for one host.",
)

Name = Annotated[str, typer.Argument(metavar="NAME", help=" | ".join(FORMS))]
NOTE_CHARS = 500


@app.command("set")
def set_one(
    name: Name,
    why: Annotated[str, typer.Option("--note", help="A word for whoever finds it set.")] = "",
    data_dir: DataDir = None,
    store: Store = None,
) -> None:
    """Switch it off for every server on this store, from the next call on."""
    wanted = _named(name)
    switch = Switch(wanted, SystemClock().now_ms(), person(), why[:NOTE_CHARS])
    with opened_for_writing(read_settings(data_dir, store), create=True) as database:
        fresh = database.write_sync(set_switch, switch)
    say(f"Set: {wanted}. `nova kill clear {wanted}` lifts it." if fresh else f"Already set: {wanted}.")


@app.command()
def clear(name: Name, data_dir: DataDir = None, store: Store = None) -> None:
    """Lift a switch."""
    wanted = _named(name)
    with opened_for_writing(read_settings(data_dir, store)) as database:
        was_set = database.write_sync(clear_switch, wanted)
    say(f"Cleared: {wanted}." if was_set else f"Not set: {wanted}.")


@app.command("list")
def list_all(json: AsJson = False, data_dir: DataDir = None, store: Store = None) -> None:
    """Show what is switched off."""
    with opened(read_settings(data_dir, store)) as database:
        found = database.read_sync(switches)
    if json:
        print_json({"switches": [_row(switch) for switch in found]})
    elif found:
        rows = [(switch.name, moment(switch.set_at_ms), switch.set_by, switch.note) for switch in found]
        print_table(("switch", "set at", "by", "note"), rows)
    else:
        note("Nothing is switched off.")


def _named(text: str) -> SwitchName:
    try:
        return parse_switch(text)
    except UnknownSwitch as error:
        fail(str(error), "the host stands alone: shop.example, not https://shop.example/", EXIT_CONFIGURATION)


def _row(switch: Switch) -> dict[str, str | int]:
    return {
        "name": str(switch.name),
        "setAtMs": switch.set_at_ms,
        "setBy": switch.set_by,
        "note": switch.note,
    }
