"""What the marks of an entry come to: successes, failures, sessions, drift, and failures in a row; pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from nova_mcp.memory.journal.evidence import Seen
from nova_mcp.memory.knowledge.model import FailureRun
from nova_mcp.memory.promotion.model import DAY_MS, Entry, EvidenceCounts, Mark, Source, TransitionKind

LOOKBACK_MS: Final[dict[TransitionKind, int]] = {
    "l0_to_l1": 14 * DAY_MS,
    "l1_to_l2": 30 * DAY_MS,
    "demotion": 30 * DAY_MS,
    "deprecation": 30 * DAY_MS,
    "revive": 30 * DAY_MS,
}
LONGEST_LOOKBACK_MS: Final = 30 * DAY_MS
# More of them than any gate asks for; an entry in constant use must not make its reviews dear.
MARKS_KEPT: Final = 500
DRIFT_MS: Final = 7 * DAY_MS
HARD_DRIFT_MS: Final = DAY_MS
_RAISING: Final = frozenset({"l0_to_l1", "l1_to_l2", "revive"})
_SOURCES: Final[dict[str, Source]] = {"revalidate": "check", "perceive": "check", "telemetry_report": "report"}


def source_of(tool_name: str) -> Source:
    return _SOURCES.get(tool_name.removeprefix("nova."), "use")


def mark_of(seen: Seen) -> Mark:
    """An observation of the journal as the gates look at it."""
    shown, event = seen.observation, seen.occasion.event
    return Mark(
        seq=seen.observation_id,
        at_ms=event.created_at_ms,
        kind=shown.kind,
        outcome=shown.outcome,
        call_id=event.event_id,
        session_id=seen.occasion.session_id,
        severity=shown.severity,
        source=source_of(event.tool_name),
        severe=shown.outcome < 0 and shown.payload.get("contract") == "verified_fail",
        replaced=seen.replaced_call_id,
    )


# -- what a mark says


def is_success(mark: Mark) -> bool:
    return mark.outcome > 0


def is_failure(mark: Mark) -> bool:
    """Whether something went wrong; where a fallback still worked, a selector drifted and nothing failed."""
    return mark.outcome < 0 and not (mark.kind == "selector_drift" and mark.severity < 2)


def is_sighting(mark: Mark) -> bool:
    """Whether the thing was there and nobody knows more. A report that no call backs is a claim, and shows nothing."""
    return mark.outcome == 0 and mark.kind != "telemetry_confirmed"


def is_drift(mark: Mark) -> bool:
    return mark.kind == "selector_drift"


def is_hard_drift(mark: Mark) -> bool:
    return is_drift(mark) and mark.severity == 2


def refutes(mark: Mark) -> bool:
    """Whether a mark speaks against more than itself: a use that was proven wrong, or a failure that an agent came back
    to report and could show."""
    return is_failure(mark) and (mark.severe or mark.source == "report")


def contradicts(before: Iterable[Mark], mark: Mark) -> bool:
    """Whether a mark refutes a success that was proven and that nothing has refuted yet, given the marks before it."""
    if not refutes(mark):
        return False
    proven = False
    for one in before:
        if refutes(one):
            proven = False
        elif is_success(one) and one.kind != "telemetry_confirmed":
            proven = True
    return proven


# -- windows


def newest(marks: Sequence[Mark]) -> tuple[Mark, ...]:
    """As many as a review looks at. However much an entry is used, that does not make up for what spoke against it: of
    that the newest stay in sight as well."""
    older = [mark for mark in marks[:-MARKS_KEPT] if mark.outcome < 0]
    return (*older[-MARKS_KEPT:], *marks[-MARKS_KEPT:])


def evidence_since(entry: Entry, kind: TransitionKind, now_ms: int) -> int:
    """From when on a mark counts for a transition: what led to a fall or is about other content does not help."""
    begin = now_ms - LOOKBACK_MS[kind]
    if kind not in _RAISING:
        return begin
    changes = [at for at in (entry.unsettled_at_ms, entry.revised_at_ms) if at is not None]
    # A mark of the very moment is what the change came from.
    return max([begin, *(at + 1 for at in changes)])


def drift_since(entry: Entry, now_ms: int) -> int:
    """From when on a drift counts. Falling does not make up for it, only content that replaced the old does."""
    begin = now_ms - DRIFT_MS
    return begin if entry.revised_at_ms is None else max(begin, entry.revised_at_ms + 1)


def counts_for(entry: Entry, kind: TransitionKind, marks: Sequence[Mark], now_ms: int) -> EvidenceCounts:
    """Everything a transition looks at; `marks` are those of the entry, the last thirty days of them at least."""
    since, drifted_since = evidence_since(entry, kind, now_ms), drift_since(entry, now_ms)
    drifts = [mark for mark in marks if is_drift(mark) and mark.at_ms >= drifted_since]
    found = _Calls()
    for mark in marks:
        if mark.at_ms >= since:
            found.add(mark)
    return EvidenceCounts(
        support=found.successes + len(found.seen - found.worked - found.confirmed - found.replaced),
        successes=found.successes,
        failures=found.failures,
        success_sessions=len(found.sessions),
        recent_drifts=len({mark.call_id for mark in drifts}),
        recent_hard_drifts=int(hard_drift_within(entry, now_ms)),
        consecutive_failures=entry.run.length,
        last_drift_at_ms=max((mark.at_ms for mark in drifts), default=None),
    )


@dataclass(slots=True)
class _Calls:
    """The calls behind the marks of a window, by what they say."""

    worked: set[str] = field(default_factory=set)
    confirmed: set[str] = field(default_factory=set)
    seen: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    refuted: set[str] = field(default_factory=set)
    replaced: set[str] = field(default_factory=set)
    sessions: set[str] = field(default_factory=set)

    def add(self, mark: Mark) -> None:
        if mark.replaced is not None:
            self.replaced.add(mark.replaced)
        if is_success(mark):
            (self.confirmed if mark.kind == "telemetry_confirmed" else self.worked).add(mark.call_id)
            self.sessions.add(mark.session_id)
        elif is_failure(mark):
            (self.refuted if mark.source == "report" else self.failed).add(mark.call_id)
        elif is_sighting(mark):
            self.seen.add(mark.call_id)

    # Reports speak of executions that may be here already, so of both the larger number counts.

    @property
    def successes(self) -> int:
        return max(len(self.worked), len(self.confirmed))

    @property
    def failures(self) -> int:
        return max(len(self.failed), len(self.refuted))


def hard_drift_within(entry: Entry, now_ms: int) -> bool:
    at = entry.last_hard_drift_at_ms
    return at is not None and at >= now_ms - HARD_DRIFT_MS


# -- failures in a row


def after(run: FailureRun, mark: Mark) -> FailureRun:
    """The run after one more mark: a success ends it, a sighting only what silent checks added to it."""
    if is_success(mark):
        return FailureRun()
    if is_sighting(mark):
        return FailureRun(run.uses, run.reports, 0, run.last_call_id)
    if not is_failure(mark) or mark.call_id == run.last_call_id:
        return run
    match mark.source:
        case "use":
            return FailureRun(run.uses + 1, run.reports, run.checks, mark.call_id)
        case "report":
            return FailureRun(run.uses, run.reports + 1, run.checks, mark.call_id)
        case "check":
            return FailureRun(run.uses, run.reports, run.checks + 1, mark.call_id)


# -- worth


def confidence(successes: int, failures: int) -> float:
    """How likely it is to work the next time, before much is known: half."""
    return (successes + 1) / (successes + failures + 2)


def evidence_score(counts: EvidenceCounts) -> float:
    tried = counts.support + counts.failures
    share = counts.successes / tried if tried else 0.0
    sure = confidence(counts.successes, counts.failures)
    # Cut where binary fractions end, so that a sum that is exactly the limit passes it.
    return round(0.40 * min(1.0, counts.support / 5) + 0.30 * share + 0.30 * sure, 9)
