"""The nouns of live facts: places, observations, facts and what a claim came to."""

from dataclasses import dataclass
from typing import Final, Literal, NewType, TypeAlias

BindingId = NewType("BindingId", str)

Certainty = Literal["certain", "likely", "tentative"]
SourceKind = Literal["agent", "system"]
FactState = Literal["fresh", "confirmed", "conflicted"]
ClaimState = Literal["fresh", "confirmed", "conflicted", "observation_only", "scope_full"]
ServiceKind = Literal["chat", "other"]
# Of an observation in thousandths: sums of decimal fractions would miss the borders of the rules.
Confidence: TypeAlias = int

CONFIDENCE: Final[dict[Certainty, Confidence]] = {"certain": 950, "likely": 750, "tentative": 500}
SYSTEM_SHARE: Final = (4, 5)
FRESH_MS: Final = 5 * 60_000
MOST_CUSTOM: Final = 500


@dataclass(frozen=True, slots=True)
class Service:
    """A web service, known by its address."""

    key: str
    kind: ServiceKind = "other"


@dataclass(frozen=True, slots=True)
class Page:
    """The address of a page as it is kept, and the hash by which two addresses are told apart."""

    url: str
    url_hash: str
    route_key: str


@dataclass(frozen=True, slots=True)
class Scope:
    """Where facts belong: one target on one service. Nothing of it holds for another."""

    target_id: str
    sandbox_id: str
    principal: str
    service_key: str

    @property
    def binding_id(self) -> BindingId:
        # A target's id is never given twice in one store.
        return BindingId(f"{self.target_id}/{self.service_key}")


@dataclass(frozen=True, slots=True)
class Observation:
    """What was noticed at one moment; `value` is canonical JSON text."""

    key: str
    value: str
    certainty: Certainty
    source: SourceKind
    call_id: str
    page: Page
    observed_at_ms: int
    evidence: str | None = None
    perception_id: str | None = None

    @property
    def confidence(self) -> Confidence:
        own = CONFIDENCE[self.certainty]
        return own * SYSTEM_SHARE[0] // SYSTEM_SHARE[1] if self.source == "system" else own


@dataclass(frozen=True, slots=True)
class Fact:
    """One version of what is held true; it is current while `valid_to_ms` is None.

    `corroborated` says that two calls agreed on it; `contradicting` is the strongest doubt that is still open.
    """

    key: str
    version: int
    value: str
    state: FactState
    confidence: Confidence
    certainty: Certainty
    source: SourceKind
    support: int
    contradictions: int
    corroborated: bool
    contradicting: Confidence
    call_id: str
    url: str
    url_hash: str
    first_observed_at_ms: int
    last_observed_at_ms: int
    valid_from_ms: int
    valid_to_ms: int | None = None
    superseded_by: int | None = None


@dataclass(frozen=True, slots=True)
class Added:
    """There was no such fact."""

    fact: Fact


@dataclass(frozen=True, slots=True)
class Agreed:
    """The observation says what is held true already."""

    fact: Fact


@dataclass(frozen=True, slots=True)
class Replaced:
    """A newer value took the place of an older one, which is closed."""

    closed: Fact
    fact: Fact


@dataclass(frozen=True, slots=True)
class Disputed:
    """The observation contradicts the fact and is not strong enough to replace it."""

    fact: Fact


@dataclass(frozen=True, slots=True)
class OnlyObserved:
    """Too weak to touch the fact it contradicts; kept as an observation."""

    fact: Fact


@dataclass(frozen=True, slots=True)
class Full:
    """The scope holds as many custom facts as it may; nothing is kept."""


Decision: TypeAlias = Added | Agreed | Replaced | Disputed | OnlyObserved | Full


@dataclass(frozen=True, slots=True)
class ClaimResult:
    """What became of one claim: `value` is JSON text, the claimed one where no fact took it."""

    key: str
    value: str
    state: ClaimState
    is_new: bool
    superseded: bool
    stored: bool
    warning: str | None = None
