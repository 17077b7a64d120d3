"""Accessible names, roles and states beside Chromium's own, over pages that others wrote; and what they cost."""

import os
import sys
from collections import Counter
from collections.abc import Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
from playwright.async_api import BrowserContext, Error, Page, Route, async_playwright

from bench.bounds import percent
from bench.findings import bad_share
from bench.names_golden import golden_differences, lines_of, read_golden, write_golden
from bench.names_oracle import (
    REASONS,
    PageMoved,
    Pair,
    compare,
    name_difference,
    one_line,
    role_difference,
    seconds_of_names,
    state_difference,
)
from bench.names_pages import PACKAGES, Package, pages_of, served, unpacked
from bench.packages import NotInstalled
from bench.tables import left_out, machine, remark, show, tell
from nova_mcp.browser.process.find_chromium import find_browser, this_machine

CASES = Path(__file__).resolve().parent.parent / "tests" / "pages" / "names"
CASE_MARK = ("data-case",)
# Without it there is no `Element.computedName`.
COMPUTED = "--enable-blink-features=ComputedAccessibilityInfo"
# A checkout of the web platform tests, if there is one; its own expectations are counted apart.
WPT_VARIABLE = "NOVA_WPT"
WPT_FOLDERS = ("accname", "html-aam", "svg-aam", "wai-aria")
WPT_MARKS = ("data-expectedlabel", "data-expectedrole", "data-testname")
WPT_ROLES = {"image": "img", "presentation": "none"}
CONTROLS_TIMED = 5000
TRIES = 3


@dataclass
class Tally:
    """Agreement over one set of pages."""

    pages: int = 0
    elements: int = 0
    agreed: Counter[str] = field(default_factory=Counter)
    meant: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def add(self, where: str, pairs: Iterable[Pair]) -> None:
        self.pages += 1
        for pair in pairs:
            if pair.chromium is None:
                continue
            self.elements += 1
            verdicts = {
                "role": role_difference(pair.tag, pair.nova, pair.chromium),
                "name": name_difference(pair.tag, pair.nova, pair.chromium),
                "state": state_difference(pair.tag, pair.nova, pair.chromium),
            }
            for kind, why in verdicts.items():
                if why is None:
                    self.agreed[kind] += 1
                elif why:
                    self.meant[f"{kind}: {why}"] += 1
                elif verdicts["role"] is None or kind == "role":
                    self.wrong.append(f"{where} <{pair.tag}> {kind}: {pair.nova} / {pair.chromium}")


@asynccontextmanager
async def a_context(*, scripts: bool) -> Any:
    """Pages as they are shipped: nothing from elsewhere, and on request without scripts, whose output changes."""
    async with async_playwright() as driver:
        found = find_browser(None, this_machine(driver.chromium.executable_path))
        arguments = [COMPUTED, *(["--no-sandbox"] if os.geteuid() == 0 else [])]
        browser = await driver.chromium.launch(executable_path=str(found.path), args=arguments)
        size = {"width": 1280, "height": 800}
        context = await browser.new_context(java_script_enabled=scripts, viewport=size, reduced_motion="reduce")  # type: ignore[arg-type]
        await context.route("**/*", _only_here)
        yield context
        await browser.close()


async def _only_here(route: Route) -> None:
    if route.request.url.startswith("http://127.0.0.1:"):
        await route.continue_()
    else:
        await route.abort()


async def _look(context: BrowserContext, url: str, marks: tuple[str, ...] = ()) -> list[Pair]:
    page = await context.new_page()
    try:
        await page.goto(url, wait_until="load", timeout=60_000)
        for _ in range(TRIES - 1):
            try:
                return await compare(page, marks)
            except PageMoved:
                await page.wait_for_load_state("load")
        return await compare(page, marks)
    finally:
        await page.close()


async def measure_package(
    context: BrowserContext, package: Package, *, long: bool
) -> tuple[Tally, dict[str, list[str]]]:
    tally, seen = Tally(), {}
    with served(unpacked(package)) as base:
        for path in pages_of(package, long=long):
            try:
                pairs = await _look(context, f"{base}/{path}")
            except (Error, PageMoved) as error:
                left_out(f"{package.folder}/{path}: {one_line(str(error))[:120]}")
                continue
            tally.add(f"{package.folder}/{path}", pairs)
            seen[path] = lines_of(pairs)
    return tally, seen


async def measure_packages(*, long: bool) -> tuple[dict[str, Tally], dict[str, dict[str, list[str]]]]:
    tallies, seen = {}, {}
    async with a_context(scripts=False) as context:
        for package in PACKAGES:
            try:
                tallies[package.folder], seen[package.folder] = await measure_package(context, package, long=long)
            except NotInstalled as error:
                left_out(str(error))
    return tallies, seen


async def measure_cases() -> list[object]:
    """Own cases: how often Nova and Chromium's tree say what `computedName` says of the same element."""
    counts: Counter[str] = Counter()
    async with a_context(scripts=True) as context:
        with served(CASES) as base:
            for page in sorted(CASES.glob("*.html")):
                counts["pages"] += 1
                for pair in await _look(context, f"{base}/{page.name}", CASE_MARK):
                    if pair.computed is None or pair.chromium is None:
                        continue
                    counts["cases"] += 1
                    counts["nova"] += pair.nova.name == pair.computed
                    counts["tree"] += pair.chromium.name == pair.computed
    shares = [percent(counts[side], counts["cases"]) for side in ("nova", "tree")]
    return [counts["pages"], counts["cases"], *shares]


async def measure_wpt(root: Path) -> list[list[object]]:
    """How many of the platform tests' own expectations each side meets."""
    counts: dict[str, Counter[str]] = {folder: Counter() for folder in WPT_FOLDERS}
    async with a_context(scripts=True) as context:
        with served(root) as base:
            for folder in WPT_FOLDERS:
                for page in sorted((root / folder).rglob("*.html")):
                    if "data-expected" not in page.read_text(encoding="utf-8", errors="replace"):
                        continue
                    with suppress(PageMoved):
                        _count(await _look(context, f"{base}/{page.relative_to(root)}", WPT_MARKS), counts[folder])
    return [
        [folder, n["names"], percent(n["nova name"], n["names"]), percent(n["chromium name"], n["names"]),
         n["roles"], percent(n["nova role"], n["roles"]), percent(n["chromium role"], n["roles"])]
        for folder, n in counts.items()
    ]  # fmt: skip


def _count(pairs: Iterable[Pair], counts: Counter[str]) -> None:
    for pair in pairs:
        name, role, _ = pair.marks
        if pair.chromium is None:
            continue
        if name is not None:
            counts["names"] += 1
            counts["nova name"] += pair.nova.name == one_line(name)
            counts["chromium name"] += pair.chromium.name == one_line(name)
        if role:
            counts["roles"] += 1
            counts["nova role"] += pair.nova.role == WPT_ROLES.get(role, role)
            counts["chromium role"] += pair.chromium.role == WPT_ROLES.get(role, role)


def controls_page(count: int) -> str:
    """A page of so many controls of five kinds, labelled in the usual ways."""
    kinds = (
        "<label for=f{0}>Field {0}</label><input id=f{0}>",
        "<button class=btn><i class=icon></i> Save <b>{0}</b></button>",
        "<a href=/p/{0}><span>Open</span> item {0}</a>",
        "<select aria-label='Pick {0}'><option>a<option>b</select>",
        "<label><input type=checkbox> Agree {0}</label>",
    )
    return "<!doctype html><main>" + "".join(kinds[i % 5].format(i) for i in range(count)) + "</main>"


async def measure_speed(runs: int) -> list[float]:
    async with a_context(scripts=True) as context:
        page: Page = await context.new_page()
        await page.set_content(controls_page(CONTROLS_TIMED))
        return await seconds_of_names(page, runs)


def _show(tallies: dict[str, Tally]) -> None:
    rows: list[list[object]] = []
    total = Tally()
    for folder, tally in tallies.items():
        rows.append(_row(folder, tally))
        total.pages += tally.pages
        total.elements += tally.elements
        total.agreed += tally.agreed
        total.meant += tally.meant
        total.wrong += tally.wrong
    rows.append(_row("all", total))
    columns = ["pages of", "pages", "elements", "same name", "same role", "same states", "unexplained"]
    show("Nova beside Chromium's accessibility tree", columns, rows)
    meant = [[rule, count, REASONS[rule.split(": ", 1)[1]]] for rule, count in total.meant.most_common()]
    show("Differences on purpose", ["rule", "elements", "reason"], meant)
    for text in total.wrong[:40]:
        print(text)
    if total.elements:
        what = "elements of third-party pages that differ from Chromium's tree without a rule"
        tell(bad_share("P1", what, len(total.wrong), total.elements, 0))


def _row(name: str, tally: Tally) -> list[object]:
    shares = [percent(tally.agreed[kind], tally.elements) for kind in ("name", "role", "state")]
    return [name, tally.pages, tally.elements, *shares, len(tally.wrong)]


def main(*, long: bool) -> int:
    print(f"names · {machine()}\n")
    tallies, seen = anyio.run(lambda: measure_packages(long=long))
    _show(tallies)
    golden = read_golden()
    if "--write" in sys.argv:
        write_golden(seen, golden)
    changed = golden_differences(seen, golden)
    remark(f"{sum(map(len, golden.values()))} pages kept as golden, {len(changed)} of them changed or not seen")
    for text in changed[:20]:
        print(text)
    columns = ["pages", "cases", "Nova as computedName", "tree as computedName"]
    show("Own cases beside Element.computedName", columns, [anyio.run(measure_cases)])
    if wpt := os.environ.get(WPT_VARIABLE):
        columns = ["platform tests", "names", "Nova", "Chromium", "roles", "Nova ", "Chromium "]
        show("Expectations of the web platform tests met", columns, anyio.run(measure_wpt, Path(wpt)))
    taken = [round(1000 * seconds, 1) for seconds in anyio.run(measure_speed, 20 if long else 8)]
    show(
        f"Names of {CONTROLS_TIMED} controls, ms of processor time",
        ["runs", "best", "worst"],
        [[len(taken), min(taken), max(taken)]],
    )
    return 1 if changed or any(tally.wrong for tally in tallies.values()) else 0
