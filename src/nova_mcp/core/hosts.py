"""Host names: canonical form, site membership, look-alike labels and network zone."""

import functools
import ipaddress
import re
import unicodedata
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal
from urllib.parse import unquote

if TYPE_CHECKING:
    from publicsuffixlist import PublicSuffixList

Zone = Literal["public", "loopback", "private"]

MULTI_TENANT_DOMAINS: Final = frozenset(
    {
        "atlassian.net",
        "auth0.com",
        "force.com",
        "freshdesk.com",
        "ghost.io",
        "hubspot.com",
        "livejournal.com",
        "monday.com",
        "myworkdayjobs.com",
        "okta.com",
        "salesforce.com",
        "service-now.com",
        "sharepoint.com",
        "slack.com",
        "squarespace.com",
        "substack.com",
        "tumblr.com",
        "weebly.com",
        "wordpress.com",
        "zendesk.com",
    }
)

_PLAIN_HOST = re.compile(r"[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*\.?")
_NUMERIC_LABEL = re.compile(r"[0-9]+|0x[0-9a-f]*")
_PORT = re.compile(r":([0-9]*)$")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_PLACE = re.compile(r"(\[[^\]]*\]|[^:\[\]]+)(?::([0-9]{0,16}))?")
# A bare host says nothing of its scheme, so both usual ports go whatever the scheme: one spelling has to suffice.
_USUAL_PORTS = frozenset({80, 443})
_LAST_PORT = 65_535
# The first three bits of every address of the sixth version that the public web hands out: 2000::/3.
_GLOBAL_UNICAST = 0b001

# Names that only a local resolver answers. A dotless name is local by the same reasoning.
_LOCAL_SUFFIXES = (".local", ".internal", ".home.arpa", ".lan", ".intranet")
# Scripts that one language writes together, so that a mixture is no disguise.
_WRITTEN_TOGETHER = (
    frozenset({"LATIN", "CJK", "HIRAGANA", "KATAKANA"}),
    frozenset({"LATIN", "CJK", "BOPOMOFO"}),
    frozenset({"LATIN", "CJK", "HANGUL"}),
)


def _ipv4_number(part: str) -> int | None:
    if part.startswith("0x"):
        digits, radix = part[2:], 16
    elif len(part) > 1 and part.startswith("0"):
        digits, radix = part[1:], 8
    else:
        digits, radix = part, 10
    # A part longer than this cannot fit 32 bits in any radix unless it is zero-padded; both are refused cheaply.
    if len(digits) > 64:
        return None
    try:
        return int(digits, radix) if digits else 0
    except ValueError:
        return None


def _ipv4_from_spelling(host: str) -> int | None:
    """The address behind any spelling that browsers take for IPv4: decimal, octal, hex, with one to four parts."""
    parts = host.removesuffix(".").split(".")
    if len(parts) > 4 or "" in parts:
        return None
    numbers: list[int] = []
    for part in parts:
        number = _ipv4_number(part)
        if number is None:
            return None
        numbers.append(number)
    *leading, last = numbers
    if any(number > 255 for number in leading) or last >= 256 ** (4 - len(leading)):
        return None
    return sum(number << 8 * (3 - index) for index, number in enumerate(leading)) + last


def _ipv6_text(address: ipaddress.IPv6Address) -> str:
    mapped = address.ipv4_mapped
    if mapped is not None:
        # Python versions disagree on how to print these.
        return f"[::ffff:{int(mapped) >> 16:x}:{int(mapped) & 0xFFFF:x}]"
    return f"[{address.compressed}]"


def _ipv6_host(text: str) -> str | None:
    if "%" in text:
        return None
    try:
        return _ipv6_text(ipaddress.IPv6Address(text))
    except ValueError:
        return None


def _to_a_labels(host: str) -> str | None:
    import idna  # costs milliseconds and only foreign names need it

    try:
        mapped = idna.uts46_remap(host, std3_rules=False, transitional=False)
    except (idna.IDNAError, UnicodeError):
        return None
    labels = []
    for label in mapped.split("."):
        if label.isascii():
            labels.append(label)
        else:
            labels.append("xn--" + label.encode("punycode").decode("ascii"))
    return ".".join(labels)


@functools.lru_cache(maxsize=2048)
def ascii_host(host: str) -> str | None:
    """A URL's host as a browser would store it: lower case, A-labels, IP addresses in canonical form, else None.

    A trailing dot stays, because it makes another origin.
    """
    if len(host) > 1024:
        return None
    if host.startswith("["):
        return _ipv6_host(host[1:-1]) if host.endswith("]") else None
    name = unquote(host) if "%" in host else host
    name = name.lower()
    if not name.isascii():
        name = _to_a_labels(name) or ""
    if len(name) > 254 or _PLAIN_HOST.fullmatch(name) is None:
        return None
    if _NUMERIC_LABEL.fullmatch(name.removesuffix(".").rpartition(".")[2]):
        address = _ipv4_from_spelling(name)
        return None if address is None else str(ipaddress.IPv4Address(address))
    return name


def web_place(authority: str) -> tuple[str, str] | None:
    """The host of a web address without its user, and its port with a colon unless that is a usual one."""
    place = None if "@" in authority or "%" in authority else _PLACE.fullmatch(authority)
    host = None if place is None else ascii_host(place.group(1))
    if place is None or host is None:
        return None
    digits = place.group(2)
    if not digits:
        return host, ""
    number = int(digits)
    if number == 0 or number > _LAST_PORT:
        return None
    return host, "" if number in _USUAL_PORTS else f":{number}"


def is_ip(host: str) -> bool:
    """Whether a canonical host is an address; IPv6 may come with or without brackets."""
    return ip_address(host) is not None


def ip_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address that a canonical host spells out."""
    if not host or (host[0] != "[" and ":" not in host and not host[-1].isdigit()):
        return None
    try:
        return ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        return None


@functools.cache
def _all_suffixes() -> "PublicSuffixList":
    from publicsuffixlist import PublicSuffixList  # reading the list takes about 0.1 s

    return PublicSuffixList()


@functools.cache
def _icann_suffixes() -> "PublicSuffixList":
    from publicsuffixlist import PublicSuffixList

    return PublicSuffixList(only_icann=True, accept_unknown=False)


def _raw_host(raw: str) -> str:
    text = raw.strip()
    scheme = _SCHEME.match(text)
    rest = text[scheme.end() :] if scheme else text
    rest = re.split(r"[/\\?#]", rest, maxsplit=1)[0]
    if scheme:
        rest = rest.rpartition("@")[2]
    if rest.count(":") > 1 and not rest.startswith("["):
        return f"[{rest}]"
    return _PORT.sub("", rest)


def normalize_host(raw: str) -> str | None:
    """The host by which notes and settings name a site, or None when the text names no host.

    Takes a bare host, a host with a port or a URL. Leading `www.` goes unless a public suffix would remain.
    """
    host = _raw_host(raw)
    if not host or "@" in host or "%" in host:
        return None
    name = ascii_host(host)
    if name is None:
        return None
    name = name.removesuffix(".")
    if is_ip(name):
        return name
    return _strip_www(name)


@functools.lru_cache(maxsize=2048)
def _strip_www(name: str) -> str | None:
    if _icann_suffixes().is_public(name):
        return None
    while name.startswith("www."):
        rest = name.removeprefix("www.")
        if "." not in rest or _all_suffixes().is_public(rest):
            break
        name = rest
    return name


@functools.lru_cache(maxsize=2048)
def _registrable(host: str) -> str:
    found: str | None = _all_suffixes().privatesuffix(host)
    return found or host


def site(host: str, multi_tenant: Collection[str] = MULTI_TENANT_DOMAINS) -> str:
    """The registrable domain of a normalised host; on domains shared by many tenants, one label more."""
    if "." not in host or is_ip(host):
        return host
    found = _registrable(host)
    if found in multi_tenant and host != found:
        tenant = host.removesuffix("." + found).rpartition(".")[2]
        return f"{tenant}.{found}"
    return found


def under(host: str, domain: str) -> bool:
    """Whether a host is the domain itself or lies below it; never a test for substrings."""
    return host == domain or host.endswith("." + domain)


@functools.lru_cache(maxsize=2048)
def own_labels(host: str) -> tuple[str, ...]:
    """The labels that the owner of a normalised host chose: those left of its public suffix; none of an address."""
    if is_ip(host):
        return ()
    if "." not in host:
        return (host,)
    suffix: str | None = _all_suffixes().publicsuffix(host)
    left = "" if host == suffix else host.removesuffix(f".{suffix}")
    return tuple(left.split(".")) if left else ()


@dataclass(frozen=True, slots=True)
class HostRule:
    """An entry of a list of hosts: `example.com` with all below it, `=example.com` alone, `.gov` all below it."""

    reach: Literal["under", "exact", "below"]
    host: str

    def covers(self, host: str) -> bool:
        match self.reach:
            case "under":
                return under(host, self.host)
            case "exact":
                return host == self.host
            case "below":
                return host.endswith("." + self.host)


def host_rule(entry: str) -> HostRule | None:
    """The rule that an entry spells out; None when it could never cover a host."""
    text = entry.strip()
    if text.startswith("."):
        # Unlike a host, a suffix may be one that many owners register names under.
        suffix = ascii_host(text[1:])
        return None if suffix is None or is_ip(suffix) else HostRule("below", suffix.removesuffix("."))
    exact = text.startswith("=")
    host = normalize_host(text.removeprefix("="))
    return None if host is None else HostRule("exact" if exact else "under", host)


def _unicode_label(label: str) -> str:
    if not label.startswith("xn--"):
        return label
    try:
        return label[4:].encode("ascii").decode("punycode")
    except (UnicodeError, ValueError, OverflowError):
        return label


def _script(character: str) -> str | None:
    if not unicodedata.category(character).startswith("L"):
        return None
    words = unicodedata.name(character, "").split(" ")
    first = words[0]
    if first in ("FULLWIDTH", "HALFWIDTH") and len(words) > 1:
        first = words[1]
    if first == "IDEOGRAPHIC":
        return "CJK"
    if first == "KATAKANA-HIRAGANA":
        return "KATAKANA"
    return None if first in ("MODIFIER", "FEMININE", "MASCULINE", "") else first


def looks_lookalike(host: str) -> bool:
    """Whether a label mixes scripts that no language mixes, such as a Cyrillic letter inside a Latin word."""
    for label in host.lower().split("."):
        if label.isascii() and not label.startswith("xn--"):
            continue
        scripts = {script for character in _unicode_label(label) if (script := _script(character))}
        if len(scripts) > 1 and not any(scripts <= allowed for allowed in _WRITTEN_TOGETHER):
            return True
    return False


def _embedded_ipv4(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    value = int(address)
    # ::a.b.c.d (without :: and ::1) and the NAT64 prefix 64:ff9b::/96 reach the IPv4 host in their last 32 bits.
    if value >> 32 in (0, 0x64FF9B << 64) and value > 1:
        return ipaddress.IPv4Address(value & 0xFFFFFFFF)
    return None


def plain_address(host: str) -> str | None:
    """The address that a canonical host spells out, without brackets; IPv6 that reaches an IPv4 host as that IPv4."""
    address = ip_address(host)
    if isinstance(address, ipaddress.IPv6Address):
        address = _embedded_ipv4(address) or address
    return None if address is None else str(address)


def _address_zone(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> Zone:
    if isinstance(address, ipaddress.IPv6Address):
        inner = _embedded_ipv4(address)
        if inner is not None:
            return _address_zone(inner)
    # The unspecified address connects to this machine on most systems.
    if address.is_loopback or address.is_unspecified:
        return "loopback"
    if isinstance(address, ipaddress.IPv6Address) and int(address) >> 125 != _GLOBAL_UNICAST:
        # Site-local (fec0::/10), translated (::ffff:0:0:0/96) and unassigned ranges lead where a local router says.
        return "private"
    if address.is_global and not address.is_multicast:
        return "public"
    return "private"


def network_zone(host_or_ip: str) -> Zone:
    """Where a name or address leads, judged without asking a resolver.

    What cannot be read as a host counts as private, so a policy that refuses private networks refuses it too.
    """
    text = host_or_ip.strip()
    if ":" in text and not text.startswith("["):
        text = f"[{text.partition('%')[0]}]"
    host = ascii_host(text)
    if host is None:
        return "private"
    address = ip_address(host)
    if address is not None:
        return _address_zone(address)
    name = host.removesuffix(".")
    if under(name, "localhost"):
        return "loopback"
    if "." not in name or name.endswith(_LOCAL_SUFFIXES):
        return "private"
    return "public"
