"""Roles, names and states of every case page, beside Chromium's own accessibility tree."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
from bench.names_oracle import Pair, compare, one_line
from playwright.async_api import Page

from .conftest import PAGES

pytestmark = pytest.mark.browser
MARKS = (
    "data-case", "data-name", "data-role", "data-states", "data-chromium", "data-chromium-role",
    "data-chromium-states", "data-why", "data-skip",
)  # fmt: skip
CASE_PAGES = sorted(page.name for page in (PAGES / "names").glob("*.html"))


@dataclass(frozen=True, slots=True)
class Case:
    """One marked element: what it is about, what is right, and what Chromium says where it differs."""

    about: str
    name: str | None
    role: str | None
    states: str | None
    chromium_name: str | None
    chromium_role: str | None
    chromium_states: str | None
    why: str | None
    skip: str | None


async def _pairs(page: Page, url: str) -> AsyncIterator[tuple[Case, Pair]]:
    await page.goto(url)
    for pair in await compare(page, MARKS):
        if pair.marks[0] is not None:
            yield Case(*pair.marks), pair  # type: ignore[arg-type]


def _nova_wrong(case: Case, pair: Pair) -> list[str]:
    found = []
    if case.name is not None and pair.nova.name != case.name:
        found.append(f"name {pair.nova.name!r}, not {case.name!r}")
    if case.role is not None and pair.nova.role != case.role:
        found.append(f"role {pair.nova.role!r}, not {case.role!r}")
    if case.states is not None and pair.nova.states != frozenset(case.states.split()):
        found.append(f"states {sorted(pair.nova.states)}, not {case.states!r}")
    return [f"{case.about}: {text}" for text in found]


def _chromium_unexpected(case: Case, pair: Pair) -> list[str]:
    """Where Chromium differs from the case and the case does not say so, or says so and it does not."""
    if pair.chromium is None or case.skip is not None:
        return [] if (pair.chromium is None) == (case.skip is not None) else [f"{case.about}: shown or not shown"]
    found = []
    wanted = case.name if case.chromium_name is None else one_line(case.chromium_name)
    if wanted is not None and pair.chromium.name != wanted:
        found.append(f"Chromium's name {pair.chromium.name!r}, not {wanted!r}")
    wanted = case.role if case.chromium_role is None else case.chromium_role
    if wanted is not None and pair.chromium.role != wanted:
        found.append(f"Chromium's role {pair.chromium.role!r}, not {wanted!r}")
    wanted = case.states if case.chromium_states is None else case.chromium_states
    if wanted is not None and pair.chromium.states != frozenset(wanted.split()):
        found.append(f"Chromium's states {sorted(pair.chromium.states)}, not {wanted!r}")
    return [f"{case.about}: {text}" for text in found]


@pytest.mark.parametrize("page_name", CASE_PAGES)
async def test_every_case_has_the_role_name_and_states_it_should(module_tab, server, page_name):
    seen = [item async for item in _pairs(module_tab.page, server.url(f"names/{page_name}"))]
    assert len({case.about for case, _ in seen}) == len(seen) > 10
    assert [text for case, pair in seen for text in _nova_wrong(case, pair)] == []
    assert [text for case, pair in seen for text in _chromium_unexpected(case, pair)] == []


BOMBS = """() => {
  const deep = (tag, count, style) => {
    const top = document.createElement(tag);
    let inner = top;
    for (let i = 0; i < count; i += 1) {
      inner.style.cssText = style;
      inner.append(document.createElement(tag));
      inner = inner.firstChild;
    }
    inner.append('bottom');
    return top;
  };
  const button = (id, ...parts) => {
    const made = document.createElement('button');
    made.id = id;
    made.append(...parts);
    document.body.append(made);
    return made;
  };
  button('deep', 'Deep', deep('span', 1000, ''));
  button('unseen', 'Unseen', deep('span', 1000, 'visibility: hidden'));
  button('boxless', 'Boxless', deep('span', 1000, 'display: contents'));
  const host = document.createElement('x-slots');
  host.attachShadow({ mode: 'open' }).append(deep('slot', 500, ''));
  button('slots', 'Slots', host);
  const wide = button('wide', 'Wide ');
  for (let i = 0; i < 5000; i += 1) wide.append(document.createElement('i'), 'x');
  const ring = Array.from({ length: 60 }, (_, i) => `r${i}`);
  for (const id of ring) button(id, id).setAttribute('aria-labelledby', ring.join(' '));
  for (const id of ring) document.getElementById(id).setAttribute('aria-owns', ring.join(' '));
  const style = document.createElement('style');
  style.textContent = Array.from({ length: 3000 }, (_, i) => `.c${i}:has(*) > b::after { content: "c" }`).join('');
  document.head.append(style);
}"""


async def test_trees_built_to_exhaust_the_walk_still_have_names(module_tab, server):
    await module_tab.page.goto(server.url("html?body=%3Cform%3E%3Cinput name=getAttribute%3E%3C/form%3E"))
    await module_tab.page.evaluate(BOMBS)
    for name in ("deep", "unseen", "boxless", "slots", "wide"):
        found = await module_tab.channel.ask("find", {"selector": f"#{name}"})
        assert found["element"]["name"].lower().startswith(name), found
        assert len(found["element"]["name"]) <= 200
    assert (await module_tab.channel.ask("find", {"selector": "#r7"}))["element"]["name"].startswith("r0 r1 r2")
