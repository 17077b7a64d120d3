"""What callers send about runs: the scope, what is overridden, where units come from, what was done."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, Field, JsonValue, StringConstraints, model_validator

from nova_mcp.core.hosts import normalize_host
from nova_mcp.core.urls import MAX_URL_CHARS, normalize_url
from nova_mcp.core.values import Json
from nova_mcp.errors import InvalidParams
from nova_mcp.evidence.rules import storable_text
from nova_mcp.memory.facts.rules import value_chars
from nova_mcp.memory.tasks import model
from nova_mcp.memory.tasks.content_codec import json_bytes
from nova_mcp.memory.tasks.coverage.locators import Declared, LocatorType
from nova_mcp.memory.tasks.effective_context import SCOPE_LISTS, ListChange, Overrides
from nova_mcp.memory.tasks.runs.create import bad_source
from nova_mcp.memory.tasks.runs.rules import CheckUpdate, FindingReport, FoundUnit, UnitName, UnitUpdate
from nova_mcp.memory.tasks.runs.seeds import UnitSource
from nova_mcp.memory.tasks.runs.verification_rules import StepReport
from nova_mcp.tools.spec import Params
from nova_mcp.tools.tasks.content_params import (
    NoZero,
    Reason500,
    Text64,
    Text128,
    Text500,
    Text2000,
    Word,
    size_limit,
    text_of,
)

MAX_RESULT_CHARS: Final = 4_000
MAX_RAW_URL: Final = 8_192
MAX_OVERRIDES: Final = 50
FORBIDDEN: Final = ("mandatoryChecks", "completionCondition", "verification", "checks")

Storable = AfterValidator(storable_text)
ShortText = Annotated[str, text_of(0, 500), NoZero]
RawUrl = Annotated[str, text_of(1, MAX_RAW_URL), NoZero]
EventId = Annotated[str, text_of(1, 128), NoZero, Storable]


def _web_url(url: str) -> str:
    if normalize_url(url) is None:
        raise ValueError("must be an http or https URL")
    return url


TargetUrl = Annotated[str, StringConstraints(strip_whitespace=True, max_length=MAX_URL_CHARS), AfterValidator(_web_url)]


# -- scope and overrides


class ScopeParams(Params):
    route: ShortText | None = None
    page_type: ShortText | None = None
    locale: ShortText | None = None
    languages: list[Text500] | None = None
    sections: list[Text500] | None = None
    auth_state: Literal["anonymous", "logged_in", "unknown"] | None = None
    tags: list[Text500] | None = None
    entities: dict[str, JsonValue] | None = None
    variables: dict[str, JsonValue] | None = None

    def scope(self) -> dict[str, Json]:
        """What was given, with the nulls that take something away."""
        given: dict[str, Json] = self.model_dump(mode="json", by_alias=True, exclude_unset=True)
        return given


class PatchParams(ScopeParams):
    """The same, where what proves completion has to be refused by its own name."""

    mandatory_checks: JsonValue = None
    completion_condition: JsonValue = None
    verification: JsonValue = None
    checks: JsonValue = None


class ListChangeParams(Params):
    include: list[Text500] = Field(default=[], max_length=MAX_OVERRIDES)
    exclude: list[Text500] = Field(default=[], max_length=MAX_OVERRIDES)

    def change(self) -> ListChange:
        return ListChange(tuple(self.include), tuple(self.exclude))


class OverridesParams(Params):
    current_scope_patch: PatchParams | None = None
    variables: dict[str, JsonValue] | None = None
    stable_guidance: ListChangeParams | None = None
    known_exceptions: ListChangeParams | None = None
    tags: ListChangeParams | None = None
    sections: ListChangeParams | None = None
    languages: ListChangeParams | None = None
    # Named so that they are refused for what they are.
    mandatory_checks: JsonValue = Field(None, description="refused")
    completion_condition: JsonValue = Field(None, description="refused")
    verification: JsonValue = Field(None, description="refused")
    checks: JsonValue = Field(None, description="refused")

    def check_allowed(self) -> None:
        given = [*_given(self, "overrides"), *_given(self.current_scope_patch, "overrides.currentScopePatch")]
        if given:
            raise InvalidParams(
                "override_forbidden",
                f"{given[0]} can't be overridden: what proves completion is the profile's.",
                details={"argument": given[0]},
            )

    def overrides(self) -> Overrides:
        none = ListChangeParams()
        patch = {} if self.current_scope_patch is None else self.current_scope_patch.scope()
        lists = {"tags": self.tags, "sections": self.sections, "languages": self.languages}
        return Overrides(
            scope_patch=patch,
            variables=self.variables or {},
            stable_guidance=(self.stable_guidance or none).change(),
            known_exceptions=(self.known_exceptions or none).change(),
            scope_lists={name: change.change() for name in SCOPE_LISTS if (change := lists[name]) is not None},
        )

    def given(self) -> dict[str, Json]:
        body: dict[str, Json] = self.model_dump(mode="json", by_alias=True, exclude_unset=True)
        return body


def _given(params: Params | None, root: str) -> list[str]:
    if params is None:
        return []
    names = {entry.alias or name: name for name, entry in type(params).model_fields.items()}
    return [f"{root}.{alias}" for alias in FORBIDDEN if names[alias] in params.model_fields_set]


# -- units


class UnitSourceParams(Params):
    kind: Literal["explicit", "site_urls"]
    explicit_urls: list[RawUrl] | None = Field(None, min_length=1, max_length=1000)
    scope_domain: Text500 | None = None
    freeze_after_populate: bool = False

    def source(self) -> UnitSource:
        """Raises where the field that its kind needs is missing."""
        if self.kind == "explicit":
            if not self.explicit_urls:
                raise bad_source("explicit needs explicitUrls.")
            return UnitSource("explicit", tuple(self.explicit_urls), freeze=self.freeze_after_populate)
        host = None if self.scope_domain is None else normalize_host(self.scope_domain)
        if host is None:
            raise bad_source("site_urls needs scopeDomain, a host.")
        return UnitSource("site_urls", scope_domain=host, freeze=self.freeze_after_populate)


class LocatorParams(Params):
    type: LocatorType
    value: Annotated[str, text_of(1, 2048), NoZero, Storable]


class UnitNameParams(Params):
    unit_key: Annotated[str, text_of(1, 256), NoZero, Storable] | None = None
    url: RawUrl | None = None

    def name(self) -> UnitName:
        return UnitName(self.unit_key, self.url)


class NamedUnitParams(UnitNameParams):
    @model_validator(mode="after")
    def _one_name(self) -> Self:
        if (self.unit_key is None) == (self.url is None):
            raise ValueError("give unitKey or url, and only one of them")
        return self


class DiscoveredParams(NamedUnitParams):
    label: Annotated[str, text_of(0, 200), NoZero, Storable] = ""
    locator: LocatorParams | None = None

    def found(self) -> FoundUnit:
        declared = None if self.locator is None else Declared(self.locator.type, self.locator.value)
        return FoundUnit(self.name(), self.label, declared)


class UnitUpdateParams(NamedUnitParams):
    status: model.UnitStatus
    reason: Annotated[Reason500, Storable] | None = None

    def update(self) -> UnitUpdate:
        return UnitUpdate(self.name(), self.status, self.reason)


class FindingParams(UnitNameParams):
    finding_key: Annotated[Text128, Storable]
    detail: Annotated[Text2000, Storable]
    severity: model.Severity = "info"

    @model_validator(mode="after")
    def _one_name(self) -> Self:
        if self.unit_key is not None and self.url is not None:
            raise ValueError("give unitKey or url, not both")
        return self

    def report(self) -> FindingReport:
        named = self.unit_key is not None or self.url is not None
        return FindingReport(self.finding_key, self.detail, self.name() if named else None, self.severity)


class CheckUpdateParams(Params):
    check_id: Word
    state: model.CheckState
    note: ShortText | None = None

    def update(self) -> CheckUpdate:
        return CheckUpdate(self.check_id, self.state, self.note)


class ResumeParams(Params):
    cursor: ShortText | None = None
    last_processed_url: Annotated[str, text_of(0, 2048), NoZero] | None = None
    last_action: ShortText | None = None
    checkpoint: JsonValue = None

    @model_validator(mode="after")
    def _small(self) -> Self:
        if (size := json_bytes(self.checkpoint)) > model.MOST_CHECKPOINT_BYTES:
            raise ValueError(f"checkpoint has at most {model.MOST_CHECKPOINT_BYTES} bytes of JSON (received {size})")
        return self

    def delta(self) -> dict[str, Json]:
        given: dict[str, Json] = self.model_dump(mode="json", by_alias=True, exclude_unset=True)
        return given


# -- reports on verification steps


class StepReportParams(Params):
    step_id: Text64
    state: model.StepState
    tool_result: JsonValue = Field(None, description="what the tool answered, at most 4000 characters of JSON")
    detail: Annotated[str, text_of(0, 500), NoZero] | None = None

    @model_validator(mode="after")
    def _short(self) -> Self:
        if (size := value_chars(self.tool_result)) > MAX_RESULT_CHARS:
            raise ValueError(f"toolResult has at most {MAX_RESULT_CHARS} characters of JSON (received {size})")
        return self

    def report(self) -> StepReport:
        given = "tool_result" in self.model_fields_set
        return StepReport(self.step_id, self.state, self.tool_result, given, self.detail or None)


def step_reports(reports: list[StepReportParams]) -> Mapping[str, StepReport]:
    found = {one.step_id: one.report() for one in reports}
    if len(found) < len(reports):
        raise InvalidParams(
            "invalid_params",
            "evidenceReport names a step more than once",
            "Send one report per step.",
            details={"argument": "evidenceReport"},
        )
    return found


def check_list(argument: str, items: Sequence[object], most: int) -> None:
    if len(items) > most:
        raise size_limit(argument, most, "entries", len(items))
