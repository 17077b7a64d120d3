"""Erases bodies whose time is over; the links stay, so the chains stay whole, and every erasure is itself recorded."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, Select, bindparam, delete, func, select, tuple_, update

from nova_mcp.evidence.erasure import Eraser, record_erasure
from nova_mcp.evidence.rules import DAY_MS, EraseBody, Holds, KeepBody, RetentionPolicy, RetentionSubject, retention
from nova_mcp.evidence.store import hold_chain, ledger_body, ledger_link, ledger_open_intent

_BATCH = 500
# What tells why something is missing must not go missing itself.
_KEPT_KINDS = ("erasure", "gap")
_NO_HOLDS = Holds()
_DEFAULTS = RetentionPolicy()
_MARK = (
    update(ledger_link)
    .where(ledger_link.c.server_id == bindparam("server"), ledger_link.c.server_seq == bindparam("seq"))
    .values(erased_at_ms=bindparam("now"))
)
_DROP = delete(ledger_body).where(
    ledger_body.c.server_id == bindparam("server"), ledger_body.c.server_seq == bindparam("seq")
)


@dataclass(frozen=True, slots=True)
class PruneCursor:
    """Where a run that stopped at its limit goes on."""

    at_ms: int
    server_id: str
    server_seq: int


@dataclass(frozen=True, slots=True)
class PruneReport:
    """What went, or would go, by rule; what was old enough to look at and stays, by reason."""

    erased: Mapping[str, int]
    kept: Mapping[str, int]
    bytes: int
    resume: PruneCursor | None = None

    @property
    def total(self) -> int:
        return sum(self.erased.values())


@dataclass(frozen=True, slots=True)
class PruneRequest:
    """One run: `limit` bounds how many bodies one transaction looks at, so that callers are not held up for long.

    `by` is who erases; only a dry run does without.
    """

    by: Eraser | None = None
    policy: RetentionPolicy = _DEFAULTS
    holds: Holds = _NO_HOLDS
    dry_run: bool = False
    limit: int | None = None
    resume: PruneCursor | None = None


_OLD = (
    select(
        *(column for column in ledger_body.c if column.name != "body"),
        func.length(ledger_body.c.body).label("size"),
        ledger_link.c.call_id,
        ledger_open_intent.c.call_id.label("open_intent"),
    )
    .join_from(
        ledger_body,
        ledger_link,
        (ledger_body.c.server_id == ledger_link.c.server_id) & (ledger_body.c.server_seq == ledger_link.c.server_seq),
    )
    .outerjoin(ledger_open_intent, ledger_open_intent.c.call_id == ledger_link.c.call_id)
    .where(ledger_body.c.kind.not_in(_KEPT_KINDS))
    .order_by(ledger_body.c.at_ms, ledger_body.c.server_id, ledger_body.c.server_seq)
)


def prune(conn: Connection, now_ms: int, request: PruneRequest) -> PruneReport:
    """Apply the retention rule to every body older than the shortest period."""
    if request.by is None and not request.dry_run:
        raise ValueError("an erasure is recorded with who erases")
    if request.by is not None and not request.dry_run:
        # Every transaction that writes takes its chain first.
        hold_chain(conn, request.by.server_id)
    gone: list[tuple[str, int]] = []
    report = _apply(conn, now_ms, request, gone)
    if request.by is not None and gone:
        record_erasure(conn, request.by, gone, report.erased, now_ms)
    return report


def _apply(conn: Connection, now_ms: int, request: PruneRequest, gone: list[tuple[str, int]]) -> PruneReport:
    erased: Counter[str] = Counter()
    kept: Counter[str] = Counter()
    size, cursor, left = 0, request.resume, request.limit
    horizon = now_ms - request.policy.shortest_days * DAY_MS
    while left is None or left > 0:
        rows = conn.execute(_after(horizon, cursor, _BATCH if left is None else min(_BATCH, left))).all()
        if not rows:
            return PruneReport(erased, kept, size)
        for row in rows:
            match retention(_subject(row), now_ms, request.policy, request.holds):
                case KeepBody(reason):
                    kept[reason] += 1
                case EraseBody(rule):
                    if not request.dry_run:
                        if not _erase(conn, row.server_id, row.server_seq, now_ms):
                            # Another server was faster, and its record says so.
                            continue
                        gone.append((row.server_id, row.server_seq))
                    erased[rule] += 1
                    size += row.size
        cursor = PruneCursor(rows[-1].at_ms, rows[-1].server_id, rows[-1].server_seq)
        left = None if left is None else left - len(rows)
    return PruneReport(erased, kept, size, cursor)


def erase_bodies(conn: Connection, call_ids: Iterable[str], now_ms: int, by: Eraser) -> int:
    """Erase named bodies; those of open intents stay, because recovery needs them. Says how many went."""
    hold_chain(conn, by.server_id)
    gone: list[tuple[str, int]] = []
    for chunk in _chunks(sorted(set(call_ids))):
        rows = conn.execute(
            select(ledger_body.c.server_id, ledger_body.c.server_seq)
            .join_from(
                ledger_link,
                ledger_body,
                (ledger_body.c.server_id == ledger_link.c.server_id)
                & (ledger_body.c.server_seq == ledger_link.c.server_seq),
            )
            .where(ledger_link.c.call_id.in_(chunk), ledger_body.c.kind.not_in(_KEPT_KINDS))
            .where(ledger_link.c.call_id.not_in(select(ledger_open_intent.c.call_id)))
            .order_by(ledger_body.c.server_id, ledger_body.c.server_seq)
        ).all()
        gone += [(row[0], row[1]) for row in rows if _erase(conn, row[0], row[1], now_ms)]
    if gone:
        record_erasure(conn, by, gone, {"named": len(gone)}, now_ms)
    return len(gone)


def _after(horizon: int, cursor: PruneCursor | None, limit: int) -> Select[Any]:
    statement = _OLD.where(ledger_body.c.at_ms < horizon).limit(limit)
    if cursor is not None:
        key = tuple_(ledger_body.c.at_ms, ledger_body.c.server_id, ledger_body.c.server_seq)
        statement = statement.where(key > (cursor.at_ms, cursor.server_id, cursor.server_seq))
    return statement


def _subject(row: Row[Any]) -> RetentionSubject:
    return RetentionSubject(
        call_id=row.call_id,
        at_ms=row.at_ms,
        outcome_kind=row.outcome_kind,
        task_id=row.task_id,
        instance_id=row.instance_id,
        open_intent=row.open_intent is not None,
        owner=(row.principal, row.agent_id),
    )


def _erase(conn: Connection, server_id: str, server_seq: int, now_ms: int) -> int:
    place = {"server": server_id, "seq": server_seq}
    if conn.execute(_DROP, place).rowcount == 0:
        return 0
    conn.execute(_MARK, {**place, "now": now_ms})
    return 1


def _chunks(items: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(items), _BATCH):
        yield items[start : start + _BATCH]
