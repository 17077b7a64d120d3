"""The rounds behind `bench browser`: every server does the same, in turn, on the same pages."""

import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import anyio
from playwright.async_api import Page, async_playwright

from bench.browser_pages import Shop, product
from bench.browser_tasks import ROUTES, Route
from bench.driving import new_hand, nova_here
from bench.peers import Cpu, Hand, Maker, Said, TooSlow, WentWrong, running

SAVED: Final = "Saved list changed"
# After its load event a page is still being drawn. Some servers wait for that inside their navigation and others don't,
# so everybody's first look comes after the same rest; the time to open a page and see it is told beside it.
REST_S: Final = 0.5
HUGE: Final = ("nodes", "buttons")
# What one server may spend on one huge page; slow ones give fewer values, and the table says how many.
HUGE_BUDGET_S: Final = 120.0


@dataclass(slots=True)
class Series:
    """Times of one measure on one server; a note says why there are fewer than asked for."""

    ms: list[float] = field(default_factory=list)
    cpu: Cpu = field(default_factory=Cpu)
    read: int | None = None
    note: str = ""


@dataclass(slots=True)
class Figures:
    """Measure by measure, server by server."""

    names: Sequence[str]
    series: dict[str, dict[str, Series]] = field(default_factory=dict)

    def of(self, measure: str, server: str) -> Series:
        return self.series.setdefault(measure, {name: Series() for name in self.names})[server]

    def add(self, measure: str, server: str, *said: Said) -> Said:
        series = self.of(measure, server)
        series.ms.append(sum(one.ms for one in said))
        series.cpu = sum((one.cpu for one in said), series.cpu)
        if series.read is None:
            series.read = sum(one.read for one in said)
        return said[-1]


def turns(names: Sequence[str], rounds: int) -> list[str]:
    """Who is measured when: everybody once a round, and nobody always first."""
    return [names[(number + step) % len(names)] for number in range(rounds) for step in range(len(names))]


# -- cold start


async def cold_starts(makers: Sequence[Maker], shop: Shop, rounds: int) -> Figures:
    """From the start of the process to the list of tools, and on to the first page.

    Each server keeps its folder from start to start, as it does in real life; the browser's profile is fresh. The very
    first start, which also fills the disk's cache and lays out what a server wants to keep, is told apart.
    """
    figures = Figures([maker.name for maker in makers])
    by_name = {maker.name: maker for maker in makers}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        for number, name in enumerate([*by_name, *turns(figures.names, rounds)]):
            if figures.of("start to first page", name).note:
                continue
            try:
                listed, opened, cpu = await _cold(by_name[name], shop, Path(folder) / name)
            except (TooSlow, WentWrong, TimeoutError) as problem:
                figures.of("start to first page", name).note = str(problem) or "did not start in time"
                continue
            if number < len(by_name):
                figures.of("very first start to first page", name).ms.append(opened)
                continue
            figures.of("start to tools/list", name).ms.append(listed)
            whole = figures.of("start to first page", name)
            whole.ms.append(opened)
            whole.cpu += cpu
    return figures


async def _cold(maker: Maker, shop: Shop, folder: Path) -> tuple[float, float, Cpu]:
    begun = time.perf_counter()
    async with running([maker], folder) as hands:
        server = hands[maker.name].server
        await server.listed()
        listed = (time.perf_counter() - begun) * 1000
        await hands[maker.name].open(shop.url("tiny"))
        opened = (time.perf_counter() - begun) * 1000
        return listed, opened, server.worked()


# -- everyday pages


async def everyday(hands: dict[str, Hand], shop: Shop, rounds: int) -> Figures:
    """Opening, looking, clicking, typing and taking pictures on the tiny and the medium page."""
    figures = Figures(list(hands))
    for hand in hands.values():
        await hand.open(shop.url("shop"))
    for number, name in enumerate(turns(list(hands), rounds)):
        broken = figures.of("problems", name)
        if broken.note:
            continue
        try:
            await _tiny_round(hands[name], shop, figures, name, number)
            await _medium_round(hands[name], shop, figures, name, number)
        except (TooSlow, WentWrong) as problem:
            broken.note = str(problem)
    return figures


async def _tiny_round(hand: Hand, shop: Shop, figures: Figures, name: str, number: int) -> None:
    figures.add("navigate, tiny", name, await hand.open(shop.url("tiny")))
    await anyio.sleep(REST_S)
    look = figures.add("look, tiny", name, await hand.look())
    button = hand.mark(look, "button", "Save for later")
    figures.add("click, tiny", name, await hand.click(button))
    figures.add("click and see, tiny", name, *await hand.click_and_see(button, SAVED))
    figures.add("type, tiny", name, await hand.type(hand.mark(look, "textbox", "Quantity"), str(number + 2)))


async def _medium_round(hand: Hand, shop: Shop, figures: Figures, name: str, number: int) -> None:
    figures.add("open and look at once, medium", name, await hand.open(shop.url("shop")), await hand.look())
    figures.add("navigate, medium", name, await hand.open(shop.url("shop")))
    await anyio.sleep(REST_S)
    look = figures.add("look, medium", name, await hand.look())
    figures.add("click, medium", name, await hand.click(hand.mark(look, "button", f"Save {product(0)}")))
    search = hand.mark(look, "searchbox", "Search products")
    figures.add("type, medium", name, await hand.type(search, f"birch stool {number}"))
    figures.add("look again, medium", name, await hand.look())
    figures.add("screenshot, medium", name, await hand.picture())


# -- huge pages


async def huge(makers: Sequence[Maker], shop: Shop, rounds: int) -> Figures:
    """Opening once and looking again and again; each page on fresh servers, since a slow look may never end."""
    figures = Figures([maker.name for maker in makers])
    for page in HUGE:
        async with running(makers) as hands:
            spent = dict.fromkeys(hands, 0.0)
            for name, hand in hands.items():
                # The browser starts with the first page, and that belongs to the cold start.
                await hand.open(shop.url("tiny"))
                await _measured(figures, f"navigate, {page}", name, partial(hand.open, shop.url(page)))
            for name in turns(list(hands), rounds):
                series = figures.of(f"look, {page}", name)
                if series.note:
                    continue
                if spent[name] > HUGE_BUDGET_S:
                    series.note = f"stopped after {HUGE_BUDGET_S:.0f} s"
                    continue
                begun = time.perf_counter()
                await _measured(figures, f"look, {page}", name, hands[name].look)
                spent[name] += time.perf_counter() - begun
    return figures


async def _measured(figures: Figures, measure: str, name: str, step: Callable[[], Awaitable[Said]]) -> None:
    try:
        figures.add(measure, name, await step())
    except (TooSlow, WentWrong) as problem:
        figures.of(measure, name).note = str(problem)


# -- jobs


@dataclass(frozen=True, slots=True)
class Done:
    """One job done once: what the model had to read and write for it."""

    read: int
    written: int
    calls: int
    seconds: float


async def jobs(hands: dict[str, Hand], shop: Shop, rounds: int) -> dict[Route, list[Done] | str]:
    """Each job by each route, in turn; a route that fails is told with its reason."""
    found: dict[Route, list[Done] | str] = {route: [] for route in ROUTES if route.server in hands}
    for _ in range(rounds):
        for route, done in found.items():
            if isinstance(done, str):
                continue
            server = hands[route.server].server
            server.calls.clear()
            begun = time.perf_counter()
            try:
                await route.run(hands[route.server], shop)
            except (TooSlow, WentWrong) as problem:
                found[route] = str(problem)
                continue
            seconds = time.perf_counter() - begun
            read, written = sum(one.read for one in server.calls), sum(one.written for one in server.calls)
            done.append(Done(read, written, len(server.calls), seconds))
    return found


# -- memory


@dataclass(frozen=True, slots=True)
class Memory:
    """Resident megabytes, shared pages counted in every process that has them."""

    server: float
    browser: float
    processes: int


def memory(hand: Hand) -> Memory:
    sizes = {True: 0.0, False: 0.0}
    count = 0
    for process, browser in hand.server.processes():
        sizes[browser] += process.memory_info().rss / 1e6
        count += 1
    return Memory(sizes[False], sizes[True], count)


# -- what watching costs


@dataclass(frozen=True, slots=True)
class Watching:
    """One click by Nova beside one by the driver alone, on the same button."""

    nova_ms: float
    window_ms: float
    driver_ms: float

    @property
    def over_ms(self) -> float:
        return self.nova_ms - self.window_ms - self.driver_ms


@asynccontextmanager
async def _driver_alone(shop: Shop, browser: str) -> AsyncIterator[Page]:
    async with async_playwright() as driver:
        chromium = await driver.chromium.launch(executable_path=browser)
        page = await chromium.new_page()
        await page.goto(shop.url("tiny"))
        yield page
        await chromium.close()


async def watching(shop: Shop, browser: str, rounds: int) -> list[Watching]:
    """Clicks by Nova in this process and by the driver alone, in turn."""
    found = []
    async with nova_here(pictures=False) as nova, _driver_alone(shop, browser) as page:
        hand = await new_hand(nova, "watcher")
        await hand.open(shop.url("tiny"))
        for number in range(rounds + 5):
            begun = time.perf_counter()
            told = await hand.act("nova.click_selector", {"selector": "button"})
            middle = time.perf_counter()
            await page.get_by_role("button").click()
            ended = time.perf_counter()
            if told.claim != "likely":
                raise WentWrong(f"the click went wrong: {told.reason_code}")
            if number >= 5:
                window_ms = float(told.body["effect"]["windowMs"])
                found.append(Watching((middle - begun) * 1000, window_ms, (ended - middle) * 1000))
    return found
