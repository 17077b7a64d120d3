"""Sandboxes made on purpose: jars of their own, kept ones that outlive a server, deleted ones that leave nothing."""

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser as Chromium

from nova_mcp.browser.act.navigate import navigate
from nova_mcp.browser.process.runtime import Browser, BrowserHome
from nova_mcp.browser.state.sandbox_removal import delete_sandbox
from nova_mcp.browser.state.sandbox_traits import Traits
from nova_mcp.browser.state.sandboxes import MAX_SANDBOXES
from nova_mcp.browser.state.state_files import KeptFiles
from nova_mcp.browser.targets.registry import Tab
from nova_mcp.core.clock import system_ports
from nova_mcp.core.leases import Lease
from nova_mcp.core.policy import NavigationPolicy
from nova_mcp.errors import ClaimMismatch, InvalidParams, Precondition
from nova_mcp.evidence.model import ServerId
from nova_mcp.evidence.targets.journal import MemoryJournal
from nova_mcp.evidence.targets.stored_journal import StoredJournal
from nova_mcp.memory.claims.book import ClaimBook
from nova_mcp.settings import BrowserSettings
from nova_mcp.storage.engine import Database
from nova_mcp.tools.browse import navigate as navigation_tools
from nova_mcp.tools.browse import sandboxes as tools

from .conftest import Handler, Site, make_caller
from .test_persistence import FILL, READ, Server
from .tool_kit import Kit, tool_kit

FRESH = True
CALLER = make_caller(principal="local")
OTHER = make_caller("other", principal="local")
TOOLS = (tools.sandbox_create, tools.sandbox_list, tools.sandbox_delete, navigation_tools.tab_new)
WORKER = """async () => {
  const made = await navigator.serviceWorker.register('/worker');
  await navigator.serviceWorker.ready;
  const kept = await caches.open('box');
  await kept.put('/kept', new Response('cached'));
}"""
WORKER_LEFT = """async () => [
  (await navigator.serviceWorker.getRegistrations()).length,
  (await caches.keys()).length,
]"""


@pytest.fixture
async def start(tmp_path: Path, browser: Browser) -> AsyncIterator[Callable[..., Browser]]:
    """Servers of one data folder and one store, on the one Chromium of the tests."""
    started: list[Browser] = []
    db = Database.open(f"sqlite:///{tmp_path / 'nova.db'}")

    def begin(*, keep: bool = True) -> Browser:
        server_id = ServerId(f"server_{len(started)}")
        server = Server(
            BrowserSettings(),
            BrowserHome(tmp_path, server_id, keep_first=keep),
            StoredJournal(db, server_id, keep_raw_urls=True),
            NavigationPolicy(deny_hosts=("denied.test",)),
            (ports := system_ports()),
            ClaimBook(ports),
        )
        server.shared = browser
        started.append(server)
        return server

    yield begin
    for server in started:
        await server.aclose()
    await db.close()


@pytest.fixture
async def kit(start: Callable[..., Browser], tmp_path: Path) -> AsyncIterator[Kit]:
    async with tool_kit(tmp_path, start(), TOOLS, "local") as kit:
        yield kit


async def open_in(browser: Browser, sandbox_id: str, site: Site, caller=CALLER) -> Tab:
    tab = await browser.targets.open_tab(caller, sandbox_id)
    await navigate(tab, site.url("html"))
    return tab


# -- made and listed


async def test_a_sandbox_has_its_own_name_language_zone_and_size(kit: Kit, site: Site) -> None:
    made = await kit.call(
        "sandbox_create",
        name="Shop",
        purpose="compare prices",
        accountLabel="buyer",
        startUrl=site.url("html"),
        locale="de-DE",
        timezone="Asia/Tokyo",
        viewport={"width": 640, "height": 480},
    )
    assert (made["sandboxId"], made["name"], made["persist"], made["ok"]) == ("B", "Shop", False, True)
    tab = await kit.pipeline._parts.browser.targets.resolve(CALLER, made["targetId"])
    told = await tab.page.evaluate(
        "[navigator.language, Intl.DateTimeFormat().resolvedOptions().timeZone, innerWidth, innerHeight]"
    )
    assert told == ["de-DE", "Asia/Tokyo", 640, 480]
    answer = await kit.answer("sandbox_list", outputDetail="full")
    first, second = answer.structured["sandboxes"]
    assert (first["sandboxId"], first["persist"]) == ("A", True)
    assert second["sandboxRef"] == made["sandboxRef"]
    assert (second["purpose"], second["accountLabel"], second["state"]) == ("compare prices", "buyer", "ready")
    assert (second["tabCount"], second["hosts"]) == (1, ["127.0.0.1"])
    assert (second["locale"], second["timezone"], second["viewport"]["width"]) == ("de-DE", "Asia/Tokyo", 640)
    assert set(answer.structured["runtime"]) == {"browser", "version", "headless", "chromiumSandbox"}
    assert '"Shop"' in answer.text


async def test_another_principals_sandboxes_are_not_listed_and_cannot_be_deleted(kit: Kit) -> None:
    made = await kit.call("sandbox_create", name="mine")
    stranger = Kit(kit.pipeline, kit.db, "stranger")
    assert (await stranger.call("sandbox_list"))["sandboxes"] == []
    refused = await stranger.call("sandbox_delete", sandboxId=made["sandboxId"], confirm=True)
    assert (refused["errorCode"], refused["reasonCode"]) == (-32602, "sandbox.unknown")


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"timezone": "Mars/Olympus"}, "timezone"),
        ({"timezone": "../etc/passwd"}, "timezone"),
        ({"locale": "deutsch bitte"}, "locale"),
        ({"viewport": {"width": 319, "height": 480}}, "width"),
        ({"viewport": {"width": 640, "height": 480, "depth": 3}}, "depth"),
        ({"name": "x" * 65}, "name"),
        ({"startUrl": "example.com"}, "startUrl"),
    ],
)
async def test_wrong_traits_are_refused_before_anything_is_made(kit: Kit, arguments: dict[str, Any], word: str) -> None:
    refused = await kit.call("sandbox_create", **arguments)
    assert (refused["errorCode"], refused["reasonCode"]) == (-32602, "invalid_params")
    assert word in refused["message"]
    assert (await kit.call("sandbox_list"))["sandboxes"] == []


async def test_a_denied_start_address_makes_no_sandbox(kit: Kit) -> None:
    refused = await kit.call("sandbox_create", startUrl="http://denied.test/")
    assert (refused["errorCode"], refused["reasonCode"]) == (-32035, "policy.host_denied")
    assert (await kit.call("sandbox_list"))["sandboxes"] == []


async def test_a_start_page_that_fails_leaves_the_sandbox_and_says_so(kit: Kit, refused_port: int) -> None:
    made = await kit.call("sandbox_create", startUrl=f"http://127.0.0.1:{refused_port}/")
    assert (made["status"], made["reasonCode"], made["ok"]) == ("partial", "navigation.failed", False)
    assert {made["sandboxId"], "A"} == {one["sandboxId"] for one in (await kit.call("sandbox_list"))["sandboxes"]}


# -- isolation


async def test_sandboxes_share_no_cookie_storage_cache_or_service_worker(start, site: Site, monkeypatch) -> None:
    def worker(handler: Handler, query: dict[str, str]) -> None:
        handler.reply(200, b"onfetch = () => {}", Content_Type="text/javascript")

    def cached(handler: Handler, query: dict[str, str]) -> None:
        handler.reply(200, b"c", Cache_Control="max-age=600", Content_Type="text/plain")

    monkeypatch.setattr(Handler, "at_worker", worker, raising=False)
    monkeypatch.setattr(Handler, "at_cached", cached, raising=False)
    browser = start(keep=False)
    one = await browser.sandboxes.make(CALLER.owner, Traits(), persist=False)
    two = await browser.sandboxes.make(CALLER.owner, Traits(), persist=False)
    full = await open_in(browser, one.sandbox_id, site)
    await full.page.evaluate(FILL)
    await full.page.evaluate(WORKER)
    await full.page.evaluate("fetch('/cached')")
    assert await full.page.evaluate(WORKER_LEFT) == [1, 1]
    empty = await open_in(browser, two.sandbox_id, site)
    assert await empty.page.evaluate(READ) == ["", None, None, None]
    assert await empty.page.evaluate(WORKER_LEFT) == [0, 0]
    await full.page.evaluate("fetch('/cached')")
    before = site.seen.count("/cached")
    await empty.page.evaluate("fetch('/cached')")
    assert (before, site.seen.count("/cached")) == (1, 2), "cached in its own sandbox, asked for anew in the other"


# -- kept


async def test_a_kept_sandbox_is_listed_and_used_again_under_its_id(start, tmp_path: Path, site: Site) -> None:
    first = start()
    made = await first.sandboxes.make(CALLER.owner, Traits(name="Bank", timezone="Asia/Tokyo"), persist=True)
    assert made.sandbox_id == "B"
    tab = await open_in(first, "B", site)
    await tab.page.evaluate(FILL)
    await first.aclose()
    again = start()
    async with tool_kit(tmp_path, again, TOOLS, "local") as kit:
        listed = {one["sandboxId"]: one for one in (await kit.call("sandbox_list"))["sandboxes"]}
        assert (listed["B"]["name"], listed["B"]["state"], listed["B"]["persist"]) == ("Bank", "ready", True)
        assert listed["B"]["sandboxRef"] == made.sandbox_ref
        assert listed["B"]["hosts"] == ["127.0.0.1"]
        assert (await Kit(kit.pipeline, kit.db, "stranger").call("sandbox_list"))["sandboxes"] == []
    tab = await open_in(again, "B", site)
    assert (await tab.page.evaluate(READ))[:2] == ["sid=cookie-kept", "local-kept"]
    assert await tab.page.evaluate("Intl.DateTimeFormat().resolvedOptions().timeZone") == "Asia/Tokyo"
    assert (await again.sandboxes.first(CALLER.owner)).sandbox_id == "A", "the first one is another"
    assert (await again.sandboxes.make(CALLER.owner, Traits(), persist=False)).sandbox_id == "C"


async def test_a_kept_sandbox_belongs_to_one_server_at_a_time(start, tmp_path: Path, site: Site) -> None:
    first, second = start(), start()
    await first.sandboxes.make(CALLER.owner, Traits(), persist=True)
    with pytest.raises(ClaimMismatch) as caught:
        await second.targets.open_tab(CALLER, "B")
    assert caught.value.reason_code == "claim.owner_mismatch"
    assert "another Nova server" in caught.value.message
    with pytest.raises(ClaimMismatch):
        await delete_sandbox(second.targets, CALLER, "B")
    async with tool_kit(tmp_path, second, TOOLS, "local") as kit:
        states = {one["sandboxId"]: one["state"] for one in (await kit.call("sandbox_list"))["sandboxes"]}
    assert states == {"A": "unavailable", "B": "unavailable"}
    await first.aclose()
    assert (await second.targets.open_tab(CALLER, "B")).sandbox_id == "B"


async def test_an_ephemeral_server_forgets_the_first_one_and_keeps_what_was_asked_to_be_kept(start, tmp_path) -> None:
    browser = start(keep=False)
    made = await browser.sandboxes.make(CALLER.owner, Traits(), persist=True)
    await browser.aclose()
    assert [path.parent.name for path in (tmp_path / "sandboxes").glob("*/state.json")] == [made.sandbox_ref]
    assert [one.state.sandbox_id for one in await start(keep=False).sandboxes.resting("local")] == ["B"]


async def test_another_principal_does_not_get_a_kept_sandbox(start) -> None:
    first = start()
    await first.sandboxes.make(CALLER.owner, Traits(), persist=True)
    await first.aclose()
    with pytest.raises(InvalidParams) as caught:
        await start().targets.open_tab(make_caller(principal="stranger"), "B")
    assert caught.value.reason_code == "sandbox.unknown"


def test_files_of_a_newer_kind_are_not_taken_for_the_first_one(tmp_path: Path) -> None:
    folder = tmp_path / "sandboxes" / ("ab" * 16)
    folder.mkdir(parents=True)
    body = {"v": 1, "sandboxRef": "ab" * 16, "sandboxId": "B", "principal": "local", "createdAtMs": 1, "savedAtMs": 9}
    body |= {"storage": {"cookies": [], "origins": []}, "sessions": {}, "urls": [], "first": False, "traits": {}}
    (folder / "state.json").write_text(json.dumps(body))
    files = KeptFiles(tmp_path)
    taken = files.take()
    assert taken.state is None
    assert [state.sandbox_id for state in files.look("local")] == ["B"]
    taken.hold.release()


# -- deleted


def traces(place: Path, sandbox_ref: str) -> list[Path]:
    return [path for path in place.rglob("*") if sandbox_ref in str(path)]


async def test_a_deleted_kept_sandbox_leaves_no_file(start, tmp_path: Path, site: Site) -> None:
    browser = start()
    async with tool_kit(tmp_path, browser, TOOLS, "local") as kit:
        made = await kit.call("sandbox_create", persist=True, startUrl=site.url("html"))
        await kit.call("tab_new", sandboxId="B")
        downloads = tmp_path / "downloads" / made["sandboxRef"]
        downloads.mkdir(parents=True)
        (downloads / "a.bin").write_bytes(b"x")
        assert (tmp_path / "sandboxes" / made["sandboxRef"] / "state.json").exists()
        told = await kit.call("sandbox_delete", sandboxId="B", confirm=True)
        assert told == {"ok": True, "deleted": True, "tabsClosed": 2, "stateRemoved": True, "downloadsRemoved": 1}
        again = await kit.call("sandbox_delete", sandboxId="B", confirm=True)
    assert again["reasonCode"] == "sandbox.unknown"
    assert again["lastSeen"]["endReason"] == "sandbox_deleted"
    assert traces(tmp_path, made["sandboxRef"]) == []
    assert browser.targets.list_tabs(CALLER) == []
    assert (await browser.sandboxes.make(CALLER.owner, Traits(), persist=False)).sandbox_id == "C"


async def test_somebody_elses_work_inside_stops_a_deletion_before_anything_closes(start, tmp_path, site) -> None:
    browser = start(keep=False)
    async with tool_kit(tmp_path, browser, TOOLS, "local") as kit:
        await kit.call("sandbox_create", name="shared")
        mine = await open_in(browser, "B", site)
        theirs = await open_in(browser, "B", site, OTHER)
        refused = await kit.call("sandbox_delete", sandboxId="B", confirm=True)
        assert (refused["errorCode"], refused["reasonCode"]) == (-32040, "claim.owner_mismatch")
        assert refused["ownerAgentId"] == "other"
        assert [mine.state, theirs.state] == ["ready", "ready"]
        theirs.lease = Lease(OTHER.owner, 0)
        told = await kit.call("sandbox_delete", sandboxId="B", confirm=True)
    assert (told["deleted"], told["tabsClosed"], told["stateRemoved"]) == (True, 2, False)


@pytest.mark.parametrize("arguments", [{"confirm": False}, {}])
async def test_deleting_has_to_be_confirmed(kit: Kit, arguments: dict[str, Any]) -> None:
    await kit.call("sandbox_create")
    refused = await kit.call("sandbox_delete", sandboxId="B", **arguments)
    assert (refused["errorCode"], refused["reasonCode"]) == (-32602, "invalid_params")
    assert "confirm" in refused["message"]
    assert len((await kit.call("sandbox_list"))["sandboxes"]) == 2


async def test_nobody_gets_a_tab_in_a_sandbox_that_is_being_deleted(start) -> None:
    browser = start(keep=False)
    sandbox = await browser.sandboxes.make(CALLER.owner, Traits(), persist=False)
    sandbox.deleted = True
    for attempt in (browser.targets.open_tab(CALLER, sandbox.sandbox_id), browser.sandboxes.new_page(sandbox)):
        with pytest.raises(InvalidParams) as caught:
            await attempt
        assert caught.value.reason_code == "sandbox.unknown"


# -- limits


def unstarted(tmp_path: Path, **settings: int) -> Browser:
    async def never() -> Chromium:
        raise AssertionError("no browser is needed to count")

    browser = Browser(
        BrowserSettings(**settings),
        BrowserHome(tmp_path, "server"),
        MemoryJournal(),
        NavigationPolicy(),
        system_ports(),
    )
    browser.sandboxes._launch = never
    return browser


async def test_a_hundred_sandboxes_are_the_limit(tmp_path: Path) -> None:
    browser = unstarted(tmp_path)
    for _ in range(MAX_SANDBOXES - 1):
        await browser.sandboxes.make(CALLER.owner, Traits(), persist=False)
    with pytest.raises(Precondition) as caught:
        await browser.sandboxes.make(CALLER.owner, Traits(), persist=True)
    assert caught.value.reason_code == "sandbox.limit_reached"
    assert list((tmp_path / "sandboxes").glob("*/*")) == [], "a refused one leaves nothing"


async def test_one_principal_leaves_sandboxes_to_the_others(tmp_path: Path) -> None:
    browser = unstarted(tmp_path, sandboxes_per_principal=3)
    for _ in range(2):
        await browser.sandboxes.make(CALLER.owner, Traits(), persist=False)
    for persist in (False, True):
        with pytest.raises(Precondition) as caught:
            await browser.sandboxes.make(CALLER.owner, Traits(), persist=persist)
        assert (caught.value.reason_code, "yours" in caught.value.message) == ("sandbox.limit_reached", True)
    assert await browser.sandboxes.make(("another", "agent"), Traits(), persist=False)


async def test_kept_ones_that_rest_on_the_disk_count_too(tmp_path: Path) -> None:
    for number in range(MAX_SANDBOXES):
        folder = tmp_path / "sandboxes" / f"{number:032x}"
        folder.mkdir(parents=True)
        (folder / "state.json").write_text("{}")
    with pytest.raises(Precondition) as caught:
        await unstarted(tmp_path).sandboxes.make(CALLER.owner, Traits(), persist=True)
    assert caught.value.reason_code == "sandbox.limit_reached"
