"""One canonical dotted name for every spelling a client may use."""

import re

from nova_mcp.tools import PREFIX

_CLIENT_PREFIX = re.compile(r"^mcp__.+?__(?=nova[._])|^mcp__nova__", re.IGNORECASE)


def canonical_name(raw: str) -> str:
    """`nova.x`, `nova_x`, `x` and `mcp__<server>__nova_x` all mean `nova.x`."""
    name = _CLIENT_PREFIX.sub("", raw.strip())
    if name.startswith(PREFIX):
        return name
    if name.startswith("nova_"):
        return PREFIX + name.removeprefix("nova_")
    return PREFIX + name


def underscored(canonical: str) -> str:
    return canonical.replace(".", "_", 1)
