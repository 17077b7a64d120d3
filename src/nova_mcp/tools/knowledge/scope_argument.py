"""Which site a call about knowledge means, and whether the caller has it open."""

from collections.abc import Sequence

from nova_mcp.browser.targets.tab import Tab
from nova_mcp.core.values import Json
from nova_mcp.errors import Fix, InvalidParams, NotFound, Precondition
from nova_mcp.memory.knowledge.model import Problem, ScopeName
from nova_mcp.memory.knowledge.scopes import scope_of
from nova_mcp.tools.context import ToolContext

SHOWN_IDS = 20


def parsed_scope(text: str) -> ScopeName:
    """The one spelling of the site a caller names; wildcards, nothing and bare public suffixes name none."""
    match scope_of(text):
        case Problem(_, message):
            raise InvalidParams(
                "invalid_params", message, "Name one host, such as shop.example.com.", details={"argument": "scope"}
            )
        case found:
            return found


def page_scope(tab: Tab) -> ScopeName | None:
    """The site a tab shows; None for pages that belong to no site."""
    found = scope_of(tab.url)
    return None if isinstance(found, Problem) else found


def scope_on(tab: Tab, named: str | None) -> ScopeName:
    """The site a tab shows; where the caller names one, it has to be that."""
    here = page_scope(tab)
    wanted = here if named is None else parsed_scope(named)
    if wanted is None:
        raise Precondition(
            "pks.scope_not_open", "This tab shows no page of a site.", "Open a page of it first with nova.navigate."
        )
    if wanted != here:
        raise InvalidParams(
            "pks.scope_mismatch",
            f"{tab.target_id} shows {here or 'no site'}, not {wanted}.",
            details={"argument": "scope"},
        )
    return wanted


def open_tab(ctx: ToolContext, scope: ScopeName) -> Tab | None:
    """A tab of the caller's principal that shows the site, its current one before others."""
    targets = ctx.browser.targets
    showing = [tab for tab in targets.list_tabs(ctx.caller) if page_scope(tab) == scope and tab.state == "ready"]
    current = targets.active_of(ctx.caller.owner)
    return next((tab for tab in showing if tab is current), showing[0] if showing else None)


def require_open(ctx: ToolContext, scope: ScopeName) -> Tab:
    """Knowledge is written only by those who have the site before them."""
    tab = open_tab(ctx, scope)
    if tab is None:
        raise Precondition(
            "pks.scope_not_open",
            f"{scope} is not open in any of your tabs.",
            fix=Fix("nova.navigate", {"url": f"https://{scope}/"}),
        )
    return tab


# -- what is not there


def nothing_known(scope: ScopeName) -> str:
    return f"Nothing is known of {scope}."


def unknown_scope(scope: ScopeName) -> NotFound:
    return NotFound(
        "pks.scope_not_found",
        nothing_known(scope),
        fix=Fix("nova.pks_list", {}),
    )


def unknown_entry(scope: ScopeName, stable_id: str, available: Sequence[str] = ()) -> NotFound:
    """An entry that a known site does not have; `available` are the ids of those it has."""
    ids: list[Json] = [str(one) for one in available[:SHOWN_IDS]]
    return NotFound(
        "pks.phenomenon_not_found",
        f'{scope} has no entry "{stable_id[:128]}".',
        "Pick one of availableIds, or store it with nova.pks_upsert." if ids else "nova.pks_get lists its entries.",
        fix=Fix("nova.pks_get", {"scope": scope}),
        details={"availableIds": ids} if ids else {},
    )
