"""A server with notes, several people at its door, and a clock that a test may put forward."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from loop_kit import SECRET, ShiftedClock
from mcp import Client
from sqlalchemy import delete, select

from nova_mcp.app import Nova, build
from nova_mcp.core.clock import Ports, SystemIds
from nova_mcp.memory.notes.tables import browser_memory, domain_note, operator_note
from nova_mcp.server.manifest import load_manifest
from nova_mcp.server.protocol import Peer, Wiring, build_server
from nova_mcp.settings import Settings

MINUTE = 60_000
DAY = 24 * 60 * MINUTE


@dataclass
class Notebook:
    """One server; `principal` is who calls next."""

    client: Client
    clock: ShiftedClock
    data_dir: Path
    nova: Nova
    door: list[str] = field(default_factory=lambda: ["local"])

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        answer = await self.client.call_tool(f"nova.{tool}", arguments)
        assert answer.structured_content is not None
        body = dict(answer.structured_content)
        # What is refused in the ordinary course of things is no error.
        assert answer.is_error is ("errorCode" in body)
        return body

    async def refused(self, tool: str, **arguments: Any) -> tuple[int, str]:
        body = await self.call(tool, **arguments)
        assert body["ok"] is False
        assert body["hint"]
        return body["errorCode"], body["reasonCode"]

    async def rows(self, table: Any, *where: Any) -> list[dict[str, Any]]:
        found = await self.nova._db.read(lambda conn: conn.execute(select(table).where(*where)).all())
        return [row._asdict() for row in found]

    async def notes(self) -> list[list[dict[str, Any]]]:
        return [await self.rows(table) for table in (browser_memory, operator_note, domain_note)]

    async def write(self, statement: Any) -> None:
        await self.nova._db.write(lambda conn: conn.execute(statement))

    async def clear(self) -> None:
        for table in (browser_memory, operator_note, domain_note):
            await self.write(delete(table))
        self.door[0] = "local"

    def become(self, principal: str) -> None:
        self.door[0] = principal

    def later(self, ms: int) -> None:
        self.clock.shift_ms += ms


@asynccontextmanager
async def notebook(data_dir: Path, **settings: Any) -> AsyncIterator[Notebook]:
    (data_dir / "secrets.toml").write_text(f'[shop]\nvalue = "{SECRET}"\nhosts = ["127.0.0.1"]\n')
    (data_dir / "secrets.toml").chmod(0o600)
    clock, door = ShiftedClock(), ["local"]
    chosen = Settings.model_validate({"data_dir": data_dir, "tools": "all", "learning": {"passes": False}, **settings})
    nova = await build(chosen, Ports(clock, SystemIds(clock)))

    async def backend() -> Any:
        return nova

    wiring = Wiring(backend=backend, peer_of=lambda _: Peer(door[0]))
    try:
        async with Client(build_server(load_manifest(), chosen, wiring)) as client:
            yield Notebook(client, clock, data_dir, nova, door)
    finally:
        await nova.close("test")
