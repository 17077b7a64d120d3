"""Instructions: how to work here, what is open, what was noted, and Learn Mode for claims."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import Field, StringConstraints

from nova_mcp.browser.targets.tab import Tab
from nova_mcp.core.hosts import normalize_host
from nova_mcp.core.leases import Place
from nova_mcp.core.urls import page_host
from nova_mcp.errors import InvalidParams, Precondition
from nova_mcp.memory.claims.rules import Claim
from nova_mcp.memory.tasks.instructions.budget import ADDENDA_CHARS, Addenda, Detail, fit_addenda
from nova_mcp.memory.tasks.instructions.learn_mode import Wished
from nova_mcp.memory.tasks.instructions.learn_rules import learn_domain
from nova_mcp.memory.tasks.instructions.text import LearnBrief, Matter, Mode, Quote, Visit, fenced, instructions_text
from nova_mcp.tools.catalogue import Catalogue
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.names import published_name
from nova_mcp.tools.notes.note_params import parsed_domain
from nova_mcp.tools.read.knowledge_hints import FrameworkHintPart, PksHealthWarningPart
from nova_mcp.tools.read.memory_hints import BrowserMemoryPart
from nova_mcp.tools.spec import RARE, Part, Result, TargetParams, tool
from nova_mcp.tools.system.instruction_knowledge import SiteKnowledge, services, site_knowledge
from nova_mcp.tools.system.instruction_notes import OperatorNotePart, QuotedNotesPart, StoredNotes, stored_notes, tell
from nova_mcp.tools.system.instruction_parts import (
    ActivationPart,
    CoverageContractPart,
    EvmPart,
    LearnPart,
    OutputBudgetPart,
    ServicePart,
    progress_part,
)
from nova_mcp.tools.system.instruction_tasks import OpenTasks, open_tasks
from nova_mcp.tools.tasks.run_parts import EvidencePart, TaskAwareness

CONTRACT_VERSION: Final = "v3"
_ALIASES: Final = ("domain", "scope_domain", "domain_scope")

Domain = Annotated[str, Field(min_length=1, max_length=2000)]
Keyword = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=64)]


class GetInstructionsParams(TargetParams):
    mode: Mode = Field("task", description="learn turns on Learn Mode for your claim")
    detail: Detail = Field("compact", json_schema_extra=RARE)
    scope: Literal["target", "allOwnerClaims"] = Field("target", json_schema_extra=RARE)
    domain: Domain | None = Field(None, description="site; default: the tab's")
    scope_domain: Domain | None = Field(None, json_schema_extra=RARE)
    domain_scope: Domain | None = Field(None, json_schema_extra=RARE)
    task_keywords: list[Keyword] = Field(default_factory=list, max_length=10)

    def host(self) -> str | None:
        """The one host that the aliases name; None when none is given."""
        given = {name: text for name in _ALIASES if (text := getattr(self, name)) is not None}
        hosts = {name: parsed_domain(text) for name, text in given.items()}
        if len(set(hosts.values())) > 1:
            raise InvalidParams("conflicting_alias")
        return next(iter(hosts.values()), None)


def check_aliases(p: GetInstructionsParams, _: Catalogue) -> None:
    p.host()


class GetInstructionsResult(Result):
    """Every block is there; one that has nothing to say is null."""

    contract_version: str = CONTRACT_VERSION
    mode: Mode
    detail: Detail
    domain: str | None
    instructions_text: str
    evm: EvmPart | None = None
    learn_mode: LearnPart | None = None
    task_awareness: TaskAwareness | None = None
    evidence_summary: EvidencePart | None = None
    coverage_contract: CoverageContractPart | None = None
    domain_notes: QuotedNotesPart | None = None
    operator_notes: list[OperatorNotePart] | None = None
    browser_memory: BrowserMemoryPart | None = None
    framework_hints: list[FrameworkHintPart] | None = None
    service_discovery: list[ServicePart] | None = None
    pks_health_warnings: list[PksHealthWarningPart] | None = None
    output_budget: OutputBudgetPart
    unquoted: str = Field("", exclude=True)

    def text(self) -> str:
        """The instructions, and below them what stands only in a block."""
        lines = [self.instructions_text, self.unquoted]
        if self.pks_health_warnings:
            doubts = (f"{one.phenomenon_id[:60]} {one.state} ({one.reason})" for one in self.pks_health_warnings)
            lines.append(f"Doubtful knowledge of the site: {'; '.join(doubts)}")
        if self.framework_hints:
            lines += [f"{one.framework}: {one.advice}" for one in self.framework_hints]
        if self.service_discovery:
            known = (f"{one.scope} ({one.service_category})" for one in self.service_discovery)
            lines.append(f"Known sites for this: {', '.join(known)}")
        if self.output_budget.omitted_fields:
            lines.append(f"Left out for room: {', '.join(self.output_budget.omitted_fields)}")
        return "\n\n".join(line for line in lines if line)


@tool(
    title="Read the instructions",
    effect="read",
    bundles=("core", "system_tools"),
    target="context",
    lock="none",
    check=check_aliases,
)
async def get_instructions(ctx: ToolContext, p: GetInstructionsParams) -> GetInstructionsResult:
    """Read first: how to work here, your open runs, notes and knowledge of a site."""
    host = p.host() or _tab_host(ctx.evidence.tab)
    learn = await _learning(ctx, p) if p.mode == "learn" else None
    gathered = await _gathered(ctx, p, host)
    addenda = fit_addenda({name: _plain(block) for name, block in _blocks(gathered, learn).items()})
    kept = {name: block for name, block in _blocks(gathered, learn).items() if name not in addenda.omitted}
    matter = Matter(
        detail=p.detail,
        runs=gathered.tasks.runs,
        coverage=gathered.tasks.coverage,
        learn=None if learn is None else learn.brief,
        quotes=(*gathered.notes.quotes(addenda.omitted), *gathered.tasks.quotes()),
    )
    text = instructions_text(matter, published_name("nova.", ctx.settings.tool_names))
    tell(ctx, gathered.notes)
    return _answer(p, host, text, kept, addenda).model_copy(update={"unquoted": _unquoted(matter.quotes, text)})


# -- what is asked about


def _tab_host(tab: Tab | None) -> str | None:
    host = None if tab is None else page_host(tab.url)
    return None if host is None else normalize_host(host)


@dataclass(frozen=True, slots=True)
class _Gathered:
    """What is stored for this caller and site."""

    tasks: OpenTasks
    notes: StoredNotes
    site: SiteKnowledge
    services: list[ServicePart]


async def _gathered(ctx: ToolContext, p: GetInstructionsParams, host: str | None) -> _Gathered:
    keywords = p.task_keywords
    return _Gathered(
        await open_tasks(ctx, keywords, host),
        await stored_notes(ctx, host, keywords),
        await site_knowledge(ctx, host),
        await services(ctx, keywords),
    )


# -- Learn Mode


@dataclass(frozen=True, slots=True)
class _Learning:
    part: LearnPart
    brief: LearnBrief


async def _learning(ctx: ToolContext, p: GetInstructionsParams) -> _Learning:
    mode, asked = ctx.tasks.learn_mode, p.host()
    told = await mode.activate(ctx.caller, _wishes(ctx, p, asked), asked)
    visits = await mode.visits(ctx.caller)
    live = frozenset(claim.task_id for claim in ctx.claims.held_by(ctx.caller.owner))
    active = {one.task_id for one in told if one.refused is None}
    domains = {one.domain for one in visits if one.task_id in active}
    domain = next(iter(domains)) if len(domains) == 1 else learn_domain(asked, mode.multi_tenant)
    brief = LearnBrief(
        domain,
        mode.floors,
        tuple(Visit(one.task_id, one.progress) for one in visits),
        tuple((one.target_id, one.refused) for one in told if one.refused is not None),
    )
    part = LearnPart(
        activation=[ActivationPart.of(one) for one in told], progress=progress_part(visits, mode.floors, live)
    )
    return _Learning(part, brief)


def _wishes(ctx: ToolContext, p: GetInstructionsParams, asked: str | None) -> list[Wished]:
    """The claims that shall learn; without one, what there is to claim first."""
    tab, claims = ctx.evidence.tab, ctx.claims
    held = claims.held_by(ctx.caller.owner)
    if p.scope == "allOwnerClaims" and held:
        return [_wish(ctx, claim, asked) for claim in held]
    if tab is None:
        if len(held) > 1:
            raise _which(held)
        return [Wished(p.target_id, None, None)]
    claim = claims.over(Place(tab.target_id, tab.sandbox_id))
    own = claim is not None and claim.owner == ctx.caller.owner
    return [Wished(tab.target_id, claim.task_id if own and claim is not None else None, tab.url)]


def _wish(ctx: ToolContext, claim: Claim, asked: str | None) -> Wished:
    """A claim with where it stands: a whole sandbox stands wherever one of its tabs shows the site."""
    tabs = [
        tab for tab in ctx.browser.targets.list_tabs(ctx.caller) if claim.target_id in (tab.target_id, tab.sandbox_id)
    ]
    wanted, tenants = asked, ctx.tasks.learn_mode.multi_tenant
    if wanted is not None:
        domain = learn_domain(wanted, tenants)
        tabs.sort(key=lambda tab: learn_domain(tab.url, tenants) != domain)
    return Wished(claim.target_id, claim.task_id, tabs[0].url if tabs else None)


def _which(held: Sequence[Claim]) -> Precondition:
    return Precondition(
        "tab.active_ambiguous",
        f'You hold {len(held)} claims, so "active" could mean any of their tabs.',
        "Name the tab by its targetId, or send scope allOwnerClaims.",
    )


# -- the answer


def _blocks(gathered: _Gathered, learn: _Learning | None) -> dict[str, Any]:
    return {
        "evm": EvmPart() if learn is None else None,
        "learnMode": None if learn is None else learn.part,
        "taskAwareness": gathered.tasks.awareness,
        "evidenceSummary": gathered.tasks.evidence,
        "coverageContract": gathered.tasks.contract,
        "domainNotes": gathered.notes.site_part,
        "operatorNotes": gathered.notes.operator_part,
        "browserMemory": gathered.notes.memory_part,
        "frameworkHints": list(gathered.site.frameworks) or None,
        "serviceDiscovery": gathered.services or None,
        "pksHealthWarnings": list(gathered.site.warnings) or None,
    }


def _plain(block: Part | list[Any] | None) -> Any:
    if isinstance(block, list):
        return [_plain(one) for one in block]
    return None if block is None else block.model_dump(mode="json", by_alias=True)


def _answer(
    p: GetInstructionsParams, host: str | None, text: str, blocks: dict[str, Any], addenda: Addenda
) -> GetInstructionsResult:
    return GetInstructionsResult.model_validate(
        {
            **blocks,
            "mode": p.mode,
            "detail": p.detail,
            "domain": host,
            "instructionsText": text,
            "outputBudget": OutputBudgetPart(
                instructions_text_chars=len(text),
                addenda_chars=addenda.chars,
                max_addenda_chars=ADDENDA_CHARS,
                omitted_fields=list(addenda.omitted),
            ),
        }
    )


def _unquoted(quotes: Sequence[Quote], text: str) -> str:
    """Enforced notes that found no room in the text; whoever reads only text gets them below it."""
    blocks = [fenced(one) for one in quotes if one.enforced]
    return "\n".join(block for block in blocks if block not in text)
