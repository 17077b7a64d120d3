"""The page channel: private, ordered by the host's clock, and honest about pages that go away."""

import anyio
import pytest

from nova_mcp.browser.channel.messages import HOST_MESSAGES_PER_SECOND, parse_message
from nova_mcp.browser.channel.page_channel import DocumentChanged, PageScriptError
from nova_mcp.browser.targets.registry import Tab
from nova_mcp.errors import Unavailable

SEND = "globalThis.__novaSend(JSON.stringify({v:1,kind:'hello',n:1}))"


async def test_page_script_sees_neither_world_nor_binding(tab: Tab, site) -> None:
    await tab.page.goto(site.url("html?title=plain"))
    assert await tab.channel.evaluate("typeof globalThis.__nova + typeof globalThis.__novaSend") == "objectfunction"
    assert await tab.page.evaluate("typeof globalThis.__nova + typeof globalThis.__novaSend") == "undefinedundefined"


async def test_page_overrides_do_not_reach_the_answer(tab: Tab, site) -> None:
    await tab.page.goto(site.url("html?title=t&body=<p>x</p>"))
    await tab.page.evaluate("Document.prototype.querySelector = () => null; JSON.stringify = () => 'forged'")
    assert await tab.channel.evaluate("({n: document.querySelector('p').textContent})") == {"n": "x"}


async def test_each_document_is_counted_once_and_history_moves_are_not(tab: Tab, site) -> None:
    await tab.page.goto(site.url("html?title=one"))
    first = tab.channel.document
    await tab.page.evaluate("history.pushState({}, '', '/elsewhere'); location.hash = 'h'")
    await tab.channel.evaluate("1")
    assert tab.channel.document == first
    await tab.page.goto(site.url("html?title=two"))
    await tab.channel.evaluate("1")
    assert tab.channel.document == first + 1


async def test_a_throwing_expression_is_a_script_error_with_one_line(tab: Tab) -> None:
    with pytest.raises(PageScriptError) as caught:
        await tab.channel.evaluate("(() => { throw new Error('a\\nb') })()")
    assert "\n" not in str(caught.value)
    assert "Error: a" in str(caught.value)


async def test_a_commit_in_the_middle_of_a_question_is_a_document_change(tab: Tab, site) -> None:
    await tab.page.goto(site.url("html?title=one"))
    async with anyio.create_task_group() as group:

        async def leave() -> None:
            await tab.page.goto(site.url("html?title=two"))

        group.start_soon(leave)
        with pytest.raises(DocumentChanged):
            await tab.channel.evaluate("new Promise(() => {})")
    assert await tab.channel.evaluate("document.title") == "two"


async def test_a_hanging_page_is_a_stall_by_the_hosts_clock(tab: Tab, site) -> None:
    await tab.page.goto(site.url("html?title=hang"))
    await tab.channel.evaluate("setTimeout(() => {for(;;);}, 0); 1")
    with pytest.raises(Unavailable) as caught:
        await tab.channel.ask("anything", timeout_ms=300)
    assert caught.value.reason_code == "cdp.renderer_stalled"
    assert caught.value.retry_after_ms == 2000


async def test_a_crash_ends_a_pending_question_at_once(tab: Tab, site) -> None:
    await tab.page.goto(site.url("html?title=crash"))
    async with anyio.create_task_group() as group:

        async def crash() -> None:
            with pytest.raises(Exception):  # noqa: B017
                await tab.channel.send("Page.crash")

        group.start_soon(crash)
        with anyio.fail_after(10), pytest.raises(Unavailable) as caught:
            await tab.channel.evaluate("new Promise(() => {})", timeout_ms=30_000)
    assert caught.value.reason_code == "tab.crashed"
    assert tab.state == "crashed"
    with pytest.raises(Unavailable):
        tab.require_ready()


async def test_a_closed_page_answers_lost(tab: Tab) -> None:
    await tab.page.close()
    await tab.channel.closed()
    with pytest.raises(Unavailable) as caught:
        await tab.channel.ask("anything")
    assert caught.value.reason_code == "tab.lost"


async def test_messages_arrive_and_a_flood_is_cut_by_the_host(tab: Tab) -> None:
    got: list[object] = []
    tab.channel.on_message(got.append)
    await tab.channel.evaluate(f"{SEND}; 1")
    await tab.channel.evaluate("1")
    assert got == [{"v": 1, "kind": "hello", "n": 1}]
    await tab.channel.evaluate(f"for (let i = 0; i < 1000; i++) {SEND}; 1")
    await tab.channel.evaluate("1")
    assert len(got) <= 2 * HOST_MESSAGES_PER_SECOND + 1
    assert tab.channel.told.dropped >= 1000 - 2 * HOST_MESSAGES_PER_SECOND


@pytest.mark.parametrize(
    "payload",
    [
        None,
        7,
        "",
        "no json",
        "[1]",
        "{}",
        '{"v":2,"kind":"x"}',
        '{"v":true,"kind":"x"}',
        '{"v":1}',
        '{"v":1,"kind":3}',
        '{"v":1,"kind":"x","a":"' + "x" * 70_000 + '"}',
        "[" * 60_000,
    ],
    ids=range(12),
)
def test_malformed_messages_are_dropped(payload: object) -> None:
    assert parse_message(payload) is None


def test_a_message_of_our_version_is_kept() -> None:
    assert parse_message('{"v":1,"kind":"x","a":[1]}') == {"v": 1, "kind": "x", "a": [1]}


async def test_frames_of_the_same_process_are_asked_by_id(tab: Tab, site) -> None:
    await tab.page.goto(site.url("html?title=outer&body=<iframe src='/html?title=inner'></iframe>"))
    tree = await tab.channel.send("Page.getFrameTree")
    inner = tree["frameTree"]["childFrames"][0]["frame"]["id"]
    assert await tab.channel.evaluate("document.title", frame_id=inner) == "inner"
    assert await tab.channel.evaluate("typeof globalThis.__nova", frame_id=inner) == "object"


async def test_frames_of_another_process_get_a_session_of_their_own(tab: Tab, site) -> None:
    other = site.url("html?title=inner", host="localhost")
    await tab.page.goto(site.url(f"html?title=outer&body=<iframe src='{other}'></iframe>"))
    main, frame_id = await tab.channel.frame_ids()
    assert main == tab.channel.frame_id
    assert tab.channel.session(frame_id) is not tab.channel.session() is tab.channel.session(main)
    assert await tab.channel.evaluate("document.title", frame_id=frame_id) == "inner"
    assert await tab.channel.evaluate("typeof globalThis.__nova", frame_id=frame_id) == "object"
