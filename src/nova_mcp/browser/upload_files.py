"""The files of an upload: found inside the allowed folders, measured and hashed before any page hears of them."""

import hashlib
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import anyio.to_thread

from nova_mcp.browser.lines import quoted
from nova_mcp.browser.upload_rules import MAX_FILE_BYTES, Inside, judge_path, shown_name
from nova_mcp.errors import InvalidParams, NotFound, PolicyDenied

_CHUNK: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class UploadFile:
    """One file as it will be handed over; its folder is told to nobody."""

    path: Path
    # The same file as it can be named without its folder.
    short: str
    file_name: str
    size: int
    sha256: str


async def read_files(paths: Sequence[str], roots: Sequence[Path]) -> tuple[UploadFile, ...]:
    """Every file, or a refusal that names the first one that can't be taken by its bare name."""
    return await anyio.to_thread.run_sync(_read_all, tuple(paths), tuple(roots), abandon_on_cancel=True)


def _read_all(paths: tuple[str, ...], roots: tuple[Path, ...]) -> tuple[UploadFile, ...]:
    resolved = [real for root in roots if (real := _real(root)) is not None]
    return tuple(_read(path, resolved) for path in paths)


def _real(path: Path) -> Path | None:
    """The path with every link followed; nothing for one that leads in circles or can't be looked at."""
    try:
        return path.resolve(strict=False)
    except (OSError, RuntimeError, ValueError):
        return None


def _read(given: str, roots: Sequence[Path]) -> UploadFile:
    name = quoted(shown_name(given), 80)
    # A path without a root is looked for in the allowed folders, never beside the server.
    places = [Path(given)] if Path(given).is_absolute() else [root / given for root in roots]
    real = [path for place in places if (path := _real(place)) is not None]
    inside = [verdict.path for path in real if isinstance(verdict := judge_path(path, roots), Inside)]
    if not inside:
        raise PolicyDenied(
            "upload.path_not_allowed",
            f"The file {name} is not in a folder that files may be uploaded from.",
            "Ask the person to put it into Nova's uploads folder, or to allow its folder in upload_roots.",
        )
    for path in inside:
        root = next(root for root in roots if path.is_relative_to(root))
        if (found := _measured(path, root)) is not None:
            return found
    raise NotFound(
        "upload.not_found",
        f"There is no readable file {name}.",
        "Check the name; folders can't be uploaded.",
    )


def _measured(path: Path, root: Path) -> UploadFile | None:
    # A pipe would hold the opening for ever, and a link put there since must not be followed.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        descriptor = os.open(path, flags)
    except OSError:
        return None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return None
    digest, size = hashlib.sha256(), 0
    with os.fdopen(descriptor, "rb") as file:
        while size <= MAX_FILE_BYTES and (chunk := file.read(_CHUNK)):
            digest.update(chunk)
            size += len(chunk)
    if size > MAX_FILE_BYTES:
        raise InvalidParams(
            "invalid_params",
            f"paths: {quoted(path.name, 80)} is larger than {MAX_FILE_BYTES // _CHUNK} MB.",
            "Send a smaller file.",
        )
    return UploadFile(path, path.relative_to(root).as_posix(), path.name, size, digest.hexdigest())
