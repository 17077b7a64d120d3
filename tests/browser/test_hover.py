"""Hovering: the pointer really is there, nothing is pressed, and what appears is told."""

import pytest

from nova_mcp.browser.act.action import Manner
from nova_mcp.browser.act.action_report import Judgement, build_report
from nova_mcp.browser.act.click import Press, click
from nova_mcp.browser.act.hover import hover
from nova_mcp.browser.act.locate import Locator
from nova_mcp.core.clock import system_ports
from nova_mcp.errors import NotFound, Precondition

pytestmark = pytest.mark.browser
PORTS = system_ports()


@pytest.fixture
async def page(tab, site):
    await tab.page.goto(site.url("act/hover.html"))
    return tab


async def over(tab, selector, hold_ms=150):
    done = await hover(tab, Locator(selector=selector), hold_ms, Manner(timeout_ms=500), PORTS)
    known = Judgement(done.verdict, repeat_safe=True, differs_reason="action.obstructed")
    return done, build_report(done.acted, tab, known)


async def test_links_that_appear_are_told_with_refs_that_work(page):
    done, report = await over(page, "#menu")
    assert [line.split(" ", 2)[2].split('"')[1] for line in done.revealed] == ["Spades", "Rakes"]
    assert (report.status, report.verify_state, report.dispatch_proof) == ("ok", "verified", "event")
    assert report.retry_advice == "safe_to_retry"
    acted = await click(page, Locator(ref=done.revealed[1].split()[0]), Press(), Manner(timeout_ms=500), PORTS)
    assert acted.observation is not None
    assert page.url.endswith("other.html?2")


async def test_nothing_is_pressed(page):
    await over(page, "#dull")
    assert await page.page.title() == "Hover"


async def test_a_tip_that_comes_late_is_seen_within_the_hold(page):
    done, _ = await over(page, "#info", hold_ms=200)
    assert "tooltip" in " ".join(done.revealed)


async def test_hovering_twice_is_proven_twice(page):
    for _ in range(2):
        _, report = await over(page, "#dull", hold_ms=0)
        assert (report.verify_state, report.dispatch_proof) == ("verified", "event")


async def test_at_most_ten_lines_are_told(page):
    done, _ = await over(page, "#many")
    assert len(done.revealed) == 10


@pytest.mark.parametrize("selector", ["#covered", "#away"])
async def test_an_element_that_is_not_under_the_pointer_in_the_end_is_not_claimed(page, selector):
    done, report = await over(page, selector)
    assert done.verdict == "readback_differs"
    assert (report.status, report.reason_code, report.verify_state) == ("partial", "action.obstructed", "failed")


async def test_what_is_missing_or_hidden_is_refused(page):
    with pytest.raises(NotFound):
        await over(page, "#nowhere")
    with pytest.raises(Precondition):
        await over(page, "#tip")
