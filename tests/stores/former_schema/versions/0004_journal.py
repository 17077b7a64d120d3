"""The journal: what calls showed, what might be worth learning, and the figures about both."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def _serial() -> sa.types.TypeEngine[int]:
    # SQLite numbers rows by itself only in a column of exactly this type.
    return sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    _tool_events()
    _observations()
    _cursors()
    _candidates()
    _curated()
    _statistics()
    _proposals()


def _tool_events() -> None:
    op.create_table(
        "tool_event",
        sa.Column("event_id", sa.Text, nullable=False),
        sa.Column("principal", sa.Text, nullable=False),
        sa.Column("owner_agent_id", sa.Text, nullable=False),
        sa.Column("task_id", sa.Text),
        sa.Column("target_id", sa.Text),
        sa.Column("tool_name", sa.Text, nullable=False),
        sa.Column("success", sa.Integer, nullable=False),
        sa.Column("duration_ms", sa.BigInteger, nullable=False),
        sa.Column("error", sa.Text),
        sa.Column("context_host", sa.Text),
        sa.Column("arguments", sa.Text, nullable=False),
        sa.Column("activity_session_id", sa.Text),
        sa.Column("event_key", sa.Text),
        sa.Column("verdict", sa.Text, nullable=False),
        sa.Column("created_at_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("event_id", name="pk_tool_event"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_tool_event_created_at_ms", "tool_event", ["created_at_ms"])
    executed = sa.text("task_id IS NOT NULL AND event_key IS NOT NULL")
    op.create_index(
        "ix_tool_event_source",
        "tool_event",
        ["task_id", "context_host", "created_at_ms"],
        sqlite_where=executed,
        postgresql_where=executed,
    )


def _observations() -> None:
    op.create_table(
        "observation",
        sa.Column("observation_id", _serial(), nullable=False),
        sa.Column("owner_agent_id", sa.Text, nullable=False),
        sa.Column("principal", sa.Text, nullable=False),
        sa.Column("task_id", sa.Text),
        sa.Column("target_id", sa.Text, nullable=False),
        sa.Column("activity_session_id", sa.Text, nullable=False),
        sa.Column("context_host", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("outcome", sa.Integer, nullable=False),
        sa.Column("severity", sa.Integer, nullable=False),
        sa.Column("tool_name", sa.Text, nullable=False),
        sa.Column("target_stable_id", sa.Text),
        sa.Column("candidate_key", sa.Text),
        sa.Column("fingerprint_hash", sa.Text),
        sa.Column("selector_norm", sa.Text),
        sa.Column("payload", sa.Text, nullable=False),
        sa.Column("throttle_key", sa.Text, nullable=False),
        sa.Column("call_id", sa.Text, nullable=False),
        sa.Column("server_id", sa.Text, nullable=False),
        sa.Column("server_seq", sa.BigInteger, nullable=False),
        sa.Column("source_scope", sa.Text),
        sa.Column("created_at_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("observation_id", name="pk_observation"),
    )
    op.create_index("ix_observation_created_at_ms", "observation", ["created_at_ms"])
    op.create_index("ix_observation_context_host_created_at_ms", "observation", ["context_host", "created_at_ms"])


def _cursors() -> None:
    op.create_table(
        "activity_session",
        sa.Column("principal", sa.Text, nullable=False),
        sa.Column("context_host", sa.Text, nullable=False),
        sa.Column("session_id", sa.Text, nullable=False),
        sa.Column("last_at_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("principal", "context_host", name="pk_activity_session"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "observation_throttle",
        sa.Column("throttle_key", sa.Text, nullable=False),
        sa.Column("at_ms", sa.BigInteger, nullable=False),
        sa.Column("observation_id", _serial(), nullable=False),
        sa.Column("outcome", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("throttle_key", name="pk_observation_throttle"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_observation_throttle_at_ms", "observation_throttle", ["at_ms"])


def _candidates() -> None:
    op.create_table(
        "candidate",
        sa.Column("candidate_id", _serial(), nullable=False),
        sa.Column("candidate_key", sa.Text, nullable=False),
        sa.Column("stable_id", sa.Text, nullable=False),
        sa.Column("principal", sa.Text, nullable=False),
        sa.Column("owner_agent_id", sa.Text, nullable=False),
        sa.Column("task_id", sa.Text),
        sa.Column("target_id", sa.Text),
        sa.Column("context_host", sa.Text, nullable=False),
        sa.Column("component", sa.Text, nullable=False),
        sa.Column("claim", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("confidence", sa.Float, nullable=False),
        sa.Column("origin", sa.Text, nullable=False),
        sa.Column("level", sa.Integer, nullable=False),
        sa.Column("event_key", sa.Text),
        sa.Column("source_event_id", sa.Text),
        sa.Column("source_verdict", sa.Text),
        sa.Column("resolution_event_id", sa.Text),
        sa.Column("verified_at_ms", sa.BigInteger),
        sa.Column("high_signal", sa.Integer, nullable=False),
        sa.Column("recovered", sa.Integer, nullable=False),
        sa.Column("sessions", sa.Text, nullable=False),
        sa.Column("failures_in_row", sa.Integer, nullable=False),
        sa.Column("last_failure_at_ms", sa.BigInteger),
        sa.Column("created_at_ms", sa.BigInteger, nullable=False),
        sa.Column("updated_at_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("candidate_id", name="pk_candidate"),
    )
    op.create_index("ix_candidate_task_id", "candidate", ["task_id"])
    op.create_index("ix_candidate_updated_at_ms", "candidate", ["updated_at_ms"])
    is_open = sa.text("status != 'disproven'")
    op.create_index(
        "ix_candidate_open",
        "candidate",
        ["principal", "context_host", "candidate_key"],
        unique=True,
        sqlite_where=is_open,
        postgresql_where=is_open,
    )
    op.create_index(
        "ix_candidate_event_key",
        "candidate",
        ["principal", "event_key"],
        sqlite_where=is_open,
        postgresql_where=is_open,
    )


def _curated() -> None:
    op.create_table(
        "curated_entry",
        sa.Column("curated_id", _serial(), nullable=False),
        sa.Column("dedupe_key", sa.Text, nullable=False),
        sa.Column("stable_id", sa.Text, nullable=False),
        sa.Column("context_host", sa.Text, nullable=False),
        sa.Column("component", sa.Text, nullable=False),
        sa.Column("claim", sa.Text, nullable=False),
        sa.Column("principal", sa.Text, nullable=False),
        sa.Column("candidate_id", sa.BigInteger, nullable=False),
        sa.Column("confidence", sa.Float, nullable=False),
        sa.Column("evidence_score", sa.Float, nullable=False),
        sa.Column("merge_count", sa.Integer, nullable=False),
        sa.Column("first_promoted_at_ms", sa.BigInteger, nullable=False),
        sa.Column("last_promoted_at_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("curated_id", name="pk_curated_entry"),
    )
    op.create_index("ix_curated_entry_dedupe_key", "curated_entry", ["dedupe_key"], unique=True)
    op.create_index("ix_curated_entry_last_promoted_at_ms", "curated_entry", ["last_promoted_at_ms"])


def _statistics() -> None:
    op.create_table(
        "statistic_hour",
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("hour", sa.Integer, nullable=False),
        sa.Column("label", sa.Text, nullable=False),
        sa.Column("principal", sa.Text, nullable=False),
        sa.Column("shard", sa.Integer, nullable=False),
        sa.Column("count", sa.BigInteger, nullable=False),
        sa.Column("good", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("name", "hour", "label", "principal", "shard", name="pk_statistic_hour"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "statistic_latency",
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("hour", sa.Integer, nullable=False),
        sa.Column("bucket", sa.Integer, nullable=False),
        sa.Column("shard", sa.Integer, nullable=False),
        sa.Column("count", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("name", "hour", "bucket", "shard", name="pk_statistic_latency"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "statistic_total",
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("label", sa.Text, nullable=False),
        sa.Column("principal", sa.Text, nullable=False),
        sa.Column("shard", sa.Integer, nullable=False),
        sa.Column("count", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("name", "label", "principal", "shard", name="pk_statistic_total"),
        sqlite_with_rowid=False,
    )


def _proposals() -> None:
    op.create_table(
        "learning_proposal",
        sa.Column("job_key", sa.Text, nullable=False),
        sa.Column("task_id", sa.Text, nullable=False),
        sa.Column("target_id", sa.Text, nullable=False),
        sa.Column("principal", sa.Text, nullable=False),
        sa.Column("agent_id", sa.Text, nullable=False),
        sa.Column("candidate_ids", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("proposed_at_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("job_key", name="pk_learning_proposal"),
    )
    op.create_index("ix_learning_proposal_state_proposed_at_ms", "learning_proposal", ["state", "proposed_at_ms"])
