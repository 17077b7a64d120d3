"""Finding a Chromium: the order of candidates is pure, looking at the disk is not."""

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from nova_mcp.errors import Unavailable

PATH_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "microsoft-edge")

_LINUX = (
    "/usr/bin/chromium",
    "/usr/bin/chromium-browser",
    "/usr/bin/google-chrome-stable",
    "/opt/google/chrome/chrome",
    "/opt/microsoft/msedge/msedge",
    "/snap/bin/chromium",
    "/var/lib/flatpak/exports/bin/org.chromium.Chromium",
)
_MAC_APPS = ("Chromium", "Google Chrome", "Microsoft Edge")
_WINDOWS = (
    "Chromium/Application/chrome.exe",
    "Google/Chrome/Application/chrome.exe",
    "Microsoft/Edge/Application/msedge.exe",
)
_WINDOWS_ROOTS = ("PROGRAMFILES", "PROGRAMFILES(X86)", "LOCALAPPDATA")


@dataclass(frozen=True, slots=True)
class Found:
    """A browser to start and where it came from."""

    path: Path
    source: str


@dataclass(frozen=True, slots=True)
class Machine:
    """What discovery asks the computer: file probing as data so that the order can be tested anywhere."""

    platform: str
    environ: Mapping[str, str]
    home: Path
    managed: Path | None

    def on_path(self, name: str) -> Path | None:
        found = shutil.which(name, path=self.environ.get("PATH", ""))
        return Path(found) if found else None

    def runnable(self, path: Path) -> bool:
        return path.is_file() and os.access(path, os.X_OK)


def install_paths(platform: str, environ: Mapping[str, str], home: Path) -> tuple[Path, ...]:
    """Where installers put browsers on this operating system, in the order they are tried."""
    if platform == "darwin":
        folders = (Path("/Applications"), home / "Applications")
        return tuple(folder / f"{app}.app" / "Contents" / "MacOS" / app for folder in folders for app in _MAC_APPS)
    if platform == "win32":
        roots = tuple(Path(environ[name]) for name in _WINDOWS_ROOTS if environ.get(name))
        return tuple(root / tail for tail in _WINDOWS for root in roots)
    return tuple(Path(path) for path in _LINUX)


def this_machine(managed: str | None) -> Machine:
    """The computer we run on; `managed` is the path Playwright would use for a browser of its own."""
    return Machine(sys.platform, os.environ, Path.home(), Path(managed) if managed else None)


def find_browser(override: Path | None, machine: Machine) -> Found:
    """Override, then PATH, then install folders, then Playwright's own; an override never falls through."""
    if override is not None:
        if not machine.runnable(override):
            raise Unavailable(
                "browser.launch_failed",
                f'The browser "{override}" is missing or not executable.',
                "Correct --browser or NOVA_BROWSER, or leave it out to let Nova search.",
            )
        return Found(override, "override")
    for name in PATH_NAMES:
        if (path := machine.on_path(name)) is not None:
            return Found(path, "path")
    places = install_paths(machine.platform, machine.environ, machine.home)
    for path in places:
        if machine.runnable(path):
            return Found(path, "installed")
    if machine.managed is not None and machine.runnable(machine.managed):
        return Found(machine.managed, "playwright")
    tried = [*(f"PATH:{name}" for name in PATH_NAMES), *(str(path) for path in places)]
    tried.append(f"Playwright: {machine.managed}" if machine.managed else "Playwright: none")
    raise Unavailable(
        "browser.not_found",
        hint=f"Run `playwright install chromium` or set NOVA_BROWSER. Tried: {', '.join(tried)}.",
    )


def has_display(platform: str, environ: Mapping[str, str]) -> bool:
    """Whether a window can be shown; only systems where the environment tells can say no."""
    if platform in ("win32", "darwin"):
        return True
    return bool(environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY"))
