"""Forms come from our own pages, and every answer carries the headers that keep other pages out."""

import html
import re
from urllib.parse import urlencode

import anyio
import pytest
from dashboard_kit import HOSTILE, ORIGIN, Stand
from starlette.types import ASGIApp, Message

FORM = "application/x-www-form-urlencoded"

PATHS = ("/login", "/enter?ticket=x", "/", "/nowhere", "/static/x/nova.css")


@pytest.mark.parametrize("path", PATHS)
async def test_every_answer_is_closed_to_other_pages_and_kept_by_nobody(desk: Stand, path: str):
    async with desk.operator() as visitor:
        answer = await visitor.get(path)
    policy = answer.headers["content-security-policy"]
    for part in (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    ):
        assert part in policy.split("; ")
    assert "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "same-origin"
    assert answer.headers["cache-control"] == "no-store"


async def test_the_stylesheet_may_be_kept_because_its_address_changes_with_it(desk: Stand):
    async with desk.visitor() as visitor:
        shown = await visitor.page("/login")
        address = shown.split('rel="stylesheet" href="/dashboard')[1].split('"')[0]
        answer = await visitor.get(address)
        assert (answer.status_code, "immutable" in answer.headers["cache-control"]) == (200, True)
        assert answer.headers["content-type"] == "text/css; charset=utf-8"
        for other in (address.replace("nova.css", "app.py"), "/static/0123456789ab/nova.css"):
            assert (await visitor.get(other)).status_code == 404


@pytest.mark.parametrize(
    "origin", [None, "http://127.0.0.1:8080", "http://localhost:27183", "https://evil.test", "null"]
)
async def test_a_form_from_another_page_changes_nothing(desk: Stand, origin: str | None):
    async with desk.operator() as visitor:
        token = await visitor.csrf()
        answer = await visitor.post("/theme", {"theme": "dark"}, csrf=token, origin=origin)
        assert answer.status_code == 403
        assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("token", ["wrong", "é", " "])
async def test_a_form_without_this_sessions_token_changes_nothing(desk: Stand, token: str):
    async with desk.operator() as visitor:
        answer = await visitor.post("/theme", {"theme": "dark"}, csrf=token)
        assert (answer.status_code, "set-cookie" in answer.headers) == (403, False)


async def test_another_sessions_token_is_worth_nothing(desk: Stand):
    async with desk.operator() as one, desk.operator() as other:
        assert (await one.post("/theme", {"theme": "dark"}, csrf=await other.csrf())).status_code == 403


async def test_a_post_from_a_page_of_the_same_machine_but_another_port_is_told_apart_by_the_browser_too(desk: Stand):
    async with desk.operator() as visitor:
        csrf = await visitor.csrf()
        answer = await visitor.http.post(
            "/dashboard/theme", data={"csrf": csrf}, headers={"origin": ORIGIN, "sec-fetch-site": "same-site"}
        )
        assert answer.status_code == 403


async def test_bodies_that_no_form_of_ours_sends_are_refused(desk: Stand):
    async with desk.operator() as visitor:
        headers = {"origin": ORIGIN, "x-nova-csrf": await visitor.csrf()}
        long = await visitor.http.post("/dashboard/theme", data={"theme": "x" * 70_000}, headers=headers)
        many = await visitor.http.post("/dashboard/theme", data={f"f{at}": "1" for at in range(200)}, headers=headers)
        other = await visitor.http.post("/dashboard/theme", json={"theme": "dark"}, headers=headers)
        assert [answer.status_code for answer in (long, many, other)] == [400, 400, 400]


async def unfinished(app: ASGIApp, left: Message | None) -> list[Message]:
    """Signs in with half a form, after which nothing more comes, or only that the sender left; gives what was sent."""
    sent: list[Message] = []
    coming: list[Message] = [{"type": "http.request", "body": b"token=oper", "more_body": True}]
    if left is not None:
        coming.append(left)

    async def receive() -> Message:
        return coming.pop(0) if coming else await anyio.sleep_forever()

    async def send(message: Message) -> None:
        sent.append(message)

    names = {"host": ORIGIN.removeprefix("http://"), "origin": ORIGIN, "content-type": FORM, "content-length": "40"}
    scope = {
        "type": "http",
        "method": "POST",
        "scheme": "http",
        "path": "/dashboard/login",
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in names.items()],
    }
    with anyio.fail_after(20):
        await app(scope, receive, send)
    return sent


async def test_a_sender_who_leaves_in_the_middle_of_a_form_breaks_nothing(
    desk: Stand, caplog: pytest.LogCaptureFixture
):
    sent = await unfinished(desk.app, {"type": "http.disconnect"})
    assert [message.get("status") for message in sent] == [400, None]
    assert caplog.text == ""


async def test_a_form_that_never_ends_is_not_waited_for(desk: Stand, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("nova_mcp.dashboard.request_checks.FORM_S", 0.05)
    sent = await unfinished(desk.app, None)
    assert sent[0]["status"] == 400


async def test_the_theme_is_kept_and_only_known_ones_are(desk: Stand):
    async with desk.operator() as visitor:
        await visitor.post("/theme", {"theme": "dark", "back": "/dashboard/calls"})
        assert 'data-theme="dark"' in await visitor.page("/")
        await visitor.post("/theme", {"theme": HOSTILE})
        assert 'data-theme="dark"' in await visitor.page("/")


@pytest.mark.parametrize(
    "address",
    [
        "/calls?tool=navigate&host=shop.example",
        f"/knowledge/entry?{urlencode({'scope': 'shop.example', 'id': HOSTILE})}",
        f"/facts?service={'%C3%A9' * 300}",
    ],
)
async def test_choosing_a_theme_leads_back_to_the_very_page(desk: Stand, address: str):
    async with desk.operator() as visitor:
        page = (await visitor.get(address)).text
        back = html.unescape(re.findall(r'name="back" value="([^"]*)"', page)[0])
        answer = await visitor.post("/theme", {"theme": "light", "back": back})
    assert answer.headers["location"] == f"/dashboard{address}"


@pytest.mark.parametrize(
    ("form", "back"), [("/review/question", "/review"), ("/controls/stop", "/controls"), ("/here", "/")]
)
async def test_choosing_a_theme_on_the_answer_to_a_form_leads_to_a_page_that_there_is(
    desk: Stand, form: str, back: str
):
    async with desk.operator() as visitor:
        answer = await visitor.post(form, csrf="wrong")
    assert answer.status_code == 403
    assert f'name="back" value="/dashboard{back}"' in answer.text


@pytest.mark.parametrize("back", ["https://evil.test/", "//evil.test/", "/mcp", "", "/dashboardx"])
async def test_nobody_is_sent_elsewhere(desk: Stand, back: str):
    async with desk.operator() as visitor:
        answer = await visitor.post("/theme", {"theme": "light", "back": back})
        assert answer.headers["location"] == "/dashboard/"


async def test_a_page_that_breaks_says_so_without_telling_why(desk: Stand, caplog: pytest.LogCaptureFixture):
    def broken(*_: object) -> None:
        raise RuntimeError(HOSTILE)

    desk.program.database.read = broken  # type: ignore[method-assign,assignment]
    async with desk.visitor() as visitor:
        await visitor.post("/login", {"token": "operator-token-0123456789"}, csrf=None)
        answer = await visitor.get("/")
    assert (answer.status_code, "This page broke" in answer.text) == (500, True)
    assert "alert(1)" not in answer.text
    assert "RuntimeError" in caplog.text
