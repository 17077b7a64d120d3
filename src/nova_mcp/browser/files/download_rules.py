"""What a download may be called and how large it may grow; pure."""

import re
from dataclasses import dataclass
from typing import Final

MAX_NAME: Final = 120
MAX_EXTENSION: Final = 20
UNNAMED: Final = "download"
UNKNOWN_TYPE: Final = "application/octet-stream"

_FOREIGN = re.compile(r"[^A-Za-z0-9._ -]+")
_MIME = re.compile(r"[a-z0-9!#$&^_.+-]{1,63}/[a-z0-9!#$&^_.+-]{1,63}")
_TYPES: Final = {
    "csv": "text/csv",
    "doc": "application/msword",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "gif": "image/gif",
    "gz": "application/gzip",
    "html": "text/html",
    "ics": "text/calendar",
    "jpeg": "image/jpeg",
    "jpg": "image/jpeg",
    "json": "application/json",
    "md": "text/markdown",
    "mp3": "audio/mpeg",
    "mp4": "video/mp4",
    "ods": "application/vnd.oasis.opendocument.spreadsheet",
    "odt": "application/vnd.oasis.opendocument.text",
    "pdf": "application/pdf",
    "png": "image/png",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "svg": "image/svg+xml",
    "tar": "application/x-tar",
    "txt": "text/plain",
    "webp": "image/webp",
    "xls": "application/vnd.ms-excel",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "xml": "application/xml",
    "zip": "application/zip",
}
# Names that mean a device on some systems, whatever follows the first dot.
_DEVICES = frozenset({"con", "prn", "aux", "nul"} | {f"{kind}{n}" for kind in ("com", "lpt") for n in range(10)})


@dataclass(frozen=True, slots=True)
class DownloadLimits:
    """How much one file and one sandbox may hold, and how many files may arrive at once or lie there."""

    file_bytes: int = 200_000_000
    sandbox_bytes: int = 1_000_000_000
    at_once: int = 20
    files: int = 1000


def _shortened(name: str, room: int) -> str:
    """The name within its room; a plausible extension stays."""
    stem, dot, extension = name.rpartition(".")
    if not dot or not stem or len(extension) > MAX_EXTENSION:
        return name[:room]
    return f"{stem[: room - len(extension) - 1]}.{extension}"


def clean_name(raw: str) -> str:
    """A file name that stays in its folder on every system: the last part, plain characters, not hidden."""
    last = re.split(r"[/\\]", raw)[-1]
    name = _FOREIGN.sub("_", last).strip(" .")
    if name.partition(".")[0].strip().lower() in _DEVICES:
        name = f"_{name}"
    # A cut may leave a space or a dot at the end, which some systems drop and then find another file.
    return _shortened(name, MAX_NAME).rstrip(" .") or UNNAMED


def numbered(name: str, number: int) -> str:
    """The name to try when all before it are taken; the first try is the name itself."""
    if number < 2:
        return name
    suffix = f"-{number}"
    stem, dot, extension = name.rpartition(".")
    if not dot or not stem or len(extension) > MAX_EXTENSION:
        return f"{name[: MAX_NAME - len(suffix)]}{suffix}"
    return f"{stem[: MAX_NAME - len(suffix) - len(extension) - 1]}{suffix}.{extension}"


def mime_type(declared: str, name: str) -> str:
    """What the server called it, else what the name suggests."""
    told = declared.partition(";")[0].strip().lower()
    if _MIME.fullmatch(told):
        return told
    return _TYPES.get(name.rpartition(".")[2].lower(), UNKNOWN_TYPE)


@dataclass(frozen=True, slots=True)
class Stock:
    """What a sandbox has: bytes lying there, bytes arriving (this file left out), files lying there, files arriving."""

    kept_bytes: int = 0
    arriving_bytes: int = 0
    kept_files: int = 0
    arriving_files: int = 0


def refused_at_start(stock: Stock, limits: DownloadLimits) -> str | None:
    """Why a file may not even begin; None when it may."""
    if stock.arriving_files >= limits.at_once:
        return f"more than {limits.at_once} downloads at once"
    if stock.kept_files + stock.arriving_files >= limits.files:
        return f"the sandbox already keeps {limits.files} files"
    return refused_growth(1, 0, stock, limits)


def refused_growth(received: int, announced: int, stock: Stock, limits: DownloadLimits) -> str | None:
    """Why a file that has come this far may not go on; an announced size counts before it has come."""
    size = max(received, announced)
    if size > limits.file_bytes:
        return f"larger than {limits.file_bytes} bytes"
    if stock.kept_bytes + stock.arriving_bytes + size > limits.sandbox_bytes:
        return f"the sandbox's {limits.sandbox_bytes} bytes for downloads are used up"
    return None
