"""An environment that holds a wheel and what it declares, nothing else."""

import os
import subprocess
import sys
import venv
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Installed:
    """A virtual environment in which nothing but the wheel and its declared dependencies can be imported."""

    folder: Path
    dependencies: frozenset[str]

    @property
    def programs(self) -> Path:
        return self.folder / "bin"

    def environment(self) -> dict[str, str]:
        """Nothing of the developer's environment leads back to the checkout or to their own data."""
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("NOVA_", "PYTHON", "VIRTUAL"))
        }
        return kept | {"PATH": f"{self.programs}{os.pathsep}{os.environ['PATH']}", "HOME": str(self.folder)}

    def run(self, *words: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self.programs / str(words[0])), *map(str, words[1:])],
            env=self.environment(),
            cwd=cwd or self.folder,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )


def declared(requirements: list[str], extras: frozenset[str] = frozenset()) -> Iterator[Distribution]:
    """Everything that installing these brings along, as it is installed here."""
    seen: set[tuple[str, frozenset[str]]] = set()
    waiting = [Requirement(text) for text in requirements]
    while waiting:
        wanted = waiting.pop()
        if wanted.marker is not None and not any(wanted.marker.evaluate({"extra": extra}) for extra in {"", *extras}):
            continue
        key = (canonicalize_name(wanted.name), frozenset(wanted.extras))
        if key in seen:
            continue
        seen.add(key)
        found = distribution(wanted.name)
        assert wanted.specifier.contains(found.version, prereleases=True), f"{wanted} is not what is installed"
        yield found
        for text in found.requires or ():
            inner = Requirement(text)
            active = {"", *wanted.extras}
            if inner.marker is None or any(inner.marker.evaluate({"extra": extra}) for extra in active):
                inner.marker = None
                waiting.append(inner)


def install(wheel: Path, folder: Path) -> Installed:
    """No index is asked: dependencies are links to what the lock put into this environment."""
    venv.create(folder, with_pip=False, symlinks=True)
    (target,) = folder.glob("lib/python*/site-packages")
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python")]
    done = subprocess.run(
        [*pip, "install", "--quiet", "--no-index", "--no-deps", "--disable-pip-version-check", str(wheel)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (metadata,) = target.glob("nova_mcp-*.dist-info")
    own = Distribution.at(metadata)
    names = set()
    for found in declared(list(own.requires or ())):
        names.add(canonicalize_name(found.metadata["Name"]))
        for top in {file.parts[0] for file in found.files or () if file.parts[0] not in ("..", "__pycache__")}:
            link = target / top
            if not link.exists():
                link.symlink_to(Path(str(found.locate_file(top))))
    return Installed(folder, frozenset(names))
