"""What a new entry begins with: everything that was seen of its controls before anybody thought of storing them."""

import json
from typing import Any, Final

from sqlalchemy import Connection
from sqlalchemy import text as sql

from nova_mcp.journal.observing import index_key
from nova_mcp.knowledge import store
from nova_mcp.knowledge.model import DomainHint, Phenomenon
from nova_mcp.knowledge.routes import any_covers, restricts, route_of
from nova_mcp.knowledge.store import Shelved
from nova_mcp.promotion.counting import LONGEST_LOOKBACK_MS, source_of
from nova_mcp.promotion.model import Mark
from nova_mcp.promotion.whole import weighed
from nova_mcp.storage.prepared import Prepared

# Of each control; gates ask for far fewer.
MOST: Final = 100

# The control is asked for beside the key: a selector may be spelled like a claim or a tool that others are counted by.
_UNCLAIMED: Final = Prepared(
    sql(
        "SELECT observation_id, created_at_ms, kind, outcome, call_id, activity_session_id, severity, tool_name, "
        "payload FROM observation WHERE context_host = :host AND cluster_key = :key AND selector_norm = :selector "
        "AND target_stable_id IS NULL AND created_at_ms >= :since ORDER BY observation_id DESC LIMIT :most"
    )
)
# What failed under another name failed all the same; what worked there is that entry's own.
_AGAINST: Final = Prepared(
    sql(
        "SELECT observation_id, created_at_ms, kind, outcome, call_id, activity_session_id, severity, tool_name, "
        "payload FROM observation WHERE context_host = :host "
        "AND cluster_key IN (SELECT stable_id FROM knowledge_entry WHERE scope = :host) AND selector_norm = :selector "
        "AND target_stable_id IS NOT NULL AND outcome < 0 AND created_at_ms >= :since "
        "ORDER BY observation_id DESC LIMIT :most"
    )
)


def inherited(conn: Connection, shelved: Shelved) -> tuple[Mark, ...]:
    """Marks in the order in which they were made. Only a first revision inherits: other content has to earn anew."""
    kept = shelved.kept
    if shelved.slot == "pending" or kept.revision > 1 or not _proven_by_use(kept):
        return ()
    routes = kept.content.context.routes if isinstance(kept, Phenomenon) else ()
    values = {"host": shelved.scope, "since": kept.created_at_ms - LONGEST_LOOKBACK_MS, "most": MOST}
    found: dict[int, Mark] = {}
    for selector in store.selectors_in(kept):
        about = values | {"selector": selector}
        keys = dict.fromkeys((index_key(selector), *(() if (key := shelved.candidate_key) is None else (key,))))
        rows = [row for key in keys for row in _UNCLAIMED.run(conn, about | {"key": key}).fetchall()]
        for row in (*rows, *_AGAINST.run(conn, about).fetchall()):
            if _fits(routes, row[8]):
                found[row[0]] = weighed(kept, _mark(row), row[7])
    return tuple(found[number] for number in sorted(found))


def _proven_by_use(kept: Phenomenon | DomainHint) -> bool:
    """That a press worked says nothing about whether something is an ad or noise."""
    return isinstance(kept, Phenomenon) or kept.kind == "result_item"


def _fits(routes: tuple[str, ...], payload: str) -> bool:
    if not restricts(routes):
        return True
    route = json.loads(payload).get("route")
    return isinstance(route, str) and any_covers(routes, route_of(f"https://{route}"))


def _mark(row: tuple[Any, ...]) -> Mark:
    number, at_ms, kind, outcome, call_id, session_id, severity, tool_name, payload = row
    severe = outcome < 0 and json.loads(payload).get("contract") == "verified_fail"
    return Mark(number, at_ms, kind, outcome, call_id, session_id, severity, source_of(tool_name), severe)
