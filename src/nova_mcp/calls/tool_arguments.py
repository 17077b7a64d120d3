"""Which tool a call means, and its arguments as that tool understands them."""

from dataclasses import replace

from nova_mcp.calls.callers import agent_id
from nova_mcp.calls.envelope import Envelope
from nova_mcp.errors import InvalidParams, UnknownTool
from nova_mcp.tools.arguments import kept_arguments, parse_arguments
from nova_mcp.tools.catalogue import Catalogue
from nova_mcp.tools.names import DOOR, canonical_name
from nova_mcp.tools.spec import AgentParams, Params, ToolSpec
from nova_mcp.tools.system.call import CallParams, no_such_tool


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
