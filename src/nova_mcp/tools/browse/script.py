"""An agent's own JavaScript in a page; off unless the operator allows it."""

from pydantic import Field, JsonValue

from nova_mcp.browser.act.script import World, evaluate
from nova_mcp.browser.perceive.element_lines import one_line
from nova_mcp.errors import PolicyDenied
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.groups import PRINTABLE
from nova_mcp.tools.guarded.guard import refuse_unheard
from nova_mcp.tools.spec import PageResult, TargetParams, compact, maybe, tool

SHOWN = 4000


class EvalParams(TargetParams):
    expression: str = Field(min_length=1, max_length=20_000, pattern=PRINTABLE)
    world: World = Field("isolated", description="main shares variables with the page's own script")
    timeout_ms: int = Field(2000, ge=50, le=10_000)


class EvalResult(PageResult):
    value: JsonValue
    value_type: str
    truncated: bool = maybe(default=False)

    def text(self) -> str:
        shown = one_line(compact({"value": self.value})[9:-1], SHOWN + 1)
        more = " …" if self.truncated or len(shown) > SHOWN else ""
        return f"{self.target_id} {self.value_type}: {shown[:SHOWN]}{more}"


@tool(
    title="Run JavaScript",
    effect="write",
    bundles=("page_reading",),
    gates=(
        "policy.capability",
        "claim.owner",
        "user.domain_note",
        "setup.bootstrap",
        "setup.shared_agent_id",
        "safety.perceive_first",
    ),
    target="optional",
    deadline_ms=lambda p: p.timeout_ms + 10_000,
    available=lambda settings: settings.enable_eval,
)
async def eval(ctx: ToolContext, p: EvalParams) -> EvalResult:  # noqa: A001 - the name agents know it by
    """Evaluates a JavaScript expression in a tab. What the page shows afterwards no longer counts as evidence."""
    if not ctx.settings.enable_eval:
        raise PolicyDenied("feature.disabled", stage="gate")
    if ctx.evidence.tab is None:
        # Says that there is no tab to run it in.
        await ctx.browser.targets.resolve(ctx.caller, p.target_id)
    await refuse_unheard(ctx, ctx.tab)
    ctx.evidence.action_dispatched = True
    found = await evaluate(ctx.tab, p.expression, p.world, p.timeout_ms)
    return EvalResult(
        target_id=ctx.tab.target_id,
        url=ctx.tab.url,
        value=found.value,
        value_type=found.value_type,
        truncated=found.truncated,
    )
