"""Remembers things about sites for their user; every statement names the principal it is for."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from sqlalchemy import (
    ColumnElement,
    Connection,
    Double,
    Row,
    and_,
    case,
    cast,
    delete,
    func,
    insert,
    or_,
    select,
    update,
)

from nova_mcp.memory.notes.model import MemoryRow, MemoryType, Source
from nova_mcp.memory.notes.rules import (
    DAY_MS,
    HALF_LIFE_MS,
    Evictable,
    content_fold,
    expiry_for,
    memory_identity,
    pick_evictions,
    reinforce,
)
from nova_mcp.memory.notes.tables import browser_memory
from nova_mcp.storage.writer_lock import hold

PER_HOST: Final = 500
PER_PRINCIPAL: Final = 5_000
PRUNED_AT_ONCE: Final = 500
_ROWS: Final = browser_memory.c


@dataclass(frozen=True, slots=True)
class NewMemory:
    principal: str
    domain: str
    memory_type: MemoryType
    content: str
    url_pattern: str | None
    source: Source

    @property
    def identity(self) -> str:
        return memory_identity(self.domain, self.memory_type, self.url_pattern, self.content)


@dataclass(frozen=True, slots=True)
class Saved:
    row: MemoryRow
    action: Literal["created", "refreshed"]
    evicted: int = 0


@dataclass(frozen=True, slots=True)
class Full:
    """There is no room, and nothing that may go."""

    cap: int
    scope: Literal["host", "principal"]


def _memory(row: Row[Any]) -> MemoryRow:
    return MemoryRow(
        memory_id=row.memory_id,
        principal=row.principal,
        domain=row.domain,
        url_pattern=row.url_pattern,
        memory_type=row.memory_type,
        content=row.content,
        source=row.source,
        created_at_ms=row.created_at_ms,
        refreshed_at_ms=row.refreshed_at_ms,
        reinforced_at_ms=row.reinforced_at_ms,
        access_count=row.access_count,
        expires_at_ms=row.expires_at_ms,
        content_rev=row.content_rev,
    )


# -- writing


def save(conn: Connection, new: NewMemory, now_ms: int) -> Saved | Full:
    """Take a memory down, or renew the one that says the same."""
    hold(conn, "browser_memory", new.principal)
    known = _find(conn, new.principal, _ROWS.identity_hash == new.identity)
    if known is not None:
        return Saved(_renew(conn, known, new, now_ms), "refreshed")
    going = _room(conn, new, now_ms)
    if isinstance(going, Full):
        return going
    if going:
        conn.execute(delete(browser_memory).where(_ROWS.memory_id.in_(going)))
    values = {
        "principal": new.principal,
        "domain": new.domain,
        "url_pattern": new.url_pattern,
        "memory_type": new.memory_type,
        "content": new.content,
        "content_fold": content_fold(new.content),
        "identity_hash": new.identity,
        "source": new.source,
        "created_at_ms": now_ms,
        "refreshed_at_ms": now_ms,
        "access_count": 0,
        "expires_at_ms": expiry_for(new.memory_type, 1.0, now_ms),
        "content_rev": 1,
    }
    row = conn.execute(insert(browser_memory).values(values).returning(browser_memory)).one()
    return Saved(_memory(row), "created", len(going))


def _renew(conn: Connection, known: MemoryRow, new: NewMemory, now_ms: int) -> MemoryRow:
    renewed = replace(
        known,
        content=new.content,
        # What the user wrote stays the user's, whoever says it again.
        source="user" if "user" in (known.source, new.source) else "agent",
        refreshed_at_ms=now_ms,
        expires_at_ms=expiry_for(new.memory_type, 1.0, now_ms),
        content_rev=known.content_rev + 1,
    )
    _write(conn, renewed)
    return renewed


def edit(conn: Connection, changed: MemoryRow, now_ms: int) -> Saved | Literal["missing", "taken"]:
    """Give a memory the wording, type and pattern of `changed`, as fresh as a new one."""
    hold(conn, "browser_memory", changed.principal)
    known = find(conn, changed.principal, changed.memory_id)
    if known is None:
        return "missing"
    new = NewMemory(
        changed.principal, known.domain, changed.memory_type, changed.content, changed.url_pattern, changed.source
    )
    same = _find(conn, changed.principal, _ROWS.identity_hash == new.identity)
    if same is not None and same.memory_id != known.memory_id:
        return "taken"
    shaped = replace(known, memory_type=new.memory_type, url_pattern=new.url_pattern)
    return Saved(_renew(conn, shaped, new, now_ms), "refreshed")


def _write(conn: Connection, row: MemoryRow) -> None:
    identity = memory_identity(row.domain, row.memory_type, row.url_pattern, row.content)
    conn.execute(
        update(browser_memory)
        .where(_ROWS.memory_id == row.memory_id)
        .values(
            memory_type=row.memory_type,
            url_pattern=row.url_pattern,
            content=row.content,
            content_fold=content_fold(row.content),
            identity_hash=identity,
            source=row.source,
            refreshed_at_ms=row.refreshed_at_ms,
            expires_at_ms=row.expires_at_ms,
            content_rev=row.content_rev,
        )
    )


def _find(conn: Connection, principal: str, which: ColumnElement[bool]) -> MemoryRow | None:
    row = conn.execute(select(browser_memory).where(_ROWS.principal == principal, which)).one_or_none()
    return None if row is None else _memory(row)


def find(conn: Connection, principal: str, memory_id: int) -> MemoryRow | None:
    return _find(conn, principal, _ROWS.memory_id == memory_id)


def of_anybody(conn: Connection, memory_id: int) -> MemoryRow | None:
    """For the operator: a memory whoever it is for."""
    row = conn.execute(select(browser_memory).where(_ROWS.memory_id == memory_id)).one_or_none()
    return None if row is None else _memory(row)


def every(conn: Connection, principal: str | None, domain: str | None, limit: int) -> list[MemoryRow]:
    """For the operator: memories of all principals or of one, at all hosts or at one, faded ones too."""
    found = select(browser_memory).order_by(_ROWS.principal, _ROWS.domain, _ROWS.memory_id)
    if principal is not None:
        found = found.where(_ROWS.principal == principal)
    if domain is not None:
        found = found.where(_ROWS.domain == domain)
    return [_memory(row) for row in conn.execute(found.limit(limit))]


def _room(conn: Connection, new: NewMemory, now_ms: int) -> tuple[int, ...] | Full:
    """Which rows have to go before one more may come."""
    mine = _ROWS.principal == new.principal
    there = and_(mine, _ROWS.domain == new.domain)
    at_host = _going(conn, there, _count(conn, there) + 1 - PER_HOST, now_ms)
    if at_host is None:
        return Full(PER_HOST, "host")
    rest = and_(mine, _ROWS.memory_id.not_in(at_host)) if at_host else mine
    everywhere = _going(conn, rest, _count(conn, rest) + 1 - PER_PRINCIPAL, now_ms)
    if everywhere is None:
        return Full(PER_PRINCIPAL, "principal")
    return (*at_host, *everywhere)


def _going(conn: Connection, scope: ColumnElement[bool], over: int, now_ms: int) -> tuple[int, ...] | None:
    if over <= 0:
        return ()
    rows = conn.execute(
        select(_ROWS.memory_id, _ROWS.memory_type, _ROWS.source, _ROWS.refreshed_at_ms, _ROWS.expires_at_ms).where(
            scope, _ROWS.source == "agent"
        )
    )
    return pick_evictions((Evictable(*row) for row in rows), over, now_ms)


def _count(conn: Connection, which: ColumnElement[bool]) -> int:
    return int(conn.execute(select(func.count()).select_from(browser_memory).where(which)).scalar_one())


# -- recalling


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is looked for; no domains means all hosts of the principal."""

    principal: str
    domains: tuple[str, ...] | None = None
    words: tuple[str, ...] = ()
    memory_type: MemoryType | None = None
    include_expired: bool = False


def by_presence(now_ms: int) -> tuple[ColumnElement[Any], ...]:
    """Orders rows of all types as their scores do."""
    half_life = case(*((_ROWS.memory_type == name, span) for name, span in HALF_LIFE_MS.items()))
    presence = cast(_ROWS.expires_at_ms - now_ms, Double) / cast(half_life, Double)
    return presence.desc(), _ROWS.refreshed_at_ms.desc(), _ROWS.memory_id.desc()


def _fitting(wanted: Wanted, now_ms: int) -> list[ColumnElement[bool]]:
    conditions = [_ROWS.principal == wanted.principal]
    if wanted.domains is not None:
        conditions.append(_ROWS.domain.in_(wanted.domains))
    if wanted.memory_type is not None:
        conditions.append(_ROWS.memory_type == wanted.memory_type)
    if not wanted.include_expired:
        conditions.append(_ROWS.expires_at_ms > now_ms)
    return [*conditions, *(_ROWS.content_fold.contains(word, autoescape=True) for word in wanted.words)]


def search(conn: Connection, wanted: Wanted, now_ms: int, limit: int, offset: int = 0) -> list[MemoryRow]:
    """What fits, the most present first."""
    found = select(browser_memory).where(*_fitting(wanted, now_ms)).order_by(*by_presence(now_ms))
    return [_memory(row) for row in conn.execute(found.limit(limit).offset(offset))]


def recalled(conn: Connection, rows: Sequence[MemoryRow], now_ms: int) -> list[MemoryRow]:
    """Note that rows were recalled: those that live become more present, once a day."""
    # Always by id: writers that take rows in different orders could block each other.
    after = {row.memory_id: _recalled(conn, row, now_ms) for row in sorted(rows, key=lambda row: row.memory_id)}
    return [after[row.memory_id] for row in rows]


def _recalled(conn: Connection, row: MemoryRow, now_ms: int) -> MemoryRow:
    values: dict[str, Any] = {"access_count": _ROWS.access_count + 1, "accessed_at_ms": now_ms}
    renewed = reinforce(row.memory_type, row.expires_at_ms, row.reinforced_at_ms, now_ms)
    if renewed is not None:
        # Another server may have renewed it meanwhile; nothing is ever made to fade sooner.
        longest = case((_ROWS.expires_at_ms > renewed, _ROWS.expires_at_ms), else_=renewed)
        values |= {"expires_at_ms": longest, "reinforced_at_ms": now_ms}
        row = replace(row, expires_at_ms=max(row.expires_at_ms, renewed), reinforced_at_ms=now_ms)
    conn.execute(update(browser_memory).where(_ROWS.memory_id == row.memory_id).values(values))
    return replace(row, access_count=row.access_count + 1)


@dataclass(frozen=True, slots=True)
class Glimpse:
    """A memory as far as a hint shows it."""

    memory_id: int
    domain: str
    url_pattern: str | None
    memory_type: MemoryType
    content: str
    source: Source
    content_rev: int


def glimpses(conn: Connection, principal: str, domains: Collection[str], now_ms: int, chars: int) -> list[Glimpse]:
    """What lives at some hosts, the most present first, each with the beginning of its text."""
    text = func.substr(_ROWS.content, 1, chars)
    shown = (_ROWS.memory_id, _ROWS.domain, _ROWS.url_pattern, _ROWS.memory_type, text, _ROWS.source, _ROWS.content_rev)
    wanted = Wanted(principal, tuple(sorted(domains)))
    found = select(*shown).where(*_fitting(wanted, now_ms)).order_by(*by_presence(now_ms))
    return [Glimpse(*row) for row in conn.execute(found)]


# -- forgetting


@dataclass(frozen=True, slots=True)
class Forgetting:
    """What goes; nothing named means everything of the principal."""

    principal: str
    memory_id: int | None = None
    domain: str | None = None
    memory_type: MemoryType | None = None


def forget(conn: Connection, what: Forgetting) -> int:
    """Remove for good; says how many rows went."""
    hold(conn, "browser_memory", what.principal)
    conditions = [_ROWS.principal == what.principal]
    if what.memory_id is not None:
        conditions.append(_ROWS.memory_id == what.memory_id)
    if what.domain is not None:
        below = _ROWS.domain.endswith("." + what.domain, autoescape=True)
        conditions.append(or_(_ROWS.domain == what.domain, below))
    if what.memory_type is not None:
        conditions.append(_ROWS.memory_type == what.memory_type)
    return conn.execute(delete(browser_memory).where(*conditions)).rowcount


def pruning(retention_days: int) -> Callable[[Connection, int], int]:
    """The chore that removes what has been forgotten for so long, given the time."""

    def chore(conn: Connection, now_ms: int) -> int:
        old = select(_ROWS.memory_id).where(_ROWS.expires_at_ms <= now_ms - retention_days * DAY_MS)
        found = old.order_by(_ROWS.expires_at_ms).limit(PRUNED_AT_ONCE).with_for_update(skip_locked=True)
        gone = list(conn.execute(found).scalars())
        if gone:
            conn.execute(delete(browser_memory).where(_ROWS.memory_id.in_(gone)))
        return len(gone)

    return chore
