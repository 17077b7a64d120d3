"""Hints that only help reading: where a site keeps ads, noise and the items of its lists."""

from nova_mcp.memory.knowledge.model import HintKind, Level
from nova_mcp.memory.knowledge.writes.content_rules import check_hint
from nova_mcp.memory.knowledge.writes.page_check import invalid, look_at
from nova_mcp.memory.knowledge.writes.rules import WriteKind
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.knowledge.params import HintParams, ScopeText, id_problem
from nova_mcp.tools.knowledge.write_context import (
    commit_entries,
    open_place,
    raise_first,
    raise_for,
    refuse_secrets,
    still_there,
    written,
)
from nova_mcp.tools.spec import AgentParams, Result, tool


class HintToolParams(AgentParams):
    scope: ScopeText
    domain_hint: HintParams


class HintResult(Result):
    action: WriteKind
    hint_id: str
    kind: HintKind
    level: Level
    selector_count: int
    warnings: list[str]

    def text(self) -> str:
        head = f"hint {self.hint_id} {self.kind} {self.action}: L{self.level}, {self.selector_count} selectors"
        return "\n".join([head, *(f"warning: {one}" for one in self.warnings)])


@tool(
    title="Store a reading hint",
    effect="write",
    bundles=("pks_learning",),
    target="none",
    private_arguments=("domainHint",),
    repeat_safe=True,
)
async def pks_upsert_hint(ctx: ToolContext, p: HintToolParams) -> HintResult:
    """Stores where an open site keeps ads, noise or the items of its lists. A hint only helps reading; it starts in
    review like every entry."""
    scope, tab = open_place(ctx, p.scope)
    refuse_secrets(ctx, p.domain_hint, "domainHint")
    hint = p.domain_hint.hint(ctx.ports.clock.now_ms())
    raise_for(id_problem(hint.hint_id, "domainHint.id"), "domainHint")
    raise_first(check_hint(hint), "domainHint")
    async with tab.lock.shared():
        seen = await look_at(tab, (*hint.selectors, *(one for _, one in hint.extract)))
    still_there(tab, scope)
    raise_first(invalid(seen.values()), "domainHint")
    missing = tuple(one for one in hint.selectors if seen[one].matches == 0)
    writer = ctx.learning.knowledge.writer
    done = await commit_entries(
        ctx, lambda conn: written(writer.upsert_hint(conn, scope, hint, missing), "domainHint", scope, hint.hint_id)
    )
    return HintResult(
        action=done.kind,
        hint_id=done.written.hint_id,
        kind=done.written.kind,
        level=done.written.level,
        selector_count=len(done.written.selectors),
        warnings=list(done.warnings),
    )
