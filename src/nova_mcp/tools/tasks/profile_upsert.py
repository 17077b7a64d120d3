"""Writing down what a recurring task needs, and changing it against the revision it was read at."""

from typing import Self

from pydantic import Field, model_validator

from nova_mcp.memory.tasks.profiles.rules import Change, UpsertKind
from nova_mcp.memory.tasks.profiles.service import Upsert, Upserted
from nova_mcp.memory.tasks.refusals import Refused
from nova_mcp.tools.catalogue import Catalogue
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.spec import AgentParams, Result, maybe, tool
from nova_mcp.tools.tasks.content_params import (
    CompletionConditionParams,
    ContentParams,
    HexId,
    ProfileId,
    Text64,
    Text120,
    Text2000,
    check_size,
)
from nova_mcp.tools.tasks.run_writes import without_secrets
from nova_mcp.tools.tasks.step_patterns import check_patterns


class UpsertParams(ContentParams, AgentParams):
    profile_id: ProfileId | None = Field(None, description="made from the name when left out")
    expected_content_rev: int | None = Field(None, ge=1, description="required to change a profile that exists")
    task_type: Text64 | None = None
    display_name: Text120 | None = None
    goal: Text2000 | None = None
    completion_condition: CompletionConditionParams | None = None
    confidence: float | None = Field(None, ge=0.10, le=0.99, allow_inf_nan=False)
    archived: bool | None = None
    source_instance_id: HexId | None = Field(None, description="run that fills the fields not given")

    @model_validator(mode="after")
    def _needed_stay(self) -> Self:
        for name in ("task_type", "display_name", "goal", "completion_condition", "confidence", "archived"):
            if name in self.model_fields_set and getattr(self, name) is None:
                raise ValueError(f"{type(self).model_fields[name].alias} can't be cleared")
        return self

    def change(self) -> Change:
        """The fields that were given, null for those that are cleared."""
        given = {
            "task_type": self.task_type,
            "display_name": self.display_name,
            "goal": self.goal,
            "completion_condition": self.completion_condition and self.completion_condition.condition(),
            "domain": self.host(),
            "platform": self.platform,
            "task_kind": self.task_kind,
            "stable_guidance": self.guidance(),
            "mandatory_checks": self.checks(),
            "known_exceptions": self.exceptions(),
            "verification": self.steps(),
        }
        fields = {name: value for name, value in given.items() if name in self.model_fields_set}
        return Change(fields, self.confidence, self.archived)


class UpsertResult(Result):
    profile_id: str | None
    content_rev: int | None
    action: UpsertKind | None
    applied: bool = Field(default=True, exclude_if=bool)
    current_content_rev: int | None = maybe()

    def text(self) -> str:
        if not self.ok:
            return f"not applied: {self.reason_code}, it is at contentRev {self.current_content_rev}"
        return f"{self.profile_id} {self.action}, contentRev {self.content_rev}"


def _check_upsert(p: UpsertParams, catalogue: Catalogue) -> None:
    p.check_lists(catalogue)
    p.change()


@tool(
    title="Write a task profile",
    effect="write",
    bundles=("task_memory",),
    target="none",
    check=_check_upsert,
)
async def task_profile_upsert(ctx: ToolContext, p: UpsertParams) -> UpsertResult:
    """Writes down what a recurring task needs, or changes it: a field you send replaces the whole field, null clears an
    optional one. Runs that are open keep what they began with."""
    await check_patterns(p)
    p = without_secrets(ctx, p)
    wish = Upsert(p.change(), check_size, p.profile_id, p.expected_content_rev, p.source_instance_id)
    profiles, principal = ctx.tasks.profiles, ctx.caller.principal
    return _upserted(p, await ctx.commit(lambda conn, _: profiles.upsert(conn, principal, wish)))


def _upserted(p: UpsertParams, outcome: Upserted | Refused) -> UpsertResult:
    match outcome:
        case Refused(reason_code, details):
            rev = details["currentContentRev"]
            return UpsertResult.model_validate(
                {
                    "ok": False,
                    "reasonCode": reason_code,
                    "applied": False,
                    "profileId": p.profile_id,
                    "contentRev": rev,
                    "action": None,
                    "currentContentRev": rev,
                }
            )
        case Upserted(kind, profile):
            return UpsertResult(profile_id=profile.profile_id, content_rev=profile.content_rev, action=kind)
