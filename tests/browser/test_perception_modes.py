"""The ways of looking: parts of a page, forms, dialogs, changes, earlier refs, who is signed in."""

from urllib.parse import quote

import pytest

from nova_mcp.browser.act.locate import Locator
from nova_mcp.browser.perceive.perception import PerceiveRequest, perceive
from nova_mcp.core.clock import system_ports
from nova_mcp.errors import NotFound

pytestmark = pytest.mark.browser
PORTS = system_ports()
FORM = (
    "<form method=post action=/go aria-label=Repair>"
    "<label>Mail <input name=mail type=email required autocomplete=email value=a@b.c></label>"
    "<label>Pin <input name=pin type=password value=1234></label>"
    "<label>Colour <select name=colour><option>red<option>green</select></label>"
    "<label><input type=checkbox name=ok checked> Agree</label>"
    "<label>Photo <input type=file name=photo></label>"
    "<label>Age <input type=number name=age value=x aria-invalid=true></label>"
    "<button>Send order</button></form><input aria-label=Loose>"
)


async def show(tab, site, body):
    await tab.page.goto(site.url(f"html?body={quote(body)}"))


async def test_form_analysis_tells_for_each_control_how_to_fill_it_in(tab, site):
    await show(tab, site, FORM)
    report = await perceive(tab, PerceiveRequest(mode="form_analysis"), PORTS)
    form, loose = report.forms
    controls = {control.label: control for control in form.controls}
    assert (form.name, form.method, len(loose.controls)) == ("Repair", "post", 1)
    mail = controls["Mail"]
    assert (mail.type, mail.required, mail.value, mail.autocomplete) == ("email", True, "a@b.c", "email")
    assert controls["Pin"].value == "•••"
    assert controls["Colour"].options == ("red", "green")
    assert controls["Age"].invalid
    assert {label: control.preferred_tool.removeprefix("nova.") for label, control in controls.items()} == {
        "Mail": "type_selector",
        "Pin": "type_selector_secret",
        "Colour": "choose_option",
        "Agree": "choose_option",
        "Photo": "file_upload",
        "Age": "type_selector",
        "Send order": "guarded_login",
    }
    assert all(tab.perception.get(control.ref) is not None for control in form.controls)
    assert "1234" not in "".join(control.line for control in form.controls)


async def test_scope_shows_one_part_and_does_not_pass_for_a_change(tab, site):
    await show(tab, site, "<section id=a><button>In</button></section><button>Out</button>")
    whole = await perceive(tab, PerceiveRequest(), PORTS)
    part = await perceive(tab, PerceiveRequest(scope=Locator(selector="#a")), PORTS)
    assert [one.line.split('"')[1] for one in part.elements] == ["In"]
    assert part.elements[0].ref == next(one.ref for one in whole.elements if '"In"' in one.line)
    assert (await perceive(tab, PerceiveRequest(), PORTS)).rev == part.rev == whole.rev
    with pytest.raises(NotFound):
        await perceive(tab, PerceiveRequest(scope=Locator(selector="#none")), PORTS)


async def test_since_rev_tells_what_came_changed_and_went(tab, site):
    await show(tab, site, "<button id=x>Old</button><input id=i aria-label=Field><button>Same</button>")
    first = await perceive(tab, PerceiveRequest(), PORTS)
    refs = {one.line.split('"')[1]: one.ref for one in first.elements}
    await tab.page.evaluate("x.outerHTML = '<button>New</button>'; i.value = 'typed'")
    told = await perceive(tab, PerceiveRequest(since_rev=first.rev), PORTS)
    assert [line.split('"')[1] for line in told.delta.added] == ["New"]
    assert told.delta.changed == (f'{refs["Field"]} textbox "Field" ="typed" #i',)
    assert told.delta.removed == (f'{refs["Old"]} button "Old"',)
    assert told.elements == ()
    assert told.rev == first.rev + 1
    still = await perceive(tab, PerceiveRequest(since_rev=told.rev), PORTS)
    assert "no element changed" in still.text()


async def test_since_rev_without_a_past_gives_everything_and_says_why(tab, site):
    await show(tab, site, "<button>Here</button>")
    unknown = await perceive(tab, PerceiveRequest(since_rev=99), PORTS)
    assert (unknown.delta_unavailable, len(unknown.elements)) == ("rev_unknown", 1)
    await tab.page.reload()
    moved = await perceive(tab, PerceiveRequest(since_rev=unknown.rev), PORTS)
    assert (moved.delta_unavailable, len(moved.elements)) == ("new_document", 1)


async def test_earlier_refs_are_resolved_without_being_touched(tab, site):
    await show(tab, site, "<button id=a>Stay</button><button id=b>Go</button>")
    report = await perceive(tab, PerceiveRequest(), PORTS)
    stay, go = (one.ref for one in report.elements)
    await tab.page.evaluate("b.remove()")
    told = await perceive(tab, PerceiveRequest(mode="state", resolve=(stay, go, "e999")), PORTS)
    assert [(one.ref, one.live, one.reason) for one in told.resolved] == [
        (stay, True, ""),
        (go, False, "ref.stale"),
        ("e999", False, "ref.stale"),
    ]
    assert told.resolved[0].line == f'{stay} button "Stay" #a'


async def test_a_login_page_says_so_and_a_public_page_says_nothing(tab, site):
    await tab.page.goto(site.url("social/login_password.html"))
    for mode in ("summary", "state"):
        report = await perceive(tab, PerceiveRequest(mode=mode), PORTS)
        assert (report.auth.stage, report.auth.login_wall_visible) == ("login_wall", True)
        assert "auth: login_wall" in report.text()
    await tab.page.goto(site.url("social/public.html"))
    assert (await perceive(tab, PerceiveRequest(), PORTS)).auth is None


async def test_a_layer_over_the_page_is_named_with_refs_for_its_controls(tab, site):
    layer = (
        "<div role=dialog aria-modal=true aria-label='Cookies' style='position:fixed;inset:0;background:#fff'>"
        "<p>We use cookies. Choose what we may store.</p><button id=yes>Accept all</button>"
        "<button id=no>Reject all</button></div>"
    )
    await show(tab, site, f"<main><h1>Shop</h1><p>{'text ' * 200}</p><button>Buy</button></main>{layer}")
    report = await perceive(tab, PerceiveRequest(), PORTS)
    (blocker,) = report.blockers
    lines = {one.ref: one.line for one in report.elements}
    assert (blocker.kind, blocker.blocking) == ("consent", True)
    assert '"Reject all"' in lines[blocker.controls["reject"]]
    assert '"Accept all"' in lines[blocker.controls["accept"]]
    assert (report.behind_modal, len(report.elements)) == (1, 2)
    glance = await perceive(tab, PerceiveRequest(mode="state"), PORTS)
    assert [one.ref for one in glance.blockers] == [blocker.ref]


async def test_modals_lists_what_stands_on_a_layer_that_does_not_call_itself_a_dialog(tab, site):
    layer = (
        "<div style='position:fixed;inset:0;background:#fff;z-index:9'><p>We use cookies to store your choices.</p>"
        "<button>Accept all</button><button>Reject all</button></div>"
    )
    await show(tab, site, f"<main><h1>Shop</h1><p>{'text ' * 200}</p><button>Buy</button></main>{layer}")
    report = await perceive(tab, PerceiveRequest(mode="modals"), PORTS)
    assert {one.line.split('"')[1] for one in report.elements} == {"Accept all", "Reject all"}


async def test_closed_components_are_counted(tab, site):
    script = "customElements.define('x-shut', class extends HTMLElement { constructor() { super();"
    script += "this.attachShadow({mode: 'closed'}).innerHTML = '<button>Shut</button>'; } })"
    await show(tab, site, f"<button>Open</button><x-shut></x-shut><script>{script}</script>")
    report = await perceive(tab, PerceiveRequest(), PORTS)
    assert (report.closed_roots, len(report.elements)) == (1, 1)
    assert "closed components: 1" in report.text()


async def test_hidden_controls_appear_only_when_asked_for(tab, site):
    await show(tab, site, "<button>Seen</button><button style='display:none'>Unseen</button>")
    assert len((await perceive(tab, PerceiveRequest(), PORTS)).elements) == 1
    everything = await perceive(tab, PerceiveRequest(visible_only=False), PORTS)
    assert [one.line.split('"')[1] for one in everything.elements] == ["Seen", "Unseen"]
