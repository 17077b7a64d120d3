"""Knowledge as callers send it: strict, bounded, and turned into what the rules work on."""

import hashlib
from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, JsonValue, field_validator, model_validator

from nova_mcp.errors import InvalidParams
from nova_mcp.memory.knowledge import model
from nova_mcp.memory.knowledge.codec import encoded
from nova_mcp.memory.knowledge.matching.categories import MAX_CATEGORIES, unknown_category
from nova_mcp.memory.knowledge.matching.entry_ranking import Request
from nova_mcp.memory.knowledge.matching.fingerprints import ObservedSignal
from nova_mcp.memory.knowledge.matching.routes import MAX_ROUTES, is_pattern, told_route
from nova_mcp.memory.knowledge.model import Problem, StableId
from nova_mcp.memory.knowledge.platforms.templates import MAX_PATTERNS
from nova_mcp.memory.knowledge.writes.content_rules import MATCH_CHARS, SELECTOR_CHARS, holds_script, holds_secret
from nova_mcp.memory.knowledge.writes.rules import KEPT, Patch, Upsert
from nova_mcp.tools.guarded.contract_params import AssertionParams
from nova_mcp.tools.spec import Params
from nova_mcp.verification.contracts.codec import BadContract, check_contract
from nova_mcp.verification.contracts.fact_keys import UnknownFact
from nova_mcp.verification.model import AssertionSet, Contract

SCOPE_CHARS: Final = 2048
WORD_CHARS: Final = 64
MAX_OBSERVED: Final = 64
MAX_WAIT_MS: Final = 10_000
_NO_ZERO: Final = r"^[^\x00-\x1f\x7f]*$"
# Ids are shown to every agent that works on a site, so they are words that can't be read as sentences.
_ID: Final = r"^[!-~]+$"
_LOCALE: Final = r"^[A-Za-z]{2,8}([-_][A-Za-z0-9]{1,8})*$"

SiteText = Annotated[str, Field(min_length=1, max_length=SCOPE_CHARS)]
ScopeText = Annotated[SiteText, Field(description="host or address of the site")]
EntryId = Annotated[str, Field(min_length=1, max_length=128, pattern=_ID)]
Selector = Annotated[str, Field(min_length=1, max_length=SELECTOR_CHARS, pattern=_NO_ZERO)]
Word = Annotated[str, Field(min_length=1, max_length=WORD_CHARS, pattern=_NO_ZERO)]
Locale = Annotated[str, Field(max_length=35, pattern=_LOCALE)]


class SignalParams(Params):
    kind: model.SignalKind
    match: str = Field(min_length=1, max_length=SELECTOR_CHARS, pattern=_NO_ZERO)
    locale: Locale | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.match.strip():
            raise ValueError("match must not be blank")
        if self.kind != "dom" and len(self.match) > MATCH_CHARS:
            raise ValueError(f"match must be at most {MATCH_CHARS} long where it is no selector")
        return self

    def signal(self) -> model.Signal:
        return model.Signal(self.kind, self.match.strip(), self.locale)

    def observed(self) -> ObservedSignal:
        return ObservedSignal(self.match.strip(), self.kind)


class FingerprintParams(Params):
    signals: list[SignalParams] = Field(min_length=1, max_length=model.MAX_SIGNALS)
    min_confidence: float = Field(model.DEFAULT_MIN_CONFIDENCE, ge=0, le=1, allow_inf_nan=False)

    def fingerprint(self) -> model.Fingerprint:
        return model.Fingerprint(tuple(one.signal() for one in self.signals), self.min_confidence)


class ActionParams(Params):
    action: model.ActionKind
    selector: Selector | None = None
    fallback_selectors: list[Selector] = Field(default_factory=list, max_length=model.MAX_FALLBACKS)
    # Taken so that what was read can be sent back; it is always read off the page anew.
    element_print: dict[str, JsonValue] | None = None
    value_source: model.ValueSource | None = None
    value_name: str | None = Field(None, min_length=1, max_length=WORD_CHARS, pattern=_ID)
    key: str | None = Field(None, min_length=1, max_length=WORD_CHARS, pattern=_NO_ZERO)
    wait_ms: int | None = Field(None, ge=0, le=MAX_WAIT_MS)
    declared_polarity: model.Polarity | None = None

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.action in ("click", "type") and self.selector is None:
            raise ValueError(f"a {self.action} action needs a selector")
        if self.action == "type" and self.value_source is None:
            raise ValueError("a type action needs valueSource; a value is never stored")
        if self.action == "type" and self.value_name is None:
            raise ValueError("a type action needs valueName, under which its value is given")
        if self.action == "press_key" and self.key is None:
            raise ValueError("press_key needs key")
        if self.fallback_selectors and self.selector is None:
            raise ValueError("fallbackSelectors need a selector to fall back from")
        return self

    def step(self) -> model.Action:
        return model.Action(
            kind=self.action,
            selector=self.selector,
            fallbacks=tuple(dict.fromkeys(self.fallback_selectors)),
            value_source=self.value_source,
            value_name=self.value_name or "",
            key=self.key or "",
            wait_ms=self.wait_ms or 0,
            polarity=self.declared_polarity,
        )


class VerifyParams(Params):
    type: model.VerifyKind
    selector: Selector | None = None
    threshold: float | None = Field(None, ge=0, le=1, allow_inf_nan=False)
    assertion: AssertionParams | None = None

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.type in ("absent", "present") and self.selector is None:
            raise ValueError(f"{self.type} needs a selector")
        if self.type == "fact" and self.assertion is None:
            raise ValueError("fact needs an assertion")
        if self.type != "fact" and self.assertion is not None:
            raise ValueError("only fact takes an assertion")
        if self.assertion is not None:
            try:
                check_contract(Contract(success=AssertionSet(all=(self.assertion.to_assertion(),))))
            except (UnknownFact, BadContract) as wrong:
                raise ValueError(str(wrong)) from None
        return self

    def step(self) -> model.VerifyStep:
        assertion = None if self.assertion is None else self.assertion.to_assertion()
        return model.VerifyStep(self.type, self.selector, self.threshold, assertion)


class PlaybookParams(Params):
    policy: model.PlaybookPolicy
    actions: list[ActionParams] = Field(default_factory=list, max_length=model.MAX_ACTIONS)
    verify: list[VerifyParams] = Field(default_factory=list, max_length=model.MAX_VERIFY_STEPS)

    def playbook(self) -> model.Playbook:
        return model.Playbook(
            self.policy, tuple(one.step() for one in self.actions), tuple(one.step() for one in self.verify)
        )


class PlaceParams(Params):
    """Where a caller is; what is left out is not known."""

    device: Word | None = None
    locale: Locale | None = None
    auth: Word | None = None

    def request(self) -> Request:
        return Request(self.device, self.locale, self.auth)


class RoutePlaceParams(PlaceParams):
    route: str | None = Field(None, min_length=1, max_length=SCOPE_CHARS, pattern=_NO_ZERO)

    def request(self) -> Request:
        route = None if self.route is None else told_route(self.route)
        return Request(self.device, self.locale, self.auth, route)


class ContextParams(PlaceParams):
    routes: list[str] = Field(default_factory=list, max_length=MAX_ROUTES)

    @field_validator("routes")
    @classmethod
    def _patterns(cls, routes: list[str]) -> list[str]:
        for one in routes:
            if len(one) > MATCH_CHARS or not is_pattern(one):
                raise ValueError("a route is a first segment, a prefix such as in/*, _root or *")
        return routes

    def context(self) -> model.Context:
        return model.Context(self.device, self.locale, self.auth, tuple(dict.fromkeys(self.routes)))


class PhenomenonParams(Params):
    id: EntryId | None = None
    type: model.PhenomenonType
    fingerprint: FingerprintParams
    playbook: PlaybookParams | None = None
    context: ContextParams | None = None

    def wish(self) -> Upsert:
        fingerprint = self.fingerprint.fingerprint()
        return Upsert(
            stable_id=StableId(self.id) if self.id is not None else derived_id(self.type, fingerprint),
            type=self.type,
            fingerprint=fingerprint,
            playbook=KEPT if self.playbook is None else self.playbook.playbook(),
            context=KEPT if self.context is None else self.context.context(),
        )


def derived_id(kind: model.PhenomenonType, fingerprint: model.Fingerprint) -> StableId:
    """The id of an entry that was given none: the same situation gets the same one."""
    digest = hashlib.sha256(encoded(frozenset(fingerprint.signals)).encode("utf-8", "surrogatepass")).hexdigest()
    return StableId(f"{kind}_{digest[:12]}")


def _given(value: object) -> object:
    if value is None:
        raise ValueError("must not be null; leave it out to keep what is there")
    return value


class PatchParams(Params):
    type: model.PhenomenonType | None = None
    fingerprint: FingerprintParams | None = None
    playbook: PlaybookParams | None = None
    context: ContextParams | None = None
    deprecated: Literal[False] | None = None

    @field_validator("deprecated", mode="before")
    @classmethod
    def _said_as_such(cls, value: object) -> object:
        # Nought equals false, and only false is meant.
        if value is not False:
            raise ValueError("deprecated can only be taken back, with false; nova.pks_deprecate retires an entry")
        return value

    # None is what they are when they were left out; only the context can be cleared.
    _no_null = field_validator("type", "fingerprint", "playbook", mode="before")(_given)

    @model_validator(mode="after")
    def _changes_something(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("patch names at least one section")
        return self

    def patch(self, expected_revision: int | None) -> Patch:
        given = self.model_fields_set
        context: model.Context | None = None if self.context is None else self.context.context()
        return Patch(
            type=KEPT if self.type is None else self.type,
            fingerprint=KEPT if self.fingerprint is None else self.fingerprint.fingerprint(),
            playbook=KEPT if self.playbook is None else self.playbook.playbook(),
            context=context if "context" in given else KEPT,
            revive="deprecated" in given,
            expected_revision=expected_revision,
        )


class HintParams(Params):
    id: EntryId | None = None
    kind: model.HintKind
    mode: model.HintMode = "ancestor"
    selectors: list[Selector] = Field(min_length=1, max_length=model.MAX_HINT_SELECTORS)
    extract: dict[Annotated[str, Field(min_length=1, max_length=WORD_CHARS, pattern=_ID)], Selector] = Field(
        default_factory=dict, max_length=20
    )
    enumerate_max: int = Field(8, ge=1, le=50)

    @model_validator(mode="after")
    def _fitting(self) -> Self:
        if self.extract and self.kind != "result_item":
            raise ValueError("extract is for result_item only")
        return self

    def hint(self, now_ms: int) -> model.DomainHint:
        digest = hashlib.sha256(encoded(tuple(self.selectors)).encode("utf-8", "surrogatepass")).hexdigest()
        return model.DomainHint(
            hint_id=model.HintId(self.id or f"{self.kind}_{digest[:12]}"),
            kind=self.kind,
            selectors=tuple(dict.fromkeys(self.selectors)),
            created_at_ms=now_ms,
            updated_at_ms=now_ms,
            mode=self.mode,
            extract=tuple(sorted(self.extract.items())),
            enumerate_max=self.enumerate_max,
        )


def known_categories(given: list[str] | None) -> list[str] | None:
    if given and (unknown := unknown_category(given)) is not None:
        raise ValueError(f'there is no service category "{unknown[:40]}"')
    return given


Categories = Annotated[list[Annotated[str, Field(max_length=WORD_CHARS)]], Field(max_length=MAX_CATEGORIES)]


class ObservationParams(Params):
    signals: list[SignalParams] = Field(default_factory=list, max_length=MAX_OBSERVED)
    type: model.PhenomenonType | None = None


class AliasParams(Params):
    kind: model.AliasKind
    value: str = Field(min_length=1, max_length=MATCH_CHARS, pattern=_NO_ZERO)

    def alias(self) -> model.Alias:
        value = self.value.strip()
        return model.Alias(self.kind, value.lower() if self.kind == "script_host" else value)


Patterns = Annotated[list[SignalParams], Field(max_length=MAX_PATTERNS)]
Aliases = Annotated[list[AliasParams], Field(max_length=MAX_PATTERNS)]


# -- refusals


def refusal(problem: Problem, root: str) -> InvalidParams:
    """A problem of the rules as an answer; it names the argument, not what was in it."""
    where = problem.where if problem.where.startswith(root) or not problem.where else f"{root}.{problem.where}"
    hints = {
        "pks.selector_too_broad": "Name one element: an id, a name, a label, inside the layer it belongs to.",
        "pks.polarity_required": "Add declaredPolarity to that action.",
        "pks.polarity_mismatch": "Read the label again and declare what the control really does.",
        "pks.outside_surface": "Point at a control inside the layer that the fingerprint describes.",
        "pks.secret_like": "Leave the value out; name where it comes from with valueSource.",
        "pks.scope_full": "Deprecated entries count too; improve what is there with nova.pks_patch.",
        "selector.invalid": "Correct the selector and call again.",
    }
    return InvalidParams(
        problem.code,
        f"{where or root}: {problem.message}" if problem.code == "invalid_params" else problem.message,
        hints.get(problem.code, "Nothing was stored. Correct it and call again."),
        details={"argument": where or root},
    )


def id_problem(text: str, where: str) -> Problem | None:
    if holds_script(text):
        return Problem("pks.script_content", "Script is never stored, in any field.", where)
    if (found := holds_secret(text, selector=True)) is not None:
        return Problem("pks.secret_like", f"It looks like {found}.", where)
    return None


def texts_in(value: Any) -> list[str]:
    """Every text of a JSON value, keys included."""
    match value:
        case str():
            return [value]
        case dict():
            return [text for key, held in value.items() for text in (*texts_in(key), *texts_in(held))]
        case list():
            return [text for one in value for text in texts_in(one)]
    return []
