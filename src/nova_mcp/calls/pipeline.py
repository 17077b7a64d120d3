"""The life of one tool call: observe, validate, admit, act, record, answer."""

import logging
from collections.abc import Collection
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial

import anyio

from nova_mcp.browser.process.runtime import Browser
from nova_mcp.browser.targets.registry import SANDBOX_ID, Tab
from nova_mcp.calls.admission import Admission
from nova_mcp.calls.answer_redaction import redacted_answer
from nova_mcp.calls.asides import with_asides
from nova_mcp.calls.background_review import Passes
from nova_mcp.calls.callers import OWN, tolerated, whose
from nova_mcp.calls.endings import (
    STORE_REASON,
    Done,
    Ending,
    Failed,
    answer_lost,
    cancelled,
    defect,
    ended_for,
    not_done,
    outcome_of,
    overdue,
    store_failed,
    unknown_tool,
)
from nova_mcp.calls.envelope import Envelope, page_state
from nova_mcp.calls.gates import Admitted, Notice, Refused, admit, reclaimed, shadow_gate
from nova_mcp.calls.lessons import NO_LESSON, Lesson, Lessons, with_lessons
from nova_mcp.calls.loop_detection import Attempt, Loops, attempt_of
from nova_mcp.calls.model import Answer, CallRequest, Within
from nova_mcp.calls.recording import EnvelopeRecord, Recording
from nova_mcp.calls.renderer import Reader, not_recorded, render, tokens_of, unrecorded, with_notices
from nova_mcp.calls.running_calls import Running
from nova_mcp.calls.scan_hints import with_hints
from nova_mcp.calls.site_notes import GATE as NOTE_GATE
from nova_mcp.calls.site_notes import SiteNotes, warned_of, with_site_warning
from nova_mcp.calls.tool_arguments import understand
from nova_mcp.core.clock import Ports
from nova_mcp.errors import InvalidParams, NotFound, NovaError, Precondition, UnknownTool
from nova_mcp.evidence.model import Caller, CallOutcome, CallRecord, Flag, ServerId
from nova_mcp.evidence.recorder import Recorder
from nova_mcp.secrets.store import SecretStore
from nova_mcp.settings import Settings
from nova_mcp.storage.errors import StoreUnavailable
from nova_mcp.tools import PREFIX
from nova_mcp.tools.browse.lost_selectors import note_lost
from nova_mcp.tools.catalogue import Catalogue
from nova_mcp.tools.context import CallInfo, Memory, StepAnswer, StepCall, ToolContext
from nova_mcp.tools.names import canonical_name
from nova_mcp.tools.spec import GateId, Params, Result, Targeted, ToolSpec

log = logging.getLogger(__name__)

LIMIT_GATE = "server.limit"
LOOKS: frozenset[Flag] = frozenset({"content_exposed", "visual_exposed"})
GRACE_MS = 5_000
# About the document, which is known for sure only under the lock.
LATE_GATES: tuple[GateId, ...] = (NOTE_GATE, "safety.perceive_first", "safety.overlay_detected")
# Judged again under the lock: while a call waited for it, the tab may have changed hands or documents.
TAB_GATES: tuple[GateId, ...] = ("claim.owner", *LATE_GATES)


@dataclass(frozen=True, slots=True)
class Parts:
    """What the pipeline is made of; wired in `app.py`."""

    settings: Settings
    ports: Ports
    server_id: ServerId
    catalogue: Catalogue
    recorder: Recorder
    browser: Browser
    memory: Memory
    secrets: SecretStore
    admission: Admission
    listed: Collection[str]


class Pipeline:
    """Takes every call through the same steps and leaves a record of each, however it ends."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._open_names = parts.catalogue.open_arguments()
        self._loops = Loops(parts.ports.clock)
        keep_raw_urls = parts.settings.keep_raw_urls
        self._lessons = Lessons(parts.memory.learning, parts.browser, keep_raw_urls=keep_raw_urls)
        self._recording = Recording(
            parts.recorder, parts.memory.tasks.runs, self._lessons, parts.ports.clock, keep_raw_urls=keep_raw_urls
        )
        self._sites = SiteNotes(parts.memory.notes.sites)
        self.running = Running()
        self.passes = Passes(parts.memory.learning, parts.ports.clock, self.run)

    async def run(self, request: CallRequest) -> Answer:
        return await self._run(request, self._open(request))

    async def _run(self, request: CallRequest, envelope: Envelope) -> Answer:
        with self.running.entered(envelope.call_id) as scope:
            ending: Ending | None = None
            try:
                with scope:
                    ending = await self._attempt(request, envelope)
            except UnknownTool:
                if (failure := await self._recording.record(envelope, unknown_tool())) is not None:
                    return self._answer(envelope, Failed(store_failed(failure)))
                raise
            except anyio.get_cancelled_exc_class():
                # Whatever leaves our own scope is the client's doing, even if we wanted the call to end as well.
                await self._recording.record(envelope, self._cut_off(request, envelope))
                raise
            why = self.running.reason(envelope.call_id)
            if ending is None and why is not None:
                ending = ended_for(why)
            if ending is None:
                raise AssertionError("a scope of ours ends early only for a reason of ours")
            return await self._finish(envelope, ending)

    def _cut_off(self, request: CallRequest, envelope: Envelope) -> CallOutcome:
        """A step is cut off together with the call it belongs to, for whatever reason that one was."""
        why = self.running.reason(envelope.call_id) if request.within is not None else None
        return cancelled(envelope.evidence) if why is None else outcome_of(ended_for(why), envelope.evidence)

    # 1–2: open the envelope

    def _open(self, request: CallRequest) -> Envelope:
        ports = self._parts.ports
        caller = Caller(request.principal, whose(request), self._parts.server_id)
        connections = self._parts.admission.connections
        return Envelope(
            call_id=ports.ids.call_id(),
            caller=caller,
            tool_name=canonical_name(request.tool),
            arguments=request.arguments,
            connection=connections.of(caller.owner, request.connection, request.client),
            started_at_ms=ports.clock.now_ms(),
            started_mono_ms=ports.clock.monotonic_ms(),
            open_names=self._open_names,
            redactor=self._parts.secrets.redactor,
            via=request.within.via if request.within is not None else OWN if request.background else None,
            is_step=request.within is not None or request.background,
        )

    async def _attempt(self, request: CallRequest, envelope: Envelope) -> Ending:
        try:
            return await self._perform(request, envelope)
        except NovaError as error:
            envelope.evidence.settle_touch(error.action_dispatched)
            return Failed(error, envelope.gate_id or error.gate_id)
        except StoreUnavailable as failure:
            return Failed(store_failed(failure))
        except UnknownTool:
            raise
        except Exception:
            log.exception("call %s of %s broke", envelope.call_id, envelope.tool_name)
            return Failed(defect(envelope.call_id))

    async def _perform(self, request: CallRequest, envelope: Envelope) -> Ending:
        spec, params = understand(envelope, self._parts.catalogue)
        if request.refusal is not None:
            envelope.gate_id = LIMIT_GATE
            raise request.refusal
        await self._resolve(spec, params, request, envelope)
        await self._weigh(spec, params, envelope)
        early = [gate for gate in spec.gates if gate not in LATE_GATES]
        notices = self._words(envelope) + self._admit(spec, params, envelope, early)
        self._parts.admission.entered(spec, params, envelope.connection)
        attempt = attempt_of(spec, params, envelope.caller, envelope.evidence.tab)
        self._loops.check(attempt)
        budget_ms = spec.deadline_ms(params) + GRACE_MS
        if request.within is not None:
            budget_ms = min(budget_ms, request.within.budget_ms)
        ended: Ending | None = None
        with anyio.move_on_after(budget_ms / 1000):
            # A target that is being verified is refused at once; waiting for its lock would only hide that.
            async with (
                self._turn(spec, request, envelope),
                self._reservation(spec, params, envelope),
                self._lock(spec, envelope.evidence.tab, passing=request.background),
            ):
                await self._sites.weigh(spec, envelope, self._parts.ports.clock.monotonic_ms())
                late = [gate for gate in spec.gates if gate in TAB_GATES]
                notices += self._admit(spec, params, envelope, late)
                self._sites.admitted(envelope)
                await self._require_store(spec)
                envelope.shadow_gate = shadow_gate(notices)
                context = self._context(request, envelope, tokens_of(notices))
                try:
                    ended = await self._ran(spec, context, params, attempt, envelope, notices)
                    self._parts.admission.answered((one.gate_id for one in notices), envelope.connection)
                finally:
                    self._sites.ran(spec, envelope)
                self._note_look(envelope)
                self._note_use(request, envelope)
        return ended or Failed(overdue(budget_ms))

    async def _require_store(self, spec: ToolSpec) -> None:
        """With the store down only reads run; whatever else is done must be on record."""
        if spec.effect == "read":
            return
        try:
            await self._parts.recorder.require()
        except StoreUnavailable as failure:
            raise not_done(failure) from failure

    async def _ran(
        self,
        spec: ToolSpec,
        context: ToolContext,
        params: Params,
        attempt: Attempt | None,
        envelope: Envelope,
        notices: tuple[Notice, ...],
    ) -> Ending:
        """The tool itself; the third failure in a row of the very same call is told as what it is."""
        try:
            result: Result = await spec.run(context, params)
        except NovaError as error:
            if error is envelope.decided:
                return Failed(error)
            context.evidence.settle_touch(error.action_dispatched)
            await note_lost(context, spec.effect, params, error)
            raise self._loops.failed(attempt, error, context.evidence) or error from None
        except StoreUnavailable as failure:
            if failure is envelope.unrecorded:
                return Failed(store_failed(failure))
            raise
        self._loops.ended(attempt, result, context.evidence)
        return Done(await with_asides(result, context, spec.effect), notices)

    # 4: target and gates

    async def _resolve(self, spec: ToolSpec, params: Params, request: CallRequest, envelope: Envelope) -> None:
        if spec.target == "none" or not isinstance(params, Targeted):
            return
        if spec.target == "place" and SANDBOX_ID.fullmatch(params.target_id):
            return
        targets = self._parts.browser.targets
        try:
            tab = await targets.resolve(envelope.caller, params.target_id, request.connection)
        except (NotFound, InvalidParams, Precondition) as missing:
            if tolerated(spec, missing):
                return
            raise
        envelope.evidence.tab = tab
        targets.used(envelope.caller.owner, request.connection, tab)
        work = self._parts.browser.claims.work_context(envelope.caller, tab.target_id)
        envelope.evidence.task_id = None if work is None else work.task_id

    async def _weigh(self, spec: ToolSpec, params: Params, envelope: Envelope) -> None:
        """What the operator demands of the service this call goes to, and whether it is known to be there."""
        tab = envelope.evidence.tab
        if tab is None or "policy.capability" not in spec.gates or self._parts.settings.gates.capability == "off":
            return
        facts, url = self._parts.memory.facts, getattr(params, "url", None)
        place = facts.place(tab, url if isinstance(url, str) else None)
        envelope.lacking = await facts.lacking(spec.effect, place)

    def _words(self, envelope: Envelope) -> tuple[Notice, ...]:
        """What the caller has to hear besides its own matter; told with the answer, once."""
        if envelope.is_step:
            return ()
        envelope.words = self._parts.browser.claims.words_for(envelope.caller.owner)
        return reclaimed(envelope.words)

    def _admit(
        self,
        spec: ToolSpec,
        params: Params,
        envelope: Envelope,
        gates: Collection[GateId],
    ) -> tuple[Notice, ...]:
        parts, tab = self._parts, envelope.evidence.tab
        envelope.began_on = None if tab is None else tab.url
        envelope.before = page_state(tab, keep_raw_urls=parts.settings.keep_raw_urls, redactor=parts.secrets.redactor)
        facts = parts.admission.facts(spec, params, envelope.connection, tab)
        if tab is not None:
            facts = replace(facts, lease=parts.browser.claims.lease_on(tab), lacking=envelope.lacking)
        if NOTE_GATE in gates:
            facts = self._sites.for_gates(facts, envelope)
        match admit(gates, facts, parts.settings.gates):
            case Refused(gate_id, error):
                envelope.gate_id = gate_id
                if gate_id == NOTE_GATE:
                    self._sites.refused(envelope)
                elif gate_id == "setup.shared_agent_id":
                    parts.admission.answered((gate_id,), envelope.connection)
                raise error
            case Admitted(notices):
                if tab is not None:
                    parts.browser.claims.touched(tab, envelope.caller.owner, take=spec.lock == "exclusive")
                return notices

    # 5: act

    def _context(self, request: CallRequest, envelope: Envelope, reserved_tokens: int) -> ToolContext:
        parts = self._parts
        return ToolContext(
            call=CallInfo(
                call_id=envelope.call_id,
                tool_name=envelope.tool_name,
                caller=envelope.caller,
                connection=envelope.connection,
                progress=request.progress,
                intent=partial(self._intent, envelope),
                session_id=request.session_id,
                step=partial(self._step, request, envelope),
                reserved_tokens=reserved_tokens,
                require_store=parts.recorder.require,
                record=EnvelopeRecord(self._recording, envelope),
            ),
            evidence=envelope.evidence,
            ports=parts.ports,
            settings=parts.settings,
            browser=parts.browser,
            catalogue=parts.catalogue,
            memory=parts.memory,
            secrets=parts.secrets,
        )

    def _intent(self, envelope: Envelope, intent_id: str) -> CallRecord:
        parts = self._parts
        return envelope.intent(intent_id, parts.ports.clock.now_ms(), keep_raw_urls=parts.settings.keep_raw_urls)

    def _note_look(self, envelope: Envelope) -> None:
        """An agent that has seen the page may decide to do again what it did before."""
        tab = envelope.evidence.tab
        if tab is not None and not LOOKS.isdisjoint(envelope.evidence.flags):
            tab.observed[envelope.caller.owner] = self._parts.ports.clock.now_ms()

    def _note_use(self, request: CallRequest, envelope: Envelope) -> None:
        """A tab that the call itself opened is the one its connection works in from now on."""
        if (tab := envelope.evidence.tab) is not None:
            self._parts.browser.targets.used(envelope.caller.owner, request.connection, tab)

    def _reservation(self, spec: ToolSpec, params: Params, envelope: Envelope) -> AbstractAsyncContextManager[None]:
        tab = envelope.evidence.tab
        if tab is None or (window_ms := spec.guards(params)) is None:
            return nullcontext()
        return self._parts.memory.verifier.coordinator.reserved(tab.target_id, envelope.call_id, window_ms)

    def _turn(self, spec: ToolSpec, request: CallRequest, envelope: Envelope) -> AbstractAsyncContextManager[None]:
        """Changes stay out while a sequence is between two of its steps; the steps themselves are in already."""
        tab = envelope.evidence.tab
        if tab is None or spec.lock in ("none", "shared") or request.within is not None:
            return nullcontext()
        return tab.turns.exclusive() if spec.lock == "turn" else tab.turns.shared()

    def _lock(self, spec: ToolSpec, tab: Tab | None, *, passing: bool) -> AbstractAsyncContextManager[None]:
        if tab is None or spec.lock in ("none", "turn"):
            return nullcontext()
        if passing:
            return tab.lock.passing()
        return tab.lock.exclusive() if spec.lock == "exclusive" else tab.lock.shared()

    async def _step(self, request: CallRequest, outer: Envelope, step: StepCall) -> StepAnswer:
        """One step as a call of its own: same gates, own record; what it touched, the outer call has touched."""
        within = Within(outer.tool_name.removeprefix(PREFIX), step.budget_ms)
        inner = replace(request, tool=step.tool, arguments=step.arguments, progress=step.progress, within=within)
        envelope = self._open(inner)
        try:
            answer = await self._run(inner, envelope)
        finally:
            touched = bool(envelope.evidence.action_dispatched)
            outer.evidence.action_dispatched = touched or outer.evidence.action_dispatched
            outer.evidence.layers.update(envelope.evidence.layers)
            outer.warned = warned_of(outer.warned, envelope.warned)
        return StepAnswer(answer.structured, answer.text, touched, answer.images, tuple(envelope.evidence.told))

    # 6–9: record, then answer

    async def _finish(self, envelope: Envelope, ending: Ending) -> Answer:
        """The record is committed before the answer is even written."""
        self._parts.admission.pictured(envelope.caller, envelope.evidence.image_bytes)
        failure = await self._recording.close(envelope, ending)
        if failure is None:
            lesson = envelope.lesson or NO_LESSON
            self._lessons.taught(envelope, lesson)
            self._sites.told(envelope)
            if self._parts.settings.learning.passes and not envelope.is_step:
                self.passes.notice(envelope.evidence.tab)
            return self._answer(envelope, _answerable(envelope, ending), lesson)
        if envelope.evidence.action_dispatched:
            return unrecorded(self._answer(envelope, ending))
        if envelope.stands_unrecorded:
            return not_recorded(self._answer(envelope, ending), failure)
        if isinstance(ending, Failed) and ending.error.reason_code == STORE_REASON:
            return self._answer(envelope, ending)
        return self._answer(envelope, Failed(store_failed(failure)))

    def _answer(self, envelope: Envelope, ending: Ending, lesson: Lesson = NO_LESSON) -> Answer:
        effect = envelope.spec.effect if envelope.spec is not None else None
        touched = bool(envelope.evidence.action_dispatched)
        parts = self._parts
        reader = Reader(envelope.call_id, effect, parts.listed, touched, parts.settings.tool_names)
        answer = render(ending, reader)
        if isinstance(ending, Failed):
            answer = with_notices(answer, self._words(envelope), reader)
        if not envelope.is_step:
            answer = with_site_warning(answer, envelope.warned)
        answer = with_lessons(answer, lesson, envelope.evidence.learned, parts.settings.tool_names)
        answer = with_hints(answer, envelope.evidence.signals.hints, parts.settings.tool_names, envelope.connection)
        parts.browser.claims.told(envelope.caller.owner, envelope.words)
        return redacted_answer(answer, parts.secrets.redactor)


def _answerable(envelope: Envelope, ending: Ending) -> Ending:
    """A call that its tool committed is done, whatever becomes of it afterwards."""
    if not envelope.committed or isinstance(ending, Done) or ending.error is envelope.decided:
        return ending
    return Failed(answer_lost(envelope.call_id))
