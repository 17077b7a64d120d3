"""The nouns of generating: what was seen of one pattern, what could be stored about it, or why nothing can."""

from dataclasses import dataclass
from typing import Literal

from nova_mcp.core.page.control_labels import BlockerKind
from nova_mcp.memory.journal.evidence import Direction, ObservationKind
from nova_mcp.memory.journal.model import CandidateOrigin, CandidateStatus
from nova_mcp.memory.knowledge.model import Action, Content, HintKind, PhenomenonType, Polarity, Signal, StableId

ProposalKind = Literal["new_phenomenon", "domain_hint", "patch"]
SkipReason = Literal[
    "insufficient_support",
    "no_success",
    "no_pattern",
    "no_selector",
    "diagnostic_candidate",
    "disproven",
    "accept_refused",
    "commit_control",
    "held_for_semantic_learning",
    "already_covered",
    "entry_retired",
    "scope_full",
    "limit_reached",
]


@dataclass(frozen=True, slots=True)
class Glimpse:
    """One observation with what it shows about the page; what was not seen stays empty.

    `failed_selector` is the first choice that did not work where `selector` did; `layers` are the kinds of covering
    layers that were there; `items` how many elements of the same build the selector's structure has;
    `led_to` the route that the action ended on, `commits` says that the control sends, buys, deletes or the like.
    """

    kind: ObservationKind
    outcome: Direction
    at_ms: int
    call_id: str
    session_id: str
    selector: str | None = None
    failed_selector: str | None = None
    route: str | None = None
    led_to: str | None = None
    layers: tuple[BlockerKind, ...] = ()
    polarity: Polarity | None = None
    items: int = 0
    signals: tuple[Signal, ...] = ()
    commits: bool = False


@dataclass(frozen=True, slots=True)
class Trace:
    """Everything that was seen of one cluster, oldest first."""

    host: str
    key: str
    glimpses: tuple[Glimpse, ...]
    candidate_key: str | None = None
    target_stable_id: str | None = None
    status: CandidateStatus = "unverified"
    origin: CandidateOrigin = "semantic"


@dataclass(frozen=True, slots=True)
class Neighbour:
    """An entry of the scope, as far as covering and patching are concerned."""

    stable_id: StableId
    phenomenon_type: PhenomenonType
    signals: tuple[Signal, ...]
    actions: tuple[Action, ...] = ()
    retired: bool = False


@dataclass(frozen=True, slots=True)
class Hint:
    """A passive rule for reading, taken from what was read."""

    kind: HintKind
    selectors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Draft:
    """What a heuristic makes of a trace: content for an entry, or a hint."""

    reason: str
    body: Content | Hint
    replaces: str | None = None


@dataclass(frozen=True, slots=True)
class Proposal:
    """A candidate or a patch, before anything is written. New ones start at the lowest level."""

    kind: ProposalKind
    host: str
    candidate_key: str
    stable_id: StableId
    confidence: float
    reason: str
    body: Content | Hint
    target_stable_id: StableId | None = None
    # The selector of the patched entry that the first one of the body takes the place of.
    replaces: str | None = None

    @property
    def phenomenon_type(self) -> PhenomenonType | None:
        return self.body.type if isinstance(self.body, Content) else None

    @property
    def hint_kind(self) -> HintKind | None:
        return self.body.kind if isinstance(self.body, Hint) else None


@dataclass(frozen=True, slots=True)
class Skipped:
    """Why nothing comes of a pattern: a reason of generating, or the code by which writing refused it."""

    candidate_key: str
    reason: SkipReason | str
