"""Keeps what agents were asked about sites and how they answered, a row for each principal and opportunity."""

from typing import Final

from sqlalchemy import Connection, select
from sqlalchemy import text as sql
from sqlalchemy.dialects import postgresql, sqlite

from nova_mcp.memory.knowledge.codec import decoded, encoded
from nova_mcp.memory.knowledge.tables import knowledge_scope
from nova_mcp.memory.promotion.prompts.rules import SemanticOpportunity, site_of
from nova_mcp.memory.promotion.tables import semantic_opportunity as held
from nova_mcp.storage.prepared import Prepared

# More than this are not kept in view for one site; the newest matter.
MOST_PER_SITE: Final = 50


_OPEN: Final = Prepared(
    sql(
        "SELECT 1 FROM semantic_opportunity WHERE principal = :principal AND origin = :site "
        "AND state IN ('prompted', 'warned') LIMIT 1"
    )
)


def of_site(conn: Connection, principal: str, site: str) -> tuple[SemanticOpportunity, ...]:
    """Held until the transaction ends: an answer that comes meanwhile must not be written over."""
    rows = conn.execute(
        select(held.c.body)
        .where(held.c.principal == principal, held.c.origin == site)
        .order_by(held.c.updated_at_ms.desc(), held.c.opportunity_id)
        .limit(MOST_PER_SITE)
        .with_for_update()
    )
    return tuple(decoded(SemanticOpportunity, row.body) for row in rows)


def has_open(conn: Connection, principal: str, site: str) -> bool:
    return _OPEN.run(conn, {"principal": principal, "site": site}).fetchone() is not None


def find(conn: Connection, principal: str, opportunity_id: str, *, lock: bool = True) -> SemanticOpportunity | None:
    """One of a principal's own, held until the transaction ends; what others were asked stays unknown."""
    row = select(held.c.body).where(held.c.principal == principal, held.c.opportunity_id == opportunity_id)
    body = conn.execute(row.with_for_update() if lock else row).scalar_one_or_none()
    return None if body is None else decoded(SemanticOpportunity, body)


def asked(conn: Connection, principal: str, opportunity_id: str) -> SemanticOpportunity | None:
    """The same for whoever closes it, which may change the site's entries: everybody takes the site's row first."""
    named = find(conn, principal, opportunity_id, lock=False)
    if named is None:
        return None
    scope = knowledge_scope.c.scope
    conn.execute(select(scope).where(scope == site_of(named.origin)).with_for_update())
    return find(conn, principal, opportunity_id)


def save(conn: Connection, principal: str, one: SemanticOpportunity, now_ms: int) -> None:
    insert = (postgresql if conn.dialect.name == "postgresql" else sqlite).insert
    values = {
        "principal": principal,
        "opportunity_id": one.opportunity_id,
        "origin": site_of(one.origin),
        "state": one.state,
        "body": encoded(one),
        "updated_at_ms": now_ms,
    }
    put = insert(held).values(**values)
    changed = {name: values[name] for name in ("origin", "state", "body", "updated_at_ms")}
    conn.execute(put.on_conflict_do_update(index_elements=[held.c.principal, held.c.opportunity_id], set_=changed))
