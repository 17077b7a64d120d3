"""The files of kept sandboxes: private, replaced in one step, moved aside when they can't be read."""

import json
import logging
import os
import secrets
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from nova_mcp.browser.hold import HeldBy, Hold, take_hold
from nova_mcp.browser.kept_state import KeptState, from_json, to_json

log = logging.getLogger(__name__)

FOLDER = "sandboxes"
STATE_FILE = "state.json"
LOCK_FILE = "first.lock"


@dataclass(frozen=True, slots=True)
class Taken:
    """The kept sandbox is ours until the hold is released; `state` is None when there is none yet."""

    hold: Hold
    state: KeptState | None


class KeptFiles:
    """The kept sandbox of one data folder; everything but `take` is for its holder."""

    def __init__(self, data_dir: Path) -> None:
        self._folder = data_dir / FOLDER

    def take(self) -> Taken | HeldBy:
        match take_hold(self._folder / LOCK_FILE):
            case HeldBy() as other:
                return other
            case hold:
                try:
                    return Taken(hold, self._newest())
                except BaseException:
                    hold.release()
                    raise

    def _newest(self) -> KeptState | None:
        states = [state for path in self._folder.glob(f"*/{STATE_FILE}") if (state := self._read(path)) is not None]
        return max(states, key=lambda state: (state.saved_at_ms, state.sandbox_ref), default=None)

    def _read(self, path: Path) -> KeptState | None:
        try:
            state = from_json(json.loads(path.read_text(encoding="utf-8")))
            if state.sandbox_ref != path.parent.name:
                raise ValueError("the file belongs to another folder")
        except OSError as error:
            log.error("the kept sandbox %s can't be read (%s); starting without it", path, error.strerror)
            return None
        except (ValueError, RecursionError) as error:
            # Only the kind of the error: its text might quote what the file holds.
            stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
            aside = path.with_name(f"{path.name}.corrupt-{stamp}Z")
            path.replace(aside)
            log.error("the kept sandbox %s is damaged (%s); moved to %s", path, type(error).__name__, aside)
            return None
        return state

    def write(self, state: KeptState) -> None:
        folder = self._folder / state.sandbox_ref
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = folder / STATE_FILE
        draft = folder / f".{STATE_FILE}.{secrets.token_hex(4)}"
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

    def set_aside(self, sandbox_ref: str) -> None:
        """Move away a state that can be read but not used."""
        path = self._folder / sandbox_ref / STATE_FILE
        if path.exists():
            stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
            path.replace(path.with_name(f"{STATE_FILE}.corrupt-{stamp}Z"))

    def remove(self, sandbox_ref: str) -> None:
        shutil.rmtree(self._folder / sandbox_ref, ignore_errors=True)
