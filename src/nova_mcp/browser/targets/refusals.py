"""What a caller is told when the id it gave means no tab of its own."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nova_mcp.core.values import Json
from nova_mcp.errors import InvalidParams, NotFound, Precondition

if TYPE_CHECKING:
    from nova_mcp.browser.targets.tab import Tab

LISTED_TABS = 20


def _listed(tabs: Sequence["Tab"]) -> dict[str, Json]:
    shown: list[Json] = [{"targetId": tab.target_id, "url": tab.url[:300]} for tab in tabs[:LISTED_TABS]]
    return {"tabs": shown} if shown else {}


def several_claims(held: int, covered: Sequence["Tab"]) -> Precondition:
    return Precondition(
        "tab.active_ambiguous",
        f'You hold {held} claims, so "active" could mean any of your tabs.',
        details=_listed(covered),
    )


def several_connections(agent_id: str, used: Sequence["Tab"]) -> Precondition:
    return Precondition(
        "tab.active_ambiguous",
        f'Several connections work in turn as agent "{agent_id}", each in its own tab, so "active" could mean any.',
        "Name the tab by its targetId, or give each client an agentId of its own.",
        details=_listed(used),
    )


def no_active_tab(mine: Sequence["Tab"]) -> NotFound:
    return NotFound("tab.no_active_tab", details=_listed(mine))


def none_inside(sandbox_id: str, inside: Sequence["Tab"], last_seen: dict[str, Json]) -> NotFound:
    return NotFound(
        "tab.no_active_tab",
        f"You have no tab in sandbox {sandbox_id}.",
        "Open one with nova.tab_new, or name an open tab by its targetId.",
        details=_listed(inside) | last_seen,
    )


def unknown_sandbox(sandbox_id: str, last_seen: dict[str, Json]) -> InvalidParams:
    return InvalidParams(
        "sandbox.unknown",
        f'There is no sandbox "{sandbox_id[:20]}".',
        details=last_seen,
    )


def unknown_tab(target_id: str, last_seen: dict[str, Json]) -> InvalidParams:
    quoted = "".join(c if c.isprintable() else " " for c in target_id[:80])
    return InvalidParams(
        "tab.unknown",
        f'There is no tab "{quoted}".',
        details=last_seen,
    )


def too_many_tabs(limit: int, *, yours: bool = False) -> Precondition:
    whose = f"{limit} tabs of yours" if yours else f"{limit} tabs"
    return Precondition("tab.limit_reached", f"{whose} are open, which is the limit.")
