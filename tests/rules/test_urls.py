"""One normal form for URLs, stable under repetition, and the keys made from it."""

import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nova_mcp.core.urls import (
    Normalized,
    Skipped,
    classify_segment,
    normalize,
    normalize_url,
    page_host,
    page_origin,
    page_port,
    redact_query,
    route_key,
    url_hash,
)

# How long an example takes says nothing on a busy machine.
UNHURRIED = settings(deadline=None)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("HTTP://Example.COM", "http://example.com/"),
        ("https://example.com:443/", "https://example.com/"),
        ("http://example.com:80/a", "http://example.com/a"),
        ("https://example.com:80/a", "https://example.com:80/a"),
        ("https://example.com:/a", "https://example.com/a"),
        ("https://example.com:0443/a", "https://example.com/a"),
        ("https://ada:secret@example.com/a", "https://example.com/a"),
        ("https://a@b@example.com/", "https://example.com/"),
        ("https://www.example.com/", "https://www.example.com/"),
        ("https://Bücher.example/ü", "https://xn--bcher-kva.example/%C3%BC"),
        ("https://example.com/%7Eada/%c3%bc", "https://example.com/~ada/%C3%BC"),
        ("https://example.com/a/./b/../c", "https://example.com/a/c"),
        ("https://example.com/a/%2e%2E/b", "https://example.com/b"),
        ("https://example.com/../../a", "https://example.com/a"),
        ("https://example.com/a//b//", "https://example.com/a//b"),
        ("https://example.com/a///", "https://example.com/a"),
        ("https://example.com//", "https://example.com/"),
        ("https://example.com/a/..", "https://example.com/"),
        ("https://example.com/50%", "https://example.com/50%25"),
        ("https://example.com/a%2Fb", "https://example.com/a%2Fb"),
        ("https://example.com/a b", "https://example.com/a%20b"),
        ("https://example.com\\a\\b", "https://example.com/a/b"),
        ("https://good.example\\@evil.example/", "https://good.example/@evil.example"),
        ("  https://example.com/a\n", "https://example.com/a"),
        ("https://exam\tple.com/", "https://example.com/"),
        ("https://example.com/?b=2&a=1&b=1", "https://example.com/?a=1&b=2&b=1"),
        ("https://example.com/?a=&b", "https://example.com/?a=&b"),
        ("https://example.com/?", "https://example.com/"),
        ("https://example.com/?&&", "https://example.com/"),
        ("https://example.com/?utm_source=x&UTM_Medium=y&gclid=1&_ga=2&_gl=3", "https://example.com/"),
        ("https://example.com/?ref=a&source=b", "https://example.com/?ref=a&source=b"),
        ("https://example.com/?%75tm_source=x&k=1", "https://example.com/?k=1"),
        ("https://example.com/a#top", "https://example.com/a"),
        ("https://example.com/#/inbox/7", "https://example.com/#/inbox/7"),
        ("https://example.com/#!home", "https://example.com/#!home"),
        ("http://0x7f.1/", "http://127.0.0.1/"),
        ("http://2130706433/", "http://127.0.0.1/"),
        ("http://[0:0:0:0:0:0:0:1]:8080/", "http://[::1]:8080/"),
        ("http://[::FFFF:127.0.0.1]/", "http://[::ffff:7f00:1]/"),
        ("http://ex%61mple.com/", "http://example.com/"),
    ],
)
def test_url_has_this_normal_form(raw: str, expected: str):
    assert normalize_url(raw) == expected


@pytest.mark.parametrize(
    "raw",
    [
        "",
        "example.com",
        "/a/b",
        "//example.com/",
        "ftp://example.com/",
        "file:///etc/hosts",
        "about:blank",
        "javascript:alert(1)",
        "data:text/html,x",
        "http://",
        "http:///path",
        "http://:80/",
        "http://user@/",
        "http://exa mple.com/",
        "http://example.com:99999/",
        "http://example.com:8o/",
        "http://[::1/",
        "http://1.2.3.4.5/",
        "http://256.1.1.1/",
        "http://a..b/",
        "http://%ff/",
    ],
)
def test_text_without_scheme_or_host_is_skipped(raw: str):
    assert normalize(raw) == Skipped("unsupported_scheme")


def test_length_limit_is_judged_on_the_result():
    head = "https://example.com/"
    assert normalize(head + "a" * (2048 - len(head))) == Normalized(head + "a" * (2048 - len(head)))
    assert normalize(head + "a" * (2049 - len(head))) == Skipped("url_too_long")
    assert normalize(head + "?utm_campaign=" + "a" * 4000) == Normalized(head)
    assert normalize(head + "a" * 1_000_000) == Skipped("url_too_long")
    assert normalize("data:text/plain," + "a" * 1_000_000) == Skipped("unsupported_scheme")


URLISH = st.builds(
    lambda scheme, host, tail: f"{scheme}://{host}{tail}",
    st.sampled_from(["http", "https", "HTTPS"]),
    st.sampled_from(["example.com", "Exämple.com", "127.1", "[::1]", "a.b.example:8080", "u:p@example.com", "x.y."]),
    st.text(alphabet=string.ascii_letters + string.digits + "/.%?#&=+;:@!\\ -_~[]{}|^`\"'<>üß漢", max_size=60),
)


@UNHURRIED
@given(st.one_of(URLISH, st.text(max_size=80)))
def test_normalising_twice_changes_nothing(raw: str):
    once = normalize_url(raw)
    if once is not None:
        assert normalize_url(once) == once
        assert once.isascii()
        assert "@" not in once.partition("://")[2].partition("/")[0]


@UNHURRIED
@given(URLISH)
def test_raw_and_normal_form_share_route_and_origin(raw: str):
    once = normalize_url(raw)
    assert (once is None) == (page_origin(raw) is None)
    if once is not None:
        assert route_key(raw) == route_key(once)
        assert page_origin(raw) == page_origin(once)
        assert once.startswith(page_origin(raw) or "?")


@UNHURRIED
@given(st.permutations(["a=1", "b=2", "c", "utm_term=x", "d="]))
def test_order_of_distinct_query_keys_does_not_matter(pairs: list[str]):
    assert normalize_url("https://example.com/?" + "&".join(pairs)) == "https://example.com/?a=1&b=2&c&d="


@UNHURRIED
@given(st.text(max_size=100))
def test_any_text_is_answered(raw: str):
    normalize(raw)
    route_key(raw)
    page_origin(raw)
    page_port(raw)


def test_origin_host_and_port():
    url = "https://ada@Shop.example:8443/a"
    assert (page_origin(url), page_host(url), page_port(url)) == ("https://shop.example:8443", "shop.example", 8443)
    assert (page_origin("http://x.example/"), page_port("http://x.example/")) == ("http://x.example", 80)
    assert page_port("https://x.example/") == 443
    assert page_origin("about:blank") is None


def test_url_hash_is_sixteen_hex_of_sha256():
    assert url_hash("https://example.com/") == "0f115db062b7c0dd"


@pytest.mark.parametrize(
    ("segment", "expected"),
    [
        ("3f2504e0-4f89-11d3-9a0c-0305e82c3301", "strong_id"),
        ("507f1f77bcf86cd799439011", "strong_id"),
        ("123456789012345678901234", "strong_id"),
        ("a1b2c3d4e5f6g7h8", "strong_id"),
        ("aaaaaaaaaaaaaaa1", "static"),
        ("abcdefghijklmnopqrst", "static"),
        ("2024", "ambiguous"),
        ("7", "weak_id"),
        ("12345", "weak_id"),
        ("12345678901234567", "weak_id"),
        ("red-shoes", "slug"),
        ("top_10_tips", "slug"),
        ("gr%C3%BCne-schuhe", "slug"),
        ("2024-01-15", "static"),
        ("products", "static"),
        ("-", "static"),
        ("", "static"),
        ("٣٤٥", "static"),
    ],
)
def test_segment_class(segment: str, expected: str):
    assert classify_segment(segment) == expected


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://example.com", "example.com/"),
        ("https://example.com:8443/orders/17?tab=2", "example.com:8443/orders/{id}"),
        ("https://example.com/2024/red-shoes", "example.com/{id}/red-shoes"),
        ("https://example.com/u/3f2504e0-4f89-11d3-9a0c-0305e82c3301/edit", "example.com/u/{id}/edit"),
        ("https://example.com/app#/inbox/42?x=1", "example.com/app#/inbox/{id}"),
        ("https://example.com/#!item/9", "example.com/#!item/{id}"),
        ("https://example.com/a#section", "example.com/a"),
        ("about:blank", ""),
    ],
)
def test_route_key_replaces_identifiers(url: str, expected: str):
    assert route_key(url) == expected


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://example.com/a?token=abc&q=x#frag", "https://example.com/a?token&q"),
        ("https://ada:pw@example.com/a?b", "https://example.com/a?b"),
        ("https://example.com/a?", "https://example.com/a"),
        ("https://example.com/#/cb?code=1&state=2", "https://example.com/#/cb?code&state"),
        ("https://example.com/#access_token=abc", "https://example.com/"),
        ("https://example.com/?" + "x" * 200, "https://example.com/?{value}"),
        ("https://example.com/?507f1f77bcf86cd799439011", "https://example.com/?{value}"),
        ("data:text/html,secret", "data:"),
        ("javascript:alert(1)", "javascript:"),
        ("about:blank", "about:blank"),
        ("file:///home/x?y=1", "file:///home/x?y"),
        ("/relative?a=1", "/relative?a"),
        ("http://example.com?=", "http://example.com"),
        ("http://example.com/?=secret", "http://example.com/"),
    ],
)
def test_evidence_keeps_names_of_parameters_only(url: str, expected: str):
    assert redact_query(url) == expected


@UNHURRIED
@given(st.one_of(URLISH, st.text(max_size=80)))
def test_reducing_twice_changes_nothing(raw: str):
    once = redact_query(raw)
    assert redact_query(once) == once


@UNHURRIED
@given(st.text(alphabet=string.ascii_letters + string.digits, min_size=12, max_size=40))
def test_no_query_value_survives_reduction(value: str):
    assert value not in redact_query(f"https://a.b/p?k={value}&l={value}#/r?m={value}")
