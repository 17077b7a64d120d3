"""What calls on a run come to, and what of it is kept so that a call sent again gets the same answer; pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from nova_mcp.core.values import Json
from nova_mcp.evidence.grades import Claimed, EvidenceSummary, Grade
from nova_mcp.evidence.model import CallRecord
from nova_mcp.memory.tasks.model import CheckState, DiscoveryState, RunStatus
from nova_mcp.memory.tasks.runs.completion import CoverageTally, Reason, StepResult, Tally, UrlCoverage

SNAPSHOT_VERSION: Final = 1
COVERAGE_GATE: Final = "task.url_coverage"


@dataclass(frozen=True, slots=True)
class Proof:
    """How a run stands, apart from its units: what is claimed, what was seen, what was covered."""

    tally: Tally
    evidence: EvidenceSummary
    coverage: UrlCoverage


@dataclass(frozen=True, slots=True)
class Progressed:
    instance_rev: int
    status: RunStatus
    discovery: DiscoveryState
    tally: Tally
    reason_code: str | None
    duplicate: bool = False


@dataclass(frozen=True, slots=True)
class WaivedCheck:
    check_id: str
    state: CheckState
    note: str | None


@dataclass(frozen=True, slots=True)
class Completed:
    instance_rev: int
    completed_at_ms: int
    steps: tuple[StepResult, ...]
    proof: Proof
    waived: tuple[WaivedCheck, ...]
    # What the gate would have refused if it were not being tried out.
    shadow_refusal: Reason | None = None
    duplicate: bool = False

    def on_record(self, record: CallRecord) -> CallRecord:
        """Counted by the gate's name, as every call is that a gate would have stopped if it were not on trial."""
        if self.shadow_refusal is None:
            return record
        return replace(record, outcome=replace(record.outcome, gate_id=COVERAGE_GATE))


@dataclass(frozen=True, slots=True)
class Aborted:
    instance_rev: int
    status: RunStatus
    previous: RunStatus
    duplicate: bool = False


# -- kept


def tally_json(tally: Tally) -> dict[str, Json]:
    return {
        "totalUnits": tally.total,
        "checkedUnits": tally.checked,
        "excludedUnits": tally.excluded,
        "remainingUnits": tally.remaining,
        "blockedUnits": tally.blocked,
        "failedUnits": tally.failed,
        "lateUnits": tally.late,
        "distinctFindings": tally.findings,
        "percentComplete": tally.percent_complete,
    }


def evidence_json(found: EvidenceSummary) -> dict[str, Json]:
    return {
        "claimedChecked": found.claimed_checked,
        "observedChecked": found.observed_checked,
        "strong": found.strong,
        "weak": found.weak,
        "none": found.none,
        "unknown": found.unknown,
        "gapPercent": found.gap_percent,
        "ingestionComplete": found.ingestion_complete,
        "topExceptions": [
            {"unitKey": one.unit_key, "grade": one.grade.name, "reasonCode": one.grade.reason_code}
            for one in found.top_exceptions
        ],
    }


def coverage_json(found: UrlCoverage) -> dict[str, Json]:
    return {
        "gateMode": found.gate_mode,
        "gateStatus": found.gate_status,
        "total": found.tally.total,
        "covered": found.tally.covered,
        "excluded": found.tally.excluded,
        "remaining": found.tally.remaining,
        "percentCovered": found.tally.percent_covered,
        "nextUrls": [*found.next_urls],
        "recommendedScanId": found.recommended_scan_id,
    }


def snapshot_json(proof: Proof, shadow: Reason | None = None) -> dict[str, Json]:
    """What stays of a run's proof when its units are gone."""
    body: dict[str, Json] = {
        "schemaVersion": SNAPSHOT_VERSION,
        "evidenceSummary": evidence_json(proof.evidence),
        "progress": tally_json(proof.tally),
        "urlCoverage": coverage_json(proof.coverage),
    }
    return body if shadow is None else {**body, "shadowRefusal": _reason_json(shadow)}


def _reason_json(one: Reason) -> dict[str, Json]:
    return {"reasonCode": one.reason_code, "detail": one.detail}


def progressed_json(done: Progressed) -> dict[str, Json]:
    return {
        "instanceRev": done.instance_rev,
        "status": done.status,
        "discoveryState": done.discovery,
        "progress": tally_json(done.tally),
        "reasonCode": done.reason_code,
    }


def completed_json(done: Completed) -> dict[str, Json]:
    return {
        "instanceRev": done.instance_rev,
        "completedAtMs": done.completed_at_ms,
        "steps": [
            {
                "stepId": one.step_id,
                "required": one.required,
                "state": one.state,
                "executionObserved": one.execution_observed,
                "detail": one.detail,
            }
            for one in done.steps
        ],
        "proof": snapshot_json(done.proof, done.shadow_refusal),
        "waived": [{"checkId": one.check_id, "state": one.state, "note": one.note} for one in done.waived],
    }


def aborted_json(done: Aborted) -> dict[str, Json]:
    return {"instanceRev": done.instance_rev, "status": done.status, "previousStatus": done.previous}


# -- and back: what stands in a store was checked when it was written, so it is only read


def _tally_of(data: Mapping[str, Any]) -> Tally:
    return Tally(
        checked=data["checkedUnits"],
        excluded=data["excludedUnits"],
        remaining=data["remainingUnits"],
        blocked=data["blockedUnits"],
        failed=data["failedUnits"],
        late=data["lateUnits"],
        findings=data["distinctFindings"],
    )


def _evidence_of(data: Mapping[str, Any]) -> EvidenceSummary:
    short: Sequence[Mapping[str, Any]] = data["topExceptions"]
    return EvidenceSummary(
        claimed_checked=data["claimedChecked"],
        observed_checked=data["observedChecked"],
        strong=data["strong"],
        weak=data["weak"],
        none=data["none"],
        unknown=data["unknown"],
        gap_percent=data["gapPercent"],
        ingestion_complete=data["ingestionComplete"],
        top_exceptions=tuple(Claimed(one["unitKey"], Grade(one["grade"], one["reasonCode"])) for one in short),
    )


def _coverage_of(data: Mapping[str, Any]) -> UrlCoverage:
    return UrlCoverage(
        gate_mode=data["gateMode"],
        gate_status=data["gateStatus"],
        tally=CoverageTally(data["total"], data["covered"], data["excluded"]),
        next_urls=tuple(data["nextUrls"]),
        recommended_scan_id=data["recommendedScanId"],
    )


def proof_of(data: Mapping[str, Any]) -> Proof:
    return Proof(_tally_of(data["progress"]), _evidence_of(data["evidenceSummary"]), _coverage_of(data["urlCoverage"]))


def progressed_of(data: Mapping[str, Any]) -> Progressed:
    """A stored answer; it is only ever read for a call that is sent again."""
    return Progressed(
        instance_rev=data["instanceRev"],
        status=data["status"],
        discovery=data["discoveryState"],
        tally=_tally_of(data["progress"]),
        reason_code=data["reasonCode"],
        duplicate=True,
    )


def completed_of(data: Mapping[str, Any]) -> Completed:
    shadow = data["proof"].get("shadowRefusal")
    return Completed(
        instance_rev=data["instanceRev"],
        completed_at_ms=data["completedAtMs"],
        steps=tuple(
            StepResult(one["stepId"], one["required"], one["state"], one["executionObserved"], one["detail"])
            for one in data["steps"]
        ),
        proof=proof_of(data["proof"]),
        waived=tuple(WaivedCheck(one["checkId"], one["state"], one["note"]) for one in data["waived"]),
        shadow_refusal=None if shadow is None else Reason(shadow["reasonCode"], shadow["detail"]),
        duplicate=True,
    )


def aborted_of(data: Mapping[str, Any]) -> Aborted:
    return Aborted(data["instanceRev"], data["status"], data["previousStatus"], duplicate=True)
