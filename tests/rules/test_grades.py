"""Grades of evidence: the first row that applies decides, and nothing unproven is called strong."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nova_mcp.evidence.grades import Claimed, Grade, SeenWindow, gap_refused, grade, is_read_like, summarize
from nova_mcp.evidence.rules import VisitWindow


def seen(
    reads: int = 1, dwell_ms: int = 1_000, *, error_page: bool = False, agent_scripted: bool = False
) -> SeenWindow:
    window = VisitWindow("tab_1", "https://a.example/", None, 0, dwell_ms, dwell_ms, max(1, reads), reads, frozenset())
    return SeenWindow(window, error_page, agent_scripted)


@pytest.mark.parametrize(
    ("locator", "windows", "complete", "expected"),
    [
        (None, [seen()], True, Grade("unknown", "no_locator")),
        ("url", [], False, Grade("unknown", "ingestion_incomplete")),
        ("url", [], True, Grade("none", "no_matching_observation")),
        ("url", [seen()], True, Grade("strong")),
        ("url", [seen()], False, Grade("strong")),
        ("url", [seen(reads=0), seen()], True, Grade("strong")),
        ("selector", [seen()], True, Grade("weak", "locator_weak_only")),
        ("selector", [], True, Grade("none", "no_matching_observation")),
        ("url", [seen(error_page=True)], True, Grade("weak", "error_page")),
        ("url", [seen(agent_scripted=True)], True, Grade("weak", "agent_scripted")),
        ("url", [seen(reads=0)], True, Grade("weak", "no_read")),
        ("url", [seen(dwell_ms=999)], True, Grade("weak", "dwell_too_short")),
        ("url", [seen(error_page=True), seen(dwell_ms=1)], True, Grade("weak", "dwell_too_short")),
        ("url", [seen(reads=0), seen(agent_scripted=True)], True, Grade("weak", "agent_scripted")),
        ("url", [seen(reads=0), seen(reads=0, error_page=True)], True, Grade("weak", "error_page")),
    ],
)
def test_the_table(locator, windows, complete, expected):
    assert grade(locator, windows, ledger_complete=complete) == expected


windows = st.lists(
    st.builds(seen, st.integers(0, 3), st.integers(0, 3_000), error_page=st.booleans(), agent_scripted=st.booleans()),
    max_size=4,
)
ORDER = {"unknown": 0, "none": 0, "weak": 1, "strong": 2}


@given(windows, windows, st.sampled_from(["url", "selector"]), st.booleans())
def test_more_evidence_never_lowers_a_grade(before, more, locator, complete):
    first = grade(locator, before, ledger_complete=complete)
    later = grade(locator, [*before, *more], ledger_complete=complete)
    assert ORDER[later.name] >= ORDER[first.name]


@given(windows, st.sampled_from([None, "url", "selector"]))
def test_a_gap_in_the_ledger_turns_none_into_unknown_and_nothing_else(found, locator):
    whole = grade(locator, found, ledger_complete=True)
    gappy = grade(locator, found, ledger_complete=False)
    assert gappy == (Grade("unknown", "ingestion_incomplete") if whole.name == "none" else whole)


@given(windows)
def test_a_selector_never_proves_strongly(found):
    assert grade("selector", found, ledger_complete=True).name != "strong"


@pytest.mark.parametrize(
    ("tool", "details", "expected"),
    [
        ("nova.perceive", {"mode": "summary"}, True),
        ("nova.perceive", {"mode": None}, True),
        ("nova.perceive", {"mode": "state"}, False),
        ("nova.read_text", {}, True),
        ("nova.search_text", {"hits": 0}, False),
        ("nova.search_text", {"hits": 1}, True),
        ("nova.navigate", {}, False),
        ("nova.capture_screenshot", {}, False),
        ("nova.page_info", {}, False),
    ],
)
def test_which_calls_read(tool, details, expected):
    assert is_read_like(tool, **details) is expected


CLAIMS = [
    Claimed("d", Grade("none", "no_matching_observation")),
    Claimed("a", Grade("strong")),
    Claimed("c", Grade("unknown", "no_locator")),
    Claimed("b", Grade("weak", "no_read")),
]


@pytest.mark.parametrize(
    ("mode", "unknown_passes", "observed", "exceptions"),
    [
        ("require_observed", False, 2, ["c", "d"]),
        ("require_observed", True, 3, ["d"]),
        ("require_strong", False, 1, ["b", "c", "d"]),
        ("require_strong", True, 2, ["b", "d"]),
    ],
)
def test_claims_are_held_against_observations(mode, unknown_passes, observed, exceptions):
    summary = summarize(CLAIMS, mode, unknown_passes=unknown_passes, ledger_complete=True)
    assert (summary.claimed_checked, summary.observed_checked) == (4, observed)
    assert (summary.strong, summary.weak, summary.none, summary.unknown) == (1, 1, 1, 1)
    assert [claim.unit_key for claim in summary.top_exceptions] == exceptions
    assert summary.gap_percent == 100 * (4 - observed) / 4


def test_a_gap_is_judged_in_whole_numbers():
    claims = [Claimed(f"u{n}", Grade("strong" if n else "none")) for n in range(3)]
    summary = summarize(claims, "require_observed", unknown_passes=False, ledger_complete=True)
    assert gap_refused(summary, 33)
    assert not gap_refused(summary, 34)
    assert not gap_refused(summarize([], "require_observed", unknown_passes=False, ledger_complete=True), 0)
