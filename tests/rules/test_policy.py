"""The navigation policy: what may be opened, what is refused, and what is no URL at all."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nova_mcp.browser.egress.document_guard import judge_socket_url
from nova_mcp.core.policy import (
    LOOKALIKE,
    Allowed,
    Denied,
    Malformed,
    NavigationPolicy,
    file_path_of,
    judge_address,
    judge_file_path,
    judge_url,
    unfindable_hosts,
)

# How long an example takes says nothing on a busy machine.
UNHURRIED = settings(deadline=None)

OPEN = NavigationPolicy(private_network="lan")


def reason(url: str, policy: NavigationPolicy) -> str | None:
    match judge_url(url, policy):
        case Denied(reason_code):
            return reason_code
        case Malformed():
            return "malformed"
        case Allowed():
            return None


@pytest.mark.parametrize("url", ["https://example.com/", "http://example.com:8080/a?b#c", "about:blank", "ABOUT:blank"])
def test_public_pages_and_the_blank_page_are_allowed(url: str):
    assert judge_url(url, NavigationPolicy(private_network="deny")) == Allowed()


@pytest.mark.parametrize(
    "url",
    [
        "data:text/html,x",
        "blob:https://a/b",
        "javascript:alert(1)",
        "chrome://settings",
        "devtools://x",
        "view-source:https://example.com/",
        "ftp://example.com/",
        "about:srcdoc",
        "about:config",
        "ws://example.com/",
        "java\nscript:alert(1)",
        " \x01javascript:alert(1)",
        "JAVASCRIPT:alert(1)",
        "mailto:a@b.example",
    ],
)
def test_other_schemes_are_denied(url: str):
    assert reason(url, OPEN) == "policy.scheme_denied"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "  ",
        "/a",
        "//example.com/a",
        "a/b",
        "?q",
        "#x",
        "example.com",
        "example.com/a",
        "example.com:8080/a",
        "localhost:3000",
        "localhost:3000/a",
        "http://",
        "http:example.com",
        "http:/example.com",
        "https://exa mple.com",
        "http://a:99999/",
        "www.example.com:443?x",
    ],
)
def test_text_that_is_no_absolute_url_is_malformed_not_denied(url: str):
    assert reason(url, OPEN) == "malformed"


@pytest.mark.parametrize(
    ("host", "allow", "deny", "expected"),
    [
        ("example.com", (), ("example.com",), "policy.host_denied"),
        ("example.com.", (), ("example.com",), "policy.host_denied"),
        ("EXAMPLE.com", (), ("example.COM",), "policy.host_denied"),
        ("a.example.com", (), ("example.com",), None),
        ("a.example.com", (), ("*.example.com",), "policy.host_denied"),
        ("example.com", (), ("*.example.com",), None),
        ("badexample.com", (), ("*.example.com",), None),
        ("bücher.de", (), ("xn--bcher-kva.de",), "policy.host_denied"),
        ("xn--bcher-kva.de", (), ("BÜCHER.de",), "policy.host_denied"),
        ("example.com", ("example.com",), (), None),
        ("other.com", ("example.com",), (), "policy.host_denied"),
        ("a.example.com", ("*.example.com",), ("a.example.com",), "policy.host_denied"),
        ("0x7f.1", (), ("127.0.0.1",), "policy.host_denied"),
    ],
)
def test_host_lists(host: str, allow: tuple[str, ...], deny: tuple[str, ...], expected: str | None):
    policy = NavigationPolicy(allow_hosts=allow, deny_hosts=deny, private_network="lan")
    assert reason(f"https://{host}/", policy) == expected
    assert reason(f"https://{host}\\@example.net/", policy) == expected


@pytest.mark.parametrize("pattern", ["", "*", "*.", "https://example.com", "a b", "exa*mple.com"])
def test_pattern_that_can_never_match_is_refused_at_once(pattern: str):
    with pytest.raises(ValueError, match="host pattern"):
        NavigationPolicy(deny_hosts=(pattern,))


@pytest.mark.parametrize(
    ("mode", "loopback", "lan"),
    [("deny", False, False), ("loopback", True, False), ("lan", True, True)],
)
def test_private_network_modes(mode: str, loopback: bool, lan: bool):
    policy = NavigationPolicy(private_network=mode)  # type: ignore[arg-type]
    for host in ("127.0.0.1", "localhost", "[::1]", "2130706433", "[::ffff:7f00:1]", "0.0.0.0"):
        assert (reason(f"http://{host}/", policy) is None) is loopback
    for host in ("10.1.2.3", "192.168.0.1", "[fd00::1]", "169.254.169.254", "nas.local", "0xa9fea9fe", "intranet"):
        assert (reason(f"http://{host}/", policy) is None) is lan
        assert reason(f"http://{host}/", policy) in (None, "policy.private_network")


def test_own_port_is_refused_in_every_mode():
    for mode in ("deny", "loopback", "lan"):
        policy = NavigationPolicy(private_network=mode, own_ports=frozenset({8765, 80}))  # type: ignore[arg-type]
        for url in ("http://127.0.0.1:8765/", "http://localhost/", "http://192.168.0.2:8765/"):
            assert reason(url, policy) == "policy.private_network"
        assert reason("https://example.com:8765/", policy) is None
        assert isinstance(judge_address("127.0.0.1", policy, 8765), Denied)
    assert judge_address("127.0.0.1", NavigationPolicy(own_ports=frozenset({8765})), 9999) == Allowed()


def test_own_port_is_refused_at_every_address_of_this_machine():
    policy = NavigationPolicy(own_ports=frozenset({8765}), own_addresses=frozenset({"93.184.216.34", "2606:2800::1"}))
    for url in ("http://93.184.216.34:8765/", "http://[2606:2800::1]:8765/"):
        assert reason(url, policy) == "policy.private_network"
    assert reason("http://93.184.216.34/", policy) is None
    assert reason("http://93.184.216.35:8765/", policy) is None
    assert isinstance(judge_address("93.184.216.34", policy, 8765), Denied)


def test_own_port_is_refused_under_the_other_spelling_of_an_own_address():
    policy = NavigationPolicy(own_ports=frozenset({8765}), own_addresses=frozenset({"93.184.216.34"}))
    assert reason("http://[::ffff:93.184.216.34]:8765/", policy) == "policy.private_network"


def test_of_novas_own_folder_only_what_is_shown_may_be_opened():
    policy = NavigationPolicy(allow_file_roots=("/srv",), data_folder="/srv/nova", shown_folders=("/srv/nova/uploads",))
    for path, expected in {
        "/srv/a": None,
        "/srv/nova/uploads/a": None,
        "/srv/nova/downloads/a": "policy.file_denied",
    }.items():
        assert reason(f"file://{path}", policy) == expected


def test_address_behind_a_public_name_is_judged_on_its_own():
    policy = NavigationPolicy(private_network="deny")
    assert judge_address("93.184.216.34", policy) == Allowed()
    for address in ("127.0.0.1", "::1", "10.0.0.1", "::ffff:192.168.0.1", "fe80::1%2", "169.254.169.254", "[::1]", ""):
        verdict = judge_address(address, policy)
        assert isinstance(verdict, Denied)
        assert verdict.reason_code == "policy.private_network"


def test_lookalike_host_is_allowed_with_a_warning():
    verdict = judge_url("https://раypal.com/", OPEN)
    assert isinstance(verdict, Allowed)
    assert [warning.code for warning in verdict.warnings] == [LOOKALIKE]


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("file:///srv/pages/a.html", True),
        ("file://localhost/srv/pages/a.html", True),
        ("file:///srv/pages", True),
        ("file:///srv/pages/a%20b.html?x#y", True),
        ("file:///srv/pages/../secret", False),
        ("file:///srv/pages/%2e%2e/secret", False),
        ("file:///srv/pagesx/a.html", False),
        ("file:///etc/passwd", False),
        ("file://host/srv/pages/a.html", False),
        ("file:srv/pages/a.html", False),
    ],
)
def test_files_open_only_inside_the_allowed_folders(url: str, allowed: bool):
    policy = NavigationPolicy(allow_file_roots=("/srv/pages",))
    assert reason(url, policy) == (None if allowed else "policy.file_denied")
    assert reason(url, NavigationPolicy()) == "policy.file_denied"


def test_real_path_is_judged_after_links_were_resolved():
    policy = NavigationPolicy(allow_file_roots=("/srv/pages",))
    assert file_path_of("file:///srv/pages/a%20b.html?q") == "/srv/pages/a b.html"
    assert file_path_of("https://example.com/") is None
    assert judge_file_path("/srv/pages/a b.html", policy) == Allowed()
    assert isinstance(judge_file_path("/etc/passwd", policy), Denied)
    with pytest.raises(ValueError, match="absolute"):
        NavigationPolicy(allow_file_roots=("pages",))


@UNHURRIED
@given(st.text(max_size=120))
def test_every_text_gets_a_verdict_of_one_printable_line(text: str):
    verdict = judge_url(text, NavigationPolicy(private_network="deny", allow_hosts=("example.com",)))
    message = "" if isinstance(verdict, Allowed) else verdict.message
    assert message.isprintable()
    assert len(message) < 240
    if isinstance(verdict, Allowed):
        assert "example.com" in text.lower() or text.strip().lower().startswith("about:")


@UNHURRIED
@given(
    st.sampled_from(["127.0.0.1", "10.0.0.1", "[::1]", "localhost"]), st.text(alphabet="abc/?#@:.\\%20", max_size=20)
)
def test_private_host_is_refused_whatever_follows(host: str, tail: str):
    verdict = judge_url(f"http://{host}/{tail}", NavigationPolicy(private_network="deny"))
    assert isinstance(verdict, Denied)


def test_host_lists_are_told_to_the_browser_s_own_lookup() -> None:
    denied = NavigationPolicy(deny_hosts=("Bad.example", "*.ads.example", "[::1]"))
    assert unfindable_hosts(denied) == (
        "MAP bad.example ~NOTFOUND,MAP bad.example. ~NOTFOUND,MAP *.ads.example ~NOTFOUND,MAP *.ads.example. ~NOTFOUND"
    )
    allowed = NavigationPolicy(allow_hosts=("good.example",))
    assert unfindable_hosts(allowed) == "MAP * ~NOTFOUND,EXCLUDE good.example,EXCLUDE good.example."
    assert unfindable_hosts(NavigationPolicy()) is None


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("ws://good.example/chat", True),
        ("wss://good.example/chat", True),
        ("WSS://bad.example/chat", False),
        ("ws://192.168.1.1/", False),
        ("ws://127.0.0.1:4444/", False),
        ("ftp://good.example/", False),
        ("ws:", False),
    ],
)
def test_a_socket_goes_where_a_page_of_its_address_may(url: str, allowed: bool) -> None:
    policy = NavigationPolicy(deny_hosts=("bad.example",), own_ports=frozenset({4444}))
    assert isinstance(judge_socket_url(url, policy), Allowed) is allowed
