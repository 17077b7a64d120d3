"""The judge of random plans agrees with Nova on the first of them, and notices when Nova is too easily content."""

import pytest
from bench.tasks import SEED, attempts
from bench.tasks_judge import Act, Scan, Story, Work, reasons

from nova_mcp.memory.tasks.coverage import evidence_store
from nova_mcp.memory.tasks.runs import completion

PLANS = range(SEED + 28, SEED + 44)
ADA = ("local", "ada")
PAGE = "https://shop.example/a"


def test_nova_and_the_judge_agree():
    tried = attempts(PLANS)
    assert [one for one in tried if one.product != one.judge] == []
    assert {bool(one.judge) for one in tried} == {True, False}


@pytest.mark.parametrize(
    ("where", "name", "instead"),
    [
        (completion, "gap_refused", lambda summary, percent: False),
        (evidence_store, "scan_eligibility", lambda scan, policy: "ok"),
    ],
)
def test_a_rule_that_is_too_easily_content_is_noticed(monkeypatch, where, name, instead):
    monkeypatch.setattr(where, name, instead)
    tried = attempts(PLANS)
    assert any(set(one.judge) - set(one.product) for one in tried)


def story(*acts: Act) -> Story:
    told = Story(
        "exhaustive", True, "all_units_processed", None, "require_strong", 0, False, "block", True, 0, "frozen"
    )
    told.members[ADA] = 0
    told.units["a"] = Work("a", "url", PAGE, "checked")
    told.acts.extend(acts)
    return told


@pytest.mark.parametrize(
    ("acts", "now_ms", "expected"),
    [
        ([], 5_000, ["url_units_remaining", "evidence_gap"]),
        ([Act(ADA, "t", 0, 100, "nova.navigate", PAGE)], 5_000, ["url_units_remaining", "evidence_gap"]),
        ([Act(ADA, "t", 0, 100, "nova.read_text", PAGE)], 999, ["url_units_remaining", "evidence_gap"]),
        ([Act(ADA, "t", 0, 100, "nova.read_text", PAGE)], 1_000, ["url_units_remaining"]),
        ([Act(ADA, "t", 0, 100, "nova.coverage_scan", PAGE, scan=Scan("nova_full_page_text_v1"))], 1_000, []),
        ([Act(("local", "eve"), "t", 0, 100, "nova.read_text", PAGE)], 5_000, ["url_units_remaining", "evidence_gap"]),
    ],
)
def test_the_judge_by_itself(acts, now_ms, expected):
    assert reasons(story(*acts), now_ms, {}) == expected
