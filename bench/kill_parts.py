"""Kill and stop the driver and the browser of a working server at random points: what is lost, how soon it is back."""

import os
import random
import signal
import statistics
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import parse_qs, urlsplit

import anyio
import psutil
from mcp import Client

Part: TypeAlias = Literal["driver", "browser"]
Serving: TypeAlias = Any

KINDS: Final[tuple[tuple[Part, signal.Signals], ...]] = (
    ("driver", signal.SIGKILL),
    ("driver", signal.SIGSTOP),
    ("browser", signal.SIGKILL),
    ("browser", signal.SIGSTOP),
)
# A browser is started at most four times within a minute.
FAULTS_PER_SERVER: Final = 3
LATEST_FAULT_S: Final = 1.5
# Far above the promise: a server that is not back by then is counted as one that never came back.
GIVEN_UP_S: Final = 90.0
AGAIN_S: Final = 0.1
PROMISED_S: Final = 15.0

PAGE: Final = (
    b"<!doctype html><title>Keys</title><p>Each key is pressed once.</p><button id=key type=button>Next</button>"
    b"<script>key.onclick = () => { key.textContent = 'Pressed'; fetch('/press' + location.search); }</script>"
)


@dataclass
class KeySite:
    """A page with one key; counts who pressed it, and remembers whether a request came with the login."""

    base: str = ""
    pressed: Counter[str] = field(default_factory=Counter)
    logins: dict[str, bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Fault:
    """One process that was ended or stopped, and what became of the server."""

    part: Part
    sent: signal.Signals
    back_s: float
    logged_in: bool
    # Until the call that was under way had its answer as well.
    settled_s: float


@dataclass
class PartsTally:
    """What the client saw and what the site counted."""

    faults: list[Fault] = field(default_factory=list)
    servers: int = 0
    sent: int = 0
    answered: set[str] = field(default_factory=set)
    # Keys whose press was answered as done.
    done: set[str] = field(default_factory=set)
    left: int = 0


@contextmanager
def key_site() -> Iterator[KeySite]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args: object) -> None:
            return

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            name = parse_qs(parts.query).get("n", [""])[0]
            if parts.path == "/press":
                site.pressed[name] += 1
            if parts.path == "/home":
                site.logins[name] = "sid=stays" in (self.headers.get("Cookie") or "")
            self.send_response(200)
            if parts.path == "/login":
                self.send_header("Set-Cookie", "sid=stays; Max-Age=86400")
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(PAGE)))
            self.end_headers()
            with suppress(ConnectionError):
                self.wfile.write(PAGE)

    site = KeySite()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    site.base = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def find_part(server: psutil.Process, part: Part) -> psutil.Process | None:
    """The driver that this server started, or the browser that its driver started; nothing while there is none."""
    with suppress(psutil.Error):
        drivers = [child for child in server.children() if "run-driver" in child.cmdline()]
        found = drivers if part == "driver" else [child for driver in drivers for child in driver.children()]
        return next((child for child in found if child.status() != psutil.STATUS_ZOMBIE), None)
    return None


class Session:
    """One server with a client that works on and on, and the faults it has to live through."""

    def __init__(self, client: Client, process: psutil.Process, site: KeySite, tally: PartsTally, name: str) -> None:
        self.client, self.process, self.site, self.tally = client, process, site, tally
        # Every process this server ever had below it: one that lost its parent is no longer found from here.
        self.family: set[psutil.Process] = set()
        self._name = name
        self._numbers = count()

    async def call(self, agent_id: str, tool: str, **arguments: Any) -> dict[str, Any]:
        """One call; no agent calls a tool twice, so that the ledger can tell each of them."""
        self.tally.sent += 1
        answer = await self.client.call_tool(f"nova.{tool}", {**arguments, "agentId": agent_id})
        self.tally.answered.add(f"{agent_id} nova.{tool}")
        return dict(answer.structured_content or {})

    async def visit(self, path: str, agent_id: str) -> bool:
        """Open a page of the site in a tab of the agent's own."""
        return bool((await self.call(agent_id, "navigate", url=f"{self.site.base}/{path}?n={agent_id}")).get("ok"))

    def next_agent(self) -> str:
        return f"{self._name}-{next(self._numbers)}"

    async def press_keys(self, scope: anyio.CancelScope) -> None:
        """Press one key after the other; a press that failed is never repeated."""
        while not scope.cancel_called:
            agent_id = self.next_agent()
            if await self.visit("key", agent_id):
                pressed = await self.call(agent_id, "click_selector", selector="#key")
                if pressed.get("ok"):
                    self.tally.done.add(agent_id)
                await self.call(agent_id, "tab_close", targetId="active")
            else:
                await anyio.sleep(AGAIN_S)

    async def suffer(self, part: Part, sent: signal.Signals, after_s: float) -> None:
        """Work, lose a process in the middle of it, and measure how long nothing is answered."""
        async with anyio.create_task_group() as group:
            working = anyio.CancelScope()

            async def work() -> None:
                await self.press_keys(working)

            group.start_soon(work)
            await anyio.sleep(after_s)
            while (victim := find_part(self.process, part)) is None:  # noqa: ASYNC110 - no event tells this
                await anyio.sleep(AGAIN_S)
            self.note_family()
            os.kill(victim.pid, sent)
            started = time.monotonic()
            # The call under way gets its answer; no further one is sent beside those that measure.
            working.cancel()
            back_s, visit = await self._back(started)
        settled_s = time.monotonic() - started
        self.tally.faults.append(Fault(part, sent, back_s, self.site.logins.get(visit, False), settled_s))

    def note_family(self) -> None:
        with suppress(psutil.Error):
            self.family.update(self.process.children(recursive=True))

    async def _back(self, started: float) -> tuple[float, str]:
        agent_id = ""
        while (passed := time.monotonic() - started) < GIVEN_UP_S:
            agent_id = self.next_agent()
            if await self.visit("home", agent_id):
                passed = time.monotonic() - started
                await self.call(agent_id, "tab_close", targetId="active")
                return passed, agent_id
            await anyio.sleep(AGAIN_S)
        return passed, agent_id


@asynccontextmanager
async def _session(
    serving: Serving, data_dir: Path, site: KeySite, tally: PartsTally, name: str
) -> AsyncIterator[Session]:
    async with serving(data_dir) as (client, process):
        session = Session(client, process, site, tally, name)
        yield session
        session.note_family()
    tally.servers += 1
    _, alive = await anyio.to_thread.run_sync(lambda: psutil.wait_procs(session.family, timeout=10))
    tally.left += len([one for one in alive if one.status() != psutil.STATUS_ZOMBIE])


async def run_faults(
    serving: Serving, data_dir: Path, site: KeySite, faults: Sequence[tuple[Part, signal.Signals, float]], name: str
) -> PartsTally:
    """Sign in once, then lose one process after the other on servers that share what is kept."""
    tally = PartsTally()
    async with _session(serving, data_dir, site, tally, f"{name}-login") as session:
        await session.visit("login", session.next_agent())
    for start in range(0, len(faults), FAULTS_PER_SERVER):
        async with _session(serving, data_dir, site, tally, f"{name}-{start}") as session:
            for part, sent, after_s in faults[start : start + FAULTS_PER_SERVER]:
                await session.suffer(part, sent, after_s)
    return tally


def plan_faults(each: int, dice: random.Random) -> list[tuple[Part, signal.Signals, float]]:
    planned = [(part, sent, dice.uniform(0.0, LATEST_FAULT_S)) for part, sent in KINDS for _ in range(each)]
    dice.shuffle(planned)
    return planned


def rows_of(faults: Sequence[Fault]) -> list[list[object]]:
    """One row per kind: how many, how soon back, and whether the login was still there."""
    rows: list[list[object]] = []
    for part, sent in KINDS:
        mine = [one for one in faults if (one.part, one.sent) == (part, sent)]
        if mine:
            waits = sorted(one.back_s for one in mine)
            late = len([wait for wait in waits if wait > PROMISED_S])
            there = len([one for one in mine if one.logged_in])
            settled = max(one.settled_s for one in mine)
            login = f"{there} of {len(mine)}"
            rows.append([part, sent.name, len(mine), statistics.median(waits), waits[-1], late, settled, login])
    return rows
