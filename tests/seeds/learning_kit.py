"""A server whose clock a test may move, a client of it, and a site under as many names as there are tests."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

from loop_kit import ShiftedClock, Shop
from mcp import Client
from sqlalchemy import select

from nova_mcp.app import Nova, build
from nova_mcp.clock import Ports, SystemIds
from nova_mcp.knowledge import store
from nova_mcp.knowledge.model import (
    Action,
    Content,
    Fingerprint,
    Phenomenon,
    Playbook,
    ScopeName,
    Signal,
    StableId,
)
from nova_mcp.knowledge.store import Birth, Shelved
from nova_mcp.server.manifest import load_manifest
from nova_mcp.server.mcp import Wiring, build_server
from nova_mcp.settings import Settings

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR
_numbers = count(1)


@dataclass
class Server:
    client: Client
    clock: ShiftedClock
    nova: Nova
    site: Shop

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        answer = await self.client.call_tool(f"nova.{tool}", arguments)
        assert answer.structured_content is not None
        return dict(answer.structured_content)

    async def rows(self, table: Any, *where: Any) -> list[dict[str, Any]]:
        found = await self.nova._db.read(lambda conn: conn.execute(select(table).where(*where)).all())
        return [row._asdict() for row in found]


@dataclass
class Page:
    """A tab on a site that nobody knows anything about yet."""

    server: Server
    tab: str
    scope: ScopeName

    @property
    def origin(self) -> str:
        return f"http://{self.scope}"

    async def go(self, path: str) -> dict[str, Any]:
        told = await self.server.call("navigate", targetId=self.tab, url=f"{self.origin}{path}")
        assert told["ok"], told
        return told

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return await self.server.call(tool, targetId=self.tab, **arguments)

    async def perceive(self, **arguments: Any) -> dict[str, Any]:
        return await self.call("perceive", **arguments)

    async def click(self, selector: str, **arguments: Any) -> dict[str, Any]:
        return await self.call("click_selector", selector=selector, **arguments)

    def later(self, ms: int) -> None:
        self.server.clock.shift_ms += ms

    async def put(self, *entries: Any, **birth: Any) -> list[Shelved]:
        """Knowledge as if it had been earned."""

        def write(conn: Any) -> list[Shelved]:
            return [store.add(conn, self.scope, one, Birth(**birth)) for one in entries]

        return await self.server.nova._db.write(write)

    async def entry(self, stable_id: str) -> Phenomenon:
        found = await self.server.nova._db.read(store.find, self.scope, stable_id)
        assert isinstance(found[0].kept, Phenomenon)
        return found[0].kept


@asynccontextmanager
async def serving(data_dir: Path, site: Shop, **settings: Any) -> AsyncIterator[Server]:
    clock = ShiftedClock()
    chosen = Settings.model_validate({"data_dir": data_dir, "tools": "all", **settings})
    nova = await build(chosen, Ports(clock, SystemIds(clock)))

    async def backend() -> Any:
        return nova

    try:
        async with Client(build_server(load_manifest(), chosen, Wiring(backend=backend))) as client:
            yield Server(client, clock, nova, site)
    finally:
        await nova.close("test")


async def fresh_page(server: Server, tab: str, path: str = "/plain") -> Page:
    """Every name under localhost is a site of its own."""
    page = Page(server, tab, ScopeName(f"s{next(_numbers)}.localhost:{server.site.base.rpartition(':')[2]}"))
    await page.go(path)
    return page


def phenomenon(
    stable_id: str, *signals: str, level: int = 2, selector: str | None = None, **changes: Any
) -> Phenomenon:
    """An entry of long ago that is recognised by selectors and presses one of them."""
    dom = tuple(Signal("dom", one) for one in signals)
    playbook = None if selector is None else Playbook("dismiss", (Action("click", selector),))
    content = Content(changes.pop("type", "modal"), Fingerprint(dom), playbook)
    made = Phenomenon(StableId(stable_id), content, 2, 1, 1, baseline=frozenset(dom))
    return replace(made, level=level, **changes)
