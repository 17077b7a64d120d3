"""Retiring entries that no longer hold."""

from pydantic import Field
from sqlalchemy import Connection

from nova_mcp.memory.knowledge.model import Problem
from nova_mcp.memory.knowledge.writes.rules import Refused
from nova_mcp.memory.knowledge.writes.store import Retirement
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.knowledge.params import EntryId, ScopeText, refusal
from nova_mcp.tools.knowledge.write_context import commit_entries, open_place, secret_refused, written
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

    def retire(conn: Connection) -> Retirement | Refused:
        done = writer.deprecate(conn, scope, p.phenomenon_id, reason, now)
        if isinstance(done, Refused) and done.ordinary:
            return done
        return written(done, "reason", scope, p.phenomenon_id)

    done = await commit_entries(ctx, retire)
    if isinstance(done, Refused):
        problem = done.problems[0]
        return DeprecateResult(
            ok=False,
            reason_code=problem.code,
            deprecated=False,
            phenomenon_id=p.phenomenon_id,
            reason=reason,
            message=problem.message,
        )
    told = done.kept.deprecated_reason or reason
    return DeprecateResult(deprecated=True, phenomenon_id=p.phenomenon_id, reason=told)
