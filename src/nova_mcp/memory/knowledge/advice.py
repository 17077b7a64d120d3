"""What knowledge says beside an answer: what was seen here before, what to reuse, what to doubt; pure.

Bounded, and told once per change to each caller: repeated advice is noise that agents pay for.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeVar

from nova_mcp.core.values import Json
from nova_mcp.errors import Fix
from nova_mcp.memory.knowledge.apply_rules import brought
from nova_mcp.memory.knowledge.drift import GATE
from nova_mcp.memory.knowledge.health import last_30_days, staleness, state
from nova_mcp.memory.knowledge.matching.entry_ranking import Question, Scored, context_fit, rank
from nova_mcp.memory.knowledge.matching.fingerprints import PageSignals, match, page_signals
from nova_mcp.memory.knowledge.model import (
    SHADOW,
    DomainHint,
    HealthState,
    Level,
    Phenomenon,
    PhenomenonType,
    ScopeName,
    StableId,
)
from nova_mcp.memory.knowledge.writes.stability import is_fragile, stability

AdviceKind = Literal["gap", "reuse", "fragile_selector"]
WarningState = Literal["watch", "quarantined", "stale", "drift"]

MAX_NOTED: Final = 8
MAX_ADVICE: Final = 3
MAX_WARNINGS: Final = 3
MAX_FRAMEWORKS: Final = 3
TEXT_CHARS: Final = 160
STALE: Final = 1.0
# How much of what was told is remembered per caller; the oldest goes first.
REMEMBERED: Final = 256
_WARNING_RANK: Final[dict[WarningState, int]] = {"quarantined": 0, "drift": 1, "watch": 2, "stale": 3}


@dataclass(frozen=True, slots=True)
class Noted:
    """An entry beside a perception. Only an active one may guide; a shadow is told as what it is."""

    phenomenon_id: StableId
    type: PhenomenonType
    level: Level
    health: HealthState
    note: str = ""


@dataclass(frozen=True, slots=True)
class Advice:
    kind: AdviceKind
    text: str
    phenomenon_id: StableId | None = None
    fix: Fix | None = None

    @property
    def key(self) -> str:
        return f"advice:{self.kind}:{self.phenomenon_id or ''}"


@dataclass(frozen=True, slots=True)
class HealthWarning:
    scope: ScopeName
    phenomenon_id: StableId
    state: WarningState
    reason: str

    @property
    def key(self) -> str:
        return f"health:{self.scope}:{self.phenomenon_id}"


@dataclass(frozen=True, slots=True)
class FrameworkHint:
    """How pages of a framework want to be read, where hints for reading the site are in force."""

    framework: str
    applies_to: str
    advice: str


@dataclass(frozen=True, slots=True)
class UsedAction:
    """A verified action of this caller, and the entry that already holds its selector, if any."""

    selector: str
    tool: str
    covered_by: StableId | None = None


def _cut(text: str) -> str:
    return text if len(text) <= TEXT_CHARS else text[: TEXT_CHARS - 1].rstrip() + "…"


def proofs(found: int, required: int) -> str:
    """How far a shadow entry has come; never worded as guidance."""
    return f"seen here before, {min(found, required)} of {required} proofs" if required else "seen here before"


def noted(
    entries: Iterable[Phenomenon], proofs_of: Mapping[StableId, tuple[int, int]], now_ms: int
) -> tuple[Noted, ...]:
    """Entries that hold on this page, active ones first; candidates and retired ones are not mentioned."""
    told: list[Noted] = []
    for one in entries:
        if one.deprecated or one.level < SHADOW:
            continue
        found, required = proofs_of.get(one.stable_id, (0, 0))
        note = proofs(found, required) if one.level == SHADOW else ""
        told.append(Noted(one.stable_id, one.content.type, one.level, state(one.health, now_ms), note))
    told.sort(key=lambda one: (-one.level, one.phenomenon_id))
    return tuple(told[:MAX_NOTED])


_STEPS: Final[dict[str, dict[str, Json]]] = {
    "nova.click_selector": {"action": "click"},
    "nova.type_selector": {"action": "type", "valueSource": "agent_supplied", "valueName": "text"},
}


def _reuse(found: Scored) -> Advice:
    one = found.phenomenon
    names = brought(one.content.playbook)
    runs = f"phenomenon_apply runs it with values {', '.join(names)}." if names else "phenomenon_apply runs it."
    text = f"{one.stable_id} ({one.content.type}) is known here and holds now; {runs}"
    fix = Fix("nova.phenomenon_apply", {"phenomenonId": one.stable_id})
    return Advice("reuse", _cut(text), one.stable_id, fix)


def _has_playbook(one: Phenomenon) -> bool:
    playbook = one.content.playbook
    return playbook is not None and bool(playbook.actions) and playbook.policy not in ("ignore", "warn", "accept")


def _gap(scope: ScopeName, used: UsedAction) -> Advice:
    text = f'"{used.selector}" worked here and was verified, but nothing of it is stored; pks_upsert keeps it.'
    signals: list[Json] = [{"kind": "dom", "match": used.selector}]
    entry: dict[str, Json] = {"type": "custom", "fingerprint": {"signals": signals}}
    if (step := _STEPS.get(used.tool)) is not None:
        actions: list[Json] = [{**step, "selector": used.selector}]
        entry["playbook"] = {"policy": "custom", "actions": actions}
    return Advice("gap", _cut(text), None, Fix("nova.pks_upsert", {"scope": scope, "phenomenon": entry}))


def _fragile(used: UsedAction) -> Advice:
    text = (
        f'"{used.selector}" looks generated and may not survive the next release; prefer a label, a name or a test id.'
    )
    return Advice("fragile_selector", _cut(text), used.covered_by)


def advise(scope: ScopeName, matches: Sequence[Scored], used: UsedAction | None = None) -> tuple[Advice, ...]:
    """What can be reused, what is worth storing, and what won't last; never more than three."""
    told = [_reuse(one) for one in matches if one.may_apply and _has_playbook(one.phenomenon)]
    if used is not None:
        if is_fragile(used.selector):
            told.insert(0, _fragile(used))
        elif used.covered_by is None and stability(used.selector) == "stable":
            told.insert(0, _gap(scope, used))
    return tuple(told[:MAX_ADVICE])


def warning_of(scope: ScopeName, one: Phenomenon, now_ms: int) -> HealthWarning | None:
    """The gravest doubt about an entry, if there is one."""
    window, now = last_30_days(one.health, now_ms), state(one.health, now_ms)
    failed = f"{window.failures} of {window.attempts} attempts failed in 30 days"
    if now == "quarantined":
        row = one.health.consecutive_failures
        reason = f"{row} failures in a row; not applied" if row else f"{failed}; not applied"
        return HealthWarning(scope, one.stable_id, "quarantined", reason)
    if one.drift_debt >= GATE:
        return HealthWarning(scope, one.stable_id, "drift", f"drift {one.drift_debt:.2f}, limit {GATE:.2f}")
    if now == "watch":
        return HealthWarning(scope, one.stable_id, "watch", failed)
    if staleness(one.health, now_ms) >= STALE:
        return HealthWarning(scope, one.stable_id, "stale", "not confirmed for 30 days")
    return None


def gravest(found: Iterable[HealthWarning]) -> tuple[HealthWarning, ...]:
    ranked = sorted(found, key=lambda one: (_WARNING_RANK[one.state], one.phenomenon_id))
    return tuple(ranked[:MAX_WARNINGS])


_DRAWN_LATE: Final = "Its parts are drawn late and its classes are made up: wait for text, go by role, name or test id."
_SWAPPED: Final = "It swaps parts of the page in place, under the same address: look again after each action."
_TEMPLATED: Final = "Its pages follow one template: ids and names that hold on one page hold on the next."
_FRAMEWORKS: Final[dict[str, str]] = {
    **dict.fromkeys(
        ("react", "next", "vue", "nuxt", "angular", "svelte", "ember", "gatsby", "salesforce"), _DRAWN_LATE
    ),
    **dict.fromkeys(("htmx", "turbo", "livewire", "alpine", "astro"), _SWAPPED),
    **dict.fromkeys(("wordpress", "django-admin", "drupal", "joomla", "shopify", "odoo"), _TEMPLATED),
}


def framework_hints(frameworks: Iterable[str], hints: Iterable[DomainHint]) -> tuple[FrameworkHint, ...]:
    """What to mind when reading; only where the site has active hints that the reading goes by."""
    kinds = sorted({one.kind for one in hints if one.may_guide})
    if not kinds:
        return ()
    found = [name for name in dict.fromkeys(frameworks) if name in _FRAMEWORKS]
    return tuple(FrameworkHint(name, ", ".join(kinds), _FRAMEWORKS[name]) for name in found[:MAX_FRAMEWORKS])


# -- what holds here and now


@dataclass(frozen=True, slots=True)
class Present:
    """The shadow and active entries that hold on a page, and the active ones among them by rank."""

    entries: tuple[Phenomenon, ...] = ()
    matches: tuple[Scored, ...] = ()


def present(entries: Sequence[Phenomenon], question: Question) -> Present:
    observed = question.observed if isinstance(question.observed, PageSignals) else page_signals(question.observed)
    question = replace(question, observed=observed)
    # Of a long list most belongs to other pages.
    likely = [one for one in entries if any(map(observed.holds, one.content.fingerprint.signals))]
    matches = rank(likely, question).matches
    shadows = (
        one
        for one in likely
        if one.level == SHADOW
        and not one.deprecated
        and context_fit(one.content.context, question.request).fits
        and match(one.content.fingerprint, observed, question.request.locale).reached
    )
    return Present((*(one.phenomenon for one in matches), *shadows), matches)


# -- once per change and caller


T = TypeVar("T", Advice, HealthWarning, Noted, FrameworkHint)


@dataclass(frozen=True, slots=True)
class Told:
    """What a caller has been told already, newest last."""

    said: tuple[tuple[str, str], ...] = ()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def told_text(one: Advice | HealthWarning | Noted | FrameworkHint) -> tuple[str, str]:
    """Under which key something is told, and what of it would count as a change."""
    match one:
        case Advice():
            # Advice without an entry is about what it quotes.
            key = one.key if one.phenomenon_id is not None else f"{one.key}{_digest(one.text)}"
            return key, _digest(one.text)
        case HealthWarning():
            # Figures move with every call; only another state is news.
            return one.key, one.state
        case Noted():
            return f"noted:{one.phenomenon_id}", _digest(json.dumps([one.type, one.level, one.health, one.note]))
        case FrameworkHint():
            return f"framework:{one.framework}", one.applies_to


def news(items: Sequence[T], told: Told) -> tuple[tuple[T, ...], Told]:
    """What this caller has not been told yet, and its memory afterwards."""
    said = dict(told.said)
    fresh: list[T] = []
    for one in items:
        key, text = told_text(one)
        if said.get(key) != text:
            fresh.append(one)
        said.pop(key, None)
        said[key] = text
    return tuple(fresh), Told(tuple(said.items())[-REMEMBERED:])
