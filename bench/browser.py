"""Nova beside other browser servers: the same Chromium, the same pages, in turn; losses are printed like wins."""

import statistics
import subprocess
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Final

import anyio

from bench.browser_measures import (
    HUGE,
    Done,
    Figures,
    Memory,
    Series,
    Watching,
    cold_starts,
    everyday,
    huge,
    jobs,
    memory,
    watching,
)
from bench.browser_pages import LOG_ROWS, SEATS, Shop, open_shop
from bench.browser_reach import Reach, reach
from bench.browser_tasks import FILL, FIND, READ, Route
from bench.packages import NotInstalled
from bench.peers import Hand, Maker, WentWrong, makers, running, tokens
from bench.tables import machine, quantile, show
from bench.words import chosen, number
from nova_mcp import __version__
from nova_mcp.browser.discovery import find_browser, this_machine

NOVA: Final = "nova"
PARTS: Final = ("cold", "everyday", "huge", "jobs", "watching")
CONTROLS: Final = {"tiny": 3, "shop": 750, "nodes": LOG_ROWS // 50, "buttons": SEATS}

# Nova ÷ the best peer, at p50.
RATIO_AIMS: Final = {
    "look, medium": 0.3,
    "look again, medium": 0.3,
    "look, nodes": 0.3,
    "look, buttons": 0.3,
    "click, tiny": 1.0,
    "click, medium": 1.0,
    "type, tiny": 1.0,
    "type, medium": 1.0,
}
TIME_AIMS: Final = {"click and see, tiny": 250, "look, medium": 35, "look, nodes": 500, "look, buttons": 500}
TOKEN_AIMS: Final = {
    "look, tiny": 130,
    "look, medium": 1200,
    "look, nodes": 1200,
    "look, buttons": 1200,
    "click, tiny": 60,
    "click, medium": 60,
}
JOB_AIMS: Final = {READ: 7812, FIND: 421, FILL: 991}


def _pair(series: Series) -> str:
    if not series.ms:
        return "see below" if series.note else "-"
    return f"{quantile(series.ms, 0.5):.0f} / {quantile(series.ms, 0.95):.0f}"


def _ratio(by_server: dict[str, Series]) -> float | None:
    mine = by_server[NOVA].ms
    others = [quantile(series.ms, 0.5) for name, series in by_server.items() if name != NOVA and series.ms]
    return quantile(mine, 0.5) / min(others) if mine and others else None


def _aim(measure: str) -> str:
    parts = [f"x <= {RATIO_AIMS[measure]:.1f}"] if measure in RATIO_AIMS else []
    return ", ".join([*parts, *([f"ms <= {TIME_AIMS[measure]}"] if measure in TIME_AIMS else [])])


def show_times(title: str, figures: Figures) -> None:
    rows: list[list[object]] = []
    for measure, by_server in figures.series.items():
        if not any(series.ms for series in by_server.values()):
            continue
        ratio = _ratio(by_server)
        counts = "/".join(str(len(series.ms)) for series in by_server.values())
        cells = [_pair(series) for series in by_server.values()]
        rows.append([measure, counts, *cells, "-" if ratio is None else f"{ratio:.2f}", _aim(measure)])
    show(f"{title}, ms p50 / p95", ["", "n", *figures.names, "x best peer", "aim"], rows)
    for measure, by_server in figures.series.items():
        for name, series in by_server.items():
            if series.note:
                print(f"{measure} · {name}: {' '.join(series.note.split())}")
    print()


def show_work(title: str, figures: Figures) -> None:
    """The same calls by the processor's clock."""
    rows: list[list[object]] = []
    for measure, by_server in figures.series.items():
        if not any(series.cpu.server for series in by_server.values()):
            continue
        cells = [
            f"{series.cpu.server / len(series.ms):.0f} + {series.cpu.browser / len(series.ms):.0f}"
            if series.ms
            else "-"
            for series in by_server.values()
        ]
        if any(cell != "-" for cell in cells):
            whole = {
                name: (series.cpu.server + series.cpu.browser) / len(series.ms)
                for name, series in by_server.items()
                if series.ms
            }
            peers = [ms for name, ms in whole.items() if name != NOVA]
            ratio = f"{whole[NOVA] / min(peers):.2f}" if NOVA in whole and peers and min(peers) > 0 else "-"
            rows.append([measure, *cells, ratio])
    show(f"{title}, processor ms a call: server + browser", ["", *figures.names, "x best peer"], rows)


def show_tokens(figures: Sequence[Figures], lists: dict[str, str]) -> None:
    names = figures[0].names
    rows: list[list[object]] = []
    for one in figures:
        for measure, by_server in one.series.items():
            if not measure.startswith(("look, ", "click, ", "click and see", "type, ", "navigate, ")):
                continue
            counts = {name: series.read for name, series in by_server.items() if series.read is not None}
            peers = [count for name, count in counts.items() if name != NOVA]
            ratio = f"{counts[NOVA] / min(peers):.2f}" if NOVA in counts and peers else "-"
            rows.append([measure, *(counts.get(n, "-") for n in names), ratio, TOKEN_AIMS.get(measure, "")])
    sizes = [tokens(lists[name]) for name in names]
    rows.append(["tools/list", *sizes, f"{sizes[0] / min(sizes[1:]):.2f}", 3000])
    show("Answers as the client gets them, o200k tokens of their text", ["", *names, "x best peer", "aim"], rows)


def show_jobs(found: dict[Route, list[Done] | str]) -> None:
    rows: list[list[object]] = []
    for route, done in found.items():
        if isinstance(done, str):
            rows.append([route.job, route.server, route.way, done[:40], "", "", "", ""])
            continue
        read = round(statistics.median(one.read for one in done))
        written = round(statistics.median(one.written for one in done))
        seconds = statistics.median(one.seconds for one in done)
        aim = JOB_AIMS[route.job] if route.server == NOVA else ""
        rows.append([route.job, route.server, route.way, read, written, done[0].calls, f"{seconds:.2f}", aim])
    heads = ["job", "server", "way", "tokens read", "written", "calls", "s p50", "aim, read"]
    show("Jobs, checked against the shop's book", heads, rows)


def show_memory(found: dict[str, Memory]) -> None:
    rows = [[name, one.server, one.browser, one.server + one.browser, one.processes] for name, one in found.items()]
    show("Memory with one page open, MB resident", ["", "server", "browser", "both", "processes"], rows)


def show_reach(found: Sequence[Reach]) -> None:
    rows = [[one.page, one.there, one.tokens, one.shown, one.listed] for one in found]
    show("What Nova's look leaves reachable", ["page", "controls", "tokens", "shown", "with a ref"], rows)
    for one in found:
        if one.note:
            print(f"{one.page}: {one.note}")


def show_watching(found: Sequence[Watching]) -> None:
    rows: list[list[object]] = []
    for name, values in (
        ("Nova's click, in process", [one.nova_ms for one in found]),
        ("of it, waiting for the effect", [one.window_ms for one in found]),
        ("the driver's own click", [one.driver_ms for one in found]),
        ("what Nova adds, wait not counted (aim p95 <= 15)", [one.over_ms for one in found]),
    ):
        rows.append([name, len(values), quantile(values, 0.5), quantile(values, 0.95)])
    show("What watching costs, ms", ["", "n", "p50", "p95"], rows)


async def _reaches(hand: Hand, shop: Shop) -> list[Reach]:
    return [await reach(hand, page, shop.url(page), there) for page, there in CONTROLS.items()]


async def measure(these: list[Maker], shop: Shop, browser: str, rounds: int) -> None:
    parts = chosen("parts", PARTS)
    if "cold" in parts:
        cold = await cold_starts(these, shop, rounds)
        show_times("Cold start", cold)
        show_work("Cold start", cold)
    token_tables: list[Figures] = []
    lists: dict[str, str] = {}
    async with AsyncExitStack() as stack:
        if "everyday" in parts or "jobs" in parts:
            hands = await stack.enter_async_context(running(these))
            lists = {name: await hand.server.listed() for name, hand in hands.items()}
        if "everyday" in parts:
            token_tables.append(await everyday(hands, shop, rounds))
            show_times("Everyday pages", token_tables[-1])
            show_work("Everyday pages", token_tables[-1])
            show_memory({name: memory(hand) for name, hand in hands.items()})
        if "jobs" in parts:
            show_jobs(await jobs(hands, shop, max(5, rounds // 4)))
            show_reach(await _reaches(hands[NOVA], shop))
    if "huge" in parts:
        token_tables.append(await huge(these, shop, rounds))
        show_times(f"Huge pages ({', '.join(HUGE)}: 50,000 each)", token_tables[-1])
        show_work("Huge pages", token_tables[-1])
    if lists and token_tables:
        show_tokens(token_tables, lists)
    if "watching" in parts:
        try:
            show_watching(await watching(shop, browser, rounds * 2))
        except WentWrong as problem:
            print(f"watching: {problem}")


def main(*, long: bool) -> int:
    print(f"browser · {machine()}")
    browser = str(find_browser(None, this_machine(None)).path)
    try:
        these = makers(browser, __version__)
    except NotInstalled as missing:
        print(f"not run: {missing}")
        return 0
    version = subprocess.run([browser, "--version"], capture_output=True, text=True, check=False, timeout=30).stdout
    print(f"{version.strip()} · {', '.join(f'{one.name} {one.version}' for one in these)}\n")
    begun = time.perf_counter()
    with open_shop() as shop:
        anyio.run(measure, these, shop, browser, number("rounds", 100 if long else 20))
    print(f"took {time.perf_counter() - begun:.0f} s")
    return 0
