"""Applying: whether a playbook may run on this page, and whether each step still meets what it was learned on; pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from nova_mcp.core.page.control_labels import ControlFacts, label_for
from nova_mcp.memory.knowledge.drift import GateDecision, GateMode, drift_problem, gate
from nova_mcp.memory.knowledge.health import state
from nova_mcp.memory.knowledge.matching.fingerprints import Match
from nova_mcp.memory.knowledge.model import (
    SHADOW,
    Action,
    Content,
    ElementPrint,
    Phenomenon,
    PhenomenonType,
    Playbook,
    Problem,
    ValueSource,
    VerifyStep,
)
from nova_mcp.memory.knowledge.repair.print_similarity import TELLING, Likeness, excludes, family, likeness
from nova_mcp.memory.knowledge.writes.content_rules import UNREAD

DEFAULT_STEPS: Final = 10
LOOKS_SAME: Final = 0.50
# Never tried out: what they decide can't be taken back.
NO_TRIAL: Final[frozenset[PhenomenonType]] = frozenset({"consent_cmp", "login_wall"})
_KEPT: Final = 0.60


@dataclass(frozen=True, slots=True)
class Wish:
    """How a playbook was asked for."""

    trial: bool = False
    values: frozenset[str] = frozenset()
    max_steps: int = DEFAULT_STEPS
    drift_mode: GateMode = "refuse"


@dataclass(frozen=True, slots=True)
class Step:
    index: int
    action: Action

    @property
    def selectors(self) -> tuple[str, ...]:
        first = () if self.action.selector is None else (self.action.selector,)
        return (*first, *self.action.fallbacks)


@dataclass(frozen=True, slots=True)
class Plan:
    """What would be done, in order, and how it is proven. Verification never falls back on other selectors."""

    steps: tuple[Step, ...]
    verify: tuple[VerifyStep, ...]
    drift: GateDecision
    trial: bool
    cut: bool = False


@dataclass(frozen=True, slots=True)
class NotApplied:
    """Nothing was touched; a situation that isn't there is no failure of the entry."""

    problem: Problem


@dataclass(frozen=True, slots=True)
class Go:
    selector: str | None
    used_fallback: bool = False


@dataclass(frozen=True, slots=True)
class Stop:
    problem: Problem


@dataclass(frozen=True, slots=True)
class LiveTarget:
    """What a step's selector has found on the page, right before it is used; `first` when nobody has seen it before and
    it is being tried out."""

    seen: ElementPrint
    control: ControlFacts = UNREAD
    # Why using it would commit something; None where it would not.
    commits: str | None = None
    first: bool = False


def _standing(phenomenon: Phenomenon, wish: Wish, now_ms: int) -> Problem | None:
    name = phenomenon.stable_id
    if phenomenon.deprecated or phenomenon.level < SHADOW:
        return Problem("pks.not_active", f"{name} is not active.")
    if not phenomenon.may_guide:
        if not wish.trial:
            return Problem("pks.not_active", f"{name} is still in review; trial:true tries it out.")
        if phenomenon.content.type in NO_TRIAL:
            return Problem("pks.trial_not_allowed", "Consent and sign-in are never tried out.")
    if state(phenomenon.health, now_ms) == "quarantined":
        return Problem("pks.quarantined", f"{name} failed too often; confirm it with revalidate first.")
    return None


def _accepts(action: Action) -> bool:
    return action.polarity == "accept"


def inapplicable(content: Content) -> Problem | None:
    """Why an entry of that content is never applied, on whatever page; None when it may be."""
    playbook = content.playbook
    if playbook is None or not playbook.actions or playbook.policy in ("ignore", "warn"):
        return Problem("pks.empty_playbook", "This entry has nothing to do.")
    if playbook.policy == "accept" or any(map(_accepts, playbook.actions)):
        return Problem("pks.accept_refused", "Nova never gives consent.")
    return None


def _contents(phenomenon: Phenomenon, wish: Wish) -> Problem | None:
    playbook = phenomenon.content.playbook
    problem = inapplicable(phenomenon.content)
    return problem if problem is not None or playbook is None else _values_problem(playbook, wish)


def _values_problem(playbook: Playbook, wish: Wish) -> Problem | None:
    """All that is missing at once, and which of it only a person can say."""
    missing = [one for one in brought(playbook) if one not in wish.values]
    if not missing:
        return None
    told = f"values must hold {_quoted(missing)}."
    asked = [one for one in missing if one in brought(playbook, ("user_prompt",))]
    if asked:
        told += f" {_quoted(asked)} {'is' if len(asked) == 1 else 'are'} for a person to say: ask your user."
    return Problem("pks.value_required", told)


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def brought(playbook: Playbook | None, sources: Sequence[ValueSource] = ("agent_supplied", "user_prompt")) -> list[str]:
    """The names of the values that whoever applies a playbook has to bring along, in the order they are used in."""
    actions = () if playbook is None else playbook.actions
    return list(dict.fromkeys(one.value_name for one in actions if one.value_source in sources))


def plan(phenomenon: Phenomenon, found: Match, wish: Wish, now_ms: int) -> Plan | NotApplied:
    """The playbook as steps, or the first thing that stands against it."""
    problem = _standing(phenomenon, wish, now_ms) or _contents(phenomenon, wish)
    if problem is None and not found.reached:
        told = f"{phenomenon.stable_id} is not on this page ({found.confidence:.2f} of {found.min_confidence:.2f})."
        problem = Problem("pks.not_present", told)
    problem = problem or drift_problem(phenomenon, wish.drift_mode)
    playbook = phenomenon.content.playbook
    if problem is not None or playbook is None:
        return NotApplied(problem or Problem("pks.empty_playbook", "This entry has nothing to do."))
    steps = tuple(Step(index, action) for index, action in enumerate(playbook.actions))
    return Plan(
        steps=steps[: wish.max_steps],
        verify=playbook.verify,
        drift=gate(phenomenon.drift_debt, wish.drift_mode),
        trial=wish.trial and not phenomenon.may_guide,
        cut=len(steps) > wish.max_steps,
    )


def choose(step: Step, matches: Mapping[str, int]) -> Go | Stop:
    """The first selector that names exactly one element."""
    if not step.selectors:
        return Go(None)
    for index, selector in enumerate(step.selectors):
        if matches.get(selector, 0) == 1:
            return Go(selector, used_fallback=index > 0 or step.action.selector is None)
    told = f"None of the selectors of step {step.index + 1} names one element on this page."
    return Stop(Problem("pks.element_changed", told))


def still_looks_like(learned: ElementPrint, seen: ElementPrint) -> Likeness | None:
    """How alike, or None when it is another element.

    Being found by an id says nothing here, because that is how it was found: what people see has to have stayed, if
    there was anything to see.
    """
    if excludes(learned, seen) is not None:
        return None
    found = likeness(learned, seen)
    if found.score < LOOKS_SAME:
        return None
    shown = [getattr(learned, name) for name in ("text", "aria_label")]
    if any(shown):
        labels = [found.of(name) or 0.0 for name, value in zip(("text", "aria_label"), shown, strict=True) if value]
        return found if max(labels) >= _KEPT else None
    kept = [share for name in TELLING if (share := found.of(name)) is not None]
    return found if not kept or max(kept) >= _KEPT else None


def takes_text(seen: ElementPrint) -> bool:
    """Whether a key writes there, or goes nowhere at all, instead of pressing what has the focus."""
    return family(seen) == "entry" or seen.tag in ("body", "html")


def _says_what_it_should(action: Action, control: ControlFacts) -> bool:
    """For templates, which were written without a page: the control itself has to say what pressing it decides."""
    return action.polarity in ("reject", "manage") and label_for(control, "consent") == action.polarity


def another_element(step: Step, seen: ElementPrint) -> Problem | None:
    """A step that acts meets the element it was learned on, or nothing."""
    action = step.action
    if not action.mutates or action.element is None or still_looks_like(action.element, seen) is not None:
        return None
    told = f"Step {step.index + 1} would meet another element than the one it was learned on."
    return Problem("pks.element_changed", told)


def before_step(step: Step, target: LiveTarget, kind: PhenomenonType, *, has_contract: bool) -> Problem | None:
    """The last look before a step touches the page; None when it may."""
    action = step.action
    if (problem := another_element(step, target.seen)) is not None:
        return problem
    decides = kind == "consent_cmp" or action.polarity is not None
    if decides and label_for(target.control, "consent") == "accept":
        return Problem("pks.accept_refused", "This control gives consent; Nova never does.")
    if target.commits is not None and not has_contract:
        told = f"Step {step.index + 1} {target.commits}; say what should come of it with a contract."
        return Problem("guarded_commit.missing_contract", told)
    if action.element is None and not target.first and not _says_what_it_should(action, target.control):
        told = f"Nobody has noted what the element of step {step.index + 1} looked like, so it can't be told apart."
        return Problem("pks.element_changed", told)
    return None


def all_proven(results: Sequence[bool | None]) -> bool:
    """A playbook has worked only if every verify step passed; without any, nothing is proven."""
    return bool(results) and all(one is True for one in results)


def worked(before: Sequence[bool | None], after: Sequence[bool | None]) -> bool:
    """Whether the playbook has brought its result about; one that stood before anything was done proves nothing."""
    return all_proven(after) and not all_proven(before)
