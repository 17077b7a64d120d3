"""What the protocol side needs from the program behind it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from nova_mcp.calls.model import Answer, CallRequest, ResourceContent

if TYPE_CHECKING:
    from nova_mcp.storage.engine import Database


@dataclass(frozen=True, slots=True)
class Health:
    """What `/health` tells anybody who asks. The status is `ok`, `starting` or `failing`."""

    status: str
    version: str
    store: str
    browser: str
    driver: str = "not started"

    @property
    def ok(self) -> bool:
        return self.status == "ok"


class Backend(Protocol):
    """The program as the server sees it; built on the first call, not at start."""

    @property
    def database(self) -> "Database":
        """The store, for pages that show what is in it."""
        ...

    async def call(self, request: CallRequest) -> Answer:
        """Run a tool. Raises `UnknownTool` for a name nobody has; every other failure is an answer."""
        ...

    async def read_resource(self, uri: str, principal: str) -> ResourceContent | None: ...

    async def warm(self) -> None:
        """Bring up what the first call will need, off the critical path."""
        ...

    async def health(self) -> Health:
        """Whether calls can be served; answers within a few seconds whatever has stopped."""
        ...

    async def close(self, reason: str) -> None: ...
