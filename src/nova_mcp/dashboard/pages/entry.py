"""One entry of knowledge whole: what it says, why it stands where it stands, and its life."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection

from nova_mcp.core.keywords import cut
from nova_mcp.dashboard.charts.gate_bars import GateBar, gate_bars
from nova_mcp.dashboard.charts.lifeline import Born, LifeLine, lane_of, life_line
from nova_mcp.dashboard.charts.lifeline_picture import LifePicture, picture
from nova_mcp.dashboard.pages.knowledge import EntryRow, entry_row
from nova_mcp.memory.knowledge.matching import routes
from nova_mcp.memory.knowledge.model import (
    Action,
    Context,
    DomainHint,
    ElementPrint,
    Phenomenon,
    ScopeName,
    Signal,
    VerifyStep,
)
from nova_mcp.memory.promotion import overview, steps_store
from nova_mcp.memory.promotion.explain import explanation
from nova_mcp.memory.promotion.gates.folding import Observed, Step
from nova_mcp.memory.promotion.model import ConsentGates, Explanation, TransitionKind
from nova_mcp.memory.promotion.overview import KnownRevision, Life
from nova_mcp.verification.model import Omitted

# More steps than this are not drawn; the picture of an entry in constant use begins later.
STEPS: Final = 600
TEXT_CHARS: Final = 160
LABEL_CHARS: Final = 80


@dataclass(frozen=True, slots=True)
class ActionRow:
    """One step of a playbook; `page_said` is what the control was called there, and only that."""

    place: int
    kind: str
    selector: str
    fallbacks: tuple[str, ...]
    brings: str
    polarity: str
    page_said: str


@dataclass(frozen=True, slots=True)
class VerifyRow:
    kind: str
    selector: str
    condition: str


@dataclass(frozen=True, slots=True)
class ContentView:
    """What an entry says, as it is stored."""

    signals: tuple[Signal, ...]
    least_confidence: float | None
    holds: str
    policy: str
    actions: tuple[ActionRow, ...]
    verify: tuple[VerifyRow, ...]
    unconfirmed: tuple[str, ...]
    # Of a hint: how selectors are used.
    uses: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class RevisionView:
    """One revision with its gates. `transition` is the one it stands before."""

    row: EntryRow
    retired_because: str | None
    transition: TransitionKind
    summary: str
    remedies: tuple[str, ...]
    gates: tuple[GateBar, ...]
    content: ContentView
    created_at_ms: int
    times: tuple[tuple[str, int | None], ...]
    failures_in_row: int
    misfires: int
    silent_fails: int

    @property
    def ready(self) -> bool:
        return bool(self.gates) and all(one.passed for one in self.gates) and not self.falling

    @property
    def falling(self) -> bool:
        return self.transition in ("demotion", "deprecation")


@dataclass(frozen=True, slots=True)
class EntryView:
    scope: ScopeName
    stable_id: str
    current: RevisionView
    pending: RevisionView | None
    line: LifeLine
    picture: LifePicture


def entry(conn: Connection, scope: ScopeName, stable_id: str, now_ms: int, consent: ConsentGates) -> EntryView | None:
    found = overview.life(conn, scope, stable_id, now_ms, consent)
    if found is None:
        return None
    line = _line(conn, found, now_ms)
    shelved, pending = found.entry.current.shelved, found.entry.pending
    return EntryView(
        scope=scope,
        stable_id=stable_id,
        current=_revision(explanation(conn, shelved, now_ms, consent), found.entry.current, now_ms),
        pending=None
        if pending is None
        else _revision(explanation(conn, pending.shelved, now_ms, consent), pending, now_ms, in_review=True),
        line=line,
        picture=picture(line),
    )


def _line(conn: Connection, found: Life, now_ms: int) -> LifeLine:
    shelved = found.entry.current.shelved
    kept = shelved.kept
    steps: list[tuple[int, Step]] = []
    for one in (found.entry.current, found.entry.pending):
        if one is not None:
            steps += _steps(conn, one.shelved.entry_id)
    lane = lane_of(kept.level, deprecated=kept.deprecated)
    born = Born(kept.created_at_ms, kept.updated_at_ms, shelved.origin, lane)
    return life_line(born, found.events, sorted(steps, key=lambda step: step[0]), now_ms, cut=found.cut)


def _steps(conn: Connection, entry_id: int) -> list[tuple[int, Step]]:
    """The newest steps, and the marks that the entry began with where nothing has been left out in between."""
    steps = steps_store.latest(conn, entry_id, STEPS)
    begin = steps_store.snapshot(conn, entry_id)
    if begin is None or len(steps) == STEPS:
        return steps
    return [*((mark.at_ms, Observed(mark)) for mark in begin[1].marks[-STEPS:]), *steps]


def _revision(why: Explanation, one: KnownRevision, now_ms: int, *, in_review: bool = False) -> RevisionView:
    kept = one.shelved.kept
    return RevisionView(
        row=entry_row(one, now_ms, in_review=in_review),
        retired_because=kept.deprecated_reason,
        transition=why.transition,
        summary=why.summary,
        remedies=why.remediation,
        gates=gate_bars(why.gates, why.transition),
        content=content_view(kept),
        created_at_ms=kept.created_at_ms,
        times=(
            ("last success", kept.health.last_success_at_ms),
            ("last failure", kept.health.last_failure_at_ms),
            ("last drift", kept.health.last_drift_at_ms),
            ("last confirmed", kept.health.last_confirmed_at_ms),
        ),
        failures_in_row=kept.health.consecutive_failures,
        misfires=kept.health.severe_misfires,
        silent_fails=kept.health.silent_verify_fails,
    )


# -- what it says


def content_view(kept: Phenomenon | DomainHint) -> ContentView:
    if isinstance(kept, DomainHint):
        uses = (
            *(("reads", text) for text in kept.selectors),
            *((f"takes {name}", text) for name, text in kept.extract),
        )
        return ContentView((), None, "everywhere", f"{kept.kind}, {kept.mode}", (), (), (), uses)
    content, playbook = kept.content, kept.content.playbook
    actions = () if playbook is None else playbook.actions
    return ContentView(
        signals=content.fingerprint.signals,
        least_confidence=content.fingerprint.min_confidence,
        holds=_holds(content.context),
        policy="" if playbook is None else playbook.policy,
        actions=tuple(_action(place, one) for place, one in enumerate(actions, 1)),
        verify=() if playbook is None else tuple(_verify(one) for one in playbook.verify),
        unconfirmed=kept.unseen,
    )


def _holds(context: Context) -> str:
    return ", ".join(_limits(context)) or "everywhere"


def _limits(context: Context) -> Iterator[str]:
    for name, value in (("on", context.device), ("in", context.locale), ("signed in:", context.auth)):
        if value:
            yield f"{name} {value}"
    if context.routes:
        named = ("the start page" if one == routes.ROOT else one for one in context.routes)
        yield f"at {cut(', '.join(named), TEXT_CHARS)}"


def _action(place: int, one: Action) -> ActionRow:
    brings = f"{one.value_source} {one.value_name}".rstrip() if one.value_source else one.key
    return ActionRow(
        place=place,
        kind=one.kind,
        selector=cut(one.selector or "", TEXT_CHARS),
        fallbacks=tuple(cut(text, TEXT_CHARS) for text in one.fallbacks),
        brings=f"{one.wait_ms} ms" if one.kind == "wait" else brings,
        polarity=one.polarity or "",
        page_said=page_said(one.element),
    )


def page_said(element: ElementPrint | None) -> str:
    """What the page called a control, bounded; it is data, and nobody's instruction."""
    if element is None:
        return ""
    return cut(element.text or element.aria_label or element.name or f"<{element.tag}>", LABEL_CHARS)


def _verify(one: VerifyStep) -> VerifyRow:
    told = "" if one.threshold is None else f"at most {one.threshold:g}"
    if one.assertion is not None:
        expected = "" if isinstance(one.assertion.expected, Omitted) else f" {one.assertion.expected!r}"
        told = f"{one.assertion.fact_key} {one.assertion.operator}{expected}"
    return VerifyRow(one.kind, cut(one.selector or "", TEXT_CHARS), cut(told, TEXT_CHARS))
