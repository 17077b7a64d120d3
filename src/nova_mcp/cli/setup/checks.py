"""What `nova doctor` looks at, one check after the other, without changing anything."""

import os
import shutil
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit, urlunsplit

from sqlalchemy.exc import ArgumentError

from nova_mcp.browser.process.install import installed_browser
from nova_mcp.cli.setup.client_files import Launch
from nova_mcp.cli.setup.self_test import Broke, Worked, environment, self_test
from nova_mcp.cli.store.open_store import shown_url, store_file
from nova_mcp.cli.store.store_check import file_problems
from nova_mcp.cli.terminal import size
from nova_mcp.core.keywords import some
from nova_mcp.core.stop_file import stop_requested
from nova_mcp.evidence.store import heads
from nova_mcp.server.http.bearer_tokens import FILE_NAME
from nova_mcp.settings import Settings
from nova_mcp.storage.engine import Database
from nova_mcp.storage.errors import StoreUnavailable

SELF_TEST_S = 30.0
MB = 1_000_000
# What only a server leaves in its folder: where one of these is, there was a store.
MADE_BY_SERVERS = (FILE_NAME, "downloads", "screenshots")
SHOWN_TRACES = 5


@dataclass(frozen=True, slots=True)
class Check:
    """One finding; `broken` means Nova can't do its work."""

    name: str
    state: Literal["ok", "warning", "broken"]
    detail: str
    fix: str = ""


def examine(settings: Settings, *, start: bool) -> Iterator[Check]:
    yield Check("version", "ok", f"Python {sys.version.split()[0]} on {sys.platform}")
    yield data_folder(settings.data_dir)
    yield free_space(settings)
    yield stop_state(settings)
    yield from token_file(settings)
    yield from store_and_ledger(settings)
    found = browser(settings)
    yield found
    if start and found.state != "broken":
        yield trial(settings)


def nearest_folder(path: Path) -> Path:
    """The folder itself, or the one above it that exists."""
    return next((folder for folder in (path, *path.parents) if folder.exists()), path)


def data_folder(path: Path) -> Check:
    there = nearest_folder(path)
    if there.is_dir() and os.access(there, os.W_OK | os.X_OK):
        return Check("data folder", "ok", str(path) if there == path else f"{path} (made on first use)")
    return Check(
        "data folder", "broken", f"{there} can't be written", "choose another with --data-dir or NOVA_DATA_DIR"
    )


def free_space(settings: Settings) -> Check:
    try:
        free = shutil.disk_usage(nearest_folder(settings.data_dir)).free
    except OSError as error:
        return Check("disk", "warning", f"free space can't be read: {error}")
    if free < settings.gates.critical_disk_mb * MB:
        return Check("disk", "broken", f"{size(free)} free", "free some space: Nova refuses to act without evidence")
    if free < settings.gates.low_disk_mb * MB:
        fix = f"calls that act are refused below {settings.gates.low_disk_mb} MB; `nova db prune` erases what is old"
        return Check("disk", "warning", f"{size(free)} free", fix)
    return Check("disk", "ok", f"{size(free)} free")


def stop_state(settings: Settings) -> Check:
    if stop_requested(settings.stop_file):
        return Check("emergency stop", "warning", "set: every call is refused", "`nova resume` lifts it")
    return Check("emergency stop", "ok", "not set")


def token_file(settings: Settings) -> Iterator[Check]:
    path = settings.data_dir / FILE_NAME
    if os.name != "nt" and path.exists() and stat.S_IMODE(path.stat().st_mode) & 0o077:
        yield Check("HTTP token", "warning", f"{path} can be read by others", f"chmod 600 '{path}'")


def store_and_ledger(settings: Settings) -> Iterator[Check]:
    try:
        path = store_file(settings)
        address = shown_url(settings)
    except ArgumentError:
        yield Check("store", "broken", "its address can't be read", "use sqlite:///path or postgresql://…")
        return
    if path is not None and not path.exists():
        yield missing_store(path)
        return
    if path is not None and (problems := file_problems(path)):
        yield Check("store", "broken", "; ".join(problems), "keep a copy of the file before anything else")
        return
    try:
        with Database.open_for_reading(settings.store_url, older=True) as database:
            chains = database.read_sync(heads)
    except (StoreUnavailable, ValueError) as error:
        yield Check("store", "broken", str(error), getattr(error, "hint", ""))
        return
    yield Check("store", "ok", f"{address}, sound")
    counted = f"{some(sum(chain.head_seq for chain in chains), 'record')} in {some(len(chains), 'chain')}"
    yield Check("ledger", "ok", f"{counted}; `nova ledger verify` walks them")


def missing_store(path: Path) -> Check:
    """A store that is not there yet, or one that was there and is gone."""
    traces = sorted(file.name for file in path.parent.glob(f"{path.name}*"))
    traces += sorted(name for name in MADE_BY_SERVERS if (path.parent / name).exists())
    if not traces:
        return Check("store", "ok", f"{path} (made on first use)")
    fix = "put it back before a server starts, which would begin a new one; or correct --data-dir"
    return Check("store", "broken", f"{path} is gone, beside {', '.join(traces[:SHOWN_TRACES])}", fix)


def browser(settings: Settings) -> Check:
    if settings.browser.cdp_endpoint is not None:
        return Check("browser", "ok", f"a running one at {shown_endpoint(settings.browser.cdp_endpoint)}")
    found = installed_browser(settings.browser.executable)
    if found is not None:
        return Check("browser", "ok", f"{found.path} ({found.source})")
    if settings.browser.executable is not None:
        return Check("browser", "broken", f"{settings.browser.executable} can't be run", "correct --browser")
    return Check(
        "browser", "broken", "none found", "`nova setup CLIENT` installs one, or run: playwright install chromium"
    )


def trial(settings: Settings) -> Check:
    launch = Launch(sys.executable, ("-m", "nova_mcp.cli", "serve"))
    match self_test(launch, environment(settings), SELF_TEST_S):
        case Worked(tools, seconds):
            return Check("trial", "ok", f"{tools} tools listed, a page written and read back in {seconds:.1f} s")
        case Broke(step, detail):
            return Check("trial", "broken", f"{step}: {detail}", "`nova serve --log-level debug` tells more")


def shown_endpoint(address: str) -> str:
    """Without user, password, path and query: providers put keys into all of them."""
    try:
        parts = urlsplit(address)
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
        place = f"{host}:{parts.port}" if parts.port else host
    except ValueError:
        return "(hidden)"
    hidden = "/…" if parts.path.strip("/") or parts.query or parts.username else ""
    return urlunsplit((parts.scheme, place, "", "", "")) + hidden


def shown_settings(settings: Settings) -> dict[str, Any]:
    """Every setting by its dotted name, secrets left out."""
    tree = settings.model_dump(mode="json")
    tree["store"] = shown_url(settings)
    if settings.browser.cdp_endpoint is not None:
        tree["browser"]["cdp_endpoint"] = shown_endpoint(settings.browser.cdp_endpoint)
    flat: dict[str, Any] = {}
    for name, value in tree.items():
        if isinstance(value, dict):
            flat.update({f"{name}.{inner}": entry for inner, entry in value.items()})
        else:
            flat[name] = value
    return flat
