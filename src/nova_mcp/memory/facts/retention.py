"""Ends facts with what they belong to: closed with their tab, removed with their sandbox, forgotten in time."""

from collections.abc import Callable, Sequence
from typing import Final

from sqlalchemy import ColumnElement, Connection, delete, func, select, update

from nova_mcp.memory.facts.store import TARGETS
from nova_mcp.memory.facts.tables import fact, fact_account, fact_binding, fact_observation

DAY_MS: Final = 86_400_000
FORGOTTEN_AT_ONCE: Final = 200


def close_target(conn: Connection, target_id: str, at_ms: int) -> int:
    """A tab has ended: its facts are closed and stay as history; says how many scopes that were."""
    open_ones = select(fact_binding.c.binding_id).where(
        fact_binding.c.target_id == target_id, fact_binding.c.closed_at_ms.is_(None)
    )
    return _close(conn, [row.binding_id for row in conn.execute(open_ones.with_for_update())], at_ms)


def close_ended_targets(conn: Connection, now_ms: int) -> int:
    """Close what is still open of targets that ended without a word, with their server."""
    ended = select(TARGETS.c.target_id).where(TARGETS.c.ended_at_ms.is_not(None))
    left = select(fact_binding.c.binding_id).where(
        fact_binding.c.closed_at_ms.is_(None), fact_binding.c.target_id.in_(ended)
    )
    rows = conn.execute(left.order_by(fact_binding.c.binding_id).with_for_update())
    return _close(conn, [row.binding_id for row in rows], now_ms)


def _close(conn: Connection, binding_ids: Sequence[str], at_ms: int) -> int:
    for binding_id in binding_ids:
        conn.execute(update(fact_binding).where(fact_binding.c.binding_id == binding_id).values(closed_at_ms=at_ms))
        conn.execute(
            update(fact).where(fact.c.binding_id == binding_id, fact.c.valid_to_ms.is_(None)).values(valid_to_ms=at_ms)
        )
    return len(binding_ids)


def remove_sandbox(conn: Connection, place_id: str) -> int:
    """A sandbox was deleted, or a tab of it on the way: nothing of what was known there stays."""
    own = select(fact_binding.c.binding_id).where(
        (fact_binding.c.sandbox_id == place_id) | (fact_binding.c.target_id == place_id)
    )
    return _remove(conn, [row.binding_id for row in conn.execute(own)])


def _remove(conn: Connection, binding_ids: Sequence[str]) -> int:
    gone = list(binding_ids)
    if not gone:
        return 0
    for owned in (fact_observation, fact, fact_binding):
        conn.execute(delete(owned).where(owned.c.binding_id.in_(gone)))
    # An account lives as long as some scope has seen it.
    seen = select(fact_binding.c.account_hash).where(
        fact_binding.c.service_key == fact_account.c.service_key,
        fact_binding.c.account_hash == fact_account.c.account_hash,
    )
    services = {str(binding_id).partition("/")[2] for binding_id in gone}
    conn.execute(delete(fact_account).where(fact_account.c.service_key.in_(services), ~seen.exists()))
    return len(gone)


def target_ended(conn: Connection, target_id: str, at_ms: int, reason: str) -> None:
    """What the end of a tab or a sandbox means for facts; in the transaction that writes the end down."""
    if reason == "sandbox_deleted":
        remove_sandbox(conn, target_id)
    else:
        close_target(conn, target_id, at_ms)


def _closed_before(at_ms: int) -> ColumnElement[bool]:
    return fact_binding.c.closed_at_ms < at_ms


def due_to_go(conn: Connection, before_ms: int) -> int:
    """How many scopes were closed before then."""
    return int(
        conn.execute(select(func.count()).select_from(fact_binding).where(_closed_before(before_ms))).scalar_one()
    )


def forgetting(days: int) -> Callable[[Connection, int], int]:
    """The chore that forgets scopes closed so long ago, given the time."""

    def chore(conn: Connection, now_ms: int) -> int:
        old = select(fact_binding.c.binding_id).where(_closed_before(now_ms - days * DAY_MS))
        rows = conn.execute(old.order_by(fact_binding.c.closed_at_ms).limit(FORGOTTEN_AT_ONCE))
        return _remove(conn, [row.binding_id for row in rows])

    return chore
