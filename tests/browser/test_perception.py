"""Perceiving: what is shown, within which budget, under which refs."""

import re
from urllib.parse import quote

import pytest

from nova_mcp.browser.perceive.page_facts import page_facts
from nova_mcp.browser.perceive.perception import PerceiveRequest, perceive
from nova_mcp.core.clock import system_ports
from nova_mcp.core.tokens import estimate_tokens

pytestmark = pytest.mark.browser
PORTS = system_ports()
LINE = re.compile(r'^e\d+ [a-z]+ "(?:[^"\\]|\\.)*"(?: ="(?:[^"\\]|\\.)*")? \S.*$')


async def show(tab, site, body, title="page"):
    await tab.page.goto(site.url(f"html?title={quote(title)}&body={quote(body)}"))


# Laying out thousands of framed buttons in one line of text takes the browser longer than everything else here.
PLAIN_BUTTONS = "<style>button{display:block;font:10px monospace;border:0;padding:0}</style>"


async def test_summary_lists_controls_with_role_name_value_selector_and_flags(tab, site):
    await tab.page.goto(site.url("act/shop.html"))
    report = await perceive(tab, PerceiveRequest(), PORTS)
    lines = {element.line.split(" ", 1)[1] for element in report.elements}
    assert 'textbox "Your name" #who [required]' in lines
    assert 'spinbutton "Quantity" ="2" role=spinbutton[name="Quantity"]' in lines
    assert 'textbox "Pin" ="•••" input[aria-label="Pin"]' in lines
    assert 'button "Sold out" #off [disabled]' in lines
    assert 'link "Help" role=link[name="Help"] [newtab]' in lines
    assert all(LINE.match(element.line) for element in report.elements)
    assert report.headings == ('h1 "Garden tools"', 'h2 "Your data"')
    assert 'navigation "Main"' in report.landmarks
    assert "IGNORE ALL" not in report.text()


async def test_summary_marks_commit_points_and_suggests_the_guarded_tool(tab, site):
    await tab.page.goto(site.url("act/shop.html"))
    report = await perceive(tab, PerceiveRequest(), PORTS)
    (point,) = report.commit_points
    assert report.commit_point_total == 1
    assert point.name == "Order now"
    assert any(e.ref == point.ref and "[commit" in e.line for e in report.elements)


async def test_every_selector_shown_means_that_element_alone(tab, site):
    await tab.page.goto(site.url("act/shop.html"))
    report = await perceive(tab, PerceiveRequest(), PORTS)
    for element in report.elements:
        ref = tab.perception.get(element.ref)
        found = await tab.channel.ask("find", {"selector": ref.selector.selector})
        assert found["state"] == "found", ref.selector
        assert found["element"]["n"] == ref.node


async def test_rev_and_refs_stay_while_nothing_changes_and_rev_rises_when_something_does(tab, site):
    await tab.page.goto(site.url("act/shop.html"))
    first = await perceive(tab, PerceiveRequest(), PORTS)
    again = await perceive(tab, PerceiveRequest(), PORTS)
    assert (again.rev, again.elements) == (first.rev, first.elements)
    assert again.perception_id != first.perception_id
    await tab.page.evaluate("document.getElementById('quiet').textContent = 'Now something'")
    changed = await perceive(tab, PerceiveRequest(), PORTS)
    assert changed.rev == first.rev + 1
    quiet = next(e for e in first.elements if "Do nothing" in e.line)
    renamed = next(e for e in changed.elements if "Now something" in e.line)
    assert renamed.ref != quiet.ref
    assert quiet.ref not in {e.ref for e in changed.elements}


async def test_reload_of_the_same_page_keeps_refs_of_elements_that_are_unique(tab, site):
    await tab.page.goto(site.url("act/shop.html"))
    first = await perceive(tab, PerceiveRequest(), PORTS)
    await tab.page.reload()
    again = await perceive(tab, PerceiveRequest(), PORTS)
    assert again.page_epoch > first.page_epoch
    assert again.elements == first.elements


@pytest.mark.parametrize("max_tokens", [200, 400, 1200])
async def test_budget_holds_on_a_page_full_of_commit_points_and_long_texts(tab, site, max_tokens):
    rows = "".join(
        f"<form method=post><input name=field{i} aria-label='{'Länge ' * 20}{i}' value='{'日本語' * 40}'>"
        f"<button>Delete account {'über ' * 15}{i}</button></form>"
        for i in range(60)
    )
    await show(tab, site, "<main></main>")
    page = {"title": "標題" * 100, "body": f"<main><h1>{'Überschrift ' * 30}</h1>{rows}</main>"}
    await tab.page.evaluate("page => { document.title = page.title; document.body.innerHTML = page.body; }", page)
    report = await perceive(tab, PerceiveRequest(max_tokens=max_tokens), PORTS)
    assert report.est_tokens == estimate_tokens(report.text())
    assert report.est_tokens <= max_tokens
    assert len(report.commit_points) == 8
    assert report.commit_point_total == 60
    assert report.completeness.shown == len(report.elements) < report.completeness.total


async def test_br08_fifty_thousand_buttons_fit_the_budget_and_say_that_the_scan_was_cut(tab, site):
    await show(tab, site, f"{PLAIN_BUTTONS}<main></main>")
    await tab.page.evaluate(
        """() => { const all = document.createDocumentFragment();
        for (let i = 0; i < 50000; i += 1) {
          const button = document.createElement('button');
          button.textContent = `Item ${i}`;
          all.append(button);
        }
        document.querySelector('main').append(all); document.body.offsetHeight; }"""
    )
    report = await perceive(tab, PerceiveRequest(), PORTS)
    assert report.est_tokens <= 1200
    assert report.completeness.scan_truncated
    assert report.completeness.total == 50000
    assert len(report.elements) > 20


async def test_br08_fifty_thousand_plain_nodes_hide_no_control(tab, site):
    await show(tab, site, "<main></main>")
    await tab.page.evaluate(
        """() => { const main = document.querySelector('main');
        main.innerHTML = '<p>text <b>bold</b></p>'.repeat(25000) + '<button id="last">Last</button>';
        document.body.offsetHeight; }"""
    )
    report = await perceive(tab, PerceiveRequest(), PORTS)
    assert any("#last" in e.line and "offscreen" in e.line for e in report.elements)
    assert report.completeness.more == "scroll"


async def test_while_a_modal_is_open_what_lies_behind_is_only_counted(tab, site):
    await tab.page.goto(site.url("hostile/overlays.html?mode=modal"))
    report = await perceive(tab, PerceiveRequest(), PORTS)
    assert [e.line.split(" ", 1)[1] for e in report.elements] == ['button "Yes" #yes']
    assert report.behind_modal == 1
    assert report.dialogs == ('dialog "Question" modal',)


async def test_open_shadow_roots_are_seen_and_their_selectors_enter_them(tab, site):
    body = "<main><x-card id=card></x-card></main><script>customElements.define('x-card', class extends HTMLElement {"
    body += "constructor() { super(); "
    body += "this.attachShadow({mode: 'open'}).innerHTML = '<button id=in>Inside</button>'; } })</script>"
    await show(tab, site, body)
    report = await perceive(tab, PerceiveRequest(), PORTS)
    assert [e.line.split(" ", 1)[1] for e in report.elements] == ['button "Inside" #card >>> #in']


async def test_state_mode_tells_focus_and_dialogs_and_does_not_count_as_having_looked(tab, site):
    await tab.page.goto(site.url("act/shop.html"))
    await tab.page.focus("#who")
    report = await perceive(tab, PerceiveRequest(mode="state"), PORTS)
    assert report.active_element.split(" ", 1)[1] == 'textbox "Your name" #who [required]'
    assert report.title == "Garden shop"
    assert report.est_tokens <= 250
    assert tab.perceived_epoch is None
    await perceive(tab, PerceiveRequest(), PORTS)
    assert tab.perceived_epoch == tab.page_epoch


async def test_page_info_counts_nodes_frames_and_viewport(tab, site):
    await show(tab, site, "<main><p>a</p><iframe srcdoc='<p>b</p>'></iframe></main>", "Facts")
    facts = await page_facts(tab)
    assert (facts.title, facts.frame_count, facts.page.ready_state) == ("Facts", 1, "complete")
    assert facts.dom_nodes >= 6
    assert facts.page.viewport[0] > 0
    assert facts.perceived_rev is None


async def test_the_page_and_the_host_agree_on_what_looks_generated(tab):
    from nova_mcp.core.page.selectors import looks_generated

    tokens = "save css-1x2y main-nav :r1: a1b2c3 deadbeef1 item-12 sc-bdVaJa jss12 jssBox h1 x1y2z3 «r3» row_2a4b6"
    tokens = [
        *tokens.split(),
        "user42name3",
        "MainNav",
        "ember1234",
        "data-v-7ba5bd90",
        "_ngcontent-abc",
        "button__icon",
        "grid-2-3",
    ]
    told = await tab.channel.ask("generated", {"tokens": tokens})
    assert dict(zip(tokens, told, strict=True)) == {token: looks_generated(token) for token in tokens}
