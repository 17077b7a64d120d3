"""A call on its way to its tool, and what a stage of that way is."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from nova_mcp.calls.admission.gates import Notice
from nova_mcp.calls.endings import Ending
from nova_mcp.calls.envelope import Envelope
from nova_mcp.calls.model import CallRequest
from nova_mcp.tools.context import Evidence, ToolContext
from nova_mcp.tools.spec import Params, ToolSpec

if TYPE_CHECKING:
    from nova_mcp.browser.targets.tab import Tab
    from nova_mcp.calls.stages.loop_detection import Attempt


@dataclass(slots=True)
class Call:
    """What arrived, its envelope, and what the stages have found out so far; each names what it sets."""

    request: CallRequest
    envelope: Envelope
    # Validation
    spec: ToolSpec = field(init=False)
    params: Params = field(init=False)
    # Gates: what the answer has to tell of them
    notices: tuple[Notice, ...] = ()
    # Loop detection
    attempt: "Attempt | None" = None
    # The tool's run
    context: ToolContext = field(init=False)

    @property
    def evidence(self) -> Evidence:
        return self.envelope.evidence

    @property
    def tab(self) -> "Tab | None":
        return self.envelope.evidence.tab


Proceed = Callable[[], Awaitable[Ending]]


class Stage(Protocol):
    """One step of a call: it does its part, goes on with `proceed`, and may do more when that comes back.

    A call ends early when a stage raises; what is raised passes the stages outside of it like any exception.
    """

    async def around(self, call: Call, proceed: Proceed) -> Ending: ...
