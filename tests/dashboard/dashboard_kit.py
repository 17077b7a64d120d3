"""The dashboard over a real store, without a browser: a clock that stands still, a client, and calls to show."""

import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx

from nova_mcp.calls.model import Answer, CallRequest, ResourceContent
from nova_mcp.core.clock import Ports, SystemIds
from nova_mcp.dashboard.app import build
from nova_mcp.dashboard.tickets import issue
from nova_mcp.evidence.model import Caller, CallOutcome, CallRecord, PageState, ServerId
from nova_mcp.evidence.recorder import describe_server
from nova_mcp.evidence.store import append_call, register_server
from nova_mcp.server.backend import Health
from nova_mcp.server.http.dashboard_home import Home, Keys
from nova_mcp.settings import Settings
from nova_mcp.storage.engine import Database

NOW = 1_790_000_000_000
TOKEN = "operator-token-0123456789"
ROBOT = "robot-token-0123456789"
ENDPOINT = "http://127.0.0.1:27183/mcp"
ORIGIN = "http://127.0.0.1:27183"
SERVER = ServerId("s" * 32)
HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>{{7*7}}"


class StillClock:
    def __init__(self, now_ms: int = NOW) -> None:
        self.at_ms = now_ms

    def now_ms(self) -> int:
        return self.at_ms

    def monotonic_ms(self) -> float:
        return float(self.at_ms)


@dataclass
class Program:
    """What runs behind the pages: a real store, and tools that only remember that they were called."""

    database: Database
    calls: list[CallRequest] = field(default_factory=list)
    answer: Answer = field(default_factory=lambda: Answer({"ok": True}, "done"))
    resources: dict[str, ResourceContent] = field(default_factory=dict)

    async def call(self, request: CallRequest) -> Answer:
        self.calls.append(request)
        return self.answer

    async def read_resource(self, uri: str, principal: str) -> ResourceContent | None:
        return self.resources.get(uri)

    async def warm(self) -> None:
        return None

    def health(self) -> Health:
        return Health("ok", "test", "sqlite", "not started")

    async def close(self, reason: str) -> None:
        return None


@dataclass
class Stand:
    """A dashboard with everything around it in the test's hands."""

    settings: Settings
    clock: StillClock
    program: Program
    home: Home
    app: Any

    @property
    def db(self) -> Database:
        return self.program.database

    @asynccontextmanager
    async def visitor(self, **options: Any) -> AsyncIterator["Visitor"]:
        """A browser that has not signed in."""
        transport = httpx.ASGITransport(self.app)
        headers = {"accept": "text/html", **options.pop("headers", {})}
        async with httpx.AsyncClient(transport=transport, base_url=ORIGIN, headers=headers, **options) as http:
            yield Visitor(http)

    @asynccontextmanager
    async def operator(self) -> AsyncIterator["Visitor"]:
        """A browser that is signed in."""
        async with self.visitor() as visitor:
            answer = await visitor.post("/login", {"token": TOKEN}, csrf=None)
            assert answer.status_code == 303, answer.text
            yield visitor

    def ticket(self, **changes: Any) -> str:
        given = {"secret": TOKEN, "endpoint": ENDPOINT, "now_ms": self.clock.now_ms(), "nonce": "ab" * 16, **changes}
        return issue(**given)

    def add(self, *records: CallRecord) -> None:
        for record in records:
            self.db.write_sync(append_call, record)


class Visitor:
    """A client that behaves like a browser on one of our pages."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self.http = http

    async def get(self, path: str, **options: Any) -> httpx.Response:
        return await self.http.get(f"/dashboard{path}", **options)

    async def page(self, path: str) -> str:
        answer = await self.get(path)
        assert answer.status_code == 200, (path, answer.status_code, answer.text)
        return answer.text

    async def csrf(self) -> str:
        found = re.search(r'name="csrf" content="([^"]+)"', await self.page("/"))
        assert found is not None
        return found[1]

    async def post(
        self, path: str, form: Mapping[str, str] | None = None, csrf: str | None = "", origin: str | None = ORIGIN
    ) -> httpx.Response:
        fields = dict(form or {})
        if csrf is not None:
            fields["csrf"] = csrf or await self.csrf()
        headers = {} if origin is None else {"origin": origin}
        return await self.http.post(f"/dashboard{path}", data=fields, headers=headers)


@contextmanager
def stand(folder: Path, **changes: Any) -> Iterator[Stand]:
    settings = Settings.model_validate({"data_dir": folder, **changes})
    folder.mkdir(parents=True, exist_ok=True)
    clock = StillClock()
    with Database.open(settings.store_url) as db:
        db.write_sync(register_server, replace(describe_server(SERVER, NOW - 60_000, "test")))
        program = Program(db)

        async def running() -> Program:
            return program

        keys = Keys(
            operator="local",
            secret=TOKEN,
            endpoint=ENDPOINT,
            principal_of={TOKEN: "local", ROBOT: "robot"}.get,
            place=str(folder / "mcp.json"),
            since_ms=NOW,
        )
        home = Home(settings, Ports(clock, SystemIds(clock)), keys, running)
        yield Stand(settings, clock, program, home, build(home))


def a_call(
    call_id: str, *, at_ms: int = NOW - 5_000, url: str | None = "https://shop.test/cart", **changes: Any
) -> CallRecord:
    """A recorded call; `changes` replace fields of the record."""
    page = PageState(target_id="t1", sandbox_id="main", url=url, route_key="shop.test/cart", page_epoch=3)
    record = CallRecord(
        call_id=call_id,
        caller=Caller("local", "default", SERVER),
        tool_name="nova.click_selector",
        effect="act",
        started_at_ms=at_ms,
        duration_ms=120,
        outcome=CallOutcome("ok", action_dispatched=True, verification="verified"),
        before=page,
        after=page,
        arguments={"selector": "#buy"},
    )
    return replace(record, **changes)


def numbered(count: int, make: Callable[[int], CallRecord]) -> list[CallRecord]:
    return [make(at) for at in range(count)]
