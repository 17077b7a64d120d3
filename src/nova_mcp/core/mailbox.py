"""The folder in which agents' questions wait for people: one small private file a question, one an answer."""

import os
import re
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import psutil
from pydantic import BaseModel, ValidationError

from nova_mcp.core.processes import living, started_ms
from nova_mcp.core.questions import Attendant, Process, Question, Reply

FOLDER = "human"
MAX_BYTES = 8192
_QUESTION = re.compile(r"([0-9a-f]{8,64})\.json")
_REPLY = re.compile(r"([0-9a-f]{8,64})\.done\.json")
_ATTENDANT = re.compile(r"watch-[0-9]+-[0-9a-f]+\.json")

M = TypeVar("M", bound=BaseModel)


def this_process() -> Process:
    process = psutil.Process()
    return Process(pid=process.pid, began_ms=started_ms(process))


class Mailbox:
    """Both sides of the folder: servers ask and wait, people's views list and answer."""

    def __init__(self, data_dir: Path) -> None:
        self._folder = data_dir / FOLDER

    # -- for who asks

    def post(self, question: Question) -> None:
        """Show a question; it stays until it is withdrawn or its server is gone."""
        self._tidy()
        self._write(f"{question.id}.json", question)

    def reply_to(self, question_id: str) -> Reply | None:
        return self._read(self._folder / f"{question_id}.done.json", Reply)

    def withdraw(self, question_id: str) -> None:
        """Nobody waits any more; an answer that comes now is of no use."""
        for name in (f"{question_id}.json", f"{question_id}.done.json"):
            with suppress(OSError):
                (self._folder / name).unlink()

    def attended(self) -> bool:
        """Whether a view is open in which a person could answer."""
        for path in self._files(_ATTENDANT):
            view = self._read(path, Attendant)
            if view is not None and _lives(view) and (view.until_ms is None or view.until_ms > _wall_ms()):
                return True
            with suppress(OSError):
                path.unlink()
        return False

    # -- for who answers

    @contextmanager
    def attending(self) -> Iterator[None]:
        """While this lasts, a person can be reached here. A folder that can't be written makes nobody reachable."""
        me = _attendant(None)
        name = f"watch-{me.pid}-{secrets.token_hex(4)}.json"
        with suppress(OSError):
            self._write(name, me)
        try:
            yield
        finally:
            with suppress(OSError):
                (self._folder / name).unlink()

    def attend(self, view: str, for_ms: int) -> None:
        """A person is there for a while, said anew by a view that can't tell when they leave; `view` is its own."""
        me = _attendant(_wall_ms() + for_ms)
        with suppress(OSError):
            self._write(f"watch-{me.pid}-{view}.json", me)

    def questions(self) -> list[Question]:
        """Who waits for a person, oldest first; servers that are gone wait no more."""
        for question in self._asked():
            if not _lives(question.asker):
                self.withdraw(question.id)
        return self.waiting()

    def waiting(self) -> list[Question]:
        """The same without tidying up, for views that must leave everything as it is."""
        found = [one for one in self._asked() if _lives(one.asker) and self.reply_to(one.id) is None]
        return sorted(found, key=lambda question: (question.asked_at_ms, question.id))

    def _asked(self) -> Iterator[Question]:
        for path in self._files(_QUESTION):
            question = self._read(path, Question)
            if question is not None and f"{question.id}.json" == path.name:
                yield question

    def reply(self, question_id: str, reply: Reply) -> bool:
        """Answer a question; False when nobody asks it any more, or somebody else was quicker."""
        if not (self._folder / f"{question_id}.json").exists():
            return False
        try:
            self._write(f"{question_id}.done.json", reply, put=_put_first)
        except FileExistsError:
            return False
        return True

    # -- files

    def _files(self, shape: re.Pattern[str]) -> list[Path]:
        try:
            return [path for path in self._folder.iterdir() if shape.fullmatch(path.name)]
        except OSError:
            return []

    def _tidy(self) -> None:
        """Answers that came too late, and questions of servers that died."""
        self.questions()
        for path in self._files(_REPLY):
            if not path.with_name(path.name.replace(".done.json", ".json")).exists():
                with suppress(OSError):
                    path.unlink()

    def _read(self, path: Path, model: type[M]) -> M | None:
        """What a file says; one that can't be read or understood says nothing."""
        try:
            # Anything but a plain file could keep whoever opens it waiting.
            if not stat.S_ISREG(path.lstat().st_mode):
                return None
            with path.open("rb") as file:
                return model.model_validate_json(file.read(MAX_BYTES))
        except (OSError, ValidationError):
            return None

    def _write(self, name: str, letter: BaseModel, put: Callable[[Path, Path], None] = os.replace) -> None:
        """Whole or not at all, and for this user's eyes only."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = self._folder / f".{name}.{secrets.token_hex(4)}"
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(letter.model_dump_json(by_alias=True))
            put(draft, self._folder / name)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise


def _put_first(draft: Path, name: Path) -> None:
    """Give a file its name unless there is one of that name; who waits never sees two different answers."""
    try:
        name.hardlink_to(draft)
    except FileExistsError:
        raise
    except OSError:
        # A file system without links; two who answer at the same instant are not told apart there.
        draft.replace(name)
    else:
        draft.unlink()


def _attendant(until_ms: int | None) -> Attendant:
    me = this_process()
    return Attendant(pid=me.pid, began_ms=me.began_ms, until_ms=until_ms)


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


def _lives(process: Process) -> bool:
    try:
        return living(process.pid, process.began_ms) is not None
    except psutil.AccessDenied:
        # Another user's process: there is one, and nothing says that it is not the one that wrote.
        return True
