"""`nova serve`: reads the flags with little more than the standard library, then hands over to the server."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nova_mcp.settings import Settings, SettingsError, load_settings

if TYPE_CHECKING:
    from nova_mcp.server.manifest import Manifest

EXIT_FAILED = 1
EXIT_CONFIGURATION = 2
_STORES = ("sqlite://", "postgresql://", "postgresql+psycopg://")


def parser(program: str) -> argparse.ArgumentParser:
    """Every flag defaults to None: what is not given falls through to the environment and the file."""
    flags = argparse.ArgumentParser(
        prog=program,
        description="Serve MCP on stdin and stdout, or over HTTP with --http. A client starts this; `nova setup` tells "
        "it how.",
        epilog="Every flag can also be set as NOVA_… in the environment or in nova.toml in the data folder.",
        allow_abbrev=False,
    )
    wire = flags.add_argument_group("connection")
    wire.add_argument(
        "--http",
        nargs="?",
        const="",
        metavar="HOST:PORT",
        help="Streamable HTTP instead of stdio (default address 127.0.0.1:27183); address and bearer token are "
        "written to mcp.json in the data folder",
    )
    wire.add_argument("--tools", metavar="WHICH", help="tools to list: core (default), all, or bundles: a,b")
    wire.add_argument("--tool-names", choices=("dotted", "underscore"), help="nova.perceive or nova_perceive")
    wire.add_argument("--text-only", action="store_true", default=None, help="answers without structuredContent")
    wire.add_argument("--output-schemas", action="store_true", default=None, help="publish outputSchema")
    store = flags.add_argument_group("data")
    store.add_argument("--data-dir", type=Path, metavar="DIR", help="where Nova keeps everything")
    store.add_argument("--store", metavar="URL", help="sqlite:///path or postgresql://…; default: a file in the folder")
    store.add_argument(
        "--keep-raw-urls", action="store_true", default=None, help="record query values too, not only their names"
    )
    browser = flags.add_argument_group("browser")
    browser.add_argument("--headed", action="store_true", default=None, help="show the browser window")
    browser.add_argument("--browser", type=Path, metavar="PATH", help="this Chromium instead of the one found")
    browser.add_argument("--cdp-endpoint", metavar="URL", help="use a running browser: http://host:9222 or ws://…")
    browser.add_argument(
        "--ephemeral",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="forget logins at the end (default over HTTP); --no-ephemeral keeps the first sandbox (default on stdio)",
    )
    browser.add_argument(
        "--enable-eval", action="store_true", default=None, help="let agents run JavaScript of their own in pages"
    )
    flags.add_argument("--log-level", choices=("debug", "info", "warning", "error"), help="what goes to stderr")
    return flags


def settings_tree(given: Mapping[str, Any]) -> dict[str, Any]:
    """Parsed flags as the tree that `load_settings` takes; only what was given."""
    tree: dict[str, Any] = {}
    for name, value in given.items():
        if value is None:
            continue
        match name:
            case "http":
                tree["http"] = http_address(value)
            case "browser":
                tree.setdefault("browser", {})["executable"] = value.expanduser().absolute()
            case "headed" | "cdp_endpoint" | "ephemeral":
                tree.setdefault("browser", {})[name] = value
            case _:
                tree[name] = value
    return tree


def http_address(text: str) -> dict[str, str | int]:
    """`HOST:PORT`, `HOST`, `:PORT`, `PORT` or `[IPv6]:PORT`; what is left out keeps its configured value."""
    host, port = text, ""
    if text.isascii() and text.isdigit():
        host, port = "", text
    elif text.startswith("["):
        host, closed, rest = text[1:].partition("]")
        if not closed or (rest and not rest.startswith(":")):
            raise SettingsError(f'--http: "{text}" is not an address; write [::1]:27183')
        port = rest[1:]
    elif text.count(":") == 1:
        host, _, port = text.partition(":")
    address: dict[str, str | int] = {}
    if host:
        address["host"] = host
    if port:
        if not (port.isascii() and port.isdigit() and int(port) <= 65535):
            raise SettingsError(f'--http: "{port}" is not a port (0 to 65535)')
        address["port"] = int(port)
    return address


def configuration(given: Mapping[str, Any]) -> Settings:
    """Settings that the server can start with; what can be checked without opening anything is checked here."""
    settings = load_settings(settings_tree(given))
    if not settings.store_url.startswith(_STORES):
        kind = settings.store_url.split(":", 1)[0]
        raise SettingsError(f'store: "{kind}" is not a kind of store; use sqlite:///path or postgresql://…')
    return settings


def run(argv: Sequence[str], program: str = "nova serve") -> int:
    """Parse, check, serve until the client leaves; the result is the exit code."""
    given = vars(parser(program).parse_args(list(argv)))
    try:
        settings = configuration(given)
    except SettingsError as error:
        sys.stderr.write(f"nova: {error}\n")
        return EXIT_CONFIGURATION
    return _serve(settings, http=given["http"] is not None)


def _serve(settings: Settings, *, http: bool) -> int:
    # Imported here because a wrong flag or --help must not wait for the protocol library.
    from nova_mcp.server.manifest import load_manifest

    manifest = load_manifest()
    try:
        manifest.profile(settings.tools)
    except ValueError as error:
        sys.stderr.write(f"nova: --tools: {error}\n")
        return EXIT_CONFIGURATION
    return _http(settings, manifest) if http else _stdio(settings, manifest)


def _stdio(settings: Settings, manifest: "Manifest") -> int:
    from nova_mcp.server.garbage import keeping_everything

    with keeping_everything():
        import anyio

        from nova_mcp.server.logs import log_to_stderr
        from nova_mcp.server.stdio.serve import serve_stdio

    log_to_stderr(settings.log_level)
    if sys.stdin.isatty():
        sys.stderr.write(
            "nova: speaking MCP on this terminal; a client normally starts this (see `nova setup`). Ctrl-D ends it.\n"
        )
    anyio.run(partial(serve_stdio, settings, manifest=manifest))
    return 0


def _http(settings: Settings, manifest: "Manifest") -> int:
    import anyio

    from nova_mcp.server.http.bearer_tokens import FILE_NAME, TokenFileError
    from nova_mcp.server.http.serve import CannotListen, serve_http

    def ready(endpoint: str) -> None:
        sys.stderr.write(f"nova: serving {endpoint}; the bearer token is in {settings.data_dir / FILE_NAME}\n")
        sys.stderr.write("nova: `nova dashboard` prints a link to the pages of this server\n")
        sys.stderr.flush()

    try:
        anyio.run(partial(serve_http, settings, manifest=manifest, on_ready=ready))
    except CannotListen as error:
        sys.stderr.write(f"nova: {error}; choose another with --http HOST:PORT\n")
        return EXIT_FAILED
    except TokenFileError as error:
        sys.stderr.write(f"nova: {error}\n")
        return EXIT_CONFIGURATION
    return 0
