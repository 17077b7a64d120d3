"""Which tools `tools/list` shows: `core`, `all`, or a comma-separated choice of bundles."""

from collections.abc import Collection

from nova_mcp.tools.names import DOOR, INDEX

EVERYTHING = "all"


def chosen_bundles(profile: str) -> frozenset[str]:
    return frozenset(part.strip() for part in profile.split(",") if part.strip())


def in_profile(canonical: str, bundles: Collection[str], profile: str) -> bool:
    """The door and the index are shown whatever the choice is."""
    chosen = chosen_bundles(profile)
    return EVERYTHING in chosen or canonical in (DOOR, INDEX) or not chosen.isdisjoint(bundles)
