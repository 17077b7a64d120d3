"""Tool names in every spelling clients use, reduced to the one that evidence knows."""

from collections.abc import Collection

from nova_mcp.core.values import Json
from nova_mcp.errors import Fix
from nova_mcp.settings import ToolNames
from nova_mcp.tools import PREFIX

# The door to every tool and the index beside it: listed whatever the profile is.
DOOR = "nova.call"
INDEX = "nova.tools_bundle"
NAMESPACE = PREFIX.removesuffix(".")
_CLIENT_PREFIX = "mcp__"
_CLIENT_SEPARATOR = "__"


def canonical_name(raw: str) -> str:
    """`nova.x` for `nova.x`, `nova_x`, `x`, and for any of them behind `mcp__<server>__`; unknown names pass too."""
    name = raw.strip()
    if name.startswith(_CLIENT_PREFIX):
        # No tool name holds a double underscore, but a server's name in a client's configuration may.
        name = name.rpartition(_CLIENT_SEPARATOR)[2]
    while name.startswith((f"{NAMESPACE}.", f"{NAMESPACE}_")):
        name = name[len(NAMESPACE) + 1 :]
    return PREFIX + name


def published_name(canonical: str, spelling: ToolNames) -> str:
    """The name a client is shown."""
    return canonical if spelling == "dotted" else canonical.replace(".", "_")


def callable_fix(fix: Fix, listed: Collection[str], spelling: ToolNames) -> dict[str, Json]:
    """A fix must be callable as it stands: under a name the client was shown, through the door if it was shown none."""
    args: dict[str, Json] = dict(fix.args)
    if fix.tool in listed:
        return {"tool": published_name(fix.tool, spelling), "args": args}
    return {"tool": published_name(DOOR, spelling), "args": {"tool": fix.tool, "args": args}}
