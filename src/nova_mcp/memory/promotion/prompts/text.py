"""How agents are asked: the prompt, the entry they may store in answer to it, and the summary when they leave; pure."""

import json
from collections.abc import Callable
from typing import Final

from nova_mcp.core.values import Json
from nova_mcp.memory.knowledge.model import DEFAULT_MIN_CONFIDENCE
from nova_mcp.memory.promotion.prompts.rules import (
    GATE_ID,
    REASONS,
    RESOLUTION_TOOLS,
    WHY_NOT_AUTOMATIC,
    BatchSummary,
    Prompt,
    SemanticKind,
    SemanticOpportunity,
    site_of,
)

BLOCK: Final = "pksSemanticLearning"
SUMMARY_BLOCK: Final = "pksSemanticLearningBatchSummary"
MOST_ENTRIES: Final = 8
_POLICIES: Final[dict[SemanticKind, str]] = {
    "consent_cmp": "reject_preferred",
    "login_wall": "warn",
    "risky_repeat": "custom",
}


def skeleton(one: SemanticOpportunity) -> dict[str, Json]:
    """A `pks_upsert` argument: what was seen is filled in, what only the agent can say is left empty."""
    pressed = one.kind != "login_wall"
    action: dict[str, Json] = {"action": "click", "selector": one.selector or ""}
    if one.kind == "consent_cmp":
        action["declaredPolarity"] = ""
    if one.kind == "risky_repeat":
        # The selector that was used is the one that won't last.
        action["selector"] = ""
    known: list[Json] = [{"kind": "dom", "match": one.layer}]
    gone: list[Json] = [{"type": "absent", "selector": one.layer}] if one.layer and pressed else []
    playbook: dict[str, Json] = {
        "policy": _POLICIES[one.kind],
        "actions": [action] if pressed else [],
        "verify": gone,
    }
    return {
        "scope": site_of(one.origin),
        "phenomenon": {
            "id": "",
            "type": "custom" if one.kind == "risky_repeat" else one.kind,
            "fingerprint": {"signals": known, "minConfidence": DEFAULT_MIN_CONFIDENCE},
            "playbook": playbook,
        },
    }


def evidence_json(one: SemanticOpportunity) -> str:
    seen = {"selector": one.selector, "layer": one.layer, "clicks": one.clicks, "tool": one.tool}
    return json.dumps({name: value for name, value in seen.items() if value}, ensure_ascii=False)


def prompt_block(prompt: Prompt, spelled: Callable[[str], str] = str) -> dict[str, Json]:
    """The block that an answer carries; `spelled` gives a tool the name that the client knows it by."""
    one = prompt.opportunity
    return {
        "gateId": GATE_ID,
        "status": prompt.status,
        "opportunityId": one.opportunity_id,
        "kind": one.kind,
        "origin": one.origin,
        "fingerprint": one.fingerprint,
        "confidence": one.confidence,
        "reason": REASONS[one.kind],
        "whyAutoUpsertIsInsufficient": WHY_NOT_AUTOMATIC[one.kind],
        "resolutionTools": [spelled(one) for one in RESOLUTION_TOOLS],
        "evidenceJson": evidence_json(one),
        "skeleton": skeleton(one),
    }


def summary_block(summary: BatchSummary) -> dict[str, Json]:
    entries: list[Json] = [
        {"opportunityId": one.opportunity_id, "kind": one.kind, "state": one.state, "confidence": one.confidence}
        for one in summary.entries[:MOST_ENTRIES]
    ]
    return {"status": "batch_summary", "origin": summary.origin, "reason": summary.reason, "entries": entries}


def prompt_line(prompt: Prompt) -> str:
    one = prompt.opportunity
    return f"! {GATE_ID} {prompt.status}: {one.opportunity_id}; store it with pks_upsert or say why not"


def summary_line(summary: BatchSummary) -> str:
    names = ", ".join(one.opportunity_id for one in summary.entries[:2])
    return f"! {GATE_ID}: left open on {summary.origin}: {names}"
