"""The tables of notes: Browser Memory, Operator Notes, Domain Notes."""

from sqlalchemy import BigInteger, Column, Index, Integer, Table, Text, UniqueConstraint

from nova_mcp.memory.knowledge.tables import Serial
from nova_mcp.storage.schema import metadata

# When a row is forgotten says how fresh it is; nothing else about decay is stored.
browser_memory = Table(
    "browser_memory",
    metadata,
    Column("memory_id", Serial, primary_key=True),
    Column("principal", Text, nullable=False),
    Column("domain", Text, nullable=False),
    Column("url_pattern", Text),
    Column("memory_type", Text, nullable=False),
    Column("content", Text, nullable=False),
    Column("content_fold", Text, nullable=False),
    Column("identity_hash", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("created_at_ms", BigInteger, nullable=False),
    Column("refreshed_at_ms", BigInteger, nullable=False),
    Column("accessed_at_ms", BigInteger),
    Column("access_count", Integer, nullable=False),
    Column("reinforced_at_ms", BigInteger),
    Column("expires_at_ms", BigInteger, nullable=False),
    Column("content_rev", Integer, nullable=False),
    UniqueConstraint("principal", "identity_hash"),
    Index(None, "principal", "domain", "expires_at_ms"),
    Index(None, "expires_at_ms"),
    sqlite_autoincrement=True,
)

operator_note = Table(
    "operator_note",
    metadata,
    Column("note_id", Text, primary_key=True),
    Column("principal", Text, nullable=False),
    Column("content", Text, nullable=False),
    Column("tags", Text, nullable=False),
    Column("category", Text),
    Column("source", Text, nullable=False),
    Column("rev", Integer, nullable=False),
    Column("created_at_ms", BigInteger, nullable=False),
    Column("updated_at_ms", BigInteger, nullable=False),
    Column("last_matched_at_ms", BigInteger),
    Column("match_count", Integer, nullable=False),
    Column("identity_hash", Text, nullable=False),
    Index(None, "principal", "updated_at_ms"),
    Index(None, "principal", "identity_hash"),
)

domain_note = Table(
    "domain_note",
    metadata,
    Column("note_id", Text, primary_key=True),
    Column("principal", Text, nullable=False),
    Column("domain", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("value", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("enforcement", Text, nullable=False),
    Column("repeat_minutes", Integer),
    Column("repeat_tool_calls", Integer),
    Column("rev", Integer, nullable=False),
    Column("created_at_ms", BigInteger, nullable=False),
    Column("updated_at_ms", BigInteger, nullable=False),
    Column("last_delivered_at_ms", BigInteger),
    UniqueConstraint("principal", "domain", "key"),
    Index(None, "domain", "principal"),
)
