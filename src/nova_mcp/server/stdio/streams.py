"""Standard input and output as message streams; what is not a message is answered here and never reaches the server."""

import concurrent.futures
import logging
import os
import queue
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import anyio
import anyio.from_thread
import anyio.lowlevel
from anyio.lowlevel import EventLoopToken
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.lowlevel import Server
from mcp.shared.message import SessionMessage
from mcp_types import (
    INTERNAL_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)

from nova_mcp.server.stdio.framing import LineSplitter, Oversized, Rejected, decode, reject_oversized

if sys.platform != "win32":
    import fcntl

log = logging.getLogger(__name__)

Inbound = SessionMessage | Exception
CHUNK_BYTES = 64 * 1024
# Requests that were read and have no answer yet. Beyond either number nothing more is read, so a client that sends
# without end, or does not read, waits at its own end of the pipe instead of filling this process.
MOST_UNANSWERED = 256
MOST_UNANSWERED_BYTES = 64 * 1024 * 1024
# A request that will never be answered must not close the pipe for good.
ROOM_WAIT_S = 30.0


class Unanswered:
    """The requests that were read and have no answer on the wire yet; ids may repeat."""

    def __init__(self) -> None:
        self._sizes: dict[str | int, deque[int]] = {}
        self._changed = anyio.Event()
        self.count = 0
        self.bytes = 0

    def add(self, request_id: str | int, size: int) -> None:
        self._sizes.setdefault(request_id, deque()).append(size)
        self.count += 1
        self.bytes += size

    def settle(self, request_id: str | int) -> None:
        """One request of that id needs no answer any more."""
        sizes = self._sizes.get(request_id)
        if sizes is None:
            return
        self.count -= 1
        self.bytes -= sizes.popleft()
        if not sizes:
            del self._sizes[request_id]
        changed, self._changed = self._changed, anyio.Event()
        changed.set()

    def has_room(self, size: int) -> bool:
        """Whether another request may be read; one alone may be of any size."""
        return not self.count or (self.count < MOST_UNANSWERED and self.bytes + size <= MOST_UNANSWERED_BYTES)

    async def room(self, size: int) -> None:
        """Return once another request may be read, or none was answered for too long."""
        while not self.has_room(size):
            changed = self._changed
            with anyio.move_on_after(ROOM_WAIT_S):
                await changed.wait()
            if not changed.is_set():
                log.warning("%d requests have no answer yet; reading on all the same", self.count)
                return

    async def none_left(self) -> None:
        while self.count:
            await self._changed.wait()


class Wire:
    """Both directions run on daemon threads of their own: a pipe that blocks can't keep the process from ending."""

    def __init__(
        self,
        descriptors: tuple[int, int],
        max_bytes: int,
        on_written: Callable[[], None],
        on_broken: Callable[[str], None],
    ) -> None:
        self._in, self._out = descriptors
        self._max_bytes = max_bytes
        self._on_written = on_written
        self._on_broken = on_broken
        self._lines: queue.SimpleQueue[tuple[bytes, Callable[[OSError | None], None]]] = queue.SimpleQueue()
        self._unanswered = Unanswered()

    async def run(self, server: Server[Any]) -> None:
        """Serve until the input ends."""
        inbound, inbound_out = anyio.create_memory_object_stream[Inbound](0)
        outbound, outbound_out = anyio.create_memory_object_stream[SessionMessage](0)
        token = anyio.lowlevel.current_token()

        def read() -> None:
            # The loop may end while this thread waits for input; there is nobody left to tell then.
            with suppress(RuntimeError, concurrent.futures.CancelledError):
                for item in lines_of(self._in):
                    anyio.from_thread.run(self._take, item, inbound, outbound, token=token)
                anyio.from_thread.run_sync(inbound.close, token=token)

        threading.Thread(target=read, name="nova-input", daemon=True).start()
        threading.Thread(target=self._write, name="nova-output", daemon=True).start()
        async with anyio.create_task_group() as tg:
            tg.start_soon(self._write_all, outbound_out)
            try:
                await server.run(inbound_out, outbound, server.create_initialization_options())
            finally:
                outbound.close()
                inbound.close()

    async def answered(self, grace_s: float) -> None:
        """Wait until every request that was read has its answer on the wire."""
        with anyio.move_on_after(grace_s):
            await self._unanswered.none_left()

    async def _take(
        self,
        item: bytes | Oversized,
        inbound: MemoryObjectSendStream[Inbound],
        outbound: MemoryObjectSendStream[SessionMessage],
    ) -> None:
        if isinstance(item, bytes) and not item.strip():
            return
        message = reject_oversized(item) if isinstance(item, Oversized) else decode(item, self._max_bytes)
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            if isinstance(message, Rejected):
                log.warning("refused a message: %s", message.message)
                error = ErrorData(code=message.code, message=message.message, data={"reasonCode": message.reason_code})
                await outbound.send(SessionMessage(JSONRPCError(jsonrpc="2.0", id=message.request_id, error=error)))
            else:
                await self._expect(message, len(item) if isinstance(item, bytes) else item.size)
                await inbound.send(SessionMessage(message))

    async def _expect(self, message: JSONRPCMessage, size: int) -> None:
        if isinstance(message, JSONRPCRequest):
            await self._unanswered.room(size)
            self._unanswered.add(message.id, size)
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            # A cancelled request gets no answer.
            self._settle((message.params or {}).get("requestId"))

    def _settle(self, request_id: object) -> None:
        if isinstance(request_id, str | int):
            self._unanswered.settle(request_id)

    async def _write_all(self, outbound: MemoryObjectReceiveStream[SessionMessage]) -> None:
        token = anyio.lowlevel.current_token()
        async with outbound:
            async for item in outbound:
                message = item.message
                line = encode(message)
                if not await self._hand_over(line, token):
                    self._on_broken("output closed")
                    return
                if isinstance(message, JSONRPCResponse | JSONRPCError):
                    self._settle(message.id)
                self._on_written()

    async def _hand_over(self, line: bytes, token: EventLoopToken) -> bool:
        written, failures = anyio.Event(), list[OSError]()

        def report(failure: OSError | None) -> None:
            if failure is not None:
                failures.append(failure)
            with suppress(RuntimeError, concurrent.futures.CancelledError):
                anyio.from_thread.run_sync(written.set, token=token)

        self._lines.put((line, report))
        await written.wait()
        return not failures

    def _write(self) -> None:
        while True:
            line, report = self._lines.get()
            view = memoryview(line)
            try:
                while view:
                    view = view[os.write(self._out, view) :]
            except OSError as error:
                report(error)
                return
            report(None)


def encode(message: JSONRPCMessage) -> bytes:
    """A message as a line; one that can't be written is replaced, so that its caller does not wait for ever."""
    try:
        return message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
    except ValueError:
        log.exception("a message could not be written")
        request_id = message.id if isinstance(message, JSONRPCResponse | JSONRPCError) else None
        error = ErrorData(code=INTERNAL_ERROR, message="The answer could not be written; the log has the details")
        return JSONRPCError(jsonrpc="2.0", id=request_id, error=error).model_dump_json().encode() + b"\n"


def lines_of(descriptor: int) -> Iterator[bytes | Oversized]:
    splitter = LineSplitter()
    # A terminal that goes away fails to read instead of ending.
    with suppress(OSError):
        while chunk := os.read(descriptor, CHUNK_BYTES):
            yield from splitter.feed(chunk)
    if (rest := splitter.rest()) is not None:
        yield rest


def claim_standard_streams() -> tuple[int, int]:
    """Move the wire to private descriptors, for good: children read an empty input, stray prints join the log."""
    wire = _private(0), _private(1)
    if sys.stdout is not None:
        sys.stdout.flush()
    empty = os.open(os.devnull, os.O_RDWR)
    os.dup2(empty, 0)
    try:
        os.dup2(2, 1)
    except OSError:
        os.dup2(empty, 1)
    os.close(empty)
    return wire


def _private(descriptor: int) -> int:
    if sys.platform == "win32":
        return os.dup(descriptor)
    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3)
