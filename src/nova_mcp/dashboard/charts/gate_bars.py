"""Gates as bars: what each asks for, what there is, and how much of it; pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from nova_mcp.memory.promotion.gates.explanations import number
from nova_mcp.memory.promotion.model import Gate, TransitionKind

# What a full bar means: enough, too much, or a fall.
Sense = Literal["needs", "allows", "threatens"]

_AT_MOST: Final = frozenset({"failures", "drift_7d", "unconfirmed_selectors"})
_FALLING: Final[frozenset[TransitionKind]] = frozenset({"demotion", "deprecation"})
_LABELS: Final = {
    "not_disproven": "claim not disproven",
    "support": "times met",
    "success_support": "proofs",
    "successes": "proofs",
    "success_sessions": "sessions with a proof",
    "confidence": "confidence",
    "evidence_score": "evidence score",
    "failures": "failures",
    "drift_7d": "drifts in 7 days",
    "unconfirmed_selectors": "selectors nobody has seen",
    "hard_drift_24h": "selector gone within 24 hours",
    "consecutive_failures": "failures in a row",
}


@dataclass(frozen=True, slots=True)
class GateBar:
    name: str
    label: str
    sense: Sense
    # Of the bar's length that is filled, in percent.
    percent: int
    told: str
    passed: bool


def gate_bar(gate: Gate, transition: TransitionKind) -> GateBar:
    sense: Sense = "threatens" if transition in _FALLING else "allows" if gate.name in _AT_MOST else "needs"
    has, asks = number(gate.observed), number(gate.required)
    told = f"{has}, at most {asks}" if sense == "allows" else f"{has} of {asks}"
    return GateBar(
        gate.name,
        _LABELS.get(gate.name, gate.name.replace("_", " ")),
        sense,
        filled(gate, sense),
        told,
        gate.passed,
    )


def filled(gate: Gate, sense: Sense) -> int:
    """A limit that nothing may exceed is full as soon as it is broken."""
    if sense == "allows":
        over = gate.observed > gate.required
        return 100 if over else round(100 * gate.observed / (gate.required + 1))
    return 100 if gate.required <= 0 else round(100 * min(1.0, max(0.0, gate.observed / gate.required)))


def gate_bars(gates: Iterable[Gate], transition: TransitionKind) -> tuple[GateBar, ...]:
    return tuple(gate_bar(one, transition) for one in gates)
