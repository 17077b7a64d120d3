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

from nova_mcp.cli.serving.dashboard import sign_in_link
from nova_mcp.cli.terminal import on_terminal, print_table, say, visible
from nova_mcp.demo.playing import Played
from nova_mcp.demo.quick import Comparison, Side
from nova_mcp.demo.serving import Serving
from nova_mcp.demo.stage import Chapter
from nova_mcp.demo.tally import figures

STORY = (
    "A shop, a wiki and a chat on this machine, a Nova server over HTTP, an MCP client and a Chromium: all real.",
    "Only the days are simulated: the server's clock is moved. Below, Nova is what its answers said, and site is what",
    "the site itself has counted. A chapter is ticked only if both are as they should be.",
)
QUICK = (
    "The same three mishaps twice: through Playwright alone, as scripts drive a browser, and through Nova.",
    "Each has a practice shop of its own, which counts what really arrives.",
)
FORCED = (
    "click(force=True) is what scripts fall back on when a click seems stuck; clicking at coordinates does the same. "
    "Without it Playwright waits for the layer to go, and gives up."
)
MARKS = {True: ("✓", "bold green"), False: ("✗", "bold red")}


class Teller:
    """Tells the story while it happens."""

    def __init__(self) -> None:
        self._console = Console() if on_terminal() else None
        self._status: Status | None = None
        self._began = monotonic()
        self._calls = 0

    @contextmanager
    def telling(self, opening: Sequence[str]) -> Iterator[None]:
        """A line at the bottom says what is going on, where there is a bottom."""
        for line in opening:
            say(line)
        if self._console is None:
            yield
            return
        with self._console.status(Text("Starting …", "dim")) as self._status:
            yield
        self._status = None

    @property
    def seconds(self) -> float:
        return monotonic() - self._began

    def call(self, agent: str, tool: str) -> None:
        self._calls += 1
        if self._status is not None:
            self._status.update(Text(f"{agent}: nova.{tool} · call {self._calls} · {self.seconds:.0f} s", "dim"))

    def heading(self, text: str) -> None:
        if self._console is None:
            say(f"\n{text}")
            return
        self._console.print()
        self._console.print(Rule(Text(text, "bold"), align="left", style="dim"))

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
        for chapter in played.chapters:
            if not chapter.as_expected:
                say(f"✗ {chapter.title}")

    def closing(self, kept: Path | None) -> None:
        """How to look around; without a folder to keep, everything is gone by now."""
        if kept is None:
            say("With its dashboard left open: nova demo --serve. In half a minute: nova demo --quick.")
            return
        say(f"Its dashboard: nova serve --http --data-dir {kept}, and beside it nova dashboard --data-dir {kept}.")
        say(f"On the terminal: nova receipt --data-dir {kept}, likewise nova knowledge, stats, events, ledger verify.")

    def open(self, server: Serving, folder: Path) -> None:
        """Where to look around; the link is for one visitor within a minute, so it is told how to get another."""
        say(f"\nThe dashboard, signed in: {sign_in_link(server.endpoint, server.token)}")
        say(f"Another such link: nova dashboard --data-dir {folder}")
        say("Ctrl-C ends the server and removes what is not to be kept.")


def compare(found: Sequence[Comparison]) -> None:
    """Both sides of every trial; on a terminal in columns."""
    say("")
    if on_terminal():
        table = Table(show_lines=True, header_style="bold")
        table.add_column("", ratio=2)
        table.add_column("plain driver", overflow="fold", ratio=3)
        table.add_column("Nova", overflow="fold", ratio=3)
        for one in found:
            mark, style = MARKS[one.as_expected]
            table.add_row(Text.assemble((f"{mark} ", style), (one.title, "bold")), _cell(one.plain), _cell(one.nova))
        Console().print(table)
    else:
        for one in found:
            say(f"{MARKS[one.as_expected][0]} {one.title}")
            for who, side in (("plain driver", one.plain), ("Nova", one.nova)):
                say(f"    {who:>12}  {visible(side.said)}")
                say(f"    {'site':>12}  {visible(side.counted)}")
    say(FORCED)
    right = sum(one.as_expected for one in found)
    say(f"\n{right} of {len(found)} went as told. The whole story, over eight days: nova demo")


def _cell(side: Side) -> Text:
    return Text.assemble(visible(side.said), "\n\n", ("site  ", "cyan"), (visible(side.counted), "dim"))
