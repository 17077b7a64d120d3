"""Small statistics and one way of telling them: on the terminal and, when asked for, as lines a report is made of."""

import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table as Grid

from bench.results import Finding, LeftOut, Line, Remark, Table

# A file to which everything told is added line by line, so that a run that is cut off leaves what it had.
RECORD_VARIABLE = "BENCH_RECORD"


def quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def keep(line: Line) -> None:
    if place := os.environ.get(RECORD_VARIABLE):
        with Path(place).open("a", encoding="utf-8") as file:
            file.write(line.model_dump_json() + "\n")


def _cell(value: object) -> str:
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def show(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    cells = tuple(tuple(_cell(value) for value in row) for row in rows)
    keep(Table(title=title, columns=tuple(columns), rows=cells))
    grid = Grid(title=title, title_justify="left", show_edge=False)
    for index, column in enumerate(columns):
        grid.add_column(column, justify="left" if index == 0 else "right")
    for row in cells:
        grid.add_row(*row)
    console = Console(width=125)
    console.print(grid)
    console.print()


def tell(finding: Finding) -> None:
    """One figure and whether it is what was promised."""
    keep(finding)
    verdict = {True: "met", False: "MISSED", None: "not measured" if finding.bound else "told"}[finding.met]
    bound = f" (aim {finding.bound})" if finding.bound else ""
    print(f"{finding.aim} {verdict} · {finding.what}: {finding.measured}, n = {finding.n:,}{bound}")


def remark(text: str) -> None:
    keep(Remark(text=text))
    print(text)


def left_out(reason: str) -> None:
    """A part that can't be measured here; it is said, never passed over."""
    keep(LeftOut(reason=reason))
    print(f"not measured: {reason}", file=sys.stderr)


def machine() -> str:
    return f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
