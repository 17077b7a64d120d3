"""What visits, grades and scans are worth: rules that only ever raise, and the first failure that wins."""

from dataclasses import replace
from itertools import accumulate, pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nova_mcp.browser.page import SCAN_SOURCES, scan_hash
from nova_mcp.browser.read.coverage import ScanOptions, is_steady, same_site, scan
from nova_mcp.browser.read.progress import Piece, ReadOn, advanced
from nova_mcp.core.urls import normalize_url, url_hash
from nova_mcp.evidence.grades import Grade, grade
from nova_mcp.evidence.page_sights import STILL, Channels, PageLife, ScanMeasures
from nova_mcp.evidence.rules import VisitCall, visit_windows
from nova_mcp.memory.tasks.coverage.evidence_rules import UnitEvidence, as_told, raised, strength, unseen
from nova_mcp.memory.tasks.coverage.locators import (
    BadLocator,
    Declared,
    Locator,
    path_hash,
    same_but_spelling,
    unit_locator,
)
from nova_mcp.memory.tasks.coverage.rules import (
    Judged,
    coverage_ratio,
    policy_of,
    recommended_scan,
    scan_eligibility,
    scan_trust,
)
from nova_mcp.memory.tasks.coverage.site_urls import rememberable
from nova_mcp.memory.tasks.coverage.visits import PageCall, Visit, finished_at, seen_since, stepped
from nova_mcp.memory.tasks.model import SCAN_IDS, TASK_KINDS

UNHURRIED = settings(deadline=None)
A, B = "https://a.example/", "https://b.example/"

# -- locators


@pytest.mark.parametrize(
    ("kind", "text", "declared", "expected"),
    [
        ("page", "https://A.example/x/?b=1&a=2", None, ("url_exact", "https://a.example/x?a=2&b=1")),
        ("url", "/x", None, ("url_exact", "https://shop.example:8443/x")),
        ("url", "//x", None, ("url_exact", "https://x/")),
        ("page", "x", None, None),
        ("page", "ftp://a.example/", None, None),
        ("page", A, Declared("url_exact", A), None),
        ("selector", "#save >  b", None, ("selector", "#save > b")),
        ("item", "row 7", None, "unseen"),
        ("item", "row 7", Declared("url_path", "/x?y=1#/z"), ("url_path", "https://shop.example:8443/x#/z")),
        ("role", "admin", Declared("url_exact", "/x?y=1"), ("url_exact", "https://shop.example:8443/x?y=1")),
        ("modal", "m", Declared("url_path", "nowhere"), None),
        ("page", "//other.example/x", None, ("url_exact", "https://other.example/x")),
        ("state", "s", Declared("selector", "#a"), ("selector", "#a")),
    ],
)
def test_a_unit_is_found_by_its_locator(kind, text, declared, expected):
    found = unit_locator(kind, text, declared=declared, target_url="https://shop.example:8443/start")
    if expected is None:
        assert isinstance(found, BadLocator)
    elif expected == "unseen":
        assert found is None
    else:
        assert isinstance(found, Locator)
        assert (found.type, found.value) == expected


def test_a_path_needs_a_target():
    assert isinstance(unit_locator("page", "/x"), BadLocator)


def test_an_address_and_the_same_address_under_any_query_are_not_confused():
    assert path_hash(A) != url_hash(A)
    assert path_hash("https://a.example/x?a=1") == path_hash("https://a.example/x?b=2")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("http://a.example/x", "https://a.example/x", True),
        ("http://a.example/x", "https://www.a.example/X", True),
        ("http://a.example/x?a=1", "http://a.example/x?a=1", True),
        ("http://a.example/x?a=1", "http://a.example/x?A=1", False),
        ("http://a.example/x", "http://a.example/x?next=1", False),
        ("http://a.example/x", "http://a.example/de/x", False),
        ("http://a.example/x", "http://m.a.example/x", False),
        ("http://a.example/x", "http://a.example:8080/x", False),
        ("http://a.example/#/x", "http://a.example/#/X", False),
    ],
)
def test_only_scheme_www_and_case_of_the_path_are_spelling(one, other, same):
    assert same_but_spelling(one, other) is same
    assert same_but_spelling(other, one) is same


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        ("https://a.example/x?page=2&id=7c9e6679-7425-40de-944b-e07fc1f90ae7", True),
        ("https://a.example/reset?token=abc", False),
        ("https://a.example/x?access_token=abc", False),
        ("https://a.example/cb?code=abc&state=x", False),
        ("https://a.example/f?X-Amz-Signature=ab", True),
        ("https://a.example/f?sig=ab", False),
        ("https://a.example/#/x?token=abc", False),
        ("https://a.example/x?token=", True),
        ("https://a.example/v/eyJhbGciOiJI.eyJzdWIiOiIx.x", False),
    ],
)
def test_an_address_that_lets_somebody_in_is_not_remembered(url, kept):
    assert rememberable(url) is kept


# -- visits

gaps = st.integers(0, 4_000)
steps = st.lists(
    st.tuples(gaps, st.integers(0, 900), st.sampled_from([A, B]), st.booleans(), st.sampled_from([None, "t"])),
    min_size=1,
    max_size=12,
)


def calls_of(drawn, life=STILL):
    found, clock = [], 10_000
    for gap, lasts, url, read, task in drawn:
        clock += gap
        found.append(PageCall("T", task, url_hash(url), path_hash(url), clock, clock + lasts, read, life=life))
        clock += lasts
    return found


def streamed(calls):
    """Visits in the order in which they began, as a store would hold them after each call."""
    visits: list[Visit] = []
    for call in calls:
        step = stepped(visits[-1] if visits else None, call)
        if step.current.calls == 1:
            visits = [*visits[:-1], *([step.settled] if step.settled else visits[-1:]), step.current]
        else:
            visits[-1] = step.current
        yield visits


@UNHURRIED
@given(steps, st.lists(st.integers(10_000, 60_000), max_size=6), st.lists(st.integers(10_000, 60_000), max_size=3))
def test_visits_that_grow_call_by_call_are_the_windows_of_all_calls(drawn, active, left):
    life = PageLife(tuple(sorted(active)), tuple(sorted(left)))
    calls = calls_of(drawn, life)
    *_, visits = streamed(calls)
    now = calls[-1].ended_at_ms + 700
    told = [finished_at(visit, now, life) for visit in visits]
    whole = visit_windows(
        [VisitCall("T", one.url_hash, one.task_id, one.started_at_ms, one.ended_at_ms, one.read) for one in calls],
        now,
        {"T": life},
    )
    assert [(one.started_at_ms, one.ended_at_ms, one.dwell_ms, one.calls, one.reads) for one in told] == [
        (one.started_at_ms, one.last_call_end_ms, one.dwell_ms, one.calls, one.reads) for one in whole
    ]


@UNHURRIED
@given(steps, st.integers(9_000, 40_000))
def test_of_an_early_visit_never_more_counts_than_its_later_calls_were(drawn, since_ms):
    calls = calls_of(drawn)
    *_, visits = streamed(calls)
    for visit in visits:
        inside = [
            call
            for call in calls
            if visit.started_at_ms <= call.started_at_ms <= visit.last_call_at_ms and call.started_at_ms >= since_ms
        ]
        seen = seen_since(visit, since_ms)
        assert (seen is None) == (not inside)
        if seen is not None:
            first = min(call.started_at_ms for call in inside)
            assert seen.window.reads <= sum(call.read for call in inside)
            assert (seen.window.reads > 0) == any(call.read for call in inside)
            assert seen.window.dwell_ms <= visit.ended_at_ms - first + visit.stayed_ms


@pytest.mark.parametrize("changed", [{"error_page": True}, {"agent_scripted": True}])
def test_a_document_that_loses_its_worth_begins_another_visit(changed):
    first, later = calls_of([(0, 100, A, True, None), (100, 100, A, True, None)])
    begun = stepped(None, first).current
    step = stepped(begun, replace(later, **changed))
    assert step.settled is not None
    assert (step.settled.stayed_ms, step.current.calls, step.current.reads) == (100, 1, 1)


def test_a_page_that_left_by_itself_gets_no_time_it_did_not_have():
    call, later = calls_of([(0, 100, A, True, None), (2_000, 100, B, True, None)])
    begun = stepped(None, call).current
    left = PageLife(left_at_ms=(call.ended_at_ms + 300,))
    assert stepped(begun, replace(later, life=left)).settled == replace(begun, stayed_ms=300, settled=True)
    assert finished_at(begun, call.ended_at_ms + 9_000, left).stayed_ms == 300
    assert finished_at(begun, call.ended_at_ms + 9_000, PageLife()).stayed_ms == 2_500


def test_a_page_stays_until_the_call_that_leads_away_has_left_it():
    call, later = calls_of([(0, 100, A, True, None), (500, 400, B, False, None)])
    begun = stepped(None, call).current
    for left_at, stayed in ((later.started_at_ms + 150, 650), (later.ended_at_ms + 1, 500)):
        life = PageLife(left_at_ms=(left_at,))
        assert stepped(begun, replace(later, life=life)).settled == replace(begun, stayed_ms=stayed, settled=True)
    same = replace(later, url_hash=call.url_hash, agent_scripted=True, life=PageLife(left_at_ms=(left_at - 100,)))
    assert stepped(begun, same).settled == replace(begun, stayed_ms=500, settled=True)


def test_a_settled_visit_never_grows_again():
    call, later = calls_of([(0, 100, A, True, None), (10, 100, A, True, None)])
    over = replace(stepped(None, call).current, settled=True)
    step = stepped(over, later)
    assert (step.settled, step.current.calls) == (None, 1)


# -- grades

visits_of_one_page = st.lists(
    st.builds(
        lambda at, lasts, stayed, reads, error, scripted: Visit(
            *("T", None, url_hash(A), path_hash(A), at, at + lasts, at, at if reads else None, stayed, True, 1, reads),
            *(error, scripted),
        ),
        st.integers(0, 50_000),
        st.integers(0, 900),
        st.integers(0, 2_500),
        st.integers(0, 1),
        st.booleans(),
        st.booleans(),
    ),
    max_size=6,
)


@given(visits_of_one_page, st.integers(0, 60_000))
def test_grades_raised_one_by_one_are_the_grade_of_all_and_never_fall(visits, since_ms):
    seen = [one for one in (seen_since(visit, since_ms) for visit in visits) if one is not None]
    steps = list(
        accumulate(
            seen, lambda known, one: raised(known, "url_exact", [one], 1), initial=UnitEvidence(unseen("url_exact"))
        )
    )
    assert steps[-1].grade == grade("url", seen, ledger_complete=True)
    assert steps[-1].observed == len(seen)
    assert all(strength(a.grade) <= strength(b.grade) for a, b in pairwise(steps))


@given(visits_of_one_page)
def test_a_control_never_reaches_strong_and_what_has_no_locator_stays_unknown(visits):
    seen = [one for one in (seen_since(visit, 0) for visit in visits) if one is not None]
    assert raised(UnitEvidence(unseen("selector")), "selector", seen).grade.name in ("none", "weak")
    assert unseen(None) == Grade("unknown", "no_locator")


@pytest.mark.parametrize("found", [Grade("strong"), Grade("weak", "no_read"), Grade("unknown", "no_locator")])
def test_a_gap_turns_none_into_unknown_and_nothing_else(found):
    assert as_told(found, ledger_gap=True) == found
    assert as_told(unseen("url_exact"), ledger_gap=True) == Grade("unknown", "ingestion_incomplete")
    assert as_told(unseen("url_exact"), ledger_gap=False) == unseen("url_exact")


# -- scans

GOOD = ScanMeasures(
    url_hash="x", hydration="stable", http_status=200, extracted_chars=100, measured_chars=100,
    channels=Channels(visible_text=True, aria_labels=True, inputs=True, alt_text=True),
)  # fmt: skip


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({}, "server_registered_scan"),
        ({"failed": True, "url_changed": True}, "scan_failed"),
        ({"url_changed": True, "extracted_chars": 999}, "effective_url_mismatch"),
        ({"extracted_chars": 104}, "server_registered_scan"),
        ({"extracted_chars": 105}, "extraction_exceeds_measure"),
        ({"extracted_chars": 1_020, "measured_chars": 1_000}, "server_registered_scan"),
        ({"extracted_chars": 1_021, "measured_chars": 1_000}, "extraction_exceeds_measure"),
        ({"extracted_chars": 4, "measured_chars": 0}, "server_registered_scan"),
    ],
)
def test_trust_and_its_first_failure(change, reason):
    trust = scan_trust(replace(GOOD, **change))
    assert (trust.reason, trust.trusted) == (reason, reason == "server_registered_scan")


# Each failure with what brings it about, in the order in which they are told.
FAILURES = [
    ("untrusted", {"trusted": False}, {}),
    ("error_page", {}, {"http_status": 400}),
    ("error_page", {"unanswered": True}, {"http_status": None}),
    ("agent_scripted", {"agent_scripted": True}, {}),
    ("hydration_unchecked", {}, {"hydration": "unchecked"}),
    ("hydration_unstable", {}, {"hydration": "unstable"}),
    ("scan_not_accepted_for_kind", {"scan_id": "nova_structured_dom_v1"}, {}),
    ("no_measurable_text", {}, {"measured_chars": 0, "extracted_chars": 0}),
    ("text_coverage_below_0_85", {}, {"extracted_chars": 84}),
    ("channels_missing", {}, {"channels": replace(GOOD.channels, alt_text=False)}),
    ("iframes_not_included", {}, {"frames": 1, "frames_included": False}),
]


def judged(*failures):
    scan = {"scan_id": "nova_full_page_text_v1", "trusted": True, "agent_scripted": False}
    measures = {}
    for _, on_scan, on_measures in reversed(failures):
        scan |= on_scan
        measures |= on_measures
    return Judged(measures=replace(GOOD, **measures), **scan)


def test_a_good_scan_is_eligible_for_everything():
    assert {scan_eligibility(judged(), policy) for policy in ("all", "min3", "min2")} == {"ok"}


@pytest.mark.parametrize("failure", FAILURES, ids=lambda one: one[0])
def test_each_failure_has_its_name(failure):
    assert scan_eligibility(judged(failure), "all") == failure[0]


@given(st.sets(st.sampled_from(range(len(FAILURES))), min_size=1))
def test_the_first_failure_wins(chosen):
    failures = [FAILURES[number] for number in sorted(chosen)]
    names = [name for name, *_ in failures]
    # A scan of the build alone is not asked about text.
    if "hydration_unchecked" in names and "hydration_unstable" in names:
        failures = [one for one in failures if one[0] != "hydration_unstable"]
    assert scan_eligibility(judged(*failures), "all") == failures[0][0]


def test_a_build_scan_will_do_where_not_every_text_is_asked_for():
    build = judged(("", {"scan_id": "nova_structured_dom_v1"}, {"extracted_chars": 0, "channels": Channels()}))
    assert [scan_eligibility(build, policy) for policy in ("all", "min3", "min2")] == [
        "scan_not_accepted_for_kind",
        "ok",
        "ok",
    ]


def test_a_whole_read_is_not_asked_for_channels_but_for_everything_else():
    read = replace(judged(FAILURES[9]), asks_channels=False)
    assert scan_eligibility(read, "all") == "ok"
    assert scan_eligibility(replace(read, measures=replace(read.measures, whole=False)), "all") == (
        "text_coverage_below_0_85"
    )


def test_85_percent_are_enough_and_less_are_not():
    enough = judged(("", {}, {"extracted_chars": 85}))
    assert scan_eligibility(enough, "all") == "ok"
    assert coverage_ratio(enough.measures) == 0.85
    assert coverage_ratio(replace(GOOD, measured_chars=0)) is None


@pytest.mark.parametrize(
    ("earlier", "later", "steady"), [(0, 20, True), (0, 21, False), (2_000, 2_040, True), (2_000, 2_041, False)]
)
def test_text_is_steady_within_twenty_characters_or_two_percent(earlier, later, steady):
    assert is_steady(earlier, later) is steady
    assert is_steady(later, earlier) is steady


def test_policies_and_recommendations_of_all_kinds():
    assert {kind: policy_of(kind) for kind in TASK_KINDS if policy_of(kind) != "all"} == {
        "route_inventory": "min3",
        "exploratory": "min3",
        "ui_smoke": "min2",
    }
    assert policy_of(None) == "all"
    scans = {kind: recommended_scan(kind) for kind in (*TASK_KINDS, None)}
    assert {kind for kind, scan in scans.items() if scan == "nova_i18n_spellcheck_v1"} == {
        *("content_audit", "compliance", "legal"),
    }
    assert {kind for kind, scan in scans.items() if scan == "nova_structured_dom_v1"} == {"route_inventory", "ui_smoke"}


# A script that changes gets another id: change the id with the hash.
PINNED = {
    "nova_full_page_text_v1": "sha256:146201b222df90e15370c2ff4f6329da5237498ad6a88e546c7dd48749d614e6",
    "nova_i18n_spellcheck_v1": "sha256:5efa82e9bd12ae43e606c2e8ad755521d97684d7abef68e439cdad9847e909eb",
    "nova_structured_dom_v1": "sha256:55f50724c37ee030183e3e9424fb963b335bec39c1a4d067be7b2b93ea61e61f",
}


def test_the_scripts_are_the_registered_ones():
    assert set(SCAN_SOURCES) == set(SCAN_IDS) == set(PINNED)
    assert {scan_id: scan_hash(scan_id) for scan_id in SCAN_IDS} == PINNED


def test_links_stay_on_the_site():
    links = ("https://www.shop.example/a/", "https://eu.shop.example/b?utm_source=x", "https://other.example/", "x:y")
    assert same_site(links, "https://shop.example/") == ("https://www.shop.example/a", "https://eu.shop.example/b")
    assert same_site(links, "about:blank") == ()


# -- reading on


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 10)), max_size=12))
def test_a_text_is_read_as_far_as_there_is_no_gap(pieces):
    read: set[int] = set()
    known: ReadOn | None = None
    for start, size in pieces:
        known = advanced(known, Piece("h", A, start, start + size))
        read |= set(range(start, start + size))
        gap_free = next(number for number in range(50) if number not in read)
        assert known.upto <= gap_free
    in_order = [Piece("h", A, start, start + 5) for start in range(0, 50, 5)]
    for piece in in_order:
        known = advanced(known, piece)
    assert known is not None
    assert known.upto == 50


def test_another_text_or_page_begins_anew():
    known = ReadOn("h", A, 40)
    assert advanced(known, Piece("g", A, 40, 50)).upto == 0
    assert advanced(known, Piece("h", B, 40, 50)).upto == 0
    assert advanced(known, Piece("h", A, 40, 50)).upto == 50


# -- normal form: what never changes it

words = st.text("abcxyz019", min_size=1, max_size=6)


@UNHURRIED
@given(words, st.dictionaries(words, words, max_size=4), st.randoms(), st.sampled_from(["utm_x", "gclid", "_ga"]))
def test_tracking_order_default_port_and_host_case_never_change_an_address(path, query, random, tracking):
    def spelled(host, pairs):
        return f"{host}/{path}" + (f"?{'&'.join(pairs)}" if pairs else "")

    pairs = [f"{key}={value}" for key, value in query.items()]
    shuffled = [*pairs, f"{tracking}=1"]
    random.shuffle(shuffled)
    plain = normalize_url(spelled("https://shop.example", pairs))
    assert normalize_url(spelled("https://SHOP.Example:443", shuffled)) == plain
    assert normalize_url(plain) == plain


class StrayingTab:
    """A tab that stands still to everybody who asks it, while its page is elsewhere when it is asked."""

    url = "https://shop.example/a"
    page_epoch = 1
    http_status = 200

    def __init__(self, scanned_at: str, measured_at: str) -> None:
        self.channel = self
        self._at = {"coverageScan": scanned_at, "coverageMeasure": measured_at}

    def learn_status(self, status: object) -> None:
        return

    async def ask(self, question: str, args: object, **_: object) -> dict[str, Any]:
        skeleton = {"tagOrder": [], "landmarks": [], "roles": [], "counts": dict.fromkeys(COUNTED, 0)}
        scanned = {"channels": ["text"], "hidden": None, "nodes": 1, "iframes": 0, "frames": 0, "opaqueFrames": 0}
        scanned |= {"shadowRoots": 0, "skeleton": skeleton, "links": [], "blocks": [], "total": 0, "length": 0}
        same = {"url": self._at[question], "chars": 9, "whole": True, "ready": True, "status": 200}
        return same if question == "coverageMeasure" else {**scanned, **same}


COUNTED = ("button", "input", "link", "form", "heading", "modalLike")


@pytest.mark.parametrize(
    ("scanned_at", "measured_at", "reason"),
    [
        ("https://shop.example/a", "https://shop.example/a#part", "server_registered_scan"),
        ("https://shop.example/b", "https://shop.example/a", "effective_url_mismatch"),
        ("https://shop.example/a", "https://shop.example/b", "effective_url_mismatch"),
    ],
)
async def test_a_page_that_is_elsewhere_while_it_is_scanned_is_not_believed(
    scanned_at: str, measured_at: str, reason: str
) -> None:
    tab: Any = StrayingTab(scanned_at, measured_at)
    look = await scan(tab, ScanOptions("nova_full_page_text_v1", hydration_ms=None))
    assert scan_trust(look.measures).reason == reason
