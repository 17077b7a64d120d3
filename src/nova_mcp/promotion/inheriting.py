"""What a new entry begins with: everything that was seen of its controls before anybody thought of storing them."""

import json
from typing import Any, Final

from sqlalchemy import Connection
from sqlalchemy import text as sql

from nova_mcp.journal.observing import index_key
from nova_mcp.knowledge import store
from nova_mcp.knowledge.model import Phenomenon
from nova_mcp.knowledge.routes import any_covers, restricts, route_of
from nova_mcp.knowledge.store import Shelved
from nova_mcp.promotion.counting import LONGEST_LOOKBACK_MS, source_of
from nova_mcp.promotion.model import Mark
from nova_mcp.promotion.whole import weighed
from nova_mcp.storage.prepared import Prepared

# Of each control; gates ask for far fewer.
MOST: Final = 100

_UNCLAIMED: Final = Prepared(
    sql(
        "SELECT observation_id, created_at_ms, kind, outcome, call_id, activity_session_id, severity, tool_name, "
        "payload FROM observation WHERE context_host = :host AND cluster_key = :key AND target_stable_id IS NULL "
        "AND created_at_ms >= :since ORDER BY observation_id DESC LIMIT :most"
    )
)


def inherited(conn: Connection, shelved: Shelved) -> tuple[Mark, ...]:
    """Marks in the order in which they were made. Only a first revision inherits: other content has to earn anew."""
    kept = shelved.kept
    if shelved.slot == "pending" or kept.revision > 1:
        return ()
    keys = [index_key(one) for one in store.selectors_in(kept)]
    if shelved.candidate_key is not None:
        keys.append(shelved.candidate_key)
    routes = kept.content.context.routes if isinstance(kept, Phenomenon) else ()
    since = kept.created_at_ms - LONGEST_LOOKBACK_MS
    found: dict[int, Mark] = {}
    for key in dict.fromkeys(keys):
        values = {"host": shelved.scope, "key": key, "since": since, "most": MOST}
        for row in _UNCLAIMED.run(conn, values).fetchall():
            if _fits(routes, row[8]):
                found[row[0]] = weighed(kept, _mark(row), row[7])
    return tuple(found[number] for number in sorted(found))


def _fits(routes: tuple[str, ...], payload: str) -> bool:
    if not restricts(routes):
        return True
    route = json.loads(payload).get("route")
    return isinstance(route, str) and any_covers(routes, route_of(f"https://{route}"))


def _mark(row: tuple[Any, ...]) -> Mark:
    number, at_ms, kind, outcome, call_id, session_id, severity, tool_name, payload = row
    severe = outcome < 0 and json.loads(payload).get("contract") == "verified_fail"
    return Mark(number, at_ms, kind, outcome, call_id, session_id, severity, source_of(tool_name), severe)
