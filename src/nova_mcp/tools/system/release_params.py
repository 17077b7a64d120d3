"""The arguments of a release: decision, reasons, follow-up job and the caller's own figures."""

import json
from collections.abc import Mapping
from typing import Annotated, Self

from pydantic import Field, JsonValue, StringConstraints, model_validator
from pydantic.alias_generators import to_camel

from nova_mcp.errors import InvalidParams
from nova_mcp.memory.journal.model import DecisionKind, JobType, StatName
from nova_mcp.tools.catalogue import Catalogue
from nova_mcp.tools.groups import PRINTABLE
from nova_mcp.tools.spec import RARE, Params, TargetParams

PAYLOAD_BYTES = 16 * 1024
# Counted without the blanks around it: they explain nothing.
ExhaustedReason = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=20, max_length=500, pattern=PRINTABLE)
]


class FinalizeStatsParams(Params):
    """What a caller says it learned; every figure may come in either spelling."""

    candidates_total: int = Field(0, ge=0)
    candidates_verified: int = Field(0, ge=0)
    candidates_promotable: int = Field(0, ge=0)
    curated_upserts: int = Field(0, ge=0)
    evidence_min_score: float = Field(0.0, allow_inf_nan=False)
    evidence_avg_score: float = Field(0.0, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _one_spelling(cls, sent: object) -> object:
        if not isinstance(sent, Mapping):
            return sent
        folded = dict(sent)
        for snake in cls.model_fields:
            if snake not in folded:
                continue
            camel, twin = to_camel(snake), folded.pop(snake)
            if camel in folded and not _agree(folded[camel], twin):
                raise ValueError(f"{camel} and {snake} differ")
            folded.setdefault(camel, twin)
        return folded

    def claimed(self) -> dict[StatName, int | float]:
        """The figures that were sent, under their one name."""
        return {name: getattr(self, field) for name, field in _FIGURES.items() if field in self.model_fields_set}


def _agree(one: object, other: object) -> bool:
    # To Python true is one; to JSON it is no number.
    return one == other and isinstance(one, bool) == isinstance(other, bool)


_FIGURES: Mapping[StatName, str] = {
    "candidatesTotal": "candidates_total",
    "candidatesVerified": "candidates_verified",
    "candidatesPromotable": "candidates_promotable",
    "curatedUpserts": "curated_upserts",
    "evidenceMinScore": "evidence_min_score",
    "evidenceAvgScore": "evidence_avg_score",
}


class TabReleaseParams(TargetParams):
    finalization_token: str | None = Field(None, min_length=1, max_length=200)
    finalize_decision: DecisionKind | None = Field(None, description="overrides Nova's own plan; needs the token")
    finalize_reason_code: str | None = Field(None, max_length=64, pattern=PRINTABLE, json_schema_extra=RARE)
    finalize_reason_text: str | None = Field(None, max_length=500, pattern=PRINTABLE, json_schema_extra=RARE)
    coverage_exhausted: bool = Field(default=False, json_schema_extra=RARE)
    coverage_exhausted_reason: ExhaustedReason | None = Field(None, json_schema_extra=RARE)
    finalize_outbox_job_type: JobType | None = Field(
        None, description="only with finalizeDecision commit", json_schema_extra=RARE
    )
    finalize_outbox_payload: dict[str, JsonValue] | None = Field(
        None, description="{scope, data} or {taskId, targetId, candidateIds}", json_schema_extra=RARE
    )
    finalize_stats: FinalizeStatsParams = Field(default_factory=FinalizeStatsParams, json_schema_extra=RARE)

    @model_validator(mode="after")
    def _job_and_payload(self) -> Self:
        job, payload = self.finalize_outbox_job_type, self.finalize_outbox_payload
        if job is not None and self.finalize_decision != "commit":
            raise ValueError("finalizeOutboxJobType goes with finalizeDecision commit only")
        if payload is not None:
            if job is None:
                raise ValueError("finalizeOutboxPayload needs finalizeOutboxJobType")
            _check_payload(job, payload)
        return self


def _check_payload(job: JobType, payload: Mapping[str, JsonValue]) -> None:
    try:
        size = len(json.dumps(payload, ensure_ascii=False, allow_nan=False).encode("utf-8", "surrogatepass"))
    except ValueError:
        raise ValueError("finalizeOutboxPayload holds a number that JSON can't carry") from None
    if size > PAYLOAD_BYTES:
        raise ValueError(f"finalizeOutboxPayload must be at most {PAYLOAD_BYTES} bytes of JSON (received {size})")
    saves, promotes = _saves(payload), _promotes(payload)
    fits = {"pks.domain.save": saves, "finalize.memory.promote": promotes}.get(job, saves or promotes)
    if not fits:
        shape = "{taskId, targetId, candidateIds: integers}" if job == "finalize.memory.promote" else "{scope, data}"
        raise ValueError(f"finalizeOutboxPayload for {job} must be {shape}")


def _saves(payload: Mapping[str, JsonValue]) -> bool:
    scope = payload.get("scope")
    named = isinstance(scope, str) and bool(scope.strip())
    return payload.keys() == {"scope", "data"} and named and isinstance(payload["data"], dict)


def _promotes(payload: Mapping[str, JsonValue]) -> bool:
    ids = payload.get("candidateIds")
    return (
        payload.keys() == {"taskId", "targetId", "candidateIds"}
        and isinstance(payload["taskId"], str)
        and isinstance(payload["targetId"], str)
        and isinstance(ids, list)
        and all(isinstance(one, int) and not isinstance(one, bool) for one in ids)
    )


def check_release(p: TabReleaseParams, _: Catalogue) -> None:
    """What a decision needs besides itself."""
    if p.finalize_decision is not None and p.finalization_token is None:
        raise InvalidParams("claim.finalization_token_required")
    if p.finalize_outbox_job_type == "pks.domain.save" and p.finalize_outbox_payload is None:
        raise InvalidParams(
            "invalid_params",
            "finalizeOutboxPayload is required for pks.domain.save",
            "Send {scope, data}, or choose another job type. Nothing was released.",
            details={"argument": "finalizeOutboxPayload"},
        )
