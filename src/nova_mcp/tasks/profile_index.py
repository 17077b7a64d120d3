"""Finds profiles by the words in them, with the same work however many there are; inside its caller's transaction."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, bindparam, delete, insert, select, text

from nova_mcp.tasks.matching import PROFILES_PER_TERM, QUERY_TERMS, Hit
from nova_mcp.tasks.tables import task_profile_term, task_term


@dataclass(frozen=True, slots=True)
class Entry:
    """A profile as the index knows it; one that is archived stands under no terms."""

    profile_id: str
    terms: frozenset[str]
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
    before = frozenset[str]() if old is None else old.terms
    moved = old is not None and old.site != new.site
    gone = before if moved else before - new.terms
    come = new.terms if moved else new.terms - before
    if gone:
        conn.execute(_REMOVE, [_key(principal, new, term) for term in sorted(gone)])
    if come:
        conn.execute(_ADD, [_row(principal, new, term) for term in sorted(come)])
    _count(conn, principal, more=new.terms - before, fewer=before - new.terms)


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
_NEWEST = (
    select(task_profile_term.c.profile_id)
    .where(task_profile_term.c.principal == bindparam("of_principal"), task_profile_term.c.term == bindparam("of_term"))
    .order_by(task_profile_term.c.created_at_ms.desc(), task_profile_term.c.profile_id.desc())
    .limit(bindparam("most"))
)
_OF_SITE: Final = _NEWEST.where(task_profile_term.c.site == bindparam("of_site"))


def hits(conn: Connection, principal: str, terms: Iterable[str], site: str | None) -> list[Hit]:
    """The rarest of the terms with the profiles under them: those of the site first, then the newest."""
    asked = sorted(terms)
    if not asked:
        return []
    rarest = conn.execute(_RAREST, {"of_principal": principal, "of_terms": asked}).all()
    return [Hit(row.term, row.profiles, _under(conn, principal, row.term, site)) for row in rarest]


def _under(conn: Connection, principal: str, term: str, site: str | None) -> Sequence[str]:
    which = {"of_principal": principal, "of_term": term, "most": PROFILES_PER_TERM}
    near = [] if site is None else conn.execute(_OF_SITE, {**which, "of_site": site}).scalars().all()
    if len(near) >= PROFILES_PER_TERM:
        return near
    newest = conn.execute(_NEWEST, which).scalars().all()
    return list(dict.fromkeys([*near, *newest]))[:PROFILES_PER_TERM]
