"""Fact keys: what they name, where they are read, and what is refused."""

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nova_mcp.verification.contracts.fact_keys import (
    ARGUMENT_NAMES,
    DOM_FIELDS,
    HOST_NAMES,
    PAGE_NAMES,
    UnknownFact,
    glob_matches,
    parse_fact,
    response_fact,
    to_page,
)
from nova_mcp.verification.model import Seen, SentRequest


@pytest.mark.parametrize(
    ("key", "css", "field"),
    [
        ("dom.#x", "#x", None),
        ("dom..toast", ".toast", None),
        ("dom.#x@text", "#x", "text"),
        ("dom.a.b > c@gone", "a.b > c", "gone"),
        ('dom.a[href="mailto:me@text"]', 'a[href="mailto:me@text"]', None),
        ('dom.a[href="me@home"]@visible', 'a[href="me@home"]', "visible"),
        ("dom.[data-x='a@b']", "[data-x='a@b']", None),
        (r"dom..\@text", r".\@text", None),
        (r"dom..\@container@count", r".\@container", "count"),
        ("dom.:is(a, b)@enabled", ":is(a, b)", "enabled"),
    ],
)
def test_an_element_fact_is_a_selector_and_perhaps_a_field(key, css, field):
    ref = parse_fact(key)
    assert (ref.source, ref.name, ref.css, ref.field) == ("page", "dom", css, field)
    assert to_page(ref) == {"kind": "dom", "css": css, "field": field}


@pytest.mark.parametrize("field", DOM_FIELDS)
def test_every_field_of_an_element_can_be_named(field):
    assert parse_fact(f"dom.#x@{field}").field == field


@pytest.mark.parametrize("name", sorted(PAGE_NAMES))
def test_facts_read_in_the_page_take_a_scope(name):
    assert to_page(parse_fact(name)) == {"kind": "named", "name": name, "css": None}
    css = 'form#a > [data-x="b@c"]'
    scoped = parse_fact(f"{name}@css={quote(css, safe='')}")
    assert to_page(scoped) == {"kind": "named", "name": name, "css": css}


@pytest.mark.parametrize("name", sorted(HOST_NAMES))
def test_facts_of_the_host_take_none(name):
    assert parse_fact(name).source == "host"
    with pytest.raises(UnknownFact):
        parse_fact(f"{name}@css=%23x")
    with pytest.raises(ValueError):
        to_page(parse_fact(name))


@given(st.text(min_size=1).filter(lambda text: text.strip() and text.isprintable()))
def test_any_text_can_be_looked_for(text):
    ref = parse_fact(f"page.shows@{quote(text, safe='')}")
    assert to_page(ref) == {"kind": "named", "name": "page.shows", "css": None, "text": text}


@pytest.mark.parametrize("name", sorted(ARGUMENT_NAMES))
def test_facts_about_something_need_to_be_told_what(name):
    for key in (name, f"{name}@", f"{name}@ "):
        with pytest.raises(UnknownFact, match="needs what it is about"):
            parse_fact(key)


@pytest.mark.parametrize(
    ("key", "near"),
    [
        ("page.ulr", "page.url"),
        ("form.errorBanner", "form.errorBanner.visible"),
        ("auth.logedIn", "auth.loggedIn"),
        ("chat.streamStarted", "chat.streamActive.started"),
        ("network.responseOK@/x", "network.responseOk"),
        ("dom.#x@visble", "@visible"),
        ("pageurl", "page.url"),
        ("page.nonsense", "page."),
    ],
)
def test_an_unknown_name_is_refused_with_near_ones(key, near):
    with pytest.raises(UnknownFact) as refused:
        parse_fact(key)
    assert any(near in one for one in refused.value.near)
    assert refused.value.near[0] in str(refused.value)


@pytest.mark.parametrize(
    "key", ["", "x", ".", "dom.", "dom.@text", "dom. @text", "page.", "a.", ".a", "a..b", "a b.c", "dom.#x@css=%23y"]
)
def test_keys_that_name_nothing_are_refused(key):
    with pytest.raises(UnknownFact):
        parse_fact(key)


def test_other_namespaces_belong_to_the_store():
    ref = parse_fact("github.repo.visibility")
    assert (ref.source, ref.name) == ("store", "github.repo.visibility")


@pytest.mark.parametrize(
    ("glob", "url", "matches"),
    [
        ("/api/*", "https://x.test/api/orders?id=3", True),
        ("/api/*", "https://x.test/v1/api/orders", False),
        ("/api", "https://x.test/api?x=1#y", True),
        ("/api", "https://x.test/api/", False),
        ("/", "https://x.test", True),
        ("/api?id=*", "https://x.test/api?id=3", True),
        ("/api?id=4", "https://x.test/api?id=3", False),
        ("/api.x", "https://x.test/apiyx", False),
        ("/a*b*c", "https://x.test/a/1/b/2/c", True),
        ("/a*b*c", "https://x.test/a/c/b", False),
        ("/ab*ba", "https://x.test/aba", False),
        ("*", "https://x.test/anything", True),
        ("*/orders/*", "https://x.test/orders/3", True),
        ("https://x.test/api/*", "https://x.test/api/a?b=c", True),
        ("https://x.test/api/*", "https://y.test/api/a", False),
        ("https://x.test/api", "https://x.test/api#top", True),
        ("x.test/api/*", "https://x.test/api/a", True),
        ("#/orders/*", "https://x.test/app#/orders/3", True),
        ("/app#/orders/*", "https://x.test/app#/orders/3", True),
        ("/app#/orders/*", "https://x.test/app", False),
    ],
)
def test_globs(glob, url, matches):
    assert glob_matches(glob, url) is matches


@given(st.lists(st.text("ab/"), min_size=2, max_size=5), st.text("ab/"))
def test_what_a_glob_was_made_of_matches_it(pieces, filling):
    url = "https://x.test/" + filling.join(pieces)
    assert glob_matches("https://x.test/" + "*".join(pieces), url)


def test_the_newest_matching_answer_counts():
    requests = (
        SentRequest("POST", "https://x.test/api/a", status=500),
        SentRequest("POST", "https://x.test/api/a", status=201),
        SentRequest("GET", "https://x.test/api/a", status=404),
        SentRequest("POST", "https://x.test/api/a"),
        SentRequest("POST", "https://x.test/other", status=418),
    )
    assert response_fact(parse_fact(f"network.response@{quote('post /api/*')}"), requests) == Seen(201)
    assert response_fact(parse_fact("network.response@POST /api/*"), requests) == Seen(201)
    assert response_fact(parse_fact("network.response@/api/*"), requests) == Seen(404)
    assert response_fact(parse_fact("network.responseOk@/api/*"), requests) == Seen(404)
    assert response_fact(parse_fact("network.responseOk@/nowhere"), requests) == Seen(None)
