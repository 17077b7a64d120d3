"""What an answer says beside its own matter: each download's end once, and hosts that imitate others."""

from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest

from nova_mcp.browser.observe.host_window import DownloadSeen
from nova_mcp.calls.stages.asides import with_asides
from nova_mcp.evidence.model import Effect
from nova_mcp.tools.results import ActResult, EffectSeen
from nova_mcp.tools.spec import PageResult, Result

PLAIN = "http://paypal.test/"
FORGED = "http://xn--pypal-4ve.test/"


class Desk:
    """Ends every download that somebody waits for."""

    def __init__(self) -> None:
        self.waited: list[str] = []

    async def settled(self, seen: list[DownloadSeen], timeout_ms: int) -> None:
        for one in (one for one in seen if one.state == "running"):
            self.waited.append(one.file_name)
            one.state = "completed"


def context(*downloads: DownloadSeen) -> Any:
    tab = SimpleNamespace(downloads=deque(downloads))
    return SimpleNamespace(evidence=SimpleNamespace(tab=tab), browser=SimpleNamespace(downloads=Desk()))


def acted(url: str = PLAIN, channels: tuple[str, ...] = (), **more: Any) -> ActResult:
    effect = EffectSeen(observed=True, channels=list(channels))
    return ActResult(
        target_id="tab_1",
        url=url,
        action_dispatched=True,
        dispatch_proof="event",
        effect=effect,
        verify_state="likely",
        rev=1,
        **more,
    )


async def told(result: Result, ctx: Any, effect: Effect = "act") -> Any:
    return (await with_asides(result, ctx, effect)).structured()


async def test_an_action_waits_a_moment_for_what_it_started_and_the_end_is_told_once() -> None:
    ctx = context(DownloadSeen("a.bin", "http://x.test/a"))
    assert [one["state"] for one in (await told(acted(), ctx))["downloads"]] == ["completed"]
    assert "downloads" not in await told(acted(), ctx)


async def test_a_read_waits_for_nothing_and_names_what_is_under_way() -> None:
    ctx = context(DownloadSeen("a.bin", "http://x.test/a"))
    page = PageResult(target_id="tab_1", url=PLAIN)
    assert [one["state"] for one in (await told(page, ctx, "read"))["downloads"]] == ["running"]
    await told(acted(), ctx)
    assert ctx.browser.downloads.waited == [], "a long download slows only the action that began it"
    ctx.evidence.tab.downloads[0].state = "completed"
    assert [one["state"] for one in (await told(page, ctx, "read"))["downloads"]] == ["completed"]
    assert "downloads" not in await told(page, ctx, "read")


@pytest.mark.parametrize(("reason", "told_as"), [(None, "download.remote_not_saved"), ("x.y", "x.y")])
async def test_a_file_left_on_a_remote_machine_is_a_note_that_hides_no_other_reason(reason, told_as) -> None:
    seen = DownloadSeen("a.bin", "http://x.test/a", state="not_saved", note="download.remote_not_saved")
    assert (await told(acted(reason_code=reason), context(seen)))["reasonCode"] == told_as


@pytest.mark.parametrize(
    ("url", "channels", "reason"),
    [
        (FORGED, ("navigation",), "policy.lookalike_host"),
        (FORGED, (), None),
        (PLAIN, ("navigation",), None),
    ],
)
async def test_an_action_that_leads_to_a_lookalike_host_says_so(url, channels, reason) -> None:
    assert (await told(acted(url, channels), context()))["reasonCode"] == reason


async def test_answers_without_a_page_stay_as_they_are() -> None:
    assert await told(Result(), context(DownloadSeen("a", "http://x.test/a"))) == {"ok": True}
