"""What kind of service a site is: a table of well-known hosts, and what agents said about others; pure."""

import functools
import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Final

from nova_mcp.core.hosts import under
from nova_mcp.memory.knowledge.model import Scope, ScopeName

MAX_CATEGORIES: Final = 3
_TABLE: Final = "data/service_categories.json"


@functools.cache
def known_hosts() -> Mapping[str, tuple[str, ...]]:
    """Hosts by category."""
    raw: dict[str, list[str]] = json.loads(files("nova_mcp.memory.knowledge").joinpath(_TABLE).read_text("utf-8"))
    return {category: tuple(hosts) for category, hosts in raw.items()}


@functools.cache
def categories() -> tuple[str, ...]:
    return tuple(known_hosts())


@functools.lru_cache(maxsize=4096)
def built_in_categories(scope: ScopeName) -> tuple[str, ...]:
    """What a host is known for; one below a known host is the same service."""
    host = scope.rpartition(":")[0] if scope.rpartition(":")[2].isdigit() else scope
    return tuple(category for category, hosts in known_hosts().items() if any(under(host, one) for one in hosts))[
        :MAX_CATEGORIES
    ]


def categories_of(scope: Scope) -> tuple[str, ...]:
    """What was said about a site goes before what the table says."""
    return scope.service_categories or built_in_categories(scope.name)


def unknown_category(given: Sequence[str]) -> str | None:
    return next((one for one in given if one not in known_hosts()), None)
