"""Closed-loop acting: transitions, goals and kill switches."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _transitions()
    _goals()
    op.create_table(
        "kill_switch",
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("set_at_ms", sa.BigInteger, nullable=False),
        sa.Column("set_by", sa.Text, nullable=False),
        sa.Column("note", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_kill_switch"),
    )


def _transitions() -> None:
    op.create_table(
        "transition",
        sa.Column("transition_id", sa.Text, nullable=False),
        sa.Column("principal", sa.Text, nullable=False),
        sa.Column("agent_id", sa.Text, nullable=False),
        sa.Column("server_id", sa.Text, nullable=False),
        sa.Column("call_id", sa.Text, nullable=False),
        sa.Column("tool_name", sa.Text, nullable=False),
        sa.Column("target_id", sa.Text),
        sa.Column("origin", sa.Text, nullable=False),
        sa.Column("identity", sa.Text),
        sa.Column("intent_key", sa.Text),
        sa.Column("action_kind", sa.Text, nullable=False),
        sa.Column("contract", sa.Text, nullable=False),
        sa.Column("goal_id", sa.Text),
        sa.Column("step_no", sa.Integer),
        sa.Column("element", sa.Text, nullable=False),
        sa.Column("started_at_ms", sa.BigInteger, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("reason", sa.Text),
        sa.Column("lost_request", sa.Integer, nullable=False),
        sa.Column("mutated", sa.Integer, nullable=False),
        sa.Column("completed_at_ms", sa.BigInteger),
        sa.Column("resolved_by", sa.Text),
        sa.Column("receipt", sa.Text),
        sa.PrimaryKeyConstraint("transition_id", name="pk_transition"),
    )
    op.create_index(
        "ix_transition_principal_identity_started_at_ms", "transition", ["principal", "identity", "started_at_ms"]
    )
    op.create_index("ix_transition_started_at_ms", "transition", ["started_at_ms"])
    op.create_index("ix_transition_completed_at_ms", "transition", ["completed_at_ms"])
    op.create_table(
        "transition_open",
        sa.Column("principal", sa.Text, nullable=False),
        sa.Column("identity", sa.Text, nullable=False),
        sa.Column("transition_id", sa.Text, nullable=False),
        sa.Column("server_id", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("principal", "identity", name="pk_transition_open"),
    )
    op.create_index("ix_transition_open_transition_id", "transition_open", ["transition_id"], unique=True)


def _goals() -> None:
    op.create_table(
        "goal",
        sa.Column("goal_id", sa.Text, nullable=False),
        sa.Column("principal", sa.Text, nullable=False),
        sa.Column("created_by", sa.Text, nullable=False),
        sa.Column("target_id", sa.Text),
        sa.Column("summary", sa.Text, nullable=False),
        sa.Column("mode", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("owner_agent_id", sa.Text),
        sa.Column("session_id", sa.Text),
        sa.Column("preconditions", sa.Text),
        sa.Column("precondition_verdict", sa.Text),
        sa.Column("lease_ms", sa.BigInteger, nullable=False),
        sa.Column("lease_expires_at_ms", sa.BigInteger, nullable=False),
        sa.Column("created_at_ms", sa.BigInteger, nullable=False),
        sa.Column("ended_at_ms", sa.BigInteger),
        sa.Column("event_count", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("goal_id", name="pk_goal"),
    )
    op.create_index("ix_goal_principal_target_id_created_at_ms", "goal", ["principal", "target_id", "created_at_ms"])
    op.create_table(
        "goal_step",
        sa.Column("goal_id", sa.Text, nullable=False),
        sa.Column("step_no", sa.Integer, nullable=False),
        sa.Column("action_desc", sa.Text, nullable=False),
        sa.Column("contract", sa.Text),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("verification_status", sa.Text),
        sa.Column("lease_token", sa.Text),
        sa.Column("lease_expires_at_ms", sa.BigInteger),
        sa.Column("changed_at_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("goal_id", "step_no", name="pk_goal_step"),
        sa.ForeignKeyConstraint(["goal_id"], ["goal.goal_id"], name="fk_goal_step_goal_id"),
    )
    op.create_table(
        "goal_event",
        sa.Column("goal_id", sa.Text, nullable=False),
        sa.Column("event_no", sa.BigInteger, nullable=False),
        sa.Column("at_ms", sa.BigInteger, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("content", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("goal_id", "event_no", name="pk_goal_event"),
        sa.ForeignKeyConstraint(["goal_id"], ["goal.goal_id"], name="fk_goal_event_goal_id"),
    )
