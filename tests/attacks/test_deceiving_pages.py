"""Pages that look like success and are none, and contracts that could not tell: each through a real client."""

from collections.abc import Iterator
from typing import Any

import pytest
from loop_kit import Server, Shop
from place_kit import Place
from tests.pages.faults.flash import FRAMES, SAVED, SILENT, WORDINGS, Flash, Half
from tests.pages.faults.site import FaultSite, fault_site

pytestmark = pytest.mark.browser

_SAID = "<p id=said role=status></p>"
_SEND = (
    "<script>const send = async () => { const answer = await fetch('/api/save', {method: 'POST'});"
    " if (answer.ok) said.textContent = 'Entry saved.' }</script>"
)
_OWN_FORM = "<form id=f onsubmit='send();return false'><input name=q aria-label=Name value=Ada>"
_DELETED = _SEND.replace("Entry saved.", "The entry was deleted.")
_GO = "<button id=go type=button onclick=send()>Delete</button>"


def page(body: str) -> str:
    return f"<!doctype html><html lang=en><title>Office</title><main><h1>Office</h1>{body}</main>"


PAGES = {
    "/plain": page("<p>Nothing here.</p>"),
    "/commit": page(
        f"<form id=f onsubmit='send();return false'><input name=q aria-label=Name value=Ada>"
        f"<button id=go>Delete account</button></form>{_SAID}{_SEND}"
    ),
    "/removing": page(f"{_OWN_FORM}<button id=go>Remove entry</button></form>{_SAID}{_DELETED}"),
    "/saving": page(f"{_OWN_FORM}<button id=go>Save entry</button></form>{_SAID}{_DELETED}"),
    "/secret": page(f"<input id=pin name=pin type=password aria-label=PIN value='blue horse'>{_GO}{_SAID}{_SEND}"),
    "/picker": page(
        "<form id=f onsubmit='send();return false'><label>Owner <input id=owner name=owner readonly></label>"
        "<button id=ada type=button onclick=\"owner.value='Ada'\">Choose Ada</button>"
        "<button id=bob type=button onclick=\"owner.value='Bob'\">Choose Bob</button>"
        f"<button id=go>Transfer</button></form>{_SAID}{_SEND}"
    ),
    "/hidden": page(
        "<form id=f onsubmit='send();return false'><input type=hidden name=csrf value=a81f>"
        "<input type=hidden id=owner name=ownerId><output id=shown></output>"
        "<button id=ada type=button onclick=\"owner.value='17';f.csrf.value+='1'\">Choose one</button>"
        "<button id=bob type=button onclick=\"owner.value='18';f.csrf.value+='1'\">Choose another</button>"
        f"<button id=go>Transfer</button></form>{_SAID}{_SEND}"
    ),
    "/grid": page(
        "<form id=f onsubmit='send();return false'><table>"
        "<tr><td><input id=ada type=checkbox name=ids value=17 aria-label=Ada></td><td>Ada</td></tr>"
        "<tr><td><input id=bob type=checkbox name=ids value=18 aria-label=Bob></td><td>Bob</td></tr></table>"
        f"<button id=go>Delete</button></form>{_SAID}{_SEND}"
    ),
    "/unnamed": page(
        "<form id=f onsubmit='send();return false'><table>"
        "<tr><td><input id=ada type=checkbox></td><td>Ada Lovelace</td></tr>"
        "<tr><td><input id=bob type=checkbox></td><td>Bob Dylan</td></tr></table>"
        f"<button id=go>Delete</button></form>{_SAID}{_SEND}"
    ),
    "/anchor": page(
        "<a id=link href='#part'>Part</a> <button id=hash type=button onclick=\"location.hash='done'\">Next</button>"
        " <a id=route href='#/orders/5'>Orders</a><h2 id=part>Part</h2>"
    ),
    "/drawing": page(
        "<svg width=300 height=100><g id=node onclick=\"said.textContent='node pressed'\">"
        "<rect width=200 height=60 fill='#eee'/><text id=label x=20 y=30 style='pointer-events:none'>timestamp</text>"
        f"</g></svg>{_SAID}"
    ),
    "/label": page(
        "<button id=outer type=button onclick=\"said.textContent='outer pressed'\">"
        f"<span id=inner style='pointer-events:none'>Show more</span></button>{_SAID}"
    ),
    "/through": page(
        "<div id=card style='padding:20px;background:#eee'>"
        f"<button id=off type=button style='pointer-events:none'>Show more</button></div>{_SAID}"
    ),
    "/hover": page(
        "<style>#box{position:relative;width:200px;height:40px}#veil{position:absolute;inset:0;background:#ddd}</style>"
        "<div id=box><button id=more type=button style='width:200px;height:40px' "
        "onclick=\"said.textContent='shown'\">Show more</button></div>"
        "<script>let once = true; box.addEventListener('mouseover', () => { if (!once) return; once = false;"
        " const veil = document.createElement('div'); veil.id = 'veil'; box.append(veil);"
        f" setTimeout(() => veil.remove(), 120) }})</script>{_SAID}"
    ),
}


@pytest.fixture(scope="module")
def site() -> Iterator[FaultSite]:
    with fault_site() as running:
        yield running


def outcome(body: dict[str, Any]) -> tuple[Any, ...]:
    return (body["verifyState"], (body.get("guardedCommit") or {}).get("verificationStatus"))


def assertion(key: str, expected: Any = True, operator: str = "eq", **more: Any) -> dict[str, Any]:
    return {"factKey": key, "operator": operator, "expected": expected, **more}


def contract(*success: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"postconditions": {"success": {"all": list(success)}}, "stabilityMs": 0, **more}


SAVED_SHOWN = assertion("page.shows@Entry%20saved.")


# -- a redirect is no success by itself


async def sent(site: FaultSite, server: Server, tab: str, flash: Flash, key: str) -> dict[str, Any]:
    await server.call("navigate", targetId=tab, url=site.url("flash", key, **flash.query()))
    body = await server.call("guarded_submit_form", targetId=tab, selector="#go")
    assert (site.count(key), site.committed(key)) == (1, int(flash.done)), "the submission reached the site"
    return body


def first(case: str, half: Half, nth: int = 0) -> int:
    return [at for at, one in enumerate(WORDINGS) if (one.case, one.half) == (case, half)][nth]


def frame(name: str) -> int:
    return next(at for at, one in enumerate(FRAMES) if one.name == name)


@pytest.mark.parametrize(
    ("case", "half", "nth", "markup", "place"),
    [
        ("gone", "open", 0, "list of messages, class warning", "home"),
        ("gone", "open", 18, "alert information", "list"),
        ("gone", "open", 18, "flash notice", "home"),
        ("gone", "open", 19, "role status alone", "list"),
        ("gone", "aside", 0, "growl", "list"),
        ("permission", "open", 5, "alert information", "list"),
        ("expired", "aside", 1, "snack bar", "home"),
        ("conflict", "open", 0, "role status alone", "same"),
        ("conflict", "aside", 13, "message notice", "record"),
        ("warning", "open", 1, "flash warning", "list"),
    ],
)
async def test_a_redirect_that_brings_a_complaint_is_never_verified(
    site: FaultSite, server: Server, tab: str, case: str, half: Half, nth: int, markup: str, place: Any
) -> None:
    flash = Flash(case, half, place, done=False, wording=first(case, half, nth), frame=frame(markup))
    state, verdict = outcome(await sent(site, server, tab, flash, f"{case}-{half}-{nth}-{place}"))
    assert state in ("failed", "uncertain")
    assert verdict in ("verified_fail", "indeterminate")


@pytest.mark.parametrize(("path", "told"), [("/removing", "verified"), ("/saving", "uncertain")])
async def test_that_a_record_was_deleted_is_a_success_only_where_it_was_to_be_deleted(
    place: Place, path: str, told: str
) -> None:
    await place.visit(path)
    body = await place.call("guarded_submit_form", selector="#go")
    assert (body["actionDispatched"], body["verifyState"]) == (True, told), body


@pytest.mark.parametrize("done", [True, False])
async def test_coming_back_to_the_same_form_without_a_word_is_likely_at_most(
    site: FaultSite, server: Server, tab: str, done: bool
) -> None:
    body = await sent(site, server, tab, Flash(SILENT, "open", "same", done=done), f"silent-{done}")
    assert outcome(body) == ("likely", "indeterminate")
    assert (body["status"], body["reasonCode"]) == ("partial", "guarded_commit.no_signal_yet")
    assert body["retryAdvice"] == "check_postcondition_first"


@pytest.mark.parametrize("place", ["same", "list"])
async def test_a_flash_of_success_after_a_redirect_is_verified(
    site: FaultSite, server: Server, tab: str, place: Any
) -> None:
    flash = Flash(SAVED, "open", place, done=True, wording=first(SAVED, "open"), frame=frame("flash notice"))
    assert outcome(await sent(site, server, tab, flash, f"saved-{place}")) == ("verified", "verified_success")


async def test_a_form_that_is_gone_after_a_redirect_without_a_word_is_verified(
    site: FaultSite, server: Server, tab: str
) -> None:
    body = await sent(site, server, tab, Flash(SILENT, "open", "list", done=True), "gone-quietly")
    assert outcome(body) == ("verified", "verified_success")


# -- a contract that can't be evaluated stops a commit before it is sent


BAD_CSS = contract(assertion("dom.#a[@visible"))
BAD_FRAME = contract(assertion("dom.#a@visible", frameId="no-such-frame"))
BAD_SCOPE = contract(assertion("form.fields.valid@css=%3A%3Anope((", True))


_CLICK: dict[str, Any] = {"selector": "#go"}


@pytest.mark.parametrize(
    ("tool", "arguments", "given"),
    [
        ("click_selector", _CLICK, BAD_CSS),
        ("click_selector", _CLICK, BAD_FRAME),
        ("click_selector", _CLICK, BAD_SCOPE),
        ("guarded_submit_form", _CLICK, BAD_CSS),
        ("type_selector", {"selector": "[name=q]", "text": "x", "pressEnter": True}, BAD_CSS),
        ("input_key", {"selector": "#go", "key": "Enter"}, BAD_FRAME),
    ],
    ids=["selector", "frame", "scope", "submit", "type", "key"],
)
async def test_a_contract_that_cannot_be_evaluated_stops_before_anything_is_sent(
    place: Place, pages: Shop, tool: str, arguments: dict[str, Any], given: dict[str, Any]
) -> None:
    before = pages.posted["/api/save"]
    await place.visit("/commit")
    body = await place.call(tool, **arguments, transitionContract=given)
    assert (body["status"], body["reasonCode"]) == ("blocked", "guarded_commit.eval_error"), body
    assert (body["actionDispatched"], body["retryAdvice"]) == (False, "safe_to_retry")
    assert body["guardedCommit"]["dispatchStatus"] == "blocked_precondition"
    assert pages.posted["/api/save"] == before
    assert await place.asked("document.querySelector('[name=q]').value") == "Ada"


async def test_an_expectation_with_a_broken_selector_stops_before_anything_is_sent(place: Place, pages: Shop) -> None:
    before = pages.posted["/api/save"]
    await place.visit("/commit")
    body = await place.click("#go", expect=["visible:div:nope(("])
    assert (body["actionDispatched"], pages.posted["/api/save"]) in ((False, before), (None, before))
    assert body["ok"] is False


@pytest.mark.parametrize(
    "wrong",
    [
        assertion("form.fields.valid", 3, "gt"),
        assertion("dom.#said@text", 3, "gt"),
        assertion("dom.#said@count", "two"),
        assertion("page.urlChanged", "yes"),
        assertion("dom.#said@visible", "x", "contains"),
        assertion("form.successBanner.visible"),
    ],
    ids=lambda one: f"{one['factKey']} {one['operator']}",
)
async def test_a_comparison_that_no_page_could_decide_is_refused(place: Place, wrong: dict[str, Any]) -> None:
    body = await place.click("#go", transitionContract=contract(wrong))
    assert (body["ok"], body["errorCode"]) == (False, -32602)


# -- masked values are compared inside the page


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        (assertion("dom.#pin@value", "blue horse"), None),
        (assertion("dom.#pin@value", "red horse", "not_eq"), None),
        (assertion("dom.#pin@value", "red horse"), "guarded_commit.precondition_failed"),
        (assertion("dom.#pin@value", "blue", "contains"), "guarded_commit.precondition_error"),
    ],
    ids=["same", "other", "wrong", "part"],
)
async def test_a_masked_value_is_compared_in_the_page_or_unknown_and_never_leaves_it(
    place: Place, condition: dict[str, Any], reason: str | None
) -> None:
    await place.visit("/secret")
    given = contract(SAVED_SHOWN, preconditions={"all": [condition]})
    body = await place.click("#go", transitionContract=given)
    if reason is None:
        assert outcome(body) == ("verified", "verified_success")
    else:
        assert (body["reasonCode"], body["actionDispatched"]) == (reason, False)
        assert [one["observed"] for one in body["guardedCommit"]["failedAssertions"]] == ["•••"]


# -- another record is another commit, the same one is the same


@pytest.mark.parametrize("path", ["/picker", "/hidden", "/grid", "/unnamed"])
async def test_what_was_picked_or_ticked_tells_one_commit_from_another(place: Place, pages: Shop, path: str) -> None:
    async def commit() -> str:
        body = await place.click("#go", transitionContract=contract(SAVED_SHOWN))
        return str(body.get("reasonCode") or body["verifyState"])

    mouse = place.server.tab(place.tab).page
    before = pages.posted["/api/save"]
    await place.visit(path)
    await mouse.click("#ada")
    assert await commit() == "verified"
    assert await commit() == "guarded_commit.duplicate_suspected"
    if path in ("/grid", "/unnamed"):
        await mouse.click("#ada")
    await mouse.click("#bob")
    await place.asked("said.textContent = ''")
    assert await commit() == "verified"
    assert pages.posted["/api/save"] == before + 2


# -- an anchor proves nothing


async def test_a_click_on_an_anchor_is_likely_at_most(place: Place) -> None:
    await place.visit("/anchor")
    for selector in ("#link", "#route"):
        body = await place.click(selector)
        assert (body["ok"], body["verifyState"]) == (True, "likely"), selector


@pytest.mark.parametrize(
    ("selector", "given"),
    [
        ("#hash", {"transitionContract": contract(assertion("page.urlChanged"))}),
        ("#hash", {"expect": ["url:#done"]}),
        ("#route", {"expect": ["url:#/orders/5"]}),
    ],
)
async def test_a_contract_that_only_an_anchor_meets_is_likely_at_most(
    place: Place, selector: str, given: dict[str, Any]
) -> None:
    await place.visit("/anchor")
    body = await place.click(selector, **given)
    assert outcome(body) == ("likely", "indeterminate")


# -- an ancestor covers nothing


@pytest.mark.parametrize(
    ("path", "selector", "said"),
    [("/drawing", "#label", "node pressed"), ("/label", "#inner", "outer pressed"), ("/hover", "#more", "shown")],
)
async def test_what_an_element_stands_in_is_not_its_cover(place: Place, path: str, selector: str, said: str) -> None:
    await place.visit(path)
    body = await place.click(selector)
    assert body["ok"], body
    assert await place.asked("said.textContent") == said


async def test_a_control_that_lets_the_pointer_through_is_not_said_to_be_covered(place: Place) -> None:
    await place.visit("/through")
    body = await place.click("#off", timeoutMs=300)
    assert (body["ok"], body["actionDispatched"]) == (False, False)
    assert body["reasonCode"] != "action.obstructed"
