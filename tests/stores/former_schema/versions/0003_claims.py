"""Claims, what is decided when they end, and the jobs that follow."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _claims()
    _finalize()


def _claims() -> None:
    op.create_table(
        "claim_journal",
        sa.Column("task_id", sa.Text, nullable=False),
        sa.Column("target_id", sa.Text, nullable=False),
        sa.Column("sandbox_id", sa.Text, nullable=False),
        sa.Column("owner_agent_id", sa.Text, nullable=False),
        sa.Column("owner_key_hash", sa.Text, nullable=False),
        sa.Column("token_hash", sa.Text, nullable=False),
        sa.Column("server_instance", sa.Text, nullable=False),
        sa.Column("agent_role", sa.Text, nullable=False),
        sa.Column("debug_label", sa.Text),
        sa.Column("acquired_at_ms", sa.BigInteger, nullable=False),
        sa.Column("expires_at_ms", sa.BigInteger, nullable=False),
        sa.Column("reclaim_reason", sa.Text),
        sa.Column("ended_at_ms", sa.BigInteger),
        sa.Column("end_reason", sa.Text),
        sa.Column("successor", sa.Text),
        sa.Column("finalize_decision", sa.Text),
        sa.PrimaryKeyConstraint("task_id", name="pk_claim_journal"),
    )
    op.create_index(
        "ix_claim_journal_owner_key_hash_target_id_acquired_at_ms",
        "claim_journal",
        ["owner_key_hash", "target_id", "acquired_at_ms"],
    )
    op.create_index("ix_claim_journal_server_instance_ended_at_ms", "claim_journal", ["server_instance", "ended_at_ms"])


def _finalize() -> None:
    op.create_table(
        "finalize_decision",
        sa.Column("task_id", sa.Text, nullable=False),
        sa.Column("decision", sa.Text, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("reason_code", sa.Text),
        sa.Column("claimed_reason_code", sa.Text),
        sa.Column("claimed_reason_text", sa.Text),
        sa.Column("stats", sa.Text, nullable=False),
        sa.Column("claimed_stats", sa.Text, nullable=False),
        sa.Column("decided_at_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("task_id", name="pk_finalize_decision"),
    )
    op.create_index("ix_finalize_decision_decided_at_ms", "finalize_decision", ["decided_at_ms"])
    op.create_table(
        "outbox_job",
        sa.Column("job_id", sa.Text, nullable=False),
        sa.Column("job_key", sa.Text, nullable=False),
        sa.Column("job_type", sa.Text, nullable=False),
        sa.Column("task_id", sa.Text, nullable=False),
        sa.Column("target_id", sa.Text, nullable=False),
        sa.Column("principal", sa.Text, nullable=False),
        sa.Column("agent_id", sa.Text, nullable=False),
        sa.Column("payload", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("due_at_ms", sa.BigInteger, nullable=False),
        sa.Column("leased_by", sa.Text),
        sa.Column("lease_until_ms", sa.BigInteger),
        sa.Column("last_error", sa.Text),
        sa.Column("created_at_ms", sa.BigInteger, nullable=False),
        sa.Column("settled_at_ms", sa.BigInteger),
        sa.PrimaryKeyConstraint("job_id", name="pk_outbox_job"),
    )
    op.create_index("ix_outbox_job_job_key", "outbox_job", ["job_key"], unique=True)
    op.create_index("ix_outbox_job_state_due_at_ms", "outbox_job", ["state", "due_at_ms"])
