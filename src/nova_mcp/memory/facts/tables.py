"""The tables of live facts."""

from sqlalchemy import BigInteger, Boolean, Column, ForeignKey, Index, Integer, Table, Text, text

from nova_mcp.storage.schema import metadata

fact_binding = Table(
    "fact_binding",
    metadata,
    Column("binding_id", Text, primary_key=True),
    Column("target_id", Text, nullable=False),
    Column("sandbox_id", Text, nullable=False),
    Column("principal", Text, nullable=False),
    Column("service_key", Text, nullable=False),
    Column("account_hash", Text),
    # Where an agent reported something last; a page with another address has to be looked at again.
    Column("agent_url_hash", Text),
    Column("custom_facts", Integer, nullable=False),
    Column("opened_at_ms", BigInteger, nullable=False),
    Column("closed_at_ms", BigInteger),
    Index(None, "target_id"),
    Index(None, "sandbox_id"),
    Index(None, "closed_at_ms"),
)

fact_observation = Table(
    "fact_observation",
    metadata,
    # Rises with the order of the calls inside one binding, whose row every writer holds.
    Column("observation_id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("binding_id", Text, ForeignKey("fact_binding.binding_id"), nullable=False),
    Column("signal_key", Text, nullable=False),
    Column("value", Text, nullable=False),
    Column("certainty", Text, nullable=False),
    Column("confidence", Integer, nullable=False),
    Column("source_kind", Text, nullable=False),
    Column("evidence", Text),
    Column("perception_id", Text),
    Column("call_id", Text, nullable=False),
    Column("url", Text, nullable=False),
    Column("url_hash", Text, nullable=False),
    Column("route_key", Text, nullable=False),
    Column("observed_at_ms", BigInteger, nullable=False),
    Index(None, "binding_id", "observation_id"),
)

fact = Table(
    "fact",
    metadata,
    Column("binding_id", Text, ForeignKey("fact_binding.binding_id"), primary_key=True),
    Column("signal_key", Text, primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("value", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("confidence", Integer, nullable=False),
    Column("certainty", Text, nullable=False),
    Column("source_kind", Text, nullable=False),
    Column("support", Integer, nullable=False),
    Column("contradictions", Integer, nullable=False),
    Column("corroborated", Boolean, nullable=False),
    Column("contradicting", Integer, nullable=False),
    Column("call_id", Text, nullable=False),
    Column("url", Text, nullable=False),
    Column("url_hash", Text, nullable=False),
    Column("first_observed_at_ms", BigInteger, nullable=False),
    Column("last_observed_at_ms", BigInteger, nullable=False),
    Column("valid_from_ms", BigInteger, nullable=False),
    Column("valid_to_ms", BigInteger),
    Column("superseded_by", Integer),
    Index(
        "ux_fact_current",
        "binding_id",
        "signal_key",
        unique=True,
        sqlite_where=text("valid_to_ms IS NULL"),
        postgresql_where=text("valid_to_ms IS NULL"),
    ),
)

fact_account = Table(
    "fact_account",
    metadata,
    Column("service_key", Text, primary_key=True),
    Column("account_hash", Text, primary_key=True),
    Column("first_seen_ms", BigInteger, nullable=False),
    Column("last_seen_ms", BigInteger, nullable=False),
)
