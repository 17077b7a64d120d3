"""The files of an upload: found inside the allowed folders, copied and hashed before any page hears of them."""

import hashlib
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

import anyio.to_thread

from nova_mcp.browser.files.download_files import OwnFiles
from nova_mcp.browser.files.upload_rules import MAX_FILE_BYTES, Inside, judge_path, shown_name
from nova_mcp.browser.perceive.element_lines import quoted
from nova_mcp.errors import Blocked, InvalidParams, NotFound, PolicyDenied

_CHUNK: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class UploadFile:
    """One file as it will be handed over; its folder is told to nobody."""

    # Nova's own copy: whoever can write to the original can't change what was hashed.
    path: Path
    # The same file as it can be named without its folder.
    short: str
    file_name: str
    size: int
    sha256: str


async def read_files(
    paths: Sequence[str], roots: Sequence[Path], staging: Path, own: OwnFiles
) -> tuple[UploadFile, ...]:
    """A copy of every file, or a refusal that names the first one that can't be taken by its bare name."""
    return await anyio.to_thread.run_sync(_read_all, tuple(paths), tuple(roots), staging, own, abandon_on_cancel=True)


def _read_all(paths: tuple[str, ...], roots: tuple[Path, ...], staging: Path, own: OwnFiles) -> tuple[UploadFile, ...]:
    resolved = [real for root in roots if (real := _real(root)) is not None]
    # A folder for each: two files may have the same name.
    return tuple(_read(path, resolved, staging / str(number), own) for number, path in enumerate(paths))


def _real(path: Path) -> Path | None:
    """The path with every link followed; nothing for one that leads in circles or can't be looked at."""
    try:
        return path.resolve(strict=False)
    except (OSError, RuntimeError, ValueError):
        return None


def _read(given: str, roots: Sequence[Path], staging: Path, own: OwnFiles) -> UploadFile:
    name = quoted(shown_name(given), 80)
    # A path without a root is looked for in the allowed folders, never beside the server.
    places = [Path(given)] if Path(given).is_absolute() else [root / given for root in roots]
    real = [path for place in places if (path := _real(place)) is not None]
    inside = [verdict.path for path in real if isinstance(verdict := judge_path(path, roots), Inside)]
    if not inside:
        raise PolicyDenied(
            "upload.path_not_allowed",
            f"The file {name} is not in a folder that files may be uploaded from.",
        )
    for path in inside:
        # Of several roots that hold a file the innermost one was meant for it.
        root = max((root for root in roots if path.is_relative_to(root)), key=lambda found: len(found.parts))
        # Another principal's files, and those of Nova's own, answer like files that are not there.
        if own.covers(path, root) and (found := _staged(path, root, staging)) is not None:
            return found
    raise NotFound("upload.not_found", f"There is no readable file {name}.")


def _staged(path: Path, root: Path, staging: Path) -> UploadFile | None:
    # A pipe would hold the opening for ever, and a link put there since must not be followed.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        descriptor = os.open(path, flags)
    except OSError:
        return None
    facts = os.fstat(descriptor)
    if not stat.S_ISREG(facts.st_mode) or not _opened_is(descriptor, path):
        os.close(descriptor)
        return None
    with os.fdopen(descriptor, "rb") as source:
        copy = staging / path.name
        try:
            size, digest = _copied(source, copy, path.name)
            # Pages may ask when a file was last changed.
            os.utime(copy, ns=(facts.st_atime_ns, facts.st_mtime_ns))
        except OSError as error:
            raise _no_room(path.name, error) from error
    return UploadFile(copy, path.relative_to(root).as_posix(), path.name, size, digest)


def _opened_is(descriptor: int, path: Path) -> bool:
    """Whether the opened file is the one that was judged: a folder on its way may have become a link since."""
    try:
        return Path(f"/proc/self/fd/{descriptor}").readlink() == path
    except OSError:
        # Only some systems can tell.
        return True


def _copied(source: BinaryIO, copy: Path, name: str) -> tuple[int, str]:
    copy.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    digest, size = hashlib.sha256(), 0
    with os.fdopen(os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as target:
        while size <= MAX_FILE_BYTES and (chunk := source.read(_CHUNK)):
            digest.update(chunk)
            size += len(chunk)
            target.write(chunk)
    if size > MAX_FILE_BYTES:
        raise InvalidParams(
            "invalid_params",
            f"paths: {quoted(name, 80)} is larger than {MAX_FILE_BYTES // _CHUNK} MB.",
            "Send a smaller file.",
        )
    return size, digest.hexdigest()


def _no_room(name: str, error: OSError) -> Blocked:
    return Blocked(
        "storage.low_free_space",
        f"{quoted(name, 80)} could not be copied for the upload: {error.strerror or 'the disk refused it'}.",
        "Free disk space, or look at the rights of the data folder.",
        retry_after_ms=60_000,
    )
