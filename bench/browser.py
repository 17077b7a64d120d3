"""Nova beside other browser servers: the same Chromium, the same pages, in turn; losses are printed like wins."""

import statistics
import subprocess
import sys
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
from bench.browser_pages import LOG_ROWS, ORDERS, SEATS, Shop, open_shop
from bench.browser_reach import Reach, Room, reach
from bench.browser_tasks import FILL, FIND, READ, Route
from bench.findings import bad_share
from bench.packages import NotInstalled
from bench.peers import Hand, Maker, WentWrong, makers, running, tokens
from bench.results import Finding
from bench.tables import left_out, machine, quantile, remark, show, tell
from bench.words import chosen, number
from nova_mcp import __version__
from nova_mcp.browser.process.find_chromium import find_browser, this_machine

NOVA: Final = "nova"
PARTS: Final = ("cold", "everyday", "jobs", "reach", "huge", "watching")
# A look holds no more than a few thousand controls; seats beyond them are searched for, spread over the whole plan.
FAR_SEATS: Final = tuple(f"Seat {number}" for number in range(1, SEATS + 1, SEATS // 12 - 1))
ROOMS: Final = (
    Room("tiny", 3),
    Room("repair", 14),
    Room("orders", 3 + 3 * ORDERS),
    Room("shop", 750),
    Room("nodes", LOG_ROWS // 50),
    Room("buttons", SEATS, FAR_SEATS),
)
ROUNDS: Final = {"quick": 3, "usual": 20, "long": 100}
LOST: Final = "LOST"

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
    "tools/list": 3000,
}
# Of the best peer's tokens, where a page is large.
LARGE: Final = ("look, medium", "look, nodes", "look, buttons")
LARGE_SHARE: Final = 0.25
JOB_AIMS: Final = {READ: 7812, FIND: 421, FILL: 991}


def _pair(series: Series) -> str:
    if not series.ms:
        return "see below" if series.note else "-"
    return f"{quantile(series.ms, 0.5):.0f} / {quantile(series.ms, 0.95):.0f}"


def _ratio(by_server: dict[str, Series]) -> float | None:
    mine = by_server[NOVA].ms
    others = [quantile(series.ms, 0.5) for name, series in by_server.items() if name != NOVA and series.ms]
    return quantile(mine, 0.5) / min(others) if mine and others else None


def _verdict(measure: str, ratio: float | None, own: float | None) -> str:
    """Marks a miss: of an aim where there is one, of the best peer elsewhere."""
    misses = []
    if ratio is not None and ratio > RATIO_AIMS.get(measure, 1.0):
        misses.append(f"{LOST} x{ratio:.2f}" if ratio > 1 else "aim missed")
    if own is not None and own > TIME_AIMS.get(measure, float("inf")):
        misses.append("too slow")
    return ", ".join(misses) or ("won" if ratio is not None else "")


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
        own = by_server[NOVA].ms
        verdict = _verdict(measure, ratio, quantile(own, 0.5) if own else None)
        rows.append([measure, counts, *cells, "-" if ratio is None else f"{ratio:.2f}", _aim(measure), verdict])
        if own:
            _judge_time(measure, by_server)
    show(f"{title}, ms p50 / p95", ["", "n", *figures.names, "x best", "aim", ""], rows)
    for measure, by_server in figures.series.items():
        for name, series in by_server.items():
            if series.note:
                remark(f"{measure} · {name}: {' '.join(series.note.split())}")
    print()


def _judge_time(measure: str, by_server: dict[str, Series]) -> None:
    """A server that gave no value at all is beaten, but by nobody knows how much: that is told without a verdict."""
    ratio, most = _ratio(by_server), RATIO_AIMS.get(measure, 1.0)
    each = [f"{name} {quantile(s.ms, 0.5):,.0f}" if s.ms else f"{name} no answer" for name, s in by_server.items()]
    times, bound = "" if ratio is None else f"; × {ratio:.2f} of the best", "" if ratio is None else f"× ≤ {most:g}"
    tell(
        Finding(
            aim="S2",
            what=f"{measure}, ms p50",
            measured=f"{', '.join(each)}{times}",
            bound=bound,
            n=len(by_server[NOVA].ms),
            met=None if ratio is None else ratio <= most,
        )
    )


def _judge_tokens(measure: str, counts: dict[str, int], ratio: float) -> None:
    most = LARGE_SHARE if measure in LARGE else 1.0
    each = ", ".join(f"{name} {count:,}" for name, count in counts.items())
    said = f"{each}; × {ratio:.2f} of the best"
    tell(Finding(aim="S3", what=f"{measure}, tokens", measured=said, bound=f"× ≤ {most:g}", n=1, met=ratio <= most))


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
            rows.append(_token_row(measure, [counts.get(name) for name in names], peers))
            if measure.startswith("look, ") and NOVA in counts and peers:
                _judge_tokens(measure, counts, counts[NOVA] / min(peers))
    sizes = [tokens(lists[name]) for name in names]
    rows.append(_token_row("tools/list", sizes, sizes[1:]))
    show("Answers as the client gets them, o200k tokens of their text", ["", *names, "x best", "aim", ""], rows)


def _token_row(measure: str, counts: Sequence[int | None], peers: Sequence[int]) -> list[object]:
    mine, aim = counts[0], TOKEN_AIMS.get(measure)
    ratio = mine / min(peers) if mine is not None and peers else None
    verdict = "" if ratio is None else f"{LOST} x{ratio:.2f}" if ratio > 1 else "won"
    if mine is not None and aim is not None and mine > aim:
        verdict = "aim missed"
    shown = ["-" if count is None else count for count in counts]
    return [measure, *shown, "-" if ratio is None else f"{ratio:.2f}", aim or "", verdict]


def show_jobs(found: dict[Route, list[Done] | str]) -> None:
    rows: list[list[object]] = []
    for route, done in found.items():
        if isinstance(done, str):
            rows.append([route.job, route.server, route.way, f"FAILED: {done[:40]}", "", "", "", ""])
            continue
        read = round(statistics.median(one.read for one in done))
        written = round(statistics.median(one.written for one in done))
        seconds = statistics.median(one.seconds for one in done)
        aim = JOB_AIMS[route.job]
        verdict = "" if route.server != NOVA else f"{aim} missed" if read > aim else f"{aim}"
        rows.append([route.job, route.server, route.way, read, written, done[0].calls, f"{seconds:.2f}", verdict])
    heads = ["job", "server", "way", "tokens read", "written", "calls", "s p50", "aim, read"]
    show("Jobs, checked against the shop's book", heads, rows)


def show_memory(found: dict[str, Memory]) -> None:
    best = min(one.server for name, one in found.items() if name != NOVA)
    rows = [
        [name, one.server, one.browser, one.server + one.browser, one.processes, f"{one.server / best:.2f}"]
        for name, one in found.items()
    ]
    heads = ["", "server", "browser", "both", "processes", "server x best peer"]
    show("Memory after the same work, MB resident, shared pages counted in each process", heads, rows)


def _reached(one: Reach) -> str:
    if not one.complete:
        return "NOT ALL REACHABLE"
    return "all" if one.listed >= one.there else "all that were tried"


def show_reach(found: Sequence[Reach]) -> None:
    rows = [
        [
            one.page,
            one.there,
            one.tokens,
            one.shown,
            one.listed,
            f"{one.far} of {one.far_tried}" if one.far_tried else "-",
            _reached(one),
        ]
        for one in found
    ]
    heads = ["page", "controls", "tokens", "shown", "with a ref", "beyond, by search", "reachable"]
    show("What Nova's look leaves reachable", heads, rows)
    for one in found:
        if one.note:
            remark(f"{one.page}: {one.note}")
    beyond = sum(not one.complete for one in found)
    tell(bad_share("S3", "pages on which a control could not be reached", beyond, len(found), 0))


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
    return [await reach(hand, room, shop.url(room.page)) for room in ROOMS]


async def measure(these: list[Maker], shop: Shop, browser: str, rounds: int) -> None:
    parts = chosen("parts", PARTS)
    if "cold" in parts:
        cold = await cold_starts(these, shop, rounds)
        show_times("Cold start", cold)
        show_work("Cold start", cold)
    token_tables: list[Figures] = []
    lists: dict[str, str] = {}
    async with AsyncExitStack() as stack:
        if {"everyday", "jobs", "reach"}.intersection(parts):
            hands = await stack.enter_async_context(running(these))
            lists = {name: await hand.server.listed() for name, hand in hands.items()}
            for hand in hands.values():
                await hand.open(shop.url("tiny"))
        if "everyday" in parts:
            token_tables.append(await everyday(hands, shop, rounds))
            show_times("Everyday pages", token_tables[-1])
            show_work("Everyday pages", token_tables[-1])
            show_memory({name: memory(hand) for name, hand in hands.items()})
        if "jobs" in parts:
            show_jobs(await jobs(hands, shop, max(1, rounds // 4)))
        if "reach" in parts:
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
            left_out(f"what watching costs: {problem}")


def main(*, long: bool) -> int:
    print(f"browser · {machine()}")
    browser = str(find_browser(None, this_machine(None)).path)
    try:
        these = makers(browser, __version__)
    except NotInstalled as missing:
        left_out(str(missing))
        return 0
    version = subprocess.run([browser, "--version"], capture_output=True, text=True, check=False, timeout=30).stdout
    remark(f"{version.strip()} · {', '.join(f'{one.name} {one.version}' for one in these)}\n")
    begun = time.perf_counter()
    with open_shop() as shop:
        length = "long" if long else "quick" if "--quick" in sys.argv else "usual"
        anyio.run(measure, these, shop, browser, number("rounds", ROUNDS[length]))
    print(f"took {time.perf_counter() - begun:.0f} s")
    return 0
