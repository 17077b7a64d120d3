"""What acting tools share: the guard they act under, the evidence they leave, the answer they give."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from pydantic import Field

from nova_mcp.browser.act.action import Acted, Manner
from nova_mcp.browser.act.action_report import ActionReport, Judgement
from nova_mcp.browser.perceive.element_lines import one_line, quoted
from nova_mcp.core.tokens import estimate_tokens, fit_tokens
from nova_mcp.core.values import Json
from nova_mcp.errors import Precondition
from nova_mcp.tools.browse.combined_effect import changes_page, request_seen
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.groups import ActParams, ContractParams, DialogParams, LeadingParams, OutputDetail
from nova_mcp.tools.guarded.guard import CallGuard, Wish
from nova_mcp.tools.results import ActResult, DialogSeen, EffectSeen, RequestSeen
from nova_mcp.tools.spec import GateId, Params, maybe
from nova_mcp.verification.wire import commit_json

SHOWN_TEXT = 80
TEXT_TOKENS = 60
GUARDED_TOKENS = 90
ELEMENT_TOKENS = 25
SHORTEST_ELEMENT = 6
SHOWN_DIALOGS = 2
# What a compact answer tells of requests and new text, in either form: as much as its line can show.
COMPACT_REQUESTS = 2
COMPACT_TEXTS = 1
SEPARATOR = " · "
ACTING_GATES: tuple[GateId, ...] = (
    "claim.owner",
    "setup.bootstrap",
    "setup.shared_agent_id",
    "safety.perceive_first",
    "safety.overlay_detected",
)
ACT_MS = 10_000


class ElementResult(ActResult):
    element: str
    ref_rebound: bool = maybe(default=False)
    ref_drift: str | None = maybe()
    http_status: int | None = maybe()
    already_set: bool = maybe(default=False)
    verb: str = Field(exclude=True)
    # How much of the text's budget the gates take, and whether everything that was seen is wanted.
    beside: int = Field(default=0, exclude=True)
    full: bool = Field(default=False, exclude=True)

    def text(self) -> str:
        """One line within the budget: what was done and how sure it is always stand, the rest as far as it fits."""
        verdict = self.verify_state if self.reason_code is None else f"{self.verify_state}: {self.reason_code}"
        tail = [*self._dialogs(), verdict, *self._advice()]
        limit = (TEXT_TOKENS if self.guarded_commit is None else GUARDED_TOKENS) - self.beside
        around = estimate_tokens(SEPARATOR.join([f"{self.verb} ", *tail]))
        head = f"{self.verb} {fit_tokens(self.element, max(SHORTEST_ELEMENT, min(ELEMENT_TOKENS, limit - around)))}"
        details: list[str] = []
        for part in self._details():
            if estimate_tokens(SEPARATOR.join([head, *details, part, *tail])) <= limit:
                details.append(part)
        line = SEPARATOR.join([head, *details, *tail])
        return "\n".join([line, *self._everything()]) if self.full else line

    def _everything(self) -> Iterator[str]:
        """What was seen, line by line, for those who asked for it."""
        effect = self.effect
        yield f"proof {self.dispatch_proof} · effect {', '.join(effect.channels) or 'none'} · {effect.window_ms} ms"
        yield from (f"{one.method} {one_line(one.path, 200)} {_came_back(one)}" for one in effect.requests)
        yield from (f"text {quoted(line, 120)}" for line in effect.new_text)
        yield from (f"{one.type} {one.answer} {quoted(one.message, 200)}" for one in self.dialogs)
        yield from (f"download {quoted(one.file_name, 120)} {one.state}" for one in self.downloads)
        if self.new_tab_ids or self.popups_closed:
            yield f"new tabs {', '.join(self.new_tab_ids) or 'none'}, closed {self.popups_closed}"

    def _dialogs(self) -> Iterator[str]:
        """A dialog that was answered for the agent is never left out."""
        yield from (f"{dialog.type} {dialog.answer}" for dialog in self.dialogs[:SHOWN_DIALOGS])
        if len(self.dialogs) > SHOWN_DIALOGS:
            yield f"{len(self.dialogs)} dialogs"

    def _advice(self) -> Iterator[str]:
        """Under a contract the agent must know what it may do next, and by which name to ask."""
        if self.guarded_commit is None:
            return
        if self.status != "ok":
            yield f"{self.retry_advice} {self.guarded_commit['transitionId']}"
        if self.hint:
            yield self.hint

    def _details(self) -> Iterator[str]:
        """What happened, most telling first; text of the page is quoted and stays on one line."""
        yield from (f"new tab {tab_id}" for tab_id in self.new_tab_ids[:2])
        yield from (f"{one.method} {one_line(one.path, 60)} {_came_back(one)}" for one in self.effect.requests[:2])
        if "navigation" in self.effect.channels or "url_changed" in self.effect.channels:
            yield f"now {one_line(self.url, SHOWN_TEXT)}"
        yield from (quoted(line, SHOWN_TEXT) for line in self.effect.new_text[:1])


def _came_back(request: RequestSeen) -> str:
    if request.pending:
        return "pending"
    return str(request.status) if request.status is not None else "failed"


def act_deadline(p: Params) -> int:
    """Everything the arguments allow the call to wait for, and the acting itself."""
    total = ACT_MS
    if isinstance(p, ActParams):
        total += p.timeout_ms
    if isinstance(p, LeadingParams) and p.wait_for_navigation:
        total += p.navigation_timeout_ms
    if isinstance(p, ContractParams):
        total += p.verifying_ms() or 0
    return total


def reserves(p: ContractParams) -> int | None:
    """A call with a contract reserves its target for as long as its outcome may be watched."""
    return p.verifying_ms()


@dataclass(frozen=True, slots=True)
class Answering:
    """How an answer is worded, and what the tool knows about the outcome beyond what was seen."""

    verb: str
    known: Judgement = field(default_factory=Judgement)
    # Whether the action gives the page something: text, a choice, a file.
    supplies: bool = False
    detail: OutputDetail = "compact"


def wish_of(p: ContractParams) -> Wish:
    call: Mapping[str, Json] = p.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return Wish(p.contract(), p.retry_of, p.intent_key, call=call)


def manner_of(p: Params, guard: CallGuard) -> Manner:
    """What the arguments say about waiting, leaving and dialogs."""
    manner = Manner(guard=guard)
    if isinstance(p, ActParams):
        manner = replace(manner, timeout_ms=p.timeout_ms)
    if isinstance(p, LeadingParams):
        manner = replace(
            manner, wait_for_navigation=p.wait_for_navigation, navigation_timeout_ms=p.navigation_timeout_ms
        )
    if isinstance(p, DialogParams):
        manner = replace(manner, on_dialog=p.on_dialog, prompt_text=p.prompt_text)
    return manner


async def tell(ctx: ToolContext, guard: CallGuard, acted: Acted, answering: Answering) -> ElementResult:
    """The answer of an action, with its evidence noted and its receipt written."""
    report = await guard.reported(acted, answering.known)
    _note(ctx, report, commits=guard.is_commit)
    if answering.supplies and acted.observation is not None:
        ctx.evidence.flags.add("input_supplied")
    return _answer(ctx, guard, report, answering)


def _note(ctx: ToolContext, report: ActionReport, *, commits: bool) -> None:
    evidence = ctx.evidence
    verdict = None if report.commit is None else report.commit.verification_status
    evidence.signals = replace(
        evidence.signals,
        label=report.learning_label,
        effect_observed=report.effect.observed,
        page_changed=report.action_dispatched and changes_page(report.effect),
        contract=verdict,
        high_signal=commits and report.action_dispatched and verdict == "verified_success",
    )
    evidence.settle_touch(report.action_dispatched)
    evidence.verification = report.verify_state
    if report.action_dispatched and report.effect.observed:
        evidence.flags.add("mutation_committed")
    if report.navigation is not None:
        evidence.flags.add("navigation_committed")


def _effect(report: ActionReport, detail: OutputDetail) -> EffectSeen:
    effect = report.effect
    full = detail == "full"
    return EffectSeen(
        observed=effect.observed,
        channels=list(effect.channels),
        new_text=list(effect.new_text if full else effect.new_text[:COMPACT_TEXTS]),
        requests=[request_seen(one) for one in (effect.requests if full else effect.requests[:COMPACT_REQUESTS])],
        window_ms=effect.window_ms,
    )


def _answer(ctx: ToolContext, guard: CallGuard, report: ActionReport, answering: Answering) -> ElementResult:
    failed = report.reason_code == "guarded_commit.postcondition_failed"
    return ElementResult(
        ok=report.status == "ok",
        status=report.status,
        target_id=ctx.tab.target_id,
        url=report.url,
        reason_code=report.reason_code,
        stage=report.stage,
        retryable=report.retryable,
        retry_advice=report.retry_advice,
        action_dispatched=bool(ctx.evidence.action_dispatched),
        dispatch_proof=report.dispatch_proof,
        effect=_effect(report, answering.detail),
        verify_state=report.verify_state,
        rev=report.rev,
        dialogs=[DialogSeen(type=d.type, message=d.message, answer=d.answer) for d in report.dialogs],
        new_tab_ids=list(report.new_tab_ids),
        popups_closed=report.popups_closed,
        guarded_commit=None if report.commit is None else commit_json(report.commit),
        receipt=guard.receipt_line,
        error_code=Precondition.error_code if failed else None,
        message="The page shows that it did not work." if failed else None,
        hint=_hint(report),
        element=report.element,
        ref_rebound=report.ref_rebound,
        ref_drift=report.ref_drift,
        http_status=report.navigation.http_status if report.navigation else None,
        already_set=answering.known.already_set,
        verb=answering.verb if report.action_dispatched else "left as it is:",
        beside=ctx.call.reserved_tokens,
        full=answering.detail == "full",
    )


def _hint(report: ActionReport) -> str | None:
    if report.commit is None or report.status == "ok":
        return None
    if report.commit.verification_status == "verified_fail":
        return "Read what the page says with nova.perceive and put that right."
    return "Look at the page with nova.perceive before doing it again."
