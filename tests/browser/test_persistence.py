"""The kept sandbox: logins outlive a server, belong to one server at a time, and leave nothing when deleted."""

import json
import logging
import stat
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser as Chromium

from nova_mcp.browser.act.navigate import navigate
from nova_mcp.browser.process.browser_loss import Loss
from nova_mcp.browser.process.runtime import Browser, BrowserHome
from nova_mcp.browser.state.manual_login import Kept, LoginWindow, log_in
from nova_mcp.browser.state.sandbox_saver import SAVE_EVERY_MS, Keeper
from nova_mcp.browser.state.sandboxes import Sandbox
from nova_mcp.browser.targets.registry import Tab
from nova_mcp.core.clock import Ports, system_ports
from nova_mcp.core.file_lock import HeldBy
from nova_mcp.core.policy import NavigationPolicy
from nova_mcp.evidence.model import ServerId
from nova_mcp.evidence.targets.stored_journal import StoredJournal
from nova_mcp.memory.claims.book import ClaimBook
from nova_mcp.settings import BrowserSettings
from nova_mcp.storage.engine import Database

from .conftest import Site, eventually, make_caller

# Every test begins with a sandbox of its own.
FRESH = True

CALLER = make_caller(principal="local")
FILL = """() => new Promise((done) => {
  document.cookie = "sid=cookie-kept";
  localStorage.setItem("l", "local-kept");
  sessionStorage.setItem("s", "session-kept");
  const opening = indexedDB.open("box", 1);
  opening.onupgradeneeded = () => opening.result.createObjectStore("things");
  opening.onsuccess = () => {
    const change = opening.result.transaction("things", "readwrite");
    change.objectStore("things").put("database-kept", "key");
    change.oncomplete = () => { opening.result.close(); done(); };
  };
})"""
READ = """() => new Promise((done) => {
  const told = [document.cookie, localStorage.getItem("l"), sessionStorage.getItem("s")];
  const opening = indexedDB.open("box", 1);
  opening.onupgradeneeded = () => opening.result.createObjectStore("things");
  opening.onsuccess = () => {
    const asked = opening.result.transaction("things").objectStore("things").get("key");
    asked.onsuccess = () => { opening.result.close(); done([...told, asked.result ?? null]); };
  };
})"""
KEPT = ["sid=cookie-kept", "local-kept", "session-kept", "database-kept"]
EMPTY = ["", None, None, None]


class Server(Browser):
    """A server of its own on the one Chromium of the tests; ending it ends its contexts, not the browser."""

    shared: Browser

    async def start(self) -> Chromium:
        return await self.shared.start()

    async def release(self) -> None:
        await self.sandboxes.save_all()
        for sandbox in self.sandboxes:
            if sandbox.context is not None:
                await sandbox.context.close()
        self.targets.browser_gone(Loss("idle"))


Start = Callable[..., Browser]


@pytest.fixture
async def start(tmp_path: Path, browser: Browser) -> AsyncIterator[Start]:
    """Servers of one data folder; each is closed at the end if it was not before."""
    started: list[Browser] = []
    db = Database.open(f"sqlite:///{tmp_path / 'nova.db'}")

    def begin(*, keep: bool = True, own: bool = False, ports: Ports | None = None, store: Database = db) -> Browser:
        server_id, ports = ServerId(f"server_{len(started)}"), ports or system_ports()
        server = (Browser if own else Server)(
            BrowserSettings(),
            BrowserHome(tmp_path, server_id, keep_first=keep),
            StoredJournal(store, server_id, keep_raw_urls=True),
            NavigationPolicy(),
            ports,
            ClaimBook(ports),
        )
        if isinstance(server, Server):
            server.shared = browser
        started.append(server)
        return server

    yield begin
    for server in started:
        await server.aclose()
    await db.close()


def files(data_dir: Path) -> list[Path]:
    return sorted((data_dir / "sandboxes").glob("*/state.json"))


def stored(data_dir: Path) -> dict[str, Any]:
    (path,) = files(data_dir)
    found: dict[str, Any] = json.loads(path.read_text())
    return found


async def visit(browser: Browser, site: Site) -> Tab:
    tab = await browser.targets.open_tab(CALLER)
    await navigate(tab, site.url("html"))
    return tab


async def fill(browser: Browser, site: Site) -> Tab:
    tab = await visit(browser, site)
    await tab.page.evaluate(FILL)
    return tab


async def read(browser: Browser, site: Site) -> Any:
    return await (await visit(browser, site)).page.evaluate(READ)


def sandbox_of(browser: Browser, tab: Tab) -> Sandbox:
    return browser.sandboxes.by_id(tab.sandbox_id)


async def test_cookies_and_every_storage_outlive_a_server(tmp_path: Path, start: Start, site: Site) -> None:
    first = start()
    tab = await fill(first, site)
    assert tab.sandbox_id == "A"
    await first.aclose()
    (path,) = files(tmp_path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    again = start()
    second = await visit(again, site)
    assert second.sandbox_id == "A"
    assert await second.page.evaluate(READ) == KEPT
    assert sandbox_of(again, second).sandbox_ref == path.parent.name


async def test_a_killed_server_leaves_what_was_saved_before(tmp_path: Path, start: Start, site: Site) -> None:
    first = start()
    tab = await fill(first, site)
    assert await sandbox_of(first, tab).save()
    await tab.page.evaluate("document.cookie = 'late=1'")
    # As after a kill: the hold is gone, nothing more was written.
    first.sandboxes.let_go()
    assert await read(start(), site) == KEPT


async def test_who_logs_out_stays_logged_out(start: Start, site: Site) -> None:
    first = start()
    await fill(first, site)
    await first.aclose()
    again = start()
    tab = await visit(again, site)
    await tab.page.evaluate("sessionStorage.clear(); localStorage.clear(); document.cookie = 'sid=; max-age=0'")
    await navigate(tab, site.url("html?title=after"))
    assert await tab.page.evaluate(READ) == ["", None, None, "database-kept"]
    other = await visit(again, site)
    assert (await other.page.evaluate(READ))[2] is None


async def test_a_session_is_given_back_to_its_own_origin_only(start: Start, site: Site) -> None:
    first = start()
    await fill(first, site)
    await first.aclose()
    again = start()
    tab = await again.targets.open_tab(CALLER)
    await navigate(tab, site.url("html", host="localhost"))
    assert await tab.page.evaluate(READ) == EMPTY
    await navigate(tab, site.url("html"))
    assert await tab.page.evaluate(READ) == KEPT


async def test_other_sandboxes_are_forgotten(tmp_path: Path, start: Start, site: Site) -> None:
    browser = start()
    await fill(browser, site)
    other = await browser.sandboxes.create(CALLER.owner)
    assert (other.sandbox_id, other.persistent) == ("B", False)
    assert not await other.save()
    tab = await browser.targets.open_tab(CALLER, "B")
    await navigate(tab, site.url("html"))
    assert await tab.page.evaluate(READ) == EMPTY
    await browser.aclose()
    assert [state["sandboxId"] for state in [stored(tmp_path)]] == ["A"]


async def test_an_ephemeral_server_writes_nothing_and_takes_a_letter_of_its_own(tmp_path, start, site) -> None:
    first = start()
    await fill(first, site)
    await first.aclose()
    before = files(tmp_path)[0].read_bytes()
    forgetful = start(keep=False)
    tab = await fill(forgetful, site)
    assert (tab.sandbox_id, tab.notices) == ("B", [])
    await forgetful.aclose()
    assert files(tmp_path)[0].read_bytes() == before
    assert len(files(tmp_path)) == 1


async def test_a_second_server_gets_an_empty_jar_and_says_so(tmp_path: Path, start: Start, site: Site) -> None:
    first, second = start(), start()
    await fill(first, site)
    tab = await visit(second, site)
    assert tab.sandbox_id == "B"
    (notice,) = tab.take_notices()
    assert "in use by another Nova server" in notice
    assert tab.take_notices() == []
    assert await tab.page.evaluate(READ) == EMPTY
    await second.aclose()
    await first.aclose()
    third = start()
    assert (await visit(third, site)).sandbox_id == "A"


async def test_the_letter_is_not_given_again_when_the_store_was_lost(tmp_path: Path, start: Start, site: Site) -> None:
    first = start()
    await fill(first, site)
    await first.aclose()
    fresh = Database.open(f"sqlite:///{tmp_path / 'fresh.db'}")
    try:
        browser = start(store=fresh)
        assert (await visit(browser, site)).sandbox_id == "A"
        assert (await browser.sandboxes.create(CALLER.owner)).sandbox_id == "B"
    finally:
        await browser.aclose()
        await fresh.close()


async def test_another_principal_does_not_get_the_jar(tmp_path: Path, start: Start, site: Site) -> None:
    first = start()
    await fill(first, site)
    await first.aclose()
    browser = start()
    stranger = make_caller(principal="somebody else")
    tab = await browser.targets.open_tab(stranger)
    await navigate(tab, site.url("html"))
    assert await tab.page.evaluate(READ) == EMPTY
    assert (await visit(browser, site)).sandbox_id == "A"


async def test_a_deleted_kept_sandbox_leaves_no_file_and_a_new_letter(tmp_path: Path, start: Start, site: Site) -> None:
    first = start()
    tab = await fill(first, site)
    await sandbox_of(first, tab).save()
    await first.targets.close_tab(tab)
    await first.sandboxes.delete(sandbox_of(first, tab))
    assert [path.name for path in (tmp_path / "sandboxes").iterdir()] == ["first.lock"]
    again = await visit(first, site)
    assert again.sandbox_id == "B"
    assert sandbox_of(first, again).persistent
    assert await again.page.evaluate(READ) == EMPTY


@pytest.mark.parametrize("damage", ["", '{"v":1', '{"v":1}'])
async def test_a_damaged_file_is_moved_aside_and_nothing_stops(tmp_path, start, site, caplog, damage) -> None:
    first = start()
    await fill(first, site)
    await first.aclose()
    files(tmp_path)[0].write_text(damage)
    with caplog.at_level(logging.ERROR):
        browser = start()
        tab = await visit(browser, site)
    assert "damaged" in caplog.text
    assert (tab.sandbox_id, await tab.page.evaluate(READ)) == ("B", EMPTY)
    assert len(list((tmp_path / "sandboxes").glob("*/state.json.corrupt-*"))) == 1


async def test_a_file_that_can_not_be_read_at_the_moment_is_told_and_comes_back_later(
    tmp_path: Path, start: Start, site: Site
) -> None:
    first = start()
    await fill(first, site)
    await first.aclose()
    (path,) = files(tmp_path)
    hidden = path.rename(path.with_name("hidden.json"))
    path.mkdir()
    second = start()
    tab = await visit(second, site)
    assert await tab.page.evaluate(READ) == EMPTY
    assert any("can't be read at the moment" in notice for notice in tab.notices)
    assert not await sandbox_of(second, tab).save()
    await second.aclose()
    path.rmdir()
    hidden.rename(path)
    third = start()
    tab = await visit(third, site)
    assert (tab.sandbox_id, await tab.page.evaluate(READ)) == ("A", KEPT)


async def test_a_state_with_a_cookie_that_is_none_is_moved_aside_too(tmp_path: Path, start, site, caplog) -> None:
    first = start()
    await fill(first, site)
    await first.aclose()
    body = stored(tmp_path)
    body["storage"]["cookies"][0]["sameSite"] = "Sometimes"
    files(tmp_path)[0].write_text(json.dumps(body))
    with caplog.at_level(logging.ERROR):
        tab = await visit(start(), site)
    assert "damaged" in caplog.text
    assert await tab.page.evaluate(READ) == EMPTY


async def test_a_state_that_a_living_browser_refuses_stays_as_it_is(tmp_path: Path, start, site, caplog) -> None:
    first = start()
    await fill(first, site)
    await first.aclose()
    body = stored(tmp_path)
    # Both at once: no browser takes a cookie of a secure name over an insecure way.
    body["storage"]["cookies"][0] |= {"name": "__Host-sid", "domain": ".shop.example", "secure": False}
    written = json.dumps(body)
    files(tmp_path)[0].write_text(written)
    browser = start()
    with caplog.at_level(logging.ERROR):
        tab = await visit(browser, site)
    assert "refused by the browser" in caplog.text
    assert await tab.page.evaluate(READ) == EMPTY
    assert any("did not take the kept logins" in notice for notice in tab.notices)
    assert not await sandbox_of(browser, tab).save()
    await browser.aclose()
    (path,) = files(tmp_path)
    assert path.read_text() == written
    assert list((tmp_path / "sandboxes").glob("*/*.corrupt-*")) == []


async def test_a_page_that_never_answers_does_not_keep_cookies_from_being_saved(tmp_path, start, site) -> None:
    browser = start()
    tab = await fill(browser, site)
    assert await sandbox_of(browser, tab).save()
    await tab.page.evaluate("document.cookie = 'late=1'")
    await tab.channel.evaluate("setTimeout(() => {for(;;);}, 0); 1")
    keeper = sandbox_of(browser, tab).keeper
    context = sandbox_of(browser, tab).context
    assert keeper is not None
    assert context is not None
    assert await keeper.save(context, 0.5)
    body = stored(tmp_path)
    assert {cookie["name"] for cookie in body["storage"]["cookies"]} == {"sid", "late"}
    assert body["storage"]["origins"][0]["localStorage"] == [{"name": "l", "value": "local-kept"}]
    assert list(body["sessions"].values()) == [{"s": "session-kept"}]


async def test_the_jar_comes_back_after_the_browser_died(start: Start, site: Site) -> None:
    browser = start(own=True)
    tab = await fill(browser, site)
    await sandbox_of(browser, tab).save()
    chromium = await browser.start()
    await chromium.close()
    await eventually(lambda: tab.state == "lost")
    await navigate(tab, site.url("html"))
    assert await tab.page.evaluate(READ) == KEPT


async def test_the_jar_comes_back_after_an_idle_browser_was_released(start: Start, site: Site) -> None:
    browser = start(own=True)
    tab = await fill(browser, site)
    await browser.release()
    await navigate(tab, site.url("html"))
    assert await tab.page.evaluate(READ) == KEPT


class MovingClock:
    def __init__(self) -> None:
        self.now = 1_800_000_000_000

    def now_ms(self) -> int:
        return self.now

    def monotonic_ms(self) -> float:
        return float(self.now)


async def test_it_is_saved_every_half_minute_while_somebody_works_or_a_cookie_changes(
    tmp_path, start, site, monkeypatch
) -> None:
    clock = MovingClock()
    browser = start(ports=Ports(clock, system_ports().ids))
    tab = await fill(browser, site)
    saves: list[int] = []
    save = Keeper.save

    async def counted(self: Keeper, *args: Any) -> bool:
        saves.append(clock.now)
        return await save(self, *args)

    monkeypatch.setattr(Keeper, "save", counted)

    async def after(ms: int) -> int:
        clock.now += ms
        await browser.sandboxes.save_due(browser._worked_in)
        return len(saves)

    assert await after(SAVE_EVERY_MS - 1) == 0
    assert await after(1) == 1
    assert await after(SAVE_EVERY_MS) == 1
    await tab.page.evaluate("document.cookie = 'rotated=1'")
    assert await after(SAVE_EVERY_MS) == 2
    assert await after(SAVE_EVERY_MS) == 2
    tab.touch()
    assert await after(1) == 2
    assert await after(SAVE_EVERY_MS) == 3
    assert {cookie["name"] for cookie in stored(tmp_path)["storage"]["cookies"]} == {"sid", "rotated"}


async def test_a_disk_that_takes_nothing_is_told_and_stops_nothing(tmp_path: Path, start, site, caplog) -> None:
    browser = start()
    tab = await fill(browser, site)
    sandbox = sandbox_of(browser, tab)
    folder = tmp_path / "sandboxes" / sandbox.sandbox_ref
    folder.rename(tmp_path / "moved")
    folder.write_text("a file where the folder was")
    with caplog.at_level(logging.ERROR):
        assert not await sandbox.save()
    assert "could not be kept" in caplog.text


# -- logging in by hand


async def hand(tmp_path: Path, site: Site, person: Callable[[LoginWindow], Any]) -> Kept | HeldBy:
    return await log_in(
        site.url("html"), BrowserSettings(), BrowserHome(tmp_path, "login-test"), person, system_ports()
    )


async def fills(window: LoginWindow) -> None:
    await window.page.evaluate(FILL)


async def test_a_login_by_hand_is_found_by_the_next_server(tmp_path: Path, start: Start, site: Site) -> None:
    kept = await hand(tmp_path, site, fills)
    assert kept == Kept({"127.0.0.1": 1}, 1, saved=True)
    browser = start()
    tab = await visit(browser, site)
    assert (tab.sandbox_id, await tab.page.evaluate(READ)) == ("A", KEPT)


async def test_a_login_by_hand_adds_to_what_a_server_had(tmp_path: Path, start: Start, site: Site) -> None:
    first = start()
    await fill(first, site)
    await first.aclose()
    seen: list[Any] = []

    async def person(window: LoginWindow) -> None:
        seen.append(await window.page.evaluate(READ))
        await window.page.evaluate("document.cookie = 'more=1'")

    kept = await hand(tmp_path, site, person)
    assert seen == [KEPT]
    assert kept == Kept({"127.0.0.1": 2}, 1, saved=True)
    assert (await visit(start(), site)).sandbox_id == "A"


async def test_a_window_that_is_closed_has_been_kept(tmp_path: Path, start: Start, site: Site) -> None:
    async def person(window: LoginWindow) -> None:
        await window.page.evaluate(FILL)
        popup = await window.page.context.new_page()
        await window.page.close()
        await popup.close()
        await window.closed()

    assert await hand(tmp_path, site, person) == Kept({"127.0.0.1": 1}, 1, saved=True)


async def test_while_a_server_has_the_sandbox_nothing_is_opened(tmp_path: Path, start: Start, site: Site) -> None:
    await visit(start(), site)

    async def person(window: LoginWindow) -> None:
        raise AssertionError("no window should have been opened")

    assert isinstance(await hand(tmp_path, site, person), HeldBy)
