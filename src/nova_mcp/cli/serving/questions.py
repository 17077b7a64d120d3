"""Agents' questions in `nova watch`: shown, and answered with a key and perhaps a note."""

import getpass
import time
from pathlib import Path

from rich.text import Text

from nova_mcp.cli.terminal import fail, visible
from nova_mcp.core.mailbox import Mailbox
from nova_mcp.core.questions import NOTE_LIMIT, Question, Reply

SHOWN = 5
_RETURN = ("\r", "\n")
_ERASE = ("\x7f", "\b")
_ESCAPE = "\x1b"


def operator() -> str:
    try:
        return getpass.getuser()[:64] or "operator"
    except (OSError, KeyError, ImportError):
        return "operator"


def question_line(question: Question, now_ms: int) -> str:
    """One question on one line; what the agent wrote can't steer the terminal."""
    where = " ".join(part for part in (question.target_id, question.url) if part)
    left = max(0, question.expires_at_ms - now_ms) // 1000
    return visible(f"{question.kind} · {question.agent_id} {where} · {question.why} · {left} s left")


class Questions:
    """Who waits for a person, and the note that is being written to the first of them."""

    def __init__(self, data_dir: Path) -> None:
        self._mailbox = Mailbox(data_dir)
        self.waiting: list[Question] = []
        self.note = ""
        self.writing = False

    def refresh(self) -> None:
        self.waiting = self._mailbox.questions()
        if not self.waiting:
            self.note, self.writing = "", False

    def take_key(self, key: str) -> bool:
        """True when the key was meant for a question; while a note is written every key is."""
        if self.writing:
            self._write(key)
            return True
        if not self.waiting or key not in ("d", "n", "t"):
            return False
        if key == "t":
            self.writing = True
        else:
            self._reply(resolved=key == "d")
        return True

    def lines(self, now_ms: int) -> list[Text]:
        if not self.waiting:
            return []
        rows = [Text(f"{'>' if i == 0 else ' '} {question_line(one, now_ms)}") for i, one in enumerate(self.waiting)]
        more = [Text(f"  and {len(rows) - SHOWN} more", "dim")] if len(rows) > SHOWN else []
        note = f"note: {visible(self.note)}"
        keys = f"{note}_ (Return ends it)" if self.writing else f"d done  n not done  t {note if self.note else 'note'}"
        return [Text("An agent asks you:", "bold yellow"), *rows[:SHOWN], *more, Text(keys, "yellow")]

    def _write(self, key: str) -> None:
        if key in _RETURN:
            self.writing = False
        elif key == _ESCAPE:
            self.note, self.writing = "", False
        elif key in _ERASE:
            self.note = self.note[:-1]
        elif key.isprintable() and len(self.note) < NOTE_LIMIT:
            self.note += key

    def _reply(self, *, resolved: bool) -> None:
        try:
            reply = Reply(resolved=resolved, by=operator(), note=self.note.strip() or None)
            self._mailbox.reply(self.waiting[0].id, reply)
        except OSError as error:
            # An answer that did not arrive must not look like one.
            fail(f"the answer could not be written: {error}", "check the data folder's disk and permissions")
        self.note = ""
        self.refresh()


def now_ms() -> int:
    return time.time_ns() // 1_000_000
