"""`nova export`: knowledge as a pack that can be carried elsewhere."""

import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from sqlalchemy import Connection

from nova_mcp.cli.knowledge.site_arguments import SCOPE_HELP, named_site, nothing_known
from nova_mcp.cli.options import DataDir, Store, read_settings
from nova_mcp.cli.store.open_store import opened, store_file
from nova_mcp.cli.terminal import EXIT_FAILED, fail, json_text, note, say, visible
from nova_mcp.core.keywords import some
from nova_mcp.memory.knowledge import store as shelf
from nova_mcp.memory.knowledge.model import ScopeName
from nova_mcp.memory.promotion.import_pack import portable
from nova_mcp.secrets.store import open_secrets
from nova_mcp.settings import Settings
from nova_mcp.storage.engine import Database
from nova_mcp.tools.knowledge.pack import HEADER, categories_line, entry_line, parsed, read_line

app = typer.Typer(add_completion=False)

PIECE = 100


@app.command()
def export(
    scopes: Annotated[list[str] | None, typer.Argument(metavar="SCOPE", help=SCOPE_HELP)] = None,
    file: Annotated[Path | None, typer.Option("--file", metavar="FILE", help="Write it there, whole or not.")] = None,
    data_dir: DataDir = None,
    store: Store = None,
) -> None:
    """Write knowledge as a pack of JSON lines: what was learned, without evidence and without who learned it.

    Shadow and active entries go into it; candidates and retired ones do not. Without a site all of them are exported.
    """
    wanted = list(dict.fromkeys(named_site(one) for one in scopes or ()))
    settings = read_settings(data_dir, store)
    place = None if file is None else _place(file, settings)
    packing = _Packing(open_secrets(settings.data_dir).redactor.text)
    with opened(settings) as database:
        for scope in wanted:
            if database.read_sync(shelf.scope_row, scope) is None:
                nothing_known(scope)
        lines = packing.lines(database, sorted(wanted))
        if place is None:
            for line in lines:
                say(line)
        else:
            _write(place, lines)
    for left in packing.left_out:
        note(visible(left))
    if file is not None:
        counted = f"{some(packing.entries, 'entry', 'entries')} of {some(len(packing.sites), 'site')}"
        say(f"{counted} in {visible(file)}")


class _Packing:
    """The lines of a pack, read from the store in pieces; counts what went in and tells what did not."""

    def __init__(self, hides: Any) -> None:
        self._hides = hides
        self.entries = 0
        self.sites: set[ScopeName] = set()
        self.left_out: list[str] = []

    def lines(self, database: Database, wanted: list[ScopeName]) -> Iterator[str]:
        yield json_text(HEADER, line=True)
        for piece in _pieces(database, wanted):
            for value in database.read_sync(_bodies, piece):
                if (line := self._fit(value)) is not None:
                    yield line

    def _fit(self, value: dict[str, Any]) -> str | None:
        """The line, if it would be taken in elsewhere: what can't be read back, or holds a secret, stays here."""
        line = json_text(value, line=True)
        scope = value["scope"]
        try:
            read = read_line(parsed(line), 0, 0, self._hides)
        except ValueError as error:
            self.left_out.append(f"left out: {scope} {_name(value)}: {error}")
            return None
        if read.problems:
            self.left_out.append(f"left out: {scope} {_name(value)}: {read.problems[0].code}")
            return None
        self.sites.add(scope)
        self.entries += "serviceCategories" not in value
        return line


def _name(value: dict[str, Any]) -> str:
    entry = value.get("phenomenon") or value.get("domainHint") or {}
    return str(entry.get("id", "service categories"))


def _pieces(database: Database, wanted: list[ScopeName]) -> Iterator[list[ScopeName]]:
    if wanted:
        yield from (wanted[begin : begin + PIECE] for begin in range(0, len(wanted), PIECE))
        return
    after = ""
    while piece := database.read_sync(shelf.scopes, "", after, PIECE):
        yield [scope.name for scope, _ in piece]
        after = piece[-1][0].name


def _bodies(conn: Connection, scopes: list[ScopeName]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for scope in scopes:
        entries = [entry_line(scope, kept) for _, kept in portable(conn, scope)]
        about = shelf.scope_row(conn, scope)
        if entries and about is not None and about.service_categories:
            entries.append(categories_line(scope, about.service_categories))
        found += entries
    return found


def _place(file: Path, settings: Settings) -> Path:
    """Where the pack goes, links followed: a new file or in place of a plain one, and of nothing that Nova keeps."""
    path = Path(os.path.realpath(file))
    if path.exists() and not path.is_file():
        fail(f"{file} is no plain file", "name a file, or leave --file out and take the pack from stdout", EXIT_FAILED)
    kept = [settings.data_dir] if (db := store_file(settings)) is None else [settings.data_dir, db.parent]
    if path.exists() and any(path.is_relative_to(os.path.realpath(one)) for one in kept):
        fail(f"{file} is where Nova keeps its own", "name a file elsewhere with --file", EXIT_FAILED)
    return path


def _write(path: Path, lines: Iterator[str]) -> None:
    """A file that is there is replaced in one step, so that a half-written pack never takes its place."""
    beside = path.with_name(f".{path.name}.nova-{secrets.token_hex(4)}")
    try:
        try:
            descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as file:
                for line in lines:
                    file.write(line + "\n")
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        fail(f"{path} can't be written: {error.strerror or error}", "name another file with --file", EXIT_FAILED)
