"""Navigation tells what happened: the page, the server's refusal, the network's failure, or the policy's no."""

from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from network_kit import names_of_this_machine
from nova_mcp.browser.act.navigate import back, forward, navigate, reload
from nova_mcp.browser.act.navigation_report import LoadOptions, is_challenge, judge_arrival, judge_failure, net_error_of
from nova_mcp.browser.process.runtime import Browser
from nova_mcp.browser.targets.registry import Tab
from nova_mcp.core.policy import NavigationPolicy
from nova_mcp.errors import InvalidParams, PolicyDenied, Precondition, Unavailable

from .conftest import Site, make_browser, make_caller

# Every test begins with a sandbox of its own.
FRESH = True

FAST = LoadOptions(timeout_ms=400)
# Long enough for a busy machine to commit a document; what the test waits for never comes.
PATIENT_MS = 4000


async def body(tab: Tab) -> object:
    return await tab.channel.evaluate("document.body ? document.body.innerText.trim() : ''")


async def test_a_page_that_arrives_is_verified(tab: Tab, site: Site) -> None:
    report = await navigate(tab, site.url("html?title=hello"))
    assert (report.status, report.reason_code, report.verified) == ("ok", None, True)
    assert (report.http_status, report.title, report.load_state) == (200, "hello", "domcontentloaded")
    assert report.url == tab.url == site.url("html?title=hello")
    assert report.page_epoch == tab.page_epoch


async def test_redirects_are_listed_in_order(tab: Tab, site: Site) -> None:
    first = site.url(f"redirect?to={site.url('redirect?to=/html')}")
    report = await navigate(tab, first)
    assert report.status == "ok"
    assert report.redirects == (first, site.url("redirect?to=/html"))
    assert report.url == site.url("html")


async def test_an_http_error_is_partial_and_shows_the_servers_page(tab: Tab, site: Site) -> None:
    report = await navigate(tab, site.url("missing"))
    assert (report.status, report.reason_code, report.http_status) == ("partial", "navigation.http_error", 404)
    assert not report.verified
    assert await body(tab) == "nothing here"


async def test_an_http_error_without_content_is_not_replaced_by_the_browsers_page(tab: Tab, site: Site) -> None:
    report = await navigate(tab, site.url("redirect?status=404&to=/"))
    assert (report.status, report.reason_code, report.http_status) == ("partial", "navigation.http_error", 404)
    assert report.url == "about:blank"
    assert await body(tab) == ""


@pytest.mark.parametrize(
    ("url", "net_error"),
    [
        ("http://127.0.0.1:{refused}/", "ERR_CONNECTION_REFUSED"),
        ("http://nowhere.invalid/", "ERR_NAME_NOT_RESOLVED"),
        ("https://127.0.0.1:{port}/", "ERR_SSL_PROTOCOL_ERROR"),
        ("http://127.0.0.1:{port}/loop", "ERR_TOO_MANY_REDIRECTS"),
    ],
)
async def test_a_network_error_has_its_name_and_no_error_page(
    tab: Tab, site: Site, refused_port: int, url: str, net_error: str
) -> None:
    report = await navigate(tab, url.format(refused=refused_port, port=site.port))
    assert (report.status, report.reason_code, report.net_error) == ("failed", "navigation.failed", net_error)
    assert (report.url, report.title, report.http_status) == ("about:blank", "", None)
    assert await body(tab) == ""
    again = await navigate(tab, site.url("html?title=next"))
    assert (again.status, again.title) == ("ok", "next")


async def test_a_clicked_link_that_fails_leaves_no_error_page_to_read(tab: Tab, site: Site, refused_port: int) -> None:
    await navigate(tab, site.url(f"html?body=<a href='http://127.0.0.1:{refused_port}/'>go</a>"))
    async with tab.watch() as window:
        await tab.page.click("a")
        assert await window.wait_for(lambda: any(n.url == "about:blank" for n in window.navigations), 5000)
    assert await body(tab) == ""
    assert tab.url == "about:blank"


async def test_no_answer_in_time_fails_and_keeps_the_page(tab: Tab, site: Site) -> None:
    await navigate(tab, site.url("html?title=before"))
    report = await navigate(tab, site.url("never"), FAST)
    assert (report.status, report.reason_code) == ("failed", "navigation.timeout")
    assert (report.url, report.title) == (site.url("html?title=before"), "before")


async def test_a_page_that_never_finishes_is_partial_after_commit(tab: Tab, site: Site) -> None:
    report = await navigate(tab, site.url("half"), LoadOptions(timeout_ms=PATIENT_MS))
    assert (report.status, report.reason_code) == ("partial", "navigation.wait_for_load_timeout")
    assert (report.load_state, report.http_status) == ("commit", 200)


async def test_commit_does_not_wait_for_the_rest(tab: Tab, site: Site) -> None:
    report = await navigate(tab, site.url("half"), LoadOptions("commit"))
    assert (report.status, report.load_state) == ("ok", "commit")


async def test_a_file_is_reported_and_the_page_stays(tab: Tab, site: Site) -> None:
    await navigate(tab, site.url("html?title=before"))
    report = await navigate(tab, site.url("download"))
    assert (report.status, report.reason_code) == ("partial", "navigation.became_download")
    assert [download.file_name for download in report.downloads] == ["a.bin"]
    assert report.title == "before"


async def test_an_answer_without_content_keeps_the_page(tab: Tab, site: Site) -> None:
    await navigate(tab, site.url("html?title=before"))
    report = await navigate(tab, site.url("nothing"))
    assert (report.status, report.reason_code, report.http_status) == ("failed", "navigation.failed", 204)
    assert report.title == "before"


async def test_a_page_that_asks_to_stay_blocks_until_forced(tab: Tab, site: Site) -> None:
    await navigate(tab, site.url("html?title=first"))
    await navigate(tab, site.url("host/leaving.html"))
    await tab.page.fill("#text", "unsaved work")
    await tab.page.click("#text")
    for attempt in (navigate(tab, site.url("html?title=away")), back(tab), reload(tab)):
        report = await attempt
        assert (report.status, report.reason_code) == ("blocked", "navigation.beforeunload_blocked")
        assert await tab.page.input_value("#text") == "unsaved work"
    report = await navigate(tab, site.url("html?title=away"), LoadOptions(force=True))
    assert (report.status, report.title) == ("ok", "away")


async def test_back_and_forward_move_and_know_their_ends(tab: Tab, site: Site) -> None:
    await navigate(tab, site.url("html?title=one"))
    with pytest.raises(Precondition) as caught:
        await back(tab)
    assert caught.value.reason_code == "navigation.cannot_go_back"
    await navigate(tab, site.url("html?title=two"))
    report = await back(tab)
    assert (report.status, report.title, report.http_status) == ("ok", "one", 200)
    report = await forward(tab)
    assert (report.status, report.title) == ("ok", "two")
    with pytest.raises(Precondition) as caught:
        await forward(tab)
    assert caught.value.reason_code == "navigation.cannot_go_forward"


async def test_back_steps_over_a_load_that_failed(tab: Tab, site: Site, refused_port: int) -> None:
    await navigate(tab, site.url("html?title=one"))
    await navigate(tab, f"http://127.0.0.1:{refused_port}/")
    report = await back(tab)
    assert (report.status, report.title) == ("ok", "one")


async def test_back_inside_one_document_is_a_navigation_too(tab: Tab, site: Site) -> None:
    await navigate(tab, site.url("html?title=one"))
    epoch = tab.page_epoch
    await tab.page.evaluate("history.pushState({}, '', '#deep')")
    report = await back(tab)
    assert (report.status, report.url) == ("ok", site.url("html?title=one"))
    assert report.page_epoch == epoch


async def test_reload_asks_the_server_again(tab: Tab, site: Site) -> None:
    await navigate(tab, site.url("html?title=one"))
    for hard in (False, True):
        site.seen.clear()
        report = await reload(tab, hard=hard)
        assert (report.status, report.title, report.recovered) == ("ok", "one", False)
        assert site.seen.count("/html?title=one") == 1


async def test_reload_never_sends_a_form_again(tab: Tab, site: Site) -> None:
    await navigate(tab, site.url("html?body=<form method=post action='/html?title=sent'><button>go</button></form>"))
    async with tab.page.expect_navigation():
        await tab.page.click("button")
    await tab.read_title()
    assert tab.title == "sent"
    assert site.methods[-1] == ("POST", "/html?title=sent")
    report = await reload(tab)
    assert report.status == "ok"
    assert [method for method, path in site.methods if path == "/html?title=sent"] == ["POST", "GET"]


async def test_a_page_that_loops_forever_is_revived_under_its_id(tab: Tab, site: Site) -> None:
    await navigate(tab, site.url("html?title=loop"))
    with pytest.raises(Precondition) as caught:
        await reload(tab, recover=True)
    assert caught.value.reason_code == "reload.not_needed"
    await tab.channel.evaluate("setTimeout(() => {for(;;);}, 0); 1")
    report = await reload(tab, recover=True)
    assert (report.status, report.recovered, report.title) == ("ok", True, "loop")
    assert tab.state == "ready"


async def test_a_crashed_tab_comes_back_at_its_last_address(tab: Tab, site: Site, browser: Browser, caller) -> None:
    await navigate(tab, site.url("html?title=crash"))
    epoch = tab.page_epoch
    await crash(tab)
    with pytest.raises(Unavailable):
        await back(tab)
    report = await reload(tab)
    assert (report.status, report.recovered, report.title) == ("ok", True, "crash")
    assert report.page_epoch > epoch
    assert await browser.targets.resolve(caller, tab.target_id) is tab


async def test_navigate_revives_a_crashed_tab(tab: Tab, site: Site) -> None:
    await navigate(tab, site.url("html?title=one"))
    await crash(tab)
    report = await navigate(tab, site.url("html?title=two"))
    assert (report.status, report.recovered, report.title) == ("ok", True, "two")


async def crash(tab: Tab) -> None:
    async with anyio.create_task_group() as group:

        async def press() -> None:
            with pytest.raises(Unavailable):
                await tab.channel.send("Page.crash", timeout_ms=30_000)

        group.start_soon(press)
        await tab.channel.closed()
    assert tab.state == "crashed"


async def test_settled_waits_for_quiet_and_ignores_a_ticker(tab: Tab, site: Site) -> None:
    report = await navigate(tab, site.url("host/restless.html"), LoadOptions("settled"))
    assert (report.status, report.load_state) == ("ok", "settled")


async def test_settled_sees_late_content(tab: Tab, site: Site) -> None:
    script = "<script>setTimeout(()=>document.body.append('late'),200)</script>"
    await navigate(tab, site.url(f"html?body={script}"), LoadOptions("settled"))
    assert await body(tab) == "late"


async def test_settled_ends_by_its_timeout(tab: Tab, site: Site) -> None:
    report = await navigate(
        tab, site.url("html?body=<img src=/never><img src=/never?2>"), LoadOptions("settled", PATIENT_MS)
    )
    assert (report.status, report.reason_code) == ("partial", "navigation.wait_for_load_timeout")


@pytest.mark.parametrize("url", ["/relative", "example.com", "", "http://", "127.0.0.1:80"])
async def test_an_incomplete_address_is_an_argument_error(tab: Tab, url: str) -> None:
    with pytest.raises(InvalidParams):
        await navigate(tab, url)


@pytest.mark.parametrize(
    "url", ["javascript:alert(1)", "data:text/html,x", "chrome://version", "view-source:http://a/"]
)
async def test_other_schemes_are_refused_before_anything_moves(tab: Tab, url: str) -> None:
    epoch = tab.page_epoch
    with pytest.raises(PolicyDenied) as caught:
        await navigate(tab, url)
    assert caught.value.reason_code == "policy.scheme_denied"
    assert tab.page_epoch == epoch


def test_the_verdicts_are_pure() -> None:
    assert net_error_of("Page.goto: net::ERR_FAILED at x") == "ERR_FAILED"
    assert net_error_of("something else") is None
    assert is_challenge({"cf-mitigated": "Challenge"})
    assert not is_challenge({"server": "x"})
    assert judge_arrival(403, challenge=True, waited=True, timeout_ms=1).reason_code == "navigation.challenge"
    assert judge_arrival(None, challenge=False, waited=True, timeout_ms=1).status == "ok"
    assert judge_failure(None, None, downloaded=False).reason_code == "navigation.failed"


# -- policy on the way


@pytest.fixture(scope="module")
async def guarded(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Browser]:
    """A browser that may not enter private networks, with names that lead there anyway."""
    browser = make_browser(
        tmp_path_factory.mktemp("guarded"),
        NavigationPolicy(private_network="deny", deny_hosts=("denied.test",)),
        network=names_of_this_machine(".test"),
    )
    yield browser
    await browser.aclose()


async def test_a_name_that_leads_into_a_private_network_is_blanked_before_a_read(guarded: Browser, site: Site) -> None:
    tab = await guarded.targets.open_tab(make_caller())
    report = await navigate(tab, site.url("html?body=inside", host="rebind.test"))
    assert (report.status, report.reason_code) == ("blocked", "policy.private_network")
    assert report.url == "about:blank"
    assert await body(tab) == ""
    await guarded.targets.close_tab(tab)


async def test_a_redirect_to_a_denied_host_never_leaves(tab: Tab, site: Site) -> None:
    tab.guard.policy = NavigationPolicy(deny_hosts=("localhost",))
    report = await navigate(tab, site.url(f"redirect?to={site.url('html?secret', host='localhost')}"))
    assert (report.status, report.reason_code) == ("blocked", "policy.host_denied")
    assert report.url == "about:blank"
    assert not [path for path in site.seen if "secret" in path and "redirect" not in path]
    assert await body(tab) == ""


async def test_a_clicked_link_to_a_denied_host_is_stopped_and_reported(tab: Tab, site: Site) -> None:
    target = site.url("html?secret", host="localhost")
    await navigate(tab, site.url(f"html?body=<a href='{target}'>go</a>"))
    site.seen.clear()
    tab.guard.policy = NavigationPolicy(deny_hosts=("localhost",))
    async with tab.watch() as window:
        await tab.page.click("a")
        assert await window.wait_for(lambda: window.policy_denied is not None, 5000)
        assert await window.wait_for(lambda: any(n.url == "about:blank" for n in window.navigations), 5000)
    assert await body(tab) == ""
    assert site.seen == []


async def test_a_link_on_the_disk_does_not_lead_out_of_the_allowed_folder(tab: Tab, tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (outside / "secret.html").write_text("secret")
    (inside / "page.html").write_text("<title>file</title>")
    (inside / "way.html").symlink_to(outside / "secret.html")
    tab.guard.policy = NavigationPolicy(allow_file_roots=(str(inside.resolve()),))
    assert (await navigate(tab, (inside / "page.html").as_uri())).title == "file"
    with pytest.raises(PolicyDenied) as caught:
        await navigate(tab, (inside / "way.html").as_uri())
    assert caught.value.reason_code == "policy.file_denied"
