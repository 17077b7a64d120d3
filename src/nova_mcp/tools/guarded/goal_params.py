"""The arguments of `goal_register`: one tool, four operations, each with its own fields."""

import json
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from nova_mcp.errors import InvalidParams
from nova_mcp.tools.arguments import P, parse_arguments
from nova_mcp.tools.guarded.contract_params import AssertionSetParams, TransitionContractParams
from nova_mcp.tools.spec import AGENT_ID, AgentParams, Params
from nova_mcp.verification.goals.register import EVENTS_LIMIT, GoalPlan, StepPlan
from nova_mcp.verification.goals.rules import LEASE_MS, GoalMode, TerminalState
from nova_mcp.verification.model import AssertionSet, Contract

GoalOp = Literal["create", "query", "close", "annotate"]
MAX_STEPS = 50

# No database can be asked for a text with a zero byte in it.
_TEXT: Final = r"^[^\x00]*$"
Id = Annotated[str, Field(min_length=1, max_length=64, pattern=_TEXT)]
Session = Annotated[str, Field(min_length=1, max_length=200, pattern=_TEXT)]
Agent = Annotated[str, Field(pattern=f"^{AGENT_ID.pattern}$")]
JSON_CHARS = 20_000


def _short(text: str) -> str:
    if len(text) > JSON_CHARS:
        raise ValueError(f"at most {JSON_CHARS} characters")
    return text


JsonText = Annotated[str, AfterValidator(_short)]

_SHARED: Final = frozenset({"op", "agent_id"})
_FIELDS: Final[dict[GoalOp, frozenset[str]]] = {
    "create": frozenset(
        {"target_id", "summary", "mode", "preconditions", "owner_agent_id", "sidecar_session_id", "lease_ms", "steps"}
        | {"preconditions_json", "owner_agent", "owner_session", "lease_timeout_ms"}
    ),
    "query": frozenset({"goal_id", "target_id", "include_steps", "include_events", "events_limit"}),
    "close": frozenset({"goal_id", "state"}),
    "annotate": frozenset({"goal_id", "content", "source"}),
}
_REQUIRED: Final[dict[GoalOp, tuple[str, ...]]] = {
    "create": ("summary",),
    "query": (),
    "close": ("goal_id", "state"),
    "annotate": ("goal_id", "content"),
}
_STRUCTURED: Final = frozenset({"preconditions", "owner_agent_id", "sidecar_session_id", "lease_ms"})
_LEGACY: Final = frozenset({"preconditions_json", "owner_agent", "owner_session", "lease_timeout_ms"})


class GoalStepParams(Params):
    action_desc: str = Field(min_length=1, max_length=500, pattern=_TEXT, description="what the step does")
    contract: TransitionContractParams | None = None
    contract_json: JsonText | None = None

    def plan(self) -> StepPlan:
        return StepPlan(self.action_desc, self._contract())

    def _contract(self) -> Contract | None:
        if self.contract_json is not None:
            return _parsed(TransitionContractParams, self.contract_json, "contractJson").to_contract()
        return None if self.contract is None else self.contract.to_contract()

    @model_validator(mode="after")
    def _readable(self) -> Self:
        self._contract()
        return self


class GoalRegisterParams(AgentParams):
    op: GoalOp
    goal_id: Id | None = Field(None, description="close, annotate; query for one goal")
    target_id: Id | None = Field(None, description="create: default active; query: filter")
    summary: str | None = Field(None, min_length=1, max_length=500, pattern=_TEXT, description="create")
    mode: GoalMode = "agent_driven"
    preconditions: AssertionSetParams | None = Field(None, description="create: all, any, forbidden")
    owner_agent_id: Agent | None = Field(None, description="create: only this agent acts on the target")
    sidecar_session_id: Session | None = None
    lease_ms: int = Field(LEASE_MS, ge=1000, le=600_000)
    steps: Annotated[list[GoalStepParams], Field(max_length=MAX_STEPS)] | None = Field(
        None, description="create: [{actionDesc, contract?}]"
    )
    include_steps: bool = True
    include_events: bool = False
    events_limit: int = Field(EVENTS_LIMIT, ge=1, le=200)
    state: TerminalState | None = Field(None, description="close")
    content: str | None = Field(None, min_length=1, max_length=4000, pattern=_TEXT, description="annotate")
    source: str = Field("agent", min_length=1, max_length=64, pattern=_TEXT)
    preconditions_json: JsonText | None = Field(None, description="older name of preconditions, as text")
    owner_agent: Agent | None = Field(None, description="older name of ownerAgentId")
    owner_session: Session | None = Field(None, description="older name of sidecarSessionId")
    lease_timeout_ms: int | None = Field(None, ge=1000, le=600_000, description="older name of leaseMs")

    @model_validator(mode="after")
    def _one_operation(self) -> Self:
        allowed = _FIELDS[self.op] | _SHARED
        if foreign := sorted(map(_alias, self.model_fields_set - allowed)):
            theirs = ", ".join(sorted(map(_alias, allowed)))
            raise ValueError(f"op {self.op} takes no {', '.join(foreign)}; it takes {theirs}")
        for name in _REQUIRED[self.op]:
            if getattr(self, name) is None:
                raise ValueError(f"op {self.op} needs {_alias(name)}")
        self._check_spelling()
        self._conditions()
        return self

    def _check_spelling(self) -> None:
        steps = self.steps or []
        legacy = sorted(map(_alias, self.model_fields_set & _LEGACY))
        legacy += ["steps.contractJson"] if any("contract_json" in step.model_fields_set for step in steps) else []
        structured = sorted(map(_alias, self.model_fields_set & _STRUCTURED))
        structured += ["steps.contract"] if any("contract" in step.model_fields_set for step in steps) else []
        if legacy and structured:
            raise ValueError(f"{', '.join(legacy)} and {', '.join(structured)} are old and new names; use one kind")

    def _conditions(self) -> AssertionSet:
        if self.preconditions_json is not None:
            return _parsed(AssertionSetParams, self.preconditions_json, "preconditionsJson").to_set()
        return AssertionSet() if self.preconditions is None else self.preconditions.to_set()

    def plan(self, target_id: str | None) -> GoalPlan:
        """What `create` registers, whichever names it came under."""
        return GoalPlan(
            summary=self.summary or "",
            mode=self.mode,
            target_id=target_id,
            owner_agent_id=self.owner_agent_id or self.owner_agent,
            session_id=self.sidecar_session_id or self.owner_session,
            lease_ms=self.lease_ms if self.lease_timeout_ms is None else self.lease_timeout_ms,
            preconditions=self._conditions(),
            steps=tuple(step.plan() for step in self.steps or []),
        )

    @property
    def events(self) -> int:
        return self.events_limit if self.include_events else 0


def _alias(name: str) -> str:
    return GoalRegisterParams.model_fields[name].alias or name


def _parsed(params: type[P], text: str, name: str) -> P:
    """What a legacy field holds as JSON text, checked like the object it stands for."""
    try:
        body = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{name} is no JSON: {error}") from None
    if not isinstance(body, dict):
        raise ValueError(f"{name} must hold a JSON object")
    try:
        return parse_arguments(params, body)
    except InvalidParams as wrong:
        raise ValueError(f"{name}: {wrong.message}") from None
