"""Finds every tool family, knows all tools by name, and refuses to start with two of one name."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from pkgutil import walk_packages

import nova_mcp.tools as families
from nova_mcp.errors import UnknownTool
from nova_mcp.tools import PREFIX
from nova_mcp.tools.profiles import in_profile
from nova_mcp.tools.spec import ToolSpec

BUNDLES: dict[str, str] = {
    "core": "What tools/list shows by default.",
    "browser_automation": "Open pages, look at them and act on them.",
    "page_reading": "Read what a page says and shows.",
    "form_submission": "Fill in and submit forms.",
    "sandboxes": "Separate cookie jars in one browser.",
    "live_facts": "What is true right now: report it, read it, see which signals there are.",
    "task_memory": "Keep goals and tasks across calls and sessions.",
    "pks_learning": "Knowledge of sites: look up, store and apply it (pks_*), let it grow from what recurs (learn_*).",
    "notes": "Notes written on purpose: for a user, across tasks, and for every agent on a site.",
    "system_tools": "Find and reach every other tool.",
}


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All tools, by bare name."""

    tools: dict[str, ToolSpec]

    def __iter__(self) -> Iterator[ToolSpec]:
        return iter(self.tools.values())

    def find(self, canonical: str) -> ToolSpec:
        """The tool of that dotted name; `UnknownTool` carries the nearest ones."""
        if (spec := self.tools.get(canonical.removeprefix(PREFIX))) is not None:
            return spec
        raise UnknownTool(canonical, self.closest(canonical))

    def closest(self, name: str, limit: int = 5) -> tuple[str, ...]:
        bare = name.removeprefix(PREFIX)[:100]
        near = get_close_matches(bare, self.tools, n=limit, cutoff=0.5)
        return tuple(PREFIX + match for match in near)

    def listed(self, profile: str) -> frozenset[str]:
        """The canonical names that `tools/list` shows under that profile."""
        return frozenset(spec.canonical for spec in self if in_profile(spec.canonical, spec.bundles, profile))

    def open_arguments(self) -> frozenset[str]:
        """Names of arguments whose text no tool keeps private."""
        names = {entry.alias or name for spec in self for name, entry in spec.params.model_fields.items()}
        return frozenset(names).difference(*(spec.private_arguments for spec in self))

    def bundle(self, name: str) -> list[ToolSpec]:
        return [spec for spec in self if name in spec.bundles]


def catalogue_of(specs: Iterable[ToolSpec]) -> Catalogue:
    tools: dict[str, ToolSpec] = {}
    for spec in sorted(specs, key=lambda spec: spec.name):
        if spec.name in tools:
            raise ValueError(f"two tools are called {spec.name}")
        if unknown := spec.bundles - BUNDLES.keys():
            raise ValueError(f"{spec.name} names unknown bundles: {', '.join(sorted(unknown))}")
        if not spec.bundles:
            raise ValueError(f"{spec.name} is in no bundle")
        tools[spec.name] = spec
    return Catalogue(tools)


def load_catalogue() -> Catalogue:
    """Import every family beside this module and collect its tools."""
    modules = [import_module(found.name) for found in walk_packages(families.__path__, f"{families.__name__}.")]
    return catalogue_of(
        value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, ToolSpec) and value.run.__module__ == module.__name__
    )
