"""Which addresses a launched browser may be connected to, and which pages may ask for those of this machine."""

import asyncio
import gc
import socket

import pytest

from nova_mcp.browser.egress.network import system_network
from nova_mcp.browser.egress.private_places import EXPECTED_S, NAMES_REMEMBERED, PrivatePlaces
from nova_mcp.browser.egress.socks import NotSocks, read_request
from nova_mcp.core.policy import Denied, NavigationPolicy, judge_destination

PUBLIC, LAN = "93.184.216.34", "10.0.0.7"


def judged(*addresses: str, host: str = "example.com", port: int = 443, every_host: bool = False, **policy: object):
    return judge_destination(host, addresses, port, NavigationPolicy(**policy), every_host=every_host)  # type: ignore[arg-type]


def test_only_the_addresses_that_the_policy_opens_are_connected_to():
    assert judged(PUBLIC) == (PUBLIC,)
    assert judged(LAN, PUBLIC, "fd00::1") == (PUBLIC,)
    for address in (LAN, "fe80::1", "::ffff:10.0.0.7", "64:ff9b::a00:7", "169.254.169.254", "0.0.0.0"):
        assert isinstance(judged(address, private_network="deny"), Denied), address
    assert judged("127.0.0.1") == ("127.0.0.1",)
    assert judged(LAN, private_network="lan") == (LAN,)


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "::ffff:127.0.0.1", "0.0.0.0", PUBLIC, "::ffff:93.184.216.34"])
def test_an_own_port_is_refused_at_every_address_under_any_name_in_any_mode(address: str):
    for mode in ("deny", "loopback", "lan"):
        own = {"own_ports": frozenset({8765}), "own_addresses": frozenset({PUBLIC}), "private_network": mode}
        assert isinstance(judged(address, host="any.test", port=8765, **own), Denied)


def test_host_lists_hold_for_every_connection_only_when_asked_for():
    lists = {"deny_hosts": ("*.bad.test",), "allow_hosts": ()}
    assert judged(PUBLIC, host="a.bad.test", **lists) == (PUBLIC,)
    assert isinstance(judged(PUBLIC, host="a.bad.test", every_host=True, **lists), Denied)
    assert isinstance(judged(PUBLIC, host="other.test", every_host=True, allow_hosts=("good.test",)), Denied)
    assert judged(PUBLIC, host="good.test", every_host=True, allow_hosts=("good.test",)) == (PUBLIC,)


def places(*urls: str) -> PrivatePlaces:
    return PrivatePlaces(lambda: urls)


LOCAL = ("localhost", 3000)


def test_a_page_of_the_web_opens_no_server_of_this_machine():
    web = places("https://example.com/")
    web.choose("https://example.com/")
    assert isinstance(web.judge(LOCAL, 0), Denied)


def test_a_page_that_an_agent_opened_on_this_machine_reaches_the_others():
    local = places("http://localhost:3000/app")
    assert local.judge(LOCAL, 0) is None
    assert isinstance(local.judge(("localhost", 8080), 0), Denied), "a page of the web may have led there"
    local.choose("http://localhost:3000/")
    assert local.judge(("localhost", 8080), 0) is None
    local.expect(1, "http://localhost:4000/", "http://localhost:3000/app", 0)
    assert ("localhost", 4000) in local._chosen


def test_a_document_is_expected_for_a_moment_and_by_its_own_tab():
    web = places("https://example.com/")
    web.expect(1, "http://localhost:3000/", "https://example.com/", 100)
    assert web.judge(LOCAL, 100) is None
    assert isinstance(web.judge(("localhost", 8080), 100), Denied)
    assert isinstance(web.judge(LOCAL, 100 + EXPECTED_S), Denied)
    web.expect(1, "https://example.com/", "http://localhost:3000/", 101)
    assert isinstance(web.judge(LOCAL, 101), Denied)


def test_a_name_of_the_web_never_comes_to_mean_this_machine():
    web = places("http://rebind.test:3000/")
    web.choose("http://rebind.test:3000/")
    web.connected("rebind.test", public=True)
    assert isinstance(web.judge(("rebind.test", 3000), 0), Denied)


def test_names_without_end_do_not_push_out_what_is_known_of_one():
    web = places("http://late.test:3000/")
    web.connected("early.test", public=True)
    for number in range(NAMES_REMEMBERED):
        web.connected(f"n{number}.test", public=True)
    assert isinstance(web.judge(("early.test", 3000), 0), Denied)
    assert isinstance(web.judge(("late.test", 3000), 0), Denied)


class Answers:
    """The side of the connection that is written to."""

    def __init__(self) -> None:
        self.written = b""

    def write(self, data: bytes) -> None:
        self.written += data


async def requested(data: bytes) -> tuple[str, int]:
    reader = asyncio.StreamReader()
    reader.feed_data(data)
    reader.feed_eof()
    return await read_request(reader, Answers())  # type: ignore[arg-type]


async def test_a_request_names_a_host_or_an_address():
    assert await requested(b"\x05\x01\x00\x05\x01\x00\x03\x0bexample.com\x01\xbb") == ("example.com", 443)
    assert await requested(b"\x05\x01\x00\x05\x01\x00\x01\x0a\x00\x00\x07\x00\x50") == (LAN, 80)
    assert await requested(b"\x05\x01\x00\x05\x01\x00\x04" + bytes(15) + b"\x01\x00\x50") == ("::1", 80)


@pytest.mark.parametrize(
    "data", [b"GET / HTTP/1.1\r\n\r\n" + bytes(200), b"\x05\x01\x02", b"\x05\x01\x00\x05\x02\x00\x01"]
)
async def test_what_is_no_such_request_is_not_answered(data: bytes):
    with pytest.raises(NotSocks):
        await requested(data)


async def test_a_lookup_that_fails_after_its_connections_were_given_up_is_no_error_of_the_server(
    monkeypatch: pytest.MonkeyPatch,
):
    loop, asked, given_up, errors = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event(), []

    async def fails(host: str, port: None, **_: object) -> None:
        asked.set()
        await given_up.wait()
        raise socket.gaierror(socket.EAI_NONAME, "not known")

    monkeypatch.setattr(loop, "getaddrinfo", fails)
    loop.set_exception_handler(lambda _, context: errors.append(context["message"]))
    resolve = system_network().resolve
    waiting = asyncio.ensure_future(resolve("gone.test"))
    await asked.wait()
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    given_up.set()
    del resolve, waiting
    await asyncio.sleep(0.01)
    gc.collect()
    await asyncio.sleep(0)
    assert errors == []
