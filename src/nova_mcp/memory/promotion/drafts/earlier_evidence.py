"""What a new entry begins with: everything that was seen of its controls before anybody thought of storing them."""

import json
from typing import Any, Final

from sqlalchemy import Connection
from sqlalchemy import text as sql

from nova_mcp.core.page.selectors import normalize_selector
from nova_mcp.memory.journal.evidence import Observation
from nova_mcp.memory.journal.observations import AMBIGUOUS, index_key
from nova_mcp.memory.journal.store import hold_key
from nova_mcp.memory.journal.throttle import PROOF_WINDOW_MS, Held, throttle_key
from nova_mcp.memory.knowledge import store
from nova_mcp.memory.knowledge.matching.routes import any_covers, restricts, route_of
from nova_mcp.memory.knowledge.model import DomainHint, Phenomenon
from nova_mcp.memory.knowledge.store import Shelved
from nova_mcp.memory.promotion.gates.counting import LONGEST_LOOKBACK_MS, source_of
from nova_mcp.memory.promotion.gates.evidence_rules import weighed
from nova_mcp.memory.promotion.model import Mark
from nova_mcp.storage.prepared import Prepared

# Of each control; gates ask for far fewer.
MOST: Final = 100
# What Nova drafts holds nothing but what was observed, in all the sessions it is made of. What somebody claims may come
# from one visit to a page that lies: that visit counts for it, those before were about something else.
_DRAFTED: Final = frozenset({"generated", "auto"})

# The control is asked for beside the key: a selector may be spelled like a claim or a tool that others are counted by.
_UNCLAIMED: Final = Prepared(
    sql(
        "SELECT observation_id, created_at_ms, kind, outcome, call_id, activity_session_id, severity, tool_name, "
        "payload, target_id FROM observation WHERE context_host = :host AND cluster_key = :key "
        "AND selector_norm = :selector AND target_stable_id IS NULL AND created_at_ms >= :since "
        "ORDER BY observation_id DESC LIMIT :most"
    )
)
# What failed under another name failed all the same; what worked there is that entry's own.
_AGAINST: Final = Prepared(
    sql(
        "SELECT observation_id, created_at_ms, kind, outcome, call_id, activity_session_id, severity, tool_name, "
        "payload, target_id FROM observation WHERE context_host = :host "
        "AND cluster_key IN (SELECT stable_id FROM knowledge_entry WHERE scope = :host) AND selector_norm = :selector "
        "AND target_stable_id IS NOT NULL AND outcome < 0 AND created_at_ms >= :since "
        "ORDER BY observation_id DESC LIMIT :most"
    )
)
# Each entry of a list is a control of its own; what they have in common stands with what was seen of them.
_IN_LISTS: Final = Prepared(
    sql(
        "SELECT observation_id, created_at_ms, kind, outcome, call_id, activity_session_id, severity, tool_name, "
        "payload, target_id FROM observation WHERE context_host = :host AND created_at_ms >= :since "
        "AND kind = 'action_success' AND payload LIKE :listed ORDER BY created_at_ms DESC LIMIT :most"
    )
)
_NEWEST_SESSION: Final = Prepared(
    sql("SELECT session_id FROM activity_session WHERE context_host = :host ORDER BY last_at_ms DESC LIMIT 1")
)


def inherited(conn: Connection, shelved: Shelved) -> tuple[Mark, ...]:
    """Marks in the order in which they were made. Only a first revision inherits: other content has to earn anew."""
    kept = shelved.kept
    if shelved.slot == "pending" or kept.revision > 1 or not _proven_by_use(kept):
        return ()
    session = None if shelved.origin in _DRAFTED else _session_here(conn, shelved.scope)
    routes = kept.content.context.routes if isinstance(kept, Phenomenon) else ()
    found: dict[int, Mark] = {}
    for row in _rows(conn, shelved):
        mark = weighed(kept, _mark(row), row[7])
        if (mark.outcome < 0 or session in (None, mark.session_id)) and _fits(routes, json.loads(row[8])):
            found[mark.seq] = mark
            _take_over(conn, shelved, mark, tool_name=row[7], target_id=row[9])
    return tuple(found[number] for number in sorted(found))


def _proven_by_use(kept: Phenomenon | DomainHint) -> bool:
    """That a press worked says nothing about whether something is an ad or noise."""
    return isinstance(kept, Phenomenon) or kept.kind == "result_item"


def _rows(conn: Connection, shelved: Shelved) -> list[tuple[Any, ...]]:
    """Observations of an entry's controls, from old to new: those that speak of no other entry, and what failed."""
    since = shelved.kept.created_at_ms - LONGEST_LOOKBACK_MS
    lists = _list_rows(conn, shelved, since) if isinstance(shelved.kept, DomainHint) else []
    rows: dict[int, tuple[Any, ...]] = {row[0]: row for row in lists}
    for selector in store.selectors_in(shelved.kept):
        about = {"host": shelved.scope, "selector": selector, "since": since, "most": MOST}
        keys = [index_key(selector)] if _alone(conn, shelved, selector) else []
        if shelved.candidate_key is not None:
            keys.append(shelved.candidate_key)
        for key in keys:
            rows |= {row[0]: row for row in _UNCLAIMED.run(conn, about | {"key": key}).fetchall()}
        rows |= {row[0]: row for row in _AGAINST.run(conn, about).fetchall()}
    return [rows[number] for number in sorted(rows)]


def _list_rows(conn: Connection, shelved: Shelved, since: int) -> list[tuple[Any, ...]]:
    """What was done with entries of the lists that a hint names, from old to new."""
    about = {"host": shelved.scope, "since": since, "most": MOST, "listed": '%"items":%'}
    named = frozenset(store.selectors_in(shelved.kept))
    rows = _IN_LISTS.run(conn, about).fetchall()
    return [row for row in reversed(rows) if normalize_selector(json.loads(row[8])["items"][0] or "") in named]


def _alone(conn: Connection, shelved: Shelved, selector: str) -> bool:
    """Whether no other entry acts through a control, a retired one included: under another name it would begin with
    what spoke for the old one."""
    return all(one.stable_id == shelved.stable_id for one in store.owners(conn, shelved.scope, selector))


def _fits(routes: tuple[str, ...], payload: dict[str, Any]) -> bool:
    if payload.get("attribution") == AMBIGUOUS:
        return False
    if not restricts(routes):
        return True
    route = payload.get("route")
    return isinstance(route, str) and any_covers(routes, route_of(f"https://{route}"))


def _session_here(conn: Connection, scope: str) -> str:
    """The session in which somebody writes about a site: their call has just continued it."""
    row = _NEWEST_SESSION.run(conn, {"host": scope}).fetchone()
    return "" if row is None else str(row[0])


def _take_over(conn: Connection, shelved: Shelved, mark: Mark, tool_name: str, target_id: str) -> None:
    """A repetition of what an entry began with adds nothing, though from now on it goes by the entry's name."""
    if mark.at_ms <= shelved.kept.created_at_ms - PROOF_WINDOW_MS:
        return
    held = Held(mark.at_ms, mark.seq, mark.outcome)
    seen = Observation(mark.kind, mark.outcome, mark.severity, target_stable_id=shelved.stable_id)
    hold_key(conn, throttle_key(seen, shelved.scope, target_id, tool_name), held)
    if mark.outcome > 0:
        proof = Observation("tob_verified", 1, target_stable_id=shelved.stable_id)
        hold_key(conn, throttle_key(proof, shelved.scope, target_id, tool_name), held)


def _mark(row: tuple[Any, ...]) -> Mark:
    number, at_ms, kind, outcome, call_id, session_id, severity, tool_name, payload, _ = row
    severe = outcome < 0 and json.loads(payload).get("contract") == "verified_fail"
    return Mark(number, at_ms, kind, outcome, call_id, session_id, severity, source_of(tool_name), severe)
