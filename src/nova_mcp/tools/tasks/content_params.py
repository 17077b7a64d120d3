"""What a task needs as callers send it, for profiles and single runs alike, and its way into the rules' nouns."""

import hashlib
import re
from collections.abc import Sequence
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, JsonValue, StringConstraints

from nova_mcp.core.hosts import normalize_host
from nova_mcp.errors import InvalidParams, UnknownTool
from nova_mcp.memory.tasks import model
from nova_mcp.memory.tasks.condition_rules import AskedCondition, BadCondition, settled_condition
from nova_mcp.memory.tasks.content_codec import content_json, json_bytes
from nova_mcp.tools.arguments import shown
from nova_mcp.tools.catalogue import Catalogue
from nova_mcp.tools.groups import AbsoluteUrl
from nova_mcp.tools.names import canonical_name
from nova_mcp.tools.spec import Params
from nova_mcp.tools.system.call import no_such_tool

PROFILE_ID: Final = r"^[a-z0-9][a-z0-9_-]{2,63}$"
WORD: Final = r"^[a-z0-9_-]{1,64}$"
MAX_PATTERN_CHARS: Final = 200
# One host is at most 253 characters; a whole address may be sent instead of it.
DOMAIN_CHARS: Final = 2048


def _without_zero(text: str) -> str:
    if "\x00" in text:
        raise ValueError("a zero byte can't be kept")
    return text


def text_of(least: int, most: int) -> StringConstraints:
    """A text is measured once the space around it is gone."""
    return StringConstraints(strip_whitespace=True, min_length=least, max_length=most)


NoZero: Final = AfterValidator(_without_zero)
Text64 = Annotated[str, text_of(1, 64), NoZero]
Text120 = Annotated[str, text_of(1, 120), NoZero]
Text128 = Annotated[str, text_of(1, 128), NoZero]
Text500 = Annotated[str, text_of(1, 500), NoZero]
Text2000 = Annotated[str, text_of(1, 2000), NoZero]
# Why something was decided: short, but more than a sign.
Reason500 = Annotated[str, text_of(3, 500), NoZero]
ProfileId = Annotated[str, Field(pattern=PROFILE_ID)]
HexId = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
Word = Annotated[str, Field(pattern=WORD)]
HostText = Annotated[str, text_of(1, DOMAIN_CHARS), NoZero]


class EvidencePolicyParams(Params):
    mode: model.EvidencePolicyMode | None = Field(None, description="require_observed for page and url, else none")
    max_gap_percent: int = Field(0, ge=0, le=100)
    treat_unknown_as: model.UnknownAs = "gap"


class CompletionConditionParams(Params):
    coverage_mode: model.CoverageMode
    unit_kind: model.UnitKind
    stop_metric: model.StopMetric
    stop_value: int | None = None
    evidence_policy: EvidencePolicyParams | None = None

    def condition(self) -> model.CompletionCondition:
        policy = self.evidence_policy or EvidencePolicyParams()
        settled = settled_condition(
            AskedCondition(
                self.coverage_mode,
                self.unit_kind,
                self.stop_metric,
                self.stop_value,
                policy.mode,
                policy.max_gap_percent,
                policy.treat_unknown_as,
            )
        )
        if isinstance(settled, BadCondition):
            raise InvalidParams(
                "invalid_completion_condition",
                f"completionCondition: {settled.message}",
                details={"argument": "completionCondition"},
            )
        return settled


class GuidanceParams(Params):
    # Made from kind and text where none is given, so that sending the same again changes nothing.
    guidance_id: Text64 | None = None
    kind: Text64 = "custom"
    text: Text500

    def guidance(self) -> model.Guidance:
        return model.Guidance(self.guidance_id or guidance_id(self.kind, self.text), self.kind, self.text)


def guidance_id(kind: str, text: str) -> str:
    return "g_" + hashlib.sha256(f"{kind}\n{text}".encode()).hexdigest()[:16]


class CheckParams(Params):
    check_id: Word
    description: Text500
    required: bool = True

    def check(self) -> model.Check:
        return model.Check(self.check_id, self.description, self.required)


class ExceptionParams(Params):
    text: Text500


class StepParams(Params):
    step_id: Text64
    tool: Text128
    args: dict[str, JsonValue] | None = None
    description: Text500
    gate: Literal["fast", "deep"] = "fast"
    required: bool = True
    assertion_type: model.AssertionType
    target_ref: Annotated[str, text_of(1, 200), NoZero] | None = Field(None, description="dotted path in the result")
    expected_value: JsonValue = None
    page_url: AbsoluteUrl | None = None

    def step(self) -> model.VerificationStep:
        return model.VerificationStep(
            step_id=self.step_id,
            tool=canonical_name(self.tool),
            description=self.description,
            assertion_type=self.assertion_type,
            args=self.args,
            gate=self.gate,
            required=self.required,
            target_ref=self.target_ref,
            expected_value=self.expected_value,
            page_url=self.page_url,
        )


class VerificationParams(Params):
    steps: list[StepParams]


class ContentParams(Params):
    """The fields of a profile that a run of its own may bring along too."""

    domain: HostText | None = Field(None, description="host; any when left out")
    platform: Word | None = None
    task_kind: model.TaskKind | None = None
    stable_guidance: list[GuidanceParams] | None = None
    mandatory_checks: list[CheckParams] | None = None
    known_exceptions: list[ExceptionParams] | None = None
    verification: VerificationParams | None = None

    def check_lists(self, catalogue: Catalogue) -> None:
        """Raises what a strict model alone can't tell: sizes, what occurs twice, hosts and tools nobody knows."""
        check_items(
            "stableGuidance", self.guidance(), model.MOST_GUIDANCE, [one.guidance_id for one in self.guidance()]
        )
        checks = self.mandatory_checks or []
        check_items("mandatoryChecks", checks, model.MOST_CHECKS, [one.check_id for one in checks])
        check_items("knownExceptions", self.known_exceptions or [], model.MOST_EXCEPTIONS)
        steps = [] if self.verification is None else self.verification.steps
        check_items("verification.steps", steps, model.MOST_STEPS, [one.step_id for one in steps])
        for number, step in enumerate(steps):
            _check_step(number, step, catalogue)
        if self.domain is not None:
            host_of(self.domain)

    def guidance(self) -> tuple[model.Guidance, ...]:
        return tuple(dict.fromkeys(one.guidance() for one in self.stable_guidance or []))

    def checks(self) -> tuple[model.Check, ...]:
        return tuple(one.check() for one in self.mandatory_checks or [])

    def exceptions(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(one.text for one in self.known_exceptions or []))

    def steps(self) -> tuple[model.VerificationStep, ...]:
        return () if self.verification is None else tuple(one.step() for one in self.verification.steps)

    def dear_patterns(self) -> tuple[tuple[int, str], ...]:
        """Patterns that are not read while everybody waits, each with the number of its step."""
        steps = [] if self.verification is None else self.verification.steps
        texts = [one.expected_value if one.assertion_type == "field_match" else None for one in steps]
        return tuple((number, one) for number, one in enumerate(texts) if isinstance(one, str) and is_dear(one))

    def host(self) -> str | None:
        return None if self.domain is None else host_of(self.domain)


class AdHocContextParams(ContentParams):
    """A run that has no profile says itself what it needs."""

    task_type: Text64
    display_name: Text120
    goal: Text2000
    completion_condition: CompletionConditionParams

    def check_content(self, catalogue: Catalogue) -> None:
        """Everything that is refused before the call runs; raises InvalidParams with the reason of its own."""
        self.check_lists(catalogue)
        check_size(self.content())

    def content(self) -> model.TaskContent:
        return model.TaskContent(
            task_type=self.task_type,
            display_name=self.display_name,
            goal=self.goal,
            completion_condition=self.completion_condition.condition(),
            domain=self.host(),
            platform=self.platform,
            task_kind=self.task_kind,
            stable_guidance=self.guidance(),
            mandatory_checks=self.checks(),
            known_exceptions=self.exceptions(),
            verification=self.steps(),
        )


def host_of(text: str, argument: str = "domain") -> str:
    """The host by which a site is named."""
    host = normalize_host(text)
    if host is None:
        raise InvalidParams(
            "invalid_domain",
            f"{argument} must name a host (received {shown(text)})",
            "Send a host such as shop.example or an address on it.",
            details={"argument": argument},
        )
    return host


def size_limit(argument: str, most: int, unit: str, found: int) -> InvalidParams:
    """What is larger than task memory takes."""
    return InvalidParams(
        "size_limit",
        f"{argument} has at most {most} {unit} (received {found})",
        details={"argument": argument, "limit": most, "received": found},
    )


def check_items(argument: str, items: Sequence[object], most: int, ids: Sequence[str] = ()) -> None:
    if len(items) > most:
        raise size_limit(argument, most, "entries", len(items))
    if twice := sorted({one for one in ids if ids.count(one) > 1}):
        raise InvalidParams(
            "invalid_params",
            f"{argument} names {', '.join(map(shown, twice[:3]))} more than once",
            "Give every entry an id of its own.",
            details={"argument": argument},
        )


def check_size(content: model.TaskContent) -> None:
    if (size := json_bytes(content_json(content))) > model.MOST_PROFILE_BYTES:
        raise size_limit("the profile", model.MOST_PROFILE_BYTES, "bytes of JSON", size)


def _check_step(number: int, step: StepParams, catalogue: Catalogue) -> None:
    try:
        catalogue.find(canonical_name(step.tool))
    except UnknownTool as unknown:
        raise no_such_tool(step.tool, unknown.closest) from None
    if step.assertion_type == "field_match" and (problem := _pattern_problem(step.expected_value)) is not None:
        raise bad_pattern(number, problem)


def bad_pattern(number: int, problem: str) -> InvalidParams:
    argument = f"verification.steps.{number}.expectedValue"
    return InvalidParams(
        "invalid_params",
        f"{argument} {problem}",
        "Give the regular expression that the field has to match.",
        details={"argument": argument},
    )


_WIDE: Final = re.compile(r"\\[xuUN0-9]")


def is_dear(pattern: str) -> bool:
    """Whether reading a pattern may take long: a range of characters beyond ASCII is gone through one by one, so that a
    few dozen of them would hold everybody up for a second."""
    return not pattern.isascii() or _WIDE.search(pattern) is not None


def _pattern_problem(pattern: JsonValue) -> str | None:
    if not isinstance(pattern, str) or not pattern:
        return "must be a regular expression for field_match"
    if len(pattern) > MAX_PATTERN_CHARS:
        return f"must be at most {MAX_PATTERN_CHARS} long for field_match"
    if is_dear(pattern):
        return None
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        return f"is no regular expression: {error}"
    return None
