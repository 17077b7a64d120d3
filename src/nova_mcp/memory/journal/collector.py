"""Draws learning evidence from every call, in the transaction that records it; nothing is ever read from history."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from sqlalchemy import Connection

from nova_mcp.evidence.model import ACTING, CallRecord, Link
from nova_mcp.evidence.outage import Also, Last
from nova_mcp.memory.journal import candidate_store, store
from nova_mcp.memory.journal.candidates import (
    DIAGNOSTIC_CONFIDENCE,
    HIGH_SIGNAL_CONFIDENCE,
    Candidate,
    CandidateChange,
    Place,
    Raise,
    after_event,
    after_recovery,
    newest_unverified,
    weighed,
)
from nova_mcp.memory.journal.evidence import Occasion, PageEvent, Seen, ToolEvent
from nova_mcp.memory.journal.observations import (
    bare_name,
    context_host,
    diagnostic_key_of,
    observations_of,
    tool_event_of,
)
from nova_mcp.memory.journal.rules import promotable
from nova_mcp.memory.journal.statistics.counters import bump
from nova_mcp.memory.journal.statistics.counting import CandidateStand, Tally, of_candidate, of_observations


@dataclass(frozen=True, slots=True)
class Bound:
    """The entry that an action speaks about; none when several may be meant. `one_step` when it takes others too."""

    stable_id: str | None
    one_step: bool = False


class Binding(Protocol):
    """Says which stored entry an action on a control of a page speaks about; None when no entry knows the control."""

    def __call__(self, conn: Connection, record: CallRecord, host: str) -> Bound | None: ...


class Learner(Protocol):
    """Draws on observations in the transaction that writes them; says which figures that moves."""

    def __call__(self, conn: Connection, record: CallRecord, seen: Sequence[Seen]) -> Tally | None: ...


class Counting(Protocol):
    """Adds the figures of a call itself."""

    def __call__(self, conn: Connection, record: CallRecord, link: Link) -> None: ...


@dataclass(frozen=True, slots=True)
class Hooks:
    """What other parts make of the evidence."""

    bind: Binding | None = None
    learn: tuple[Learner, ...] = ()


NO_HOOKS: Final = Hooks()


@dataclass(frozen=True, slots=True)
class Drawn:
    """What was written of a call that was carried out on a page; the record says which entry it speaks about."""

    record: CallRecord
    seen: tuple[Seen, ...]
    tally: Tally
    principal: str


def derive(conn: Connection, record: CallRecord, link: Link, hooks: Hooks = NO_HOOKS) -> None:
    """Everything the journal keeps of a closed call. Rows are touched in one order, so that servers never deadlock."""
    _collected(conn, record, link, hooks)(conn)


def collecting(hooks: Hooks, count: Counting) -> Also:
    """`derive` and the figures of the call, for one server.

    Figures come last, behind whatever else the transaction writes: servers that count in the same place meet in them
    whatever they do, and tools write about knowledge before their call is on record, others after it.
    """

    def collect(conn: Connection, record: CallRecord, link: Link) -> Last:
        figures = _collected(conn, record, link, hooks)

        def last(conn: Connection) -> None:
            figures(conn)
            count(conn, record, link)

        return last

    return collect


def _collected(conn: Connection, record: CallRecord, link: Link, hooks: Hooks) -> Last:
    found = drawn(conn, record, link, hooks.bind)
    if found is None:
        return _no_figures
    tally = found.tally
    for learn in hooks.learn:
        tally += learn(conn, found.record, found.seen) or _NOTHING

    def figures(conn: Connection) -> None:
        if tally != _NOTHING:
            bump(conn, link.server_id, tally, principal=found.principal)

    return figures


def _no_figures(conn: Connection) -> None:
    return None


def drawn(conn: Connection, record: CallRecord, link: Link, bind: Binding | None = None) -> Drawn | None:
    """Write down what a call showed, its figures apart; nothing when it was not carried out on a page."""
    if record.kind == "intent":
        return None
    record = _attributed(conn, record, bind)
    event = tool_event_of(record)
    host = event.context_host
    session_id = None if host is None else store.session_of(conn, event, host)
    store.add_tool_event(conn, event, session_id)
    if event.event_key is None or host is None or event.target_id is None or session_id is None:
        return None
    occasion = Occasion(event, host, event.target_id, session_id, link)
    noted = [store.observe(conn, one, occasion) for one in observations_of(record)]
    seen = tuple(one for one in noted if one is not None)
    fresh = sum(not one.upgraded for one in seen)
    page_event = PageEvent(event.event_id, event.event_key, event.verdict, session_id, event.created_at_ms)
    tally = counted(_moved(conn, record, event, page_event), event.created_at_ms)
    if fresh:
        tally += of_observations(event.created_at_ms, fresh)
    return Drawn(record, seen, tally, event.principal)


def _attributed(conn: Connection, record: CallRecord, bind: Binding | None) -> CallRecord:
    """Agents don't say which entry they use; where they touch something, Nova looks it up."""
    if bind is None or record.touched.selector is None or record.effect not in ACTING or record.signals.framed:
        return record
    host = context_host(record)
    if host is None or record.signals.target_stable_id is not None:
        return record
    found = bind(conn, record, host)
    if found is None:
        return record
    named = replace(
        record.signals,
        target_stable_id=found.stable_id,
        ambiguous_selector=found.stable_id is None,
        one_step=found.one_step,
    )
    return replace(record, signals=named)


_NOTHING = Tally()


def _moved(conn: Connection, record: CallRecord, event: ToolEvent, page_event: PageEvent) -> list[CandidateChange]:
    """What a call does to the candidates it speaks about, and those it raises."""
    keys = page_event.event_key, diagnostic_key_of(record) or ""
    wish = _raise(record, event, keys[1])
    found = candidate_store.open_on_keys(conn, event.principal, keys, wish)
    changes = []
    waiting = newest_unverified(found) if event.success else None
    for one in found:
        moved = after_recovery(one, page_event) if one is waiting else after_event(one, page_event)
        if moved != one:
            candidate_store.save(conn, moved)
            changes.append(CandidateChange(one, moved))
    if wish is not None:
        changes.append(candidate_store.put(conn, wish, page_event, event.created_at_ms))
    return changes


def _raise(record: CallRecord, event: ToolEvent, diagnostic_key: str) -> Raise | None:
    """What a call makes worth remembering by itself; the words are Nova's, nothing of the page is in them."""
    name = bare_name(event.tool_name)[:60]
    place = Place(event.principal, event.owner_agent_id, event.context_host or "", event.task_id, event.target_id)
    if record.outcome.kind == "failed":
        claim = f"{name} fails with {event.error}."
        return Raise(place, name, claim, "unverified", DIAGNOSTIC_CONFIDENCE, "diagnostic", event_key=diagnostic_key)
    if record.outcome.kind == "ok" and record.signals.high_signal:
        control = record.touched.fingerprint_id or "the page"
        claim = f"{name} reaches its verified outcome through {control}."
        return Raise(place, name, claim, "verified", HIGH_SIGNAL_CONFIDENCE, high_signal=True)
    return None


def counted(changes: Iterable[CandidateChange], at_ms: int) -> Tally:
    tally = Tally()
    for change in changes:
        if change.before != change.after:
            before = None if change.before is None else standing(change.before)
            tally += of_candidate(before, standing(change.after), at_ms)
    return tally


def standing(found: Candidate) -> CandidateStand:
    return CandidateStand(found.component, found.status, promotable(weighed(found)))
