"""Work that is done when a server starts and then once a day."""

from collections.abc import Callable

from sqlalchemy import Connection

from nova_mcp.memory.notes.rules import DAY_MS

Chore = Callable[[Connection, int], int]


def daily(chore: Chore) -> Chore:
    """The same chore, which rests for a day once it has nothing left to do."""
    done_at_ms: int | None = None

    def step(conn: Connection, now_ms: int) -> int:
        nonlocal done_at_ms
        if done_at_ms is not None and 0 <= now_ms - done_at_ms < DAY_MS:
            return 0
        gone = chore(conn, now_ms)
        if not gone:
            done_at_ms = now_ms
        return gone

    return step
