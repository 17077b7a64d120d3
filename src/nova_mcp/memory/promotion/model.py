"""The nouns of promotion: evidence as the gates see it, what they decide, and what is written down about it."""

from dataclasses import dataclass, field
from typing import Final, Literal

from nova_mcp.memory.journal.evidence import Direction, ObservationKind, Severity
from nova_mcp.memory.knowledge.model import FailureRun, Health, Level

# Raised whenever the same steps would come to other levels; a snapshot of another version can't be continued.
RULES_VERSION: Final = 2
HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS

TransitionKind = Literal["l0_to_l1", "l1_to_l2", "demotion", "deprecation", "revive"]
# The numbers that an answer to a consent banner has to reach: those of every entry, or stricter ones by choice.
ConsentGates = Literal["standard", "strict"]
# Where an observation came from: an action, a look that touched nothing, or an agent's report about an action.
Source = Literal["use", "check", "report"]
RejectReason = Literal["not_applicable", "not_found"]
EventKind = Literal[
    "l0_to_l1", "l1_to_l2", "demotion", "deprecation", "revive", "learn_generate", "learn_generate_patch"
]


# -- evidence


@dataclass(frozen=True, slots=True)
class Mark:
    """One observation that is attributed to an entry; `seq` is its place in the order of the journal.

    A proof that took the place of a mere sighting stands where it happened; `replaced` is the call of that sighting,
    which counts no longer.
    """

    seq: int
    at_ms: int
    kind: ObservationKind
    outcome: Direction
    call_id: str
    session_id: str
    severity: Severity = 0
    source: Source = "use"
    severe: bool = False
    replaced: str | None = None


@dataclass(frozen=True, slots=True)
class EvidenceCounts:
    """What a decision was based on."""

    support: int = 0
    successes: int = 0
    failures: int = 0
    success_sessions: int = 0
    recent_drifts: int = 0
    recent_hard_drifts: int = 0
    consecutive_failures: int = 0
    last_drift_at_ms: int | None = None


# -- entries


@dataclass(frozen=True, slots=True)
class Entry:
    """A phenomenon or hint as promotion sees it; a shadow revision of an active one is an entry of its own.

    `unsettled_at_ms` is when it was last demoted or deprecated, `revised_at_ms` when its content last changed.
    """

    stable_id: str
    host: str
    phenomenon_type: str
    level: Level = 0
    revision: int = 1
    deprecated: bool = False
    deprecated_reason: str | None = None
    disproven: bool = False
    unconfirmed_selectors: int = 0
    created_at_ms: int = 0
    unsettled_at_ms: int | None = None
    revised_at_ms: int | None = None
    last_hard_drift_at_ms: int | None = None
    run: FailureRun = field(default_factory=FailureRun)
    health: Health = field(default_factory=Health)


# -- decisions


@dataclass(frozen=True, slots=True)
class Gate:
    """One condition: what it asks for, what there is, and how much is missing."""

    name: str
    required: float
    observed: float
    passed: bool
    delta_to_pass: float


@dataclass(frozen=True, slots=True)
class Promote:
    """An entry may rise: from candidate to shadow, from shadow to active, or back from retirement."""

    kind: TransitionKind
    from_level: Level
    to_level: Level
    gates: tuple[Gate, ...]
    counts: EvidenceCounts


@dataclass(frozen=True, slots=True)
class Lower:
    """An entry has to step down or retire."""

    kind: TransitionKind
    from_level: Level
    to_level: Level
    gates: tuple[Gate, ...]
    counts: EvidenceCounts


@dataclass(frozen=True, slots=True)
class Hold:
    """The transition applies to the entry, and the evidence does not carry it."""

    kind: TransitionKind
    from_level: Level
    gates: tuple[Gate, ...]
    counts: EvidenceCounts

    @property
    def missing(self) -> tuple[Gate, ...]:
        return tuple(gate for gate in self.gates if not gate.passed)

    @property
    def reason(self) -> str:
        return self.missing[0].name


@dataclass(frozen=True, slots=True)
class Reject:
    """The transition is not one for this entry."""

    kind: TransitionKind | None
    reason: RejectReason
    from_level: Level = 0


Approval = Promote | Lower
Verdict = Promote | Lower | Hold | Reject


@dataclass(frozen=True, slots=True)
class LearningEvent:
    """What the promotion log keeps of a decision; a rejection stays where it was."""

    stable_id: str
    host: str
    from_level: Level
    to_level: Level
    reason_kind: EventKind
    created_at_ms: int
    gates: tuple[Gate, ...] = ()
    counts: EvidenceCounts = field(default_factory=EvidenceCounts)
    rejection: str | None = None
    rules_version: int = RULES_VERSION


@dataclass(frozen=True, slots=True)
class Proof:
    """How an entry can be proven, as advice to an agent. `possible` is False where no use can prove it as it stands;
    `unseen` are its selectors that nobody has seen on a page."""

    advice: str = "act through its control with expect (nova.click_selector), so that the page proves the result."
    possible: bool = True
    unseen: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why an entry stands where it stands, and what would move it."""

    transition: TransitionKind
    summary: str
    gates: tuple[Gate, ...]
    remediation: tuple[str, ...]


# -- clusters and opportunities


@dataclass(frozen=True, slots=True, order=True)
class ClusterKey:
    """What observations of a site have in common."""

    host: str
    key: str


@dataclass(frozen=True, slots=True)
class ClusterDay:
    """The counters of one cluster and one day; sessions are kept up to a bound, more say nothing more."""

    day: int
    kinds: tuple[tuple[ObservationKind, int], ...] = ()
    successes: int = 0
    failures: int = 0
    drifts: int = 0
    sessions: tuple[str, ...] = ()
    last_at_ms: int = 0


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster over the days that still count."""

    key: ClusterKey
    dominant_kind: ObservationKind
    support: int
    successes: int
    failures: int
    drifts: int
    distinct_sessions: int
    last_at_ms: int


OpportunityKind = ObservationKind | Literal["silent_verify_drift", "active_failure_drift"]


@dataclass(frozen=True, slots=True)
class Opportunity:
    """A pattern worth a look; the parts of `breakdown` add up to `score`."""

    host: str
    candidate_key: str
    dominant_kind: OpportunityKind
    support: int
    successes: int
    failures: int
    distinct_sessions: int
    score: float
    breakdown: tuple[tuple[str, float], ...]
    suggestion: str
    last_at_ms: int
