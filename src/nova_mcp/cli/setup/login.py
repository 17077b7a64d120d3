"""`nova login SITE`: a window to log in by hand; what the site remembers of it, agents have from then on."""

import os
import sys
from typing import Annotated

import anyio
import anyio.to_thread
import typer

from nova_mcp.browser.process.find_chromium import has_display
from nova_mcp.browser.process.runtime import BrowserHome
from nova_mcp.browser.state.manual_login import Kept, LoginWindow, Person, log_in
from nova_mcp.cli.options import DataDir, Store, read_settings
from nova_mcp.cli.serving.key_presses import NextKey, keys
from nova_mcp.cli.terminal import EXIT_CONFIGURATION, fail, note, say, visible
from nova_mcp.core.clock import system_ports
from nova_mcp.core.file_lock import HeldBy
from nova_mcp.core.policy import Allowed, NavigationPolicy, judge_url
from nova_mcp.errors import NovaError
from nova_mcp.settings import Settings

app = typer.Typer(add_completion=False)

KEY_S = 0.3
SHOWN_HOSTS = 20


@app.command()
def login(
    site: Annotated[str, typer.Argument(help="Address or host; https:// is assumed.", metavar="SITE")],
    data_dir: DataDir = None,
    store: Store = None,
) -> None:
    """Open a window on the kept sandbox to log in to a site by hand; agents find the login there."""
    settings = read_settings(data_dir, store)
    url = site_url(site)
    if url is None:
        fail(f'"{site}" is not a site', "Give a host such as example.com, or a whole address.", EXIT_CONFIGURATION)
    if settings.browser.cdp_endpoint is None and not has_display(sys.platform, os.environ):
        fail(
            "there is no display to show a window on",
            "Run it where there is one: on the desktop itself, or over `ssh -X`.",
        )
    note(f"Log in at {visible(url)} in the window. Then close it, or press Enter here.")
    report(perform(settings, url, at_the_terminal))


def site_url(site: str) -> str | None:
    """The address a person means; None when it is none that a browser could open."""
    text = site.strip()
    url = text if "://" in text else f"https://{text}"
    return url if isinstance(judge_url(url, NavigationPolicy(private_network="lan")), Allowed) else None


def perform(settings: Settings, url: str, person: Person, *, headed: bool = True) -> Kept | HeldBy:
    """The whole login; tests give a scripted person and no window."""
    ports = system_ports()
    settings.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    home = BrowserHome(settings.data_dir, f"login-{os.getpid()}")
    chosen = settings.browser.model_copy(update={"headed": headed})
    try:
        return anyio.run(log_in, url, chosen, home, person, ports)
    except NovaError as error:
        fail(error.message, error.hint)


def report(outcome: Kept | HeldBy) -> None:
    match outcome:
        case HeldBy(pid):
            who = "A running Nova server" if pid is None else f"A running Nova server (process {pid})"
            fail(
                f"{who} is using the kept sandbox, so nothing was opened",
                "Close the client that started it (or stop that process), log in, and start the client again.",
            )
        case Kept(saved=False):
            fail("the login could not be kept", "Look at the messages above; the data folder must be writable.")
        case Kept(cookies, origins):
            shown = ", ".join(f"{visible(host)} {count}" for host, count in list(cookies.items())[:SHOWN_HOSTS])
            more = f" and {len(cookies) - SHOWN_HOSTS} more hosts" if len(cookies) > SHOWN_HOSTS else ""
            say(f"Kept. Cookies per host: {shown or 'none'}{more}. Sites with stored data: {origins}.")


async def at_the_terminal(window: LoginWindow) -> None:
    """Until the window is closed or Enter is pressed; without a terminal only the window counts."""
    if not sys.stdin.isatty():
        await window.closed()
        return
    with keys() as next_key:
        async with anyio.create_task_group() as group:

            async def closed() -> None:
                await window.closed()
                group.cancel_scope.cancel()

            group.start_soon(closed)
            await _enter(next_key)
            group.cancel_scope.cancel()


async def _enter(next_key: NextKey) -> None:
    while await anyio.to_thread.run_sync(next_key, KEY_S) not in ("\r", "\n"):
        continue
