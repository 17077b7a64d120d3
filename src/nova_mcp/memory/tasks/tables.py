"""The tables of task memory: profiles, runs and units, guidance, visits, scans, known URLs, learn counters."""

from sqlalchemy import BigInteger, Boolean, Column, Float, Index, Integer, Table, Text, UniqueConstraint, text

from nova_mcp.memory.knowledge.tables import Serial
from nova_mcp.storage.schema import metadata

# -- profiles

# The counts of ended runs stand here, so that confidence is computed on read without counting runs.
task_profile = Table(
    "task_profile",
    metadata,
    Column("principal", Text, primary_key=True),
    Column("profile_id", Text, primary_key=True),
    Column("task_type", Text, nullable=False),
    Column("task_kind", Text),
    Column("display_name", Text, nullable=False),
    Column("domain", Text),
    Column("platform", Text),
    # What each of its words is worth when a described task is held against it.
    Column("match_words", Text, nullable=False),
    Column("goal", Text, nullable=False),
    Column("stable_guidance", Text, nullable=False),
    Column("mandatory_checks", Text, nullable=False),
    Column("completion_condition", Text, nullable=False),
    Column("known_exceptions", Text, nullable=False),
    Column("verification", Text),
    Column("base_confidence", Float, nullable=False),
    Column("content_rev", Integer, nullable=False),
    Column("archived", Boolean, nullable=False),
    Column("runs", Integer, nullable=False),
    Column("completed_runs", Integer, nullable=False),
    Column("failed_runs", Integer, nullable=False),
    Column("aborted_runs", Integer, nullable=False),
    Column("last_ended_at_ms", BigInteger),
    Column("created_at_ms", BigInteger, nullable=False),
    Column("updated_at_ms", BigInteger, nullable=False),
    Index(None, "principal", "updated_at_ms"),
    sqlite_with_rowid=False,
)

# Newest profiles of a term stand together, and those of one site once more, so that finding them is one look each.
# What the term is worth in a profile stands beside it, so that most of what is found need not be looked at.
task_profile_term = Table(
    "task_profile_term",
    metadata,
    Column("principal", Text, primary_key=True),
    Column("term", Text, primary_key=True),
    Column("created_at_ms", BigInteger, primary_key=True),
    Column("profile_id", Text, primary_key=True),
    Column("site", Text),
    # In tenths.
    Column("credit", Integer, nullable=False),
    Index("ix_task_profile_term_near", "principal", "term", "site", "created_at_ms", "profile_id", "credit"),
    sqlite_with_rowid=False,
)

# In how many profiles a term stands.
task_term = Table(
    "task_term",
    metadata,
    Column("principal", Text, primary_key=True),
    Column("term", Text, primary_key=True),
    Column("profiles", Integer, nullable=False),
    sqlite_with_rowid=False,
)

# -- runs

task_instance = Table(
    "task_instance",
    metadata,
    Column("instance_id", Text, primary_key=True),
    Column("principal", Text, nullable=False),
    Column("profile_id", Text),
    Column("profile_rev_applied", Integer),
    Column("instance_rev", Integer, nullable=False),
    Column("status", Text, nullable=False),
    Column("discovery_state", Text, nullable=False),
    Column("effective_context", Text, nullable=False),
    Column("effective_context_hash", Text, nullable=False),
    Column("overrides", Text, nullable=False),
    Column("target_url", Text),
    Column("target_host", Text),
    Column("task_kind", Text),
    Column("task_kind_source", Text, nullable=False),
    Column("unit_kind", Text, nullable=False),
    Column("coverage_mode", Text, nullable=False),
    Column("resume_state", Text, nullable=False),
    Column("checks_state", Text, nullable=False),
    Column("units", Integer, nullable=False),
    # How the run stood at revision 0, with what seeding left out: what its events are added to.
    Column("beginning", Text, nullable=False),
    # A ledger write of a member failed while the run was open.
    Column("ledger_gap", Boolean, nullable=False),
    Column("evidence_snapshot", Text),
    Column("ended_reason", Text),
    Column("created_by", Text, nullable=False),
    Column("create_event_id", Text),
    Column("create_payload_hash", Text),
    Column("started_at_ms", BigInteger, nullable=False),
    Column("last_activity_at_ms", BigInteger, nullable=False),
    Column("ended_at_ms", BigInteger),
    UniqueConstraint("principal", "created_by", "create_event_id"),
    Index(None, "principal", "status", "last_activity_at_ms"),
    Index(None, "status", "last_activity_at_ms"),
    Index(None, "principal", "profile_id", "ended_at_ms"),
    Index(None, "ended_at_ms"),
)

task_instance_member = Table(
    "task_instance_member",
    metadata,
    Column("instance_id", Text, primary_key=True),
    Column("principal", Text, primary_key=True),
    Column("agent_id", Text, primary_key=True),
    Column("joined_at_ms", BigInteger, nullable=False),
    # Set with the end of the run, so that a member's open runs are found by one index.
    Column("ended_at_ms", BigInteger),
    # No longer written: whether a scan was recommended is remembered for each connection.
    Column("scan_hinted_at_ms", BigInteger),
    Index(None, "principal", "agent_id", "ended_at_ms"),
    sqlite_with_rowid=False,
)

task_instance_event = Table(
    "task_instance_event",
    metadata,
    Column("instance_id", Text, primary_key=True),
    Column("rev_after", Integer, primary_key=True),
    Column("client_event_id", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("agent_id", Text, nullable=False),
    Column("payload_hash", Text, nullable=False),
    Column("rev_before", Integer, nullable=False),
    Column("delta", Text, nullable=False),
    Column("response", Text, nullable=False),
    Column("at_ms", BigInteger, nullable=False),
    UniqueConstraint("instance_id", "client_event_id"),
    sqlite_with_rowid=False,
)

# In these words wherever such units are asked for, or no store finds the index that holds only them.
_UNCOVERED = text("url IS NOT NULL AND status != 'excluded' AND covered_by_observation_id IS NULL")

# `locator_hash` is what a recorded call is held against: of a URL, of a URL without its query, or of a selector.
task_unit = Table(
    "task_unit",
    metadata,
    Column("instance_id", Text, primary_key=True),
    Column("unit_key", Text, primary_key=True),
    Column("ordinal", Integer, nullable=False),
    Column("label", Text, nullable=False),
    Column("url", Text),
    Column("locator_type", Text),
    Column("locator_value", Text),
    Column("locator_hash", Text),
    Column("status", Text, nullable=False),
    Column("reason", Text),
    Column("late", Boolean, nullable=False),
    Column("observed_count", Integer, nullable=False),
    Column("grade", Text, nullable=False),
    Column("grade_reason", Text),
    Column("best_reads", Integer, nullable=False),
    Column("best_dwell_ms", BigInteger, nullable=False),
    Column("best_ended_at_ms", BigInteger),
    Column("covered_by_observation_id", Text),
    Column("covered_by_scan_id", Text),
    Column("updated_at_ms", BigInteger, nullable=False),
    UniqueConstraint("instance_id", "ordinal"),
    Index(None, "instance_id", "locator_hash"),
    Index(None, "instance_id", "status", "ordinal"),
    # How the units of a run stand is counted in this index alone, without a look at the units themselves.
    Index("ix_task_unit_standing", "instance_id", "status", "late", "grade", "covered_by_observation_id"),
    Index("ix_task_unit_uncovered", "instance_id", "ordinal", sqlite_where=_UNCOVERED, postgresql_where=_UNCOVERED),
    sqlite_with_rowid=False,
)

task_finding = Table(
    "task_finding",
    metadata,
    Column("instance_id", Text, primary_key=True),
    Column("finding_key", Text, primary_key=True),
    Column("detail", Text, nullable=False),
    Column("unit_key", Text),
    Column("severity", Text, nullable=False),
    Column("updated_at_ms", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

# -- guidance

task_guidance_log = Table(
    "task_guidance_log",
    metadata,
    Column("log_id", Text, primary_key=True),
    Column("principal", Text, nullable=False),
    Column("hash", Text, nullable=False),
    Column("profile_id", Text),
    Column("kind", Text, nullable=False),
    Column("source_kind", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("payload", Text, nullable=False),
    Column("occurrence_count", Integer, nullable=False),
    Column("promoted_to_content_rev", Integer),
    Column("decided_reason", Text),
    Column("created_at_ms", BigInteger, nullable=False),
    Column("updated_at_ms", BigInteger, nullable=False),
    UniqueConstraint("principal", "hash"),
    Index(None, "principal", "profile_id", "updated_at_ms"),
    Index(None, "principal", "updated_at_ms"),
)

task_guidance_occurrence = Table(
    "task_guidance_occurrence",
    metadata,
    Column("log_id", Text, primary_key=True),
    Column("occurrence_key", Text, primary_key=True),
    Column("at_ms", BigInteger, nullable=False),
    Index(None, "occurrence_key"),
    sqlite_with_rowid=False,
)

# -- what was seen

# One row per stay of an agent on one page of a target; the newest of a target is the one that may still grow, until it
# is settled. Nothing that a call changes stands in an index.
visit_window = Table(
    "visit_window",
    metadata,
    Column("window_id", Serial, primary_key=True),
    Column("principal", Text, nullable=False),
    Column("agent_id", Text, nullable=False),
    Column("target_id", Text, nullable=False),
    Column("task_id", Text),
    Column("url_hash", Text, nullable=False),
    Column("path_hash", Text, nullable=False),
    Column("started_at_ms", BigInteger, nullable=False),
    Column("ended_at_ms", BigInteger, nullable=False),
    # When the last call began, and the last one that read: what was done before a run opened is not part of it.
    Column("last_call_at_ms", BigInteger, nullable=False),
    Column("last_read_at_ms", BigInteger),
    Column("stayed_ms", Integer, nullable=False),
    Column("settled", Boolean, nullable=False),
    Column("calls", Integer, nullable=False),
    Column("reads", Integer, nullable=False),
    Column("error_page", Boolean, nullable=False),
    Column("agent_scripted", Boolean, nullable=False),
    Index(None, "target_id", "principal", "agent_id", "window_id"),
    Index(None, "principal", "agent_id", "url_hash"),
    Index(None, "principal", "agent_id", "path_hash"),
    Index(None, "started_at_ms"),
)

# Which address was seen to lead to which, where only the spelling differs.
redirect_seen = Table(
    "redirect_seen",
    metadata,
    Column("principal", Text, primary_key=True),
    Column("agent_id", Text, primary_key=True),
    Column("from_hash", Text, primary_key=True),
    Column("to_hash", Text, primary_key=True),
    Column("last_at_ms", BigInteger, nullable=False),
    Index(None, "principal", "agent_id", "to_hash"),
    Index(None, "last_at_ms"),
    sqlite_with_rowid=False,
)

touched_selector = Table(
    "touched_selector",
    metadata,
    Column("principal", Text, primary_key=True),
    Column("agent_id", Text, primary_key=True),
    Column("selector_hash", Text, primary_key=True),
    Column("last_at_ms", BigInteger, nullable=False),
    Index(None, "last_at_ms"),
    sqlite_with_rowid=False,
)

coverage_observation = Table(
    "coverage_observation",
    metadata,
    Column("observation_id", Text, primary_key=True),
    Column("principal", Text, nullable=False),
    Column("agent_id", Text, nullable=False),
    Column("url_hash", Text, nullable=False),
    Column("scan_id", Text, nullable=False),
    Column("scan_hash", Text, nullable=False),
    Column("trusted", Boolean, nullable=False),
    Column("trust_reason", Text, nullable=False),
    Column("measures", Text, nullable=False),
    Column("skeleton", Text),
    Column("normalizer_version", Integer, nullable=False),
    Column("at_ms", BigInteger, nullable=False),
    Index(None, "principal", "agent_id", "url_hash", "at_ms"),
    Index(None, "at_ms"),
)

site_url = Table(
    "site_url",
    metadata,
    Column("principal", Text, primary_key=True),
    Column("url_hash", Text, primary_key=True),
    Column("url", Text, nullable=False),
    Column("host", Text, nullable=False),
    Column("site", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("last_seen_ms", BigInteger, nullable=False),
    Index(None, "principal", "site", "last_seen_ms"),
    Index(None, "last_seen_ms"),
    sqlite_with_rowid=False,
)

# -- learn mode

learn_activation = Table(
    "learn_activation",
    metadata,
    Column("task_id", Text, primary_key=True),
    Column("principal", Text, nullable=False),
    Column("agent_id", Text, nullable=False),
    Column("target_id", Text, nullable=False),
    Column("domain", Text, nullable=False),
    Column("surfaces", Integer, nullable=False),
    Column("interactions", Integer, nullable=False),
    Column("outcome", Text),
    Column("exhausted_reason", Text),
    Column("activated_at_ms", BigInteger, nullable=False),
    Column("ended_at_ms", BigInteger),
    Index(None, "principal", "agent_id", "ended_at_ms"),
    Index(None, "ended_at_ms"),
)

# What has been counted; `group_key` is what a cap counts within.
learn_count = Table(
    "learn_count",
    metadata,
    Column("task_id", Text, primary_key=True),
    Column("kind", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("group_key", Text),
    Index(None, "task_id", "kind", "group_key"),
    sqlite_with_rowid=False,
)
