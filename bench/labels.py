"""What the page facts are worth: recall and precision of each claim on small labelled pages."""

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, Final

from bench.results import Finding
from bench.tables import show, tell
from nova_mcp.browser.process.runtime import Browser, BrowserHome
from nova_mcp.browser.targets.tab import Tab
from nova_mcp.core.clock import system_ports
from nova_mcp.core.policy import NavigationPolicy
from nova_mcp.evidence.model import Caller, ServerId
from nova_mcp.evidence.targets.journal import MemoryJournal
from nova_mcp.settings import BrowserSettings

PAGES: Final = Path(__file__).resolve().parent.parent / "tests" / "pages" / "labelled"


@dataclass(frozen=True)
class Claim:
    """A statement about a page, and how it is made: True, False, or None when the page does not tell."""

    name: str
    # A page fact, or the kind of a layer over the page.
    about: str
    judge: Callable[[Any], bool | None]
    # What the set supports and a test holds: shares of the pages that must be found and must be rightly found.
    recall: float
    precision: float


def _as_it_is(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def _is_known(value: Any) -> bool | None:
    return True if isinstance(value, bool) else None


def _lies_there(kind: str) -> Callable[[Any], bool | None]:
    return lambda kinds: kind in kinds


# What lies over a page is told by kind; `modal` and `unknown` are what is left when none of these fits.
LAYER_KINDS: Final = ("consent", "login_wall", "paywall", "newsletter", "age_gate", "chat", "challenge")
CLAIMS: Final = (
    Claim("form_valid", "form.fields.valid", _as_it_is, 0.95, 0.95),
    Claim("success", "form.successIndicator.visible", _as_it_is, 0.95, 0.95),
    Claim("error_banner", "form.errorBanner.visible", _as_it_is, 0.95, 0.95),
    Claim("composer", "composer.textEmpty", _is_known, 0.95, 0.95),
    Claim("login_wall", "auth.loginWallVisible", _as_it_is, 0.95, 0.95),
    *(Claim(f"blocker_{kind}", kind, _lies_there(kind), 0.9, 0.95) for kind in LAYER_KINDS),
)


@dataclass(frozen=True)
class LabelledPage:
    name: str
    shows: bool
    body: str


@dataclass(frozen=True)
class Score:
    """How a claim did on its set; `denied` are pages that show it and were told not to."""

    claim: Claim
    yes: int
    no: int
    missed: tuple[str, ...]
    wrong: tuple[str, ...]
    denied: tuple[str, ...]

    @property
    def found(self) -> int:
        return self.yes - len(self.missed)

    @property
    def recall(self) -> float:
        return self.found / self.yes

    @property
    def precision(self) -> float:
        claimed = self.found + len(self.wrong)
        return self.found / claimed if claimed else 0.0


def read_set(claim: str) -> list[LabelledPage]:
    pages: list[LabelledPage] = []
    for part in (PAGES / f"{claim}.pages").read_text(encoding="utf-8").split("=== ")[1:]:
        head, _, body = part.partition("\n")
        label, _, name = head.partition(" ")
        pages.append(LabelledPage(name, {"yes": True, "no": False}[label], body))
    return pages


@contextmanager
def served(pages: Sequence[LabelledPage]) -> Iterator[Callable[[int], str]]:
    """The pages on a local port, each at an address of its own."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *args: object) -> None:
            return

        def do_GET(self) -> None:
            number = self.path.strip("/")
            found = number.isdigit() and int(number) < len(pages)
            text = f"<!doctype html><title>Page</title><body>{pages[int(number)].body}" if found else ""
            body = text.encode()
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    listener = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    listener.daemon_threads = True
    thread = Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield lambda number: f"http://127.0.0.1:{listener.server_address[1]}/{number}"
    finally:
        listener.shutdown()
        listener.server_close()
        thread.join()


async def _told(tab: Tab, claim: Claim) -> Any:
    if claim.about in LAYER_KINDS:
        looked: Any = await tab.channel.ask("blockers")
        return [layer["kind"] for layer in looked["layers"]]
    told: Any = await tab.channel.ask("readFacts", {"facts": [{"name": claim.about}], "base": {}})
    return told["values"][0].get("v")


async def measure(tab: Tab, claim: Claim) -> Score:
    pages = read_set(claim.name)
    missed, wrong, denied = [], [], []
    with served(pages) as address:
        for number, page in enumerate(pages):
            await tab.page.goto(address(number), wait_until="load")
            said = claim.judge(await _told(tab, claim))
            if page.shows and said is not True:
                missed.append(page.name)
            if page.shows and said is False:
                denied.append(page.name)
            if not page.shows and said is True:
                wrong.append(page.name)
    yes = sum(page.shows for page in pages)
    return Score(claim, yes, len(pages) - yes, tuple(missed), tuple(wrong), tuple(denied))


@asynccontextmanager
async def a_tab() -> AsyncIterator[Tab]:
    server = ServerId("server_bench")
    with tempfile.TemporaryDirectory(prefix="nova-labels-") as folder:
        home = BrowserHome(Path(folder), server)
        browser = Browser(BrowserSettings(), home, MemoryJournal(), NavigationPolicy(), system_ports())
        await browser.start()
        try:
            yield await browser.targets.open_tab(Caller("bench", "default", server))
        finally:
            await browser.aclose()


async def _measured() -> list[Score]:
    async with a_tab() as tab:
        return [await measure(tab, claim) for claim in CLAIMS]


def _judge(scores: Sequence[Score]) -> None:
    short = [s.claim.name for s in scores if s.recall < s.claim.recall or s.precision < s.claim.precision]
    recall, precision = min(s.recall for s in scores), min(s.precision for s in scores)
    tell(
        Finding(
            aim="P2",
            what=f"{len(scores)} kinds of claims on labelled pages",
            measured=f"lowest recall {recall:.2f}, precision {precision:.2f}; short of it: {', '.join(short) or '-'}",
            bound="recall ≥ 0.90 or 0.95, precision ≥ 0.95",
            n=sum(s.yes + s.no for s in scores),
            met=not short,
        )
    )


def main(*, long: bool = False) -> int:
    scores = asyncio.run(_measured())
    rows = [(s.claim.name, s.yes, s.no, s.recall, s.precision, len(s.wrong), len(s.denied)) for s in scores]
    columns = ("claim", "yes", "no", "recall", "precision", "wrongly claimed", "wrongly denied")
    show("Claims on labelled pages", columns, rows)
    _judge(scores)
    if "--misses" in sys.argv:
        lists = [
            (s.claim.name, what, name) for s in scores for what in ("missed", "wrong") for name in getattr(s, what)
        ]
        show("Pages judged wrongly", ("claim", "how", "page"), lists)
    return sum(s.recall < s.claim.recall or s.precision < s.claim.precision for s in scores)
