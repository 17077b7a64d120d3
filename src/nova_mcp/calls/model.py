"""What goes into a tool call and what comes out, free of any protocol."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from nova_mcp.core.values import Json
from nova_mcp.errors import NovaError
from nova_mcp.tools.context import Progress
from nova_mcp.tools.spec import Image, compact


async def silent(done: float, total: float | None, message: str) -> None:
    """For callers that did not ask for progress."""


@dataclass(frozen=True, slots=True)
class Within:
    """The call that this one is a step of: what the ledger calls it, and the time it has left."""

    via: str
    budget_ms: int


@dataclass(frozen=True, slots=True)
class CallRequest:
    """A tool call as it arrived: nothing in it has been checked yet."""

    tool: str
    arguments: Mapping[str, Json]
    principal: str
    connection: str | None = None
    # The client's name, where requests belong to no session and nothing else tells one connection from another.
    client: str | None = None
    progress: Progress = silent
    session_id: str | None = None
    # Set when a limit outside the pipeline already decided against the call; it is recorded all the same.
    refusal: NovaError | None = None
    within: Within | None = None
    # Nova's own, between the calls of agents: nobody hears the answer, and it gives way to every other call.
    background: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer in both forms: for machines and for models."""

    structured: dict[str, Json]
    text: str
    is_error: bool = False
    images: tuple[Image, ...] = field(default=())

    def with_block(self, name: str, value: Json, line: str = "") -> "Answer":
        """The answer with something said beside its own matter. A text that is the typed form stays that, any other
        gets `line`."""
        body: dict[str, Json] = {**self.structured, name: value}
        if self.text == compact(self.structured):
            return replace(self, structured=body, text=compact(body))
        return replace(self, structured=body, text=f"{self.text}\n{line}" if line else self.text)


@dataclass(frozen=True, slots=True)
class ResourceContent:
    """What stands at an address: text or bytes."""

    uri: str
    mime_type: str
    text: str | None = None
    data: bytes | None = None


def refused(error: NovaError) -> Answer:
    """The answer to a call that could not even be handed on."""
    body = error.body(dispatched=bool(error.action_dispatched))
    return Answer(body, compact(body), is_error=True)
