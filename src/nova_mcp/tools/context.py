"""What a tool may reach while it runs, and where it leaves its evidence."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nova_mcp.clock import Ports
from nova_mcp.observation.model import Caller, Flag
from nova_mcp.pipeline.model import Progress
from nova_mcp.settings import Settings

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
class ToolContext:
    """Handed to every tool; eight fields at most."""

    call_id: str
    caller: Caller
    ports: Ports
    settings: Settings
    browser: "Browser"
    catalogue: "Catalogue"
    evidence: Evidence
    progress: Progress

    @property
    def tab(self) -> "Tab":
        """The resolved target; tools that declare one always have it."""
        if self.evidence.tab is None:
            raise LookupError("this tool declared no target")
        return self.evidence.tab
