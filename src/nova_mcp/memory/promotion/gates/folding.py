"""An entry's life as a fold over what happened to it: playing the same steps again gives the same level; pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from nova_mcp.memory.knowledge.health import HealthEvent, HealthOutcome, after_event, drifted
from nova_mcp.memory.knowledge.model import FailureRun
from nova_mcp.memory.promotion.gates.counting import (
    LONGEST_LOOKBACK_MS,
    after,
    is_drift,
    is_failure,
    is_hard_drift,
    is_sighting,
    is_success,
    newest,
)
from nova_mcp.memory.promotion.gates.gates import applied, event_of, lowering, review
from nova_mcp.memory.promotion.model import (
    RULES_VERSION,
    ConsentGates,
    Entry,
    Hold,
    LearningEvent,
    Lower,
    Mark,
    Promote,
    Reject,
    TransitionKind,
    Verdict,
)


@dataclass(frozen=True, slots=True)
class Observed:
    """The journal took an observation down that speaks of the entry."""

    mark: Mark


@dataclass(frozen=True, slots=True)
class Reviewed:
    """Somebody, or the background pass, had the gates looked at and whatever passed applied. `consent` is the setting
    of that moment, so that a replay decides as it was decided."""

    at_ms: int
    wanted: TransitionKind | None = None
    consent: ConsentGates = "standard"


@dataclass(frozen=True, slots=True)
class Revised:
    """An agent wrote the entry anew. `changed` when its content is another one, `taken` when a candidate was written by
    hand, `found_again` when a retired one was and the open page showed its selectors."""

    at_ms: int
    changed: bool = True
    taken: bool = False
    found_again: bool = False
    unconfirmed_selectors: int = 0
    phenomenon_type: str | None = None


@dataclass(frozen=True, slots=True)
class Confirmed:
    """Selectors that nobody had seen yet have been seen."""

    unconfirmed_selectors: int


@dataclass(frozen=True, slots=True)
class Retired:
    """An agent deprecated the entry, with a reason that was accepted."""

    at_ms: int
    reason: str


@dataclass(frozen=True, slots=True)
class Disproved:
    """The claim behind the entry was disproven."""


Step = Observed | Reviewed | Revised | Confirmed | Retired | Disproved


@dataclass(frozen=True, slots=True)
class Folded:
    """An entry after a step, and the transition the step led to."""

    entry: Entry
    event: LearningEvent | None = None
    verdict: Verdict | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All that a replay needs to go on: the entry and the marks that its gates may still look at."""

    entry: Entry
    marks: tuple[Mark, ...] = ()
    rules_version: int = RULES_VERSION


@dataclass(frozen=True, slots=True)
class Replayed:
    """Where a replay ended, and every transition on the way."""

    snapshot: Snapshot
    events: tuple[LearningEvent, ...]


def observed(entry: Entry, mark: Mark) -> Folded:
    """An entry after one observation. Evidence against it takes effect at once; rising waits for a review, and so does
    what an agent reports: it is evidence, and decides nothing itself."""
    run = after(entry.run, mark)
    outcome = health_outcome(entry.run, run, mark)
    health = entry.health
    if outcome is not None:
        health = after_event(health, HealthEvent(outcome, mark.at_ms, mark.call_id))
    if is_drift(mark):
        health = drifted(health, mark.at_ms)
    seen = replace(entry, run=run, health=health, last_hard_drift_at_ms=_hard_drift(entry, mark))
    decides = mark.source != "report" and (is_failure(mark) or is_drift(mark))
    verdict = lowering(seen, mark.at_ms) if decides else None
    if verdict is not None:
        return _moved(seen, verdict, mark.at_ms)
    if seen.level == 2 and seen.health.quarantined_at_ms is not None:
        # An active entry is applied or it is not active: what does not cost it its level does not quarantine it.
        seen = replace(seen, health=replace(seen.health, quarantined_at_ms=None))
    return Folded(seen)


def health_outcome(before: FailureRun, now: FailureRun, mark: Mark) -> HealthOutcome | None:
    """What a mark means for an entry's health; None for what another mark of the same execution has said already."""
    if is_success(mark):
        if mark.kind in ("action_success", "blocker_dismissed"):
            return "success"
        return "silent_ok" if mark.kind == "telemetry_confirmed" else None
    if is_sighting(mark):
        return "silent_ok"
    if not is_failure(mark) or now.length == before.length:
        return None
    if mark.source == "check":
        return "silent_drift"
    return "misfire" if mark.severe else "failure"


def _hard_drift(entry: Entry, mark: Mark) -> int | None:
    had = entry.last_hard_drift_at_ms
    if not is_hard_drift(mark):
        return had
    return mark.at_ms if had is None else max(had, mark.at_ms)


def _moved(entry: Entry, verdict: Promote | Lower, at_ms: int) -> Folded:
    return Folded(applied(entry, verdict, at_ms), event_of(entry, verdict, at_ms), verdict)


def reviewed(entry: Entry, marks: Sequence[Mark], step: Reviewed) -> Folded:
    """An entry after the gates were looked at and what passed was applied: one transition at most."""
    match verdict := review(entry, marks, step.at_ms, step.wanted, step.consent):
        case Promote() | Lower():
            return _moved(entry, verdict, step.at_ms)
        case Hold() | Reject():
            return Folded(entry, verdict=verdict)


def revised(entry: Entry, step: Revised) -> Entry:
    """An entry as it was written. An active one keeps its content: what is new starts as a shadow beside it."""
    if entry.level == 2 and step.changed:
        return entry
    type_now = step.phenomenon_type or entry.phenomenon_type
    written = replace(entry, unconfirmed_selectors=step.unconfirmed_selectors, phenomenon_type=type_now)
    if step.changed:
        written = replace(written, revision=entry.revision + 1, revised_at_ms=step.at_ms)
    if step.changed or step.found_again:
        # What failed and drifted was what is no longer there, or what is there again.
        written = replace(written, run=FailureRun(), last_hard_drift_at_ms=None)
    if entry.deprecated:
        back = replace(written, level=1, deprecated=False, deprecated_reason=None)
        return back if step.found_again else written
    return replace(written, level=1) if step.taken and entry.level == 0 else written


def fold(entry: Entry, marks: Sequence[Mark], step: Step) -> Folded:
    """One step; `marks` are those of the steps before."""
    match step:
        case Observed(mark):
            return observed(entry, mark)
        case Reviewed():
            return reviewed(entry, in_sight(marks, step.at_ms), step)
        case Revised():
            return Folded(revised(entry, step))
        case Confirmed(left):
            return Folded(replace(entry, unconfirmed_selectors=left))
        case Retired(at_ms, reason):
            return Folded(replace(entry, level=0, deprecated=True, deprecated_reason=reason, unsettled_at_ms=at_ms))
        case Disproved():
            return Folded(replace(entry, disproven=True))


def replay(start: Snapshot, steps: Iterable[Step]) -> Replayed:
    """Every level an entry had, from what was written down, in that order."""
    if start.rules_version != RULES_VERSION:
        raise ValueError(f"a snapshot of rules version {start.rules_version} can't be continued by {RULES_VERSION}")
    entry, marks, events = start.entry, list(start.marks), []
    for step in steps:
        done = fold(entry, marks, step)
        entry = done.entry
        if done.event is not None:
            events.append(done.event)
        if isinstance(step, Observed):
            marks.append(step.mark)
    return Replayed(Snapshot(entry, kept(marks)), tuple(events))


def in_sight(marks: Sequence[Mark], now_ms: int) -> tuple[Mark, ...]:
    """The marks that a review looks at: the newest of the last thirty days, in their order."""
    return newest([mark for mark in marks if mark.at_ms >= now_ms - LONGEST_LOOKBACK_MS])


def kept(marks: Sequence[Mark]) -> tuple[Mark, ...]:
    """The marks that a later review can still see."""
    return in_sight(marks, max((mark.at_ms for mark in marks), default=0))
