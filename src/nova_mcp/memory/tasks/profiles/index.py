"""Finds profiles by the words in them, with the same work however many there are; inside its caller's transaction."""

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, delete, insert, select, text

from nova_mcp.memory.tasks.profiles.shortlist import QUERY_TERMS, Hit, Posting, room_for
from nova_mcp.memory.tasks.tables import task_profile_term, task_term
from nova_mcp.storage.prepared import Prepared


@dataclass(frozen=True, slots=True)
class Entry:
    """A profile as the index knows it, with what each term is worth in it; one that is archived stands under none."""

    profile_id: str
    terms: Mapping[str, int]
    site: str | None
    created_at_ms: int


_ADD = insert(task_profile_term)
_REMOVE = delete(task_profile_term).where(
    task_profile_term.c.principal == bindparam("of_principal"),
    task_profile_term.c.term == bindparam("of_term"),
    task_profile_term.c.created_at_ms == bindparam("of_created"),
    task_profile_term.c.profile_id == bindparam("of_profile"),
)
_MORE = text(
    "INSERT INTO task_term (principal, term, profiles) VALUES (:principal, :term, 1) "
    "ON CONFLICT (principal, term) DO UPDATE SET profiles = task_term.profiles + 1"
)
_FEWER = text("UPDATE task_term SET profiles = profiles - 1 WHERE principal = :principal AND term = :term")
_EMPTY = delete(task_term).where(
    task_term.c.principal == bindparam("of_principal"),
    task_term.c.term.in_(bindparam("of_terms", expanding=True)),
    task_term.c.profiles <= 0,
)


def reindex(conn: Connection, principal: str, old: Entry | None, new: Entry) -> None:
    """Only what changed is touched, in one order for all writers, so that none waits for another forever."""
    before = {} if old is None else old.terms
    moved = old is not None and old.site != new.site
    gone = {term for term, worth in before.items() if moved or new.terms.get(term) != worth}
    come = {term for term, worth in new.terms.items() if moved or before.get(term) != worth}
    if gone:
        conn.execute(_REMOVE, [_key(principal, new, term) for term in sorted(gone)])
    if come:
        conn.execute(_ADD, [_row(principal, new, term) for term in sorted(come)])
    _count(conn, principal, more=new.terms.keys() - before.keys(), fewer=before.keys() - new.terms.keys())


def _count(conn: Connection, principal: str, *, more: Iterable[str], fewer: Iterable[str]) -> None:
    gained, lost = sorted(more), sorted(fewer)
    if gained:
        conn.execute(_MORE, [{"principal": principal, "term": term} for term in gained])
    if lost:
        conn.execute(_FEWER, [{"principal": principal, "term": term} for term in lost])
        conn.execute(_EMPTY, {"of_principal": principal, "of_terms": lost})


def _key(principal: str, entry: Entry, term: str) -> dict[str, object]:
    return {
        "of_principal": principal,
        "of_term": term,
        "of_created": entry.created_at_ms,
        "of_profile": entry.profile_id,
    }


def _row(principal: str, entry: Entry, term: str) -> dict[str, object]:
    return {
        "principal": principal,
        "term": term,
        "created_at_ms": entry.created_at_ms,
        "profile_id": entry.profile_id,
        "site": entry.site,
        "credit": entry.terms[term],
    }


# -- finding

_RAREST = (
    select(task_term.c.term, task_term.c.profiles)
    .where(
        task_term.c.principal == bindparam("of_principal"),
        task_term.c.term.in_(bindparam("of_terms", expanding=True)),
    )
    .order_by(task_term.c.profiles, task_term.c.term)
    .limit(QUERY_TERMS)
)


def hits(conn: Connection, principal: str, terms: Iterable[str], site: str | None) -> list[Hit]:
    """The rarest of the terms with the profiles under them: those of the site first, then the newest."""
    asked = sorted(terms)
    if not asked:
        return []
    rarest = conn.execute(_RAREST, {"of_principal": principal, "of_terms": asked}).all()
    rooms = [room for room in room_for([row.profiles for row in rarest]) if room]
    if not rooms:
        return []
    values: dict[str, object] = {"principal": principal, "site": site}
    for place, room in enumerate(rooms):
        values |= {f"term{place}": rarest[place].term, f"most{place}": room}
    found: list[list[Posting]] = [[] for _ in rooms]
    for row in _postings(len(rooms), near=site is not None).run(conn, values).fetchall():
        found[row[0]].append(row[1:])
    return [
        # Of those found the oldest of the newest comes last.
        Hit(row.term, row.profiles, list(dict.fromkeys(those))[:room], those[-1][3] if room < row.profiles else 0)
        for row, room, those in zip(rarest, rooms, found, strict=False)
    ]


@functools.cache
def _postings(terms: int, *, near: bool) -> Prepared:
    """One statement for so many terms: what it finds of the site comes before what is newest."""
    looks = [_look(place, only) for place in range(terms) for only in (["AND site = :site", ""] if near else [""])]
    return Prepared(text(" UNION ALL ".join(looks)))


def _look(place: int, only: str) -> str:
    return (
        f"SELECT {place}, profile_id, credit, site, created_at_ms FROM ("  # noqa: S608, nothing but our own words
        "SELECT profile_id, credit, site, created_at_ms FROM task_profile_term "
        f"WHERE principal = :principal AND term = :term{place} {only} "
        f"ORDER BY created_at_ms DESC, profile_id DESC LIMIT :most{place}) AS found"
    )
