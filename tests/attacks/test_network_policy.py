"""One decision on the resolved address: whatever a page starts, it reaches nothing that `navigate` refuses."""

import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack

import anyio
import pytest
from loop_kit import Server
from playwright.async_api import Page as BrowserPage

from network_kit import LAN, LOOPBACK, PUBLIC, FakeNetwork, Page, Web, web

pytestmark = pytest.mark.browser

_OPEN = ExitStack()


def _listener(kind: int) -> socket.socket:
    listener = _OPEN.enter_context(socket.socket(socket.AF_INET, kind))
    listener.bind((LOOPBACK, 0))
    listener.setblocking(False)
    return listener


# Stands for Nova's own HTTP server and dashboard.
OWN = _listener(socket.SOCK_STREAM)
OWN.listen()
OWN_PORT = OWN.getsockname()[1]
SETTINGS = {"http": {"port": OWN_PORT}, "browser": {"deny_hosts": ["denied.test"]}}

# Each way a document can ask for something without a script.
_KINDS = {
    "img": "<img src='{}'>",
    "script": "<script src='{}'></script>",
    "style": "<link rel=stylesheet href='{}'>",
    "prefetch": "<link rel=prefetch href='{}'>",
    "preload": "<link rel=preload as=fetch crossorigin href='{}'>",
    "frame": "<iframe src='{}'></iframe>",
    "object": "<object data='{}'></object>",
    "video": "<video preload=auto src='{}'></video>",
    "post": "<form id=post method=post target=inner action='{}'></form><iframe name=inner></iframe>",
}
# From a window, a dedicated, a shared and a service worker alike.
_REACH = """const reach = (host, who) => {
  const url = (kind) => `http://${kind}.${who}.${host}/`;
  const quietly = (step) => { try { step(); } catch (error) { void error; } };
  const socket = new Promise((done) => {
    const opened = new WebSocket(url('socket').replace('http', 'ws'));
    opened.onerror = () => done('failed');
    opened.onopen = () => done('open');
  });
  const asked = fetch(url('fetch'), {mode: 'no-cors'}).then(() => 'answered', () => 'failed');
  quietly(() => { new EventSource(url('events')); });
  quietly(() => navigator.sendBeacon(url('beacon'), 'x'));
  return Promise.all([asked, socket]).then((results) => results.join());
};
"""
_WORKERS = """async (host) => {
  const answer = (port) => new Promise((done) => { port.onmessage = (event) => done(event.data); });
  const own = reach(host, 'window');
  const dedicated = new Worker('/dedicated.js');
  dedicated.postMessage(host);
  const shared = new SharedWorker('/shared.js');
  shared.port.start();
  shared.port.postMessage(host);
  await navigator.serviceWorker.register('/service.js');
  const {active} = await navigator.serviceWorker.ready;
  const channel = new MessageChannel();
  active.postMessage(host, [channel.port2]);
  const late = (who) => new Promise((done) => setTimeout(done, 40000, `${who} was not heard`));
  const heard = (who, said) => Promise.race([said, late(who)]);
  return Promise.all([
    heard('window', own), heard('dedicated', answer(dedicated)),
    heard('shared', answer(shared.port)), heard('service', answer(channel.port1)),
  ]);
}"""
_FETCH = "(url) => fetch(url, {mode: 'no-cors'}).then(() => 'answered', () => 'failed')"
_CANDIDATES = """async (servers) => {
  const peer = new RTCPeerConnection({iceServers: servers});
  peer.createDataChannel('x');
  const candidates = [];
  const done = new Promise((resolve) => {
    peer.onicecandidate = ({candidate}) => candidate ? candidates.push(candidate.candidate) : resolve();
  });
  await peer.setLocalDescription();
  await done;
  return candidates;
}"""
_OTHER_PEER = """async (port) => {
  const [here, there] = [new RTCPeerConnection(), new RTCPeerConnection()];
  here.createDataChannel('x');
  await here.setLocalDescription();
  await there.setRemoteDescription(here.localDescription);
  await there.setLocalDescription();
  await here.setRemoteDescription(there.localDescription);
  const mid = here.getTransceivers()[0]?.mid ?? '0';
  await here.addIceCandidate({candidate: `candidate:1 1 udp 2122260223 127.0.0.1 ${port} typ host`, sdpMid: mid});
  await new Promise((done) => {
    here.oniceconnectionstatechange = () => ['failed', 'disconnected'].includes(here.iceConnectionState) && done();
    setTimeout(done, 1500);
  });
  return here.iceConnectionState;
}"""


def _pages(here: Web) -> dict[str, Page]:
    def page(body: str) -> Page:
        return Page(f"<!doctype html><title>page</title><script>{_REACH}</script>{body}")

    def script(body: str) -> Page:
        return Page(_REACH + body, "text/javascript")

    secret = Page("the secret", "application/zip", headers={"Content-Disposition": "attachment; filename=secret.zip"})
    kinds = "".join(tag.format(f"http://{kind}.lan.test/") for kind, tag in _KINDS.items())
    links = {
        "direct": "http://files.lan.test/secret.zip",
        "hop": here.url("public.test", "/to-lan"),
        "denied": here.url("denied.test", "/secret.zip"),
        "denied-hop": here.url("public.test", "/to-denied"),
        "blob": "data:application/zip,fine",
    }
    anchors = "".join(f"<a id='{name}' download href='{url}'>{name}</a><br>" for name, url in links.items())
    windows = "".join(f"<a id='w-{name}' target=_blank href='{url}'>{name}</a><br>" for name, url in links.items())
    return {
        "/": page("hello"),
        "/kinds": page(f"{kinds}<script>document.getElementById('post').submit()</script>"),
        "/links": page(anchors + windows),
        "/dedicated.js": script("onmessage = (event) => reach(event.data, 'dedicated').then(postMessage);"),
        "/shared.js": script(
            "onconnect = ({ports: [port]}) => {"
            "port.onmessage = (event) => reach(event.data, 'shared').then((said) => port.postMessage(said));};"
        ),
        "/service.js": script(
            "oninstall = () => skipWaiting(); onactivate = (event) => event.waitUntil(clients.claim());"
            "onmessage = (event) => event.waitUntil("
            "reach(event.data, 'service').then((said) => event.ports[0].postMessage(said)));"
        ),
        "/secret.zip": secret,
        "/to-lan": Page(status=302, headers={"Location": "http://files.lan.test/secret.zip"}),
        "/to-denied": Page(status=302, headers={"Location": here.url("denied.test", "/secret.zip")}),
        "/chain": Page(status=302, headers={"Location": here.url("public.test", "/chain-2")}),
        "/chain-2": Page(status=307, headers={"Location": "http://end.lan.test/"}),
    }


@pytest.fixture(scope="module")
def here() -> Iterator[Web]:
    with web(_pages) as running:
        yield running
    _OPEN.close()


@pytest.fixture
def net(server: Server) -> Iterator[FakeNetwork]:
    egress = server.nova._parts.browser.egress
    assert egress is not None
    fake = FakeNetwork(
        {
            "public.test": [PUBLIC],
            "denied.test": [PUBLIC],
            "lan.test": [LAN],
            "inside.test": [LOOPBACK],
            "rebind.test": [PUBLIC, LAN],
            "rebind-loopback.test": [PUBLIC, LOOPBACK],
        }
    )
    before, egress.network = egress.network, fake.network()
    yield fake
    egress.network = before


@pytest.fixture
async def page(server: Server, tab: str, here: Web, net: FakeNetwork) -> AsyncIterator[BrowserPage]:
    """A page of the public web."""
    told = await server.call("navigate", targetId=tab, url=here.url("public.test"))
    assert told["status"] == "ok", told
    net.clear()
    here.asked.clear()
    yield server.tab(tab).page
    await server.call("navigate", targetId=tab, url="about:blank")


async def eventually(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(15):
        while not condition():  # noqa: ASYNC110
            await anyio.sleep(0.02)


async def test_no_kind_of_subresource_reaches_an_address_that_navigate_refuses(
    server: Server, tab: str, here: Web, net: FakeNetwork, page: BrowserPage
) -> None:
    await page.goto(here.url("public.test", "/kinds"))
    wanted = {f"{kind}.lan.test" for kind in _KINDS}
    await eventually(lambda: wanted <= set(net.asked))
    assert {address for address, _ in net.connected} == {PUBLIC}


async def test_windows_and_all_three_kinds_of_workers_stay_within_the_policy(
    server: Server, tab: str, here: Web, net: FakeNetwork
) -> None:
    # Workers of a service need a page that browsers trust.
    told = await server.call("navigate", targetId=tab, url=here.url("app.localhost"))
    assert told["status"] == "ok"
    net.clear()
    results = await server.tab(tab).page.evaluate(_WORKERS, "lan.test")
    assert results == ["failed,failed"] * 4
    callers = ("window", "dedicated", "shared", "service")
    wanted = {f"{kind}.{caller}.lan.test" for kind in ("fetch", "socket") for caller in callers}
    wanted |= {f"events.{caller}.lan.test" for caller in ("window", "dedicated", "shared")} | {"beacon.window.lan.test"}
    await eventually(lambda: wanted <= set(net.asked))
    assert LAN not in {address for address, _ in net.connected}


@pytest.mark.parametrize(
    "host",
    [
        LAN,
        "lan.test",
        "lan.test.",
        "167772167",
        "0x0a000007",
        "012.0.0.07",
        "10.7",
        "[::ffff:10.0.0.7]",
        "[64:ff9b::a00:7]",
        "[fd00::7]",
        "[fe80::7]",
        "[fec0::7]",
        "[::ffff:0:10.0.0.7]",
        "169.254.169.254",
    ],
)
async def test_no_spelling_of_a_private_address_is_a_way_there(
    server: Server, tab: str, net: FakeNetwork, page: BrowserPage, host: str
) -> None:
    assert await page.evaluate(_FETCH, f"http://{host}/") == "failed"
    refused = await server.call("navigate", targetId=tab, url=f"http://{host}/")
    assert (refused["status"], refused["reasonCode"]) == ("blocked", "policy.private_network")
    # The web page's own picture may still have been on its way.
    assert {address for address, _ in net.connected} <= {PUBLIC}


async def test_a_chain_of_redirects_ends_where_the_policy_does(
    server: Server, tab: str, here: Web, net: FakeNetwork, page: BrowserPage
) -> None:
    refused = await server.call("navigate", targetId=tab, url=here.url("public.test", "/chain"))
    assert (refused["status"], refused["reasonCode"]) == ("blocked", "policy.private_network")
    assert refused["url"] == "about:blank"
    assert {address for address, _ in net.connected} == {PUBLIC}
    assert "end.lan.test" in net.asked


@pytest.mark.parametrize("name", ["rebind.test", "rebind-loopback.test"])
async def test_a_name_that_changes_its_meaning_between_check_and_use_leads_nowhere_else(
    server: Server, tab: str, here: Web, net: FakeNetwork, page: BrowserPage, name: str
) -> None:
    told = await server.call("navigate", targetId=tab, url=here.url(name))
    assert told["status"] == "ok"
    assert len(net.connected) <= len(net.asked), "a lookup for each connection"
    own = server.tab(tab).page
    assert await own.evaluate(_FETCH, here.url(name, "/again")) == "failed"
    assert {address for address, _ in net.connected} == {PUBLIC}
    assert here.hosts("/again") == set()


async def test_pages_of_the_public_web_reach_no_server_of_this_machine(
    here: Web, net: FakeNetwork, page: BrowserPage
) -> None:
    for host in (LOOPBACK, "localhost", "api.localhost", "[::1]", "inside.test", "2130706433", "0.0.0.0"):
        assert await page.evaluate(_FETCH, here.url(host, "/from-outside")) == "failed", host
    assert here.hosts("/from-outside") == set()


async def test_pages_of_this_machine_reach_each_other(server: Server, tab: str, here: Web, net: FakeNetwork) -> None:
    await server.call("navigate", targetId=tab, url=here.url("localhost"))
    for host in (LOOPBACK, "api.localhost", "inside.test"):
        assert await server.tab(tab).page.evaluate(_FETCH, here.url(host, "/api")) == "answered", host
    assert here.hosts("/api") == {LOOPBACK, "api.localhost", "inside.test"}
    await server.call("navigate", targetId=tab, url=here.url("public.test"))
    assert await server.tab(tab).page.evaluate(_FETCH, here.url(LOOPBACK, "/later")) == "failed"


async def test_novas_own_ports_answer_no_page_under_any_name(
    server: Server, tab: str, here: Web, net: FakeNetwork
) -> None:
    await server.call("navigate", targetId=tab, url=here.url("localhost"))
    egress = server.nova._parts.browser.egress
    assert egress is not None
    ports = {OWN_PORT, *(proxy.port for proxy in egress._proxies.values())}
    assert len(ports) == 3
    net.clear()
    own = server.tab(tab).page
    for port in ports:
        for host in (LOOPBACK, "localhost", "x.localhost", "[::1]", "[::ffff:127.0.0.1]", "inside.test", "0.0.0.0"):
            assert await own.evaluate(_FETCH, f"http://{host}:{port}/") == "failed", (host, port)
    for host in (LOOPBACK, "inside.test"):
        for port in ports:
            refused = await server.call("navigate", targetId=tab, url=f"http://{host}:{port}/")
            assert refused["reasonCode"] == "policy.private_network", (host, port)
    assert not ports & {port for _, port in net.connected}
    with pytest.raises(BlockingIOError):
        OWN.accept()


async def test_webrtc_and_webtransport_send_no_datagram_and_name_no_address(
    server: Server, tab: str, here: Web, net: FakeNetwork
) -> None:
    ear = _listener(socket.SOCK_DGRAM)
    port = ear.getsockname()[1]
    await server.call("navigate", targetId=tab, url=here.url("localhost"))
    own = server.tab(tab).page
    relay = {"urls": [f"turn:{LAN}:3478?transport=tcp", "turn:relay.lan.test:3478?transport=tcp"]}
    servers = [{"urls": f"stun:{LOOPBACK}:{port}"}, {**relay, "username": "u", "credential": "c"}]
    assert await own.evaluate(_CANDIDATES, servers) == []
    assert await own.evaluate(_OTHER_PEER, port) != "connected"
    closed = "(url) => new WebTransport(url).ready.then(() => 'open', () => 'failed')"
    assert await own.evaluate(closed, f"https://{LOOPBACK}:{port}/") == "failed"
    with pytest.raises(BlockingIOError):
        ear.recvfrom(1)
    assert LAN not in {address for address, _ in net.connected}


async def test_a_process_that_is_no_browser_of_this_server_gets_nothing_from_its_proxy(
    server: Server, tab: str, here: Web, net: FakeNetwork, page: BrowserPage
) -> None:
    egress = server.nova._parts.browser.egress
    assert egress is not None
    for proxy in egress._proxies.values():
        stream = await anyio.connect_tcp(LOOPBACK, proxy.port)
        async with stream:
            with pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
                await stream.send(b"\x05\x01\x00")
                await stream.receive(2)


# -- downloads


def files_of(server: Server) -> set[str]:
    return {path.name for path in (server.data_dir / "downloads").rglob("*.zip")} | {
        path.name for path in (server.data_dir / "downloads").glob("*/.incoming/*")
    }


@pytest.mark.parametrize("link", ["direct", "hop", "denied", "denied-hop"])
@pytest.mark.parametrize("opened", ["", "w-"])
async def test_a_download_from_an_address_that_navigate_refuses_leaves_nothing(
    server: Server, tab: str, here: Web, net: FakeNetwork, page: BrowserPage, link: str, opened: str
) -> None:
    await server.call("navigate", targetId=tab, url=here.url("public.test", "/links"))
    await server.call("perceive", targetId=tab)
    before = files_of(server)
    told = await server.call("click_selector", targetId=tab, selector=f"#{opened}{link}")
    assert [file["state"] for file in told.get("downloads", [])] in ([], ["cancelled"])
    after = await server.call("navigate", targetId=tab, url=here.url("public.test"))
    assert [file["state"] for file in after.get("downloads", [])] in ([], ["cancelled"])
    assert files_of(server) == before
    assert {address for address, _ in net.connected} == {PUBLIC}
    assert here.hosts("/secret.zip") <= {"denied.test"} if link.startswith("denied") else not here.hosts("/secret.zip")


async def test_what_a_page_made_itself_can_still_be_downloaded(
    server: Server, tab: str, here: Web, net: FakeNetwork, page: BrowserPage
) -> None:
    await server.call("navigate", targetId=tab, url=here.url("public.test", "/links"))
    await server.call("perceive", targetId=tab)
    (file,) = (await server.call("click_selector", targetId=tab, selector="#blob"))["downloads"]
    assert file["state"] == "completed"
    assert file["bytes"] == len("fine")
