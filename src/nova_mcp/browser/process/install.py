"""Makes sure there is a Chromium: an installed one, else Playwright's download, else the system's package."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from playwright.sync_api import sync_playwright

from nova_mcp.browser.process.find_chromium import Found, find_browser, this_machine
from nova_mcp.errors import Unavailable

DOWNLOAD_LIMIT_S = 600

Say = Callable[[str], None]


def installed_browser(override: Path | None = None) -> Found | None:
    """The browser Nova would start now, or nothing."""
    with sync_playwright() as driver:
        managed = driver.chromium.executable_path
    try:
        return find_browser(override, this_machine(managed))
    except Unavailable:
        return None


def system_commands(which: Callable[[str], str | None], uid: int | None) -> list[list[str]]:
    """How this operating system installs a Chromium; empty when only the user can."""
    become = [] if uid == 0 else ["sudo", "-n"]
    if become and which("sudo") is None:
        return []
    if which("apt-get"):
        return [
            [*become, "apt-get", "update", "-qq"],
            [*become, "apt-get", "install", "-y", "-qq", "chromium", "fonts-liberation"],
        ]
    if which("dnf"):
        return [[*become, "dnf", "install", "-y", "chromium"]]
    if which("pacman"):
        return [[*become, "pacman", "-S", "--noconfirm", "chromium"]]
    if which("apk"):
        return [[*become, "apk", "add", "chromium"]]
    return []


def _runs(command: Sequence[str], say: Say) -> bool:
    say("running " + " ".join(command))
    try:
        done = subprocess.run(  # noqa: S603 - fixed commands, no user text
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=DOWNLOAD_LIMIT_S,
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        say(f"that failed: {error}")
        return False
    if done.returncode != 0:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        say(f"that failed with code {done.returncode}: {lines[-1] if lines else 'no message'}")
    return done.returncode == 0


def ensure_browser(say: Say, override: Path | None = None) -> Found | None:
    """Find or install a browser; says plainly what it does and what it could not do."""
    if (found := installed_browser(override)) is not None:
        say(f"browser: {found.path} ({found.source})")
        return found
    say("no Chromium, Chrome or Edge is installed; trying to get one")
    if not _runs([sys.executable, "-m", "playwright", "install", "chromium"], say):
        uid = os.geteuid() if hasattr(os, "geteuid") else None
        for command in system_commands(shutil.which, uid):
            _runs(command, say)
    if (found := installed_browser(override)) is not None:
        say(f"browser: {found.path} ({found.source})")
        return found
    say("no browser could be installed; install Chromium by hand, or point NOVA_BROWSER at one")
    return None


def main() -> int:
    def say(line: str) -> None:
        print(f"nova setup: {line}", file=sys.stderr)  # noqa: T201 - this module is a command

    return 0 if ensure_browser(say) is not None else 1


if __name__ == "__main__":
    sys.exit(main())
