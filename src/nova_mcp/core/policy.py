"""Where the browser may go: pure verdicts on URLs, file paths and server addresses."""

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final, Literal
from urllib.parse import unquote

from nova_mcp.core.hosts import ascii_host, looks_lookalike, network_zone, plain_address
from nova_mcp.core.urls import clean_input, page_host, page_port

PrivateNetwork = Literal["deny", "loopback", "lan"]
PolicyReason = Literal["policy.host_denied", "policy.scheme_denied", "policy.private_network", "policy.file_denied"]

LOOKALIKE: Final = "policy.lookalike_host"

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)
# Words that are schemes whatever follows, so that `javascript:1` is not taken for a host and a port.
_KNOWN_SCHEMES = frozenset(
    {"about", "blob", "chrome", "chrome-extension", "data", "devtools", "file", "ftp", "http", "https"}
    | {"javascript", "mailto", "tel", "view-source", "ws", "wss"}
)
_PORT_LIKE = re.compile(r"[0-9]{1,5}(?:[/?#].*)?", re.DOTALL)
_FILE_URL = re.compile(r"//(?:localhost)?(/[^?#]*)", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class NavigationPolicy:
    """What the operator allows; host patterns are exact names or `*.domain` for everything below a domain.

    File roots must be resolved real paths. A pattern that names no host is refused here, because a deny rule
    that can never match would look like protection.
    """

    allow_hosts: tuple[str, ...] = ()
    deny_hosts: tuple[str, ...] = ()
    allow_file_roots: tuple[str, ...] = ()
    private_network: PrivateNetwork = "loopback"
    own_ports: frozenset[int] = frozenset()
    # The machine's other addresses under which Nova itself can be reached.
    own_addresses: frozenset[str] = frozenset()
    # Nova's data folder with what pages may show of it; resolved, like the roots. Without it only the roots count.
    data_folder: str | None = None
    shown_folders: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for pattern in (*self.allow_hosts, *self.deny_hosts):
            if not is_host_pattern(pattern):
                raise ValueError(f"not a host pattern: {pattern!r}")
        for root in self.allow_file_roots:
            if not PurePosixPath(root).is_absolute():
                raise ValueError(f"not an absolute folder: {root!r}")


@dataclass(frozen=True, slots=True)
class PolicyWarning:
    """Something the caller should know about an allowed address."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Allowed:
    """The address may be opened."""

    warnings: tuple[PolicyWarning, ...] = ()


@dataclass(frozen=True, slots=True)
class Denied:
    """The policy forbids the address."""

    reason_code: PolicyReason
    message: str
    hint: str


@dataclass(frozen=True, slots=True)
class Malformed:
    """The text is no absolute URL; an error of shape, not of policy."""

    message: str


Verdict = Allowed | Denied | Malformed


def _quoted(text: str) -> str:
    line = "".join(character if character.isprintable() else " " for character in text)
    return f'"{line[:77]}..."' if len(line) > 80 else f'"{line}"'


@functools.lru_cache(maxsize=1024)
def _host_pattern(pattern: str) -> tuple[bool, str] | None:
    """Whether a pattern means everything below its domain, and the domain in canonical form."""
    text = pattern.strip()
    below = text.startswith("*.")
    host = ascii_host(text[2:] if below else text)
    return None if host is None else (below, host.removesuffix("."))


def is_host_pattern(text: str) -> bool:
    """Whether a text is an exact host or `*.domain`."""
    return _host_pattern(text) is not None


def host_matches(host: str, patterns: tuple[str, ...]) -> bool:
    """Whether a canonical host is one of the patterns or lies below one."""
    for pattern in patterns:
        parsed = _host_pattern(pattern)
        if parsed is None:
            continue
        below, domain = parsed
        if host.endswith("." + domain) if below else host == domain:
            return True
    return False


def unfindable_hosts(policy: NavigationPolicy) -> str | None:
    """The host lists in the words of the browser's own name lookup, which also stops what no request filter sees.

    It knows names only: addresses of the sixth version are left out, and an allowed name wins over a denied one.
    """
    rules = [f"MAP {name} ~NOTFOUND" for name in _lookup_names(policy.deny_hosts)]
    if policy.allow_hosts:
        rules.append("MAP * ~NOTFOUND")
        rules += [f"EXCLUDE {name}" for name in _lookup_names(policy.allow_hosts)]
    return ",".join(rules) or None


def _lookup_names(patterns: tuple[str, ...]) -> list[str]:
    """Each with and without the dot that ends a full name: to the browser they are two."""
    parsed = [found for pattern in patterns if (found := _host_pattern(pattern)) is not None and ":" not in found[1]]
    names = [f"*.{domain}" if below else domain for below, domain in parsed]
    return [spelled for name in names for spelled in (name, f"{name}.")]


def _judge_host(host: str, policy: NavigationPolicy) -> Denied | None:
    if host_matches(host, policy.deny_hosts):
        return Denied(
            "policy.host_denied",
            f"The host {_quoted(host)} is on the deny list.",
            "Use another site, or ask the operator to change deny_hosts.",
        )
    if policy.allow_hosts and not host_matches(host, policy.allow_hosts):
        return Denied(
            "policy.host_denied",
            f"The host {_quoted(host)} is not on the allow list.",
            "Use an allowed site, or ask the operator to add the host to allow_hosts.",
        )
    return None


def _judge_zone(host: str, port: int | None, policy: NavigationPolicy) -> Denied | None:
    zone = network_zone(host)
    mine = zone != "public" or plain_address(host) in policy.own_addresses
    if mine and port is not None and port in policy.own_ports:
        return Denied(
            "policy.private_network",
            f"Port {port} on {_quoted(host)} is Nova's own.",
            "Nova never opens its own pages in the browser it drives; use the tools instead.",
        )
    if zone == "public" or policy.private_network == "lan":
        return None
    if policy.private_network == "loopback" and zone == "loopback":
        return None
    needed = "loopback" if zone == "loopback" else "lan"
    return Denied(
        "policy.private_network",
        f"{_quoted(host)} lies in a {zone} network, which this server does not open.",
        f'Use a public address, or ask the operator to set private_network to "{needed}".',
    )


def _judge_web(url: str, policy: NavigationPolicy) -> Verdict:
    host = page_host(url)
    if host is None:
        return Malformed(f"{_quoted(url)} is not a complete URL: it names no valid host.")
    name = host.removesuffix(".")
    denied = _judge_host(name, policy) or _judge_zone(name, page_port(url), policy)
    if denied is not None:
        return denied
    if looks_lookalike(name):
        message = f"The host {_quoted(name)} mixes scripts in one label and may imitate another site."
        return Allowed((PolicyWarning(LOOKALIKE, message),))
    return Allowed()


def _is_internal(path: PurePosixPath, policy: NavigationPolicy) -> bool:
    """Whether a file in Nova's data folder is none that this tab may show, whatever roots the operator gave."""
    if policy.data_folder is None or not path.is_relative_to(policy.data_folder):
        return False
    return not any(path.is_relative_to(folder) for folder in policy.shown_folders)


def judge_file_path(real_path: str, policy: NavigationPolicy) -> Allowed | Denied:
    """Whether a file may be opened; the shell resolves links first and passes the real path."""
    path = PurePosixPath(real_path)
    if path.is_absolute() and ".." not in path.parts and not _is_internal(path, policy):
        for root in policy.allow_file_roots:
            if path.is_relative_to(PurePosixPath(root)):
                return Allowed()
    return Denied(
        "policy.file_denied",
        "That file lies outside the folders this server may open.",
        "Open an http or https page, or ask the operator to add the folder to allow_file_roots.",
    )


def file_path_of(url: str) -> str | None:
    """The path a `file:` URL names, decoded but not resolved."""
    found = _SCHEME.fullmatch(clean_input(url))
    if found is None or found.group(1).lower() != "file":
        return None
    place = _FILE_URL.match(found.group(2))
    if place is None:
        return None
    path = unquote(place.group(1).replace("\\", "/"))
    return None if "\0" in path else path


def _judge_shape(text: str) -> Malformed | None:
    found = _SCHEME.fullmatch(text)
    if not text:
        return Malformed("The URL is empty.")
    if found is None:
        kind = "relative" if text[0] in "/.?#\\" else "missing its scheme"
        return Malformed(f"{_quoted(text)} is {kind}; give an absolute URL such as https://example.com/.")
    scheme, rest = found.groups()
    if scheme.lower() not in _KNOWN_SCHEMES and ("." in scheme or _PORT_LIKE.fullmatch(rest)):
        return Malformed(f"{_quoted(text)} is missing its scheme; give an absolute URL such as https://example.com/.")
    return None


def judge_url(url: str, policy: NavigationPolicy) -> Verdict:
    """The verdict on an address before it is opened; redirects and final pages are judged by the same rules."""
    text = clean_input(url)
    malformed = _judge_shape(text)
    if malformed is not None:
        return malformed
    scheme = text.partition(":")[0].lower()
    if scheme in ("http", "https"):
        return _judge_web(text, policy)
    if text.lower() == "about:blank":
        return Allowed()
    if scheme == "file":
        path = file_path_of(text)
        return judge_file_path(path or "", policy)
    return Denied(
        "policy.scheme_denied",
        f"{_quoted(scheme)} addresses are not opened.",
        "Use an http or https URL.",
    )


def judge_address(ip: str, policy: NavigationPolicy, port: int | None = None) -> Allowed | Denied:
    """The verdict on the address a page really came from, which defeats names that change their meaning."""
    return _judge_zone(ip, port, policy) or Allowed()


def judge_destination(
    host: str, addresses: Sequence[str], port: int, policy: NavigationPolicy, *, every_host: bool
) -> tuple[str, ...] | Denied:
    """The addresses of a name that may be connected to, in their order; a refusal when there is none.

    Host lists hold for documents, which are judged by their URL; with `every_host` they hold for any connection.
    """
    if every_host and (denied := _judge_host(host, policy)) is not None:
        return denied
    verdicts = [(address, _judge_zone(address, port, policy)) for address in addresses]
    allowed = tuple(address for address, denied in verdicts if denied is None)
    refused = next((denied for _, denied in verdicts if denied is not None), None)
    return refused if refused is not None and not allowed else allowed
