"""Which `Host` and `Origin` headers are served: a web page must not reach a local server under a borrowed name."""

from collections.abc import Collection
from ipaddress import ip_address
from urllib.parse import urlsplit

LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "::1"})
_DEFAULT_PORTS = {"http": 80, "https": 443}


def is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def served_hosts(bound: str, allowed: Collection[str]) -> frozenset[str]:
    """Names that mean this server: loopback, the bound address, and what the operator added (with or without port)."""
    own = set() if _is_wildcard(bound) else {bound.lower()}
    return LOOPBACK_NAMES | own | {entry.lower() for entry in allowed}


def host_allowed(header: str | None, served: Collection[str]) -> bool:
    """Whether a `Host` header names this server; an entry without a port stands for every port."""
    parsed = _host_port(header or "")
    if parsed is None:
        return False
    host, port = parsed
    shown = f"[{host}]" if ":" in host else host
    return host in served or shown in served or (port is not None and f"{shown}:{port}" in served)


def origin_allowed(header: str | None, allowed: Collection[str]) -> bool:
    """Programs send no `Origin`; pages are served from loopback or from where the operator said."""
    if header is None:
        return True
    wanted = _origin(header)
    if wanted is None:
        return False
    return wanted[1] in LOOPBACK_NAMES or any(wanted == _origin(entry) for entry in allowed)


def _is_wildcard(host: str) -> bool:
    try:
        return ip_address(host).is_unspecified
    except ValueError:
        return not host


def _host_port(text: str) -> tuple[str, int | None] | None:
    if not text or any(character in text for character in "/@?#\\ \t,"):
        return None
    try:
        parts = urlsplit(f"//{text}")
        return ((parts.hostname or "").lower(), parts.port) if parts.hostname else None
    except ValueError:
        return None


def _origin(text: str) -> tuple[str, str, int] | None:
    scheme, separator, rest = text.strip().lower().partition("://")
    parsed = _host_port(rest.removesuffix("/"))
    if not separator or scheme not in _DEFAULT_PORTS or parsed is None:
        return None
    host, port = parsed
    return scheme, host, port or _DEFAULT_PORTS[scheme]
