"""Reviews: asked first, sent by our own page, done by the tool for it and by nothing else."""

import re
from html import unescape
from urllib.parse import urlencode

import memory_kit
import pytest
from dashboard_kit import HOSTILE, Stand, Visitor

from nova_mcp.calls.model import Answer, CallRequest

ENTRY = {"scope": "shop.test", "id": "cart-drawer"}
DECIDE = {**ENTRY, "act": "decide", "transition": "l1_to_l2"}
RETIRE = {**ENTRY, "act": "retire", "reason": "the drawer is gone"}


@pytest.fixture
def asked(desk: Stand) -> str:
    memory_kit.everything(desk.db)
    return memory_kit.question(desk.db)


def answers(desk: Stand, *bodies: dict) -> None:
    """What the tools say, one after the other."""
    waiting = list(bodies)

    async def call(request: CallRequest) -> Answer:
        desk.program.calls.append(request)
        body = waiting.pop(0)
        return Answer(body, "", is_error=not body.get("ok", True))

    desk.program.call = call  # type: ignore[method-assign]


async def after(visitor: Visitor, path: str, form: dict[str, str]) -> tuple[str, str]:
    """Where a review leads, and what is said there."""
    answer = await visitor.post(path, form)
    assert answer.status_code == 303, answer.text
    to = answer.headers["location"]
    page = await visitor.http.get(to)
    notice = re.search(r'<p class="notice (\w+)" role="status">([^<]*)</p>', page.text)
    assert notice is not None, page.text
    return to, f"{notice[1]}: {unescape(notice[2])}"


# -- asking


async def test_a_look_at_the_question_changes_nothing(desk: Stand, asked: str):
    async with desk.operator() as visitor:
        for act in ("decide", "retire"):
            await visitor.page(f"/review/entry?{urlencode({**ENTRY, 'act': act})}")
        await visitor.page(f"/review/question?{urlencode({'id': asked})}")
    assert desk.program.calls == []


async def test_what_no_gate_allows_is_not_offered(desk: Stand, asked: str):
    async with desk.operator() as visitor:
        html = await visitor.page(f"/review/entry?{urlencode({**ENTRY, 'act': 'decide'})}")
        assert "Nothing would change now." in html
        assert 'action="/dashboard/review/entry"' not in html
        _, told = await after(visitor, "/review/entry", {**DECIDE, "transition": ""})
    assert told == "bad: Nothing was decided: no gate passes."
    assert desk.program.calls == []


async def test_what_the_gates_allow_is_offered_with_the_step_it_is(desk: Stand, asked: str):
    memory_kit.Site(desk.db, memory_kit.servers(), "more").call(memory_kit.NOW - 3_600_000, selector="#cart")
    async with desk.operator() as visitor:
        html = await visitor.page(f"/review/entry?{urlencode({**ENTRY, 'act': 'decide'})}")
    fields = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', html.partition("/review/entry")[2]))
    assert {name: fields[name] for name in DECIDE} == DECIDE
    assert "The gates allow it now" in html


# -- doors


@pytest.mark.parametrize(
    ("path", "form"), [("/review/entry", DECIDE), ("/review/entry", RETIRE), ("/review/question", {"id": "x"})]
)
@pytest.mark.parametrize("door", ["no session", "no csrf", "wrong csrf", "another origin", "no origin"])
async def test_only_our_own_pages_may_review(desk: Stand, asked: str, path: str, form: dict[str, str], door: str):
    async with desk.visitor() if door == "no session" else desk.operator() as visitor:
        options = {
            "no session": {"csrf": None},
            "no csrf": {"csrf": None},
            "wrong csrf": {"csrf": "x" * 32},
            "another origin": {"origin": "https://evil.test"},
            "no origin": {"origin": None},
        }[door]
        answer = await visitor.post(path, form, **options)
    assert answer.status_code in (401, 403)
    assert desk.program.calls == []


# -- what is sent


async def test_a_decision_is_the_operators_call_about_one_entry_and_one_step(desk: Stand, asked: str):
    decided = {"stableId": "cart-drawer", "applied": True, "reasonKind": "l1_to_l2", "fromLevel": 1, "toLevel": 2}
    answers(desk, {"ok": True, "applied": 1, "decisions": [decided]})
    async with desk.operator() as visitor:
        to, told = await after(visitor, "/review/entry", DECIDE)
    (call,) = desk.program.calls
    assert (call.tool, call.principal) == ("nova.learn_promote", "local")
    assert call.arguments == {
        "scope": "shop.test",
        "stableIds": ["cart-drawer"],
        "transition": "l1_to_l2",
        "agentId": "dashboard",
    }
    assert told == "good: cart-drawer: shadow → active."
    assert to.startswith("/dashboard/knowledge/entry?scope=shop.test&id=cart-drawer&")


async def test_retiring_sends_the_reason(desk: Stand, asked: str):
    answers(desk, {"ok": True, "deprecated": True, "phenomenonId": "cart-drawer", "reason": "the drawer is gone"})
    async with desk.operator() as visitor:
        _, told = await after(visitor, "/review/entry", RETIRE)
    (call,) = desk.program.calls
    assert call.tool == "nova.pks_deprecate"
    assert call.arguments["reason"] == "the drawer is gone"
    assert told == "good: cart-drawer is retired: the drawer is gone"


async def test_a_refusal_is_told_as_it_was_said(desk: Stand, asked: str):
    said = f"An active entry stays. {HOSTILE}"
    answers(desk, {"ok": False, "deprecated": False, "reasonCode": "pks.evidence_required", "message": said})
    async with desk.operator() as visitor:
        _, told = await after(visitor, "/review/entry", RETIRE)
    assert told == f"bad: Nothing changed: {said}"


async def test_what_has_moved_meanwhile_is_not_moved_again(desk: Stand, asked: str):
    late = {"stableId": "cart-drawer", "applied": False, "rejectionReason": "not_applicable"}
    answers(desk, {"ok": True, "applied": 0, "decisions": [late]})
    async with desk.operator() as visitor:
        _, told = await after(visitor, "/review/entry", DECIDE)
    assert told == "bad: Nothing changed: it has moved meanwhile."


async def test_a_question_is_answered_with_a_verdict(desk: Stand, asked: str):
    answers(desk, {"ok": True, "verdict": "unsafe"})
    form = {"id": asked, "verdict": "unsafe", "reason": "it asks for a password"}
    async with desk.operator() as visitor:
        _, told = await after(visitor, "/review/question", form)
    (call,) = desk.program.calls
    assert call.tool == "nova.learn_resolve_opportunity"
    assert call.arguments == {
        "opportunityId": asked,
        "verdict": "unsafe",
        "reason": "it asks for a password",
        "agentId": "dashboard",
    }
    assert told == "good: Answered: storing it would be unsafe."


@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("/review/question", {"id": "x", "verdict": "burn"}),
        ("/review/question", {"id": "x"}),
        ("/review/entry", {**DECIDE, "act": "burn"}),
        ("/review/entry", {**DECIDE, "scope": "*"}),
        ("/review/entry", {**DECIDE, "id": "a\x00b"}),
    ],
)
async def test_what_nobody_could_have_asked_for_reaches_no_tool(
    desk: Stand, asked: str, path: str, form: dict[str, str]
):
    async with desk.operator() as visitor:
        assert (await visitor.post(path, form)).status_code == 404
    assert desk.program.calls == []


# -- a site that is not open

CLOSED = {"ok": False, "reasonCode": "pks.scope_not_open", "message": "shop.test is not open in any of your tabs."}


async def test_without_the_site_open_nova_asks_to_open_it(desk: Stand, asked: str):
    answers(desk, CLOSED)
    async with desk.operator() as visitor:
        answer = await visitor.post("/review/entry", RETIRE)
    assert answer.status_code == 409
    assert 'value="https://shop.test/"' in answer.text
    kept = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', answer.text.partition("/review/entry")[2]))
    assert {name: kept[name] for name in RETIRE} == RETIRE
    assert [call.tool for call in desk.program.calls] == ["nova.pks_deprecate"]


async def test_a_site_that_is_opened_for_a_review_is_closed_again(desk: Stand, asked: str):
    opened = {"ok": True, "targetId": "tab_9"}
    answers(desk, opened, {"ok": True, "deprecated": True, "phenomenonId": "x", "reason": "gone"}, {"ok": True})
    async with desk.operator() as visitor:
        await after(visitor, "/review/entry", {**RETIRE, "url": "https://shop.test/cart"})
    assert [(call.tool, call.arguments.get("targetId")) for call in desk.program.calls] == [
        ("nova.tab_new", None),
        ("nova.pks_deprecate", None),
        ("nova.tab_close", "tab_9"),
    ]
    assert desk.program.calls[0].arguments["url"] == "https://shop.test/cart"


async def test_a_page_that_can_not_be_opened_ends_the_review(desk: Stand, asked: str):
    answers(desk, {"ok": False, "targetId": "tab_9", "message": "nobody answers there"}, {"ok": True})
    async with desk.operator() as visitor:
        _, told = await after(visitor, "/review/entry", {**RETIRE, "url": "https://shop.test/cart"})
    assert told == "bad: Nothing changed: nobody answers there"
    assert [call.tool for call in desk.program.calls] == ["nova.tab_new", "nova.tab_close"]


async def test_a_page_of_another_site_does_not_open_this_one(desk: Stand, asked: str):
    answers(desk, {"ok": True, "targetId": "tab_9"}, CLOSED, {"ok": True})
    async with desk.operator() as visitor:
        answer = await visitor.post("/review/entry", {**RETIRE, "url": "https://wiki.test/"})
    assert answer.status_code == 409
    assert "shop.test is not open in any of your tabs." in answer.text
    assert [call.tool for call in desk.program.calls][-1] == "nova.tab_close"
