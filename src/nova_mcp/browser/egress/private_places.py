"""Which pages of a sandbox may reach hosts of this machine and its networks: those that come from there.

A page from the public web must not use an agent's browser to reach servers that only this machine can see. Chromium
has such a check of its own (local network access), but it does not apply to connections through a proxy.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from nova_mcp.core.hosts import ip_address, network_zone
from nova_mcp.core.policy import Denied
from nova_mcp.core.urls import page_host, page_port

Place: TypeAlias = tuple[str, int]

# Between the request for a document and the moment when its tab is known to show it.
EXPECTED_S: Final = 30.0
PLACES_REMEMBERED: Final = 1000
# A page can make up names without end; once there are so many, no further one may lead into a private network.
NAMES_REMEMBERED: Final = 20_000


def plain_host(host: str) -> str:
    """The host as rules compare it: lower case, without the dot that ends a full name, IPv6 without brackets."""
    return host.lower().removesuffix(".").strip("[]")


def place_of(url: str) -> Place | None:
    host, port = page_host(url), page_port(url)
    return None if host is None or port is None else (plain_host(host), port)


def outside_reach(host: str) -> Denied:
    return Denied(
        "policy.private_network",
        f'"{host[:80]}" lies in a private network, and no page that was opened there asked for it.',
        "Open it with nova.navigate if it is what you want; pages of the public web can't reach it.",
    )


@dataclass(slots=True)
class PrivatePlaces:
    """What one sandbox has opened outside the public web."""

    open_urls: Callable[[], Iterable[str]]
    # The document that each tab last asked for, and when.
    _expected: dict[int, tuple[Place, float]] = field(default_factory=dict)
    # Places that an agent opened by their address, or that a page of such a place led to.
    _chosen: set[Place] = field(default_factory=set)
    # Names that turned out to lead into a private network, and those that led into the public web.
    _hosts: set[str] = field(default_factory=set)
    _public_hosts: set[str] = field(default_factory=set)

    def choose(self, url: str) -> None:
        """An agent opens the address itself."""
        if (place := place_of(url)) is not None:
            self._remember_chosen(place)

    def expect(self, tab: int, url: str, opener_url: str, now_s: float) -> None:
        """A document of a tab is about to be asked for, from the page that stands there now."""
        if (place := place_of(url)) is None:
            return
        if self._shows_chosen(opener_url):
            self._remember_chosen(place)
        self._expected = {one: (at, when) for one, (at, when) in self._expected.items() if now_s - when < EXPECTED_S}
        self._expected[tab] = (place, now_s)

    def _remember_chosen(self, place: Place) -> None:
        if len(self._chosen) < PLACES_REMEMBERED:
            self._chosen.add(place)

    def connected(self, host: str, *, public: bool) -> None:
        """Where a name led."""
        hosts = self._public_hosts if public else self._hosts
        if len(hosts) < NAMES_REMEMBERED:
            hosts.add(host)

    def judge(self, place: Place, now_s: float) -> Denied | None:
        """Whether something in this sandbox may ask a place outside the public web."""
        host, _ = place
        full = len(self._public_hosts) >= NAMES_REMEMBERED and ip_address(host) is None and host not in self._hosts
        if full or host in self._public_hosts:
            # DNS rebinding: a site of the web that means this machine all at once.
            return outside_reach(host)
        urls = tuple(self.open_urls())
        open_places = {one for one, when in self._expected.values() if now_s - when < EXPECTED_S}
        open_places |= {found for url in urls if (found := place_of(url)) is not None}
        if place in open_places or any(map(self._is_chosen, open_places)) or any(map(_is_file, urls)):
            return None
        return outside_reach(host)

    def _shows_chosen(self, url: str) -> bool:
        place = place_of(url)
        return _is_file(url) or (place is not None and self._is_chosen(place))

    def _is_chosen(self, place: Place) -> bool:
        """Whether an agent chose a place outside the public web; what it chose in the web opens nothing."""
        host, _ = place
        return place in self._chosen and (host in self._hosts or network_zone(host) != "public")


def _is_file(url: str) -> bool:
    return url.startswith("file:")
