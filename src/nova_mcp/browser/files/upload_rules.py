"""Which files may be handed to a page, and which of them a file input takes; pure but for the paths it is given."""

from collections.abc import Sequence
from dataclasses import dataclass
from mimetypes import MimeTypes
from pathlib import Path, PurePath
from typing import Final

MAX_FILE_BYTES: Final = 50 * 1024 * 1024

# The table that comes with Python, not the machine's: the same name has the same type everywhere.
_TYPES: Final = MimeTypes(filenames=())
_MORE_TYPES: Final = {
    ".avif": "image/avif",
    ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ".heic": "image/heic",
    ".jpg": "image/jpeg",
    ".md": "text/markdown",
    ".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    ".webp": "image/webp",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}


@dataclass(frozen=True, slots=True)
class Inside:
    """The resolved path lies in one of the folders files may come from."""

    path: Path


@dataclass(frozen=True, slots=True)
class Outside:
    """Nothing is said about what is there."""


def judge_path(resolved: Path, roots: Sequence[Path]) -> Inside | Outside:
    """Whether a path whose links are already followed lies inside a root, likewise resolved."""
    if not resolved.is_absolute() or ".." in resolved.parts:
        return Outside()
    if any(root.is_absolute() and resolved != root and resolved.is_relative_to(root) for root in roots):
        return Inside(resolved)
    return Outside()


def mime_type(file_name: str) -> str:
    """The type a browser would name for such a file; empty when the name says nothing."""
    suffix = PurePath(file_name).suffix.lower()
    return _MORE_TYPES.get(suffix) or _TYPES.guess_type(f"x{suffix}", strict=False)[0] or ""


def is_accepted(accept: str, file_name: str) -> bool:
    """Whether an `accept` list takes such a file: endings, types, and types of one kind. An empty list takes all."""
    tokens = [token.strip().lower() for token in accept.split(",")]
    tokens = [token for token in tokens if token]
    if not tokens:
        return True
    name, kind = file_name.lower(), mime_type(file_name)
    return any(_takes(token, name, kind) for token in tokens)


def _takes(token: str, name: str, kind: str) -> bool:
    if token in ("*", "*/*"):
        return True
    if token.startswith("."):
        return len(token) > 1 and name.endswith(token)
    token = token.partition(";")[0].strip()
    if token.endswith("/*"):
        return kind.startswith(token[:-1]) and len(token) > 2
    return kind == token


def shown_name(path: str) -> str:
    """The name of a file as it may be told: folders are the person's business."""
    return PurePath(path.replace("\\", "/")).name[:120]
