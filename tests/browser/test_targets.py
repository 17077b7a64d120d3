"""Targets: ids that mean one page for one owner, popups that stay in bounds, dialogs that hang nothing."""

from dataclasses import replace

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nova_mcp.browser.act.navigate import navigate
from nova_mcp.browser.process.runtime import Browser
from nova_mcp.browser.state.sandbox import MAX_TABS, Shares
from nova_mcp.browser.state.sandboxes import sandbox_letters
from nova_mcp.browser.targets.registry import MAX_TABS_PER_SANDBOX, Seat, Tab, TabQuery
from nova_mcp.browser.targets.tab import POPUPS_KEPT
from nova_mcp.core.leases import Place
from nova_mcp.errors import InvalidParams, NotFound, Precondition, Unavailable
from nova_mcp.evidence.model import Caller
from nova_mcp.evidence.targets.journal import TargetOpened
from nova_mcp.memory.claims.rules import Wish

from .conftest import Site, eventually

# Every test begins with a sandbox of its own.
FRESH = True


def other_agent(caller: Caller, agent_id: str = "second") -> Caller:
    return Caller(caller.principal, agent_id, caller.server_id)


async def test_without_a_tab_active_names_the_way_out(browser: Browser, caller: Caller) -> None:
    with pytest.raises(NotFound) as caught:
        await browser.targets.resolve(caller, "active")
    assert caught.value.reason_code == "tab.no_active_tab"


async def test_a_tab_is_found_by_id_sandbox_and_active(browser: Browser, caller: Caller) -> None:
    first = await browser.targets.open_tab(caller)
    second = await browser.targets.open_tab(caller)
    assert first.sandbox_id == second.sandbox_id
    assert await browser.targets.resolve(caller, first.target_id) is first
    assert await browser.targets.resolve(caller) is second
    first.last_activity_ms = second.last_activity_ms + 1
    assert await browser.targets.resolve(caller, first.sandbox_id) is first
    assert browser.targets.activate(caller, first) == second.target_id
    assert await browser.targets.resolve(caller) is first


async def test_one_agents_switch_never_moves_anothers(browser: Browser, caller: Caller) -> None:
    other = other_agent(caller)
    mine = await browser.targets.open_tab(caller)
    theirs = await browser.targets.open_tab(other)
    assert mine.sandbox_id == theirs.sandbox_id
    browser.targets.activate(other, mine)
    assert await browser.targets.resolve(caller) is mine
    assert await browser.targets.resolve(other) is mine
    browser.targets.activate(other, theirs)
    assert await browser.targets.resolve(caller) is mine


async def test_another_principals_tabs_do_not_exist(browser: Browser, caller: Caller) -> None:
    tab = await browser.targets.open_tab(caller)
    stranger = Caller("stranger", "default", caller.server_id)
    with pytest.raises(InvalidParams) as caught:
        await browser.targets.resolve(stranger, tab.target_id)
    assert caught.value.reason_code == "tab.unknown"
    assert caught.value.details == {}
    with pytest.raises(InvalidParams) as caught:
        await browser.targets.resolve(stranger, tab.sandbox_id)
    assert caught.value.reason_code == "sandbox.unknown"
    assert browser.targets.list_tabs(stranger) == []
    assert browser.targets.find(stranger, tab.target_id) is None


async def test_a_closed_tab_is_remembered_and_its_id_is_not_given_again(browser: Browser, caller, site: Site) -> None:
    tab = await browser.targets.open_tab(caller)
    await navigate(tab, site.url("html?title=bye"))
    assert await browser.targets.close_tab(tab)
    assert not await browser.targets.close_tab(tab)
    with pytest.raises(InvalidParams) as caught:
        await browser.targets.resolve(caller, tab.target_id)
    seen = caught.value.details["lastSeen"]
    assert isinstance(seen, dict)
    assert (seen["url"], seen["endReason"]) == (site.url("html?title=bye"), "closed")
    assert (await browser.targets.open_tab(caller)).target_id != tab.target_id
    with pytest.raises(NotFound):
        browser.targets.activate(caller, tab)
        await browser.targets.resolve(caller)


async def test_two_explicit_claims_make_active_ambiguous(browser: Browser, caller: Caller) -> None:
    tabs = [await browser.targets.open_tab(caller) for _ in range(2)]
    for tab in tabs:
        await browser.claims.claim(Wish(Place(tab.target_id, tab.sandbox_id), caller.owner), [tab])
    with pytest.raises(Precondition) as caught:
        await browser.targets.resolve(caller)
    assert caught.value.reason_code == "tab.active_ambiguous"
    listed = caught.value.details["tabs"]
    assert isinstance(listed, list)
    assert len(listed) == 2


async def test_a_new_tab_is_leased_to_its_owner(tab: Tab, caller: Caller) -> None:
    assert tab.lease is not None
    assert (tab.lease.owner, tab.lease.implicit) == (caller.owner, True)


async def test_tabs_are_listed_by_what_was_asked(browser: Browser, caller: Caller, site: Site) -> None:
    mine = await browser.targets.open_tab(caller)
    theirs = await browser.targets.open_tab(other_agent(caller))
    await navigate(theirs, site.url("html", host="localhost"))
    tabs = browser.targets
    assert tabs.list_tabs(caller) == [mine, theirs]
    assert tabs.list_tabs(caller, TabQuery(mine=True)) == [mine]
    assert tabs.list_tabs(caller, TabQuery(active_only=True)) == [mine]
    assert tabs.list_tabs(caller, TabQuery(domain="localhost")) == [theirs]
    assert tabs.list_tabs(caller, TabQuery(sandbox_id="ZZZ")) == []


async def test_sandboxes_share_no_cookie(browser: Browser, caller: Caller, site: Site) -> None:
    first = await browser.targets.open_tab(caller)
    sandbox = await browser.sandboxes.create(caller.owner)
    second = await browser.targets.open_tab(caller, sandbox.sandbox_id)
    assert first.sandbox_id != second.sandbox_id
    assert len(sandbox.sandbox_ref) == 32
    for tab in (first, second):
        await navigate(tab, site.url("html"))
    await first.page.evaluate("document.cookie = 'a=1'; localStorage.b = '2'")
    assert await second.page.evaluate("document.cookie + (localStorage.b ?? '')") == ""


async def test_limits_are_kept_while_tabs_are_still_opening(browser: Browser, caller: Caller) -> None:
    tab = await browser.targets.open_tab(caller)
    opening = {Seat(tab.sandbox_id) for _ in range(MAX_TABS_PER_SANDBOX - 1)}
    browser.targets._seats |= opening
    try:
        with pytest.raises(Precondition) as caught:
            await browser.targets.open_tab(caller)
    finally:
        browser.targets._seats -= opening
    assert caught.value.reason_code == "tab.limit_reached"


async def test_popups_that_are_still_being_taken_in_count_for_the_page_that_opened_them(
    browser: Browser, caller: Caller, site: Site
) -> None:
    tab = await browser.targets.open_tab(caller)
    await navigate(tab, site.url("host/popups.html"))
    coming = {Seat(tab.sandbox_id, tab.target_id) for _ in range(POPUPS_KEPT)}
    browser.targets._seats |= coming
    try:
        async with tab.page.expect_popup() as opened:
            await tab.page.evaluate("document.getElementById('one').click()")
        popup = await opened.value
        if not popup.is_closed():
            await popup.wait_for_event("close")
    finally:
        browser.targets._seats -= coming
    assert browser.targets.list_tabs(caller, TabQuery()) == [tab]


async def test_a_tab_whose_row_is_still_being_written_counts_once(
    browser: Browser, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await browser.targets.open_tab(caller)
    opening = {Seat(first.sandbox_id) for _ in range(MAX_TABS_PER_SANDBOX - 3)}
    browser.targets._seats |= opening
    write, writing, go_on = browser.targets._journal.opened, anyio.Event(), anyio.Event()

    async def slowly(row: TargetOpened) -> None:
        writing.set()
        await go_on.wait()
        await write(row)

    monkeypatch.setattr(browser.targets._journal, "opened", slowly)
    opened: list[Tab] = []

    async def another() -> None:
        opened.append(await browser.targets.open_tab(caller))

    try:
        async with anyio.create_task_group() as group:
            group.start_soon(another)
            await writing.wait()
            group.start_soon(another)
            await anyio.wait_all_tasks_blocked()
            go_on.set()
    finally:
        browser.targets._seats -= opening
    assert len(opened) == 2


async def test_all_sandboxes_together_have_a_limit_too(browser: Browser, caller: Caller) -> None:
    sandbox = await browser.sandboxes.first(caller.owner)
    opening = {Seat("elsewhere") for _ in range(MAX_TABS - len(browser.targets))}
    browser.targets._seats |= opening
    try:
        with pytest.raises(Precondition) as caught:
            await browser.targets.open_tab(caller, sandbox.sandbox_id)
    finally:
        browser.targets._seats -= opening
    assert (caught.value.reason_code, "200 tabs" in caught.value.message) == ("tab.limit_reached", True)


async def test_one_principal_leaves_tabs_to_the_others(
    browser: Browser, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(browser.sandboxes, "_parts", replace(browser.sandboxes._parts, shares=Shares(tabs=3)))
    opening = {Seat("elsewhere", principal=caller.principal) for _ in range(3)}
    browser.targets._seats |= opening
    try:
        with pytest.raises(Precondition) as caught:
            await browser.targets.open_tab(caller)
        other = await browser.targets.open_tab(replace(caller, principal="another"))
    finally:
        browser.targets._seats -= opening
    assert (caught.value.reason_code, "3 tabs of yours" in caught.value.message) == ("tab.limit_reached", True)
    assert other.principal == "another"


# -- popups


async def test_a_popup_becomes_a_tab_and_leaves_active_alone(browser: Browser, caller, tab: Tab, site: Site) -> None:
    await navigate(tab, site.url("host/popups.html"))
    for button in ("#one", "#noopener"):
        async with tab.watch() as window:
            await tab.page.click(button)
            assert await window.wait_for(lambda w=window: bool(w.new_tabs), 5000)
        popup = await browser.targets.resolve(caller, window.new_tabs[0])
        assert (popup.opener_target_id, popup.sandbox_id, popup.owner) == (tab.target_id, tab.sandbox_id, caller.owner)
        assert await popup.channel.evaluate("typeof globalThis.__nova") == "object"
    assert await browser.targets.resolve(caller) is tab


async def test_of_thirty_popups_five_stay_and_the_rest_is_counted(browser: Browser, caller, tab, site: Site) -> None:
    await navigate(tab, site.url("host/popups.html"))
    async with tab.watch() as window:
        await tab.page.click("#thirty")
        assert await window.wait_for(lambda: len(window.new_tabs) + window.popups_closed == 30, 20_000)
    assert (len(window.new_tabs), window.popups_closed) == (POPUPS_KEPT, 25)
    assert len(browser.targets.list_tabs(caller)) == 1 + POPUPS_KEPT
    assert await browser.targets.resolve(caller) is tab


async def test_popups_without_an_action_are_limited_too(browser: Browser, caller, tab: Tab, site: Site) -> None:
    await navigate(tab, site.url("host/popups.html"))
    await tab.page.evaluate("document.getElementById('thirty').click()")
    await eventually(lambda: tab.popups_closed == 25)
    assert len(browser.targets.list_tabs(caller)) == 1 + POPUPS_KEPT


async def test_a_page_that_closes_itself_ends_its_tab(browser: Browser, caller, tab: Tab, site: Site) -> None:
    await navigate(tab, site.url("host/popups.html"))
    async with tab.watch() as window:
        await tab.page.click("#one")
        assert await window.wait_for(lambda: bool(window.new_tabs), 5000)
    popup = await browser.targets.resolve(caller, window.new_tabs[0])
    await popup.page.evaluate("setTimeout(() => window.close(), 0)")
    await popup.channel.closed()
    await eventually(lambda: popup not in browser.targets.list_tabs(caller))


async def test_closing_is_quick_even_when_the_page_would_ask(browser: Browser, tab: Tab, site: Site) -> None:
    await navigate(tab, site.url("host/leaving.html"))
    await tab.page.click("#text")
    assert await browser.targets.close_tab(tab)
    assert tab.page.is_closed()


# -- dialogs


@pytest.mark.parametrize(
    ("button", "orders", "title", "answer"),
    [
        ("#alert", {}, "after alert", "accepted"),
        ("#confirm", {}, "false", "dismissed"),
        ("#confirm", {"on_dialog": "accept"}, "true", "accepted"),
        ("#prompt", {}, "null", "dismissed"),
        ("#prompt", {"on_dialog": "accept", "prompt_text": "me"}, "me", "accepted"),
        ("#prompt", {"on_dialog": "accept"}, "nobody", "accepted"),
    ],
)
async def test_dialogs_are_answered_as_ordered_and_reported(tab, site, button, orders, title, answer) -> None:
    await navigate(tab, site.url("host/dialogs.html"))
    async with tab.watch(**orders) as window:
        await tab.page.click(button)
        assert await window.wait_for(lambda: bool(window.dialogs), 5000)
    assert await tab.read_title() == title
    assert [(seen.type, seen.answer) for seen in window.dialogs] == [(button[1:], answer)]


async def test_a_dialog_storm_replaces_the_page_under_the_same_id(browser: Browser, caller, tab, site: Site) -> None:
    await navigate(tab, site.url("host/dialogs.html"))
    channel, epoch = tab.channel, tab.page_epoch
    async with anyio.create_task_group() as group, tab.watch() as window:
        point = await tab.page.locator("#storm").bounding_box()

        async def press() -> None:
            with pytest.raises(Exception):  # noqa: B017
                await tab.page.mouse.click(point["x"] + 5, point["y"] + 5)

        group.start_soon(press)
        with anyio.fail_after(20):
            await channel.closed()
        assert window.dialog_storm
        assert len(window.dialogs) == 6
    with pytest.raises(Unavailable) as caught:
        await channel.ask("state")
    assert caught.value.reason_code == "dialog.storm"
    assert await browser.targets.resolve(caller, tab.target_id) is tab
    assert (tab.state in ("ready", "loading"), tab.url) == (True, site.url("host/dialogs.html"))
    report = await navigate(tab, site.url("html?title=alive"))
    assert (report.status, report.title) == ("ok", "alive")
    assert tab.page_epoch > epoch


async def test_a_page_that_storms_while_loading_ends_in_a_typed_answer(browser, caller, tab, site) -> None:
    with pytest.raises(Unavailable) as caught:
        await navigate(tab, site.url("host/storm_on_load.html"))
    assert caught.value.reason_code == "dialog.storm"
    assert await browser.targets.resolve(caller, tab.target_id) is tab
    report = await navigate(tab, site.url("html?title=alive"))
    assert (report.status, report.title) == ("ok", "alive")


async def test_many_tabs_do_not_wait_for_each_other(browser: Browser, caller: Caller, site: Site) -> None:
    stuck = await browser.targets.open_tab(caller)
    await navigate(stuck, site.url("html?title=stuck"))
    await stuck.channel.evaluate("setTimeout(() => {for(;;);}, 0); 1")
    titles: dict[int, str] = {}

    async def visit(number: int) -> None:
        agent = other_agent(caller, f"agent{number}")
        tab = await browser.targets.open_tab(agent)
        await navigate(tab, site.url(f"html?title=t{number}"))
        titles[number] = (await browser.targets.resolve(agent)).title

    async with stuck.lock.exclusive(), anyio.create_task_group() as group:
        for number in range(12):
            group.start_soon(visit, number)
    assert titles == {number: f"t{number}" for number in range(12)}


def test_letters_follow_the_alphabet() -> None:
    assert [sandbox_letters(n) for n in (1, 2, 26, 27, 52, 53, 702, 703)] == [
        *("A", "B", "Z", "AA", "AZ", "BA", "ZZ", "AAA")
    ]
    with pytest.raises(ValueError):
        sandbox_letters(0)


@given(st.integers(1, 10**6), st.integers(1, 10**6))
def test_no_two_numbers_share_letters(one: int, two: int) -> None:
    assert (sandbox_letters(one) == sandbox_letters(two)) == (one == two)
