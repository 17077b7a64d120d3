"""The units a run begins with, from addresses that are given or known of a site; pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from nova_mcp.core.urls import Skipped, SkipReason, normalize
from nova_mcp.core.values import Json
from nova_mcp.memory.tasks.coverage.locators import BadLocator, absolute, unit_key, url_locator
from nova_mcp.memory.tasks.model import DiscoveryState
from nova_mcp.memory.tasks.runs.rules import Unit

SourceKind = Literal["explicit", "site_urls"]
MOST_SEEDS: Final = 1_000
SHOWN_SKIPPED: Final = 20
_SHOWN_CHARS: Final = 200


@dataclass(frozen=True, slots=True)
class UnitSource:
    """Where the first units of a run come from."""

    kind: SourceKind
    urls: tuple[str, ...] = ()
    scope_domain: str | None = None
    freeze: bool = False


@dataclass(frozen=True, slots=True)
class LeftOut:
    url: str
    reason: SkipReason


@dataclass(frozen=True, slots=True)
class Seeded:
    """What seeding wrote, what it left out, and whether there was more than it takes."""

    units: tuple[Unit, ...] = ()
    skipped: tuple[LeftOut, ...] = ()
    truncated: bool = False
    discovery: DiscoveryState = "unknown"

    @property
    def json(self) -> dict[str, Json]:
        return {
            "unitsWritten": len(self.units),
            "skipped": [{"url": one.url[:_SHOWN_CHARS], "reason": one.reason} for one in self.skipped[:SHOWN_SKIPPED]],
            "truncated": self.truncated,
        }


NOTHING: Final = Seeded()


def seeded(urls: Iterable[str], target_url: str | None, *, freeze: bool) -> Seeded:
    """One unit per page; discovery is frozen only where units were written and none was cut off."""
    units: dict[str, Unit] = {}
    skipped: list[LeftOut] = []
    truncated = False
    for url in urls:
        place = url_locator(url, target_url)
        if isinstance(place, BadLocator):
            skipped.append(LeftOut(url, _why(url, target_url)))
            continue
        key = unit_key(place.value)
        if key in units:
            continue
        if len(units) == MOST_SEEDS:
            truncated = True
            break
        units[key] = Unit(key, url=place.value, locator=place)
    found: DiscoveryState = "partial" if units else "unknown"
    if freeze and units and not truncated:
        found = "frozen"
    return Seeded(tuple(units.values()), tuple(skipped), truncated, found)


def _why(url: str, target_url: str | None) -> SkipReason:
    match normalize(absolute(url, target_url) or url):
        case Skipped(reason):
            return reason
        case _:
            return "unsupported_scheme"
