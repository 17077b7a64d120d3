"""What a task needs as canonical JSON, in stores and answers alike, and back; pure.

A run's effective context carries the same keys at its top level, so that its content can be read back from it; whatever
else stands beside them is the run's own.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from nova_mcp.core.values import Json
from nova_mcp.memory.tasks.model import (
    Check,
    CompletionCondition,
    EvidencePolicy,
    Guidance,
    TaskContent,
    VerificationStep,
)

CONTENT_KEYS: Final = (
    *("taskType", "displayName", "goal", "domain", "platform", "taskKind"),
    *("completionCondition", "stableGuidance", "mandatoryChecks", "knownExceptions", "verification"),
)


def canonical(value: Json) -> str:
    """One text per JSON value, in plain ASCII, so that any text a caller sends can be kept and hashed."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _compact(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def json_chars(value: Json) -> int:
    """How long a value is as the compact JSON that an answer carries."""
    return len(_compact(value))


def json_bytes(value: Json) -> int:
    """How large a value is as the compact UTF-8 JSON that a caller would send."""
    return len(_compact(value).encode("utf-8", "surrogatepass"))


# -- out


def condition_json(condition: CompletionCondition) -> dict[str, Json]:
    return {
        "coverageMode": condition.coverage_mode,
        "unitKind": condition.unit_kind,
        "stopMetric": condition.stop_metric,
        "stopValue": condition.stop_value,
        "evidencePolicy": {
            "mode": condition.evidence.mode,
            "maxGapPercent": condition.evidence.max_gap_percent,
            "treatUnknownAs": condition.evidence.treat_unknown_as,
        },
    }


def guidance_json(items: Sequence[Guidance]) -> list[Json]:
    return [{"guidanceId": one.guidance_id, "kind": one.kind, "text": one.text} for one in items]


def checks_json(checks: Sequence[Check]) -> list[Json]:
    return [{"checkId": one.check_id, "description": one.description, "required": one.required} for one in checks]


def exceptions_json(texts: Sequence[str]) -> list[Json]:
    return [{"text": text} for text in texts]


def steps_json(steps: Sequence[VerificationStep]) -> list[Json]:
    return [_step_json(one) for one in steps]


def _step_json(step: VerificationStep) -> dict[str, Json]:
    return {
        "stepId": step.step_id,
        "tool": step.tool,
        "args": step.args,
        "description": step.description,
        "gate": step.gate,
        "required": step.required,
        "assertionType": step.assertion_type,
        "targetRef": step.target_ref,
        "expectedValue": step.expected_value,
        "pageUrl": step.page_url,
    }


def verification_json(steps: Sequence[VerificationStep]) -> dict[str, Json] | None:
    """Without steps there is nothing to verify, which is said by null."""
    return {"steps": steps_json(steps)} if steps else None


def content_json(content: TaskContent) -> dict[str, Json]:
    """The whole content under the names that callers use."""
    return {
        "taskType": content.task_type,
        "displayName": content.display_name,
        "goal": content.goal,
        "domain": content.domain,
        "platform": content.platform,
        "taskKind": content.task_kind,
        "completionCondition": condition_json(content.completion_condition),
        "stableGuidance": guidance_json(content.stable_guidance),
        "mandatoryChecks": checks_json(content.mandatory_checks),
        "knownExceptions": exceptions_json(content.known_exceptions),
        "verification": verification_json(content.verification),
    }


# -- back: what stands in a store was checked when it was written, so it is only read


def condition_of(data: Mapping[str, Any]) -> CompletionCondition:
    policy = data["evidencePolicy"]
    return CompletionCondition(
        data["coverageMode"],
        data["unitKind"],
        data["stopMetric"],
        data["stopValue"],
        EvidencePolicy(policy["mode"], policy["maxGapPercent"], policy["treatUnknownAs"]),
    )


def guidance_of(data: Sequence[Mapping[str, Any]]) -> tuple[Guidance, ...]:
    return tuple(Guidance(one["guidanceId"], one["kind"], one["text"]) for one in data)


def checks_of(data: Sequence[Mapping[str, Any]]) -> tuple[Check, ...]:
    return tuple(Check(one["checkId"], one["description"], one["required"]) for one in data)


def exceptions_of(data: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    return tuple(one["text"] for one in data)


def steps_of(data: Sequence[Mapping[str, Any]]) -> tuple[VerificationStep, ...]:
    return tuple(
        VerificationStep(
            step_id=one["stepId"],
            tool=one["tool"],
            description=one["description"],
            assertion_type=one["assertionType"],
            args=one.get("args"),
            gate=one.get("gate", "fast"),
            required=one.get("required", True),
            target_ref=one.get("targetRef"),
            expected_value=one.get("expectedValue"),
            page_url=one.get("pageUrl"),
        )
        for one in data
    )


def verification_of(data: Mapping[str, Any] | None) -> tuple[VerificationStep, ...]:
    return () if data is None else steps_of(data["steps"])


def content_of(data: Mapping[str, Any]) -> TaskContent:
    return TaskContent(
        task_type=data["taskType"],
        display_name=data["displayName"],
        goal=data["goal"],
        completion_condition=condition_of(data["completionCondition"]),
        domain=data.get("domain"),
        platform=data.get("platform"),
        task_kind=data.get("taskKind"),
        stable_guidance=guidance_of(data.get("stableGuidance") or ()),
        mandatory_checks=checks_of(data.get("mandatoryChecks") or ()),
        known_exceptions=exceptions_of(data.get("knownExceptions") or ()),
        verification=verification_of(data.get("verification")),
    )


def content_from_context(text: str) -> TaskContent:
    """The content a run began with, out of its stored effective context."""
    return content_of(json.loads(text))
