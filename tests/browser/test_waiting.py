"""Waiting: woken by what happens, honest about what did not, and not put off by another document."""

from urllib.parse import quote

import anyio
import pytest

from nova_mcp.browser.act.locate import Locator
from nova_mcp.browser.perceive.perception import PerceiveRequest, perceive
from nova_mcp.browser.read.wait import WaitRequest, wait_for
from nova_mcp.core.clock import system_ports
from nova_mcp.errors import InvalidParams, Missed, NotFound, Precondition

pytestmark = pytest.mark.browser


async def show(tab, site, body):
    await tab.page.goto(site.url(f"html?body={quote(body)}"))


async def wait(tab, selector=None, state="visible", timeout_ms=5000, stable_ms=0, **where):
    return await wait_for(tab, WaitRequest(Locator(selector=selector, **where), state, timeout_ms, stable_ms))


async def test_what_is_already_so_is_answered_at_once_with_line_and_text(module_tab, site):
    await show(module_tab, site, "<ul><li>one</li><li>two <b hidden>no</b></li></ul>")
    report = await wait(module_tab, "li", timeout_ms=0)
    assert (report.match_count, report.text) == (2, "one")
    assert "listitem" in report.element
    second = await wait(module_tab, "li", timeout_ms=0, nth=1)
    assert second.text == "two"
    assert (await wait(module_tab, "#none", "detached", timeout_ms=0)).match_count == 0


@pytest.mark.parametrize(
    ("state", "change"),
    [
        ("visible", "hint.hidden = false"),
        ("visible", "sheet.textContent = ''"),
        ("hidden", "box.style.visibility = 'hidden'"),
        ("attached", "document.body.append(Object.assign(document.createElement('i'), {id: 'new'}))"),
        ("detached", "box.remove()"),
    ],
)
async def test_each_state_is_seen_when_it_comes_about(tab, site, state, change):
    await show(
        tab,
        site,
        "<style id=sheet>#styled{display:none}</style><p id=hint hidden>Hint</p><p id=styled>S</p><p id=box>Box</p>",
    )
    selector = {"visible": "#hint" if "hint" in change else "#styled", "attached": "#new"}.get(state, "#box")
    async with anyio.create_task_group() as group:
        reports = []

        async def waiting():
            reports.append(await wait(tab, selector, state))

        group.start_soon(waiting)
        await tab.page.evaluate(f"() => {{ setTimeout(() => {{ {change} }}, 30) }}")
    assert reports[0].match_count == (1 if state in ("visible", "attached") else 0)


async def test_what_never_comes_is_missed_and_may_be_tried_again(module_tab, site):
    await show(module_tab, site, "<p>x</p><p id=gone hidden>y</p>")
    with pytest.raises(Missed) as missed:
        await wait(module_tab, "#gone", timeout_ms=120)
    error = missed.value
    assert (error.reason_code, error.status, error.retryable) == ("wait_for_selector.timeout", "failed", True)
    assert error.details["matchCount"] == 0
    assert error.details["waitedMs"] >= 120
    with pytest.raises(Missed):
        await wait(module_tab, "p", "detached", timeout_ms=0)


async def test_text_that_keeps_changing_is_told_apart_from_nothing_there(module_tab, site):
    await show(module_tab, site, "<p id=clock>0</p><script>setInterval(() => clock.textContent++, 20)</script>")
    with pytest.raises(Precondition) as refused:
        await wait(module_tab, "#clock", timeout_ms=400, stable_ms=200)
    assert (refused.value.reason_code, refused.value.retryable) == ("wait_for_selector.still_changing", True)


async def test_streamed_text_is_waited_for_to_its_end(module_tab, site):
    await show(
        module_tab,
        site,
        "<p id=answer></p><script>let n = 0; const t = setInterval(() => { answer.append('word ');"
        "if (++n === 8) clearInterval(t) }, 30)</script>",
    )
    report = await wait(module_tab, "#answer", "visible", stable_ms=250)
    assert report.text == " ".join(["word"] * 8)


async def test_a_wait_outlives_the_document_it_began_in(tab, site):
    await show(
        tab, site, f"<script>setTimeout(() => location = '/html?body={quote('<b id=late>here</b>')}', 50)</script>"
    )
    report = await wait(tab, "#late", stable_ms=50)
    assert report.text == "here"
    assert "late" in report.url


async def test_a_ref_is_waited_for_across_rendering_anew_and_its_going(tab, site):
    await show(tab, site, "<div id=root><button>Save</button></div>")
    seen = await perceive(tab, PerceiveRequest(), system_ports())
    ref = seen.elements[0].ref
    await tab.page.evaluate(
        "() => { root.innerHTML = ''; setTimeout(() => root.innerHTML = '<button>Save</button>', 60) }"
    )
    assert "Save" in (await wait(tab, ref=ref)).element
    await tab.page.evaluate("() => { setTimeout(() => root.innerHTML = '', 30) }")
    assert (await wait(tab, ref=ref, state="detached")).match_count == 0
    assert (await wait(tab, ref=ref, state="hidden", timeout_ms=0)).match_count == 0
    with pytest.raises(NotFound):
        await wait(tab, ref="e999", timeout_ms=0)


async def test_frames_and_shadow_roots_can_be_waited_in(tab, site):
    await show(
        tab,
        site,
        "<iframe srcdoc='<p id=inner>in</p>'></iframe><x-s></x-s><script>setTimeout(() => document.querySelector('x-s')"
        ".attachShadow({mode: 'open'}).innerHTML = '<p id=deep>deep</p>', 40)</script>",
    )
    frames = await tab.channel.frame_ids()
    assert (await wait(tab, "#inner", frame_id=frames[1])).text == "in"
    assert (await wait(tab, "x-s >>> #deep")).text == "deep"


async def test_a_selector_that_cannot_be_read_is_refused_at_once(module_tab, site):
    with pytest.raises(InvalidParams):
        await wait(module_tab, "p[[", timeout_ms=60_000)


async def test_a_storm_of_changes_neither_blocks_nor_hides_what_is_waited_for(tab, site):
    await tab.page.goto(site.url("hostile/storm.html"))
    await tab.page.evaluate(
        "() => { setTimeout(() => document.body.insertAdjacentHTML('beforeend', '<p id=calm>x</p>'), 100) }"
    )
    assert (await wait(tab, "#calm", stable_ms=100)).match_count == 1


@pytest.mark.parametrize("page", ["overrides", "clobbered"])
async def test_hostile_pages_change_no_answer(tab, site, page):
    await tab.page.goto(site.url(f"hostile/{page}.html"))
    assert (await wait(tab, "role=button[name='Menu']", timeout_ms=0)).match_count == 1
    assert (await wait(tab, "#no-such", "hidden", timeout_ms=0)).match_count == 0
