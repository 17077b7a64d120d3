"""Scopes: the one spelling of the host that knowledge belongs to; pure.

`www.` and a trailing dot stay, because they make another origin; only one name can be proven to be another.
"""

import functools
import re
from typing import TYPE_CHECKING, Final

from nova_mcp.core.hosts import is_ip, web_place
from nova_mcp.memory.knowledge.model import Problem, ScopeName

if TYPE_CHECKING:
    from publicsuffixlist import PublicSuffixList

MAX_CHARS: Final = 2048
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_WEB: Final = frozenset({"http", "https"})
_REST: Final = re.compile(r"[/\\?#]")
_BREAKS: Final = str.maketrans("", "", "\t\n\r")


@functools.cache
def _suffixes() -> "PublicSuffixList":
    from publicsuffixlist import PublicSuffixList  # reading the list takes about 0.1 s

    return PublicSuffixList(accept_unknown=False)


@functools.lru_cache(maxsize=2048)
def is_public_suffix(host: str) -> bool:
    """Whether many owners register names directly below it; names that only a local resolver knows are none."""
    return not is_ip(host) and bool(_suffixes().is_public(host.removesuffix(".")))


def _refused(message: str) -> Problem:
    return Problem("invalid_params", message, "scope")


def _authority(text: str) -> str | None:
    scheme = _SCHEME.match(text)
    if scheme is None:
        return _REST.split(text, maxsplit=1)[0]
    if scheme.group(1).lower() not in _WEB:
        return None
    return _REST.split(text[scheme.end() :], maxsplit=1)[0].rpartition("@")[2]


def scope_of(text: str) -> ScopeName | Problem:
    """The scope that a host, a host with a port or an address of a web page names; doing it twice changes nothing."""
    given = text.strip().translate(_BREAKS)
    if not given:
        return _refused("A scope is a host such as example.com; it can't be empty.")
    if len(given) > MAX_CHARS:
        return _refused("A scope is a host such as example.com; this is too long to be one.")
    authority = _authority(given)
    if authority is None:
        return _refused("Only pages of http and https have a scope.")
    if "*" in authority:
        return _refused("A scope is one host; wildcards are not taken.")
    place = web_place(authority)
    if place is None:
        return _refused("A scope is a host such as example.com, with its port where that is not the usual one.")
    host, port = place
    if is_public_suffix(host):
        return _refused(f"{host} is a public suffix; name one site below it.")
    return ScopeName(host + port)
