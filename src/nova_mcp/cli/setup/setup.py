"""`nova setup CLIENT`: from nothing to a client that can use Nova."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from nova_mcp.browser.process.install import ensure_browser, installed_browser
from nova_mcp.cli.options import DataDir, Store, read_settings
from nova_mcp.cli.setup import file_change
from nova_mcp.cli.setup.client_files import CannotEdit, Client, Launch, Place, client_file, launch_of, with_entry
from nova_mcp.cli.setup.file_change import Change, FileMoved
from nova_mcp.cli.setup.self_test import Broke, Worked, environment, self_test
from nova_mcp.cli.terminal import EXIT_CONFIGURATION, EXIT_FAILED, fail, note, say, visible
from nova_mcp.settings import Settings

app = typer.Typer(add_completion=False)

PROMPT = "Use Nova to open https://example.com, look at the page and tell me what its only link is called."


@app.command()
def setup(
    client: Annotated[Client, typer.Argument(help="The program that shall use Nova.")],
    project: Annotated[
        bool, typer.Option("--project", help="Only for the current folder (claude, cursor); shared by its file.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Don't ask.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the change, write and install nothing.")] = False,
    wait: Annotated[float, typer.Option(min=1, metavar="SECONDS", help="How long the try-out may take.")] = 10,
    data_dir: DataDir = None,
    store: Store = None,
) -> None:
    """Find or install a Chromium, add Nova to a client, try it out, and suggest a first prompt."""
    settings = read_settings(data_dir, store)
    _browser(settings, dry_run=dry_run)
    launch = launch_of(Path(sys.executable), _script(), _where(data_dir, store))
    change = _planned(client, launch, project=project)
    if not change.needed:
        say(f"{change.path} already has this entry.")
    else:
        say("\n".join(visible(line) for line in change.diff().splitlines()))
        if dry_run:
            return
        _write(change, yes=yes)
    if dry_run:
        return
    _try(launch, settings, wait)
    say(f"\nRestart {client}, then try:\n  {PROMPT}")


def _browser(settings: Settings, *, dry_run: bool) -> None:
    if settings.browser.cdp_endpoint is not None:
        note("browser: a running one, through its endpoint")
    elif dry_run:
        found = installed_browser(settings.browser.executable)
        note(f"browser: {found.path} ({found.source})" if found else "browser: none; setup would install Chromium")
    elif ensure_browser(note, settings.browser.executable) is None:
        # The entry is still worth writing: everything else is ready once a browser is there.
        note("going on without one; `nova doctor` tells when it is found")


def _script() -> Path | None:
    """The `nova-mcp` command of this installation."""
    for name in ("nova-mcp", "nova-mcp.exe"):
        if (beside := Path(sys.executable).with_name(name)).is_file():
            return beside
    return None


def _where(data_dir: Path | None, store: str | None) -> tuple[str, ...]:
    flags: list[str] = []
    if data_dir is not None:
        flags += ["--data-dir", str(data_dir.expanduser().absolute())]
    if store is not None:
        flags += ["--store", store]
    return tuple(flags)


def _planned(client: Client, launch: Launch, *, project: bool) -> Change:
    place = Place(sys.platform, Path.home(), Path.cwd(), os.environ)
    try:
        path = client_file(client, place, project=project)
    except CannotEdit as error:
        fail(str(error), code=EXIT_CONFIGURATION)
    try:
        before = file_change.read_text(path)
        return Change(path, before, with_entry(client, before, launch))
    except (CannotEdit, UnicodeDecodeError, OSError) as error:
        fail(f"{path} was left alone: {error}", "correct the file, or move it away, and run this again")


def _write(change: Change, *, yes: bool) -> None:
    if not yes and not sys.stdin.isatty():
        fail("nobody can be asked here", "say --yes to write the change, or --dry-run to see it", EXIT_CONFIGURATION)
    if not yes and not typer.confirm("Write this?", default=True):
        fail("nothing was written")
    try:
        backup = file_change.apply(change)
    except (OSError, FileMoved) as error:
        fail(f"nothing was written: {error}", "run this again")
    say(f"Written: {change.path}" + (f" (before: {backup})" if backup else ""))


def _try(launch: Launch, settings: Settings, wait: float) -> None:
    note("Trying it out …")
    match self_test(launch, environment(settings), wait):
        case Worked(tools, seconds):
            say(f"It works: {tools} tools, a page opened and read back in {seconds:.1f} s.")
        case Broke(step, detail):
            fail(
                f"the self-test broke at: {step}: {detail}",
                "the entry stays; `nova doctor` looks at each part with more patience",
                EXIT_FAILED,
            )
