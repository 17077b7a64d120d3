"""What every write of knowledge does: find the open page, ask it, and let the store decide in the call's record."""

from collections.abc import Callable
from typing import TypeVar

from pydantic import JsonValue
from sqlalchemy import Connection

from nova_mcp.browser.channel.stable_question import navigating
from nova_mcp.browser.targets.tab import Tab
from nova_mcp.core.values import Json
from nova_mcp.errors import InvalidParams, NotFound
from nova_mcp.memory.knowledge.model import Content, Problem, ScopeName
from nova_mcp.memory.knowledge.store import paired
from nova_mcp.memory.knowledge.writes.entry_write import entry_write
from nova_mcp.memory.knowledge.writes.page_check import PageCheck, check_page
from nova_mcp.memory.knowledge.writes.rules import Refused
from nova_mcp.memory.knowledge.writes.store import Missing
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.knowledge.params import PatchParams, PhenomenonParams, refusal, texts_in
from nova_mcp.tools.knowledge.scope_argument import page_scope, parsed_scope, require_open, unknown_entry, unknown_scope
from nova_mcp.tools.spec import Params

T = TypeVar("T")


def open_place(ctx: ToolContext, text: str) -> tuple[ScopeName, Tab]:
    """The site that is written about, and the tab in which the caller has it open."""
    scope = parsed_scope(text)
    tab = require_open(ctx, scope)
    ctx.evidence.tab = tab
    return scope, tab


def still_there(tab: Tab, scope: ScopeName) -> None:
    """What was seen belongs to the site only if the tab did not leave it meanwhile."""
    if page_scope(tab) != scope:
        raise navigating()


async def stored_content(ctx: ToolContext, scope: ScopeName, stable_id: str) -> Content | None:
    entry = paired((await ctx.learning.knowledge.known(scope)).find(stable_id))
    return None if entry is None else entry.newest.content


async def checked(ctx: ToolContext, tab: Tab, scope: ScopeName, content: Content) -> PageCheck:
    platforms = await ctx.learning.knowledge.platforms()
    hides = ctx.secrets.redactor.text
    async with tab.lock.shared():
        check = await check_page(tab, content, platforms, ctx.ports.clock.now_ms(), hides)
    still_there(tab, scope)
    return check


def note_vendors(ctx: ToolContext, scope: ScopeName, check: PageCheck) -> None:
    if not check.distrusted and (also := ctx.learning.knowledge.met(scope, check.vendors)) is not None:
        ctx.evidence.also.append(also)


async def commit_entries(ctx: ToolContext, write: Callable[[Connection], T]) -> T:
    """From here on only the store can say no, and the arguments hold nothing that must not be kept."""
    ctx.evidence.input_is_harmless = True
    return await ctx.commit(entry_write(write))


def has_prints(given: PhenomenonParams | PatchParams) -> bool:
    actions = () if given.playbook is None else given.playbook.actions
    return any(one.element_print is not None for one in actions)


def refuse_secrets(ctx: ToolContext, given: Params, root: str) -> None:
    """Values that Nova itself keeps secret don't get into knowledge in any field."""
    body: dict[str, JsonValue] = given.model_dump(mode="json", by_alias=True)
    held: Json = [*texts_in(body)]
    if ctx.secrets.redactor.json(held) != held:
        raise secret_refused(root)


def secret_refused(root: str) -> InvalidParams:
    return refusal(Problem("pks.secret_like", "It holds one of the stored secrets."), root)


def raise_for(problem: Problem | None, root: str) -> None:
    if problem is not None:
        raise refusal(problem, root)


def raise_first(problems: tuple[Problem, ...], root: str) -> None:
    raise_for(problems[0] if problems else None, root)


def written(outcome: T | Refused | Missing, root: str, scope: ScopeName, stable_id: str = "") -> T:
    """What was written; raises why it was not."""
    if isinstance(outcome, Refused | Missing):
        raise unwritten_error(outcome, root, scope, stable_id)
    return outcome


def unwritten_error(
    outcome: Refused | Missing, root: str, scope: ScopeName, stable_id: str
) -> InvalidParams | NotFound:
    match outcome:
        case Refused(problems):
            return refusal(problems[0], root)
        case Missing(scope=True):
            return unknown_scope(scope)
        case Missing(available=names):
            return unknown_entry(scope, stable_id, names)
