"""What makes two pieces of guidance the same, when one is ripe, and what promoting it does to a profile; pure."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final, Literal

from nova_mcp.core.keywords import plain
from nova_mcp.core.values import Json
from nova_mcp.memory.tasks.content_codec import canonical
from nova_mcp.memory.tasks.model import MOST_GUIDANCE, Guidance, TaskContent

GuidanceKind = Literal["style", "terminology", "scope_rule", "workflow", "quality", "error_recovery", "custom"]
SourceKind = Literal["user", "agent", "reviewer"]
GuidanceStatus = Literal["logged", "proposed", "promoted", "rejected"]
Decision = Literal["promote", "reject"]
RefusalReason = Literal["already_decided", "not_mature", "profile_mismatch", "profile_archived"]

# So often a thing has to be said, each time in another run or on another day, before it may become part of a profile.
RIPE_AT: Final = 3
DECIDED: Final[frozenset[GuidanceStatus]] = frozenset({"promoted", "rejected"})
TOP_OVERRIDES: Final = 5
_END_PUNCTUATION: Final = " .,;:!?…。！？"


@dataclass(frozen=True, slots=True)
class Said:
    """Guidance as it was given; profile and place are part of what it says."""

    profile_id: str | None
    kind: GuidanceKind
    text: str
    applies_to: str | None = None
    url: str | None = None


@dataclass(frozen=True, slots=True)
class GuidanceLog:
    """Guidance that was given at least once, and what became of it."""

    log_id: str
    profile_id: str | None
    kind: GuidanceKind
    source_kind: SourceKind
    status: GuidanceStatus
    payload: Mapping[str, Json]
    occurrence_count: int
    promoted_to_content_rev: int | None
    created_at_ms: int
    updated_at_ms: int

    @property
    def text(self) -> str:
        return str(self.payload["text"])


def same_text(text: str) -> str:
    """Guidance without what makes no difference: letter case, spacing and the sign at the end."""
    return plain(text).rstrip(_END_PUNCTUATION)


def guidance_hash(said: Said) -> str:
    identity: dict[str, Json] = {
        "profileId": said.profile_id,
        "guidanceKind": said.kind,
        "text": same_text(said.text),
        "appliesTo": said.applies_to,
        "url": said.url,
    }
    return hashlib.sha256(canonical(identity).encode()).hexdigest()


def occurrence_key(instance_id: str | None, agent_id: str, at_ms: int) -> str:
    """Once per run counts; outside of runs once per agent and day."""
    if instance_id is not None:
        return run_key(instance_id)
    return f"day:{datetime.fromtimestamp(at_ms / 1000, UTC).date().isoformat()}:{agent_id}"


def run_key(instance_id: str) -> str:
    return f"run:{instance_id}"


def grown_status(status: GuidanceStatus, occurrences: int) -> GuidanceStatus:
    """A decision is final; before it, being said often enough makes a proposal."""
    return "proposed" if status == "logged" and occurrences >= RIPE_AT else status


@dataclass(frozen=True, slots=True)
class NotNow:
    """Why a decision about guidance can't be made."""

    reason: RefusalReason


def refusal(log: GuidanceLog, decision: Decision, profile_id: str, *, archived: bool) -> NotNow | None:
    """What stands in the way; turning guidance down needs neither ripeness nor a living profile."""
    if log.status in DECIDED:
        return NotNow("already_decided")
    if log.profile_id is not None and log.profile_id != profile_id:
        return NotNow("profile_mismatch")
    if decision == "reject":
        return None
    if log.occurrence_count < RIPE_AT:
        return NotNow("not_mature")
    return NotNow("profile_archived") if archived else None


def with_guidance(content: TaskContent, log: GuidanceLog) -> TaskContent | None:
    """The content with the guidance in it; None where there is no room. What said the same before gives way."""
    wanted = same_text(log.text)
    kept = tuple(one for one in content.stable_guidance if same_text(one.text) != wanted)
    if len(kept) >= MOST_GUIDANCE:
        return None
    return replace(content, stable_guidance=(*kept, Guidance(f"g_{log.log_id}", log.kind, log.text)))


# -- what runs of a profile changed again and again


@dataclass(frozen=True, slots=True)
class Override:
    path: str
    value: Json
    occurrences: int


def override_candidates(overrides: Iterable[Mapping[str, Json]], threshold: int) -> list[Override]:
    """Paths and values that at least so many runs set, the most frequent first."""
    counted = Counter(pair for one in overrides for pair in set(_pairs(dict(one))))
    found = [Override(path, json.loads(value), count) for (path, value), count in counted.items() if count >= threshold]
    return sorted(found, key=lambda one: (-one.occurrences, one.path, canonical(one.value)))


def _pairs(value: Json, path: str = "") -> Iterator[tuple[str, str]]:
    match value:
        case dict():
            for name, inner in value.items():
                yield from _pairs(inner, f"{path}.{name}" if path else name)
        case list():
            for inner in value:
                yield path, canonical(inner)
        case _:
            yield path, canonical(value)


def completion_percent(completed: int, failed: int, aborted: int) -> int:
    ended = completed + failed + aborted
    return 100 * completed // ended if ended else 0
