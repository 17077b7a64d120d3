"""Reads facts across scopes, for people who ask what is held true."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlalchemy import ColumnElement, Connection, or_, select

from nova_mcp.memory.facts.model import Fact
from nova_mcp.memory.facts.store import to_fact
from nova_mcp.memory.facts.tables import fact, fact_binding

LISTED = 1_000


@dataclass(frozen=True, slots=True)
class FactFilter:
    """Which facts are wanted; closed scopes are those of tabs that have ended."""

    target_id: str | None = None
    service_key: str | None = None
    history: bool = False
    closed: bool = False
    limit: int = LISTED
    # The place and key that an earlier page ended with.
    after: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class ListedFact:
    """A fact where it belongs, with its earlier versions, newest first."""

    target_id: str
    sandbox_id: str
    principal: str
    service_key: str
    account_hash: str | None
    fact: Fact
    history: Sequence[Fact] = field(default=())


def listed(conn: Connection, wanted: FactFilter) -> list[ListedFact]:
    """The newest version of every fact that fits, by target, service and key."""
    newest = fact.c.superseded_by.is_(None) if wanted.closed else fact.c.valid_to_ms.is_(None)
    rows = conn.execute(
        select(fact, *(fact_binding.c[name] for name in _PLACE))
        .join(fact_binding, fact_binding.c.binding_id == fact.c.binding_id)
        .where(newest, *_conditions(wanted))
        .order_by(fact.c.binding_id, fact.c.signal_key)
        .limit(wanted.limit)
    ).all()
    return [
        ListedFact(
            row.target_id,
            row.sandbox_id,
            row.principal,
            row.service_key,
            row.account_hash,
            to_fact(row),
            _earlier(conn, row.binding_id, row.signal_key, row.version) if wanted.history else (),
        )
        for row in rows
    ]


_PLACE = ("target_id", "sandbox_id", "principal", "service_key", "account_hash")


def _conditions(wanted: FactFilter) -> list[ColumnElement[bool]]:
    pairs = ((fact_binding.c.target_id, wanted.target_id), (fact_binding.c.service_key, wanted.service_key))
    chosen = [column == value for column, value in pairs if value is not None]
    if wanted.after is None:
        return chosen
    # The first half bounds the search by the index, which the comparison of pairs alone does not everywhere.
    binding, key = wanted.after
    beyond = or_(fact.c.binding_id > binding, fact.c.signal_key > key)
    return [*chosen, fact.c.binding_id >= binding, beyond]


def _earlier(conn: Connection, binding_id: str, key: str, version: int) -> list[Fact]:
    rows = conn.execute(
        select(fact)
        .where(fact.c.binding_id == binding_id, fact.c.signal_key == key, fact.c.version < version)
        .order_by(fact.c.version.desc())
    )
    return [to_fact(row) for row in rows]


def history(conn: Connection, target_id: str, service_key: str, key: str, most: int) -> list[ListedFact]:
    """One fact with its versions, newest first and at most so many; nothing where there never was one."""
    place = select(fact_binding).where(fact_binding.c.target_id == target_id, fact_binding.c.service_key == service_key)
    binding = conn.execute(place).one_or_none()
    if binding is None:
        return []
    rows = conn.execute(
        select(fact)
        .where(fact.c.binding_id == binding.binding_id, fact.c.signal_key == key)
        .order_by(fact.c.version.desc())
        .limit(most)
    )
    where = (binding.target_id, binding.sandbox_id, binding.principal, binding.service_key, binding.account_hash)
    return [ListedFact(*where, to_fact(row)) for row in rows]
