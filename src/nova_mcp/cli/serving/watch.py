"""`nova watch`: what agents do, as it happens, with a stop key."""

import sys
from collections import deque
from collections.abc import Callable
from pathlib import Path

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from nova_mcp.cli.options import DataDir, Store, read_settings
from nova_mcp.cli.serving.key_presses import NextKey, keys
from nova_mcp.cli.serving.questions import Questions, now_ms
from nova_mcp.cli.store.call_lines import COLUMNS, POLL_S, Positions, follow, last_calls, new_calls, row
from nova_mcp.cli.store.open_store import opened, shown_url
from nova_mcp.cli.terminal import fail, on_terminal, rich_table, say, visible
from nova_mcp.core.mailbox import Mailbox
from nova_mcp.core.stop_file import remove_stop, stop_requested, write_stop
from nova_mcp.evidence.reader import EventFilter
from nova_mcp.evidence.store import StoredCall
from nova_mcp.settings import Settings
from nova_mcp.storage.engine import Database

app = typer.Typer(add_completion=False)

SHOWN = 200


@app.command()
def watch(data_dir: DataDir = None, store: Store = None) -> None:
    """Watch calls as they are recorded and answer what agents ask. Keys: s emergency stop, r resume, q quit."""
    settings = read_settings(data_dir, store)
    with opened(settings) as database:
        calls, positions = last_calls(database, EventFilter(limit=SHOWN))
        try:
            if on_terminal() and sys.stdin.isatty():
                # Only where keys are read is there somebody who can answer.
                with keys() as next_key, Mailbox(settings.data_dir).attending():
                    screen = Screen(calls, positions, Questions(settings.data_dir))
                    _live(database, settings, screen, next_key)
            else:
                for call in follow(database, EventFilter(), positions):
                    say("\t".join(visible(cell) for cell in row(call)))
        except KeyboardInterrupt:
            return


class Screen:
    """The calls in view, how far the ledger was read, and who waits for an answer."""

    def __init__(self, calls: list[StoredCall], positions: Positions, questions: Questions) -> None:
        self.questions = questions
        self.calls = deque(calls, maxlen=SHOWN)
        self.positions = positions

    def refresh(self, database: Database) -> None:
        fresh, self.positions = new_calls(database, EventFilter(), self.positions)
        self.calls.extend(fresh)
        self.questions.refresh()

    def render(self, settings: Settings, height: int) -> Group:
        stopped = stop_requested(settings.stop_file)
        state = Text("STOPPED: every call is refused", "bold red") if stopped else Text("running", "green")
        head = Text.assemble(("Nova ", "bold"), shown_url(settings), "  ", state)
        foot = Text("r resume  q quit" if stopped else "s emergency stop  q quit", "dim")
        asked = self.questions.lines(now_ms())
        rows = [_today(row(call)) for call in self.calls][-max(1, height - 6 - len(asked)) :]
        return Group(
            head, *asked, rich_table(COLUMNS, rows, one_line=True) if rows else Text("No calls yet.", "dim"), foot
        )


def _today(cells: tuple[str, ...]) -> tuple[str, ...]:
    """A row with the time of day alone: who watches knows the date and needs the room."""
    return (cells[0][11:19], *cells[1:])


def _live(database: Database, settings: Settings, screen: Screen, next_key: NextKey) -> None:
    console = Console()
    with Live(console=console, screen=True, auto_refresh=False, vertical_overflow="crop") as live:
        while True:
            screen.refresh(database)
            live.update(screen.render(settings, console.height), refresh=True)
            key = next_key(POLL_S)
            if key is not None and screen.questions.take_key(key):
                continue
            match key:
                case "s":
                    _switch(write_stop, settings)
                case "r":
                    _switch(remove_stop, settings)
                case "q" | "\x03" | "\x04":
                    return
                case _:
                    continue


def _switch(change: Callable[[Path], bool], settings: Settings) -> None:
    try:
        change(settings.stop_file)
    except OSError as error:
        # A stop that did not take hold must not look like one.
        fail(f"the stop could not be changed: {error}", f"create or remove {settings.stop_file} by hand")
