"""Nova inside another Python program: no server, no protocol, the same gates and the same ledger."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from nova_mcp.app import Nova, build
from nova_mcp.calls.model import Answer, CallRequest
from nova_mcp.core.clock import Ports
from nova_mcp.core.values import Json
from nova_mcp.server.manifest import ListedTool, load_manifest
from nova_mcp.settings import Settings, load_settings
from nova_mcp.tools.names import canonical_name


class Embedded:
    """One caller's hold on a running Nova."""

    def __init__(self, nova: Nova, settings: Settings, principal: str) -> None:
        self._nova = nova
        self._settings = settings
        self._principal = principal

    async def call(self, tool: str, arguments: Mapping[str, Json] | None = None) -> Answer:
        """Run a tool under any spelling of its name. A failure is an answer too; only an unknown name raises."""
        return await self._nova.call(CallRequest(canonical_name(tool), arguments or {}, self._principal))

    def tools(self, which: str | None = None) -> tuple[ListedTool, ...]:
        """Names, descriptions and JSON schemas for a model: `core`, `all` or bundles; else what the settings list."""
        return load_manifest().profile(which or self._settings.tools)

    def acting_for(self, principal: str) -> "Embedded":
        """The same Nova for somebody else: tabs, notes and figures of principals are kept apart."""
        return Embedded(self._nova, self._settings, principal)


@asynccontextmanager
async def open_nova(
    settings: Settings | None = None, *, principal: str = "local", ports: Ports | None = None
) -> AsyncIterator[Embedded]:
    """Nova from here to the end of the block; without settings, those of the environment and `nova.toml`."""
    chosen = settings or load_settings()
    nova = await build(chosen, ports)
    try:
        yield Embedded(nova, chosen, principal)
    finally:
        await nova.close("the program that embeds it ended")
