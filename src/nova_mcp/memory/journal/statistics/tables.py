"""Where the journal's figures live, counters and latencies per hour and totals; and what commits propose.

`shard` is a small number drawn from the server id: servers seldom wait for each other, and however many servers were
ever started, a reader meets at most `SHARDS` rows of one key.

`principal` is whose a labelled figure is, since labels name sites and controls; one without a label is everybody's.
"""

from typing import Final

from sqlalchemy import BigInteger, Column, Index, Integer, Table, Text

from nova_mcp.storage.schema import metadata

SHARDS: Final = 8

# `count` is how often something happened, `good` how often it went well; where that makes no sense `good` stays 0.
statistic_hour = Table(
    "statistic_hour",
    metadata,
    Column("name", Text, primary_key=True),
    Column("hour", Integer, primary_key=True, autoincrement=False),
    Column("label", Text, primary_key=True),
    Column("principal", Text, primary_key=True),
    Column("shard", Integer, primary_key=True, autoincrement=False),
    Column("count", BigInteger, nullable=False),
    Column("good", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

statistic_latency = Table(
    "statistic_latency",
    metadata,
    Column("name", Text, primary_key=True),
    Column("hour", Integer, primary_key=True, autoincrement=False),
    Column("bucket", Integer, primary_key=True, autoincrement=False),
    Column("shard", Integer, primary_key=True, autoincrement=False),
    Column("count", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

statistic_total = Table(
    "statistic_total",
    metadata,
    Column("name", Text, primary_key=True),
    Column("label", Text, primary_key=True),
    Column("principal", Text, primary_key=True),
    Column("shard", Integer, primary_key=True, autoincrement=False),
    Column("count", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

# What a commit proposes for knowledge, kept until a later pass takes it up; one row per job, by the job's key.
learning_proposal = Table(
    "learning_proposal",
    metadata,
    Column("job_key", Text, primary_key=True),
    Column("task_id", Text, nullable=False),
    Column("target_id", Text, nullable=False),
    Column("principal", Text, nullable=False),
    Column("agent_id", Text, nullable=False),
    Column("candidate_ids", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("proposed_at_ms", BigInteger, nullable=False),
    Index(None, "state", "proposed_at_ms"),
)
