"""Keeps entries of knowledge: rows per scope and stable id, the selectors that lead to them, and their surroundings."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from sqlalchemy import Connection, RowMapping, bindparam, delete, func, insert, literal_column, select, update
from sqlalchemy import text as sql

from nova_mcp.core.page.selectors import normalize_selector
from nova_mcp.memory.knowledge.codec import decoded, encoded
from nova_mcp.memory.knowledge.health import trouble
from nova_mcp.memory.knowledge.model import (
    Content,
    Context,
    DomainHint,
    ElementPrint,
    Health,
    HintId,
    Phenomenon,
    Revisions,
    Scope,
    ScopeName,
    Signal,
    StableId,
    Standing,
)
from nova_mcp.memory.knowledge.tables import (
    knowledge_entry,
    knowledge_scope,
    knowledge_selector,
    knowledge_surroundings,
)
from nova_mcp.memory.knowledge.writes.stability import action_selectors
from nova_mcp.storage.prepared import Prepared

Slot = Literal["current", "pending"]
Origin = Literal["manual", "generated", "auto", "platform", "imported"]


@dataclass(frozen=True, slots=True)
class Shelved:
    """A phenomenon or hint with its place in the store."""

    entry_id: int
    scope: ScopeName
    slot: Slot
    kept: Phenomenon | DomainHint
    origin: Origin = "manual"
    candidate_key: str | None = None

    @property
    def stable_id(self) -> StableId:
        return self.kept.stable_id if isinstance(self.kept, Phenomenon) else StableId(self.kept.hint_id)


@dataclass(frozen=True, slots=True)
class Birth:
    """Where a new entry comes from."""

    origin: Origin = "manual"
    candidate_key: str | None = None
    slot: Slot = "current"


@dataclass(frozen=True, slots=True)
class SelectorOwner:
    """An entry that holds a selector, as far as binding an action to it goes."""

    entry_id: int
    stable_id: StableId
    deprecated: bool
    content: Content


# -- scopes


def scope_row(conn: Connection, scope: ScopeName) -> Scope | None:
    row = conn.execute(select(knowledge_scope).where(knowledge_scope.c.scope == scope)).mappings().one_or_none()
    return None if row is None else _scope(row)


def _scope(row: RowMapping) -> Scope:
    return Scope(
        ScopeName(row["scope"]),
        row["content_rev"],
        decoded(Context, row["context"]),
        decoded(tuple[str, ...], row["service_categories"]),
        decoded(tuple[str, ...], row["framework_markers"]),
    )


_STATE: Final = Prepared(sql("SELECT state_rev FROM knowledge_scope WHERE scope = :scope"))


def state_rev(conn: Connection, scope: ScopeName) -> int:
    """Moves with every change of a scope; 0 where nothing is known of it."""
    row = _STATE.run(conn, {"scope": scope}).fetchone()
    return 0 if row is None else int(row[0])


_TOUCH: Final = Prepared(
    sql(
        "INSERT INTO knowledge_scope (scope, content_rev, state_rev, context, service_categories, framework_markers, "
        "updated_at_ms) VALUES (:scope, :visible, 1, '{}', '[]', '[]', :at) ON CONFLICT (scope) DO UPDATE SET "
        "content_rev = knowledge_scope.content_rev + :visible, state_rev = knowledge_scope.state_rev + 1, "
        "updated_at_ms = CASE WHEN :visible = 1 THEN excluded.updated_at_ms ELSE knowledge_scope.updated_at_ms END"
    )
)


def touch_scope(conn: Connection, scope: ScopeName, at_ms: int, *, visible: bool) -> None:
    """Say that something has changed; `visible` when a reader of the entries would see it.

    Writers of a scope take its row first, so that they queue here and never lock entries crosswise.
    """
    _TOUCH.run(conn, {"scope": scope, "visible": int(visible), "at": at_ms})


def describe_scope(conn: Connection, scope: Scope) -> None:
    conn.execute(
        update(knowledge_scope)
        .where(knowledge_scope.c.scope == scope.name)
        .values(
            context=encoded(scope.context),
            service_categories=encoded(scope.service_categories),
            framework_markers=encoded(scope.framework_markers),
        )
    )


def scopes(conn: Connection, prefix: str = "", after: str = "", limit: int = 200) -> list[tuple[Scope, int]]:
    """Known scopes by name with the time of their last change, from behind `after`."""
    found = select(knowledge_scope).where(knowledge_scope.c.scope > after)
    if prefix:
        found = found.where(knowledge_scope.c.scope.startswith(prefix, autoescape=True))
    rows = conn.execute(found.order_by(knowledge_scope.c.scope).limit(limit)).mappings()
    return [(_scope(row), row["updated_at_ms"]) for row in rows]


# -- entries


def entries(conn: Connection, scope: ScopeName) -> list[Shelved]:
    """Everything known of a scope, revisions in review included."""
    found = select(knowledge_entry).where(knowledge_entry.c.scope == scope)
    rows = conn.execute(found.order_by(knowledge_entry.c.stable_id, knowledge_entry.c.slot)).mappings()
    return [_shelved(row) for row in rows]


_COLUMNS: Final = tuple(knowledge_entry.c.keys())
_HINTS: Final = Prepared(
    select(knowledge_entry)
    .where(knowledge_entry.c.scope == bindparam("at"), knowledge_entry.c.kind == bindparam("of"))
    .where(knowledge_entry.c.slot == bindparam("in"))
    .order_by(knowledge_entry.c.stable_id)
)


def hints(conn: Connection, scope: ScopeName) -> list[Shelved]:
    """What is known of a site for reading alone, retired hints included."""
    rows = _HINTS.run(conn, {"at": scope, "of": "hint", "in": "current"}).fetchall()
    return [_shelved(dict(zip(_COLUMNS, row, strict=True))) for row in rows]


_NAMED: Final = (
    select(knowledge_entry)
    .where(knowledge_entry.c.scope == bindparam("at"), knowledge_entry.c.stable_id == bindparam("name"))
    .order_by(knowledge_entry.c.slot)
)
_FIND: Final = Prepared(_NAMED)
_TAKE: Final = Prepared(_NAMED.with_for_update())


def find(conn: Connection, scope: ScopeName, stable_id: str, *, lock: bool = False) -> tuple[Shelved, ...]:
    """The revisions behind a stable id, the one that counts first; none when it is unknown."""
    rows = (_TAKE if lock else _FIND).run(conn, {"at": scope, "name": stable_id}).fetchall()
    return tuple(_shelved(dict(zip(_COLUMNS, row, strict=True))) for row in rows)


def by_ids(conn: Connection, entry_ids: Iterable[int], *, lock: bool = False) -> list[Shelved]:
    """Entries in the order that every writer locks them in."""
    wanted = sorted(set(entry_ids))
    found = select(knowledge_entry).where(knowledge_entry.c.entry_id.in_(wanted)).order_by(knowledge_entry.c.entry_id)
    return [_shelved(row) for row in conn.execute(found.with_for_update() if lock else found).mappings()]


def in_trouble(conn: Connection, level: int, most: int) -> list[Shelved]:
    """Entries of all scopes with that much trouble, those first that have been left alone the longest."""
    # Said twice, because a bound number alone does not tell SQLite that the index of troubled entries holds them all.
    troubled = (knowledge_entry.c.trouble == level, knowledge_entry.c.trouble > literal_column("0"))
    found = select(knowledge_entry).where(*troubled, knowledge_entry.c.slot == "current")
    rows = conn.execute(found.order_by(knowledge_entry.c.updated_at_ms).limit(most)).mappings()
    return [_shelved(row) for row in rows]


def count(conn: Connection, scope: ScopeName) -> int:
    """How many stable ids a scope holds."""
    found = select(func.count()).where(knowledge_entry.c.scope == scope, knowledge_entry.c.slot == "current")
    return int(conn.execute(found).scalar_one())


def paired(found: Sequence[Shelved]) -> Revisions | None:
    """The revisions of one stable id as the rules of writing look at them."""
    kept = {one.slot: one.kept for one in found}
    current, pending = kept.get("current"), kept.get("pending")
    if not isinstance(current, Phenomenon):
        return None
    return Revisions(current, pending if isinstance(pending, Phenomenon) else None)


def add(conn: Connection, scope: ScopeName, kept: Phenomenon | DomainHint, birth: Birth) -> Shelved:
    touch_scope(conn, scope, kept.updated_at_ms, visible=True)
    values = _values(kept) | {
        "scope": scope,
        "slot": birth.slot,
        "origin": birth.origin,
        "candidate_key": birth.candidate_key,
    }
    number = conn.execute(insert(knowledge_entry).returning(knowledge_entry.c.entry_id), values).scalar_one()
    shelved = Shelved(number, scope, birth.slot, kept, birth.origin, birth.candidate_key)
    _index(conn, shelved)
    return shelved


_SAVE: Final = Prepared(
    update(knowledge_entry).where(knowledge_entry.c.entry_id == bindparam("number")),
    tuple(name for name in _COLUMNS if name not in ("entry_id", "scope", "origin", "candidate_key")),
)


_QUIET: Final = Prepared(
    update(knowledge_entry).where(knowledge_entry.c.entry_id == bindparam("number")),
    ("health", "standing", "trouble", "drift_debt"),
)


def save(conn: Connection, changed: Shelved, *, visible: bool) -> None:
    """Write an entry back; `visible` when its content, level or deprecation has changed, else that stays as it is."""
    kept = changed.kept
    touch_scope(conn, changed.scope, kept.updated_at_ms, visible=visible)
    if visible:
        _SAVE.run(conn, {**_values(kept), "slot": changed.slot, "number": changed.entry_id})
        conn.execute(delete(knowledge_selector).where(knowledge_selector.c.entry_id == changed.entry_id))
        _index(conn, changed)
        return
    debt = kept.drift_debt if isinstance(kept, Phenomenon) else 0.0
    values = {"health": encoded(kept.health), "standing": encoded(kept.standing), "trouble": trouble(kept)}
    _QUIET.run(conn, {**values, "drift_debt": debt, "number": changed.entry_id})


def remove(conn: Connection, entry_id: int) -> None:
    for table in (knowledge_selector, knowledge_surroundings, knowledge_entry):
        conn.execute(delete(table).where(table.c.entry_id == entry_id))


def succeed(conn: Connection, pending: Shelved) -> Shelved:
    """A revision that has earned its place takes that of the one before it."""
    for old in find(conn, pending.scope, pending.stable_id, lock=True):
        if old.slot == "current":
            remove(conn, old.entry_id)
    now = replace(pending, slot="current")
    save(conn, now, visible=True)
    return now


def _values(kept: Phenomenon | DomainHint) -> dict[str, Any]:
    shared = {
        "level": kept.level,
        "deprecated_reason": kept.deprecated_reason,
        "revision": kept.revision,
        "health": encoded(kept.health),
        "standing": encoded(kept.standing),
        "created_at_ms": kept.created_at_ms,
        "updated_at_ms": kept.updated_at_ms,
        "trouble": trouble(kept),
    }
    match kept:
        case Phenomenon():
            return shared | {
                "stable_id": kept.stable_id,
                "kind": "phenomenon",
                "type": kept.content.type,
                "content": encoded(kept.content),
                "baseline": encoded(kept.baseline),
                "drift_debt": kept.drift_debt,
                "unconfirmed": encoded(kept.unconfirmed),
            }
        case DomainHint():
            return shared | {
                "stable_id": kept.hint_id,
                "kind": "hint",
                "type": kept.kind,
                "content": encoded(_HintBody(kept.selectors, kept.mode, kept.extract, kept.enumerate_max)),
                "baseline": "[]",
                "drift_debt": 0.0,
                "unconfirmed": "[]",
            }


@dataclass(frozen=True, slots=True)
class _HintBody:
    selectors: tuple[str, ...]
    mode: Literal["ancestor", "item_root"]
    extract: tuple[tuple[str, str], ...]
    enumerate_max: int


def _shelved(row: Mapping[str, Any] | RowMapping) -> Shelved:
    shared = {
        "level": row["level"],
        "deprecated_reason": row["deprecated_reason"],
        "revision": row["revision"],
        "health": decoded(Health, row["health"]),
        "standing": decoded(Standing, row["standing"]),
        "created_at_ms": row["created_at_ms"],
        "updated_at_ms": row["updated_at_ms"],
    }
    kept: Phenomenon | DomainHint
    if row["kind"] == "phenomenon":
        kept = Phenomenon(
            stable_id=StableId(row["stable_id"]),
            content=decoded(Content, row["content"]),
            baseline=decoded(frozenset[Signal], row["baseline"]),
            drift_debt=row["drift_debt"],
            unconfirmed=decoded(tuple[str, ...], row["unconfirmed"]),
            **shared,
        )
    else:
        body = decoded(_HintBody, row["content"])
        kept = DomainHint(
            hint_id=HintId(row["stable_id"]),
            kind=row["type"],
            selectors=body.selectors,
            mode=body.mode,
            extract=body.extract,
            enumerate_max=body.enumerate_max,
            **shared,
        )
    return Shelved(row["entry_id"], ScopeName(row["scope"]), row["slot"], kept, row["origin"], row["candidate_key"])


# -- selectors


def selectors_in(kept: Phenomenon | DomainHint) -> tuple[str, ...]:
    """What an action may be bound by; selectors that only serve to recognise a page are not among them."""
    found = action_selectors(kept.content.playbook) if isinstance(kept, Phenomenon) else kept.selectors
    return tuple(dict.fromkeys(normalize_selector(one) for one in found))


def _index(conn: Connection, shelved: Shelved) -> None:
    rows = [
        {"scope": shelved.scope, "selector": one, "entry_id": shelved.entry_id} for one in selectors_in(shelved.kept)
    ]
    if rows:
        conn.execute(insert(knowledge_selector), rows)


_OWNERS: Final = Prepared(
    sql(
        "SELECT e.entry_id, e.stable_id, e.deprecated_reason, e.content FROM knowledge_selector s "
        "JOIN knowledge_entry e ON e.entry_id = s.entry_id WHERE s.scope = :scope AND s.selector = :selector "
        "AND e.kind = 'phenomenon' ORDER BY e.entry_id"
    )
)


def owners(conn: Connection, scope: str, selector: str) -> list[SelectorOwner]:
    """The entries of a scope that act through a selector, given in its one spelling."""
    rows = _OWNERS.run(conn, {"scope": scope, "selector": selector}).fetchall()
    return [
        SelectorOwner(number, StableId(name), reason is not None, decoded(Content, content))
        for number, name, reason, content in rows
    ]


_HOLDERS: Final = Prepared(
    sql("SELECT DISTINCT entry_id FROM knowledge_selector WHERE scope = :scope AND selector = :selector")
)


def holders(conn: Connection, scope: str, selector: str) -> list[int]:
    """The numbers of everything, hints included, that names a selector, given in its one spelling."""
    return [int(row[0]) for row in _HOLDERS.run(conn, {"scope": scope, "selector": selector}).fetchall()]


# -- surroundings


def keep_surroundings(conn: Connection, entry_id: int, prints: Sequence[ElementPrint], at_ms: int) -> None:
    """What stood around an element when it was learned; without it nobody could tell later what it has become."""
    conn.execute(delete(knowledge_surroundings).where(knowledge_surroundings.c.entry_id == entry_id))
    conn.execute(
        insert(knowledge_surroundings).values(entry_id=entry_id, prints=encoded(tuple(prints)), taken_at_ms=at_ms)
    )


def surroundings(conn: Connection, entry_id: int) -> tuple[ElementPrint, ...] | None:
    found = select(knowledge_surroundings.c.prints).where(knowledge_surroundings.c.entry_id == entry_id)
    prints = conn.execute(found).scalar_one_or_none()
    return None if prints is None else decoded(tuple[ElementPrint, ...], prints)
