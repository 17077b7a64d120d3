"""Task memory: units are counted, and profiles chosen, by what stands in an index."""

import json

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_AT_ONCE = 500


def upgrade() -> None:
    _units()
    _terms()


def _units() -> None:
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


def _terms() -> None:
    op.add_column("task_profile_term", sa.Column("credit", sa.Integer, nullable=False, server_default="10"))
    _credit_terms(op.get_bind())
    op.drop_index("ix_task_profile_term_principal_term_site_created_at_ms", "task_profile_term")
    op.create_index(
        "ix_task_profile_term_near",
        "task_profile_term",
        ["principal", "term", "site", "created_at_ms", "profile_id", "credit"],
    )


def _credit_terms(conn: sa.Connection) -> None:
    """What a term is worth in a profile: as much as the best of its words that is found by it."""
    profiles = conn.execute(sa.text("SELECT principal, profile_id, created_at_ms, match_words FROM task_profile")).all()
    worth = sa.text(
        "UPDATE task_profile_term SET credit = :credit "
        "WHERE principal = :principal AND term = :term AND created_at_ms = :created AND profile_id = :profile"
    )
    for first in range(0, len(profiles), _AT_ONCE):
        rows = [
            {"principal": one[0], "profile": one[1], "created": one[2], "term": term, "credit": credit}
            for one in profiles[first : first + _AT_ONCE]
            for term, credit in _credits(json.loads(one[3])).items()
        ]
        if rows:
            conn.execute(worth, rows)


def _credits(words: dict[str, float]) -> dict[str, int]:
    found: dict[str, int] = {}
    for word, credit in words.items():
        for term in {word, word[:4]} if len(word) > 4 else {word}:
            found[term] = max(round(10 * credit), found.get(term, 0))
    return found
