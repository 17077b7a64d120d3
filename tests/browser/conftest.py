"""One real Chromium for all browser tests, a fresh sandbox per test, and a local site with bad manners."""

import contextlib
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import anyio
import pytest
from playwright.async_api import Error

from nova_mcp.browser.egress import Network, system_network
from nova_mcp.browser.perceive.perception import Perception
from nova_mcp.browser.process.runtime import Browser, BrowserHome
from nova_mcp.browser.targets.registry import Tab
from nova_mcp.core.clock import system_ports
from nova_mcp.core.policy import NavigationPolicy
from nova_mcp.evidence.model import Caller, ServerId
from nova_mcp.evidence.targets.journal import MemoryJournal
from nova_mcp.memory.claims.book import ClaimBook
from nova_mcp.settings import BrowserSettings

PAGES = Path(__file__).resolve().parent.parent / "pages"
TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript", ".json": "application/json"}


@dataclass
class Site:
    """The local site; remembers every request path it was asked for."""

    port: int
    seen: list[str] = field(default_factory=list)
    methods: list[tuple[str, str]] = field(default_factory=list)
    gate: threading.Event = field(default_factory=threading.Event)

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}/{path.lstrip('/')}"


class Handler(BaseHTTPRequestHandler):
    site: Site
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: object) -> None:
        return

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.do_GET()

    def do_GET(self) -> None:
        self.site.seen.append(self.path)
        self.site.methods.append((self.command, self.path))
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        route = getattr(self, f"at_{parts.path.strip('/').replace('-', '_')}", None)
        with contextlib.suppress(ConnectionError):
            if route is not None:
                route(query)
            else:
                self.file(parts.path, int(query.get("status", 200)))

    def reply(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def file(self, path: str, status: int) -> None:
        place = (PAGES / path.lstrip("/")).resolve()
        if not place.is_relative_to(PAGES) or not place.is_file():
            self.reply(404, b"<title>nothing</title><p>nothing here</p>", Content_Type="text/html")
            return
        kind = TYPES.get(place.suffix, "application/octet-stream")
        self.reply(status, place.read_bytes(), Content_Type=kind)

    def at_html(self, query: dict[str, str]) -> None:
        """Echo a body given in the query, so that small pages need no file."""
        body = f"<!doctype html><title>{query.get('title', 'page')}</title>{query.get('body', '')}"
        self.reply(int(query.get("status", 200)), body.encode(), Content_Type="text/html; charset=utf-8")

    def at_redirect(self, query: dict[str, str]) -> None:
        self.reply(int(query.get("status", 302)), b"", Location=query["to"])

    def at_loop(self, query: dict[str, str]) -> None:
        self.reply(302, b"", Location="/loop")

    def at_never(self, query: dict[str, str]) -> None:
        """Answers only when the test is over."""
        self.site.gate.wait(30)

    def at_half(self, query: dict[str, str]) -> None:
        """Commits a document and never finishes it."""
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", "100000")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>half</title><p>first part</p>" + b" " * 2048)
        self.wfile.flush()
        self.site.gate.wait(30)
        self.close_connection = True

    def at_download(self, query: dict[str, str]) -> None:
        self.reply(
            200, b"x" * 64, Content_Type="application/octet-stream", Content_Disposition='attachment; filename="a.bin"'
        )

    def at_nothing(self, query: dict[str, str]) -> None:
        self.reply(204, b"")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def server() -> Iterator[Site]:
    handler = type("SiteHandler", (Handler,), {})
    listener = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    listener.daemon_threads = True
    site = Site(listener.server_address[1])
    handler.site = site  # type: ignore[attr-defined]
    thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    yield site
    site.gate.set()
    listener.shutdown()
    listener.server_close()
    thread.join()


@pytest.fixture
def site(server: Site) -> Iterator[Site]:
    server.seen.clear()
    server.methods.clear()
    server.gate = threading.Event()
    yield server
    server.gate.set()


@pytest.fixture(scope="session")
def refused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def eventually(condition: Callable[[], bool]) -> None:
    """Wait for something that raises no event a test could wait on; the limit only ends a broken run."""
    with anyio.fail_after(60):
        while not condition():  # noqa: ASYNC110
            await anyio.sleep(0.02)


SYSTEM = system_network()


def make_browser(
    data_dir: Path,
    policy: NavigationPolicy | None = None,
    extra_args: tuple[str, ...] = (),
    network: Network | None = SYSTEM,
    **settings: object,
) -> Browser:
    return Browser(
        BrowserSettings.model_validate(settings),
        BrowserHome(data_dir, "server_test", extra_args, network=network),
        MemoryJournal(),
        policy or NavigationPolicy(),
        (ports := system_ports()),
        ClaimBook(ports),
    )


@pytest.fixture(scope="session")
async def browser(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Browser]:
    browser = make_browser(tmp_path_factory.mktemp("nova-data"))
    await browser.start()
    yield browser
    await browser.aclose()


def make_caller(agent_id: str = "default", principal: str = "tester") -> Caller:
    return Caller(principal, agent_id, ServerId("server_test"))


def at_home(tab: Tab, site: Site) -> Tab:
    """Tests open the site past Nova's own way; to the browser it counts as opened by an agent all the same."""
    for host in ("127.0.0.1", "localhost"):
        tab.guard.choose(site.url("", host=host))
    return tab


@pytest.fixture(scope="module")
async def module_tab(browser: Browser, server: Site, request: pytest.FixtureRequest) -> AsyncIterator[Tab]:
    """One tab for tests that only look, each at a page of its own; a fresh one per test costs more than the looking."""
    caller = make_caller(principal=request.node.nodeid)
    yield at_home(await browser.targets.open_tab(caller), server)
    await _tidy(browser, caller)


@pytest.fixture(scope="module")
async def module_caller(browser: Browser, request: pytest.FixtureRequest) -> AsyncIterator[Caller]:
    caller = make_caller(principal=f"{request.node.nodeid}, shared")
    yield caller
    await _tidy(browser, caller)


@pytest.fixture
async def caller(browser: Browser, request: pytest.FixtureRequest, module_caller: Caller) -> AsyncIterator[Caller]:
    """The module's own principal with one used tab at most; modules that say FRESH get a new sandbox per test."""
    if not getattr(request.module, "FRESH", False):
        yield module_caller
        for tab in browser.targets.list_tabs(module_caller):
            if tab is not browser.targets.active_of(module_caller.owner):
                await browser.targets.close_tab(tab)
        return
    caller = make_caller(principal=request.node.nodeid)
    yield caller
    await _tidy(browser, caller)


async def _tidy(browser: Browser, caller: Caller) -> None:
    for tab in browser.targets.list_tabs(caller):
        await browser.targets.close_tab(tab)
    for sandbox in list(browser.sandboxes):
        if sandbox.principal == caller.principal:
            await browser.sandboxes.delete(sandbox)


@pytest.fixture
async def tab(browser: Browser, caller: Caller, server: Site) -> Tab:
    used = browser.targets.active_of(caller.owner)
    if used is not None and await _as_new(used):
        return used
    if used is not None:
        await browser.targets.close_tab(used)
    return at_home(await browser.targets.open_tab(caller), server)


async def _as_new(tab: Tab) -> bool:
    """Empty a tab that an earlier test used, so that nothing of it is left; False when it can't be."""
    if tab.state != "ready" or tab.storms or tab.guard.denied is not None:
        return False
    tab.leave = True
    try:
        await tab.page.context.clear_cookies()
        await tab.page.goto("about:blank", timeout=5000)
    except Error:
        return False
    tab.leave = False
    tab.perception.close()
    tab.perception = Perception()
    tab.rev = 0
    tab.perceived_epoch = None
    tab.http_status = None
    tab.lease = None
    tab.observed.clear()
    tab.notices.clear()
    return True
