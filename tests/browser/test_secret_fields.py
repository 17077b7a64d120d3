"""A field a secret went into: reads as dots from then on, whatever the page does with it, in words and in pictures."""

from typing import Any
from urllib.parse import quote

import pytest

from nova_mcp.browser.act.navigate import navigate
from nova_mcp.browser.read.screenshot import ShotOptions, capture
from nova_mcp.browser.targets.tab import Tab

from .conftest import Site

FORM = """<label>Field <input id=field></label><label>Notes <textarea id=notes></textarea></label>
<div id=rich contenteditable role=textbox aria-label=Rich></div>"""


async def armed(tab: Tab, site: Site, field: str) -> None:
    await navigate(tab, site.url(f"html?body={quote(FORM)}"))
    want = {"selector": field, "editable": True, "waitMs": 3000}
    told: Any = await tab.channel.ask("prepare", want)
    assert told["state"] == "ready"
    await tab.channel.ask("focus", {"clear": True})


async def seen(tab: Tab, field: str) -> Any:
    found: Any = await tab.channel.ask("find", {"selector": field})
    return found["element"]["value"]


@pytest.mark.parametrize("field", ["#field", "#notes", "#rich"])
async def test_only_whether_it_matches_leaves_the_page(tab: Tab, site: Site, field: str) -> None:
    await armed(tab, site, field)
    assert await tab.channel.ask("markSecret") == {"lost": False, "matches": False}
    await tab.page.keyboard.insert_text("hunter22")
    assert await tab.channel.ask("markSecret", {"text": "hunter22"}) == {"lost": False, "matches": True}
    assert await tab.channel.ask("markSecret", {"text": "hunter23"}) == {"lost": False, "matches": False}
    told: Any = await tab.channel.ask("readBack", {"text": "hunter22", "frames": 0})
    assert (told["matches"], told["value"], told["secret"]) == (True, "•••", True)


async def test_a_marked_field_stays_hidden_whatever_the_page_makes_of_it(tab: Tab, site: Site) -> None:
    await armed(tab, site, "#field")
    await tab.channel.ask("markSecret")
    await tab.page.keyboard.insert_text("hunter22")
    assert await seen(tab, "#field") == "•••"
    await tab.page.evaluate("field.type = 'search'; field.setAttribute('autocomplete', 'off'); field.value += 'x'")
    assert await seen(tab, "#field") == "•••"


async def test_a_field_that_is_gone_is_said_to_be_lost(tab: Tab, site: Site) -> None:
    await armed(tab, site, "#field")
    await tab.page.evaluate("field.remove()")
    assert await tab.channel.ask("markSecret", {"text": ""}) == {"lost": True}


async def test_a_marked_field_is_covered_in_pictures(tab: Tab, site: Site) -> None:
    await armed(tab, site, "#field")
    assert (await capture(tab, ShotOptions())).masked_fields == 0
    await tab.channel.ask("markSecret")
    assert (await capture(tab, ShotOptions())).masked_fields == 1


@pytest.mark.parametrize(
    ("field", "value", "hidden"),
    [
        ("name=cardNumber", "1234", True),
        ("id=cc-num", "1234", True),
        ("name=cvc", "123", True),
        ("name=kreditkarten_nummer", "1234", True),
        ("name=note", "4111 1111 1111 1111", True),
        ("name=note", "4111 1111 1111 1112", False),
        ("name=discard_number", "12", False),
        ("name=postcardnote", "12", False),
    ],
)
async def test_a_field_for_a_card_reads_as_dots_without_being_told(
    tab: Tab, site: Site, field: str, value: str, hidden: bool
) -> None:
    await navigate(tab, site.url(f"html?body={quote(f'<main><input {field} value={chr(34)}{value}{chr(34)}></main>')}"))
    assert (await seen(tab, "input") == "•••") is hidden
