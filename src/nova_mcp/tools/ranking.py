"""Which tools fit words that say what somebody wants to do; pure."""

from collections.abc import Iterable

from nova_mcp.tools import PREFIX
from nova_mcp.tools.spec import ToolSpec

NAME_HIT, BUNDLE_HIT, TEXT_HIT = 3, 1, 1
_OWN_NAME = PREFIX.removesuffix(".")


def rank_tools(query: str, tools: Iterable[ToolSpec]) -> tuple[list[ToolSpec], bool]:
    """Tools that match every word, best first and ties by name; if none does, those that match some, and True."""
    words = [word for word in query.lower().replace("_", " ").replace(".", " ").split() if word != _OWN_NAME]
    scored: list[tuple[bool, int, ToolSpec]] = []
    for spec in tools:
        hits = [_word_score(word, spec) for word in words]
        if any(hits):
            scored.append((all(hits), sum(hits), spec))
    scored.sort(key=lambda row: (-row[1], row[2].name))
    full = [spec for every, _, spec in scored if every]
    return (full, False) if full else ([spec for _, _, spec in scored], bool(scored))


def _word_score(word: str, spec: ToolSpec) -> int:
    in_name = NAME_HIT if word in spec.name.replace("_", " ") else 0
    in_bundle = BUNDLE_HIT if any(word in bundle.replace("_", " ") for bundle in spec.bundles) else 0
    in_text = TEXT_HIT if word in f"{spec.title} {spec.description}".lower() else 0
    return in_name + in_bundle + in_text
