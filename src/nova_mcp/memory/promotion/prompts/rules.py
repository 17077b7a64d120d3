"""Prompts for richer learning: what is noticed while acting, how often an agent is asked, and how that ends; pure."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from nova_mcp.core.page.control_labels import BlockerKind
from nova_mcp.core.page.selectors import SelectorClass
from nova_mcp.memory.knowledge.model import Problem, ScopeName
from nova_mcp.memory.knowledge.scopes import scope_of
from nova_mcp.memory.promotion.model import DAY_MS

SemanticKind = Literal["consent_cmp", "login_wall", "risky_repeat"]
SemanticState = Literal["prompted", "warned", "resolved", "dismissed", "deferred"]
SemanticVerdict = Literal["upsert", "not_applicable", "unsafe", "already_known", "defer"]
MatchSource = Literal["fingerprint", "selector"]

GATE_ID: Final = "pks.semantic_learning"
IGNORED_CALLS: Final = 5
DEFERRED_MS: Final = DAY_MS
RISKY_CLICKS: Final = 3
RESOLUTION_TOOLS: Final = ("nova.pks_upsert", "nova.learn_resolve_opportunity")
_ENDS: Final[dict[SemanticVerdict, SemanticState]] = {
    "upsert": "resolved",
    "not_applicable": "dismissed",
    "unsafe": "dismissed",
    "already_known": "dismissed",
    "defer": "deferred",
}
_LAYERS: Final[dict[BlockerKind, SemanticKind]] = {"consent": "consent_cmp", "login_wall": "login_wall"}
_CONFIDENCE: Final[dict[SemanticKind, float]] = {"consent_cmp": 0.85, "login_wall": 0.80, "risky_repeat": 0.60}
REASONS: Final[dict[SemanticKind, str]] = {
    "consent_cmp": "A request for consent was met that no entry of this site covers.",
    "login_wall": "A log-in wall was met that no entry of this site covers.",
    "risky_repeat": "A control is used again and again through a selector that will not last.",
}
WHY_NOT_AUTOMATIC: Final[dict[SemanticKind, str]] = {
    "consent_cmp": "Which answer is the right one is not in the clicks; it has to be said.",
    "login_wall": "Who may log in, and with what, is not for a recording to decide.",
    "risky_repeat": "The selector that was used would be stored with its weakness.",
}


@dataclass(frozen=True, slots=True)
class Moment:
    """What an action came across; `clicks` counts those on this selector before and now.

    `layer` is a selector of the layer over the page, where it has one that lasts.
    """

    origin: str
    fingerprint: str
    layers: tuple[BlockerKind, ...] = ()
    selector: str | None = None
    selector_class: SelectorClass = "stable"
    clicks: int = 0
    layer: str = ""
    tool: str = ""


@dataclass(frozen=True, slots=True)
class SemanticOpportunity:
    """Something that only an agent can put into words. `ignored` counts the calls since it was asked."""

    opportunity_id: str
    kind: SemanticKind
    origin: str
    fingerprint: str
    confidence: float
    created_at_ms: int
    state: SemanticState = "prompted"
    asked: bool = False
    ignored: int = 0
    selector: str | None = None
    layer: str = ""
    clicks: int = 0
    tool: str = ""
    deferred_until_ms: int | None = None
    resolved_at_ms: int | None = None
    verdict: SemanticVerdict | None = None
    reason: str | None = None

    @property
    def is_open(self) -> bool:
        return self.state in ("prompted", "warned")


@dataclass(frozen=True, slots=True)
class Prompt:
    """The one prompt an answer may carry."""

    opportunity: SemanticOpportunity
    status: Literal["prompted", "warned"]


@dataclass(frozen=True, slots=True)
class Resolution:
    """How an opportunity was closed or put off."""

    opportunity: SemanticOpportunity
    prior_state: SemanticState
    verdict: SemanticVerdict
    match_source: MatchSource | None = None


@dataclass(frozen=True, slots=True)
class AlreadyResolved:
    opportunity: SemanticOpportunity


@dataclass(frozen=True, slots=True)
class BatchSummary:
    """What was left open when a site was left."""

    origin: str
    entries: tuple[SemanticOpportunity, ...]
    reason: str = "left_domain"


def site_of(origin: str) -> ScopeName:
    """The site an origin belongs to, by the name that knowledge has for it."""
    found = scope_of(origin)
    return ScopeName(origin) if isinstance(found, Problem) else found


def opportunity_id(kind: SemanticKind, origin: str, fingerprint: str) -> str:
    return f"sem:{kind}:{origin}:{fingerprint}"


def detected(moment: Moment, at_ms: int) -> tuple[SemanticOpportunity, ...]:
    """Everything an action came across that is worth asking about."""
    kinds = [_LAYERS[layer] for layer in dict.fromkeys(moment.layers) if layer in _LAYERS]
    if moment.selector is not None and moment.selector_class == "fragile" and moment.clicks >= RISKY_CLICKS:
        kinds.append("risky_repeat")
    return tuple(
        SemanticOpportunity(
            opportunity_id=opportunity_id(kind, moment.origin, moment.fingerprint),
            kind=kind,
            origin=moment.origin,
            fingerprint=moment.fingerprint,
            confidence=_CONFIDENCE[kind],
            created_at_ms=at_ms,
            selector=moment.selector,
            layer=moment.layer,
            clicks=moment.clicks if kind == "risky_repeat" else 0,
            tool=moment.tool,
        )
        for kind in kinds
    )


@dataclass(frozen=True, slots=True)
class NothingStored:
    """An answer that an entry was stored, where the site has none that answers the question."""

    opportunity: SemanticOpportunity


# -- asking


@dataclass(frozen=True, slots=True)
class Asked:
    """The opportunities of an origin after one answered call, and the prompt that the answer carries."""

    opportunities: tuple[SemanticOpportunity, ...]
    prompt: Prompt | None = None


def answered(
    held: Sequence[SemanticOpportunity],
    seen: Iterable[SemanticOpportunity],
    origin: str,
    now_ms: int,
    unheard: Collection[str] = (),
) -> Asked:
    """One call on an origin: what was asked goes another call without an answer, what is new or due is asked, singly.

    What was closed stays closed, however often it is met again. `unheard` are those that were asked on other
    connections only: met on this one, they are asked there as well.
    """
    layers = (one for one in held if one.origin == origin and one.kind != "risky_repeat")
    asked: dict[SemanticKind, SemanticOpportunity] = {one.kind: one for one in layers}
    # A layer may be met from several sides, and looks different from each.
    met = {one.opportunity_id: one for one in (asked.get(one.kind, one) for one in seen)}
    after = {**met, **{one.opportunity_id: one for one in held}}
    moved = [
        _passed(one, now_ms, met=name in met, unheard=name in unheard)
        for name, one in after.items()
        if one.origin == origin
    ]
    asking = [prompt for _, prompt in moved if prompt is not None]
    first = min(asking, key=_urgency, default=None)
    for one, prompt in moved:
        # What could not be asked now has not been ignored either: it comes up again with a later call.
        if prompt is None or prompt is first:
            after[one.opportunity_id] = one
    return Asked(tuple(after.values()), first)


def _urgency(prompt: Prompt) -> tuple[float, str]:
    return (-prompt.opportunity.confidence, prompt.opportunity.opportunity_id)


def _passed(
    one: SemanticOpportunity, now_ms: int, *, met: bool, unheard: bool
) -> tuple[SemanticOpportunity, Prompt | None]:
    match one.state:
        case "prompted" if one.asked and met and unheard:
            # This connection has ignored nothing yet.
            afresh = replace(one, ignored=0)
            return afresh, Prompt(afresh, "prompted")
        case "warned" if met and unheard:
            return one, Prompt(one, "warned")
        case "prompted" if not one.asked:
            asked = replace(one, asked=True)
            return (asked, Prompt(asked, "prompted")) if met else (one, None)
        case "prompted" if one.ignored + 1 >= IGNORED_CALLS:
            warned = replace(one, state="warned", ignored=IGNORED_CALLS)
            return warned, Prompt(warned, "warned")
        case "prompted":
            return replace(one, ignored=one.ignored + 1), None
        case "deferred" if one.deferred_until_ms is not None and now_ms >= one.deferred_until_ms:
            again = replace(one, state="prompted", asked=True, ignored=0, deferred_until_ms=None)
            return again, Prompt(again, "prompted")
        case _:
            return one, None


# -- ending


def resolved(
    one: SemanticOpportunity, verdict: SemanticVerdict, now_ms: int, reason: str | None = None
) -> Resolution | AlreadyResolved:
    """An agent's answer; what is closed stays as it was closed."""
    if one.state in ("resolved", "dismissed"):
        return AlreadyResolved(one)
    put_off = verdict == "defer"
    after = replace(
        one,
        state=_ENDS[verdict],
        verdict=verdict,
        reason=reason,
        ignored=0,
        deferred_until_ms=now_ms + DEFERRED_MS if put_off else None,
        resolved_at_ms=None if put_off else now_ms,
    )
    return Resolution(after, one.state, verdict)


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """An entry that was just stored, as far as it may answer a prompt; `marks` are what it is recognised by."""

    origin: str
    phenomenon_type: str
    fingerprint: str | None
    selectors: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()


def resolved_by(held: Iterable[SemanticOpportunity], written: StoredAnswer, now_ms: int) -> Resolution | None:
    """The prompt that an entry answers: the one about this very situation, or about a control it names."""
    waiting = [one for one in held if one.origin == written.origin and one.state not in ("resolved", "dismissed")]
    for one in sorted(waiting, key=lambda other: (-other.confidence, other.opportunity_id)):
        source = _matches(one, written)
        closed = resolved(one, "upsert", now_ms) if source is not None else None
        if isinstance(closed, Resolution):
            return replace(closed, match_source=source)
    return None


def _matches(one: SemanticOpportunity, written: StoredAnswer) -> MatchSource | None:
    if one.kind != "risky_repeat" and one.kind != written.phenomenon_type:
        return None
    if written.fingerprint is not None and written.fingerprint == one.fingerprint:
        return "fingerprint"
    if one.layer and one.layer in (*written.marks, *written.selectors):
        return "fingerprint"
    if one.selector is not None and one.selector in written.selectors:
        return "selector"
    # Nothing of the layer could be named, so what kind of layer it is has to do.
    return "fingerprint" if one.kind != "risky_repeat" and not one.layer and one.selector is None else None


def left(
    held: Sequence[SemanticOpportunity], origin: str
) -> tuple[tuple[SemanticOpportunity, ...], BatchSummary | None]:
    """The site was left: what is open is summed up once, and asked afresh when it is met again."""
    waiting = tuple(one for one in held if one.origin == origin and one.is_open and one.asked)
    rested = tuple(replace(one, state="prompted", asked=False, ignored=0) if one in waiting else one for one in held)
    return rested, BatchSummary(origin, waiting) if waiting else None
