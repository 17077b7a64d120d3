"""Routes: parts of a site where an entry holds, by the beginning of the path; pure."""

import re
from collections.abc import Sequence
from typing import Final, NewType

from nova_mcp.core.urls import normalize_url

Route = NewType("Route", tuple[str, ...])

ROOT: Final = "_root"
ANYWHERE: Final = "*"
MAX_ROUTES: Final = 16
_SEGMENT: Final = r"[^/\s*?#]+"
_PATTERN: Final = re.compile(rf"{_SEGMENT}|{_SEGMENT}(?:/{_SEGMENT})*/\*")


def _parts(path: str) -> Route:
    return Route(tuple(part for part in path.split("/") if part))


def route_of(url: str) -> Route:
    """The path of a page; where an application keeps its route behind `#/`, that one."""
    normalized = normalize_url(url)
    if normalized is None:
        return Route(())
    place, _, fragment = normalized.partition("#")
    path = place.partition("://")[2].partition("?")[0].partition("/")[2]
    if not path and fragment:
        return _parts(fragment.lstrip("!").partition("?")[0])
    return _parts(path)


def told_route(text: str) -> Route:
    """A route as a caller spells it: a path, `_root`, or a whole address."""
    if "://" in text:
        return route_of(text)
    return Route(()) if text.strip() in (ROOT, "") else _parts(text.strip().partition("?")[0])


def is_pattern(text: str) -> bool:
    """`feed` (first segment), `in/*` (below it), `_root` or `*`."""
    return text in (ROOT, ANYWHERE) or _PATTERN.fullmatch(text) is not None


def covers(pattern: str, route: Route) -> bool:
    if pattern == ANYWHERE:
        return True
    if pattern == ROOT:
        return not route
    if pattern.endswith("/*"):
        lead = _parts(pattern[:-2])
        return len(route) > len(lead) and route[: len(lead)] == lead
    return bool(route) and route[0] == pattern


def restricts(patterns: Sequence[str]) -> bool:
    """Whether patterns say anything: none at all and `*` hold everywhere."""
    return bool(patterns) and ANYWHERE not in patterns


def any_covers(patterns: Sequence[str], route: Route) -> bool:
    return not restricts(patterns) or any(covers(pattern, route) for pattern in patterns)


def meet(some: Sequence[str], others: Sequence[str]) -> bool:
    """Whether there can be a page that both hold on."""
    if not restricts(some) or not restricts(others):
        return True
    return any(_meet(one, other) for one in some for other in others)


def _meet(one: str, other: str) -> bool:
    if ROOT in (one, other):
        return one == other
    left, right = _parts(one.removesuffix("/*")), _parts(other.removesuffix("/*"))
    shared = min(len(left), len(right))
    return left[:shared] == right[:shared]
