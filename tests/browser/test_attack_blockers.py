"""Layers made to be misread: what looks harmless and agrees, what looks like the page, what looks like a layer."""

from urllib.parse import quote

import pytest

from nova_mcp.browser.blockers.dismiss import Order, dismiss
from nova_mcp.browser.blockers.look import look_for_blockers
from nova_mcp.browser.blockers.rules import all_off, judge, speaks_for
from nova_mcp.core.clock import system_ports

pytestmark = pytest.mark.browser
PORTS = system_ports()

NAV = "<nav>" + "".join(f"<a href='#{n}'>Section {n}</a> " for n in range(5)) + "</nav>"
TEXT = "<p>" + "Bread is baked every morning from flour and water. " * 40 + "</p>"
MAIN = f"<main><h1>Bakery</h1>{TEXT}<a href='#6'>Read</a><button>Order</button></main>"
COVER = "position:fixed;inset:0;background:#eee"
BAR = "position:fixed;bottom:0;left:0;right:0;background:#eee"
# Every press is written down with what the pressed control does.
NOTES = (
    "<script>const did=[];addEventListener('click',e=>did.push(e.target.dataset.does??e.target.tagName),true)</script>"
)


async def show(tab, site, body):
    await tab.page.goto(site.url(f"html?body={quote(NOTES + body)}"), wait_until="load")


async def untouched(scene):
    """Nobody minds."""


async def got_rid(tab, mode="conservative"):
    done = await dismiss(tab, Order(mode, 2), untouched, PORTS)
    return done.tally, judge(done.tally), await tab.page.evaluate("did")


LAYERS = {
    "a bar that holds most controls of a short page": (
        f"<h1>Hi</h1><a href='#1'>one</a><div id=cookie-bar style='{BAR}'>We use cookies. <button>Accept</button>"
        "<button>Reject</button><button>Settings</button></div>",
        ("consent", False),
    ),
    "a nameless bar that holds most controls of a short page": (
        f"<h1>Hi</h1><a href='#1'>one</a><div style='{BAR}'><p>We use cookies</p><button>Accept</button>"
        "<button>Reject</button><button>Settings</button></div>",
        ("consent", False),
    ),
    "a cover that holds most controls": (
        f"<a href='#1'>one</a>{TEXT}<div style='{COVER}'>We use cookies. <button>Accept</button>"
        "<button>Reject</button></div>",
        ("consent", True),
    ),
    "a cover in a closed shadow root": (
        f"{MAIN}<x-c></x-c><script>document.querySelector('x-c').attachShadow({{mode:'closed'}}).innerHTML="
        f"'<div style=\"{COVER}\">We use cookies<button>Accept</button></div>'</script>",
        ("unknown", True),
    ),
    "a log-in behind the name of a cookie notice": (
        f"{MAIN}<div id=cookie-notice style='{COVER}'><h2>Sign in</h2><form><input type=email><input type=password>"
        "<button>Log in</button></form><button>Reject</button></div>",
        ("login_wall", True),
    ),
    "a log-in that calls itself a newsletter": (
        f"{MAIN}<div style='{COVER}'><h2>Join our newsletter</h2><form><input type=email><input type=password>"
        "<button>Go</button></form><button aria-label=Close>x</button></div>",
        ("login_wall", True),
    ),
    "a newsletter that says sign up in German": (
        f"{MAIN}<dialog id=d><h2>Newsletter</h2><form><input type=email><button>Anmelden</button></form></dialog>"
        "<script>d.showModal()</script>",
        ("newsletter", True),
    ),
    "an unseen catcher of every press": (f"{MAIN}<div style='{COVER};opacity:0'></div>", ("unknown", True)),
    "a bar on a layer that lets the pointer through": (
        f"{MAIN}<div style='{COVER};pointer-events:none'><div style='{BAR};pointer-events:auto'>We use cookies. "
        "<button>Accept</button><button>Reject</button></div></div>",
        ("consent", False),
    ),
}


@pytest.mark.parametrize("what", LAYERS)
async def test_a_layer_is_seen_for_what_it_is(tab, site, what):
    body, expected = LAYERS[what]
    await show(tab, site, body)
    assert [(one.kind, one.blocking) for one in await look_for_blockers(tab)] == [expected]


ORDINARY = {
    "cookie settings without a main part": f"{NAV}<div class=privacy-consent-box><h1>Cookie settings</h1><p>We use "
    f"cookies.</p><button>Reject all</button><button>Accept all</button><button>Save</button></div>{TEXT}{NAV}",
    "a part about cookies between others": f"{NAV}<div id=cookie-consent-manager><h2>Your privacy</h2><p>We use "
    f"cookies.</p><button>Reject all</button><button>Save</button></div>{TEXT}{NAV}{NAV}",
    "a note in the footer": f"{MAIN}<footer><div class=cookie-notice>We use cookies. <a href='#c'>Cookie settings"
    "</a></div></footer>",
    "a message that the settings are saved": f"{MAIN}<div role=status style='{BAR}'>Cookie settings saved "
    "<button>Close</button></div>",
    "an article about checks": f"{NAV}<article><h2>Captchas</h2><p>Are you a robot? Prove you are human.</p></article>",
    "an application in a fixed frame": f"<div style='{COVER}'>{NAV}{TEXT}{'<button>a</button>' * 8}</div>"
    "<a href='#1'>skip</a>",
}


@pytest.mark.parametrize("what", ORDINARY)
async def test_an_ordinary_page_has_no_layer_and_nothing_is_pressed(tab, site, what):
    await show(tab, site, ORDINARY[what])
    assert await look_for_blockers(tab) == ()
    tally, verdict, did = await got_rid(tab, "aggressive")
    assert (tally.found, verdict.status, did) == (0, "ok", [])


def consent(*buttons):
    shown = "".join(f"<button type=button data-does='{does}' {more}>{label}</button>" for label, does, more in buttons)
    return f"{MAIN}<div id=cookie-wall style='{COVER}'><p>We use cookies.</p>{shown}</div>"


AGREEING = {
    "necessary and more": consent(("Accept necessary and tracking cookies", "accept", "")),
    "refusing means paying": consent(("Reject and subscribe", "pay", "")),
    "a broken word": consent(("Reject ads, ac&shy;cept all", "accept", "")),
    "a refusal of the refusal": consent(("Decline to opt out", "accept", "")),
    "a handler that says the opposite": consent(("Reject", "accept", "onclick='acceptAll()'")),
    "a name of a platform that is not here": consent(("Zgadzam si&#281;", "accept", "id=declineButton")),
    "put off with a condition": consent(("Not now, recommended settings please", "accept", "")),
    "a link that says yes": f"{MAIN}<div id=cookie-wall style='{COVER}'><p>We use cookies.</p>"
    "<a href='/consent?choice=accept' data-does=accept>Reject</a></div>",
    "a form that says yes": f"{MAIN}<div id=cookie-wall style='{COVER}'><p>We use cookies.</p>"
    "<form action='/accept'><button data-does=accept>Reject</button></form></div>",
}


@pytest.mark.parametrize("what", AGREEING)
@pytest.mark.parametrize("mode", ["conservative", "aggressive"])
async def test_what_agrees_or_is_not_understood_is_not_pressed(tab, site, what, mode):
    await show(tab, site, AGREEING[what])
    _, verdict, did = await got_rid(tab, mode)
    assert did == []
    assert verdict.reason_code == ("blockers.hidden_only" if mode == "aggressive" else "blockers.needs_human")


SAVE = "<button type=button data-does=save>Save preferences</button>"
OFF = "<label><input type=checkbox>Partners</label>"
UNSAFE_SWITCHES = {
    "a drawn switch that can't be read": f"{OFF}<div class=toggle-switch style='width:40px;height:20px'></div>",
    "a list set to yes": f"{OFF}<select><option>Allowed</option><option>Off</option></select>",
    "marketing fixed to yes": f"{OFF}<label><input type=checkbox checked disabled>Marketing</label>",
    "a yes that begins with no": f"{OFF}<label><input type=radio name=r checked>No problem, go</label>"
    "<label><input type=radio name=r>Limited</label>",
    "a pressed button": f"{OFF}<button aria-pressed=true>Ads</button>",
    "an objection left out": f"{OFF}<label><input type=checkbox>Do not sell my data</label>",
}
SAFE_SWITCHES = {
    "off": OFF,
    "the necessary is fixed": f"{OFF}<label><input type=checkbox checked disabled>Necessary</label>",
    "drawn beside its box": "<label class=switch><input type=checkbox><span class=slider style='display:block;"
    "width:40px;height:20px'></span>Partners</label>",
}


async def the_layer(tab, site, inner):
    await show(tab, site, f"{MAIN}<div id=cookie-wall style='{COVER}'><p>Cookie settings</p>{inner}{SAVE}</div>")
    (found,) = await look_for_blockers(tab)
    assert speaks_for(found, "save") is not None
    return found


@pytest.mark.parametrize("what", UNSAFE_SWITCHES)
async def test_choices_that_can_not_be_read_as_off_are_not_saved(tab, site, what):
    assert not all_off((await the_layer(tab, site, UNSAFE_SWITCHES[what])).switches)


@pytest.mark.parametrize("what", SAFE_SWITCHES)
async def test_choices_that_read_off_may_be_saved(tab, site, what):
    assert all_off((await the_layer(tab, site, SAFE_SWITCHES[what])).switches)


async def test_a_cover_nobody_can_look_into_is_left_to_a_person_and_can_be_hidden(tab, site):
    body = LAYERS["a cover in a closed shadow root"][0]
    await show(tab, site, body)
    tally, verdict, _ = await got_rid(tab)
    assert (tally.dismissed, verdict.reason_code) == (0, "blockers.needs_human")
    _, verdict, _ = await got_rid(tab, "aggressive")
    assert verdict.reason_code == "blockers.hidden_only"


async def test_a_second_request_after_the_first_is_refused_too(tab, site):
    second = "document.body.insertAdjacentHTML('beforeend', again.innerHTML)"
    layer = "<div id={0} style='{1}'><p>We use cookies.</p><button data-does=accept>Accept</button>"
    first = (
        layer.format("cookie-wall", COVER) + f'<button data-does=reject onclick="this.parentNode.remove();{second}">'
    )
    last = layer.format("consent-box", COVER) + '<button data-does=reject onclick="this.parentNode.remove()">'
    await show(
        tab, site, f"{MAIN}{first}Reject</button></div><template id=again>{last}Reject</button></div></template>"
    )
    tally, verdict, did = await got_rid(tab)
    assert (did, verdict.status, tally.choice) == (["reject", "reject"], "ok", "rejected")


async def test_layers_without_end_are_given_up_and_said_to_be_there(tab, site):
    body = (
        f"{MAIN}<script>function more(){{const d=document.createElement('div');d.style='{COVER}';"
        "d.innerHTML='<p>Offer of the day</p><button data-does=close aria-label=Close>x</button>';"
        "d.lastChild.onclick=()=>{d.remove();more()};document.body.append(d)}more()</script>"
    )
    await show(tab, site, body)
    tally, verdict, did = await got_rid(tab)
    assert set(did) == {"close"}
    assert verdict.status == "partial"
    assert len(tally.remaining) == 1
