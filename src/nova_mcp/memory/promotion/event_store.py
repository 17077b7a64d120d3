"""The promotion log: what was decided about entries, when, and on what evidence."""

from dataclasses import dataclass, field

from sqlalchemy import Connection, RowMapping, insert, select

from nova_mcp.memory.knowledge.codec import decoded, encoded
from nova_mcp.memory.promotion.model import EventKind, EvidenceCounts, Gate, LearningEvent
from nova_mcp.memory.promotion.tables import learning_event


@dataclass(frozen=True, slots=True)
class _Body:
    gates: tuple[Gate, ...] = ()
    counts: EvidenceCounts = field(default_factory=EvidenceCounts)
    rules_version: int = 1


def add(conn: Connection, event: LearningEvent) -> None:
    conn.execute(
        insert(learning_event).values(
            scope=event.host,
            stable_id=event.stable_id,
            from_level=event.from_level,
            to_level=event.to_level,
            reason_kind=event.reason_kind,
            rejection=event.rejection,
            body=encoded(_Body(event.gates, event.counts, event.rules_version)),
            created_at_ms=event.created_at_ms,
        )
    )


def events(conn: Connection, scope: str | None, since_ms: int, limit: int) -> list[LearningEvent]:
    """What was decided since, newest first; of one site or of all."""
    log = learning_event.c
    found = select(learning_event).where(log.created_at_ms >= since_ms)
    if scope is not None:
        found = found.where(log.scope == scope)
    rows = conn.execute(found.order_by(log.created_at_ms.desc(), log.event_id.desc()).limit(limit)).mappings()
    return [_event(row) for row in rows]


def of_entry(conn: Connection, scope: str, stable_id: str, limit: int) -> list[LearningEvent]:
    """What was last decided about one entry, in the order in which it was."""
    log = learning_event.c
    found = select(learning_event).where(log.scope == scope, log.stable_id == stable_id)
    rows = conn.execute(found.order_by(log.event_id.desc()).limit(limit)).mappings().all()
    return [_event(row) for row in reversed(rows)]


def last(conn: Connection, scope: str, stable_id: str, kind: EventKind) -> LearningEvent | None:
    """What was last decided about a transition of an entry."""
    log = learning_event.c
    found = select(learning_event).where(log.scope == scope, log.stable_id == stable_id, log.reason_kind == kind)
    row = conn.execute(found.order_by(log.event_id.desc()).limit(1)).mappings().one_or_none()
    return None if row is None else _event(row)


def _event(row: RowMapping) -> LearningEvent:
    body = decoded(_Body, row["body"])
    return LearningEvent(
        stable_id=row["stable_id"],
        host=row["scope"],
        from_level=row["from_level"],
        to_level=row["to_level"],
        reason_kind=row["reason_kind"],
        created_at_ms=row["created_at_ms"],
        gates=body.gates,
        counts=body.counts,
        rejection=row["rejection"],
        rules_version=body.rules_version,
    )
