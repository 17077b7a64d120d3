"""Perceiving a page: one look, the best of it within a token budget, and a ref for everything shown."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import anyio

from nova_mcp.browser.act.locate import Locator, find
from nova_mcp.browser.channel.page_channel import PAGE_FAILURES, DocumentChanged, PageScriptError
from nova_mcp.browser.channel.stable_question import on_one_document
from nova_mcp.browser.perceive.composition import (
    CHEAPEST_LINE,
    Ranking,
    View,
    compose,
    compose_delta,
    layer_elements,
    layer_lines,
    rank,
    shown_auth,
    shown_blockers,
    within,
)
from nova_mcp.browser.perceive.delta import Changes, changes
from nova_mcp.browser.perceive.element_lines import element_line, one_line, plain_title
from nova_mcp.browser.perceive.element_ranking import by_score
from nova_mcp.browser.perceive.form_analysis import ControlDetails, compose_forms, fields_of, read_details
from nova_mcp.browser.perceive.look import LookRequest, look, selectors_for
from nova_mcp.browser.perceive.ref_lookup import resolve_refs
from nova_mcp.browser.perceive.refs import Perception, Snapshot
from nova_mcp.browser.perceive.report import (
    MAX_TITLE,
    MAX_URL,
    DeltaUnavailable,
    PerceiveMode,
    PerceiveReport,
    ResolvedRef,
)
from nova_mcp.browser.perceive.scan_values import (
    Answer,
    Found,
    Scan,
    SeenElement,
    Spot,
    answer,
    read_auth_surface,
    read_blockers,
    read_element,
    read_layers,
    read_page,
)
from nova_mcp.core.clock import Ports
from nova_mcp.core.concurrency import Captured
from nova_mcp.core.values import Json
from nova_mcp.errors import NovaError

if TYPE_CHECKING:
    from nova_mcp.browser.targets.tab import Tab

__all__ = ["PerceiveReport", "PerceiveRequest", "Perception", "active_line", "perceive", "selectors_for"]

STATE_TOKENS: Final = 250
# Questions that are put at once wait for each other in the page; the first one tells whether it answers at all.
IN_LINE_MS: Final = 10_000


@dataclass(frozen=True, slots=True)
class PerceiveRequest:
    """How to look and how much to say; `since_rev` asks for what changed since an earlier look."""

    mode: PerceiveMode = "summary"
    max_tokens: int = 1200
    visible_only: bool = True
    since_rev: int | None = None
    scope: Locator | None = None
    deep: bool = False
    resolve: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Looked:
    """One look, and everything its answer needs of the page it was taken of."""

    scan: Scan
    view: tuple[object, ...]
    ranking: Ranking
    selectors: Mapping[Spot, Found | None]
    details: Mapping[Spot, ControlDetails]
    named: Sequence[SeenElement]
    old: Snapshot | None = None
    changed: Changes | None = None


async def perceive(tab: "Tab", request: PerceiveRequest, ports: Ports) -> PerceiveReport:
    """Look at the page once and report the best of it."""
    resolved = await resolve_refs(tab, request.resolve)
    if request.mode == "state":
        return await _perceive_state(tab, request, resolved)
    now_ms = ports.clock.now_ms()
    looked, moved = await on_one_document(tab, lambda: _look(tab, request, now_ms))
    snapshot = tab.perception.note(tab.target_id, looked.scan, tab.page_epoch, now_ms, looked.view)
    tab.rev = snapshot.rev
    tab.title = plain_title(looked.scan.page.title)
    tab.perceived_epoch = tab.page_epoch
    if request.scope is None:
        tab.blockers.note(tab.page_epoch, looked.scan.blockers)
    names = tab.perception.name(snapshot, looked.named, looked.selectors)
    view = View(
        tab.target_id, snapshot, looked.ranking, names, looked.selectors, resolved, _unavailable(request, looked)
    )
    return replace(_composed(view, looked, request), navigated_during_call=moved)


async def _look(tab: "Tab", request: PerceiveRequest, now_ms: int) -> _Looked:
    """The look itself, and beside it what lies over the page: the page works on one while the other is read."""
    looked, around = Captured[_Looked](*PAGE_FAILURES), Captured[Answer](*PAGE_FAILURES)

    async def look_inside() -> None:
        await looked.run(lambda: _look_inside(tab, request, now_ms))
        if looked.failed:
            asking.cancel_scope.cancel()

    async with anyio.create_task_group() as asking:
        asking.start_soon(look_inside)
        asking.start_soon(around.run, lambda: _around(tab))
    seen, told = looked.value(), around.value()
    scan = replace(seen.scan, auth=read_auth_surface(told["auth"]), blockers=read_blockers(told))
    seen = replace(seen, scan=scan, named=[*layer_elements(scan), *seen.named])
    return await _with_layers(tab, seen, request) if request.mode == "modals" and scan.blockers else seen


async def _with_layers(tab: "Tab", seen: _Looked, request: PerceiveRequest) -> _Looked:
    """Layers that don't say they are dialogs are known only now."""
    ranking = rank(seen.scan, request.mode, request.max_tokens)
    more = [element for element in ranking.elements if element.spot not in seen.selectors]
    selectors = {**seen.selectors, **await _selectors(tab, seen.scan, more)}
    return replace(seen, ranking=ranking, named=[*seen.named, *more], selectors=selectors)


async def _around(tab: "Tab") -> Answer:
    return answer(await tab.channel.ask("around", timeout_ms=IN_LINE_MS))


async def _look_inside(tab: "Tab", request: PerceiveRequest, now_ms: int) -> _Looked:
    order = LookRequest(request.visible_only, request.deep)
    if request.scope is not None:
        inside, frame_id = await find(tab, request.scope)
        order = replace(order, within=inside.node, frame_id=frame_id)
    scan = await look(tab, order)
    ranking = rank(scan, request.mode, request.max_tokens)
    old = None if request.since_rev is None else tab.perception.snapshot_of(request.since_rev, order.view, now_ms)
    changed = None
    named = list(ranking.elements)
    if old is not None and old.epoch == tab.page_epoch:
        changed = changes(old, tab.perception.unnoted(scan, tab.page_epoch))
        commits = [element for element in ranking.elements if element.spot in ranking.commits]
        named = [*commits, *_most_telling(changed, scan, request.max_tokens)]
    details: dict[Spot, ControlDetails] = {}
    if request.mode == "form_analysis":
        fields = fields_of(scan.elements)[: request.max_tokens // CHEAPEST_LINE]
        named = [*named, *fields]
        details = await _details(tab, fields)
    named = list({element.spot: element for element in named}.values())
    return _Looked(scan, order.view, ranking, await _selectors(tab, scan, named), details, named, old, changed)


def _most_telling(changed: Changes, scan: Scan, max_tokens: int) -> list[SeenElement]:
    most = max_tokens // CHEAPEST_LINE
    return [*by_score(changed.added, scan.page.viewport)[:most], *by_score(changed.changed, scan.page.viewport)[:most]]


def _unavailable(request: PerceiveRequest, looked: _Looked) -> DeltaUnavailable | None:
    if request.since_rev is None or looked.changed is not None:
        return None
    return "rev_unknown" if looked.old is None else "new_document"


def _composed(view: View, looked: _Looked, request: PerceiveRequest) -> PerceiveReport:
    if looked.old is not None and looked.changed is not None:
        return compose_delta(view, looked.old, looked.changed, request.mode, request.max_tokens)
    if request.mode == "form_analysis":
        return compose_forms(view, looked.details, request.max_tokens)
    return compose(view, request.mode, request.max_tokens)


def _by_frame(elements: Sequence[SeenElement]) -> dict[str, list[SeenElement]]:
    groups: dict[str, list[SeenElement]] = {}
    for element in elements:
        groups.setdefault(element.facts.frame, []).append(element)
    return groups


async def _selectors(tab: "Tab", scan: Scan, elements: Sequence[SeenElement]) -> dict[Spot, Found | None]:
    """A selector for each element, asked of the document it stands in; a frame that left has none."""
    selectors: dict[Spot, Found | None] = {}
    for frame, group in _by_frame(elements).items():
        try:
            found = await selectors_for(tab, group, scan.look_of(frame), IN_LINE_MS)
        except (NovaError, DocumentChanged, PageScriptError):
            if not frame:
                raise
            continue
        selectors |= {(frame, node): one for node, one in found.items()}
    return selectors


async def _details(tab: "Tab", fields: Sequence[SeenElement]) -> dict[Spot, ControlDetails]:
    details: dict[Spot, ControlDetails] = {}
    for frame, group in _by_frame(fields).items():
        nodes: list[Json] = [element.node for element in group]
        told = await tab.channel.ask("controlDetails", {"nodes": nodes}, frame_id=frame or None)
        rows = told if isinstance(told, list) else []
        for element, row in zip(group, rows, strict=True):
            if row is not None:
                details[element.spot] = read_details(answer(row))
    return details


async def _perceive_state(tab: "Tab", request: PerceiveRequest, resolved: tuple[ResolvedRef, ...]) -> PerceiveReport:
    async def glance() -> tuple[Answer, str | None]:
        told = answer(await tab.channel.ask("state"))
        return told, await active_line(tab, told)

    (told, active), moved = await on_one_document(tab, glance)
    page, blockers = read_page(told), read_blockers(told)
    tab.title = plain_title(page.title)
    tab.blockers.note(tab.page_epoch, blockers)
    layers = [one for blocker in blockers for one in (blocker.element, *blocker.controls.values())]
    names = dict(
        zip((one.spot for one in layers), tab.perception.assign(layers, page.url, tab.page_epoch), strict=True)
    )
    latest = tab.perception.snapshots[-1:]
    report = PerceiveReport(
        perception_id=latest[0].perception_id if latest and latest[0].epoch == tab.page_epoch else "",
        target_id=tab.target_id,
        rev=tab.rev,
        page_epoch=tab.page_epoch,
        page=page,
        url=one_line(page.url, MAX_URL),
        title=plain_title(page.title, MAX_TITLE),
        mode="state",
        max_tokens=min(request.max_tokens, STATE_TOKENS),
        dialogs=layer_lines(read_layers(told)),
        blockers=shown_blockers(blockers, names),
        auth=shown_auth(read_auth_surface(told["auth"])),
        active_element=active,
        resolved=resolved,
        navigated_during_call=moved,
    )
    return within(report, share=1)


async def active_line(tab: "Tab", told: Answer) -> str | None:
    """The element that has the focus, with a ref."""
    if told["active"] is None:
        return None
    element = read_element(told["active"])
    selectors = await selectors_for(tab, [element])
    (name,) = tab.perception.assign([element], told["url"], tab.page_epoch, (element,), selectors)
    return element_line(name, element, selectors.get(element.node))
