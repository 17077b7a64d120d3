"""Scrolling: the right box moves, the answer says how far, and what did not move is not claimed."""

from urllib.parse import quote

import pytest

from nova_mcp.browser.act.action import Manner
from nova_mcp.browser.act.action_report import Judgement, build_report
from nova_mcp.browser.act.locate import Locator
from nova_mcp.browser.act.scroll import ScrollRequest, scroll
from nova_mcp.core.clock import system_ports
from nova_mcp.errors import NotFound, Precondition

pytestmark = pytest.mark.browser
PORTS = system_ports()
TALL = "<div style='height:5000px'>tall</div>"
BOX = "<div id=box style='height:200px;overflow:auto'><div style='height:2000px;width:3000px'>inner</div></div>"


async def show(tab, site, body):
    await tab.page.goto(site.url(f"html?body={quote(body)}"))


async def go(tab, settle_ms=0, **how):
    done = await scroll(tab, ScrollRequest(settle_ms=settle_ms, **how), Manner(), PORTS)
    known = Judgement(done.verdict, repeat_safe=True, differs_reason=done.reason, already_set=done.already)
    return done, build_report(done.acted, tab, known)


async def test_the_page_scrolls_by_pixels_and_the_position_is_proof(module_tab, site):
    await show(module_tab, site, TALL)
    done, report = await go(module_tab, delta_y=700)
    assert (done.position.moved_y, done.position.scroll_top, done.position.at_end, done.container) == (
        700,
        700,
        False,
        "page",
    )
    assert (report.status, report.verify_state, report.action_dispatched) == ("ok", "verified", True)
    assert report.retry_advice == "safe_to_retry"
    assert await module_tab.page.evaluate("scrollY") == 700
    up, _ = await go(module_tab, delta_y=-9000)
    assert (up.position.moved_y, up.position.at_end) == (-700, True)


async def test_ends_and_pages_are_reached_whatever_the_style_says_about_smoothness(module_tab, site):
    await show(module_tab, site, f"<style>html{{scroll-behavior:smooth}}</style>{TALL}")
    steps = [await go(module_tab, to=to) for to in ("next", "bottom", "prev", "top")]
    positions = [done.position for done, _ in steps]
    height = await module_tab.page.evaluate("innerHeight")
    assert positions[0].moved_y == pytest.approx(height * 0.9, abs=2)
    assert [position.at_end for position in positions] == [False, True, False, True]
    assert positions[-1].scroll_top == 0


async def test_what_cannot_move_is_partial_and_says_why(module_tab, site):
    await show(module_tab, site, TALL)
    done, report = await go(module_tab, to="top")
    assert (report.status, report.reason_code, done.position.at_end) == ("partial", "scroll.no_movement", True)
    await show(module_tab, site, "<p>short</p>")
    done, report = await go(module_tab, delta_y=100)
    assert (report.reason_code, done.position.at_end) == ("scroll.no_movement", True)


async def test_a_named_box_scrolls_in_both_directions_and_the_page_stays(module_tab, site):
    await show(module_tab, site, f"<section id=outer>{BOX}</section>{TALL}")
    box = Locator(selector="#box")
    down, _ = await go(module_tab, delta_y=300, container=box)
    right, _ = await go(module_tab, delta_x=120, container=box)
    around, _ = await go(module_tab, to="bottom", container=Locator(selector="#outer"))
    assert (down.position.moved_y, right.position.moved_x, around.position.at_end) == (300, 120, True)
    assert "#box" in down.container
    assert await module_tab.page.evaluate("[scrollY, box.scrollLeft]") == [0, 120]
    ref = down.container.split()[0]
    back, _ = await go(module_tab, to="top", container=Locator(ref=ref))
    assert back.position.scroll_top == 0


async def test_boxes_that_are_missing_or_do_not_scroll_are_told_apart(module_tab, site):
    await show(module_tab, site, f"<p id=p>text</p>{TALL}")
    with pytest.raises(NotFound) as missing:
        await go(module_tab, delta_y=10, container=Locator(selector="#none"))
    with pytest.raises(Precondition) as fixed:
        await go(module_tab, delta_y=10, container=Locator(selector="#p"))
    assert missing.value.reason_code == "scroll.container_not_found"
    assert fixed.value.reason_code == "scroll.not_scrollable"


async def test_an_app_whose_page_stands_still_scrolls_in_its_largest_box(module_tab, site):
    await show(
        module_tab,
        site,
        "<style>html,body{height:100%;margin:0;overflow:hidden}</style><div id=side style='float:left;width:100px;"
        f"height:100%;overflow:auto'>{TALL}</div><div id=feed style='height:100%;overflow:auto'>{TALL}</div>",
    )
    done, _ = await go(module_tab, delta_y=400)
    assert await module_tab.page.evaluate("[side.scrollTop, feed.scrollTop]") == [0, 400]
    assert "#feed" in done.container


async def test_a_locked_page_is_not_forced_but_its_dialog_scrolls(module_tab, site):
    dialog = "<div role=dialog aria-modal=true style='position:fixed;inset:50px;background:#eee'>{}</div>"
    await show(module_tab, site, f"<style>body{{overflow:hidden}}</style>{TALL}{dialog.format('Question')}")
    with pytest.raises(Precondition) as locked:
        await go(module_tab, to="bottom")
    assert locked.value.reason_code == "scroll.not_scrollable"
    assert await module_tab.page.evaluate("scrollY") == 0
    await show(module_tab, site, f"<style>body{{overflow:hidden}}</style>{TALL}{dialog.format(BOX)}")
    done, _ = await go(module_tab, to="next")
    assert "#box" in done.container


async def test_snapping_boxes_move_to_the_next_place(module_tab, site):
    slide = "<section style='height:100vh;scroll-snap-align:start'>x</section>"
    await show(module_tab, site, f"<style>html{{scroll-snap-type:y mandatory}}body{{margin:0}}</style>{slide * 4}")
    first, _ = await go(module_tab, to="next", settle_ms=50)
    height = await module_tab.page.evaluate("innerHeight")
    assert first.position.moved_y == height


async def test_lists_that_grow_and_lists_that_recycle_say_what_came(module_tab, site):
    await module_tab.page.goto(site.url("reading/feed.html"))
    grown, _ = await go(module_tab, to="bottom", settle_ms=100)
    assert grown.position.grew_px > 0
    assert grown.position.new_elements == 20
    assert not grown.position.at_end
    await module_tab.page.goto(site.url("reading/recycled.html"))
    moved, _ = await go(module_tab, delta_y=1000, container=Locator(selector="#list"), settle_ms=100)
    assert (moved.position.grew_px, moved.position.new_elements) == (0, 10)


async def test_an_element_is_brought_into_view_through_nested_boxes_once(module_tab, site):
    await show(
        module_tab,
        site,
        f"{TALL}<div id=box style='height:200px;overflow:auto'>{TALL}<button id=deep>Deep</button></div>{TALL}",
    )
    done, report = await go(module_tab, element=Locator(selector="#deep"))
    assert (report.status, report.verify_state) == ("ok", "verified")
    assert "Deep" in report.element
    assert done.position.moved_y > 4000
    seen = "(() => { const b = deep.getBoundingClientRect(); return b.top >= 0 && b.bottom <= innerHeight })()"
    assert await module_tab.page.evaluate(seen)
    again, report = await go(module_tab, element=Locator(selector="#deep"))
    assert (again.already, report.action_dispatched, report.status) == (True, False, "ok")


async def test_an_element_in_a_frame_is_brought_into_view_with_its_frame(tab, site):
    inner = quote(f"{TALL}<button id=deep>Deep</button>")
    await show(tab, site, f"{TALL}<iframe src='/html?body={inner}' width=300 height=200></iframe>{TALL}")
    frame = (await tab.channel.frame_ids())[1]
    _, report = await go(tab, element=Locator(selector="#deep", frame_id=frame))
    assert report.verify_state == "verified"
    place = "document.querySelector('iframe').getBoundingClientRect()"
    assert await tab.page.evaluate(f"{place}.top < innerHeight && {place}.bottom > 0")


async def test_a_row_that_a_long_list_does_not_hold_yet_is_looked_for_in_it(module_tab, site):
    await module_tab.page.goto(site.url("reading/virtual.html"))
    box = Locator(selector="#list")
    _, report = await go(module_tab, element=Locator(selector="#r60"), container=box)
    assert report.status == "ok"
    assert await module_tab.page.evaluate("document.querySelector('#r60') !== null")
    with pytest.raises(NotFound) as missing:
        await go(module_tab, element=Locator(selector="#r999"), container=box)
    assert missing.value.reason_code == "selector.not_found"


async def test_hidden_elements_and_pages_that_scroll_back_are_not_claimed(module_tab, site):
    await show(module_tab, site, f"<p id=gone hidden>x</p>{TALL}<script>onscroll = () => scrollTo(0, 0)</script>")
    with pytest.raises(Precondition):
        await go(module_tab, element=Locator(selector="#gone"))
    _, report = await go(module_tab, delta_y=500, settle_ms=50)
    assert (report.status, report.reason_code, report.verify_state) == ("partial", "scroll.no_movement", "failed")


async def test_boxes_that_run_backwards_know_their_ends(module_tab, site):
    body = "<div id=log style='height:200px;overflow:auto;display:flex;flex-direction:column-reverse'>{}</div>"
    await show(module_tab, site, body.format("<p style='flex:none;height:900px'>a</p>" * 2))
    log = Locator(selector="#log")
    stuck, _ = await go(module_tab, to="bottom", container=log)
    up, _ = await go(module_tab, to="top", container=log)
    assert (stuck.verdict, stuck.position.at_end) == ("readback_differs", True)
    assert (up.position.moved_y < -1000, up.position.at_end) == (True, True)


@pytest.mark.parametrize("page", ["overrides", "clobbered"])
async def test_hostile_pages_scroll_as_others_do(tab, site, page):
    await tab.page.goto(site.url(f"hostile/{page}.html"))
    await tab.channel.evaluate("document.documentElement.style.height = '4000px'")
    done, report = await go(tab, delta_y=300)
    assert (done.position.moved_y, report.verify_state) == (300, "verified")
