"""A commit point is refused whatever road leads to it, and nothing harmless is refused with it."""

import contextlib
from urllib.parse import quote

import pytest
from acting_kit import ClickOptions, TypeOptions, click, type_text

from nova_mcp.browser.act.locate import Locator
from nova_mcp.core.clock import system_ports
from nova_mcp.errors import Blocked, NovaError, Precondition

pytestmark = pytest.mark.browser
PORTS = system_ports()
QUICK = ClickOptions(timeout_ms=300)


async def show(tab, site, body):
    await tab.page.goto(site.url(f"html?body={quote(body)}"))


ROADS = {
    "a wrapper around the button": (
        "<form method=post action=/sent><div id=t style='display:inline-block'><button>Go</button></div></form>",
        "#t",
    ),
    "the form itself": ("<form id=t method=post action=/sent><button style='width:100%'>Go</button></form>", "#t"),
    "a toggle inside the button": (
        "<form method=post action=/sent><button><span role=checkbox id=t>Agree</span></button></form>",
        "#t",
    ),
    "a link-looking child of the button": (
        "<form method=post action=/sent><button><span role=link id=t>More</span></button></form>",
        "#t",
    ),
    "a child span": ("<form method=post action=/sent><button><span id=t>Go</span></button></form>", "#t"),
    "a button without type": ("<form method=post action=/sent><button id=t>Next</button></form>", "#t"),
    "a button that says it is a tab": (
        "<form method=post action=/sent><button id=t role=tab>Next</button></form>",
        "#t",
    ),
    "a picture button": (
        "<form method=post action=/sent><input type=image id=t alt=x width=20 height=20></form>",
        "#t",
    ),
    "a button outside its form": (
        "<form id=f method=post action=/sent><input name=a></form><button form=f id=t>Next</button>",
        "#t",
    ),
    "a label of a button": (
        "<form method=post action=/sent><label for=b id=t>Next step</label><br><input type=submit id=b></form>",
        "#t",
    ),
    "a label around a hidden button": (
        "<form method=post action=/sent><label id=t>Next step<button hidden>x</button></label></form>",
        "#t",
    ),
    "a button that turns a get form into a post": (
        "<form method=get action=/found><input name=a><button id=t formmethod=post formaction=/sent>Go</button></form>",
        "#t",
    ),
    "a button that posts from a search form": (
        "<form role=search action=/found><input name=q><button id=t formmethod=post formaction=/sent>Go</button>",
        "#t",
    ),
    "a div that says delete": ("<div id=t onclick=\"fetch('/sent')\">Delete account</div>", "#t"),
    "a div with a listener that says delete": (
        "<div id=t style='cursor:pointer'>Delete account</div><script>t.addEventListener('click',()=>fetch('/sent'))"
        "</script>",
        "text=Delete account",
    ),
    "an anchor without address": ("<a id=t onclick=\"fetch('/sent')\" style='cursor:pointer'>Pay now</a>", "#t"),
    "a custom element": (
        "<form method=post action=/sent><x-b id=t type=submit style='display:block'>Go</x-b></form><script>"
        "customElements.define('x-b',class extends HTMLElement{constructor(){super();"
        "this.attachShadow({mode:'closed'}).innerHTML='<slot></slot>';"
        "this.onclick=()=>this.closest('form').requestSubmit()}})</script>",
        "#t",
    ),
    "two shadow trees deep": (
        "<form method=post action=/sent><x-a id=h></x-a></form><script>"
        "const a=h.attachShadow({mode:'open'});a.innerHTML='<div id=i></div>';"
        "const b=a.getElementById('i').attachShadow({mode:'open'});b.innerHTML='<button><b id=t>Go</b></button>';"
        "b.querySelector('button').onclick=()=>h.closest('form').requestSubmit()</script>",
        "#h >>> #i >>> #t",
    ),
    "a sign-out link": ("<a id=t href=/sent class=btn>Sign out</a>", "#t"),
    "a picture in a sign-out link": ("<a href=/sent aria-label='Sign out'><b id=t>x</b></a>", "#t"),
    "a wrapper around a sign-out link": ("<div id=t style='width:60px'><a href=/sent>Sign out</a></div>", "#t"),
    "a button whose form hides its password far down": (
        "<form role=search method=get action=/sent>"
        + "<input type=hidden name=h>" * 70
        + "<textarea name=m></textarea><button id=t>Go</button></form>",
        "#t",
    ),
}


@pytest.mark.parametrize("road", ROADS)
async def test_no_road_leads_to_a_commit_point(tab, site, road):
    body, selector = ROADS[road]
    await show(tab, site, f"<main>{body}</main>")
    with pytest.raises(Blocked) as caught:
        await click(tab, Locator(selector=selector), QUICK, PORTS)
    assert caught.value.reason_code == "guarded_commit.missing_contract"
    assert not any(path.startswith("/sent") for path in site.seen)


@pytest.mark.parametrize("button", ["middle", "right"])
async def test_other_mouse_buttons_are_no_road_either(tab, site, button):
    await show(
        tab,
        site,
        f"<main>{ROADS['a wrapper around the button'][0]}</main>",
    )
    with pytest.raises(Blocked):
        await click(tab, Locator(selector="#t"), ClickOptions(timeout_ms=300, button=button), PORTS)


SWITCHES = {
    "gets a submit button under the pointer": "t.innerHTML='<button>Go</button>'",
    "becomes the child of a submit button": "const b=document.createElement('button');t.before(b);b.append(t)",
}


@pytest.mark.parametrize("event", ["pointermove", "mousedown"])
@pytest.mark.parametrize("switch", SWITCHES)
async def test_a_page_that_puts_a_commit_point_under_the_pointer_is_not_obeyed(tab, site, switch, event):
    await show(
        tab,
        site,
        "<main><form method=post action=/sent><span id=t style='display:inline-block'>Show</span></form></main>"
        f"<script>t.addEventListener('{event}',()=>{{{SWITCHES[switch]}}},{{once:true}})</script>",
    )
    if event == "pointermove":
        with pytest.raises(NovaError):
            await click(tab, Locator(selector="#t"), QUICK, PORTS)
    else:
        # The press itself arrived before the page changed; what it would have set off is still stopped.
        report = await click(tab, Locator(selector="#t"), QUICK, PORTS)
        assert report.action_dispatched
    assert not any(path.startswith("/sent") for path in site.seen)


async def test_a_button_that_turns_into_a_submit_button_under_the_pointer_is_not_pressed(tab, site):
    await show(
        tab,
        site,
        "<main><form method=post action=/sent><button type=button id=t>Show</button></form></main>"
        "<script>t.addEventListener('pointermove',()=>{t.type='submit'},{once:true})</script>",
    )
    with pytest.raises(NovaError):
        await click(tab, Locator(selector="#t"), QUICK, PORTS)
    assert not any(path.startswith("/sent") for path in site.seen)


HARMLESS = {
    "a plain button in a form": "<form method=post action=/sent><button type=button id=t>Show more</button></form>",
    "a search button": "<form role=search action=/found><input name=q><button id=t>Search</button></form>",
    "a get form": "<form method=get action=/found><input name=a><button id=t>Filter</button></form>",
    "a checkbox label beside a submit button": (
        "<form method=post action=/sent><label id=t><input type=checkbox>News</label><button>Go</button></form>"
    ),
    "a field of a form": "<form method=post action=/sent><input id=t name=a><button>Go</button></form>",
    "a wrapper of plain text": "<div id=t>We never delete your things without asking you first, promise</div>",
    "a heading that says delete": "<h2 id=t>Delete</h2>",
    "a link": "<a id=t href=/found>Delivery</a>",
    "a menu button in a form": (
        "<form method=post action=/sent><button id=t commandfor=p command=show-popover>Menu</button></form>"
        "<div popover id=p>Hi</div>"
    ),
}


@pytest.mark.parametrize("control", HARMLESS)
async def test_harmless_controls_are_not_refused(tab, site, control):
    await show(tab, site, f"<main>{HARMLESS[control]}</main>")
    report = await click(tab, Locator(selector="#t"), QUICK, PORTS)
    assert report.action_dispatched


@pytest.mark.parametrize("method", ["auto", "keys", "fill"])
@pytest.mark.parametrize(
    "field",
    [
        "<form method=post action=/sent><input id=t name=a></form>",
        "<textarea id=t onkeydown=\"if(event.key=='Enter')fetch('/sent')\"></textarea>",
        "<div id=t contenteditable onkeydown=\"if(event.key=='Enter')fetch('/sent')\"></div>",
    ],
)
@pytest.mark.parametrize("text", ["one\ntwo\n", "\n", "\r\n"])
async def test_a_line_break_in_typed_text_presses_no_enter(tab, site, field, method, text):
    await show(tab, site, f"<main>{field}</main>")
    with contextlib.suppress(Precondition):
        await type_text(tab, Locator(selector="#t"), TypeOptions(text, method=method, timeout_ms=300), PORTS)
    assert not any(path.startswith("/sent") for path in site.seen)
