"""The tables of knowledge: scopes, entries with the selectors that lead to them, what surrounded them, platforms."""

from typing import Final

from sqlalchemy import BigInteger, Column, Float, ForeignKey, Index, Integer, Table, Text, and_, literal_column

from nova_mcp.storage.schema import metadata

Serial = BigInteger().with_variant(Integer, "sqlite")

knowledge_scope = Table(
    "knowledge_scope",
    metadata,
    Column("scope", Text, primary_key=True),
    Column("content_rev", BigInteger, nullable=False),
    # Moves with every change, health included: what a server keeps in mind is as new as this says.
    Column("state_rev", BigInteger, nullable=False),
    Column("context", Text, nullable=False),
    Column("service_categories", Text, nullable=False),
    Column("framework_markers", Text, nullable=False),
    Column("updated_at_ms", BigInteger, nullable=False),
    # When the background pass last looked at the gates and at the page.
    Column("reviewed_at_ms", BigInteger),
    Column("revalidated_at_ms", BigInteger),
    sqlite_with_rowid=False,
)

knowledge_entry = Table(
    "knowledge_entry",
    metadata,
    Column("entry_id", Serial, primary_key=True),
    Column("scope", Text, nullable=False),
    Column("stable_id", Text, nullable=False),
    # The revision that counts, or a newer one that has to earn its place.
    Column("slot", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("type", Text, nullable=False),
    Column("level", Integer, nullable=False),
    Column("deprecated_reason", Text),
    Column("revision", Integer, nullable=False),
    Column("content", Text, nullable=False),
    Column("baseline", Text, nullable=False),
    Column("drift_debt", Float, nullable=False),
    Column("unconfirmed", Text, nullable=False),
    Column("health", Text, nullable=False),
    Column("standing", Text, nullable=False),
    Column("origin", Text, nullable=False),
    Column("candidate_key", Text),
    Column("created_at_ms", BigInteger, nullable=False),
    Column("updated_at_ms", BigInteger, nullable=False),
    # Above zero where failures in a row or in most uses may call for a look, the more the longer they last.
    Column("trouble", Integer, nullable=False),
    Index(None, "scope", "stable_id", "slot", unique=True),
    Index(None, "candidate_key"),
)
Index(
    "ix_knowledge_entry_trouble",
    knowledge_entry.c.trouble,
    knowledge_entry.c.updated_at_ms,
    sqlite_where=knowledge_entry.c.trouble > literal_column("0"),
    postgresql_where=knowledge_entry.c.trouble > literal_column("0"),
)
# Entries that do not guide yet; a newer revision in review is one of them until it does.
WAITING: Final = and_(knowledge_entry.c.level < literal_column("2"), knowledge_entry.c.deprecated_reason.is_(None))
Index("ix_knowledge_entry_waiting", knowledge_entry.c.entry_id, sqlite_where=WAITING, postgresql_where=WAITING)

knowledge_selector = Table(
    "knowledge_selector",
    metadata,
    Column("scope", Text, primary_key=True),
    Column("selector", Text, primary_key=True),
    Column("entry_id", BigInteger, ForeignKey("knowledge_entry.entry_id", ondelete="CASCADE"), primary_key=True),
    Index(None, "entry_id"),
    sqlite_with_rowid=False,
)

knowledge_surroundings = Table(
    "knowledge_surroundings",
    metadata,
    Column("entry_id", BigInteger, ForeignKey("knowledge_entry.entry_id", ondelete="CASCADE"), primary_key=True),
    Column("prints", Text, nullable=False),
    Column("taken_at_ms", BigInteger, nullable=False),
)

knowledge_platform = Table(
    "knowledge_platform",
    metadata,
    Column("stable_id", Text, primary_key=True),
    Column("body", Text, nullable=False),
    Column("updated_at_ms", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

platform_alias = Table(
    "platform_alias",
    metadata,
    Column("kind", Text, primary_key=True),
    Column("value", Text, primary_key=True),
    Column("stable_id", Text, nullable=False),
    sqlite_with_rowid=False,
)

platform_seen = Table(
    "platform_seen",
    metadata,
    Column("stable_id", Text, primary_key=True),
    Column("last_seen_at_ms", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)
