"""`nova notes … memory`: what a user wants remembered about a site."""

from dataclasses import replace
from typing import Annotated, Any

import typer
from sqlalchemy import Connection

from nova_mcp.cli.notes.note_options import LISTED, LOCAL, SHOWN_CHARS, NewText, Text, Whose, given_text, screened, told
from nova_mcp.cli.options import DataDir, Store, read_settings
from nova_mcp.cli.store.open_store import opened_for_writing
from nova_mcp.cli.terminal import fail, moment, note, print_table, say
from nova_mcp.core.clock import SystemClock, SystemIds
from nova_mcp.core.keywords import cut
from nova_mcp.memory.notes import memory_store
from nova_mcp.memory.notes.memory_store import Forgetting, NewMemory, Saved
from nova_mcp.memory.notes.model import MemoryRow
from nova_mcp.memory.notes.rules import decay_score
from nova_mcp.memory.notes.service import NoteKeeper, domain_excluded
from nova_mcp.settings import Settings
from nova_mcp.storage.engine import Database
from nova_mcp.tools.arguments import parse_arguments
from nova_mcp.tools.notes.browser_memory import MemoryNoteParams, memory_texts
from nova_mcp.tools.notes.note_params import parsed_domain
from nova_mcp.tools.times import utc

Id = Annotated[int, typer.Argument(metavar="ID", min=1, help="As `nova notes list memory` shows it.")]
Kind = Annotated[str, typer.Option("--type", metavar="TYPE", help="note, preference or context.")]
NewKind = Annotated[str | None, typer.Option("--type", metavar="TYPE", help="note, preference or context.")]
Domain = Annotated[str, typer.Option("--domain", metavar="HOST", help="The site it is about.")]
Pattern = Annotated[
    str | None, typer.Option("--url-pattern", metavar="PATH", help="Only on paths like this; * is any.")
]


def add(
    text: Text,
    domain: Domain,
    kind: Kind = "note",
    url_pattern: Pattern = None,
    principal: Whose = LOCAL,
    data_dir: DataDir = None,
    store: Store = None,
) -> None:
    """Remember something about a site; the same text again renews it."""
    settings = read_settings(data_dir, store)
    with told():
        given = {"content": given_text(text), "memoryType": kind, "urlPattern": url_pattern}
        p = _checked(settings, given)
        host = parsed_domain(domain)
        if principal == "*":
            fail("what is remembered about sites belongs to one principal", "leave --principal out, or name one")
        new = NewMemory(principal, host, p.memory_type, p.content, p.url_pattern, "user")
        with opened_for_writing(settings, create=True) as database:
            keeper = _keeper(database, settings)
            saved = database.write_sync(keeper.save, new, SystemClock().now_ms())
    if not keeper.remembers_for(principal):
        note(f"Browser Memory is off for {principal}: agents see it once notes.browser_memory.users names them.")
    verb = "Remembered" if saved.action == "created" else "Renewed"
    say(f"{verb}: {saved.row.memory_id} about {host}, until {moment(saved.row.expires_at_ms)}.")


def edit(
    memory_id: Id,
    text: NewText = None,
    kind: NewKind = None,
    url_pattern: Pattern = None,
    data_dir: DataDir = None,
    store: Store = None,
) -> None:
    """Change what is remembered; what is not named stays. An empty --url-pattern takes the pattern away."""
    settings = read_settings(data_dir, store)
    with told(), opened_for_writing(settings) as database:
        known = database.read_sync(memory_store.of_anybody, memory_id)
        if known is None:
            fail(f"there is no memory {memory_id}", "`nova notes list memory` shows those there are")
        given = {
            "content": known.content if text is None else given_text(text),
            "memoryType": kind or known.memory_type,
            "urlPattern": known.url_pattern if url_pattern is None else url_pattern or None,
        }
        p = _checked(settings, given)
        changed = replace(known, content=p.content, memory_type=p.memory_type, url_pattern=p.url_pattern, source="user")
        saved = _taken(database.write_sync(_edit, _keeper(database, settings), changed))
    say(f"Changed: {memory_id}, until {moment(saved.row.expires_at_ms)}.")


def _edit(conn: Connection, keeper: NoteKeeper, changed: MemoryRow) -> Saved | str:
    if (reason := keeper.excluded(conn, changed.domain)) is not None:
        raise domain_excluded(changed.domain, reason)
    return memory_store.edit(conn, changed, SystemClock().now_ms())


def delete(memory_id: Id, data_dir: DataDir = None, store: Store = None) -> None:
    """Forget it for good."""
    with opened_for_writing(read_settings(data_dir, store)) as database:
        known = database.read_sync(memory_store.of_anybody, memory_id)
        gone = 0 if known is None else database.write_sync(memory_store.forget, Forgetting(known.principal, memory_id))
    if not gone:
        fail(f"there is no memory {memory_id}", "`nova notes list memory` shows those there are")
    say(f"Forgotten: {memory_id}.")


def _checked(settings: Settings, given: dict[str, Any]) -> MemoryNoteParams:
    p = parse_arguments(MemoryNoteParams, given)
    screened(settings, memory_texts(p))
    return p


def _keeper(database: Database, settings: Settings) -> NoteKeeper:
    clock = SystemClock()
    return NoteKeeper(database, clock, SystemIds(clock), settings.notes)


def _taken(saved: Saved | str) -> Saved:
    if saved == "taken":
        fail("another memory of that site says so already", "delete one of the two")
    if not isinstance(saved, Saved):
        fail("it was forgotten meanwhile")
    return saved


# -- listing


def rows(database: Database, principal: str | None, domain: str | None) -> list[MemoryRow]:
    return database.read_sync(memory_store.every, principal, domain, LISTED + 1)


def show(found: list[MemoryRow], now_ms: int) -> None:
    columns = ("id", "principal", "host", "path", "type", "by", "score", "expires", "text")
    print_table(
        columns,
        [
            (
                one.memory_id,
                one.principal,
                one.domain,
                one.url_pattern or "",
                one.memory_type,
                one.source,
                f"{decay_score(one.memory_type, one.expires_at_ms, now_ms):.2f}",
                moment(one.expires_at_ms),
                cut(one.content, SHOWN_CHARS),
            )
            for one in found
        ],
    )


def as_json(one: MemoryRow, now_ms: int) -> dict[str, Any]:
    return {
        "memoryId": one.memory_id,
        "principal": one.principal,
        "domain": one.domain,
        "urlPattern": one.url_pattern,
        "memoryType": one.memory_type,
        "content": one.content,
        "source": one.source,
        "decayScore": decay_score(one.memory_type, one.expires_at_ms, now_ms),
        "accessCount": one.access_count,
        "expired": now_ms >= one.expires_at_ms,
        "createdAtUtc": utc(one.created_at_ms),
        "refreshedAtUtc": utc(one.refreshed_at_ms),
        "expiresAtUtc": utc(one.expires_at_ms),
    }
