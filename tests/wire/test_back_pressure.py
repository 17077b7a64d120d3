"""A client that sends without end, or does not read, waits at its own end of the pipe."""

import json
import os
import threading
from collections import deque
from collections.abc import Iterator
from typing import Any

import anyio
import anyio.to_thread
import pytest
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCRequest, JSONRPCResponse

from nova_mcp.server.stdio import streams
from nova_mcp.server.stdio.streams import Unanswered, Wire

REQUESTS = 900


class Counting:
    """A server that starts to answer only once nothing more comes, and counts what it holds unanswered."""

    def __init__(self, waits_for: int) -> None:
        self._waits_for = waits_for
        self._held: deque[str | int] = deque()
        self._started, self._arrived = anyio.Event(), anyio.Event()
        self.received = 0
        self.most = 0

    def create_initialization_options(self) -> None:
        return None

    async def run(self, inbound: Any, outbound: Any, options: None) -> None:
        async with inbound, anyio.create_task_group() as group:
            group.start_soon(self._answer, outbound)
            async for item in inbound:
                assert isinstance(item.message, JSONRPCRequest)
                self._held.append(item.message.id)
                self.received += 1
                self.most = max(self.most, len(self._held))
                if self.received == self._waits_for:
                    self._started.set()
                self._arrived.set()
            self._started.set()

    async def _answer(self, outbound: Any) -> None:
        await self._started.wait()
        await anyio.wait_all_tasks_blocked()
        for _ in range(REQUESTS):
            while not self._held:
                self._arrived = anyio.Event()
                await self._arrived.wait()
            reply = JSONRPCResponse(jsonrpc="2.0", id=self._held[0], result={"padding": "x" * 1000})
            await outbound.send(SessionMessage(reply))
            self._held.popleft()


@pytest.fixture
def pipes() -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    sending, receiving = os.pipe(), os.pipe()
    yield sending, receiving
    for descriptor in (*sending, *receiving):
        try:
            os.close(descriptor)
        except OSError:
            continue


def request(number: int, padding: int = 0) -> bytes:
    body = {"jsonrpc": "2.0", "id": number, "method": "ping", "params": {"pad": "x" * padding}}
    return json.dumps(body).encode() + b"\n"


async def exchange(pipes: Any, server: Counting, ids: list[int], padding: int = 0) -> list[int]:
    (listening, sending), (receiving, answering) = pipes
    answers: list[int] = []

    def send() -> None:
        for number in ids:
            os.write(sending, request(number, padding))

    def read() -> None:
        with open(receiving, "rb", closefd=False) as lines:
            answers.extend(json.loads(next(lines))["id"] for _ in ids)
        os.close(sending)

    served = Wire((listening, answering), 1 << 20, lambda: None, lambda _: None)
    threading.Thread(target=send, daemon=True).start()
    async with anyio.create_task_group() as group:
        group.start_soon(served.run, server)
        await anyio.to_thread.run_sync(read)
    return answers


async def test_no_more_requests_are_read_than_may_wait_for_an_answer(pipes: Any) -> None:
    server = Counting(streams.MOST_UNANSWERED)
    ids = list(range(REQUESTS))
    assert await exchange(pipes, server, ids) == ids
    assert (server.received, server.most) == (REQUESTS, streams.MOST_UNANSWERED)


async def test_requests_that_repeat_an_id_count_one_by_one(pipes: Any) -> None:
    server = Counting(streams.MOST_UNANSWERED)
    assert await exchange(pipes, server, [7] * REQUESTS) == [7] * REQUESTS
    assert server.most == streams.MOST_UNANSWERED


async def test_large_requests_are_limited_by_their_bytes(pipes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "MOST_UNANSWERED_BYTES", 10 * len(request(100, 2000)))
    server = Counting(9)
    ids = list(range(100, 100 + REQUESTS))
    assert await exchange(pipes, server, ids, padding=2000) == ids
    assert server.most <= 10


async def test_a_request_that_is_never_answered_does_not_close_the_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "ROOM_WAIT_S", 0.01)
    unanswered = Unanswered()
    for number in range(streams.MOST_UNANSWERED):
        unanswered.add(number, 1)
    assert not unanswered.has_room(1)
    await unanswered.room(1)
    unanswered.settle(0)
    unanswered.settle(0)
    unanswered.settle("never asked")
    assert unanswered.count == streams.MOST_UNANSWERED - 1
    assert unanswered.has_room(1)
