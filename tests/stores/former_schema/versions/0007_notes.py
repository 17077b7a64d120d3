"""Notes: Browser Memory, Operator Notes, Domain Notes."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_SERIAL = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    _browser_memory()
    _operator_notes()
    _domain_notes()


def _browser_memory() -> None:
    op.create_table(
        "browser_memory",
        sa.Column("memory_id", _SERIAL, nullable=False),
        sa.Column("principal", sa.Text, nullable=False),
        sa.Column("domain", sa.Text, nullable=False),
        sa.Column("url_pattern", sa.Text),
        sa.Column("memory_type", sa.Text, nullable=False),
        sa.Column("content", sa.Text, nullable=False),
        sa.Column("content_fold", sa.Text, nullable=False),
        sa.Column("identity_hash", sa.Text, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("created_at_ms", sa.BigInteger, nullable=False),
        sa.Column("refreshed_at_ms", sa.BigInteger, nullable=False),
        sa.Column("accessed_at_ms", sa.BigInteger),
        sa.Column("access_count", sa.Integer, nullable=False),
        sa.Column("reinforced_at_ms", sa.BigInteger),
        sa.Column("expires_at_ms", sa.BigInteger, nullable=False),
        sa.Column("content_rev", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("memory_id", name="pk_browser_memory"),
        sa.UniqueConstraint("principal", "identity_hash", name="uq_browser_memory_principal_identity_hash"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_browser_memory_expires_at_ms", "browser_memory", ["expires_at_ms"])
    op.create_index(
        "ix_browser_memory_principal_domain_expires_at_ms", "browser_memory", ["principal", "domain", "expires_at_ms"]
    )


def _operator_notes() -> None:
    op.create_table(
        "operator_note",
        sa.Column("note_id", sa.Text, nullable=False),
        sa.Column("principal", sa.Text, nullable=False),
        sa.Column("content", sa.Text, nullable=False),
        sa.Column("tags", sa.Text, nullable=False),
        sa.Column("category", sa.Text),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("rev", sa.Integer, nullable=False),
        sa.Column("created_at_ms", sa.BigInteger, nullable=False),
        sa.Column("updated_at_ms", sa.BigInteger, nullable=False),
        sa.Column("last_matched_at_ms", sa.BigInteger),
        sa.Column("match_count", sa.Integer, nullable=False),
        sa.Column("identity_hash", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("note_id", name="pk_operator_note"),
    )
    op.create_index("ix_operator_note_principal_identity_hash", "operator_note", ["principal", "identity_hash"])
    op.create_index("ix_operator_note_principal_updated_at_ms", "operator_note", ["principal", "updated_at_ms"])


def _domain_notes() -> None:
    op.create_table(
        "domain_note",
        sa.Column("note_id", sa.Text, nullable=False),
        sa.Column("principal", sa.Text, nullable=False),
        sa.Column("domain", sa.Text, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("value", sa.Text, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("enforcement", sa.Text, nullable=False),
        sa.Column("repeat_minutes", sa.Integer),
        sa.Column("repeat_tool_calls", sa.Integer),
        sa.Column("rev", sa.Integer, nullable=False),
        sa.Column("created_at_ms", sa.BigInteger, nullable=False),
        sa.Column("updated_at_ms", sa.BigInteger, nullable=False),
        sa.Column("last_delivered_at_ms", sa.BigInteger),
        sa.PrimaryKeyConstraint("note_id", name="pk_domain_note"),
        sa.UniqueConstraint("principal", "domain", "key", name="uq_domain_note_principal_domain_key"),
    )
    op.create_index("ix_domain_note_domain_principal", "domain_note", ["domain", "principal"])
