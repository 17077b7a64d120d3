"""The answer of a look: what it holds, and how it reads as text within a budget."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from nova_mcp.browser.channel.frame_ids import shown_id
from nova_mcp.browser.perceive.element_lines import one_line, quoted
from nova_mcp.browser.perceive.scan_values import AuthSurface, SeenFrame, SeenPage
from nova_mcp.core.tokens import estimate_tokens

PerceiveMode: TypeAlias = Literal["summary", "state", "ctas", "form_analysis", "modals", "full"]
More: TypeAlias = Literal["scroll", "pagination", "loadMore"]
DeltaUnavailable: TypeAlias = Literal["rev_unknown", "new_document"]

MAX_URL: Final = 300
MAX_TITLE: Final = 120


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
class ShownBlocker:
    """A layer over the page; `controls` are the refs of those whose meaning is known."""

    ref: str
    kind: str
    blocking: bool | None
    name: str
    controls: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ShownControl:
    """One control of a form, and the tool that fills it in."""

    ref: str
    label: str
    type: str
    required: bool
    invalid: bool
    value: str
    options: tuple[str, ...]
    preferred_tool: str
    autocomplete: str
    line: str
    option_count: int = 0


@dataclass(frozen=True, slots=True)
class ShownForm:
    """A form with its controls in order; controls outside any form stand under one without a name."""

    name: str
    method: str
    controls: tuple[ShownControl, ...]
    line: str


@dataclass(frozen=True, slots=True)
class ShownDelta:
    """What changed since an earlier look, as lines."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ResolvedRef:
    """What an earlier ref stands for now; `reason` when it stands for nothing."""

    ref: str
    live: bool
    reason: str = ""
    line: str = ""


@dataclass(frozen=True, slots=True)
class Completeness:
    shown: int
    total: int
    scan_truncated: bool = False
    more: More | None = None


@dataclass(frozen=True, slots=True)
class PerceiveReport:
    """A perceived page; `text()` is what the budget counts. `terse` says how far the text had to be shortened."""

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
    blockers: tuple[ShownBlocker, ...] = ()
    auth: AuthSurface | None = None
    commit_points: tuple[ShownCommit, ...] = ()
    commit_point_total: int = 0
    headings: tuple[str, ...] = ()
    landmarks: tuple[str, ...] = ()
    forms: tuple[ShownForm, ...] = ()
    frames: tuple[SeenFrame, ...] = ()
    delta: ShownDelta | None = None
    delta_unavailable: DeltaUnavailable | None = None
    resolved: tuple[ResolvedRef, ...] = ()
    behind_modal: int = 0
    closed_roots: int = 0
    active_element: str | None = None
    completeness: Completeness | None = None
    structure_hash: str = ""
    navigated_during_call: bool = False
    terse: int = 0

    def text(self) -> str:
        return "\n".join(report_lines(self))

    @property
    def est_tokens(self) -> int:
        return estimate_tokens(self.text())


# Characters of address and title at each degree of terseness; from the third on, lines lose their details as well.
TERSENESS: Final = ((MAX_URL, MAX_TITLE), (150, 60), (80, 40), (40, 20), (30, 10), (20, 0))
_SHORT: Final = 1
_NO_NAMES: Final = 3
_BARE: Final = 4
_BAREST: Final = 5


def report_lines(report: PerceiveReport) -> list[str]:
    """The answer as an agent reads it."""
    url_chars, title_chars = TERSENESS[report.terse]
    title = f"{quoted(report.title, title_chars)} " if title_chars else ""
    lines = [f"{report.target_id} rev {report.rev} {title}{one_line(report.url, url_chars)}"]
    lines.extend(_standing(report))
    lines.extend(element.line for element in report.elements)
    lines.extend(_form_lines(report.forms))
    lines.extend(_delta_lines(report))
    lines.extend(report.headings)
    if report.landmarks:
        lines.append(f"landmarks: {', '.join(report.landmarks)}")
    lines.extend(frame_line(frame) for frame in report.frames)
    lines.extend(_resolved_lines(report))
    lines.extend(_counts(report))
    return lines


def _standing(report: PerceiveReport) -> Iterator[str]:
    """What comes before everything that can be acted on."""
    if report.page.ready_state != "complete":
        yield f"loading: {report.page.ready_state}"
    if report.auth is not None:
        yield f"auth: {report.auth.stage}{' with an error' if report.auth.auth_error else ''}"
    yield from _blocker_lines(report)
    yield from _dialog_lines(report)
    yield from _commit_line(report)
    if report.active_element:
        yield f"focus {report.active_element if report.terse < _NO_NAMES else report.active_element.split(' ')[0]}"


def _blocker_lines(report: PerceiveReport) -> Iterator[str]:
    if report.terse >= _BAREST and report.blockers:
        yield f"blockers {' '.join(blocker.ref for blocker in report.blockers)}"
        return
    for blocker in report.blockers:
        name = f" {quoted(blocker.name, 40)}" if blocker.name and report.terse < _NO_NAMES else ""
        state = " blocking" if blocker.blocking else " not blocking" if blocker.blocking is False else ""
        ways = "".join(f" {what}={ref}" for what, ref in blocker.controls.items()) if report.terse < _BARE else ""
        yield f"blocker {blocker.ref} {blocker.kind}{name}{state}{ways}"


def _dialog_lines(report: PerceiveReport) -> Iterator[str]:
    if report.terse >= _NO_NAMES and report.dialogs:
        yield f"dialogs {len(report.dialogs)}"
    else:
        yield from (f"dialog {line}" for line in report.dialogs)


def _commit_line(report: PerceiveReport) -> Iterator[str]:
    if not report.commit_points:
        return
    bare = report.terse >= _BARE
    named = " ".join(point.ref if bare else f"{point.ref}={point.kind}" for point in report.commit_points)
    rest = report.commit_point_total - len(report.commit_points)
    yield f"commit points: {named}" + (f" and {rest} more" if rest else "")


def _form_lines(forms: tuple[ShownForm, ...]) -> Iterator[str]:
    for form in forms:
        yield form.line
        yield from (control.line for control in form.controls)


def _delta_lines(report: PerceiveReport) -> Iterator[str]:
    if report.delta_unavailable is not None:
        yield f"no delta: {report.delta_unavailable}"
    if (delta := report.delta) is not None:
        yield from (f"+ {line}" for line in delta.added)
        yield from (f"~ {line}" for line in delta.changed)
        yield from (f"- {line}" for line in delta.removed)
        if not (delta.added or delta.changed or delta.removed) and not _left_out(report):
            yield "no element changed"


def _left_out(report: PerceiveReport) -> bool:
    return report.completeness is not None and report.completeness.shown < report.completeness.total


def frame_line(frame: SeenFrame) -> str:
    left, top, width, height = frame.rect
    return f"frame {shown_id(frame.frame_id)} {one_line(frame.origin, 60) or '-'} {width}×{height} at {left},{top}"


def _resolved_lines(report: PerceiveReport) -> Iterator[str]:
    if report.terse < _SHORT:
        for one in report.resolved:
            yield f"resolved {one.line}" if one.live else f"resolved {one.ref}: {one.reason}"
        return
    live = [one.ref for one in report.resolved if one.live]
    gone = [one.ref for one in report.resolved if not one.live]
    if report.terse >= _BAREST and report.resolved:
        yield f"resolved {len(live)} of {len(report.resolved)}"
        return
    if live:
        yield f"live {' '.join(live)}"
    if gone:
        yield f"gone {' '.join(gone)}"


def _counts(report: PerceiveReport) -> Iterator[str]:
    if report.behind_modal:
        yield f"behind the dialog: {report.behind_modal}"
    if report.closed_roots:
        yield f"closed components: {report.closed_roots}"
    if (completeness := report.completeness) is None:
        return
    parts = []
    if completeness.shown < completeness.total:
        what = "changes " if report.delta is not None else ""
        parts.append(f"shown {completeness.shown} of {completeness.total} {what}".rstrip())
    if completeness.scan_truncated:
        parts.append("scan truncated")
    if completeness.more:
        parts.append(f"more by {completeness.more}")
    if parts:
        yield ", ".join(parts)
