"""`nova notes … operator`: working rules that apply across tasks."""

from typing import Annotated, Any

import typer

from nova_mcp.cli.notes.note_options import (
    LISTED,
    LOCAL,
    SHOWN_CHARS,
    Everybody,
    NewText,
    Text,
    Whose,
    given_text,
    screened,
    told,
)
from nova_mcp.cli.options import DataDir, Store, read_settings
from nova_mcp.cli.store.open_store import opened_for_writing
from nova_mcp.cli.terminal import fail, moment, print_table, say
from nova_mcp.core.clock import SystemClock, SystemIds
from nova_mcp.core.keywords import cut
from nova_mcp.memory.notes import operator_store
from nova_mcp.memory.notes.model import EVERYBODY, OperatorNote
from nova_mcp.memory.notes.operator_store import Draft, Stored, united
from nova_mcp.memory.notes.service import accepted
from nova_mcp.settings import Settings
from nova_mcp.storage.engine import Database
from nova_mcp.tools.arguments import parse_arguments
from nova_mcp.tools.notes.operator_notes import StoreNoteParams, note_texts
from nova_mcp.tools.times import utc

Id = Annotated[str, typer.Argument(metavar="ID", help="As `nova notes list operator` shows it.")]
Tags = Annotated[list[str], typer.Option("--tag", metavar="TAG", help="A word to find it by; may be given often.")]
NewTags = Annotated[list[str] | None, typer.Option("--tag", metavar="TAG", help="New tags instead of those there are.")]
Category = Annotated[str | None, typer.Option("--category", metavar="NAME")]


def add(
    text: Text,
    tag: Tags,
    category: Category = None,
    principal: Whose = LOCAL,
    everybody: Everybody = False,
    data_dir: DataDir = None,
    store: Store = None,
) -> None:
    """Store a working rule; the same text again adds its tags."""
    settings = read_settings(data_dir, store)
    whose = EVERYBODY if everybody else principal
    with told():
        p = _checked(settings, {"content": given_text(text), "tags": list(tag), "category": category})
        draft = Draft(whose, p.content, united((), p.tags), p.category, "user")
        with opened_for_writing(settings, create=True) as database:
            stored = _written(database, draft)
    say(f"{stored.action.capitalize()}: {stored.note.note_id}, revision {stored.note.rev}.")


def edit(
    note_id: Id,
    text: NewText = None,
    tag: NewTags = None,
    category: Category = None,
    data_dir: DataDir = None,
    store: Store = None,
) -> None:
    """Change a working rule, whoever wrote it; what is not named stays, and it is the user's from then on."""
    settings = read_settings(data_dir, store)
    with told(), opened_for_writing(settings) as database:
        known = _known(database, note_id)
        given = {
            "content": known.content if text is None else given_text(text),
            "tags": list(tag) if tag else list(known.tags),
            "category": category if category is not None else known.category,
        }
        p = _checked(settings, given)
        draft = Draft(known.principal, p.content, united((), p.tags), p.category, "user", note_id)
        stored = _written(database, draft)
    say(f"{stored.action.capitalize()}: {note_id}, revision {stored.note.rev}.")


def delete(note_id: Id, data_dir: DataDir = None, store: Store = None) -> None:
    """Delete a working rule, whoever wrote it."""
    with opened_for_writing(read_settings(data_dir, store)) as database:
        known = _known(database, note_id)
        database.write_sync(operator_store.remove, known.principal, note_id, "user")
    say(f"Deleted: {note_id}.")


def _known(database: Database, note_id: str) -> OperatorNote:
    known = database.read_sync(operator_store.of_anybody, note_id)
    if known is None:
        fail(f"there is no note {note_id[:80]}", "`nova notes list operator` shows those there are")
    return known


def _checked(settings: Settings, given: dict[str, Any]) -> StoreNoteParams:
    p = parse_arguments(StoreNoteParams, given)
    screened(settings, note_texts(p))
    return p


def _written(database: Database, draft: Draft) -> Stored:
    clock = SystemClock()
    outcome = accepted(database.write_sync(operator_store.store, draft, clock.now_ms(), SystemIds(clock).token))
    if not isinstance(outcome, Stored):
        raise AssertionError("no revision was asked for")
    return outcome


# -- listing


def rows(database: Database, principal: str | None) -> list[OperatorNote]:
    return database.read_sync(operator_store.every, principal, LISTED + 1)


def show(found: list[OperatorNote]) -> None:
    columns = ("id", "principal", "by", "rev", "tags", "category", "found", "updated", "text")
    print_table(
        columns,
        [
            (
                one.note_id,
                one.principal,
                one.source,
                one.rev,
                ", ".join(one.tags),
                one.category or "",
                one.match_count,
                moment(one.updated_at_ms),
                cut(one.content, SHOWN_CHARS),
            )
            for one in found
        ],
    )


def as_json(one: OperatorNote) -> dict[str, Any]:
    return {
        "id": one.note_id,
        "principal": one.principal,
        "content": one.content,
        "tags": list(one.tags),
        "category": one.category,
        "source": one.source,
        "rev": one.rev,
        "matchCount": one.match_count,
        "lastMatchedAtUtc": None if one.last_matched_at_ms is None else utc(one.last_matched_at_ms),
        "createdAtUtc": utc(one.created_at_ms),
        "updatedAtUtc": utc(one.updated_at_ms),
    }
