"""What an agent asks a person, and what the person says."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

QuestionKind = Literal["login", "mfa", "captcha", "review", "other"]

WHY_LIMIT = 280
NOTE_LIMIT = 280


class _Letter(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, alias_generator=to_camel, validate_by_name=True)


class Process(_Letter):
    """A running program, told apart from a later one that got the same number."""

    pid: int
    began_ms: int


class Attendant(Process):
    """A view in which a person could answer: as long as its program lives, or until a moment if one is given."""

    until_ms: int | None = None


class Question(_Letter):
    """A call that waits for a person."""

    id: str = Field(pattern=r"^[0-9a-f]{8,64}$")
    kind: QuestionKind
    why: str = Field(min_length=1, max_length=WHY_LIMIT)
    agent_id: str
    target_id: str | None = None
    url: str | None = None
    asked_at_ms: int
    expires_at_ms: int
    asker: Process


class Reply(_Letter):
    """What a person says: done or not, and perhaps a word about it."""

    resolved: bool
    by: str = Field(min_length=1, max_length=64)
    note: str | None = Field(None, max_length=NOTE_LIMIT)
