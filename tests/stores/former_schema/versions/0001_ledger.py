"""The evidence ledger, id counters and the target journal."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    _ledger()
    op.create_table(
        "id_counter",
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("value", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_id_counter"),
    )
    op.create_table(
        "target_journal",
        sa.Column("target_id", sa.Text, nullable=False),
        sa.Column("sandbox_id", sa.Text, nullable=False),
        sa.Column("server_id", sa.Text, nullable=False),
        sa.Column("principal", sa.Text, nullable=False),
        sa.Column("url", sa.Text),
        sa.Column("opened_at_ms", sa.BigInteger, nullable=False),
        sa.Column("ended_at_ms", sa.BigInteger),
        sa.Column("end_reason", sa.Text),
        sa.PrimaryKeyConstraint("target_id", name="pk_target_journal"),
    )
    op.create_index("ix_target_journal_server_id_ended_at_ms", "target_journal", ["server_id", "ended_at_ms"])


def _ledger() -> None:
    op.create_table(
        "ledger_server",
        sa.Column("server_id", sa.Text, nullable=False),
        sa.Column("started_at_ms", sa.BigInteger, nullable=False),
        sa.Column("pid", sa.Integer, nullable=False),
        sa.Column("process_started_ms", sa.BigInteger, nullable=False),
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("version", sa.Text, nullable=False),
        sa.Column("last_seen_ms", sa.BigInteger, nullable=False),
        sa.Column("ended_at_ms", sa.BigInteger),
        sa.Column("end_reason", sa.Text),
        sa.Column("head_seq", sa.BigInteger, nullable=False),
        sa.Column("head_hash", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("server_id", name="pk_ledger_server"),
    )
    op.create_table(
        "ledger_link",
        sa.Column("server_id", sa.Text, nullable=False),
        sa.Column("server_seq", sa.BigInteger, nullable=False),
        sa.Column("call_id", sa.Text, nullable=False),
        sa.Column("body_hash", sa.LargeBinary, nullable=False),
        sa.Column("hash", sa.LargeBinary, nullable=False),
        sa.Column("erased_at_ms", sa.BigInteger),
        sa.PrimaryKeyConstraint("server_id", "server_seq", name="pk_ledger_link"),
        sa.ForeignKeyConstraint(["server_id"], ["ledger_server.server_id"], name="fk_ledger_link_server_id"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_ledger_link_call_id", "ledger_link", ["call_id"], unique=True)
    op.create_table(
        "ledger_body",
        sa.Column("server_id", sa.Text, nullable=False),
        sa.Column("server_seq", sa.BigInteger, nullable=False),
        sa.Column("at_ms", sa.BigInteger, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("principal", sa.Text, nullable=False),
        sa.Column("agent_id", sa.Text, nullable=False),
        sa.Column("tool_name", sa.Text, nullable=False),
        sa.Column("target_id", sa.Text),
        sa.Column("outcome_kind", sa.Text, nullable=False),
        sa.Column("reason_code", sa.Text),
        sa.Column("host", sa.Text),
        sa.Column("task_id", sa.Text),
        sa.Column("instance_id", sa.Text),
        sa.Column("closes", sa.Text),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("server_id", "server_seq", name="pk_ledger_body"),
        sa.ForeignKeyConstraint(
            ["server_id", "server_seq"],
            ["ledger_link.server_id", "ledger_link.server_seq"],
            name="fk_ledger_body_server_id_server_seq",
        ),
    )
    op.create_index("ix_ledger_body_at_ms", "ledger_body", ["at_ms"])
    op.create_table(
        "ledger_open_intent",
        sa.Column("call_id", sa.Text, nullable=False),
        sa.Column("server_id", sa.Text, nullable=False),
        sa.Column("server_seq", sa.BigInteger, nullable=False),
        sa.Column("at_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("call_id", name="pk_ledger_open_intent"),
        sa.ForeignKeyConstraint(
            ["server_id", "server_seq"],
            ["ledger_link.server_id", "ledger_link.server_seq"],
            name="fk_ledger_open_intent_server_id_server_seq",
        ),
    )
    op.create_index("ix_ledger_open_intent_server_id", "ledger_open_intent", ["server_id"])
