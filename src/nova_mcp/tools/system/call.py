"""The door to every tool."""

from pydantic import Field, JsonValue

from nova_mcp.core.values import Json
from nova_mcp.errors import InvalidParams
from nova_mcp.tools.arguments import shown
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.spec import Params, Result, tool


class CallParams(Params):
    tool: str = Field(min_length=1, max_length=120, description="tool name")
    args: dict[str, JsonValue] = Field(default_factory=dict, description="its arguments")


@tool(title="Call any tool", effect="admin", bundles=("core", "system_tools"), target="none")
async def call(ctx: ToolContext, p: CallParams) -> Result:
    """Runs any Nova tool by name, listed or not. Find tools and their arguments with nova.tools_bundle."""
    raise AssertionError("the pipeline opens this door before any handler runs")


def no_such_tool(raw: str, closest: tuple[str, ...]) -> InvalidParams:
    near: list[Json] = list(closest)
    return InvalidParams(
        "unknown_tool",
        f"there is no tool {shown(raw)}",
        details={"closest": near},
    )
