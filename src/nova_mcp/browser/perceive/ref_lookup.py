"""What earlier refs stand for now."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nova_mcp.browser.act.locate import Locator, aim
from nova_mcp.browser.channel.stable_question import on_one_document
from nova_mcp.browser.perceive.element_lines import element_line
from nova_mcp.browser.perceive.report import ResolvedRef
from nova_mcp.browser.perceive.scan_values import SeenElement
from nova_mcp.errors import NotFound, Precondition

if TYPE_CHECKING:
    from nova_mcp.browser.targets.tab import Tab


async def resolve_refs(tab: "Tab", refs: Sequence[str]) -> tuple[ResolvedRef, ...]:
    """Each ref with the element it means, or the reason why it means none; nothing is touched."""

    async def resolve() -> tuple[ResolvedRef, ...]:
        return tuple([await _resolved(tab, ref) for ref in dict.fromkeys(refs)])

    if not refs:
        return ()
    resolved, _ = await on_one_document(tab, resolve)
    return resolved


async def _resolved(tab: "Tab", ref: str) -> ResolvedRef:
    try:
        target = await aim(tab, Locator(ref=ref))
    except (NotFound, Precondition) as refused:
        return ResolvedRef(ref, live=False, reason=refused.reason_code)
    if target.node is None or target.expect is None:
        return ResolvedRef(ref, live=False, reason="ref.stale")
    known = tab.perception.get(ref)
    element = SeenElement(target.node, target.expect)
    return ResolvedRef(ref, live=True, line=element_line(ref, element, known.selector if known else None))
