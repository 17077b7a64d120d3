"""What an agent's report on a verification step is worth; pure."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from nova_mcp.core.values import Json
from nova_mcp.memory.tasks.model import StepState, VerificationStep
from nova_mcp.memory.tasks.runs.completion import StepResult

PATTERN_BUDGET_MS: Final = 100

PatternVerdict = Literal["matched", "unmatched", "timed_out", "unreadable"]


@dataclass(frozen=True, slots=True)
class StepReport:
    """What an agent says about a step it has run; `result_given` tells a null result from none."""

    step_id: str
    state: StepState
    tool_result: Json = None
    result_given: bool = False
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class Found:
    value: Json


@dataclass(frozen=True, slots=True)
class Absent:
    """The result has nothing under that path."""


def field_at(result: Json, path: str | None) -> Found | Absent:
    """The part of a result that a dotted path names: keys of objects, numbers in lists."""
    if path is None:
        return Found(result)
    here = _parsed(result)
    for part in path.split("."):
        if isinstance(here, dict) and part in here:
            here = here[part]
        elif isinstance(here, list) and part.isascii() and part.isdigit() and len(part) < 6 and int(part) < len(here):
            here = here[int(part)]
        else:
            return Absent()
    return Found(here)


def _parsed(result: Json) -> Json:
    """A result that was sent as a text of JSON is that JSON."""
    if not isinstance(result, str):
        return result
    try:
        parsed: Json = json.loads(result)
    except (ValueError, RecursionError):
        return result
    return parsed


def is_empty(value: Json) -> bool:
    return value is None or (isinstance(value, str | list | dict) and not value)


def same_json(one: Json, other: Json) -> bool:
    """Equal in type and value; numbers are one type, truth values are another."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, int | float) and isinstance(other, int | float):
        return one == other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(same_json(a, b) for a, b in zip(one, other, strict=True))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same_json(one[key], other[key]) for key in one)
    return type(one) is type(other) and one == other


def text_to_match(step: VerificationStep, report: StepReport) -> tuple[str, str] | None:
    """Pattern and text of a step that has one to try: reported as passed, with the field there."""
    if step.assertion_type != "field_match" or report.state != "passed" or not report.result_given:
        return None
    found = field_at(report.tool_result, step.target_ref)
    if isinstance(found, Absent) or not isinstance(step.expected_value, str):
        return None
    value = found.value
    return step.expected_value, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def judge_steps(
    steps: Sequence[VerificationStep],
    reports: Mapping[str, StepReport],
    executed: Mapping[str, bool],
    patterns: Mapping[str, PatternVerdict],
) -> tuple[StepResult, ...]:
    """Each step with what its report comes to; a step nobody reports on is skipped."""
    return tuple(
        _judged(one, reports.get(one.step_id), executed.get(one.step_id, False), patterns.get(one.step_id))
        for one in steps
    )


def _judged(
    step: VerificationStep, report: StepReport | None, executed: bool, pattern: PatternVerdict | None
) -> StepResult:
    state, detail = _verdict(step, report, executed, pattern)
    return StepResult(step.step_id, step.required, state, executed, detail)


def _verdict(
    step: VerificationStep, report: StepReport | None, executed: bool, pattern: PatternVerdict | None
) -> tuple[StepState, str]:
    if report is None:
        return "skipped", f"no report; run {step.tool} and report what it answered"
    if report.state != "passed":
        return report.state, report.detail or f"reported as {report.state}"
    held, why = _assertion(step, report, pattern)
    if held != "passed":
        return held, why
    if not executed:
        where = f" on {step.page_url}" if step.page_url is not None else ""
        return "inconclusive", f"no successful call of {step.tool}{where} by a member is on record"
    return "passed", report.detail or "holds"


def _assertion(step: VerificationStep, report: StepReport, pattern: PatternVerdict | None) -> tuple[StepState, str]:
    if not report.result_given:
        return "inconclusive", "toolResult is missing, so nothing can be checked"
    found = field_at(report.tool_result, step.target_ref)
    if isinstance(found, Absent):
        return "failed", f"toolResult has no {step.target_ref}"
    match step.assertion_type:
        case "empty_result":
            return _told(is_empty(found.value), "is not empty")
        case "has_results":
            return _told(not is_empty(found.value), "is empty")
        case "field_equals":
            return _told(same_json(found.value, step.expected_value), "differs from expectedValue")
        case "field_match":
            if pattern == "timed_out":
                return "inconclusive", f"the pattern took longer than {PATTERN_BUDGET_MS} ms"
            if pattern == "unreadable" or pattern is None:
                return "inconclusive", "expectedValue is no usable pattern"
            return _told(pattern == "matched", "does not match expectedValue")


def _told(holds: bool, otherwise: str) -> tuple[StepState, str]:
    return ("passed", "holds") if holds else ("failed", f"the result {otherwise}")
