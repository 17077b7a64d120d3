"""Takes knowledge from elsewhere into the store: in review and unseen, and never in the place of what is here."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from sqlalchemy import Connection

from nova_mcp.memory.knowledge import store
from nova_mcp.memory.knowledge.model import ACTIVE, DomainHint, Level, Phenomenon, Problem, ScopeName, StableId
from nova_mcp.memory.knowledge.store import Birth, Shelved
from nova_mcp.memory.knowledge.writes.hint_rules import HintWritten
from nova_mcp.memory.knowledge.writes.page_check import PageCheck
from nova_mcp.memory.knowledge.writes.rules import Refused, Upsert, Written, same_words, wished_content
from nova_mcp.memory.knowledge.writes.store import Writer, categorized, whole
from nova_mcp.memory.promotion import steps_store
from nova_mcp.storage.savepoints import savepoint

# `kept` is what stays as it is here, although the pack says something else.
Came = Literal["created", "updated", "unchanged", "kept", "refused"]
Why = Literal["in_review_here", "retired_here", "categories_here", "site_unknown"]
IMPORTED: Final = Birth("imported")
_WRITER: Final = Writer(steps_store)


@dataclass(frozen=True, slots=True)
class Categories:
    """What a site is said to be."""

    names: tuple[str, ...]


Packed = Upsert | DomainHint | Categories


@dataclass(frozen=True, slots=True)
class Intake:
    """How to take it in: `replace` lets the pack's words take the place of others that are still in review here,
    `dry_run` leaves the store as it was."""

    now_ms: int
    replace: bool = False
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of one piece of a pack; `unseen` counts selectors that no page here has shown yet."""

    scope: ScopeName
    stable_id: str
    came: Came
    level: Level | None = None
    revision: int | None = None
    beside_active: bool = False
    unseen: int = 0
    why: Why | None = None
    problems: tuple[Problem, ...] = ()


def name_of(packed: Packed) -> str:
    match packed:
        case Upsert():
            return packed.stable_id
        case DomainHint():
            return packed.hint_id
        case Categories():
            return ""


def take_in(conn: Connection, scope: ScopeName, packed: Sequence[Packed], intake: Intake) -> tuple[Taken, ...]:
    """Everything that a pack holds of one site, in its order; doing it again changes nothing."""
    with savepoint(conn) as point:
        done = tuple(_taken_in(conn, scope, one, intake) for one in packed)
        if intake.dry_run:
            point.rollback()
    return done


def _taken_in(conn: Connection, scope: ScopeName, packed: Packed, intake: Intake) -> Taken:
    if isinstance(packed, Categories):
        return _described(conn, scope, packed, intake)

    def write() -> Taken | Refused:
        # The scope's row first, as everybody who writes here does: what is found from here on stays as it is.
        store.touch_scope(conn, scope, intake.now_ms, visible=False)
        found = store.find(conn, scope, name_of(packed), lock=True)
        if (why := _stays(found, packed, intake)) is not None:
            kept = found[-1].kept
            return Taken(scope, name_of(packed), "kept", kept.level, kept.revision, why=why)
        return _written(conn, scope, packed, intake)

    match whole(conn, write):
        case Refused(problems):
            return Taken(scope, name_of(packed), "refused", problems=problems)
        case taken:
            return taken


def _written(conn: Connection, scope: ScopeName, packed: Upsert | DomainHint, intake: Intake) -> Taken | Refused:
    done: Written | HintWritten | Refused
    kept: Phenomenon | DomainHint
    if isinstance(packed, Upsert):
        # Nobody has looked at a page, so nothing that the pack names counts as seen.
        done = _WRITER.upsert(conn, scope, packed, PageCheck(intake.now_ms, looked=False), IMPORTED)
    else:
        done = _WRITER.upsert_hint(conn, scope, packed, packed.selectors, IMPORTED)
    match done:
        case Refused():
            return done
        case Written():
            kept, beside, unseen = done.written, done.entry.pending is done.written, len(done.written.unconfirmed)
        case HintWritten():
            kept, beside, unseen = done.written, done.pair.pending is done.written, 0
    came: Came = "updated" if done.kind == "reactivated" else done.kind
    return Taken(scope, name_of(packed), came, kept.level, kept.revision, beside, unseen)


def _stays(found: Sequence[Shelved], packed: Upsert | DomainHint, intake: Intake) -> Why | None:
    """Why what is here stays as it is. New words for an active entry only ever stand beside it, so those may come."""
    if not found:
        return None
    newest = found[-1].kept
    if newest.deprecated:
        return "retired_here"
    if newest.level == ACTIVE or intake.replace or any(_says(one.kept, packed) for one in found):
        return None
    return "in_review_here"


def _says(kept: Phenomenon | DomainHint, packed: Upsert | DomainHint) -> bool:
    """Whether an entry says what the pack says; one of another kind is refused elsewhere."""
    if isinstance(kept, Phenomenon) and isinstance(packed, Upsert):
        return same_words(wished_content(kept.content, packed), kept.content)
    if isinstance(kept, DomainHint) and isinstance(packed, DomainHint):
        return steps_store.content_of(kept) == steps_store.content_of(packed)
    return True


def _described(conn: Connection, scope: ScopeName, packed: Categories, intake: Intake) -> Taken:
    row = store.scope_row(conn, scope)
    if row is None:
        return Taken(scope, "", "kept", why="site_unknown")
    if row.service_categories:
        same = row.service_categories == packed.names
        return Taken(scope, "", "unchanged" if same else "kept", why=None if same else "categories_here")
    categorized(conn, scope, packed.names, intake.now_ms)
    return Taken(scope, "", "updated")


def portable(conn: Connection, scope: ScopeName) -> list[tuple[StableId, Phenomenon | DomainHint]]:
    """What is worth carrying elsewhere: per stable id the revision that counts, a newer one where that is retired.

    Candidates are drafts that nobody vouches for, and what is retired did not hold.
    """
    found: dict[StableId, Phenomenon | DomainHint] = {}
    for one in store.entries(conn, scope):
        if one.kept.level > 0 and not one.kept.deprecated:
            found.setdefault(one.stable_id, one.kept)
    return sorted(found.items())
