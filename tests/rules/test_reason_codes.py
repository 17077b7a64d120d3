"""The reasons an answer may give: every published one is met by a test, and there is no other."""

import json
import re
from pathlib import Path

import pytest

from nova_mcp.errors import FAMILIES, CommitRefused, Killed

TESTS = Path(__file__).resolve().parent.parent
SOURCE = TESTS.parent / "src" / "nova_mcp"

GOLDEN = json.loads((TESTS / "golden" / "reasons.json").read_text(encoding="utf-8"))
PUBLISHED = {reason: int(number) for number, reasons in GOLDEN.items() for reason in reasons}
# Told beside an answer; they are no failures.
_NOTES = """
    action.no_effect_observed action.request_pending action.error_signal dialog.confirm_dismissed
    type.value_mismatch navigation.http_error navigation.wait_for_load_timeout navigation.not_started
    navigation.became_download navigation.challenge scroll.no_movement blockers.hidden_only
    download.remote_not_saved screenshot.downgraded tab.already_closed policy.lookalike_host claim.reclaimed
    pks.not_present pks.not_active pks.quarantined pks.accept_refused pks.trial_not_allowed pks.value_required
    pks.empty_playbook learn.entry_missing
    memory.not_found
"""
NOTES = frozenset(_NOTES.split())


def quoted_in(folder: Path) -> set[str]:
    texts = (path.read_text(encoding="utf-8") for path in folder.rglob("*.py"))
    return {word for text in texts for word in re.findall(r"[\"'`]([a-z_]+(?:\.[a-z_]+)?)[\"'`]", text)}


def reasons_of_errors() -> dict[str, int]:
    return {reason: family.error_code for family in (*FAMILIES, CommitRefused, Killed) for reason in family.reasons}


def test_every_published_reason_is_met_by_some_test() -> None:
    assert sorted({*PUBLISHED, *NOTES} - quoted_in(TESTS)) == []


@pytest.mark.parametrize("reason", sorted(PUBLISHED))
def test_a_reason_goes_out_under_its_number(reason: str) -> None:
    assert reasons_of_errors()[reason] == PUBLISHED[reason]


def test_notes_are_no_errors_and_are_told_somewhere() -> None:
    assert NOTES.isdisjoint(reasons_of_errors())
    assert sorted(NOTES - quoted_in(SOURCE)) == []


def test_no_reason_exists_that_is_not_published() -> None:
    assert sorted(set(reasons_of_errors()) - set(PUBLISHED)) == []
