"""Writes envelopes to the ledger, whatever happens to the task that asked for it."""

import os
import socket
from collections.abc import Callable, Sequence
from pathlib import Path

import anyio
import psutil
from sqlalchemy import Connection

from nova_mcp.clock import Ports
from nova_mcp.observation import store
from nova_mcp.observation.model import CallRecord, Link, ServerId
from nova_mcp.observation.store import ServerInfo, ServerRow, StoredCall
from nova_mcp.processes import living, started_ms
from nova_mcp.storage.engine import Database
from nova_mcp.storage.errors import StoreUnavailable

# What has to wait until everything else of the transaction is written: rows that every call of every server touches.
Last = Callable[[Connection], None]
Also = Callable[[Connection, CallRecord, Link], Last | None]
# Decides in the record's own transaction what the call came to; the record it returns is the one that is written.
Decide = Callable[[Connection, CallRecord], CallRecord]

# A process on a machine that cannot be looked at counts as gone after this long without a sign of life.
FOREIGN_SILENCE_MS = 15 * 60_000
HEARTBEAT_S = 120


class Recorder:
    """The only writer of the ledger; derived rows go into the same transaction through `also`."""

    def __init__(
        self,
        db: Database,
        ports: Ports,
        server_id: ServerId,
        also: Sequence[Also] = (),
        missed: Callable[[CallRecord], None] | None = None,
        first: Callable[[Connection, CallRecord], None] | None = None,
    ) -> None:
        self._db = db
        self._ports = ports
        self._server_id = server_id
        self._also = tuple(also)
        # Told of a record that could not be written, so that nobody takes the gap for an absence.
        self._missed = missed
        # Writes what earlier records left to be known, before this one's call is decided by what is known.
        self._first = first

    @property
    def server_id(self) -> ServerId:
        return self._server_id

    async def start(self, info: ServerInfo) -> None:
        """Register this server; its chain begins here."""
        if info.server_id != self._server_id:
            raise ValueError("the server to start is not the recorder's own")
        with anyio.CancelScope(shield=True):
            await self._db.write(store.register_server, info)

    async def record(self, record: CallRecord, also: Sequence[Also] = (), decide: Decide | None = None) -> Link:
        """Commit one record with everything derived from it; StoreUnavailable when that failed."""
        with anyio.CancelScope(shield=True):
            try:
                link = await self._db.write(self._append, record, (*self._also, *also), decide)
            except StoreUnavailable:
                if self._missed is not None:
                    self._missed(record)
                raise
            self._ports.faults.hit("ledger.after_commit")
        return link

    async def recover(self, alive: Callable[[ServerRow], bool] | None = None) -> list[StoredCall]:
        """Close what dead servers left open; the closing records, each exactly once in the store."""
        with anyio.CancelScope(shield=True):
            closed = await self._db.write(self._recover, alive or self._seems_alive)
            self._ports.faults.hit("ledger.after_commit")
        return closed

    async def heartbeat(self) -> None:
        """Until cancelled: tell servers on other machines that this one lives, however quiet it is."""
        while True:
            await anyio.sleep(HEARTBEAT_S)
            await self.beat()

    async def beat(self) -> None:
        """Write once that this server lives; StoreUnavailable when nothing can be written."""
        await self._db.write(store.touch_server, self._server_id, self._ports.clock.now_ms())

    async def stop(self, reason: str) -> None:
        with anyio.CancelScope(shield=True):
            await self._db.write(store.end_server, self._server_id, self._ports.clock.now_ms(), reason)

    def _append(
        self, conn: Connection, record: CallRecord, also: tuple[Also, ...], decide: Decide | None = None
    ) -> Link:
        if decide is not None:
            # Every transaction takes the chain first, this one too.
            store.hold_chain(conn, record.caller.server_id)
            if self._first is not None:
                self._first(conn, record)
            record = decide(conn, record)
        link = store.append_call(conn, record)
        last = [derive(conn, record, link) for derive in also]
        _finish(conn, last)
        self._ports.faults.hit("ledger.before_commit")
        return link

    def _recover(self, conn: Connection, alive: Callable[[ServerRow], bool]) -> list[StoredCall]:
        now_ms = self._ports.clock.now_ms()
        closed = store.recover(conn, now_ms, self._server_id, alive, self._ports.ids.call_id)
        found = [(call.record, call.link) for call in closed if call.record is not None]
        _finish(conn, [derive(conn, record, link) for record, link in found for derive in self._also])
        self._ports.faults.hit("ledger.before_commit")
        return closed

    def _seems_alive(self, server: ServerRow) -> bool:
        return process_alive(server, self._ports.clock.now_ms(), host_identity())


def _finish(conn: Connection, last: Sequence[Last | None]) -> None:
    for step in last:
        if step is not None:
            step(conn)


def host_identity() -> str:
    """Names the place where a process id means something: machine, boot and process namespace."""
    parts = [socket.gethostname()]
    try:
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip())
        parts.append(str(Path("/proc/self/ns/pid").readlink()))
    except OSError:
        parts.append(str(int(psutil.boot_time())))
    return "/".join(parts)


def describe_server(server_id: ServerId, started_at_ms: int, version: str) -> ServerInfo:
    """This process, as other servers will look it up."""
    return ServerInfo(
        server_id=server_id,
        started_at_ms=started_at_ms,
        pid=os.getpid(),
        process_started_ms=started_ms(psutil.Process()),
        host=host_identity(),
        version=version,
    )


def process_alive(server: ServerRow, now_ms: int, here: str) -> bool:
    """Whether a server's process still runs; elsewhere only its silence can tell."""
    if server.host != here:
        return now_ms - server.last_seen_ms < FOREIGN_SILENCE_MS
    try:
        return living(server.pid, server.process_started_ms) is not None
    except psutil.AccessDenied:
        return True
