"""Ways to what people look for: entries that do not guide yet, questions left open, goals by their age."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

_WAITING = sa.text("level < 2 AND deprecated_reason IS NULL")
_OPEN = sa.text("state IN ('prompted', 'warned', 'deferred')")


def upgrade() -> None:
    op.create_index(
        "ix_knowledge_entry_waiting",
        "knowledge_entry",
        ["entry_id"],
        sqlite_where=_WAITING,
        postgresql_where=_WAITING,
    )
    op.create_index(
        "ix_semantic_opportunity_open",
        "semantic_opportunity",
        ["principal", "updated_at_ms"],
        sqlite_where=_OPEN,
        postgresql_where=_OPEN,
    )
    op.create_index("ix_goal_principal_created_at_ms", "goal", ["principal", "created_at_ms"])
