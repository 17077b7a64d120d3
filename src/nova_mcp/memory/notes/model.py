"""Nouns of notes: who wrote one, what a remembered thing is, and what a score is made of."""

from dataclasses import dataclass
from typing import Final, Literal

MemoryType = Literal["note", "preference", "context"]
# Decided by the door a note came through: tools write as agents, the command line as the user.
Source = Literal["agent", "user"]
ExclusionReason = Literal["user_list", "sensitive_suffix", "sensitive_site", "sensitive_word", "sensitive_category"]
MatchedBy = Literal["host", "parent", "any"]

# A note that an operator wrote for every principal.
EVERYBODY: Final = "*"


@dataclass(frozen=True, slots=True)
class MemoryRow:
    """A thing to remember about a site."""

    memory_id: int
    principal: str
    domain: str
    url_pattern: str | None
    memory_type: MemoryType
    content: str
    source: Source
    created_at_ms: int
    refreshed_at_ms: int
    reinforced_at_ms: int | None
    access_count: int
    expires_at_ms: int
    content_rev: int


@dataclass(frozen=True, slots=True)
class OperatorNote:
    """A working rule that applies across tasks."""

    note_id: str
    principal: str
    content: str
    tags: tuple[str, ...]
    category: str | None
    source: Source
    rev: int
    created_at_ms: int
    updated_at_ms: int
    last_matched_at_ms: int | None
    match_count: int


@dataclass(frozen=True, slots=True)
class NoteScore:
    """How well a note answers to keywords, and why."""

    tag: float
    content: float
    relevance: float
    freshness: float
    score: float


@dataclass(frozen=True, slots=True)
class Ranked:
    note: OperatorNote
    score: NoteScore
