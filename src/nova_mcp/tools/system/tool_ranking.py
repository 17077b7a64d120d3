"""Which tools fit words that say what somebody wants to do; pure."""

from collections.abc import Iterable

from nova_mcp.core.keywords import STOPWORDS
from nova_mcp.tools import PREFIX
from nova_mcp.tools.spec import ToolSpec

NAME_HIT, BUNDLE_HIT, TEXT_HIT = 3, 1, 1
# A shorter word is no plural that could do without its last letter.
_SHORT = 3
_OWN_NAME = PREFIX.removesuffix(".")


def rank_tools(query: str, tools: Iterable[ToolSpec]) -> tuple[list[ToolSpec], bool]:
    """Tools that match every word, best first and ties by name; if none does, those that match some, and True."""
    words = _wanted(query)
    scored: list[tuple[bool, int, ToolSpec]] = []
    for spec in tools:
        hits = [_word_score(word, spec) for word in words]
        if any(hits):
            scored.append((all(hits), sum(hits), spec))
    scored.sort(key=lambda row: (-row[1], row[2].name))
    full = [spec for every, _, spec in scored if every]
    return (full, False) if full else ([spec for _, _, spec in scored], bool(scored))


def _wanted(query: str) -> list[str]:
    """The words that count: no filler, as long as anything else is left, and a plural like its singular."""
    words = [word for word in query.lower().replace("_", " ").replace(".", " ").split() if word != _OWN_NAME]
    telling = [word for word in words if word not in STOPWORDS] or words
    return [word[:-1] if len(word) > _SHORT and word.endswith("s") and word[-2] != "s" else word for word in telling]


def _word_score(word: str, spec: ToolSpec) -> int:
    in_name = NAME_HIT if word in spec.name.replace("_", " ") else 0
    in_bundle = BUNDLE_HIT if any(word in bundle.replace("_", " ") for bundle in spec.bundles) else 0
    in_text = TEXT_HIT if word in f"{spec.title} {spec.description}".lower() else 0
    return in_name + in_bundle + in_text
