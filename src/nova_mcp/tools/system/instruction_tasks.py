"""What instructions say of tasks: open runs and how to resume them, a profile that fits, what is left to cover."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from nova_mcp.memory.tasks.instructions.text import Coverage, Quote, RunBrief
from nova_mcp.memory.tasks.profiles.service import Recognised
from nova_mcp.memory.tasks.runs.service import Aware, OpenWork
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.system.instruction_parts import CoverageContractPart
from nova_mcp.tools.tasks.run_parts import (
    ActiveInstancePart,
    EvidencePart,
    TaskAwareness,
    evidence_part,
    task_awareness,
)


@dataclass(frozen=True, slots=True)
class OpenTasks:
    """The caller's tasks in both forms."""

    awareness: TaskAwareness | None = None
    evidence: EvidencePart | None = None
    contract: CoverageContractPart | None = None

    @property
    def runs(self) -> tuple[RunBrief, ...]:
        return () if self.awareness is None else tuple(map(_brief, self.awareness.active_instances))

    @property
    def coverage(self) -> Coverage | None:
        told = self.contract
        return None if told is None else Coverage(told.instance_id, told.remaining, told.recommended_scan_id)

    def quotes(self) -> Iterator[Quote]:
        match = None if self.awareness is None else self.awareness.profile_match
        if match is not None:
            name = f"profile={match['profileId']}"
            yield Quote("agent", name, "\n".join(_profile(match)), f"profile {match['profileId']}")


async def open_tasks(ctx: ToolContext, keywords: Sequence[str], host: str | None) -> OpenTasks:
    work, match = await ctx.tasks.runs.open_work(ctx.caller), await _profile_match(ctx, keywords, host)
    told = task_awareness(Aware(work.active, match)) if work.active or match is not None else None
    return OpenTasks(told, None if work.evidence is None else evidence_part(work.evidence), _contract(work))


async def _profile_match(ctx: ToolContext, keywords: Sequence[str], host: str | None) -> Recognised | None:
    """The profile of a task that these words describe; nothing without words."""
    if not keywords:
        return None
    keeper = ctx.tasks.profiles
    return (await keeper.matching(ctx.caller.principal, keeper.query(" ".join(keywords), host, None, None))).recognised


def _contract(work: OpenWork) -> CoverageContractPart | None:
    if work.contract is None:
        return None
    return CoverageContractPart(
        instance_id=work.contract.instance_id,
        remaining=work.contract.remaining,
        recommended_scan_id=work.contract.scan_id,
    )


def _brief(run: ActiveInstancePart) -> RunBrief:
    done = run.progress
    return RunBrief(
        run.instance_id,
        run.status,
        run.instance_rev,
        run.discovery_state,
        done.checked_units + done.excluded_units,
        done.total_units,
        run.reason_code,
        "\n".join(_said(run)),
    )


def _said(run: ActiveInstancePart) -> Iterator[str]:
    """What agents have written into a run."""
    yield f"name: {run.display_name}"
    if run.target_url is not None:
        yield f"target: {run.target_url}"
    hint = run.resume_hint
    for label, value in (
        ("cursor", hint.cursor),
        ("last page", hint.last_processed_url),
        ("last action", hint.last_action),
        ("checkpoint", hint.checkpoint),
    ):
        if value is not None:
            yield f"{label}: {_text(value)}"


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _profile(match: Mapping[str, Any]) -> Iterator[str]:
    yield f"name: {match['displayName']}"
    yield f"goal: {match['goal']}"
    yield from (f"guidance: {one}" for one in match.get("guidanceSummary", ()))
    yield from (f"check {one['checkId']}: {one['description']}" for one in match.get("requiredChecks", ()))
