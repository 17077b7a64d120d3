"""The stop file itself: its presence is the stop, its text is only a note."""

from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path


def write_stop(path: Path, reason: str = "") -> bool:
    """Set the stop; False when it was set before, and then the older note stays."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    note = f"{datetime.now(UTC).isoformat(timespec='seconds')} {reason}".strip() + "\n"
    try:
        # Opened once: by its name, the note would bring a stop back that somebody has lifted meanwhile.
        file = path.open("xb", buffering=0)
    except FileExistsError:
        # A link that leads nowhere takes the name and stops nobody.
        if not stop_requested(path):
            raise
        return False
    # The stop holds from here on; a full disk only costs the note.
    with suppress(OSError), file:
        file.write(note.encode("utf-8", "replace"))
    return True


def stop_requested(path: Path) -> bool:
    """An unreadable stop file counts as set: a stop that can't be checked must hold."""
    try:
        return path.exists()
    except OSError:
        return True


def remove_stop(path: Path) -> bool:
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    return True
