"""Changes one file of somebody else's program: shown first, with a backup, replaced in one step."""

import difflib
import os
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

_BOM = "\ufeff"


@dataclass(frozen=True, slots=True)
class Change:
    """The file as it was read (None: not there) and as it shall be."""

    path: Path
    before: str | None
    after: str

    @property
    def needed(self) -> bool:
        return self.before != self.after

    def diff(self) -> str:
        old, new = ((text or "").splitlines() for text in (self.before, self.after))
        name = str(self.path)
        was = name if self.before is not None else "(no file)"
        return "\n".join(difflib.unified_diff(old, new, was, name, lineterm="", n=2))


class FileMoved(Exception):
    """The file changed between reading and writing."""


def read_text(path: Path) -> str | None:
    """The file's text, or None when there is none; UnicodeDecodeError when it is not text."""
    try:
        # newline="" keeps the line ends as they are.
        with path.open(encoding="utf-8", newline="") as file:
            return file.read().removeprefix(_BOM)
    except FileNotFoundError:
        return None


def apply(change: Change) -> Path | None:
    """Write the new content; returns the backup. A link is followed, owner-only files stay owner-only."""
    path = change.path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
    backup = None
    if change.before is not None:
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
        backup = path.with_name(f"{path.name}.nova-{stamp}-{secrets.token_hex(2)}.bak")
        _write(backup, path.read_bytes(), mode)
    beside = path.with_name(f".{path.name}.nova-{secrets.token_hex(4)}")
    try:
        _write(beside, change.after.encode("utf-8"), mode)
        if read_text(path) != change.before:
            raise FileMoved(f"{path} was changed by another program meanwhile")
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    return backup


def _write(path: Path, data: bytes, mode: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    path.chmod(mode)
