"""Run one benchmark in a process of its own, for no longer than it may take, and keep what it told until then."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import psutil

from bench.environment import ROOT
from bench.results import LINE, Ended, Environment, Form, Line, Section, Status
from bench.tables import RECORD_VARIABLE

# After the limit a run may still put away its browsers and databases.
TIDY_S = 30.0
LOGS = ROOT / "bench" / "out"
LONGEST_PROBLEM = 200


@dataclass(frozen=True, slots=True)
class Order:
    """What to run, in which form, and for how long at most."""

    name: str
    form: Form
    arguments: tuple[str, ...]
    limit_s: float

    def command(self) -> list[str]:
        long = ["--long"] if self.form == "long" else []
        return [sys.executable, "-m", "bench", self.name, *long, *self.arguments]


@dataclass(frozen=True, slots=True)
class Ran:
    """How the process ended: its code, or nothing when the time was up."""

    code: int | None
    seconds: float
    lines: tuple[Line, ...]
    last_words: str


def read_lines(text: str) -> tuple[Line, ...]:
    """What was recorded; a last line that was cut off in the middle is no line."""
    whole = [line for line in text.splitlines(keepends=True) if line.endswith("\n")]
    return tuple(LINE.validate_json(line) for line in whole)


def status_of(ran: Ran) -> Status:
    """A missed aim is a result; only a run that did not come to its end has failed."""
    if ran.code is None:
        return "cut off"
    return "done" if any(isinstance(line, Ended) for line in ran.lines) else "failed"


def problem_of(order: Order, ran: Ran) -> str:
    match status_of(ran):
        case "done":
            return ""
        case "cut off":
            return f"cut off after {order.limit_s:.0f} s"
        case "failed":
            return f"ended with code {ran.code}: {ran.last_words or 'said nothing'}"


def _family(pid: int) -> list[psutil.Process]:
    try:
        parent = psutil.Process(pid)
        return [parent, *parent.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _ended(process: subprocess.Popen[bytes], tidy_s: float) -> None:
    """Asked first, so that it puts its things away; then everything it started goes with it."""
    family = _family(process.pid)
    process.send_signal(signal.SIGINT)
    try:
        process.wait(tidy_s)
    except subprocess.TimeoutExpired:
        family = list({one.pid: one for one in (*family, *_family(process.pid))}.values())
    for one in family:
        try:
            one.kill()
        except psutil.NoSuchProcess:
            continue
    psutil.wait_procs(family, timeout=tidy_s)
    process.wait()


@contextmanager
def _own_folder() -> Iterator[Path]:
    """Temporary files of the run; a database server of another account has to get through."""
    folder = Path(tempfile.mkdtemp(prefix="nova-bench-"))
    folder.chmod(0o711)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _last_words(log: Path) -> str:
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    words = lines[-1] if lines else ""
    return words.replace(str(ROOT), ".").replace(str(Path.home()), "~")[:LONGEST_PROBLEM]


def run(command: Sequence[str], limit_s: float, log: Path, tidy_s: float = TIDY_S) -> Ran:
    log.parent.mkdir(parents=True, exist_ok=True)
    begun = time.monotonic()
    with _own_folder() as folder, log.open("wb") as out:
        record = folder / "record.jsonl"
        record.touch()
        environ = {**os.environ, RECORD_VARIABLE: str(record), "TMPDIR": str(folder), "PYTHONUNBUFFERED": "1"}
        process = subprocess.Popen(
            command, cwd=ROOT, env=environ, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
        )
        code: int | None
        try:
            code = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            if process.poll() is None:
                _ended(process, tidy_s)
        lines = read_lines(record.read_text(encoding="utf-8"))
    return Ran(code, time.monotonic() - begun, lines, _last_words(log))


def measured(order: Order, environment: Environment) -> Section:
    begun = datetime.now(UTC)
    load = os.getloadavg()[0]
    ran = run(order.command(), order.limit_s, LOGS / f"{order.name}.log")
    return Section(
        name=order.name,
        form=order.form,
        arguments=order.arguments,
        measured_at=begun.strftime("%Y-%m-%d %H:%M"),
        seconds=round(ran.seconds, 1),
        load=round(load, 2),
        status=status_of(ran),
        problem=problem_of(order, ran),
        environment=environment,
        lines=tuple(line for line in ran.lines if not isinstance(line, Ended)),
    )
