"""The shipped list of sites of which nothing is remembered: banks, payment services, health portals."""

import functools
from importlib.resources import files
from typing import Final

_LIST: Final = "data/sensitive_domains.txt"


@functools.cache
def sensitive_sites() -> frozenset[str]:
    """Registrable domains, one per line of the list."""
    lines = files("nova_mcp.memory.notes").joinpath(_LIST).read_text("utf-8").splitlines()
    return frozenset(line for raw in lines if (line := raw.partition("#")[0].strip()))
