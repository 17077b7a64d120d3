"""The folders downloads go to: private, one per sandbox, with a corner for what is still arriving."""

import hashlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from nova_mcp.browser.download_rules import clean_name, numbered

FOLDER = "downloads"
INCOMING = ".incoming"
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

    def prepare(self) -> None:
        """Make the folders and clear what an earlier server left half done."""
        shutil.rmtree(self.incoming, ignore_errors=True)
        self.incoming.mkdir(mode=0o700, parents=True)
        self.folder.chmod(0o700)

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
        _, count = self.kept()
        shutil.rmtree(self.folder, ignore_errors=True)
        return count
