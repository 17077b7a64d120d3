"""The life of one tool call: open, validate, admit, act, record, answer."""

import logging
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import partial

import anyio

from nova_mcp.browser.process.runtime import Browser
from nova_mcp.calls.admission.admission import Admission
from nova_mcp.calls.admission.gates import shadow_gate
from nova_mcp.calls.answer_redaction import redacted_answer
from nova_mcp.calls.background_review import Passes
from nova_mcp.calls.callers import OWN, whose
from nova_mcp.calls.endings import (
    STORE_REASON,
    Done,
    Ending,
    Failed,
    answer_lost,
    cancelled,
    commit_failed,
    defect,
    ended_for,
    outcome_of,
    store_failed,
    unknown_tool,
)
from nova_mcp.calls.envelope import Envelope
from nova_mcp.calls.lessons import NO_LESSON, Lesson, Lessons, with_lessons
from nova_mcp.calls.model import Answer, CallRequest, Within
from nova_mcp.calls.renderer import Reader, not_recorded, render, tokens_of, unrecorded, with_notices
from nova_mcp.calls.running_calls import Running
from nova_mcp.calls.scan_hints import with_hints
from nova_mcp.calls.site_notes import SiteNotes, warned_of, with_site_warning
from nova_mcp.calls.stages.asides import Asides
from nova_mcp.calls.stages.gate_stages import EarlyGates, Gatekeeper, LateGates
from nova_mcp.calls.stages.loop_detection import LoopCount, Loops
from nova_mcp.calls.stages.recording import EnvelopeRecord, Recording, StoreCheck
from nova_mcp.calls.stages.stage import Call, Proceed, Stage
from nova_mcp.calls.stages.targets import Deadline, TabUse, TargetLocks, TargetResolution
from nova_mcp.calls.tool_arguments import Validation
from nova_mcp.core.clock import Ports
from nova_mcp.errors import NovaError, UnknownTool
from nova_mcp.evidence.model import Caller, CallOutcome, CallRecord, ServerId
from nova_mcp.evidence.recorder import Recorder
from nova_mcp.secrets.store import SecretStore
from nova_mcp.settings import Settings
from nova_mcp.storage.errors import StoreUnavailable
from nova_mcp.tools import PREFIX
from nova_mcp.tools.catalogue import Catalogue
from nova_mcp.tools.context import CallInfo, Memory, StepAnswer, StepCall, ToolContext
from nova_mcp.tools.names import canonical_name

log = logging.getLogger(__name__)


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
    """Takes every call through the same stages and leaves a record of each, however it ends."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._open_names = parts.catalogue.open_arguments()
        settings, admission, browser, memory, clock = (
            parts.settings, parts.admission, parts.browser, parts.memory, parts.ports.clock
        )  # fmt: skip
        keep_raw_urls = settings.keep_raw_urls
        self._loops = Loops(clock)
        self._lessons = Lessons(memory.learning, browser, keep_raw_urls=keep_raw_urls)
        self._sites = SiteNotes(memory.notes.sites, clock)
        self._gates = Gatekeeper(settings, admission, memory.claims, self._sites)
        self._recording = Recording(
            parts.recorder, memory.tasks.runs, self._lessons, clock, keep_raw_urls=keep_raw_urls
        )
        self.running = Running()
        self.passes = Passes(memory.learning, clock, self.run)
        # The way of a call from its arrival to its tool and back, the outermost first.
        self._stages: tuple[Stage, ...] = (
            Validation(parts.catalogue),
            TargetResolution(browser, memory.claims),
            EarlyGates(self._gates, admission, memory.facts, settings),
            self._loops,
            Deadline(),
            TargetLocks(memory.verifier.coordinator),
            TabUse(browser, clock),
            self._sites,
            LateGates(self._gates, admission, self._sites),
            StoreCheck(parts.recorder),
            Asides(),
            LoopCount(self._loops),
        )

    async def run(self, request: CallRequest) -> Answer:
        return await self._run(request, self._open(request))

    async def _run(self, request: CallRequest, envelope: Envelope) -> Answer:
        """Whatever becomes of the call, it is recorded, and only then answered."""
        with self.running.entered(envelope.call_id) as scope:
            ending: Ending | None = None
            try:
                with scope:
                    ending = await self._attempt(Call(request, envelope))
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

    async def _attempt(self, call: Call) -> Ending:
        """The call through its stages to its tool; every failure but a tool that does not exist is an ending."""
        envelope = call.envelope
        proceed: Proceed = partial(self._run_tool, call)
        for stage in reversed(self._stages):
            proceed = partial(stage.around, call, proceed)
        try:
            return await proceed()
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

    async def _run_tool(self, call: Call) -> Ending:
        """The tool itself. What was wrong with a call that it committed is an ending like an answer."""
        envelope = call.envelope
        envelope.shadow_gate = shadow_gate(call.notices)
        call.context = self._context(call)
        try:
            return Done(await call.spec.run(call.context, call.params), call.notices)
        except NovaError as error:
            if error is not envelope.decided:
                raise
            return Failed(error)
        except StoreUnavailable as failure:
            if failure is not envelope.unrecorded:
                raise
            return Failed(commit_failed(failure))

    # before the stages

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

    # for the tool

    def _context(self, call: Call) -> ToolContext:
        parts, request, envelope = self._parts, call.request, call.envelope
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
                reserved_tokens=tokens_of(call.notices),
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

    # behind the stages: record, then answer

    def _cut_off(self, request: CallRequest, envelope: Envelope) -> CallOutcome:
        """A step is cut off together with the call it belongs to, for whatever reason that one was."""
        why = self.running.reason(envelope.call_id) if request.within is not None else None
        return cancelled(envelope.evidence) if why is None else outcome_of(ended_for(why), envelope.evidence)

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
            answer = with_notices(answer, self._gates.words(envelope), reader)
        if not envelope.is_step:
            answer = with_site_warning(answer, envelope.warned)
        answer = with_lessons(answer, lesson, envelope.evidence.learned, parts.settings.tool_names)
        answer = with_hints(answer, envelope.evidence.signals.hints, parts.settings.tool_names, envelope.connection)
        parts.memory.claims.told(envelope.caller.owner, envelope.words)
        return redacted_answer(answer, parts.secrets.redactor)


def _answerable(envelope: Envelope, ending: Ending) -> Ending:
    """A call that its tool committed is done, whatever becomes of it afterwards."""
    if not envelope.committed or isinstance(ending, Done):
        return ending
    if envelope.decided is not None:
        return Failed(envelope.decided)
    return Failed(answer_lost(envelope.call_id))
