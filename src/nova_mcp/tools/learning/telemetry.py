"""Reports about how entries did; what no call of the reporter shows is a claim and weighs nothing."""

from dataclasses import dataclass, field, replace
from typing import Annotated, Final, Literal

from pydantic import Field
from sqlalchemy import Connection

from nova_mcp.browser.targets.tab import Tab
from nova_mcp.core.redaction import redact_selector
from nova_mcp.evidence.model import CallRecord, Link
from nova_mcp.memory.journal.evidence import EventVerdict
from nova_mcp.memory.journal.observations import ended_at_ms
from nova_mcp.memory.knowledge import store
from nova_mcp.memory.knowledge.model import Health, ScopeName
from nova_mcp.memory.knowledge.store import Shelved, selectors_in
from nova_mcp.memory.knowledge.writes.store import Missing
from nova_mcp.memory.promotion.telemetry import Backing, Report, backing, event_keys
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.knowledge.params import EntryId, ScopeText, Selector
from nova_mcp.tools.knowledge.result_parts import HealthPart, health_part
from nova_mcp.tools.knowledge.scope_argument import open_tab, page_scope, parsed_scope
from nova_mcp.tools.knowledge.write_context import unwritten_error
from nova_mcp.tools.spec import Params, Result, TargetParams, tool

Outcome = Literal["success", "failure", "not_applicable"]
MOST_SIGNALS: Final = 64
_VERDICTS: Final[dict[Outcome, EventVerdict]] = {"success": "success", "failure": "failure"}


class FeaturesParams(Params):
    present_signals: list[Annotated[str, Field(max_length=500)]] = Field(default_factory=list, max_length=MOST_SIGNALS)
    absent_signals: list[Annotated[str, Field(max_length=500)]] = Field(default_factory=list, max_length=MOST_SIGNALS)
    matched_selectors: list[Selector] = Field(default_factory=list, max_length=MOST_SIGNALS)
    match_confidence: float | None = Field(None, ge=0, le=1, allow_inf_nan=False)
    notes: str | None = Field(None, max_length=500, pattern=r"^[^\x00]*$")


class TelemetryParams(TargetParams):
    scope: ScopeText
    phenomenon_id: EntryId
    outcome: Outcome
    elapsed_ms: int | None = Field(None, ge=0)
    features: FeaturesParams | None = None


class TelemetryResult(Result):
    recorded: bool
    backed: bool
    outcome: Outcome
    health: HealthPart | None = None

    def text(self) -> str:
        weight = "backed by your call" if self.backed else "a claim: no call of yours shows it"
        if self.outcome == "not_applicable":
            weight = "says nothing about the entry"
        return f"{self.outcome}: {weight}{'' if self.health is None else f'; {self.health.line()}'}"


@tool(
    title="Report how an entry did",
    effect="write",
    bundles=("pks_learning",),
    target="optional",
    lock="none",
    private_arguments=("features",),
)
async def telemetry_report(ctx: ToolContext, p: TelemetryParams) -> TelemetryResult:
    """Reports that an entry worked, failed or did not apply. It counts if a call of yours in the last ten minutes shows
    it, and never changes a level by itself."""
    scope = parsed_scope(p.scope)
    known = await ctx.learning.knowledge.known(scope)
    found = known.find(p.phenomenon_id)
    if not found:
        names = tuple(one.stable_id for one in known.shelved if one.slot == "current")
        raise unwritten_error(Missing(scope=not names, available=names), "phenomenonId", scope, p.phenomenon_id)
    ctx.evidence.tab = _tab(ctx, scope)
    report = _Report(ctx, scope, p, found)
    # Once everything that learns from the report has done so.
    ctx.evidence.also.append(report.read_health)
    backed = await ctx.commit(report.back)
    return TelemetryResult(
        recorded=True,
        backed=backed.by is not None,
        outcome=p.outcome,
        health=None if report.health is None else health_part(report.health, ctx.ports.clock.now_ms()),
    )


def _tab(ctx: ToolContext, scope: ScopeName) -> Tab | None:
    """Where the report is made, if that still shows the site; a tab that has left it says nothing about it."""
    tab = ctx.evidence.tab
    return tab if tab is not None and page_scope(tab) == scope else open_tab(ctx, scope)


@dataclass(frozen=True, slots=True)
class _Backed:
    """Which call of the reporter shows what is reported, if any does; a report that says nothing asks for none."""

    scope: ScopeName
    given: TelemetryParams
    by: Backing | None

    def on_record(self, record: CallRecord) -> CallRecord:
        if self.given.outcome == "not_applicable":
            return record
        signals = replace(record.signals, target_stable_id=self.given.phenomenon_id, telemetry="claimed")
        if self.by is not None:
            won = self.given.outcome == "success"
            signals = replace(
                signals,
                telemetry="confirmed" if won else "refuted",
                high_signal=won,
                reported_at=(self.scope, self.by.target_id),
            )
        return replace(record, signals=signals)


@dataclass(slots=True)
class _Report:
    """A report on its way into the journal."""

    ctx: ToolContext
    scope: ScopeName
    given: TelemetryParams
    found: tuple[Shelved, ...]
    health: Health | None = field(default=None)

    def back(self, conn: Connection, record: CallRecord) -> _Backed:
        asks = self.given.outcome != "not_applicable"
        return _Backed(self.scope, self.given, backing(conn, self._report(record)) if asks else None)

    def _report(self, record: CallRecord) -> Report:
        tools = [one.canonical for one in self.ctx.catalogue if one.effect in ("act", "commit")]
        hides, raw = self.ctx.secrets.redactor.text, self.ctx.settings.keep_raw_urls
        # Spelled as the ledger spells them.
        selectors = {
            redact_selector(hides(one), keep_raw_urls=raw) for row in self.found for one in selectors_in(row.kept)
        }
        return Report(
            principal=record.caller.principal,
            host=self.scope,
            verdict=_VERDICTS[self.given.outcome],
            event_keys=event_keys(self.scope, tools, selectors),
            call_id=record.call_id,
            at_ms=ended_at_ms(record),
        )

    def read_health(self, conn: Connection, record: CallRecord, link: Link) -> None:
        rows = store.find(conn, self.scope, self.given.phenomenon_id)
        self.health = rows[0].kept.health if rows else None
