"""Programs of other people from the npm registry, in a cache folder and without their install scripts."""

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from bench.packages import INSTALL_LIMIT_S, NotInstalled, cache_folder


def npm_installed(name: str, *requirements: str) -> Path:
    """The `node_modules` folder holding these packages, fetched once."""
    folder = cache_folder() / name
    mark = folder / ".complete"
    wanted = "\n".join(requirements)
    if not (mark.is_file() and mark.read_text(encoding="utf-8") == wanted):
        folder.mkdir(parents=True, exist_ok=True)
        _install(folder, requirements)
        mark.write_text(wanted, encoding="utf-8")
    return folder / "node_modules"


def _install(folder: Path, requirements: Sequence[str]) -> None:
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        raise NotInstalled(f"{folder.name}: there is no npm here")
    # Install scripts would fetch browsers; everybody gets the one that is here.
    quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    command = [npm, "install", *quiet, "--prefix", str(folder), *requirements]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=INSTALL_LIMIT_S)
    except (subprocess.SubprocessError, OSError) as error:
        told = (getattr(error, "stderr", None) or str(error)).strip()
        raise NotInstalled(f"{folder.name}: {told.splitlines()[-1] if told else error}") from error


def version_of(modules: Path, package: str) -> str:
    return str(json.loads((modules / package / "package.json").read_text(encoding="utf-8"))["version"])
