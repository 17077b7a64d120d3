"""Whose call it is, and which targets it can do without."""

from collections.abc import Mapping

from nova_mcp.calls.model import CallRequest
from nova_mcp.core.values import Json
from nova_mcp.errors import NovaError
from nova_mcp.tools.spec import AGENT_ID, ToolSpec

# As whom Nova looks after sites, and how the ledger tells such calls from those of agents.
OWN = "background"


def whose(request: CallRequest) -> str:
    return OWN if request.background else agent_id(request.arguments)


def agent_id(arguments: Mapping[str, Json]) -> str:
    """The agent a call names, even when its other arguments turn out to be wrong."""
    raw = arguments.get("agentId")
    return raw if isinstance(raw, str) and AGENT_ID.fullmatch(raw) else "default"


def tolerated(spec: ToolSpec, missing: NovaError) -> bool:
    if spec.target in ("optional", "context"):
        unclear = spec.target == "context" and missing.reason_code == "tab.active_ambiguous"
        return unclear or missing.reason_code == "tab.no_active_tab"
    return spec.target == "departed" and missing.reason_code == "tab.unknown" and "lastSeen" in missing.details
