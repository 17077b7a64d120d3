"""Task memory: how the units of a run stand is read from an index."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index(
        "ix_task_unit_standing",
        "task_unit",
        ["instance_id", "status", "late", "grade", "covered_by_observation_id"],
    )
    uncovered = sa.text("url IS NOT NULL AND status != 'excluded' AND covered_by_observation_id IS NULL")
    op.create_index(
        "ix_task_unit_uncovered",
        "task_unit",
        ["instance_id", "ordinal"],
        sqlite_where=uncovered,
        postgresql_where=uncovered,
    )
