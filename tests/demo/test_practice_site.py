"""The practice site: what it answers, what it remembers, and that its log counts what arrived."""

from urllib.request import Request, urlopen

import pytest

from nova_mcp.demo.site import practice_site
from nova_mcp.demo.site_answers import HANDBOOK, PASSWORD, SIGNED_IN, USER, Asked, State, answer


def get(state: State, site, path: str, cookies: str = ""):
    return answer(state, site, Asked("GET", path, cookies=cookies))


def post(state: State, site, path: str, body: str = ""):
    return answer(state, site, Asked("POST", path, body))


def test_the_shop_asks_about_cookies_every_day_anew():
    state = State(day=3)
    assert "We value your privacy" in get(state, "shop", "/").body
    (cookie,) = (value for name, value in post(state, "shop", "/api/consent/rejected").headers if name == "Set-Cookie")
    kept = cookie.partition(";")[0]
    assert "We value your privacy" not in get(state, "shop", "/", kept).body
    state.day = 4
    assert "We value your privacy" in get(state, "shop", "/", kept).body


def test_the_profile_page_says_saved_and_the_shop_stores_nothing():
    assert "Profile saved." in get(State(), "shop", "/profile").body
    assert post(State(), "shop", "/api/profile").status == 500


def test_every_order_counts():
    state = State()
    for number in (1, 2):
        assert f"the number {number}" in post(state, "shop", "/api/order").body
    assert state.orders == 2


def test_the_redesign_gives_the_old_name_to_another_control():
    state = State()
    old = get(state, "wiki", "/").body
    state.redesigned = True
    new = get(state, "wiki", "/").body
    assert '<button id="departments" type="button" aria-expanded="false">Departments</button>' in old
    assert '<input id="departments" type="checkbox" data-archives> Archive this wiki' in new
    assert "Archive" not in old


def test_all_pages_of_the_handbook_are_there_and_linked():
    front = get(State(), "wiki", "/").body
    for path, (title, text) in HANDBOOK.items():
        assert f'<a href="{path}">{title}</a>' in front
        assert text in get(State(), "wiki", path).body


@pytest.mark.parametrize(("password", "status"), [(PASSWORD, 303), (PASSWORD[:-1], 200), ("", 200)])
def test_the_chat_takes_one_password(password: str, status: int):
    reply = post(State(), "chat", "/login", f"username={USER}&password={password}")
    assert reply.status == status
    assert any(SIGNED_IN in value for _, value in reply.headers) is (status == 303)


def test_the_chat_shows_messages_only_to_who_is_signed_in_and_as_text():
    state = State(messages=["<script>1</script>"])
    assert "<h1>Sign in" in get(state, "chat", "/").body
    shown = get(state, "chat", "/", f"a=b; {SIGNED_IN}").body
    assert "&lt;script&gt;1&lt;/script&gt;" in shown


def test_a_chat_that_is_down_keeps_nothing():
    state = State(chat_down=True)
    assert post(state, "chat", "/api/messages", "hello").status == 503
    assert state.messages == []


def test_one_site_does_not_know_the_pages_of_another():
    assert get(State(), "chat", "/checkout").status == 404
    assert post(State(), "wiki", "/api/order").status == 404


def test_the_log_counts_what_arrived_by_site_method_and_path():
    with practice_site() as site:
        for host, path, data in (
            ("shop.localhost", "/api/order", b""),
            ("shop.localhost", "/checkout?x=1", None),
            ("wiki.localhost", "/", None),
        ):
            request = Request(f"{site.base_url}{path}", data, headers={"Host": f"{host}:{site.port}"})
            with urlopen(request, timeout=10) as reply:
                assert reply.status == 200
        assert site.received("shop", "POST", "/api/order") == 1
        assert site.received("shop", "GET", "/checkout") == 1
        assert site.received("wiki", "GET", "/") == 1
        assert site.received("shop", "GET", "/") == 0
        assert site.requests == 3
