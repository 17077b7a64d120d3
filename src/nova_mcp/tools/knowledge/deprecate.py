"""Retiring entries that no longer hold."""

from pydantic import Field

from nova_mcp.memory.knowledge.model import Problem
from nova_mcp.memory.knowledge.writes.entry_write import REFUSALS
from nova_mcp.memory.knowledge.writes.rules import Refused
from nova_mcp.memory.knowledge.writes.store import Retirement
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.knowledge.params import EntryId, ScopeText, refusal
from nova_mcp.tools.knowledge.write_context import decided, open_place, secret_refused, unwritten_error
from nova_mcp.tools.spec import AgentParams, Result, maybe, tool


class DeprecateParams(AgentParams):
    scope: ScopeText
    phenomenon_id: EntryId
    reason: str = Field(min_length=3, max_length=500, pattern=r"^[^\x00]*$")


class DeprecateResult(Result):
    deprecated: bool
    phenomenon_id: str
    reason: str
    message: str | None = maybe()

    def text(self) -> str:
        told = f"deprecated: {self.reason}" if self.deprecated else f"stays: {self.message or self.reason_code}"
        return f"{self.phenomenon_id} {told}"


@tool(
    title="Retire a stored situation",
    effect="write",
    bundles=("pks_learning",),
    target="none",
    private_arguments=("reason",),
    repeat_safe=True,
)
async def pks_deprecate(ctx: ToolContext, p: DeprecateParams) -> DeprecateResult:
    """Takes an entry that no longer holds out of matching. An active one goes only after a failure or drift of the last
    seven days."""
    scope, _ = open_place(ctx, p.scope)
    reason = " ".join(p.reason.split())
    if len(reason) < 3:
        raise refusal(Problem("invalid_params", "say in a few words why it no longer holds", "reason"), "reason")
    if ctx.secrets.redactor.text(reason) != reason:
        raise secret_refused("reason")
    now, writer = ctx.ports.clock.now_ms(), ctx.learning.knowledge.writer
    deciding = decided(ctx, lambda conn, _: writer.deprecate(conn, scope, p.phenomenon_id, reason, now))

    def answer() -> DeprecateResult:
        match deciding.outcome:
            case Retirement(kept):
                told = kept.deprecated_reason or reason
                return DeprecateResult(deprecated=True, phenomenon_id=p.phenomenon_id, reason=told)
            case Refused(problems) if problems[0].code in REFUSALS:
                return DeprecateResult(
                    ok=False,
                    reason_code=problems[0].code,
                    deprecated=False,
                    phenomenon_id=p.phenomenon_id,
                    reason=reason,
                    message=problems[0].message,
                )
            case other:
                raise unwritten_error(other, "reason", scope, p.phenomenon_id)

    ctx.evidence.after_commit = answer
    return DeprecateResult(deprecated=False, phenomenon_id=p.phenomenon_id, reason=reason)
