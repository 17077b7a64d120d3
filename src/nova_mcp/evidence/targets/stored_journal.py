"""The memory of target ids, kept in the store."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from sqlalchemy import Connection

from nova_mcp.core.urls import redact_query
from nova_mcp.evidence.model import ServerId
from nova_mcp.evidence.page_sights import STILL, PageLife
from nova_mcp.evidence.targets import store
from nova_mcp.evidence.targets.journal import EndReason, LastSeen, TargetKind, TargetOpened
from nova_mcp.secrets.redactor import Redactor
from nova_mcp.storage.engine import Database

# What else ends with a target, in the same transaction: its id, the time and the reason.
OnEnd: TypeAlias = Callable[[Connection, str, int, str], None]
# The same for what has to know how long its last pages stood there.
OnLeft: TypeAlias = Callable[[Connection, str, int, PageLife], None]


class StoredJournal:
    """Implements `TargetJournal` for one server on a shared store."""

    def __init__(
        self,
        db: Database,
        server_id: ServerId,
        *,
        keep_raw_urls: bool,
        redactor: Redactor | None = None,
        on_end: Sequence[OnEnd] = (),
        on_left: Sequence[OnLeft] = (),
    ) -> None:
        self._db = db
        self._server_id = server_id
        self._keep_raw_urls = keep_raw_urls
        self._redactor = redactor or Redactor()
        self._on_end = tuple(on_end)
        self._on_left = tuple(on_left)

    def _kept(self, url: str) -> str:
        clean = self._redactor.text(url)
        return clean if self._keep_raw_urls else redact_query(clean)

    async def next_number(self, kind: TargetKind) -> int:
        return await self._db.write(store.next_id, kind)

    async def opened(self, event: TargetOpened) -> None:
        await self._db.write(store.target_opened, self._row(event))

    async def resumed(self, event: TargetOpened, number: int) -> None:
        await self._db.write(store.target_resumed, self._row(event), event.kind, number)

    def _row(self, event: TargetOpened) -> store.OpenedTarget:
        return store.OpenedTarget(
            target_id=event.target_id,
            sandbox_id=event.sandbox_id,
            server_id=self._server_id,
            principal=event.principal,
            url=self._kept(event.url),
            opened_at_ms=event.at_ms,
        )

    async def moved(self, target_id: str, url: str, at_ms: int) -> None:
        await self._db.write(store.target_moved, target_id, self._kept(url))

    async def ended(self, target_id: str, reason: EndReason, at_ms: int, life: PageLife = STILL) -> None:
        await self._db.write(self._end, target_id, at_ms, reason, life)

    def _end(self, conn: Connection, target_id: str, at_ms: int, reason: EndReason, life: PageLife) -> None:
        store.target_ended(conn, target_id, at_ms, reason)
        for follow in self._on_end:
            follow(conn, target_id, at_ms, reason)
        for settle in self._on_left:
            settle(conn, target_id, at_ms, life)

    async def last_seen(self, principal: str, target_id: str) -> LastSeen | None:
        row = await self._db.read(store.last_seen, principal, target_id)
        return None if row is None else LastSeen(row.url or "", row.ended_at_ms, row.end_reason)
