"""Recurring tasks: recognising one, looking profiles up, and writing down what a task needs."""

from typing import Annotated, Final

from pydantic import AfterValidator, Field, JsonValue

from nova_mcp.core.hosts import normalize_host
from nova_mcp.core.keywords import cut
from nova_mcp.memory.tasks.content_codec import content_json, json_bytes
from nova_mcp.memory.tasks.model import MOST_SCOPE_BYTES, TaskKind
from nova_mcp.memory.tasks.profiles.matching import LEAST_LISTED, THRESHOLD, Match, Rejection
from nova_mcp.memory.tasks.profiles.rules import Profile
from nova_mcp.memory.tasks.profiles.store import Wanted
from nova_mcp.memory.tasks.runs.service import Aware
from nova_mcp.tools.catalogue import Catalogue
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.groups import AbsoluteUrl
from nova_mcp.tools.spec import AgentParams, Part, Result, maybe, tool
from nova_mcp.tools.tasks.content_params import NoZero, ProfileId, Text64, Text500, host_of, size_limit, text_of
from nova_mcp.tools.tasks.run_parts import TaskAwareness, task_awareness
from nova_mcp.tools.times import utc

SHOWN_GOAL: Final = 160
_DIGITS: Final = 4


def _web_address(url: str) -> str:
    if not url.lower().startswith(("http://", "https://")) or normalize_host(url) is None:
        raise ValueError("must be an http or https address")
    return url


TargetUrl = Annotated[AbsoluteUrl, AfterValidator(_web_address)]
Text200 = Annotated[str, text_of(1, 200), NoZero]


class ScoreBreakdown(Part):
    text: float
    domain: float | None
    platform: float | None


class MatchPart(Part):
    profile_id: str
    display_name: str
    domain: str | None
    platform: str | None
    final_score: float
    accepted: bool
    rejected_because: Rejection | None
    score_breakdown: ScoreBreakdown

    def line(self) -> str:
        told = "accepted" if self.accepted else f"rejected: {self.rejected_because}"
        return f'{self.profile_id} "{self.display_name}" {self.final_score} {told}'


# -- recognising a task


class MatchParams(AgentParams):
    task_description: Annotated[str, text_of(3, 2000), NoZero]
    task_type: Text200 | None = Field(None, description="only profiles of this type")
    domain: Text200 | None = None
    platform: Text200 | None = None
    target_url: TargetUrl | None = Field(None, description="gives the domain where none is named")
    current_scope: dict[str, JsonValue] | None = None


class MatchResult(Result):
    matches: list[MatchPart]
    best_match: MatchPart | None
    count: int
    threshold_used: float
    current_scope: dict[str, JsonValue] | None = maybe()
    task_awareness: TaskAwareness

    def text(self) -> str:
        if not self.matches:
            return "no profile shares a word with this task"
        lines = [one.line() for one in self.matches]
        if self.best_match is None:
            return "\n".join(["none of these is accepted:", *lines])
        profile = self.task_awareness.profile_match
        goal = None if profile is None else profile.get("goal")
        return "\n".join([*lines, f"goal: {goal}", "start it with nova.task_instance_create {profileId}"])


def _check_match(p: MatchParams, _: Catalogue) -> None:
    if p.domain is not None:
        host_of(p.domain)
    if p.current_scope is not None and (size := json_bytes(p.current_scope)) > MOST_SCOPE_BYTES:
        raise size_limit("currentScope", MOST_SCOPE_BYTES, "bytes of JSON", size)


def _domain(domain: str | None, target_url: str | None = None) -> str | None:
    if domain is not None:
        return host_of(domain)
    return None if target_url is None else host_of(target_url, "targetUrl")


@tool(title="Recognise a recurring task", effect="read", bundles=("task_memory",), target="none", check=_check_match)
async def task_match(ctx: ToolContext, p: MatchParams) -> MatchResult:
    """Whether a task you are about to do is one that was done before: the profiles that fit its description, and what
    the best of them asks for."""
    keeper = ctx.tasks.profiles
    query = keeper.query(p.task_description, _domain(p.domain, p.target_url), p.platform, p.task_type)
    found = await keeper.matching(ctx.caller.principal, query)
    shown = [_shown_match(one, found.profiles[one.candidate.profile_id]) for one in found.matches]
    best = found.best
    return MatchResult(
        matches=shown,
        best_match=None if best is None else _shown_match(best, found.profiles[best.candidate.profile_id]),
        count=len(shown),
        threshold_used=THRESHOLD,
        current_scope=p.current_scope,
        task_awareness=task_awareness(Aware(await ctx.tasks.runs.awareness(ctx.caller), found.recognised)),
    )


def _shown_match(one: Match, profile: Profile) -> MatchPart:
    return MatchPart(
        profile_id=profile.profile_id,
        display_name=profile.content.display_name,
        domain=profile.content.domain,
        platform=profile.content.platform,
        final_score=round(one.score, _DIGITS),
        accepted=one.accepted,
        rejected_because=one.rejected_because,
        score_breakdown=ScoreBreakdown(
            text=round(one.parts.text, _DIGITS), domain=one.parts.domain, platform=one.parts.platform
        ),
    )


# -- searching


class SearchParams(AgentParams):
    query: Text500
    domain: Text200 | None = None
    platform: Text200 | None = None
    task_type: Text200 | None = Field(None, description="only profiles of this type")
    limit: int = Field(10, ge=1, le=50)


class SearchCandidate(Part):
    profile_id: str
    display_name: str
    goal: str
    task_type: str
    domain: str | None
    score: float
    accepted: bool
    has_guidance: bool
    usage_count: int

    def line(self) -> str:
        mark = " accepted" if self.accepted else ""
        return f'{self.profile_id} "{self.display_name}" {self.score}{mark}: {cut(self.goal, SHOWN_GOAL)}'


class SearchResult(Result):
    candidates: list[SearchCandidate]
    count: int
    min_score: float
    omitted_weak_matches: int

    def text(self) -> str:
        weak = [f"{self.omitted_weak_matches} weak matches left out"] if self.omitted_weak_matches else []
        return "\n".join([f"{self.count} profiles", *(one.line() for one in self.candidates), *weak])


def _check_search(p: SearchParams, _: Catalogue) -> None:
    if p.domain is not None:
        host_of(p.domain)


@tool(title="Search task memory", effect="read", bundles=("task_memory",), target="none", check=_check_search)
async def task_search(ctx: ToolContext, p: SearchParams) -> SearchResult:
    """Finds profiles of recurring tasks by words; domain and platform raise those that fit."""
    keeper = ctx.tasks.profiles
    query = keeper.query(p.query, _domain(p.domain), p.platform, p.task_type)
    found = await keeper.searched(ctx.caller.principal, query, p.limit)
    strong = [one for one in found.matches if one.score >= LEAST_LISTED]
    shown = [_shown_candidate(one, found.profiles[one.candidate.profile_id]) for one in strong[: p.limit]]
    return SearchResult(
        candidates=shown,
        count=len(shown),
        min_score=LEAST_LISTED,
        omitted_weak_matches=len(found.matches) - len(strong),
    )


def _shown_candidate(one: Match, profile: Profile) -> SearchCandidate:
    content = profile.content
    return SearchCandidate(
        profile_id=profile.profile_id,
        display_name=content.display_name,
        goal=content.goal,
        task_type=content.task_type,
        domain=content.domain,
        score=round(one.score, _DIGITS),
        accepted=one.accepted,
        has_guidance=bool(content.stable_guidance),
        usage_count=profile.runs,
    )


# -- listing


class ListParams(AgentParams):
    task_type: Text64 | None = None
    domain: Text200 | None = None
    platform: Text200 | None = None
    include_archived: bool = False
    limit: int = Field(100, ge=1, le=500)
    offset: int = Field(0, ge=0, le=2**31 - 1)


class ListedProfile(Part):
    profile_id: str
    task_type: str
    display_name: str
    domain: str | None
    platform: str | None
    goal: str
    confidence: float
    content_rev: int
    usage_count: int
    archived: bool
    updated_at_utc: str

    def line(self) -> str:
        where = f" {self.domain}" if self.domain else ""
        gone = " archived" if self.archived else ""
        head = f'{self.profile_id} r{self.content_rev} {self.task_type}{where}{gone} "{self.display_name}"'
        return f"{head} {self.confidence} used {self.usage_count}: {cut(self.goal, SHOWN_GOAL)}"


class ListResult(Result):
    profiles: list[ListedProfile]
    count: int
    has_more: bool

    def text(self) -> str:
        more = ["more with a higher offset"] if self.has_more else []
        return "\n".join([f"{self.count} profiles", *(one.line() for one in self.profiles), *more])


def _check_list(p: ListParams, _: Catalogue) -> None:
    if p.domain is not None:
        host_of(p.domain)


@tool(title="List task profiles", effect="read", bundles=("task_memory",), target="none", check=_check_list)
async def task_profiles(ctx: ToolContext, p: ListParams) -> ListResult:
    """Lists the profiles of recurring tasks, last changed first."""
    keeper = ctx.tasks.profiles
    wanted = Wanted(p.task_type, _domain(p.domain), p.platform, p.include_archived, p.limit, p.offset)
    found, more = await keeper.listed(ctx.caller.principal, wanted)
    return ListResult(profiles=[_listed(ctx, one) for one in found], count=len(found), has_more=more)


def _listed(ctx: ToolContext, one: Profile) -> ListedProfile:
    content = one.content
    return ListedProfile(
        profile_id=one.profile_id,
        task_type=content.task_type,
        display_name=content.display_name,
        domain=content.domain,
        platform=content.platform,
        goal=content.goal,
        confidence=round(ctx.tasks.profiles.tuning(one).effective, _DIGITS),
        content_rev=one.content_rev,
        usage_count=one.runs,
        archived=one.archived,
        updated_at_utc=utc(one.updated_at_ms),
    )


# -- one profile


class GetParams(AgentParams):
    profile_id: ProfileId


class ConfidenceTuning(Part):
    base: float
    effective: float
    completed: int
    failed: int
    idle_days: float
    recency_factor: float


class ProfileResult(Result):
    profile_id: str
    task_type: str
    display_name: str
    goal: str
    domain: str | None
    platform: str | None
    task_kind: TaskKind | None
    completion_condition: dict[str, JsonValue]
    stable_guidance: list[JsonValue]
    mandatory_checks: list[JsonValue]
    known_exceptions: list[JsonValue]
    verification: dict[str, JsonValue] | None
    confidence: float
    content_rev: int
    archived: bool
    usage_count: int
    created_at_utc: str
    updated_at_utc: str
    confidence_tuning: ConfidenceTuning


@tool(title="Read a task profile", effect="read", bundles=("task_memory",), target="none")
async def task_profile_get(ctx: ToolContext, p: GetParams) -> ProfileResult:
    """A profile whole: goal, guidance, checks, when the task is done, and how far it can be relied on."""
    keeper = ctx.tasks.profiles
    found = await keeper.find(ctx.caller.principal, p.profile_id)
    tuning = keeper.tuning(found)
    return ProfileResult.model_validate(
        {
            **content_json(found.content),
            "profileId": found.profile_id,
            "confidence": round(tuning.effective, _DIGITS),
            "contentRev": found.content_rev,
            "archived": found.archived,
            "usageCount": found.runs,
            "createdAtUtc": utc(found.created_at_ms),
            "updatedAtUtc": utc(found.updated_at_ms),
            "confidenceTuning": ConfidenceTuning(
                base=tuning.base,
                effective=round(tuning.effective, _DIGITS),
                completed=tuning.completed,
                failed=tuning.failed,
                idle_days=round(tuning.idle_days, _DIGITS),
                recency_factor=round(tuning.recency_factor, _DIGITS),
            ),
        }
    )
