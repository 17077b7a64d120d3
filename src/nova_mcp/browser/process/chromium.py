"""The process of a running Chromium: known by its id, noted for the next server, ended when it does not answer."""

import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import anyio.to_thread
import psutil
from playwright.async_api import Browser as Chromium
from playwright.async_api import Error

from nova_mcp.browser.process.orphans import ProcessMark, end_process, mark, read_note, write_note

# How the driver names the throw-away profiles that it makes; no other folder is ever removed.
_PROFILE_PREFIX = "playwright_"
_PROFILE_FLAG = "--user-data-dir="


@dataclass(frozen=True, slots=True)
class Running:
    """Which process it is, where the note about it lies, and the folder that it alone uses."""

    process: ProcessMark | None
    note: Path | None
    profile: Path | None

    def end(self) -> None:
        """Kill it and what it started, if it still runs, and remove what its driver can no longer remove."""
        if self.process is not None:
            end_process(self.process)
        # The next browser may have been noted in the same place by now.
        if self.note is not None and (noted := read_note(self.note)) is not None and noted.browser == self.process:
            self.note.unlink(missing_ok=True)
        if self.profile is not None:
            shutil.rmtree(self.profile, ignore_errors=True)


NOT_OURS = Running(None, None, None)


async def find_process(chromium: Chromium, data_dir: Path, server_id: str, driver_pid: int) -> Running:
    """The process behind a browser that was just launched, written down for the case that this server is killed."""
    pid = await _pid_of(chromium)
    if pid is None:
        return NOT_OURS

    def look() -> Running:
        return Running(mark(pid), write_note(data_dir, server_id, pid, driver_pid), _profile_of(pid))

    return await anyio.to_thread.run_sync(look)


async def _pid_of(chromium: Chromium) -> int | None:
    with suppress(Error):
        session = await chromium.new_browser_cdp_session()
        processes = (await session.send("SystemInfo.getProcessInfo"))["processInfo"]
        await session.detach()
        return next((int(process["id"]) for process in processes if process["type"] == "browser"), None)
    return None


def _profile_of(pid: int) -> Path | None:
    try:
        words = psutil.Process(pid).cmdline()
    except psutil.Error:
        return None
    given = [Path(word.removeprefix(_PROFILE_FLAG)) for word in words if word.startswith(_PROFILE_FLAG)]
    made = [path for path in given if path.name.startswith(_PROFILE_PREFIX)]
    return made[0] if made and made[0].parent == Path(tempfile.gettempdir()) else None


def memory_of(pid: int) -> int:
    """Bytes of memory that a process has in use; nothing of one that is gone."""
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return 0
