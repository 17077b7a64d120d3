"""What the dashboard's pages cost as the ledger grows: whole pages, from the request to the last byte of HTML.

Every page is asked for in turn on a small and on a large ledger. Pages read a bounded stretch of the ledger's time
index and counters that do not grow with it, and that is the claim: the last column stays near one.
"""

import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
import httpx
from starlette.types import ASGIApp

from bench.dashboard_rows import SERVERS, SPAN_MS, call_id, grow
from bench.findings import flat
from bench.postgres import private_cluster
from bench.tables import machine, show, tell
from nova_mcp.calls.model import Answer, CallRequest, ResourceContent
from nova_mcp.core.clock import system_ports
from nova_mcp.dashboard.app import build
from nova_mcp.evidence.model import ServerId
from nova_mcp.server.http.dashboard_home import Home, Keys
from nova_mcp.settings import Settings
from nova_mcp.storage.engine import Database

SIZES = (10_000, 100_000)
LONG_SIZES = (10_000, 1_000_000)
ROUNDS = 30
AIM = 2.0
ROOT = "http://127.0.0.1:27183"
TOKEN = "a-token-for-measuring"

SERVER = ServerId(f"{0:032x}")


@dataclass(frozen=True, slots=True)
class Before:
    """What a page is asked of: so many rows up to a moment, and how far its live list has come."""

    rows: int
    end_ms: int
    client: httpx.AsyncClient
    live: str


Address = Callable[[Before], str]
PAGES: dict[str, Address] = {
    "start page": lambda at: "/",
    "live, nothing new": lambda at: at.live,
    "newest calls": lambda at: "/calls",
    "calls two weeks back": lambda at: f"/calls?before={at.end_ms - SPAN_MS // 2}.1.{SERVER}",
    "calls, filter that fits": lambda at: "/calls?tool=click_selector&agent=agent1",
    "calls, filter that fits nothing": lambda at: "/calls?host=nowhere.example",
    "one call": lambda at: f"/calls/{call_id(SERVER, at.rows // SERVERS // 2)}",
    "statistics, 24 hours": lambda at: "/statistics?window=24h",
    "statistics, 30 days": lambda at: "/statistics?window=30d",
    "controls": lambda at: "/controls",
}


class _Store:
    """A program that has a store and nothing else."""

    def __init__(self, database: Database) -> None:
        self.database = database

    async def call(self, request: CallRequest) -> Answer:
        raise AssertionError("no page of the dashboard calls a tool")

    async def read_resource(self, uri: str, principal: str) -> ResourceContent | None:
        return None


@asynccontextmanager
async def _opened(
    databases: list[Database], sizes: tuple[int, ...], folder: Path, end_ms: int
) -> AsyncIterator[list[Before]]:
    """A signed-in client per store, with its live list up to date."""
    async with AsyncExitStack() as stack:
        found: list[Before] = []
        for database, rows in zip(databases, sizes, strict=True):
            transport = httpx.ASGITransport(_app(database, folder))
            client = await stack.enter_async_context(httpx.AsyncClient(transport=transport, base_url=ROOT))
            await client.post("/dashboard/login", data={"token": TOKEN}, headers={"origin": ROOT})
            news = (await client.get("/dashboard/live")).json()
            found.append(Before(rows, end_ms, client, f"/live?feed={news['feed']}&after={news['last']}"))
        yield found


async def _measured(
    databases: list[Database], sizes: tuple[int, ...], folder: Path, end_ms: int
) -> dict[str, list[float]]:
    """Median milliseconds by page and size; sizes take turns, so that a busy moment hits them alike."""
    took: dict[str, list[list[float]]] = {name: [[] for _ in sizes] for name in PAGES}
    async with _opened(databases, sizes, folder, end_ms) as stores:
        for name, address in PAGES.items():
            for round_no in range(ROUNDS + 1):
                for column, before in zip(took[name], stores, strict=True):
                    began = time.perf_counter()
                    answer = await before.client.get(f"/dashboard{address(before)}")
                    if answer.status_code != 200:
                        raise RuntimeError(f"{name}: {answer.status_code}")
                    if round_no:
                        column.append((time.perf_counter() - began) * 1000)
    return {name: [statistics.median(one) for one in columns] for name, columns in took.items()}


def _app(database: Database, folder: Path) -> ASGIApp:
    async def program() -> _Store:
        return _Store(database)

    keys = Keys("local", TOKEN, f"{ROOT}/mcp", {TOKEN: "local"}.get, "mcp.json", 0)
    return build(Home(Settings(data_dir=folder), system_ports(), keys, program))


def _told(label: str, urls: list[str], sizes: tuple[int, ...], folder: Path) -> list[list[object]]:
    end_ms = time.time_ns() // 1_000_000
    with ExitStack() as stack:
        databases = [stack.enter_context(Database.open(url)) for url in urls]
        for database, size in zip(databases, sizes, strict=True):
            grow(database, size, end_ms)
        found = anyio.run(_measured, databases, sizes, folder, end_ms)
    rows: list[list[object]] = [[name, *medians, medians[-1] / medians[0]] for name, medians in found.items()]
    show(
        f"Dashboard pages, {label}: median ms by rows of the ledger ({ROUNDS} each)",
        ["page", *(f"{size:,}" for size in sizes), f"last / first (aim <= {AIM:g})"],
        rows,
    )
    for name, medians in found.items():
        tell(flat("D1", f"{name}, {label}, by ledger rows", medians, sizes, LONG_SIZES[-1], ROUNDS))
    return rows


def main(*, long: bool) -> int:
    print(f"dashboard · {machine()}\n")
    sizes = LONG_SIZES if long else SIZES
    with tempfile.TemporaryDirectory() as folder:
        rows = _told("SQLite", [f"sqlite:///{folder}/nova{size}.db" for size in sizes], sizes, Path(folder))
        with private_cluster("shared_buffers = 256MB\nmax_wal_size = 4GB\n") as cluster:
            rows += _told("PostgreSQL", [cluster.fresh_database() for _ in sizes], sizes, Path(folder))
    return int(any(isinstance(row[-1], float) and row[-1] > AIM for row in rows))
