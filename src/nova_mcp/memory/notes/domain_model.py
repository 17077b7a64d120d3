"""The nouns of Domain Notes: what is kept about a host, what a writer wishes, what a caller was told."""

from dataclasses import dataclass
from typing import Final, Literal, NewType

from nova_mcp.core.connections import AgentConnection
from nova_mcp.memory.notes.model import Source

NoteId = NewType("NoteId", str)
Enforcement = Literal["none", "warn", "block"]
NoteMode = Literal["off", "warn", "block"]
NoteScope = Literal["host", "parent"]
Form = Literal["full", "stub"]


class Keep:
    """Leave a field as it is."""


KEEP: Final = Keep()


@dataclass(frozen=True, slots=True)
class DomainNote:
    """One note about a host. `value` may hold only the beginning of the text; `chars` is how long the whole is."""

    note_id: NoteId
    principal: str
    domain: str
    key: str
    value: str
    source: Source
    enforcement: Enforcement
    repeat_minutes: int | None
    repeat_tool_calls: int | None
    rev: int
    created_at_ms: int
    updated_at_ms: int
    last_delivered_at_ms: int | None
    chars: int


@dataclass(frozen=True, slots=True)
class Wish:
    """A note as somebody wants it; fields that are left alone keep their value, or start empty."""

    principal: str
    domain: str
    key: str
    value: str
    source: Source
    enforcement: Enforcement | Keep = KEEP
    repeat_minutes: int | Keep | None = KEEP
    repeat_tool_calls: int | Keep | None = KEEP
    expected_rev: int | None = None


@dataclass(frozen=True, slots=True)
class Repeat:
    """After how many minutes and calls a note has to be heard again; 0 switches that trigger off."""

    minutes: int
    calls: int


@dataclass(frozen=True, slots=True)
class Ack:
    """That a caller has acknowledged, or was warned of, one revision: when, and after how many calls on the target."""

    rev: int
    at_ms: int
    calls_at: int


@dataclass(frozen=True, slots=True)
class Heard:
    """Which revision of a note a caller has in full, and how often it was only named since."""

    rev: int
    stubs: int = 0


@dataclass(frozen=True, slots=True)
class Due:
    """What a caller has to hear before it interacts with a page: what stops it, and what it is only warned of."""

    connection: AgentConnection
    target_id: str
    host: str
    usual: Repeat
    blocking: tuple[DomainNote, ...] = ()
    warning: tuple[tuple[DomainNote, Form], ...] = ()
