"""Reporting what was done in a run: units found and processed, findings, checks, where to resume."""

from pydantic import Field

from nova_mcp.core.values import Json
from nova_mcp.evidence.rules import storable_text
from nova_mcp.memory.tasks import model
from nova_mcp.memory.tasks.answers import Progressed
from nova_mcp.memory.tasks.refusals import Refused
from nova_mcp.memory.tasks.runs.event_codec import payload_hash
from nova_mcp.memory.tasks.runs.rules import EventKind, Report
from nova_mcp.memory.tasks.runs.transactions import Change
from nova_mcp.tools.catalogue import Catalogue
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.spec import AgentParams, tool
from nova_mcp.tools.tasks.content_params import HexId, Text2000
from nova_mcp.tools.tasks.run_params import (
    CheckUpdateParams,
    DiscoveredParams,
    EventId,
    FindingParams,
    ResumeParams,
    UnitUpdateParams,
    check_list,
)
from nova_mcp.tools.tasks.run_parts import ProgressPart, progress_part
from nova_mcp.tools.tasks.run_writes import RunResult, commit_on_runs, refusal, without_secrets

# What says which call this is, and nothing about what it changes.
ADDRESS = frozenset({"agent_id", "instance_id", "expected_instance_rev", "client_event_id"})


class ChangeParams(AgentParams):
    instance_id: HexId
    expected_instance_rev: int = Field(ge=0, description="instanceRev of the last answer")
    client_event_id: EventId = Field(description="your id of this change; resending it changes nothing")

    def change(self, kind: EventKind) -> Change:
        payload: dict[str, Json] = self.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude=set(ADDRESS))
        return Change(
            kind, self.instance_id, self.expected_instance_rev, self.client_event_id, payload_hash(kind, payload)
        )


class ProgressParams(ChangeParams):
    discovered_units: list[DiscoveredParams] = Field(
        default=[], description="at most 500: {url} in page and url runs, {unitKey} in others"
    )
    unit_updates: list[UnitUpdateParams] = Field(
        default=[], description="at most 500; excluded, blocked and failed need a reason"
    )
    findings: list[FindingParams] = Field(default=[], description="at most 100; a known findingKey replaces its detail")
    mandatory_check_updates: list[CheckUpdateParams] = Field(
        default=[], description="at most 50; waived and not_applicable need a note"
    )
    resume_state_delta: ResumeParams | None = Field(None, description="null removes a key")
    set_discovery_state: model.DiscoveryState | None = Field(None, description="unknown, partial, frozen; never back")
    note: Text2000 | None = None

    def report(self) -> Report:
        return Report(
            discovered=tuple(one.found() for one in self.discovered_units),
            updates=tuple(one.update() for one in self.unit_updates),
            findings=tuple(one.report() for one in self.findings),
            checks=tuple(one.update() for one in self.mandatory_check_updates),
            resume=None if self.resume_state_delta is None else self.resume_state_delta.delta(),
            discovery=self.set_discovery_state,
            note=None if self.note is None else storable_text(self.note),
        )


def _check(p: ProgressParams, _: Catalogue) -> None:
    check_list("discoveredUnits", p.discovered_units, model.MOST_DISCOVERED)
    check_list("unitUpdates", p.unit_updates, model.MOST_UPDATES)
    check_list("findings", p.findings, model.MOST_FINDINGS)
    check_list("mandatoryCheckUpdates", p.mandatory_check_updates, model.MOST_CHECK_UPDATES)


class ProgressResult(RunResult):
    applied: bool
    instance_id: str
    instance_rev: int
    discovery_state: model.DiscoveryState
    progress: ProgressPart
    completion_allowed: bool
    reason_code: str | None = None
    duplicate: bool = False

    def text(self) -> str:
        said = "already applied before: " if self.duplicate else ""
        done = "may be completed" if self.completion_allowed else f"not done: {self.reason_code}"
        head = f"{said}revision {self.instance_rev}, {self.run_status}, discovery {self.discovery_state}"
        return f"{head}\n{self.progress.line()} · {done}"


@tool(
    title="Report progress of a run",
    effect="write",
    bundles=("task_memory",),
    target="none",
    repeat_safe=True,
    check=_check,
)
async def task_instance_progress(ctx: ToolContext, p: ProgressParams) -> ProgressResult:
    """Reports what was found and done, all or nothing: units, findings, checks, resume state. A claim is no proof: what
    Nova saw is graded apart. Makes you a member of the run."""
    kept = without_secrets(ctx, p)
    runs, change, report = ctx.tasks.runs, kept.change("progress"), kept.report()
    done = await commit_on_runs(ctx, lambda conn, at: runs.progress(conn, at, change, report))
    return refusal(done, ProgressResult) if isinstance(done, Refused) else _progressed(done, p.instance_id)


def _progressed(done: Progressed, instance_id: str) -> ProgressResult:
    return ProgressResult(
        applied=True,
        run_status=done.status,
        instance_id=instance_id,
        instance_rev=done.instance_rev,
        discovery_state=done.discovery,
        progress=progress_part(done.tally),
        completion_allowed=done.reason_code is None,
        reason_code=done.reason_code,
        duplicate=done.duplicate,
    )
