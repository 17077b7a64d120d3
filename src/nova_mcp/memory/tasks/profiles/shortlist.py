"""Which of the profiles that share a term with a query are held against it word by word; pure."""

import math
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final, TypeAlias

from nova_mcp.memory.tasks.profiles.matching import MOST_MATCHES, Query, weight_of
from nova_mcp.memory.tasks.profiles.terms import prefix_of

# Found by their rarest terms, so many profiles of each and of all: work stays the same however many profiles there are.
QUERY_TERMS: Final = 8
PROFILES_PER_TERM: Final = 500
PROFILES_FOUND: Final = 1_000
# So many of those found are judged, and more only while they may be as good as the ones that will be told.
LEAST_JUDGED: Final = 32
MOST_JUDGED: Final = 500
# Of those that can't be accepted a few are enough: they are told, if at all, to say why not.
_LEAST_ELSEWHERE: Final = 8
# Words with one beginning are mostly about this much alike.
_ALIKE: Final = 0.6
# What a term is taken to be worth in a profile that is older than those looked up: most words stand in the goal.
_UNSEEN: Final = 9
_OWN_SITE: Final = 1.3
# Sums in another order differ by less than this.
_SAME: Final = 1e-9

# A profile under a term: its id, what the term is worth in it, its site, and when it was created.
Posting: TypeAlias = tuple[str, int, str | None, int]


@dataclass(frozen=True, slots=True)
class Hit:
    """A term of the query, in how many profiles it stands, and those of them that were looked up: all that were created
    at `since` or later, and perhaps some of the site."""

    term: str
    profiles: int
    found: Sequence[Posting]
    since: int = 0

    @property
    def rarity(self) -> float:
        return 1 / (1 + math.log1p(self.profiles))


def room_for(profiles: Sequence[int]) -> list[int]:
    """How many profiles to look up under each of some terms; the rarest come first, and tell most."""
    left, rooms = PROFILES_FOUND, list[int]()
    for number in profiles:
        rooms.append(min(number, PROFILES_PER_TERM, left))
        left -= rooms[-1]
    return rooms


def shortlist(query: Query, hits: Sequence[Hit], told: int = MOST_MATCHES) -> list[str]:
    """The profiles to judge where so many will be told: those that the terms promise most for, as if nothing else
    were in them. What can't be accepted, being of another site, takes no place of what can."""
    known = {posting[0]: posting for hit in hits for posting in hit.found}
    if len(known) <= LEAST_JUDGED:
        return list(known)
    promised = _promised(query, hits, known)
    if query.site is None:
        return _best(promised, known, told, LEAST_JUDGED)
    near = {one: much * _nearness(query.site, known[one][2]) for one, much in promised.items()}
    here = [one for one, posting in known.items() if posting[2] is None or posting[2] == query.site]
    chosen = [*_best(near, here, told, LEAST_JUDGED), *_best(near, known, told, _LEAST_ELSEWHERE)]
    return list(dict.fromkeys(chosen))


def _best(promised: Mapping[str, float], some: Collection[str], told: int, least: int) -> list[str]:
    ordered = sorted(some, key=promised.__getitem__, reverse=True)
    if len(ordered) <= told:
        return ordered
    bar = promised[ordered[told - 1]] - _SAME
    enough = max(least, 2 * told)
    return [one for place, one in enumerate(ordered[:MOST_JUDGED]) if place < enough or promised[one] >= bar]


def _promised(query: Query, hits: Sequence[Hit], known: Mapping[str, Posting]) -> dict[str, float]:
    """What the terms say for each profile: more where they are rare, and where they are worth more in it. A profile
    older than what was looked up under a term may stand under it as well, and has the benefit of the doubt."""
    by_term = {hit.term: hit for hit in hits}
    doubts: list[tuple[int, float]] = []
    promised = dict.fromkeys(known, 0.0)
    for token in query.tokens:
        best: dict[str, float] = {}
        for hit, alike in _speaking_for(token, by_term):
            worth = weight_of(token) * alike * hit.rarity
            if hit.since:
                doubts.append((hit.since, worth * _UNSEEN))
            best.update((posting[0], worth * posting[1]) for posting in hit.found if posting[3] >= hit.since)
        for profile_id, much in best.items():
            promised[profile_id] += much
    if not doubts:
        return promised
    doubts.sort(reverse=True)
    since = [-at for at, _ in doubts]
    doubted = [0.0, *accumulate(much for _, much in doubts)]
    return {one: much + doubted[bisect_left(since, -known[one][3])] for one, much in promised.items()}


def _speaking_for(token: str, hits: Mapping[str, Hit]) -> Iterator[tuple[Hit, float]]:
    """The word itself comes last, because it says more than its beginning, which says nothing new beside a doubt."""
    itself, beginning = hits.get(token), hits.get(prefix_of(token) or "")
    if beginning is not None and (itself is None or not (itself.since or beginning.since)):
        yield beginning, _ALIKE
    if itself is not None:
        yield itself, 1.0


def _nearness(wanted: str, site: str | None) -> float:
    if site is None:
        return 1.0
    return _OWN_SITE if site == wanted else 1 / _OWN_SITE
