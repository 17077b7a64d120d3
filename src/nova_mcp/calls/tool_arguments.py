"""Which tool a call means, and its arguments as that tool understands them."""

from dataclasses import replace
from typing import Final

from nova_mcp.calls.callers import agent_id
from nova_mcp.calls.endings import Ending
from nova_mcp.calls.envelope import Envelope
from nova_mcp.calls.stages.stage import Call, Proceed
from nova_mcp.errors import InvalidParams, UnknownTool
from nova_mcp.tools.arguments import kept_arguments, parse_arguments
from nova_mcp.tools.catalogue import Catalogue
from nova_mcp.tools.names import DOOR, canonical_name
from nova_mcp.tools.spec import AgentParams, Params, ToolSpec
from nova_mcp.tools.system.call import CallParams, no_such_tool

LIMIT_GATE: Final = "server.limit"


class Validation:
    """The first stage: which tool, with which arguments, and whether a limit before this already said no."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue

    async def around(self, call: Call, proceed: Proceed) -> Ending:
        call.spec, call.params = understand(call.envelope, self._catalogue)
        if call.request.refusal is not None:
            call.envelope.gate_id = LIMIT_GATE
            raise call.request.refusal
        return await proceed()


def understand(envelope: Envelope, catalogue: Catalogue) -> tuple[ToolSpec, Params]:
    """The envelope takes down how far this came, so that a call that ends here is recorded as what it was."""
    if envelope.tool_name == DOOR:
        _enter_door(envelope, catalogue)
    spec = catalogue.find(envelope.tool_name)
    envelope.spec = spec
    params = parse_arguments(spec.params, envelope.arguments)
    envelope.arguments = kept_arguments(spec.params, envelope.arguments)
    spec.check(params, catalogue)
    envelope.understood = True
    if isinstance(params, AgentParams):
        envelope.caller = replace(envelope.caller, agent_id=params.agent_id)
    return spec, params


def _enter_door(envelope: Envelope, catalogue: Catalogue) -> None:
    """`nova.call` becomes the tool it names: same effect, gates, evidence and answer."""
    envelope.spec = catalogue.find(DOOR)
    outer = parse_arguments(CallParams, envelope.arguments)
    inner = canonical_name(outer.tool)
    if inner == DOOR:
        raise InvalidParams("call.nested")
    try:
        catalogue.find(inner)
    except UnknownTool as unknown:
        raise no_such_tool(outer.tool, unknown.closest) from None
    envelope.via, envelope.tool_name, envelope.arguments = "call", inner, outer.args
    envelope.caller = replace(envelope.caller, agent_id=agent_id(outer.args))
