"""Frames in a look: those of the same origin stand inline, others are listed and looked into when asked."""

from urllib.parse import quote

import pytest
from acting_kit import ClickOptions, click

from nova_mcp.browser.act.locate import Locator
from nova_mcp.browser.perceive.perception import PerceiveRequest, perceive
from nova_mcp.core.clock import system_ports

pytestmark = pytest.mark.browser
PORTS = system_ports()
INNER = "<p>Inside</p><button id=b onclick=\"this.textContent='yes'\">In</button>"


def page(site, inner=INNER, host="127.0.0.1", style="", before="<button>One</button>", after="<button>Two</button>"):
    address = site.url(f"html?body={quote(inner)}", host=host)
    frame = f"<iframe style='border:0;width:400px;height:200px;{style}' src=\"{address}\"></iframe>"
    return site.url(f"html?body={quote(before + frame + after)}")


def names(report):
    return [element.line.split('"')[1] for element in report.elements]


async def test_elements_of_a_same_origin_frame_stand_inline_and_can_be_pressed_by_ref(tab, site):
    await tab.page.goto(page(site), wait_until="load")
    report = await perceive(tab, PerceiveRequest(mode="full"), PORTS)
    assert names(report) == ["One", "In", "Two"]
    inside = report.elements[1]
    frame_id = tab.perception.get(inside.ref).facts.frame
    assert inside.line.endswith(f"#b [frame:{frame_id[:8]}]")
    assert report.frames == ()
    pressed = await click(tab, Locator(ref=inside.ref), ClickOptions(timeout_ms=2000), PORTS)
    assert (pressed.action_dispatched, pressed.effect.new_text) == (True, ("yes",))
    again = await perceive(tab, PerceiveRequest(mode="full"), PORTS)
    assert names(again) == ["One", "yes", "Two"]
    assert again.elements[0] == report.elements[0]


async def test_boxes_of_a_frame_are_those_of_the_page_and_what_it_scrolled_away_is_offscreen(tab, site):
    inner = "<button>Top</button><p style='height:3000px'></p><button>Deep</button>"
    await tab.page.goto(page(site, inner, style="position:absolute;left:300px;top:150px"), wait_until="load")
    report = await perceive(tab, PerceiveRequest(), PORTS)
    by_name = {one.facts.name: one for one in tab.perception.snapshots[-1].scan.elements}
    where = await tab.page.frames[1].locator("button").first.bounding_box()
    assert by_name["Top"].box[:2] == (round(where["x"]), round(where["y"]))
    assert (by_name["Top"].clipped, by_name["Deep"].clipped) == (False, True)
    assert [line.line.split(" ")[-2] for line in report.elements if "Deep" in line.line] == ["[offscreen"]


async def test_a_frame_of_another_site_is_listed_and_only_a_deep_look_enters_it(tab, site):
    await tab.page.goto(page(site, host="localhost"), wait_until="load")
    report = await perceive(tab, PerceiveRequest(), PORTS)
    assert names(report) == ["One", "Two"]
    (frame,) = report.frames
    assert (frame.origin, frame.rect[2:], frame.scanned) == (site.url("", "localhost").rstrip("/"), (400, 200), False)
    assert f"frame {frame.frame_id[:8]} " in report.text()
    deep = await perceive(tab, PerceiveRequest(mode="full", deep=True), PORTS)
    assert names(deep) == ["One", "In", "Two"]
    assert deep.frames[0].scanned
    pressed = await click(tab, Locator(ref=deep.elements[1].ref), ClickOptions(timeout_ms=2000), PORTS)
    assert pressed.effect.new_text == ("yes",)


async def test_a_frame_of_another_origin_in_the_same_process_is_not_inline(tab, site):
    body = "<button>One</button><iframe sandbox='allow-scripts' srcdoc='<button>Boxed</button>'></iframe>"
    await tab.page.goto(site.url(f"html?body={quote(body)}"), wait_until="load")
    report = await perceive(tab, PerceiveRequest(), PORTS)
    assert (names(report), len(report.frames)) == (["One"], 1)


async def test_nested_and_unnamed_frames_are_found_and_hidden_ones_are_not(tab, site):
    inner = "<iframe srcdoc='<button>Innermost</button>'></iframe><button>Middle</button>"
    hidden = "<iframe style='display:none' srcdoc='<button>Hidden</button>'></iframe>"
    await tab.page.goto(page(site, inner, after=hidden), wait_until="load")
    await tab.page.evaluate(
        "() => { const frame = document.body.appendChild(document.createElement('iframe'));"
        "frame.contentDocument.body.innerHTML = '<button>Written</button>'; }"
    )
    report = await perceive(tab, PerceiveRequest(mode="full"), PORTS)
    assert names(report) == ["One", "Innermost", "Middle", "Written"]
    refs = [tab.perception.get(element.ref).facts.frame for element in report.elements]
    assert len(set(refs)) == 4


async def test_a_frame_that_is_taken_away_and_put_back_gets_its_new_name(tab, site):
    await tab.page.goto(page(site), wait_until="load")
    first = await perceive(tab, PerceiveRequest(mode="full"), PORTS)
    await tab.page.evaluate(
        "() => new Promise(done => { const frame = document.querySelector('iframe'); frame.onload = done;"
        "document.body.append(frame); })"
    )
    again = await perceive(tab, PerceiveRequest(mode="full"), PORTS)
    assert names(again) == ["One", "Two", "In"]
    frames = [tab.perception.get(ref).facts.frame for ref in (first.elements[1].ref, again.elements[2].ref)]
    assert frames[0] != frames[1]
    pressed = await click(tab, Locator(ref=again.elements[2].ref), ClickOptions(timeout_ms=2000), PORTS)
    assert pressed.effect.new_text == ("yes",)


async def test_a_look_inside_an_element_of_a_frame_shows_that_part_alone(tab, site):
    inner = "<button>Out</button><section id=part><button>In</button></section>"
    await tab.page.goto(page(site, inner), wait_until="load")
    frame_id = (await tab.channel.frame_ids())[1]
    scope = Locator(selector="#part", frame_id=frame_id)
    report = await perceive(tab, PerceiveRequest(scope=scope), PORTS)
    assert names(report) == ["In"]
    assert tab.url.startswith(report.url[:-1])
    assert tab.perception.get(report.elements[0].ref).facts.frame == frame_id


async def test_a_frame_stuck_in_script_costs_its_own_elements_and_no_more(tab, site):
    await tab.page.goto(page(site, host="localhost"), wait_until="load")
    await perceive(tab, PerceiveRequest(deep=True), PORTS)
    await tab.page.frames[1].evaluate("() => { setTimeout(() => { for (;;); }, 0); }")
    report = await perceive(tab, PerceiveRequest(deep=True), PORTS)
    assert names(report) == ["One", "Two"]
    assert report.completeness.scan_truncated
    assert not report.frames[0].scanned
    await tab.page.evaluate("document.querySelector('iframe').remove()")
