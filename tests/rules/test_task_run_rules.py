"""How runs move: unit and discovery states, late units, checks, resume state, and the state that events add up to."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nova_mcp.memory.tasks.content_codec import canonical
from nova_mcp.memory.tasks.coverage.locators import Declared
from nova_mcp.memory.tasks.model import MOST_UNITS
from nova_mcp.memory.tasks.runs.event_codec import checks_of, checks_text, delta_json, delta_of, payload_hash
from nova_mcp.memory.tasks.runs.rules import (
    CheckUpdate,
    Delta,
    Finding,
    FindingReport,
    FoundUnit,
    Problem,
    Report,
    RunState,
    Terms,
    Unit,
    UnitName,
    UnitUpdate,
    advance,
    named_keys,
    progress,
    replay,
)

ITEMS = Terms("item", check_ids=frozenset({"c1", "c2"}))
PAGES = Terms("page", target_url="https://shop.example/start")
STATUSES = ("discovered", "checked", "excluded", "blocked", "failed")


def found(*keys: str) -> tuple[FoundUnit, ...]:
    return tuple(FoundUnit(UnitName(key=key)) for key in keys)


def pages(*urls: str) -> tuple[FoundUnit, ...]:
    return tuple(FoundUnit(UnitName(url=url)) for url in urls)


def to(status: str, *keys: str, reason: str | None = "because") -> tuple[UnitUpdate, ...]:
    return tuple(UnitUpdate(UnitName(key=key), status, reason) for key in keys)


def with_unit(status: str = "discovered", **more) -> RunState:
    return RunState(units={"a": Unit("a", status=status)}, total_units=1, **more)


def applied(state: RunState, report: Report, terms: Terms = ITEMS) -> RunState:
    delta = progress(state, report, terms)
    assert isinstance(delta, Delta), delta
    return advance(state, delta)


def refused(state: RunState, report: Report, terms: Terms = ITEMS) -> Problem:
    problem = progress(state, report, terms)
    assert isinstance(problem, Problem), problem
    return problem


LEGAL = {
    "discovered": {"checked", "excluded", "blocked", "failed"},
    "blocked": {"discovered", "checked", "excluded"},
    "failed": {"discovered", "checked", "excluded"},
    "checked": set(),
    "excluded": set(),
}


@pytest.mark.parametrize("before", STATUSES)
@pytest.mark.parametrize("after", STATUSES)
def test_units_move_as_the_state_machine_says(before, after):
    state, report = with_unit(before), Report(updates=to(after, "a"))
    if before == after:
        assert applied(state, report).units == state.units
    elif after in LEGAL[before]:
        assert applied(state, report).units["a"].status == after
    else:
        problem = refused(state, report)
        assert (problem.reason_code, problem.offenders) == ("illegal_unit_transition", (f"a {before}→{after}",))


@pytest.mark.parametrize("status", ["excluded", "blocked", "failed"])
def test_what_is_not_done_needs_a_reason(status):
    problem = refused(with_unit(), Report(updates=to(status, "a", reason=None)))
    assert (problem.reason_code, problem.offenders) == ("reason_required", ("a",))


def test_a_retry_takes_the_old_reason_away():
    state = applied(with_unit(), Report(updates=to("blocked", "a", reason="login wall")))
    assert state.units["a"].reason == "login wall"
    assert applied(state, Report(updates=to("discovered", "a", reason=None))).units["a"].reason is None


def test_one_call_may_take_a_unit_several_steps():
    report = Report(discovered=found("a"), updates=(*to("blocked", "a"), *to("checked", "a")))
    assert applied(RunState(), report).units["a"].status == "checked"


def test_unknown_units_are_all_named():
    problem = refused(with_unit(), Report(updates=to("checked", "a", "b", "c")))
    assert (problem.reason_code, problem.offenders) == ("unknown_unit", ("b", "c"))
    assert (
        refused(with_unit(), Report(findings=(FindingReport("f", "d", UnitName(key="z")),))).reason_code
        == "unknown_unit"
    )


def test_known_units_are_not_registered_again():
    state = with_unit("checked")
    after = applied(state, Report(discovered=found("a", "b", "b")))
    assert (after.total_units, after.units["a"].status) == (2, "checked")


@pytest.mark.parametrize(("discovery", "late"), [("unknown", False), ("partial", False), ("frozen", True)])
def test_units_found_after_freezing_are_late_and_count(discovery, late):
    after = applied(RunState(discovery=discovery), Report(discovered=found("a"), discovery="frozen"))
    assert (after.units["a"].late, after.total_units, after.discovery) == (late, 1, "frozen")


ORDER = ("unknown", "partial", "frozen")


@pytest.mark.parametrize("before", ORDER)
@pytest.mark.parametrize("after", ORDER)
def test_discovery_never_goes_back(before, after):
    state, report = RunState(discovery=before), Report(discovery=after)
    if ORDER.index(after) >= ORDER.index(before):
        assert applied(state, report).discovery == after
    else:
        assert refused(state, report).reason_code == "illegal_discovery_transition"


def test_a_run_becomes_active_with_its_first_progress():
    assert applied(RunState(), Report(note="begun")).status == "active"


def test_nothing_to_apply_is_refused():
    assert refused(RunState(), Report()).reason_code == "empty_update"
    assert refused(RunState(), Report(resume={})).reason_code == "empty_update"


def test_the_5001st_unit_is_refused():
    state = RunState(total_units=MOST_UNITS - 1)
    assert applied(state, Report(discovered=found("a"))).total_units == MOST_UNITS
    assert refused(state, Report(discovered=found("a", "b"))).reason_code == "size_limit"


@pytest.mark.parametrize("state", ["waived", "not_applicable"])
@pytest.mark.parametrize(("note", "ok"), [(None, False), ("1234567", False), ("12345678", True)])
def test_checks_that_are_not_done_need_a_note(state, note, ok):
    report = Report(checks=(CheckUpdate("c1", state, note),))
    if ok:
        assert applied(RunState(), report).checks["c1"].note == note
    else:
        assert refused(RunState(), report).reason_code == "note_required"


def test_the_last_word_on_a_check_stands():
    once = applied(RunState(), Report(checks=(CheckUpdate("c1", "satisfied"), CheckUpdate("c1", "failed"))))
    assert once.checks["c1"].state == "failed"
    assert applied(once, Report(checks=(CheckUpdate("c1", "satisfied"),))).checks["c1"].state == "satisfied"


def test_unknown_checks_are_named():
    problem = refused(RunState(), Report(checks=(CheckUpdate("zz", "satisfied"),)))
    assert (problem.reason_code, problem.offenders) == ("unknown_check", ("zz",))
    assert "c1, c2" in problem.hint


def test_resume_state_is_merged_and_null_removes():
    once = applied(RunState(), Report(resume={"cursor": "3", "lastAction": "x"}))
    assert applied(once, Report(resume={"cursor": None, "checkpoint": [1]})).resume == {
        "lastAction": "x",
        "checkpoint": [1],
    }


def test_resume_state_has_8_kib():
    # {"checkpoint":"…"} is 17 characters around the text.
    assert applied(RunState(), Report(resume={"checkpoint": "x" * (8192 - 17)}))
    assert refused(RunState(), Report(resume={"checkpoint": "x" * (8192 - 16)})).reason_code == "size_limit"
    near = RunState(resume={"cursor": "y" * 8000})
    assert refused(near, Report(resume={"lastAction": "z" * 300})).reason_code == "size_limit"


# -- places


def test_pages_are_named_by_their_url_in_any_spelling():
    state = applied(RunState(), Report(discovered=pages("/a", "https://shop.example/a/?utm_source=x")), PAGES)
    assert [unit.url for unit in state.units.values()] == ["https://shop.example/a"]
    (key,) = state.units
    again = applied(state, Report(updates=(UnitUpdate(UnitName(url="HTTPS://SHOP.example:443/a"), "checked"),)), PAGES)
    assert again.units[key].status == "checked"
    assert named_keys(Report(updates=(UnitUpdate(UnitName(url="/a"), "checked"),)), PAGES) == {key}


@pytest.mark.parametrize(
    ("unit", "terms"),
    [
        (FoundUnit(UnitName(url="mailto:a@b.example")), PAGES),
        (FoundUnit(UnitName(url="/a")), Terms("page")),
        (FoundUnit(UnitName(key="a")), PAGES),
        (FoundUnit(UnitName(url="/a"), declared=Declared("selector", "#a")), PAGES),
        (FoundUnit(UnitName(url="https://shop.example/a")), ITEMS),
        (FoundUnit(UnitName(key="a"), declared=Declared("url_exact", "no url")), ITEMS),
    ],
)
def test_units_without_a_place_are_refused(unit, terms):
    problem = refused(RunState(), Report(discovered=(unit,)), terms)
    assert (problem.reason_code, problem.offenders) == ("invalid_unit_locator", (unit.name.shown,))


def test_other_kinds_have_a_place_only_if_they_declare_one():
    declared = FoundUnit(UnitName(key="b"), declared=Declared("url_path", "https://shop.example/p?x=1"))
    state = applied(RunState(), Report(discovered=(*found("a"), declared)))
    assert state.units["a"].locator is None
    assert state.units["b"].locator is not None
    assert (state.units["b"].locator.type, state.units["b"].locator.value) == ("url_path", "https://shop.example/p")
    assert (
        applied(RunState(), Report(discovered=found("#go")), Terms("selector")).units["#go"].locator.type == "selector"
    )


# -- whatever is reported

KEYS = st.sampled_from("abcd")
TEXTS = st.text(max_size=12)
REPORTS = st.builds(
    Report,
    discovered=st.lists(KEYS, max_size=3).map(lambda keys: found(*keys)),
    updates=st.lists(
        st.builds(lambda key, status: to(status, key)[0], KEYS, st.sampled_from(STATUSES)), max_size=3
    ).map(tuple),
    findings=st.lists(st.builds(FindingReport, KEYS, TEXTS), max_size=2).map(tuple),
    checks=st.lists(
        st.builds(
            CheckUpdate, st.sampled_from(["c1", "c2"]), st.sampled_from(["satisfied", "waived"]), st.just("long enough")
        ),
        max_size=2,
    ).map(tuple),
    resume=st.none() | st.dictionaries(st.sampled_from(["cursor", "lastAction"]), st.none() | TEXTS),
    discovery=st.none() | st.sampled_from(ORDER),
    note=st.none() | TEXTS,
)


@given(st.lists(REPORTS, max_size=12))
def test_events_add_up_to_the_state_and_final_units_stay_final(reports):
    state, deltas = RunState(), []
    for report in reports:
        delta = progress(state, report, ITEMS)
        if isinstance(delta, Problem):
            continue
        before, state = state, advance(state, delta)
        # What a store keeps of an event is all that is needed.
        deltas.append(delta_of(canonical(delta_json(delta))))
        for key, unit in before.units.items():
            if unit.status in ("checked", "excluded"):
                assert state.units[key] == unit
        assert ORDER.index(state.discovery) >= ORDER.index(before.discovery)
    assert state.rev == len(deltas)
    assert state.total_units == len(state.units)
    assert replay(RunState(), deltas) == state


@given(REPORTS)
def test_a_refused_report_says_why_in_a_known_word(report):
    outcome = progress(RunState(discovery="frozen"), report, ITEMS)
    if isinstance(outcome, Problem):
        assert outcome.reason_code in {
            *("empty_update", "unknown_unit", "illegal_unit_transition", "reason_required"),
            *("unknown_check", "note_required", "illegal_discovery_transition", "size_limit"),
        }
        assert outcome.message
        assert outcome.hint


def test_all_of_a_unit_and_a_finding_survives_the_store():
    page = applied(RunState(discovery="frozen"), Report(discovered=pages("/a")), PAGES).units
    (unit,) = page.values()
    delta = Delta(
        units=(replace(unit, label="A"),),
        findings=(Finding("f", "d", unit.key, "high"),),
        ended_reason="idle_expired",
        status="aborted",
    )
    assert delta_of(canonical(delta_json(delta))) == delta
    state = applied(RunState(), Report(checks=(CheckUpdate("c1", "waived", "not today"),)))
    assert checks_of(checks_text(state.checks)) == state.checks
    assert json.loads(checks_text({})) == {}


def test_a_payload_is_known_by_kind_and_content():
    assert payload_hash("progress", {"a": 1, "b": 2}) == payload_hash("progress", {"b": 2, "a": 1})
    assert payload_hash("progress", {"a": 1}) != payload_hash("progress", {"a": 2})
    assert payload_hash("progress", {}) != payload_hash("complete", {})
