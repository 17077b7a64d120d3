"""`nova notes … domain`: what every agent must know on a site, and whether it has to acknowledge that first."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

import typer

from nova_mcp.cli.notes.note_options import (
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
from nova_mcp.cli.terminal import fail, moment, note, print_table, say
from nova_mcp.core.clock import SystemClock, SystemIds
from nova_mcp.core.keywords import cut
from nova_mcp.core.values import Json
from nova_mcp.memory.notes import domain_refusals, domain_store
from nova_mcp.memory.notes.domain_model import DomainNote
from nova_mcp.memory.notes.domain_rules import Full, TooLong
from nova_mcp.memory.notes.domain_store import Written
from nova_mcp.memory.notes.model import EVERYBODY
from nova_mcp.memory.notes.playbook import PLAYBOOK_KEY, check_playbook
from nova_mcp.settings import Settings
from nova_mcp.storage.engine import Database
from nova_mcp.tools.arguments import parse_arguments
from nova_mcp.tools.notes.domain_notes import DomainNoteParams
from nova_mcp.tools.notes.note_params import parsed_domain
from nova_mcp.tools.times import utc

Id = Annotated[str, typer.Argument(metavar="ID", help="As `nova notes list domain` shows it.")]
Domain = Annotated[str, typer.Option("--domain", metavar="HOST", help="The host it is about.")]
Key = Annotated[
    str, typer.Option("--key", metavar="KEY", help="What it is called there; the same key again changes it.")
]
Enforcement = Annotated[
    str | None, typer.Option("--enforcement", metavar="LEVEL", help="none, warn, or block until acknowledged.")
]
Minutes = Annotated[
    int | None, typer.Option("--repeat-minutes", metavar="N", help="To be heard again after so long; 0 is never.")
]
Calls = Annotated[
    int | None, typer.Option("--repeat-tool-calls", metavar="N", help="To be heard again after so many calls.")
]


def add(
    text: Text,
    domain: Domain,
    key: Key,
    enforcement: Enforcement = None,
    repeat_minutes: Minutes = None,
    repeat_tool_calls: Calls = None,
    principal: Whose = LOCAL,
    everybody: Everybody = False,
    data_dir: DataDir = None,
    store: Store = None,
) -> None:
    """Note what agents must know on a host; the same key again changes the note."""
    settings = read_settings(data_dir, store)
    given = {"domain": domain, "key": key, "value": given_text(text), "enforcement": enforcement}
    with told():
        p = _checked(settings, given, repeat_minutes, repeat_tool_calls)
        with opened_for_writing(settings, create=True) as database:
            _put(database, p, EVERYBODY if everybody else principal)


def edit(
    note_id: Id,
    text: NewText = None,
    enforcement: Enforcement = None,
    repeat_minutes: Minutes = None,
    repeat_tool_calls: Calls = None,
    data_dir: DataDir = None,
    store: Store = None,
) -> None:
    """Change a note, whoever wrote it; what is not named stays, and it is the user's from then on."""
    settings = read_settings(data_dir, store)
    with told(), opened_for_writing(settings) as database:
        known = _known(database, note_id)
        given = {
            "domain": known.domain,
            "key": known.key,
            "value": known.value if text is None else given_text(text),
            "enforcement": enforcement,
        }
        _put(database, _checked(settings, given, repeat_minutes, repeat_tool_calls), known.principal)


def delete(note_id: Id, data_dir: DataDir = None, store: Store = None) -> None:
    """Delete a note, whoever wrote it."""
    with opened_for_writing(read_settings(data_dir, store)) as database:
        known = _known(database, note_id)
        database.write_sync(domain_store.remove, (known.principal, True), known.domain, known.key)
    say(f"Deleted: {known.key} about {known.domain}.")


def _checked(settings: Settings, given: Mapping[str, Json], minutes: int | None, calls: int | None) -> DomainNoteParams:
    repeats = {"repeatMinutes": minutes, "repeatToolCalls": calls}
    p = parse_arguments(
        DomainNoteParams, {**given, **{name: value for name, value in repeats.items() if value is not None}}
    )
    screened(settings, (("key", p.key), ("value", p.value)))
    return p


def _put(database: Database, p: DomainNoteParams, principal: str) -> None:
    clock = SystemClock()
    wish = replace(p.wish(principal, parsed_domain(p.domain)), source="user")
    match database.write_sync(domain_store.put, wish, clock.now_ms(), SystemIds(clock).token):
        case Written(action, stored):
            say(f"{action.capitalize()}: {stored.key} about {stored.domain}, {stored.note_id}, revision {stored.rev}.")
            if stored.key == PLAYBOOK_KEY and (missing := check_playbook(stored.value).missing_sections):
                note(f"Sections of a playbook that are missing or empty: {', '.join(missing)}.")
        case TooLong(chars):
            raise domain_refusals.too_long(chars)
        case Full() as full:
            raise domain_refusals.full(full, wish.domain)
        case _:
            raise AssertionError("the operator owns every note, and no revision was asked for")


def _known(database: Database, note_id: str) -> DomainNote:
    known = database.read_sync(domain_store.of_anybody, note_id)
    if known is None:
        fail(f"there is no note {note_id[:80]}", "`nova notes list domain` shows those there are")
    return known


# -- listing


def rows(database: Database, principal: str | None, domain: str | None) -> list[DomainNote]:
    return list(database.read_sync(domain_store.all_notes, principal, domain))


def show(found: list[DomainNote]) -> None:
    columns = ("id", "principal", "host", "key", "enforcement", "by", "rev", "updated", "text")
    print_table(
        columns,
        [
            (
                one.note_id,
                one.principal,
                one.domain,
                one.key,
                one.enforcement,
                one.source,
                one.rev,
                moment(one.updated_at_ms),
                cut(one.value, SHOWN_CHARS),
            )
            for one in found
        ],
    )


def as_json(one: DomainNote) -> dict[str, Any]:
    return {
        "noteId": one.note_id,
        "principal": one.principal,
        "domain": one.domain,
        "key": one.key,
        "value": one.value,
        "enforcement": one.enforcement,
        "source": one.source,
        "rev": one.rev,
        "repeatMinutes": one.repeat_minutes,
        "repeatToolCalls": one.repeat_tool_calls,
        "createdAtUtc": utc(one.created_at_ms),
        "updatedAtUtc": utc(one.updated_at_ms),
    }
