"""Keeps what recurs: counters per cluster and day, and a rank by which the best are found without reading the rest."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection
from sqlalchemy import text as sql

from nova_mcp.memory.journal.evidence import Seen
from nova_mcp.memory.promotion.drafts.clusters import cluster_key, cluster_of, day_of, first_day, with_observation
from nova_mcp.memory.promotion.drafts.scoring import RECENCY_LIMIT, cluster_rank, from_cluster, ranked, recency
from nova_mcp.memory.promotion.model import DAY_MS, Cluster, ClusterDay, ClusterKey, Opportunity
from nova_mcp.storage.prepared import Prepared

# What has not come together yet is found by nobody.
NO_RANK: Final = -1.0
# Clusters looked at again per step of the chore: a call that wants to write waits for one such step.
STEP: Final = 200

# Both databases read the sentences below the same way.
_TAKE: Final = Prepared(
    sql(
        "INSERT INTO learning_cluster (host, key, rank, first_day, last_at_ms) "
        "VALUES (:host, :key, :rank, :first_day, :last_at_ms) ON CONFLICT (host, key) "
        "DO UPDATE SET last_at_ms = CASE WHEN excluded.last_at_ms > learning_cluster.last_at_ms "
        "THEN excluded.last_at_ms ELSE learning_cluster.last_at_ms END, "
        "first_day = CASE WHEN excluded.first_day < learning_cluster.first_day "
        "THEN excluded.first_day ELSE learning_cluster.first_day END RETURNING rank"
    )
)
_RANK: Final = Prepared(sql("UPDATE learning_cluster SET rank = :rank WHERE host = :host AND key = :key"))
_BEGIN: Final = Prepared(sql("UPDATE learning_cluster SET first_day = :first WHERE host = :host AND key = :key"))
_DAYS: Final = Prepared(
    sql("SELECT day, body FROM learning_cluster_day WHERE host = :host AND key = :key AND day >= :first ORDER BY day")
)
_KEEP_DAY: Final = Prepared(
    sql(
        "INSERT INTO learning_cluster_day (host, key, day, body) VALUES (:host, :key, :day, :body) "
        "ON CONFLICT (host, key, day) DO UPDATE SET body = excluded.body"
    )
)
_DROP_DAYS: Final = Prepared(sql("DELETE FROM learning_cluster_day WHERE host = :host AND key = :key AND day < :first"))
_DROP: Final = Prepared(sql("DELETE FROM learning_cluster WHERE host = :host AND key = :key"))
_KNOWN: Final = Prepared(
    sql(
        "SELECT 1 FROM knowledge_entry WHERE scope = :host AND stable_id = :key "
        "UNION ALL SELECT 1 FROM knowledge_entry WHERE scope = :host AND candidate_key = :key LIMIT 1"
    )
)


# -- counting


def count(conn: Connection, seen: Sequence[Seen]) -> None:
    """Add observations to their clusters, in the transaction that writes them.

    A cluster's row is taken before its days are read, in one order for every writer: of two servers one waits.
    """
    told = [(_key(one), one) for one in seen if not _plain_look(one)]
    for key in sorted({key for key, _ in told}):
        _counted(conn, key, [one for of, one in told if of == key])


def _plain_look(one: Seen) -> bool:
    """A look at a page, not for an entry: it shares its key with nothing else, and never makes a cluster."""
    return one.observation.kind == "perceive_signature" and one.observation.target_stable_id is None


def _key(one: Seen) -> ClusterKey:
    return cluster_key(one.observation, one.occasion.host, one.occasion.event.tool_name)


def _counted(conn: Connection, key: ClusterKey, seen: Sequence[Seen]) -> None:
    now_ms = max(one.occasion.event.created_at_ms for one in seen)
    name = {"host": key.host, "key": key.key}
    earliest = min(day_of(one.occasion.event.created_at_ms) for one in seen)
    taken = _TAKE.run(conn, name | {"rank": NO_RANK, "first_day": earliest, "last_at_ms": now_ms}).fetchone()
    days = {one.day: one for one in _read(conn, key, first_day(now_ms))}
    touched = set()
    for one in seen:
        occasion, at_ms = one.occasion, one.occasion.event.created_at_ms
        day = day_of(at_ms)
        days[day] = with_observation(days.get(day), one.observation, occasion.session_id, at_ms, upgraded=one.upgraded)
        touched.add(day)
    for day in sorted(touched):
        _KEEP_DAY.run(conn, name | {"day": day, "body": _written(days[day])})
    _rank(conn, key, days.values(), now_ms, before=taken[0])


def _rank(
    conn: Connection, key: ClusterKey, days: Iterable[ClusterDay], now_ms: int, before: float | None = None
) -> None:
    found = cluster_of(key, days, now_ms)
    rank = NO_RANK if found is None else cluster_rank(found, known=bool(found.drifts) and is_known(conn, key))
    if rank != before:
        _RANK.run(conn, {"host": key.host, "key": key.key, "rank": rank})


def is_known(conn: Connection, key: ClusterKey) -> bool:
    """Whether an entry of the site stands behind a cluster, by its own name or by the candidate it came from."""
    return _KNOWN.run(conn, {"host": key.host, "key": key.key}).fetchone() is not None


# -- a day as it is stored: short, because every call on a control reads up to a month of them


def _written(day: ClusterDay) -> str:
    told = [dict(day.kinds), day.successes, day.failures, day.drifts, day.sessions, day.last_at_ms]
    return json.dumps(told, separators=(",", ":"))


def _told(day: int, body: str) -> ClusterDay:
    kinds, successes, failures, drifts, sessions, last_at_ms = json.loads(body)
    return ClusterDay(day, tuple(kinds.items()), successes, failures, drifts, tuple(sessions), last_at_ms)


def _read(conn: Connection, key: ClusterKey, first: int) -> list[ClusterDay]:
    rows = _DAYS.run(conn, {"host": key.host, "key": key.key, "first": first}).fetchall()
    return [_told(day, body) for day, body in rows]


# -- looking


def cluster(conn: Connection, key: ClusterKey, now_ms: int) -> Cluster | None:
    """A cluster as it stands now; None where too little has come together that still counts."""
    return cluster_of(key, _read(conn, key, first_day(now_ms)), now_ms)


def sessions_of(conn: Connection, key: ClusterKey, now_ms: int) -> int:
    return len({session for day in _read(conn, key, first_day(now_ms)) for session in day.sessions})


# The newest of the highest rank below another one: a step of a search that passes over all others of that rank.
_NEXT: Final = Prepared(
    sql(
        "SELECT host, key, rank, last_at_ms FROM learning_cluster WHERE rank = (SELECT rank FROM learning_cluster "
        "WHERE rank < :below AND rank >= 0 ORDER BY rank DESC LIMIT 1) ORDER BY last_at_ms DESC LIMIT :most"
    )
)
_NEXT_OF: Final = Prepared(
    sql(
        "SELECT host, key, rank, last_at_ms FROM learning_cluster WHERE host = :host AND rank = (SELECT rank "
        "FROM learning_cluster WHERE host = :host AND rank < :below AND rank >= 0 ORDER BY rank DESC LIMIT 1) "
        "ORDER BY last_at_ms DESC LIMIT :most"
    )
)
_HIGHEST: Final = 1e9
# Ranks are put right once a day; until then no more than so many wrong ones are looked through.
_MOST: Final = 1_000


@dataclass(frozen=True, slots=True)
class _Ranked:
    key: ClusterKey
    score: float
    last_at_ms: int


def best(conn: Connection, host: str | None, limit: int, now_ms: int) -> list[Opportunity]:
    """The best clusters of one site or of all, the best first.

    A rank may promise more than is left by now, where old days no longer count; then more are looked at.
    """
    most = limit
    while True:
        promising = _promising(conn, host, most, now_ms)
        found = ranked(_exact(conn, promising, now_ms), limit)
        # What comes later promises no more than the last one, and is older where it promises as much.
        settled = len(found) >= limit and found[-1].score >= promising[-1].score
        if settled or len(promising) < most or most >= _MOST:
            return list(found)
        most *= 4


def _promising(conn: Connection, host: str | None, most: int, now_ms: int) -> list[_Ranked]:
    """The best by their ranks and ages alone.

    What a cluster earns by being recent is at most one point, ranks have two decimals, and of one rank the newest are
    the best: so at most about a hundred ranks are looked at, and of each no more than are wanted, however many there
    are.
    """
    since, below = first_day(now_ms) * DAY_MS, _HIGHEST
    found: list[_Ranked] = []
    while (
        rows := (_NEXT if host is None else _NEXT_OF).run(conn, {"host": host, "below": below, "most": most}).fetchall()
    ):
        below = rows[0][2]
        if len(found) >= most and below + RECENCY_LIMIT < found[-1].score:
            break
        fresh = [
            _Ranked(ClusterKey(name, key), round(rank + recency(now_ms - at), 2), at)
            for name, key, rank, at in rows
            if at >= since
        ]
        found = sorted([*found, *fresh], key=lambda one: (-one.score, -one.last_at_ms, one.key))[:most]
    return found


def _exact(conn: Connection, promising: Iterable[_Ranked], now_ms: int) -> Iterator[Opportunity]:
    for one in promising:
        if (found := cluster(conn, one.key, now_ms)) is not None:
            yield from_cluster(found, now_ms, known=is_known(conn, one.key))


# -- forgetting

_EXPIRED: Final = Prepared(
    sql("SELECT host, key FROM learning_cluster WHERE first_day < :first ORDER BY first_day LIMIT :step")
)
_HELD: Final = Prepared(
    sql("UPDATE learning_cluster SET first_day = first_day WHERE host = :host AND key = :key RETURNING key")
)


def forget(conn: Connection, now_ms: int) -> int:
    """Take days out that no longer count and rank what is left anew; says how many clusters were looked at."""
    first = first_day(now_ms)
    keys = sorted(ClusterKey(*row) for row in _EXPIRED.run(conn, {"first": first, "step": STEP}).fetchall())
    for key in keys:
        name = {"host": key.host, "key": key.key}
        if _HELD.run(conn, name).fetchone() is None:
            continue
        _DROP_DAYS.run(conn, name | {"first": first})
        if days := _read(conn, key, first):
            _BEGIN.run(conn, name | {"first": days[0].day})
            _rank(conn, key, days, now_ms)
        else:
            _DROP.run(conn, name)
    return len(keys)
