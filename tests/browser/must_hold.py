"""Which tests hold each promise about the browser; `test_must_hold.py` checks that every one of them exists."""

ME = "tests/browser/test_must_hold.py"
CLICK = "tests/browser/test_click.py"
HOSTILE = "tests/browser/test_hostile.py"
NAVIGATION = "tests/browser/test_navigation.py"
TARGETS = "tests/browser/test_targets.py"
MOVING = "tests/browser/test_attack_moving.py"
FRAMES = "tests/browser/test_attack_frames.py"
ROWS = "tests/seeds/test_cls_rows.py"
CLAIMS = "tests/seeds/test_lcj_claims.py"
GATES = "tests/calls/test_gates_every_mode.py"

HELD: dict[str, tuple[str, ...]] = {
    "BR-01": (
        f"{HOSTILE}::test_br01_br02_replaced_builtins_and_clobbered_names_change_no_answer",
        "tests/browser/test_search.py::test_hostile_pages_change_no_answer",
        "tests/browser/test_fact_watch.py::test_replaced_builtins_keep_nothing_from_being_told",
    ),
    "BR-02": (
        f"{HOSTILE}::test_br01_br02_replaced_builtins_and_clobbered_names_change_no_answer",
        f"{HOSTILE}::test_images_named_title_and_body_do_not_stand_in_for_the_real_ones",
    ),
    "BR-03": (f"{HOSTILE}::test_a_page_that_swallows_every_event_cannot_hide_that_it_got_one",),
    "BR-04": (
        f"{HOSTILE}::test_br04_endless_mutation_neither_blocks_a_look_nor_passes_for_an_effect",
        f"{NAVIGATION}::test_settled_ends_by_its_timeout",
    ),
    "BR-05": (
        f"{ME}::test_br05_a_storm_of_alerts_ends_typed_and_holds_up_no_other_tab",
        f"{TARGETS}::test_a_dialog_storm_replaces_the_page_under_the_same_id",
        f"{ROWS}::test_a_storm_of_dialogs_is_told_and_the_page_counts_as_touched",
    ),
    "BR-06": (
        f"{ME}::test_br06_a_page_that_never_lets_go_is_told_by_every_read_and_revived_under_its_id",
        f"{NAVIGATION}::test_a_page_that_loops_forever_is_revived_under_its_id",
    ),
    "BR-07": (
        f"{NAVIGATION}::test_a_page_that_asks_to_stay_blocks_until_forced",
        f"{TARGETS}::test_closing_is_quick_even_when_the_page_would_ask",
    ),
    "BR-08": (
        "tests/browser/test_perception.py::test_br08_fifty_thousand_buttons_fit_the_budget_and_say_that_the_scan_was_cut",
        "tests/browser/test_perception.py::test_br08_fifty_thousand_plain_nodes_hide_no_control",
        "tests/browser/test_search.py::test_the_last_of_fifty_thousand_buttons_is_found_and_its_ref_means_it",
    ),
    "BR-09": (
        f"{ME}::test_br09_a_read_in_the_middle_of_a_navigation_tells_the_new_page_or_that_it_moves",
        f"{MOVING}::test_a_page_that_leaves_while_it_is_waited_for_is_not_pressed",
        f"{MOVING}::test_a_page_that_leaves_when_the_pointer_comes_is_not_pressed",
        f"{MOVING}::test_a_page_that_leaves_on_the_press_was_pressed",
    ),
    "BR-10": (
        f"{ME}::test_br10_a_crash_during_any_tool_is_typed_recorded_and_recoverable",
        f"{MOVING}::test_a_page_that_crashes_while_it_is_waited_for_says_so_and_comes_back",
    ),
    "BR-11": (
        f"{ME}::test_br11_a_frame_that_left_after_the_look_gets_nothing_and_nobody_else_does",
        f"{FRAMES}::test_a_frame_that_left_and_one_that_never_was_are_told_apart",
        f"{FRAMES}::test_a_button_in_a_frame_is_pressed_where_it_lies",
        f"{FRAMES}::test_a_frame_of_another_site_needs_no_introduction",
    ),
    "BR-12": (
        "tests/browser/test_downloads.py::test_a_name_that_climbs_stays_inside_and_never_overwrites",
        "tests/browser/test_downloads.py::test_a_file_that_never_ends_is_cut_off_at_its_limit",
        "tests/rules/test_download_rules.py::test_no_name_leaves_its_folder_hides_or_grows_too_long",
        f"{MOVING}::test_a_link_to_a_file_is_a_download_and_no_error",
    ),
    "BR-13": (
        f"{ME}::test_br13_popups_that_nobody_asked_for_stay_five_however_long_they_come",
        f"{TARGETS}::test_of_thirty_popups_five_stay_and_the_rest_is_counted",
        f"{TARGETS}::test_popups_without_an_action_are_limited_too",
    ),
    "BR-14": (
        f"{HOSTILE}::test_an_overlay_is_named_and_none_of_its_handlers_run",
        f"{HOSTILE}::test_an_overlay_that_rises_on_the_press_gets_nothing_of_it",
        "tests/browser/test_blockers.py::test_a_covered_target_is_refused_and_the_layer_is_named_with_its_kind",
    ),
    "BR-15": (
        f"{CLICK}::test_a_button_without_handler_is_uncertain",
        f"{CLICK}::test_a_beacon_or_a_throwing_handler_is_uncertain",
    ),
    "BR-16": (
        f"{ME}::test_br16_a_submit_that_failed_is_never_told_as_likely_or_verified",
        f"{ROWS}::test_a_failed_response_is_forbidden_by_default",
        f"{ROWS}::test_a_pending_request_at_the_end_is_a_timeout",
        "tests/seeds/test_fault_site.py::test_answer_and_server_agree_with_the_table",
    ),
    "BR-17": (
        "tests/browser/test_type.py::test_a_field_that_rewrites_its_input_is_a_mismatch_and_enter_is_not_pressed",
    ),
    "BR-18": (
        f"{CLICK}::test_a_ref_works_after_a_rerender_with_new_nodes",
        f"{CLICK}::test_a_ref_whose_row_was_recycled_is_refused_untouched",
        f"{CLICK}::test_refs_of_another_page_gone_elements_and_twins_are_told_apart",
    ),
    "BR-19": (
        f"{ME}::test_br19_no_tool_touches_what_is_missing_disabled_gone_or_hidden",
        f"{CLICK}::test_what_cannot_be_clicked_is_refused_and_not_dispatched",
    ),
    "BR-20": (
        f"{ROWS}::test_a_verified_commit_is_not_repeated_unseen",
        f"{ROWS}::test_an_unclear_commit_is_not_repeated_until_it_was_looked_at_and_named",
        f"{ROWS}::test_an_unclear_commit_that_turns_out_done_is_answered_without_sending",
        "tests/seeds/test_fault_site.py::test_answer_and_server_agree_with_the_table",
        "tests/stores/test_transitions.py::"
        "test_what_a_dead_server_left_in_flight_is_indeterminate_and_its_step_ambiguous",
    ),
    "BR-21": (f"{CLICK}::test_a_confirm_is_dismissed_and_makes_the_call_partial",),
    "BR-22": (
        f"{ME}::test_br22_a_page_that_did_not_come_has_its_reason_and_leaves_no_error_page_anywhere",
        f"{NAVIGATION}::test_a_network_error_has_its_name_and_no_error_page",
        f"{NAVIGATION}::test_an_http_error_is_partial_and_shows_the_servers_page",
    ),
    "BR-23": (
        f"{NAVIGATION}::test_a_redirect_to_a_denied_host_never_leaves",
        f"{NAVIGATION}::test_a_name_that_leads_into_a_private_network_is_blanked_before_a_read",
        "tests/browser/test_policy_edges.py::test_a_popup_from_a_lying_name_is_blanked_before_a_read",
        "tests/browser/test_policy_edges.py::test_a_popup_whose_origin_was_hidden_is_blanked_too",
    ),
    "BR-24": (
        f"{ME}::test_br24_a_secret_that_a_page_echoes_in_every_spelling_is_nowhere",
        "tests/wire/test_real_secrets.py::test_no_answer_row_or_log_line_holds_a_secret_that_a_page_echoes",
        "tests/browser/test_picture_tool.py::"
        "test_a_page_that_shows_a_secret_as_text_is_covered_there_and_left_as_it_was",
        "tests/browser/test_picture_tool.py::test_a_field_built_anew_around_a_typed_secret_is_covered",
    ),
    "BR-25": (
        "tests/browser/test_sandboxes.py::test_sandboxes_share_no_cookie_storage_cache_or_service_worker",
        "tests/browser/test_sandboxes.py::test_a_deleted_kept_sandbox_leaves_no_file",
    ),
    "BR-26": (
        f"{ME}::test_br26_fifty_agents_on_fifty_tabs_hear_only_of_their_own",
        f"{GATES}::test_a_warning_that_is_told_once_is_not_spent_on_a_tool_that_does_not_tell_it",
        f"{TARGETS}::test_one_agents_switch_never_moves_anothers",
    ),
    "BR-27": (
        f"{GATES}::test_a_fixed_gate_stops_the_call_and_leaves_a_row_that_is_no_failure",
        f"{GATES}::test_an_adjustable_gate_does_what_its_mode_says",
        "tests/rules/test_gates.py::test_adjustable_gates_follow_their_mode",
        "tests/rules/test_gates.py::test_a_gate_that_cannot_be_evaluated_blocks_where_it_would_and_warns_elsewhere",
    ),
    "BR-28": (
        f"{CLAIMS}::test_br28_only_the_owner_changes_a_tab",
        f"{CLAIMS}::test_br28_expiry_frees_the_tab_and_skips",
        f"{CLAIMS}::test_br28_a_takeover_kills_the_old_token_and_tells_the_displaced_once",
        f"{CLAIMS}::test_br28_a_restart_ends_claims_with_a_skip_and_the_owner_is_told",
        f"{CLAIMS}::test_br28_closing_a_tab_finalizes_its_claim",
        f"{CLAIMS}::test_br28_the_token_is_nowhere_but_in_the_answer_to_the_claim",
        f"{CLAIMS}::test_br28_a_release_is_atomic_under_a_store_fault",
    ),
    "BR-29": (
        "tests/browser/test_blockers.py::test_getting_rid_of_layers_never_agrees_and_says_only_what_is_true",
        "tests/browser/test_blockers.py::test_the_aggressive_mode_hides_what_is_left_and_calls_it_that",
    ),
    "BR-30": (
        "tests/browser/test_auth_facts.py::test_each_page_says_what_it_shows_and_no_more",
        "tests/browser/test_auth_facts.py::test_what_a_page_claims_about_itself_changes_no_fact",
        "tests/browser/test_labelled.py::test_a_claim_keeps_the_recall_and_precision_it_was_published_with",
    ),
    "BR-31": (
        "tests/rules/test_perception_rules.py::test_br31_the_same_snapshot_gives_the_same_lines_order_and_refs",
        "tests/rules/test_perception_rules.py::test_br31_a_delta_applied_to_the_old_list_gives_the_new_list",
    ),
    "BR-32": (
        "tests/seeds/test_bounds.py::test_bounds_hold_at_the_edge_and_one_past_it",
        "tests/rules/test_reason_codes.py::test_every_published_reason_is_met_by_some_test",
        "tests/rules/test_reason_codes.py::test_no_reason_exists_that_is_not_published",
        "tests/browser/test_runtime.py::test_a_late_heartbeat_makes_the_host_busy_for_the_time_that_holds_it",
    ),
    "BR-33": (
        f"{HOSTILE}::test_br33_hidden_text_is_absent_and_page_text_forges_no_line",
        f"{HOSTILE}::test_br33_titles_and_headings_cannot_break_out_of_their_line",
        "tests/browser/test_reading_tools.py::test_reading_forges_no_gate",
    ),
    "BR-34": (
        f"{ME}::test_br34_an_ambiguous_selector_touches_nothing_whatever_the_tool_and_its_candidates_are_distinct",
        f"{CLICK}::test_an_ambiguous_selector_touches_nothing_and_its_candidates_are_distinct",
    ),
}
