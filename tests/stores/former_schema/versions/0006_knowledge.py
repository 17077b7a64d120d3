"""Knowledge and promotion: entries, platforms, what happened to them, what recurs, what agents were asked."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_SERIAL = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    _knowledge()
    _platforms()
    _steps()
    _clusters()
    _asked()
    op.add_column("observation", sa.Column("cluster_key", sa.Text))
    op.create_index(
        "ix_observation_context_host_cluster_key_observation_id",
        "observation",
        ["context_host", "cluster_key", "observation_id"],
    )


def _knowledge() -> None:
    op.create_table(
        "knowledge_scope",
        sa.Column("scope", sa.Text, nullable=False),
        sa.Column("content_rev", sa.BigInteger, nullable=False),
        sa.Column("state_rev", sa.BigInteger, nullable=False),
        sa.Column("context", sa.Text, nullable=False),
        sa.Column("service_categories", sa.Text, nullable=False),
        sa.Column("framework_markers", sa.Text, nullable=False),
        sa.Column("updated_at_ms", sa.BigInteger, nullable=False),
        sa.Column("reviewed_at_ms", sa.BigInteger),
        sa.Column("revalidated_at_ms", sa.BigInteger),
        sa.PrimaryKeyConstraint("scope", name="pk_knowledge_scope"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "knowledge_entry",
        sa.Column("entry_id", _SERIAL, nullable=False),
        sa.Column("scope", sa.Text, nullable=False),
        sa.Column("stable_id", sa.Text, nullable=False),
        sa.Column("slot", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("type", sa.Text, nullable=False),
        sa.Column("level", sa.Integer, nullable=False),
        sa.Column("deprecated_reason", sa.Text),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("content", sa.Text, nullable=False),
        sa.Column("baseline", sa.Text, nullable=False),
        sa.Column("drift_debt", sa.Float, nullable=False),
        sa.Column("unconfirmed", sa.Text, nullable=False),
        sa.Column("health", sa.Text, nullable=False),
        sa.Column("standing", sa.Text, nullable=False),
        sa.Column("origin", sa.Text, nullable=False),
        sa.Column("candidate_key", sa.Text),
        sa.Column("created_at_ms", sa.BigInteger, nullable=False),
        sa.Column("updated_at_ms", sa.BigInteger, nullable=False),
        sa.Column("trouble", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("entry_id", name="pk_knowledge_entry"),
    )
    op.create_index(
        "ix_knowledge_entry_trouble",
        "knowledge_entry",
        ["trouble", "updated_at_ms"],
        sqlite_where=sa.text("trouble > 0"),
        postgresql_where=sa.text("trouble > 0"),
    )
    op.create_index("ix_knowledge_entry_candidate_key", "knowledge_entry", ["candidate_key"])
    op.create_index(
        "ix_knowledge_entry_scope_stable_id_slot", "knowledge_entry", ["scope", "stable_id", "slot"], unique=True
    )
    op.create_table(
        "knowledge_selector",
        sa.Column("scope", sa.Text, nullable=False),
        sa.Column("selector", sa.Text, nullable=False),
        sa.Column("entry_id", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("scope", "selector", "entry_id", name="pk_knowledge_selector"),
        sa.ForeignKeyConstraint(
            ["entry_id"], ["knowledge_entry.entry_id"], name="fk_knowledge_selector_entry_id", ondelete="CASCADE"
        ),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_knowledge_selector_entry_id", "knowledge_selector", ["entry_id"])
    op.create_table(
        "knowledge_surroundings",
        sa.Column("entry_id", sa.BigInteger, nullable=False),
        sa.Column("prints", sa.Text, nullable=False),
        sa.Column("taken_at_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("entry_id", name="pk_knowledge_surroundings"),
        sa.ForeignKeyConstraint(
            ["entry_id"], ["knowledge_entry.entry_id"], name="fk_knowledge_surroundings_entry_id", ondelete="CASCADE"
        ),
    )


def _platforms() -> None:
    op.create_table(
        "knowledge_platform",
        sa.Column("stable_id", sa.Text, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("updated_at_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("stable_id", name="pk_knowledge_platform"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "platform_alias",
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("value", sa.Text, nullable=False),
        sa.Column("stable_id", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("kind", "value", name="pk_platform_alias"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "platform_seen",
        sa.Column("stable_id", sa.Text, nullable=False),
        sa.Column("last_seen_at_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("stable_id", name="pk_platform_seen"),
        sqlite_with_rowid=False,
    )


def _steps() -> None:
    op.create_table(
        "learning_step",
        sa.Column("step_id", _SERIAL, nullable=False),
        sa.Column("entry_id", sa.BigInteger, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("at_ms", sa.BigInteger, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("step_id", name="pk_learning_step"),
    )
    op.create_index("ix_learning_step_at_ms", "learning_step", ["at_ms"])
    op.create_index("ix_learning_step_entry_id_step_id", "learning_step", ["entry_id", "step_id"])
    op.create_table(
        "learning_snapshot",
        sa.Column("entry_id", sa.BigInteger, nullable=False),
        sa.Column("up_to_step", sa.BigInteger, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("entry_id", name="pk_learning_snapshot"),
    )
    op.create_table(
        "learning_event",
        sa.Column("event_id", _SERIAL, nullable=False),
        sa.Column("scope", sa.Text, nullable=False),
        sa.Column("stable_id", sa.Text, nullable=False),
        sa.Column("from_level", sa.Integer, nullable=False),
        sa.Column("to_level", sa.Integer, nullable=False),
        sa.Column("reason_kind", sa.Text, nullable=False),
        sa.Column("rejection", sa.Text),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("created_at_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("event_id", name="pk_learning_event"),
    )
    op.create_index("ix_learning_event_created_at_ms", "learning_event", ["created_at_ms"])
    op.create_index("ix_learning_event_scope_created_at_ms", "learning_event", ["scope", "created_at_ms"])
    op.create_index("ix_learning_event_scope_stable_id_event_id", "learning_event", ["scope", "stable_id", "event_id"])


def _clusters() -> None:
    op.create_table(
        "learning_cluster",
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("rank", sa.Float, nullable=False),
        sa.Column("first_day", sa.Integer, nullable=False),
        sa.Column("last_at_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("host", "key", name="pk_learning_cluster"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_learning_cluster_first_day", "learning_cluster", ["first_day"])
    op.create_index("ix_learning_cluster_host_rank_last_at_ms", "learning_cluster", ["host", "rank", "last_at_ms"])
    op.create_index("ix_learning_cluster_rank_last_at_ms", "learning_cluster", ["rank", "last_at_ms"])
    op.create_table(
        "learning_cluster_day",
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("day", sa.Integer, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("host", "key", "day", name="pk_learning_cluster_day"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_learning_cluster_day_day", "learning_cluster_day", ["day"])
    op.create_table(
        "learning_track",
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("selector", sa.Text, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("updated_at_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("host", "selector", name="pk_learning_track"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_learning_track_updated_at_ms", "learning_track", ["updated_at_ms"])


def _asked() -> None:
    op.create_table(
        "semantic_opportunity",
        sa.Column("principal", sa.Text, nullable=False),
        sa.Column("opportunity_id", sa.Text, nullable=False),
        sa.Column("origin", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("updated_at_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("principal", "opportunity_id", name="pk_semantic_opportunity"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_semantic_opportunity_principal_origin", "semantic_opportunity", ["principal", "origin"])
    op.create_index("ix_semantic_opportunity_updated_at_ms", "semantic_opportunity", ["updated_at_ms"])
    op.create_table(
        "revalidation_check",
        sa.Column("check_id", _SERIAL, nullable=False),
        sa.Column("at_ms", sa.BigInteger, nullable=False),
        sa.Column("scope", sa.Text, nullable=False),
        sa.Column("target_id", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("check_id", name="pk_revalidation_check"),
    )
    op.create_index("ix_revalidation_check_at_ms", "revalidation_check", ["at_ms"])
    op.create_table(
        "telemetry_backing",
        sa.Column("call_id", sa.Text, nullable=False),
        sa.Column("report_call_id", sa.Text, nullable=False),
        sa.Column("at_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("call_id", name="pk_telemetry_backing"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_telemetry_backing_at_ms", "telemetry_backing", ["at_ms"])
