"""Pictures as SVG: pure functions from figures to markup in which every text and attribute is escaped.

Plots stretch to the width they get, so words stand beside them as HTML and keep their size on a phone. Colours come
from the stylesheet by class: the pages allow no styles of their own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log10
from typing import Final

from markupsafe import Markup, escape

from nova_mcp.dashboard.formatting import brief

WIDTH: Final = 1000
HEIGHT: Final = 100
# Gaps between columns, as a share of a column's place.
_GAP: Final = 0.18


def element(name: str, attributes: dict[str, object], *children: Markup) -> Markup:
    """One element; attribute values are escaped, children are markup already."""
    said = Markup("").join(Markup(' {}="{}"').format(key, value) for key, value in attributes.items())
    inner = Markup("").join(children)
    return Markup("<{0}{1}>{2}</{0}>").format(name, said, inner)


def words(text: object) -> Markup:
    return escape(str(text))


@dataclass(frozen=True, slots=True)
class Series:
    """One kind of figure over all columns, below 0 where there is none; `tone` is its class in the stylesheet."""

    name: str
    tone: str
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """A plot with the words around it and the same figures as a table."""

    title: str
    summary: str
    plot: Markup
    scale: tuple[str, ...]
    marks: tuple[str, ...]
    series: tuple[Series, ...]
    columns: tuple[str, ...]

    @property
    def empty(self) -> bool:
        return not any(value > 0 for one in self.series for value in one.values)

    def rows(self) -> list[tuple[str, tuple[str, ...]]]:
        """The table that says the same, columns without anything left out."""
        return [
            (column, tuple("–" if one.values[at] < 0 else brief(one.values[at]) for one in self.series))
            for at, column in enumerate(self.columns)
            if any(one.values[at] > 0 for one in self.series)
        ]


def nice_top(value: float) -> float:
    """The end of a scale, not below the value: whole, and so is its middle."""
    if value <= 2:
        return 2.0
    power = 10.0 ** int(log10(value))
    return next(step * power for step in (1, 2, 4, 10) if step * power >= value and step * power > 1)


def _plot(label: str, inner: Sequence[Markup]) -> Markup:
    shape = {"class": "plot", "viewBox": f"0 0 {WIDTH} {HEIGHT}", "preserveAspectRatio": "none"}
    return element("svg", {**shape, "role": "img", "aria-label": label}, *inner)


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def stacked(title: str, columns: Sequence[str], series: Sequence[Series], marks: Sequence[str]) -> Chart:
    """Columns over time, one part per series, the first at the bottom."""
    heights = [sum(one.values[at] for one in series) for at in range(len(columns))]
    top = nice_top(max(heights, default=0))
    place = WIDTH / max(1, len(columns))
    parts = [_grid_line(share) for share in (0.0, 0.5, 1.0)]
    for at, column in enumerate(columns):
        parts.append(_column(at * place, place, top, [(one, one.values[at]) for one in series], column))
    total = sum(heights)
    summary = f"{title}: {brief(total)} in all, at most {brief(max(heights, default=0))} at once"
    return Chart(
        title=title,
        summary=summary,
        plot=_plot(summary, parts),
        scale=(brief(top), brief(top / 2), "0"),
        marks=tuple(marks),
        series=tuple(series),
        columns=tuple(columns),
    )


def _grid_line(share: float) -> Markup:
    y = _number(HEIGHT - share * HEIGHT)
    return element("line", {"class": "grid", "x1": 0, "x2": WIDTH, "y1": y, "y2": y})


def _column(left: float, place: float, top: float, parts: Sequence[tuple[Series, float]], column: str) -> Markup:
    told = ", ".join(f"{brief(value)} {one.name}" for one, value in parts)
    drawn = [element("title", {}, words(f"{column}: {told}"))]
    # Without paint but over the full height: a pointer finds the title above a short column too.
    drawn.append(
        element("rect", {"class": "hit", "x": _number(left), "y": 0, "width": _number(place), "height": HEIGHT})
    )
    y = float(HEIGHT)
    for one, value in parts:
        if value <= 0:
            continue
        height = max(0.8, value / top * HEIGHT)
        y -= height
        drawn.append(
            element(
                "rect",
                {
                    "class": one.tone,
                    "x": _number(left + place * _GAP / 2),
                    "y": _number(max(0.0, y)),
                    "width": _number(place * (1 - _GAP)),
                    "height": _number(height),
                },
            )
        )
    return element("g", {"class": "column"}, *drawn)


def lines(title: str, columns: Sequence[str], series: Sequence[Series], marks: Sequence[str], unit: str = "") -> Chart:
    """Lines over time; a column without a figure (below 0) breaks a line instead of drawing it to the ground."""
    highest = max((max(one.values, default=0) for one in series), default=0)
    top = nice_top(highest)
    parts = [_grid_line(share) for share in (0.0, 0.5, 1.0)]
    place = WIDTH / max(1, len(columns))
    for one in series:
        for run in _runs(one.values):
            points = [((at + 0.5) * place, HEIGHT - value / top * HEIGHT) for at, value in run]
            if len(points) == 1:
                x, y = points[0]
                points = [(x - place * 0.3, y), (x + place * 0.3, y)]
            path = " ".join(f"{_number(x)},{_number(y)}" for x, y in points)
            parts.append(element("polyline", {"class": f"line {one.tone}", "points": path}))
    for at, column in enumerate(columns):
        told = ", ".join(f"{one.name} {brief(one.values[at])}{unit}" for one in series if one.values[at] >= 0)
        hit = {"class": "hit", "x": _number(at * place), "y": 0, "width": _number(place), "height": HEIGHT}
        title_of = element("title", {}, words(f"{column}: {told or 'nothing'}"))
        parts.append(element("g", {"class": "column"}, element("rect", hit, title_of)))
    summary = f"{title}: at most {brief(highest)}{unit}"
    return Chart(
        title=title,
        summary=summary,
        plot=_plot(summary, parts),
        scale=(f"{brief(top)}{unit}", f"{brief(top / 2)}{unit}", "0"),
        marks=tuple(marks),
        series=tuple(series),
        columns=tuple(columns),
    )


def _runs(values: Sequence[float]) -> list[list[tuple[int, float]]]:
    found: list[list[tuple[int, float]]] = [[]]
    for at, value in enumerate(values):
        if value >= 0:
            found[-1].append((at, value))
        elif found[-1]:
            found.append([])
    return [run for run in found if run]
