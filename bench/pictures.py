"""`python -m bench.pictures`: every dashboard page in light and dark, the start page also as a phone shows it.

The demo's story is played on the real stack and its store served by the real server; `--data-dir DIR` shows a store
that is there already. Pictures have a fixed size and little weight; a page without one is an error.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import anyio
import httpx2
from playwright.async_api import Browser, BrowserContext, Page, ViewportSize, async_playwright

from bench.environment import ROOT as REPOSITORY
from bench.pictures_pages import MOST_BYTES, Look, best, lighter, look_at, picture_name, place_of
from bench.pictures_session import STARTS_WITHIN_S, Served, agent_at_work, play_story, server, stopped
from nova_mcp.browser.process.find_chromium import find_browser, this_machine
from nova_mcp.dashboard.app import PLACES
from nova_mcp.server.http.dashboard_home import ROOT

OUT: Final = REPOSITORY / "docs" / "images"
DESK: Final = ViewportSize(width=1280, height=860)
PHONE: Final = ViewportSize(width=390, height=844)
# So many addresses of one place are looked at to find the one with most to show.
SAMPLES: Final = 300
# Only there while the emergency stop is on.
WHILE_STOPPED: Final = ("/controls/resume",)
# Pictures in a page are fetched when they come into sight, which its load does not wait for.
_SETTLED: Final = """async () => {
  await document.fonts.ready;
  await Promise.all([...document.images].map(one => { one.loading = "eager"; return one.decode(); }));
}"""
Scheme = Literal["light", "dark"]
SCHEMES: Final[tuple[Scheme, ...]] = ("light", "dark")


@dataclass(frozen=True, slots=True)
class Shot:
    """One page to be taken: the name of its picture and where it is."""

    name: str
    url: str


# -- looking around


async def signed_in(browser: Browser, served: Served, scheme: Scheme, size: ViewportSize) -> BrowserContext:
    context = await browser.new_context(viewport=size, color_scheme=scheme, reduced_motion="reduce", locale="en-GB")
    page = await context.new_page()
    await page.goto(f"{served.root}{ROOT}/login")
    await page.fill("input[name=token]", served.token)
    await page.press("input[name=token]", "Enter")
    await page.wait_for_url(f"{served.root}{ROOT}/")
    await page.close()
    return context


async def looked_around(context: BrowserContext, served: Served) -> dict[str, dict[str, Look]]:
    """Every place that some page leads to: its addresses that answer with a page, and what each shows."""
    paths = [place.path for place in PLACES if place.get is not None]
    found: dict[str, dict[str, Look]] = {}
    waiting = [f"{served.root}{ROOT}/", *(f"{served.root}{ROOT}{place.path}" for place in PLACES if place.menu)]
    seen = set(waiting)
    while waiting:
        address = waiting.pop(0)
        answer = await context.request.get(address, max_redirects=0)
        place = place_of(address, paths)
        if place is None or answer.status != 200 or "text/html" not in answer.headers.get("content-type", ""):
            continue
        look = found.setdefault(place, {})[address] = look_at(await answer.text(), address)
        for link in look.leads_to:
            there = place_of(link, paths)
            if link not in seen and there is not None and len(found.get(there, {})) < SAMPLES:
                seen.add(link)
                waiting.append(link)
    return found


def chosen(found: Mapping[str, Mapping[str, Look]]) -> list[Shot]:
    """A picture for every place that was reached, of the page with most to show."""
    ways = [(p, best({url: look.worth for url, look in found.get(p.path, {}).items()})) for p in PLACES]
    return [Shot(picture_name(place.path, place.section), way) for place, way in ways if way is not None]


async def not_reached(context: BrowserContext, served: Served, found: Mapping[str, Mapping[str, Look]]) -> list[str]:
    """Places with a page to which nothing led. Pictures have none, nor has what answers with news and never ends."""
    paths = [place.path for place in PLACES]
    pictures = {one for looks in found.values() for look in looks.values() for one in look.pictures}
    known = {*found, *(place_of(one, paths) for one in pictures), *WHILE_STOPPED}
    missing = [place.path for place in PLACES if place.get is not None and place.path not in known]
    cookies = {one["name"]: one["value"] for one in await context.cookies()}
    pages = []
    async with httpx2.AsyncClient(cookies=cookies, timeout=STARTS_WITHIN_S) as client:
        for path in missing:
            async with client.stream("GET", f"{served.root}{ROOT}{path}", headers={"Accept": "text/html"}) as answer:
                if "text/html" in answer.headers.get("content-type", ""):
                    pages.append(path)
    return pages


# -- taking them


@dataclass(frozen=True, slots=True)
class Album:
    """Where pictures go; every one is as light as it can be."""

    folder: Path
    sizes: dict[str, int]

    async def take(self, page: Page, shot: Shot, scheme: Scheme) -> None:
        await page.goto(shot.url, wait_until="load")
        await page.evaluate(_SETTLED)
        png = lighter(await page.screenshot(animations="disabled", caret="hide", scale="css"))
        name = f"{shot.name}-{scheme}.png"
        await anyio.Path(self.folder / name).write_bytes(png)
        self.sizes[name] = len(png)


async def take_all(served: Served, folder: Path, album: Album) -> list[str]:
    """All pictures; the places of which there is none."""
    async with async_playwright() as driver:
        found = find_browser(None, this_machine(driver.chromium.executable_path))
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = await driver.chromium.launch(executable_path=str(found.path), args=arguments)
        async with agent_at_work(served, folder):
            guide = await signed_in(browser, served, "light", DESK)
            reached = await looked_around(guide, served)
            missing = await not_reached(guide, served, reached)
            for scheme in SCHEMES:
                await _take_pages(browser, served, scheme, album, chosen(reached))
        with stopped(folder):
            for scheme in SCHEMES:
                page = await (await signed_in(browser, served, scheme, DESK)).new_page()
                for path in WHILE_STOPPED:
                    shot = Shot(picture_name(path, ""), f"{served.root}{ROOT}{path}")
                    await album.take(page, shot, scheme)
        await browser.close()
    return missing


async def _take_pages(browser: Browser, served: Served, scheme: Scheme, album: Album, shots: Sequence[Shot]) -> None:
    page = await (await signed_in(browser, served, scheme, DESK)).new_page()
    for shot in shots:
        await album.take(page, shot, scheme)
    stranger = await (await browser.new_context(viewport=DESK, color_scheme=scheme)).new_page()
    await album.take(stranger, Shot("login", f"{served.root}{ROOT}/login"), scheme)
    phone = await (await signed_in(browser, served, scheme, PHONE)).new_page()
    await album.take(phone, Shot("phone", f"{served.root}{ROOT}/"), scheme)


def told(album: Album, missing: Sequence[str]) -> int:
    """What was taken, and the number of things that are wrong with it; pictures of pages that are gone are removed."""
    for old in sorted({path.name for path in album.folder.glob("*.png")} - set(album.sizes)):
        (album.folder / old).unlink()
    heavy = [name for name, size in album.sizes.items() if size > MOST_BYTES]
    for name, size in album.sizes.items():
        print(f"{name}\t{size / 1000:.0f} KB{'  TOO HEAVY' if name in heavy else ''}")
    for path in missing:
        print(f"no picture of {ROOT}{path}: no page leads there, or it does not answer", file=sys.stderr)
    return len(heavy) + len(missing)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.pictures", description=__doc__)
    parser.add_argument("--data-dir", type=Path, help="show this store instead of playing the story")
    parser.add_argument("--out", type=Path, default=OUT)
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="nova-pictures-", ignore_cleanup_errors=True) as place:
        folder = asked.data_dir or Path(place) / "story"
        if asked.data_dir is None:
            play_story(folder)
        album = Album(asked.out, {})
        with server(folder) as served:
            missing = anyio.run(take_all, served, folder, album)
    return int(told(album, missing) > 0)


if __name__ == "__main__":
    sys.exit(main())
