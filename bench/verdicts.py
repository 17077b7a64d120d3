"""How soon a verdict stands after its postcondition turned true, and what acting costs."""

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio
from playwright.async_api import Page, async_playwright
from tests.pages.faults.site import FaultSite, fault_site

from bench.driving import Hand, new_hand, nova_here
from bench.findings import at_most
from bench.tables import machine, quantile, remark, show, tell
from nova_mcp.browser.process.find_chromium import find_browser, this_machine

SUBMIT = "nova.guarded_submit_form"
STAMP_LIMIT_S = 2.0


@dataclass(frozen=True, slots=True)
class Probe:
    """One way of acting whose page reports the moment its promise came true. `hold_ms` is the proof's waiting time."""

    name: str
    case: str
    tool: str
    arguments: dict[str, Any]
    hold_ms: int


def _contract(hold_ms: int) -> dict[str, Any]:
    shown = {"all": [{"factKey": "dom.#news .success@visible", "operator": "eq", "expected": True}]}
    return {"postconditions": {"success": shown}, "stabilityMs": hold_ms}


PROBES = (
    Probe("submit, new document (hold 0)", "ok_document", SUBMIT, {"selector": "#go"}, 0),
    Probe("submit, redirects (hold 0)", "redirect_chain", SUBMIT, {"selector": "#go"}, 0),
    Probe("submit in page (hold 1200)", "ok_fetch", SUBMIT, {"selector": "#go"}, 1200),
    Probe(
        "click with a contract (hold 0)",
        "payment_ok",
        "nova.click_selector",
        {"selector": "#go", "transitionContract": _contract(0)},
        0,
    ),
    Probe(
        "click with a contract (hold 250)",
        "payment_ok",
        "nova.click_selector",
        {"selector": "#go", "transitionContract": _contract(250)},
        250,
    ),
)


@dataclass(frozen=True, slots=True)
class Delay:
    probe: str
    delay_ms: float
    took_ms: float
    verified: bool


async def _stamp(site: FaultSite, key: str) -> float | None:
    """The page reports by a request of its own, which may come in a little after the verdict."""
    until = time.monotonic() + STAMP_LIMIT_S
    while time.monotonic() < until:
        stamps = site.stamps(key)
        if "true" in stamps:
            return stamps["true"]
        await anyio.sleep(0.005)
    return None


async def _probe(hand: Hand, site: FaultSite, probe: Probe, key: str, delay_ms: int) -> Delay | None:
    await hand.open(site.url(probe.case, key, delay=delay_ms))
    started = time.perf_counter()
    told = await hand.act(probe.tool, probe.arguments)
    took_ms = (time.perf_counter() - started) * 1000
    true_at = await _stamp(site, key)
    completed = told.commit.get("completedAt")
    if true_at is None or not isinstance(completed, int | float):
        return None
    return Delay(probe.name, completed - probe.hold_ms - true_at, took_ms, told.claim == "verified")


async def measure(rounds: int) -> tuple[list[Delay], int]:
    delays: list[Delay] = []
    missing = 0
    with fault_site() as site:
        async with nova_here() as nova:
            hand = await new_hand(nova, "clock")
            for number in range(rounds):
                for index, probe in enumerate(PROBES):
                    found = await _probe(hand, site, probe, f"v{number}-{index}", 20 * (number % 10))
                    if found is None:
                        missing += 1
                    else:
                        delays.append(found)
    return delays, missing


ACTS: tuple[tuple[str, str, str, dict[str, Any]], ...] = (
    ("click with an effect", "plain_ok", "nova.click_selector", {"selector": "#go"}),
    ("type with read-back", "ok_document", "nova.type_selector", {"selector": "#comment", "text": "x"}),
    ("guarded submit, new document", "ok_document", SUBMIT, {"selector": "#go"}),
)
BARE_CLICK = "bare driver: click, effect shown"
BARE_TYPE = "bare driver: fill and read"


@asynccontextmanager
async def _bare_page() -> AsyncIterator[Page]:
    """The driver alone on the same browser: what the same deeds cost without Nova around them."""
    found = find_browser(None, this_machine(None))
    async with async_playwright() as driver:
        chromium = await driver.chromium.launch(executable_path=found.path, args=["--no-sandbox", "--disable-gpu"])
        yield await chromium.new_page()
        await chromium.close()


async def costs(rounds: int) -> dict[str, list[float]]:
    """Plain acts beside guarded ones and beside the bare driver, in turn in one run."""
    taken: dict[str, list[float]] = {}

    def note(name: str, started: float) -> None:
        taken.setdefault(name, []).append((time.perf_counter() - started) * 1000)

    with fault_site() as site:
        async with nova_here() as nova, _bare_page() as page:
            hand = await new_hand(nova, "purse")
            for number in range(rounds):
                for index, (name, case, tool, arguments) in enumerate(ACTS):
                    await hand.open(site.url(case, f"c{number}-{index}"))
                    started = time.perf_counter()
                    await hand.act(tool, arguments)
                    note(name, started)
                await page.goto(site.url("plain_ok", f"b{number}"))
                started = time.perf_counter()
                await page.click("#go")
                await page.wait_for_selector("#news .success")
                note(BARE_CLICK, started)
                await page.goto(site.url("ok_document", f"t{number}"))
                started = time.perf_counter()
                await page.fill("#comment", "x")
                await page.input_value("#comment")
                note(BARE_TYPE, started)
    return taken


def show_delays(delays: Sequence[Delay]) -> None:
    rows: list[list[object]] = []
    for name in [probe.name for probe in PROBES]:
        mine = [one for one in delays if one.probe == name]
        if mine:
            late = [one.delay_ms for one in mine]
            took = [one.took_ms for one in mine]
            verified = len([one for one in mine if one.verified])
            rows.append(
                [name, len(mine), verified, *(quantile(late, q) for q in (0.5, 0.95)), max(late), quantile(took, 0.5)]
            )
    late = [one.delay_ms for one in delays]
    if late:
        rows.append(["all (aim p95 <= 50)", len(late), "", quantile(late, 0.5), quantile(late, 0.95), max(late), ""])
    heads = ["act", "n", "verified", "delay p50 ms", "delay p95 ms", "max ms", "whole call p50 ms"]
    show("Verdict after the postcondition turned true, hold taken off", heads, rows)
    if late:
        what = "verdict after the postcondition turned true, hold taken off, p95"
        tell(at_most("S5", what, quantile(late, 0.95), 50, len(late)))


def main(*, long: bool) -> int:
    print(f"verdicts · {machine()}\n")
    delays, missing = anyio.run(measure, 100 if long else 20)
    remark(f"{len(delays)} verdicts timed, {missing} without a verdict or a stamp\n")
    show_delays(delays)
    taken = anyio.run(costs, 100 if long else 20)
    rows = [[name, len(ms), quantile(ms, 0.5), quantile(ms, 0.95), max(ms)] for name, ms in taken.items()]
    show("One act, ms, in process", ["act", "n", "p50", "p95", "max"], rows)
    return 0
