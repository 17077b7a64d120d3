"""The reasons an answer may give: every published one is met by a test, and there is no other."""

import re
from pathlib import Path

import pytest

from nova_mcp.errors import FAMILIES, CommitRefused, Killed

TESTS = Path(__file__).resolve().parent.parent
SOURCE = TESTS.parent / "src" / "nova_mcp"

PUBLISHED: dict[int | None, str] = {
    -32602: """
        invalid_params selector.invalid key.not_allowed claim.finalization_token_required conflicting_alias
        learn.coverage_reason_required tab.unknown sandbox.unknown ok.sensitive_value
        pks.selector_too_broad pks.polarity_required pks.polarity_mismatch pks.outside_surface pks.script_content
        pks.secret_like pks.scope_full pks.scope_mismatch signals_required
        invalid_domain invalid_completion_condition expected_content_rev_required context_required
        conflicting_arguments override_forbidden invalid_unit_source invalid_unit_locator event_id_reused empty_update
        unknown_unit illegal_unit_transition reason_required unknown_check note_required illegal_discovery_transition
        pks.secret_like pks.scope_full pks.scope_mismatch signals_required unknown_scan
        invalid_domain notes.secret_like note_too_long host_mismatch no_target
        notes.secret_like invalid_domain domain_required filter_required conflicting_arguments
        invalid_completion_condition expected_content_rev_required context_required
        notes.secret_like invalid_domain domain_required filter_required conflicting_arguments
        invalid_completion_condition expected_content_rev_required context_required
        invalid_domain notes.secret_like note_too_long host_mismatch no_target
        pks.secret_like pks.scope_full pks.scope_mismatch signals_required unknown_scan
    """,
    -32004: """
        tab.no_active_tab frame.unknown frame.detached selector.not_found ref.stale ref.stale_document
        snapshot.expired option.not_found secret.not_found upload.not_found scroll.container_not_found
        screenshot.not_capturable wait_for_selector.timeout action.no_input_field action.no_send_control
        pks.scope_not_found pks.phenomenon_not_found learn.opportunity_not_found
        task.profile_not_found task.instance_not_found task.guidance_not_found
        domain_note.not_found
        operator_notes.not_found
        task.profile_not_found task.instance_not_found task.guidance_not_found
        domain_note.not_found
    """,
    -32003: """
        tab.active_ambiguous selector.ambiguous ref.ambiguous ref.identity_changed action.obstructed action.disabled
        action.unstable action.not_visible navigation.beforeunload_blocked navigation.cannot_go_back
        navigation.cannot_go_forward reload.not_needed type.not_editable option.disabled option.not_applied
        upload.type_not_accepted upload.multiple_not_allowed upload.not_file_input scroll.not_scrollable
        read.source_changed wait_for_selector.still_changing search.regex_timeout eval.script_threw loop.same_action
        tab.limit_reached sandbox.limit_reached ok.no_service
        pks.scope_not_open pks.drift_blocked pks.element_changed pks.playbook_timeout pks.alias_taken
        browser_memory.full operator_notes.full
        domain_notes.full domain_note.not_delivered
    """,
    -32002: """
        browser.not_found browser.launch_failed browser.restart_limit sandbox.node_lost tab.crashed tab.lost tab.busy
        cdp.renderer_stalled page.navigating dialog.storm navigation.failed navigation.timeout claim.finalize_failed
        human.unavailable call.deadline
    """,
    -32001: """
        safety.emergency_stop storage.low_free_space agent.shared_id bootstrap.required perceive.required
        blocking_overlay_active guarded_commit.missing_contract acknowledge_required
    """,
    -32035: """
        policy.host_denied policy.scheme_denied policy.private_network policy.file_denied policy.capability_missing
        upload.path_not_allowed
        secret.host_mismatch secret.insecure_origin feature.disabled blockers.needs_human blockers.repeat_suppressed
        guarded_commit.kill_switch_global guarded_commit.kill_switch_domain
        pks.kill_switch pks.builtin_platform
        browser_memory.disabled browser_memory.domain_excluded notes.user_owned
        pks.kill_switch pks.builtin_platform notes.user_owned
    """,
    -32029: "budget.exhausted",
    -32041: "learn.coverage_not_met",
    -32040: "claim.owner_mismatch claim.finalization_token_mismatch lcj.context_missing",
    -32044: "claim.too_many",
    None: """
        action.no_effect_observed action.request_pending action.error_signal dialog.confirm_dismissed
        type.value_mismatch navigation.http_error navigation.wait_for_load_timeout navigation.not_started
        navigation.became_download navigation.challenge scroll.no_movement blockers.hidden_only
        download.remote_not_saved screenshot.downgraded tab.already_closed policy.lookalike_host claim.reclaimed
        pks.not_present pks.not_active pks.quarantined pks.accept_refused pks.trial_not_allowed pks.value_required
        pks.empty_playbook learn.entry_missing
        memory.not_found
    """,
}
# Told by the server itself, by contracts, goals and the store, and by arguments; each is met by the tests beside it.
_ELSEWHERE = """
    rate.limited internal unknown_bundle unknown_tool call.nested size_limit conflicting_lookup store.unavailable
    server.shutting_down goal.not_found goal.terminal guarded_commit.precondition_failed
    guarded_commit.precondition_error guarded_commit.duplicate_suspected guarded_commit.dispatch_prepare_rejected
    guarded_commit.postcondition_failed guarded_commit.coordinator_busy guarded_commit.eval_error
"""
ELSEWHERE = frozenset(_ELSEWHERE.split())
REASONS = {reason: code for code, reasons in PUBLISHED.items() for reason in reasons.split()}
OWN = {Path(__file__).name, "must_hold.py"}


def quoted_in(folder: Path) -> set[str]:
    texts = (path.read_text(encoding="utf-8") for path in folder.rglob("*.py") if path.name not in OWN)
    return {word for text in texts for word in re.findall(r"[\"'`]([a-z_]+(?:\.[a-z_]+)?)[\"'`]", text)}


def reasons_of_errors() -> dict[str, int]:
    return {reason: family.error_code for family in (*FAMILIES, CommitRefused, Killed) for reason in family.reasons}


def test_every_published_reason_is_met_by_some_test() -> None:
    assert sorted(set(REASONS) - quoted_in(TESTS)) == []


@pytest.mark.parametrize("reason", sorted(reason for reason, code in REASONS.items() if code is not None))
def test_a_reason_goes_out_under_its_number(reason: str) -> None:
    assert reasons_of_errors()[reason] == REASONS[reason]


def test_notes_are_no_errors_and_are_told_somewhere() -> None:
    notes = {reason for reason, code in REASONS.items() if code is None}
    assert notes.isdisjoint(reasons_of_errors())
    assert sorted(notes - quoted_in(SOURCE)) == []


def test_no_reason_exists_that_is_not_published() -> None:
    assert sorted(set(reasons_of_errors()) - set(REASONS) - ELSEWHERE) == []
