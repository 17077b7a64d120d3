"""Keeps how single controls have done, and raises a candidate for one that was proven under different circumstances."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from sqlalchemy import Connection, delete, select
from sqlalchemy import text as sql

from nova_mcp.core.page.selectors import selector_class
from nova_mcp.evidence.model import CallRecord, Learned
from nova_mcp.memory.journal.evidence import Seen
from nova_mcp.memory.journal.observations import bare_name
from nova_mcp.memory.knowledge import store
from nova_mcp.memory.knowledge.codec import decoded, encoded
from nova_mcp.memory.knowledge.matching.fingerprints import ObservedSignal
from nova_mcp.memory.knowledge.model import (
    Action,
    ActionKind,
    Content,
    Fingerprint,
    Playbook,
    Problem,
    ScopeName,
    Signal,
    StableId,
)
from nova_mcp.memory.knowledge.scopes import scope_of
from nova_mcp.memory.knowledge.writes.content_rules import LiveLook
from nova_mcp.memory.knowledge.writes.page_check import PageCheck
from nova_mcp.memory.promotion.drafts import draft_store
from nova_mcp.memory.promotion.drafts.auto_learning import SUCCESSES, AutoLearn, Track, Use, auto_learn, tracked
from nova_mcp.memory.promotion.drafts.model import Proposal
from nova_mcp.memory.promotion.gates.counting import confidence
from nova_mcp.memory.promotion.model import DAY_MS
from nova_mcp.memory.promotion.prompts import store as semantic_store
from nova_mcp.memory.promotion.tables import learning_track
from nova_mcp.storage.prepared import Prepared

# Controls that nobody has used for so long start anew.
KEPT_DAYS: Final = 90
SELECTOR_CHARS: Final = 400
_STEP: Final = 500
# What an entry can do again without knowing more than the selector.
_ACTIONS: Final[dict[str, ActionKind]] = {"click_selector": "click", "type_selector": "type"}
_KINDS: Final = frozenset({"action_success", "action_failure"})

# Both databases read the sentences below the same way; the first takes the row, so that of two servers one waits.
_TAKE: Final = Prepared(
    sql(
        "INSERT INTO learning_track (host, selector, body, updated_at_ms) VALUES (:host, :selector, '', :at) "
        "ON CONFLICT (host, selector) DO UPDATE SET updated_at_ms = excluded.updated_at_ms RETURNING body"
    )
)
_BODY: Final = Prepared(sql("SELECT body FROM learning_track WHERE host = :host AND selector = :selector"))
_KEEP: Final = Prepared(sql("UPDATE learning_track SET body = :body WHERE host = :host AND selector = :selector"))


def track(conn: Connection, record: CallRecord, seen: Sequence[Seen]) -> None:
    """Follow the control that a call used; a candidate that comes of it is told with the call's own answer."""
    kind = _ACTIONS.get(bare_name(record.tool_name))
    use = next((one for one in seen if one.observation.kind in _KINDS and one.observation.outcome != 0), None)
    selector = None if use is None else use.observation.selector_norm
    # Layers are learned as what they are, not as a button in them, and what commits is never learned by itself.
    if use is None or selector is None or kind is None or record.signals.layer is not None or record.signals.commits:
        return
    if len(selector) > SELECTOR_CHARS or selector_class(selector) != "stable":
        return
    _followed(conn, record, use, selector, kind)


def _followed(conn: Connection, record: CallRecord, use: Seen, selector: str, kind: ActionKind) -> None:
    host, at_ms = use.occasion.host, use.occasion.event.created_at_ms
    body = _TAKE.run(conn, {"host": host, "selector": selector, "at": at_ms}).fetchone()[0]
    before = decoded(Track, body) if body else Track(host, selector, "stable")
    if before.raised:
        return
    signals = record.signals
    now = Use(use.occasion.event.event_id, use.observation.outcome, signals.came_from, signals.page_state)
    after = tracked(before, now)
    found = auto_learn(after, semantic_open=False) if not after.raised and use.observation.outcome > 0 else None
    # While a richer question is open the control waits; nobody asks for that before it has earned anything.
    # What nobody has described can't be told apart later: it waits for a use that shows what it looks like.
    ready = isinstance(found, AutoLearn) and signals.described
    if ready and isinstance(found, AutoLearn) and not semantic_store.has_open(conn, use.occasion.event.principal, host):
        after = replace(after, raised=True)
        _raise(conn, record, found, kind, at_ms)
    if after != before:
        _KEEP.run(conn, {"host": host, "selector": selector, "body": encoded(after)})


def is_due(conn: Connection, host: str, selector: str) -> bool:
    """Whether one more success may raise a candidate for a control."""
    row = _BODY.run(conn, {"host": host, "selector": selector}).fetchone()
    if row is None or not row[0]:
        return False
    known = decoded(Track, row[0])
    return not known.raised and not known.failures and known.successes + 1 >= SUCCESSES


def _raise(conn: Connection, record: CallRecord, found: AutoLearn, kind: ActionKind, at_ms: int) -> None:
    scope = scope_of(found.host)
    if isinstance(scope, Problem) or store.owners(conn, scope, found.selector):
        return
    # It was there a moment ago, and did what it should.
    seen = PageCheck(at_ms, looks={found.selector: LiveLook(1)}, observed=(ObservedSignal(found.selector, "dom"),))
    looks = draft_store.Looks(at_ms, {found.candidate_key: seen})
    if draft_store.write(conn, [_proposal(scope, found, kind)], looks, "auto").written:
        record.signals.learned[:] = [Learned(scope, found.candidate_key, found.stable_id, found.trigger)]


def _proposal(scope: ScopeName, found: AutoLearn, kind: ActionKind) -> Proposal:
    action = Action(kind, found.selector)
    if kind == "type":
        # What was typed is nobody's to keep; whoever uses the entry brings a text of their own.
        action = replace(action, value_source="agent_supplied", value_name="text")
    signs = Fingerprint((Signal("dom", found.selector),))
    stable_id = StableId(found.stable_id)
    return Proposal(
        kind="new_phenomenon",
        host=scope,
        candidate_key=found.candidate_key,
        stable_id=stable_id,
        confidence=round(confidence(found.successes, 0), 4),
        reason=found.trigger,
        body=Content("custom", signs, Playbook("custom", (action,))),
        target_stable_id=stable_id,
    )


def forget(conn: Connection, now_ms: int) -> int:
    """One step; says how many controls were forgotten."""
    old = learning_track.c.updated_at_ms < now_ms - KEPT_DAYS * DAY_MS
    keys = select(learning_track.c.host, learning_track.c.selector).where(old)
    rows = conn.execute(keys.order_by(learning_track.c.updated_at_ms).limit(_STEP)).all()
    gone = 0
    for host, selector in sorted(rows):
        named = (learning_track.c.host == host, learning_track.c.selector == selector)
        # Asked again of the row itself: a call may have used it meanwhile.
        gone += conn.execute(delete(learning_track).where(*named, old)).rowcount
    return gone
