"""Which tools stand together: the bundles as the contract lists them, and how words find a tool."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nova_mcp.tools.catalogue import BUNDLES, load_catalogue
from nova_mcp.tools.system.tool_ranking import rank_tools

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
    "notes": "memory_note memory_recall memory_forget operator_notes_store operator_notes_query operator_notes_list "
    "operator_notes_delete domain_note domain_notes_list domain_note_ack domain_note_delete",
    "system_tools": "call get_instructions tools_bundle memory_stats",
}
NOT_YET = frozenset({"get_instructions", "coverage_scan"})
CATALOGUE = load_catalogue()
EVERY = {spec.name for spec in CATALOGUE}


@pytest.mark.parametrize("bundle", CONTRACT)
def test_a_bundle_holds_what_the_contract_lists(bundle: str) -> None:
    held = {spec.name for spec in CATALOGUE if bundle in spec.bundles}
    assert held == set(CONTRACT[bundle].split())


def test_the_union_of_the_bundles_is_every_tool() -> None:
    assert {name for names in CONTRACT.values() for name in names.split()} == EVERY
    assert CONTRACT.keys() == BUNDLES.keys()
    assert {spec.name for name in BUNDLES for spec in CATALOGUE.bundle(name)} == EVERY


# -- words


def names(query: str) -> list[str]:
    return [spec.name for spec in rank_tools(query, CATALOGUE)[0]]


def test_a_name_is_worth_more_than_a_bundle_or_a_description() -> None:
    assert names("click selector")[0] == "click_selector"
    assert names("nova.read_text")[0] == "read_text"
    assert names("sandboxes") != []


def test_tools_that_match_every_word_stand_alone() -> None:
    found, partial = rank_tools("tab claim", CATALOGUE)
    assert (found[0].name, partial) == ("tab_claim", False)
    text = [f"{spec.name} {' '.join(spec.bundles)} {spec.title} {spec.description}".lower() for spec in found]
    assert all("tab" in one and "claim" in one for one in text)


def test_where_none_matches_every_word_the_best_partial_ones_are_told_as_such() -> None:
    found, partial = rank_tools("screenshot xyzzy", CATALOGUE)
    assert (found[0].name, partial) == ("capture_screenshot", True)
    assert rank_tools("xyzzy", CATALOGUE) == ([], False)


def test_words_that_only_say_nova_find_nothing() -> None:
    assert rank_tools("nova", CATALOGUE) == ([], False)


words = st.lists(
    st.sampled_from(["tab", "click", "page", "text", "form", "claim", "note", "memory", "xyzzy", "the", "a"]),
    max_size=4,
)


@given(words, st.randoms(use_true_random=False))
def test_ranking_depends_on_neither_order(query: list[str], random: object) -> None:
    shuffled, tools = list(query), list(CATALOGUE)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    random.shuffle(tools)  # type: ignore[attr-defined]
    assert rank_tools(" ".join(shuffled), tools) == rank_tools(" ".join(query), CATALOGUE)


@given(words)
def test_no_tool_comes_twice_and_ties_go_by_name(query: list[str]) -> None:
    found, _ = rank_tools(" ".join(query), CATALOGUE)
    assert len({spec.name for spec in found}) == len(found)
    alike = [
        (a, b) for a, b in pairwise(found) if rank_tools(" ".join(query), [a, b]) == rank_tools(" ".join(query), [b, a])
    ]
    assert len(alike) == max(0, len(found) - 1)


def test_an_agent_can_say_who_it_is_in_every_call() -> None:
    silent = [spec.name for spec in load_catalogue() if "agent_id" not in spec.params.model_fields]
    # What is called through the door brings the agent along itself; who reports a fact makes no difference to it.
    assert sorted(silent) == ["call", "ok_observe"]
