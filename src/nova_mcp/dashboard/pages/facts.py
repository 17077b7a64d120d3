"""What is held true right now, tab by tab, and how one fact came to be what it is."""

from dataclasses import dataclass
from itertools import groupby
from typing import Final

from sqlalchemy import Connection

from nova_mcp.core.keywords import cut
from nova_mcp.dashboard.charts.fact_line import FactLine, fact_line
from nova_mcp.memory.facts.model import Fact
from nova_mcp.memory.facts.reader import FactFilter, ListedFact, history, listed

FACTS: Final = 60
VERSIONS: Final = 100
VALUE_CHARS: Final = 120


@dataclass(frozen=True, slots=True)
class FactsAsked:
    """Which facts to show; `after` is where an earlier page ended: tab, service and key."""

    target_id: str = ""
    service_key: str = ""
    closed: bool = False
    after: tuple[str, str, str] | None = None


@dataclass(frozen=True, slots=True)
class FactRow:
    target_id: str
    principal: str
    service_key: str
    key: str
    value: str
    state: str
    certainty: str
    source: str
    support: int
    contradictions: int
    version: int
    last_observed_at_ms: int
    # Set when the tab has ended, or the value is of the past.
    valid_to_ms: int | None


@dataclass(frozen=True, slots=True)
class FactGroup:
    """The facts of one tab on one service."""

    target_id: str
    service_key: str
    facts: tuple[FactRow, ...]


@dataclass(frozen=True, slots=True)
class FactsView:
    asked: FactsAsked
    facts: tuple[FactRow, ...]
    next_after: tuple[str, str, str] | None

    @property
    def groups(self) -> tuple[FactGroup, ...]:
        placed = groupby(self.facts, lambda one: (one.target_id, one.service_key))
        return tuple(FactGroup(target_id, service, tuple(rows)) for (target_id, service), rows in placed)


@dataclass(frozen=True, slots=True)
class FactView:
    """One fact with its versions, newest first; `cut` when there were earlier ones."""

    now: FactRow
    versions: tuple[Fact, ...]
    line: FactLine | None
    cut: bool


def facts(conn: Connection, asked: FactsAsked) -> FactsView:
    after = None if asked.after is None else (f"{asked.after[0]}/{asked.after[1]}", asked.after[2])
    wanted = FactFilter(
        target_id=asked.target_id or None,
        service_key=asked.service_key or None,
        closed=asked.closed,
        limit=FACTS + 1,
        after=after,
    )
    found = listed(conn, wanted)
    rows = tuple(_row(one) for one in found[:FACTS])
    last = rows[-1] if len(found) > FACTS else None
    return FactsView(asked, rows, None if last is None else (last.target_id, last.service_key, last.key))


def fact(conn: Connection, target_id: str, service_key: str, key: str, now_ms: int) -> FactView | None:
    found = history(conn, target_id, service_key, key, VERSIONS + 1)
    if not found:
        return None
    versions = tuple(one.fact for one in found[:VERSIONS])
    return FactView(_row(found[0], 4 * VALUE_CHARS), versions, fact_line(versions, now_ms), len(found) > VERSIONS)


def _row(one: ListedFact, chars: int = VALUE_CHARS) -> FactRow:
    held = one.fact
    return FactRow(
        target_id=one.target_id,
        principal=one.principal,
        service_key=one.service_key,
        key=held.key,
        value=cut(held.value, chars),
        state=held.state,
        certainty=held.certainty,
        source=held.source,
        support=held.support,
        contradictions=held.contradictions,
        version=held.version,
        last_observed_at_ms=held.last_observed_at_ms,
        valid_to_ms=held.valid_to_ms,
    )
