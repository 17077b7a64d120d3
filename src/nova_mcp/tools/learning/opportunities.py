"""Answering a question about a site: stored, not worth it, unsafe, known already, or later."""

from typing import Final

from pydantic import ConfigDict, Field

from nova_mcp.memory.journal.observations import ended_at_ms
from nova_mcp.memory.promotion.prompts.prompter import ALREADY_RESOLVED, ENTRY_MISSING, OwnAnswer
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
    prompter, principal, given = (
        ctx.learning.prompter,
        ctx.caller.principal,
        OwnAnswer(p.opportunity_id, p.verdict, reason),
    )
    done = await ctx.commit(lambda conn, record: prompter.answer(conn, principal, given, ended_at_ms(record)))
    match done.result:
        case Resolution(opportunity, prior_state):
            return _result(p, opportunity, prior_state, done.superseded)
        case AlreadyResolved(opportunity):
            result = _result(p, opportunity, opportunity.state, done.superseded)
            return result.model_copy(update={"ok": False, "reason_code": ALREADY_RESOLVED})
        case NothingStored(opportunity):
            result = _result(p, opportunity, opportunity.state, done.superseded)
            # The verdict that was refused is not the question's.
            return result.model_copy(
                update={"ok": False, "reason_code": ENTRY_MISSING, "message": _NOTHING_STORED, "hint": _STORE_FIRST}
            )


def _result(p: ResolveParams, one: SemanticOpportunity, prior: SemanticState, superseded: int) -> ResolveResult:
    return ResolveResult(
        opportunity_id=one.opportunity_id,
        verdict=one.verdict or p.verdict,
        reason=one.reason,
        prior_state=prior,
        resolved_state=one.state,
        resolved_at_utc=None if one.resolved_at_ms is None else utc(one.resolved_at_ms),
        fr1_candidates_superseded=superseded,
    )
