"""Drift: how far a site has moved from what was learned, and what a read-only check makes of it; pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from nova_mcp.memory.knowledge.health import HealthOutcome, staleness, state
from nova_mcp.memory.knowledge.matching.fingerprints import Match, ObservedSignal, PageSignals, applies, holding
from nova_mcp.memory.knowledge.model import (
    SHADOW,
    Action,
    Fingerprint,
    Phenomenon,
    PhenomenonType,
    Problem,
    ScopeName,
    Signal,
)

Verdict = Literal["healthy", "drift", "gone", "unknown", "error"]
Telemetry = Literal["silent_verify_ok", "silent_verify_drift"]
GateMode = Literal["warn", "refuse"]
GateDecision = Literal["pass", "warn", "refuse"]
Denial = Literal["budget_scope", "budget_target", "budget_total"]

ALPHA: Final = 0.3
GATE: Final = 0.40
# Debts are kept rounded, so that a debt that reaches the gate by arithmetic reaches it in floating point.
_PLACES: Final = 9
HOUR_MS: Final = 60 * 60 * 1000
PER_SCOPE: Final = 12
PER_TARGET: Final = 6
IN_ALL: Final = 60
# Always there where they hold; anything else may merely not be shown today.
ALWAYS_THERE: Final[frozenset[PhenomenonType]] = frozenset({"nav_link", "spa_route", "custom"})


# -- debt


def distance(baseline: Iterable[Signal], held: Iterable[Signal], locale: str | None = None) -> float:
    """Jaccard distance between what held at first and what holds now; texts of another language say nothing."""
    then = {one for one in baseline if applies(one, locale)}
    now = {one for one in held if applies(one, locale)}
    union = len(then | now)
    return 1 - len(then & now) / union if union else 0.0


def moved(entry: Phenomenon, observed: Sequence[ObservedSignal] | PageSignals, locale: str | None = None) -> float:
    """How far a page is from what held when the entry was written; nothing can move away from nothing."""
    if not entry.baseline:
        return 0.0
    then = holding(Fingerprint(tuple(entry.baseline)), observed)
    return distance(entry.baseline, then | holding(entry.content.fingerprint, observed), locale)


def after_sighting(debt: float, moved: float) -> float:
    return round(ALPHA * moved + (1 - ALPHA) * debt, _PLACES)


def gate(debt: float, mode: GateMode) -> GateDecision:
    """What a debt means for a reader or for whoever would apply the entry."""
    return "pass" if debt < GATE else mode


# -- revalidation


@dataclass(frozen=True, slots=True)
class Check:
    """What a look at the page found out about an entry; `error` says why it could not look."""

    match: Match
    selectors_resolve: bool
    error: str | None = None


def judged(kind: PhenomenonType, check: Check) -> Verdict:
    if check.error is not None:
        return "error"
    if check.match.reached:
        return "healthy" if check.selectors_resolve else "drift"
    if check.match.half_reached:
        return "drift"
    return "gone" if kind in ALWAYS_THERE else "unknown"


def telemetry_of(verdict: Verdict) -> Telemetry | None:
    """What is written back; a check that proves nothing leaves nothing."""
    match verdict:
        case "healthy":
            return "silent_verify_ok"
        case "drift" | "gone":
            return "silent_verify_drift"
        case "unknown" | "error":
            return None


def health_outcome(verdict: Verdict) -> HealthOutcome:
    match telemetry_of(verdict):
        case "silent_verify_ok":
            return "silent_ok"
        case "silent_verify_drift":
            return "silent_drift"
        case None:
            return "not_applicable"


def reachable_now(phenomenon: Phenomenon) -> tuple[Action, ...]:
    """The actions whose elements must be there before anything was done: typing brings nothing new about, so all up to
    the first that does. What comes behind it may not have been built yet, which says nothing."""
    playbook = phenomenon.content.playbook
    found: list[Action] = []
    for action in () if playbook is None else playbook.actions:
        if action.selector is not None and action.mutates:
            found.append(action)
        if action.kind not in ("type", "wait"):
            break
    return tuple(found)


def reached_later(phenomenon: Phenomenon) -> tuple[Action, ...]:
    """The actions behind those, which may or may not be on the page already; each control once."""
    playbook, first = phenomenon.content.playbook, reachable_now(phenomenon)
    known = {one.selector for one in first}
    found: dict[str, Action] = {}
    for action in () if playbook is None else playbook.actions:
        if action.selector is not None and action.mutates and action.selector not in known:
            found.setdefault(action.selector, action)
    return tuple(found.values())


def has_selector(phenomenon: Phenomenon) -> bool:
    """Whether there is anything in the page to look for."""
    return any(one.kind == "dom" for one in phenomenon.content.fingerprint.signals)


def check_order(entries: Iterable[Phenomenon], now_ms: int) -> tuple[Phenomenon, ...]:
    """Shadow and active entries: failing ones first, then the stalest."""

    def key(one: Phenomenon) -> tuple[bool, float, int, str, int]:
        confirmed, drifted = one.health.last_confirmed_at_ms, one.health.last_drift_at_ms
        failing = one.health.consecutive_failures > 0 or state(one.health, now_ms) != "healthy"
        # What a use could not find any more is looked for before what is merely old.
        failing = failing or (drifted is not None and drifted > (confirmed or 0))
        return (
            not failing,
            -staleness(one.health, now_ms),
            -1 if confirmed is None else confirmed,
            one.stable_id,
            one.revision,
        )

    return tuple(sorted((one for one in entries if one.level >= SHADOW and not one.deprecated), key=key))


# -- budget


@dataclass(frozen=True, slots=True)
class PastCheck:
    at_ms: int
    scope: ScopeName
    target: str


@dataclass(frozen=True, slots=True)
class Budget:
    """How many checks may be made now, and what stands against more."""

    allowed: int
    remaining: int
    denied: tuple[Denial, ...] = ()
    retry_after_ms: int | None = None


def budget(past: Sequence[PastCheck], scope: ScopeName, target: str, wanted: int, now_ms: int) -> Budget:
    """`remaining` is what is left once the allowed checks have been made."""
    recent = [one for one in past if now_ms - one.at_ms < HOUR_MS]
    used: dict[Denial, tuple[int, list[int]]] = {
        "budget_scope": (PER_SCOPE, [one.at_ms for one in recent if one.scope == scope]),
        "budget_target": (PER_TARGET, [one.at_ms for one in recent if one.target == target]),
        "budget_total": (IN_ALL, [one.at_ms for one in recent]),
    }
    room = {name: max(0, limit - len(times)) for name, (limit, times) in used.items()}
    allowed = min(wanted, *room.values())
    denied = tuple(name for name in room if room[name] < wanted)
    waits = [min(times) + HOUR_MS - now_ms for name, (_, times) in used.items() if name in denied and times]
    return Budget(allowed, min(room.values()) - allowed, denied, max(waits) if waits else None)


def drift_problem(phenomenon: Phenomenon, mode: GateMode) -> Problem | None:
    """Why an entry may not be applied; None when it may."""
    if gate(phenomenon.drift_debt, mode) != "refuse":
        return None
    told = f"{phenomenon.stable_id} has moved away from what was learned (drift {phenomenon.drift_debt:.2f})."
    return Problem("pks.drift_blocked", told)
