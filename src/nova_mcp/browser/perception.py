"""Perceiving a page: one look, the best of it within a token budget, and a ref for everything shown."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from nova_mcp.browser.commit_check import previewed
from nova_mcp.browser.commit_points import CommitPoint
from nova_mcp.browser.lines import element_line, one_line, quoted
from nova_mcp.browser.refs import Perception, Snapshot, structure_hash
from nova_mcp.browser.rules import Group, by_score, in_viewport, longest_that_fits, pack
from nova_mcp.browser.seen import (
    Answer,
    Found,
    Scan,
    SeenElement,
    SeenLayer,
    SeenPage,
    answer,
    read_element,
    read_found,
    read_layers,
    read_page,
    read_scan,
)
from nova_mcp.browser.steady import on_one_document
from nova_mcp.clock import Ports
from nova_mcp.observation.model import Json
from nova_mcp.tokens import estimate_tokens, fit_tokens

if TYPE_CHECKING:
    from nova_mcp.browser.tab import Tab

__all__ = ["PageFacts", "PerceiveReport", "PerceiveRequest", "Perception", "page_facts", "perceive"]

PerceiveMode: TypeAlias = Literal["summary", "state"]
More: TypeAlias = Literal["scroll", "pagination", "loadMore"]

MAX_URL: Final = 300
MAX_TITLE: Final = 120
MAX_COMMIT_POINTS: Final = 8
MAX_HEADINGS: Final = 40
MAX_LANDMARKS: Final = 20
STATE_TOKENS: Final = 250
# A line costs at least this much, so no more than budget ÷ this can ever be shown.
_CHEAPEST_LINE: Final = 11


@dataclass(frozen=True, slots=True)
class PerceiveRequest:
    mode: PerceiveMode = "summary"
    max_tokens: int = 1200
    visible_only: bool = True


@dataclass(frozen=True, slots=True)
class ShownElement:
    """One element of the answer."""

    ref: str
    line: str


@dataclass(frozen=True, slots=True)
class ShownCommit:
    """A control that needs a contract."""

    ref: str
    name: str
    kind: str
    why: str
    suggested_tool: str


@dataclass(frozen=True, slots=True)
class Completeness:
    shown: int
    total: int
    scan_truncated: bool = False
    more: More | None = None


@dataclass(frozen=True, slots=True)
class PerceiveReport:
    """A perceived page; `text()` is what the budget counts."""

    perception_id: str
    target_id: str
    rev: int
    page_epoch: int
    page: SeenPage
    url: str
    title: str
    mode: PerceiveMode
    max_tokens: int
    elements: tuple[ShownElement, ...] = ()
    dialogs: tuple[str, ...] = ()
    commit_points: tuple[ShownCommit, ...] = ()
    commit_point_total: int = 0
    headings: tuple[str, ...] = ()
    landmarks: tuple[str, ...] = ()
    behind_modal: int = 0
    active_element: str | None = None
    completeness: Completeness | None = None
    structure_hash: str = ""
    navigated_during_call: bool = False

    def text(self) -> str:
        return "\n".join(report_lines(self))

    @property
    def est_tokens(self) -> int:
        return estimate_tokens(self.text())


def report_lines(report: PerceiveReport) -> list[str]:
    """The answer as an agent reads it."""
    lines = [f"{report.target_id} rev {report.rev} {quoted(report.title, MAX_TITLE)} {one_line(report.url, MAX_URL)}"]
    if report.page.ready_state != "complete":
        lines.append(f"loading: {report.page.ready_state}")
    lines.extend(f"dialog {line}" for line in report.dialogs)
    if report.commit_points:
        named = " ".join(f"{point.ref}={point.kind}" for point in report.commit_points)
        rest = report.commit_point_total - len(report.commit_points)
        lines.append(f"commit points: {named}" + (f" and {rest} more" if rest else ""))
    if report.active_element:
        lines.append(f"focus {report.active_element}")
    lines.extend(element.line for element in report.elements)
    lines.extend(report.headings)
    if report.landmarks:
        lines.append(f"landmarks: {', '.join(report.landmarks)}")
    if report.behind_modal:
        lines.append(f"behind the dialog: {report.behind_modal}")
    lines.extend(_completeness_line(report.completeness))
    return lines


def _completeness_line(completeness: Completeness | None) -> list[str]:
    if completeness is None:
        return []
    parts = []
    if completeness.shown < completeness.total:
        parts.append(f"shown {completeness.shown} of {completeness.total}")
    if completeness.scan_truncated:
        parts.append("scan truncated")
    if completeness.more:
        parts.append(f"more by {completeness.more}")
    return [", ".join(parts)] if parts else []


async def perceive(tab: "Tab", request: PerceiveRequest, ports: Ports) -> PerceiveReport:
    """Look at the page once and report the best of it."""
    if request.mode == "state":
        return await _perceive_state(tab, request)
    question: Json = {"visibleOnly": request.visible_only}

    async def look() -> tuple[Scan, _Ranking, Mapping[int, Found | None]]:
        scan = read_scan(answer(await tab.channel.ask("summary", question)))
        ranking = _ranked(scan, request.max_tokens)
        return scan, ranking, await selectors_for(tab, ranking.elements)

    (scan, ranking, selectors), moved = await on_one_document(tab, look)
    snapshot = tab.perception.note(tab.target_id, scan, tab.page_epoch, ports.clock.now_ms())
    tab.rev = snapshot.rev
    tab.title = scan.page.title
    tab.perceived_epoch = tab.page_epoch
    names = tab.perception.assign(ranking.elements, scan.page.url, tab.page_epoch, scan.elements, selectors)
    by_node = dict(zip((e.node for e in ranking.elements), names, strict=True))
    view = _View(snapshot, ranking, by_node, selectors)
    return replace(_compose(tab, view, request), navigated_during_call=moved)


async def selectors_for(tab: "Tab", elements: Sequence[SeenElement]) -> dict[int, Found | None]:
    """A selector for each element, checked in the page to mean that element alone."""
    if not elements:
        return {}
    nodes = [element.node for element in elements]
    found = await tab.channel.ask("selectors", {"nodes": list(nodes)}, frame_id=elements[0].facts.frame or None)
    rows: list[Answer | None] = found if isinstance(found, list) else []  # type: ignore[assignment]
    return {node: read_found(row) for node, row in zip(nodes, rows, strict=True)}


@dataclass(frozen=True, slots=True)
class _Ranking:
    """What could be shown, best first, and what of the page commits something."""

    elements: Sequence[SeenElement]
    commits: Mapping[int, CommitPoint]
    behind_modal: int


@dataclass(frozen=True, slots=True)
class _View:
    snapshot: Snapshot
    ranking: _Ranking
    names: Mapping[int, str]
    selectors: Mapping[int, Found | None]

    @property
    def scan(self) -> Scan:
        return self.snapshot.scan

    @property
    def ranked(self) -> Sequence[SeenElement]:
        return self.ranking.elements


def _reachable(scan: Scan) -> list[SeenElement]:
    """Elements that are not shut off by a modal dialog."""
    if any(layer.modal for layer in scan.layers):
        return [element for element in scan.elements if element.in_modal]
    return list(scan.elements)


def _commits(elements: Sequence[SeenElement], scan: Scan) -> dict[int, CommitPoint]:
    points = ((element.node, previewed(element, scan.forms)) for element in elements)
    return {node: point for node, point in points if point is not None}


def _ranked(scan: Scan, max_tokens: int) -> _Ranking:
    """Everything that could possibly be shown: commit points first, then by score."""
    reachable = _reachable(scan)
    ordered = by_score(reachable, scan.page.viewport)
    commits = _commits(reachable, scan)
    most = max_tokens // _CHEAPEST_LINE
    first = [element for element in ordered if element.node in commits]
    rest = [element for element in ordered if element.node not in commits]
    shown = [*first[: max(MAX_COMMIT_POINTS, most)], *rest[:most]]
    return _Ranking(shown, commits, len(scan.elements) - len(reachable))


def _line(view: _View, element: SeenElement, commits: Mapping[int, CommitPoint]) -> str:
    extra = []
    if element.node in commits:
        extra.append("commit")
    if not in_viewport(element.box, view.scan.page.viewport):
        extra.append("offscreen")
    return element_line(view.names[element.node], element, view.selectors.get(element.node), extra)


def _shown_commits(view: _View, commits: Mapping[int, CommitPoint]) -> tuple[ShownCommit, ...]:
    chosen = [element for element in view.ranked if element.node in commits][:MAX_COMMIT_POINTS]
    return tuple(
        ShownCommit(
            view.names[e.node],
            e.facts.name[:60],
            commits[e.node].kind,
            commits[e.node].why,
            commits[e.node].suggested_tool,
        )
        for e in chosen
    )


def _compose(tab: "Tab", view: _View, request: PerceiveRequest) -> PerceiveReport:
    scan = view.scan
    commits = view.ranking.commits
    lines = {view.names[e.node]: _line(view, e, commits) for e in view.ranked}
    headings = tuple(f"h{h.level} {quoted(h.text, 80)}" for h in scan.headings[:MAX_HEADINGS])
    bare = PerceiveReport(
        perception_id=view.snapshot.perception_id,
        target_id=tab.target_id,
        rev=view.snapshot.rev,
        page_epoch=view.snapshot.epoch,
        page=scan.page,
        url=one_line(scan.page.url, MAX_URL),
        title=scan.page.title[:MAX_TITLE],
        mode=request.mode,
        max_tokens=request.max_tokens,
        dialogs=_layer_lines(scan.layers),
        commit_points=_shown_commits(view, commits),
        commit_point_total=len(commits),
        behind_modal=view.ranking.behind_modal,
        completeness=Completeness(0, max(scan.total, len(scan.elements)), scan.truncated, _more(scan)),
        structure_hash=structure_hash(scan),
    )
    landmarks = tuple(
        mark.role + (f" {quoted(mark.name, 30)}" if mark.name else "") for mark in scan.landmarks[:MAX_LANDMARKS]
    )
    return _fill(_within(bare), view, lines, (headings, landmarks))


def _layer_lines(layers: Sequence[SeenLayer]) -> tuple[str, ...]:
    return tuple(f"{layer.role} {quoted(layer.name, 60)}{' modal' if layer.modal else ''}" for layer in layers)


def _more(scan: Scan) -> More | None:
    return "scroll" if scan.page.below_px > 0 else None


def _within(report: PerceiveReport) -> PerceiveReport:
    """The part that is never dropped must itself fit: long addresses and titles give way."""
    for url_chars, title_chars in ((MAX_URL, MAX_TITLE), (150, 60), (80, 40), (40, 20)):
        report = replace(report, url=one_line(report.url, url_chars), title=report.title[:title_chars])
        if report.est_tokens <= report.max_tokens:
            return report
    return replace(report, dialogs=())


def _fill(
    bare: PerceiveReport, view: _View, lines: Mapping[str, str], outline: tuple[tuple[str, ...], tuple[str, ...]]
) -> PerceiveReport:
    headings, landmarks = outline
    by_name = {view.names[e.node]: e for e in view.ranked}
    commit_names = {point.ref for point in bare.commit_points}

    def lines_where(*, dialog: bool, control: bool) -> tuple[str, ...]:
        chosen = (n for n, e in by_name.items() if e.in_dialog is dialog and (dialog or e.is_control is control))
        return tuple(lines[n] for n in sorted(chosen, key=lambda n: n not in commit_names))

    # Reserved for the counts at the end, which grow with what is left out.
    room = bare.max_tokens - bare.est_tokens - 20
    packed = pack(
        (
            Group("dialogs", 0.30, lines_where(dialog=True, control=False)),
            Group("ctas", 0.35, lines_where(dialog=False, control=False)),
            Group("controls", 0.25, lines_where(dialog=False, control=True)),
            Group("headings", 0.10, headings),
            Group("landmarks", 0.0, landmarks),
        ),
        max(0, room),
    )
    kept = {*packed["dialogs"], *packed["ctas"], *packed["controls"]}
    shown = tuple(ShownElement(name, line) for name, line in lines.items() if line in kept)
    return _cut_to_fit(bare, shown, packed["headings"], packed["landmarks"])


def _cut_to_fit(
    bare: PerceiveReport, shown: tuple[ShownElement, ...], headings: tuple[str, ...], landmarks: tuple[str, ...]
) -> PerceiveReport:
    """Estimates of parts do not add up exactly; the whole decides."""

    def build(elements: int, heads: int) -> PerceiveReport:
        completeness = replace(bare.completeness, shown=elements) if bare.completeness else None
        marks = landmarks if heads == len(headings) else ()
        return replace(
            bare, elements=shown[:elements], headings=headings[:heads], landmarks=marks, completeness=completeness
        )

    whole = build(len(shown), len(headings))
    if whole.est_tokens <= bare.max_tokens:
        return whole
    heads = longest_that_fits(len(headings), lambda n: build(len(shown), n).est_tokens <= bare.max_tokens)
    if build(len(shown), heads).est_tokens <= bare.max_tokens:
        return build(len(shown), heads)
    return build(longest_that_fits(len(shown), lambda n: build(n, 0).est_tokens <= bare.max_tokens), 0)


async def _perceive_state(tab: "Tab", request: PerceiveRequest) -> PerceiveReport:
    raw, moved = await on_one_document(tab, lambda: tab.channel.ask("state"))
    told = answer(raw)
    page = read_page(told)
    tab.title = page.title
    report = PerceiveReport(
        perception_id="",
        target_id=tab.target_id,
        rev=tab.rev,
        page_epoch=tab.page_epoch,
        page=page,
        url=one_line(page.url, MAX_URL),
        title=page.title[:MAX_TITLE],
        mode="state",
        max_tokens=min(request.max_tokens, STATE_TOKENS),
        dialogs=_layer_lines(read_layers(told)),
        active_element=await _active_line(tab, told),
        navigated_during_call=moved,
    )
    return _within(report)


async def _active_line(tab: "Tab", told: Answer) -> str | None:
    if told["active"] is None:
        return None
    element = read_element(told["active"])
    selectors = await selectors_for(tab, [element])
    (name,) = tab.perception.assign([element], told["url"], tab.page_epoch, (element,), selectors)
    return element_line(name, element, selectors.get(element.node))


@dataclass(frozen=True, slots=True)
class PageFacts:
    """What page_info tells about a document."""

    page: SeenPage
    title: str
    active_element: str | None
    frame_count: int
    dom_nodes: int
    rev: int
    page_epoch: int
    perceived_rev: int | None
    navigated_during_call: bool


async def page_facts(tab: "Tab") -> PageFacts:
    raw, moved = await on_one_document(tab, lambda: tab.channel.ask("info"))
    told = answer(raw)
    page = read_page(told)
    tab.title = page.title
    return PageFacts(
        page=page,
        title=fit_tokens(page.title[:MAX_TITLE], 60),
        active_element=await _active_line(tab, told),
        frame_count=told["frameCount"],
        dom_nodes=told["domNodes"],
        rev=tab.rev,
        page_epoch=tab.page_epoch,
        perceived_rev=tab.perception.perceived_rev,
        navigated_during_call=moved,
    )
