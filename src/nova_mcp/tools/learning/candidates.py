"""The journal's own tool: what an agent thinks might be worth learning."""

import re
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BeforeValidator, Field

from nova_mcp.browser.targets.registry import SANDBOX_ID
from nova_mcp.core.leases import Place
from nova_mcp.core.redaction import hide_claim_tokens, holds_card_number, redact_selector
from nova_mcp.core.urls import normalize_url
from nova_mcp.errors import ClaimMismatch, Fix, InvalidParams
from nova_mcp.memory.facts.sensitive import sensitive_text
from nova_mcp.memory.journal.candidates import CLAIM_CHARS, COMPONENT_CHARS, DEFAULT_CONFIDENCE, normal_component
from nova_mcp.memory.journal.model import CandidateStatus, WorkContext
from nova_mcp.memory.journal.observations import scope_of
from nova_mcp.memory.journal.service import Claimed
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.spec import Result, TargetParams, tool
from nova_mcp.tools.times import utc

_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
_UNSPEAKABLE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def _one_line(text: str) -> str:
    kept = text.strip()
    # Marks that nobody sees say nothing.
    if not any(sign.isprintable() and not sign.isspace() for sign in kept):
        raise ValueError("must not be blank")
    if _UNSPEAKABLE.search(kept):
        raise ValueError("must be one line without control characters")
    return kept


def _category(text: str) -> str:
    # Some letters grow when they are made small.
    if len(normal_component(text)) > COMPONENT_CHARS:
        raise ValueError(f"must be at most {COMPONENT_CHARS} long")
    return text


def _number(value: Any) -> Any:
    """Some clients send numbers as text; only what plainly is one is taken for it."""
    return float(value) if isinstance(value, str) and _NUMBER.fullmatch(value.strip()) else value


class AddCandidateParams(TargetParams):
    target_id: str = Field(min_length=1, max_length=64, pattern=r"^[^\x00]*$")
    component: Annotated[str, AfterValidator(_one_line), AfterValidator(_category)] = Field(
        min_length=1, max_length=COMPONENT_CHARS, description="category, e.g. consent-dialog"
    )
    claim: Annotated[str, AfterValidator(_one_line)] = Field(
        min_length=1, max_length=CLAIM_CHARS, description="one reusable sentence"
    )
    status: CandidateStatus = "unverified"
    confidence: Annotated[float, BeforeValidator(_number)] = Field(
        DEFAULT_CONFIDENCE, ge=0.0, le=1.0, allow_inf_nan=False
    )


class AddCandidateResult(Result):
    target_id: str
    task_id: str
    owner_agent_id: str
    candidate_id: int
    created: bool
    # The answer's own status goes unsaid while all is well; by that name the candidate's is told.
    candidate_status: CandidateStatus = Field(alias="status")
    confidence: float
    updated_at_utc: str


@tool(
    title="Note a candidate",
    effect="write",
    bundles=("pks_learning",),
    target="optional",
    lock="none",
    private_arguments=("component", "claim"),
    repeat_safe=True,
)
async def memory_add_candidate(ctx: ToolContext, p: AddCandidateParams) -> AddCandidateResult:
    """Notes what might be worth learning about a site, in a tab you claimed. It is evidence to be reviewed, never
    guidance; saying it again adds to the same candidate."""
    context = _context(ctx, p)
    tab = ctx.evidence.tab
    # Spelled as the ledger spells it, so that a candidate and the calls around it are about the same host.
    url = None if tab is None else normalize_url(tab.url)
    host = None if url is None else scope_of(ctx.secrets.redactor.text(url))
    component = normal_component(_speakable(ctx, p.component, "component"))
    claimed = Claimed(component, _speakable(ctx, p.claim, "claim"), p.status, p.confidence, host or "")
    ctx.evidence.input_is_harmless = True
    kept = await ctx.memory.journal.add(context, claimed)
    candidate = kept.candidate
    return AddCandidateResult(
        target_id=context.target_id if tab is None else tab.target_id,
        task_id=context.task_id,
        owner_agent_id=context.agent_id,
        candidate_id=candidate.candidate_id,
        created=kept.created,
        candidate_status=candidate.status,
        confidence=candidate.confidence,
        updated_at_utc=utc(candidate.updated_at_ms),
    )


def _context(ctx: ToolContext, p: AddCandidateParams) -> WorkContext:
    """The caller's own claim; without one nobody could say whose work a candidate came from."""
    tab, claims = ctx.evidence.tab, ctx.claims
    place = p.target_id if tab is None else tab.target_id
    context = None
    if tab is not None or SANDBOX_ID.fullmatch(place):
        context = claims.work_context(ctx.caller, place)
    if context is not None:
        ctx.evidence.task_id = context.task_id
        return context
    held = claims.over(Place(place, place if tab is None else tab.sandbox_id))
    whose = "It is claimed by another agent." if held is not None else "Claim it with nova.tab_claim first."
    fix = None if held is not None else Fix("nova.tab_claim", {"targetId": place, "agentId": ctx.caller.agent_id})
    raise ClaimMismatch(
        "lcj.context_missing",
        f"{place} is not claimed by {ctx.caller.agent_id}, so nothing can be noted for it.",
        f"{whose} Work goes on without noting anything.",
        stage="precondition",
        fix=fix,
        details={"targetId": place},
    )


def _speakable(ctx: ToolContext, text: str, argument: str) -> str:
    """Words that may be kept and shown to others: whatever holds a secret is refused, not stored in part."""
    known = ctx.secrets.redactor.text(text) != text or hide_claim_tokens(text) != text
    if known or holds_card_number(text) or sensitive_text(text) is not None:
        raise InvalidParams(
            "invalid_params",
            f"{argument} holds a secret, a token or a card number, or what looks like one",
            "Nothing was noted. Say it without the value.",
            details={"argument": argument},
        )
    return redact_selector(text, keep_raw_urls=ctx.settings.keep_raw_urls)
