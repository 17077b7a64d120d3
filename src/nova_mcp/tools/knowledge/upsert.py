"""Writing situations: with the site open, checked against its page, decided in the call's own transaction."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import AfterValidator, Field
from sqlalchemy import Connection

from nova_mcp.evidence.model import CallRecord
from nova_mcp.memory.knowledge.model import Level
from nova_mcp.memory.knowledge.writes.content_rules import check_content
from nova_mcp.memory.knowledge.writes.page_check import PageCheck
from nova_mcp.memory.knowledge.writes.rules import (
    CONFLICT,
    Conflict,
    WriteKind,
    Written,
    patched_content,
    wished_content,
)
from nova_mcp.memory.knowledge.writes.store import categorized
from nova_mcp.memory.promotion.prompts.prompter import written_of
from nova_mcp.memory.promotion.prompts.rules import MatchSource, Resolution
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.knowledge.params import (
    Categories,
    EntryId,
    PatchParams,
    PhenomenonParams,
    ScopeText,
    id_problem,
    known_categories,
)
from nova_mcp.tools.knowledge.write_context import (
    checked,
    commit_entries,
    has_prints,
    note_vendors,
    open_place,
    raise_first,
    raise_for,
    refuse_secrets,
    stored_content,
    written,
)
from nova_mcp.tools.spec import AgentParams, Part, Result, maybe, tool

_LEFT_OUT = "elementPrint is always read off the page; the one you sent was left out."


class ResolutionPart(Part):
    status: Literal["resolved"] = "resolved"
    opportunity_id: str
    verdict: Literal["upsert"] = "upsert"
    reason: str
    match_source: MatchSource | None = None


class UpsertParams(AgentParams):
    scope: ScopeText
    phenomenon: PhenomenonParams
    service_categories: Annotated[Categories, AfterValidator(known_categories)] | None = None


class UpsertResult(Result):
    action: WriteKind
    scope: str
    phenomenon_id: str
    level: Level
    revision: int
    unconfirmed_selectors: list[str]
    warnings: list[str]
    pks_semantic_learning_resolution: ResolutionPart | None = maybe()

    def text(self) -> str:
        told = [f"warning: {one}" for one in self.warnings]
        told += [f"not seen on the page: {one}" for one in self.unconfirmed_selectors]
        if self.pks_semantic_learning_resolution is not None:
            told.append(f"answers {self.pks_semantic_learning_resolution.opportunity_id}")
        head = f"{self.scope} {self.phenomenon_id} {self.action}: L{self.level}, revision {self.revision}"
        return "\n".join([head, *told])


@tool(
    title="Store a situation of a site",
    effect="write",
    bundles=("pks_learning",),
    target="none",
    private_arguments=("phenomenon",),
    repeat_safe=True,
)
async def pks_upsert(ctx: ToolContext, p: UpsertParams) -> UpsertResult:
    """Stores how a recurring situation of an open site is recognised, handled and verified. It starts in review, is
    checked against the page now, and guides nobody before it has proven itself."""
    scope, tab = open_place(ctx, p.scope)
    wish = p.phenomenon.wish()
    refuse_secrets(ctx, p.phenomenon, "phenomenon")
    raise_for(id_problem(wish.stable_id, "phenomenon.id"), "phenomenon")
    content = wished_content(await stored_content(ctx, scope, wish.stable_id), wish)
    raise_first(check_content(content), "phenomenon")
    check = await checked(ctx, tab, scope, content)
    learning, principal, now = ctx.learning, ctx.caller.principal, check.now_ms

    def upsert(conn: Connection) -> _Upserted:
        entry = written(learning.knowledge.writer.upsert(conn, scope, wish, check), "phenomenon", scope)
        if p.service_categories is not None:
            categorized(conn, scope, p.service_categories, now)
        answer = written_of(scope, entry.written.content)
        return _Upserted(entry, learning.prompter.resolved_by(conn, principal, answer, now))

    note_vendors(ctx, scope, check)
    done = await commit_entries(ctx, upsert)
    kept = done.entry.written
    return UpsertResult(
        action=done.entry.kind,
        scope=scope,
        phenomenon_id=kept.stable_id,
        level=kept.level,
        revision=kept.revision,
        unconfirmed_selectors=list(kept.unconfirmed),
        warnings=[*done.entry.warnings, *([_LEFT_OUT] if has_prints(p.phenomenon) else [])],
        pks_semantic_learning_resolution=_resolution(done.resolved),
    )


@dataclass(frozen=True, slots=True)
class _Upserted:
    """A stored entry, and the question it answers."""

    entry: Written
    resolved: Resolution | None

    def on_record(self, record: CallRecord) -> CallRecord:
        return self.entry.on_record(record)


def _resolution(resolved: Resolution | None) -> ResolutionPart | None:
    if resolved is None:
        return None
    opportunity = resolved.opportunity
    reason = opportunity.reason or "The entry that was stored describes it."
    return ResolutionPart(opportunity_id=opportunity.opportunity_id, reason=reason, match_source=resolved.match_source)


# -- patch


class PatchToolParams(AgentParams):
    scope: ScopeText
    phenomenon_id: EntryId
    patch: PatchParams
    expected_revision: int | None = Field(None, ge=0)


class PatchResult(Result):
    patched: bool
    phenomenon_id: str
    level: Level | None = None
    revision: int
    unconfirmed_selectors: list[str]
    warnings: list[str] = maybe([])

    def text(self) -> str:
        if not self.patched and self.reason_code is not None:
            return f"{self.phenomenon_id} was not patched: {self.reason_code}, it is at revision {self.revision}"
        told = [f"warning: {one}" for one in self.warnings]
        told += [f"not seen on the page: {one}" for one in self.unconfirmed_selectors]
        done = "patched" if self.patched else "unchanged"
        return "\n".join([f"{self.phenomenon_id} {done}: L{self.level}, revision {self.revision}", *told])


@tool(
    title="Change a stored situation",
    effect="write",
    bundles=("pks_learning",),
    target="none",
    private_arguments=("patch",),
)
async def pks_patch(ctx: ToolContext, p: PatchToolParams) -> PatchResult:
    """Replaces only the sections you send. Changed content of an active entry is a revision in review; the active one
    stays until the new one has proven itself. expectedRevision guards against overwriting others."""
    scope, tab = open_place(ctx, p.scope)
    patch = p.patch.patch(p.expected_revision)
    refuse_secrets(ctx, p.patch, "patch")
    stored = await stored_content(ctx, scope, p.phenomenon_id)
    check = PageCheck(ctx.ports.clock.now_ms())
    if stored is not None:
        content = patched_content(stored, patch)
        raise_first(check_content(content), "patch")
        check = await checked(ctx, tab, scope, content)
    writer = ctx.learning.knowledge.writer
    name = p.phenomenon_id

    def write(conn: Connection) -> Written | Conflict:
        done = writer.patch(conn, scope, name, patch, check)
        return done if isinstance(done, Conflict) else written(done, "patch", scope, name)

    done = await commit_entries(ctx, write)
    if isinstance(done, Conflict):
        return PatchResult(
            ok=False,
            reason_code=CONFLICT,
            patched=False,
            phenomenon_id=name,
            revision=done.found,
            unconfirmed_selectors=[],
        )
    return PatchResult(
        patched=done.kind != "unchanged",
        phenomenon_id=name,
        level=done.written.level,
        revision=done.written.revision,
        unconfirmed_selectors=list(done.written.unconfirmed),
        warnings=[*done.warnings, *([_LEFT_OUT] if has_prints(p.patch) else [])],
    )
