"""The life of an entry as a line: levels from move to move, evidence on both sides of it, nothing lost or invented."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from nova_mcp.dashboard.charts.lifeline import (
    LANES,
    Born,
    Happening,
    LifeLine,
    Seen,
    Stretch,
    by_day,
    lane_at,
    life_line,
)
from nova_mcp.dashboard.charts.lifeline_picture import LEFT, RIGHT, WIDTH, picture
from nova_mcp.dashboard.charts.time_axis import MOST_TICKS, Axis
from nova_mcp.memory.promotion.gates.folding import (
    Confirmed,
    Disproved,
    Observed,
    Replayed,
    Reviewed,
    Revised,
    Snapshot,
    replay,
)
from nova_mcp.memory.promotion.gates.gates import at_least
from nova_mcp.memory.promotion.model import DAY_MS, HOUR_MS, Entry, LearningEvent
from promotion_kit import MARKS, NOW, claim, drift, failure, good, seen, success

BORN = Born(NOW, NOW, "manual", "shadow")


def event(kind, at_ms, before, after, rejection=None, gates=()):
    return LearningEvent("banner", "shop.test", before, after, kind, at_ms, gates, rejection=rejection)


def lanes(line: LifeLine) -> list[str]:
    return [one.lane for one in line.stretches]


# -- levels


def test_an_entry_nothing_happened_to_stands_where_it_was_written():
    line = life_line(BORN, [], [], NOW + DAY_MS)
    assert line.stretches == (Stretch("shadow", NOW, NOW + DAY_MS),)
    assert [one.told for one in line.happenings] == ["written (manual)"]


def test_a_whole_life_is_one_stretch_per_level():
    days = [NOW + count * DAY_MS for count in range(8)]
    events = [
        event("l0_to_l1", days[1], 0, 1),
        event("l1_to_l2", days[2], 1, 2),
        event("demotion", days[3], 2, 1),
        event("l1_to_l2", days[5], 1, 2),
        event("deprecation", days[6], 2, 0),
    ]
    steps = [(days[4], Revised(days[4]))]
    line = life_line(replace(BORN, lane="retired"), events, steps, days[7])
    assert lanes(line) == ["candidate", "shadow", "active", "shadow", "active", "retired"]
    assert [one.from_ms for one in line.stretches] == [days[0], days[1], days[2], days[3], days[5], days[6]]
    assert [one.told for one in line.happenings] == [
        "written (manual)",
        "became a shadow",
        "became active",
        "demoted",
        "repaired",
        "became active",
        "retired",
    ]


def test_new_content_repairs_only_what_has_fallen():
    line = life_line(BORN, [], [(NOW + 9, Revised(NOW + 9))], NOW + DAY_MS)
    assert [one.told for one in line.happenings] == ["written (manual)", "content revised"]


def test_being_held_back_moves_nothing_and_is_told_with_its_evidence():
    held = event("l1_to_l2", NOW + 5, 1, 1, "successes", (at_least("successes", 3, 1),))
    line = life_line(BORN, [held], [], NOW + DAY_MS)
    assert lanes(line) == ["shadow"]
    assert line.happenings[-1] == Happening(
        NOW + 5, "held", "held back from active: successes", evidence="successes 1/3"
    )


def test_a_retired_entry_that_is_found_again_comes_back_as_a_shadow():
    gone, back = NOW + DAY_MS, NOW + 2 * DAY_MS
    line = life_line(BORN, [event("deprecation", gone, 1, 0)], [(back, Revised(back, found_again=True))], back + 1)
    assert lanes(line) == ["shadow", "retired", "shadow"]


def test_a_candidate_that_is_written_by_hand_becomes_a_shadow():
    line = life_line(BORN, [], [(NOW + 9, Revised(NOW + 9, taken=True))], NOW + DAY_MS)
    assert lanes(line) == ["candidate", "shadow"]


def test_a_newer_revision_takes_the_place_of_an_active_one_without_a_fall():
    events = [event("l1_to_l2", NOW + DAY_MS, 1, 2), event("l1_to_l2", NOW + 3 * DAY_MS, 1, 2)]
    line = life_line(replace(BORN, lane="active"), events, [], NOW + 4 * DAY_MS)
    assert lanes(line) == ["shadow", "active"]
    flags = [one.told for one in picture(line).flags]
    assert flags.count("became active") == 1, "the second rise is told where it happened"


def test_what_the_log_does_not_tell_is_taken_from_where_the_entry_stands():
    changed = NOW + 2 * DAY_MS
    line = life_line(Born(NOW, changed, "imported", "active"), [event("revive", NOW + 9, 0, 1)], [], NOW + 3 * DAY_MS)
    assert lanes(line) == ["retired", "shadow", "active"]
    assert line.stretches[-1].from_ms == changed


def test_without_its_beginning_a_life_does_not_say_that_it_was_written():
    line = life_line(BORN, [event("demotion", NOW + DAY_MS, 2, 1)], [], NOW + 2 * DAY_MS, cut=True)
    assert line.cut
    assert [one.told for one in line.happenings] == ["demoted"]


def test_every_other_step_is_told():
    steps = [(NOW + 1, Confirmed(2)), (NOW + 2, Confirmed(0)), (NOW + 3, Disproved()), (NOW + 4, Reviewed(NOW + 4))]
    line = life_line(BORN, [], steps, NOW + 9)
    assert [one.told for one in line.happenings] == [
        "written (manual)",
        "selectors seen on a page, 2 still unseen",
        "selectors seen on a page",
        "claim disproven",
    ]


@given(st.lists(MARKS, max_size=40), st.integers(0, 2))
def test_the_line_ends_at_the_level_that_the_same_steps_lead_to(marks, level):
    begin = Entry("banner", "shop.test", "modal", level=level, created_at_ms=NOW - 41 * DAY_MS)
    marks.sort(key=lambda mark: mark.at_ms)
    steps = [step for mark in marks for step in (Observed(mark), Reviewed(mark.at_ms))]
    done: Replayed = replay(Snapshot(begin), steps)
    end = done.snapshot.entry
    lane = "retired" if end.deprecated else ("candidate", "shadow", "active")[end.level]
    born = Born(begin.created_at_ms, NOW, "manual", lane)
    line = life_line(born, done.events, [(step.mark.at_ms, step) for step in steps if isinstance(step, Observed)], NOW)
    assert line.stretches[-1].lane == lane
    assert [one.lane for one in line.stretches[1:]] == [
        "retired" if one.reason_kind == "deprecation" else ("candidate", "shadow", "active")[one.to_level]
        for place, one in enumerate(done.events)
        # Two moves of one moment leave no time between them.
        if place + 1 == len(done.events) or done.events[place + 1].created_at_ms > one.created_at_ms
    ]
    for before, after in zip(line.stretches, line.stretches[1:], strict=False):
        assert before.to_ms == after.from_ms
        assert before.lane != after.lane


# -- evidence


def test_marks_are_told_by_what_they_mean_to_the_gates():
    marks = [success("a", NOW), failure("b", NOW + 1), drift("c", NOW + 2, 1), drift("d", NOW + 3), seen("e", NOW + 4)]
    line = life_line(BORN, [], [(mark.at_ms, Observed(mark)) for mark in [*marks, claim("f", NOW + 5)]], NOW + 9)
    assert [one.kind for one in line.seen] == ["proof", "failure", "drift", "drift", "sighting", "sighting"]


def test_the_table_counts_what_the_picture_shows_by_day():
    marks = [*good(3, NOW), failure("x", NOW + DAY_MS), drift("y", NOW + DAY_MS)]
    line = life_line(BORN, [], [(mark.at_ms, Observed(mark)) for mark in marks], NOW + 2 * DAY_MS)
    assert [(one.day_ms, one.proofs, one.drifts, one.failures) for one in line.days] == [
        (NOW, 3, 0, 0),
        (NOW + DAY_MS, 0, 1, 1),
    ]


@given(st.lists(MARKS, max_size=60))
def test_no_evidence_is_lost_on_the_way_into_the_picture(marks):
    steps = [(mark.at_ms, Observed(mark)) for mark in marks]
    line = life_line(replace(BORN, created_at_ms=NOW - 50 * DAY_MS), [], steps, NOW)
    drawn = picture(line)
    for kind in ("proof", "sighting", "drift", "failure"):
        assert sum(one.count for one in drawn.glyphs if one.kind == kind) == sum(one.kind == kind for one in line.seen)
    assert sum(one.proofs + one.sightings + one.drifts + one.failures for one in line.days) == len(line.seen)
    assert all(LEFT <= one.x <= WIDTH - RIGHT for one in drawn.glyphs)


def test_what_was_seen_before_the_entry_was_written_stands_on_its_first_level():
    early = success("a", NOW - DAY_MS)
    line = life_line(BORN, [], [(early.at_ms, Observed(early))], NOW + DAY_MS)
    assert line.from_ms == NOW - DAY_MS
    assert lane_at(line, early.at_ms) == "shadow"


# -- the picture


def test_evidence_for_an_entry_stands_above_its_line_and_evidence_against_it_below():
    marks = [success("a", NOW + HOUR_MS), failure("b", NOW + HOUR_MS)]
    drawn = picture(life_line(BORN, [], [(mark.at_ms, Observed(mark)) for mark in marks], NOW + 2 * HOUR_MS))
    y = {one.lane: one.y for one in drawn.lanes}["shadow"]
    kinds = {one.kind: one.y for one in drawn.glyphs}
    assert kinds["proof"] < y < kinds["failure"]


def test_a_higher_level_is_drawn_higher_and_a_riser_says_why():
    line = life_line(replace(BORN, lane="active"), [event("l1_to_l2", NOW + DAY_MS, 1, 2)], [], NOW + 2 * DAY_MS)
    drawn = picture(line)
    assert [one.lane for one in drawn.lanes] == list(LANES[:3]), "a lane that nothing stood on is not drawn"
    assert sorted(one.y for one in drawn.lanes) == [one.y for one in drawn.lanes]
    (riser,) = drawn.risers
    assert (riser.turn, riser.told) == ("up", "shadow → active: became active")
    assert riser.y2 < riser.y1
    assert drawn.told == "shadow → active; nothing seen yet"


def test_the_lane_of_the_retired_is_drawn_for_those_who_were():
    line = life_line(replace(BORN, lane="retired"), [event("deprecation", NOW + DAY_MS, 1, 0)], [], NOW + 2 * DAY_MS)
    assert [one.lane for one in picture(line).lanes] == list(LANES)
    assert [one.text for one in picture(line).labels] == ["retired"]


@given(st.lists(st.tuples(st.integers(0, 30), st.booleans()), max_size=25), st.lists(MARKS, max_size=30))
def test_no_word_in_the_picture_lies_over_another_or_over_evidence(turns, marks):
    events = [
        event("l1_to_l2" if up else "demotion", NOW + day * DAY_MS, 1 if up else 2, 2 if up else 1)
        for day, up in sorted(turns)
    ]
    line = life_line(BORN, events, [(mark.at_ms, Observed(mark)) for mark in marks], NOW + 31 * DAY_MS)
    drawn = picture(line)
    boxes = []
    for one in drawn.labels:
        width = len(one.text) * 6.0
        left = one.x - width if one.ends else one.x
        assert left >= 0
        assert left + width <= drawn.width
        boxes.append((left, one.y - 9, left + width, one.y + 2))
    boxes += [(one.x - 5, one.y - 5, one.x + 5, one.y + 5) for one in drawn.glyphs]
    words = len(drawn.labels)
    for place, one in enumerate(boxes[:words]):
        for other in boxes[place + 1 :]:
            apart = one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
            assert apart, (one, other)


def test_several_marks_of_one_call_are_one_proof():
    marks = [success("same", NOW), seen("same", NOW), success("same", NOW), success("other", NOW + DAY_MS)]
    line = life_line(BORN, [], [(mark.at_ms, Observed(mark)) for mark in marks], NOW + 2 * DAY_MS)
    assert [one.kind for one in line.seen] == ["proof", "proof"]


def test_marks_of_one_moment_are_one_glyph_with_a_count():
    drawn = picture(life_line(BORN, [], [(mark.at_ms, Observed(mark)) for mark in good(7, NOW)], NOW + DAY_MS))
    assert [(one.kind, one.count, one.told) for one in drawn.glyphs] == [("proof", 7, "7 proofs")]


def test_what_repaired_an_entry_is_told_beside_the_drift_that_broke_it():
    fell = NOW + 5 * DAY_MS
    marks = [(fell, Observed(drift("a", fell)))]
    events = [event("l1_to_l2", NOW + DAY_MS, 1, 2), event("demotion", fell, 2, 1)]
    line = life_line(BORN, events, [*marks, (fell + 1_000, Revised(fell + 1_000))], NOW + 9 * DAY_MS)
    assert [one.text for one in picture(line).labels] == ["became active", "demoted", "repaired"]


def test_a_level_of_this_very_moment_can_be_seen():
    line = life_line(replace(BORN, lane="active"), [event("l1_to_l2", NOW + DAY_MS, 1, 2)], [], NOW + DAY_MS)
    assert picture(line).lines[-1].x2 - picture(line).lines[-1].x1 > 20


def test_days_of_nothing_are_not_told():
    assert by_day([]) == ()
    assert by_day([Seen(NOW, "drift")])[0].drifts == 1


@given(st.integers(0, 10**12), st.integers(0, 40 * 365 * DAY_MS))
def test_an_axis_names_few_round_times_inside_it(begin, span):
    axis = Axis(begin, begin + span, 10, 500)
    ticks = axis.ticks()
    assert len(ticks) <= MOST_TICKS + 1
    assert all(10 <= one.x <= 500 for one in ticks)
    assert [one.x for one in ticks] == sorted(one.x for one in ticks)
