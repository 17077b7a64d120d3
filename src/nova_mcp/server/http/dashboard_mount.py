"""The dashboard behind the HTTP server: built when somebody first asks for it, so that nobody else waits for it."""

from importlib import import_module

import anyio
import anyio.to_thread
from starlette.types import ASGIApp, Receive, Scope, Send

from nova_mcp.server.http.dashboard_home import ROOT, Home


def is_page(path: str) -> bool:
    return path == ROOT or path.startswith(f"{ROOT}/")


class Pages:
    """An ASGI application that loads the real one on its first request."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._built: ASGIApp | None = None
        self._lock = anyio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await (self._built or await self._first())(scope, receive, send)

    async def _first(self) -> ASGIApp:
        async with self._lock:
            if self._built is None:
                self._built = await anyio.to_thread.run_sync(self._build)
            return self._built

    def _build(self) -> ASGIApp:
        app: ASGIApp = import_module("nova_mcp.dashboard.app").build(self._home)
        return app
