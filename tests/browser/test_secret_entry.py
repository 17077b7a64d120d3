"""Typing a secret: only into its own hosts, hidden from the first character on."""

from dataclasses import replace
from urllib.parse import quote

import pytest

from nova_mcp.browser.act.action import REFUSES_COMMITS, Manner
from nova_mcp.browser.act.locate import Locator
from nova_mcp.browser.act.secret_entry import SecretGuard
from nova_mcp.browser.act.type_text import Text, type_text
from nova_mcp.core.clock import system_ports
from nova_mcp.errors import Blocked, PolicyDenied
from nova_mcp.secrets.model import Secret

pytestmark = pytest.mark.browser
PORTS = system_ports()
VALUE = "hunter2-Ünal"
SECRET = Secret("shop", VALUE, ("127.0.0.1",))
BODY = "<main><form method=post action=/x><input id=a aria-label=Key name=a><button>Save</button></form></main>"


async def show(tab, site, body=BODY):
    await tab.page.goto(site.url(f"html?body={quote(body)}"))


async def enter(tab, secret=SECRET, selector="#a", **options):
    manner = Manner(timeout_ms=500, guard=SecretGuard(REFUSES_COMMITS, secret))
    text = Text(secret.value, **options)
    return await type_text(tab, Locator(selector=selector), text, manner, PORTS)


async def test_a_secret_is_typed_and_compared_inside_the_page(tab, site):
    await show(tab, site)
    typed = await enter(tab)
    assert (typed.value_matches, typed.verdict) == (True, "readback_match")
    assert await tab.page.input_value("#a") == VALUE
    assert VALUE not in repr(typed)


async def test_the_field_reads_as_hidden_from_then_on(tab, site):
    await show(tab, site)
    typed = await enter(tab)
    assert typed.actual_value == "•••"
    told = await tab.channel.ask("summary", {})
    assert VALUE not in str(told)
    assert "•••" in str(told)


async def test_a_field_that_changes_the_secret_gives_nothing_away(tab, site):
    await show(tab, site, BODY + "<script>a.oninput = () => { a.value += '!' }</script>")
    typed = await enter(tab)
    assert (typed.value_matches, typed.actual_value) == (False, "•••")


@pytest.mark.parametrize(
    ("secret", "reason"),
    [
        (replace(SECRET, hosts=()), "secret.host_mismatch"),
        (replace(SECRET, hosts=("example.com",)), "secret.host_mismatch"),
    ],
)
async def test_a_secret_of_another_site_stays_away(tab, site, secret, reason):
    await show(tab, site)
    with pytest.raises(PolicyDenied) as refused:
        await enter(tab, secret)
    assert refused.value.reason_code == reason
    assert VALUE not in refused.value.message + refused.value.hint
    assert await tab.page.input_value("#a") == ""


async def test_enter_in_a_form_needs_a_contract_and_nothing_is_typed_before(tab, site):
    await show(tab, site)
    with pytest.raises(Blocked):
        await enter(tab, press_enter=True)
    assert await tab.page.input_value("#a") == ""
