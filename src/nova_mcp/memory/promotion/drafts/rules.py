"""Turns what was seen into candidates: content only from observations, or a reason why there is none; pure."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from nova_mcp.core.page.control_labels import HUMAN
from nova_mcp.memory.journal.candidates import candidate_key, stable_id
from nova_mcp.memory.knowledge.matching.routes import ANYWHERE
from nova_mcp.memory.knowledge.model import (
    MAX_FALLBACKS,
    MAX_PHENOMENA,
    MAX_SIGNALS,
    Action,
    Content,
    Context,
    Fingerprint,
    PhenomenonType,
    Playbook,
    PlaybookPolicy,
    Signal,
    StableId,
    VerifyStep,
)
from nova_mcp.memory.promotion.drafts.clusters import SUPPORT_NEEDED
from nova_mcp.memory.promotion.drafts.fingerprint_similarity import COVERED, PATCH, similarity
from nova_mcp.memory.promotion.drafts.model import Draft, Glimpse, Hint, Neighbour, Proposal, Skipped, SkipReason, Trace
from nova_mcp.memory.promotion.gates.counting import confidence

PROPOSALS: Final = 5
RESULT_SUCCESSES: Final = 3
RESULT_ITEMS: Final = 2
MANY_ROUTES: Final = 4
_POLICIES: Final[dict[PhenomenonType, PlaybookPolicy]] = {"consent_cmp": "reject_preferred", "modal": "dismiss"}


# -- what a trace holds


def worked(trace: Trace) -> list[Glimpse]:
    return [one for one in trace.glimpses if one.outcome > 0]


def _calls(glimpses: Iterable[Glimpse]) -> int:
    return len({one.call_id for one in glimpses})


def trace_confidence(trace: Trace) -> float:
    failed = [one for one in trace.glimpses if one.outcome < 0]
    return round(confidence(_calls(worked(trace)), _calls(failed)), 4)


def _selectors(glimpses: Iterable[Glimpse]) -> tuple[str, ...]:
    """The selectors that worked, the one that did so most often first."""
    counted = Counter(one.selector for one in glimpses if one.selector is not None)
    return tuple(sorted(counted, key=lambda selector: (-counted[selector], selector)))


def _signals(glimpses: Sequence[Glimpse]) -> tuple[Signal, ...]:
    """The signals that were there every time it worked; where none were, the control itself is one."""
    common = set.intersection(*(set(one.signals) for one in glimpses)) if glimpses else set()
    ordered = sorted(common, key=lambda signal: (signal.kind, signal.match, signal.locale or ""))[:MAX_SIGNALS]
    return tuple(ordered) or tuple(Signal("dom", selector) for selector in _selectors(glimpses)[:1])


def _routes(glimpses: Iterable[Glimpse]) -> tuple[str, ...]:
    """Where it was seen; what was seen in many parts of a site holds everywhere."""
    found = sorted({one.route for one in glimpses if one.route is not None})
    return tuple(found) if len(found) <= MANY_ROUTES and ANYWHERE not in found else ()


def _clicking(glimpses: Sequence[Glimpse], kind: PhenomenonType, *verify: VerifyStep) -> Content | None:
    """An entry that presses what was pressed and checks no more than was seen afterwards."""
    selectors = _selectors(glimpses)
    if not selectors:
        return None
    polarities = {one.polarity for one in glimpses if one.selector == selectors[0]}
    polarity = polarities.pop() if len(polarities) == 1 else None
    action = Action("click", selectors[0], selectors[1 : 1 + MAX_FALLBACKS], polarity=polarity)
    return Content(
        kind,
        Fingerprint(_signals(glimpses)),
        Playbook(_POLICIES.get(kind, "custom"), (action,), verify),
        Context(routes=_routes(glimpses)),
    )


# -- the heuristics, in their order


def _is_consent(one: Glimpse) -> bool:
    named = any(signal.kind == "vendor" for signal in one.signals)
    return one.layers[:1] == ("consent",) or (named and one.polarity in ("reject", "accept", "manage"))


def consent_banner(trace: Trace) -> Draft | None:
    """A request for consent, known by its vendor or its text, that was answered without agreeing."""
    proven = [one for one in worked(trace) if _is_consent(one) and _refuses(one)]
    content = _clicking(proven, "consent_cmp", VerifyStep("obstruction_cleared"))
    return None if content is None else Draft("A consent banner was answered and was gone afterwards.", content)


def _refuses(one: Glimpse) -> bool:
    # Dismissing never agrees; of other clicks only the label tells.
    return one.polarity in ("reject", "manage") or (one.kind == "blocker_dismissed" and one.polarity != "accept")


def overlay_dismissal(trace: Trace) -> Draft | None:
    """A layer that covered the page and was closed."""
    # A person decides about some layers; having got past one is nothing to be repeated.
    proven = [one for one in worked(trace) if one.layers and not _is_consent(one) and one.layers[0] not in HUMAN]
    content = _clicking(proven, "modal", VerifyStep("obstruction_cleared"))
    return None if content is None else Draft("A covering layer was closed and the page was free afterwards.", content)


def selector_replacement(trace: Trace) -> Draft | None:
    """A first choice that failed where another selector worked."""
    proven = [one for one in worked(trace) if one.failed_selector is not None and one.selector is not None]
    if not proven:
        return None
    replaced = Counter(one.failed_selector for one in proven).most_common(1)[0][0]
    proven = [one for one in proven if one.failed_selector == replaced]
    content = _clicking(proven, "custom")
    reason = "The stored selector failed and another one worked in its place."
    return None if content is None else Draft(reason, content, replaces=replaced)


def result_items(trace: Trace) -> Draft | None:
    """A list whose entries are built alike, used with success several times."""
    proven = [one for one in worked(trace) if one.items >= RESULT_ITEMS and one.selector is not None]
    if _calls(proven) < RESULT_SUCCESSES:
        return None
    return Draft(
        "Entries of a repeating structure were used with success.", Hint("result_item", _selectors(proven)[:10])
    )


def navigation(trace: Trace) -> Draft | None:
    """A control that led to the same place each time it was used."""
    proven = [one for one in worked(trace) if one.led_to is not None and one.led_to != one.route]
    if _calls(proven) < SUPPORT_NEEDED or len({one.led_to for one in proven}) != 1:
        return None
    content = _clicking(proven, "nav_link")
    return None if content is None else Draft("A control led to the same route every time.", content)


HEURISTICS: Final[tuple[Callable[[Trace], Draft | None], ...]] = (
    consent_banner,
    overlay_dismissal,
    selector_replacement,
    result_items,
    navigation,
)


# -- proposing


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The scope a proposal would go into; `semantic_open` while a richer prompt about it waits for an answer."""

    known: tuple[Neighbour, ...] = ()
    semantic_open: bool = False
    # Selectors of hints, and everything that counts towards what a scope can hold.
    hinted: frozenset[str] = frozenset()
    entries: int = 0


def key_of(trace: Trace) -> str:
    return trace.candidate_key or candidate_key(trace.host, "pattern", trace.key)


def refused(trace: Trace) -> SkipReason | None:
    """Why nothing can be made of a trace before anybody looks for a pattern; None when something may."""
    if trace.origin == "diagnostic":
        return "diagnostic_candidate"
    if trace.status == "disproven":
        return "disproven"
    if _calls(one for one in trace.glimpses if one.outcome >= 0) < SUPPORT_NEEDED:
        return "insufficient_support"
    if not worked(trace):
        return "no_success"
    return None


def drafted(trace: Trace) -> Draft | SkipReason:
    proven = worked(trace)
    for heuristic in HEURISTICS:
        if (draft := heuristic(trace)) is not None:
            return "commit_control" if _commits(draft, proven) else draft
    if any(_is_consent(one) and one.polarity == "accept" for one in proven):
        return "accept_refused"
    return "no_pattern" if _selectors(proven) else "no_selector"


def _commits(draft: Draft, proven: Sequence[Glimpse]) -> bool:
    """Whether a draft would press a control that commits something: what to send, buy or delete is no habit of a site.
    Refusing consent is, whatever form it is in."""
    if not isinstance(draft.body, Content) or draft.body.type == "consent_cmp":
        return False
    return any(one.commits for one in proven)


def propose(trace: Trace, around: Surroundings) -> Proposal | Skipped:
    """A candidate at the lowest level, a patch of what it resembles, or why neither."""
    key = key_of(trace)
    draft = refused(trace) or drafted(trace)
    if not isinstance(draft, Draft):
        return Skipped(key, draft)
    if around.semantic_open and _only_a_selector(draft):
        return Skipped(key, "held_for_semantic_learning")
    if isinstance(draft.body, Hint) and around.hinted.issuperset(draft.body.selectors):
        return Skipped(key, "already_covered")
    found = _placed(trace, draft, around.known)
    if isinstance(found, Proposal) and found.kind != "patch" and _held(around) >= MAX_PHENOMENA:
        return Skipped(key, "scope_full")
    return found


def _held(around: Surroundings) -> int:
    return max(around.entries, len(around.known))


def _only_a_selector(draft: Draft) -> bool:
    return isinstance(draft.body, Content) and draft.body.type in ("custom", "nav_link")


def _placed(trace: Trace, draft: Draft, known: Sequence[Neighbour]) -> Proposal | Skipped:
    key = key_of(trace)
    new = StableId(stable_id(trace.host, key))
    proposal = Proposal("new_phenomenon", trace.host, key, new, trace_confidence(trace), draft.reason, draft.body)
    if isinstance(draft.body, Hint):
        return replace(proposal, kind="domain_hint", target_stable_id=new)
    owner = next((one for one in known if one.stable_id == trace.target_stable_id), None)
    if draft.replaces is not None:
        found = replace(proposal, replaces=draft.replaces)
        return _repairing(found, draft.body, owner) if owner is not None else replace(found, target_stable_id=new)
    if owner is not None or any(_presses_the_same(draft.body, one) for one in known):
        # What an entry already does was seen to be done by it.
        return Skipped(key, "already_covered")
    nearest = max(known, key=lambda one: (_alike(draft.body, one), one.stable_id), default=None)
    alike = 0.0 if nearest is None else _alike(draft.body, nearest)
    if alike >= COVERED:
        return Skipped(key, "already_covered")
    if nearest is None or alike < PATCH:
        nearest = next((one for one in known if one.stable_id == new), None)
    return replace(proposal, target_stable_id=new) if nearest is None else _patching(proposal, nearest)


def _presses_the_same(content: Content, known: Neighbour) -> bool:
    pressed = {action.selector for action in known.actions}
    actions = () if content.playbook is None else content.playbook.actions
    return not known.retired and bool(actions) and actions[0].selector in pressed


def _patching(proposal: Proposal, owner: Neighbour) -> Proposal | Skipped:
    """A retired entry comes back through its own gate, not by being written anew."""
    if owner.retired:
        return Skipped(proposal.candidate_key, "entry_retired")
    return replace(proposal, kind="patch", stable_id=owner.stable_id, target_stable_id=owner.stable_id)


def _alike(content: Content | Hint, known: Neighbour) -> float:
    return similarity(content.fingerprint.signals, known.signals) if isinstance(content, Content) else 0.0


def _repairing(proposal: Proposal, content: Content, owner: Neighbour) -> Proposal | Skipped:
    """A patch that puts the selector that worked first; one that is first already needs none."""
    used = content.playbook.actions[0].selector if content.playbook is not None else None
    if any(action.selector == used for action in owner.actions):
        return Skipped(proposal.candidate_key, "already_covered")
    return _patching(replace(proposal, body=replace(content, type=owner.phenomenon_type)), owner)


def generate(
    traces: Iterable[Trace], around: Surroundings, limit: int = PROPOSALS
) -> tuple[tuple[Proposal, ...], tuple[Skipped, ...]]:
    """Proposals for a scope, the surest first, and why the rest gave none. What is proposed counts as known at once."""
    proposals: list[Proposal] = []
    skipped: list[Skipped] = []
    # Of two that are as sure, the one that somebody has put into words.
    for trace in sorted(traces, key=lambda one: (-trace_confidence(one), one.candidate_key is None, key_of(one))):
        found = propose(trace, around)
        if isinstance(found, Skipped):
            skipped.append(found)
        elif len(proposals) >= limit:
            skipped.append(Skipped(found.candidate_key, "limit_reached"))
        else:
            proposals.append(found)
            fresh = found.kind != "patch"
            around = replace(
                around,
                known=(*around.known, *_as_known(found)),
                entries=_held(around) + fresh,
                hinted=_hinted(around, found),
            )
    return tuple(proposals), tuple(skipped)


def _hinted(around: Surroundings, found: Proposal) -> frozenset[str]:
    return around.hinted.union(found.body.selectors if isinstance(found.body, Hint) else ())


def _as_known(found: Proposal) -> tuple[Neighbour, ...]:
    if found.kind != "new_phenomenon" or not isinstance(found.body, Content):
        return ()
    actions = found.body.playbook.actions if found.body.playbook is not None else ()
    return (Neighbour(found.stable_id, found.body.type, found.body.fingerprint.signals, actions),)
