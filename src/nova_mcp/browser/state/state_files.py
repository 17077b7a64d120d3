"""The files of kept sandboxes: private, replaced in one step, moved aside when they can't be read."""

import json
import logging
import os
import secrets
import shutil
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from nova_mcp.browser.state.state_format import KeptState, from_json, to_json
from nova_mcp.core.file_lock import HeldBy, Hold, held_now, take_hold

log = logging.getLogger(__name__)

FOLDER = "sandboxes"
STATE_FILE = "state.json"
FIRST_LOCK = "first.lock"
LOCK_FILE = "lock"
_DRAFT = f".{STATE_FILE}."


@dataclass(frozen=True, slots=True)
class Taken:
    """The kept sandbox is ours until the hold is released; `state` is None when there is none yet."""

    hold: Hold
    state: KeptState | None


class KeptUnreadable(Exception):
    """A kept sandbox is there and can't be read now. One begun in its place would be newer, and hide it for good."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"{path}: {why}")
        self.path = path


class KeptFiles:
    """The kept sandboxes of one data folder; what changes a file is for the holder of its sandbox."""

    def __init__(self, data_dir: Path) -> None:
        self._folder = data_dir / FOLDER

    def take(self) -> Taken | HeldBy:
        """Hold the first sandbox, whatever is kept of it; KeptUnreadable when that can't be told now."""
        match take_hold(self._folder / FIRST_LOCK):
            case HeldBy() as other:
                return other
            case hold:
                try:
                    self._clear_first_drafts()
                    return Taken(hold, self._newest())
                except BaseException:
                    hold.release()
                    raise

    def _clear_first_drafts(self) -> None:
        """Whoever holds the first sandbox is the only one to write it; the others have locks of their own."""
        for folder in self._folder.glob("*/"):
            if not os.path.lexists(folder / LOCK_FILE):
                _clear_drafts(folder)

    def _newest(self) -> KeptState | None:
        states: list[KeptState] = []
        for path in self._paths():
            try:
                state = self._read(path)
            except KeptUnreadable as error:
                if not os.path.lexists(path.parent / LOCK_FILE):
                    raise
                log.error("%s; it is left as it is", error)
                continue
            if state is not None and state.first:
                states.append(state)
        return max(states, key=lambda state: (state.saved_at_ms, state.sandbox_ref), default=None)

    def _paths(self) -> list[Path]:
        return sorted(self._folder.glob(f"*/{STATE_FILE}"))

    # -- the others, each with a lock of its own

    def count(self) -> int:
        return len(self._paths())

    def look(self, principal: str) -> list[KeptState]:
        """Everything kept for a principal, read without holding it; what can't be read is left to its holder."""
        found: list[KeptState] = []
        for path in self._paths():
            try:
                state = from_json(json.loads(path.read_text(encoding="utf-8")))
            except (OSError, ValueError, RecursionError):
                continue
            if state.principal == principal and state.sandbox_id is not None and state.sandbox_ref == path.parent.name:
                found.append(state)
        return found

    def hold_new(self, sandbox_ref: str) -> Hold:
        """Hold a sandbox that nobody else can know of yet."""
        match take_hold(self._folder / sandbox_ref / LOCK_FILE):
            case HeldBy():
                raise FileExistsError(f"the sandbox {sandbox_ref} exists already")
            case hold:
                return hold

    def take_other(self, sandbox_ref: str) -> Taken | HeldBy | None:
        """Hold one that was made on purpose; nothing when it was deleted meanwhile or can't be read."""
        folder = self._folder / sandbox_ref
        if not (folder / STATE_FILE).exists():
            return None
        match take_hold(folder / LOCK_FILE):
            case HeldBy() as other:
                return other
            case hold:
                _clear_drafts(folder)
                try:
                    state = self._read(folder / STATE_FILE)
                except KeptUnreadable as error:
                    log.error("%s; it is left as it is", error)
                    state = None
                if state is None:
                    hold.release()
                    return None
                return Taken(hold, state)

    def is_held(self, state: KeptState) -> bool:
        """Whether somebody has it now."""
        path = self._folder / FIRST_LOCK if state.first else self._folder / state.sandbox_ref / LOCK_FILE
        return path.exists() and held_now(path)

    def _read(self, path: Path) -> KeptState | None:
        try:
            state = from_json(json.loads(path.read_text(encoding="utf-8")))
            if state.sandbox_ref != path.parent.name:
                raise ValueError("the file belongs to another folder")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise KeptUnreadable(path, error.strerror or str(error)) from error
        except (ValueError, RecursionError) as error:
            # Only the kind of the error: its text might quote what the file holds.
            stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
            aside = path.with_name(f"{path.name}.corrupt-{stamp}Z")
            try:
                path.replace(aside)
            except OSError as stuck:
                raise KeptUnreadable(path, stuck.strerror or str(stuck)) from stuck
            log.error("the kept sandbox %s is damaged (%s); moved to %s", path, type(error).__name__, aside)
            return None
        return state

    def write(self, state: KeptState) -> None:
        folder = self._folder / state.sandbox_ref
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = folder / STATE_FILE
        draft = folder / f"{_DRAFT}{secrets.token_hex(4)}"
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump(to_json(state), file, separators=(",", ":"))
                file.flush()
                os.fsync(file.fileno())
            draft.replace(path)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise

    def remove(self, sandbox_ref: str) -> None:
        shutil.rmtree(self._folder / sandbox_ref, ignore_errors=True)


def _clear_drafts(folder: Path) -> None:
    """Remove what a server that was killed in the middle of a save left behind: it holds the whole jar."""
    for draft in folder.glob(f"{_DRAFT}*"):
        with suppress(OSError):
            draft.unlink()
