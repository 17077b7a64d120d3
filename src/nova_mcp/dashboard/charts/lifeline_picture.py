"""Where everything of a life line stands in its picture; pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from nova_mcp.dashboard.charts.lifeline import LANES, Evidence, Lane, LifeLine, Turn, lane_at
from nova_mcp.dashboard.charts.time_axis import Axis, Tick

WIDTH: Final = 960
LANE_HEIGHT: Final = 74
TOP: Final = 14
LEFT: Final = 88
RIGHT: Final = 18
FOOT: Final = 30
# How far the line goes on behind this moment: what was decided just now is to be seen as well.
STILL: Final = 26
# Marks closer than this are one, with a count.
TOGETHER: Final = 11.0
# How far from the line each kind stands, so that what came at the same time does not lie on top of each other.
_ROWS: Final[dict[Evidence, int]] = {"proof": -14, "sighting": -31, "drift": 14, "failure": 29}


@dataclass(frozen=True, slots=True)
class LanePlace:
    lane: Lane
    y: float


@dataclass(frozen=True, slots=True)
class Line:
    lane: Lane
    x1: float
    x2: float
    y: float


@dataclass(frozen=True, slots=True)
class Riser:
    """A change of level."""

    turn: Turn
    x: float
    y1: float
    y2: float
    told: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class Glyph:
    """Evidence of one kind, that for the entry above the line and that against it below."""

    kind: Evidence
    x: float
    y: float
    count: int
    told: str


@dataclass(frozen=True, slots=True)
class Flag:
    """Something that was done to the entry while it stayed where it was."""

    turn: Turn
    x: float
    y: float
    told: str


@dataclass(frozen=True, slots=True)
class Label:
    """A word beside a turning point."""

    x: float
    y: float
    ends: bool
    text: str


@dataclass(frozen=True, slots=True)
class LifePicture:
    width: int
    height: int
    left: int
    right: float
    lanes: tuple[LanePlace, ...]
    ticks: tuple[Tick, ...]
    lines: tuple[Line, ...]
    risers: tuple[Riser, ...]
    flags: tuple[Flag, ...]
    glyphs: tuple[Glyph, ...]
    labels: tuple[Label, ...]
    told: str


_Y: Final = {lane: TOP + LANE_HEIGHT * (place + 0.5) for place, lane in enumerate(LANES)}
_WORDS: Final[dict[Evidence, tuple[str, str]]] = {
    "proof": ("proof", "proofs"),
    "sighting": ("sighting", "sightings"),
    "drift": ("drift", "drifts"),
    "failure": ("failure", "failures"),
}


def picture(line: LifeLine) -> LifePicture:
    axis = Axis(line.from_ms, line.to_ms, LEFT, WIDTH - RIGHT - STILL)
    lines = [Line(one.lane, axis.x(one.from_ms), axis.x(one.to_ms), _Y[one.lane]) for one in line.stretches]
    lines[-1] = replace(lines[-1], x2=WIDTH - RIGHT)
    # Most entries are never retired, and then that lane would only be an empty one.
    shown = [lane for lane in LANES if lane != "retired" or any(one.lane == lane for one in line.stretches)]
    risers, flags, glyphs = _risers(line, axis), tuple(_flags(line, axis)), _glyphs(line, axis)
    return LifePicture(
        width=WIDTH,
        height=int(TOP + LANE_HEIGHT * len(shown) + FOOT),
        left=LEFT,
        right=WIDTH - RIGHT,
        lanes=tuple(LanePlace(lane, _Y[lane]) for lane in shown),
        ticks=axis.ticks(),
        lines=tuple(lines),
        risers=risers,
        flags=flags,
        glyphs=glyphs,
        labels=tuple(_labels(risers, flags, glyphs)),
        told=summary(line),
    )


def _risers(line: LifeLine, axis: Axis) -> tuple[Riser, ...]:
    told = {one.at_ms: one.told for one in line.happenings if one.before != one.after}
    found = []
    for before, after in zip(line.stretches, line.stretches[1:], strict=False):
        turn: Turn = "up" if LANES.index(after.lane) < LANES.index(before.lane) else "down"
        why = told.get(after.from_ms, "")
        words = f"{before.lane} → {after.lane}" + (f": {why}" if why else "")
        found.append(Riser(turn, axis.x(after.from_ms), _Y[before.lane], _Y[after.lane], words, why))
    return tuple(found)


def _flags(line: LifeLine, axis: Axis) -> Iterable[Flag]:
    moved = {one.from_ms for one in line.stretches[1:]}
    for one in line.happenings:
        if one.at_ms not in moved or one.before == one.after:
            yield Flag(one.turn, axis.x(one.at_ms), _Y[lane_at(line, one.at_ms)], one.told)


def _glyphs(line: LifeLine, axis: Axis) -> tuple[Glyph, ...]:
    kinds: tuple[Evidence, ...] = ("sighting", "proof", "drift", "failure")
    found: list[Glyph] = []
    for kind in kinds:
        places = [
            (axis.x(one.at_ms), _Y[lane_at(line, one.at_ms)] + _ROWS[kind]) for one in line.seen if one.kind == kind
        ]
        found += (_glyph(kind, group) for group in _together(places))
    return tuple(found)


# -- words in the picture

_LETTER: Final = 6.4
_LINE: Final = 13
_ASIDE: Final = 7
# Where the word of a flag may stand, the first place that is free: below it, or beside what lies there.
_BESIDE_FLAG: Final = ((-3, 21), (11, 19), (11, 34), (-3, 45))


@dataclass(frozen=True, slots=True)
class _Box:
    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: "_Box") -> bool:
        apart = self.right <= other.left or other.right <= self.left
        return not apart and not (self.bottom <= other.top or other.bottom <= self.top)


def _labels(risers: Sequence[Riser], flags: Sequence[Flag], glyphs: Sequence[Glyph]) -> Iterable[Label]:
    """Words where there is room for them; the tables and the pointer tell the rest."""
    taken = [_Box(one.x - 6, one.y - 6, one.x + 6, one.y + 6) for one in glyphs]
    taken += [_Box(one.x - 2, min(one.y1, one.y2), one.x + 2, max(one.y1, one.y2)) for one in risers]
    wanted = [[_label(one.x + _ASIDE, (one.y1 + one.y2) / 2 + 4, one.why)] for one in risers if one.why]
    # The first flag is the beginning, which nobody needs to be told.
    wanted += [
        [_label(one.x + aside, one.y + below, one.told) for aside, below in _BESIDE_FLAG]
        for one in flags[1:]
        if one.turn == "written"
    ]
    for places in wanted:
        for one in places:
            box = _box(one)
            if not any(box.meets(other) for other in taken):
                taken.append(box)
                yield one
                break


def _label(x: float, y: float, text: str) -> Label:
    ends = x + len(text) * _LETTER > WIDTH - RIGHT
    return Label(round(x - 2 * _ASIDE, 1) if ends else round(x, 1), round(y, 1), ends, text)


def _box(one: Label) -> _Box:
    width = len(one.text) * _LETTER
    left = one.x - width if one.ends else one.x
    return _Box(left, one.y - _LINE + 3, left + width, one.y + 3)


def _together(places: Sequence[tuple[float, float]]) -> Iterable[list[tuple[float, float]]]:
    group: list[tuple[float, float]] = []
    for place in places:
        if group and (place[1] != group[0][1] or place[0] - group[0][0] >= TOGETHER):
            yield group
            group = []
        group.append(place)
    if group:
        yield group


def _glyph(kind: Evidence, group: Sequence[tuple[float, float]]) -> Glyph:
    x = round(sum(place[0] for place in group) / len(group), 1)
    words = _WORDS[kind][0 if len(group) == 1 else 1]
    return Glyph(kind, x, group[0][1], len(group), f"{len(group)} {words}")


def summary(line: LifeLine) -> str:
    """The picture in one sentence, for those who can't see it."""
    way = " → ".join(one.lane for one in line.stretches)
    counts = [
        (sum(one.kind == kind for one in line.seen), _WORDS[kind]) for kind in ("proof", "sighting", "drift", "failure")
    ]
    told = ", ".join(f"{count} {words[0 if count == 1 else 1]}" for count, words in counts if count)
    return f"{way}; {told or 'nothing seen yet'}"
