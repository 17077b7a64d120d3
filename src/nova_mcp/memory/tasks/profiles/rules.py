"""What a change makes of a profile, what identifies it, and how it is told in few words; pure."""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from nova_mcp.core.keywords import cut
from nova_mcp.core.values import Json
from nova_mcp.memory.tasks.content_codec import condition_json, json_chars
from nova_mcp.memory.tasks.model import TaskContent

UpsertKind = Literal["created", "updated", "unchanged"]

DEFAULT_CONFIDENCE: Final = 0.5
REQUIRED: Final = ("task_type", "display_name", "goal", "completion_condition")
AWARENESS_CHARS: Final = 2_000
GOAL_CHARS: Final = 300
SUMMARY_ITEMS: Final = 5
SUMMARY_CHARS: Final = 120

_SLUG_CHARS: Final = 48
_NOT_SLUG: Final = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Profile:
    """What a recurring task needs, and how often it was done."""

    profile_id: str
    content: TaskContent
    base_confidence: float
    content_rev: int
    archived: bool
    created_at_ms: int
    updated_at_ms: int
    # Runs that were started, and how those that ended did.
    runs: int = 0
    completed: int = 0
    failed: int = 0
    aborted: int = 0
    last_ended_at_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """What a caller gave: fields of the content by name, and what stands beside it; None leaves that as it is."""

    fields: Mapping[str, Any] = field(default_factory=dict)
    confidence: float | None = None
    archived: bool | None = None


@dataclass(frozen=True, slots=True)
class Lacking:
    """Fields without which there is no profile."""

    names: tuple[str, ...]


def changed_content(base: TaskContent | None, change: Change) -> TaskContent | Lacking:
    """A given field replaces the whole field; what is not given stays as it was."""
    if base is not None:
        return replace(base, **change.fields)
    if missing := tuple(name for name in REQUIRED if name not in change.fields):
        return Lacking(missing)
    return TaskContent(**change.fields)


def created_profile(profile_id: str, content: TaskContent, change: Change, now_ms: int) -> Profile:
    confidence = DEFAULT_CONFIDENCE if change.confidence is None else change.confidence
    return Profile(profile_id, content, confidence, 1, bool(change.archived), now_ms, now_ms)


def changed_profile(current: Profile, content: TaskContent, change: Change, now_ms: int) -> tuple[UpsertKind, Profile]:
    """The revision counts changes of the content alone; confidence and archive stand beside it."""
    new = replace(
        current,
        content=content,
        base_confidence=current.base_confidence if change.confidence is None else change.confidence,
        archived=current.archived if change.archived is None else change.archived,
        content_rev=current.content_rev + (content != current.content),
    )
    return ("unchanged", current) if new == current else ("updated", replace(new, updated_at_ms=now_ms))


def generated_id(display_name: str, token: str) -> str:
    """A readable id from the name; the token makes it one of its own."""
    plain = unicodedata.normalize("NFKD", display_name.casefold()).encode("ascii", "ignore").decode()
    slug = _NOT_SLUG.sub("-", plain)[:_SLUG_CHARS].strip("-")
    return f"{slug}-{token}" if slug else f"task-{token}"


# -- in few words


def awareness_profile(
    profile: Profile, score: float, confidence: float, most: int = AWARENESS_CHARS
) -> dict[str, Json]:
    """The block that reminds an agent of what a task needs; where it would be too long it says less of each."""
    goal, items, each, checks = GOAL_CHARS, SUMMARY_ITEMS, SUMMARY_CHARS, len(profile.content.mandatory_checks)
    while True:
        block = _awareness(profile, score, confidence, _Sizes(goal, items, each, checks))
        if json_chars(block) <= most:
            return block
        if each > 40:
            each -= 40
        elif checks > 5:
            checks = max(5, checks // 2)
        elif items > 1:
            items -= 1
        elif goal > 60:
            goal //= 2
        elif checks:
            checks -= 1
        else:
            return block


@dataclass(frozen=True, slots=True)
class _Sizes:
    goal: int
    items: int
    each: int
    checks: int


def _awareness(profile: Profile, score: float, confidence: float, sizes: _Sizes) -> dict[str, Json]:
    content = profile.content
    required = [one for one in content.mandatory_checks if one.required]
    return {
        "profileId": profile.profile_id,
        "displayName": content.display_name,
        "taskType": content.task_type,
        "finalScore": round(score, 4),
        "confidence": round(confidence, 4),
        "goal": cut(content.goal, sizes.goal),
        "guidanceSummary": [cut(one.text, sizes.each) for one in content.stable_guidance[: sizes.items]],
        "requiredChecks": [
            {"checkId": one.check_id, "description": cut(one.description, sizes.each)}
            for one in required[: sizes.checks]
        ],
        "completionCondition": condition_json(content.completion_condition),
        "knownExceptionsCount": len(content.known_exceptions),
    }
