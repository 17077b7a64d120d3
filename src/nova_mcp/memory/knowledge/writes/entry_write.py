"""The lock that every write of entries takes first, in the transaction of the call that asks for it."""

from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Connection

from nova_mcp.evidence.decision import Write
from nova_mcp.evidence.model import CallRecord
from nova_mcp.memory.journal.observations import context_host, tool_event_of
from nova_mcp.memory.journal.store import session_of

T = TypeVar("T")


def entry_write(write: Callable[[Connection], T]) -> Write[T]:
    """The write of a call, in the order of locks that evidence has: the session of a site before its entries."""

    def locked(conn: Connection, record: CallRecord) -> T:
        host = context_host(record)
        if host is not None:
            session_of(conn, tool_event_of(record), host)
        return write(conn)

    return locked
