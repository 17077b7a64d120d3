"""The shape of a tool: its arguments, its result, and the facts the pipeline needs about it."""

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue
from pydantic.alias_generators import to_camel

from nova_mcp.browser.perceive.element_lines import one_line
from nova_mcp.core.values import Json
from nova_mcp.errors import RetryAdvice, Stage, Status
from nova_mcp.evidence.model import ACTING, INTERACTING, ActionKind, Effect
from nova_mcp.evidence.rules import action_kind
from nova_mcp.settings import Settings
from nova_mcp.tools import PREFIX
from nova_mcp.tools.context import ToolContext

if TYPE_CHECKING:
    from nova_mcp.tools.catalogue import Catalogue

GateId = Literal[
    "safety.emergency_stop",
    "safety.disk_space_low",
    "policy.domain",
    "policy.capability",
    "safety.session_budget",
    "claim.owner",
    "user.domain_note",
    "setup.bootstrap",
    "setup.shared_agent_id",
    "safety.perceive_first",
    "safety.overlay_detected",
]
# `optional` tolerates that there is no tab yet, `context` also that nobody can say which one is meant, `departed` that
# the named one is gone already; for `place` a sandbox id means the sandbox itself, otherwise it means a tab in it.
TargetUse = Literal["none", "optional", "context", "departed", "place", "required"]
# `turn` keeps other changes away between the steps of one call, while the steps lock the tab themselves.
LockUse = Literal["none", "shared", "exclusive", "turn"]


LONGEST_URL = 2000

# Left out of tools/list, where every client pays for it; nova.call takes it all the same.
RARE: dict[str, JsonValue] = {"rare": True}


def taught_by(tool_name: str) -> dict[str, JsonValue]:
    """An argument of many tools that the list explains at one of them."""
    return {"taughtBy": tool_name}


class Params(BaseModel):
    """Arguments of a tool: strict JSON types, camelCase, nothing unknown."""

    model_config = ConfigDict(
        strict=True,
        extra="forbid",
        frozen=True,
        alias_generator=to_camel,
        validate_by_alias=True,
        validate_by_name=False,
        # Built when first used: a session calls few of the tools, and none of them before the list is out.
        defer_build=True,
    )


AGENT_ID = re.compile(r"[A-Za-z0-9._:-]{1,64}")


class AgentParams(Params):
    agent_id: str = Field("default", pattern=f"^{AGENT_ID.pattern}$")


class Targeted(Params):
    # No database can be asked for a text with a zero byte in it.
    target_id: str = Field("active", min_length=1, max_length=64, pattern=r"^[^\x00]*$")


class TargetParams(Targeted, AgentParams):
    """What nearly every tool takes: which tab, and which agent asks."""


def is_blank(value: object) -> bool:
    return value is None or value is False or value in ([], {}, "", 0)


def maybe(default: Any = None) -> Any:
    """A response field that is left out while it says nothing."""
    return Field(default=default, exclude_if=is_blank)


@dataclass(frozen=True, slots=True)
class Image:
    """A picture that travels beside the text."""

    data: bytes
    mime_type: str


def compact(body: Mapping[str, Json]) -> str:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))


class Part(BaseModel):
    """A piece of an answer."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, alias_generator=to_camel, validate_by_name=True, defer_build=True
    )


class Result(Part):
    """The typed answer of a tool; `text` is how a model reads it."""

    ok: bool = True
    status: Status = Field(default="ok", exclude_if=lambda status: status == "ok")
    reason_code: str | None = maybe()

    def structured(self) -> dict[str, Json]:
        return self.model_dump(mode="json", by_alias=True)

    def text(self) -> str:
        return compact(self.structured())

    def images(self) -> tuple[Image, ...]:
        return ()


R = TypeVar("R", bound=Result)


def widened(base: Result, into: type[R], **more: object) -> R:
    """The same answer with the fields a more particular tool adds."""
    return into.model_validate({**dict(base), **more})


class DownloadSeen(Part):
    """A file a page handed over; without a path it was not kept, and the note says why."""

    file_name: str
    bytes: int
    sha256: str | None
    mime_type: str
    state: Literal["running", "completed", "cancelled", "failed", "not_saved"]
    path: str | None = maybe()
    note: str | None = maybe()

    def line(self) -> str:
        return f"download {self.file_name} {self.state} {self.bytes} bytes {self.path or self.note or ''}".rstrip()


class PageResult(Result):
    """The answer of a tool that looked at a page."""

    status: Status = "ok"
    target_id: str
    # A page may make its own address as long as it likes.
    url: Annotated[str, AfterValidator(lambda url: one_line(url, LONGEST_URL))]
    # Filled in by the pipeline: those that are under way, and once those that have ended.
    downloads: list[DownloadSeen] = maybe([])
    stage: Stage | None = maybe()
    retryable: bool = maybe(default=False)
    retry_advice: RetryAdvice | None = maybe()


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """One tool as data."""

    name: str
    title: str
    description: str
    effect: Effect
    bundles: frozenset[str]
    gates: tuple[GateId, ...]
    target: TargetUse
    lock: LockUse
    params: type[Params]
    result: type[Result]
    run: Callable[[ToolContext, Any], Awaitable[Result]]
    repeat_safe: bool
    deadline_ms: Callable[[Any], int]
    # Arguments whose text stays out of the ledger unless the tool learns that the field is harmless.
    private_arguments: frozenset[str]
    # For calls that are verified: how long that may take, so that the target is reserved meanwhile. None for others.
    guards: Callable[[Any], int | None]
    # Writes files beside the ledger, so it needs as much free disk as a call that changes something.
    makes_artifacts: bool
    # What only the other tools can tell about the arguments: raises InvalidParams before any gate is asked.
    check: "Callable[[Any, Catalogue], object]"
    # Whether this server has the tool switched on.
    available: Callable[[Settings], bool]

    @property
    def canonical(self) -> str:
        return PREFIX + self.name

    @property
    def action_kind(self) -> ActionKind:
        return action_kind(self.effect)


ALWAYS: tuple[GateId, ...] = ("safety.emergency_stop", "safety.disk_space_low", "safety.session_budget")
DEFAULT_DEADLINE_MS = 15_000


def tool(
    *,
    title: str,
    effect: Effect,
    bundles: tuple[str, ...],
    gates: tuple[GateId, ...] = (),
    target: TargetUse = "required",
    lock: LockUse | None = None,
    repeat_safe: bool | None = None,
    deadline_ms: Callable[[Any], int] = lambda _: DEFAULT_DEADLINE_MS,
    private_arguments: tuple[str, ...] = (),
    guards: Callable[[Any], int | None] = lambda _: None,
    makes_artifacts: bool = False,
    check: "Callable[[Any, Catalogue], object]" = lambda _, __: None,
    available: Callable[[Settings], bool] = lambda _: True,
) -> Callable[[Callable[[ToolContext, Any], Awaitable[Any]]], ToolSpec]:
    """Turn a module-level coroutine function into a tool; its docstring is the description."""

    # What an operator may demand of a service is demanded of everything that acts on its pages.
    demands: tuple[GateId, ...] = ("policy.capability",) if effect in ACTING and lock != "turn" else ()
    # What somebody has to have read about a site is for everything that interacts with its pages, step by step.
    if effect in INTERACTING and lock != "turn":
        demands = (*demands, "user.domain_note")

    def build(run: Callable[[ToolContext, Any], Awaitable[Any]]) -> ToolSpec:
        hints = {key: value for key, value in run.__annotations__.items() if key not in ("ctx", "return")}
        (params,) = hints.values()
        return ToolSpec(
            name=run.__name__,
            title=title,
            description=" ".join((run.__doc__ or "").split()),
            effect=effect,
            bundles=frozenset(bundles),
            gates=(*ALWAYS, *demands, *gates),
            target=target,
            lock=lock or (("shared" if effect == "read" else "exclusive") if target != "none" else "none"),
            params=params,
            result=run.__annotations__["return"],
            run=run,
            repeat_safe=effect == "read" if repeat_safe is None else repeat_safe,
            deadline_ms=deadline_ms,
            private_arguments=frozenset(private_arguments),
            guards=guards,
            makes_artifacts=makes_artifacts,
            check=check,
            available=available,
        )

    return build
