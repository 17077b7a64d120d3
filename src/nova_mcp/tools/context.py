"""What a tool may reach while it runs, and where it leaves its evidence."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nova_mcp.clock import Ports
from nova_mcp.observation.model import Caller, Flag
from nova_mcp.settings import Settings

Progress = Callable[[float, float | None, str], Awaitable[None]]

if TYPE_CHECKING:
    from nova_mcp.browser.runtime import Browser
    from nova_mcp.browser.targets import Tab
    from nova_mcp.tools.catalogue import Catalogue


@dataclass(slots=True)
class Evidence:
    """What the ledger should know about this call; filled while it runs, read even if it dies."""

    tab: "Tab | None" = None
    action_dispatched: bool | None = None
    selector: str | None = None
    fingerprint_id: str | None = None
    verification: str | None = None
    input_is_harmless: bool = False
    flags: set[Flag] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class CallInfo:
    """Which call this is, who makes it, and how to tell them that it takes a while."""

    call_id: str
    caller: Caller
    progress: Progress


@dataclass(frozen=True, slots=True)
class ToolContext:
    """Handed to every tool; eight fields at most."""

    call: CallInfo
    evidence: Evidence
    ports: Ports
    settings: Settings
    browser: "Browser"
    catalogue: "Catalogue"

    @property
    def caller(self) -> Caller:
        return self.call.caller

    @property
    def tab(self) -> "Tab":
        """The resolved target; tools that declare one always have it."""
        if self.evidence.tab is None:
            raise LookupError("this tool declared no target")
        return self.evidence.tab
