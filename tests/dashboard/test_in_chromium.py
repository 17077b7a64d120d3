"""The dashboard in a real Chromium: accessible in both colours, on a phone, by keyboard, alive without reloads."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from chromium_kit import Look, chromium, grave, serving, signed_in, tab_to
from dashboard_kit import HOSTILE, NOW, SERVER, Stand, a_call, stand
from filled import ask, fill, recorded
from playwright.async_api import Browser, Page

from nova_mcp.core.mailbox import Mailbox
from nova_mcp.evidence.model import Caller, CallOutcome
from pages import PAGES

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def browser(anyio_backend: str) -> AsyncIterator[Browser]:
    async with chromium() as found:
        yield found


@pytest.fixture
async def filled(tmp_path: Path) -> AsyncIterator[tuple[Stand, str]]:
    with stand(tmp_path / "data") as desk:
        fill(desk, 120)
        async with serving(desk) as root:
            yield desk, root


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_axe_finds_nothing_serious_on_any_page(browser: Browser, filled: tuple[Stand, str], scheme: str):
    _, root = filled
    found: dict[str, list[str]] = {}
    async with signed_in(browser, root, Look(scheme)) as page:
        for path in PAGES:
            await page.goto(f"/dashboard{path}")
            await page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
            if faults := await grave(page):
                found[path] = faults
        await page.context.clear_cookies()
        # A link's page leaves by itself; without its script it stays.
        await page.route("**/nova.js", lambda route: route.fulfill(body="", content_type="text/javascript"))
        for path, heading in (("/login", "Sign in"), ("/enter?ticket=x", "Open the dashboard")):
            await page.goto(f"/dashboard{path}")
            assert await page.locator("h1").text_content() == heading
            if faults := await grave(page):
                found[path] = faults
    assert found == {}


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_axe_finds_nothing_serious_on_a_phone(browser: Browser, filled: tuple[Stand, str], scheme: str):
    _, root = filled
    async with signed_in(browser, root, Look(scheme, 390)) as page:
        found = {}
        for path in ("/", "/calls/call-commit", "/statistics", "/questions", "/controls"):
            await page.goto(f"/dashboard{path}")
            await page.evaluate("document.querySelector('.menu-small').open = true")
            found[path] = await grave(page)
    assert {path: faults for path, faults in found.items() if faults} == {}


async def test_a_page_with_a_fault_would_be_found(browser: Browser, filled: tuple[Stand, str]):
    _, root = filled
    async with signed_in(browser, root) as page:
        await page.evaluate(
            "document.querySelector('main').insertAdjacentHTML('beforeend', '<img src=\"data:,\"><input>')"
        )
        assert len(await grave(page)) >= 2


async def test_no_page_is_wider_than_a_phone(browser: Browser, filled: tuple[Stand, str]):
    _, root = filled
    async with signed_in(browser, root, Look(width=390)) as page:
        wide = {}
        for path in PAGES:
            await page.goto(f"/dashboard{path}")
            await page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
            width = await page.evaluate("document.documentElement.scrollWidth")
            if width > 390:
                wide[path] = width
    assert wide == {}


@pytest.mark.parametrize("width", [1280, 360])
async def test_long_names_of_acts_under_way_stay_in_their_place(
    browser: Browser, filled: tuple[Stand, str], width: int
):
    desk, root = filled
    caller = Caller("local", "agent" * 30, SERVER)
    address = f"https://{'a' * 60}.{'b' * 60}.test/"
    desk.add(a_call("long", kind="intent", outcome=CallOutcome("pending"), url=address, caller=caller))
    async with signed_in(browser, root, Look(width=width)) as page:
        await page.get_by_text("agentagent").first.wait_for()
        assert await page.evaluate("document.documentElement.scrollWidth") == width


async def test_new_calls_appear_without_a_reload_and_pausing_holds_them_back(
    browser: Browser, filled: tuple[Stand, str]
):
    desk, root = filled
    async with signed_in(browser, root) as page:
        await page.evaluate("window.sameDocument = true")
        desk.add(a_call("fresh-one", at_ms=NOW))
        await page.clock.run_for(1_500)
        first = page.locator("#calls tr").first
        await page.locator("#calls a[href$='fresh-one']").wait_for()
        assert "fresh-one" in (await first.locator("a").get_attribute("href") or "")
        assert await page.locator("#calls tr").count() <= 50
        await page.get_by_role("button", name="Pause").click()
        desk.add(a_call("fresh-two", at_ms=NOW))
        await page.clock.run_for(5_000)
        assert await page.locator("#calls a[href$='fresh-two']").count() == 0
        await page.get_by_role("button", name="Go on").click()
        await page.locator("#calls a[href$='fresh-two']").wait_for()
        assert await page.evaluate("window.sameDocument") is True


async def test_the_figures_of_the_day_move_along_and_stay_unfolded(browser: Browser, filled: tuple[Stand, str]):
    desk, root = filled
    async with signed_in(browser, root) as page:
        calls = page.locator("#tiles .value").first
        before = int(await calls.text_content() or "")
        await page.evaluate("document.querySelector('#chart details').open = true")
        desk.db.write_sync(recorded, [a_call("counted", at_ms=NOW)])
        await page.clock.run_for(1_500)
        await page.locator("#tiles .value").first.filter(has_text=str(before + 1)).wait_for()
        assert await page.locator("#chart details[open]").count() == 1


async def test_a_hostile_call_runs_nothing_when_it_arrives_live(browser: Browser, filled: tuple[Stand, str]):
    desk, root = filled
    dialogs: list[str] = []
    async with signed_in(browser, root) as page:
        page.on("dialog", lambda dialog: dialogs.append(dialog.message))
        desk.add(a_call("bad", at_ms=NOW, tool_name=HOSTILE))
        await page.clock.run_for(1_500)
        row = page.locator("#calls a[href$='bad']")
        await row.wait_for()
        assert await row.text_content() == HOSTILE
        assert await page.locator("#calls img, #calls script").count() == 0
        await row.click()
        await page.get_by_role("heading", level=1, name="alert").wait_for()
    assert dialogs == []


async def test_the_stop_works_without_scripts_and_asks_first(browser: Browser, filled: tuple[Stand, str]):
    desk, root = filled
    async with signed_in(browser, root, Look(scripts=False)) as page:
        await page.get_by_role("link", name="Stop all…").click()
        assert not desk.settings.stop_file.exists()
        await page.get_by_role("button", name="Stop all agents").click()
        await page.get_by_text("Every call is refused until you resume").wait_for()
        assert desk.settings.stop_file.exists()
        await page.get_by_role("link", name="Resume…").first.click()
        await page.get_by_role("button", name="Resume").click()
        await page.get_by_text("Agents may act again").wait_for()
        assert not desk.settings.stop_file.exists()


async def test_a_switch_is_set_by_keyboard_alone(browser: Browser, filled: tuple[Stand, str]):
    _, root = filled
    async with signed_in(browser, root) as page:
        await page.goto("/dashboard/controls")
        await tab_to(page, "document.activeElement.name === 'host'")
        await page.keyboard.type("keys.example")
        await page.keyboard.press("Enter")
        await page.get_by_text("closed_loop.commit.kill.domain.keys.example").wait_for()
        await tab_to(page, "document.activeElement.matches('.confirm button')")
        await page.keyboard.press("Enter")
        await page.get_by_text("Set: closed_loop.commit.kill.domain.keys.example.").wait_for()


async def test_the_first_tab_stop_skips_the_menu(browser: Browser, filled: tuple[Stand, str]):
    _, root = filled
    async with signed_in(browser, root) as page:
        await page.goto("/dashboard/calls")
        await page.keyboard.press("Tab")
        await page.keyboard.press("Enter")
        assert await page.evaluate("document.activeElement.id") == "main"


async def test_a_question_appears_by_itself_and_a_note_being_written_survives(
    browser: Browser, filled: tuple[Stand, str]
):
    desk, root = filled
    async with signed_in(browser, root) as page:
        await page.goto("/dashboard/questions")
        note = page.locator("input[name=note]").first
        await note.fill("half a wo")
        await page.clock.run_for(5_000)
        assert await note.input_value() == "half a wo"
        ask(desk, "bb12cd34ef", "Second")
        await page.clock.run_for(5_000)
        await page.get_by_text("Second").wait_for()
        await page.locator("[data-id=bb12cd34ef]").get_by_role("button", name="It is done").click()
        await page.get_by_text("told that it is done").wait_for()
    reply = Mailbox(desk.settings.data_dir).reply_to("bb12cd34ef")
    assert reply is not None
    assert reply.resolved


async def test_an_open_page_makes_a_person_reachable(browser: Browser, filled: tuple[Stand, str]):
    desk, root = filled
    async with signed_in(browser, root) as page:
        async with page.expect_response("**/dashboard/here"):
            await page.clock.run_for(11_000)
        assert Mailbox(desk.settings.data_dir).attended()


@pytest.mark.parametrize(("scheme", "chosen"), [("light", "Dark"), ("dark", "Light")])
async def test_the_switch_overrules_the_systems_colours(
    browser: Browser, filled: tuple[Stand, str], scheme: str, chosen: str
):
    _, root = filled
    shade: Callable[[Page], Any] = lambda page: page.evaluate("getComputedStyle(document.body).backgroundColor")  # noqa: E731
    async with signed_in(browser, root, Look(scheme)) as page:
        before = await shade(page)
        await page.get_by_role("button", name=chosen).click()
        await page.wait_for_load_state()
        after = await shade(page)
        await page.goto("/dashboard/calls")
        assert await shade(page) == after != before


async def test_a_sign_in_link_opens_by_itself(browser: Browser, filled: tuple[Stand, str]):
    desk, root = filled
    async with signed_in(browser, root) as page:
        await page.context.clear_cookies()
        await page.goto(f"/dashboard/enter?ticket={desk.ticket()}")
        await page.wait_for_url("**/dashboard/")
        await page.get_by_role("heading", name="Activity").wait_for()
