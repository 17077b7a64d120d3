"""Repeats, races and crashes around one commit: the real verifier, two servers on one store, a real site, no browser.

A browser does a handful of trials a second, and what could double a commit are the decisions around the press. Here
only the page is scripted: pressing is a request to the local site, and what the page shows is what the site answered.
"""

import random
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import anyio
import httpx
from tests.pages.faults.site import FaultSite

from nova_mcp.core.clock import system_ports
from nova_mcp.errors import NovaError
from nova_mcp.evidence.model import Caller, CallOutcome, CallRecord, ServerId
from nova_mcp.evidence.recorder import Recorder, describe_server
from nova_mcp.storage.engine import Database
from nova_mcp.verification.coordinator import Coordinator
from nova_mcp.verification.goals.register import Goals
from nova_mcp.verification.model import (
    Assertion,
    AssertionSet,
    Contract,
    Fact,
    FactAddress,
    Reading,
    Sample,
    Seen,
    SentRequest,
)
from nova_mcp.verification.request import Ask, Facing, ResolvedEarlier
from nova_mcp.verification.store import settle_recovered
from nova_mcp.verification.verifier import Transition, Verifier

WORKERS: Final = 24
SAID: Final = "dom.#said@text"
CONTRACT: Final = Contract(
    success=AssertionSet(all=(Assertion(SAID, "eq", "saved"),)), window_ms=500, hold_ms=0, action_kind="submit_form"
)


@dataclass(slots=True)
class Page:
    """One agent's page: what it shows, and what it has sent."""

    url: str
    http: httpx.AsyncClient
    said: str = ""
    requests: list[SentRequest] = field(default_factory=list)
    news: anyio.Event = field(default_factory=anyio.Event)
    observed_at_ms: int | None = None

    def reading(self, addresses: Collection[FactAddress]) -> dict[FactAddress, Fact]:
        return {address: Seen(self.said, self.said) for address in addresses}

    async def press(self, nonce: str) -> None:
        """The one input: a form that posts in the background and says what came of it."""
        self.requests = [SentRequest("POST", self.url)]
        try:
            answer = await self.http.post(self.url, data={"nonce": nonce})
        except httpx.HTTPError:
            self.requests = [SentRequest("POST", self.url, failed=True)]
        else:
            self.requests = [SentRequest("POST", self.url, status=answer.status_code)]
            self.said = "saved" if answer.is_success else "refused"
        self.news.set()
        self.news = anyio.Event()


@dataclass(slots=True)
class ScriptedFollower:
    page: Page
    addresses: Collection[FactAddress]
    baseline: Reading
    document: int = 1

    def pressed(self) -> None:
        return None

    async def next(self, wait_ms: float) -> Sample | None:
        with anyio.move_on_after(wait_ms / 1000):
            await self.page.news.wait()
            return await self.look()
        return None

    async def look(self) -> Sample:
        reading = self.page.reading(self.addresses)
        return Sample(anyio.current_time() * 1000, reading, 1, tuple(self.page.requests), changed=bool(self.page.said))


@dataclass(frozen=True, slots=True)
class ScriptedWitness:
    page: Page

    async def read(self, addresses: Collection[FactAddress]) -> Reading:
        return self.page.reading(addresses)

    @asynccontextmanager
    async def follow(self, addresses: Collection[FactAddress]) -> AsyncIterator[ScriptedFollower]:
        yield ScriptedFollower(self.page, addresses, self.page.reading(addresses))


@dataclass(frozen=True, slots=True)
class Claimed:
    """What a call answered: whether it sent anything, and what it says came of it."""

    sent: bool
    verdict: str
    transition_id: str


class Died(Exception):
    """The server is gone in mid-call; nobody answers."""


@dataclass(frozen=True, slots=True)
class Server:
    """A server without a browser: its own chain and coordinator on the shared store."""

    server_id: ServerId
    verifier: Verifier
    recorder: Recorder

    async def commit(self, page: Page, key: str, *, retry_of: str | None = None, die: str | None = None) -> Claimed:
        """One guarded call; `die` names the moment at which the server is killed."""
        caller = Caller("bench", "agent", self.server_id)
        call_id = self.verifier.ports.ids.call_id()
        ask = Ask(caller, call_id, "nova.guarded_submit_form", "tab_1", CONTRACT, retry_of)
        transition = self.verifier.begin(ask)
        facing = Facing(
            witness=ScriptedWitness(page),
            is_commit=True,
            host="127.0.0.1",
            origin="http://127.0.0.1",
            control="form",
            fields=key,
            element="e1",
            document=1,
            observed_at_ms=page.observed_at_ms,
        )
        dispatched: bool | None = None
        try:
            await transition.bind()
            await transition.check(facing)
            await transition.commit(lambda intent: self._record(intent, caller, "intent", "pending"))
            dispatched = True
            await self._send(page, transition, die)
        except ResolvedEarlier as done:
            return Claimed(sent=False, verdict="already_done", transition_id=done.commit.transition_id)
        except NovaError as refused:
            if dispatched is None:
                earlier = str(refused.details.get("earlierTransitionId", ""))
                return Claimed(sent=False, verdict=refused.reason_code, transition_id=earlier)
            raise
        finally:
            await transition.end()
        record = self._record(call_id, caller, "call", "ok", closes=transition.transition_id)
        await self.recorder.record(record, also=(lambda conn, closing, link: transition.close(conn, closing),))
        told = transition.told()
        verdict = told.verification_status if told else "none"
        return Claimed(sent=True, verdict=verdict, transition_id=transition.transition_id)

    async def _send(self, page: Page, transition: Transition, die: str | None) -> None:
        if die == "before":
            raise Died
        async with anyio.create_task_group() as group:
            group.start_soon(page.press, transition.transition_id)
            if die is None:
                await transition.follow(_silent)
        if die == "after":
            raise Died

    def _record(self, call_id: str, caller: Caller, kind: str, outcome: str, closes: str | None = None) -> CallRecord:
        now = self.verifier.ports.clock.now_ms()
        dispatched = True if kind == "call" else None
        ended = CallOutcome(outcome, action_dispatched=dispatched)  # type: ignore[arg-type]
        return CallRecord(call_id, caller, "nova.guarded_submit_form", "commit", now, 0, ended, kind, closes=closes)  # type: ignore[arg-type]


async def _silent(elapsed_ms: float) -> None:
    return None


@asynccontextmanager
async def servers(folder: Path, count: int = 2) -> AsyncIterator[list[Server]]:
    async with AsyncExitStack() as stack:
        made = []
        for _ in range(count):
            db = Database.open(f"sqlite:///{folder / 'races.db'}")
            stack.push_async_callback(db.close)
            made.append(await started(db))
        yield made


async def started(db: Database) -> Server:
    """A server with a chain of its own on that store."""
    ports = system_ports()
    server_id = ServerId(ports.ids.token(16))
    recorder = Recorder(db, ports, server_id, also=(settle_recovered,))
    await recorder.start(describe_server(server_id, ports.clock.now_ms(), "bench"))
    return Server(server_id, Verifier(db, recorder, ports, Coordinator(ports.clock), Goals(db, ports)), recorder)


@dataclass(frozen=True, slots=True)
class RaceOutcome:
    """One trial: how often the site received the commit, and how often it should have."""

    kind: str
    received: int
    most: int
    asked: int
    answers: tuple[Claimed, ...]

    @property
    def duplicated(self) -> bool:
        return self.received > self.most

    @property
    def dropped(self) -> bool:
        return len([one for one in self.answers if one.sent and one.verdict == "verified_success"]) > self.received

    @property
    def lost(self) -> bool:
        return self.received < self.asked


@dataclass(frozen=True, slots=True)
class Ring:
    """What a trial works with."""

    site: FaultSite
    http: httpx.AsyncClient
    servers: list[Server]
    dice: random.Random

    def page(self, case: str, key: str) -> Page:
        return Page(f"{self.site.base_url}/do/{case}/{key}", self.http)

    def outcome(self, kind: str, key: str, most: int, asked: int, *answers: Claimed) -> RaceOutcome:
        return RaceOutcome(kind, self.site.count(key), most, asked, answers)


async def _both(kind: str, ring: Ring, key: str, one: Server, other: Server) -> RaceOutcome:
    answers: list[Claimed] = []

    async def call(server: Server) -> None:
        await anyio.sleep(ring.dice.random() / 100)
        answers.append(await server.commit(ring.page("ok_fetch", key), key))

    async with anyio.create_task_group() as group:
        group.start_soon(call, one)
        group.start_soon(call, other)
    return ring.outcome(kind, key, 1, 1, *answers)


async def one_server_twice_at_once(ring: Ring, key: str) -> RaceOutcome:
    return await _both("one_server_twice_at_once", ring, key, ring.servers[0], ring.servers[0])


async def two_servers_at_once(ring: Ring, key: str) -> RaceOutcome:
    return await _both("two_servers_at_once", ring, key, ring.servers[0], ring.servers[1])


async def blind_repeat(ring: Ring, key: str) -> RaceOutcome:
    page = ring.page("ok_fetch", key)
    first = await ring.servers[0].commit(page, key)
    again = await ring.servers[ring.dice.randrange(2)].commit(page, key)
    return ring.outcome("blind_repeat", key, 1, 1, first, again)


async def answer_lost_blind_repeat(ring: Ring, key: str) -> RaceOutcome:
    """The site has it, the page never hears; the agent calls again without looking."""
    first = await ring.servers[0].commit(ring.page("lost_committed", key), key)
    again = await ring.servers[ring.dice.randrange(2)].commit(ring.page("lost_committed", key), key)
    return ring.outcome("answer_lost_blind_repeat", key, 1, 1, first, again)


async def answer_lost_then_looked(ring: Ring, key: str) -> RaceOutcome:
    """The agent looks before it repeats, and repeats only what is not there."""
    case = ring.dice.choice(("lost_committed", "lost_uncommitted"))
    server = ring.servers[ring.dice.randrange(2)]
    first = await server.commit(ring.page(case, key), key)
    return await _careful("answer_lost_then_looked", ring, key, server, first)


async def _careful(kind: str, ring: Ring, key: str, server: Server, first: Claimed) -> RaceOutcome:
    fresh = ring.page("ok_fetch", key)
    fresh.observed_at_ms = server.verifier.ports.clock.now_ms() + 1
    if ring.site.committed(key):
        return RaceOutcome(kind, ring.site.committed(key), 1, 1, (first,))
    blind = await server.commit(ring.page("ok_fetch", key), key)
    again = await server.commit(fresh, key, retry_of=first.transition_id or blind.transition_id)
    return RaceOutcome(kind, ring.site.committed(key), 1, 1, (first, blind, again))


async def _dies(ring: Ring, key: str) -> Server:
    """A server of its own dies in mid-commit; the survivor explains it."""
    survivor, victim = ring.servers[0], await started(ring.servers[1].verifier.db)
    moment = ring.dice.choice(("before", "after"))
    try:
        await victim.commit(ring.page("ok_fetch", key), key, die=moment)
    except* Died:
        pass
    await survivor.recorder.recover(alive=lambda row: row.server_id != victim.server_id)
    return survivor


async def died_blind_repeat(ring: Ring, key: str) -> RaceOutcome:
    survivor = await _dies(ring, key)
    again = await survivor.commit(ring.page("ok_fetch", key), key)
    return ring.outcome("died_blind_repeat", key, 1, 0, again)


async def died_then_looked(ring: Ring, key: str) -> RaceOutcome:
    survivor = await _dies(ring, key)
    blind = await survivor.commit(ring.page("ok_fetch", key), key)
    return await _careful("died_then_looked", ring, key, survivor, blind)


Kind = Callable[[Ring, str], Awaitable[RaceOutcome]]
KINDS: dict[Kind, int] = {
    one_server_twice_at_once: 4,
    two_servers_at_once: 4,
    blind_repeat: 3,
    answer_lost_blind_repeat: 2,
    answer_lost_then_looked: 2,
    died_blind_repeat: 2,
    died_then_looked: 2,
}


async def race_trials(site: FaultSite, count: int, seed: int) -> list[RaceOutcome]:
    """That many trials, many at a time."""
    dice = random.Random(seed)
    drawn = dice.choices(list(KINDS), list(KINDS.values()), k=count)
    queue = list(enumerate(drawn))
    out: list[RaceOutcome] = []

    async def worker(ring: Ring) -> None:
        while queue:
            number, kind = queue.pop()
            out.append(await kind(ring, f"r{number}"))

    with tempfile.TemporaryDirectory() as folder:
        limits = httpx.Limits(max_connections=2 * WORKERS, max_keepalive_connections=0)
        async with (
            servers(Path(folder)) as running,
            httpx.AsyncClient(limits=limits, timeout=20, trust_env=False) as http,
            anyio.create_task_group() as group,
        ):
            for _ in range(WORKERS):
                group.start_soon(worker, Ring(site, http, running, dice))
    return out
