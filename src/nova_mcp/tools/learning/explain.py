"""Why an entry of knowledge stands at its level, and what would move it."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import Field, model_validator

from nova_mcp.memory.knowledge.matching.fingerprints import Match
from nova_mcp.memory.knowledge.model import Level, SignalKind
from nova_mcp.memory.promotion.gates.entries import entry_of
from nova_mcp.memory.promotion.gates.explanations import number
from nova_mcp.memory.promotion.model import TransitionKind
from nova_mcp.memory.promotion.service import Explained, Unknown
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.groups import PRINTABLE
from nova_mcp.tools.knowledge.params import EntryId, ScopeText
from nova_mcp.tools.knowledge.scope_argument import parsed_scope, unknown_entry, unknown_scope
from nova_mcp.tools.learning.promote import GatePart
from nova_mcp.tools.spec import AgentParams, Part, Result, tool

MAX_SIGNALS: Final = 64
_ALIASES: Final = {"stable_id": "stableId", "observed_signals": "observedSignals"}


class ExplainParams(AgentParams):
    scope: ScopeText
    stable_id: EntryId
    observed_signals: list[Annotated[str, Field(min_length=1, max_length=512, pattern=PRINTABLE)]] | None = Field(
        None, max_length=MAX_SIGNALS, description="kind:match, or a bare match of any kind"
    )

    @model_validator(mode="before")
    @classmethod
    def _one_name(cls, given: Any) -> Any:
        """Both spellings of a name are taken; they may not say different things."""
        if not isinstance(given, Mapping):
            return given
        named = dict(given)
        for alias, name in _ALIASES.items():
            if alias in named:
                value = named.pop(alias)
                if name in named and named[name] != value:
                    raise ValueError(f"{name} and {alias} differ; send {name} alone")
                named[name] = value
        return named


class ExplainedEntryPart(Part):
    stable_id: str
    type: str
    level: Level
    deprecated: bool


class ExplainPart(Part):
    transition: TransitionKind
    summary: str
    gates: list[GatePart]
    remediation: list[str]


class MatchedSignalPart(Part):
    kind: SignalKind
    match: str
    weight: float
    applicable: bool
    matched: bool


class FingerprintMatchPart(Part):
    confidence: float
    min_confidence: float
    signals: list[MatchedSignalPart]

    def line(self) -> str:
        hits = sum(one.matched for one in self.signals)
        told = f"{hits} of {len(self.signals)} signals"
        return f"match {number(self.confidence)}, needs {number(self.min_confidence)} ({told})"


class ExplainResult(Result):
    scope: str
    phenomenon: ExplainedEntryPart
    explain: ExplainPart
    match: FingerprintMatchPart | None

    def text(self) -> str:
        lines = [f"{self.scope} {self.phenomenon.stable_id}: {self.explain.summary}"]
        lines += [one.line() for one in self.explain.gates]
        lines += [] if self.match is None else [self.match.line()]
        return "\n".join([*lines, *(f"Next: {one}" for one in self.explain.remediation)])


@tool(title="Explain an entry's level", effect="read", bundles=("pks_learning",), target="none")
async def explain(ctx: ToolContext, p: ExplainParams) -> ExplainResult:
    """Why an entry stands at its level, which gates pass or fail, what would help, and how far given signals match."""
    scope = parsed_scope(p.scope)
    match await ctx.learning.promotion.explain(scope, p.stable_id, p.observed_signals):
        case Unknown(scope_known=False):
            raise unknown_scope(scope)
        case Unknown():
            raise unknown_entry(scope, p.stable_id)
        case Explained() as told:
            return explained(told)


def explained(told: Explained) -> ExplainResult:
    """An explanation as agents and programs get it."""
    entry, why = entry_of(told.shelved), told.explanation
    return ExplainResult(
        scope=entry.host,
        phenomenon=ExplainedEntryPart(
            stable_id=entry.stable_id, type=entry.phenomenon_type, level=entry.level, deprecated=entry.deprecated
        ),
        explain=ExplainPart(
            transition=why.transition,
            summary=why.summary,
            gates=[GatePart.of(gate) for gate in why.gates],
            remediation=list(why.remediation),
        ),
        match=None if told.match is None else _match(told.match),
    )


def _match(match: Match) -> FingerprintMatchPart:
    return FingerprintMatchPart(
        confidence=round(match.confidence, 4),
        min_confidence=match.min_confidence,
        signals=[
            MatchedSignalPart(
                kind=one.signal.kind,
                match=one.signal.match,
                weight=one.weight,
                applicable=one.applicable,
                matched=one.matched,
            )
            for one in match.signals
        ],
    )
