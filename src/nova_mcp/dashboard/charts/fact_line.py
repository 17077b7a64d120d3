"""The versions of a fact over time, as a strip; pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from nova_mcp.core.keywords import cut
from nova_mcp.dashboard.charts.time_axis import Axis, Tick
from nova_mcp.memory.facts.model import Fact

WIDTH: Final = 960
HEIGHT: Final = 74
LEFT: Final = 12
RIGHT: Final = 12
# A value is written into its piece only where there is room for a few letters.
CHAR_WIDTH: Final = 7.5
LEAST_CHARS: Final = 4


@dataclass(frozen=True, slots=True)
class Piece:
    """One version: from when to when it was held true."""

    x: float
    width: float
    current: bool
    disputed: bool
    label: str
    told: str


@dataclass(frozen=True, slots=True)
class FactLine:
    width: int
    height: int
    pieces: tuple[Piece, ...]
    ticks: tuple[Tick, ...]
    told: str


def fact_line(versions: Sequence[Fact], now_ms: int) -> FactLine | None:
    """`versions` newest first; None without any."""
    if not versions:
        return None
    ordered = sorted(versions, key=lambda one: one.version)
    end = max([now_ms, *(one.valid_to_ms or 0 for one in ordered)])
    axis = Axis(ordered[0].valid_from_ms, end, LEFT, WIDTH - RIGHT)
    pieces = tuple(_piece(one, axis, end) for one in ordered)
    told = f"{len(pieces)} version{'' if len(pieces) == 1 else 's'}; now {pieces[-1].told}"
    return FactLine(WIDTH, HEIGHT, pieces, axis.ticks(), told)


def _piece(one: Fact, axis: Axis, end_ms: int) -> Piece:
    x = axis.x(one.valid_from_ms)
    width = round(max(2.0, axis.x(end_ms if one.valid_to_ms is None else one.valid_to_ms) - x), 1)
    room = int(width / CHAR_WIDTH) - 1
    label = cut(one.value, room) if room >= LEAST_CHARS else ""
    return Piece(x, width, one.valid_to_ms is None, one.state == "conflicted", label, cut(one.value, 80))
