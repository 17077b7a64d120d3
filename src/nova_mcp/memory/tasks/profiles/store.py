"""Remembers profiles and how their runs went; every function runs inside its caller's transaction."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from sqlalchemy import Connection, Row, bindparam, func, select, text, update

from nova_mcp.core.hosts import site
from nova_mcp.memory.tasks import content_codec as codec
from nova_mcp.memory.tasks.model import TaskContent
from nova_mcp.memory.tasks.profiles import index
from nova_mcp.memory.tasks.profiles.confidence import Standing, effective_confidence
from nova_mcp.memory.tasks.profiles.matching import MOST_MATCHES, Candidate, Query, credits_of
from nova_mcp.memory.tasks.profiles.rules import Profile
from nova_mcp.memory.tasks.profiles.shortlist import Hit, shortlist
from nova_mcp.memory.tasks.profiles.terms import term_credits
from nova_mcp.memory.tasks.tables import task_instance, task_profile

RunOutcome = Literal["completed", "failed", "aborted"]


_THIS = (
    task_profile.c.principal == bindparam("of_principal"),
    task_profile.c.profile_id == bindparam("of_profile"),
)
_ONE = select(task_profile).where(*_THIS)
_HELD = _ONE.with_for_update()


def profile(conn: Connection, principal: str, profile_id: str) -> Profile | None:
    """A principal's own profile; another's is simply not there."""
    row = conn.execute(_ONE, {"of_principal": principal, "of_profile": profile_id}).one_or_none()
    return None if row is None else to_profile(row)


def held_profile(conn: Connection, principal: str, profile_id: str) -> Profile | None:
    """The same, kept from other writers until the transaction ends."""
    row = conn.execute(_HELD, {"of_principal": principal, "of_profile": profile_id}).one_or_none()
    return None if row is None else to_profile(row)


def to_profile(row: Row[Any]) -> Profile:
    content = TaskContent(
        task_type=row.task_type,
        display_name=row.display_name,
        goal=row.goal,
        completion_condition=codec.condition_of(json.loads(row.completion_condition)),
        domain=row.domain,
        platform=row.platform,
        task_kind=row.task_kind,
        stable_guidance=codec.guidance_of(json.loads(row.stable_guidance)),
        mandatory_checks=codec.checks_of(json.loads(row.mandatory_checks)),
        known_exceptions=codec.exceptions_of(json.loads(row.known_exceptions)),
        verification=codec.verification_of(None if row.verification is None else json.loads(row.verification)),
    )
    return Profile(
        profile_id=row.profile_id,
        content=content,
        base_confidence=row.base_confidence,
        content_rev=row.content_rev,
        archived=row.archived,
        created_at_ms=row.created_at_ms,
        updated_at_ms=row.updated_at_ms,
        runs=row.runs,
        completed=row.completed_runs,
        failed=row.failed_runs,
        aborted=row.aborted_runs,
        last_ended_at_ms=row.last_ended_at_ms,
    )


# -- writing

_COLUMNS: Final = tuple(column.name for column in task_profile.c)
# Whoever comes second finds that nothing was inserted, and what stands there.
_CREATE = text(
    f"INSERT INTO task_profile ({', '.join(_COLUMNS)}) VALUES ({', '.join(f':{name}' for name in _COLUMNS)}) "  # noqa: S608, names of our own columns
    "ON CONFLICT (principal, profile_id) DO NOTHING"
)
_CHANGED: Final = (
    *("task_type", "task_kind", "display_name", "domain", "platform", "match_words", "goal", "stable_guidance"),
    *("mandatory_checks", "completion_condition", "known_exceptions", "verification", "base_confidence"),
    *("content_rev", "archived", "updated_at_ms"),
)
_CHANGE = update(task_profile).where(*_THIS).values({name: bindparam(name) for name in _CHANGED})


def create(conn: Connection, principal: str, new: Profile, multi_tenant: Collection[str]) -> bool:
    """False when the id was taken meanwhile, and nothing was written."""
    if conn.execute(_CREATE, _to_row(principal, new)).rowcount != 1:
        return False
    index.reindex(conn, principal, None, _entry(new, multi_tenant))
    return True


def change(conn: Connection, principal: str, old: Profile, new: Profile, multi_tenant: Collection[str]) -> None:
    """Write what a held profile has become."""
    row = _to_row(principal, new)
    which = {"of_principal": principal, "of_profile": new.profile_id}
    conn.execute(_CHANGE, {**{name: row[name] for name in _CHANGED}, **which})
    index.reindex(conn, principal, _entry(old, multi_tenant), _entry(new, multi_tenant))


def _entry(one: Profile, multi_tenant: Collection[str]) -> index.Entry:
    domain = one.content.domain
    return index.Entry(
        one.profile_id,
        {} if one.archived else term_credits(credits_of(one.content)),
        None if domain is None else site(domain, multi_tenant),
        one.created_at_ms,
    )


def _to_row(principal: str, one: Profile) -> dict[str, Any]:
    content = one.content
    steps = codec.verification_json(content.verification)
    return {
        "principal": principal,
        "profile_id": one.profile_id,
        "task_type": content.task_type,
        "task_kind": content.task_kind,
        "display_name": content.display_name,
        "domain": content.domain,
        "platform": content.platform,
        "match_words": json.dumps(credits_of(content), ensure_ascii=False, separators=(",", ":")),
        "goal": content.goal,
        "stable_guidance": codec.canonical(codec.guidance_json(content.stable_guidance)),
        "mandatory_checks": codec.canonical(codec.checks_json(content.mandatory_checks)),
        "completion_condition": codec.canonical(codec.condition_json(content.completion_condition)),
        "known_exceptions": codec.canonical(codec.exceptions_json(content.known_exceptions)),
        "verification": None if steps is None else codec.canonical(steps),
        "base_confidence": one.base_confidence,
        "content_rev": one.content_rev,
        "archived": one.archived,
        "runs": one.runs,
        "completed_runs": one.completed,
        "failed_runs": one.failed,
        "aborted_runs": one.aborted,
        "last_ended_at_ms": one.last_ended_at_ms,
        "created_at_ms": one.created_at_ms,
        "updated_at_ms": one.updated_at_ms,
    }


_CONTEXT = select(task_instance.c.effective_context).where(
    task_instance.c.instance_id == bindparam("of_instance"), task_instance.c.principal == bindparam("of_principal")
)


def run_content(conn: Connection, principal: str, instance_id: str) -> TaskContent | None:
    """The content that a principal's own run began with."""
    context = conn.execute(_CONTEXT, {"of_instance": instance_id, "of_principal": principal}).scalar()
    return None if context is None else codec.content_from_context(context)


# -- finding

_MATCHED = (
    *("profile_id", "domain", "platform", "match_words", "base_confidence"),
    *("runs", "completed_runs", "failed_runs", "last_ended_at_ms", "updated_at_ms"),
)
_SOME = select(*(task_profile.c[name] for name in _MATCHED)).where(
    task_profile.c.principal == bindparam("of_principal"),
    task_profile.c.profile_id.in_(bindparam("of_profiles", expanding=True)),
)

_TYPED = select(task_profile.c.profile_id).where(
    task_profile.c.principal == bindparam("of_principal"),
    task_profile.c.profile_id.in_(bindparam("of_profiles", expanding=True)),
    task_profile.c.task_type == bindparam("of_type"),
)


def candidates(
    conn: Connection, principal: str, query: Query, multi_tenant: Collection[str], now_ms: int, told: int = MOST_MATCHES
) -> list[Candidate]:
    """The profiles that a query may mean, found by its rarest words."""
    found = index.hits(conn, principal, query.terms, query.site)
    if query.task_type is not None:
        found = _of_type(conn, principal, query.task_type, found)
    wanted = shortlist(query, found, told)
    if not wanted:
        return []
    rows = conn.execute(_SOME, {"of_principal": principal, "of_profiles": wanted}).all()
    return [_candidate(row, query, multi_tenant, now_ms) for row in rows]


def _of_type(conn: Connection, principal: str, task_type: str, found: Sequence[Hit]) -> list[Hit]:
    """What is left out goes before anything is chosen, so that it takes no place of what is wanted."""
    ids = sorted({posting[0] for hit in found for posting in hit.found})
    asked = {"of_principal": principal, "of_profiles": ids, "of_type": task_type}
    kept = frozenset(conn.execute(_TYPED, asked).scalars()) if ids else frozenset[str]()
    return [replace(hit, found=[posting for posting in hit.found if posting[0] in kept]) for hit in found]


def _candidate(row: Row[Any], query: Query, multi_tenant: Collection[str], now_ms: int) -> Candidate:
    standing = Standing(
        row.base_confidence, row.completed_runs, row.failed_runs, row.updated_at_ms, row.last_ended_at_ms
    )
    return Candidate(
        profile_id=row.profile_id,
        credits=json.loads(row.match_words),
        domain=row.domain,
        # Nobody asks for it where the query names no place.
        site=None if row.domain is None or query.site is None else site(row.domain, multi_tenant),
        platform=row.platform,
        confidence=effective_confidence(standing, now_ms).effective,
        usage=row.runs,
    )


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which profiles are to be listed; None does not ask."""

    task_type: str | None = None
    domain: str | None = None
    platform: str | None = None
    archived: bool = False
    limit: int = 100
    offset: int = 0


def listed(conn: Connection, principal: str, wanted: Wanted) -> Sequence[Profile]:
    """Newest change first; one more than asked for where there are more."""
    asked = select(task_profile).where(task_profile.c.principal == principal)
    for column, value in (
        (task_profile.c.task_type, wanted.task_type),
        (task_profile.c.domain, wanted.domain),
        (task_profile.c.platform, wanted.platform),
    ):
        if value is not None:
            asked = asked.where(column == value)
    if not wanted.archived:
        asked = asked.where(task_profile.c.archived.is_(False))
    ordered = asked.order_by(task_profile.c.updated_at_ms.desc(), task_profile.c.profile_id)
    rows = conn.execute(ordered.limit(wanted.limit + 1).offset(wanted.offset))
    return [to_profile(row) for row in rows]


def several(conn: Connection, principal: str, profile_ids: Collection[str]) -> dict[str, Profile]:
    """Profiles by id."""
    if not profile_ids:
        return {}
    asked = select(task_profile).where(
        task_profile.c.principal == principal, task_profile.c.profile_id.in_(sorted(profile_ids))
    )
    return {row.profile_id: to_profile(row) for row in conn.execute(asked)}


# -- how its runs go

_STARTED = update(task_profile).where(*_THIS).values(runs=task_profile.c.runs + 1)
_COUNTED: Final[dict[RunOutcome, Any]] = {
    "completed": task_profile.c.completed_runs,
    "failed": task_profile.c.failed_runs,
    "aborted": task_profile.c.aborted_runs,
}
# Runs may end in another order than their calls were made; the newest end is the one that counts.
_LATEST = func.coalesce(task_profile.c.last_ended_at_ms, 0)
_ENDED: Final = {
    outcome: update(task_profile)
    .where(*_THIS)
    .values({column.name: column + 1, "last_ended_at_ms": bindparam("ended_at")})
    for outcome, column in _COUNTED.items()
}
_END_BEFORE = select(_LATEST).where(*_THIS).with_for_update()


def note_started(conn: Connection, principal: str, profile_id: str) -> None:
    """A run of the profile was created; counts as one use of it."""
    conn.execute(_STARTED, {"of_principal": principal, "of_profile": profile_id})


def note_ended(conn: Connection, principal: str, profile_id: str, outcome: RunOutcome, at_ms: int) -> None:
    """A run of the profile ended; nothing happens where the profile is not known."""
    which = {"of_principal": principal, "of_profile": profile_id}
    before = conn.execute(_END_BEFORE, which).scalar()
    if before is not None:
        conn.execute(_ENDED[outcome], {**which, "ended_at": max(before, at_ms)})
