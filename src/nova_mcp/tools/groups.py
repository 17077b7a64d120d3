"""Argument groups that several tools share, so that one rule has one place."""

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from nova_mcp.browser.act.locate import Locator
from nova_mcp.core.policy import Malformed, NavigationPolicy, judge_url
from nova_mcp.tools.guarded.contract_params import EXAMPLE, TransitionContractParams
from nova_mcp.tools.spec import RARE, Params, taught_by
from nova_mcp.verification.contracts.evaluate import watched_at_most_ms
from nova_mcp.verification.contracts.expect import BadExpectation, compile_expect
from nova_mcp.verification.model import Contract

WaitUntil = Literal["commit", "domcontentloaded", "load", "settled"]
OutputDetail = Literal["compact", "full"]
OnDialog = Literal["dismiss", "accept"]

REF_PATTERN = r"^e[1-9][0-9]{0,6}$"
# Neither a page nor a store takes a zero byte.
PRINTABLE = r"^[^\x00]*$"
URL_LIMIT = 8192


def _absolute(url: str) -> str:
    verdict = judge_url(url, NavigationPolicy())
    if isinstance(verdict, Malformed):
        raise ValueError(verdict.message)
    return url


AbsoluteUrl = Annotated[str, Field(max_length=URL_LIMIT, description="absolute http(s) URL"), AfterValidator(_absolute)]


_A_REF = re.compile(REF_PATTERN)


def as_locator(text: str) -> Locator:
    """For arguments that take either: what looks like a ref is one."""
    return Locator(ref=text) if _A_REF.match(text) else Locator(selector=text)


class LoadParams(Params):
    wait_until: WaitUntil = "domcontentloaded"
    timeout_ms: int = Field(15_000, ge=100, le=120_000)


class LocatorParams(Params):
    selector: str | None = Field(
        None,
        min_length=1,
        max_length=2000,
        description="CSS, text=…, role=…[name=…]",
        json_schema_extra=taught_by("click_selector"),
    )
    ref: str | None = Field(
        None, pattern=REF_PATTERN, description="from perceive, e.g. e12", json_schema_extra=taught_by("click_selector")
    )
    frame_id: str | None = Field(None, min_length=1, max_length=200, json_schema_extra=RARE)
    nth: int | None = Field(None, ge=0, le=999, json_schema_extra=RARE)

    def locator(self) -> Locator | None:
        if self.selector is None and self.ref is None:
            return None
        return Locator(self.selector, self.ref, self.frame_id, self.nth)

    def _check_locator(self, *, required: bool) -> None:
        given = (self.selector is not None) + (self.ref is not None)
        if given > 1 or (required and given == 0):
            raise ValueError("give exactly one of selector and ref")
        if self.selector is None and (self.frame_id is not None or self.nth is not None):
            raise ValueError("frameId and nth go with selector only")


class OneElementParams(LocatorParams):
    def element(self) -> Locator:
        return Locator(self.selector, self.ref, self.frame_id, self.nth)

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        self._check_locator(required=True)
        return self


class MaybeElementParams(LocatorParams):
    @model_validator(mode="after")
    def _at_most_one(self) -> Self:
        self._check_locator(required=False)
        return self


class ActParams(Params):
    """Waiting for the element."""

    timeout_ms: int = Field(3000, ge=0, le=60_000)


class LeadingParams(Params):
    """For actions that may lead to another page."""

    wait_for_navigation: bool = False
    navigation_timeout_ms: int = Field(10_000, ge=0, le=60_000, json_schema_extra=RARE)


class DialogParams(Params):
    """For actions that may open a dialog."""

    on_dialog: OnDialog = "dismiss"
    prompt_text: str | None = Field(None, max_length=1000, json_schema_extra=RARE)

    @model_validator(mode="after")
    def _prompt_needs_accept(self) -> Self:
        if self.prompt_text is not None and self.on_dialog != "accept":
            raise ValueError('promptText goes with onDialog "accept" only')
        return self


class ContractParams(Params):
    """What should come of an action: a contract, or the same in few words."""

    transition_contract: TransitionContractParams | None = Field(
        None, description=f"e.g. {EXAMPLE}", json_schema_extra=taught_by("click_selector")
    )
    expect: list[Annotated[str, Field(min_length=1, max_length=500, pattern=PRINTABLE)]] | None = Field(
        None,
        min_length=1,
        max_length=6,
        description="text:… url:/glob gone:css visible:css value:css=… response:POST /glob 2xx; ! forbids",
        json_schema_extra=taught_by("click_selector"),
    )
    retry_of: str | None = Field(
        None,
        min_length=1,
        max_length=64,
        pattern=PRINTABLE,
        description="transitionId of an unclear attempt",
        json_schema_extra=taught_by("click_selector"),
    )
    intent_key: str | None = Field(
        None,
        min_length=1,
        max_length=200,
        pattern=PRINTABLE,
        description="same key = same intent",
        json_schema_extra=taught_by("click_selector"),
    )

    @model_validator(mode="after")
    def _one_contract(self) -> Self:
        if self.transition_contract is not None and self.expect is not None:
            raise ValueError("give transitionContract or expect, not both")
        if self.expect is not None:
            try:
                compile_expect(self.expect)
            except BadExpectation as bad:
                raise ValueError(str(bad)) from None
        return self

    def contract(self) -> Contract | None:
        if self.expect is not None:
            return compile_expect(self.expect)
        return None if self.transition_contract is None else self.transition_contract.to_contract()

    def verifying_ms(self) -> int | None:
        """How long the outcome may be watched for; None without a contract."""
        contract = self.contract()
        return None if contract is None else watched_at_most_ms(contract)


class DetailParams(Params):
    output_detail: OutputDetail = Field("compact", json_schema_extra=RARE)
