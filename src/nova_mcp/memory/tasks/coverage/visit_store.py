"""Visits, redirects and touched controls in the store: what a call adds, and what is looked up for units."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, and_, bindparam, delete, exists, insert, or_, select, update
from sqlalchemy import text as sql

from nova_mcp.core.values import Owner
from nova_mcp.evidence.rules import DAY_MS
from nova_mcp.memory.tasks.coverage.visits import Visit
from nova_mcp.memory.tasks.model import BEFORE_JOINING_MS
from nova_mcp.memory.tasks.tables import redirect_seen, task_instance_member, touched_selector, visit_window
from nova_mcp.storage.prepared import Prepared

LOOKED_UP_AT_ONCE: Final = 200
FORGOTTEN_AT_ONCE: Final = 500
# What no open run asks for is kept as long as a run that is about to open could look back, with room for a slow clock.
UNASKED_MS: Final = 3_600_000
REDIRECT_DAYS: Final = 180

_COLUMNS: Final = (
    visit_window.c.window_id,
    visit_window.c.target_id,
    visit_window.c.task_id,
    visit_window.c.url_hash,
    visit_window.c.path_hash,
    visit_window.c.started_at_ms,
    visit_window.c.ended_at_ms,
    visit_window.c.last_call_at_ms,
    visit_window.c.last_read_at_ms,
    visit_window.c.stayed_ms,
    visit_window.c.settled,
    visit_window.c.calls,
    visit_window.c.reads,
    visit_window.c.error_page,
    visit_window.c.agent_scripted,
)
_NEWEST = Prepared(
    sql(
        f"SELECT {', '.join(column.name for column in _COLUMNS)} FROM visit_window "  # noqa: S608 - our own names
        "WHERE target_id = :target AND principal = :principal AND agent_id = :agent_id "
        "ORDER BY window_id DESC LIMIT 1"
    )
)
_ADD = Prepared(
    insert(visit_window),
    ("principal", "agent_id", *(column.name for column in _COLUMNS if column.name != "window_id")),
)
_GROW = Prepared(
    update(visit_window)
    .where(visit_window.c.window_id == bindparam("id"))
    .values(
        started_at_ms=bindparam("started_at_ms"),
        ended_at_ms=bindparam("ended_at_ms"),
        last_call_at_ms=bindparam("last_call_at_ms"),
        last_read_at_ms=bindparam("last_read_at_ms"),
        calls=bindparam("calls"),
        reads=bindparam("reads"),
    )
)
_SETTLE = Prepared(
    update(visit_window)
    .where(visit_window.c.window_id == bindparam("id"))
    .values(stayed_ms=bindparam("stayed"), settled=bindparam("done"))
)
_TOUCH = Prepared(
    sql(
        "INSERT INTO touched_selector (principal, agent_id, selector_hash, last_at_ms) "
        "VALUES (:principal, :agent_id, :selector_hash, :at_ms) "
        "ON CONFLICT (principal, agent_id, selector_hash) DO UPDATE SET last_at_ms = excluded.last_at_ms"
    )
)
_LEADS_TO = Prepared(
    sql(
        "SELECT from_hash, to_hash, last_at_ms FROM redirect_seen "
        "WHERE principal = :principal AND agent_id = :agent_id AND to_hash = :to_hash AND last_at_ms >= :since"
    )
)
_REDIRECT = sql(
    "INSERT INTO redirect_seen (principal, agent_id, from_hash, to_hash, last_at_ms) "
    "VALUES (:principal, :agent_id, :from_hash, :to_hash, :at_ms) "
    "ON CONFLICT (principal, agent_id, from_hash, to_hash) DO UPDATE SET last_at_ms = excluded.last_at_ms"
)


def newest(conn: Connection, owner: Owner, target_id: str) -> Visit | None:
    """The visit of an agent on a target that a call may still belong to."""
    row = _NEWEST.run(conn, {"target": target_id, "principal": owner[0], "agent_id": owner[1]}).fetchone()
    return None if row is None else _visit(row)


def save(conn: Connection, owner: Owner, visit: Visit) -> None:
    """Write a visit that a call has begun or prolonged."""
    row = {
        "started_at_ms": visit.started_at_ms,
        "ended_at_ms": visit.ended_at_ms,
        "last_call_at_ms": visit.last_call_at_ms,
        "last_read_at_ms": visit.last_read_at_ms,
        "calls": visit.calls,
        "reads": visit.reads,
    }
    if visit.window_id is not None:
        _GROW.run(conn, {"id": visit.window_id, **row})
        return
    _ADD.run(
        conn,
        {
            "principal": owner[0],
            "agent_id": owner[1],
            "target_id": visit.target_id,
            "task_id": visit.task_id,
            "url_hash": visit.url_hash,
            "path_hash": visit.path_hash,
            "stayed_ms": visit.stayed_ms,
            "settled": visit.settled,
            "error_page": visit.error_page,
            "agent_scripted": visit.agent_scripted,
            **row,
        },
    )


def settle(conn: Connection, visit: Visit) -> None:
    """Write how long the page of a visit stayed; a settled visit never grows again."""
    _SETTLE.run(conn, {"id": visit.window_id, "stayed": visit.stayed_ms, "done": visit.settled})


def open_on(conn: Connection, target_id: str) -> list[tuple[Owner, Visit]]:
    """Everybody's visits on a target that are not settled yet."""
    wanted = select(*_COLUMNS, visit_window.c.principal, visit_window.c.agent_id).where(
        visit_window.c.target_id == target_id, visit_window.c.settled.is_(False)
    )
    rows = conn.execute(wanted.order_by(visit_window.c.window_id)).all()
    return [((row.principal, row.agent_id), _visit(row)) for row in rows]


def open_of(conn: Connection, owner: Owner, since_ms: int) -> list[Visit]:
    """An agent's visits that are not settled yet."""
    wanted = select(*_COLUMNS).where(_of(owner), visit_window.c.settled.is_(False))
    return [_visit(row) for row in conn.execute(wanted.where(visit_window.c.last_call_at_ms >= since_ms))]


def since(conn: Connection, owner: Owner, since_ms: int) -> list[Visit]:
    """All visits of an agent from a moment on."""
    wanted = select(*_COLUMNS).where(_of(owner), visit_window.c.last_call_at_ms >= since_ms)
    return [_visit(row) for row in conn.execute(wanted.order_by(visit_window.c.window_id))]


def on_pages(conn: Connection, owner: Owner, hashes: Collection[str], since_ms: int) -> list[Visit]:
    """The visits of an agent to some pages, looked up by the hashes of addresses, with or without query."""
    found: dict[int, Visit] = {}
    for some in chunks(hashes):
        for column in (visit_window.c.url_hash, visit_window.c.path_hash):
            wanted = select(*_COLUMNS).where(_of(owner), column.in_(some), visit_window.c.last_call_at_ms >= since_ms)
            found.update({row.window_id: _visit(row) for row in conn.execute(wanted)})
    return [found[key] for key in sorted(found)]


def touch(conn: Connection, owner: Owner, selector_hash: str, at_ms: int) -> None:
    _TOUCH.run(conn, {"principal": owner[0], "agent_id": owner[1], "selector_hash": selector_hash, "at_ms": at_ms})


def touched(conn: Connection, owner: Owner, hashes: Collection[str] | None, since_ms: int) -> dict[str, int]:
    """When an agent last used each of some controls; all of them without a choice."""
    own = and_(
        touched_selector.c.principal == owner[0],
        touched_selector.c.agent_id == owner[1],
        touched_selector.c.last_at_ms >= since_ms,
    )
    wanted = select(touched_selector.c.selector_hash, touched_selector.c.last_at_ms).where(own)
    groups = (
        [wanted] if hashes is None else [wanted.where(touched_selector.c.selector_hash.in_(c)) for c in chunks(hashes)]
    )
    return {row.selector_hash: row.last_at_ms for group in groups for row in conn.execute(group)}


def redirected(conn: Connection, owner: Owner, from_hashes: Collection[str], to_hash: str, at_ms: int) -> None:
    """An agent was seen to come from some addresses to the same page under another spelling."""
    row = {"principal": owner[0], "agent_id": owner[1], "to_hash": to_hash, "at_ms": at_ms}
    for from_hash in sorted(set(from_hashes)):
        conn.execute(_REDIRECT, {**row, "from_hash": from_hash})


@dataclass(frozen=True, slots=True)
class Redirect:
    """An address was seen to lead to a page that differs from it in spelling only."""

    from_hash: str
    to_hash: str
    at_ms: int


def leads_to(conn: Connection, owner: Owner, to_hashes: Collection[str], since_ms: int) -> list[Redirect]:
    """Redirects of an agent that end on one of some pages."""
    found: list[Redirect] = []
    for digest in sorted(to_hashes):
        asked = {"principal": owner[0], "agent_id": owner[1], "to_hash": digest, "since": since_ms}
        found.extend(Redirect(*row) for row in _LEADS_TO.run(conn, asked).fetchall())
    return found


def led_from(conn: Connection, owner: Owner, from_hashes: Collection[str], since_ms: int) -> list[Redirect]:
    """Redirects of an agent that begin on one of some addresses."""
    found: list[Redirect] = []
    for some in chunks(from_hashes):
        wanted = select(redirect_seen.c.from_hash, redirect_seen.c.to_hash, redirect_seen.c.last_at_ms).where(
            redirect_seen.c.principal == owner[0],
            redirect_seen.c.agent_id == owner[1],
            redirect_seen.c.last_at_ms >= since_ms,
            redirect_seen.c.from_hash.in_(some),
        )
        found.extend(Redirect(*row) for row in conn.execute(wanted))
    return found


def forget(conn: Connection, now_ms: int) -> int:
    """Let go of visits, redirects and touched controls that no open run can ask for; says how many rows went."""
    before = now_ms - UNASKED_MS
    gone = 0
    for table, key, at in (
        (visit_window, (visit_window.c.window_id,), visit_window.c.started_at_ms),
        (touched_selector, tuple(touched_selector.primary_key), touched_selector.c.last_at_ms),
        (redirect_seen, tuple(redirect_seen.primary_key), redirect_seen.c.last_at_ms),
    ):
        member = task_instance_member.c
        asked = exists().where(
            member.principal == table.c.principal,
            member.agent_id == table.c.agent_id,
            member.ended_at_ms.is_(None),
            member.joined_at_ms - BEFORE_JOINING_MS
            <= (visit_window.c.last_call_at_ms if table is visit_window else at),
        )
        old = select(*key).where(at < before, or_(~asked, at < now_ms - REDIRECT_DAYS * DAY_MS))
        rows = conn.execute(old.order_by(at).limit(FORGOTTEN_AT_ONCE)).all()
        for row in rows:
            conn.execute(delete(table).where(*(column == value for column, value in zip(key, row, strict=True))))
        gone += len(rows)
    return gone


def chunks(hashes: Iterable[str]) -> Iterator[list[str]]:
    listed = sorted(set(hashes))
    for start in range(0, len(listed), LOOKED_UP_AT_ONCE):
        yield listed[start : start + LOOKED_UP_AT_ONCE]


def _of(owner: Owner) -> Any:
    return and_(visit_window.c.principal == owner[0], visit_window.c.agent_id == owner[1])


def _visit(row: Any) -> Visit:
    """In the order of the columns; SQLite hands truth values over as numbers."""
    return Visit(
        window_id=row[0],
        target_id=row[1],
        task_id=row[2],
        url_hash=row[3],
        path_hash=row[4],
        started_at_ms=row[5],
        ended_at_ms=row[6],
        last_call_at_ms=row[7],
        last_read_at_ms=row[8],
        stayed_ms=row[9],
        settled=bool(row[10]),
        calls=row[11],
        reads=row[12],
        error_page=bool(row[13]),
        agent_scripted=bool(row[14]),
    )
