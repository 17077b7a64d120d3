"""How commands print: rich tables on a terminal, plain lines elsewhere, and never what steers a terminal."""

import getpass
import json
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, NoReturn

import typer
from rich.console import Console, OverflowMethod
from rich.table import Table
from rich.text import Text

EXIT_FAILED = 1
EXIT_CONFIGURATION = 2
# Unicode classes that move the cursor, hide text or turn its direction: a page may put them into what we print.
_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp", "Co", "Cn"})


def visible(value: object) -> str:
    """Text on one line in which every control character can be seen and none can act."""
    text = str(value)
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escaped(char) if unicodedata.category(char) in _UNSAFE else char for char in text)


def _escaped(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _tame(char: str) -> bool:
    return char == "\n" or unicodedata.category(char) not in _UNSAFE


def on_terminal() -> bool:
    return sys.stdout.isatty()


def say(line: str) -> None:
    typer.echo(line)


def note(line: str) -> None:
    """Something for the person, not for a program that reads the output."""
    typer.echo(line, err=True)


def fail(message: str, hint: str = "", code: int = EXIT_FAILED) -> NoReturn:
    note(f"nova: {visible(message)}" + (f"\n      {visible(hint)}" if hint else ""))
    raise typer.Exit(code)


def json_text(value: Any, *, line: bool = False) -> str:
    """JSON without anything that steers a terminal."""
    text = json.dumps(value, ensure_ascii=False, indent=None if line else 2, separators=(",", ":") if line else None)
    # Outside strings JSON has line breaks only, so an escape is always right.
    return "".join(char if _tame(char) else _in_json(char) for char in text) if _wild(text) else text


def _wild(text: str) -> bool:
    # JSON escapes every control character of ASCII but one.
    return not text.isascii() or "\x7f" in text


def _in_json(char: str) -> str:
    return "\\u007f" if char == "\x7f" else json.dumps(char)[1:-1]


def print_json(value: Any, *, line: bool = False) -> None:
    """JSON for programs, and for people who look at it; one line each when many follow one another."""
    say(json_text(value, line=line))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], title: str = "") -> None:
    """A table for people, or tab-separated lines with a heading for everything that is not a terminal."""
    if not on_terminal():
        say("\t".join(map(visible, columns)))
        for row in rows:
            say("\t".join(visible(cell) for cell in row))
        return
    Console().print(rich_table(columns, rows, title))


def rich_table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], title: str = "", *, one_line: bool = False
) -> Table:
    """With `one_line` what is too long is cut instead of folded, so that every row is as high as it counts for."""
    table = Table(title=title or None, title_justify="left", header_style="bold", box=None, pad_edge=False)
    overflow: OverflowMethod = "ellipsis" if one_line else "fold"
    # Text, not str: a string would be read as markup.
    for column in columns:
        table.add_column(Text(visible(column), no_wrap=one_line), overflow=overflow)
    for row in rows:
        table.add_row(*(Text(visible(cell), no_wrap=one_line, overflow=overflow) for cell in row))
    return table


def moment(at_ms: int) -> str:
    """UTC to the millisecond, sortable."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3] + "Z"


def size(count: int) -> str:
    value = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def person() -> str:
    """The name of the user who runs the command, as far as the system knows it."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "unknown"
