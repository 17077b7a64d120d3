"""What a measurement ran on: machine, versions, commit."""

import importlib.metadata
import os
import platform
import sqlite3
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil

from bench.postgres import find_postgres
from bench.results import Environment
from nova_mcp import __version__
from nova_mcp.browser.process.find_chromium import find_browser, this_machine
from nova_mcp.errors import NovaError

ROOT = Path(__file__).resolve().parent.parent
LIMIT_S = 30
PACKAGES = (("Playwright", "playwright"), ("mcp", "mcp"), ("SQLAlchemy", "SQLAlchemy"))


def _said(command: Sequence[str]) -> str:
    """What a program prints about itself; nothing when there is no such program."""
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=LIMIT_S)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def commit() -> str:
    """The commit measured, and whether the tree held more than it; results and pages of reports don't count."""
    changed = _said(["git", "status", "--porcelain", "--", "src", "bench", "tests", ":!bench/results"])
    name = _said(["git", "rev-parse", "--short=10", "HEAD"])
    return f"{name or 'unknown'}{' and changes' if changed else ''}"


def _chromium() -> str:
    try:
        found = find_browser(None, this_machine(None))
    except NovaError:
        return "not found"
    said = _said([str(found.path), "--version"])
    return next((word for word in said.split() if word[0].isdigit()), said or "unknown")


def _postgres() -> str:
    try:
        said = _said([str(find_postgres() / "postgres"), "--version"])
    except LookupError:
        return "not found"
    return next((word for word in said.split() if word[0].isdigit()), said or "unknown")


def _versions() -> Iterator[tuple[str, str]]:
    yield "Nova", __version__
    yield "Python", platform.python_version()
    yield "Chromium", _chromium()
    for name, package in PACKAGES:
        yield name, importlib.metadata.version(package)
    yield "SQLite", sqlite3.sqlite_version
    yield "PostgreSQL", _postgres()


def this_environment() -> Environment:
    return Environment(
        cores=os.cpu_count() or 1,
        memory_gb=round(psutil.virtual_memory().total / 1e9, 1),
        kernel=f"{platform.system()} {platform.release()} {platform.machine()}",
        commit=commit(),
        versions=tuple(_versions()),
    )
