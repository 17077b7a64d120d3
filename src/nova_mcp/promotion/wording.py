"""Says why an entry stands where it stands and what would let it move on; pure."""

from collections.abc import Sequence
from typing import Final

from nova_mcp.promotion.counting import DRIFT_MS
from nova_mcp.promotion.gates import review
from nova_mcp.promotion.model import (
    HOUR_MS,
    Entry,
    EvidenceCounts,
    Explanation,
    Gate,
    Hold,
    Lower,
    Mark,
    Promote,
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


def number(value: float) -> str:
    return str(int(value)) if value == int(value) else f"{value:.2f}"


def explain(entry: Entry, marks: Sequence[Mark], now_ms: int, wanted: TransitionKind | None = None) -> Explanation:
    """The transition an entry stands before, its gates, and what to do about those that fail."""
    match review(entry, marks, now_ms, wanted):
        case Promote() as verdict:
            told = f"This entry is {standing(entry)} and may {_AIMS[verdict.kind]}: every gate passes."
            return Explanation(verdict.kind, told, verdict.gates, ("Call nova.learn_promote to apply it.",))
        case Lower() as verdict:
            told = f"This entry is {standing(entry)} and has to {_AIMS[verdict.kind]}."
            todo = "Don't rely on it; revalidate it on the page and repair it."
            return Explanation(verdict.kind, told, verdict.gates, (todo,))
        case Hold() as verdict if verdict.kind in ("demotion", "deprecation"):
            told = f"This entry is {standing(entry)}; nothing speaks for it to {_AIMS[verdict.kind]}."
            return Explanation(verdict.kind, told, verdict.gates, ())
        case Hold() as verdict:
            gates = verdict.missing
            told = f"This entry is {standing(entry)}; to {_AIMS[verdict.kind]} it still needs: {missing_words(gates)}."
            return Explanation(
                verdict.kind, told, verdict.gates, tuple(remedy(gate, verdict.counts, now_ms) for gate in gates)
            )
        case Reject(kind):
            aim = _AIMS[kind] if kind is not None else "move"
            told = f"This entry is {standing(entry)}; it is not one to {aim}."
            return Explanation(kind or "l0_to_l1", told, (), ())


def standing(entry: Entry) -> str:
    return "deprecated" if entry.deprecated else _LEVELS[entry.level]


def missing_words(gates: Sequence[Gate]) -> str:
    return ", ".join(f"{gate.name} {number(gate.required)} (has {number(gate.observed)})" for gate in gates)


def remedy(gate: Gate, counts: EvidenceCounts, now_ms: int) -> str:
    """What would let one gate pass."""
    missing = number(gate.delta_to_pass)
    match gate.name:
        case "not_disproven":
            return "Two failures in a row have disproven the claim; a new observation has to raise a new candidate."
        case "support":
            return f"Meet it {missing} more time(s) on the page; repeats within half a minute count once."
        case "success_support" | "successes":
            told = f"{missing} more verified success(es): act with a contract, so that the page proves the result."
            return f"{told} Several steps are proven only together, by nova.phenomenon_apply."
        case "success_sessions":
            return f"Successes in {missing} more session(s); one starts after half an hour without work on the site."
        case "confidence" | "evidence_score":
            return f"{missing} short: more verified successes without failures raise it; agents' own figures don't."
        case "failures":
            return f"{missing} failure(s) too many; they stop counting after 30 days or when the content is revised."
        case "drift_7d":
            return _drift_remedy(counts, now_ms)
        case "unconfirmed_selectors":
            return f"{missing} selector(s) have not been seen on the page yet; open a page that shows them."
        case _:
            return "Nothing to do."


def _drift_remedy(counts: EvidenceCounts, now_ms: int) -> str:
    if counts.last_drift_at_ms is None:
        return "Repair the entry with nova.pks_patch."
    hours = max(1, -(-(counts.last_drift_at_ms + DRIFT_MS + 1 - now_ms) // HOUR_MS))
    return f"A selector has drifted; repair it with nova.pks_patch, or let {hours} hour(s) pass without another drift."
