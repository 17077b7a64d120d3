"""Asks agents about what only they can put into words, once, and remembers their answers."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from sqlalchemy import Connection

from nova_mcp.core.clock import Clock
from nova_mcp.core.connections import AgentConnection
from nova_mcp.core.page.selectors import normalize_selector
from nova_mcp.errors import NotFound
from nova_mcp.evidence.model import CallOutcome, CallRecord, Link
from nova_mcp.memory.knowledge import store as knowledge_store
from nova_mcp.memory.knowledge.model import CANDIDATE, SHADOW, Content, Phenomenon, ScopeName
from nova_mcp.memory.knowledge.store import Shelved
from nova_mcp.memory.knowledge.writes.stability import action_selectors
from nova_mcp.memory.promotion import steps_store
from nova_mcp.memory.promotion.prompts import store
from nova_mcp.memory.promotion.prompts.rules import (
    AlreadyResolved,
    BatchSummary,
    Moment,
    NothingStored,
    Prompt,
    Resolution,
    SemanticOpportunity,
    SemanticVerdict,
    StoredAnswer,
    answered,
    detected,
    left,
    resolved,
    resolved_by,
    site_of,
)
from nova_mcp.storage.engine import Database

REMEMBERED: Final = 4_000
ENTRY_MISSING: Final = "learn.entry_missing"
ALREADY_RESOLVED: Final = "already_resolved"
SUPERSEDED: Final = "superseded by an agent's answer"


def written_of(scope: ScopeName, content: Content) -> StoredAnswer:
    """A stored entry as it may answer a prompt."""
    signals = content.fingerprint.signals
    marks = tuple(normalize_selector(one.match) for one in signals if one.kind == "dom")
    selectors = tuple(normalize_selector(one) for one in action_selectors(content.playbook))
    return StoredAnswer(scope, content.type, None, selectors, marks)


@dataclass(slots=True)
class Asking:
    """What one call brings to light, on its way through its transaction; the results are there once it is committed."""

    prompter: "Prompter"
    principal: str
    origin: str
    connection: AgentConnection | None = None
    moments: tuple[Moment, ...] = ()
    left_site: bool = False
    prompt: Prompt | None = field(default=None)
    summary: BatchSummary | None = field(default=None)

    def also(self, conn: Connection, record: CallRecord, link: Link) -> None:
        site, now = site_of(self.origin), record.started_at_ms + record.duration_ms
        held = store.of_site(conn, self.principal, site)
        if self.left_site:
            after, self.summary = left(held, self.origin)
        else:
            seen = [one for moment in self.moments for one in detected(moment, now)]
            if fresh := {one.opportunity_id for one in seen} - {one.opportunity_id for one in held}:
                entries = knowledge_store.entries(conn, site)
                seen = [one for one in seen if one.opportunity_id not in fresh or not _covered(one, entries)]
            asked = answered(held, seen, self.origin, now, self._unheard(held))
            after, self.prompt = asked.opportunities, asked.prompt
        before = {one.opportunity_id: one for one in held}
        for one in after:
            if before.get(one.opportunity_id) != one:
                store.save(conn, self.principal, one, now)
        self.prompter.note(self.principal, site, after)

    def _unheard(self, held: Sequence[SemanticOpportunity]) -> frozenset[str]:
        if (connection := self.connection) is None:
            return frozenset()
        names = (one.opportunity_id for one in held)
        return frozenset(name for name in names if not connection.delivered(_topic(name), otherwise=False))

    def delivered(self) -> None:
        """The answer of the call goes out, with the prompt if there is one."""
        if self.prompt is not None and self.connection is not None:
            self.connection.deliver(_topic(self.prompt.opportunity.opportunity_id))


def _topic(opportunity_id: str) -> tuple[str, str]:
    return "semantic prompt", opportunity_id


def _answered(one: SemanticOpportunity, entries: Sequence[Shelved]) -> bool:
    """Whether an entry was stored that an agent may have written as its answer. For a selector that will not last that
    is one with another selector, so any entry that acts and was written since counts."""
    return _covered(one, entries) or (
        one.kind == "risky_repeat"
        and any(
            isinstance(shelved.kept, Phenomenon)
            and shelved.origin == "manual"
            and not shelved.kept.deprecated
            and shelved.kept.updated_at_ms >= one.created_at_ms
            and bool(knowledge_store.selectors_in(shelved.kept))
            for shelved in entries
        )
    )


def _covered(one: SemanticOpportunity, entries: Sequence[Shelved]) -> bool:
    """Whether something stored already answers the question."""
    for shelved in entries:
        entry = shelved.kept
        if not isinstance(entry, Phenomenon) or entry.deprecated or entry.level < SHADOW:
            continue
        if one.kind == entry.content.type:
            return True
        if one.kind == "risky_repeat" and one.selector in knowledge_store.selectors_in(entry):
            return True
    return False


@dataclass(frozen=True, slots=True)
class OwnAnswer:
    """An agent's own answer to a question it was asked."""

    opportunity_id: str
    verdict: SemanticVerdict
    reason: str | None


@dataclass(frozen=True, slots=True)
class Answered:
    """What an answer came to, and how many candidates of Nova's own it made superfluous."""

    result: Resolution | AlreadyResolved | NothingStored
    superseded: int = 0

    def on_record(self, record: CallRecord) -> CallRecord:
        match self.result:
            case Resolution():
                return record
            case AlreadyResolved():
                return replace(record, outcome=CallOutcome("failed", reason_code=ALREADY_RESOLVED))
            case NothingStored():
                return replace(record, outcome=CallOutcome("failed", reason_code=ENTRY_MISSING))


def _resolved(
    conn: Connection, asked: SemanticOpportunity, answer: OwnAnswer, now_ms: int
) -> Resolution | AlreadyResolved | NothingStored:
    done = resolved(asked, answer.verdict, now_ms, answer.reason)
    if answer.verdict != "upsert" or not isinstance(done, Resolution):
        return done
    # Only what is stored closes the question and takes the place of what Nova raised by itself.
    return done if _answered(asked, knowledge_store.entries(conn, site_of(asked.origin))) else NothingStored(asked)


class Prompter:
    """One per server. Its memory only saves reading: the store decides."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock
        # Sites of a principal, and whether anything there may still be asked.
        self._pending: OrderedDict[tuple[str, str], bool] = OrderedDict()
        self._clicks: OrderedDict[tuple[str, str, str], int] = OrderedDict()

    # -- while agents act

    def clicked(self, principal: str, origin: str, selector: str) -> int:
        """How often a principal has pressed that, this time included."""
        key = (principal, origin, selector)
        count = self._clicks.pop(key, 0) + 1
        self._clicks[key] = count
        _bound(self._clicks)
        return count

    def asking(
        self, principal: str, origin: str, moments: Sequence[Moment], connection: AgentConnection | None = None
    ) -> Asking | None:
        """What an answered call does to the questions about a site; None when there are none."""
        if not moments and not self._pending.get((principal, site_of(origin)), True):
            return None
        return Asking(self, principal, origin, connection, tuple(moments))

    def leaving(self, principal: str, origin: str) -> Asking | None:
        """A principal leaves a site; None when nothing was asked there."""
        if not self._pending.get((principal, site_of(origin)), True):
            return None
        return Asking(self, principal, origin, left_site=True)

    def note(self, principal: str, site: str, held: Sequence[SemanticOpportunity]) -> None:
        waiting = any(one.state not in ("resolved", "dismissed") for one in held)
        self._pending[principal, site] = waiting
        self._pending.move_to_end((principal, site))
        _bound(self._pending)

    # -- answers

    def answer(self, conn: Connection, principal: str, given: OwnAnswer, now_ms: int) -> Answered:
        asked = store.asked(conn, principal, given.opportunity_id)
        if asked is None:
            raise NotFound("learn.opportunity_not_found", stage="precondition")
        done = _resolved(conn, asked, given, now_ms)
        return Answered(done, self.closed(conn, principal, done, now_ms) if isinstance(done, Resolution) else 0)

    def resolved_by(self, conn: Connection, principal: str, written: StoredAnswer, now_ms: int) -> Resolution | None:
        """The question that a just stored entry answers, closed with it."""
        site = site_of(written.origin)
        held = store.of_site(conn, principal, site)
        for origin in dict.fromkeys(one.origin for one in held):
            done = resolved_by(held, replace(written, origin=origin), now_ms)
            if done is not None:
                self.closed(conn, principal, done, now_ms)
                return done
        return None

    def closed(self, conn: Connection, principal: str, done: Resolution, now_ms: int) -> int:
        """Write an answer down; how many candidates of Nova's own it makes superfluous."""
        site = site_of(done.opportunity.origin)
        store.save(conn, principal, done.opportunity, now_ms)
        self._pending.pop((principal, site), None)
        return _supersede(conn, site, now_ms) if done.verdict == "upsert" else 0


def _supersede(conn: Connection, scope: ScopeName, now_ms: int) -> int:
    """Candidates that Nova raised on its own give way to what an agent has put into words."""
    waiting = [
        one
        for one in knowledge_store.entries(conn, scope)
        if one.origin == "auto" and one.kept.level == CANDIDATE and not one.kept.deprecated
    ]
    if waiting:
        knowledge_store.touch_scope(conn, scope, now_ms, visible=True)
    for one in knowledge_store.by_ids(conn, [one.entry_id for one in waiting], lock=True):
        steps_store.retired(conn, one, SUPERSEDED, now_ms)
    return len(waiting)


def _bound(held: "OrderedDict[tuple[str, str], bool] | OrderedDict[tuple[str, str, str], int]") -> None:
    while len(held) > REMEMBERED:
        held.popitem(last=False)
