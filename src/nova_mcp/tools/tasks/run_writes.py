"""What every call on a run does: commit its work with its record, and answer a no of the store."""

from collections.abc import Callable, Mapping
from typing import TypeVar, cast

from pydantic import Field
from sqlalchemy import Connection

from nova_mcp.core.values import Json
from nova_mcp.memory.tasks.model import RunStatus
from nova_mcp.memory.tasks.refusals import Refused
from nova_mcp.memory.tasks.runs.transactions import Lives, Occasion
from nova_mcp.tools.arguments import parse_arguments
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.spec import Params, Result

T = TypeVar("T")
R = TypeVar("R", bound=Result)
P = TypeVar("P", bound=Params)

_SAYINGS: Mapping[str, str] = {
    "rev_conflict": "the run is at revision {instanceRev} by now; read it with nova.task_instance_get, then send again",
    "terminal_status": "the run has ended ({status}) and takes no more changes",
    "profile_archived": "the profile is archived; choose another or send adHocContext",
}


class RunResult(Result):
    """An answer about a run. Its status is the run's own: that of the call is `ok`, and a run that failed is no call
    that did."""

    run_status: RunStatus | None = Field(
        default=None, serialization_alias="status", exclude_if=lambda status: status is None
    )


class RefusedRun(RunResult):
    """The store said no, for a reason the caller can act on."""

    ok: bool = False
    applied: bool | None = Field(default=False, exclude_if=lambda applied: applied is None)
    completed: bool | None = Field(default=None, exclude_if=lambda completed: completed is None)
    completion_allowed: bool | None = Field(default=None, exclude_if=lambda allowed: allowed is None)
    instance_rev: int | None = Field(default=None, exclude_if=lambda rev: rev is None)
    profile_id: str | None = Field(default=None, exclude_if=lambda profile: profile is None)

    def text(self) -> str:
        said = _SAYINGS.get(self.reason_code or "", "").format(instanceRev=self.instance_rev, status=self.run_status)
        return f"not {'applied' if self.completed is None else 'completed'}, {self.reason_code}: {said}"


def refusal(refused: Refused, instead_of: type[R]) -> R:
    """The answer that the store's no takes the place of; it has other fields than that one."""
    found = {_FIELDS[name]: value for name, value in refused.details.items()}
    if "completed" in instead_of.model_fields:
        found |= {"applied": None, "completed": False, "completion_allowed": False}
    return cast(R, RefusedRun.model_validate({"reason_code": refused.reason_code, **found}))


_FIELDS: Mapping[str, str] = {"instanceRev": "instance_rev", "status": "run_status", "profileId": "profile_id"}


def without_secrets(ctx: ToolContext, p: P) -> P:
    """The arguments with stored secrets taken out of them, for what is going to be kept."""
    body: dict[str, Json] = p.model_dump(mode="json", by_alias=True, exclude_unset=True)
    clean = ctx.secrets.redactor.json(body)
    if clean == body or not isinstance(clean, dict):
        return p
    return parse_arguments(type(p), clean)


async def commit_on_runs(ctx: ToolContext, work: Callable[[Connection, Occasion], T]) -> T:
    """What a call on runs came to; it is committed with the call's record."""
    runs, owner, lives = ctx.tasks.runs, ctx.caller.owner, lives_of(ctx)
    done = await ctx.commit(lambda conn, _: work(conn, runs.occasion(owner, lives)))
    runs.moved()
    return done


def lives_of(ctx: ToolContext) -> Lives:
    """The tabs that are known to show what they showed."""
    return ctx.browser.targets.lives()
