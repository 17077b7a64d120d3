"""What stored knowledge has to say in instructions: doubts about a site, how to read it, sites for a task."""

from collections.abc import Sequence
from dataclasses import dataclass

from nova_mcp.browser.channel.page_channel import DocumentChanged, PageScriptError
from nova_mcp.browser.read.knowledge_check import signals
from nova_mcp.browser.targets.tab import Tab
from nova_mcp.core.hosts import normalize_host
from nova_mcp.core.page.looks import WantedSignals
from nova_mcp.errors import NovaError
from nova_mcp.memory.knowledge.advice import framework_hints, gravest, warning_of
from nova_mcp.memory.knowledge.model import DomainHint, Problem, ScopeName
from nova_mcp.memory.knowledge.scopes import scope_of
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.knowledge.scope_argument import page_scope
from nova_mcp.tools.read.knowledge_hints import ASK_MS, FrameworkHintPart, PksHealthWarningPart
from nova_mcp.tools.system.instruction_parts import ServicePart


@dataclass(frozen=True, slots=True)
class SiteKnowledge:
    warnings: tuple[PksHealthWarningPart, ...] = ()
    frameworks: tuple[FrameworkHintPart, ...] = ()


async def site_knowledge(ctx: ToolContext, host: str | None) -> SiteKnowledge:
    """Doubts about what is active on a site; how to read it only where one of its pages is open to be asked."""
    scope, tab = _scope(ctx.evidence.tab, host)
    if scope is None:
        return SiteKnowledge()
    known = await ctx.learning.knowledge.known(scope)
    now = ctx.ports.clock.now_ms()
    doubts = (warning_of(scope, one, now) for one in known.guiding)
    warnings = tuple(
        PksHealthWarningPart(scope=one.scope, phenomenon_id=one.phenomenon_id, state=one.state, reason=one.reason)
        for one in gravest(doubt for doubt in doubts if doubt is not None)
    )
    return SiteKnowledge(warnings, await _frameworks(tab, known.hints))


def _scope(tab: Tab | None, host: str | None) -> tuple[ScopeName | None, Tab | None]:
    here = None if tab is None else page_scope(tab)
    if here is not None and (host is None or normalize_host(here) == host):
        return here, tab
    found = Problem("", "", "") if host is None else scope_of(host)
    return (None, None) if isinstance(found, Problem) else (found, None)


async def _frameworks(tab: Tab | None, hints: Sequence[DomainHint]) -> tuple[FrameworkHintPart, ...]:
    if tab is None or tab.state != "ready" or not any(one.may_guide for one in hints):
        return ()
    try:
        seen = await signals(tab, WantedSignals(), timeout_ms=ASK_MS)
    except (NovaError, DocumentChanged, PageScriptError):
        # Instructions never wait for a page that does not answer.
        return ()
    return tuple(
        FrameworkHintPart(framework=one.framework, applies_to=one.applies_to, advice=one.advice)
        for one in framework_hints(seen.frameworks, hints)
    )


async def services(ctx: ToolContext, keywords: Sequence[str]) -> list[ServicePart]:
    if not keywords:
        return []
    return [
        ServicePart(
            scope=one.scope,
            service_category=one.category,
            matched_keywords=list(one.matched),
            active_entries=one.active_entries,
        )
        for one in await ctx.learning.knowledge.for_keywords(keywords)
    ]
