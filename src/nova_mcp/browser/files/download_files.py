"""The folders downloads go to: private, one per sandbox, with a corner for what is still arriving."""

import hashlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from nova_mcp.browser.files.download_rules import clean_name, numbered
from nova_mcp.core.file_lock import HeldBy, Hold, held_now, take_hold

FOLDER = "downloads"
INCOMING = ".incoming"
# Who owns the folder and which server has it open; no page can put a file there, because their names never begin so.
STATE = ".state"
UPLOADS = "uploads"
# Folders of Nova's own that no configured root opens.
_INTERNAL = frozenset({FOLDER, "sandboxes", "staging"})
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Filed:
    """A file that has arrived and got its name."""

    path: Path
    size: int
    sha256: str


class DownloadFiles:
    """The downloads of one sandbox on disk."""

    def __init__(self, data_dir: Path, sandbox_ref: str) -> None:
        self.folder = data_dir / FOLDER / sandbox_ref
        self.incoming = self.folder / INCOMING
        self._state = self.folder / STATE
        self._hold: Hold | None = None

    def prepare(self, principal: str) -> None:
        """Make the folders, note whose they are, and clear what an earlier server left half done."""
        if self._hold is None:
            taken = take_hold(self._state / "lock")
            self._hold = None if isinstance(taken, HeldBy) else taken
        (self._state / "owner").write_text(principal, encoding="utf-8")
        shutil.rmtree(self.incoming, ignore_errors=True)
        self.incoming.mkdir(mode=0o700, parents=True)
        self.folder.chmod(0o700)

    def release(self) -> None:
        """Another server may tidy up here from now on."""
        if self._hold is not None:
            self._hold.release()
            self._hold = None

    def kept(self) -> tuple[int, int]:
        """Bytes and number of the files that have arrived."""
        sizes = [entry.stat().st_size for entry in self._files()]
        return sum(sizes), len(sizes)

    def _files(self) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(self.folder) as entries:
                return [entry for entry in entries if entry.is_file(follow_symlinks=False)]
        except FileNotFoundError:
            return []

    def size(self, guid: str) -> int:
        return (self.incoming / guid).stat().st_size

    def file(self, guid: str, wanted: str) -> Filed:
        """Give an arrived file its name; a name that is taken gets a number, and nothing is ever overwritten."""
        source = self.incoming / guid
        digest = hashlib.sha256()
        with source.open("rb") as content:
            while part := content.read(_CHUNK):
                digest.update(part)
        source.chmod(0o600)
        target = self._reserved(clean_name(wanted))
        source.replace(target)
        return Filed(target, target.stat().st_size, digest.hexdigest())

    def _reserved(self, name: str) -> Path:
        number = 1
        while True:
            path = self.folder / numbered(name, number)
            try:
                os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            except FileExistsError:
                number += 1
                continue
            return path

    def discard(self, guid: str) -> None:
        (self.incoming / guid).unlink(missing_ok=True)

    def remove(self) -> int:
        """Delete everything; says how many files that were."""
        self.release()
        _, count = self.kept()
        shutil.rmtree(self.folder, ignore_errors=True)
        return count


def clear_partial(data_dir: Path) -> None:
    """Delete what was still arriving, or was refused, when its server died."""
    for incoming in (data_dir / FOLDER).glob(f"*/{INCOMING}"):
        if not held_now(incoming.parent / STATE / "lock"):
            shutil.rmtree(incoming, ignore_errors=True)


def owner_of(data_dir: Path, sandbox_ref: str) -> str | None:
    """The principal whose downloads a folder holds."""
    try:
        return (data_dir / FOLDER / sandbox_ref / STATE / "owner").read_text(encoding="utf-8")
    except (OSError, ValueError):
        return None


@dataclass(frozen=True, slots=True)
class OwnFiles:
    """What of Nova's data folder a principal may hand over: its finished downloads, and what a person put there."""

    data_dir: Path
    principal: str

    def covers(self, path: Path, root: Path) -> bool:
        """Whether a resolved path below a resolved root is within that; everything outside the data folder is."""
        home = self.data_dir.resolve()
        if not path.is_relative_to(home):
            return True
        match path.relative_to(home).parts:
            case (folder, sandbox_ref, name) if folder == FOLDER:
                return not name.startswith(".") and owner_of(home, sandbox_ref) == self.principal
            case (folder, *_):
                return folder == UPLOADS or (folder not in _INTERNAL and root != home and root.is_relative_to(home))
        return False
