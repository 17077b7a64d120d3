"""Answering a question about a site: stored, not worth it, unsafe, known already, or later."""

from typing import Final

from pydantic import ConfigDict, Field

from nova_mcp.errors import NotFound
from nova_mcp.memory.promotion.prompts.prompter import ENTRY_MISSING, Answering
from nova_mcp.memory.promotion.prompts.rules import (
    AlreadyResolved,
    NothingStored,
    Resolution,
    SemanticOpportunity,
    SemanticState,
    SemanticVerdict,
)
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.spec import AgentParams, Params, Result, maybe, tool
from nova_mcp.tools.times import utc

REASON_CHARS: Final = 500
_ID_CHARS: Final = 512
_NOTHING_STORED: Final = "Not closed: no entry of this site answers the question."
_STORE_FIRST: Final = "Store one with nova.pks_upsert (the prompt's skeleton); that closes the question by itself."


class ResolveParams(AgentParams):
    # Clients of older contracts send more; it is neither used nor kept.
    model_config = ConfigDict(**{**Params.model_config, "extra": "ignore"})

    opportunity_id: str = Field(min_length=1, max_length=_ID_CHARS, pattern=r"^[^\x00]*$")
    verdict: SemanticVerdict
    reason: str | None = Field(None, max_length=REASON_CHARS, pattern=r"^[^\x00]*$")


class ResolveResult(Result):
    opportunity_id: str
    verdict: SemanticVerdict
    reason: str | None
    prior_state: SemanticState
    resolved_state: SemanticState
    resolved_at_utc: str | None
    fr1_candidates_superseded: int = Field(alias="fr1CandidatesSuperseded")
    message: str | None = maybe()
    hint: str | None = maybe()


@tool(
    title="Answer a learning prompt",
    effect="write",
    bundles=("pks_learning",),
    target="none",
    private_arguments=("reason",),
    repeat_safe=True,
)
async def learn_resolve_opportunity(ctx: ToolContext, p: ResolveParams) -> ResolveResult:
    """Closes or puts off the question in pksSemanticLearning: upsert once you have stored the entry yourself, or say
    why there is nothing to store. defer asks again after a day."""
    reason = None if p.reason is None else ctx.secrets.redactor.text(p.reason)
    answering = ctx.learning.prompter.answering(ctx.caller.principal, p.opportunity_id, p.verdict, reason)
    ctx.evidence.decide = answering.decide
    ctx.evidence.after_commit = lambda: _answer(answering)
    return _told(answering, SemanticOpportunity(p.opportunity_id, "consent_cmp", "", "", 0.0, 0), "prompted")


def _answer(answering: Answering) -> ResolveResult:
    match answering.result:
        case Resolution(opportunity, prior_state):
            return _told(answering, opportunity, prior_state)
        case AlreadyResolved(opportunity):
            told = _told(answering, opportunity, opportunity.state)
            return told.model_copy(update={"ok": False, "reason_code": "already_resolved"})
        case NothingStored(opportunity):
            told = _told(answering, opportunity, opportunity.state)
            # The verdict that was refused is not the question's.
            return told.model_copy(
                update={"ok": False, "reason_code": ENTRY_MISSING, "message": _NOTHING_STORED, "hint": _STORE_FIRST}
            )
        case None:
            raise NotFound(
                "learn.opportunity_not_found",
                stage="precondition",
            )


def _told(answering: Answering, one: SemanticOpportunity, prior: SemanticState) -> ResolveResult:
    return ResolveResult(
        opportunity_id=one.opportunity_id,
        verdict=one.verdict or answering.verdict,
        reason=one.reason,
        prior_state=prior,
        resolved_state=one.state,
        resolved_at_utc=None if one.resolved_at_ms is None else utc(one.resolved_at_ms),
        fr1_candidates_superseded=answering.superseded,
    )
