"""Keeps guidance: counts what is said again, and takes what is ripe into a profile in the transaction of its call."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from sqlalchemy import Connection

from nova_mcp.core.clock import Ports
from nova_mcp.core.values import Json
from nova_mcp.errors import InvalidParams
from nova_mcp.memory.tasks.guidance import store as guidance_store
from nova_mcp.memory.tasks.guidance.rules import (
    RIPE_AT,
    TOP_OVERRIDES,
    Decision,
    GuidanceLog,
    Override,
    Said,
    SourceKind,
    completion_percent,
    guidance_hash,
    occurrence_key,
    override_candidates,
    refusal,
    with_guidance,
)
from nova_mcp.memory.tasks.model import MOST_GUIDANCE, TaskContent
from nova_mcp.memory.tasks.not_found import no_guidance, no_profile, no_run
from nova_mcp.memory.tasks.profiles import store as profile_store
from nova_mcp.memory.tasks.profiles.rules import Profile
from nova_mcp.memory.tasks.refusals import Refused
from nova_mcp.storage.engine import Database


@dataclass(frozen=True, slots=True)
class Saying:
    """Guidance as a call brings it."""

    said: Said
    source_kind: SourceKind
    payload: dict[str, Json]
    instance_id: str | None
    agent_id: str


@dataclass(frozen=True, slots=True)
class Logged:
    log: GuidanceLog
    hash: str
    created: bool


@dataclass(frozen=True, slots=True)
class Verdict:
    """A decision as a call brings it; `check` raises what the profile's whole content must not be."""

    log_id: str
    profile_id: str
    decision: Decision
    reason: str | None
    check: Callable[[TaskContent], None]


@dataclass(frozen=True, slots=True)
class LearningStats:
    """How the runs of a profile went, and what they changed for themselves most often."""

    runs: int
    completed: int
    failed: int
    aborted: int
    completion_percent: int
    top_overrides: list[Override]


@dataclass(frozen=True, slots=True)
class Candidates:
    guidance: list[GuidanceLog]
    overrides: list[Override]


class GuidanceKeeper:
    """One per server."""

    def __init__(self, db: Database, ports: Ports, multi_tenant: Collection[str]) -> None:
        self._db = db
        self._ports = ports
        self._multi_tenant = frozenset(multi_tenant)

    # -- reading

    async def logs(self, principal: str, asked: guidance_store.Asked) -> tuple[list[GuidanceLog], LearningStats | None]:
        return await self._db.read(self._logs, principal, asked)

    def _logs(
        self, conn: Connection, principal: str, asked: guidance_store.Asked
    ) -> tuple[list[GuidanceLog], LearningStats | None]:
        if asked.instance_id is not None and not guidance_store.profile_of_run(conn, principal, asked.instance_id)[0]:
            raise no_run(asked.instance_id)
        stats = None
        if asked.profile_id is not None:
            profile = profile_store.profile(conn, principal, asked.profile_id)
            if profile is None:
                raise no_profile(asked.profile_id)
            stats = _stats(profile, guidance_store.overrides_of(conn, principal, asked.profile_id))
        return guidance_store.logs(conn, principal, asked), stats

    async def candidates(self, principal: str, profile_id: str, threshold: int) -> Candidates:
        return await self._db.read(self._candidates, principal, profile_id, threshold)

    def _candidates(self, conn: Connection, principal: str, profile_id: str, threshold: int) -> Candidates:
        if profile_store.profile(conn, principal, profile_id) is None:
            raise no_profile(profile_id)
        overrides = guidance_store.overrides_of(conn, principal, profile_id)
        return Candidates(
            guidance_store.ripe_logs(conn, principal, profile_id, threshold),
            override_candidates(overrides, threshold)[: guidance_store.MOST_CANDIDATES],
        )

    # -- writing

    def log(self, conn: Connection, principal: str, saying: Saying) -> Logged:
        said, now_ms = saying.said, self._ports.clock.now_ms()
        if said.profile_id is not None and profile_store.profile(conn, principal, said.profile_id) is None:
            raise no_profile(said.profile_id)
        if saying.instance_id is not None:
            known, follows = guidance_store.profile_of_run(conn, principal, saying.instance_id)
            if not known:
                raise no_run(saying.instance_id)
            said = replace(said, profile_id=said.profile_id or follows)
        found = guidance_hash(said)
        given = guidance_store.Given(
            log_id=self._ports.ids.token(16),
            hash=found,
            profile_id=said.profile_id,
            kind=said.kind,
            source_kind=saying.source_kind,
            payload=saying.payload,
            occurrence_key=occurrence_key(saying.instance_id, saying.agent_id, now_ms),
            at_ms=now_ms,
        )
        log, created = guidance_store.add(conn, principal, given)
        return Logged(log, found, created)

    def decide(self, conn: Connection, principal: str, verdict: Verdict) -> GuidanceLog | Refused:
        return _Judging(conn, principal, verdict, self._multi_tenant, self._ports.clock.now_ms()).write()


@dataclass(frozen=True, slots=True)
class _Judging:
    conn: Connection
    principal: str
    verdict: Verdict
    multi_tenant: Collection[str]
    now_ms: int

    def write(self) -> GuidanceLog | Refused:
        verdict = self.verdict
        log = guidance_store.held_log(self.conn, self.principal, verdict.log_id)
        if log is None:
            raise no_guidance(verdict.log_id)
        profile = profile_store.held_profile(self.conn, self.principal, verdict.profile_id)
        if profile is None:
            raise no_profile(verdict.profile_id)
        stands = refusal(log, verdict.decision, profile.profile_id, archived=profile.archived)
        if stands is not None:
            return Refused(stands.reason, _details(log, stands.reason))
        return self._reject(log) if verdict.decision == "reject" else self._promote(log, profile)

    def _reject(self, log: GuidanceLog) -> GuidanceLog:
        reason = self.verdict.reason
        guidance_store.decide(self.conn, log, "rejected", rev=None, reason=reason, at_ms=self.now_ms)
        return replace(log, status="rejected", updated_at_ms=self.now_ms)

    def _promote(self, log: GuidanceLog, profile: Profile) -> GuidanceLog:
        content = with_guidance(profile.content, log)
        if content is None:
            raise _no_room(profile)
        self.verdict.check(content)
        new = replace(profile, content=content, content_rev=profile.content_rev + 1, updated_at_ms=self.now_ms)
        profile_store.change(self.conn, self.principal, profile, new, self.multi_tenant)
        rev, reason = new.content_rev, self.verdict.reason
        guidance_store.decide(self.conn, log, "promoted", rev=rev, reason=reason, at_ms=self.now_ms)
        return replace(log, status="promoted", promoted_to_content_rev=rev, updated_at_ms=self.now_ms)


def _details(log: GuidanceLog, reason: str) -> dict[str, Json]:
    return {"occurrenceCount": log.occurrence_count, "required": RIPE_AT} if reason == "not_mature" else {}


def _no_room(profile: Profile) -> InvalidParams:
    return InvalidParams(
        "size_limit",
        f"The profile {profile.profile_id} has {MOST_GUIDANCE} pieces of guidance, which is as many as it can.",
        "Drop some with nova.task_profile_upsert first.",
        details={"argument": "stableGuidance", "limit": MOST_GUIDANCE, "received": MOST_GUIDANCE + 1},
    )


def _stats(profile: Profile, overrides: list[dict[str, Json]]) -> LearningStats:
    return LearningStats(
        profile.runs,
        profile.completed,
        profile.failed,
        profile.aborted,
        completion_percent(profile.completed, profile.failed, profile.aborted),
        override_candidates(overrides, 1)[:TOP_OVERRIDES],
    )
