"""What hostile pages and agents that lie try on knowledge, through a real client on real pages."""

from typing import Any

import pks_kit
import pytest
from loop_kit import Server, Shop
from pks_kit import Site, click, consent, dom, refused

from nova_mcp.memory.journal.store import observation

pytestmark = pytest.mark.browser

_ASKS = "<p>We use cookies to improve your visit.</p><button id=no type=button>Reject all</button>"
_YES = "<button id=yes type=button onclick=\"document.title = 'ACCEPTED'; box.remove()\">Accept all</button>"
HOSTILE = {
    "/focused": "<!doctype html><html lang=en><title>Shop</title><main><h1>Shop</h1></main><div id=box role=dialog "
    f"aria-label=Cookies style='position:fixed;inset:0;background:#fff'>{_ASKS}{_YES}</div>"
    "<script>yes.focus()</script>",
    "/inline": f"<!doctype html><html lang=en><title>Shop</title><main><h1>Shop</h1><div id=box>{_ASKS}{_YES}</div>",
    "/framed": "<!doctype html><html lang=en><title>Shop</title><main><h1>Shop</h1><div id=box></div>"
    "<button id=go type=button>Go</button><iframe src=/inner width=400 height=200></iframe></main>",
    "/inner": "<!doctype html><html lang=en><title>Inner</title><p id=told></p>"
    "<button id=go type=button onclick=\"told.textContent = 'done'\">Go</button>",
}
GONE = [{"type": "absent", "selector": "#box"}]


PAGES = {**pks_kit.PAGES, **HOSTILE}
SETTINGS = {"enable_eval": True}


@pytest.fixture
def site(server: Server, pages: Shop, tab: str) -> Site:
    return Site.new(server, pages, tab)


def entry(*actions: dict[str, Any], kind: str = "modal", verify: list[dict[str, Any]] = GONE) -> dict[str, Any]:
    playbook = {"policy": "dismiss", "actions": list(actions), "verify": verify}
    return {"id": "entry", "type": kind, "fingerprint": {"signals": [dom("#box")]}, "playbook": playbook}


async def applied(site: Site, **more: Any) -> dict[str, Any]:
    await site.server.call("perceive", targetId=site.tab)
    return await site.server.call("phenomenon_apply", targetId=site.tab, phenomenonId="entry", **more)


async def title(site: Site) -> str:
    return str((await site.server.call("perceive", targetId=site.tab))["title"])


# -- consent is never given


@pytest.mark.parametrize("key", ["Enter", "Space"])
@pytest.mark.parametrize("named", [{}, {"selector": "#yes"}])
@pytest.mark.parametrize("kind", ["modal", "consent_cmp"])
async def test_no_key_gives_consent_where_a_click_would_not(
    site: Site, key: str, named: dict[str, Any], kind: str
) -> None:
    await site.go("/focused")
    said = {"declaredPolarity": "reject"} if kind == "consent_cmp" and not named else {}
    pressing = {"action": "press_key", "key": key, **named, **said}
    told = await site.upsert(entry(pressing, kind=kind))
    if kind == "consent_cmp" and named:
        refused(told, "pks.polarity_required")
        return
    assert told["ok"], told
    await site.change("entry", level=2)
    answer = await applied(site)
    assert answer["reasonCode"] in ("pks.accept_refused", "pks.element_changed"), answer
    assert await title(site) == "Shop"


async def test_a_request_for_consent_in_the_flow_of_a_page_is_not_granted_by_another_name(site: Site) -> None:
    await site.go("/inline")
    assert (await site.upsert(entry(click("#yes"), kind="custom")))["ok"]
    answer = await applied(site, trial=True)
    assert (answer["ok"], answer["reasonCode"]) == (False, "pks.accept_refused")
    assert await title(site) == "Shop"


async def test_keys_that_reach_past_the_page_or_that_nobody_knows_are_not_stored(site: Site) -> None:
    await site.go("/banner")
    for key in ("F12", "Control+w", "Alt+ArrowLeft", "Foo", "Enter+Enter"):
        refused(await site.upsert(consent({"action": "press_key", "key": key, "declaredPolarity": "noop"})))


# -- a surface in disguise


@pytest.mark.parametrize("whole", ["body:not(.x)", "html:not(.x)", ":root:has(p)"])
async def test_the_whole_page_is_no_layer_however_it_is_named(site: Site, whole: str) -> None:
    await site.go("/banner")
    given = consent(click("#outside", "reject"), fingerprint={"signals": [dom("#cmp"), dom(whole)]})
    refused(await site.upsert(given), "pks.selector_too_broad")


@pytest.mark.parametrize("whole", [":is(body, #q)", "[lang]", "#q, body.none, :where(html)"])
async def test_what_turns_out_to_be_the_whole_page_holds_no_control(site: Site, whole: str) -> None:
    await site.go("/banner")
    given = consent(click("#outside", "reject"), fingerprint={"signals": [dom("#cmp"), dom(whole)]})
    refused(await site.upsert(given), "pks.outside_surface")


# -- evidence of something else


async def test_what_is_done_in_a_frame_says_nothing_about_a_control_of_the_page(site: Site) -> None:
    await site.go("/framed")
    await site.upsert(entry(click("#go"), kind="custom", verify=[]))
    found = (await site.server.call("perceive", targetId=site.tab))["elements"]
    (ref,) = [line.split()[0] for line in found if "[frame:" in line]
    told = await site.server.call("click_selector", targetId=site.tab, ref=ref)
    assert told["actionDispatched"], told
    rows = await site.server.rows(observation, observation.c.context_host == site.scope)
    (pressed,) = [row for row in rows if row["kind"] == "action_success"]
    assert (pressed["target_stable_id"], pressed["selector_norm"]) == (None, None)
    assert not (await site.report("success", "entry"))["backed"]


async def test_a_tab_that_a_scripted_one_reaches_into_confirms_nothing(site: Site) -> None:
    await site.go("/plain")
    server = site.server

    async def run(expression: str) -> None:
        told = await server.call("eval", targetId=site.tab, world="main", expression=expression)
        assert told["ok"], told

    await run("new Promise((done) => { window.other = open('/plain'); other.onload = () => done(1); })")
    await run(
        "other.document.body.innerHTML = '<div id=cmp role=dialog>We use cookies<button id=no>Reject all</button>'"
    )
    await server.call("navigate", targetId=site.tab, url="about:blank")
    told = await site.upsert()
    assert told["unconfirmedSelectors"] == ["#cmp", "#no"], told
    reached = [one["targetId"] for one in (await server.call("tabs"))["tabs"] if site.scope in one["url"]]
    assert len(reached) == 1
    for one in reached:
        await server.call("tab_close", targetId=one)


# -- what nobody would see


@pytest.mark.parametrize("hidden", ["\u202e", "\u2066", "\u2028", "\u0085", "\U000e0041"])
async def test_texts_that_show_something_else_than_they_say_are_not_stored(site: Site, hidden: str) -> None:
    await site.go("/banner")
    given = consent(fingerprint={"signals": [dom("#cmp"), {"kind": "text", "match": f"We use {hidden}cookies"}]})
    refused(await site.upsert(given))
    spelled = dom("a[href='\\6a avascript:alert(1)']")
    refused(await site.upsert(consent(fingerprint={"signals": [dom("#cmp"), spelled]})), "pks.script_content")
