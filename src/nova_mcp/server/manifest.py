"""The tool list as data, so that a client can list tools before the tools themselves are imported."""

import json
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files

from nova_mcp.core.values import Json
from nova_mcp.evidence.model import Effect
from nova_mcp.tools import MANIFEST_VERSION
from nova_mcp.tools.profiles import EVERYTHING, chosen_bundles, in_profile

MANIFEST_FILE = "manifest.json"


@dataclass(frozen=True, slots=True)
class ListedTool:
    """One tool as a client sees it, under its canonical dotted name."""

    name: str
    title: str
    description: str
    effect: Effect
    bundles: tuple[str, ...]
    input_schema: dict[str, Json]
    output_schema: dict[str, Json]
    annotations: dict[str, bool]


@dataclass(frozen=True)
class Manifest:
    tools: tuple[ListedTool, ...]

    @cached_property
    def by_name(self) -> dict[str, ListedTool]:
        return {tool.name: tool for tool in self.tools}

    @cached_property
    def bundles(self) -> frozenset[str]:
        return frozenset(bundle for tool in self.tools for bundle in tool.bundles)

    def profile(self, wanted: str) -> tuple[ListedTool, ...]:
        """The tools of `core`, of `all`, or of a comma-separated choice of bundles; the door is always among them."""
        if unknown := chosen_bundles(wanted) - self.bundles - {EVERYTHING}:
            known = ", ".join(sorted(self.bundles))
            raise ValueError(f"unknown bundle {', '.join(sorted(unknown))}; known: {EVERYTHING}, {known}")
        return tuple(tool for tool in self.tools if in_profile(tool.name, tool.bundles, wanted))


def load_manifest() -> Manifest:
    raw = json.loads(files("nova_mcp.server").joinpath(MANIFEST_FILE).read_text(encoding="utf-8"))
    if raw["version"] != MANIFEST_VERSION:
        raise ValueError(f"tool manifest has version {raw['version']}, this program reads {MANIFEST_VERSION}")
    return Manifest(
        tuple(
            ListedTool(
                name=entry["name"],
                title=entry["title"],
                description=entry["description"],
                effect=entry["effect"],
                bundles=tuple(entry["bundles"]),
                input_schema=entry["inputSchema"],
                output_schema=entry["outputSchema"],
                annotations=entry["annotations"],
            )
            for entry in raw["tools"]
        )
    )
