"""Pages on memory and work in a real Chromium: accessible in both colours, on a phone, by keyboard, and inert."""

from collections.abc import AsyncIterator
from pathlib import Path

import memory_kit
import pytest
from chromium_kit import Look, chromium, grave, serving, signed_in, tab_to
from dashboard_kit import Stand, stand
from playwright.async_api import Browser
from test_memory_pages import ENTRY, address, every_page

pytestmark = pytest.mark.browser

OPEN = "document.querySelectorAll('details:not(.menu-small)').forEach(one => one.open = true)"


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def browser(anyio_backend: str) -> AsyncIterator[Browser]:
    async with chromium() as found:
        yield found


@pytest.fixture(scope="module")
async def filled(
    tmp_path_factory: pytest.TempPathFactory, anyio_backend: str
) -> AsyncIterator[tuple[Stand, str, list[str]]]:
    folder: Path = tmp_path_factory.mktemp("memory")
    with stand(folder / "data") as desk:
        run = memory_kit.everything(desk.db)
        async with serving(desk) as root:
            yield desk, root, every_page(run, memory_kit.question(desk.db))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
async def test_axe_finds_nothing_serious_on_any_page_and_none_is_wider_than_its_screen(
    browser: Browser, filled: tuple[Stand, str, list[str]], scheme: str, width: int
):
    _, root, paths = filled
    found = {}
    async with signed_in(browser, root, Look(scheme, width)) as page:
        for path in paths:
            await page.goto(f"/dashboard{path}")
            await page.evaluate(OPEN)
            needed = await page.evaluate("document.documentElement.scrollWidth")
            found[path] = [*await grave(page), *([f"needs {needed} pixels"] if needed > width else [])]
    assert {path: told for path, told in found.items() if told} == {}


async def test_no_list_has_to_be_pushed_sideways_on_a_phone(browser: Browser, filled: tuple[Stand, str, list[str]]):
    _, root, paths = filled
    wide = {}
    async with signed_in(browser, root, Look(width=360)) as page:
        for path in paths:
            await page.goto(f"/dashboard{path}")
            boxes = page.locator(".wrap:has(> .rows)")
            cut = "all => all.filter(one => one.scrollWidth > one.clientWidth).map(one => one.ariaLabel)"
            if found := await boxes.evaluate_all(cut):
                wide[path] = found
    assert wide == {}


async def test_nothing_that_a_page_said_runs(browser: Browser, filled: tuple[Stand, str, list[str]]):
    _, root, paths = filled
    dialogs: list[str] = []
    async with signed_in(browser, root) as page:
        page.on("dialog", lambda dialog: dialogs.append(dialog.message))
        for path in paths:
            await page.goto(f"/dashboard{path}")
            assert await page.locator("main img, main script, main iframe").count() == 0, path
    assert dialogs == []


async def test_the_picture_of_a_life_is_drawn_where_its_numbers_say(
    browser: Browser, filled: tuple[Stand, str, list[str]]
):
    _, root, _ = filled
    async with signed_in(browser, root) as page:
        await page.goto(f"/dashboard{ENTRY}")
        boxes = await page.evaluate(
            """() => Object.fromEntries(['active', 'shadow', 'candidate'].map(
                 lane => [lane, document.querySelector(`.life .stroke-${lane}`).getBoundingClientRect()])
                 .map(([lane, box]) => [lane, [box.top, box.width]]))"""
        )
        assert boxes["active"][0] < boxes["shadow"][0] < boxes["candidate"][0]
        assert all(width > 20 for _, width in boxes.values())
        colours = await page.evaluate(
            """() => [...document.querySelectorAll('.life .stretch')].map(one => getComputedStyle(one).stroke)"""
        )
        assert len(set(colours)) == 3, "each level has a colour of its own, and none is the default"
        assert "none" not in colours


async def test_an_entry_is_found_from_the_list_by_keyboard_and_its_review_is_asked(
    browser: Browser, filled: tuple[Stand, str, list[str]]
):
    desk, root, _ = filled
    before = len(desk.program.calls)
    async with signed_in(browser, root) as page:
        await page.goto(f"/dashboard{address('/knowledge/site', scope='shop.test')}")
        for words in ("cart-drawer", "Have the gates decide…"):
            await tab_to(page, f"document.activeElement.textContent === '{words}'")
            async with page.expect_navigation():
                await page.keyboard.press("Enter")
        await page.get_by_text("Nothing would change now.").wait_for()
    assert len(desk.program.calls) == before


async def test_a_review_is_confirmed_without_scripts(browser: Browser, filled: tuple[Stand, str, list[str]]):
    desk, root, _ = filled
    async with signed_in(browser, root, Look(scripts=False)) as page:
        await page.goto("/dashboard/review")
        await page.get_by_role("link", name="Reject chat-bubble").click()
        before = len(desk.program.calls)
        await page.get_by_label("Why it no longer holds").fill("it was a test")
        await page.get_by_role("button", name="Reject it").click()
        await page.wait_for_url("**/knowledge/entry?**")
    call = desk.program.calls[-1]
    assert len(desk.program.calls) == before + 1
    assert (call.tool, call.arguments["reason"]) == ("nova.pks_deprecate", "it was a test")
