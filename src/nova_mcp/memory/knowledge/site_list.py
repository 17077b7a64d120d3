"""The known sites with what is known of each, in short; read in bounded pieces."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, select

from nova_mcp.memory.knowledge import store
from nova_mcp.memory.knowledge.codec import decoded
from nova_mcp.memory.knowledge.health import state, success_rate, trust_of
from nova_mcp.memory.knowledge.matching.categories import categories_of
from nova_mcp.memory.knowledge.model import (
    ACTIVE,
    CANDIDATE,
    SHADOW,
    Health,
    Level,
    PhenomenonType,
    Scope,
    ScopeName,
    Trust,
)
from nova_mcp.memory.knowledge.tables import knowledge_entry

PIECE: Final = 200


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which sites; what is not set lets everything through."""

    prefix: str = ""
    type: PhenomenonType | None = None
    trust: Trust | None = None
    category: str | None = None
    min_health: float | None = None
    limit: int = 50
    offset: int = 0
    # The name that an earlier page ended with; unlike an offset it costs nothing to go on from.
    after: str = ""


@dataclass(frozen=True, slots=True)
class SiteBrief:
    scope: ScopeName
    active: int
    shadow: int
    candidate: int
    deprecated: int
    rate: float | None
    types: tuple[PhenomenonType, ...]
    trust: Trust
    categories: tuple[str, ...]
    updated_at_ms: int
    hints: int = 0
    watch: int = 0
    quarantined: int = 0


@dataclass(frozen=True, slots=True)
class Listing:
    sites: tuple[SiteBrief, ...]
    has_more: bool


@dataclass(frozen=True, slots=True)
class _Row:
    """As much of an entry as a list of sites needs; its content would cost the most to read."""

    scope: ScopeName
    hint: bool
    type: PhenomenonType
    level: Level
    deprecated: bool
    health: Health


def _rows(conn: Connection, names: Sequence[ScopeName]) -> list[_Row]:
    c = knowledge_entry.c
    found = select(c.scope, c.kind, c.type, c.level, c.deprecated_reason, c.health).where(
        c.scope.in_(names), c.slot == "current"
    )
    return [
        _Row(
            ScopeName(row.scope),
            row.kind == "hint",
            row.type,
            row.level,
            row.deprecated_reason is not None,
            decoded(Health, row.health),
        )
        for row in conn.execute(found)
    ]


def listed(conn: Connection, wanted: Wanted, now_ms: int) -> Listing:
    fitting = (one for one in _briefs(conn, wanted, now_ms) if _fits(one, wanted))
    for _ in range(wanted.offset):
        if next(fitting, None) is None:
            break
    found = [one for _, one in zip(range(wanted.limit + 1), fitting, strict=False)]
    return Listing(tuple(found[: wanted.limit]), len(found) > wanted.limit)


def _briefs(conn: Connection, wanted: Wanted, now_ms: int) -> Iterator[SiteBrief]:
    after = wanted.after
    while piece := store.scopes(conn, wanted.prefix, after, PIECE):
        rows: dict[ScopeName, list[_Row]] = {}
        for one in _rows(conn, [scope.name for scope, _ in piece]):
            rows.setdefault(one.scope, []).append(one)
        for scope, at_ms in piece:
            yield _brief(scope, rows.get(scope.name, ()), at_ms, now_ms)
        after = piece[-1][0].name


def _brief(scope: Scope, rows: Iterable[_Row], updated_at_ms: int, now_ms: int) -> SiteBrief:
    every = list(rows)
    held = [one for one in every if not one.hint]
    alive = [one for one in held if not one.deprecated]
    rates = [rate for one in alive if (rate := success_rate(one.health, now_ms)) is not None]
    levels = [one.level for one in alive]
    states = [state(one.health, now_ms) for one in alive]
    return SiteBrief(
        scope=scope.name,
        active=levels.count(ACTIVE),
        shadow=levels.count(SHADOW),
        candidate=levels.count(CANDIDATE),
        deprecated=len(held) - len(alive),
        rate=sum(rates) / len(rates) if rates else None,
        types=tuple(sorted({one.type for one in alive})),
        trust=trust_of(alive, now_ms),
        categories=categories_of(scope),
        updated_at_ms=updated_at_ms,
        hints=len(every) - len(held),
        watch=states.count("watch"),
        quarantined=states.count("quarantined"),
    )


def _fits(one: SiteBrief, wanted: Wanted) -> bool:
    return (
        (wanted.type is None or wanted.type in one.types)
        and wanted.trust in (None, one.trust)
        and (wanted.category is None or wanted.category in one.categories)
        and (wanted.min_health is None or (one.rate is not None and one.rate >= wanted.min_health))
    )
