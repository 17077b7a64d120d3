"""Where the copies of uploads lie: private, as long as the document they were given to may read them."""

import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

import anyio.to_thread

from nova_mcp.core.file_lock import HeldBy, Hold, held_now, take_hold

FOLDER: Final = "staging"
LOCK_FILE: Final = "lock"
# A form that leads to another page may still be sending its files when that page comes.
GRACE_MS: Final = 60_000


class Holder(Protocol):
    """As much of a tab as copies depend on."""

    target_id: str
    page_epoch: int


@dataclass(slots=True, eq=False)
class Staged:
    """The copies of one upload, and the document that may read them."""

    folder: Path
    holder: Holder
    page_epoch: int
    left_at_ms: int | None = None


def over(staged: Staged, open_tabs: Iterable[Holder], now_ms: int) -> bool:
    """Whether nobody can read the copies any more; notes when their document was first seen to be gone."""
    if not any(tab is staged.holder for tab in open_tabs):
        return True
    if staged.holder.page_epoch == staged.page_epoch:
        return False
    if staged.left_at_ms is None:
        staged.left_at_ms = now_ms
    return abs(now_ms - staged.left_at_ms) >= GRACE_MS


class UploadStaging:
    """The copies of one server; those that a dead server left go at the next start."""

    def __init__(self, data_dir: Path, server_id: str, token: Callable[[int], str]) -> None:
        self._root = data_dir / FOLDER
        self._folder = self._root / server_id
        self._token = token
        self._hold: Hold | None = None
        self._staged: list[Staged] = []

    async def begin(self, holder: Holder) -> Staged:
        """A folder for the copies that a tab's document is about to be given."""
        if self._hold is None:
            taken = await anyio.to_thread.run_sync(take_hold, self._folder / LOCK_FILE)
            if self._hold is None and not isinstance(taken, HeldBy):
                self._hold = taken
        staged = Staged(self._folder / self._token(8), holder, holder.page_epoch)
        self._staged.append(staged)
        return staged

    async def drop(self, staged: Staged) -> None:
        """Nothing of it was handed over."""
        if staged in self._staged:
            self._staged.remove(staged)
        await anyio.to_thread.run_sync(_removed, staged.folder)

    async def tidy(self, open_tabs: Iterable[Holder], now_ms: int) -> None:
        tabs = tuple(open_tabs)
        for staged in [one for one in self._staged if over(one, tabs, now_ms)]:
            await self.drop(staged)

    def clear_leftovers(self) -> None:
        """Remove the copies of servers that are gone."""
        for folder in self._root.glob("*/"):
            lock = folder / LOCK_FILE
            if folder != self._folder and lock.exists() and not held_now(lock):
                _removed(folder)

    async def aclose(self) -> None:
        self._staged.clear()
        if self._hold is not None:
            await anyio.to_thread.run_sync(_removed, self._folder)
            self._hold.release()
            self._hold = None


def _removed(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
