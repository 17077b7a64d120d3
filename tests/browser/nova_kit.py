"""A whole Nova on a real Chromium inside the test's process: what a client sends, what it gets, what is kept."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from nova_mcp.app import Nova, build
from nova_mcp.browser.targets.tab import Tab
from nova_mcp.calls.model import Answer, CallRequest
from nova_mcp.evidence.model import CallRecord
from nova_mcp.evidence.reader import EventFilter, events
from nova_mcp.settings import Settings

from .conftest import Site


@dataclass
class NovaClient:
    """One principal's connection; every call may name an agent of its own."""

    nova: Nova
    data: Path
    site: Site
    principal: str = "tester"

    async def answer(self, tool: str, connection: str | None = None, **arguments: Any) -> Answer:
        request = CallRequest(f"nova.{tool}", arguments, self.principal, connection)
        return await self.nova.call(request)

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return (await self.answer(tool, **arguments)).structured

    async def show(self, body: str, **arguments: Any) -> dict[str, Any]:
        """Open a page with that body and look at it."""
        told = await self.call("navigate", url=self.site.url(f"html?body={quote(body)}"), **arguments)
        await self.call("perceive", **arguments)
        return told

    async def open(self, path: str, **arguments: Any) -> dict[str, Any]:
        told = await self.call("navigate", url=self.site.url(path), **arguments)
        await self.call("perceive", **arguments)
        return told

    def tab(self, target_id: str) -> Tab:
        return self.nova._parts.browser.targets._tabs[target_id]

    async def records(self) -> list[CallRecord]:
        page = await self.nova._db.read(events, EventFilter(limit=5000))
        return [call.record for call in page.calls if call.record is not None]

    def kept(self) -> bytes:
        """Everything the data folder holds of text: the store with its log, and what lies beside it."""
        files = (path for path in self.data.rglob("*") if path.is_file() and path.name != "secrets.toml")
        return b"".join(path.read_bytes() for path in files if path.suffix not in (".jpeg", ".png"))


@asynccontextmanager
async def open_nova(data: Path, site: Site, **settings: Any) -> AsyncIterator[NovaClient]:
    nova = await build(Settings.model_validate({"data_dir": data, **settings}))
    try:
        yield NovaClient(nova, data, site)
    finally:
        await nova.close("test over")


def secrets_file(data: Path, **values: str) -> None:
    """Secrets by name, all of them meant for the local site."""
    path = data / "secrets.toml"
    entries = [f'[{name}]\nvalue = {json.dumps(value)}\nhosts = ["127.0.0.1"]\n' for name, value in values.items()]
    path.write_text("\n".join(entries))
    path.chmod(0o600)
