"""What goes into a tool call and what comes out, free of any protocol."""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from nova_mcp.errors import NovaError
from nova_mcp.observation.model import Json

Progress = Callable[[float, float | None, str], Awaitable[None]]


async def silent(done: float, total: float | None, message: str) -> None:
    """For callers that did not ask for progress."""


@dataclass(frozen=True, slots=True)
class CallRequest:
    """A tool call as it arrived: nothing in it has been checked yet."""

    tool: str
    arguments: Mapping[str, Json]
    principal: str
    connection: str | None = None
    progress: Progress = silent
    # Set when a limit outside the pipeline already decided against the call; it is recorded all the same.
    refusal: NovaError | None = None


@dataclass(frozen=True, slots=True)
class Image:
    """A picture that travels beside the text."""

    data: bytes
    mime_type: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer in both forms: for machines and for models."""

    structured: dict[str, Json]
    text: str
    is_error: bool = False
    images: tuple[Image, ...] = field(default=())


def compact(body: Mapping[str, Json]) -> str:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))


def refused(error: NovaError) -> Answer:
    """The answer to a call that could not even be handed on."""
    body = error.body()
    return Answer(body, compact(body), is_error=True)
