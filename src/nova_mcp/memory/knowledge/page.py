"""The open page as stored knowledge asks it; the browser's tabs answer."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from nova_mcp.core.page.looks import ElementSeen, SelectorSeen, SignalsSeen, WantedSignals


class KnowledgePage(Protocol):
    """A page that can be looked at without being touched."""

    target_id: str
    url: str

    @property
    def agent_scripted(self) -> bool:
        """Whether an agent's script has run in this document; what is found there confirms nothing."""

    async def find_selectors(
        self, selectors: Sequence[str], surfaces: Sequence[str] = ()
    ) -> Mapping[str, SelectorSeen]: ...

    async def list_elements(self) -> tuple[ElementSeen, ...]: ...

    async def check_signals(self, wanted: WantedSignals) -> SignalsSeen: ...
