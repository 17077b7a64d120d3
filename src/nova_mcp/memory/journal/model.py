"""The nouns of finalizing: what a work context learned, what is decided about it, and the job that follows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from nova_mcp.core.values import Json

DecisionKind = Literal["commit", "skip"]
DecisionSource = Literal["auto", "caller"]
SkipReason = Literal[
    "no_candidates", "no_verified_candidates", "evidence_below_threshold", "context_expired", "learn_floors_unmet"
]
JobType = Literal["finalize.noop", "pks.domain.save", "finalize.memory.promote"]
JobState = Literal["pending", "leased", "done", "failed"]
CandidateStatus = Literal["unverified", "verified", "disproven"]
CandidateOrigin = Literal["semantic", "diagnostic"]
StatName = Literal[
    "candidatesTotal",
    "candidatesVerified",
    "candidatesPromotable",
    "curatedUpserts",
    "evidenceMinScore",
    "evidenceAvgScore",
]


@dataclass(frozen=True, slots=True)
class EvidenceStrength:
    """How many candidates have weak, medium and strong evidence."""

    weak: int = 0
    medium: int = 0
    strong: int = 0


@dataclass(frozen=True, slots=True)
class CandidateEvidence:
    """One candidate as finalizing looks at it."""

    candidate_id: int
    status: CandidateStatus
    evidence_score: float
    origin: CandidateOrigin = "semantic"
    failed_since_verified: bool = False


@dataclass(frozen=True, slots=True)
class FinalizeSummary:
    """What a work context has gathered."""

    candidates: tuple[CandidateEvidence, ...] = ()


@dataclass(frozen=True, slots=True)
class FinalizeStats:
    """The figures of a finalize; the scores are unknown where nothing was considered."""

    candidates_total: int = 0
    candidates_verified: int = 0
    candidates_promotable: int = 0
    curated_upserts: int = 0
    evidence_min_score: float | None = None
    evidence_avg_score: float | None = None
    strength: EvidenceStrength = EvidenceStrength()

    def named(self) -> dict[StatName, int | float | None]:
        """As answers and the store spell them; the strength stands beside them."""
        return {
            "candidatesTotal": self.candidates_total,
            "candidatesVerified": self.candidates_verified,
            "candidatesPromotable": self.candidates_promotable,
            "curatedUpserts": self.curated_upserts,
            "evidenceMinScore": self.evidence_min_score,
            "evidenceAvgScore": self.evidence_avg_score,
        }


ClaimedStats = Mapping[StatName, int | float]


@dataclass(frozen=True, slots=True)
class WorkContext:
    """A claim as learning sees it: whose work on which target evidence belongs to."""

    task_id: str
    target_id: str
    sandbox_id: str
    principal: str
    agent_id: str
    claimed_at_ms: int


@dataclass(frozen=True, slots=True)
class Coverage:
    """How far Learn Mode has come: counters that were asked for and those that were reached."""

    required: Mapping[str, int]
    current: Mapping[str, int]

    @property
    def floors_met(self) -> bool:
        return all(self.current.get(name, 0) >= floor for name, floor in self.required.items())


@dataclass(frozen=True, slots=True)
class FinalizeOrder:
    """What the caller of a release asks for; everything it leaves open Nova decides."""

    decision: DecisionKind | None = None
    reason_code: str | None = None
    reason_text: str | None = None
    job_type: JobType | None = None
    payload: Mapping[str, Json] | None = None
    claimed: ClaimedStats = field(default_factory=dict)
    coverage_exhausted: bool = False
    coverage_reason: str | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of the learning of one work context."""

    kind: DecisionKind
    source: DecisionSource
    reason_code: str | None = None


@dataclass(frozen=True, slots=True)
class OutboxJob:
    """Work that follows a commit; its key makes doing it twice the same as doing it once."""

    job_id: str
    job_key: str
    job_type: JobType
    payload: Mapping[str, Json]
    state: JobState = "pending"


@dataclass(frozen=True, slots=True)
class Conclusion:
    """Everything a finalize writes and tells."""

    decision: Decision
    stats: FinalizeStats
    mismatches: tuple[StatName, ...] = ()
    job: OutboxJob | None = None
