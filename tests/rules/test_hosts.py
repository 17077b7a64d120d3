"""Hosts have one canonical form, one site and one network zone."""

import ipaddress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from publicsuffixlist import PublicSuffixList

from nova_mcp.core.hosts import (
    HostRule,
    ascii_host,
    host_rule,
    is_ip,
    looks_lookalike,
    network_zone,
    normalize_host,
    own_labels,
    site,
    under,
)

# How long an example takes says nothing on a busy machine.
UNHURRIED = settings(deadline=None)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (" Example.COM ", "example.com"),
        ("https://www.example.com:8443/a?b#c", "example.com"),
        ("https://ada@example.com/", "example.com"),
        ("example.com/path", "example.com"),
        ("example.com:8080", "example.com"),
        ("www.www.example.com", "example.com"),
        ("www.github.io", "www.github.io"),
        ("www.co.uk", "www.co.uk"),
        ("www.localhost", "www.localhost"),
        ("example.com.", "example.com"),
        ("Bücher.de", "xn--bcher-kva.de"),
        ("foo_bar.example.com", "foo_bar.example.com"),
        ("localhost", "localhost"),
        ("intranet", "intranet"),
        ("192.168.0.1", "192.168.0.1"),
        ("0x7f.1", "127.0.0.1"),
        ("::1", "[::1]"),
        ("[2001:DB8::0:1]:443", "[2001:db8::1]"),
        ("github.io", "github.io"),
    ],
)
def test_host_has_this_canonical_form(raw: str, expected: str):
    assert normalize_host(raw) == expected


@pytest.mark.parametrize(
    "raw",
    [
        "",
        " ",
        "com",
        "co.uk",
        "ada@example.com",
        "exa mple.com",
        "a..b",
        ".example.com",
        "1.2.3.4.5",
        "a.1",
        "x:y:z",
        "999.1.1.1",
        "https://",
        "/path",
        "*.example.com",
        "exa%6Dple.com",
        "a" * 64 + ".com",
    ],
)
def test_text_that_names_no_host_is_refused(raw: str):
    assert normalize_host(raw) is None


@UNHURRIED
@given(st.text(max_size=40))
def test_canonical_form_is_stable(raw: str):
    once = normalize_host(raw)
    if once is not None:
        assert normalize_host(once) == once
        assert once.isascii()


ICANN = PublicSuffixList(only_icann=True, accept_unknown=False)
LABELS = st.sampled_from(["www", "a", "Shop", "x_y", "slack", "github", "bücher", "co", "example", "WWW"])
ENDINGS = st.sampled_from(["com", "co.uk", "github.io", "slack.com", "ck", "test", "kawasaki.jp", "localhost", "de."])
PLACES = st.builds(
    lambda scheme, labels, ending, port, rest: f"{scheme}{'.'.join([*labels, ending])}{port}{rest}",
    st.sampled_from(["", "http://", "HTTPS://", "https://ada:pw@"]),
    st.lists(LABELS, max_size=4),
    ENDINGS,
    st.sampled_from(["", ":80", ":8443"]),
    st.sampled_from(["", "/", "/A/b?c=d#e", "?q", "#f"]),
)


@UNHURRIED
@given(PLACES)
def test_a_canonical_host_has_no_port_path_or_capital_and_is_no_suffix(raw: str):
    host = normalize_host(raw)
    if host is None:
        return
    assert normalize_host(host) == host
    assert not set(host) & set(":/?#@ ") or is_ip(host)
    assert host == host.lower()
    assert not ICANN.is_public(host)


@UNHURRIED
@given(PLACES, st.sets(st.sampled_from(["slack.com", "example.com", "a.de"])))
def test_a_site_is_its_own_site_and_its_hosts_lie_under_it(raw: str, tenants: set[str]):
    host = normalize_host(raw)
    if host is not None:
        found = site(host, tenants)
        assert site(found, tenants) == found
        assert under(host, found)


@UNHURRIED
@given(st.ip_addresses())
def test_every_address_is_recognised_and_printed_one_way(address: ipaddress.IPv4Address | ipaddress.IPv6Address):
    host = normalize_host(str(address))
    assert host is not None
    assert is_ip(host)
    assert ipaddress.ip_address(host.strip("[]")) == address


@UNHURRIED
@given(st.integers(0, 2**32 - 1))
def test_every_spelling_of_an_ipv4_address_means_the_same_host(value: int):
    plain = str(ipaddress.IPv4Address(value))
    a, b, c, d = value.to_bytes(4, "big")
    spellings = [
        str(value),
        hex(value),
        f"0{value:o}",
        f"{a:#x}.{b}.{c << 8 | d}",
        f"0{a:o}.{value & 0xFFFFFF}",
        plain + ".",
    ]
    assert {ascii_host(spelling) for spelling in spellings} == {plain}


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("a.b.example.co.uk", "example.co.uk"),
        ("example.com", "example.com"),
        ("ada.github.io", "ada.github.io"),
        ("x.acme.slack.com", "acme.slack.com"),
        ("slack.com", "slack.com"),
        ("127.0.0.1", "127.0.0.1"),
        ("[::1]", "[::1]"),
        ("localhost", "localhost"),
        ("co.uk", "co.uk"),
    ],
)
def test_site_is_the_registrable_domain(host: str, expected: str):
    assert site(host) == expected


def test_list_of_shared_domains_can_be_replaced():
    assert site("x.acme.slack.com", multi_tenant=()) == "slack.com"
    assert site("x.acme.example.com", multi_tenant={"example.com"}) == "acme.example.com"


@pytest.mark.parametrize(
    ("host", "labels"),
    [
        ("my-bank.example", ("my-bank",)),
        ("a.b.example.co.uk", ("a", "b", "example")),
        ("pay.ada.github.io", ("pay", "ada")),
        ("co.uk", ()),
        ("localhost", ("localhost",)),
        ("127.0.0.1", ()),
        ("[::1]", ()),
    ],
)
def test_an_owner_chose_the_labels_left_of_the_suffix(host: str, labels: tuple[str, ...]):
    assert own_labels(host) == labels


@pytest.mark.parametrize(
    ("entry", "rule"),
    [
        ("Example.com", HostRule("under", "example.com")),
        ("=www.example.com", HostRule("exact", "example.com")),
        (".gov", HostRule("below", "gov")),
        (".CO.uk", HostRule("below", "co.uk")),
        ("gov", None),
        ("=", None),
        (".", None),
        ("", None),
        ("*.example.com", None),
        (".127.0.0.1", None),
    ],
)
def test_an_entry_of_a_list_covers_something_or_is_refused(entry: str, rule: HostRule | None):
    assert host_rule(entry) == rule


def test_an_entry_reaches_as_far_as_it_says():
    assert [HostRule("under", "a.test").covers(host) for host in ("a.test", "b.a.test", "ba.test")] == [
        True,
        True,
        False,
    ]
    assert [HostRule("exact", "a.test").covers(host) for host in ("a.test", "b.a.test")] == [True, False]
    assert [HostRule("below", "a.test").covers(host) for host in ("a.test", "b.a.test", "ba.test")] == [
        False,
        True,
        False,
    ]


def test_under_compares_whole_labels():
    assert under("example.com", "example.com")
    assert under("a.example.com", "example.com")
    assert not under("badexample.com", "example.com")
    assert not under("example.com", "a.example.com")


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("раypal.com", True),
        ("xn--pple-43d.com", True),
        ("gοogle.com", True),
        ("example.com", False),
        ("bücher.de", False),
        ("яндекс.рф", False),
        ("日本ひらカナabc.jp", False),
        ("한국漢字abc.kr", False),
        ("a1-b2.example", False),
        ("xn--.example", False),
        ("xn--\u00e4.example", False),
    ],
)
def test_label_that_mixes_scripts_looks_like_another(host: str, expected: bool):
    assert looks_lookalike(host) is expected


@pytest.mark.parametrize(
    ("host", "zone"),
    [
        ("example.com", "public"),
        ("93.184.216.34", "public"),
        ("2606:4700:4700::1111", "public"),
        ("localhost", "loopback"),
        ("LOCALHOST.", "loopback"),
        ("app.localhost", "loopback"),
        ("127.0.0.1", "loopback"),
        ("127.8.8.8", "loopback"),
        ("2130706433", "loopback"),
        ("017700000001", "loopback"),
        ("0x7f000001", "loopback"),
        ("127.1", "loopback"),
        ("０.0.0.0", "loopback"),
        ("::1", "loopback"),
        ("[::ffff:127.0.0.1]", "loopback"),
        ("::7f00:1", "loopback"),
        ("::", "loopback"),
        ("10.0.0.1", "private"),
        ("172.31.255.255", "private"),
        ("192.168.1.1", "private"),
        ("100.64.0.1", "private"),
        ("169.254.169.254", "private"),
        ("2852039166", "private"),
        ("fd00::1", "private"),
        ("fec0::7", "private"),
        ("::ffff:0:10.0.0.7", "private"),
        ("64:ff9b:1::a00:7", "private"),
        ("4000::1", "private"),
        ("fe80::1%eth0", "private"),
        ("::ffff:10.0.0.1", "private"),
        ("64:ff9b::c0a8:101", "private"),
        ("2002:c0a8:101::1", "private"),
        ("255.255.255.255", "private"),
        ("224.0.0.1", "private"),
        ("printer.local", "private"),
        ("metadata.google.internal", "private"),
        ("intranet", "private"),
        ("172.32.0.1", "public"),
        ("notlocal.com", "public"),
        ("localhost.example.com", "public"),
        ("", "private"),
        ("not a host", "private"),
    ],
)
def test_network_zone(host: str, zone: str):
    assert network_zone(host) == zone


@UNHURRIED
@given(st.text(max_size=30))
def test_every_text_has_a_zone(text: str):
    assert network_zone(text) in {"public", "loopback", "private"}
