"""Which known sites offer what a task is about: keywords held against what sites are known as."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, func, select

from nova_mcp.core.keywords import words
from nova_mcp.memory.knowledge import store
from nova_mcp.memory.knowledge.matching.categories import categories_of
from nova_mcp.memory.knowledge.model import ACTIVE, Scope, ScopeName
from nova_mcp.memory.knowledge.tables import knowledge_entry

MOST_SERVICES: Final = 5
# However many sites are known, no more than these are looked at for one question.
MOST_LOOKED_AT: Final = 2_000
_MOST_COUNTED: Final = 200
_LEAST_STEM: Final = 4


@dataclass(frozen=True, slots=True)
class Service:
    """A site that fits some keywords, by the category that does, and how much of it is known for certain."""

    scope: ScopeName
    category: str
    matched: tuple[str, ...]
    active_entries: int = 0


def _fits(word: str, known: str) -> bool:
    """The same word, or one with another ending: a shop offers shopping."""
    short, long = sorted((word, known), key=len)
    return short == long or (len(short) >= _LEAST_STEM and long.startswith(short))


def service_of(scope: ScopeName, categories: Sequence[str], keywords: Sequence[str]) -> Service | None:
    """The category of a site that most keywords fit; one that names the site itself fits each of them."""
    labels = set(words(scope.rpartition(":")[0] or scope))
    asked = [(one, words(one)) for one in keywords]
    named = {one for one, found in asked if found and set(found) <= labels}
    best: Service | None = None
    for category in categories:
        fitting = tuple(one for one, found in asked if one in named or any(_fits(word, category) for word in found))
        if fitting and (best is None or len(fitting) > len(best.matched)):
            best = Service(scope, category, fitting)
    return best


def ranked(found: Iterable[Service]) -> tuple[Service, ...]:
    order = sorted(found, key=lambda one: (-len(one.matched), -one.active_entries, one.scope))
    return tuple(order[:MOST_SERVICES])


def discovered(conn: Connection, keywords: Sequence[str]) -> tuple[Service, ...]:
    """Known sites for a task, best first."""
    known: list[tuple[Scope, int]] = store.scopes(conn, limit=MOST_LOOKED_AT)
    found = [one for scope, _ in known if (one := service_of(scope.name, categories_of(scope), keywords)) is not None]
    found.sort(key=lambda one: (-len(one.matched), one.scope))
    found = found[:_MOST_COUNTED]
    active = _active(conn, [one.scope for one in found])
    counted = (Service(one.scope, one.category, one.matched, active.get(one.scope, 0)) for one in found)
    return ranked(counted)


def _active(conn: Connection, names: Sequence[ScopeName]) -> dict[ScopeName, int]:
    c = knowledge_entry.c
    rows = conn.execute(
        select(c.scope, func.count())
        .where(
            c.scope.in_(names),
            c.slot == "current",
            c.kind != "hint",
            c.level == ACTIVE,
            c.deprecated_reason.is_(None),
        )
        .group_by(c.scope)
    )
    return {ScopeName(row[0]): row[1] for row in rows}
