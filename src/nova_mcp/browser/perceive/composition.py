"""From a look to its answer within a budget. Values in, values out: the same look always reads the same."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from nova_mcp.browser.commits.check import previewed
from nova_mcp.browser.commits.commit_points import CommitPoint
from nova_mcp.browser.perceive.delta import Changes
from nova_mcp.browser.perceive.element_lines import element_line, one_line, plain_title, quoted
from nova_mcp.browser.perceive.element_ranking import Group, by_score, is_on_screen, longest_that_fits, pack
from nova_mcp.browser.perceive.pagination import more_by
from nova_mcp.browser.perceive.refs import structure_hash
from nova_mcp.browser.perceive.report import (
    MAX_TITLE,
    MAX_URL,
    TERSENESS,
    Completeness,
    DeltaUnavailable,
    PerceiveMode,
    PerceiveReport,
    ResolvedRef,
    ShownBlocker,
    ShownCommit,
    ShownDelta,
    ShownElement,
    frame_line,
)
from nova_mcp.browser.perceive.scan_values import (
    AuthSurface,
    Found,
    Scan,
    SeenBlocker,
    SeenElement,
    SeenFrame,
    SeenLayer,
    Spot,
)
from nova_mcp.browser.read.snapshots import Snapshot

MAX_COMMIT_POINTS: Final = 8
MAX_BLOCKERS: Final = 5
MAX_HEADINGS: Final = 40
MAX_LANDMARKS: Final = 20
# A line costs at least this much, so no more than budget ÷ this can ever be shown.
CHEAPEST_LINE: Final = 11
# Reserved for the counts at the end, which grow with what is left out.
COUNTS_TOKENS: Final = 20


@dataclass(frozen=True, slots=True)
class Ranking:
    """What could be shown, best first, and what of the page commits something."""

    elements: Sequence[SeenElement]
    commits: Mapping[Spot, CommitPoint]
    behind_modal: int


@dataclass(frozen=True, slots=True)
class View:
    """A look with the refs and selectors its answer uses."""

    target_id: str
    snapshot: Snapshot
    ranking: Ranking
    names: Mapping[Spot, str]
    selectors: Mapping[Spot, Found | None]
    resolved: tuple[ResolvedRef, ...] = ()
    delta_unavailable: DeltaUnavailable | None = None

    @property
    def scan(self) -> Scan:
        return self.snapshot.scan

    def line(self, element: SeenElement) -> str:
        extra = []
        point = self.ranking.commits.get(element.spot)
        if point is not None:
            extra.append("commit")
        if not is_on_screen(element, self.scan.page.viewport):
            extra.append("offscreen")
        reads = "" if point is None else point.reads
        return element_line(self.names[element.spot], element, self.selectors.get(element.spot), extra, reads)

    def shown(self, element: SeenElement) -> ShownElement:
        return ShownElement(self.names[element.spot], self.line(element))


def _wanted(scan: Scan, mode: PerceiveMode) -> Callable[[SeenElement], bool]:
    """Which elements a mode lists."""
    if mode == "ctas":
        return lambda element: not element.is_control
    if mode == "modals":
        layered = {("", node) for blocker in scan.blockers for node in blocker.inside}
        return lambda element: element.in_dialog or element.spot in layered
    return lambda _: True


def rank(scan: Scan, mode: PerceiveMode, max_tokens: int) -> Ranking:
    """Everything that could possibly be shown: commit points first, then by score."""
    reachable = [element for element in scan.elements if not element.behind]
    ordered = by_score(reachable, scan.page.viewport)
    commits = previewed(reachable, scan.forms)
    wanted = _wanted(scan, mode)
    most = max_tokens // CHEAPEST_LINE
    first = [element for element in ordered if element.spot in commits]
    rest = [element for element in ordered if element.spot not in commits and wanted(element)]
    shown = [*first[: max(MAX_COMMIT_POINTS, most)], *rest[:most]]
    return Ranking(shown, commits, len(scan.elements) - len(reachable))


def layer_elements(scan: Scan) -> list[SeenElement]:
    """The layers over a page with their controls; an answer that tells of them needs refs for them."""
    return [one for blocker in scan.blockers for one in (blocker.element, *blocker.controls.values())]


def compose(view: View, mode: PerceiveMode, max_tokens: int) -> PerceiveReport:
    """The best of a look within the budget."""
    bare = within(head(view, mode, max_tokens))
    chosen = list(filter(_wanted(view.scan, mode), view.ranking.elements))
    lines = {element.spot: view.line(element) for element in chosen}
    outline = _outline(view.scan, mode)

    def where(*, dialog: bool, control: bool) -> tuple[str, ...]:
        return tuple(lines[e.spot] for e in chosen if e.in_dialog is dialog and (dialog or e.is_control is control))

    packed = pack(
        (
            Group("dialogs", 0.30, where(dialog=True, control=False)),
            Group("ctas", 0.35, where(dialog=False, control=False)),
            Group("controls", 0.25, where(dialog=False, control=True)),
            Group("headings", 0.10, outline.headings),
            Group("landmarks", 0.0, outline.landmarks),
            Group(
                "frames",
                0.0,
                tuple(map(frame_line, outline.frames)),
            ),
        ),
        max(0, max_tokens - bare.est_tokens - COUNTS_TOKENS),
    )
    kept = {*packed["dialogs"], *packed["ctas"], *packed["controls"]}
    elements = [element for element in chosen if lines[element.spot] in kept]
    if mode == "full":
        order = {element.spot: index for index, element in enumerate(view.scan.elements)}
        elements.sort(key=lambda element: order[element.spot])
    shown = tuple(ShownElement(view.names[element.spot], lines[element.spot]) for element in elements)
    rest = _Outline(packed["headings"], packed["landmarks"], outline.frames[: len(packed["frames"])])
    return _cut_to_fit(bare, shown, rest)


@dataclass(frozen=True, slots=True)
class _Outline:
    headings: tuple[str, ...] = ()
    landmarks: tuple[str, ...] = ()
    frames: tuple[SeenFrame, ...] = ()


def _outline(scan: Scan, mode: PerceiveMode) -> _Outline:
    """Headings, landmarks and the frames that were only listed."""
    frames = tuple(frame for frame in scan.frames if not frame.same_origin or not frame.scanned)
    if mode in ("ctas", "modals"):
        return _Outline(frames=frames)
    headings, landmarks = scan.headings, scan.landmarks
    if mode != "full":
        headings, landmarks = headings[:MAX_HEADINGS], landmarks[:MAX_LANDMARKS]
    return _Outline(
        tuple(f"h{one.level} {quoted(one.text, 80)}" for one in headings),
        tuple(one.role + (f" {quoted(one.name, 30)}" if one.name else "") for one in landmarks),
        frames,
    )


def head(view: View, mode: PerceiveMode, max_tokens: int) -> PerceiveReport:
    """The part of an answer that is never dropped."""
    scan = view.scan
    return PerceiveReport(
        perception_id=view.snapshot.perception_id,
        target_id=view.target_id,
        rev=view.snapshot.rev,
        page_epoch=view.snapshot.epoch,
        page=scan.page,
        url=one_line(scan.page.url, MAX_URL),
        title=plain_title(scan.page.title, MAX_TITLE),
        mode=mode,
        max_tokens=max_tokens,
        dialogs=layer_lines(scan.layers),
        blockers=shown_blockers(scan.blockers, view.names),
        auth=shown_auth(scan.auth),
        commit_points=_shown_commits(view),
        commit_point_total=len(view.ranking.commits),
        delta_unavailable=view.delta_unavailable,
        resolved=view.resolved,
        behind_modal=view.ranking.behind_modal,
        closed_roots=scan.closed_roots,
        completeness=Completeness(0, max(scan.total, len(scan.elements)), scan.truncated, more_by(scan)),
        structure_hash=structure_hash(scan),
    )


def shown_auth(auth: AuthSurface | None) -> AuthSurface | None:
    return None if auth is None or auth.stage == "public_page" else auth


def shown_blockers(blockers: Sequence[SeenBlocker], names: Mapping[Spot, str]) -> tuple[ShownBlocker, ...]:
    return tuple(
        ShownBlocker(
            names[blocker.element.spot],
            blocker.kind,
            blocker.blocking,
            blocker.name,
            {what: names[control.spot] for what, control in blocker.controls.items()},
        )
        for blocker in blockers[:MAX_BLOCKERS]
    )


def layer_lines(layers: Sequence[SeenLayer]) -> tuple[str, ...]:
    return tuple(f"{layer.role} {quoted(layer.name, 60)}{' modal' if layer.modal else ''}" for layer in layers)


def _shown_commits(view: View) -> tuple[ShownCommit, ...]:
    commits = view.ranking.commits
    chosen = [element for element in view.ranking.elements if element.spot in commits][:MAX_COMMIT_POINTS]
    return tuple(
        ShownCommit(
            view.names[e.spot],
            e.facts.name[:60],
            commits[e.spot].kind,
            commits[e.spot].why,
            commits[e.spot].suggested_tool,
        )
        for e in chosen
    )


# How much of the budget the part that is never dropped may take before it is shortened.
HEAD_SHARE: Final = 0.6


def within(report: PerceiveReport, share: float = HEAD_SHARE) -> PerceiveReport:
    """The part that is never dropped must itself fit: addresses, titles and details give way, step by step."""
    for limit in (share * report.max_tokens, report.max_tokens):
        for terse in range(len(TERSENESS)):
            shorter = replace(report, terse=terse)
            if shorter.est_tokens <= limit:
                return shorter
    return replace(report, terse=len(TERSENESS) - 1)


def _cut_to_fit(bare: PerceiveReport, shown: tuple[ShownElement, ...], outline: _Outline) -> PerceiveReport:
    """Estimates of parts do not add up exactly; the whole decides."""

    def build(elements: int, heads: int, *, rest: bool) -> PerceiveReport:
        completeness = replace(bare.completeness, shown=elements) if bare.completeness else None
        return replace(
            bare,
            elements=shown[:elements],
            headings=outline.headings[:heads],
            landmarks=outline.landmarks if rest else (),
            frames=outline.frames if rest else (),
            completeness=completeness,
        )

    def fits(report: PerceiveReport) -> bool:
        return report.est_tokens <= bare.max_tokens

    count, heads = len(shown), len(outline.headings)
    whole = build(count, heads, rest=True)
    if fits(whole):
        return whole
    heads = longest_that_fits(heads, lambda n: fits(build(count, n, rest=False)))
    if fits(build(count, heads, rest=False)):
        return build(count, heads, rest=False)
    return build(longest_that_fits(count, lambda n: fits(build(n, 0, rest=False))), 0, rest=False)


def compose_delta(view: View, old: Snapshot, changed: Changes, mode: PerceiveMode, max_tokens: int) -> PerceiveReport:
    """What changed since an earlier look, as far as the budget goes."""
    bare = within(head(view, mode, max_tokens))
    named = Changes(
        tuple(element for element in changed.added if element.spot in view.names),
        tuple(element for element in changed.changed if element.spot in view.names),
        changed.removed,
    )
    lines = {
        "added": tuple(view.line(element) for element in named.added),
        "changed": tuple(view.line(element) for element in named.changed),
        "removed": tuple(_last_seen(old, element) for element in named.removed),
    }
    shares = {"added": 0.5, "changed": 0.3, "removed": 0.2}
    groups = [Group(name, shares[name], tuple(f"+ {line}" for line in kept)) for name, kept in lines.items()]
    packed = pack(groups, max(0, max_tokens - bare.est_tokens - COUNTS_TOKENS))

    def build(spared: int) -> PerceiveReport:
        counts = {name: max(0, len(packed[name]) - spared) for name in lines}
        delta = ShownDelta(*(lines[name][: counts[name]] for name in ("added", "changed", "removed")))
        completeness = Completeness(sum(counts.values()), changed.total, view.scan.truncated, more_by(view.scan))
        return replace(bare, delta=delta, completeness=completeness)

    most = max(len(kept) for kept in packed.values())
    spared = next((n for n in range(most) if build(n).est_tokens <= max_tokens), most)
    return build(spared)


def _last_seen(old: Snapshot, element: SeenElement) -> str:
    name = old.names.get(element.spot)
    said = f"{element.facts.role} {quoted(element.facts.name, 60)}"
    return f"{name} {said}" if name else said
