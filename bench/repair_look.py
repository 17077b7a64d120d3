"""Prints of the elements of whole pages as Nova reads them in Chromium, kept beside the packages until Nova changes."""

import dataclasses
import hashlib
import inspect
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from playwright.async_api import Error, Route

from bench import repair_servers, repair_sites
from bench.labels import a_tab
from bench.packages import NotInstalled, cache_folder
from bench.repair_servers import reach, serving
from bench.repair_sites import Site
from nova_mcp.browser.page import load_bundle
from nova_mcp.browser.read import knowledge_check
from nova_mcp.browser.targets.tab import Tab
from nova_mcp.memory.knowledge.matching import page_facts
from nova_mcp.memory.knowledge.matching.page_facts import page_elements
from nova_mcp.memory.knowledge.model import ElementPrint
from nova_mcp.memory.knowledge.repair.repair import PageElement

Elements = tuple[PageElement, ...]
LOOKS = 6


async def _only_here(route: Route) -> None:
    if route.request.url.startswith("http://127.0.0.1:"):
        await route.continue_()
    else:
        await route.abort()


async def _elements(tab: Tab) -> Elements:
    """What Nova sees; a busy machine may cut a look short, so it counts only once another says the same."""
    last: Elements = ()
    for _ in range(LOOKS):
        seen = page_elements(await knowledge_check.elements(tab))
        if [_still(one) for one in seen] == [_still(one) for one in last]:
            return seen
        last = seen
    raise NotInstalled(f"{tab.page.url} never looks the same twice")


def _still(element: PageElement) -> PageElement:
    """An element without what moves on a page that is not at rest."""
    return dataclasses.replace(element, seen=dataclasses.replace(element.seen, place=None))


def reader_mark() -> str:
    """Changes with everything that decides what a print holds."""
    sources = (load_bundle(), *map(inspect.getsource, (knowledge_check, page_facts, repair_servers, repair_sites)))
    return hashlib.sha256("\0".join(sources).encode()).hexdigest()[:16]


def _kept(site: Site, version: int) -> Path:
    return cache_folder() / "repair" / f"{site.name}-{site.versions[version][0]}.json"


def as_json(element: PageElement) -> dict[str, Any]:
    full = dataclasses.asdict(element.seen)
    return {"node": element.node, "selector": element.selector, **{k: v for k, v in full.items() if v}}


def from_json(told: dict[str, Any], at: int) -> PageElement:
    node, selector = told.pop("node"), told.pop("selector")
    place = told.pop("place", None)
    lists: dict[str, Any] = {name: tuple(told.pop(name, ())) for name in ("classes", "neighbours")}
    return PageElement(node, ElementPrint(**told, **lists, place=tuple(place) if place else None), selector, at)


def _read(site: Site, version: int, mark: str) -> dict[str, Elements] | None:
    try:
        told = json.loads(_kept(site, version).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if told["mark"] != mark:
        return None
    return {
        path: tuple(from_json(one, at) for at, one in enumerate(elements)) for path, elements in told["pages"].items()
    }


def _write(site: Site, version: int, mark: str, pages: dict[str, Elements]) -> None:
    file = _kept(site, version)
    file.parent.mkdir(parents=True, exist_ok=True)
    told = {"mark": mark, "pages": {path: [as_json(one) for one in elements] for path, elements in pages.items()}}
    file.write_text(json.dumps(told, indent=0), encoding="utf-8")


async def _look_at(tab: Tab, site: Site, version: int) -> dict[str, Elements]:
    found: dict[str, Elements] = {}
    with serving(site, version) as base:
        for page in range(len(site.pages)):
            if path := site.path(page, version):
                await reach(tab.page, base, path)
                found[path] = await _elements(tab)
    return found


async def site_elements(sites: Iterable[Site]) -> dict[tuple[str, str], dict[str, Elements]]:
    """By site and version, the elements of each of its pages; what can't be had is named and left out."""
    mark = reader_mark()
    found: dict[tuple[str, str], dict[str, Elements]] = {}
    missing: list[tuple[Site, int]] = []
    for site in sites:
        for version, (number, _) in enumerate(site.versions):
            kept = _read(site, version, mark)
            if kept is None:
                missing.append((site, version))
            else:
                found[site.name, number] = kept
    if not missing:
        return found
    async with a_tab() as tab:
        await tab.page.route("**/*", _only_here)
        for site, version in missing:
            number = site.versions[version][0]
            try:
                pages = await _look_at(tab, site, version)
            except (NotInstalled, Error, OSError) as error:
                print(f"left out: {site.name} {number}: {str(error).splitlines()[0][:120]}", file=sys.stderr)
                continue
            _write(site, version, mark, pages)
            found[site.name, number] = pages
    return found
