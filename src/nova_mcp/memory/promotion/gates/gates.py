"""The gates between levels: every condition as a row with what it asks for and what there is; pure."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from nova_mcp.memory.knowledge.health import released
from nova_mcp.memory.knowledge.model import Level
from nova_mcp.memory.promotion.gates.counting import confidence, counts_for, evidence_score
from nova_mcp.memory.promotion.model import (
    Approval,
    ConsentGates,
    Entry,
    EvidenceCounts,
    Gate,
    Hold,
    LearningEvent,
    Lower,
    Mark,
    Promote,
    Reject,
    TransitionKind,
    Verdict,
)

TRANSITIONS: Final[tuple[TransitionKind, ...]] = ("l0_to_l1", "l1_to_l2", "demotion", "deprecation", "revive")
# Stepping down comes before stepping up, and retiring before stepping down.
LOWERING: Final[tuple[TransitionKind, ...]] = ("deprecation", "demotion")
CONSENT: Final = "consent_cmp"
# Successes, sessions and failures on the way to active.
_TO_ACTIVE: Final = (3, 2, 1)
# A banner is met by everybody and judged once for all of them: an operator may want its answer to be surer.
_STRICT_CONSENT: Final = (5, 3, 0)
_FAILURES_TO_DEPRECATE: Final[dict[Level, int]] = {1: 3, 2: 5}


def at_least(name: str, required: float, observed: float) -> Gate:
    passed = observed >= required
    return Gate(name, required, observed, passed, 0 if passed else round(required - observed, 4))


def at_most(name: str, required: float, observed: float) -> Gate:
    passed = observed <= required
    return Gate(name, required, observed, passed, 0 if passed else round(observed - required, 4))


# -- the tables


def gates_of(
    entry: Entry, kind: TransitionKind, counts: EvidenceCounts, consent: ConsentGates = "standard"
) -> tuple[Gate, ...]:
    match kind:
        case "l0_to_l1":
            return _to_shadow(entry, counts)
        case "l1_to_l2":
            return _to_active(entry, counts, consent)
        case "demotion":
            return (
                at_least("hard_drift_24h", 1, counts.recent_hard_drifts),
                at_least("consecutive_failures", 2, counts.consecutive_failures),
            )
        case "deprecation":
            needed = _FAILURES_TO_DEPRECATE.get(entry.level, _FAILURES_TO_DEPRECATE[2])
            return (at_least("consecutive_failures", needed, counts.consecutive_failures),)
        case "revive":
            return (
                at_least("successes", 2, counts.successes),
                at_least("success_sessions", 2, counts.success_sessions),
                at_most("drift_7d", 0, counts.recent_drifts),
            )


def _to_shadow(entry: Entry, counts: EvidenceCounts) -> tuple[Gate, ...]:
    return (
        at_least("not_disproven", 1, int(not entry.disproven)),
        at_least("support", 2, counts.support),
        at_least("success_support", 1, counts.successes),
        at_least("confidence", 0.70, round(confidence(counts.successes, counts.failures), 9)),
        at_least("evidence_score", 0.55, evidence_score(counts)),
    )


def is_strict(entry: Entry, consent: ConsentGates) -> bool:
    """Whether the stricter numbers apply to an entry."""
    return consent == "strict" and entry.phenomenon_type == CONSENT


def _to_active(entry: Entry, counts: EvidenceCounts, consent: ConsentGates) -> tuple[Gate, ...]:
    successes, sessions, failures = _STRICT_CONSENT if is_strict(entry, consent) else _TO_ACTIVE
    rows = (
        at_least("successes", successes, counts.successes),
        at_least("success_sessions", sessions, counts.success_sessions),
        at_most("failures", failures, counts.failures),
        at_most("drift_7d", 0, counts.recent_drifts),
    )
    if not entry.unconfirmed_selectors:
        return rows
    return (*rows, at_most("unconfirmed_selectors", 0, entry.unconfirmed_selectors))


# -- evaluating


def applies(entry: Entry, kind: TransitionKind) -> bool:
    if entry.deprecated or kind == "revive":
        return entry.deprecated and kind == "revive"
    match kind:
        case "l0_to_l1":
            return entry.level == 0
        case "l1_to_l2":
            return entry.level == 1
        case "demotion":
            return entry.level == 2
        case "deprecation":
            return entry.level > 0


def next_step(entry: Entry) -> TransitionKind:
    """The transition an entry stands before: the next one up, or for an active one the way down."""
    if entry.deprecated:
        return "revive"
    steps: dict[Level, TransitionKind] = {0: "l0_to_l1", 1: "l1_to_l2", 2: "demotion"}
    return steps[entry.level]


def evaluate(
    entry: Entry, kind: TransitionKind, marks: Sequence[Mark], now_ms: int, consent: ConsentGates = "standard"
) -> Verdict:
    """One transition of one entry."""
    if not applies(entry, kind):
        return Reject(kind, "not_applicable", entry.level)
    counts = counts_for(entry, kind, marks, now_ms)
    gates = gates_of(entry, kind, counts, consent)
    passed = [gate.passed for gate in gates]
    if not (any(passed) if kind == "demotion" else all(passed)):
        return Hold(kind, entry.level, gates, counts)
    match kind:
        case "deprecation":
            return Lower(kind, entry.level, 0, gates, counts)
        case "demotion":
            return Lower(kind, entry.level, 1, gates, counts)
        case "l1_to_l2":
            return Promote(kind, entry.level, 2, gates, counts)
        case "l0_to_l1" | "revive":
            return Promote(kind, entry.level, 1, gates, counts)


def review(
    entry: Entry,
    marks: Sequence[Mark],
    now_ms: int,
    wanted: TransitionKind | None = None,
    consent: ConsentGates = "standard",
) -> Verdict:
    """The one decision of a call: the transition asked for, or the first that is due, down before up."""
    if wanted is not None:
        return evaluate(entry, wanted, marks, now_ms, consent)
    due = lowering(entry, now_ms)
    return evaluate(entry, next_step(entry) if due is None else due.kind, marks, now_ms, consent)


def lowering(entry: Entry, now_ms: int) -> Lower | None:
    """Whether an entry has to step down now; that needs no look at its history."""
    for kind in LOWERING:
        if isinstance(verdict := evaluate(entry, kind, (), now_ms), Lower):
            return verdict
    return None


# -- applying


def applied(entry: Entry, verdict: Approval, now_ms: int) -> Entry:
    match verdict.kind:
        case "deprecation":
            reason = f"{verdict.counts.consecutive_failures} failures in a row"
            return replace(entry, level=0, deprecated=True, deprecated_reason=reason, unsettled_at_ms=now_ms)
        case "demotion":
            return replace(entry, level=verdict.to_level, unsettled_at_ms=now_ms)
        case "l1_to_l2":
            # What it has proven since says more than the silent checks that would end a quarantine.
            return replace(entry, level=verdict.to_level, health=released(entry.health))
        case _:
            return replace(entry, level=verdict.to_level, deprecated=False, deprecated_reason=None)


def event_of(entry: Entry, verdict: Promote | Lower | Hold, now_ms: int) -> LearningEvent:
    """A decision as the log keeps it; `entry` is the one from before."""
    return LearningEvent(
        stable_id=entry.stable_id,
        host=entry.host,
        from_level=verdict.from_level,
        to_level=verdict.from_level if isinstance(verdict, Hold) else verdict.to_level,
        reason_kind=verdict.kind,
        created_at_ms=now_ms,
        gates=verdict.gates,
        counts=verdict.counts,
        rejection=verdict.reason if isinstance(verdict, Hold) else None,
    )


def worth_logging(verdict: Verdict, last: LearningEvent | None) -> bool:
    """Whether a decision that was not a dry run goes into the log; the same refusal twice in a row says nothing new."""
    match verdict:
        case Promote() | Lower():
            return True
        case Reject():
            return False
        case Hold(kind="demotion" | "deprecation"):
            # An entry that stays where it is was refused nothing.
            return False
        case Hold():
            return last is None or (last.reason_kind, last.rejection) != (verdict.kind, verdict.reason)
