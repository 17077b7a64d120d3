"""Facts as contracts ask for them: what the page shows is read, what can't be known is left open."""

from urllib.parse import quote

import pytest

from nova_mcp.browser.observe.page_witness import PageWitness, route_of
from nova_mcp.browser.observe.request_attribution import Backdrop
from nova_mcp.verification.model import FactAddress, Seen, Unseen

pytestmark = pytest.mark.browser


@pytest.fixture
async def tab(module_tab):
    """The module's tab, alive again if the test before has ended its page."""
    if module_tab.state in ("crashed", "lost"):
        await module_tab.recover()
    return module_tab


BANNER = "form.errorBanner.visible"
SUCCESS = "form.successIndicator.visible"
VALID = "form.fields.valid"


async def read(tab, *keys, frame_id=None, **options):
    async with tab.watch() as window:
        witness = PageWitness(tab, window, frame_id, **options)
        reading = await witness.read([FactAddress(key) for key in keys])
    return [reading[FactAddress(key)] for key in keys]


async def values(tab, *keys, **options):
    return [fact.value if isinstance(fact, Seen) else fact.error for fact in await read(tab, *keys, **options)]


async def value(tab, key, **options):
    return (await values(tab, key, **options))[0]


async def show(tab, site, body):
    await tab.page.goto(site.url(f"html?body={quote(body)}"))


async def form(tab, site):
    await tab.page.goto(site.url("facts/form.html"))


# -- elements


async def test_an_element_is_told_as_a_whole(tab, site):
    await form(tab, site)
    assert await value(tab, "dom.#lead") == {
        "exists": True,
        "visible": True,
        "count": 1,
        "text": "Two open orders, one sent.",
        "value": None,
        "checked": None,
        "enabled": True,
    }
    assert await value(tab, "dom.#gone") == {
        "exists": False,
        "visible": False,
        "count": 0,
        "text": None,
        "value": None,
        "checked": None,
        "enabled": None,
    }


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("dom.#rows li@count", 3),
        ("dom.#rows li@text", "Spade"),
        ("dom.#hidden@exists", True),
        ("dom.#hidden@visible", False),
        ("dom.#hidden@gone", True),
        ("dom.#hidden@text", ""),
        ("dom.#faint@visible", False),
        ("dom.#lead@gone", False),
        ("dom.#nothing@gone", True),
        ("dom.#nothing@visible", False),
        ("dom.#nothing@count", 0),
        ("dom.#nothing@text", "fact_not_found"),
        ("dom.#nothing@enabled", "fact_not_found"),
        ("dom.#mail@value", "a@b.example"),
        ("dom.#note@value", "as is"),
        ("dom.#size@value", "Large"),
        ("dom.#pin@value", "•••"),
        ("dom.#gift@checked", True),
        ("dom.#lead@checked", None),
        ("dom.#off@enabled", False),
        ("dom.li[@visible", "fact_unreadable"),
    ],
)
async def test_one_field_of_an_element(tab, site, key, expected):
    await form(tab, site)
    assert await value(tab, key) == expected


async def test_elements_inside_shadow_roots_are_reached_step_by_step(tab, site):
    await show(
        tab,
        site,
        "<x-box id=box></x-box><script>box.attachShadow({mode:'open'}).innerHTML='<p class=in>Deep text</p>'</script>",
    )
    assert await values(tab, "dom.#box >>> .in@text", "page.shows@Deep%20text") == ["Deep text", True]


async def test_the_stamp_tells_another_element_and_another_text_apart(tab, site):
    await form(tab, site)
    (first,) = await read(tab, "dom.#lead@visible")
    (again,) = await read(tab, "dom.#lead@visible")
    assert again == first
    await tab.page.evaluate("document.getElementById('lead').textContent = 'Other'")
    (changed,) = await read(tab, "dom.#lead@visible")
    assert (changed.value, changed.stamp != first.stamp) == (True, True)
    await tab.page.reload()
    (reloaded,) = await read(tab, "dom.#lead@visible")
    assert reloaded.stamp not in (first.stamp, changed.stamp)


# -- the page


async def test_title_state_and_address_of_the_page(tab, site):
    await form(tab, site)
    assert await values(tab, "page.title", "page.readyState", "page.url", "page.route", "page.urlChanged") == [
        "Orders",
        "complete",
        site.url("facts/form.html"),
        "/facts/form.html",
        False,
    ]
    assert await values(tab, "page.urlMatches@/facts/*", "page.urlMatches@/other/*") == [True, False]
    assert await values(tab, "runtime.rendererHealthy", "runtime.domEpoch") == [True, tab.page_epoch]


def test_a_route_keeps_the_fragment_only_where_it_is_one():
    assert route_of("https://a.example") == "/"
    assert route_of("https://a.example/x?y=1#top") == "/x"
    assert route_of("https://a.example/app#/orders/5") == "/app#/orders/5"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Two open orders", True),
        ("two open orders", False),
        ("orders, one  sent", True),
        ("Order confirmed", False),
        ("Thank you for your order", False),
        ("Hoe", False),
        ("as is", False),
        ("a@b.example", False),
        ("Place order", True),
        ("Spade Rake", True),
    ],
)
async def test_a_text_counts_only_where_a_person_can_read_it(tab, site, text, shown):
    await form(tab, site)
    assert await value(tab, f"page.shows@{quote(text)}") is shown


@pytest.mark.parametrize(
    "style",
    [
        "display:none",
        "visibility:hidden",
        "opacity:0.01",
        "font-size:0",
        "color:transparent",
        "color:#fff",
        "position:absolute;left:-9999px",
        "position:absolute;clip-path:inset(50%)",
        "transform:scale(0);height:0",
    ],
)
async def test_hidden_text_never_counts(tab, site, style):
    await show(tab, site, f"<main><p>Shown</p><div style='{style}'><p style='{style}'>Order placed</p></div></main>")
    assert await values(tab, "page.shows@Order%20placed", "page.shows@Shown") == [False, True]


async def test_words_cut_by_markup_and_hidden_parts_still_read_as_one(tab, site):
    await show(tab, site, "<p>Sa<b>ved</b> 3<i hidden>x</i> items</p>")
    assert await value(tab, "page.shows@Saved%203%20items") is True


async def test_the_stamp_of_a_text_counts_its_occurrences(tab, site):
    await show(tab, site, "<ul id=l><li>Buy milk</li></ul>")
    (one,) = await read(tab, "page.shows@Buy%20milk")
    await tab.page.evaluate("l.insertAdjacentHTML('beforeend', '<li>Buy milk</li>')")
    (two,) = await read(tab, "page.shows@Buy%20milk")
    assert (one.value, two.value, one.stamp == two.stamp) == (True, True, False)


async def test_a_text_is_found_at_the_end_of_a_big_page(tab, site):
    await show(
        tab,
        site,
        "<div id=d></div><script>d.innerHTML='<p>The <b>row</b> of many</p>'.repeat(2000)"
        "+'<p>The last of many</p>'</script>",
    )
    assert await value(tab, "page.shows@The%20last%20of%20many") is True


# -- forms


async def test_a_form_is_valid_only_when_every_field_is(tab, site):
    await form(tab, site)
    key = f"{VALID}@css=%23order"
    assert await value(tab, key) is False
    await tab.page.fill("#item", "Spade")
    assert await value(tab, key) is True
    await tab.page.fill("#mail", "nonsense")
    assert await value(tab, key) is False


@pytest.mark.parametrize(
    ("field", "valid"),
    [
        ("<input name=a>", True),
        ("<input name=a aria-required=true>", False),
        ("<input name=a aria-required=true value=x>", True),
        ("<input name=a value=x aria-invalid=true>", False),
        ("<input name=a value=x aria-describedby=h><span id=h class=field-error>Too short</span>", False),
        ("<input name=a value=x aria-describedby=h><span id=h class=hint>At least 8 signs</span>", True),
        ("<input name=a required disabled>", True),
        ("<div role=checkbox aria-required=true aria-checked=false tabindex=0>Agree</div>", False),
    ],
)
async def test_custom_ways_of_marking_a_field_count_too(tab, site, field, valid):
    await show(tab, site, f"<form novalidate>{field}<button>Go</button></form>")
    assert await value(tab, VALID) is valid


async def test_which_form_is_meant_is_never_guessed(tab, site):
    await show(tab, site, "<form><input required></form><form><input></form>")
    assert await value(tab, VALID) == "fact_unreadable"
    await show(tab, site, "<p>none here</p>")
    assert await value(tab, VALID) == "fact_unreadable"
    assert await value(tab, f"{VALID}@css=%23nowhere") == "fact_not_found"


@pytest.mark.parametrize(
    ("notice", "said"),
    [
        ("<p role=status>Saved</p>", True),
        ("<p role=status>Not saved</p>", False),
        ("<p role=status>Your changes could not be saved</p>", False),
        ("<p role=status>Your order will be confirmed by mail</p>", False),
        ("<p role=status>Saved without errors</p>", True),
        ("<p role=status>3 results</p>", False),
        ("<p role=status hidden>Saved</p>", False),
        ("<div class='toast toast-success'>Nachricht wurde gesendet</div>", True),
        ("<div class='toast'>Nachricht wurde nicht gesendet</div>", False),
        ("<div class='alert alert-success'>Votre message a été envoyé.</div>", True),
        ("<div class='flash'>Los cambios no se han guardado</div>", False),
        ("<div class='flash'>Cambios guardados</div>", True),
        ("<h1>Thank you for your order</h1>", True),
        ("<h1>Saved items</h1>", False),
        ("<button class='confirm-success'>Confirmed</button>", False),
        ("<p>Saved</p>", False),
    ],
)
async def test_a_success_is_seen_only_where_a_notice_says_so(tab, site, notice, said):
    await show(tab, site, f"<main>{notice}</main>")
    assert await value(tab, SUCCESS) is said


@pytest.mark.parametrize(
    ("notice", "said"),
    [
        ("<p role=alert>The password is wrong</p>", True),
        ("<p role=alert class=alert-danger>That name is taken</p>", True),
        ("<p role=alert>Saved</p>", False),
        ("<p role=alert>No errors found</p>", False),
        ("<p role=alert></p>", False),
        ("<p role=alert hidden>The password is wrong</p>", False),
        ("<p class=form-error>That name is taken</p>", True),
        ("<p class=error>Ungültige Eingabe: falsch</p>", True),
        ("<p class=error-boundary>All is well</p>", False),
        ("<p class=error-message></p>", False),
        ("<button class=btn-danger>Try again</button>", False),
        ("<p>Something failed</p>", False),
        ("<input aria-invalid=true name=b>", True),
    ],
)
async def test_an_error_is_seen_only_where_the_page_shows_one(tab, site, notice, said):
    await show(tab, site, f"<main><form><input name=a>{notice}<button>Go</button></form></main>")
    assert await value(tab, BANNER) is said


async def test_an_error_elsewhere_on_the_page_is_not_the_forms_unless_it_alerts(tab, site):
    far = "<aside><p class=error>Weather failed to load: error</p></aside>"
    page = "<main><section><div><form><input name=a></form></div></section></main>"
    await show(tab, site, f"{page}{far}")
    assert await value(tab, BANNER) is False
    await show(tab, site, f"{page}{far.replace('class=error', 'role=alert')}")
    assert await value(tab, BANNER) is True


async def test_the_stamp_of_a_notice_is_its_text(tab, site):
    await show(tab, site, "<p role=alert id=a>Wrong code, 2 tries left</p>")
    (first,) = await read(tab, BANNER)
    await tab.page.evaluate("a.replaceWith(a.cloneNode(true))")
    assert await read(tab, BANNER) == [first]
    await tab.page.evaluate("document.querySelector('[role=alert]').textContent='Wrong code, 1 try left'")
    (second,) = await read(tab, BANNER)
    assert (second.value, second.stamp) == (True, "Wrong code, 1 try left")


async def test_without_a_watch_nobody_knows_whether_a_form_was_submitted(tab, site):
    await form(tab, site)
    assert await value(tab, "form.submitted") == "fact_unreadable"


# -- overlays

MANY = "<main><h1>Page</h1>" + "".join(f"<p><a href='/{i}'>Link {i}</a></p>" for i in range(30)) + "</main>"


@pytest.mark.parametrize(
    ("layer", "visible", "blocking"),
    [
        ("", False, False),
        ("<dialog id=d>Sure?<button>Yes</button></dialog><script>d.showModal()</script>", True, True),
        ("<dialog open>Hint</dialog>", False, False),
        ("<div style='position:fixed;inset:0;background:#0008'>Cookies<button>Ok</button></div>", True, True),
        ("<div style='position:fixed;bottom:0;left:0;right:0;height:60px'>Cookies</div>", False, False),
        ("<div style='position:fixed;inset:0;pointer-events:none'>Snow</div>", False, False),
        (
            "<div role=dialog aria-modal=true style='position:fixed;top:0;left:0;width:90px;height:40px'>Chat</div>",
            True,
            "fact_unreadable",
        ),
        ("<div role=dialog aria-modal=true hidden>Later</div>", False, False),
        ("<div style='position:absolute;inset:0;opacity:0;z-index:99'></div>", False, True),
    ],
)
async def test_a_layer_blocks_when_it_lies_over_the_page(tab, site, layer, visible, blocking):
    await show(tab, site, MANY + layer)
    assert await values(tab, "overlay.primary.visible", "overlay.blocking") == [visible, blocking]


async def test_an_application_in_a_fixed_frame_is_the_page_and_no_overlay(tab, site):
    await show(tab, site, f"<div style='position:fixed;inset:0;overflow:auto'>{MANY}</div>")
    assert await values(tab, "overlay.primary.visible", "overlay.blocking") == [False, False]


# -- frames, stores, pages that can't answer


async def test_facts_of_a_frame_are_read_in_it_and_of_an_unknown_one_not_at_all(tab, site):
    await show(tab, site, "<p>Outside</p><iframe srcdoc='<title>In</title><p>Inside</p>'></iframe>")
    await tab.page.frames[1].wait_for_selector("p")
    inner = (await tab.channel.frame_ids())[1]
    keys = ("page.shows@Inside", "page.shows@Outside", "page.title")
    assert await values(tab, *keys, frame_id=inner) == [True, False, "In"]
    assert await values(tab, *keys) == [False, True, "page"]
    assert await values(tab, "page.title", "runtime.domEpoch", frame_id="F00") == ["frame_mismatch", tab.page_epoch]


async def test_facts_of_another_site_in_a_frame_are_read_there(tab, site):
    inner = site.url(f"html?title=Inner&body={quote('<p>Inside</p>')}", host="localhost")
    await show(tab, site, f"<p>Outside</p><iframe src='{inner}'></iframe>")
    await tab.page.frames[1].wait_for_selector("p")
    frame_id = (await tab.channel.frame_ids())[1]
    assert await values(tab, "page.shows@Inside", "page.title", frame_id=frame_id) == [True, "Inner"]


async def test_stored_facts_come_from_the_store_and_are_unknown_without_one(tab, site):
    async def store(keys):
        known = {"shop.status": Seen("open"), "shop.stock": Unseen("stale_fact")}
        return {key: known[key] for key in keys if key in known}

    await form(tab, site)
    keys = ("shop.status", "shop.owner", "shop.stock")
    assert await values(tab, *keys) == ["fact_not_found"] * 3
    assert await values(tab, *keys, store=store) == ["open", "fact_not_found", "stale_fact"]


async def test_a_key_nobody_knows_and_a_response_before_any_press_are_not_found(tab, site):
    await form(tab, site)
    assert await values(tab, "page.color", "network.responseOk@/api/*") == ["fact_not_found", "fact_not_found"]


async def test_a_page_that_can_not_answer_leaves_its_facts_unread(tab, site):
    await form(tab, site)
    await tab.page.close()
    keys = ("page.title", "dom.#lead@visible", "page.url", "runtime.rendererHealthy")
    async with tab.watch() as window:
        witness = PageWitness(tab, window, backdrop=Backdrop())
        reading = await witness.read([FactAddress(key) for key in keys])
    unread = Unseen("fact_unreadable")
    assert [reading[FactAddress(key)] for key in keys] == [unread, unread, unread, Seen(False)]


ALL = (
    "dom.#lead", "dom.#pin@value", "dom.#gift@checked", "dom.#rows li@count", "page.title", "page.readyState",
    "page.shows@Two%20open", "page.shows@Order%20confirmed", VALID, f"{VALID}@css=%23order", BANNER, SUCCESS,
    "overlay.blocking", "overlay.primary.visible",
)  # fmt: skip


@pytest.mark.parametrize("page", ["form_overrides", "form_clobbered"])
async def test_replaced_builtins_and_clobbered_names_change_no_fact(tab, site, page):
    await form(tab, site)
    clean = await values(tab, *ALL)
    assert "fact_unreadable" not in clean[:8]
    await tab.page.goto(site.url(f"facts/{page}.html"))
    assert await values(tab, *ALL) == clean
