"""How the demo is shown: chapters as they happen with a line of progress on a terminal, plain lines elsewhere."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

from rich.console import Console
from rich.padding import Padding
from rich.rule import Rule
from rich.status import Status
from rich.table import Table
from rich.text import Text

from nova_mcp.cli.terminal import on_terminal, print_table, say, visible
from nova_mcp.demo.playing import Played
from nova_mcp.demo.quick import Comparison
from nova_mcp.demo.serving import Serving
from nova_mcp.demo.stage import Chapter
from nova_mcp.demo.tally import figures
from nova_mcp.server.auth import FILE_NAME as TOKENS

MARKS = {True: ("✓", "bold green"), False: ("✗", "bold red")}


class Teller:
    """Tells the story while it happens."""

    def __init__(self) -> None:
        self._console = Console() if on_terminal() else None
        self._status: Status | None = None
        self._began = monotonic()
        self._calls = 0

    @contextmanager
    def telling(self, opening: str) -> Iterator[None]:
        """A line at the bottom says what is going on, where there is a bottom."""
        if self._console is None:
            say(opening)
            yield
            return
        with self._console.status(Text(opening)) as self._status:
            yield
        self._status = None

    @property
    def seconds(self) -> float:
        return monotonic() - self._began

    def call(self, agent: str, tool: str) -> None:
        self._calls += 1
        if self._status is not None:
            self._status.update(Text(f"{agent}: nova.{tool} · call {self._calls} · {self.seconds:.0f} s", "dim"))

    def day(self, number: int, date: str, title: str) -> None:
        heading = f"Day {number} · {date} · {title}"
        if self._console is None:
            say(f"\n{heading}")
            return
        self._console.print()
        self._console.print(Rule(Text(heading, "bold"), align="left", style="dim"))

    def chapter(self, chapter: Chapter) -> None:
        mark, style = MARKS[chapter.as_expected]
        lines = [(who, what) for who, what in (("Nova", chapter.nova), ("site", chapter.site)) if what]
        if self._console is None:
            say(f"{mark} {chapter.title}")
            for who, what in lines:
                say(f"    {who}  {visible(what)}")
            return
        self._console.print(Text.assemble((f"{mark} ", style), (chapter.title, "bold")))
        table = Table(box=None, show_header=False, pad_edge=False)
        table.add_column(style="cyan", no_wrap=True)
        table.add_column(overflow="fold")
        for who, what in lines:
            table.add_row(Text(who), Text(visible(what), "default" if who == "Nova" else "dim"))
        self._console.print(Padding(table, (0, 0, 0, 4)))

    def ended(self, played: Played) -> None:
        """What it came to, before anything is closed."""
        if self._status is not None:
            self._status.stop()
        say("")
        rows = [(figure.what, figure.value, figure.counted_in) for figure in figures(played.tally)]
        print_table(("what it came to", "figure", "counted in"), rows)
        right, count = sum(chapter.as_expected for chapter in played.chapters), len(played.chapters)
        say(f"\n{right} of {count} chapters did what they say, in {self.seconds:.0f} s.")

    def open(self, server: Serving, folder: Path) -> None:
        say(f"\nThe dashboard: {server.root}/dashboard (the token is in {folder / TOKENS})")
        say("Ctrl-C ends it.")


def compare(found: Sequence[Comparison]) -> None:
    """Both sides of every trial; on a terminal in columns."""
    if not on_terminal():
        for one in found:
            say(f"\n{MARKS[one.as_expected][0]} {one.title}")
            for who, side in (("plain driver", one.plain), ("Nova", one.nova)):
                say(f"    {who}: {visible(side.said)}")
                say(f"    {'its site':>{len(who)}}: {visible(side.counted)}")
        return
    table = Table(show_lines=True, title_justify="left", header_style="bold")
    for column in ("", "plain driver", "Nova"):
        table.add_column(column, overflow="fold", ratio=None if not column else 1)
    for one in found:
        cells = [Text(f"{visible(side.said)}\n\nsite: {visible(side.counted)}") for side in (one.plain, one.nova)]
        mark, style = MARKS[one.as_expected]
        table.add_row(Text.assemble((f"{mark} ", style), (one.title, "bold")), *cells)
    Console().print(table)
