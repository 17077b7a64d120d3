"""Live facts: scopes, observations, facts in versions, accounts."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _bindings()
    _observations()
    _facts()
    op.create_table(
        "fact_account",
        sa.Column("service_key", sa.Text, nullable=False),
        sa.Column("account_hash", sa.Text, nullable=False),
        sa.Column("first_seen_ms", sa.BigInteger, nullable=False),
        sa.Column("last_seen_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("service_key", "account_hash", name="pk_fact_account"),
    )


def _bindings() -> None:
    op.create_table(
        "fact_binding",
        sa.Column("binding_id", sa.Text, nullable=False),
        sa.Column("target_id", sa.Text, nullable=False),
        sa.Column("sandbox_id", sa.Text, nullable=False),
        sa.Column("principal", sa.Text, nullable=False),
        sa.Column("service_key", sa.Text, nullable=False),
        sa.Column("account_hash", sa.Text),
        sa.Column("agent_url_hash", sa.Text),
        sa.Column("custom_facts", sa.Integer, nullable=False),
        sa.Column("opened_at_ms", sa.BigInteger, nullable=False),
        sa.Column("closed_at_ms", sa.BigInteger),
        sa.PrimaryKeyConstraint("binding_id", name="pk_fact_binding"),
    )
    for name in ("target_id", "sandbox_id", "closed_at_ms"):
        op.create_index(f"ix_fact_binding_{name}", "fact_binding", [name])


def _observations() -> None:
    op.create_table(
        "fact_observation",
        sa.Column("observation_id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), nullable=False),
        sa.Column("binding_id", sa.Text, nullable=False),
        sa.Column("signal_key", sa.Text, nullable=False),
        sa.Column("value", sa.Text, nullable=False),
        sa.Column("certainty", sa.Text, nullable=False),
        sa.Column("confidence", sa.Integer, nullable=False),
        sa.Column("source_kind", sa.Text, nullable=False),
        sa.Column("evidence", sa.Text),
        sa.Column("perception_id", sa.Text),
        sa.Column("call_id", sa.Text, nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("url_hash", sa.Text, nullable=False),
        sa.Column("route_key", sa.Text, nullable=False),
        sa.Column("observed_at_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("observation_id", name="pk_fact_observation"),
        sa.ForeignKeyConstraint(["binding_id"], ["fact_binding.binding_id"], name="fk_fact_observation_binding_id"),
    )
    op.create_index(
        "ix_fact_observation_binding_id_observation_id", "fact_observation", ["binding_id", "observation_id"]
    )


def _facts() -> None:
    op.create_table(
        "fact",
        sa.Column("binding_id", sa.Text, nullable=False),
        sa.Column("signal_key", sa.Text, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("value", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("confidence", sa.Integer, nullable=False),
        sa.Column("certainty", sa.Text, nullable=False),
        sa.Column("source_kind", sa.Text, nullable=False),
        sa.Column("support", sa.Integer, nullable=False),
        sa.Column("contradictions", sa.Integer, nullable=False),
        sa.Column("corroborated", sa.Boolean, nullable=False),
        sa.Column("contradicting", sa.Integer, nullable=False),
        sa.Column("call_id", sa.Text, nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("url_hash", sa.Text, nullable=False),
        sa.Column("first_observed_at_ms", sa.BigInteger, nullable=False),
        sa.Column("last_observed_at_ms", sa.BigInteger, nullable=False),
        sa.Column("valid_from_ms", sa.BigInteger, nullable=False),
        sa.Column("valid_to_ms", sa.BigInteger),
        sa.Column("superseded_by", sa.Integer),
        sa.PrimaryKeyConstraint("binding_id", "signal_key", "version", name="pk_fact"),
        sa.ForeignKeyConstraint(["binding_id"], ["fact_binding.binding_id"], name="fk_fact_binding_id"),
    )
    op.create_index(
        "ux_fact_current",
        "fact",
        ["binding_id", "signal_key"],
        unique=True,
        sqlite_where=sa.text("valid_to_ms IS NULL"),
        postgresql_where=sa.text("valid_to_ms IS NULL"),
    )
