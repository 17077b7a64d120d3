"""The tables of promotion: what happened to entries, what was decided, what recurs, and what agents were asked."""

from typing import Final

from sqlalchemy import BigInteger, Column, Float, Index, Integer, Table, Text, literal_column

from nova_mcp.memory.knowledge.tables import Serial
from nova_mcp.storage.schema import metadata

# Everything that happened to an entry, in the order in which its row was held; levels are replayed from here.
learning_step = Table(
    "learning_step",
    metadata,
    Column("step_id", Serial, primary_key=True),
    Column("entry_id", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("at_ms", BigInteger, nullable=False),
    Column("body", Text, nullable=False),
    Index(None, "entry_id", "step_id"),
    Index(None, "at_ms"),
)

# Where a replay of an entry begins: its creation, or the edge behind which steps were forgotten.
learning_snapshot = Table(
    "learning_snapshot",
    metadata,
    Column("entry_id", BigInteger, primary_key=True, autoincrement=False),
    Column("up_to_step", BigInteger, nullable=False),
    Column("body", Text, nullable=False),
)

learning_event = Table(
    "learning_event",
    metadata,
    Column("event_id", Serial, primary_key=True),
    Column("scope", Text, nullable=False),
    Column("stable_id", Text, nullable=False),
    Column("from_level", Integer, nullable=False),
    Column("to_level", Integer, nullable=False),
    Column("reason_kind", Text, nullable=False),
    Column("rejection", Text),
    Column("body", Text, nullable=False),
    Column("created_at_ms", BigInteger, nullable=False),
    Index(None, "scope", "created_at_ms"),
    Index(None, "created_at_ms"),
    Index(None, "scope", "stable_id", "event_id"),
)

# `rank` is the score without what depends on the time of asking, so that the best are found by an index.
learning_cluster = Table(
    "learning_cluster",
    metadata,
    Column("host", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("rank", Float, nullable=False),
    Column("first_day", Integer, nullable=False),
    Column("last_at_ms", BigInteger, nullable=False),
    Index(None, "rank", "last_at_ms"),
    Index(None, "host", "rank", "last_at_ms"),
    Index(None, "first_day"),
    sqlite_with_rowid=False,
)

learning_cluster_day = Table(
    "learning_cluster_day",
    metadata,
    Column("host", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("day", Integer, primary_key=True),
    Column("body", Text, nullable=False),
    Index(None, "day"),
    sqlite_with_rowid=False,
)

learning_track = Table(
    "learning_track",
    metadata,
    Column("host", Text, primary_key=True),
    Column("selector", Text, primary_key=True),
    Column("body", Text, nullable=False),
    Column("updated_at_ms", BigInteger, nullable=False),
    Index(None, "updated_at_ms"),
    sqlite_with_rowid=False,
)

semantic_opportunity = Table(
    "semantic_opportunity",
    metadata,
    Column("principal", Text, primary_key=True),
    Column("opportunity_id", Text, primary_key=True),
    Column("origin", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("updated_at_ms", BigInteger, nullable=False),
    Index(None, "principal", "origin"),
    Index(None, "updated_at_ms"),
    sqlite_with_rowid=False,
)

OPEN_QUESTION: Final = semantic_opportunity.c.state.in_(
    [literal_column("'prompted'"), literal_column("'warned'"), literal_column("'deferred'")]
)
Index(
    "ix_semantic_opportunity_open",
    semantic_opportunity.c.principal,
    semantic_opportunity.c.updated_at_ms,
    sqlite_where=OPEN_QUESTION,
    postgresql_where=OPEN_QUESTION,
)

# What revalidation has spent, and which calls have already backed a report.
revalidation_check = Table(
    "revalidation_check",
    metadata,
    Column("check_id", Serial, primary_key=True),
    Column("at_ms", BigInteger, nullable=False),
    Column("scope", Text, nullable=False),
    Column("target_id", Text, nullable=False),
    Index(None, "at_ms"),
)

telemetry_backing = Table(
    "telemetry_backing",
    metadata,
    Column("call_id", Text, primary_key=True),
    Column("report_call_id", Text, nullable=False),
    Column("at_ms", BigInteger, nullable=False),
    Index(None, "at_ms"),
    sqlite_with_rowid=False,
)
