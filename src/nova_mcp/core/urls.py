"""URLs: the one normal form, route keys, hashes, and the reduced form that evidence keeps."""

import hashlib
import math
import re
from collections import Counter
from dataclasses import dataclass
from typing import Final, Literal

from nova_mcp.core.hosts import ascii_host

SkipReason = Literal["unsupported_scheme", "url_too_long"]
SegmentClass = Literal["strong_id", "weak_id", "slug", "ambiguous", "static"]

NORMALIZER_VERSION: Final = 1
MAX_URL_CHARS: Final = 2048
# Longer input is not worth the work: dropping tracking parameters rarely saves more than a few kilobytes.
_MAX_RAW_CHARS: Final = 65_536
_MAX_NAME_CHARS: Final = 64

_TRACKING: Final = frozenset(
    {"gclid", "gbraid", "wbraid", "dclid", "fbclid", "msclkid", "mc_cid", "mc_eid", "igshid", "_ga", "_gl"}
)
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}

_OUTER_BLANKS = "".join(map(chr, range(0x21)))
_INNER_BREAKS = str.maketrans("", "", "\t\n\r")
_HTTP_URL = re.compile(r"(https?)://([^/?#]*)([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.IGNORECASE | re.DOTALL)
_HTTP_HEAD = re.compile(r"https?://[^/?#]*", re.IGNORECASE)
_AUTHORITY = re.compile(r"(\[[^\]]*\]|[^:\[\]]+)(?::([0-9]*))?")
_UNSETTLED = re.compile(r"%[0-9A-Fa-f]{2}|[^A-Za-z0-9\-._~!$&'()*+,;=:@/?]")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
_HEX24 = re.compile(r"[0-9a-f]{24}", re.IGNORECASE)
_LONG_ALNUM = re.compile(r"(?=[0-9]*[A-Za-z])(?=[A-Za-z]*[0-9])[A-Za-z0-9]{16,}")
_SLUG = re.compile(r"(?=.*[A-Za-z])(?:[A-Za-z0-9]|%[0-9A-F]{2})+(?:[-_](?:[A-Za-z0-9]|%[0-9A-F]{2})+)+")
_ID_LIKE: Final = frozenset({"strong_id", "weak_id", "ambiguous"})


@dataclass(frozen=True, slots=True)
class Normalized:
    """A URL in normal form."""

    url: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """Why a text has no normal form."""

    reason: SkipReason


@dataclass(frozen=True, slots=True)
class _Parts:
    scheme: str
    host: str
    port: str
    path: str
    query: str
    fragment: str

    @property
    def origin(self) -> str:
        return f"{self.scheme}://{self.host}{self.port}"


# As much of an address as pages are asked for; scripts can make one of megabytes.
MAX_PAGE_ADDRESS: Final = 8192


def cut_address(url: str) -> str:
    """As much of an address as is worked with."""
    return url[:MAX_PAGE_ADDRESS]


def clean_input(raw: str) -> str:
    """The text a browser would parse: outer blanks and inner line breaks are ignored by every browser."""
    return raw.strip(_OUTER_BLANKS).translate(_INNER_BREAKS)


def _settle_one(match: re.Match[str]) -> str:
    found = match.group()
    if len(found) == 3:
        plain = chr(int(found[1:], 16))
        return plain if plain in _UNRESERVED else found.upper()
    return "".join(f"%{byte:02X}" for byte in found.encode("utf-8", "surrogatepass"))


def _settle(text: str) -> str:
    """One spelling per text: unreserved characters bare, everything else escaped in upper case."""
    return _UNSETTLED.sub(_settle_one, text)


def _settle_path(path: str) -> str:
    text = _settle(path.replace("\\", "/"))
    # `?` cannot occur here; dot segments may have been hidden behind escapes until now.
    if "/." in text:
        kept: list[str] = []
        for segment in text[1:].split("/"):
            if segment == "..":
                if kept:
                    kept.pop()
            elif segment != ".":
                kept.append(segment)
        text = "/" + "/".join(kept)
    return text.rstrip("/") or "/"


def _is_tracking(name: str) -> bool:
    folded = name.lower()
    return folded.startswith("utm_") or folded in _TRACKING


def _parameter_name(pair: str) -> str:
    return pair.partition("=")[0]


def _settle_query(query: str) -> str:
    pairs = [_settle(pair) for pair in query.split("&") if pair]
    kept = [pair for pair in pairs if not _is_tracking(_parameter_name(pair))]
    kept.sort(key=_parameter_name)
    return "&".join(kept)


def _split(raw: str) -> _Parts | None:
    match = _HTTP_URL.fullmatch(clean_input(raw))
    if match is None:
        return None
    scheme, authority, path, query, fragment = match.groups(default="")
    scheme = scheme.lower()
    if "\\" in authority:
        authority, _, rest = authority.partition("\\")
        path = f"/{rest}{path}"
    place = _AUTHORITY.fullmatch(authority.rpartition("@")[2])
    if place is None:
        return None
    host = ascii_host(place.group(1))
    if host is None:
        return None
    port = ""
    if place.group(2):
        number = int(place.group(2)) if len(place.group(2)) <= 16 else 65_536
        if number > 65_535:
            return None
        port = "" if number == _DEFAULT_PORTS[scheme] else f":{number}"
    return _Parts(scheme, host, port, path, query, fragment)


def normalize(raw: str) -> Normalized | Skipped:
    """The normal form of an http or https URL; applying it twice changes nothing."""
    if len(raw) > _MAX_RAW_CHARS:
        return Skipped("url_too_long" if _HTTP_URL.match(clean_input(raw[:64])) else "unsupported_scheme")
    parts = _split(raw)
    if parts is None:
        return Skipped("unsupported_scheme")
    url = parts.origin + _settle_path(parts.path)
    query = _settle_query(parts.query) if parts.query else ""
    if query:
        url += "?" + query
    if parts.fragment[:1] in ("/", "!"):
        url += "#" + _settle(parts.fragment)
    return Skipped("url_too_long") if len(url) > MAX_URL_CHARS else Normalized(url)


def normalize_url(raw: str) -> str | None:
    """The normal form, or None when there is none."""
    match normalize(raw):
        case Normalized(url):
            return url
        case Skipped():
            return None


def _place(url: str) -> _Parts | None:
    """Where a URL leads; however long the rest is, a page stands on its host."""
    if len(url) > _MAX_RAW_CHARS:
        head = _HTTP_HEAD.match(clean_input(url))
        url = "" if head is None else head.group()
    return _split(url) if len(url) <= _MAX_RAW_CHARS else None


def page_origin(url: str) -> str | None:
    """Scheme, host and non-default port of an http or https URL."""
    parts = _place(url)
    return None if parts is None else parts.origin


def page_host(url: str) -> str | None:
    """The host of an http or https URL in canonical form, `www.` and trailing dot included."""
    parts = _place(url)
    return None if parts is None else parts.host


def page_port(url: str) -> int | None:
    """The port that an http or https URL leads to, its scheme's default included."""
    parts = _place(url)
    if parts is None:
        return None
    return int(parts.port[1:]) if parts.port else _DEFAULT_PORTS[parts.scheme]


def url_hash(normalized: str) -> str:
    """Sixteen hex digits that stand for a normalised URL."""
    return hashlib.sha256(normalized.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _bits_per_char(text: str) -> float:
    size = len(text)
    return -sum(n / size * math.log2(n / size) for n in Counter(text).values())


def classify_segment(segment: str) -> SegmentClass:
    """What a path segment looks like: an identifier, a year-like number, joined words or a fixed word."""
    if segment.isascii() and segment.isdigit() and len(segment) != 24:
        return "ambiguous" if len(segment) == 4 else "weak_id"
    if len(segment) >= 16 and (
        _UUID.fullmatch(segment)
        or _HEX24.fullmatch(segment)
        or (_LONG_ALNUM.fullmatch(segment) and _bits_per_char(segment) >= 3.0)
    ):
        return "strong_id"
    if ("-" in segment or "_" in segment) and _SLUG.fullmatch(segment):
        return "slug"
    return "static"


def _route_path(path: str) -> str:
    return "/".join(["{id}" if classify_segment(part) in _ID_LIKE else part for part in path.split("/")])


def route_key(url: str) -> str:
    """Host, port and path with identifiers replaced by `{id}`; a `#/` or `#!` route counts as path.

    Empty for a URL without normal form.
    """
    normalized = normalize_url(url)
    if normalized is None:
        return ""
    place, _, fragment = normalized.partition("#")
    authority, slash, path = place.partition("://")[2].partition("?")[0].partition("/")
    key = authority + slash + _route_path(path)
    return f"{key}#{_route_path(fragment.partition('?')[0])}" if fragment else key


def _names_only(query: str) -> str:
    names = []
    for pair in query.split("&"):
        name = _parameter_name(pair)
        # A bare value without a name is often a token.
        if len(name) > _MAX_NAME_CHARS or classify_segment(name) == "strong_id":
            name = "{value}"
        names.append(name)
    return "&".join(names)


_REDUCIBLE = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)(:)(//)?(.*)", re.DOTALL)


def _reduce_fragment(fragment: str) -> str:
    if fragment[:1] not in ("/", "!"):
        return ""
    route, mark, query = fragment.partition("?")
    return f"#{route}{mark}{_names_only(query)}" if mark else f"#{route}"


def redact_query(url: str) -> str:
    """The URL as evidence keeps it: no userinfo, no fragment but a hash route, query values gone, names kept.

    URLs without an authority (`data:`, `blob:`, `javascript:`) keep only their scheme, `about:` pages stay.
    """
    text = clean_input(url)
    match = _REDUCIBLE.fullmatch(text)
    if match is not None and match.group(3) is None:
        scheme = match.group(1).lower()
        return text if scheme == "about" and len(text) <= 32 and "?" not in text else f"{scheme}:"
    head, _, fragment = text.partition("#")
    place, mark, query = head.partition("?")
    if match is not None:
        lead, _, rest = place.partition("://")
        authority, slash, path = rest.replace("\\", "/").partition("/")
        place = f"{lead}://{authority.rpartition('@')[2]}{slash}{path}"
    names = _names_only(query) if mark else ""
    reduced = f"{place}?{names}" if names else place
    return (reduced + _reduce_fragment(fragment)).strip(_OUTER_BLANKS)
