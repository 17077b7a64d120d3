"""What stored knowledge says beside a look at a page: what holds here, what to reuse or keep, what to doubt."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from pydantic import JsonValue

from nova_mcp.browser.channel.page_channel import DocumentChanged, PageScriptError
from nova_mcp.browser.perceive.element_lines import one_line
from nova_mcp.browser.read.knowledge_check import signals
from nova_mcp.core.page.looks import SignalsSeen
from nova_mcp.core.tokens import fit_tokens, line_tokens
from nova_mcp.errors import NovaError
from nova_mcp.memory.knowledge.advice import Advice, AdviceKind, Noted, WarningState
from nova_mcp.memory.knowledge.advisor import Here, Looking, Said
from nova_mcp.memory.knowledge.model import ACTIVE, HealthState, Level, PhenomenonType
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.knowledge.scope_argument import page_scope
from nova_mcp.tools.names import callable_fix
from nova_mcp.tools.read.hint import Look
from nova_mcp.tools.spec import Part, maybe

# A line shorter than this says nothing any more.
LEAST_LINE: Final = 8
ASK_MS: Final = 1500
_ID_CHARS: Final = 60
_LINE_CHARS: Final = 240


class PksPart(Part):
    """An entry that holds on the page. Only an active one may guide."""

    phenomenon_id: str
    type: PhenomenonType
    level: Level
    health: HealthState
    note: str = maybe("")


class PksAdvicePart(Part):
    kind: AdviceKind
    phenomenon_id: str | None
    text: str
    fix: dict[str, JsonValue] | None = maybe()


class PksHealthWarningPart(Part):
    scope: str
    phenomenon_id: str
    state: WarningState
    reason: str


class FrameworkHintPart(Part):
    framework: str
    applies_to: str
    advice: str


@dataclass(slots=True)
class KnowledgeHint:
    """Knowledge about the site that the tab shows; what it takes of the text is kept free until the page was looked
    at."""

    ctx: ToolContext
    looking: Looking | None = None
    reserved: int = 0
    said: Said | None = None
    lines: str = ""

    async def read(self) -> None:
        learning, tab, scope = self.ctx.learning, self.ctx.tab, page_scope(self.ctx.tab)
        if scope is None:
            return
        here = Here(self.ctx.connection, scope, tab.target_id, tab.page_epoch, tab.url)
        looking = learning.advisor.looking(here, await learning.knowledge.known(scope))
        self.looking = await learning.advisor.with_proofs(looking, lambda: learning.promotion.proofs(scope))

    def take(self, room: int) -> int:
        if self.looking is not None:
            longest = self.ctx.learning.advisor.at_most(self.looking)
            self.reserved = min(max(0, room), line_tokens(_text(longest))) if longest.anything else 0
        return self.reserved

    @property
    def asks_page(self) -> bool:
        return self.looking is not None and self.looking.asks_page

    async def ask(self) -> SignalsSeen | None:
        """Which signs hold; None when nobody needs to know or the page does not say."""
        if self.looking is None or not self.looking.asks_page:
            return None
        wanted = self.ctx.learning.advisor.wanted(self.looking)
        try:
            return await signals(self.ctx.tab, wanted, timeout_ms=ASK_MS)
        except (NovaError, DocumentChanged, PageScriptError):
            return None

    async def settle(self, look: Look) -> None:
        """What is said in the end, and the evidence that seeing it gives."""
        ctx, tab, looking = self.ctx, self.ctx.tab, self.looking
        if looking is None or page_scope(tab) != looking.here.scope or tab.page_epoch != looking.here.page_epoch:
            return
        if look.held is None and looking.asks_page:
            return
        advisor = ctx.learning.advisor
        looking = replace(looking, here=replace(looking.here, url=tab.url))
        said, found = advisor.say(looking, look.held or SignalsSeen())
        if look.held is not None and tab.scripted_epoch != tab.page_epoch:
            also = advisor.sighted(looking, found, look.held)
            if also is not None:
                ctx.evidence.also.append(also)
        if not said.anything:
            return
        self.said = said
        self.lines = fit_tokens(_text(said), self.reserved - 1) if self.reserved > LEAST_LINE else ""
        if self.lines:
            # What found no room in the text is said again when there is some.
            advisor.told(looking.here, said.told)

    def fields(self) -> dict[str, object]:
        return {} if self.said is None else _fields(self.ctx, self.said)

    @property
    def omitted(self) -> tuple[str, ...]:
        return () if self.said is None or self.lines else tuple(_names(self.said))


def _text(said: Said) -> str:
    return "\n".join(one_line(line, _LINE_CHARS) for line in _lines(said))


def _lines(said: Said) -> Iterator[str]:
    yield from (f"pks: {one.text}" for one in said.advice)
    if said.warnings:
        doubts = ", ".join(f"{one.phenomenon_id[:_ID_CHARS]} {one.state} ({one.reason})" for one in said.warnings)
        yield f"pks doubtful: {doubts}"
    if said.noted:
        yield f"pks here: {', '.join(map(_word, said.noted))}"
    yield from (f"{one.framework}: {one.advice}" for one in said.frameworks)


def _word(one: Noted) -> str:
    name = f"{one.phenomenon_id[:_ID_CHARS]} {one.type}"
    return f"{name} active {one.health}" if one.level == ACTIVE else f"{name} ({one.note})"


def _names(said: Said) -> Iterator[str]:
    named = {
        "pks": said.noted,
        "pksAdvice": said.advice,
        "pksHealthWarnings": said.warnings,
        "frameworkHints": said.frameworks,
    }
    yield from (name for name, items in named.items() if items)


def _fields(ctx: ToolContext, said: Said) -> dict[str, object]:
    return {
        "pks": [
            PksPart(phenomenon_id=one.phenomenon_id, type=one.type, level=one.level, health=one.health, note=one.note)
            for one in said.noted
        ],
        "pks_advice": [_advice_part(ctx, one) for one in said.advice],
        "pks_health_warnings": [
            PksHealthWarningPart(scope=one.scope, phenomenon_id=one.phenomenon_id, state=one.state, reason=one.reason)
            for one in said.warnings
        ],
        "framework_hints": [
            FrameworkHintPart(framework=one.framework, applies_to=one.applies_to, advice=one.advice)
            for one in said.frameworks
        ],
    }


def _advice_part(ctx: ToolContext, one: Advice) -> PksAdvicePart:
    listed = ctx.catalogue.listed(ctx.settings.tools)
    fix = None if one.fix is None else callable_fix(one.fix, listed, ctx.settings.tool_names)
    return PksAdvicePart(kind=one.kind, phenomenon_id=one.phenomenon_id, text=one.text, fix=fix)
