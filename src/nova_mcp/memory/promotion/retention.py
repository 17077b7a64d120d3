"""What learning forgets, a small step at a time. Steps go into the snapshot that a replay begins with; levels stay."""

from collections.abc import Callable
from itertools import takewhile
from typing import Final

from sqlalchemy import Column, Connection, Table, delete, func, select, tuple_

from nova_mcp.memory.knowledge.tables import knowledge_entry
from nova_mcp.memory.promotion import steps_store
from nova_mcp.memory.promotion.gates.counting import LONGEST_LOOKBACK_MS
from nova_mcp.memory.promotion.gates.folding import replay
from nova_mcp.memory.promotion.model import DAY_MS, RULES_VERSION
from nova_mcp.memory.promotion.tables import (
    learning_event,
    learning_step,
    revalidation_check,
    semantic_opportunity,
    telemetry_backing,
)

# Rows of each table per transaction: a call that wants to write waits for one such step.
STEP: Final = 500
ENTRIES: Final = 20
# Gates look back this long, and they look at steps alone.
_LEAST_DAYS: Final = LONGEST_LOOKBACK_MS // DAY_MS + 1
# A budget counts an hour and a report is backed by the last ten minutes.
_SPENT_DAYS: Final = 2


def forgetting(days: int) -> Callable[[Connection, int], int]:
    """The chore that forgets what happened so long ago, given the time; says how many rows went."""

    def chore(conn: Connection, now_ms: int) -> int:
        gone = fold_steps(conn, edge(days, now_ms))
        for table, at, kept in _plain(days):
            gone += _drop(conn, table, at, now_ms - kept * DAY_MS)
        return gone

    return chore


def due_to_go(conn: Connection, now_ms: int, days: int) -> int:
    """How many rows a run would forget."""
    rows = [(learning_step, learning_step.c.at_ms, edge(days, now_ms))]
    rows += [(table, at, now_ms - kept * DAY_MS) for table, at, kept in _plain(days)]
    counts = (select(func.count()).select_from(table).where(at < before) for table, at, before in rows)
    return sum(int(conn.execute(count).scalar_one()) for count in counts)


def edge(days: int, now_ms: int) -> int:
    return now_ms - max(days, _LEAST_DAYS) * DAY_MS


def _plain(days: int) -> list[tuple[Table, Column[int], int]]:
    """What is simply dropped, in the order in which calls touch it."""
    return [
        (learning_event, learning_event.c.created_at_ms, days),
        (semantic_opportunity, semantic_opportunity.c.updated_at_ms, days),
        (revalidation_check, revalidation_check.c.at_ms, _SPENT_DAYS),
        (telemetry_backing, telemetry_backing.c.at_ms, _SPENT_DAYS),
    ]


def _drop(conn: Connection, table: Table, at: Column[int], before_ms: int) -> int:
    key = tuple(table.primary_key.columns)
    chosen = select(*key).where(at < before_ms).order_by(at).limit(STEP)
    # Asked again of the row itself: a call may have made it young while this waited for it.
    return conn.execute(delete(table).where(tuple_(*key).in_(chosen), at < before_ms)).rowcount


# -- steps


def fold_steps(conn: Connection, before_ms: int) -> int:
    """Move the beginning of some entries' replays up to the edge; says how many steps went."""
    step = learning_step.c
    old = select(step.entry_id).where(step.at_ms < before_ms).distinct().limit(ENTRIES)
    return sum(_folded(conn, number, before_ms) for number in sorted(conn.execute(old).scalars()))


def _folded(conn: Connection, entry_id: int, before_ms: int) -> int:
    begin = steps_store.snapshot(conn, entry_id, lock=True)
    known = conn.execute(select(knowledge_entry.c.entry_id).where(knowledge_entry.c.entry_id == entry_id)).first()
    if begin is None or known is None:
        # Nothing begins here, so nothing can be replayed from it.
        steps = learning_step.c
        return conn.execute(delete(learning_step).where(steps.entry_id == entry_id, steps.at_ms < before_ms)).rowcount
    up_to, start = begin
    if start.rules_version != RULES_VERSION:
        return 0
    rows = steps_store.steps(conn, entry_id, up_to, STEP)
    # Steps stand in the order in which they happened to the entry; a clock that was put back does not change that.
    done = list(takewhile(lambda row: row[1] < before_ms, rows))
    if not done:
        return 0
    last = done[-1][0]
    steps_store.keep_snapshot(conn, entry_id, last, replay(start, [one for _, _, one in done]).snapshot)
    steps = learning_step.c
    return conn.execute(delete(learning_step).where(steps.entry_id == entry_id, steps.step_id <= last)).rowcount
