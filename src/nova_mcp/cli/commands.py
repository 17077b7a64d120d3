"""The list of commands; a command's module is imported when the command is used or its help is shown."""

from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

import nova_mcp
from nova_mcp.cli.completion import load_completions, stand_in

COMMANDS: dict[str, str] = {
    "serve": "Serve MCP on stdin and stdout, or over HTTP; an MCP client starts this.",
    "setup": "Find or install a Chromium, add Nova to a client, try it out, and suggest a first prompt.",
    "doctor": "Check browser, store, ledger and data folder; exit code 1 when something essential is broken.",
    "demo": "Play a story over simulated days on a practice site; exit code 0 only if every chapter did what it says.",
    "login": "Open a window on the kept sandbox to log in to a site by hand; agents find the login there.",
    "dashboard": "Print a link that opens the dashboard of the running server, once and within a minute.",
    "watch": "Watch calls as they are recorded and answer what agents ask. Keys: s emergency stop, r resume, q quit.",
    "stop": "Stop every agent at once: running calls are cancelled, new ones refused, until `nova resume`.",
    "resume": "Lift the emergency stop; agents may act again.",
    "kill": "Switch commits or applied playbooks off, everywhere or for one host.",
    "receipt": "Show the proof of a commit: what was sent, what came back, what the page showed.",
    "facts": "Show what is held true right now, tab by tab; --history adds what was held true before.",
    "knowledge": "Show what is known of websites: all sites, the entries of one, or one entry whole.",
    "notes": "List, add, edit and delete notes: about sites for a user, across tasks, and for every agent on a site.",
    "explain": "Explain why an entry stands at its level: its gates, what is missing, and what would help.",
    "export": "Write knowledge as a pack of JSON lines: what was learned, without evidence and without who learned it.",
    "import": "Take a knowledge pack in: entries start in review, and what is known here stays.",
    "tasks": "Show recurring tasks and their runs: what each needs, how far it is, what of it was seen.",
    "events": "Show recorded calls, oldest first; with --json one object per line.",
    "stats": "Show how well learning works: evidence, candidates, decisions, the outbox, and how pages take our acts.",
    "ledger": "Check the evidence ledger, print its heads.",
    "replay": "Rebuild what was derived from observations and compare it with what is stored.",
    "db": "Look after the store; safe beside running servers.",
    "tools": "Show the published tools and how many tokens each costs in tools/list (an estimate).",
}
_MODULES = {
    "serve": "serving.serve_command",
    "stop": "serving.stop",
    "resume": "serving.resume",
    "kill": "serving.kill",
    "watch": "serving.watch",
    "dashboard": "serving.dashboard",
    "setup": "setup.setup",
    "doctor": "setup.doctor",
    "login": "setup.login",
    "knowledge": "knowledge.knowledge",
    "explain": "knowledge.explain",
    "export": "knowledge.export",
    "import": "knowledge.import_pack",
    "notes": "notes.notes",
    "receipt": "store.receipt",
    "facts": "store.facts",
    "tasks": "store.tasks",
    "events": "store.events",
    "stats": "store.stats",
    "ledger": "store.ledger",
    "replay": "store.replay",
    "db": "store.db",
    "demo": "demo",
    "tools": "tools",
}


def load(name: str) -> Any:
    """The command itself, with everything it needs."""
    module = import_module(f"nova_mcp.cli.{_MODULES[name]}")
    command = typer.main.get_command(module.app)
    command.name = name
    return command


class Commands(TyperGroup):
    """Lists commands without importing them: together they load the browser's, the store's and MCP's libraries."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for name, summary in COMMANDS.items():
            self.commands[name] = TyperCommand(name, help=summary)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, _, rest = super().resolve_command(ctx, args)
        if name and ctx.resilient_parsing:
            return name, stand_in(name, load_completions()[name]), rest
        return name, load(name) if name else None, rest


app = typer.Typer(
    name="nova",
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Settings: flags, then NOVA_* variables, then nova.toml in the data folder. `nova doctor` prints them.",
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"nova {nova_mcp.__version__}")
        raise typer.Exit


@app.callback()
def nova(
    *,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and leave.", is_eager=True, callback=_version)
    ] = False,
) -> None:
    """A real browser for AI agents, with a record of what really happened."""
