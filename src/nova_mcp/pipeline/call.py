"""The life of one tool call: observe, validate, admit, act, record, answer."""

import logging
from collections.abc import Collection, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import NoReturn

import anyio

from nova_mcp.browser.claims import renewed
from nova_mcp.browser.runtime import Browser
from nova_mcp.browser.targets import Tab
from nova_mcp.clock import Ports
from nova_mcp.errors import Blocked, Internal, InvalidParams, NotFound, NovaError, Unavailable, UnknownTool
from nova_mcp.observation.model import Caller, CallOutcome, Json, OutcomeKind, ServerId
from nova_mcp.observation.recorder import Recorder
from nova_mcp.pipeline.admission import Admission, stop_requested
from nova_mcp.pipeline.envelope import Envelope, page_state
from nova_mcp.pipeline.gates import Admitted, Notice, Refused, admit
from nova_mcp.pipeline.model import Answer, CallRequest, compact
from nova_mcp.pipeline.render import render_error, render_result
from nova_mcp.settings import Settings
from nova_mcp.storage.errors import StoreUnavailable
from nova_mcp.tools.arguments import parse_arguments, shown
from nova_mcp.tools.catalogue import Catalogue
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.door import CallParams
from nova_mcp.tools.names import canonical_name
from nova_mcp.tools.spec import AGENT_ID, AgentParams, Params, TargetParams, ToolSpec

log = logging.getLogger(__name__)

DOOR = "nova.call"
LIMIT_GATE = "server.limit"
GRACE_MS = 5_000
STOP_POLL_S = 0.25


@dataclass(frozen=True, slots=True)
class Parts:
    """What the pipeline is made of; wired in `app.py`."""

    settings: Settings
    ports: Ports
    server_id: ServerId
    catalogue: Catalogue
    recorder: Recorder
    browser: Browser
    admission: Admission
    listed: Collection[str]


class Pipeline:
    """Takes every call through the same steps and leaves a record of each, however it ends."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._running: dict[str, anyio.CancelScope] = {}
        self._stopping: str | None = None
        self._idle = anyio.Event()

    async def run(self, request: CallRequest) -> Answer:
        envelope = self._open(request)
        try:
            return await self._run(request, envelope)
        finally:
            del self._running[envelope.call_id]
            if not self._running:
                self._idle.set()

    async def _run(self, request: CallRequest, envelope: Envelope) -> Answer:
        with anyio.CancelScope() as scope:
            if not self._running:
                self._idle = anyio.Event()
            self._running[envelope.call_id] = scope
            try:
                return await self._attempt(request, envelope)
            except UnknownTool:
                await self._record(envelope, CallOutcome("invalid", -32602, "unknown_tool"))
                raise
            except anyio.get_cancelled_exc_class():
                if not scope.cancel_called:
                    await self._record(envelope, self._cancelled(envelope))
                raise
        return await self._conclude(envelope, self._stopped_error(envelope))

    async def watch_stop_file(self) -> None:
        """Cancel what is running as soon as the operator asks for a stop."""
        while True:
            if self._running and stop_requested(self._parts.settings.stop_file):
                self.cancel_all("safety.emergency_stop")
            await anyio.sleep(STOP_POLL_S)

    def cancel_all(self, reason: str) -> None:
        self._stopping = reason
        for scope in list(self._running.values()):
            scope.cancel()

    async def drained(self) -> None:
        """Return when every call has ended and left its record."""
        if self._running:
            await self._idle.wait()

    # 1–2: open the envelope

    def _open(self, request: CallRequest) -> Envelope:
        ports = self._parts.ports
        return Envelope(
            call_id=ports.ids.call_id(),
            caller=Caller(request.principal, _agent_id(request.arguments), self._parts.server_id),
            tool_name=canonical_name(request.tool),
            arguments=request.arguments,
            started_at_ms=ports.clock.now_ms(),
            started_mono_ms=ports.clock.monotonic_ms(),
        )

    async def _attempt(self, request: CallRequest, envelope: Envelope) -> Answer:
        try:
            result_answer = await self._perform(request, envelope)
        except (NovaError, StoreUnavailable) as error:
            return await self._conclude(envelope, _as_nova_error(error, envelope))
        except UnknownTool:
            raise
        except Exception:
            log.exception("call %s of %s broke", envelope.call_id, envelope.tool_name)
            broken = Internal(
                "internal",
                "Nova could not complete this call because of a defect of its own.",
                f"The server's log has the details under call {envelope.call_id}.",
                stage="dispatch",
                action_dispatched=bool(envelope.evidence.action_dispatched),
            )
            return await self._conclude(envelope, broken)
        return result_answer

    async def _perform(self, request: CallRequest, envelope: Envelope) -> Answer:
        spec, params = self._understand(envelope)
        if request.refusal is not None:
            envelope.gate_id = LIMIT_GATE
            raise request.refusal
        await self._resolve(spec, params, envelope)
        notices = self._admit(spec, request, envelope)
        context = self._context(request, envelope)
        budget_ms = spec.deadline_ms(params) + GRACE_MS
        try:
            with anyio.fail_after(budget_ms / 1000):
                async with self._lock(spec, envelope.evidence.tab):
                    result = await spec.run(context, params)
        except TimeoutError:
            _overdue(envelope, budget_ms)
        answer = render_result(result, notices, self._parts.listed)
        return await self._acknowledge(envelope, answer)

    # 3: which tool, which arguments

    def _understand(self, envelope: Envelope) -> tuple[ToolSpec, Params]:
        catalogue = self._parts.catalogue
        if envelope.tool_name == DOOR:
            self._enter_door(envelope)
        spec = catalogue.find(envelope.tool_name)
        envelope.spec = spec
        envelope.tool_name = spec.canonical
        params = parse_arguments(spec.params, envelope.arguments)
        if isinstance(params, AgentParams):
            envelope.caller = replace(envelope.caller, agent_id=params.agent_id)
        return spec, params

    def _enter_door(self, envelope: Envelope) -> None:
        """`nova.call` becomes the tool it names: same effect, gates, evidence and answer."""
        envelope.spec = self._parts.catalogue.find(DOOR)
        outer = parse_arguments(CallParams, envelope.arguments)
        inner = canonical_name(outer.tool)
        if inner == DOOR:
            raise InvalidParams("call.nested", "nova.call can't call itself.", "Name the tool you want in `tool`.")
        try:
            self._parts.catalogue.find(inner)
        except UnknownTool as unknown:
            closest: list[Json] = list(unknown.closest)
            raise InvalidParams(
                "unknown_tool",
                f"tool {shown(outer.tool)} does not exist",
                "nova.tools_bundle finds a tool by what it does.",
                details={"closest": closest},
            ) from None
        envelope.via, envelope.tool_name, envelope.arguments = "call", inner, outer.args
        envelope.caller = replace(envelope.caller, agent_id=_agent_id(outer.args))

    # 4: target and gates

    async def _resolve(self, spec: ToolSpec, params: Params, envelope: Envelope) -> None:
        if spec.target == "none" or not isinstance(params, TargetParams):
            return
        try:
            tab = await self._parts.browser.targets.resolve(envelope.caller, params.target_id)
        except (NotFound, InvalidParams) as missing:
            if _tolerated(spec, missing):
                return
            raise
        envelope.evidence.tab = tab
        envelope.before = page_state(tab, keep_raw_urls=self._parts.settings.keep_raw_urls)

    def _admit(self, spec: ToolSpec, request: CallRequest, envelope: Envelope) -> tuple[Notice, ...]:
        parts, tab = self._parts, envelope.evidence.tab
        facts = parts.admission.facts(spec, envelope.arguments, envelope.caller, tab, request.connection)
        match admit(spec.gates, facts, parts.settings.gates):
            case Refused(gate_id, error):
                envelope.gate_id = gate_id
                raise error
            case Admitted(notices):
                if tab is not None and spec.lock == "exclusive":
                    tab.lease = renewed(tab.lease, envelope.caller.owner, facts.now_ms)
                return notices

    # 5: act

    def _context(self, request: CallRequest, envelope: Envelope) -> ToolContext:
        parts = self._parts
        return ToolContext(
            call_id=envelope.call_id,
            caller=envelope.caller,
            ports=parts.ports,
            settings=parts.settings,
            browser=parts.browser,
            catalogue=parts.catalogue,
            evidence=envelope.evidence,
            progress=request.progress,
        )

    def _lock(self, spec: ToolSpec, tab: Tab | None) -> AbstractAsyncContextManager[None]:
        if tab is None or spec.lock == "none":
            return nullcontext()
        return tab.lock.exclusive() if spec.lock == "exclusive" else tab.lock.shared()

    # 6–9: record, then answer

    async def _acknowledge(self, envelope: Envelope, answer: Answer) -> Answer:
        status = answer.structured.get("status", "ok")
        kind: OutcomeKind = "partial" if status == "partial" else "failed" if answer.is_error else "ok"
        reason = answer.structured.get("reasonCode")
        outcome = self._outcome(envelope, kind, reason_code=reason if isinstance(reason, str) else None)
        try:
            await self._record(envelope, outcome)
        except StoreUnavailable as error:
            return self._unrecorded(envelope, answer, error)
        return answer

    async def _conclude(self, envelope: Envelope, error: NovaError) -> Answer:
        """Record a call that ended in an error, then say so."""
        kind = _kind(error, envelope)
        answer = self._error_answer(envelope, error)
        outcome = self._outcome(envelope, kind, error_code=error.error_code, reason_code=error.reason_code)
        try:
            await self._record(envelope, outcome)
        except StoreUnavailable as failure:
            return self._unrecorded(envelope, answer, failure)
        return answer

    def _outcome(
        self, envelope: Envelope, kind: OutcomeKind, *, error_code: int | None = None, reason_code: str | None = None
    ) -> CallOutcome:
        return CallOutcome(
            kind,
            error_code,
            reason_code,
            envelope.gate_id,
            envelope.evidence.action_dispatched,
            envelope.evidence.verification,
        )

    def _cancelled(self, envelope: Envelope) -> CallOutcome:
        return self._outcome(envelope, "cancelled", reason_code="call.cancelled")

    async def _record(self, envelope: Envelope, outcome: CallOutcome) -> None:
        if envelope.recorded:
            return
        parts = self._parts
        record = envelope.close(outcome, parts.ports.clock.monotonic_ms(), keep_raw_urls=parts.settings.keep_raw_urls)
        # Set before the write: a cancellation that arrives while the shielded write runs must not record twice.
        envelope.recorded = True
        try:
            await parts.recorder.record(record)
        except StoreUnavailable:
            envelope.recorded = False
            raise

    def _unrecorded(self, envelope: Envelope, answer: Answer, failure: StoreUnavailable) -> Answer:
        """Evidence could not be written: an untouched page is reported as failure, a touched one says so."""
        log.error("call %s was not recorded: %s", envelope.call_id, failure)
        if envelope.evidence.action_dispatched:
            body = answer.structured | {"actionDispatched": True, "evidenceRecorded": False}
            return replace(answer, structured=body, text=compact(body))
        return self._error_answer(envelope, _as_nova_error(failure, envelope))

    def _error_answer(self, envelope: Envelope, error: NovaError) -> Answer:
        effect = envelope.spec.effect if envelope.spec is not None else None
        answer = render_error(error, effect, envelope.call_id, self._parts.listed)
        if envelope.gate_id is None:
            return answer
        body = answer.structured | {"gateId": envelope.gate_id}
        return replace(answer, structured=body, text=compact(body))

    def _stopped_error(self, envelope: Envelope) -> NovaError:
        dispatched = bool(envelope.evidence.action_dispatched)
        if self._stopping == "safety.emergency_stop":
            envelope.gate_id = "safety.emergency_stop"
            return Blocked(
                "safety.emergency_stop",
                "The operator stopped Nova while this call was running.",
                "Only a person can lift the stop.",
                stage="dispatch",
                action_dispatched=dispatched,
            )
        return Unavailable(
            "server.shutting_down",
            "The server is shutting down.",
            "Start it again and look at the page before repeating anything.",
            stage="dispatch",
            action_dispatched=dispatched,
        )


def _agent_id(arguments: Mapping[str, Json]) -> str:
    """The agent a call names, even when its other arguments turn out to be wrong."""
    raw = arguments.get("agentId")
    return raw if isinstance(raw, str) and AGENT_ID.fullmatch(raw) else "default"


def _tolerated(spec: ToolSpec, missing: NovaError) -> bool:
    if spec.target == "optional":
        return missing.reason_code == "tab.no_active_tab"
    return spec.target == "departed" and missing.reason_code == "tab.unknown" and "lastSeen" in missing.details


def _kind(error: NovaError, envelope: Envelope) -> OutcomeKind:
    if envelope.gate_id is not None and not error.action_dispatched:
        return "blocked_preflight"
    if isinstance(error, Blocked) and error.stage == "guarded_commit_check":
        envelope.gate_id = "safety.guarded_commit"
        return "blocked_preflight"
    if isinstance(error, InvalidParams):
        return "invalid"
    if isinstance(error, Internal):
        return "crashed"
    return "failed"


def _overdue(envelope: Envelope, budget_ms: int) -> NoReturn:
    raise Unavailable(
        "call.deadline",
        f"The call did not end within {budget_ms} ms.",
        "Look at the page with nova.perceive before repeating it.",
        stage="observe",
        retry_after_ms=1_000,
        action_dispatched=bool(envelope.evidence.action_dispatched),
    )


def _as_nova_error(error: NovaError | StoreUnavailable, envelope: Envelope) -> NovaError:
    if isinstance(error, NovaError):
        return error
    return Unavailable(
        "store.unavailable",
        f"The evidence store can't be used: {error.message}",
        error.hint,
        stage="dispatch",
        retry_after_ms=1_000,
        action_dispatched=bool(envelope.evidence.action_dispatched),
    )
