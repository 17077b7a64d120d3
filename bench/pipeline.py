"""What the pipeline costs: per call, at start, in tokens, on the write path, and in memory."""

import json
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import anyio
import psutil
from bpe_openai import get_encoding
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from bench.findings import at_least, at_most
from bench.results import Finding
from bench.tables import machine, quantile, show, tell
from nova_mcp.app import build
from nova_mcp.calls.model import CallRequest
from nova_mcp.core.clock import system_ports
from nova_mcp.evidence.model import Caller, CallOutcome, CallRecord, PageState, ServerId
from nova_mcp.evidence.store import ServerInfo, append_call, register_server
from nova_mcp.server.manifest import load_manifest
from nova_mcp.settings import load_settings
from nova_mcp.storage.engine import Database

HERE = Path(__file__).parent


def _bare() -> StdioServerParameters:
    return StdioServerParameters(command=sys.executable, args=[str(HERE / "bare_server.py")])


def _nova(data_dir: str) -> StdioServerParameters:
    return StdioServerParameters(
        command=str(Path(sys.executable).with_name("nova")), args=["serve", "--data-dir", data_dir]
    )


async def _cold(server: StdioServerParameters) -> float:
    started = time.perf_counter()
    async with Client(stdio_client(server), mode="legacy") as client:
        await client.list_tools()
        return (time.perf_counter() - started) * 1000


async def _cold_start(runs: int) -> None:
    bare: list[float] = []
    nova: list[float] = []
    with tempfile.TemporaryDirectory() as data_dir:
        await _cold(_bare())
        await _cold(_nova(data_dir))
        for _ in range(runs):
            bare.append(await _cold(_bare()))
            nova.append(await _cold(_nova(data_dir)))
    difference = statistics.median(nova) - statistics.median(bare)
    rows = [
        ["bare SDK", runs, statistics.median(bare), min(bare), max(bare)],
        ["nova serve", runs, statistics.median(nova), min(nova), max(nova)],
        ["difference (aim <= 150)", runs, difference, "", ""],
    ]
    show("Cold start to tools/list, ms (interleaved)", ["server", "n", "median", "min", "max"], rows)
    tell(at_most("S8", "start to `tools/list`, over the bare SDK", difference, 150, runs))


async def _per_call(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as data_dir:
        async with (
            Client(stdio_client(_bare()), mode="legacy") as bare,
            Client(stdio_client(_nova(data_dir)), mode="legacy") as nova,
        ):
            timings: dict[str, list[float]] = {"bare SDK ping": [], "nova.tabs": []}
            for index in range(rounds + 50):
                for label, client, name in (("bare SDK ping", bare, "ping"), ("nova.tabs", nova, "nova.tabs")):
                    started = time.perf_counter()
                    answer = await client.call_tool(name, {})
                    took = (time.perf_counter() - started) * 1000
                    if answer.is_error:
                        raise RuntimeError(f"{name} failed: {answer.content}")
                    if index >= 50:
                        timings[label].append(took)
    rows = [[label, len(values), quantile(values, 0.5), quantile(values, 0.95)] for label, values in timings.items()]
    added = quantile(timings["nova.tabs"], 0.5) - quantile(timings["bare SDK ping"], 0.5)
    rows.append(["overhead (aim <= 3)", rounds, added, ""])
    show("One call without page work over stdio, ms (interleaved)", ["call", "n", "p50", "p95"], rows)
    tell(at_most("S1", "a call without page work, over the bare SDK, p50", added, 3, rounds))


def _tokens() -> None:
    encoding = get_encoding("o200k_base")
    rows = []
    for profile in ("core", "all"):
        tools = load_manifest().profile(profile)
        listed = [
            {
                "name": tool.name,
                "title": tool.title,
                "description": tool.description,
                "inputSchema": tool.input_schema,
                "annotations": tool.annotations,
            }
            for tool in tools
        ]
        count = len(encoding.encode(json.dumps(listed, ensure_ascii=False, separators=(",", ":"))))
        rows.append([f"{profile}{' (aim <= 3000)' if profile == 'core' else ''}", len(tools), count])
        if profile == "core":
            tell(at_most("S4", "core `tools/list`", count, 3000, len(tools), "tokens"))
    show("tools/list, o200k tokens", ["profile", "tools", "tokens"], rows)


def _record(server_id: str, number: int) -> CallRecord:
    ports = system_ports()
    page = PageState("tab_1", "A", "https://shop.example/orders/42", "shop.example/orders/{id}", 3)
    return CallRecord(
        call_id=ports.ids.call_id(),
        caller=Caller("local", f"agent-{number % 7}", ServerId(server_id)),
        tool_name="nova.perceive",
        effect="read",
        started_at_ms=ports.clock.now_ms(),
        duration_ms=12,
        outcome=CallOutcome("ok"),
        before=page,
        after=page,
        arguments={"targetId": "active", "mode": "summary", "maxTokens": 1200},
    )


def _register(db: Database, name: str) -> str:
    server_id = f"{name}-{os.getpid()}"
    info = ServerInfo(ServerId(server_id), 0, os.getpid(), 0, "bench", "bench")
    db.write_sync(register_server, info)
    return server_id


async def _write_path(count: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        db = Database.open(f"sqlite:///{folder}/nova.db")
        server_id = _register(db, "solo")
        for number in range(200):
            await db.write(append_call, _record(server_id, number))
        timings: list[float] = []
        begun = time.perf_counter()
        for number in range(count):
            started = time.perf_counter()
            await db.write(append_call, _record(server_id, number))
            timings.append((time.perf_counter() - started) * 1000)
        total = time.perf_counter() - begun
        await db.close()
    row = [
        "aim >= 1000/s, p99 <= 10",
        count,
        count / total,
        quantile(timings, 0.5),
        quantile(timings, 0.99),
        max(timings),
    ]
    show("Write path, SQLite, one transaction per call", ["", "n", "calls/s", "p50 ms", "p99 ms", "max ms"], [row])
    tell(at_least("S6", "evidence written, one transaction per call", count / total, 1000, count, "calls/s"))
    tell(at_most("S6", "evidence written, p99", quantile(timings, 0.99), 10, count))


def _steady_writer(path: str, seconds: float, rate: int, out: "multiprocessing.Queue[tuple[list[float], int]]") -> None:
    async def go() -> tuple[list[float], int]:
        db = Database.open(f"sqlite:///{path}")
        server_id = _register(db, "shared")
        timings: list[float] = []
        errors = 0
        for number in range(int(seconds * rate)):
            due = time.perf_counter() + 1 / rate
            started = time.perf_counter()
            try:
                await db.write(append_call, _record(server_id, number))
            except Exception:  # noqa: BLE001 - counted, whatever it is
                errors += 1
            timings.append((time.perf_counter() - started) * 1000)
            await anyio.sleep(max(0.0, due - time.perf_counter()))
        await db.close()
        return timings, errors

    out.put(anyio.run(go))


def _four_processes(seconds: float) -> None:
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/nova.db"
        Database.open(f"sqlite:///{path}").close_sync()
        out = context.Queue()
        writers = [context.Process(target=_steady_writer, args=(path, seconds, 20, out)) for _ in range(4)]
        for writer in writers:
            writer.start()
        results = [out.get(timeout=seconds + 60) for _ in writers]
        for writer in writers:
            writer.join()
    timings = [value for values, _ in results for value in values]
    errors = sum(count for _, count in results)
    row = [
        "aim p99 <= 20, 0 errors",
        len(timings),
        quantile(timings, 0.5),
        quantile(timings, 0.99),
        max(timings),
        errors,
    ]
    show("Four processes x 20 calls/s on one SQLite file", ["", "n", "p50 ms", "p99 ms", "max ms", "errors"], [row])
    tell(at_most("S6", "four processes on one file, 20 calls/s each, p99", quantile(timings, 0.99), 20, len(timings)))
    tell(at_most("S6", "four processes on one file, errors", errors, 0, len(timings), ""))


async def _memory(calls: int) -> None:
    process = psutil.Process()
    rows: list[Sequence[object]] = []
    with tempfile.TemporaryDirectory() as folder:
        nova = await build(load_settings({"data_dir": folder}, environ={}))
        request = CallRequest("nova.tabs", {}, "local")
        bad = CallRequest("nova.tabs", {"nope": 1}, "local")
        started = time.perf_counter()
        for number in range(calls + 1):
            if number % (calls // 10) == 0:
                rows.append([number, process.memory_info().rss / 1e6, process.num_fds(), time.perf_counter() - started])
            await nova.call(bad if number % 10 == 0 else request)
        await nova.close("done")
    show(f"Memory over {calls} calls in one process", ["calls", "rss MB", "handles", "seconds"], rows)
    _grown(rows)


def _grown(rows: Sequence[Sequence[object]]) -> None:
    """From the first tenth on, when everything has been imported and every cache has filled."""
    (calls, before, handles), (last, after, more) = (row[:3] for row in (rows[1], rows[-1]))
    tell(
        Finding(
            aim="R2",
            what="memory and handles after the first tenth of the calls",
            measured=f"{before:.1f} → {after:.1f} MB, {handles} → {more} handles",
            bound="",
            n=int(str(last)) - int(str(calls)),
            met=None,
        )
    )


def main(*, long: bool) -> int:
    print(f"pipeline · {machine()}\n")
    _tokens()
    anyio.run(_cold_start, 15 if long else 7)
    anyio.run(_per_call, 1000 if long else 300)
    anyio.run(_write_path, 20_000 if long else 5_000)
    _four_processes(20 if long else 8)
    anyio.run(_memory, 100_000 if long else 10_000)
    return 0
