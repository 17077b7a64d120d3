"""Live facts: reporting what a page shows, reading what is known, and the signals there are."""

import json
import re
from collections.abc import Sequence
from typing import Annotated, Final, Self

from pydantic import BeforeValidator, Field, JsonValue, field_validator, model_validator

from nova_mcp.core.signal_vocabulary import MAX_KEY_CHARS, SIGNALS, ValueType, key_problem, value_problem, value_warning
from nova_mcp.errors import InvalidParams, Precondition
from nova_mcp.memory.facts.model import Certainty, ClaimResult, ClaimState, Fact, FactState
from nova_mcp.memory.facts.rules import MAX_VALUE_CHARS, is_stale, value_chars
from nova_mcp.memory.facts.sensitive import sensitive_key, sensitive_reason, sensitive_text
from nova_mcp.memory.facts.service import Claim, Known, Place
from nova_mcp.tools.catalogue import Catalogue
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.spec import AgentParams, Params, Part, Result, Targeted, TargetParams, tool
from nova_mcp.tools.times import utc

MAX_CLAIMS: Final = 50
MAX_EVIDENCE_CHARS: Final = 2_000
THOUSAND: Final = 1000
SHOWN_CHARS: Final = 160
_PERCEIVED: Final = re.compile(r"(tab_\d+)\.")
_NO_ZERO: Final = r"^[^\x00]*$"


def _current(value: object) -> object:
    return "active" if value is None else value


class ClaimParams(Params):
    signal_key: str = Field(min_length=1, max_length=MAX_KEY_CHARS, description="namespace.path, e.g. core.login_state")
    value: JsonValue
    certainty: Certainty | None = Field(None, description="likely unless said otherwise")
    evidence: str | None = Field(None, max_length=MAX_EVIDENCE_CHARS, description="what is seen that shows it")

    @field_validator("signal_key")
    @classmethod
    def _known_key(cls, key: str) -> str:
        if (problem := key_problem(key)) is not None:
            raise ValueError(problem)
        return key

    @field_validator("value")
    @classmethod
    def _compact(cls, value: JsonValue) -> JsonValue:
        if (size := value_chars(value)) > MAX_VALUE_CHARS:
            raise ValueError(f"a value has at most {MAX_VALUE_CHARS} characters of JSON (got {size})")
        return value

    @model_validator(mode="after")
    def _fitting(self) -> Self:
        if (problem := value_problem(self.signal_key, self.value)) is not None:
            raise ValueError(problem)
        return self

    def claim(self) -> Claim:
        evidence = (
            None if self.evidence is None else self.evidence.replace("\x00", "").encode("utf-8", "replace").decode()
        )
        return Claim(self.signal_key, self.value, self.certainty or "likely", evidence)


class ObserveParams(Targeted):
    # Who reports makes no difference to a fact, so no agentId is taken; null means the current tab.
    target_id: Annotated[str, BeforeValidator(_current)] = Field(
        "active", min_length=1, max_length=64, pattern=_NO_ZERO
    )
    perception_id: str | None = Field(None, min_length=1, max_length=200, pattern=_NO_ZERO)
    claims: list[ClaimParams] = Field(min_length=1, max_length=MAX_CLAIMS)


class ObservedFact(Part):
    key: str
    value: JsonValue
    state: ClaimState
    is_new: bool


class ObserveResult(Result):
    target_id: str
    service_key: str
    accepted: int
    rejected: int
    superseded: int
    facts: list[ObservedFact]
    warnings: list[str] | None = None

    def text(self) -> str:
        """What became of each claim; the caller knows in full what it sent."""
        counts = f"{self.accepted} accepted, {self.rejected} rejected, {self.superseded} superseded"
        rows = [f"{one.key}={_brief(one.value)} {one.state}{' new' if one.is_new else ''}" for one in self.facts]
        told = [f"warning: {one}" for one in self.warnings or ()]
        return "\n".join([f"{self.target_id} {self.service_key}: {counts}", *rows, *told])


def _brief(value: JsonValue) -> str:
    """A value in a line of text; the structured answer has the whole of it."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}… ({len(text)} characters)"


def _sensitive(part: str, looks: str) -> InvalidParams:
    return InvalidParams(
        "ok.sensitive_value",
        f"{part} looks like {looks}; such things are never kept, so nothing of this call was.",
        details={"argument": part.replace("[", ".").replace("]", "")},
    )


def _check(p: ObserveParams, _: Catalogue) -> None:
    if p.perception_id is not None and (looks := sensitive_text(p.perception_id)) is not None:
        raise _sensitive("perceptionId", looks)
    for number, claim in enumerate(p.claims):
        found = {
            "signalKey": sensitive_key(claim.signal_key),
            "value": sensitive_reason(claim.signal_key, claim.value),
            "evidence": None if claim.evidence is None else sensitive_text(claim.evidence),
        }
        for part, looks in found.items():
            if looks is not None:
                raise _sensitive(f"claims[{number}].{part}", looks)


def _refuse_known_secrets(ctx: ToolContext, p: ObserveParams) -> None:
    redactor, known = ctx.secrets.redactor, "one of the stored secrets"
    if redactor.json(p.perception_id) != p.perception_id:
        raise _sensitive("perceptionId", known)
    for number, claim in enumerate(p.claims):
        for part, given in (("signalKey", claim.signal_key), ("value", claim.value), ("evidence", claim.evidence)):
            if redactor.json(given) != given:
                raise _sensitive(f"claims[{number}].{part}", known)


@tool(
    title="Report what the page shows",
    effect="write",
    bundles=("live_facts",),
    lock="shared",
    private_arguments=("claims", "perceptionId"),
    check=_check,
)
async def ok_observe(ctx: ToolContext, p: ObserveParams) -> ObserveResult:
    """Reports state that is visible on the page now (signed in, model, plan, language …) as claims that become current
    facts. Never passwords, tokens or guesses. Name targetId unless you act as the default agent."""
    ctx.tab.require_ready()
    _refuse_known_secrets(ctx, p)
    place = _place(ctx)
    ctx.evidence.input_is_harmless = True
    odd = _oddities(ctx, p, place)
    seen = ctx.facts.observations(place, [one.claim() for one in p.claims], ctx.call.call_id, p.perception_id)
    # What a claim comes to is decided in the transaction of this call's record, where no other writer is.
    results = await ctx.commit_derived(lambda conn, record, link: ctx.facts.note(conn, place, seen))
    return _observed(p, place, results, odd)


def _place(ctx: ToolContext) -> Place:
    place = ctx.facts.place(ctx.tab)
    if place is None:
        raise Precondition(
            "ok.no_service",
        )
    return place


def _observed(p: ObserveParams, place: Place, results: Sequence[ClaimResult] | None, odd: list[str]) -> ObserveResult:
    target_id = place.scope.target_id
    if results is None:
        rows = [
            ObservedFact(key=one.signal_key, value=one.value, state="observation_only", is_new=False)
            for one in p.claims
        ]
        warnings = [f"{target_id} was closed before anything could be stored."]
        return ObserveResult(
            target_id=target_id,
            service_key=place.service.key,
            accepted=0,
            rejected=len(rows),
            superseded=0,
            facts=rows,
            warnings=warnings,
        )
    warnings = [one.warning for one in results if one.warning is not None] + odd
    return ObserveResult(
        target_id=target_id,
        service_key=place.service.key,
        accepted=sum(one.stored for one in results),
        rejected=sum(not one.stored for one in results),
        superseded=sum(one.superseded for one in results),
        facts=[
            ObservedFact(key=one.key, value=json.loads(one.value), state=one.state, is_new=one.is_new)
            for one in results
        ],
        warnings=warnings or None,
    )


def _oddities(ctx: ToolContext, p: ObserveParams, place: Place) -> list[str]:
    odd = [value_warning(claim.signal_key, claim.value) for claim in p.claims]
    return [one for one in (*odd, _of_another_page(ctx, p.perception_id or "", place)) if one is not None]


def _of_another_page(ctx: ToolContext, perception_id: str, place: Place) -> str | None:
    """Claims belong to the page the tab shows now; they may have been read off another."""
    tab = ctx.tab
    perceived = _PERCEIVED.match(perception_id)
    if perceived is not None and perceived.group(1) != tab.target_id:
        return f"perceptionId is of {perceived.group(1)}, but these claims were taken for {tab.target_id}."
    look = tab.perception.snapshot(perception_id, ctx.ports.clock.now_ms())
    if look is None or (look.epoch == tab.page_epoch and ctx.facts.place(tab, look.scan.page.url) == place):
        return None
    return f"{tab.target_id} has moved on since that perceptionId; these claims were taken for {place.page.url}."


class FactsParams(TargetParams):
    keys: list[Annotated[str, Field(max_length=MAX_KEY_CHARS)]] | None = Field(None, max_length=50)
    include_history: bool = False
    limit: int = Field(50, ge=1, le=200)

    @field_validator("keys")
    @classmethod
    def _known_keys(cls, keys: list[str] | None) -> list[str] | None:
        for key in keys or ():
            if (problem := key_problem(key)) is not None:
                raise ValueError(problem)
        return keys


class PastFact(Part):
    value: JsonValue
    state: FactState
    certainty_level: Certainty
    confidence: float
    valid_from: str
    valid_to: str


class CurrentFact(Part):
    key: str
    value: JsonValue
    state: FactState
    certainty_level: Certainty
    confidence: float
    support: int
    contradictions: int
    is_stale: bool
    url_at_observation: str
    first_observed_at: str
    last_observed_at: str
    history: list[PastFact]

    def line(self) -> str:
        stale = " stale" if self.is_stale else ""
        return f"{self.key}={_brief(self.value)} {self.state} {self.certainty_level}{stale} {self.last_observed_at}"


class FactsResult(Result):
    target_id: str
    service_key: str
    facts: list[CurrentFact]
    capabilities: dict[str, bool]
    count: int

    def text(self) -> str:
        able = " ".join(name if yes else f"not {name}" for name, yes in self.capabilities.items())
        shown = f"{len(self.facts)} of {self.count}" if len(self.facts) < self.count else str(self.count)
        noun = "fact" if self.count == 1 else "facts"
        lines = [f"{self.target_id} {self.service_key}: {shown} {noun}", *(one.line() for one in self.facts)]
        lines += [
            f"  was {_brief(past.value)} until {past.valid_to} ({one.key})"
            for one in self.facts
            for past in one.history
        ]
        return "\n".join([*lines, f"capabilities: {able}"] if able else lines)


@tool(title="Read current facts", effect="read", bundles=("live_facts",))
async def ok_facts(ctx: ToolContext, p: FactsParams) -> FactsResult:
    """What is held true of this tab's service right now, how sure, since when, and what it makes possible. Facts guide;
    the visible page decides."""
    place = _place(ctx)
    known = await ctx.facts.known(place, p.keys, history=p.include_history)
    ordered = in_order(list(known.facts.values()))
    return FactsResult(
        target_id=ctx.tab.target_id,
        service_key=place.service.key,
        facts=[_shown(one, known) for one in ordered[: p.limit]],
        capabilities=known.capabilities,
        count=len(ordered),
    )


def in_order(facts: Sequence[Fact]) -> list[Fact]:
    """Core signals as the vocabulary lists them, then the others by name."""
    ranks = {key: rank for rank, key in enumerate(SIGNALS)}
    return sorted(facts, key=lambda one: (ranks.get(one.key, len(ranks)), one.key))


def _shown(one: Fact, known: Known) -> CurrentFact:
    return CurrentFact(
        key=one.key,
        value=json.loads(one.value),
        state=one.state,
        certainty_level=one.certainty,
        confidence=one.confidence / THOUSAND,
        support=one.support,
        contradictions=one.contradictions,
        is_stale=is_stale(one, known.now_ms),
        url_at_observation=one.url,
        first_observed_at=utc(one.first_observed_at_ms),
        last_observed_at=utc(one.last_observed_at_ms),
        history=[_past(old) for old in known.history.get(one.key, ())],
    )


def _past(old: Fact) -> PastFact:
    return PastFact(
        value=json.loads(old.value),
        state=old.state,
        certainty_level=old.certainty,
        confidence=old.confidence / THOUSAND,
        valid_from=utc(old.valid_from_ms),
        valid_to=utc(old.valid_to_ms or old.valid_from_ms),
    )


class SchemaParams(AgentParams):
    namespace: str | None = Field(None, min_length=1, max_length=MAX_KEY_CHARS)
    include_deprecated: bool = False
    max_entries: int = Field(200, ge=1, le=500)


class SignalPart(Part):
    signal_key: str
    namespace: str
    value_type: ValueType
    description: str
    example: JsonValue
    deprecated: bool


class SchemaResult(Result):
    keys: list[SignalPart]
    count: int
    truncated: bool

    def text(self) -> str:
        lines = [
            f"{one.signal_key} {one.value_type}: {one.description} e.g. {json.dumps(one.example, ensure_ascii=False)}"
            for one in self.keys
        ]
        return "\n".join([*lines, f"{self.count} signals{', more left out' if self.truncated else ''}"])


@tool(title="List known signals", effect="read", bundles=("live_facts",), target="none")
async def ok_signal_schema(ctx: ToolContext, p: SchemaParams) -> SchemaResult:
    """The core signals that nova.ok_observe takes, with type and example. Other namespaces are free."""
    fitting = [
        one
        for one in SIGNALS.values()
        if (p.namespace is None or one.namespace == p.namespace) and (p.include_deprecated or not one.deprecated)
    ]
    shown = fitting[: p.max_entries]
    return SchemaResult(
        keys=[
            SignalPart(
                signal_key=one.key,
                namespace=one.namespace,
                value_type=one.value_type,
                description=one.description,
                example=one.example,
                deprecated=one.deprecated,
            )
            for one in shown
        ],
        count=len(shown),
        truncated=len(shown) < len(fitting),
    )
