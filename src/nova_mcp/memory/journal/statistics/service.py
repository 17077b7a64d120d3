"""Answers questions about the journal's figures from the store."""

from sqlalchemy import Connection

from nova_mcp.core.clock import Clock
from nova_mcp.evidence.tails import tail_broken
from nova_mcp.memory.journal.statistics.reader import read
from nova_mcp.memory.journal.statistics.report import Report, StatisticsQuery, report
from nova_mcp.storage.engine import Database


def look_up(conn: Connection, query: StatisticsQuery, now_ms: int) -> Report:
    return report(read(conn, query, now_ms, chain_broken=tail_broken(conn)))


class Statistician:
    """One reading, one transaction."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock

    async def report(self, query: StatisticsQuery) -> tuple[Report, int]:
        """The report, and the time it was made at."""
        now_ms = self._clock.now_ms()
        return await self._db.read(look_up, query, now_ms), now_ms
