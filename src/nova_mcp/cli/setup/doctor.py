"""`nova doctor`: is everything there that Nova needs, and if not, how to get it."""

from dataclasses import asdict
from typing import Annotated

import typer

import nova_mcp
from nova_mcp.cli.options import AsJson, DataDir, Store, read_settings
from nova_mcp.cli.setup.checks import Check, examine, shown_settings
from nova_mcp.cli.terminal import EXIT_FAILED, note, on_terminal, print_json, print_table, say, visible

app = typer.Typer(add_completion=False)

_MARKS = {"ok": "ok", "warning": "look", "broken": "BROKEN"}


@app.command()
def doctor(
    start: Annotated[
        bool, typer.Option("--start/--no-start", help="Start a server and a browser and read a page back.")
    ] = True,
    json: AsJson = False,
    data_dir: DataDir = None,
    store: Store = None,
) -> None:
    """Check browser, store, ledger and data folder; exit code 1 when something essential is broken."""
    settings = read_settings(data_dir, store)
    checks: list[Check] = []
    for check in examine(settings, start=start):
        checks.append(check)
        if not json:
            say(f"{_MARKS[check.state]:<7} {check.name}: {visible(check.detail)}")
            if check.fix:
                say(f"        → {visible(check.fix)}")
    broken = [check.name for check in checks if check.state == "broken"]
    shown = shown_settings(settings)
    if json:
        answer = {"ok": not broken, "version": nova_mcp.__version__, "checks": [asdict(check) for check in checks]}
        print_json({**answer, "settings": shown})
    else:
        say("")
        print_table(("setting", "value"), [(name, "" if value is None else value) for name, value in shown.items()])
        if on_terminal():
            note("")
        note(f"Broken: {', '.join(broken)}." if broken else "Nova is ready.")
    if broken:
        raise typer.Exit(EXIT_FAILED)
