"""Keeps instructions within their budgets: which blocks go first, and how much of the text may be quotes; pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from nova_mcp.core.values import Json
from nova_mcp.memory.tasks.content_codec import json_chars

Detail = Literal["compact", "full"]

TEXT_CHARS: Final[Mapping[Detail, int]] = {"compact": 5_000, "full": 50_000}
ADDENDA_CHARS: Final = 16_000
# What goes first where there is too much; what is not named here never goes.
DROPPED_FIRST: Final = ("serviceDiscovery", "frameworkHints", "browserMemory", "operatorNotes", "evidenceSummary")


@dataclass(frozen=True, slots=True)
class Addenda:
    """The blocks that are told, those that were left out, and what the told ones weigh."""

    told: Mapping[str, Json]
    omitted: tuple[str, ...]
    chars: int


def weight(block: Json) -> int:
    """A block as an answer carries it."""
    return 0 if block is None else json_chars(block)


def fit_addenda(blocks: Mapping[str, Json], limit: int = ADDENDA_CHARS) -> Addenda:
    """Leave out whole blocks, the least needed first, until the rest fits or nothing more may go."""
    told = dict(blocks)
    weights = {name: weight(block) for name, block in told.items()}
    omitted: list[str] = []
    for name in DROPPED_FIRST:
        if sum(weights.values()) <= limit:
            break
        if weights.get(name):
            told[name], weights[name] = None, 0
            omitted.append(name)
    return Addenda(told, tuple(omitted), sum(weights.values()))
