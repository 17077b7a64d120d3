"""The nouns that profiles and runs share: what is to be done, when it is done, and how that is proven."""

from dataclasses import dataclass
from typing import Final, Literal, get_args

from nova_mcp.core.values import Json

CoverageMode = Literal["exhaustive", "threshold", "exploratory"]
UnitKind = Literal["page", "url", "selector", "file", "item", "state", "modal", "role"]
StopMetric = Literal["all_units_processed", "checked_units", "distinct_findings"]
EvidencePolicyMode = Literal["none", "require_observed", "require_strong"]
UnknownAs = Literal["gap", "pass"]
TaskKind = Literal[
    "content_audit",
    "compliance",
    "ui_smoke",
    "exploratory",
    "accessibility",
    "legal",
    "security_review",
    "route_inventory",
]
KindPolicy = Literal["all", "min3", "min2"]
RunStatus = Literal["pending", "active", "completed", "aborted", "failed"]
UnitStatus = Literal["discovered", "checked", "excluded", "blocked", "failed"]
DiscoveryState = Literal["unknown", "partial", "frozen"]
CheckState = Literal["pending", "satisfied", "failed", "waived", "not_applicable"]
AssertionType = Literal["empty_result", "has_results", "field_equals", "field_match"]
StepState = Literal["passed", "failed", "inconclusive", "skipped"]
Severity = Literal["info", "low", "medium", "high"]
GateStatus = Literal["not_applicable", "passed", "warned", "shadow_blocked", "blocked"]
ScanId = Literal["nova_full_page_text_v1", "nova_i18n_spellcheck_v1", "nova_structured_dom_v1"]

TASK_KINDS: Final = get_args(TaskKind)
SCAN_IDS: Final[tuple[ScanId, ...]] = get_args(ScanId)
OPEN: Final[frozenset[RunStatus]] = frozenset({"pending", "active"})
URL_KINDS: Final[frozenset[UnitKind]] = frozenset({"page", "url"})
PASSING: Final[frozenset[CheckState]] = frozenset({"satisfied", "waived", "not_applicable"})

# What a member did shortly before it joined still belongs to the run.
BEFORE_JOINING_MS: Final = 30_000

MOST_UNITS: Final = 5_000
MOST_DISCOVERED: Final = 500
MOST_UPDATES: Final = 500
MOST_FINDINGS: Final = 100
MOST_CHECK_UPDATES: Final = 50
MOST_GUIDANCE: Final = 50
MOST_CHECKS: Final = 50
MOST_EXCEPTIONS: Final = 50
MOST_STEPS: Final = 20
MOST_PROFILE_BYTES: Final = 65_536
MOST_RESUME_BYTES: Final = 8_192
MOST_SCOPE_BYTES: Final = 8_192
MOST_CHECKPOINT_BYTES: Final = 4_096


@dataclass(frozen=True, slots=True)
class EvidencePolicy:
    """How much of what is claimed has to be seen."""

    mode: EvidencePolicyMode
    max_gap_percent: int = 0
    treat_unknown_as: UnknownAs = "gap"


@dataclass(frozen=True, slots=True)
class CompletionCondition:
    """When a run counts as done."""

    coverage_mode: CoverageMode
    unit_kind: UnitKind
    stop_metric: StopMetric
    stop_value: int | None
    evidence: EvidencePolicy

    @property
    def counts_urls(self) -> bool:
        return self.unit_kind in URL_KINDS

    @property
    def exhaustive(self) -> bool:
        return self.coverage_mode == "exhaustive"


@dataclass(frozen=True, slots=True)
class Check:
    check_id: str
    description: str
    required: bool = True


@dataclass(frozen=True, slots=True)
class VerificationStep:
    """A call the agent has to make, and what has to hold of its result."""

    step_id: str
    tool: str
    description: str
    assertion_type: AssertionType
    args: dict[str, Json] | None = None
    gate: Literal["fast", "deep"] = "fast"
    required: bool = True
    target_ref: str | None = None
    expected_value: Json = None
    page_url: str | None = None


@dataclass(frozen=True, slots=True)
class Guidance:
    guidance_id: str
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class TaskContent:
    """What a recurring task needs, as a profile keeps it and a run begins with it."""

    task_type: str
    display_name: str
    goal: str
    completion_condition: CompletionCondition
    domain: str | None = None
    platform: str | None = None
    task_kind: TaskKind | None = None
    stable_guidance: tuple[Guidance, ...] = ()
    mandatory_checks: tuple[Check, ...] = ()
    known_exceptions: tuple[str, ...] = ()
    verification: tuple[VerificationStep, ...] = ()
