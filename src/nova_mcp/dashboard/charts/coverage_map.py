"""The units of a run as a map: one square each, by what is claimed of it and what was seen; pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, sqrt
from typing import Final, Literal

from nova_mcp.memory.tasks.model import UnitStatus

Square = Literal["proven", "claimed", "seen", "open", "stuck", "excluded"]

SQUARES: Final[tuple[Square, ...]] = ("proven", "claimed", "seen", "open", "stuck", "excluded")
WORDS: Final[dict[Square, str]] = {
    "proven": "checked, and seen by Nova",
    "claimed": "said to be checked, not seen",
    "seen": "seen, not yet called checked",
    "open": "open",
    "stuck": "blocked or failed",
    "excluded": "excluded",
}
CELL: Final = 14
GAP: Final = 3
LEAST_COLUMNS: Final = 24
MOST_COLUMNS: Final = 60
# Beyond this the squares carry no names of their own: the list below the map does.
MOST_NAMED: Final = 300
_SEEN: Final = frozenset({"strong", "weak"})


@dataclass(frozen=True, slots=True)
class MapUnit:
    """As much of a unit as its square needs."""

    status: UnitStatus
    grade: str
    covered: bool
    name: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    square: Square
    x: int
    y: int
    told: str


@dataclass(frozen=True, slots=True)
class Layer:
    """All squares of one kind; `path` draws them in one stroke."""

    square: Square
    told: str
    count: int
    percent: int
    path: str


@dataclass(frozen=True, slots=True)
class CoverageMap:
    width: int
    height: int
    size: int
    layers: tuple[Layer, ...]
    cells: tuple[Cell, ...]
    told: str


def square_of(one: MapUnit) -> Square:
    seen = one.grade in _SEEN or one.covered
    match one.status:
        case "checked":
            return "proven" if seen else "claimed"
        case "discovered":
            return "seen" if seen else "open"
        case "excluded":
            return "excluded"
        case "blocked" | "failed":
            return "stuck"


def coverage_map(units: Sequence[MapUnit]) -> CoverageMap:
    columns = min(MOST_COLUMNS, max(LEAST_COLUMNS, ceil(sqrt(len(units) * 4))))
    step = CELL + GAP
    squares = [square_of(one) for one in units]
    places = [((place % columns) * step, (place // columns) * step) for place in range(len(units))]
    rows = max(1, ceil(len(units) / columns))
    layers = tuple(_layer(kind, squares, places) for kind in SQUARES if kind in squares)
    named = len(units) <= MOST_NAMED
    cells = [
        Cell(kind, x, y, f"{one.name}: {WORDS[kind]}")
        for one, kind, (x, y) in zip(units, squares, places, strict=True)
        if named
    ]
    told = ", ".join(f"{one.count} {one.told}" for one in layers)
    used = min(columns, max(1, len(units)))
    return CoverageMap(used * step - GAP, rows * step - GAP, CELL, layers, tuple(cells), told or "no units")


def _layer(kind: Square, squares: Sequence[Square], places: Sequence[tuple[int, int]]) -> Layer:
    mine = [place for place, square in zip(places, squares, strict=True) if square == kind]
    path = "".join(f"M{x} {y}h{CELL}v{CELL}h-{CELL}z" for x, y in mine)
    return Layer(kind, WORDS[kind], len(mine), round(100 * len(mine) / len(squares)), path)
