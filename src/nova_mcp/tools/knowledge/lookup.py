"""Reading knowledge: what is known of a site, which sites are known, and what fits the page."""

from collections.abc import Sequence
from typing import Final, Literal

from pydantic import Field

from nova_mcp.browser.read import knowledge_check
from nova_mcp.browser.targets.tab import Tab
from nova_mcp.errors import InvalidParams
from nova_mcp.memory.knowledge.drift import gate
from nova_mcp.memory.knowledge.matching.categories import categories_of
from nova_mcp.memory.knowledge.matching.entry_ranking import MODEL, WEIGHTS, Ranking, Request, Scored, context_fit
from nova_mcp.memory.knowledge.matching.fingerprints import ObservedSignal
from nova_mcp.memory.knowledge.matching.page_facts import observed_signals, wanted_of
from nova_mcp.memory.knowledge.matching.routes import route_of
from nova_mcp.memory.knowledge.model import ACTIVE, CANDIDATE, SHADOW, Phenomenon, PhenomenonType, ScopeName, Trust
from nova_mcp.memory.knowledge.service import KnownScope
from nova_mcp.memory.knowledge.site_list import SiteBrief, Wanted
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.knowledge.params import EntryId, ObservationParams, PlaceParams, RoutePlaceParams, ScopeText
from nova_mcp.tools.knowledge.result_parts import (
    HealthPart,
    HintPart,
    PhenomenonPart,
    PlaybookPart,
    health_part,
    hint_part,
    phenomenon_part,
    playbook_part,
)
from nova_mcp.tools.knowledge.scope_argument import open_tab, page_scope, parsed_scope
from nova_mcp.tools.spec import AgentParams, Part, Result, TargetParams, maybe, tool
from nova_mcp.tools.times import utc

MOST_IDS: Final = 20
MOST_ROWS: Final = 40
_PLACES: Final = 4


def _shortened(rows: list[str]) -> list[str]:
    """A text that can be read; the structured answer has the whole of it."""
    return rows if len(rows) <= MOST_ROWS else [*rows[:MOST_ROWS], f"and {len(rows) - MOST_ROWS} more"]


# -- get


class GetParams(AgentParams):
    scope: ScopeText
    phenomenon_id: EntryId | None = None
    output_detail: Literal["summary", "full"] | None = Field(None, description="full with an id, else summary")
    context: PlaceParams | None = None


class Counts(Part):
    candidate: int = 0
    shadow: int = 0
    active: int = 0
    deprecated: int = 0
    hints: int = 0


class GetResult(Result):
    found: bool
    scope: str
    trust: Trust
    content_rev: int
    context_match: bool
    mismatches: list[str]
    counts: Counts
    service_categories: list[str] = maybe([])
    phenomena: list[PhenomenonPart]
    domain_hints: list[HintPart]
    available_ids: list[str] | None = maybe()

    def text(self) -> str:
        if not self.found:
            there = f"; known: {' '.join(self.available_ids)}" if self.available_ids else ""
            return f"{self.scope}: nothing found{there}"
        c = self.counts
        counts = f"{c.active} active, {c.shadow} in review, {c.candidate} candidates, {c.deprecated} deprecated"
        fits = "" if self.context_match else f" (other {', '.join(self.mismatches)})"
        rows = [one.line() for one in self.phenomena] + [one.line() for one in self.domain_hints]
        return "\n".join([f"{self.scope}: trust {self.trust}, {counts}{fits}", *_shortened(rows)])


@tool(title="What is known of a site", effect="read", bundles=("pks_learning",), target="none")
async def pks_get(ctx: ToolContext, p: GetParams) -> GetResult:
    """The stored situations of a site with level and health; with phenomenonId one of them in full. Only active ones
    may guide you, and the visible page decides."""
    scope = parsed_scope(p.scope)
    known = await ctx.learning.knowledge.known(scope)
    return got(known, p, ctx.ports.clock.now_ms())


def got(known: KnownScope, p: GetParams, now_ms: int) -> GetResult:
    full = p.output_detail == "full" or (p.output_detail is None and p.phenomenon_id is not None)
    wanted = [one for one in known.shelved if p.phenomenon_id in (None, one.stable_id)]
    pending = {one.stable_id: one.kept for one in wanted if one.slot == "pending"}
    phenomena, hints = [], []
    for one in wanted:
        if one.slot == "current" and isinstance(one.kept, Phenomenon):
            newer = pending.get(one.stable_id)
            phenomena.append((one.kept, newer if isinstance(newer, Phenomenon) else None))
        elif one.slot == "current" and not isinstance(one.kept, Phenomenon):
            hints.append(one.kept)
    found = bool(phenomena or hints)
    missed = _mismatches(known, [one for one, _ in phenomena] if p.phenomenon_id is not None else [], p.context)
    ids = [one.stable_id for one in known.shelved if one.slot == "current"]
    return GetResult(
        found=found,
        scope=known.scope,
        trust=known.trust,
        content_rev=known.about.content_rev if known.about is not None else 0,
        context_match=not missed,
        mismatches=missed,
        counts=_counts(known),
        service_categories=[] if known.about is None else list(categories_of(known.about)),
        phenomena=[phenomenon_part(one, now_ms, full=full, pending=newer) for one, newer in phenomena],
        domain_hints=[hint_part(one) for one in hints],
        available_ids=None if found or p.phenomenon_id is None else [str(one) for one in ids[:MOST_IDS]],
    )


def _mismatches(known: KnownScope, entries: Sequence[Phenomenon], place: PlaceParams | None) -> list[str]:
    if place is None:
        return []
    contexts = [one.content.context for one in entries]
    if known.about is not None:
        contexts.append(known.about.context)
    names = (name for one in contexts for name in context_fit(one, place.request()).mismatches)
    return list(dict.fromkeys(names))


def _counts(known: KnownScope) -> Counts:
    alive = [one.level for one in known.phenomena if not one.deprecated]
    return Counts(
        candidate=alive.count(CANDIDATE),
        shadow=alive.count(SHADOW),
        active=alive.count(ACTIVE),
        deprecated=len(known.phenomena) - len(alive),
        hints=len(known.hints),
    )


# -- list


class ListParams(AgentParams):
    prefix: str | None = Field(None, min_length=1, max_length=253, pattern=r"^[^\x00]*$")
    type: PhenomenonType | None = None
    trust: Trust | None = None
    service_category: str | None = Field(None, min_length=1, max_length=64, pattern=r"^[^\x00]*$")
    min_health: float | None = Field(None, ge=0, le=1, allow_inf_nan=False, description="least 30 day success rate")
    limit: int = Field(50, ge=1, le=500)
    offset: int = Field(0, ge=0)


class SitePart(Part):
    scope: str
    active: int
    shadow: int
    candidate: int
    deprecated: int
    avg_success_rate30d: float | None = Field(alias="avgSuccessRate30d")
    types: list[PhenomenonType]
    trust: Trust
    service_categories: list[str]
    updated_at_utc: str

    def line(self) -> str:
        rate = "" if self.avg_success_rate30d is None else f" {self.avg_success_rate30d:.0%}"
        counts = f"{self.active} active, {self.shadow} in review, {self.candidate} candidates"
        return f"{self.scope} trust {self.trust}: {counts}{rate}"


class ListResult(Result):
    scopes: list[SitePart]
    count: int
    has_more: bool

    def text(self) -> str:
        more = "; more with a higher offset" if self.has_more else ""
        return "\n".join([f"{self.count} sites{more}", *_shortened([one.line() for one in self.scopes])])


@tool(title="List known sites", effect="read", bundles=("pks_learning",), target="none")
async def pks_list(ctx: ToolContext, p: ListParams) -> ListResult:
    """The sites something is known of, with counts per level, trust and how well their entries work."""
    wanted = Wanted(
        (p.prefix or "").strip().lower(), p.type, p.trust, p.service_category, p.min_health, p.limit, p.offset
    )
    found = await ctx.learning.knowledge.listed(wanted)
    sites = [_site(one) for one in found.sites]
    return ListResult(scopes=sites, count=len(sites), has_more=found.has_more)


def _site(one: SiteBrief) -> SitePart:
    return SitePart(
        scope=one.scope,
        active=one.active,
        shadow=one.shadow,
        candidate=one.candidate,
        deprecated=one.deprecated,
        avg_success_rate30d=None if one.rate is None else round(one.rate, _PLACES),
        types=list(one.types),
        trust=one.trust,
        service_categories=list(one.categories),
        updated_at_utc=utc(one.updated_at_ms),
    )


# -- match


class MatchParams(TargetParams):
    scope: ScopeText | None = None
    observation: ObservationParams | None = None
    context: RoutePlaceParams | None = None
    top_k: int = Field(1, ge=1, le=10)


class MatchPart(Part):
    phenomenon_id: str
    phenomenon_type: PhenomenonType
    matched: bool
    confidence: float
    min_confidence: float
    score: float
    health: HealthPart

    def line(self) -> str:
        near = "" if self.matched else f", under {self.min_confidence:g}: a near miss"
        sick = ", quarantined" if self.health.state == "quarantined" else ""
        return f"{self.phenomenon_id} {self.phenomenon_type} {self.confidence:.2f}{near}{sick}"


class RankingPart(Part):
    model: str
    weights: dict[str, float]


class MatchResult(Result):
    matched: bool
    scope: str
    source: Literal["local"] = "local"
    phenomenon_id: str | None = None
    phenomenon_type: PhenomenonType | None = None
    confidence: float = 0.0
    min_confidence: float | None = None
    score: float | None = None
    context_match: bool
    mismatches: list[str]
    playbook: PlaybookPart | None = None
    health: HealthPart | None = None
    top_matches: list[MatchPart]
    domain_hints: list[HintPart]
    ranking: RankingPart
    warnings: list[str] = maybe([])

    def text(self) -> str:
        head = f"{self.scope}: {'matched' if self.matched else 'no match'}"
        if self.mismatches:
            head += f" (other {', '.join(self.mismatches)})"
        rows = [one.line() for one in self.top_matches]
        if self.playbook is not None:
            steps = "; ".join(f"{one.action} {one.selector or one.key or ''}".strip() for one in self.playbook.actions)
            rows.append(f"playbook {self.playbook.policy}: {steps or 'nothing to do'}")
        return "\n".join([head, *rows, *(f"warning: {one}" for one in self.warnings)])


@tool(title="Match the page with what is known", effect="read", bundles=("pks_learning",), target="optional")
async def pks_match(ctx: ToolContext, p: MatchParams) -> MatchResult:
    """Which active entry fits: the signals you send, or what Nova reads off the page. A match is a hint on what to look
    for; run it with nova.phenomenon_apply or act on what you see."""
    tab = ctx.evidence.tab
    scope = _scope(p, tab)
    keeper = ctx.learning.knowledge
    known = await keeper.known(scope)
    request = Request() if p.context is None else p.context.request()
    given = p.observation
    if given is not None and given.signals:
        observed: tuple[ObservedSignal, ...] = tuple(one.observed() for one in given.signals)
        locale = request.locale or next((one.locale for one in given.signals if one.locale), None)
    else:
        page = _page(ctx, tab, scope)
        seen = await knowledge_check.signals(page, wanted_of(known.guiding, await keeper.platforms()))
        observed, locale = observed_signals(seen), request.locale or seen.locale
        if request.route is None:
            request = Request(request.device, request.locale, request.auth, route_of(page.url))
        if (also := keeper.met(scope, seen.vendors)) is not None:
            ctx.evidence.also.append(also)
    request = Request(request.device, locale, request.auth, request.route)
    ranking = keeper.match(known, observed, request, None if given is None else given.type)
    return matched(known, ranking, p.top_k, ctx.ports.clock.now_ms())


def _scope(p: MatchParams, tab: Tab | None) -> ScopeName:
    if p.scope is not None:
        return parsed_scope(p.scope)
    if tab is not None and (found := page_scope(tab)) is not None:
        return found
    if p.observation is not None and p.observation.signals:
        told = "Signals belong to a site, and there is no page to read it from."
        raise InvalidParams("invalid_params", told, "Name the site in scope.", details={"argument": "scope"})
    raise _signals_required("There is no page to read a site from.")


def _page(ctx: ToolContext, tab: Tab | None, scope: ScopeName) -> Tab:
    """A page that shows the site: the target, else another tab of the caller."""
    found = tab if tab is not None and tab.state == "ready" and page_scope(tab) == scope else open_tab(ctx, scope)
    if found is None:
        raise _signals_required(f"No tab of yours shows {scope}, so there is nothing to read signals from.")
    return found


def _signals_required(message: str) -> InvalidParams:
    return InvalidParams(
        "signals_required",
        message,
        details={"argument": "observation.signals"},
    )


def matched(known: KnownScope, ranking: Ranking, top_k: int, now_ms: int) -> MatchResult:
    best = ranking.best or (ranking.near_misses[0] if ranking.near_misses else None)
    rows = [*ranking.matches, *ranking.near_misses][:top_k]
    missed = [] if best is not None or not ranking.ruled_out else list(ranking.ruled_out[0][1])
    sure = best is not None and best.match.reached
    playbook = best.phenomenon.content.playbook if best is not None and sure else None
    return MatchResult(
        matched=sure,
        scope=known.scope,
        phenomenon_id=None if best is None else best.phenomenon.stable_id,
        phenomenon_type=None if best is None else best.phenomenon.content.type,
        confidence=0.0 if best is None else round(best.match.confidence, _PLACES),
        min_confidence=None if best is None else best.match.min_confidence,
        score=None if best is None else round(best.score, _PLACES),
        context_match=not missed,
        mismatches=missed,
        playbook=None if playbook is None else playbook_part(playbook),
        health=None if best is None else health_part(best.phenomenon.health, now_ms),
        top_matches=[_match_part(one, now_ms) for one in rows],
        domain_hints=[hint_part(one) for one in known.hints if one.may_guide],
        ranking=RankingPart(model=MODEL, weights=dict(WEIGHTS)),
        warnings=_warnings(best) if best is not None and sure else [],
    )


def _match_part(one: Scored, now_ms: int) -> MatchPart:
    return MatchPart(
        phenomenon_id=one.phenomenon.stable_id,
        phenomenon_type=one.phenomenon.content.type,
        matched=one.match.reached,
        confidence=round(one.match.confidence, _PLACES),
        min_confidence=one.match.min_confidence,
        score=round(one.score, _PLACES),
        health=health_part(one.phenomenon.health, now_ms),
    )


def _warnings(best: Scored) -> list[str]:
    name, told = best.phenomenon.stable_id, list[str]()
    if best.state == "quarantined":
        told.append(f"{name} is quarantined: it failed lately and is not applied until it is confirmed.")
    if gate(best.phenomenon.drift_debt, "warn") != "pass":
        told.append(f"{name} has moved away from what was learned; check the page before you rely on it.")
    return told
