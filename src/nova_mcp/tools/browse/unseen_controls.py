"""What learning has yet to see of a control, looked at right before the control is used."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from nova_mcp.browser.act.action import Scene
from nova_mcp.browser.channel.page_channel import DocumentChanged, PageScriptError
from nova_mcp.browser.read.knowledge_check import look
from nova_mcp.core.page.looks import SelectorSeen
from nova_mcp.core.page.selectors import normalize_selector
from nova_mcp.errors import NovaError
from nova_mcp.memory.knowledge.matching.page_facts import print_of
from nova_mcp.memory.knowledge.matching.routes import route_of
from nova_mcp.memory.knowledge.model import ElementPrint
from nova_mcp.memory.knowledge.writes.page_check import around_of, harmless
from nova_mcp.memory.promotion.sightings import Unseen, UseSighting
from nova_mcp.storage.errors import StoreUnavailable
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.knowledge.scope_argument import page_scope

# Lists of a site that a control is looked for in.
_MOST_LISTS: Final = 3
_LOOK_MS: Final = 500


async def note_unseen(ctx: ToolContext, scene: Scene) -> None:
    """Takes down what the control and its entries' other selectors look like. Mostly nothing is missing, and the page
    is asked nothing; a page that does not answer leaves it for the next use."""
    tab, prepared = scene.tab, scene.prepared
    selector = prepared.selector or (None if prepared.layer is None else prepared.layer.control)
    scope = page_scope(tab)
    if scope is None or selector is None or prepared.frame_id is not None or tab.scripted_epoch == tab.page_epoch:
        return
    named, route = normalize_selector(selector), route_of(tab.url)
    try:
        unseen = await ctx.learning.promotion.unseen(scope, named, route)
        if unseen.selectors:
            found = await look(tab, unseen.selectors, timeout_ms=_LOOK_MS)
            seen = {one: _print(ctx, shown) for one, shown in found.items() if _tells(shown)}
            around = await _around(ctx, scene, seen) if unseen.raises else ()
            ctx.evidence.also.append(UseSighting(scope, named, route, seen, around).also)
            _note_described(ctx, unseen, seen)
        await _note_lists(ctx, scene, unseen, selector)
    except (NovaError, DocumentChanged, PageScriptError, StoreUnavailable):
        return


def _tells(shown: SelectorSeen) -> bool:
    return shown.matches == 1 and not shown.unread and not shown.invalid


def _print(ctx: ToolContext, shown: SelectorSeen) -> ElementPrint | None:
    return None if shown.seen is None else harmless(print_of(shown.seen), ctx.secrets.redactor.text)


def _note_described(ctx: ToolContext, unseen: Unseen, seen: Mapping[str, ElementPrint | None]) -> None:
    if unseen.raises and any(one is not None for one in seen.values()):
        ctx.evidence.signals = replace(ctx.evidence.signals, described=True)


async def _around(ctx: ToolContext, scene: Scene, seen: Mapping[str, ElementPrint | None]) -> tuple[ElementPrint, ...]:
    acting = [one for one in seen.values() if one is not None]
    return await around_of(scene.tab, acting, ctx.secrets.redactor.text) if acting else ()


async def _note_lists(ctx: ToolContext, scene: Scene, unseen: Unseen, selector: str) -> None:
    """The lists among the site's hints that the control stands in an entry of."""
    items = None if scene.prepared.items is None else normalize_selector(scene.prepared.items[0])
    inside = []
    for hint in unseen.lists[:_MOST_LISTS]:
        if items is not None and items in map(normalize_selector, hint.selectors):
            inside.append(hint.hint_id)
            continue
        found = await look(scene.tab, [selector], hint.selectors, timeout_ms=_LOOK_MS)
        if found[selector].matches == 1 and found[selector].inside:
            inside.append(hint.hint_id)
    if inside:
        ctx.evidence.signals = replace(ctx.evidence.signals, lists=tuple(inside))
