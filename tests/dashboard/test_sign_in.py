"""Who gets in, with what, and for how long."""

from dataclasses import replace

import pytest
from dashboard_kit import ENDPOINT, ORIGIN, ROBOT, TOKEN, Stand
from hypothesis import given
from hypothesis import strategies as st

from nova_mcp.dashboard.app import build
from nova_mcp.dashboard.sessions import IDLE_MS, KEPT, LONGEST_MS, WRONG_PER_MINUTE, Sessions
from nova_mcp.dashboard.tickets import LIFE_MS, NoTicket, Ticket, check, issue

INSIDE = ("/", "/calls", "/nowhere")


@pytest.mark.parametrize("path", INSIDE)
async def test_without_a_session_every_page_leads_to_the_sign_in(desk: Stand, path: str):
    async with desk.visitor() as visitor:
        answer = await visitor.get(path)
        assert (answer.status_code, answer.headers["location"]) == (303, "/dashboard/login")
        assert (await visitor.get(path, headers={"accept": "application/json"})).status_code == 401


async def test_a_made_up_cookie_is_nobody(desk: Stand):
    async with desk.visitor(cookies={"nova_session_27183": "x" * 43}) as visitor:
        assert (await visitor.get("/")).status_code == 303


async def test_the_operators_token_opens_the_dashboard(desk: Stand):
    async with desk.visitor() as visitor:
        answer = await visitor.post("/login", {"token": f" {TOKEN}\n"}, csrf=None)
        assert (answer.status_code, answer.headers["location"]) == (303, "/dashboard/")
        cookie = answer.headers["set-cookie"]
        assert {"httponly", "samesite=strict", "path=/dashboard"} <= {
            part.strip().lower() for part in cookie.split(";")
        }
        assert "max-age" not in cookie.lower()
        assert TOKEN not in cookie
        assert "Activity" in await visitor.page("/")


@pytest.mark.parametrize("token", ["", "wrong", TOKEN + "x", TOKEN[:-1]])
async def test_a_wrong_token_opens_nothing(desk: Stand, token: str):
    async with desk.visitor() as visitor:
        answer = await visitor.post("/login", {"token": token}, csrf=None)
        assert answer.status_code == 401
        assert "set-cookie" not in answer.headers
        assert "not the token" in answer.text
        assert (await visitor.get("/")).status_code == 303


async def test_another_principals_token_is_refused_by_name(desk: Stand):
    async with desk.visitor() as visitor:
        answer = await visitor.post("/login", {"token": ROBOT}, csrf=None)
        assert answer.status_code == 403
        assert "“robot”" in answer.text
        assert "set-cookie" not in answer.headers


async def test_guessing_is_slowed_down_and_the_right_token_waits_too(desk: Stand):
    async with desk.visitor() as visitor:
        for _ in range(WRONG_PER_MINUTE):
            assert (await visitor.post("/login", {"token": "guess"}, csrf=None)).status_code == 401
        assert (await visitor.post("/login", {"token": TOKEN}, csrf=None)).status_code == 429
        desk.clock.at_ms += 60_001
        assert (await visitor.post("/login", {"token": TOKEN}, csrf=None)).status_code == 303


@pytest.mark.parametrize(
    "origin", [None, "http://127.0.0.1:8080", "http://localhost:27183", "https://evil.test", "null"]
)
async def test_only_our_own_page_can_sign_somebody_in(desk: Stand, origin: str | None):
    async with desk.visitor() as visitor:
        answer = await visitor.post("/login", {"token": TOKEN}, csrf=None, origin=origin)
        assert answer.status_code == 403
        assert "set-cookie" not in answer.headers


async def test_a_link_opens_the_dashboard_once_and_looking_at_it_uses_nothing_up(desk: Stand):
    ticket = desk.ticket()
    async with desk.visitor() as visitor:
        for _ in range(2):
            shown = await visitor.page(f"/enter?ticket={ticket}")
            assert ticket in shown
        assert (await visitor.post("/enter", {"ticket": ticket}, csrf=None)).status_code == 303
        assert "Activity" in await visitor.page("/")
    async with desk.visitor() as second:
        answer = await second.post("/enter", {"ticket": ticket}, csrf=None)
        assert (answer.status_code, "used before" in answer.text) == (401, True)


async def test_a_link_expires_after_a_minute(desk: Stand):
    ticket = desk.ticket()
    desk.clock.at_ms += LIFE_MS + 1
    async with desk.visitor() as visitor:
        answer = await visitor.post("/enter", {"ticket": ticket}, csrf=None)
        assert (answer.status_code, "expired" in answer.text) == (401, True)


async def test_a_link_that_was_used_opens_nothing_after_a_restart_either(desk: Stand):
    ticket = desk.ticket()
    async with desk.visitor() as visitor:
        assert (await visitor.post("/enter", {"ticket": ticket}, csrf=None)).status_code == 303
    desk.clock.at_ms += 2_000
    desk.app = build(replace(desk.home, keys=replace(desk.home.keys, since_ms=desk.clock.at_ms)))
    async with desk.visitor() as visitor:
        answer = await visitor.post("/enter", {"ticket": ticket}, csrf=None)
        assert (answer.status_code, "used before" in answer.text) == (401, True)
        assert (await visitor.post("/enter", {"ticket": desk.ticket()}, csrf=None)).status_code == 303


async def test_strangers_who_guess_do_not_lock_the_operators_link_out(desk: Stand):
    async with desk.visitor() as visitor:
        for _ in range(WRONG_PER_MINUTE):
            await visitor.post("/login", {"token": "guess"}, csrf=None)
        refused = await visitor.post("/login", {"token": TOKEN}, csrf=None)
        assert (refused.status_code, "nova dashboard" in refused.text) == (429, True)
        assert (await visitor.post("/enter", {"ticket": desk.ticket()}, csrf=None)).status_code == 303


@pytest.mark.parametrize("changes", [{"secret": ROBOT}, {"endpoint": "http://127.0.0.1:1/mcp"}])
async def test_a_link_made_with_another_token_or_for_another_server_opens_nothing(desk: Stand, changes):
    async with desk.visitor() as visitor:
        answer = await visitor.post("/enter", {"ticket": desk.ticket(**changes)}, csrf=None)
        assert (answer.status_code, "no sign-in link of this server" in answer.text) == (401, True)


@given(st.text(max_size=120))
def test_no_other_text_is_a_ticket(text: str):
    assert check(TOKEN, ENDPOINT, 1000, text) == NoTicket("forged")


@given(st.integers(0, 10**14), st.integers(-LIFE_MS, 2 * LIFE_MS), st.sampled_from(["ab" * 8, "01" * 32]))
def test_a_ticket_is_good_for_its_minute_only(issued_ms: int, later_ms: int, nonce: str):
    found = check(TOKEN, ENDPOINT, issued_ms + later_ms, issue(TOKEN, ENDPOINT, issued_ms, nonce))
    if -5_000 <= later_ms <= LIFE_MS:
        assert found == Ticket(nonce, issued_ms, issued_ms + LIFE_MS)
    else:
        assert found == NoTicket("expired")


async def test_a_session_ends_after_a_week_however_much_it_is_used(desk: Stand):
    sessions = Sessions(desk.clock)
    cookie, began = sessions.open("local"), desk.clock.at_ms
    while desk.clock.at_ms - began <= LONGEST_MS:
        assert sessions.find(cookie) is not None
        desk.clock.at_ms += IDLE_MS
    assert sessions.find(cookie) is None


async def test_a_session_ends_after_twelve_idle_hours_and_not_before(desk: Stand):
    async with desk.operator() as visitor:
        for _ in range(3):
            desk.clock.at_ms += IDLE_MS
            assert (await visitor.get("/")).status_code == 200
        desk.clock.at_ms += IDLE_MS + 1
        assert (await visitor.get("/")).status_code == 303


async def test_signing_out_ends_the_session_for_good(desk: Stand):
    async with desk.operator() as visitor:
        cookies = dict(visitor.http.cookies)
        assert (await visitor.post("/logout")).status_code == 303
        async with desk.visitor(cookies=cookies) as again:
            assert (await again.get("/")).status_code == 303


def test_sessions_do_not_pile_up(desk: Stand):
    sessions = Sessions(desk.clock)
    cookies = [sessions.open("local") for _ in range(KEPT + 5)]
    assert [sessions.find(cookie) is None for cookie in cookies[:6]] == [True] * 5 + [False]


async def test_the_sign_in_page_tells_where_the_token_is_but_not_what_it_is(desk: Stand):
    async with desk.visitor() as visitor:
        shown = await visitor.page("/login")
    assert "mcp.json" in shown
    assert TOKEN not in shown
    assert ORIGIN not in shown
