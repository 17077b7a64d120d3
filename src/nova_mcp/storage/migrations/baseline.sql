-- The whole schema, from which migrations begin. Written for SQLite; 0012_baseline.py puts in what PostgreSQL calls otherwise:
-- SERIAL numbers rows by itself, ROW_NUMBER refers to such a number, BLOB holds bytes, WITHOUT ROWID and AUTOINCREMENT are SQLite's own.

CREATE TABLE ledger_server (
    server_id TEXT NOT NULL,
    started_at_ms BIGINT NOT NULL,
    pid INTEGER NOT NULL,
    process_started_ms BIGINT NOT NULL,
    host TEXT NOT NULL,
    version TEXT NOT NULL,
    last_seen_ms BIGINT NOT NULL,
    ended_at_ms BIGINT,
    end_reason TEXT,
    head_seq BIGINT NOT NULL,
    head_hash BLOB NOT NULL,
    CONSTRAINT pk_ledger_server PRIMARY KEY (server_id)
);

CREATE TABLE ledger_link (
    server_id TEXT NOT NULL,
    server_seq BIGINT NOT NULL,
    call_id TEXT NOT NULL,
    body_hash BLOB NOT NULL,
    hash BLOB NOT NULL,
    erased_at_ms BIGINT,
    CONSTRAINT pk_ledger_link PRIMARY KEY (server_id, server_seq),
    CONSTRAINT fk_ledger_link_server_id FOREIGN KEY (server_id) REFERENCES ledger_server (server_id)
) WITHOUT ROWID;
CREATE UNIQUE INDEX ix_ledger_link_call_id ON ledger_link (call_id);

CREATE TABLE ledger_body (
    server_id TEXT NOT NULL,
    server_seq BIGINT NOT NULL,
    at_ms BIGINT NOT NULL,
    kind TEXT NOT NULL,
    principal TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    tool_name TEXT NOT NULL,
    target_id TEXT,
    outcome_kind TEXT NOT NULL,
    reason_code TEXT,
    host TEXT,
    task_id TEXT,
    instance_id TEXT,
    closes TEXT,
    body BLOB NOT NULL,
    CONSTRAINT pk_ledger_body PRIMARY KEY (server_id, server_seq),
    CONSTRAINT fk_ledger_body_server_id_server_seq FOREIGN KEY (server_id, server_seq) REFERENCES ledger_link (server_id, server_seq)
);
CREATE INDEX ix_ledger_body_at_ms ON ledger_body (at_ms);

CREATE TABLE ledger_open_intent (
    call_id TEXT NOT NULL,
    server_id TEXT NOT NULL,
    server_seq BIGINT NOT NULL,
    at_ms BIGINT NOT NULL,
    CONSTRAINT pk_ledger_open_intent PRIMARY KEY (call_id),
    CONSTRAINT fk_ledger_open_intent_server_id_server_seq FOREIGN KEY (server_id, server_seq) REFERENCES ledger_link (server_id, server_seq)
);
CREATE INDEX ix_ledger_open_intent_server_id ON ledger_open_intent (server_id);

CREATE TABLE id_counter (
    name TEXT NOT NULL,
    value BIGINT NOT NULL,
    CONSTRAINT pk_id_counter PRIMARY KEY (name)
);

CREATE TABLE target_journal (
    target_id TEXT NOT NULL,
    sandbox_id TEXT NOT NULL,
    server_id TEXT NOT NULL,
    principal TEXT NOT NULL,
    url TEXT,
    opened_at_ms BIGINT NOT NULL,
    ended_at_ms BIGINT,
    end_reason TEXT,
    CONSTRAINT pk_target_journal PRIMARY KEY (target_id)
);
CREATE INDEX ix_target_journal_server_id_ended_at_ms ON target_journal (server_id, ended_at_ms);

CREATE TABLE transition (
    transition_id TEXT NOT NULL,
    principal TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    server_id TEXT NOT NULL,
    call_id TEXT NOT NULL,
    tool_name TEXT NOT NULL,
    target_id TEXT,
    origin TEXT NOT NULL,
    identity TEXT,
    intent_key TEXT,
    action_kind TEXT NOT NULL,
    contract TEXT NOT NULL,
    goal_id TEXT,
    step_no INTEGER,
    element TEXT NOT NULL,
    started_at_ms BIGINT NOT NULL,
    state TEXT NOT NULL,
    reason TEXT,
    lost_request INTEGER NOT NULL,
    mutated INTEGER NOT NULL,
    completed_at_ms BIGINT,
    resolved_by TEXT,
    receipt TEXT,
    CONSTRAINT pk_transition PRIMARY KEY (transition_id)
);
CREATE INDEX ix_transition_principal_identity_started_at_ms ON transition (principal, identity, started_at_ms);
CREATE INDEX ix_transition_started_at_ms ON transition (started_at_ms);
CREATE INDEX ix_transition_completed_at_ms ON transition (completed_at_ms);

CREATE TABLE transition_open (
    principal TEXT NOT NULL,
    identity TEXT NOT NULL,
    transition_id TEXT NOT NULL,
    server_id TEXT NOT NULL,
    CONSTRAINT pk_transition_open PRIMARY KEY (principal, identity)
);
CREATE UNIQUE INDEX ix_transition_open_transition_id ON transition_open (transition_id);

CREATE TABLE goal (
    goal_id TEXT NOT NULL,
    principal TEXT NOT NULL,
    created_by TEXT NOT NULL,
    target_id TEXT,
    summary TEXT NOT NULL,
    mode TEXT NOT NULL,
    state TEXT NOT NULL,
    owner_agent_id TEXT,
    session_id TEXT,
    preconditions TEXT,
    precondition_verdict TEXT,
    lease_ms BIGINT NOT NULL,
    lease_expires_at_ms BIGINT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    ended_at_ms BIGINT,
    event_count BIGINT NOT NULL,
    CONSTRAINT pk_goal PRIMARY KEY (goal_id)
);
CREATE INDEX ix_goal_principal_target_id_created_at_ms ON goal (principal, target_id, created_at_ms);

CREATE TABLE goal_step (
    goal_id TEXT NOT NULL,
    step_no INTEGER NOT NULL,
    action_desc TEXT NOT NULL,
    contract TEXT,
    status TEXT NOT NULL,
    verification_status TEXT,
    lease_token TEXT,
    lease_expires_at_ms BIGINT,
    changed_at_ms BIGINT NOT NULL,
    CONSTRAINT pk_goal_step PRIMARY KEY (goal_id, step_no),
    CONSTRAINT fk_goal_step_goal_id FOREIGN KEY (goal_id) REFERENCES goal (goal_id)
);

CREATE TABLE goal_event (
    goal_id TEXT NOT NULL,
    event_no BIGINT NOT NULL,
    at_ms BIGINT NOT NULL,
    kind TEXT NOT NULL,
    source TEXT NOT NULL,
    content TEXT NOT NULL,
    CONSTRAINT pk_goal_event PRIMARY KEY (goal_id, event_no),
    CONSTRAINT fk_goal_event_goal_id FOREIGN KEY (goal_id) REFERENCES goal (goal_id)
);

CREATE TABLE kill_switch (
    name TEXT NOT NULL,
    set_at_ms BIGINT NOT NULL,
    set_by TEXT NOT NULL,
    note TEXT NOT NULL,
    CONSTRAINT pk_kill_switch PRIMARY KEY (name)
);

CREATE TABLE claim_journal (
    task_id TEXT NOT NULL,
    target_id TEXT NOT NULL,
    sandbox_id TEXT NOT NULL,
    owner_agent_id TEXT NOT NULL,
    owner_key_hash TEXT NOT NULL,
    token_hash TEXT NOT NULL,
    server_instance TEXT NOT NULL,
    agent_role TEXT NOT NULL,
    debug_label TEXT,
    acquired_at_ms BIGINT NOT NULL,
    expires_at_ms BIGINT NOT NULL,
    reclaim_reason TEXT,
    ended_at_ms BIGINT,
    end_reason TEXT,
    successor TEXT,
    finalize_decision TEXT,
    CONSTRAINT pk_claim_journal PRIMARY KEY (task_id)
);
CREATE INDEX ix_claim_journal_owner_key_hash_target_id_acquired_at_ms ON claim_journal (owner_key_hash, target_id, acquired_at_ms);
CREATE INDEX ix_claim_journal_server_instance_ended_at_ms ON claim_journal (server_instance, ended_at_ms);

CREATE TABLE finalize_decision (
    task_id TEXT NOT NULL,
    decision TEXT NOT NULL,
    source TEXT NOT NULL,
    reason_code TEXT,
    claimed_reason_code TEXT,
    claimed_reason_text TEXT,
    stats TEXT NOT NULL,
    claimed_stats TEXT NOT NULL,
    decided_at_ms BIGINT NOT NULL,
    CONSTRAINT pk_finalize_decision PRIMARY KEY (task_id)
);
CREATE INDEX ix_finalize_decision_decided_at_ms ON finalize_decision (decided_at_ms);

CREATE TABLE outbox_job (
    job_id TEXT NOT NULL,
    job_key TEXT NOT NULL,
    job_type TEXT NOT NULL,
    task_id TEXT NOT NULL,
    target_id TEXT NOT NULL,
    principal TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    payload TEXT NOT NULL,
    state TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    due_at_ms BIGINT NOT NULL,
    leased_by TEXT,
    lease_until_ms BIGINT,
    last_error TEXT,
    created_at_ms BIGINT NOT NULL,
    settled_at_ms BIGINT,
    CONSTRAINT pk_outbox_job PRIMARY KEY (job_id)
);
CREATE UNIQUE INDEX ix_outbox_job_job_key ON outbox_job (job_key);
CREATE INDEX ix_outbox_job_state_due_at_ms ON outbox_job (state, due_at_ms);

CREATE TABLE tool_event (
    event_id TEXT NOT NULL,
    principal TEXT NOT NULL,
    owner_agent_id TEXT NOT NULL,
    task_id TEXT,
    target_id TEXT,
    tool_name TEXT NOT NULL,
    success INTEGER NOT NULL,
    duration_ms BIGINT NOT NULL,
    error TEXT,
    context_host TEXT,
    arguments TEXT NOT NULL,
    activity_session_id TEXT,
    event_key TEXT,
    verdict TEXT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    CONSTRAINT pk_tool_event PRIMARY KEY (event_id)
) WITHOUT ROWID;
CREATE INDEX ix_tool_event_created_at_ms ON tool_event (created_at_ms);
CREATE INDEX ix_tool_event_source ON tool_event (task_id, context_host, created_at_ms) WHERE task_id IS NOT NULL AND event_key IS NOT NULL;

CREATE TABLE observation (
    observation_id SERIAL NOT NULL,
    owner_agent_id TEXT NOT NULL,
    principal TEXT NOT NULL,
    task_id TEXT,
    target_id TEXT NOT NULL,
    activity_session_id TEXT NOT NULL,
    context_host TEXT NOT NULL,
    kind TEXT NOT NULL,
    outcome INTEGER NOT NULL,
    severity INTEGER NOT NULL,
    tool_name TEXT NOT NULL,
    target_stable_id TEXT,
    candidate_key TEXT,
    fingerprint_hash TEXT,
    selector_norm TEXT,
    payload TEXT NOT NULL,
    throttle_key TEXT NOT NULL,
    call_id TEXT NOT NULL,
    server_id TEXT NOT NULL,
    server_seq BIGINT NOT NULL,
    source_scope TEXT,
    created_at_ms BIGINT NOT NULL, cluster_key TEXT,
    CONSTRAINT pk_observation PRIMARY KEY (observation_id)
);
CREATE INDEX ix_observation_created_at_ms ON observation (created_at_ms);
CREATE INDEX ix_observation_context_host_created_at_ms ON observation (context_host, created_at_ms);

CREATE TABLE activity_session (
    principal TEXT NOT NULL,
    context_host TEXT NOT NULL,
    session_id TEXT NOT NULL,
    last_at_ms BIGINT NOT NULL,
    CONSTRAINT pk_activity_session PRIMARY KEY (principal, context_host)
) WITHOUT ROWID;

CREATE TABLE observation_throttle (
    throttle_key TEXT NOT NULL,
    at_ms BIGINT NOT NULL,
    observation_id ROW_NUMBER NOT NULL,
    outcome INTEGER NOT NULL,
    CONSTRAINT pk_observation_throttle PRIMARY KEY (throttle_key)
) WITHOUT ROWID;
CREATE INDEX ix_observation_throttle_at_ms ON observation_throttle (at_ms);

CREATE TABLE candidate (
    candidate_id SERIAL NOT NULL,
    candidate_key TEXT NOT NULL,
    stable_id TEXT NOT NULL,
    principal TEXT NOT NULL,
    owner_agent_id TEXT NOT NULL,
    task_id TEXT,
    target_id TEXT,
    context_host TEXT NOT NULL,
    component TEXT NOT NULL,
    claim TEXT NOT NULL,
    status TEXT NOT NULL,
    confidence FLOAT NOT NULL,
    origin TEXT NOT NULL,
    level INTEGER NOT NULL,
    event_key TEXT,
    source_event_id TEXT,
    source_verdict TEXT,
    resolution_event_id TEXT,
    verified_at_ms BIGINT,
    high_signal INTEGER NOT NULL,
    recovered INTEGER NOT NULL,
    sessions TEXT NOT NULL,
    failures_in_row INTEGER NOT NULL,
    last_failure_at_ms BIGINT,
    created_at_ms BIGINT NOT NULL,
    updated_at_ms BIGINT NOT NULL,
    CONSTRAINT pk_candidate PRIMARY KEY (candidate_id)
);
CREATE INDEX ix_candidate_task_id ON candidate (task_id);
CREATE INDEX ix_candidate_updated_at_ms ON candidate (updated_at_ms);
CREATE UNIQUE INDEX ix_candidate_open ON candidate (principal, context_host, candidate_key) WHERE status != 'disproven';
CREATE INDEX ix_candidate_event_key ON candidate (principal, event_key) WHERE status != 'disproven';

CREATE TABLE curated_entry (
    curated_id SERIAL NOT NULL,
    dedupe_key TEXT NOT NULL,
    stable_id TEXT NOT NULL,
    context_host TEXT NOT NULL,
    component TEXT NOT NULL,
    claim TEXT NOT NULL,
    principal TEXT NOT NULL,
    candidate_id BIGINT NOT NULL,
    confidence FLOAT NOT NULL,
    evidence_score FLOAT NOT NULL,
    merge_count INTEGER NOT NULL,
    first_promoted_at_ms BIGINT NOT NULL,
    last_promoted_at_ms BIGINT NOT NULL,
    CONSTRAINT pk_curated_entry PRIMARY KEY (curated_id)
);
CREATE UNIQUE INDEX ix_curated_entry_dedupe_key ON curated_entry (dedupe_key);
CREATE INDEX ix_curated_entry_last_promoted_at_ms ON curated_entry (last_promoted_at_ms);

CREATE TABLE statistic_hour (
    name TEXT NOT NULL,
    hour INTEGER NOT NULL,
    label TEXT NOT NULL,
    principal TEXT NOT NULL,
    shard INTEGER NOT NULL,
    count BIGINT NOT NULL,
    good BIGINT NOT NULL,
    CONSTRAINT pk_statistic_hour PRIMARY KEY (name, hour, label, principal, shard)
) WITHOUT ROWID;

CREATE TABLE statistic_latency (
    name TEXT NOT NULL,
    hour INTEGER NOT NULL,
    bucket INTEGER NOT NULL,
    shard INTEGER NOT NULL,
    count BIGINT NOT NULL,
    CONSTRAINT pk_statistic_latency PRIMARY KEY (name, hour, bucket, shard)
) WITHOUT ROWID;

CREATE TABLE statistic_total (
    name TEXT NOT NULL,
    label TEXT NOT NULL,
    principal TEXT NOT NULL,
    shard INTEGER NOT NULL,
    count BIGINT NOT NULL,
    CONSTRAINT pk_statistic_total PRIMARY KEY (name, label, principal, shard)
) WITHOUT ROWID;

CREATE TABLE learning_proposal (
    job_key TEXT NOT NULL,
    task_id TEXT NOT NULL,
    target_id TEXT NOT NULL,
    principal TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    candidate_ids TEXT NOT NULL,
    state TEXT NOT NULL,
    proposed_at_ms BIGINT NOT NULL,
    CONSTRAINT pk_learning_proposal PRIMARY KEY (job_key)
);
CREATE INDEX ix_learning_proposal_state_proposed_at_ms ON learning_proposal (state, proposed_at_ms);

CREATE TABLE fact_binding (
    binding_id TEXT NOT NULL,
    target_id TEXT NOT NULL,
    sandbox_id TEXT NOT NULL,
    principal TEXT NOT NULL,
    service_key TEXT NOT NULL,
    account_hash TEXT,
    agent_url_hash TEXT,
    custom_facts INTEGER NOT NULL,
    opened_at_ms BIGINT NOT NULL,
    closed_at_ms BIGINT,
    CONSTRAINT pk_fact_binding PRIMARY KEY (binding_id)
);
CREATE INDEX ix_fact_binding_target_id ON fact_binding (target_id);
CREATE INDEX ix_fact_binding_sandbox_id ON fact_binding (sandbox_id);
CREATE INDEX ix_fact_binding_closed_at_ms ON fact_binding (closed_at_ms);

CREATE TABLE fact_observation (
    observation_id SERIAL NOT NULL,
    binding_id TEXT NOT NULL,
    signal_key TEXT NOT NULL,
    value TEXT NOT NULL,
    certainty TEXT NOT NULL,
    confidence INTEGER NOT NULL,
    source_kind TEXT NOT NULL,
    evidence TEXT,
    perception_id TEXT,
    call_id TEXT NOT NULL,
    url TEXT NOT NULL,
    url_hash TEXT NOT NULL,
    route_key TEXT NOT NULL,
    observed_at_ms BIGINT NOT NULL,
    CONSTRAINT pk_fact_observation PRIMARY KEY (observation_id),
    CONSTRAINT fk_fact_observation_binding_id FOREIGN KEY (binding_id) REFERENCES fact_binding (binding_id)
);
CREATE INDEX ix_fact_observation_binding_id_observation_id ON fact_observation (binding_id, observation_id);

CREATE TABLE fact (
    binding_id TEXT NOT NULL,
    signal_key TEXT NOT NULL,
    version INTEGER NOT NULL,
    value TEXT NOT NULL,
    state TEXT NOT NULL,
    confidence INTEGER NOT NULL,
    certainty TEXT NOT NULL,
    source_kind TEXT NOT NULL,
    support INTEGER NOT NULL,
    contradictions INTEGER NOT NULL,
    corroborated BOOLEAN NOT NULL,
    contradicting INTEGER NOT NULL,
    call_id TEXT NOT NULL,
    url TEXT NOT NULL,
    url_hash TEXT NOT NULL,
    first_observed_at_ms BIGINT NOT NULL,
    last_observed_at_ms BIGINT NOT NULL,
    valid_from_ms BIGINT NOT NULL,
    valid_to_ms BIGINT,
    superseded_by INTEGER,
    CONSTRAINT pk_fact PRIMARY KEY (binding_id, signal_key, version),
    CONSTRAINT fk_fact_binding_id FOREIGN KEY (binding_id) REFERENCES fact_binding (binding_id)
);
CREATE UNIQUE INDEX ux_fact_current ON fact (binding_id, signal_key) WHERE valid_to_ms IS NULL;

CREATE TABLE fact_account (
    service_key TEXT NOT NULL,
    account_hash TEXT NOT NULL,
    first_seen_ms BIGINT NOT NULL,
    last_seen_ms BIGINT NOT NULL,
    CONSTRAINT pk_fact_account PRIMARY KEY (service_key, account_hash)
);

CREATE TABLE knowledge_scope (
    scope TEXT NOT NULL,
    content_rev BIGINT NOT NULL,
    state_rev BIGINT NOT NULL,
    context TEXT NOT NULL,
    service_categories TEXT NOT NULL,
    framework_markers TEXT NOT NULL,
    updated_at_ms BIGINT NOT NULL,
    reviewed_at_ms BIGINT,
    revalidated_at_ms BIGINT,
    CONSTRAINT pk_knowledge_scope PRIMARY KEY (scope)
) WITHOUT ROWID;

CREATE TABLE knowledge_entry (
    entry_id SERIAL NOT NULL,
    scope TEXT NOT NULL,
    stable_id TEXT NOT NULL,
    slot TEXT NOT NULL,
    kind TEXT NOT NULL,
    type TEXT NOT NULL,
    level INTEGER NOT NULL,
    deprecated_reason TEXT,
    revision INTEGER NOT NULL,
    content TEXT NOT NULL,
    baseline TEXT NOT NULL,
    drift_debt FLOAT NOT NULL,
    unconfirmed TEXT NOT NULL,
    health TEXT NOT NULL,
    standing TEXT NOT NULL,
    origin TEXT NOT NULL,
    candidate_key TEXT,
    created_at_ms BIGINT NOT NULL,
    updated_at_ms BIGINT NOT NULL,
    trouble INTEGER NOT NULL,
    CONSTRAINT pk_knowledge_entry PRIMARY KEY (entry_id)
);
CREATE INDEX ix_knowledge_entry_trouble ON knowledge_entry (trouble, updated_at_ms) WHERE trouble > 0;
CREATE INDEX ix_knowledge_entry_candidate_key ON knowledge_entry (candidate_key);
CREATE UNIQUE INDEX ix_knowledge_entry_scope_stable_id_slot ON knowledge_entry (scope, stable_id, slot);

CREATE TABLE knowledge_selector (
    scope TEXT NOT NULL,
    selector TEXT NOT NULL,
    entry_id BIGINT NOT NULL,
    CONSTRAINT pk_knowledge_selector PRIMARY KEY (scope, selector, entry_id),
    CONSTRAINT fk_knowledge_selector_entry_id FOREIGN KEY (entry_id) REFERENCES knowledge_entry (entry_id) ON DELETE CASCADE
) WITHOUT ROWID;
CREATE INDEX ix_knowledge_selector_entry_id ON knowledge_selector (entry_id);

CREATE TABLE knowledge_surroundings (
    entry_id BIGINT NOT NULL,
    prints TEXT NOT NULL,
    taken_at_ms BIGINT NOT NULL,
    CONSTRAINT pk_knowledge_surroundings PRIMARY KEY (entry_id),
    CONSTRAINT fk_knowledge_surroundings_entry_id FOREIGN KEY (entry_id) REFERENCES knowledge_entry (entry_id) ON DELETE CASCADE
);

CREATE TABLE knowledge_platform (
    stable_id TEXT NOT NULL,
    body TEXT NOT NULL,
    updated_at_ms BIGINT NOT NULL,
    CONSTRAINT pk_knowledge_platform PRIMARY KEY (stable_id)
) WITHOUT ROWID;

CREATE TABLE platform_alias (
    kind TEXT NOT NULL,
    value TEXT NOT NULL,
    stable_id TEXT NOT NULL,
    CONSTRAINT pk_platform_alias PRIMARY KEY (kind, value)
) WITHOUT ROWID;

CREATE TABLE platform_seen (
    stable_id TEXT NOT NULL,
    last_seen_at_ms BIGINT NOT NULL,
    CONSTRAINT pk_platform_seen PRIMARY KEY (stable_id)
) WITHOUT ROWID;

CREATE TABLE learning_step (
    step_id SERIAL NOT NULL,
    entry_id BIGINT NOT NULL,
    kind TEXT NOT NULL,
    at_ms BIGINT NOT NULL,
    body TEXT NOT NULL,
    CONSTRAINT pk_learning_step PRIMARY KEY (step_id)
);
CREATE INDEX ix_learning_step_at_ms ON learning_step (at_ms);
CREATE INDEX ix_learning_step_entry_id_step_id ON learning_step (entry_id, step_id);

CREATE TABLE learning_snapshot (
    entry_id BIGINT NOT NULL,
    up_to_step BIGINT NOT NULL,
    body TEXT NOT NULL,
    CONSTRAINT pk_learning_snapshot PRIMARY KEY (entry_id)
);

CREATE TABLE learning_event (
    event_id SERIAL NOT NULL,
    scope TEXT NOT NULL,
    stable_id TEXT NOT NULL,
    from_level INTEGER NOT NULL,
    to_level INTEGER NOT NULL,
    reason_kind TEXT NOT NULL,
    rejection TEXT,
    body TEXT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    CONSTRAINT pk_learning_event PRIMARY KEY (event_id)
);
CREATE INDEX ix_learning_event_created_at_ms ON learning_event (created_at_ms);
CREATE INDEX ix_learning_event_scope_created_at_ms ON learning_event (scope, created_at_ms);
CREATE INDEX ix_learning_event_scope_stable_id_event_id ON learning_event (scope, stable_id, event_id);

CREATE TABLE learning_cluster (
    host TEXT NOT NULL,
    "key" TEXT NOT NULL,
    rank FLOAT NOT NULL,
    first_day INTEGER NOT NULL,
    last_at_ms BIGINT NOT NULL,
    CONSTRAINT pk_learning_cluster PRIMARY KEY (host, "key")
) WITHOUT ROWID;
CREATE INDEX ix_learning_cluster_first_day ON learning_cluster (first_day);
CREATE INDEX ix_learning_cluster_host_rank_last_at_ms ON learning_cluster (host, rank, last_at_ms);
CREATE INDEX ix_learning_cluster_rank_last_at_ms ON learning_cluster (rank, last_at_ms);

CREATE TABLE learning_cluster_day (
    host TEXT NOT NULL,
    "key" TEXT NOT NULL,
    day INTEGER NOT NULL,
    body TEXT NOT NULL,
    CONSTRAINT pk_learning_cluster_day PRIMARY KEY (host, "key", day)
) WITHOUT ROWID;
CREATE INDEX ix_learning_cluster_day_day ON learning_cluster_day (day);

CREATE TABLE learning_track (
    host TEXT NOT NULL,
    selector TEXT NOT NULL,
    body TEXT NOT NULL,
    updated_at_ms BIGINT NOT NULL,
    CONSTRAINT pk_learning_track PRIMARY KEY (host, selector)
) WITHOUT ROWID;
CREATE INDEX ix_learning_track_updated_at_ms ON learning_track (updated_at_ms);

CREATE TABLE semantic_opportunity (
    principal TEXT NOT NULL,
    opportunity_id TEXT NOT NULL,
    origin TEXT NOT NULL,
    state TEXT NOT NULL,
    body TEXT NOT NULL,
    updated_at_ms BIGINT NOT NULL,
    CONSTRAINT pk_semantic_opportunity PRIMARY KEY (principal, opportunity_id)
) WITHOUT ROWID;
CREATE INDEX ix_semantic_opportunity_principal_origin ON semantic_opportunity (principal, origin);
CREATE INDEX ix_semantic_opportunity_updated_at_ms ON semantic_opportunity (updated_at_ms);

CREATE TABLE revalidation_check (
    check_id SERIAL NOT NULL,
    at_ms BIGINT NOT NULL,
    scope TEXT NOT NULL,
    target_id TEXT NOT NULL,
    CONSTRAINT pk_revalidation_check PRIMARY KEY (check_id)
);
CREATE INDEX ix_revalidation_check_at_ms ON revalidation_check (at_ms);

CREATE TABLE telemetry_backing (
    call_id TEXT NOT NULL,
    report_call_id TEXT NOT NULL,
    at_ms BIGINT NOT NULL,
    CONSTRAINT pk_telemetry_backing PRIMARY KEY (call_id)
) WITHOUT ROWID;
CREATE INDEX ix_telemetry_backing_at_ms ON telemetry_backing (at_ms);
CREATE INDEX ix_observation_context_host_cluster_key_observation_id ON observation (context_host, cluster_key, observation_id);

CREATE TABLE browser_memory (
    memory_id SERIAL NOT NULL PRIMARY KEY AUTOINCREMENT,
    principal TEXT NOT NULL,
    domain TEXT NOT NULL,
    url_pattern TEXT,
    memory_type TEXT NOT NULL,
    content TEXT NOT NULL,
    content_fold TEXT NOT NULL,
    identity_hash TEXT NOT NULL,
    source TEXT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    refreshed_at_ms BIGINT NOT NULL,
    accessed_at_ms BIGINT,
    access_count INTEGER NOT NULL,
    reinforced_at_ms BIGINT,
    expires_at_ms BIGINT NOT NULL,
    content_rev INTEGER NOT NULL,
    CONSTRAINT uq_browser_memory_principal_identity_hash UNIQUE (principal, identity_hash)
);

CREATE INDEX ix_browser_memory_expires_at_ms ON browser_memory (expires_at_ms);
CREATE INDEX ix_browser_memory_principal_domain_expires_at_ms ON browser_memory (principal, domain, expires_at_ms);

CREATE TABLE operator_note (
    note_id TEXT NOT NULL,
    principal TEXT NOT NULL,
    content TEXT NOT NULL,
    tags TEXT NOT NULL,
    category TEXT,
    source TEXT NOT NULL,
    rev INTEGER NOT NULL,
    created_at_ms BIGINT NOT NULL,
    updated_at_ms BIGINT NOT NULL,
    last_matched_at_ms BIGINT,
    match_count INTEGER NOT NULL,
    identity_hash TEXT NOT NULL,
    CONSTRAINT pk_operator_note PRIMARY KEY (note_id)
);
CREATE INDEX ix_operator_note_principal_identity_hash ON operator_note (principal, identity_hash);
CREATE INDEX ix_operator_note_principal_updated_at_ms ON operator_note (principal, updated_at_ms);

CREATE TABLE domain_note (
    note_id TEXT NOT NULL,
    principal TEXT NOT NULL,
    domain TEXT NOT NULL,
    "key" TEXT NOT NULL,
    value TEXT NOT NULL,
    source TEXT NOT NULL,
    enforcement TEXT NOT NULL,
    repeat_minutes INTEGER,
    repeat_tool_calls INTEGER,
    rev INTEGER NOT NULL,
    created_at_ms BIGINT NOT NULL,
    updated_at_ms BIGINT NOT NULL,
    last_delivered_at_ms BIGINT,
    CONSTRAINT pk_domain_note PRIMARY KEY (note_id),
    CONSTRAINT uq_domain_note_principal_domain_key UNIQUE (principal, domain, "key")
);
CREATE INDEX ix_domain_note_domain_principal ON domain_note (domain, principal);
CREATE INDEX ix_ledger_body_done ON ledger_body (principal, agent_id, tool_name, at_ms) WHERE outcome_kind = 'ok';

CREATE TABLE task_profile (
    principal TEXT NOT NULL,
    profile_id TEXT NOT NULL,
    task_type TEXT NOT NULL,
    task_kind TEXT,
    display_name TEXT NOT NULL,
    domain TEXT,
    platform TEXT,
    match_words TEXT NOT NULL,
    goal TEXT NOT NULL,
    stable_guidance TEXT NOT NULL,
    mandatory_checks TEXT NOT NULL,
    completion_condition TEXT NOT NULL,
    known_exceptions TEXT NOT NULL,
    verification TEXT,
    base_confidence FLOAT NOT NULL,
    content_rev INTEGER NOT NULL,
    archived BOOLEAN NOT NULL,
    runs INTEGER NOT NULL,
    completed_runs INTEGER NOT NULL,
    failed_runs INTEGER NOT NULL,
    aborted_runs INTEGER NOT NULL,
    last_ended_at_ms BIGINT,
    created_at_ms BIGINT NOT NULL,
    updated_at_ms BIGINT NOT NULL,
    CONSTRAINT pk_task_profile PRIMARY KEY (principal, profile_id)
) WITHOUT ROWID;
CREATE INDEX ix_task_profile_principal_updated_at_ms ON task_profile (principal, updated_at_ms);

CREATE TABLE task_profile_term (
    principal TEXT NOT NULL,
    term TEXT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    profile_id TEXT NOT NULL,
    site TEXT,
    credit INTEGER DEFAULT '10' NOT NULL,
    CONSTRAINT pk_task_profile_term PRIMARY KEY (principal, term, created_at_ms, profile_id)
) WITHOUT ROWID;

CREATE TABLE task_term (
    principal TEXT NOT NULL,
    term TEXT NOT NULL,
    profiles INTEGER NOT NULL,
    CONSTRAINT pk_task_term PRIMARY KEY (principal, term)
) WITHOUT ROWID;

CREATE TABLE task_instance (
    instance_id TEXT NOT NULL,
    principal TEXT NOT NULL,
    profile_id TEXT,
    profile_rev_applied INTEGER,
    instance_rev INTEGER NOT NULL,
    status TEXT NOT NULL,
    discovery_state TEXT NOT NULL,
    effective_context TEXT NOT NULL,
    effective_context_hash TEXT NOT NULL,
    overrides TEXT NOT NULL,
    target_url TEXT,
    target_host TEXT,
    task_kind TEXT,
    task_kind_source TEXT NOT NULL,
    unit_kind TEXT NOT NULL,
    coverage_mode TEXT NOT NULL,
    resume_state TEXT NOT NULL,
    checks_state TEXT NOT NULL,
    units INTEGER NOT NULL,
    beginning TEXT NOT NULL,
    ledger_gap BOOLEAN NOT NULL,
    evidence_snapshot TEXT,
    ended_reason TEXT,
    created_by TEXT NOT NULL,
    create_event_id TEXT,
    create_payload_hash TEXT,
    started_at_ms BIGINT NOT NULL,
    last_activity_at_ms BIGINT NOT NULL,
    ended_at_ms BIGINT,
    CONSTRAINT pk_task_instance PRIMARY KEY (instance_id),
    CONSTRAINT uq_task_instance_principal_created_by_create_event_id UNIQUE (principal, created_by, create_event_id)
);
CREATE INDEX ix_task_instance_ended_at_ms ON task_instance (ended_at_ms);
CREATE INDEX ix_task_instance_principal_profile_id_ended_at_ms ON task_instance (principal, profile_id, ended_at_ms);
CREATE INDEX ix_task_instance_principal_status_last_activity_at_ms ON task_instance (principal, status, last_activity_at_ms);
CREATE INDEX ix_task_instance_status_last_activity_at_ms ON task_instance (status, last_activity_at_ms);

CREATE TABLE task_instance_member (
    instance_id TEXT NOT NULL,
    principal TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    joined_at_ms BIGINT NOT NULL,
    ended_at_ms BIGINT,
    scan_hinted_at_ms BIGINT,
    CONSTRAINT pk_task_instance_member PRIMARY KEY (instance_id, principal, agent_id)
) WITHOUT ROWID;
CREATE INDEX ix_task_instance_member_principal_agent_id_ended_at_ms ON task_instance_member (principal, agent_id, ended_at_ms);

CREATE TABLE task_instance_event (
    instance_id TEXT NOT NULL,
    rev_after INTEGER NOT NULL,
    client_event_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    payload_hash TEXT NOT NULL,
    rev_before INTEGER NOT NULL,
    delta TEXT NOT NULL,
    response TEXT NOT NULL,
    at_ms BIGINT NOT NULL,
    CONSTRAINT pk_task_instance_event PRIMARY KEY (instance_id, rev_after),
    CONSTRAINT uq_task_instance_event_instance_id_client_event_id UNIQUE (instance_id, client_event_id)
) WITHOUT ROWID;

CREATE TABLE task_unit (
    instance_id TEXT NOT NULL,
    unit_key TEXT NOT NULL,
    ordinal INTEGER NOT NULL,
    label TEXT NOT NULL,
    url TEXT,
    locator_type TEXT,
    locator_value TEXT,
    locator_hash TEXT,
    status TEXT NOT NULL,
    reason TEXT,
    late BOOLEAN NOT NULL,
    observed_count INTEGER NOT NULL,
    grade TEXT NOT NULL,
    grade_reason TEXT,
    best_reads INTEGER NOT NULL,
    best_dwell_ms BIGINT NOT NULL,
    best_ended_at_ms BIGINT,
    covered_by_observation_id TEXT,
    covered_by_scan_id TEXT,
    updated_at_ms BIGINT NOT NULL,
    CONSTRAINT pk_task_unit PRIMARY KEY (instance_id, unit_key),
    CONSTRAINT uq_task_unit_instance_id_ordinal UNIQUE (instance_id, ordinal)
) WITHOUT ROWID;
CREATE INDEX ix_task_unit_instance_id_locator_hash ON task_unit (instance_id, locator_hash);
CREATE INDEX ix_task_unit_instance_id_status_ordinal ON task_unit (instance_id, status, ordinal);

CREATE TABLE task_finding (
    instance_id TEXT NOT NULL,
    finding_key TEXT NOT NULL,
    detail TEXT NOT NULL,
    unit_key TEXT,
    severity TEXT NOT NULL,
    updated_at_ms BIGINT NOT NULL,
    CONSTRAINT pk_task_finding PRIMARY KEY (instance_id, finding_key)
) WITHOUT ROWID;

CREATE TABLE task_guidance_log (
    log_id TEXT NOT NULL,
    principal TEXT NOT NULL,
    hash TEXT NOT NULL,
    profile_id TEXT,
    kind TEXT NOT NULL,
    source_kind TEXT NOT NULL,
    status TEXT NOT NULL,
    payload TEXT NOT NULL,
    occurrence_count INTEGER NOT NULL,
    promoted_to_content_rev INTEGER,
    decided_reason TEXT,
    created_at_ms BIGINT NOT NULL,
    updated_at_ms BIGINT NOT NULL,
    CONSTRAINT pk_task_guidance_log PRIMARY KEY (log_id),
    CONSTRAINT uq_task_guidance_log_principal_hash UNIQUE (principal, hash)
);
CREATE INDEX ix_task_guidance_log_principal_updated_at_ms ON task_guidance_log (principal, updated_at_ms);
CREATE INDEX ix_task_guidance_log_principal_profile_id_updated_at_ms ON task_guidance_log (principal, profile_id, updated_at_ms);

CREATE TABLE task_guidance_occurrence (
    log_id TEXT NOT NULL,
    occurrence_key TEXT NOT NULL,
    at_ms BIGINT NOT NULL,
    CONSTRAINT pk_task_guidance_occurrence PRIMARY KEY (log_id, occurrence_key)
) WITHOUT ROWID;
CREATE INDEX ix_task_guidance_occurrence_occurrence_key ON task_guidance_occurrence (occurrence_key);

CREATE TABLE visit_window (
    window_id SERIAL NOT NULL,
    principal TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    target_id TEXT NOT NULL,
    task_id TEXT,
    url_hash TEXT NOT NULL,
    path_hash TEXT NOT NULL,
    started_at_ms BIGINT NOT NULL,
    ended_at_ms BIGINT NOT NULL,
    last_call_at_ms BIGINT NOT NULL,
    last_read_at_ms BIGINT,
    stayed_ms INTEGER NOT NULL,
    settled BOOLEAN NOT NULL,
    calls INTEGER NOT NULL,
    reads INTEGER NOT NULL,
    error_page BOOLEAN NOT NULL,
    agent_scripted BOOLEAN NOT NULL,
    CONSTRAINT pk_visit_window PRIMARY KEY (window_id)
);
CREATE INDEX ix_visit_window_principal_agent_id_path_hash ON visit_window (principal, agent_id, path_hash);
CREATE INDEX ix_visit_window_principal_agent_id_url_hash ON visit_window (principal, agent_id, url_hash);
CREATE INDEX ix_visit_window_started_at_ms ON visit_window (started_at_ms);
CREATE INDEX ix_visit_window_target_id_principal_agent_id_window_id ON visit_window (target_id, principal, agent_id, window_id);

CREATE TABLE redirect_seen (
    principal TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    from_hash TEXT NOT NULL,
    to_hash TEXT NOT NULL,
    last_at_ms BIGINT NOT NULL,
    CONSTRAINT pk_redirect_seen PRIMARY KEY (principal, agent_id, from_hash, to_hash)
) WITHOUT ROWID;
CREATE INDEX ix_redirect_seen_last_at_ms ON redirect_seen (last_at_ms);
CREATE INDEX ix_redirect_seen_principal_agent_id_to_hash ON redirect_seen (principal, agent_id, to_hash);

CREATE TABLE touched_selector (
    principal TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    selector_hash TEXT NOT NULL,
    last_at_ms BIGINT NOT NULL,
    CONSTRAINT pk_touched_selector PRIMARY KEY (principal, agent_id, selector_hash)
) WITHOUT ROWID;
CREATE INDEX ix_touched_selector_last_at_ms ON touched_selector (last_at_ms);

CREATE TABLE coverage_observation (
    observation_id TEXT NOT NULL,
    principal TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    url_hash TEXT NOT NULL,
    scan_id TEXT NOT NULL,
    scan_hash TEXT NOT NULL,
    trusted BOOLEAN NOT NULL,
    trust_reason TEXT NOT NULL,
    measures TEXT NOT NULL,
    skeleton TEXT,
    normalizer_version INTEGER NOT NULL,
    at_ms BIGINT NOT NULL,
    CONSTRAINT pk_coverage_observation PRIMARY KEY (observation_id)
);
CREATE INDEX ix_coverage_observation_at_ms ON coverage_observation (at_ms);
CREATE INDEX ix_coverage_observation_principal_agent_id_url_hash_at_ms ON coverage_observation (principal, agent_id, url_hash, at_ms);

CREATE TABLE site_url (
    principal TEXT NOT NULL,
    url_hash TEXT NOT NULL,
    url TEXT NOT NULL,
    host TEXT NOT NULL,
    site TEXT NOT NULL,
    source TEXT NOT NULL,
    last_seen_ms BIGINT NOT NULL,
    CONSTRAINT pk_site_url PRIMARY KEY (principal, url_hash)
) WITHOUT ROWID;
CREATE INDEX ix_site_url_last_seen_ms ON site_url (last_seen_ms);
CREATE INDEX ix_site_url_principal_site_last_seen_ms ON site_url (principal, site, last_seen_ms);

CREATE TABLE learn_activation (
    task_id TEXT NOT NULL,
    principal TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    target_id TEXT NOT NULL,
    domain TEXT NOT NULL,
    surfaces INTEGER NOT NULL,
    interactions INTEGER NOT NULL,
    outcome TEXT,
    exhausted_reason TEXT,
    activated_at_ms BIGINT NOT NULL,
    ended_at_ms BIGINT,
    CONSTRAINT pk_learn_activation PRIMARY KEY (task_id)
);
CREATE INDEX ix_learn_activation_ended_at_ms ON learn_activation (ended_at_ms);
CREATE INDEX ix_learn_activation_principal_agent_id_ended_at_ms ON learn_activation (principal, agent_id, ended_at_ms);

CREATE TABLE learn_count (
    task_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    "key" TEXT NOT NULL,
    group_key TEXT,
    CONSTRAINT pk_learn_count PRIMARY KEY (task_id, kind, "key")
) WITHOUT ROWID;
CREATE INDEX ix_learn_count_task_id_kind_group_key ON learn_count (task_id, kind, group_key);
CREATE INDEX ix_task_unit_standing ON task_unit (instance_id, status, late, grade, covered_by_observation_id);
CREATE INDEX ix_task_unit_uncovered ON task_unit (instance_id, ordinal) WHERE url IS NOT NULL AND status != 'excluded' AND covered_by_observation_id IS NULL;
CREATE INDEX ix_task_profile_term_near ON task_profile_term (principal, term, site, created_at_ms, profile_id, credit);
CREATE INDEX ix_knowledge_entry_waiting ON knowledge_entry (entry_id) WHERE level < 2 AND deprecated_reason IS NULL;
CREATE INDEX ix_semantic_opportunity_open ON semantic_opportunity (principal, updated_at_ms) WHERE state IN ('prompted', 'warned', 'deferred');
CREATE INDEX ix_goal_principal_created_at_ms ON goal (principal, created_at_ms);
