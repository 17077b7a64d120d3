"""Reads what explaining an entry's level takes: its marks, and what its content says about how it can be proven."""

from dataclasses import replace
from typing import Final

from sqlalchemy import Connection

from nova_mcp.memory.knowledge import store
from nova_mcp.memory.knowledge.model import DomainHint, Phenomenon, ScopeName
from nova_mcp.memory.knowledge.store import Shelved
from nova_mcp.memory.knowledge.writes.content_rules import unread_in, unread_words
from nova_mcp.memory.knowledge.writes.rules import shared_controls
from nova_mcp.memory.promotion import steps_store
from nova_mcp.memory.promotion.gates.entries import entry_of
from nova_mcp.memory.promotion.gates.evidence_rules import proof_of
from nova_mcp.memory.promotion.gates.explanations import Judging, explain
from nova_mcp.memory.promotion.model import ConsentGates, Explanation

_QUARANTINE: Final = (
    "It is quarantined after failures, so no trial of it runs: nova.revalidate on a page that shows it, three times"
    " half a minute apart, ends that."
)


def explanation(conn: Connection, shelved: Shelved, now_ms: int, consent: ConsentGates) -> Explanation:
    """Why an entry stands at its level, with everything that keeps evidence from counting for it."""
    marks, kept = steps_store.marks(conn, shelved.entry_id, now_ms), shelved.kept
    why = explain(entry_of(shelved), marks, now_ms, Judging(consent=consent, proof=proof_of(kept)))
    if isinstance(kept, DomainHint):
        return why
    doubts = [unread_words(*one) for one in unread_in(kept.content)]
    if why.remediation:
        doubts += _obstacles(conn, shelved.scope, kept)
    return replace(why, remediation=(*why.remediation, *doubts))


def _obstacles(conn: Connection, scope: ScopeName, kept: Phenomenon) -> list[str]:
    others = [one.kept for one in store.entries(conn, scope) if one.slot == "current"]
    found = list(shared_controls(kept, (one for one in others if isinstance(one, Phenomenon))))
    if kept.health.quarantined_at_ms is not None and not kept.deprecated:
        found.append(_QUARANTINE)
    return found
