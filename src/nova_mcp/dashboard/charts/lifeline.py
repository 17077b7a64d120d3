"""The life of an entry over time: the level it stood at, what moved it, and what spoke for and against it; pure."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from nova_mcp.memory.knowledge.model import Level
from nova_mcp.memory.promotion.gates.counting import is_drift, is_failure, is_success
from nova_mcp.memory.promotion.gates.explanations import number
from nova_mcp.memory.promotion.gates.folding import Confirmed, Disproved, Observed, Revised, Step
from nova_mcp.memory.promotion.model import DAY_MS, LearningEvent, Mark

Lane = Literal["active", "shadow", "candidate", "retired"]
Evidence = Literal["proof", "sighting", "drift", "failure"]
# What became of the entry: it rose, fell, was held back, was written, or was looked at.
Turn = Literal["up", "down", "held", "written", "checked"]

LANES: Final[tuple[Lane, ...]] = ("active", "shadow", "candidate", "retired")
_LEVELS: Final[dict[Level, Lane]] = {0: "candidate", 1: "shadow", 2: "active"}
_GATES_TOLD: Final = 4
_REVISED: Final = "content revised"


@dataclass(frozen=True, slots=True)
class Happening:
    """Something that was decided about an entry or done to it; `before` and `after` are the same where it stayed."""

    at_ms: int
    turn: Turn
    told: str
    before: Lane | None = None
    after: Lane | None = None
    evidence: str = ""


@dataclass(frozen=True, slots=True)
class Stretch:
    """A time in which the level did not change."""

    lane: Lane
    from_ms: int
    to_ms: int


@dataclass(frozen=True, slots=True)
class Seen:
    at_ms: int
    kind: Evidence


@dataclass(frozen=True, slots=True)
class EvidenceDay:
    """What one day brought, for those who read instead of looking."""

    day_ms: int
    proofs: int
    sightings: int
    drifts: int
    failures: int


@dataclass(frozen=True, slots=True)
class LifeLine:
    """Everything that the picture shows, oldest first."""

    from_ms: int
    to_ms: int
    stretches: tuple[Stretch, ...]
    happenings: tuple[Happening, ...]
    seen: tuple[Seen, ...]
    days: tuple[EvidenceDay, ...]
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Born:
    """Where a life begins, and where it has come to."""

    created_at_ms: int
    updated_at_ms: int
    origin: str
    lane: Lane


def lane_of(level: Level, *, deprecated: bool) -> Lane:
    return "retired" if deprecated else _LEVELS[level]


def life_line(
    born: Born, events: Sequence[LearningEvent], steps: Iterable[tuple[int, Step]], now_ms: int, *, cut: bool = False
) -> LifeLine:
    """`events` and `steps` oldest first; `cut` when earlier ones are not among them."""
    done = list(steps)
    seen = seen_of([step.mark for _, step in done if isinstance(step, Observed)])
    told = [one for event in events if (one := _decided(event)) is not None]
    told += [one for at_ms, step in done if (one := _stepped(at_ms, step)) is not None]
    if not cut:
        told.append(Happening(born.created_at_ms, "written", f"written ({born.origin})"))
    told = _repairs(sorted(told, key=lambda one: one.at_ms))
    times = [born.created_at_ms, *(one.at_ms for one in told), *(one.at_ms for one in seen)]
    begin, end = min(times), max(now_ms, *times)
    first = min((one.at_ms for one in told), default=born.created_at_ms)
    stretches = _stretches([one for one in told if one.before != one.after], born, first, end)
    return LifeLine(begin, end, stretches, tuple(told), seen, by_day(seen), cut)


# -- what happened


_MOVES: Final = {
    "l0_to_l1": "became a shadow",
    "l1_to_l2": "became active",
    "demotion": "demoted",
    "deprecation": "retired",
    "revive": "came back as a shadow",
    "learn_generate": "drafted from what recurred",
    "learn_generate_patch": "patched from what recurred",
}
_AIMS: Final = {
    "l0_to_l1": "shadow",
    "l1_to_l2": "active",
    "demotion": "demotion",
    "deprecation": "retirement",
    "revive": "coming back",
}


def _decided(event: LearningEvent) -> Happening | None:
    evidence = ", ".join(
        f"{gate.name} {number(gate.observed)}/{number(gate.required)}" for gate in event.gates[:_GATES_TOLD]
    )
    if event.rejection is not None:
        aim = _AIMS.get(event.reason_kind, event.reason_kind)
        return Happening(event.created_at_ms, "held", f"held back from {aim}: {event.rejection}", evidence=evidence)
    told = _MOVES[event.reason_kind]
    before, after = _LEVELS[event.from_level], _LEVELS[event.to_level]
    match event.reason_kind:
        case "deprecation":
            return Happening(event.created_at_ms, "down", told, before, "retired", evidence)
        case "revive":
            return Happening(event.created_at_ms, "up", told, "retired", after, evidence)
        case "demotion":
            return Happening(event.created_at_ms, "down", told, before, after, evidence)
        case "learn_generate" | "learn_generate_patch":
            return Happening(event.created_at_ms, "written", told, evidence=evidence)
        case _:
            return Happening(event.created_at_ms, "up", told, before, after, evidence)


def _stepped(at_ms: int, step: Step) -> Happening | None:
    match step:
        case Revised(found_again=True):
            return Happening(at_ms, "up", "found on the page again", "retired", "shadow")
        case Revised(taken=True):
            return Happening(at_ms, "up", "taken up by hand", "candidate", "shadow")
        case Revised(changed=True):
            return Happening(at_ms, "written", _REVISED)
        case Confirmed(left):
            rest = f", {left} still unseen" if left else ""
            return Happening(at_ms, "checked", f"selectors seen on a page{rest}")
        case Disproved():
            return Happening(at_ms, "down", "claim disproven")
        case _:
            return None


def _repairs(told: Sequence[Happening]) -> list[Happening]:
    """New content of an entry that has fallen is what repairs it."""
    found, fallen = [], False
    for one in told:
        if one.before != one.after:
            fallen = one.turn == "down"
        mends = fallen and one.turn == "written" and one.told == _REVISED
        found.append(replace(one, told="repaired") if mends else one)
    return found


def _stretches(moves: Sequence[Happening], born: Born, begin_ms: int, end_ms: int) -> tuple[Stretch, ...]:
    """Levels from move to move. Where the log has a gap, the level that the next move starts from is taken at it."""
    lane = moves[0].before or born.lane if moves else born.lane
    found: list[Stretch] = []
    since = begin_ms
    for move in moves:
        if move.after is None or _takes_over(move, lane):
            continue
        found.append(Stretch(lane, since, move.at_ms))
        lane, since = move.after, move.at_ms
    if lane != born.lane:
        changed = min(max(born.updated_at_ms, since), end_ms)
        found.append(Stretch(lane, since, changed))
        lane, since = born.lane, changed
    found.append(Stretch(lane, since, end_ms))
    return tuple(one for one in found if one.to_ms > one.from_ms or one is found[-1])


def _takes_over(move: Happening, lane: Lane) -> bool:
    """Whether a newer revision rose to the place that an older one held all the while."""
    return lane == "active" and move.after == "active"


# -- what was seen


def seen_of(marks: Iterable[Mark]) -> tuple[Seen, ...]:
    """What calls have shown, oldest first. A call may leave several marks and says the same only once; that the entry
    was there is not told beside a proof or a failure."""
    calls: dict[str, dict[Evidence, int]] = {}
    for mark in marks:
        told = calls.setdefault(mark.call_id, {})
        told[_says(mark)] = min(mark.at_ms, told.get(_says(mark), mark.at_ms))
    found = (
        Seen(at_ms, kind)
        for told in calls.values()
        for kind, at_ms in told.items()
        if kind != "sighting" or len(told) == 1
    )
    return tuple(sorted(found, key=lambda one: one.at_ms))


def _says(mark: Mark) -> Evidence:
    if is_drift(mark):
        return "drift"
    if is_success(mark):
        return "proof"
    return "failure" if is_failure(mark) else "sighting"


def by_day(seen: Iterable[Seen]) -> tuple[EvidenceDay, ...]:
    days: dict[int, Counter[Evidence]] = {}
    for one in seen:
        days.setdefault(one.at_ms // DAY_MS, Counter())[one.kind] += 1
    return tuple(
        EvidenceDay(day * DAY_MS, count["proof"], count["sighting"], count["drift"], count["failure"])
        for day, count in sorted(days.items())
    )


def lane_at(line: LifeLine, at_ms: int) -> Lane:
    """Where the entry stood; what came before the first stretch is drawn on it."""
    for one in reversed(line.stretches):
        if at_ms >= one.from_ms:
            return one.lane
    return line.stretches[0].lane
