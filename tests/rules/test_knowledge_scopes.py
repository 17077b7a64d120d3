"""Where knowledge belongs: one spelling per host, routes by their beginning, selectors by how long they last."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nova_mcp.memory.journal.observations import scope_of as context_scope
from nova_mcp.memory.knowledge.matching.routes import any_covers, covers, is_pattern, restricts, route_of, told_route
from nova_mcp.memory.knowledge.model import Action, Content, Fingerprint, Playbook, Problem, Signal
from nova_mcp.memory.knowledge.scopes import is_public_suffix, scope_of
from nova_mcp.memory.knowledge.writes.stability import breadth, fragile_selectors, is_fragile, stability


@pytest.mark.parametrize(
    ("given_", "scope"),
    [
        ("example.com", "example.com"),
        (" Example.COM ", "example.com"),
        ("https://example.com/a?b#c", "example.com"),
        ("http://user:pw@example.com:8080/x", "example.com:8080"),
        ("https://example.com:443/", "example.com"),
        ("http://example.com:80", "example.com"),
        ("example.com:443", "example.com"),
        ("example.com:8443", "example.com:8443"),
        ("example.com/path", "example.com"),
        ("www.example.com", "www.example.com"),
        ("https://bücher.example", "xn--bcher-kva.example"),
        ("BÜCHER.example", "xn--bcher-kva.example"),
        ("localhost:3000", "localhost:3000"),
        ("http://127.0.0.1:5000/", "127.0.0.1:5000"),
        ("http://[::1]:5000/", "[::1]:5000"),
        ("foo.github.io", "foo.github.io"),
        ("intranet", "intranet"),
    ],
)
def test_a_host_or_an_address_has_one_scope(given_, scope):
    assert scope_of(given_) == scope


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "   ",
            "*",
            "*.example.com",
            "https://*.example.com/",
            "com",
            "co.uk",
            "https://co.uk/",
            "com.",
            "github.io",
        ),
        *("javascript://example.com", "file:///etc/passwd", "about:blank", "data:text/html,x", "ftp://example.com"),
        *("exa mple.com", "user@example.com", "example.com:99999", "example.com:0", "http://", "[::1", "a" * 3000),
    ],
)
def test_what_names_no_single_site_is_refused(text):
    refused = scope_of(text)
    assert isinstance(refused, Problem)
    assert refused.code == "invalid_params"


def test_look_alike_hosts_have_scopes_of_their_own():
    latin, cyrillic = scope_of("paypal.com"), scope_of("pаypal.com")
    assert latin == "paypal.com"
    assert isinstance(cyrillic, str)
    assert cyrillic.startswith("xn--")
    assert latin != cyrillic


def test_public_suffixes_are_told_from_names_below_them():
    assert is_public_suffix("co.uk")
    assert not is_public_suffix("example.co.uk")
    assert not is_public_suffix("localhost")
    assert not is_public_suffix("127.0.0.1")


labels = st.text("abcxyz019-éßаж", min_size=1, max_size=8)
hosts = st.lists(labels, min_size=1, max_size=3).map(".".join)


@given(st.builds("http{}://{}{}:{}/{}".format, st.sampled_from(["", "s"]), st.sampled_from(["", "me@"]), hosts,
                 st.sampled_from(["", "80", "443", "8080", "70000"]), labels))  # fmt: skip
def test_evidence_of_a_page_belongs_to_the_scope_that_knowledge_of_it_has(url):
    known = scope_of(url)
    if not isinstance(known, Problem):
        assert context_scope(url) == known


def test_evidence_of_what_is_no_web_page_belongs_nowhere():
    for url in ("about:blank", "chrome-error://chromewebdata/", "file:///etc/hosts", "data:text/html,x"):
        assert context_scope(url) is None


@given(
    st.one_of(st.text(max_size=40), hosts, st.builds("https://{}:{}/{}".format, hosts, st.integers(0, 70_000), labels))
)
def test_normalising_twice_changes_nothing(text):
    once = scope_of(text)
    if not isinstance(once, Problem):
        assert scope_of(once) == once
        assert scope_of(f"https://{once}/") == once
        assert once == once.lower()
        assert "*" not in once


# -- routes


@pytest.mark.parametrize(
    ("pattern", "url", "expected"),
    [
        ("feed", "https://a.test/feed", True),
        ("feed", "https://a.test/feed/42", True),
        ("feed", "https://a.test/feeds", False),
        ("feed", "https://a.test/", False),
        ("in/*", "https://a.test/in/ada", True),
        ("in/*", "https://a.test/in", False),
        ("in/*", "https://a.test/index/x", False),
        ("a/b/*", "https://a.test/a/b/c", True),
        ("a/b/*", "https://a.test/a/x/c", False),
        ("_root", "https://a.test", True),
        ("_root", "https://a.test/?q=1", True),
        ("_root", "https://a.test/_root", False),
        ("*", "https://a.test/x", True),
        ("feed", "https://a.test/#/feed?x", True),
    ],
)
def test_a_pattern_covers_the_beginning_of_a_path(pattern, url, expected):
    assert is_pattern(pattern)
    assert covers(pattern, route_of(url)) is expected


@pytest.mark.parametrize("text", ["", "/feed", "in/", "**", "a*", "a/*/b", "a b", "?x"])
def test_other_texts_are_no_patterns(text):
    assert not is_pattern(text)


def test_a_route_may_be_told_as_path_name_or_address():
    assert told_route("_root") == told_route("/") == ()
    assert told_route("/in/ada") == told_route("in/ada") == told_route("https://a.test/in/ada") == ("in", "ada")


def test_no_pattern_and_a_star_hold_everywhere():
    assert not restricts(())
    assert not restricts(("feed", "*"))
    assert restricts(("feed",))
    assert any_covers((), route_of("https://a.test/x"))
    assert any_covers(("feed", "x"), route_of("https://a.test/x"))
    assert not any_covers(("feed",), route_of("https://a.test/x"))


# -- selectors


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("#save", "stable"),
        ("[data-testid=save]", "stable"),
        ("input[name=q]", "stable"),
        ("button[aria-label='Close']", "stable"),
        ('role=button[name="Save"]', "stable"),
        ("#item-4711", "risky"),
        ("div > ul > li:nth-of-type(3)", "risky"),
        ("#css-1q2w3e", "fragile"),
        (".sc-bdVaJa", "fragile"),
        ("#a94f3bc1", "fragile"),
    ],
)
def test_selectors_are_classed_by_how_long_they_last(selector, expected):
    assert stability(selector) == expected
    assert is_fragile(selector) is (expected == "fragile")


BROAD = [
    *("*", "#a *", "div > *", "[class*=btn]", "div[class*='btn'] a", "[class^=x]", "[role=dialog]", "[role='dialog']"),
    *(
        "div[role=dialog]",
        "button",
        "div",
        "a:hover",
        "body",
        "html",
        "main",
        "",
        "  ",
        "role=button",
        "text=",
        "text=a",
    ),
    *(":modal", "#a, *", "#ok, button", "button:not(.x)", "x-host >>> *", "x-host >>> button"),
]
NARROW = [
    *(
        "#save",
        "button.primary",
        "#banner button",
        ".cc-window [role=dialog]",
        "[role=dialog] .reject",
        "input[name=q]",
    ),
    *('role=button[name="Save"]', "text=Reject all", "#a > b", "a[href='/x*y']", "[data-x='*']", "x-host >>> #ok"),
    *("[id^=sp_message_container_] .no", 'a[title="[class*=x]"]', "[role=dialog][aria-label='Cookies']"),
]


@pytest.mark.parametrize("selector", BROAD)
def test_a_selector_for_a_kind_of_element_is_too_broad(selector):
    assert breadth(selector) is not None


@pytest.mark.parametrize("selector", NARROW)
def test_a_selector_that_names_something_is_not(selector):
    assert breadth(selector) is None


@given(st.text("abc*#.[]()='\",>:+~ \\", max_size=30))
def test_any_text_can_be_judged(text):
    assert breadth(text) is None or isinstance(breadth(text), str)


def test_fragile_selectors_are_found_wherever_they_stand():
    playbook = Playbook("dismiss", (Action("click", "#ok", fallbacks=(".css-1x2y3z",)),))
    content = Content("modal", Fingerprint((Signal("dom", "#a1b2c3d4"), Signal("text", "css-1a2b3c"))), playbook)
    assert fragile_selectors(content) == ("#a1b2c3d4", ".css-1x2y3z")
