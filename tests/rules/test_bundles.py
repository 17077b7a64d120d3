"""Which tools stand together: the bundles as the contract lists them, less what does not exist yet."""

import pytest

from nova_mcp.tools.catalogue import BUNDLES, load_catalogue

CONTRACT = {
    "core": "call get_instructions tools_bundle tabs tab_new navigate perceive read_text search_text click_selector "
    "type_selector choose_option guarded_submit_form guarded_login guarded_send_message dismiss_blockers tab_claim "
    "tab_release capture_screenshot ask_human",
    "browser_automation": "tabs tab_new tab_close set_active_tab tab_claim tab_release navigate back forward reload "
    "wait_for_selector perceive perceive_snapshot_query click_selector type_selector choose_option input_key hover "
    "scroll_smart dismiss_blockers run_sequence capture_screenshot ask_human",
    "page_reading": "perceive perceive_snapshot_query page_info read_text search_text extract_table "
    "capture_screenshot eval coverage_scan",
    "form_submission": "perceive click_selector type_selector type_selector_secret choose_option input_key "
    "file_upload wait_for_selector goal_register guarded_send_message guarded_submit_form guarded_login "
    "guarded_switch_model guarded_switch_sandbox",
    "sandboxes": "sandbox_create sandbox_list sandbox_delete guarded_switch_sandbox",
    "live_facts": "perceive ok_observe ok_facts ok_signal_schema",
    "task_memory": "task_search task_match task_profiles task_profile_get task_profile_upsert task_instance_create "
    "task_instance_get task_instance_progress task_instance_verify task_instance_complete task_instance_abort "
    "task_guidance_log_add task_guidance_logs task_promotion_candidates task_promote_guidance coverage_scan "
    "goal_register",
    "pks_learning": "memory_add_candidate memory_stats learn_suggest learn_generate learn_promote learn_feedback "
    "learn_resolve_opportunity explain revalidate pks_get pks_match pks_list pks_upsert pks_patch pks_deprecate "
    "pks_upsert_hint pks_platform_list pks_platform_get pks_platform_seed phenomenon_apply telemetry_report",
    "system_tools": "call get_instructions tools_bundle memory_stats",
}
NOT_YET = frozenset({"get_instructions", "coverage_scan"})


@pytest.mark.parametrize("bundle", CONTRACT)
def test_a_bundle_holds_what_the_contract_lists(bundle: str) -> None:
    held = {spec.name for spec in load_catalogue() if bundle in spec.bundles}
    assert held == set(CONTRACT[bundle].split()) - NOT_YET


def test_the_union_of_the_bundles_is_every_tool() -> None:
    every = {spec.name for spec in load_catalogue()}
    assert every == {name for names in CONTRACT.values() for name in names.split()} - NOT_YET
    assert CONTRACT.keys() == BUNDLES.keys()
