"""A fact claims no more than its labelled pages support, and unknown never becomes no."""

from urllib.parse import quote

import pytest
from bench.labels import CLAIMS, Claim, measure, read_set

from nova_mcp.browser.act.locate import Locator
from nova_mcp.browser.targets.registry import Tab
from nova_mcp.core.clock import system_ports

from .acting_kit import TypeOptions, type_text
from .conftest import Site
from .social_facts import read

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.name)
def test_every_set_holds_fifteen_pages_of_either_kind(claim: Claim) -> None:
    pages = read_set(claim.name)
    assert len({page.name for page in pages}) == len(pages)
    assert sum(page.shows for page in pages) >= 15
    assert sum(not page.shows for page in pages) >= 15


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.name)
async def test_a_claim_keeps_the_recall_and_precision_it_was_published_with(module_tab: Tab, claim: Claim) -> None:
    score = await measure(module_tab, claim)
    assert score.recall >= claim.recall, score.missed
    assert score.precision >= claim.precision, score.wrong
    # A page that shows it and is told not to would let an agent act on the opposite of what is there.
    assert len(score.denied) <= len(score.missed)


REFUSED = {
    "marked by the server": "<input id=f name=a value=x aria-invalid=true aria-describedby=e>"
    "<ul class=errorlist id=e><li>Enter a valid value.</li></ul>",
    "painted by a class": "<input id=f name=a value=x class='form-control is-invalid'>",
    "in a wrapper": "<div class=field_with_errors><input id=f name=a value=x></div>",
}


@pytest.mark.parametrize("how", REFUSED)
async def test_a_field_put_right_is_no_longer_held_against_the_form(tab: Tab, site: Site, how: str) -> None:
    body = f"<form>{REFUSED[how]}<button>Save</button></form>"
    await tab.page.goto(site.url(f"html?body={quote(body)}"))
    assert await read(tab, "form.fields.valid") == {"form.fields.valid": False}
    await type_text(tab, Locator(selector="#f"), TypeOptions("right"), system_ports())
    assert await read(tab, "form.fields.valid") == {"form.fields.valid": True}


async def test_a_page_that_objects_to_what_was_typed_is_believed(tab: Tab, site: Site) -> None:
    judged = "this.setAttribute('aria-invalid', this.value.length < 9)"
    body = f'<form><input id=f oninput="{judged}"><button>Save</button></form>'
    await tab.page.goto(site.url(f"html?body={quote(body)}"))
    await type_text(tab, Locator(selector="#f"), TypeOptions("short"), system_ports())
    assert await read(tab, "form.fields.valid") == {"form.fields.valid": False}
    await type_text(tab, Locator(selector="#f"), TypeOptions("long enough"), system_ports())
    assert await read(tab, "form.fields.valid") == {"form.fields.valid": True}
