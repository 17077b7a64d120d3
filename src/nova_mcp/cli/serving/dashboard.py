"""`nova dashboard`: a link that signs a browser in to the pages of the running server."""

import secrets
import socket
import webbrowser
from typing import Annotated
from urllib.parse import urlsplit

import typer

from nova_mcp.cli.options import DataDir, Store, read_settings
from nova_mcp.cli.terminal import EXIT_CONFIGURATION, EXIT_FAILED, fail, note, say
from nova_mcp.core.clock import SystemClock
from nova_mcp.dashboard.tickets import issue
from nova_mcp.server.http.bearer_tokens import TokenFileError, read_token_file
from nova_mcp.server.http.dashboard_home import ROOT

app = typer.Typer(add_completion=False)

_ANYWHERE = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104 - names to be replaced, not bound to
_HINT = "start one with: nova serve --http"
_PATIENCE_S = 3.0


@app.command()
def dashboard(
    *,
    open_it: Annotated[bool, typer.Option("--open", help="Open the link in this machine's browser.")] = False,
    data_dir: DataDir = None,
    store: Store = None,
) -> None:
    """Print a link that opens the dashboard of the running server, once and within a minute."""
    settings = read_settings(data_dir, store)
    try:
        known = read_token_file(settings.data_dir)
    except FileNotFoundError:
        fail("no server with a dashboard ran on this data folder yet", _HINT, EXIT_FAILED)
    except TokenFileError as error:
        fail(str(error), code=EXIT_CONFIGURATION)
    if not _answers(known.endpoint):
        fail(f"no server answers at {reachable(known.endpoint)} any more", _HINT, EXIT_FAILED)
    link = sign_in_link(known.endpoint, known.token)
    say(link)
    if open_it and not webbrowser.open(link):
        note("nova: no browser could be opened; follow the link by hand")


def _answers(endpoint: str) -> bool:
    """Whether anything listens there; the file with the address outlives its server."""
    there = urlsplit(reachable(endpoint))
    try:
        socket.create_connection((there.hostname or "", there.port or 0), _PATIENCE_S).close()
    except OSError:
        return False
    return True


def sign_in_link(endpoint: str, token: str) -> str:
    """Opens the pages of that server once, within a minute."""
    ticket = issue(token, endpoint, SystemClock().now_ms(), secrets.token_hex(16))
    return f"{reachable(endpoint)}{ROOT}/enter?ticket={ticket}"


def reachable(endpoint: str) -> str:
    """The server's address as a browser on this machine can use it."""
    parts = urlsplit(endpoint)
    host = parts.hostname or ""
    shown = _ANYWHERE.get(host, f"[{host}]" if ":" in host else host)
    return f"{parts.scheme}://{shown}:{parts.port}"
