"""Calls as pages show them: one line each, from a record of the ledger."""

from dataclasses import dataclass
from typing import Final

from nova_mcp.dashboard.formatting import plain, tool_name
from nova_mcp.evidence.model import CallRecord
from nova_mcp.evidence.rules import effective_page, host_of
from nova_mcp.evidence.store import StoredCall

_TONES: Final = {
    "ok": "plain",
    "partial": "warn",
    "pending": "plain",
    "blocked_preflight": "warn",
    "invalid": "warn",
    "cancelled": "plain",
    "failed": "bad",
    "crashed": "bad",
}
_OUTCOMES: Final = {
    "ok": "ok",
    "partial": "partial",
    "pending": "announced",
    "blocked_preflight": "refused",
    "invalid": "invalid",
    "cancelled": "cancelled",
    "failed": "failed",
    "crashed": "crashed",
}
_PROOFS: Final = {
    "verified": ("verified", "good"),
    "verified_success": ("verified", "good"),
    "likely": ("likely", "plain"),
    "uncertain": ("uncertain", "warn"),
    "failed": ("disproved", "bad"),
    "verified_fail": ("disproved", "bad"),
    "indeterminate": ("undecided", "warn"),
}


@dataclass(frozen=True, slots=True)
class CallLine:
    """One row of a list of calls; one without a body keeps its place and nothing else."""

    call_id: str
    at_ms: int | None
    agent: str
    principal: str
    tool: str
    effect: str
    outcome: str
    tone: str
    why: str
    proof: str
    proof_tone: str
    duration_ms: int | None
    host: str
    url: str


def outcome_words(kind: str) -> tuple[str, str]:
    """An outcome's word and tone."""
    return _OUTCOMES.get(kind, plain(kind)), _TONES.get(kind, "plain")


def proof_words(verification: str | None) -> tuple[str, str]:
    """What became of checking an action; nothing for what was not checked."""
    if not verification or verification == "skipped":
        return "", "plain"
    return _PROOFS.get(verification, (plain(verification), "plain"))


def line_of(call: StoredCall) -> CallLine:
    if call.record is None:
        word, tone = ("lost", "bad") if call.lost else ("erased", "plain")
        return CallLine(call.link.call_id, None, "", "", word, "", word, tone, "", "", "plain", None, "", "")
    return _line(call.record)


def _line(record: CallRecord) -> CallLine:
    outcome, tone = outcome_words(record.outcome.kind)
    proof, proof_tone = proof_words(record.outcome.verification)
    url = effective_page(record).url
    return CallLine(
        call_id=record.call_id,
        at_ms=record.started_at_ms,
        agent=plain(record.caller.agent_id),
        principal=plain(record.caller.principal),
        tool=tool_name(record.tool_name),
        effect=record.effect,
        outcome=outcome,
        tone=tone,
        why=plain(record.outcome.reason_code or record.outcome.gate_id or ""),
        proof=proof,
        proof_tone=proof_tone,
        duration_ms=record.duration_ms,
        host=plain(host_of(url) or ""),
        url=plain(url or ""),
    )
