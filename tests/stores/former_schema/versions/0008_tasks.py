"""Task memory: profiles, runs, guidance, visits, scans, known URLs, learn counters."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_SERIAL = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    _ledger()
    _profiles()
    _runs()
    _units()
    _guidance()
    _visits()
    _coverage()
    _learn_mode()


def _ledger() -> None:
    worked = sa.text("outcome_kind = 'ok'")
    op.create_index(
        "ix_ledger_body_done",
        "ledger_body",
        ["principal", "agent_id", "tool_name", "at_ms"],
        sqlite_where=worked,
        postgresql_where=worked,
    )


def _profiles() -> None:
    op.create_table(
        "task_profile",
        sa.Column("principal", sa.Text, nullable=False),
        sa.Column("profile_id", sa.Text, nullable=False),
        sa.Column("task_type", sa.Text, nullable=False),
        sa.Column("task_kind", sa.Text),
        sa.Column("display_name", sa.Text, nullable=False),
        sa.Column("domain", sa.Text),
        sa.Column("platform", sa.Text),
        sa.Column("match_words", sa.Text, nullable=False),
        sa.Column("goal", sa.Text, nullable=False),
        sa.Column("stable_guidance", sa.Text, nullable=False),
        sa.Column("mandatory_checks", sa.Text, nullable=False),
        sa.Column("completion_condition", sa.Text, nullable=False),
        sa.Column("known_exceptions", sa.Text, nullable=False),
        sa.Column("verification", sa.Text),
        sa.Column("base_confidence", sa.Float, nullable=False),
        sa.Column("content_rev", sa.Integer, nullable=False),
        sa.Column("archived", sa.Boolean, nullable=False),
        sa.Column("runs", sa.Integer, nullable=False),
        sa.Column("completed_runs", sa.Integer, nullable=False),
        sa.Column("failed_runs", sa.Integer, nullable=False),
        sa.Column("aborted_runs", sa.Integer, nullable=False),
        sa.Column("last_ended_at_ms", sa.BigInteger),
        sa.Column("created_at_ms", sa.BigInteger, nullable=False),
        sa.Column("updated_at_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("principal", "profile_id", name="pk_task_profile"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_task_profile_principal_updated_at_ms", "task_profile", ["principal", "updated_at_ms"])
    op.create_table(
        "task_profile_term",
        sa.Column("principal", sa.Text, nullable=False),
        sa.Column("term", sa.Text, nullable=False),
        sa.Column("created_at_ms", sa.BigInteger, nullable=False),
        sa.Column("profile_id", sa.Text, nullable=False),
        sa.Column("site", sa.Text),
        sa.PrimaryKeyConstraint("principal", "term", "created_at_ms", "profile_id", name="pk_task_profile_term"),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "ix_task_profile_term_principal_term_site_created_at_ms",
        "task_profile_term",
        ["principal", "term", "site", "created_at_ms"],
    )
    op.create_table(
        "task_term",
        sa.Column("principal", sa.Text, nullable=False),
        sa.Column("term", sa.Text, nullable=False),
        sa.Column("profiles", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("principal", "term", name="pk_task_term"),
        sqlite_with_rowid=False,
    )


def _runs() -> None:
    op.create_table(
        "task_instance",
        sa.Column("instance_id", sa.Text, nullable=False),
        sa.Column("principal", sa.Text, nullable=False),
        sa.Column("profile_id", sa.Text),
        sa.Column("profile_rev_applied", sa.Integer),
        sa.Column("instance_rev", sa.Integer, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("discovery_state", sa.Text, nullable=False),
        sa.Column("effective_context", sa.Text, nullable=False),
        sa.Column("effective_context_hash", sa.Text, nullable=False),
        sa.Column("overrides", sa.Text, nullable=False),
        sa.Column("target_url", sa.Text),
        sa.Column("target_host", sa.Text),
        sa.Column("task_kind", sa.Text),
        sa.Column("task_kind_source", sa.Text, nullable=False),
        sa.Column("unit_kind", sa.Text, nullable=False),
        sa.Column("coverage_mode", sa.Text, nullable=False),
        sa.Column("resume_state", sa.Text, nullable=False),
        sa.Column("checks_state", sa.Text, nullable=False),
        sa.Column("units", sa.Integer, nullable=False),
        sa.Column("beginning", sa.Text, nullable=False),
        sa.Column("ledger_gap", sa.Boolean, nullable=False),
        sa.Column("evidence_snapshot", sa.Text),
        sa.Column("ended_reason", sa.Text),
        sa.Column("created_by", sa.Text, nullable=False),
        sa.Column("create_event_id", sa.Text),
        sa.Column("create_payload_hash", sa.Text),
        sa.Column("started_at_ms", sa.BigInteger, nullable=False),
        sa.Column("last_activity_at_ms", sa.BigInteger, nullable=False),
        sa.Column("ended_at_ms", sa.BigInteger),
        sa.PrimaryKeyConstraint("instance_id", name="pk_task_instance"),
        sa.UniqueConstraint(
            "principal",
            "created_by",
            "create_event_id",
            name="uq_task_instance_principal_created_by_create_event_id",
        ),
    )
    op.create_index("ix_task_instance_ended_at_ms", "task_instance", ["ended_at_ms"])
    op.create_index(
        "ix_task_instance_principal_profile_id_ended_at_ms", "task_instance", ["principal", "profile_id", "ended_at_ms"]
    )
    op.create_index(
        "ix_task_instance_principal_status_last_activity_at_ms",
        "task_instance",
        ["principal", "status", "last_activity_at_ms"],
    )
    op.create_index("ix_task_instance_status_last_activity_at_ms", "task_instance", ["status", "last_activity_at_ms"])
    op.create_table(
        "task_instance_member",
        sa.Column("instance_id", sa.Text, nullable=False),
        sa.Column("principal", sa.Text, nullable=False),
        sa.Column("agent_id", sa.Text, nullable=False),
        sa.Column("joined_at_ms", sa.BigInteger, nullable=False),
        sa.Column("ended_at_ms", sa.BigInteger),
        sa.Column("scan_hinted_at_ms", sa.BigInteger),
        sa.PrimaryKeyConstraint("instance_id", "principal", "agent_id", name="pk_task_instance_member"),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "ix_task_instance_member_principal_agent_id_ended_at_ms",
        "task_instance_member",
        ["principal", "agent_id", "ended_at_ms"],
    )
    op.create_table(
        "task_instance_event",
        sa.Column("instance_id", sa.Text, nullable=False),
        sa.Column("rev_after", sa.Integer, nullable=False),
        sa.Column("client_event_id", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("agent_id", sa.Text, nullable=False),
        sa.Column("payload_hash", sa.Text, nullable=False),
        sa.Column("rev_before", sa.Integer, nullable=False),
        sa.Column("delta", sa.Text, nullable=False),
        sa.Column("response", sa.Text, nullable=False),
        sa.Column("at_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("instance_id", "rev_after", name="pk_task_instance_event"),
        sa.UniqueConstraint(
            "instance_id", "client_event_id", name="uq_task_instance_event_instance_id_client_event_id"
        ),
        sqlite_with_rowid=False,
    )


def _units() -> None:
    op.create_table(
        "task_unit",
        sa.Column("instance_id", sa.Text, nullable=False),
        sa.Column("unit_key", sa.Text, nullable=False),
        sa.Column("ordinal", sa.Integer, nullable=False),
        sa.Column("label", sa.Text, nullable=False),
        sa.Column("url", sa.Text),
        sa.Column("locator_type", sa.Text),
        sa.Column("locator_value", sa.Text),
        sa.Column("locator_hash", sa.Text),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("reason", sa.Text),
        sa.Column("late", sa.Boolean, nullable=False),
        sa.Column("observed_count", sa.Integer, nullable=False),
        sa.Column("grade", sa.Text, nullable=False),
        sa.Column("grade_reason", sa.Text),
        sa.Column("best_reads", sa.Integer, nullable=False),
        sa.Column("best_dwell_ms", sa.BigInteger, nullable=False),
        sa.Column("best_ended_at_ms", sa.BigInteger),
        sa.Column("covered_by_observation_id", sa.Text),
        sa.Column("covered_by_scan_id", sa.Text),
        sa.Column("updated_at_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("instance_id", "unit_key", name="pk_task_unit"),
        sa.UniqueConstraint("instance_id", "ordinal", name="uq_task_unit_instance_id_ordinal"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_task_unit_instance_id_locator_hash", "task_unit", ["instance_id", "locator_hash"])
    op.create_index("ix_task_unit_instance_id_status_ordinal", "task_unit", ["instance_id", "status", "ordinal"])
    op.create_table(
        "task_finding",
        sa.Column("instance_id", sa.Text, nullable=False),
        sa.Column("finding_key", sa.Text, nullable=False),
        sa.Column("detail", sa.Text, nullable=False),
        sa.Column("unit_key", sa.Text),
        sa.Column("severity", sa.Text, nullable=False),
        sa.Column("updated_at_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("instance_id", "finding_key", name="pk_task_finding"),
        sqlite_with_rowid=False,
    )


def _guidance() -> None:
    op.create_table(
        "task_guidance_log",
        sa.Column("log_id", sa.Text, nullable=False),
        sa.Column("principal", sa.Text, nullable=False),
        sa.Column("hash", sa.Text, nullable=False),
        sa.Column("profile_id", sa.Text),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("source_kind", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("payload", sa.Text, nullable=False),
        sa.Column("occurrence_count", sa.Integer, nullable=False),
        sa.Column("promoted_to_content_rev", sa.Integer),
        sa.Column("decided_reason", sa.Text),
        sa.Column("created_at_ms", sa.BigInteger, nullable=False),
        sa.Column("updated_at_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("log_id", name="pk_task_guidance_log"),
        sa.UniqueConstraint("principal", "hash", name="uq_task_guidance_log_principal_hash"),
    )
    op.create_index("ix_task_guidance_log_principal_updated_at_ms", "task_guidance_log", ["principal", "updated_at_ms"])
    op.create_index(
        "ix_task_guidance_log_principal_profile_id_updated_at_ms",
        "task_guidance_log",
        ["principal", "profile_id", "updated_at_ms"],
    )
    op.create_table(
        "task_guidance_occurrence",
        sa.Column("log_id", sa.Text, nullable=False),
        sa.Column("occurrence_key", sa.Text, nullable=False),
        sa.Column("at_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("log_id", "occurrence_key", name="pk_task_guidance_occurrence"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_task_guidance_occurrence_occurrence_key", "task_guidance_occurrence", ["occurrence_key"])


def _visits() -> None:
    op.create_table(
        "visit_window",
        sa.Column("window_id", _SERIAL, nullable=False),
        sa.Column("principal", sa.Text, nullable=False),
        sa.Column("agent_id", sa.Text, nullable=False),
        sa.Column("target_id", sa.Text, nullable=False),
        sa.Column("task_id", sa.Text),
        sa.Column("url_hash", sa.Text, nullable=False),
        sa.Column("path_hash", sa.Text, nullable=False),
        sa.Column("started_at_ms", sa.BigInteger, nullable=False),
        sa.Column("ended_at_ms", sa.BigInteger, nullable=False),
        sa.Column("last_call_at_ms", sa.BigInteger, nullable=False),
        sa.Column("last_read_at_ms", sa.BigInteger),
        sa.Column("stayed_ms", sa.Integer, nullable=False),
        sa.Column("settled", sa.Boolean, nullable=False),
        sa.Column("calls", sa.Integer, nullable=False),
        sa.Column("reads", sa.Integer, nullable=False),
        sa.Column("error_page", sa.Boolean, nullable=False),
        sa.Column("agent_scripted", sa.Boolean, nullable=False),
        sa.PrimaryKeyConstraint("window_id", name="pk_visit_window"),
    )
    op.create_index(
        "ix_visit_window_principal_agent_id_path_hash", "visit_window", ["principal", "agent_id", "path_hash"]
    )
    op.create_index(
        "ix_visit_window_principal_agent_id_url_hash", "visit_window", ["principal", "agent_id", "url_hash"]
    )
    op.create_index("ix_visit_window_started_at_ms", "visit_window", ["started_at_ms"])
    op.create_index(
        "ix_visit_window_target_id_principal_agent_id_window_id",
        "visit_window",
        ["target_id", "principal", "agent_id", "window_id"],
    )
    op.create_table(
        "redirect_seen",
        sa.Column("principal", sa.Text, nullable=False),
        sa.Column("agent_id", sa.Text, nullable=False),
        sa.Column("from_hash", sa.Text, nullable=False),
        sa.Column("to_hash", sa.Text, nullable=False),
        sa.Column("last_at_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("principal", "agent_id", "from_hash", "to_hash", name="pk_redirect_seen"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_redirect_seen_last_at_ms", "redirect_seen", ["last_at_ms"])
    op.create_index(
        "ix_redirect_seen_principal_agent_id_to_hash", "redirect_seen", ["principal", "agent_id", "to_hash"]
    )
    op.create_table(
        "touched_selector",
        sa.Column("principal", sa.Text, nullable=False),
        sa.Column("agent_id", sa.Text, nullable=False),
        sa.Column("selector_hash", sa.Text, nullable=False),
        sa.Column("last_at_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("principal", "agent_id", "selector_hash", name="pk_touched_selector"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_touched_selector_last_at_ms", "touched_selector", ["last_at_ms"])


def _coverage() -> None:
    op.create_table(
        "coverage_observation",
        sa.Column("observation_id", sa.Text, nullable=False),
        sa.Column("principal", sa.Text, nullable=False),
        sa.Column("agent_id", sa.Text, nullable=False),
        sa.Column("url_hash", sa.Text, nullable=False),
        sa.Column("scan_id", sa.Text, nullable=False),
        sa.Column("scan_hash", sa.Text, nullable=False),
        sa.Column("trusted", sa.Boolean, nullable=False),
        sa.Column("trust_reason", sa.Text, nullable=False),
        sa.Column("measures", sa.Text, nullable=False),
        sa.Column("skeleton", sa.Text),
        sa.Column("normalizer_version", sa.Integer, nullable=False),
        sa.Column("at_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("observation_id", name="pk_coverage_observation"),
    )
    op.create_index("ix_coverage_observation_at_ms", "coverage_observation", ["at_ms"])
    op.create_index(
        "ix_coverage_observation_principal_agent_id_url_hash_at_ms",
        "coverage_observation",
        ["principal", "agent_id", "url_hash", "at_ms"],
    )
    op.create_table(
        "site_url",
        sa.Column("principal", sa.Text, nullable=False),
        sa.Column("url_hash", sa.Text, nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("site", sa.Text, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("last_seen_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("principal", "url_hash", name="pk_site_url"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_site_url_last_seen_ms", "site_url", ["last_seen_ms"])
    op.create_index("ix_site_url_principal_site_last_seen_ms", "site_url", ["principal", "site", "last_seen_ms"])


def _learn_mode() -> None:
    op.create_table(
        "learn_activation",
        sa.Column("task_id", sa.Text, nullable=False),
        sa.Column("principal", sa.Text, nullable=False),
        sa.Column("agent_id", sa.Text, nullable=False),
        sa.Column("target_id", sa.Text, nullable=False),
        sa.Column("domain", sa.Text, nullable=False),
        sa.Column("surfaces", sa.Integer, nullable=False),
        sa.Column("interactions", sa.Integer, nullable=False),
        sa.Column("outcome", sa.Text),
        sa.Column("exhausted_reason", sa.Text),
        sa.Column("activated_at_ms", sa.BigInteger, nullable=False),
        sa.Column("ended_at_ms", sa.BigInteger),
        sa.PrimaryKeyConstraint("task_id", name="pk_learn_activation"),
    )
    op.create_index("ix_learn_activation_ended_at_ms", "learn_activation", ["ended_at_ms"])
    op.create_index(
        "ix_learn_activation_principal_agent_id_ended_at_ms",
        "learn_activation",
        ["principal", "agent_id", "ended_at_ms"],
    )
    op.create_table(
        "learn_count",
        sa.Column("task_id", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("group_key", sa.Text),
        sa.PrimaryKeyConstraint("task_id", "kind", "key", name="pk_learn_count"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_learn_count_task_id_kind_group_key", "learn_count", ["task_id", "kind", "group_key"])
