"""What an observation does to knowledge, in the transaction that writes it."""

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import Connection

from nova_mcp.evidence.model import CallRecord
from nova_mcp.memory.journal.collector import Bound, Hooks
from nova_mcp.memory.journal.evidence import Seen
from nova_mcp.memory.journal.observations import page_of
from nova_mcp.memory.journal.statistics.counting import Tally, of_contradiction
from nova_mcp.memory.knowledge import store
from nova_mcp.memory.knowledge.matching.routes import any_covers, route_of
from nova_mcp.memory.knowledge.model import DomainHint, ScopeName
from nova_mcp.memory.knowledge.store import Shelved
from nova_mcp.memory.promotion import event_store, steps_store
from nova_mcp.memory.promotion.drafts import cluster_store, track_store
from nova_mcp.memory.promotion.gates.counting import contradicts, counts_for, mark_of, refutes
from nova_mcp.memory.promotion.gates.entries import entry_of, with_entry
from nova_mcp.memory.promotion.gates.evidence_rules import speaks_for, weighed
from nova_mcp.memory.promotion.gates.folding import Observed, observed
from nova_mcp.memory.promotion.model import Lower, Mark


def bind(conn: Connection, record: CallRecord, host: str) -> Bound | None:
    """The entry that an action speaks about: the only one that acts through this control here, a retired one only where
    no other does, so that it can come back."""
    owners = store.owners(conn, host, record.touched.selector or "")
    if not owners:
        return None
    route = route_of(page_of(record).url or "")
    here = [one for one in owners if any_covers(one.content.context.routes, route)]
    for retired in (False, True):
        meant = [one for one in here if one.deprecated is retired]
        names = {one.stable_id for one in meant}
        if len(names) > 1:
            return Bound(None)
        if names:
            whole = any(speaks_for(one.content, record.tool_name, "action_success") for one in meant)
            return Bound(names.pop(), one_step=not whole)
    return None


def learn(conn: Connection, record: CallRecord, seen: Sequence[Seen]) -> Tally | None:
    """Everything that learning draws from the observations of one call; figures move where one refutes a success."""
    told: dict[str, list[Seen]] = {}
    for one in seen:
        if one.observation.target_stable_id is not None:
            told.setdefault(one.observation.target_stable_id, []).append(one)
    lists = _in_lists(record, seen)
    if not told and not lists:
        return None
    event = seen[0].occasion.event
    scope = ScopeName(seen[0].occasion.host)
    store.touch_scope(conn, scope, event.created_at_ms, visible=False)
    refuted = 0
    for stable_id in sorted(told):
        contradicted = False
        found = store.find(conn, scope, stable_id, lock=True)
        for shelved in found:
            about = [one for one in told[stable_id] if shelved in spoken_of(found, one.observation.selector_norm)]
            if about:
                marks = [weighed(shelved.kept, mark_of(one), event.tool_name) for one in about]
                contradicted |= _contradicted(conn, shelved, marks)
                witnessed(conn, shelved, marks)
        refuted += contradicted
    for hint_id in record.signals.lists if lists else ():
        for shelved in store.find(conn, scope, hint_id, lock=True):
            if isinstance(shelved.kept, DomainHint):
                witnessed(conn, shelved, [mark_of(one) for one in lists])
    return of_contradiction(event.created_at_ms, refuted) if refuted else None


def _in_lists(record: CallRecord, seen: Sequence[Seen]) -> list[Seen]:
    """What a use says about the lists its control stood in: an entry of theirs was used. That a press failed says
    nothing about the list."""
    if not record.signals.lists:
        return []
    return [one for one in seen if one.observation.kind == "action_success" and one.observation.outcome >= 0]


def _contradicted(conn: Connection, shelved: Shelved, marks: Sequence[Mark]) -> bool:
    """Asked before the marks are on record; what speaks so strongly is rare enough for a look at the history."""
    against = next((one for one in marks if refutes(one)), None)
    return against is not None and contradicts(steps_store.marks(conn, shelved.entry_id, against.at_ms), against)


def spoken_of(found: Sequence[Shelved], selector: str | None) -> Sequence[Shelved]:
    """Which revisions of an entry an observation is about: those that act through the control, else the one that
    counts."""
    acting = [one for one in found if selector is not None and selector in store.selectors_in(one.kept)]
    return acting or [one for one in found if one.slot == "current"]


def witnessed(conn: Connection, shelved: Shelved, marks: Sequence[Mark]) -> Shelved:
    """An entry after what was seen of it. What speaks against it takes effect at once; the caller holds its row."""
    before = entry = entry_of(shelved)
    for mark in marks:
        done = observed(entry, mark)
        steps_store.record(conn, shelved.entry_id, Observed(mark), mark.at_ms)
        if done.event is not None and isinstance(done.verdict, Lower):
            # A fall needs no look at an entry's history, but whoever reads the log wants to see it.
            history = steps_store.marks(conn, shelved.entry_id, mark.at_ms)
            counts = counts_for(done.entry, done.verdict.kind, history, mark.at_ms)
            event_store.add(conn, replace(done.event, counts=counts))
        entry = done.entry
    visible = (entry.level, entry.deprecated) != (before.level, before.deprecated)
    after = with_entry(shelved, entry, marks[-1].at_ms if visible else None)
    store.save(conn, after, visible=visible)
    return after


def count(conn: Connection, record: CallRecord, seen: Sequence[Seen]) -> None:
    cluster_store.count(conn, seen)


# Rows are taken in this order by every call: clusters, controls, then the scope and its entries.
HOOKS = Hooks(bind=bind, learn=(count, track_store.track, learn))
