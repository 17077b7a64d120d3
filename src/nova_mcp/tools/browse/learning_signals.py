"""What an acting call leaves for learning: where it came from, how the page was built, which layer it answered."""

import functools
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from nova_mcp.browser.act.action import Scene
from nova_mcp.browser.act.locate import LayerAt
from nova_mcp.browser.perceive.scan_values import SeenElement
from nova_mcp.core.page.control_labels import Label
from nova_mcp.core.page.selectors import looks_generated
from nova_mcp.core.urls import normalize_url, route_key
from nova_mcp.memory.knowledge.model import Polarity
from nova_mcp.memory.knowledge.platforms.templates import built_in
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.knowledge.scope_argument import page_scope

# A page that nothing led to was opened by its address.
OPENED: Final = "_opened"
_PLAIN_ID: Final = re.compile(r"[A-Za-z_][\w-]*", re.ASCII)
_PLAIN_VALUE: Final = re.compile(r"[^\"\\\x00-\x1f]+")
_POLARITIES: Final[Mapping[Label, Polarity]] = {
    "accept": "accept",
    "reject": "reject",
    "manage": "manage",
    "close": "noop",
}


def note_scene(ctx: ToolContext, scene: Scene) -> None:
    """Take down what is known of the scene anyway: nothing is asked of the page for it."""
    tab, layer, signals = scene.tab, scene.prepared.layer, ctx.evidence.signals
    built = tab.structure
    ctx.evidence.signals = replace(
        signals,
        came_from=_route(ctx, tab.came_from),
        page_state=built[1] if built is not None and built[0] == tab.page_epoch else None,
        layer=None if layer is None else layer.kind,
        polarity=None if layer is None or layer.kind != "consent" else _POLARITIES.get(layer.label),
        seen_signals=() if layer is None else _known_by(layer),
        items=scene.prepared.items,
        framed=scene.prepared.frame_id is not None,
        commits=scene.commit_point() is not None,
    )
    if ctx.evidence.selector is None and layer is not None:
        ctx.evidence.selector = layer.control
    if layer is not None:
        ctx.evidence.layers[layer.kind] = layer.root or ""
        _note_platform(ctx, scene, layer)
    note_layers(ctx)


def _note_platform(ctx: ToolContext, scene: Scene, layer: LayerAt) -> None:
    """A platform that is met on a site for the first time leaves a candidate there."""
    named, scope = _platforms().get(layer.platform or ""), page_scope(scene.tab)
    if named is not None and scope is not None and (also := ctx.learning.knowledge.met(scope, (named,))) is not None:
        ctx.evidence.also.append(also)


def note_layers(ctx: ToolContext) -> None:
    """What is known to lie over the page while something is done to it."""
    tab = ctx.tab
    for one in tab.blockers.on(tab.page_epoch):
        ctx.evidence.layers.setdefault(one.kind, lasting_selector(one.element))
    if tab.login_wall_epoch == tab.page_epoch:
        ctx.evidence.layers.setdefault("login_wall", "")


def lasting_selector(element: SeenElement | None) -> str:
    """A selector that an element is known by on another visit, if people gave it an anchor."""
    if element is None or element.facts.frame:
        return ""
    facts = element.facts
    if _PLAIN_ID.fullmatch(facts.id):
        return "" if looks_generated(facts.id) else f"#{facts.id}"
    return f'[data-testid="{facts.testid}"]' if _PLAIN_VALUE.fullmatch(facts.testid) else ""


def _known_by(layer: LayerAt) -> tuple[tuple[str, str, str | None], ...]:
    found: list[tuple[str, str, str | None]] = []
    if layer.platform is not None and (named := _platforms().get(layer.platform)) is not None:
        found.append(("vendor", named, None))
    if layer.root is not None:
        found.append(("dom", layer.root, None))
    return tuple(found)


@functools.cache
def _platforms() -> Mapping[str, str]:
    return {one.display_name: one.stable_id for one in built_in()}


def _route(ctx: ToolContext, url: str) -> str:
    normal = normalize_url(url)
    return OPENED if normal is None else route_key(ctx.secrets.redactor.text(normal)) or OPENED
