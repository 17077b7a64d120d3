"""Writes envelopes to the ledger, whatever happens to the task that asked for it."""

import logging
import os
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import anyio
import psutil
from sqlalchemy import Connection

from nova_mcp.core.clock import Ports
from nova_mcp.core.processes import living, started_ms
from nova_mcp.errors import NovaError, Unavailable
from nova_mcp.evidence import decision, store
from nova_mcp.evidence.decision import Derive, Write
from nova_mcp.evidence.model import CallRecord, Link, ServerId
from nova_mcp.evidence.outage import Also, Last, LateRecord, Outage, gap_record
from nova_mcp.evidence.store import ServerInfo, ServerRow, StoredCall
from nova_mcp.storage.engine import Database
from nova_mcp.storage.errors import StoreUnavailable
from nova_mcp.storage.savepoints import savepoint

T = TypeVar("T")

# A process on a machine that cannot be looked at counts as gone after this long without a sign of life.
FOREIGN_SILENCE_MS = 15 * 60_000
HEARTBEAT_S = 120
# How long a call waits to learn whether the store could record it: longer than the store waits for a lock.
PROBE_S = 15.0
MENDING_S = 1.0
SLOW_S = 0.1
log = logging.getLogger(__name__)


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
        self._outage: Outage | None = None
        self._failure: StoreUnavailable | None = None
        self._closing = anyio.Lock()
        self._next_try = 0.0

    @property
    def server_id(self) -> ServerId:
        return self._server_id

    async def start(self, info: ServerInfo) -> None:
        """Register this server; its chain begins here."""
        if info.server_id != self._server_id:
            raise ValueError("the server to start is not the recorder's own")
        with anyio.CancelScope(shield=True):
            await self._db.write(store.register_server, info)

    async def record(self, record: CallRecord, also: Sequence[Also] = ()) -> Link:
        """Commit one record with everything derived from it; StoreUnavailable when that failed."""
        return await self._write(record, also, self._append, late=record)

    async def commit(self, record: CallRecord, also: Sequence[Also], write: Write[T]) -> T | NovaError:
        """Commit one record together with what `write` does before it is appended. An error of the call, with which
        nothing was written but the record, is returned. After a defect of `write` the call is not on record yet."""
        return await self._write(record, also, partial(self._append_written, write=write), late=_unwritten(record))

    async def commit_derived(self, record: CallRecord, also: Sequence[Also], derive: Derive[T]) -> T:
        """Commit one record together with what `derive` does behind it and all that is derived from it."""
        return await self._write(record, also, partial(self._append_derived, derive=derive), late=_unwritten(record))

    async def _write(
        self,
        record: CallRecord,
        also: Sequence[Also],
        append: Callable[[Connection, CallRecord, tuple[Also, ...]], T],
        late: CallRecord,
    ) -> T:
        """`late` is the record as it can be written once the store is back."""
        with anyio.CancelScope(shield=True):
            tried = False
            try:
                if (failure := await self._close_outage()) is not None:
                    raise StoreUnavailable(failure.reason, failure.detail, failure.hint)
                tried = True
                done = await self._db.write(append, record, (*self._also, *also))
            except StoreUnavailable as failure:
                self._begin_outage(failure).add(late, tuple(also), tried=tried)
                if self._missed is not None:
                    self._missed(record)
                raise
            except Exception as defect:
                if self._missed is not None:
                    self._missed(record)
                if (
                    late is record
                    and record.kind != "intent"
                    and (record.outcome.action_dispatched or record.closes is not None)
                ):
                    # What was derived from it broke, and what was done must be on record all the same.
                    self._begin_outage(StoreUnavailable("down", type(defect).__name__)).add(record, tuple(also))
                raise
            self._ports.faults.hit("ledger.after_commit")
        return done

    # -- while the store takes no records

    async def trouble(self, limit_s: float = PROBE_S) -> StoreUnavailable | None:
        """Why a call could not be recorded now, or None; cheap, and bounded by `limit_s`.

        While an outage is open, only writing the record that closes it shows that it is over.
        """
        if self._outage is None:
            return await self._db.trouble(limit_s)
        with anyio.move_on_after(limit_s):
            return await self._close_outage()
        return self._failure

    async def require(self) -> None:
        """Raise StoreUnavailable unless a record could be written; asked before anything touches a page."""
        if (failure := await self.trouble()) is not None:
            self._begin_outage(failure)
            raise StoreUnavailable(failure.reason, failure.detail, failure.hint)

    async def mend(self) -> None:
        """Until cancelled: close an outage as soon as the store is back, also when no call asks."""
        while True:
            await anyio.sleep(MENDING_S)
            await self._close_outage()

    def _begin_outage(self, failure: StoreUnavailable) -> Outage:
        clock = self._ports.clock
        if self._outage is None:
            self._outage = Outage(clock.now_ms(), clock.monotonic_ms())
            log.error("no records can be written: %s", failure)
        self._failure = failure
        self._outage.blame(failure.reason)
        return self._outage

    async def _close_outage(self) -> StoreUnavailable | None:
        """Write the late records and the gap; None once that is done or when there is nothing to close."""
        if self._outage is None:
            return None
        async with self._closing:
            if (outage := self._current()) is None:
                return None
            if time.monotonic() < self._next_try:
                return self._failure
            # What comes in while this one is written belongs to the next.
            self._outage, began = None, time.monotonic()
            try:
                with anyio.CancelScope(shield=True):
                    await self._db.write(self._append_outage, outage)
            except BaseException as error:
                self._reopen(outage)
                if not isinstance(error, StoreUnavailable):
                    raise
                outage.blame(error.reason)
                self._failure = error
                # A store that fails slowly is asked half of the time at most; asking one that fails fast costs little.
                took = time.monotonic() - began
                self._next_try = time.monotonic() + took if took > SLOW_S else 0.0
                return error
            log.error("records are written again after %s", ", ".join(outage.reasons))
            return None

    def _current(self) -> Outage | None:
        """Read anew: another task may have closed it."""
        return self._outage

    def _reopen(self, outage: Outage) -> None:
        if (newer := self._current()) is not None:
            outage.reads, outage.refused = outage.reads + newer.reads, outage.refused + newer.refused
            outage.lost, outage.late = outage.lost + newer.lost, [*outage.late, *newer.late]
            outage.uncertain = [*outage.uncertain, *newer.uncertain]
            for reason in newer.reasons:
                outage.blame(reason)
        self._outage = outage

    def _append_outage(self, conn: Connection, outage: Outage) -> None:
        store.hold_chain(conn, self._server_id)
        unwritten = [late for late in outage.late if not self._append_late(conn, late)]
        now = self._ports.clock.now_ms(), self._ports.clock.monotonic_ms()
        written = [late for late in outage.late if late not in unwritten]
        told = replace(outage, late=written, lost=outage.lost + len(unwritten))
        for record in outage.uncertain:
            if store.get_call(conn, record.call_id) is not None:
                told.found(record)
        store.append_call(conn, gap_record(told, self._server_id, self._ports.ids.call_id(), now))
        self._ports.faults.hit("ledger.before_commit")

    def _append_late(self, conn: Connection, late: LateRecord) -> bool:
        """Whether the record is in the ledger now; one whose derivations break is kept without them."""
        if store.get_call(conn, late.record.call_id) is not None:
            # The commit that failed had got through after all.
            return True
        for also in ((*self._also, *late.also), ()):
            try:
                with savepoint(conn):
                    link = store.append_call(conn, late.record)
                    _finish(conn, [derive(conn, late.record, link) for derive in also])
            except StoreUnavailable:
                raise
            except Exception:
                log.exception("call %s can't be recorded late", late.record.call_id)
            else:
                return True
        return False

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
            self._next_try = 0.0
            await self._close_outage()
            await self._db.write(store.end_server, self._server_id, self._ports.clock.now_ms(), reason)

    def _append(self, conn: Connection, record: CallRecord, also: tuple[Also, ...]) -> Link:
        link = store.append_call(conn, record)
        last = [derive(conn, record, link) for derive in also]
        _finish(conn, last)
        self._ports.faults.hit("ledger.before_commit")
        return link

    def _append_written(
        self, conn: Connection, record: CallRecord, also: tuple[Also, ...], write: Write[T]
    ) -> T | NovaError:
        # Every transaction takes the chain first, this one too.
        store.hold_chain(conn, record.caller.server_id)
        if self._first is not None:
            self._first(conn, record)
        record, outcome = decision.decide(conn, record, write)
        self._append(conn, record, also)
        return outcome

    def _append_derived(self, conn: Connection, record: CallRecord, also: tuple[Also, ...], derive: Derive[T]) -> T:
        derived: list[T] = []
        self._append(conn, record, (*also, lambda *recorded: derived.append(derive(*recorded))))
        return derived[0]

    def _recover(self, conn: Connection, alive: Callable[[ServerRow], bool]) -> list[StoredCall]:
        now_ms = self._ports.clock.now_ms()
        closed = store.recover(conn, now_ms, self._server_id, alive, self._ports.ids.call_id)
        found = [(call.record, call.link) for call in closed if call.record is not None]
        _finish(conn, [derive(conn, record, link) for record, link in found for derive in self._also])
        self._ports.faults.hit("ledger.before_commit")
        return closed

    def _seems_alive(self, server: ServerRow) -> bool:
        return process_alive(server, self._ports.clock.now_ms(), host_identity())


def _unwritten(record: CallRecord) -> CallRecord:
    """The record of a call whose write was lost with the transaction: what it wrote can't be written late."""
    return decision.failed(record, Unavailable("store.unavailable"))


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
