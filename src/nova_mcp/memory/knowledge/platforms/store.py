"""Keeps platforms that agents added, when each was last met, and the drafts that a first meeting leaves on a site."""

from collections.abc import Iterable, Sequence
from typing import Final

from sqlalchemy import Connection, delete, func, insert, select
from sqlalchemy import text as sql

from nova_mcp.memory.knowledge import store
from nova_mcp.memory.knowledge.codec import decoded, encoded
from nova_mcp.memory.knowledge.model import MAX_PHENOMENA, Phenomenon, Platform, PlatformId, Problem, ScopeName
from nova_mcp.memory.knowledge.platforms.templates import Seeded, built_in, drafted, seeded
from nova_mcp.memory.knowledge.step_writer import Scribe
from nova_mcp.memory.knowledge.store import Birth
from nova_mcp.memory.knowledge.tables import knowledge_platform, platform_alias, platform_seen
from nova_mcp.storage.prepared import Prepared
from nova_mcp.storage.savepoints import savepoint
from nova_mcp.storage.writer_lock import hold

Version = tuple[int, int, int]


def version(conn: Connection) -> Version:
    """Moves whenever a platform is added or changed, even twice within a millisecond: platforms only grow."""
    found = knowledge_platform.c
    size = func.coalesce(func.sum(func.length(found.body)), 0)
    row = conn.execute(select(func.count(found.stable_id), func.coalesce(func.max(found.updated_at_ms), 0), size)).one()
    return int(row[0]), int(row[1]), int(row[2])


def added(conn: Connection) -> tuple[Platform, ...]:
    """The platforms that agents added, by id."""
    rows = conn.execute(select(knowledge_platform.c.body).order_by(knowledge_platform.c.stable_id)).scalars()
    return tuple(decoded(Platform, body) for body in rows)


_TAKE: Final = Prepared(
    sql(
        "INSERT INTO platform_alias (kind, value, stable_id) VALUES (:kind, :value, :stable_id) "
        "ON CONFLICT (kind, value) DO NOTHING"
    )
)


def seed(conn: Connection, wish: Platform, now_ms: int) -> Seeded | Problem:
    """Add to a platform; an alias that two writers want goes to the one who was first."""
    with savepoint(conn) as point:
        done = _seed(conn, wish, now_ms)
        if isinstance(done, Problem):
            point.rollback()
    return done


def _seed(conn: Connection, wish: Platform, now_ms: int) -> Seeded | Problem:
    if isinstance(first := seeded(wish, (*built_in(), *added(conn))), Problem):
        return first
    for alias in sorted(wish.aliases, key=lambda one: (one.kind, one.value)):
        _TAKE.run(conn, {"kind": alias.kind, "value": alias.value, "stable_id": wish.stable_id})
    # Other writers of this platform have committed by now, or wait; it may not have a row yet that could be locked.
    hold(conn, "platform", wish.stable_id)
    done = seeded(wish, (*built_in(), *added(conn)))
    if isinstance(done, Problem):
        return done
    owners = {(row.kind, row.value): row.stable_id for row in conn.execute(select(platform_alias))}
    for alias in wish.aliases:
        if (owner := owners.get((alias.kind, alias.value))) != wish.stable_id:
            return Problem("pks.alias_taken", f"{alias.value} already stands for {owner}.")
    conn.execute(delete(knowledge_platform).where(knowledge_platform.c.stable_id == wish.stable_id))
    body = encoded(done.platform)
    conn.execute(insert(knowledge_platform).values(stable_id=wish.stable_id, body=body, updated_at_ms=now_ms))
    return done


_SEEN: Final = Prepared(
    sql(
        "INSERT INTO platform_seen (stable_id, last_seen_at_ms) VALUES (:stable_id, :at) ON CONFLICT (stable_id) "
        "DO UPDATE SET last_seen_at_ms = CASE WHEN excluded.last_seen_at_ms > platform_seen.last_seen_at_ms "
        "THEN excluded.last_seen_at_ms ELSE platform_seen.last_seen_at_ms END"
    )
)


def last_seen(conn: Connection) -> dict[PlatformId, int]:
    rows = conn.execute(select(platform_seen.c.stable_id, platform_seen.c.last_seen_at_ms))
    return {PlatformId(name): int(at) for name, at in rows}


def met(conn: Connection, scribe: Scribe, scope: ScopeName, platforms: Sequence[Platform], now_ms: int) -> int:
    """Platforms were seen on a site: each new to it leaves a candidate there, nothing more. How many it left."""
    store.touch_scope(conn, scope, now_ms, visible=False)
    held = store.entries(conn, scope)
    room = MAX_PHENOMENA - len({one.stable_id for one in held})
    fresh = [one for one in (drafted(each, now_ms) for each in platforms) if _is_new(one, held)][: max(0, room)]
    for draft in sorted(fresh, key=lambda one: one.stable_id):
        scribe.born(conn, store.add(conn, scope, draft, Birth("platform")))
    for name in sorted(one.stable_id for one in platforms):
        _SEEN.run(conn, {"stable_id": name, "at": now_ms})
    return len(fresh)


def _is_new(draft: Phenomenon, held: Iterable[store.Shelved]) -> bool:
    """A site that already has an entry by that id or for that vendor needs no draft, retired ones included."""
    vendors = {one for one in draft.content.fingerprint.signals if one.kind == "vendor"}
    for one in held:
        if one.stable_id == draft.stable_id:
            return False
        if isinstance(one.kept, Phenomenon) and vendors & set(one.kept.content.fingerprint.signals):
            return False
    return True
