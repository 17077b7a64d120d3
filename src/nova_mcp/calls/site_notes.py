"""Where notes about a site meet calls: what stops or warns them, what that leaves behind, how a warning is told."""

from dataclasses import replace
from functools import partial
from typing import Final

from nova_mcp.browser.targets.tab import Tab
from nova_mcp.calls.admission.gates import GateFacts
from nova_mcp.calls.endings import Ending
from nova_mcp.calls.envelope import Envelope
from nova_mcp.calls.model import Answer
from nova_mcp.calls.stages.stage import Call, Proceed
from nova_mcp.core.clock import Clock
from nova_mcp.core.urls import page_host
from nova_mcp.core.values import Json
from nova_mcp.memory.notes.domain_model import DomainNote, Due, Form
from nova_mcp.memory.notes.domain_service import DomainNotes
from nova_mcp.storage.errors import StoreUnavailable
from nova_mcp.tools.notes.note_lines import note_line, stub_line
from nova_mcp.tools.spec import GateId

GATE: Final[GateId] = "user.domain_note"
BLOCK: Final = "siteNoteWarning"


class SiteNotes:
    """Looks at every call that interacts with a page, under the page's lock."""

    def __init__(self, notes: DomainNotes, clock: Clock) -> None:
        self._notes = notes
        self._clock = clock

    async def around(self, call: Call, proceed: Proceed) -> Ending:
        if GATE not in call.spec.gates:
            return await proceed()
        if call.tab is not None:
            await self._weigh(call.tab, call.envelope)
        try:
            return await proceed()
        finally:
            # Still under the lock, so that the next call on the page is judged by the right count. The tab may be one
            # that the call itself has opened.
            if call.tab is not None and call.evidence.action_dispatched:
                self._notes.deliveries.dispatched(call.tab.target_id)

    async def _weigh(self, tab: Tab, envelope: Envelope) -> None:
        """What the caller has to hear before this call."""
        envelope.evidence.noted_host = page_host(tab.site_url)
        envelope.evidence.noted_at_ms = self._clock.monotonic_ms()
        try:
            envelope.site = await self._notes.due(envelope.connection, tab.target_id, tab.site_url)
        except StoreUnavailable:
            envelope.unreadable = frozenset({GATE})

    def for_gates(self, facts: GateFacts, envelope: Envelope) -> GateFacts:
        """What the gates look at, with what was weighed."""
        only_warn = self._notes.mode != "block"
        return replace(facts, site=envelope.site, unreadable=envelope.unreadable, notes_only_warn=only_warn)

    def refused(self, envelope: Envelope) -> None:
        """The refusal delivers the notes it is about."""
        if (due := envelope.site) is not None:
            self._leave(envelope, due.blocking)
            envelope.evidence.told.append(partial(self._notes.told_refusal, due))

    def admitted(self, envelope: Envelope) -> None:
        """The call runs, and its answer carries what it has to be warned of."""
        if (due := envelope.site) is not None and due.warning:
            self._leave(envelope, [note for note, _ in due.warning])
            envelope.warned = (due,)

    def _leave(self, envelope: Envelope, notes: "list[DomainNote] | tuple[DomainNote, ...]") -> None:
        if (also := self._notes.delivering(notes)) is not None:
            envelope.evidence.also.append(also)

    def told(self, envelope: Envelope) -> None:
        """The call is on record and its answer goes out; the answer of a step is told by the call it belongs to."""
        if envelope.is_step:
            return
        for due in envelope.warned:
            self._notes.told_warning(due)
        for remember in envelope.evidence.told:
            remember()


def warned_of(before: tuple[Due, ...], now: tuple[Due, ...]) -> tuple[Due, ...]:
    """The warnings of a call with several steps: the latest of every host, the latest host last."""
    hosts = {due.host for due in now}
    return (*(due for due in before if due.host not in hosts), *now)


def with_site_warning(answer: Answer, warned: tuple[Due, ...]) -> Answer:
    """The answer with the warnings, those of the last host first; a text that is the typed form stays that."""
    if not warned:
        return answer
    host = warned[-1].host
    told = [(note, form) for due in reversed(warned) for note, form in due.warning]
    notes: list[Json] = [_part(note, form, host) for note, form in told]
    lines = [stub_line(note) if form == "stub" else note_line(note, "warn", note.value) for note, form in told]
    return answer.with_block(BLOCK, {"domain": host, "notes": notes}, "\n".join(lines))


def _part(note: DomainNote, form: Form, host: str) -> dict[str, Json]:
    """A note; one about another host than the block's names it."""
    elsewhere: dict[str, Json] = {} if note.domain == host else {"domain": note.domain}
    if form == "stub":
        return {"key": note.key, "rev": note.rev, "unchanged": True, **elsewhere}
    return {
        **elsewhere,
        "noteId": note.note_id,
        "key": note.key,
        "rev": note.rev,
        "source": note.source,
        "text": note.value,
    }
