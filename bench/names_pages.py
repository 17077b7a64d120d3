"""Whole pages that npm packages ship, unpacked into the cache folder and served on loopback."""

import functools
import shutil
import subprocess
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from bench.packages import INSTALL_LIMIT_S, NotInstalled, cache_folder


@dataclass(frozen=True, slots=True)
class Package:
    """A package, the pages of it that are looked at, and how many of them in a short run."""

    name: str
    version: str
    pages: str
    short: int = 4

    @property
    def folder(self) -> str:
        return f"{self.name}-{self.version}"


PACKAGES = (
    Package("startbootstrap-sb-admin", "7.0.7", "dist/*.html"),
    Package("startbootstrap-sb-admin", "4.0.0", "*.html"),
    Package("startbootstrap-sb-admin-2", "4.1.4", "*.html"),
    Package("admin-lte", "3.2.0", "pages/**/*.html", 6),
    Package("gentelella", "4.2.0", "dist/production/*.html", 6),
    Package("govuk-frontend", "6.6.0", "dist/govuk/components/*/template*.html", 30),
    Package("foundation-sites", "6.9.0", "test/visual/*/*.html", 10),
    Package("bulma-templates", "0.6.0", "templates/*.html"),
    Package("material-dashboard", "3.1.0", "pages/*.html"),
    Package("startbootstrap-freelancer", "7.0.7", "dist/*.html"),
    Package("startbootstrap-clean-blog", "6.0.9", "dist/*.html"),
)


def unpacked(package: Package) -> Path:
    """The package's own files, fetched once and without what it depends on."""
    folder = cache_folder() / "names" / package.folder
    mark = folder / ".complete"
    if not mark.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        _fetch(package, folder)
        mark.touch()
    return folder / "package"


def _fetch(package: Package, folder: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise NotInstalled(f"{package.folder}: there is no npm here")
    command = [npm, "pack", "--silent", "--ignore-scripts", f"{package.name}@{package.version}"]
    try:
        told = subprocess.run(
            command, check=True, capture_output=True, text=True, timeout=INSTALL_LIMIT_S, cwd=folder
        ).stdout
        archive = folder / told.split()[-1]
        with tarfile.open(archive) as packed:
            packed.extractall(folder, filter="data")
    except (subprocess.SubprocessError, OSError, tarfile.TarError, IndexError) as error:
        raise NotInstalled(f"{package.folder}: {error}") from error
    archive.unlink()


def chosen(pages: list[Path], most: int) -> list[Path]:
    """At most so many pages, spread evenly over their sorted list; the same ones every time."""
    if len(pages) <= most:
        return pages
    return [pages[index * len(pages) // most] for index in range(most)]


def pages_of(package: Package, *, long: bool) -> list[str]:
    """Paths below the package's own folder."""
    root = unpacked(package)
    pages = sorted(page for page in root.glob(package.pages) if page.is_file())
    return [str(page.relative_to(root)) for page in (pages if long else chosen(pages, package.short))]


class _Silent(SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        return


@contextmanager
def served(root: Path) -> Iterator[str]:
    """The address of a folder on loopback."""
    listener = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Silent, directory=str(root)))
    thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.server_address[1]}"
    finally:
        listener.shutdown()
        listener.server_close()
        thread.join()
