"""What the dashboard is built from; light enough to be made by a server whose dashboard nobody opens."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

from nova_mcp.calls.model import Answer, CallRequest, ResourceContent
from nova_mcp.core.clock import Ports
from nova_mcp.settings import Settings

if TYPE_CHECKING:
    from nova_mcp.storage.engine import Database

# Below this address everything lies that the dashboard serves.
ROOT: Final = "/dashboard"
# Where a request finds what admits its connection: until then it counts as a stranger's, whose time is short.
ADMIT_KEY: Final = "nova.admit"


def admit_connection(scope: Mapping[str, Any], principal: str) -> bool:
    """Count the connection of a request for a principal; False when that one has too many."""
    admit: Callable[[str], bool] | None = scope.get(ADMIT_KEY)
    return admit is None or admit(principal)


class Program(Protocol):
    """What runs behind the server, as far as pages need it."""

    @property
    def database(self) -> "Database": ...

    async def call(self, request: CallRequest) -> Answer: ...

    async def read_resource(self, uri: str, principal: str) -> ResourceContent | None: ...


@dataclass(frozen=True, slots=True)
class Keys:
    """Who may sign in: the operator alone, with the token itself or with a ticket made from it."""

    operator: str
    secret: str = field(repr=False)
    endpoint: str
    principal_of: Callable[[str], str | None]
    # Where a person finds the token, as far as this may be told.
    place: str
    # When this server began: links that are older may have been used at the one before it.
    since_ms: int


@dataclass(frozen=True, slots=True)
class Home:
    """Everything the dashboard is built from."""

    settings: Settings
    ports: Ports
    keys: Keys
    program: Callable[[], Awaitable[Program]]
