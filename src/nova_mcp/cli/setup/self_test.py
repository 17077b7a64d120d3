"""Starts Nova the way a client does, lists its tools, and has the browser read back a page written a moment ago."""

import os
import secrets
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TextIO

import anyio
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from nova_mcp.cli.setup.client_files import Launch
from nova_mcp.settings import Settings
from nova_mcp.tools.names import canonical_name

LOG_TAIL = 5
OPEN, READ = "nova.navigate", "nova.read_text"


@dataclass(frozen=True, slots=True)
class Worked:
    """The whole way is open."""

    tools: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Broke:
    """How far it came and what the server said."""

    step: str
    detail: str


def environment(settings: Settings) -> dict[str, str]:
    """The operator's browser for a server with another data folder; hosts are opened up for the page on loopback."""
    browser = settings.browser
    chosen = {
        "NOVA_BROWSER": "" if browser.executable is None else str(browser.executable),
        "NOVA_CDP_ENDPOINT": browser.cdp_endpoint,
        "NOVA_BROWSER_CHROMIUM_SANDBOX": browser.chromium_sandbox,
    }
    fixed = {
        "NOVA_HEADED": "false",
        "NOVA_BROWSER_PRIVATE_NETWORK": "loopback",
        "NOVA_BROWSER_ALLOW_HOSTS": "",
        "NOVA_BROWSER_DENY_HOSTS": "",
    }
    return {**os.environ, **fixed, **{name: value for name, value in chosen.items() if value}}


def self_test(launch: Launch, environ: Mapping[str, str], limit_s: float) -> Worked | Broke:
    """Run on a throw-away data folder; nothing of it reaches the user's ledger."""
    word = secrets.token_hex(8)
    with (
        tempfile.TemporaryDirectory(prefix="nova-self-test-", ignore_cleanup_errors=True) as folder,
        _page(word) as url,
    ):
        home = Path(folder)
        launched = StdioServerParameters(
            command=launch.command,
            args=[*launch.args, "--data-dir", str(home), "--store", f"sqlite:///{home / 'nova.db'}"],
            env=dict(environ),
        )
        with (home / "log").open("w+", encoding="utf-8", errors="replace") as log:
            trial = _Trial(launched, url, word, limit_s)
            result = anyio.run(trial.run, log)
            if isinstance(result, Broke):
                log.seek(0)
                said = " | ".join(line.strip() for line in log.read().splitlines()[-LOG_TAIL:] if line.strip())
                return Broke(result.step, f"{result.detail}; the server said: {said}" if said else result.detail)
            return result


class _Trial:
    """One run, and the step it has reached."""

    def __init__(self, launched: StdioServerParameters, url: str, word: str, limit_s: float) -> None:
        self._launched = launched
        self._url = url
        self._word = word
        self._limit_s = limit_s
        self._step = "start the server"

    async def run(self, log: TextIO) -> Worked | Broke:
        began = anyio.current_time()
        result: Worked | Broke | None = None
        try:
            with anyio.move_on_after(self._limit_s):
                async with Client(stdio_client(self._launched, errlog=log), mode="auto") as client:
                    result = await self._converse(client, began)
        except Exception as error:  # noqa: BLE001 - whatever breaks on the way is the finding
            return result or Broke(self._step, _innermost(error))
        return result or Broke(self._step, f"no answer within {self._limit_s:g} s")

    async def _converse(self, client: Client, began: float) -> Worked | Broke:
        self._step = "list the tools"
        # Called as they are listed, in the spelling that was set up, because a client complains of others.
        listed = {canonical_name(tool.name): tool.name for tool in (await client.list_tools()).tools}
        self._step = "open a page"
        opened = await client.call_tool(listed.get(OPEN, OPEN), {"url": self._url})
        if opened.is_error:
            return Broke(self._step, _text(opened.content))
        self._step = "read the page"
        read = _text((await client.call_tool(listed.get(READ, READ), {})).content)
        if self._word not in read:
            return Broke(self._step, f"the page's text did not come back: {read[:200]}")
        return Worked(len(listed), anyio.current_time() - began)


def _text(content: object) -> str:
    blocks = content if isinstance(content, list) else []
    return " ".join(str(getattr(block, "text", "")) for block in blocks)[:400]


def _innermost(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error) or type(error).__name__


@contextmanager
def _page(word: str) -> Iterator[str]:
    body = f"<!doctype html><title>Nova self-test</title><main><h1>Nova self-test</h1><p>{word}</p></main>".encode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the standard library's name
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
