"""Pages can't grow the processes around them: what is kept of them is forgotten, and those that flood are closed."""

import os
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nova_mcp.browser.process import runtime
from nova_mcp.browser.process.chromium import memory_of
from nova_mcp.browser.process.page_meter import FLOOD_CHARS, FLOOD_EVENTS, WINDOW_MS, PageMeter, size_of

from .conftest import Site, eventually
from .nova_kit import NovaClient, open_nova

MB = 1_000_000
# What the driver may have in use before pages are looked at; it begins with about 130 MB.
LIMIT_MB = 250
# A driver that much above its limit is replaced at once; the rest is what comes between two looks.
EXCESS_MB = 300 + 100
# A storm ends after ten seconds, however few rounds a busy machine has made.
ROUNDS = 400
STORMS = {
    "lines of the console": "console.log(n + big)",
    "errors": "setTimeout(() => { throw new Error(n + big); })",
    "addresses of pictures": "new Image().src = '/x?' + n + big",
    "addresses of requests": "fetch('/x?' + n + big).catch(() => 0)",
    "addresses of the page": "history.pushState(0, '', '?' + n + big)",
    "messages": "postMessage(n + big, '*')",
}
PAGE = """<p>storm</p><script>
const big = 'x'.repeat(1e6); let n = 0;
const storm = setInterval(() => {
  if (++n > %d || performance.now() > 10000) { clearInterval(storm); new Image().src = '/over'; }
  else try { %s } catch {}
}, 20);
</script>"""


@pytest.fixture(scope="module")
async def nova(tmp_path_factory: pytest.TempPathFactory, server: Site) -> AsyncIterator[NovaClient]:
    # A storm keeps the processor busy; on a crowded machine that must not look like a hanging browser at once.
    budget = {"driver_memory_mb": LIMIT_MB, "hang_timeout_s": 20}
    async with open_nova(tmp_path_factory.mktemp("budget"), server, browser=budget) as running:
        yield running


@pytest.mark.parametrize("storm", STORMS)
async def test_a_storm_of_long_texts_grows_neither_driver_nor_server(nova: NovaClient, site: Site, storm: str) -> None:
    browser, before = nova.nova._parts.browser, memory_of(os.getpid())
    target = str((await nova.call("tab_new"))["targetId"])
    await nova.show(PAGE % (ROUNDS, STORMS[storm]), targetId=target)
    tab, highest = nova.tab(target), [0, 0]
    page = tab.page

    def over() -> bool:
        driver = 0 if browser._driver is None else memory_of(browser._driver.pid)
        highest[:] = max(highest[0], driver), max(highest[1], memory_of(os.getpid()) - before)
        return tab.page is not page or tab.channel.state != "ready" or "/over" in site.seen

    await eventually(over)
    assert highest[0] < (LIMIT_MB + EXCESS_MB) * MB
    assert highest[1] < EXCESS_MB * MB
    told = await nova.call("navigate", targetId=target, url=site.url("html?title=after"))
    assert told["ok"], told
    await nova.call("tab_close", targetId=target)


async def test_a_page_that_floods_is_closed_with_its_reason(nova: NovaClient, site: Site) -> None:
    target = str((await nova.call("tab_new"))["targetId"])
    await nova.show(PAGE % (10 * ROUNDS, "console.log(n + big)"), targetId=target)
    tab = nova.tab(target)
    page = tab.page
    await eventually(lambda: tab.page is not page and tab.url == "about:blank")
    told = await nova.call("navigate", targetId=target, url=site.url("html?title=after"))
    assert any("too many console lines" in warning for warning in told["warnings"]), told
    await nova.call("tab_close", targetId=target)


async def test_a_driver_far_above_its_limit_is_replaced_at_once_and_the_loss_says_why(
    nova: NovaClient, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = nova.nova._parts.browser
    target = str((await nova.call("tab_new"))["targetId"])
    full = browser._driver
    assert full is not None
    far_above = LIMIT_MB * MB + runtime.MEMORY_EXCESS + 1
    monkeypatch.setattr(runtime, "memory_of", lambda pid: far_above if pid == full.pid else 0)
    await eventually(lambda: nova.tab(target).state == "lost" and not full.running)
    told = await nova.call("perceive", targetId=target)
    assert (told["ok"], told["reasonCode"]) == (False, "tab.lost"), told
    assert "memory" in told["message"], told
    told = await nova.call("navigate", targetId=target, url=site.url("html?title=after"))
    assert told["ok"], told
    assert browser._driver is not None
    assert browser._driver.running
    await nova.call("tab_close", targetId=target)


# -- counting


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def line(size: int) -> dict[str, object]:
    return {"type": "log", "args": [{"type": "string", "value": "x" * size}]}


@given(st.lists(st.integers(0, 1000), max_size=50))
def test_what_is_within_the_budget_is_no_flood(sizes: list[int]) -> None:
    meter = PageMeter(Clock())
    for size in sizes:
        meter.take(line(size))
    assert (meter.total, meter.unforgotten, meter.flooded) == (sum(sizes), sum(sizes), False)
    meter.forget()
    assert (meter.total, meter.unforgotten) == (sum(sizes), 0)


@pytest.mark.parametrize(("size", "times"), [(FLOOD_CHARS // 10, 11), (0, FLOOD_EVENTS + 1)])
def test_a_flood_is_one_for_ten_seconds(size: int, times: int) -> None:
    clock = Clock()
    meter = PageMeter(clock)
    event = line(size)
    for _ in range(times):
        meter.take(event)
    assert meter.flooded
    clock.now += WINDOW_MS
    assert not meter.flooded


@pytest.mark.parametrize(
    ("event", "size"),
    [
        ({"frameId": "a", "url": "12345"}, 5),
        ({"args": [{"type": "number", "value": 7, "description": "7"}, {"type": "string", "value": "abc"}]}, 4),
        ({"exceptionDetails": {"text": "Uncaught", "exception": {"description": "Error: x"}}}, 16),
        ({"exceptionDetails": {"text": "Uncaught"}}, 8),
        ({"request": {"url": "1234", "postData": "56"}}, 6),
        ({"response": {"payloadData": "123"}}, 3),
        ({}, 0),
    ],
)
def test_only_what_pages_make_long_counts(event: dict[str, object], size: int) -> None:
    assert size_of(event) == size
