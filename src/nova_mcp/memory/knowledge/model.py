"""The nouns of the knowledge store: scopes, phenomena with fingerprint and playbook, health, hints, platforms."""

from dataclasses import dataclass
from typing import Final, Literal, NewType

from nova_mcp.verification.model import Assertion

ScopeName = NewType("ScopeName", str)
StableId = NewType("StableId", str)
HintId = NewType("HintId", str)
PlatformId = NewType("PlatformId", str)

Trust = Literal["unknown", "low", "medium", "high"]
Level = Literal[0, 1, 2]
PhenomenonType = Literal[
    "consent_cmp",
    "modal",
    "login_wall",
    "paywall",
    "layout_shift",
    "popover_open",
    "nav_link",
    "native_dialog",
    "spa_route",
    "custom",
]
SignalKind = Literal["dom", "vendor", "text", "interaction", "layout"]
PlaybookPolicy = Literal["dismiss", "reject_preferred", "accept", "ignore", "warn", "custom"]
ActionKind = Literal["click", "type", "press_key", "wait", "dismiss"]
ValueSource = Literal["agent_supplied", "secret", "user_prompt"]
Polarity = Literal["reject", "accept", "manage", "navigate", "noop"]
VerifyKind = Literal[
    "absent", "obstruction_cleared", "scroll_unlocked", "topmost_clickability_restored", "present", "fact"
]
HealthState = Literal["healthy", "watch", "quarantined"]
HintKind = Literal["ad_container", "noise_region", "result_item"]
HintMode = Literal["ancestor", "item_root"]
AliasKind = Literal["script_host", "dom_marker"]

CANDIDATE: Final[Level] = 0
SHADOW: Final[Level] = 1
ACTIVE: Final[Level] = 2

MAX_PHENOMENA: Final = 200
MAX_SIGNALS: Final = 32
MAX_ACTIONS: Final = 10
MAX_VERIFY_STEPS: Final = 10
MAX_FALLBACKS: Final = 5
MAX_HINT_SELECTORS: Final = 10
DEFAULT_MIN_CONFIDENCE: Final = 0.6


@dataclass(frozen=True, slots=True)
class Signal:
    """One sign by which a situation is known; only texts depend on the language of the page."""

    kind: SignalKind
    match: str
    locale: str | None = None


@dataclass(frozen=True, slots=True)
class Fingerprint:
    signals: tuple[Signal, ...]
    min_confidence: float = DEFAULT_MIN_CONFIDENCE


@dataclass(frozen=True, slots=True)
class Context:
    """Where an entry holds; what is not set holds everywhere."""

    device: str | None = None
    locale: str | None = None
    auth: str | None = None
    routes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ElementPrint:
    """What an element looked like: page-derived data, bounded in length, never an instruction.

    `text` is its visible label, `shape` its path by tags alone, `place` its centre as shares of the page, `picture`
    what the icon or image is called that it shows instead of a label.
    """

    tag: str
    type: str = ""
    name: str = ""
    text: str = ""
    href: str = ""
    id: str = ""
    testid: str = ""
    role: str = ""
    aria_label: str = ""
    classes: tuple[str, ...] = ()
    neighbours: tuple[str, ...] = ()
    shape: str = ""
    place: tuple[float, float] | None = None
    picture: str = ""


@dataclass(frozen=True, slots=True)
class Action:
    """One step of a playbook. Inputs name where their value comes from; a value is never stored."""

    kind: ActionKind
    selector: str | None = None
    fallbacks: tuple[str, ...] = ()
    element: ElementPrint | None = None
    value_source: ValueSource | None = None
    value_name: str = ""
    key: str = ""
    wait_ms: int = 0
    polarity: Polarity | None = None

    @property
    def mutates(self) -> bool:
        return self.kind != "wait"


@dataclass(frozen=True, slots=True)
class VerifyStep:
    kind: VerifyKind
    selector: str | None = None
    threshold: float | None = None
    assertion: Assertion | None = None


@dataclass(frozen=True, slots=True)
class Playbook:
    policy: PlaybookPolicy
    actions: tuple[Action, ...] = ()
    verify: tuple[VerifyStep, ...] = ()


@dataclass(frozen=True, slots=True)
class Content:
    """What an agent may write of an entry; everything else is earned."""

    type: PhenomenonType
    fingerprint: Fingerprint
    playbook: Playbook | None = None
    context: Context = Context()


@dataclass(frozen=True, slots=True)
class DayCount:
    """What one day brought. `run` counts how often quarantine was left before, so that a new start is judged alone."""

    day: int
    run: int = 0
    successes: int = 0
    failures: int = 0


@dataclass(frozen=True, slots=True)
class Health:
    """How an entry has done; rates and state depend on the time they are asked for."""

    attempts: int = 0
    successes: int = 0
    failures: int = 0
    consecutive_failures: int = 0
    severe_misfires: int = 0
    silent_verify_fails: int = 0
    recent: tuple[DayCount, ...] = ()
    run: int = 0
    quarantined_at_ms: int | None = None
    # The occasions of clean confirmations since; the same occasion counts once.
    clean: tuple[str, ...] = ()
    last_success_at_ms: int | None = None
    last_failure_at_ms: int | None = None
    last_drift_at_ms: int | None = None
    last_confirmed_at_ms: int | None = None


@dataclass(frozen=True, slots=True)
class FailureRun:
    """Failures since the last success. Reports repeat what uses have shown, so the longer of both counts."""

    uses: int = 0
    reports: int = 0
    checks: int = 0
    last_call_id: str | None = None

    @property
    def length(self) -> int:
        return max(self.uses, self.reports) + self.checks


@dataclass(frozen=True, slots=True)
class Standing:
    """What decides about an entry's level besides the level itself.

    `unsettled_at_ms` is when it was last demoted or deprecated, `revised_at_ms` when its content last changed.
    """

    unsettled_at_ms: int | None = None
    revised_at_ms: int | None = None
    last_hard_drift_at_ms: int | None = None
    disproven: bool = False
    run: FailureRun = FailureRun()


@dataclass(frozen=True, slots=True)
class Phenomenon:
    """One revision of an entry. `baseline` is what held when it was written and never changes afterwards."""

    stable_id: StableId
    content: Content
    level: Level
    created_at_ms: int
    updated_at_ms: int
    revision: int = 1
    deprecated_reason: str | None = None
    health: Health = Health()
    baseline: frozenset[Signal] = frozenset()
    drift_debt: float = 0.0
    unconfirmed: tuple[str, ...] = ()
    standing: Standing = Standing()

    @property
    def deprecated(self) -> bool:
        return self.deprecated_reason is not None

    @property
    def may_guide(self) -> bool:
        return self.level == ACTIVE and not self.deprecated

    @property
    def unseen(self) -> tuple[str, ...]:
        """Selectors that have to be seen before the entry may guide: those that no page has confirmed, and controls
        whose looks are unknown, which nothing could tell apart from others."""
        playbook = self.content.playbook
        actions = () if playbook is None else playbook.actions
        plain = (one.selector for one in actions if one.mutates and one.element is None and one.selector is not None)
        return tuple(dict.fromkeys((*self.unconfirmed, *plain)))


@dataclass(frozen=True, slots=True)
class Revisions:
    """What one stable id stands for: the revision that counts, and a newer one that has to earn its place."""

    current: Phenomenon
    pending: Phenomenon | None = None

    @property
    def newest(self) -> Phenomenon:
        return self.pending or self.current


@dataclass(frozen=True, slots=True)
class DomainHint:
    """A passive rule for reading a site's pages; levels and gates as for a phenomenon."""

    hint_id: HintId
    kind: HintKind
    selectors: tuple[str, ...]
    created_at_ms: int
    updated_at_ms: int
    mode: HintMode = "ancestor"
    extract: tuple[tuple[str, str], ...] = ()
    enumerate_max: int = 8
    level: Level = SHADOW
    revision: int = 1
    deprecated_reason: str | None = None
    health: Health = Health()
    standing: Standing = Standing()

    @property
    def deprecated(self) -> bool:
        return self.deprecated_reason is not None

    @property
    def may_guide(self) -> bool:
        return self.level == ACTIVE and not self.deprecated


@dataclass(frozen=True, slots=True)
class Scope:
    """A host with everything known of it; `content_rev` moves only when something a reader sees has changed."""

    name: ScopeName
    content_rev: int = 0
    context: Context = Context()
    service_categories: tuple[str, ...] = ()
    framework_markers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Alias:
    """By what else a platform is known: the host of its script, or a mark in the page."""

    kind: AliasKind
    value: str


@dataclass(frozen=True, slots=True)
class Platform:
    """A vendor met on many sites."""

    stable_id: PlatformId
    display_name: str
    patterns: tuple[Signal, ...] = ()
    aliases: tuple[Alias, ...] = ()
    homepage_url: str | None = None
    built_in: bool = False
    refusing: tuple[str, ...] = ()
    roots: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Problem:
    """Why something is not taken, by the reason code it is answered with."""

    code: str
    message: str
    where: str = ""
