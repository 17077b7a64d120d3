"""A press that pays, deletes, sends or signs in needs an expectation, whatever the page calls its control."""

from collections.abc import Mapping
from typing import Any

import pytest
from loop_kit import Server, Shop
from pks_kit import Site, click, dom
from place_kit import Place

pytestmark = pytest.mark.browser

SHOW = "aria-label='Show details'"
SEND = "onclick=\"fetch('/sent',{method:'POST'})\""
# Each button is called "Show details" and reads, in one way or another, that it pays.
DISGUISES = {
    "aria-label": f"<button type=button id=t {SHOW}>Pay $499 now</button>",
    "aria-labelledby": "<span id=l>Show details</span><button type=button id=t aria-labelledby=l>Pay $499 now</button>",
    "title": "<button type=button id=t title='Pay $499 now'>Show details</button>",
    "hidden-text": f"<button type=button id=t {SHOW}><span style='position:absolute;width:1px;height:1px;"
    "overflow:hidden;clip-path:inset(50%)'>Pay $499 now</span>›</button>",
    "before": f"<style>#t::before{{content:'Pay $499 now'}}</style><button type=button id=t {SHOW}></button>",
    "after-split": f"<style>#t::after{{content:'y now'}}</style><button type=button id=t {SHOW}>Pa</button>",
    "value": f"<input type=button id=t {SHOW} value='Pay $499 now'>",
    "image-alt": f"<button type=button id=t {SHOW}><img alt='Pay $499 now' width=20 height=20></button>",
    "icon-title": f"<button type=button id=t {SHOW}><svg width=20 height=20><title>Pay $499 now</title></svg></button>",
    "nested-shadow": f"<button type=button id=t {SHOW}><x-a></x-a></button><script>"
    "const a=document.querySelector('x-a').attachShadow({mode:'open'});a.innerHTML='<span></span>';"
    "a.firstChild.attachShadow({mode:'open'}).textContent='Pay $499 now'</script>",
    "aria-hidden-child": f"<button type=button id=t {SHOW}><span aria-hidden=true>Pay $499 now</span></button>",
    "hidden-from-names": "<button type=button id=t>Show details<span aria-hidden=true> | Pay $499 now</span></button>",
    "relabelled-child": "<button type=button id=t><span role=img aria-label='Show details'>Pay $499 now"
    "</span></button>",
    "wrapping-label": f"<label>Pay $499 now <input type=button id=t {SHOW} value='›'></label>",
    "of-a-label": "<label for=own id=t>Show details</label><input type=button id=own value='Pay $499 now'>",
    "split": f"<button type=button id=t {SHOW}><i>P</i><i style='display:inline-block'>ay</i> now</button>",
    "confusable": "<button type=button id=t>P\u0430y now</button>",
    "all-confusable": "<button type=button id=t>\u0440\u0430\u0443 now</button>",
    "zero-width": "<button type=button id=t>P\u200ba\u2060y n\u00adow</button>",
    "mathematical": "<button type=button id=t>\U0001d40f\U0001d41a\U0001d432 now</button>",
    "spelt": "<button type=button id=t>P a y  n o w</button>",
    "dotted": "<button type=button id=t>P.a.y now</button>",
    "stretched": "<div style='position:relative;width:200px'>Pay $499 now<button type=button id=t "
    f"{SHOW} style='position:absolute;inset:0;background:none;border:0'></button></div>",
    "link-without-address": f"<a id=t href='#' {SHOW}>Pay $499 now</a>",
    "scripted-box": f"<div id=t onclick='void 0' {SHOW}>Pay $499 now</div>",
    "role-link": "<span role=link tabindex=0 id=t onclick='void 0'>Pay $499 now</span>",
    "role-img": f"<div role=img id=t onclick='void 0' {SHOW}>Pay $499 now</div>",
    "role-heading": "<h2 id=t onclick='void 0'>Pay $499 now</h2>",
    "list-item": "<ul><li id=t onclick='void 0'>Pay $499 now</li></ul>",
    "role-dialog": f"<div role=dialog id=t onclick='void 0' {SHOW}>Pay $499 now</div>",
    "lone-tab": "<div role=tab tabindex=0 id=t onclick='void 0'>Pay $499 now</div>",
    "lone-option": "<div role=option tabindex=0 id=t onclick='void 0'>Pay $499 now</div>",
    "drawing": "<svg id=t width=200 height=40 onclick='void 0'><text y=20>Pay $499 now</text></svg>",
    "drawn-button": "<svg width=200 height=40><g role=button id=t><rect width=200 height=40 fill='#eee'/>"
    "<text y=20>Pay $499 now</text></g></svg>",
    "long-box": "<div id=t tabindex=0 onclick='void 0'>Pay $499 now. By going on you agree to the terms and to the "
    "conditions of this shop and of all others.</div>",
    "dead-anchor": "<a id=t href='#pay'>Pay $499 now</a>",
    "scripted-link": "<a id=t href='/found' onclick='return false'>Pay $499 now</a>",
    "image-button": f"<input type=image id=t {SHOW} alt='Pay $499 now' width=90 height=20>",
    "thin-blanks": "<button type=button id=t>Pa\u200ay $499</button>",
    "turned": "<button type=button id=t>\u202ewon yaP\u202c</button>",
    "marks-of-direction": "<button type=button id=t>P\u200fa\u200ey no\u061cw</button>",
    "joiners": "<button type=button id=t>P\u034fa\u2063y no\ufeffw</button>",
}

# A control that says nothing: what is around it and how it is built tells.
STRUCTURES = {
    "post-form-called-search": "<form method=post action=/sent><input name=q><button id=t>Go</button></form>",
    "post-search-type": "<form method=post action=/sent><input type=search name=query><button id=t>Go</button></form>",
    "search-form-that-deletes": "<form role=search action=/sent><input name=q><button id=t>Delete account"
    "</button></form>",
    "get-form-that-orders": "<form method=get action=/found><input name=q><button id=t>Place order</button></form>",
    "get-form-that-leads-to-a-deletion": "<form method=get action=/account/delete><input name=q>"
    "<button id=t>Go</button></form>",
    "search-form-called-transfer": "<form role=search aria-label='Transfer money' action=/f><input name=q>"
    "<button id=t>Go</button></form>",
    "hidden-method": "<form method=get action=/things/4><input type=hidden name=_method value=delete>"
    "<button id=t>Go</button></form>",
    "card-field": "<form method=get action=/found><input autocomplete=cc-number><button id=t>Go</button></form>",
    "card-field-by-name": "<form role=search action=/found><input name=cardNumber><button id=t>Go</button></form>",
    "card-without-form": "<div><input autocomplete=cc-number><button type=button id=t>Go</button></div>",
    "own-request": "<button type=button id=t hx-delete=/things/4>Go</button>",
    "link-with-a-method": "<a id=t href=/things/4 data-method=delete>Go</a>",
    "inline-submit": "<form id=f method=post action=/sent></form><div id=t role=button onclick='f.submit()'>Go</div>",
    "dialog-yes": "<div role=dialog aria-label='Delete this account?'><button type=button id=t>Yes</button></div>",
    "dialog-body": "<div role=dialog><p>Do you want to delete this account?</p>"
    "<button type=button id=t>OK</button></div>",
    "raw-application": "<form method=post action=/sent><input name=a><button id=t>Submit application</button></form>",
    "deploy": "<button type=button id=t>Deploy</button>",
    "inject": "<button type=button id=t>inject now</button>",
    "message-beside-send": "<div><input aria-label=Message><button type=button id=t>Send</button></div>",
    "button-outside-its-form": "<form id=g1 method=post action=/sent><input name=a></form>"
    "<button form=g1 id=t >Go</button>",
    "own-method": "<form role=search action=/f><input name=q><button formmethod=post id=t >Go</button></form>",
    "own-address": "<form role=search action=/f><input name=q><button formaction=/account/delete id=t >Go</button>"
    "</form>",
    "own-address-without-a-form-s-own": "<form><input name=q><button formaction=/pay id=t >Go</button></form>",
    "image-of-a-post-form": "<form method=post action=/sent><input name=a><input type=image alt=Go width=20 height=20 "
    "id=t ></form>",
    "label-of-a-submit": "<form method=post action=/sent><input name=a><input type=submit id=own2 value=Go></form>"
    "<label for=own2 id=t >Show details</label>",
    "field-of-another-form": "<form id=g2 method=post action=/sent></form><form role=search action=/f><input name=q>"
    "<button form=g2 id=t >Search</button></form>",
}
STRANGE = {
    "ja": "注文を確定する",
    "ru": "Удалить",
    "ar": "ادفع الآن",
    "th": "ลบบัญชี",
    "tr": "Hesabı sil",
    "fa": "پرداخت",
}


def sheet(*bodies: str) -> str:
    return "<!doctype html><html lang=en><meta charset=utf-8><title>Shop</title><main>" + "".join(bodies) + "</main>"


def page_of(group: Mapping[str, str]) -> str:
    """Everything in one page, each part in a frame of its own name space."""
    parts = [body.replace("id=t ", f"id={key} ").replace("id=t>", f"id={key}>") for key, body in group.items()]
    return sheet(
        *(f"<section>{part.replace('#t::', f'#{key}::')}</section>" for key, part in zip(group, parts, strict=True))
    )


ENTER = {
    "post-search": "<form method=post action=/sent><input id=t name=q><button>Delete account</button></form>",
    "post-query": "<form method=post action=/sent><input id=t type=search name=query><button>Pay now</button></form>",
    "get-order": "<form method=get action=/found><input id=t name=q><button>Order now</button></form>",
    "role-transfer": "<form role=search method=post action=/f><input id=t name=q><button>Transfer</button></form>",
    "disguised-button": f"<form role=search action=/f><input id=t name=q><button {SHOW}>Pay $499 now</button></form>",
    "message-input": f"<div><input id=t placeholder=Message><button type=button {SEND}>Send</button></div>",
    "message-icon": "<div><input id=t placeholder=Message><button type=button class=send-button "
    f"{SEND}></button></div>",
    "image-button": "<form role=search action=/f><input id=t name=q><input type=image alt='Pay $499 now' width=20 "
    "height=20></form>",
    "image-that-posts": "<form role=search action=/f><input id=t name=q><input type=image formmethod=post alt=Go "
    "width=20 height=20></form>",
    "image-before-the-button": "<form role=search action=/f><input id=t name=q><input type=image alt='Delete account' "
    "width=20 height=20><button>Search</button></form>",
    "button-outside": "<form id=f role=search action=/f><input id=t name=q></form>"
    "<button form=f>Delete account</button>",
    "button-outside-posts": "<form id=f role=search action=/f><input id=t name=q></form>"
    "<button form=f formmethod=post>Go</button>",
    "own-address": "<form role=search action=/f><input id=t name=q><button formaction=/account/delete>Go"
    "</button></form>",
    "field-outside": "<form id=f method=post action=/sent><button>Go</button></form><input id=t form=f name=q>",
    "harmless-button-first": "<form method=post action=/sent><input id=t name=q><button>Search</button>"
    "<button>Delete account</button></form>",
    "hears-enter": "<textarea id=t onkeydown=\"if(event.key==='Enter')fetch('/sent',{method:'POST'})\"></textarea>",
}
FREE_ENTER = {
    "search": "<form role=search action=/found><input id=t name=q><button>Search</button></form>",
    "get-search": "<form action=/found><input id=t type=search name=q><button>Go</button></form>",
    "editor": "<form method=post action=/sent><input name=title><div id=t contenteditable role=textbox "
    "aria-multiline=true aria-label=Text>a</div><button>Save</button></form>",
    "lone-editor": "<div id=t contenteditable role=textbox aria-multiline=true aria-label=Notes>a</div>",
}
FREE = {
    "jump": "<a id=t href='#pay'>Pay now</a><h2 id=pay style='margin-top:2000px'>How to pay</h2>",
    "route": "<a id=t href='#/orders'>Order now</a>",
    "counted-link": "<a id=t href='/found' onclick='window.counted = 1'>Buy now</a>",
    "heading": "<h2 id=t>Payment methods</h2>",
    "option": "<div role=listbox aria-label=Sort><div role=option tabindex=0 id=t>Order</div></div>",
    "dialog": "<div role=dialog aria-label='Delete account' tabindex=-1 id=t>What this means</div>",
    "card": "<div id=t tabindex=0 onclick='void 0'>Order 1234 of 3 May with two things that were delivered to you on "
    "the fifth of May</div>",
    "same-address": "<form role=search action=/found><input name=q><button formaction=/found?page=2 id=t>Go"
    "</button></form>",
    "details": "<button type=button id=t>Show details</button>",
    "tab": "<div role=tablist><button role=tab type=button id=t>Orders</button></div>",
    "filter": "<form method=get action=/found><select name=s><option>a</select><button id=t>Filter</button></form>",
    "sort": "<button type=button id=t>Sort by price</button>",
    "paging": "<nav><button type=button id=t>Next page</button></nav>",
    "language": "<button type=button id=t>Deutsch</button>",
    "refuse-cookies": "<div role=dialog aria-label='We use cookies'><button type=button id=t>Reject all</button></div>",
    "close": "<div role=dialog aria-label='Delete this account?'><button type=button id=t>Cancel</button></div>",
    "history": "<button type=button id=t>Order history</button>",
    "icon": "<button type=button id=t title='More options'><svg width=9 height=9></svg></button>",
    "card-link": "<a id=t href='/found'><h3>Payments</h3><p>How we delete old orders</p></a>",
    "select": "<form method=post action=/sent><select id=t><option>a<option>b</select><button>Go</button></form>",
}
PAGES = {
    "/plain": sheet(),
    "/disguises": page_of(DISGUISES),
    "/structures": page_of(STRUCTURES),
    "/strange": page_of({key: f"<button type=button id=t>{text}</button>" for key, text in STRANGE.items()}),
    **{f"/enter-{name}": sheet(body) for name, body in {**ENTER, **FREE_ENTER}.items()},
    **{f"/free-{name}": sheet(body) for name, body in FREE.items()},
    "/layer": sheet("<h1>Shop</h1>")
    + "<div id=box role=dialog aria-modal=true aria-label=Newsletter style='position:fixed;inset:0;background:#fff'>"
    f"<p>Subscribe to our newsletter</p><button type=button id=t aria-label=Close {SEND}>Pay $499 now</button></div>",
    "/select": sheet(
        "<form method=post action=/sent><select id=t onchange='this.form.submit()'><option>a<option>b</select></form>"
    ),
    "/access": sheet(
        "<form method=post action=/sent><input id=t name=a><button accesskey=p>Delete account</button></form>"
        "<input id=free aria-label=Note><button type=button accesskey=m>Show more</button>"
    ),
    "/typed": sheet(
        "<form method=post action=/sent><input id=t name=amount onchange='this.form.submit()'></form>"
        "<form role=search action=/f><input id=free name=q oninput='this.form.submit()'></form>"
        "<form method=post action=/sent><input type=file id=file name=f onchange='this.form.submit()'></form>"
        "<form method=post action=/sent><input type=file id=plain name=f></form>"
    ),
    "/left": sheet(
        "<form method=post action=/sent></form><input id=outside aria-label=A onchange='document.forms[0].submit()'>"
        "<form method=post action=/sent><input id=left aria-label=B name=a onblur='this.form.submit()'></form>"
        "<form method=post action=/sent><input id=keyed aria-label=C name=a onkeyup='this.form.submit()'></form>"
        "<form method=post action=/sent onchange='this.submit()'><input id=heard aria-label=D name=a></form>"
        "<form role=search action=/f onchange='this.submit()'><input id=filter aria-label=E name=q></form>"
    ),
    "/picker": sheet(
        "<form method=post action=/sent><label id=t>Submit a file<input type=file style='width:90px'></label></form>"
    ),
}


@pytest.fixture(scope="module")
async def sheets(server: Server, tab: str, pages: Shop) -> dict[str, Any]:
    return {"at": ""}


async def stand_on(place_of: dict[str, Any], server: Server, pages: Shop, tab: str, path: str) -> Place:
    if place_of["at"] != path:
        place_of.update(at=path, place=Place.new(server, pages, tab))
        await place_of["place"].visit(path)
    place: Place = place_of["place"]
    return place


def needs_contract(answer: Mapping[str, Any]) -> None:
    assert (answer["ok"], answer.get("reasonCode")) == (False, "guarded_commit.missing_contract"), answer


@pytest.mark.parametrize("name", DISGUISES)
async def test_a_button_that_reads_pay_and_is_called_otherwise_needs_a_contract(
    sheets: dict[str, Any], server: Server, pages: Shop, tab: str, name: str
) -> None:
    place = await stand_on(sheets, server, pages, tab, "/disguises")
    answer = await place.click(f"#{name}")
    needs_contract(answer)
    assert answer["commitKind"] == "payment", answer


@pytest.mark.parametrize("name", STRUCTURES)
async def test_what_a_form_is_built_for_counts_whatever_its_button_is_called(
    sheets: dict[str, Any], server: Server, pages: Shop, tab: str, name: str
) -> None:
    place = await stand_on(sheets, server, pages, tab, "/structures")
    needs_contract(await place.click(f"#{name}"))


@pytest.mark.parametrize("name", STRANGE)
async def test_words_of_the_large_languages_of_the_web_commit(
    sheets: dict[str, Any], server: Server, pages: Shop, tab: str, name: str
) -> None:
    place = await stand_on(sheets, server, pages, tab, "/strange")
    needs_contract(await place.click(f"#{name}"))


async def test_perceive_shows_the_name_and_what_is_read_against_it(server: Server, place: Place) -> None:
    await place.go("/disguises")
    look = await place.perceive(maxTokens=4000, mode="full")
    lines = [line["line"] if isinstance(line, dict) else line for line in look["elements"]]
    called = next(line for line in lines if "#aria-label " in line or line.endswith("#aria-label"))
    assert '"Show details" (reads "Pay $499 now")' in called, called
    assert "[commit" in called
    assert {point["kind"] for point in look["commitPointCtas"]} == {"payment"}


@pytest.mark.parametrize("name", FREE)
async def test_a_press_that_only_shows_or_asks_stays_free(place: Place, name: str) -> None:
    await place.visit(f"/free-{name}")
    answer = await place.click("#t")
    assert answer.get("reasonCode") != "guarded_commit.missing_contract", answer
    assert answer["actionDispatched"], answer


ROADS = {
    "key": lambda place: place.call("input_key", selector="#t", key="Enter"),
    "type": lambda place: place.call("type_selector", selector="#t", text="a", pressEnter=True),
}


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("name", ENTER)
async def test_enter_counts_as_the_button_it_presses(place: Place, name: str, road: str) -> None:
    await place.visit(f"/enter-{name}")
    needs_contract(await ROADS[road](place))


@pytest.mark.parametrize("name", FREE_ENTER)
async def test_enter_that_searches_or_breaks_a_line_stays_free(place: Place, name: str) -> None:
    await place.visit(f"/enter-{name}")
    answer = await place.call("input_key", selector="#t", key="Enter")
    assert answer.get("reasonCode") != "guarded_commit.missing_contract", answer
    assert answer["actionDispatched"], answer


async def test_no_other_road_leads_to_a_disguised_button(server: Server, place: Place, pages: Shop) -> None:
    await place.visit("/disguises")
    step = {"tool": "nova.click_selector", "args": {"selector": "#title"}}
    ran = await place.call("run_sequence", steps=[step])
    assert ran["trace"][0]["reasonCode"] == "guarded_commit.missing_contract", ran
    for key in ("Enter", "Space"):
        needs_contract(await place.call("input_key", selector="#aria-label", key=key))
    needs_contract(await place.click("#hidden-text", button="middle"))
    assert "/sent" not in pages.posted


@pytest.mark.parametrize("key", ["Alt+p", "Alt+Shift+p"])
@pytest.mark.parametrize("focus", ["#free", "#t"])
async def test_an_access_key_counts_as_the_button_it_presses(place: Place, pages: Shop, key: str, focus: str) -> None:
    before = pages.posted["/sent"]
    await place.visit("/access")
    needs_contract(await place.call("input_key", selector=focus, key=key))
    assert pages.posted["/sent"] == before
    pressed = await place.call("input_key", selector=focus, key="Alt+m")
    assert pressed.get("reasonCode") != "guarded_commit.missing_contract", pressed


async def test_a_layer_is_not_closed_by_a_button_that_reads_pay(place: Place, pages: Shop) -> None:
    await place.visit("/layer")
    await place.call("dismiss_blockers", mode="conservative")
    assert "/sent" not in pages.posted


async def test_no_playbook_presses_a_disguised_button(server: Server, pages: Shop, tab: str) -> None:
    site = Site.new(server, pages, tab)
    await site.go("/disguises")
    playbook = {"policy": "dismiss", "actions": [click("#value")], "verify": [{"type": "absent", "selector": "#value"}]}
    entry = {"id": "entry", "type": "custom", "fingerprint": {"signals": [dom("#value")]}, "playbook": playbook}
    written = await site.upsert(entry)
    assert written["ok"], written
    await site.perceive()
    needs_contract(await site.apply(trial=True))


async def test_a_choice_that_sends_its_form_needs_a_contract(place: Place) -> None:
    await place.visit("/select")
    needs_contract(await place.call("choose_option", selector="#t", text="b"))


async def test_typing_into_a_field_that_sends_its_form_needs_a_contract(place: Place, pages: Shop) -> None:
    await place.visit("/typed")
    needs_contract(await place.call("type_selector", selector="#t", text="500"))
    for key in ("5", "Tab"):
        needs_contract(await place.call("input_key", selector="#t", key=key))
    assert await place.asked("document.querySelector('#t').value") == ""
    typed = await place.call("type_selector", selector="#free", text="500")
    assert typed["ok"], typed


@pytest.mark.parametrize("field", ["outside", "left", "keyed", "heard"])
async def test_typing_into_a_field_whose_leaving_sends_a_form_needs_a_contract(
    place: Place, pages: Shop, field: str
) -> None:
    await place.visit("/left")
    before = pages.posted["/sent"]
    needs_contract(await place.call("type_selector", selector=f"#{field}", text="500"))
    needs_contract(await place.call("input_key", selector=f"#{field}", key="Tab"))
    assert pages.posted["/sent"] == before


async def test_typing_into_a_filter_that_sends_itself_needs_no_contract(place: Place, pages: Shop) -> None:
    await place.visit("/left")
    typed = await place.call("type_selector", selector="#filter", text="500")
    assert typed["ok"], typed


async def test_a_file_for_a_field_that_sends_its_form_needs_a_contract(place: Place, pages: Shop) -> None:
    await place.visit("/typed")
    folder = place.server.data_dir / "uploads"
    folder.mkdir(exist_ok=True)
    (folder / "note.txt").write_text("a note")
    path = str(folder / "note.txt")
    before = pages.posted["/sent"]
    needs_contract(await place.call("file_upload", selector="#file", paths=[path]))
    assert pages.posted["/sent"] == before
    taken = await place.call("file_upload", selector="#plain", paths=[path])
    assert taken["accepted"], taken


async def test_a_button_that_only_opens_a_file_picker_is_no_commit_point(place: Place) -> None:
    await place.go("/picker")
    look = await place.perceive(mode="full")
    assert look.get("commitPointCtas", []) == [], look
