"""Notes about running browsers, so that the next start can end those whose server died."""

import json
import os
from dataclasses import dataclass
from pathlib import Path

import psutil

from nova_mcp.processes import living, started_ms

FOLDER = "browsers"


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


def mark(pid: int) -> ProcessMark | None:
    try:
        return ProcessMark(pid, started_ms(psutil.Process(pid)))
    except psutil.Error:
        return None


def write_note(data_dir: Path, server_id: str, browser_pid: int) -> Path | None:
    """Note the browser of this server; nothing is written when either process can't be identified."""
    server, browser = mark(os.getpid()), mark(browser_pid)
    if server is None or browser is None:
        return None
    folder = data_dir / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{server_id}.json"
    draft = path.with_suffix(".tmp")
    body = {
        "server": {"pid": server.pid, "startedMs": server.started_ms},
        "browser": {"pid": browser.pid, "startedMs": browser.started_ms},
    }
    draft.write_text(json.dumps(body), encoding="utf-8")
    draft.replace(path)
    return path


def read_note(path: Path) -> BrowserNote | None:
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
        marks = [ProcessMark(int(body[who]["pid"]), int(body[who]["startedMs"])) for who in ("server", "browser")]
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
        if note is not None and (browser := alive(note.browser)) is not None:
            _end(browser)
            ended += 1
        path.unlink(missing_ok=True)
    return ended


def _end(browser: psutil.Process) -> None:
    try:
        family = [*browser.children(recursive=True), browser]
    except psutil.Error:
        family = [browser]
    for process in family:
        try:
            process.kill()
        except psutil.Error:
            continue
    psutil.wait_procs(family, timeout=3)
