"""Contracts and conditions as callers send them: strict, and refused before anything runs."""

from typing import Annotated, Any, Self

from pydantic import Field, GetJsonSchemaHandler, JsonValue, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from nova_mcp.tools.spec import Params
from nova_mcp.verification.contracts.codec import BadContract, check_contract
from nova_mcp.verification.contracts.fact_keys import UnknownFact
from nova_mcp.verification.model import (
    OMITTED,
    ActionKind,
    AmbiguityPolicy,
    Assertion,
    AssertionSet,
    Contract,
    Operator,
    RetryPolicy,
)

MAX_ASSERTIONS = 50
# What proves a commit is a message of success or the record itself, and no complaint beside it.
EXAMPLE = (
    '{"postconditions":{"success":{"all":[{"factKey":"form.successIndicator.visible","operator":"eq","expected":true}]},'
    '"forbidden":{"any":[{"factKey":"form.errorBanner.visible","operator":"eq","expected":true}]}}}'
)


class _Opaque(Params):
    """Published as an object only: its parts cost more tokens in a list of tools than an example does."""

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"type": "object"}


# Every factKey ends up in a store or a page, and neither takes a zero byte.
FactKey = Annotated[str, Field(min_length=1, max_length=2000, pattern=r"^[^\x00]*$")]


class AssertionParams(_Opaque):
    fact_key: FactKey
    operator: Operator
    expected: JsonValue = None
    frame_id: str | None = Field(None, min_length=1, max_length=200, pattern=r"^[^\x00]*$")

    def to_assertion(self) -> Assertion:
        given: Any = self.expected if "expected" in self.model_fields_set else OMITTED
        return Assertion(self.fact_key, self.operator, given, self.frame_id)


Assertions = Annotated[list[AssertionParams], Field(max_length=MAX_ASSERTIONS)]


class AssertionSetParams(_Opaque):
    all: Assertions = Field(default_factory=list)
    any: Assertions = Field(default_factory=list)
    forbidden: Assertions = Field(default_factory=list)

    @model_validator(mode="after")
    def _readable(self) -> Self:
        _checked(Contract(preconditions=self.to_set()))
        return self

    def to_set(self) -> AssertionSet:
        return AssertionSet(
            all=tuple(one.to_assertion() for one in self.all),
            any=tuple(one.to_assertion() for one in self.any),
            forbidden=tuple(one.to_assertion() for one in self.forbidden),
        )


class PostconditionsParams(_Opaque):
    success: AssertionSetParams | None = None
    forbidden: AssertionSetParams | None = None
    ambiguous: AssertionSetParams | None = None


class TransitionContractParams(_Opaque):
    """The two stability values take any whole number; Nova brings them within its bounds."""

    action_kind: ActionKind = "custom"
    preconditions: AssertionSetParams | None = None
    postconditions: PostconditionsParams | None = None
    retry_policy: RetryPolicy = "non_idempotent"
    ambiguity_policy: AmbiguityPolicy = "signal"
    stability_window_ms: int | None = None
    stability_ms: int | None = None

    def to_contract(self) -> Contract:
        outcome = self.postconditions or PostconditionsParams()
        return Contract(
            action_kind=self.action_kind,
            preconditions=_set(self.preconditions),
            success=_set(outcome.success),
            forbidden=_set(outcome.forbidden),
            ambiguous=_set(outcome.ambiguous),
            retry_policy=self.retry_policy,
            retry_policy_given="retry_policy" in self.model_fields_set,
            ambiguity_policy=self.ambiguity_policy,
            window_ms=self.stability_window_ms,
            hold_ms=self.stability_ms,
        )


def _set(given: AssertionSetParams | None) -> AssertionSet:
    return AssertionSet() if given is None else given.to_set()


def _checked(contract: Contract) -> None:
    try:
        check_contract(contract)
    except (UnknownFact, BadContract) as wrong:
        raise ValueError(str(wrong)) from None
