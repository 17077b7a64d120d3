"""Says why an entry stands where it stands and what would let it move on; pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from nova_mcp.memory.promotion.gates.counting import DRIFT_MS
from nova_mcp.memory.promotion.gates.gates import is_strict, review
from nova_mcp.memory.promotion.model import (
    HOUR_MS,
    ConsentGates,
    Entry,
    EvidenceCounts,
    Explanation,
    Gate,
    Hold,
    Lower,
    Mark,
    Promote,
    Proof,
    Reject,
    TransitionKind,
)

_LEVELS: Final = {0: "a candidate", 1: "a shadow", 2: "active"}
_AIMS: Final[dict[TransitionKind, str]] = {
    "l0_to_l1": "become a shadow",
    "l1_to_l2": "become active",
    "demotion": "be demoted",
    "deprecation": "be deprecated",
    "revive": "return as a shadow",
}
# The gates that only uses of the entry can pass.
_BY_USE: Final = frozenset(
    {"support", "success_support", "successes", "success_sessions", "confidence", "evidence_score"}
)
_SHOWN_SELECTORS: Final = 3


BY_CLICK: Final = Proof()


@dataclass(frozen=True, slots=True)
class Judging:
    """By what an entry is judged: the transition asked for, the consent gates in force, how it can be proven."""

    wanted: TransitionKind | None = None
    consent: ConsentGates = "standard"
    proof: Proof = BY_CLICK


STANDARD: Final = Judging()


def number(value: float) -> str:
    return str(int(value)) if value == int(value) else f"{value:.2f}"


def explain(entry: Entry, marks: Sequence[Mark], now_ms: int, by: Judging = STANDARD) -> Explanation:
    """The transition an entry stands before, its gates, and what to do about those that fail."""
    verdict = review(entry, marks, now_ms, by.wanted, by.consent)
    match verdict:
        case Promote():
            told = f"This entry is {standing(entry)} and may {_AIMS[verdict.kind]}: every gate passes."
            remediation: tuple[str, ...] = ("Call nova.learn_promote to apply it.",)
        case Lower():
            told = f"This entry is {standing(entry)} and has to {_AIMS[verdict.kind]}."
            remediation = ("Don't rely on it; revalidate it on the page and repair it.",)
        case Hold() if verdict.kind in ("demotion", "deprecation"):
            told = f"This entry is {standing(entry)}; nothing speaks for it to {_AIMS[verdict.kind]}."
            remediation = ()
        case Hold():
            gates = verdict.missing
            told = f"This entry is {standing(entry)}; to {_AIMS[verdict.kind]} it still needs: {missing_words(gates)}."
            remediation = tuple(dict.fromkeys(remedy(gate, verdict.counts, now_ms, by.proof) for gate in gates))
        case Reject(kind):
            aim = _AIMS[kind] if kind is not None else "move"
            told = f"This entry is {standing(entry)}; it is not one to {aim}."
            return Explanation(kind or "l0_to_l1", told, (), ())
    if verdict.kind == "l1_to_l2" and is_strict(entry, by.consent):
        told += ' Banners are judged by the stricter gates of this server ([learning] consent_gates = "strict").'
    return Explanation(verdict.kind, told, verdict.gates, remediation)


def standing(entry: Entry) -> str:
    return "deprecated" if entry.deprecated else _LEVELS[entry.level]


def missing_words(gates: Sequence[Gate]) -> str:
    return ", ".join(f"{gate.name} {number(gate.required)} (has {number(gate.observed)})" for gate in gates)


def remedy(gate: Gate, counts: EvidenceCounts, now_ms: int, proof: Proof) -> str:
    """What lets one gate pass, when followed."""
    missing = number(gate.delta_to_pass)
    if gate.name in _BY_USE and not proof.possible:
        return proof.advice
    match gate.name:
        case "not_disproven":
            return "Two failures in a row have disproven its claim: store it with nova.pks_upsert once it works again."
        case "support":
            return f"Use it {missing} more time(s), half a minute apart: {proof.advice}"
        case "success_support" | "successes":
            return f"{missing} more verified success(es), half a minute apart: {proof.advice}"
        case "success_sessions":
            return f"Successes in {missing} more session(s): after half an hour without a call there, {proof.advice}"
        case "confidence" | "evidence_score":
            return f"{missing} short; each verified success raises it, an agent's own figure does not: {proof.advice}"
        case "failures":
            told = (
                f"{missing} failure(s) too many: correct what failed with nova.pks_patch, which starts the count anew,"
            )
            return f"{told} or wait until they are 30 days old."
        case "drift_7d":
            return _drift_remedy(counts, now_ms)
        case "unconfirmed_selectors":
            return _unseen_remedy(gate, proof)
        case _:
            return "Nothing to do."


def _unseen_remedy(gate: Gate, proof: Proof) -> str:
    named = ", ".join(f'"{one[:60]}"' for one in proof.unseen[:_SHOWN_SELECTORS]) or number(gate.observed)
    told = f"Not seen on a page yet: {named}. Call nova.revalidate where the page shows it, or take it out with"
    return f"{told} nova.pks_patch, or {proof.advice}"


def _drift_remedy(counts: EvidenceCounts, now_ms: int) -> str:
    if counts.last_drift_at_ms is None:
        return "Repair the entry with nova.pks_patch."
    hours = max(1, -(-(counts.last_drift_at_ms + DRIFT_MS + 1 - now_ms) // HOUR_MS))
    return f"A selector has drifted: correct it with nova.pks_patch, or let {hours} hour(s) pass without another drift."
