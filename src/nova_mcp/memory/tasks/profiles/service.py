"""Keeps profiles: finds the one a described task means, and takes changes into the transaction of their call."""

from collections.abc import Callable, Collection
from dataclasses import dataclass

from sqlalchemy import Connection

from nova_mcp.core.clock import Ports
from nova_mcp.core.hosts import site
from nova_mcp.errors import InvalidParams
from nova_mcp.memory.tasks.model import TaskContent
from nova_mcp.memory.tasks.not_found import no_profile, no_run
from nova_mcp.memory.tasks.profiles import store
from nova_mcp.memory.tasks.profiles.confidence import Standing, Tuning, effective_confidence
from nova_mcp.memory.tasks.profiles.matching import (
    MOST_MATCHES,
    Match,
    Query,
    best_of,
    match_profiles,
    query_of,
    shown_of,
)
from nova_mcp.memory.tasks.profiles.rules import (
    Change,
    Lacking,
    Profile,
    UpsertKind,
    changed_content,
    changed_profile,
    created_profile,
    generated_id,
)
from nova_mcp.memory.tasks.refusals import Refused
from nova_mcp.storage.engine import Database

_TOKEN_BYTES = 4


@dataclass(frozen=True, slots=True)
class Upsert:
    """A change as it was asked for; `check` raises what the whole content must not be."""

    change: Change
    check: Callable[[TaskContent], None]
    profile_id: str | None = None
    expected_rev: int | None = None
    source_instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class Upserted:
    kind: UpsertKind
    profile: Profile


@dataclass(frozen=True, slots=True)
class Recognised:
    """A profile that a task was recognised by, and how surely."""

    profile: Profile
    score: float
    confidence: float


@dataclass(frozen=True, slots=True)
class Found:
    """The matches of a query, and the profiles behind those that are told."""

    matches: list[Match]
    profiles: dict[str, Profile]

    @property
    def best(self) -> Match | None:
        return best_of(self.matches)

    @property
    def recognised(self) -> Recognised | None:
        best = self.best
        if best is None:
            return None
        return Recognised(self.profiles[best.candidate.profile_id], best.score, best.candidate.confidence)


def tuning_of(profile: Profile, now_ms: int) -> Tuning:
    standing = Standing(
        profile.base_confidence,
        profile.completed,
        profile.failed,
        profile.updated_at_ms,
        profile.last_ended_at_ms,
    )
    return effective_confidence(standing, now_ms)


class ProfileKeeper:
    """One per server."""

    def __init__(self, db: Database, ports: Ports, multi_tenant: Collection[str]) -> None:
        self._db = db
        self._ports = ports
        self._multi_tenant = frozenset(multi_tenant)

    # -- reading

    async def find(self, principal: str, profile_id: str) -> Profile:
        found = await self._db.read(store.profile, principal, profile_id)
        if found is None:
            raise no_profile(profile_id)
        return found

    async def listed(self, principal: str, wanted: store.Wanted) -> tuple[list[Profile], bool]:
        """Those asked for, and whether there are more."""
        found = await self._db.read(store.listed, principal, wanted)
        return list(found[: wanted.limit]), len(found) > wanted.limit

    def query(self, text: str, domain: str | None, platform: str | None, task_type: str | None) -> Query:
        of_site = None if domain is None else site(domain, self._multi_tenant)
        return query_of(text, domain=domain, site=of_site, platform=platform, task_type=task_type)

    async def matching(self, principal: str, query: Query) -> Found:
        """The few profiles that fit a task best."""
        return await self._db.read(self._matching, principal, query, None)

    async def searched(self, principal: str, query: Query, most: int) -> Found:
        """Everything that was judged, with the profiles of the best so many."""
        return await self._db.read(self._matching, principal, query, most)

    def _matching(self, conn: Connection, principal: str, query: Query, most: int | None) -> Found:
        wanted = MOST_MATCHES if most is None else most
        found = store.candidates(conn, principal, query, self._multi_tenant, self._ports.clock.now_ms(), wanted)
        matches = match_profiles(query, found)
        told = shown_of(matches) if most is None else matches[:most]
        profiles = store.several(conn, principal, [one.candidate.profile_id for one in told])
        return Found(told if most is None else matches, profiles)

    def known(self, conn: Connection, principal: str, profile_id: str) -> Recognised | None:
        """The profile that a run was started from: nothing has to be recognised."""
        found = store.profile(conn, principal, profile_id)
        return None if found is None else Recognised(found, 1.0, self.tuning(found).effective)

    def best_for(self, conn: Connection, principal: str, content: TaskContent, host: str | None) -> Recognised | None:
        """The profile that a run's own words mean, if one is accepted."""
        text = f"{content.display_name} {content.goal}"
        query = self.query(text, content.domain or host, content.platform, None)
        return self._matching(conn, principal, query, None).recognised

    def tuning(self, profile: Profile) -> Tuning:
        return tuning_of(profile, self._ports.clock.now_ms())

    # -- writing

    def upsert(self, conn: Connection, principal: str, upsert: Upsert) -> Upserted | Refused:
        token = self._ports.ids.token(_TOKEN_BYTES)
        return _Upserting(conn, principal, upsert, self._multi_tenant, self._ports.clock.now_ms()).write(token)


@dataclass(frozen=True, slots=True)
class _Upserting:
    conn: Connection
    principal: str
    upsert: Upsert
    multi_tenant: Collection[str]
    now_ms: int

    def write(self, token: str) -> Upserted | Refused:
        source = self._source()
        asked = self.upsert.profile_id
        current = None if asked is None else store.held_profile(self.conn, self.principal, asked)
        if current is not None:
            return self._change(current, source)
        content = self._content(source)
        profile_id = asked or generated_id(content.display_name, token)
        new = created_profile(profile_id, content, self.upsert.change, self.now_ms)
        if store.create(self.conn, self.principal, new, self.multi_tenant):
            return Upserted("created", new)
        taken = store.held_profile(self.conn, self.principal, profile_id)
        if taken is None:
            raise AssertionError("an id that was taken belongs to a profile")
        return self._change(taken, source)

    def _source(self) -> TaskContent | None:
        instance_id = self.upsert.source_instance_id
        if instance_id is None:
            return None
        content = store.run_content(self.conn, self.principal, instance_id)
        if content is None:
            raise no_run(instance_id)
        return content

    def _change(self, current: Profile, source: TaskContent | None) -> Upserted | Refused:
        if self.upsert.expected_rev is None:
            raise _rev_required(current)
        if self.upsert.expected_rev != current.content_rev:
            return Refused("content_rev_conflict", {"currentContentRev": current.content_rev})
        content = self._content(source or current.content)
        kind, new = changed_profile(current, content, self.upsert.change, self.now_ms)
        if kind != "unchanged":
            store.change(self.conn, self.principal, current, new, self.multi_tenant)
        return Upserted(kind, new)

    def _content(self, base: TaskContent | None) -> TaskContent:
        content = changed_content(base, self.upsert.change)
        if isinstance(content, Lacking):
            raise _lacking(content)
        self.upsert.check(content)
        return content


def _rev_required(current: Profile) -> InvalidParams:
    return InvalidParams(
        "expected_content_rev_required",
        f"The profile {current.profile_id} exists; a change of it names the revision it was made from.",
        details={"argument": "expectedContentRev", "currentContentRev": current.content_rev},
    )


_ARGUMENTS = {
    "task_type": "taskType",
    "display_name": "displayName",
    "goal": "goal",
    "completion_condition": "completionCondition",
}


def _lacking(lacking: Lacking) -> InvalidParams:
    names = [_ARGUMENTS[name] for name in lacking.names]
    return InvalidParams(
        "invalid_params",
        "; ".join(f"{name} is required" for name in names),
        "A new profile needs taskType, displayName, goal and completionCondition. Nothing was stored.",
        details={"argument": names[0]},
    )
