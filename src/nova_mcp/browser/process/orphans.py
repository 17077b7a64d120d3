"""Notes about running browsers, so that the next start can end those whose server died."""

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

from nova_mcp.core.processes import living, started_ms

FOLDER = "browsers"
GONE_WITHIN_S = 3.0
GONE_POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class ProcessMark:
    """A process that cannot be confused with a later one of the same number."""

    pid: int
    started_ms: int


@dataclass(frozen=True, slots=True)
class BrowserNote:
    """Which browser belongs to which server process."""

    server: ProcessMark
    browser: ProcessMark
    driver: ProcessMark | None = None


def mark(pid: int) -> ProcessMark | None:
    try:
        return ProcessMark(pid, started_ms(psutil.Process(pid)))
    except psutil.Error:
        return None


def write_note(data_dir: Path, server_id: str, browser_pid: int, driver_pid: int | None = None) -> Path | None:
    """Note the browser of this server; nothing is written when either process can't be identified."""
    server, browser = mark(os.getpid()), mark(browser_pid)
    if server is None or browser is None:
        return None
    folder = data_dir / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{server_id}.json"
    draft = path.with_suffix(".tmp")
    marks = {"server": server, "browser": browser, "driver": None if driver_pid is None else mark(driver_pid)}
    body = {
        name: {"pid": known.pid, "startedMs": known.started_ms} for name, known in marks.items() if known is not None
    }
    draft.write_text(json.dumps(body), encoding="utf-8")
    draft.replace(path)
    return path


def read_note(path: Path) -> BrowserNote | None:
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
        # A driver that still reads ends with its server; older notes do not name it.
        names = [name for name in ("server", "browser", "driver") if name != "driver" or name in body]
        marks = [ProcessMark(int(body[name]["pid"]), int(body[name]["startedMs"])) for name in names]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return BrowserNote(*marks)


def alive(process: ProcessMark) -> psutil.Process | None:
    """The very process that was marked, if it still runs."""
    try:
        return living(process.pid, process.started_ms)
    except psutil.Error:
        return None


def end_leftovers(data_dir: Path) -> int:
    """End browsers whose server is dead; returns how many were ended."""
    ended = 0
    for path in sorted((data_dir / FOLDER).glob("*.json")):
        note = read_note(path)
        if note is not None and alive(note.server) is not None:
            continue
        if note is not None:
            ended += end_process(note.browser)
            if note.driver is not None:
                end_process(note.driver)
        path.unlink(missing_ok=True)
    return ended


def end_process(known: ProcessMark) -> bool:
    """Kill the very process that was marked and everything it started; False when it is gone already."""
    if (found := alive(known)) is None:
        return False
    try:
        family = [*found.children(recursive=True), found]
    except psutil.Error:
        family = [found]
    for process in family:
        try:
            process.kill()
        except psutil.Error:
            continue
    deadline = time.monotonic() + GONE_WITHIN_S
    while any(_runs(process) for process in family) and time.monotonic() < deadline:
        time.sleep(GONE_POLL_S)
    return True


def _runs(process: psutil.Process) -> bool:
    """A dead process whose parent has not collected it, perhaps because that one hangs, runs no more."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
