"""Small statistics and one way of printing them."""

import platform
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table


def quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def show(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    table = Table(title=title, title_justify="left", show_edge=False)
    for index, column in enumerate(columns):
        table.add_column(column, justify="left" if index == 0 else "right")
    for row in rows:
        table.add_row(*(f"{cell:.2f}" if isinstance(cell, float) else str(cell) for cell in row))
    console = Console(width=125)
    console.print(table)
    console.print()


def machine() -> str:
    return f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
