"""What stored knowledge asks of a page: selectors, prints, signs, lists; and that no page can make it long or leak."""

import json

import pytest

from nova_mcp.browser.read.knowledge_check import elements, items, look, page_signs, signals
from nova_mcp.core.page.control_labels import label_for
from nova_mcp.core.page.looks import MAX_SELECTORS, VendorSign, WantedSignals
from nova_mcp.memory.knowledge.matching.page_facts import page_elements, print_of, surroundings
from nova_mcp.memory.knowledge.repair.repair import Repair, repair

pytestmark = pytest.mark.browser

SECRET = "hunter2-typed"
LAYERED = """<!doctype html><html lang="de-AT"><body style="overflow:hidden"><main style="height:3000px">
<a id=far href="/orders/7?token=abc#x" class="link css-1x2y3z">Orders</a>
<a id=off href="https://elsewhere.example/x">Away</a>
<form method=post action=/pay><p>Card of <b>Ada</b></p>
<label>Password <input id=pw type=password name=pw value="from-markup"></label>
<label>Note <textarea id=note>old note</textarea></label>
<button id=go data-testid=pay>Send <span>now</span></button></form>
<button class=twin style="display:none">Twin one</button><button class=twin>Twin two</button>
<x-card></x-card></main>
<div id=layer role=dialog aria-label=Cookies style="position:fixed;inset:0;background:#eee">
<div class=box style="position:fixed;top:300px;left:440px;width:400px;height:200px;background:#fff">
<p>Wir nutzen <i>Coo</i>kies auf der Stra&szlig;e</p><p style="display:none">never to be seen</p>
<button id=no class="btn" name=deny>Alle ablehnen</button><button id=yes class="btn">Alle akzeptieren</button>
</div></div>
<script type="text/plain" src="https://eu.cdn.vendor.example/x.js"></script>
<script>
const root = document.querySelector('x-card').attachShadow({mode: 'open'});
root.innerHTML = '<section><p>Inside</p><button class=deep>Deep one</button></section>';
</script></body></html>"""


async def test_one_look_tells_what_each_selector_finds_and_never_what_was_entered(tab):
    await tab.page.set_content(LAYERED)
    await tab.page.fill("#pw", SECRET)
    await tab.page.fill("#note", f"note {SECRET}")
    asked = ["#no", "#yes", "#go", "#pw", "#note", "#far", "#off", ".twin", ".nowhere", "a:nope(", "x-card >>> .deep"]
    asked += ['role=button[name="Deep one"]', 'role=button[name="Send now"]', 'text="Twin two"', "role=", "form p"]
    told = await look(tab, asked, ["#layer", "a:nope("])
    assert list(told) == asked
    assert {one: told[one].matches for one in asked if told[one].matches != 1} == {
        ".twin": 2, ".nowhere": 0, "a:nope(": 0, "role=": 0,
    }  # fmt: skip
    assert [one for one in asked if told[one].invalid] == ["a:nope(", "role="]
    assert not any(seen.unread for seen in told.values())
    assert [one for one in asked if told[one].inside] == ["#no", "#yes"]
    assert (told[".nowhere"].inside, told["#go"].inside) == (None, False)
    assert [label_for(told[one].control, "consent") for one in ("#no", "#yes")] == ["reject", "accept"]

    # What can be seen comes first, as for a click.
    twin = told[".twin"]
    assert (twin.visible, twin.seen.text) == (True, "Twin two")
    assert told['role=button[name="Send now"]'].seen == told["#go"].seen
    assert told["x-card >>> .deep"].seen == told['role=button[name="Deep one"]'].seen
    assert told["x-card >>> .deep"].seen.shape == "html/body/main/x-card/section/button"
    assert told["x-card >>> .deep"].seen.neighbours == ("Inside",)

    go = told["#go"].seen
    assert (go.tag, go.type, go.text, go.id, go.testid, go.role) == (
        "button", "submit", "Send now", "go", "pay", "button",
    )  # fmt: skip
    assert go.neighbours == ("Note", "Password", "Card of Ada")
    assert go.shape == "html/body/main/form/button"
    assert all(0 <= share <= 1 for share in go.place)
    assert told["#no"].seen.name == "deny"
    far = told["#far"].seen
    assert far.classes == ("link", "css-1x2y3z")
    assert (told["#pw"].seen.type, told["#pw"].seen.text, told["#note"].seen.text) == ("password", "Password", "Note")
    for hidden in (SECRET, "from-markup", "old note", "token", "elsewhere.example"):
        assert hidden not in repr([seen.seen for seen in told.values()])
    assert SECRET not in repr(told)

    commits = {one: told[one].commit_point() for one in ("#go", "#no", "#far")}
    assert (commits["#go"].kind, commits["#no"], commits["#far"]) == ("send", None, None)
    assert told["#pw"].commit_point("enter").kind == "auth"

    assert (await look(tab, ["#no"]))["#no"].inside is None
    assert await look(tab, []) == {}
    many = await look(tab, [f"#n{index}" for index in range(MAX_SELECTORS + 3)])
    assert [seen.unread for seen in many.values()] == [False] * MAX_SELECTORS + [True] * 3


async def test_links_keep_the_path_within_their_own_site_and_nothing_else(tab, site):
    links = "<a id=a href='/o/7?token=abc#x'>A</a><a id=b href='o/8'>B</a><a id=c href='https://e.example/y'>C</a>"
    await tab.page.goto(site.url("html?body=" + links.replace("?", "%3F").replace("#", "%23")))
    told = await look(tab, ["#a", "#b", "#c"])
    assert [seen.seen.href for seen in told.values()] == ["/o/7", "/o/8", ""]
    await tab.page.goto(site.url("html?body=" + "<nav><a href='/o%3Ftoken=abc'>same</a><a href='/p'>same</a></nav>"))
    found = await elements(tab)
    assert [one.selector for one in found] == ["a:nth-of-type(1)", 'a[href="/p"]']


SIGNED = WantedSignals(
    dom=(
        "#layer", "#no", ".box > #no", "#nope", ".box .nope", '[data-x="y"]', "a:nope(", ".hidden",
        'role=button[name="Alle ablehnen"]',
    ),
    text=("wir nutzen COOKIES", "auf der Strasse", "never to be seen", "Wirnutzen", "from-markup", "inside", "absent"),
    vendors=(
        VendorSign("by_host", ("vendor.example",)),
        VendorSign("by_mark", ("x.example",), ("#layer .box",)),
        VendorSign("look_alike", ("dor.example",)),
        VendorSign("absent", ("cdn.absent.example",), ("#absent", "a:nope(")),
    ),
)  # fmt: skip


async def test_an_element_without_words_tells_what_picture_it_shows(tab):
    await tab.page.set_content(
        "<button id=a><i class='fa fa-twitter'></i></button><button id=b><i class='fa fa-bell'></i> 7</button>"
        "<button id=c><i class='fa fa-save'></i> Save</button>"
        "<button id=d><img src='/img/envato.jpg?u=9' width=9></button>"
        "<button id=e><svg width=9 height=9><use href='/icons.svg#close'/></svg></button>"
        "<button id=f><img src='data:image/png;base64,AAAA' width=9 height=9></button>"
    )
    told = await look(tab, [f"#{letter}" for letter in "abcdef"])
    found = [seen.seen.picture for seen in told.values()]
    assert found == ["fa fa-twitter", "fa fa-bell", "", "envato", "close", ""]


async def test_signs_hold_only_when_they_can_be_seen(tab):
    await tab.page.set_content(LAYERED.replace("<main", "<p class=hidden hidden>x</p><main data-reactroot"))
    told = await signals(tab, SIGNED)
    assert told.dom == ("#layer", "#no", ".box > #no", 'role=button[name="Alle ablehnen"]')
    assert told.text == ("wir nutzen COOKIES", "auf der Strasse", "inside")
    assert told.vendors == ("by_host", "by_mark")
    assert (told.locale, told.frameworks, told.unread, told.whole) == ("de-AT", ("react",), (), True)
    assert set(told.interaction) == {"scroll_locked", "clicks_covered"}
    assert set(told.layout) == {"full_overlay", "centered_dialog"}
    await tab.page.evaluate("document.querySelector('#layer').remove(); document.body.style.overflow = ''")
    gone = await signals(tab, SIGNED)
    assert (gone.dom, gone.text, gone.interaction, gone.layout) == ((), ("inside",), (), ())


FIXED = "position:fixed;background:#fff"
LAYOUTS = {
    f"<div style='{FIXED};bottom:0;left:0;right:0;height:120px'>We use cookies</div>": {"bottom_banner"},
    f"<div style='{FIXED};top:0;left:0;right:0;height:60px'>Buy now</div>": {"top_banner"},
    f"<div style='{FIXED};top:0;left:0;right:0;height:60px'><nav><a href=/>Home</a></nav></div>": set(),
    f"<div style='{FIXED};bottom:20px;right:20px;width:300px;height:200px'>Chat</div>": {"corner_box"},
    "<dialog id=d style='width:400px;height:200px'>Well?</dialog><script>d.showModal()</script>": {
        "centered_dialog", "clicks_covered", "modal_open",
    },
    "<p>Nothing lies over this.</p>": set(),
}  # fmt: skip


async def test_what_lies_over_the_page_is_told_in_the_fixed_words(tab):
    known = set(page_signs()["interaction"]) | set(page_signs()["layout"])
    for body, expected in LAYOUTS.items():
        await tab.page.set_content(f"<!doctype html><html><body><main style='height:3000px'>Page</main>{body}")
        told = await signals(tab, WantedSignals())
        assert {*told.interaction, *told.layout} == expected, body
        assert expected <= known
        assert told.locale is None


LISTED = """<!doctype html><body><main><h1>Results</h1><div id=list>{rows}</div>
<form><label>Find <input name=q></label><button>Search</button></form></main></body>"""
ROW = """<div class="hit {extra}"><h3><a href="/item/{n}">Item {n}</a></h3><p>About {word}</p>
<span><button class=b>Edit</button><button class=b>Copy</button><button class=b>Drop</button></span></div>"""
WORDS = ("ants", "bees", "cats", "dogs", "eels")


def listed(*changes: tuple[str, str]) -> str:
    rows = "".join(ROW.format(n=n, word=word, extra="first" if n == 0 else "") for n, word in enumerate(WORDS))
    page = LISTED.format(rows=rows)
    for old, new in changes:
        page = page.replace(old, new)
    return page


async def test_elements_are_candidates_whose_selectors_name_them_alone(tab):
    await tab.page.set_content(listed())
    found = await elements(tab)
    assert len(found) == 4 * len(WORDS) + 2
    named = await look(tab, [one.selector for one in found if one.selector])
    assert len(named) == len(found)
    assert [seen.matches for seen in named.values()] == [1] * len(found)
    assert [seen.seen for seen in named.values()] == [one.seen for one in found]
    assert len(await elements(tab, 5)) == 5
    # In a row its own text tells one of several alike buttons from the others.
    copies = [one for one in found if one.seen.text == "Copy"]
    assert [one.seen.neighbours for one in copies] == [(f"About {word}", f"Item {n}") for n, word in enumerate(WORDS)]

    old = [print_of(one.seen) for one in found]
    learned = print_of(copies[2].seen)
    await tab.page.set_content(
        listed(("class=b>", "class=tiny>"), ('"hit', '"result'), ("<main>", "<main><aside>New here</aside>"))
    )
    page = page_elements(await elements(tab))
    repaired = repair(learned, page, surroundings(old, learned))
    assert isinstance(repaired, Repair)
    assert repaired.candidate.seen.neighbours == learned.neighbours
    assert (await look(tab, [repaired.selector]))[repaired.selector].matches == 1


async def test_an_item_of_a_list_is_found_from_anything_inside_it(tab):
    await tab.page.set_content(listed())
    for inner in ("#list > :nth-child(3) button", 'role=link[name="Item 3"]', "#list > .first"):
        told = await items(tab, inner)
        assert (told.count, told.selector) == (5, "div.hit"), inner
    nav = "<nav id=n><a href=/a>A</a><a href=/b>B</a><a href=/c>C</a></nav><p><a href=/d>D</a></p>"
    await tab.page.set_content(f"<!doctype html><body>{nav}")
    bare = await items(tab, 'a[href="/b"]')
    assert (bare.count, bare.selector) == (3, "#n > a")
    for alone in ('a[href="/d"]', "#nothing", "a:nope("):
        assert await items(tab, alone) is None


HOSTILE = """<!doctype html><html><body>
<form id=f name=head><input name=querySelectorAll><input name=attributes><input name=parentNode>
<input name=getAttribute><input name=children><input name=id id=in-id value=typed>
<button id=b name=textContent>Press</button></form>
<a id=huge>huge</a><div id=many></div><p id=endless></p>
<script>
for (const name of ['querySelectorAll', 'getAttribute', 'matches', 'closest', 'checkVisibility', 'hasAttribute'])
  Element.prototype[name] = () => { throw new Error('mine'); };
Document.prototype.querySelectorAll = () => { throw new Error('mine'); };
for (const name of ['localName', 'textContent', 'innerText'])
  for (const proto of [Element.prototype, Node.prototype, HTMLElement.prototype])
    if (Object.getOwnPropertyDescriptor(proto, name))
      Object.defineProperty(proto, name, {get() { throw new Error('mine'); }});
Array.prototype.map = Array.prototype.push = Array.prototype.filter = () => { throw new Error('mine'); };
JSON.stringify = () => '[]'; RegExp.prototype.exec = () => null; String.prototype.normalize = () => '';
Map.prototype.get = () => undefined; performance.now = () => 0;
</script></body></html>"""
# Written from the world of the test itself, before the page takes its tools away.
SWELL = """() => {
  const long = 'long '.repeat(400000);
  const huge = document.getElementById('huge');
  for (const name of ['aria-label', 'class', 'id', 'title', 'name', 'data-testid', 'role', 'href'])
    huge.setAttribute(name, name === 'role' ? 'button ' + long : long);
  document.getElementById('endless').append(long, long, long);
  const parts = [];
  for (let i = 0; i < 25000; i += 1) parts.push('<div class="c' + i + '"><button>Go ' + i + '</button></div>');
  document.getElementById('many').innerHTML = parts.join('');
  const layer = document.createElement('div');
  layer.id = 'last';
  layer.style = 'position:fixed;bottom:0;left:0;right:0;height:90px;background:#fff';
  layer.innerHTML = 'At the very end <button id=end>Finish</button>';
  document.body.append(layer);
}"""


async def test_a_hostile_page_makes_answers_neither_wrong_nor_long(tab):
    page, script = HOSTILE.split("<script>")
    await tab.page.set_content(f"{page}</body></html>")
    await tab.page.evaluate(SWELL)
    await tab.page.evaluate(script.split("</script>")[0])
    asked = [
        "#b",
        "#end",
        "button",
        "*",
        "form#f",
        "[title]",
        "#many > .c24999 button",
        "a:nope(",
        'role=button[name="Finish"]',
    ]
    told = await look(tab, asked, ["#last", "#f"], timeout_ms=10_000)
    assert not any(seen.unread for seen in told.values())
    assert told["#b"].seen.text == "Press"
    assert [one for one in asked if told[one].inside] == [
        "#b",
        "#end",
        "button",
        "form#f",
        'role=button[name="Finish"]',
    ]
    assert (told["button"].matches, told["*"].matches, told["a:nope("].invalid) == (1000, 1000, True)
    assert told["#many > .c24999 button"].seen.text == "Go 24999"
    huge = told["[title]"].seen
    assert (huge.id, huge.name, huge.testid, huge.href) == ("", "", "", "")
    assert len(huge.text) <= 120
    assert len(huge.classes) == 12
    assert len(json.dumps([repr(seen) for seen in told.values()])) < 60_000

    seen = await signals(
        tab,
        WantedSignals(("#end", ".c24999 button", ".absent"), ("at the very END", "absent")),
        timeout_ms=10_000,
    )
    assert (seen.dom, seen.text, seen.layout) == (("#end", ".c24999 button"), ("at the very END",), ("bottom_banner",))
    assert not seen.whole

    found = await elements(tab, timeout_ms=10_000)
    assert 0 < len(found) <= 400
    assert len(repr(found)) < 600_000
    assert "typed" not in repr(found)
    endless = await items(tab, "#many > .c7", timeout_ms=10_000)
    assert (endless.count, endless.selector) == (1000, "#many > div")
