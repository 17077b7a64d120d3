"""What an answer about a tab says beside its own matter: downloads, a host that may imitate another, notes about it."""

from dataclasses import replace

from nova_mcp.browser.observe import host_window
from nova_mcp.browser.targets.tab import Tab
from nova_mcp.calls.endings import Done, Ending
from nova_mcp.calls.stages.stage import Call, Proceed
from nova_mcp.core.hosts import looks_lookalike
from nova_mcp.core.policy import LOOKALIKE
from nova_mcp.core.urls import page_host
from nova_mcp.evidence.model import ACTING, Effect
from nova_mcp.tools.browse.navigate import NavigateResult
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.read.note_hints import notes_available
from nova_mcp.tools.results import ActResult
from nova_mcp.tools.spec import DownloadSeen, PageResult, Result

# Small files are there a moment after the press; their end then stands in the same answer.
GRACE_MS = 1500


class Asides:
    """Adds to an answer what its tab has to say."""

    async def around(self, call: Call, proceed: Proceed) -> Ending:
        ending = await proceed()
        if not isinstance(ending, Done):
            return ending
        return replace(ending, result=await with_asides(ending.result, call.context, call.spec.effect))


async def with_asides(result: Result, ctx: ToolContext, effect: Effect) -> Result:
    """The answer with everything its tab has to say."""
    tab = ctx.evidence.tab
    if tab is None or not isinstance(result, PageResult):
        return result
    if tab.downloads:
        news = [seen for seen in tab.downloads if not seen.told]
        if effect in ACTING and news:
            await ctx.browser.downloads.settled(news, GRACE_MS)
        result = _with_downloads(result, tab)
    if isinstance(result, ActResult) and result.reason_code is None and _led_to_a_lookalike(result):
        result = result.model_copy(update={"reason_code": LOOKALIKE})
    if isinstance(result, NavigateResult) and (notes := await notes_available(ctx)) is not None:
        result = result.model_copy(update={"domain_notes_available": notes})
    return result


def _with_downloads(result: PageResult, tab: Tab) -> PageResult:
    """Those that are under way, and once what became of each."""
    told = list(tab.downloads)
    for seen in told:
        seen.told = True
        if seen.state != "running":
            tab.downloads.remove(seen)
    update: dict[str, object] = {"downloads": [_part(seen) for seen in told]}
    unsaved = next((seen.note for seen in told if seen.state == "not_saved"), None)
    if unsaved is not None and isinstance(result, ActResult) and result.reason_code is None:
        update["reason_code"] = unsaved
    return result.model_copy(update=update)


def _led_to_a_lookalike(result: ActResult) -> bool:
    """Navigating tools warn of the address themselves, because they were given one."""
    moved = {"navigation", "url_changed"} & set(result.effect.channels)
    return bool(moved) and not isinstance(result, NavigateResult) and looks_lookalike(page_host(result.url) or "")


def _part(seen: host_window.DownloadSeen) -> DownloadSeen:
    return DownloadSeen(
        file_name=seen.file_name,
        bytes=seen.bytes,
        sha256=seen.sha256,
        mime_type=seen.mime_type,
        state=seen.state,
        path=seen.path,
        note=seen.note,
    )
