"""The start page: what agents do right now, as it is recorded."""

from sqlalchemy import Connection, select

from nova_mcp.dashboard.calls import line_of
from nova_mcp.dashboard.desk import Entry, Place, View, Visit
from nova_mcp.dashboard.feed import KEPT, News, Positions
from nova_mcp.observation.model import ServerId
from nova_mcp.observation.reader import EventFilter, events, recent
from nova_mcp.observation.store import ledger_server


def news(conn: Connection, after: Positions | None) -> News:
    """Calls behind the positions; of more than a page shows, only the end. Without positions, the newest ones."""
    heads = {
        ServerId(row.server_id): int(row.head_seq)
        for row in conn.execute(select(ledger_server.c.server_id, ledger_server.c.head_seq))
    }
    if after is None:
        return News(tuple(recent(conn, EventFilter(limit=KEPT))[::-1]), heads)
    starts = {server: max(after.get(server, 0), head - KEPT) for server, head in heads.items()}
    moved = sum(head > starts[server] for server, head in heads.items())
    # Room for everything that any of them may have added: what is cut off here would never be seen.
    page = events(conn, EventFilter(limit=KEPT * moved), starts) if moved else None
    return News(() if page is None else page.calls[-KEPT:], heads)


async def activity(visit: Visit) -> View:
    desk = visit.desk
    await desk.feed.look(lambda after: desk.read(news, after))
    lines = [line_of(numbered.call) for numbered in desk.feed.newest(limit=50)]
    return View("activity.html", {"title": "Activity", "lines": lines, "feed": desk.feed.name, "last": desk.feed.last})


PLACES = (Place("/", "activity", get=activity, menu=Entry("Now", "Activity")),)
