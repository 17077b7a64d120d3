"""An action that found nothing through a learned selector, although the situation is the one that was learned."""

from dataclasses import replace
from typing import Final, Literal, TypeAlias

from nova_mcp.browser.channel.page_channel import DocumentChanged, PageScriptError
from nova_mcp.browser.read.knowledge_check import look, signals
from nova_mcp.core.page.selectors import normalize_selector
from nova_mcp.errors import NovaError
from nova_mcp.evidence.model import ACTING, Effect
from nova_mcp.memory.knowledge import store
from nova_mcp.memory.knowledge.matching.entry_ranking import Request, context_fit
from nova_mcp.memory.knowledge.matching.fingerprints import match
from nova_mcp.memory.knowledge.matching.page_facts import observed_signals, wanted_of
from nova_mcp.memory.knowledge.matching.routes import route_of
from nova_mcp.memory.knowledge.model import SHADOW, Phenomenon
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.groups import LocatorParams
from nova_mcp.tools.knowledge.scope_argument import page_scope
from nova_mcp.tools.spec import Params

Drift: TypeAlias = Literal["light", "hard"]

_LOST: Final = "selector.not_found"
_ASK_MS: Final = 500


async def note_lost(ctx: ToolContext, effect: Effect, params: Params, error: NovaError) -> None:
    """Evidence against the one entry that acts through this selector here, if the page still is what it was for."""
    tab = ctx.evidence.tab
    if error.reason_code != _LOST or effect not in ACTING or tab is None or not isinstance(params, LocatorParams):
        return
    if params.selector is None or params.frame_id is not None or tab.scripted_epoch == tab.page_epoch:
        return
    entry = await _owner(ctx, normalize_selector(params.selector))
    if entry is None:
        return
    try:
        drift = await _drift(ctx, entry, normalize_selector(params.selector))
    except (NovaError, DocumentChanged, PageScriptError):
        # The call has failed already; a page that can't be asked any more proves nothing.
        return
    if drift is not None:
        ctx.evidence.signals = replace(ctx.evidence.signals, drift=drift, target_stable_id=entry.stable_id)


async def _owner(ctx: ToolContext, selector: str) -> Phenomenon | None:
    scope = page_scope(ctx.tab)
    if scope is None:
        return None
    known = await ctx.learning.knowledge.known(scope)
    request = Request(route=route_of(ctx.tab.url))
    found = {
        one.stable_id: one.kept
        for one in known.shelved
        if isinstance(one.kept, Phenomenon)
        and one.slot == "current"
        and one.kept.level >= SHADOW
        and not one.kept.deprecated
        and selector in store.selectors_in(one.kept)
        and context_fit(one.kept.content.context, request).fits
    }
    return next(iter(found.values())) if len(found) == 1 else None


async def _drift(ctx: ToolContext, entry: Phenomenon, selector: str) -> Drift | None:
    seen = await signals(ctx.tab, wanted_of([entry], await ctx.learning.knowledge.platforms()), timeout_ms=_ASK_MS)
    if not match(entry.content.fingerprint, observed_signals(seen), seen.locale).reached:
        return None
    playbook = entry.content.playbook
    others = [
        other
        for action in (() if playbook is None else playbook.actions)
        if selector in {normalize_selector(one) for one in (action.selector, *action.fallbacks) if one is not None}
        for other in (action.selector, *action.fallbacks)
        if other is not None and normalize_selector(other) != selector
    ]
    if not others:
        return "hard"
    found = await look(ctx.tab, others, timeout_ms=_ASK_MS)
    return "light" if any(one.matches == 1 for one in found.values()) else "hard"
