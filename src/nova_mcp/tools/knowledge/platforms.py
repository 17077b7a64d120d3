"""Platforms met on many sites: what they are known by, and adding more."""

from pydantic import Field
from sqlalchemy import Connection

from nova_mcp.core.urls import normalize_url
from nova_mcp.errors import InvalidParams, NovaError, PolicyDenied, Precondition
from nova_mcp.memory.knowledge.model import AliasKind, Platform, PlatformId, Problem
from nova_mcp.memory.knowledge.platforms import store as platform_store
from nova_mcp.memory.knowledge.platforms.templates import PLATFORM_ID, Seeded
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.knowledge.params import Aliases, Patterns, refusal
from nova_mcp.tools.knowledge.result_parts import SignalPart, signal_part
from nova_mcp.tools.knowledge.write_context import commit_entries, refuse_secrets
from nova_mcp.tools.spec import AgentParams, Part, Result, maybe, tool
from nova_mcp.tools.times import utc


class PlatformBrief(Part):
    stable_id: str
    display_name: str
    built_in: bool
    pattern_count: int
    alias_count: int
    last_seen_at_utc: str | None = None


class AliasPart(Part):
    kind: AliasKind
    value: str


class PlatformPart(PlatformBrief):
    homepage_url: str | None = maybe()
    patterns: list[SignalPart]
    aliases: list[AliasPart]


class PlatformListParams(AgentParams):
    pass


class PlatformListResult(Result):
    platforms: list[PlatformBrief]
    count: int

    def text(self) -> str:
        rows = [
            f"{one.stable_id} {one.display_name}: {one.pattern_count} patterns, {one.alias_count} aliases"
            for one in self.platforms
        ]
        return "\n".join([f"{self.count} platforms", *rows])


@tool(title="List known platforms", effect="read", bundles=("pks_learning",), target="none")
async def pks_platform_list(ctx: ToolContext, p: PlatformListParams) -> PlatformListResult:
    """Vendors that many sites embed, such as consent platforms, and when each was last met."""
    keeper = ctx.learning.knowledge
    seen = await keeper.last_seen()
    rows = [_brief(one, seen.get(one.stable_id)) for one in await keeper.platforms()]
    return PlatformListResult(platforms=rows, count=len(rows))


class PlatformGetParams(AgentParams):
    stable_id: str = Field(min_length=1, max_length=128, pattern=r"^[^\x00]*$")


class PlatformGetResult(Result):
    found: bool
    platform: PlatformPart | None = None

    def text(self) -> str:
        if self.platform is None:
            return "no such platform"
        one = self.platform
        known_by = [f"{each.kind} {each.value}" for each in one.aliases]
        return "\n".join([f"{one.stable_id} {one.display_name}{' (built in)' if one.built_in else ''}", *known_by])


@tool(title="Read a platform", effect="read", bundles=("pks_learning",), target="none")
async def pks_platform_get(ctx: ToolContext, p: PlatformGetParams) -> PlatformGetResult:
    """What one platform is known by on any site: signals, script hosts, marks in the page."""
    keeper = ctx.learning.knowledge
    found = next((one for one in await keeper.platforms() if one.stable_id == p.stable_id), None)
    if found is None:
        return PlatformGetResult(found=False)
    seen = (await keeper.last_seen()).get(found.stable_id)
    brief = _brief(found, seen)
    return PlatformGetResult(
        found=True,
        platform=PlatformPart(
            **dict(brief),
            homepage_url=found.homepage_url,
            patterns=[signal_part(one) for one in found.patterns],
            aliases=[AliasPart(kind=one.kind, value=one.value) for one in found.aliases],
        ),
    )


def _brief(one: Platform, seen_at_ms: int | None) -> PlatformBrief:
    return PlatformBrief(
        stable_id=one.stable_id,
        display_name=one.display_name,
        built_in=one.built_in,
        pattern_count=len(one.patterns),
        alias_count=len(one.aliases),
        last_seen_at_utc=None if seen_at_ms is None else utc(seen_at_ms),
    )


class PlatformSeedParams(AgentParams):
    stable_id: str = Field(pattern=f"^{PLATFORM_ID.pattern}$")
    display_name: str = Field(min_length=1, max_length=120, pattern=r"^[^\x00-\x1f\x7f]*$")
    homepage_url: str | None = Field(None, min_length=1, max_length=2000, pattern=r"^[^\x00-\x1f\x7f]*$")
    patterns: Patterns = Field(default_factory=list)
    aliases: Aliases = Field(default_factory=list)


class PlatformSeedResult(Result):
    stable_id: str
    patterns_upserted: int
    aliases_upserted: int

    def text(self) -> str:
        return f"{self.stable_id}: {self.patterns_upserted} patterns and {self.aliases_upserted} aliases added"


@tool(
    title="Add a platform",
    effect="write",
    bundles=("pks_learning",),
    target="none",
    private_arguments=("displayName", "homepageUrl", "patterns", "aliases"),
    repeat_safe=True,
)
async def pks_platform_seed(ctx: ToolContext, p: PlatformSeedParams) -> PlatformSeedResult:
    """Adds a vendor that many sites embed, or more signs of one that was added. Meeting it on a site leaves a candidate
    there, nothing more."""
    refuse_secrets(ctx, p, "platform")
    if not p.display_name.strip():
        raise _refusal(Problem("invalid_params", "displayName must not be blank", "displayName"))
    if p.homepage_url is not None and _web_page(p.homepage_url) is None:
        raise _refusal(Problem("invalid_params", "homepageUrl must be an http or https address", "homepageUrl"))
    wish = Platform(
        stable_id=PlatformId(p.stable_id),
        display_name=" ".join(p.display_name.split()),
        patterns=tuple(dict.fromkeys(one.signal() for one in p.patterns)),
        aliases=tuple(dict.fromkeys(one.alias() for one in p.aliases)),
        homepage_url=p.homepage_url,
    )
    seeded = await commit_entries(ctx, lambda conn: _seed(conn, wish, ctx.ports.clock.now_ms()))
    return PlatformSeedResult(
        stable_id=wish.stable_id,
        patterns_upserted=seeded.patterns_upserted,
        aliases_upserted=seeded.aliases_upserted,
    )


def _seed(conn: Connection, wish: Platform, now_ms: int) -> Seeded:
    seeded = platform_store.seed(conn, wish, now_ms)
    if isinstance(seeded, Problem):
        raise _refusal(seeded)
    return seeded


def _web_page(text: str) -> str | None:
    found = normalize_url(text)
    return found if found is not None and found.startswith(("http://", "https://")) else None


def _refusal(problem: Problem) -> NovaError:
    if problem.code in Precondition.reasons:
        return Precondition(
            problem.code, problem.message, "Leave that alias out, or add to the platform it belongs to."
        )
    if problem.code in PolicyDenied.reasons:
        return PolicyDenied(problem.code, problem.message, "Add a platform of your own under another id.")
    if problem.code == "invalid_params" and problem.where:
        return InvalidParams(problem.code, problem.message, "", details={"argument": problem.where})
    return refusal(problem, "aliases" if "alias" in problem.message else "patterns")
