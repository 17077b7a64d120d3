"""Deleting a sandbox: nobody else may be working in it, and nothing of it stays."""

from dataclasses import dataclass

from nova_mcp.browser.targets.registry import TabQuery, Targets
from nova_mcp.evidence.model import Caller


@dataclass(frozen=True, slots=True)
class Deletion:
    """What went with a sandbox."""

    tabs_closed: int
    state_removed: bool
    downloads_removed: int


async def delete_sandbox(targets: Targets, caller: Caller, sandbox_id: str) -> Deletion:
    """Close a sandbox with all its tabs; a foreign claim inside refuses before anything is closed."""
    sandbox = await targets.require_sandbox(caller, sandbox_id)
    inside = targets.list_tabs(caller, TabQuery(sandbox_id=sandbox_id))
    targets.claims.foreign_within(caller.owner, sandbox_id, inside)
    # Set without a pause after the look: from here on nobody gets a new tab in it.
    sandbox.deleted = True
    closed = 0
    while inside:
        for tab in inside:
            closed += await targets.close_tab(tab, "sandbox_deleted")
        # A page may have opened another one meanwhile.
        inside = targets.list_tabs(caller, TabQuery(sandbox_id=sandbox_id))
    removed = await targets.sandboxes.delete(sandbox)
    targets.claims.gone(sandbox_id, "sandbox_deleted")
    return Deletion(closed, removed.state, removed.downloads)
