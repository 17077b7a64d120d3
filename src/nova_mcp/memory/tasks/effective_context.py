"""What a run begins with: profile or ad hoc content, the present scope, then what is overridden; pure."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from nova_mcp.core.values import Json
from nova_mcp.memory.tasks.content_codec import canonical, content_json, json_bytes
from nova_mcp.memory.tasks.model import MOST_EXCEPTIONS, MOST_GUIDANCE, MOST_SCOPE_BYTES, Guidance, TaskContent

SCOPE_LISTS: Final = ("tags", "sections", "languages")
OVERRIDDEN_KIND: Final = "custom"


@dataclass(frozen=True, slots=True)
class ListChange:
    """What one list gains and loses for this run only."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


_NO_CHANGE: Final = ListChange()


@dataclass(frozen=True, slots=True)
class Overrides:
    scope_patch: Mapping[str, Json] = field(default_factory=dict)
    variables: Mapping[str, Json] = field(default_factory=dict)
    stable_guidance: ListChange = _NO_CHANGE
    known_exceptions: ListChange = _NO_CHANGE
    # By the name of the list in the scope.
    scope_lists: Mapping[str, ListChange] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EffectiveContext:
    """What a run is held to from its beginning to its end, and the hash that shows it is still the same."""

    content: TaskContent
    scope: Mapping[str, Json]

    @property
    def json(self) -> dict[str, Json]:
        return {**content_json(self.content), "currentScope": dict(self.scope)}

    @property
    def text(self) -> str:
        return canonical(self.json)

    @property
    def hash(self) -> str:
        return context_hash(self.text)


@dataclass(frozen=True, slots=True)
class TooLarge:
    """What has grown past its limit by being put together."""

    what: str
    size: int
    most: int


def context_hash(text: str) -> str:
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def effective_context(
    content: TaskContent, scope: Mapping[str, Json], overrides: Overrides
) -> EffectiveContext | TooLarge:
    """Merged in that order; what proves completion can't be overridden."""
    guidance = _guidance(content.stable_guidance, overrides.stable_guidance)
    exceptions = tuple(_changed(content.known_exceptions, overrides.known_exceptions))
    merged = _scope(scope, overrides)
    for what, size, most in (
        ("stableGuidance", len(guidance), MOST_GUIDANCE),
        ("knownExceptions", len(exceptions), MOST_EXCEPTIONS),
        ("currentScope", json_bytes(merged), MOST_SCOPE_BYTES),
    ):
        if size > most:
            return TooLarge(what, size, most)
    return EffectiveContext(replace(content, stable_guidance=guidance, known_exceptions=exceptions), merged)


def _guidance(items: Sequence[Guidance], change: ListChange) -> tuple[Guidance, ...]:
    kept = [one for one in items if one.guidance_id not in change.exclude and one.text not in change.exclude]
    known = {one.text for one in kept}
    added = [text for text in dict.fromkeys(change.include) if text not in known]
    return (*kept, *(Guidance(_guidance_id(text), OVERRIDDEN_KIND, text) for text in added))


def _guidance_id(text: str) -> str:
    return "run_" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _changed(items: Sequence[str], change: ListChange) -> list[str]:
    return [one for one in dict.fromkeys((*items, *change.include)) if one not in change.exclude]


def _scope(scope: Mapping[str, Json], overrides: Overrides) -> dict[str, Json]:
    merged: dict[str, Json] = {
        key: value for key, value in {**scope, **overrides.scope_patch}.items() if value is not None
    }
    if overrides.variables:
        before = merged.get("variables")
        variables = {**(before if isinstance(before, dict) else {}), **overrides.variables}
        merged["variables"] = {key: value for key, value in variables.items() if value is not None}
    for name, change in overrides.scope_lists.items():
        listed = merged.get(name)
        texts = [one for one in listed if isinstance(one, str)] if isinstance(listed, list) else []
        merged[name] = [*_changed(texts, change)]
    return merged
