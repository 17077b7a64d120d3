"""Material of other people, installed into a cache folder beside Nova and never into its environment."""

import os
import subprocess
import sys
from pathlib import Path

import platformdirs

CACHE_VARIABLE = "NOVA_LAB_CACHE"
INSTALL_LIMIT_S = 300


class NotInstalled(Exception):
    """The package registry gave nothing; the lab can't run here."""


def cache_folder() -> Path:
    given = os.environ.get(CACHE_VARIABLE)
    return Path(given) if given else Path(platformdirs.user_cache_dir("nova-mcp", appauthor=False)) / "labs"


def installed(name: str, *requirements: str) -> Path:
    """A folder holding exactly these packages, fetched once."""
    folder = cache_folder() / name
    mark = folder / ".complete"
    if mark.is_file() and mark.read_text(encoding="utf-8") == "\n".join(requirements):
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--upgrade", "--target", str(folder)]
    try:
        subprocess.run([*command, *requirements], check=True, capture_output=True, text=True, timeout=INSTALL_LIMIT_S)
    except (subprocess.SubprocessError, OSError) as error:
        told = getattr(error, "stderr", None) or str(error)
        raise NotInstalled(f"{name}: {told.strip().splitlines()[-1] if told.strip() else error}") from error
    mark.write_text("\n".join(requirements), encoding="utf-8")
    return folder
