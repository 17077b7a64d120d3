"""The stop file itself: its presence is the stop, its text is only a note."""

from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path


def write_stop(path: Path, reason: str = "") -> bool:
    """Set the stop; False when it was set before, and then the older note stays."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        path.touch(exist_ok=False)
    except FileExistsError:
        return False
    # The stop holds from here on; a full disk only costs the note.
    with suppress(OSError):
        path.write_text(f"{datetime.now(UTC).isoformat(timespec='seconds')} {reason}".strip() + "\n", encoding="utf-8")
    return True


def remove_stop(path: Path) -> bool:
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    return True
