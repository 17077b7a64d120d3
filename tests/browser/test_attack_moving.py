"""Pages that move, vanish or change while they are being acted on."""

import contextlib
from urllib.parse import quote

import anyio
import pytest
from acting_kit import ClickOptions, TypeOptions, click, type_text

from nova_mcp.browser.act.locate import Locator
from nova_mcp.browser.perceive.perception import PerceiveRequest, perceive
from nova_mcp.core.clock import system_ports
from nova_mcp.errors import Blocked, NovaError, Precondition, Unavailable

from .conftest import eventually

pytestmark = pytest.mark.browser
PORTS = system_ports()
QUICK = ClickOptions(timeout_ms=300)


async def show(tab, site, body):
    await tab.page.goto(site.url(f"html?body={quote(body)}"))


async def put(tab, text, **options):
    return await type_text(tab, Locator(selector="#t"), TypeOptions(text, timeout_ms=300, **options), PORTS)


async def test_a_page_that_leaves_while_it_is_waited_for_is_not_pressed(tab, site):
    await show(tab, site, "<main><button id=t disabled>Go</button></main>")
    ask, asked = tab.channel.ask, anyio.Event()

    async def noting(question, args=None, **more):
        if question == "prepare":
            asked.set()
        return await ask(question, args, **more)

    tab.channel.ask = noting
    async with anyio.create_task_group() as group:
        group.start_soon(_leave_once, tab, asked)
        with pytest.raises(Unavailable) as refused:
            await click(tab, Locator(selector="#t"), ClickOptions(timeout_ms=20_000), PORTS)
    tab.channel.ask = ask
    assert refused.value.reason_code == "page.navigating"


async def _leave_once(tab, asked):
    await asked.wait()
    await tab.page.evaluate("setTimeout(() => { location = '/html' }, 150)")


async def test_a_page_that_leaves_when_the_pointer_comes_is_not_pressed(tab, site):
    await show(tab, site, "<main><button id=t onpointermove=\"location='/html'\">Go</button></main>")
    with pytest.raises(NovaError) as refused:
        await click(tab, Locator(selector="#t"), QUICK, PORTS)
    assert refused.value.reason_code == "page.navigating"


@pytest.mark.parametrize("event", ["pointerdown", "click"])
async def test_a_page_that_leaves_on_the_press_was_pressed(tab, site, event):
    await show(tab, site, f"<main><button id=t on{event}=\"location='/html'\">Go</button></main>")
    report = await click(tab, Locator(selector="#t"), QUICK, PORTS)
    assert report.action_dispatched
    assert "navigation" in report.effect.channels


async def test_a_page_that_waits_for_its_successor_is_called_navigating_and_not_stalled(tab, site):
    await show(tab, site, "<main><button id=t onclick=\"location='/never'\">Go</button></main>")
    report = await click(tab, Locator(selector="#t"), QUICK, PORTS)
    assert (report.action_dispatched, report.reason_code) == (True, "action.request_pending")
    await eventually(lambda: "/never" in site.seen)
    with pytest.raises(Unavailable) as refused:
        await perceive(tab, PerceiveRequest(), PORTS)
    assert refused.value.reason_code == "page.navigating"
    assert tab.state != "stalled"


async def test_an_element_that_leaves_under_the_pointer_is_not_pressed(tab, site):
    await show(tab, site, "<main><button id=t onpointermove='this.remove()'>Go</button></main>")
    with pytest.raises(Precondition) as refused:
        await click(tab, Locator(selector="#t"), QUICK, PORTS)
    assert refused.value.reason_code == "action.unstable"


async def test_an_element_that_leaves_on_the_press_was_pressed(tab, site):
    await show(tab, site, "<main><button id=t onmousedown='this.remove()'>Go</button></main>")
    report = await click(tab, Locator(selector="#t"), QUICK, PORTS)
    assert (report.action_dispatched, report.dispatch_proof) == (True, "event")


async def test_a_document_written_anew_is_an_effect(tab, site):
    script = "document.open();document.write('new');document.close()"
    await show(tab, site, f'<main><button id=t onclick="{script}">Go</button></main>')
    report = await click(tab, Locator(selector="#t"), QUICK, PORTS)
    assert "dom_mutation" in report.effect.channels


async def test_a_link_to_a_file_is_a_download_and_no_error(tab, site):
    await show(tab, site, "<main><a id=t href=/download>File</a></main>")
    report = await click(tab, Locator(selector="#t"), QUICK, PORTS)
    assert (report.status, report.verify_state, report.reason_code) == ("ok", "likely", None)
    assert "download" in report.effect.channels
    assert [download.file_name for download in report.downloads] == ["a.bin"]


async def test_a_page_that_crashes_while_it_is_waited_for_says_so_and_comes_back(tab, site):
    await show(tab, site, "<main><button id=t disabled>Go</button></main>")
    async with anyio.create_task_group() as group:
        group.start_soon(_crash, tab)
        with pytest.raises(Unavailable) as refused:
            await click(tab, Locator(selector="#t"), ClickOptions(timeout_ms=20_000), PORTS)
    assert (refused.value.reason_code, tab.state) == ("tab.crashed", "crashed")
    target_id = tab.target_id
    await tab.recover()
    assert (await perceive(tab, PerceiveRequest(), PORTS)).target_id == target_id


async def _crash(tab):
    with contextlib.suppress(Exception), anyio.move_on_after(5):
        await tab.channel.cdp.send("Page.crash")


@pytest.mark.parametrize(
    ("kind", "before", "text"), [("number", "12", "3"), ("email", "a@b", ".c"), ("text", "a", "b")]
)
@pytest.mark.parametrize("method", ["auto", "keys"])
async def test_text_is_added_at_the_end_of_every_kind_of_field(tab, site, kind, before, text, method):
    await show(tab, site, f"<main><input id=t type={kind} value={before}></main>")
    report = await put(tab, text, clear=False, method=method)
    assert report.typed.value_matches
    assert report.typed.actual_value == before + text


async def test_added_text_that_the_page_rewrites_is_not_typed_twice(tab, site):
    await show(tab, site, "<main><input id=t value=ab oninput='this.value=this.value.toUpperCase()'></main>")
    report = await put(tab, "cd", clear=False)
    assert (report.typed.value_matches, report.typed.actual_value) == (False, "ABCD")


async def test_a_document_that_is_one_editor_takes_text(tab, site):
    await show(tab, site, "<body id=t contenteditable>old")
    assert (await put(tab, "new")).typed.value_matches


async def test_enter_is_judged_by_the_form_as_typing_left_it(tab, site):
    change = "this.form.method='post';this.form.action='/sent';this.form.removeAttribute('role');this.name='z'"
    await show(tab, site, f'<form role=search action=/found><input name=q id=t oninput="{change}"></form>')
    with pytest.raises(Blocked):
        await put(tab, "x", press_enter=True)
    assert not any(path.startswith("/sent") for path in site.seen)
