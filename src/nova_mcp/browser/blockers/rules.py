"""Decisions about layers over a page: what may be pressed, in which order, and what came of it. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol

from nova_mcp.browser.commits.commit_points import CommitPoint
from nova_mcp.browser.perceive.scan_values import SeenElement, SeenForm
from nova_mcp.core.page.consent_words import said_by, says_all
from nova_mcp.core.page.control_labels import HUMAN, BlockerKind, ControlFacts, Label
from nova_mcp.errors import RetryAdvice

Method = Literal["reject", "close", "escape", "manage_reject", "hide"]
ConsentChoice = Literal["rejected", "dismissed", "unknown"]
Mode = Literal["conservative", "aggressive"]

# With more of them alike and none that says "all", each speaks for one item of a list.
_MOST_ALIKE: Final = 2
_HARMLESS_FIELDS: Final = frozenset({"checkbox", "radio"})


@dataclass(frozen=True, slots=True)
class Control:
    facts: ControlFacts
    label: Label
    element: SeenElement
    url: str

    @property
    def name(self) -> str:
        return self.facts.texts[0] if self.facts.texts else ""


@dataclass(frozen=True, slots=True)
class Switch:
    """One choice of a second layer: `on` is in favour of the site, `stuck` can't be read for sure."""

    on: bool
    locked: bool
    stuck: bool
    picks: bool
    element: SeenElement | None
    url: str


@dataclass(frozen=True, slots=True)
class Blocker:
    """A layer over the page."""

    kind: BlockerKind
    blocking: bool | None
    name: str
    element: SeenElement
    controls: tuple[Control, ...] = ()
    switches: tuple[Switch, ...] = ()
    closing_accepts: bool = False
    alert: bool = False

    @property
    def node(self) -> int:
        return self.element.node


def speaks_for(blocker: Blocker, label: Label) -> Control | None:
    """The control that does this for the whole layer; None when several do it for parts of it."""
    found = [control for control in blocker.controls if control.label == label]
    if len(found) <= 1 or label != "reject":
        return found[0] if found else None
    for control in found:
        if control.facts.platform == "reject":
            return control
    for control in found:
        if any(says_all(text) for text in control.facts.texts):
            return control
    return found[0] if len(found) <= _MOST_ALIKE else None


# -- the way through one pass


@dataclass(frozen=True, slots=True)
class Press:
    control: Control
    method: Literal["reject", "close"]


@dataclass(frozen=True, slots=True)
class Escape:
    pass


@dataclass(frozen=True, slots=True)
class Manage:
    control: Control


Step = Press | Escape | Manage


def steps_for(blocker: Blocker) -> tuple[Step, ...]:
    """What may be tried, in order. Only a request for consent is answered; other layers are merely closed."""
    if blocker.kind in HUMAN or blocker.alert:
        return ()
    if blocker.kind == "unknown" and blocker.blocking is False:
        return ()
    steps: list[Step] = []
    consent = blocker.kind == "consent"
    if consent and (control := speaks_for(blocker, "reject")) is not None:
        steps.append(Press(control, "reject"))
    if not blocker.closing_accepts:
        if (control := speaks_for(blocker, "close")) is not None:
            steps.append(Press(control, "close"))
        steps.append(Escape())
    if consent and (control := speaks_for(blocker, "manage")) is not None:
        steps.append(Manage(control))
    return tuple(steps)


def may_hide(blocker: Blocker) -> bool:
    return blocker.kind not in HUMAN and not (blocker.kind == "unknown" and blocker.blocking is False)


def all_off(switches: Sequence[Switch]) -> bool:
    """Whether a second layer can be saved: its choices can be read, and nothing optional is on."""
    return bool(switches) and not any((one.on or one.stuck) and not one.locked for one in switches)


def to_turn_off(switches: Sequence[Switch]) -> tuple[Switch, ...] | None:
    """The switches to turn off first; None when one of them can't be."""
    wanted = [one for one in switches if one.on and not one.locked]
    if any(one.stuck for one in switches if not one.locked) or any(one.element is None for one in wanted):
        return None
    return tuple(wanted)


# What else a control may read that refuses consent by its name.
_REFUSING: Final = frozenset({"reject", "decline", "save"})


def commits_something(point: CommitPoint | None, label: Label, kind: BlockerKind, form: SeenForm | None) -> bool:
    """Whether a press would do more than answer the layer.

    Refusing consent may be a form's submit button or be worded as opting out; nothing else is let through.
    """
    if point is None:
        return False
    if point.reads and said_by(point.reads) not in _REFUSING:
        return True
    if kind != "consent" or label not in ("reject", "save"):
        return True
    if point.kind == "delete":
        return label != "reject"
    if point.kind == "confirm":
        return label != "save"
    return point.kind != "submit" or (
        form is not None and any(field.type not in _HARMLESS_FIELDS for field in form.fields)
    )


# -- what came of it


@dataclass(frozen=True, slots=True)
class Done:
    """One thing that was done to a layer."""

    method: Method
    name: str


@dataclass(frozen=True, slots=True)
class Tally:
    """Everything that was found and done."""

    found: int
    dismissed: int
    hidden: int
    remaining: tuple[Blocker, ...]
    choice: ConsentChoice
    dispatched: bool


@dataclass(frozen=True, slots=True)
class Verdict:
    status: Literal["ok", "partial", "blocked"]
    reason_code: str | None
    verified: bool
    retry_advice: RetryAdvice


def matters(blocker: Blocker) -> bool:
    """Whether a layer that is left keeps an agent from the page or still wants an answer."""
    return blocker.kind == "consent" or blocker.blocking is not False


def needs_person(blocker: Blocker) -> bool:
    """Whether nothing that Nova may press would answer it: it is made for people, or it only takes a yes."""
    return blocker.kind in HUMAN or all(isinstance(step, Escape) for step in steps_for(blocker))


def judge(tally: Tally) -> Verdict:
    left = [blocker for blocker in tally.remaining if matters(blocker)]
    advice: RetryAdvice = "check_postcondition_first" if tally.dispatched else "safe_to_retry"
    if not left:
        if tally.hidden:
            return Verdict("partial", "blockers.hidden_only", verified=False, retry_advice=advice)
        return Verdict("ok", None, verified=True, retry_advice="do_not_retry" if tally.dispatched else "safe_to_retry")
    if any(needs_person(blocker) for blocker in left):
        status: Literal["partial", "blocked"] = "partial" if tally.dispatched or tally.dismissed else "blocked"
        return Verdict(status, "blockers.needs_human", verified=False, retry_advice=advice)
    return Verdict("partial", "action.no_effect_observed", verified=False, retry_advice=advice)


def weakest(choices: Sequence[ConsentChoice]) -> ConsentChoice:
    """Several layers may ask; the answer that holds for all of them."""
    if not choices or "unknown" in choices:
        return "unknown"
    return "dismissed" if "dismissed" in choices else "rejected"


def closing_proves(kind: BlockerKind, label: Label) -> bool:
    """Whether a layer's going away shows that the press inside it worked.

    A window of the site itself also goes away when what was asked for failed, unless closing was what was asked for.
    """
    if kind in ("modal", "login_wall", "paywall", "challenge"):
        return label in ("accept", "reject", "close")
    return True


# -- what is known without asking the page


class SeenLayer(Protocol):
    """A layer as it was last seen: enough to tell whether a target lies outside it."""

    @property
    def kind(self) -> str: ...

    @property
    def blocking(self) -> bool | None: ...

    @property
    def inside(self) -> frozenset[int]: ...

    @property
    def element(self) -> SeenElement | None: ...


@dataclass(frozen=True, slots=True)
class NotedLayer:
    kind: str
    blocking: bool | None
    inside: frozenset[int] = frozenset()
    element: SeenElement | None = None


Attempt = tuple[str, int, Mode]


@dataclass(slots=True)
class BlockerMemory:
    """What one tab's documents were last seen to be covered with, and what could not be removed."""

    epoch: int = -1
    layers: tuple[SeenLayer, ...] = ()
    failures: dict[Attempt, int] = field(default_factory=dict)

    def note(self, epoch: int, layers: Sequence[SeenLayer]) -> None:
        self.epoch, self.layers = epoch, tuple(layers)

    def on(self, epoch: int) -> tuple[SeenLayer, ...]:
        """The layers that lie over that document, as far as anybody has looked."""
        return self.layers if epoch == self.epoch else ()

    def over(self, epoch: int, node: int | None) -> str | None:
        """The kind of a layer that covers the page and does not hold this node; None when there is none."""
        if epoch != self.epoch:
            return None
        covering = [layer for layer in self.layers if layer.blocking]
        if not covering or any(node in layer.inside for layer in covering):
            return None
        return covering[0].kind

    def failed(self, attempt: Attempt) -> int:
        """Count a failure; older documents are forgotten."""
        route, epoch, mode = attempt
        self.failures = {key: count for key, count in self.failures.items() if key[1] == epoch}
        self.failures[route, epoch, mode] = count = self.failures.get(attempt, 0) + 1
        return count

    def succeeded(self, attempt: Attempt) -> None:
        self.failures.pop(attempt, None)

    def given_up(self, attempt: Attempt) -> bool:
        return self.failures.get(attempt, 0) >= GIVE_UP_AFTER


GIVE_UP_AFTER: Final = 2
