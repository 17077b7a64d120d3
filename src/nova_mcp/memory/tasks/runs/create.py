"""Starting a run: what it is held to, what it begins with, and the same answer for the same call."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sqlalchemy import Connection

from nova_mcp.core.urls import page_host
from nova_mcp.core.values import Json
from nova_mcp.errors import InvalidParams
from nova_mcp.evidence.rules import DAY_MS
from nova_mcp.memory.tasks.content_codec import canonical
from nova_mcp.memory.tasks.effective_context import EffectiveContext, Overrides, TooLarge, effective_context
from nova_mcp.memory.tasks.kinds import task_kind_policy
from nova_mcp.memory.tasks.model import TaskContent, TaskKind
from nova_mcp.memory.tasks.not_found import no_profile
from nova_mcp.memory.tasks.profiles import store
from nova_mcp.memory.tasks.profiles.rules import Profile
from nova_mcp.memory.tasks.refusals import Refused
from nova_mcp.memory.tasks.runs import writes
from nova_mcp.memory.tasks.runs.seeds import MOST_SEEDS, NOTHING, Seeded, UnitSource, seeded
from nova_mcp.memory.tasks.runs.store import Run, run_created_by, run_of
from nova_mcp.memory.tasks.runs.transactions import Occasion, UnitEvidence, reused_event
from nova_mcp.memory.tasks.runs.writes import NewRun

Seeds = Callable[[Connection, str, str, int], list[str]]
# How long the same event id means the same run.
SAME_EVENT_MS = DAY_MS


@dataclass(frozen=True, slots=True)
class RunWish:
    """A run as it is asked for; exactly one of profile and content is given."""

    profile_id: str | None = None
    content: TaskContent | None = None
    target_url: str | None = None
    scope: Mapping[str, Json] = field(default_factory=dict)
    overrides: Overrides = field(default_factory=Overrides)
    overrides_given: Mapping[str, Json] = field(default_factory=dict)
    declared_kind: TaskKind | None = None
    source: UnitSource | None = None
    event_id: str | None = None
    payload_hash: str | None = None


@dataclass(frozen=True, slots=True)
class Created:
    run: Run
    duplicate: bool = False


@dataclass(frozen=True, slots=True)
class _Begun:
    """What a run is going to be held to."""

    profile: Profile | None
    context: EffectiveContext


class RunCreator:
    """Starts runs; `seeds` are the known addresses of a site, newest first."""

    def __init__(self, evidence: UnitEvidence, seeds: Seeds) -> None:
        self._evidence = evidence
        self._seeds = seeds

    def create(self, conn: Connection, at: Occasion, wish: RunWish, instance_id: str) -> Created | Refused:
        if (known := self._known(conn, at, wish)) is not None:
            return known
        begun = self._begun(conn, at, wish)
        if not isinstance(begun, _Begun):
            return begun
        condition = begun.context.content.completion_condition
        if wish.source is not None and not condition.counts_urls:
            raise bad_source(f"A run of {condition.unit_kind} units takes none from URLs.")
        first = self._first_units(conn, at, wish)
        self._let_go(conn, at, wish)
        if not writes.begin(conn, _new_run(at, wish, begun, first, instance_id)):
            # Another server began the run of this very event while this one waited.
            return self._known(conn, at, wish) or Refused("rev_conflict")
        if first.units:
            self._evidence.fill(conn, instance_id, [one.key for one in first.units], at.now_ms)
        if begun.profile is not None:
            store.note_started(conn, at.owner[0], begun.profile.profile_id)
        run = run_of(conn, at.owner[0], instance_id)
        if run is None:
            raise AssertionError("a run that was just written is there")
        return Created(run)

    def _known(self, conn: Connection, at: Occasion, wish: RunWish) -> Created | None:
        """The run that this event has begun already."""
        if wish.event_id is None:
            return None
        run = run_created_by(conn, *at.owner, wish.event_id)
        if run is None or _is_over(run, at):
            return None
        if run.create_payload_hash != wish.payload_hash:
            raise reused_event(wish.event_id)
        return Created(run, duplicate=True)

    def _let_go(self, conn: Connection, at: Occasion, wish: RunWish) -> None:
        """Free an event id whose day is over, now that another run is sure to begin with it."""
        run = None if wish.event_id is None else run_created_by(conn, *at.owner, wish.event_id)
        if run is not None and _is_over(run, at):
            writes.release_event_id(conn, run.instance_id)

    def _begun(self, conn: Connection, at: Occasion, wish: RunWish) -> _Begun | Refused:
        profile = None if wish.profile_id is None else store.profile(conn, at.owner[0], wish.profile_id)
        if wish.profile_id is not None and profile is None:
            raise no_profile(wish.profile_id)
        if profile is not None and profile.archived:
            return Refused("profile_archived", {"profileId": profile.profile_id})
        content = wish.content if profile is None else profile.content
        if content is None:
            raise AssertionError("a run has a profile or says itself what it needs")
        context = effective_context(content, wish.scope, wish.overrides)
        if isinstance(context, TooLarge):
            raise too_large(context)
        return _Begun(profile, context)

    def _first_units(self, conn: Connection, at: Occasion, wish: RunWish) -> Seeded:
        source = wish.source
        if source is None:
            return NOTHING
        urls = source.urls
        if source.scope_domain is not None:
            # One more than is taken shows that there are more.
            urls = tuple(self._seeds(conn, at.owner[0], source.scope_domain, MOST_SEEDS + 1))
        return seeded(urls, wish.target_url, freeze=source.freeze)


def _is_over(run: Run, at: Occasion) -> bool:
    return at.now_ms - run.started_at_ms > SAME_EVENT_MS


def _new_run(at: Occasion, wish: RunWish, begun: _Begun, first: Seeded, instance_id: str) -> NewRun:
    content, profile = begun.context.content, begun.profile
    kind = task_kind_policy(wish.declared_kind, content.task_kind, content.goal, content.display_name)
    return NewRun(
        instance_id=instance_id,
        principal=at.owner[0],
        agent_id=at.owner[1],
        content=content,
        effective_context=begun.context.text,
        effective_context_hash=begun.context.hash,
        overrides=canonical(dict(wish.overrides_given)),
        discovery=first.discovery,
        units=first.units,
        task_kind=kind.effective,
        task_kind_source=kind.source,
        seeding=first.json,
        at_ms=at.now_ms,
        profile_id=None if profile is None else profile.profile_id,
        profile_rev=None if profile is None else profile.content_rev,
        target_url=wish.target_url,
        target_host=None if wish.target_url is None else page_host(wish.target_url),
        event_id=wish.event_id,
        payload_hash=wish.payload_hash,
    )


# -- what is wrong with a call


def too_large(found: TooLarge) -> InvalidParams:
    unit = "bytes of JSON" if found.what == "currentScope" else "entries"
    return InvalidParams(
        "size_limit",
        f"{found.what} has at most {found.most} {unit} (it would have {found.size})",
        details={"argument": found.what, "limit": found.most, "received": found.size},
    )


def bad_source(why: str) -> InvalidParams:
    return InvalidParams(
        "invalid_unit_source",
        f"unitSource: {why}",
        details={"argument": "unitSource"},
    )
