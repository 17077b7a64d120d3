"""Writes of entries into the store, whole or not at all; the caller's transaction is the call's own."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from sqlalchemy import Connection

from nova_mcp.memory.knowledge import store
from nova_mcp.memory.knowledge.model import DomainHint, ElementPrint, Phenomenon, Problem, ScopeName, StableId
from nova_mcp.memory.knowledge.step_writer import Scribe
from nova_mcp.memory.knowledge.store import Birth, Shelved
from nova_mcp.memory.knowledge.writes.content_rules import holds_script, holds_secret, shown
from nova_mcp.memory.knowledge.writes.hint_rules import HintPair, HintWritten, hint_upserted
from nova_mcp.memory.knowledge.writes.page_check import PageCheck
from nova_mcp.memory.knowledge.writes.rules import (
    KEPT,
    Conflict,
    Patch,
    Refused,
    Upsert,
    Written,
    deprecation_problem,
    patched,
    patched_content,
    shared_controls,
    upserted,
    wished_content,
)
from nova_mcp.storage.savepoints import savepoint

T = TypeVar("T")
Kept = Phenomenon | DomainHint
MANUAL: Final = Birth()


@dataclass(frozen=True, slots=True)
class Missing:
    """What a write names is not there; `scope` when nothing at all is known of the site."""

    scope: bool
    available: tuple[StableId, ...] = ()


@dataclass(frozen=True, slots=True)
class Retirement:
    """An entry after it was deprecated, now or before."""

    kept: Kept
    changed: bool


Unwritten = Refused | Conflict | Missing


def whole(conn: Connection, write: Callable[[], T]) -> T:
    """What was refused leaves the store as it was, the scope's row included."""
    with savepoint(conn) as point:
        done = write()
        if isinstance(done, Refused | Conflict | Missing):
            point.rollback()
    return done


class Writer:
    """Writes entries and has every step written down; stateless but for its scribe."""

    def __init__(self, scribe: Scribe) -> None:
        self._scribe = scribe

    # -- phenomena

    def upsert(
        self, conn: Connection, scope: ScopeName, wish: Upsert, check: PageCheck, birth: Birth = MANUAL
    ) -> Written | Refused:
        """An entry written by hand, or drafted by Nova with a birth of its own."""

        def write() -> Written | Refused:
            found = self._held(conn, scope, wish.stable_id, check.now_ms)
            if found and isinstance(found[0].kept, DomainHint):
                return _taken("phenomenon.id", wish.stable_id, "a hint")
            entry = store.paired(found)
            before = None if entry is None else entry.newest
            content = wished_content(None if before is None else before.content, wish)
            printed = check.printed(content, before)
            asked = replace(wish, playbook=printed.playbook or KEPT, context=printed.context)
            done = upserted(entry, asked, check.live(content, before), entries=store.count(conn, scope))
            if isinstance(done, Written):
                self._store(conn, scope, found, (done.entry.current, done.entry.pending), _Aside(check, birth))
                return _beside(conn, scope, done)
            return done

        return whole(conn, write)

    def patch(
        self, conn: Connection, scope: ScopeName, stable_id: str, patch: Patch, check: PageCheck
    ) -> Written | Unwritten:
        def write() -> Written | Unwritten:
            found = self._held(conn, scope, stable_id, check.now_ms)
            entry = store.paired(found)
            if entry is None:
                return missing(conn, scope)
            before = entry.newest
            content = patched_content(before.content, patch)
            printed = check.printed(content, before)
            asked = replace(patch, playbook=printed.playbook or KEPT)
            done = patched(entry, asked, check.live(content, before))
            if isinstance(done, Written):
                self._store(conn, scope, found, (done.entry.current, done.entry.pending), _Aside(check))
                return _beside(conn, scope, done)
            return done

        return whole(conn, write)

    def deprecate(
        self, conn: Connection, scope: ScopeName, stable_id: str, reason: str, now_ms: int
    ) -> Retirement | Refused | Missing:
        """Retire what a stable id stands for, a revision in review included."""
        if (problem := reason_problem(reason)) is not None:
            return Refused((problem,))

        def write() -> Retirement | Refused | Missing:
            found = self._held(conn, scope, stable_id, now_ms)
            if not found:
                return missing(conn, scope)
            refusals = (deprecation_problem(one.kept, now_ms) for one in found)
            if refused := tuple(one for one in refusals if one is not None):
                return Refused(refused)
            alive = [one for one in found if not one.kept.deprecated]
            words = _words(reason)
            gone = [self._scribe.retired(conn, one, words, now_ms) for one in alive]
            return Retirement(gone[0].kept if gone else found[0].kept, changed=bool(gone))

        return whole(conn, write)

    # -- hints

    def upsert_hint(
        self,
        conn: Connection,
        scope: ScopeName,
        wish: DomainHint,
        missing_now: tuple[str, ...] = (),
        birth: Birth = MANUAL,
    ) -> HintWritten | Refused:
        """A hint written by hand; `missing_now` are those of its selectors that the open page does not have."""

        def write() -> HintWritten | Refused:
            found = self._held(conn, scope, wish.hint_id, wish.updated_at_ms)
            if found and isinstance(found[0].kept, Phenomenon):
                return _taken("domainHint.id", StableId(wish.hint_id), "a phenomenon")
            done = hint_upserted(_pair(found), wish, missing_now, entries=store.count(conn, scope))
            if isinstance(done, HintWritten):
                aside = _Aside(PageCheck(wish.updated_at_ms), birth)
                self._store(conn, scope, found, (done.pair.current, done.pair.pending), aside)
            return done

        return whole(conn, write)

    # -- storing

    def _held(self, conn: Connection, scope: ScopeName, stable_id: str, now_ms: int) -> tuple[Shelved, ...]:
        """The revisions behind a stable id, with everything locked that other writers of the scope would need."""
        store.touch_scope(conn, scope, now_ms, visible=False)
        return store.find(conn, scope, stable_id, lock=True)

    def _store(
        self,
        conn: Connection,
        scope: ScopeName,
        found: Sequence[Shelved],
        after: tuple[Kept, Kept | None],
        aside: "_Aside",
    ) -> None:
        rows = {one.slot: one for one in found}
        current, pending = after
        for slot, kept in (("current", current), ("pending", pending)):
            row = rows.get(slot)  # type: ignore[call-overload]
            if kept is None:
                continue
            if row is None:
                birth = aside.birth if slot == "current" else replace(aside.birth, slot="pending")
                shelved = store.add(conn, scope, kept, birth)
                self._scribe.born(conn, shelved)
            else:
                shelved = self._changed(conn, row, kept, aside.check.now_ms)
            if row is None or shelved.kept != row.kept:
                aside.keep(conn, shelved)

    def _changed(self, conn: Connection, row: Shelved, kept: Kept, now_ms: int) -> Shelved:
        """An entry whose content stayed is confirmed first: what a page showed of it is no new content."""
        if kept == row.kept:
            return row
        if isinstance(kept, Phenomenon) and isinstance(row.kept, Phenomenon) and kept.revision == row.kept.revision:
            seen = replace(row.kept, content=kept.content, unconfirmed=kept.unconfirmed)
            if seen != row.kept:
                row = self._scribe.confirmed(conn, row, replace(row, kept=seen), now_ms)
            if (kept.level, kept.deprecated) == (row.kept.level, row.kept.deprecated):
                return row
        return self._scribe.revised(conn, row, replace(row, kept=_with_standing(kept, row.kept)), now_ms)


def _beside(conn: Connection, scope: ScopeName, done: Written) -> Written:
    """A write with what it means for the other entries of the site."""
    others = (one.kept for one in store.entries(conn, scope) if isinstance(one.kept, Phenomenon))
    return replace(done, warnings=(*done.warnings, *shared_controls(done.written, others)))


@dataclass(frozen=True, slots=True)
class _Aside:
    """What goes with an entry besides its own words."""

    check: PageCheck
    birth: Birth = MANUAL

    def keep(self, conn: Connection, shelved: Shelved) -> None:
        around: tuple[ElementPrint, ...] = () if self.check.distrusted else self.check.around
        if around and isinstance(shelved.kept, Phenomenon):
            store.keep_surroundings(conn, shelved.entry_id, around, self.check.now_ms)


def _with_standing(kept: Kept, before: Kept) -> Kept:
    return replace(kept, standing=before.standing)


def _pair(found: Sequence[Shelved]) -> HintPair | None:
    kept = {one.slot: one.kept for one in found}
    current, pending = kept.get("current"), kept.get("pending")
    if not isinstance(current, DomainHint):
        return None
    return HintPair(current, pending if isinstance(pending, DomainHint) else None)


def _taken(where: str, stable_id: str, by: str) -> Refused:
    return Refused((Problem("invalid_params", f'"{stable_id[:80]}" is already the id of {by} of this site.', where),))


def missing(conn: Connection, scope: ScopeName) -> Missing:
    names = tuple(one.stable_id for one in store.entries(conn, scope) if one.slot == "current")
    return Missing(scope=not names, available=names)


def _words(reason: str) -> str:
    return shown(reason, 500)


def reason_problem(reason: str) -> Problem | None:
    """Why a reason may not be kept; it is shown to everybody who works on the site."""
    if holds_script(reason):
        return Problem("pks.script_content", "Script is never stored, in any field.", "reason")
    if (found := holds_secret(reason)) is not None:
        return Problem("pks.secret_like", f"It looks like {found}; say it without.", "reason")
    return None


def categorized(conn: Connection, scope: ScopeName, categories: Sequence[str], now_ms: int) -> None:
    """What an agent says a site is; the caller holds the scope's row."""
    row, given = store.scope_row(conn, scope), tuple(dict.fromkeys(categories))
    if row is not None and row.service_categories != given:
        store.touch_scope(conn, scope, now_ms, visible=True)
        store.describe_scope(conn, replace(row, service_categories=given))
