"""Notes about hosts: how far they go, when they are due again, how they are told, what a write comes to."""

from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nova_mcp.core.clock import SystemClock
from nova_mcp.core.connections import AgentConnection, AgentConnections
from nova_mcp.core.values import Owner
from nova_mcp.errors import NovaError
from nova_mcp.memory.notes.domain_deliveries import Deliveries
from nova_mcp.memory.notes.domain_model import (
    KEEP,
    Ack,
    DomainNote,
    Due,
    Enforcement,
    Heard,
    NoteId,
    NoteMode,
    Repeat,
    Wish,
)
from nova_mcp.memory.notes.domain_refusals import acknowledge_required, refusal
from nova_mcp.memory.notes.domain_rules import (
    MINUTE_MS,
    MOST_ENFORCED_CHARS,
    MOST_PER_HOST,
    MOST_PER_PRINCIPAL,
    Change,
    Create,
    Delete,
    Full,
    Moment,
    NoSuchNote,
    RevConflict,
    TooLong,
    Unchanged,
    UserOwned,
    ack_valid,
    after_telling,
    decide_removal,
    decide_write,
    form_of,
    in_order,
    level_of,
    notes_hash,
    pending_notes,
    repeat_of,
)
from nova_mcp.memory.notes.playbook import SECTIONS, check_playbook

ME = ("local", "default")


def connected(owner: Owner = ME) -> AgentConnection:
    """A connection that has been told nothing."""
    return AgentConnections(SystemClock()).of(owner)


LEVELS = get_args(Enforcement)
MODES = get_args(NoteMode)
USUAL = Repeat(60, 50)


def note(**changes: Any) -> DomainNote:
    values: dict[str, Any] = {
        "note_id": NoteId("n1"),
        "principal": "local",
        "domain": "shop.test",
        "key": "K",
        "value": "text",
        "source": "agent",
        "enforcement": "none",
        "repeat_minutes": None,
        "repeat_tool_calls": None,
        "rev": 1,
        "created_at_ms": 0,
        "updated_at_ms": 0,
        "last_delivered_at_ms": None,
        "chars": 4,
    }
    return DomainNote(**{**values, **changes})


def moment(**changes: Any) -> Moment:
    return replace(Moment("shop.test", "block", 1_000, 0, USUAL), **changes)


notes = st.builds(
    note,
    note_id=st.sampled_from("abcdef").map(NoteId),
    domain=st.sampled_from(["shop.test", "parent.test"]),
    key=st.sampled_from(["A", "B", "C"]),
    principal=st.sampled_from(["local", "*"]),
    enforcement=st.sampled_from(LEVELS),
    rev=st.integers(1, 5),
)
acks = st.none() | st.builds(Ack, rev=st.integers(1, 5), at_ms=st.integers(0, 10**8), calls_at=st.integers(0, 100))


# -- reach


@given(one=notes, host=st.sampled_from(["shop.test", "a.shop.test"]), mode=st.sampled_from(MODES))
def test_no_note_is_enforced_on_a_host_other_than_its_own_nor_beyond_the_operators_mode(
    one: DomainNote, host: str, mode: NoteMode
) -> None:
    level = level_of(one, host, mode)
    order = ("none", "warn", "block")
    assert order.index(level) <= order.index(one.enforcement)
    assert order.index(level) <= {"off": 0, "warn": 1, "block": 2}[mode]
    if one.domain != host:
        assert level == "none"
    elif mode == "block":
        assert level == one.enforcement


@given(many=st.lists(notes, max_size=8), mode=st.sampled_from(MODES))
def test_what_blocks_comes_first_then_what_warns_then_hints_and_parents_last_of_their_kind(
    many: list[DomainNote], mode: NoteMode
) -> None:
    ordered = in_order(many, "shop.test", mode)
    ranks = [(-LEVELS.index(level_of(one, "shop.test", mode)), one.domain != "shop.test") for one in ordered]
    assert ranks == sorted(ranks)
    assert sorted(ordered, key=repr) == sorted(many, key=repr)


# -- acknowledgements


@given(
    ack=acks,
    rev=st.integers(1, 5),
    minutes=st.integers(0, 10_080),
    calls=st.integers(0, 10_000),
    now=st.integers(0, 10**9),
    made=st.integers(100, 20_000),
)
def test_an_acknowledgement_holds_for_its_revision_its_time_and_its_calls(
    ack: Ack | None, rev: int, minutes: int, calls: int, now: int, made: int
) -> None:
    valid = ack_valid(ack, rev, Repeat(minutes, calls), now, made)
    assert valid == (
        ack is not None
        and ack.rev == rev
        and (minutes == 0 or now - ack.at_ms < minutes * 60_000)
        and (calls == 0 or made - ack.calls_at < calls)
    )


def test_the_minute_and_the_call_at_which_a_note_is_due_again() -> None:
    ack, repeat = Ack(1, 1_000, 10), Repeat(60, 50)
    assert ack_valid(ack, 1, repeat, 1_000 + 60 * MINUTE_MS - 1, 59)
    assert not ack_valid(ack, 1, repeat, 1_000 + 60 * MINUTE_MS, 59)
    assert not ack_valid(ack, 1, repeat, 1_000 + 60 * MINUTE_MS - 1, 60)
    assert ack_valid(ack, 1, Repeat(0, 0), 10**15, 10**9)


def test_a_note_without_triggers_of_its_own_takes_the_usual_ones() -> None:
    assert repeat_of(note(), USUAL) == USUAL
    assert repeat_of(note(repeat_minutes=0, repeat_tool_calls=0), USUAL) == Repeat(0, 0)
    assert repeat_of(note(repeat_minutes=5), USUAL) == Repeat(5, 50)


@given(many=st.lists(notes, max_size=6, unique_by=lambda one: one.note_id), heard=st.dictionaries(st.text(), acks))
def test_a_blocking_note_is_pending_exactly_until_its_current_revision_is_acknowledged(
    many: list[DomainNote], heard: dict[str, Ack | None]
) -> None:
    def of(one: DomainNote) -> Ack | None:
        return heard.get(one.note_id)

    pending = pending_notes(many, "block", of, moment())
    for one in many:
        held = one.domain == "shop.test" and one.enforcement == "block"
        assert (one in pending) == (held and not ack_valid(of(one), one.rev, USUAL, 1_000, 0))
    edited = [replace(one, rev=one.rev + 10) for one in many]
    assert {one.note_id for one in pending_notes(edited, "block", of, moment())} == {
        one.note_id for one in many if one.domain == "shop.test" and one.enforcement == "block"
    }


def test_acknowledging_on_one_target_or_by_one_caller_changes_nothing_for_another() -> None:
    kept, one = Deliveries(), note(enforcement="block")
    here, other = connected(), connected(("local", "other"))
    kept.sent(here, one, "full")
    kept.acknowledge(ME, "tab_1", one, 5)
    assert kept.ack(here, "tab_1", one) == Ack(1, 5, 0)
    assert kept.ack(here, "tab_2", one) is None
    assert kept.ack(other, "tab_1", one) is None
    assert not kept.is_delivered(other, one)


def test_an_acknowledgement_counts_on_every_connection_that_was_sent_the_text() -> None:
    kept, one, new = Deliveries(), note(enforcement="block"), connected()
    kept.sent(connected(), one, "full")
    kept.acknowledge(ME, "tab_1", one, 5)
    assert kept.ack(new, "tab_1", one) is None
    kept.sent(new, one, "full")
    assert kept.ack(new, "tab_1", one) == Ack(1, 5, 0)


def test_closing_a_target_clears_what_was_acknowledged_and_counted_there() -> None:
    kept, one, here = Deliveries(), note(), connected()
    kept.sent(here, one, "full")
    for target in ("tab_1", "tab_2"):
        kept.acknowledge(ME, target, one, 5)
        kept.dispatched(target)
    kept.closed("tab_1")
    assert (kept.ack(here, "tab_1", one), kept.calls("tab_1")) == (None, 0)
    assert kept.ack(here, "tab_2", one) is not None
    assert kept.calls("tab_2") == 1


def test_calls_are_counted_from_the_acknowledgement_on() -> None:
    kept, one, here = Deliveries(), note(), connected()
    kept.sent(here, one, "full")
    kept.dispatched("tab_1")
    kept.acknowledge(ME, "tab_1", one, 5)
    kept.dispatched("tab_1")
    ack = kept.ack(here, "tab_1", one)
    assert ack is not None
    assert kept.calls("tab_1") - ack.calls_at == 1


# -- texts


def test_a_text_is_sent_in_full_once_then_named_and_in_full_again_after_25_names() -> None:
    kept, one, here = Deliveries(), note(), connected()
    forms = []
    for _ in range(54):
        form = kept.form(here, one)
        forms.append(form)
        kept.sent(here, one, form)
    assert forms == [*["full", *["stub"] * 25] * 2, "full", "stub"]


def test_a_changed_note_is_sent_in_full_again_and_a_name_alone_delivers_nothing() -> None:
    assert form_of(Heard(1), 1) == "stub"
    assert form_of(Heard(1), 2) == "full"
    assert form_of(None, 1) == "full"
    assert after_telling(None, 1, "stub") is None
    assert after_telling(Heard(1), 2, "stub") == Heard(1)
    assert after_telling(Heard(1, 25), 2, "full") == Heard(2)


@given(many=st.lists(notes, max_size=6, unique_by=lambda one: one.note_id))
def test_the_hash_names_notes_and_revisions_whatever_their_order(many: list[DomainNote]) -> None:
    found = notes_hash(many)
    assert len(found) == 24
    assert found == notes_hash(reversed(many))
    for one in many:
        others = [other for other in many if other is not one]
        assert found != notes_hash(others)
        assert found != notes_hash([*others, replace(one, rev=one.rev + 1)])


def test_the_refusal_names_every_pending_note_in_full() -> None:
    one = note(enforcement="block", value="x" * 2000, chars=2000, repeat_minutes=0)
    error = acknowledge_required(Due(connected(), "tab_1", "shop.test", USUAL, (one, note(note_id=NoteId("n2")))))
    assert (error.error_code, error.reason_code) == (-32001, "acknowledge_required")
    assert error.details["actionDispatched"] is False
    assert (error.details["targetId"], error.details["domain"]) == ("tab_1", "shop.test")
    assert error.details["notes"] == [
        {
            "noteId": "n1",
            "key": "K",
            "rev": 1,
            "source": "agent",
            "text": "x" * 2000,
            "repeatMinutes": 0,
            "repeatToolCalls": 50,
        },
        {
            "noteId": "n2",
            "key": "K",
            "rev": 1,
            "source": "agent",
            "text": "text",
            "repeatMinutes": 60,
            "repeatToolCalls": 50,
        },
    ]


# -- writing


def wish(**changes: Any) -> Wish:
    return replace(Wish("local", "shop.test", "K", "text", "agent"), **changes)


def decided(one: Wish, current: DomainNote | None = None, of_host: int = 0, of_principal: int = 0) -> Any:
    return decide_write(one, current, of_host, of_principal, 9_000)


def test_a_new_note_starts_as_a_hint_with_the_usual_repetition() -> None:
    assert decided(wish()) == Create(wish(), "none", (None, None))


def test_what_an_update_leaves_out_keeps_its_value() -> None:
    current = note(enforcement="block", repeat_minutes=5, repeat_tool_calls=7)
    changed = decided(wish(value="other"), current)
    assert changed == Change(replace(current, value="other", chars=5, rev=2, updated_at_ms=9_000))
    cleared = decided(wish(repeat_minutes=None), current)
    assert isinstance(cleared, Change)
    assert (cleared.note.repeat_minutes, cleared.note.repeat_tool_calls) == (None, 7)


def test_writing_the_same_again_changes_nothing() -> None:
    assert decided(wish(), note()) == Unchanged(note())
    assert decided(wish(enforcement="none", repeat_minutes=None), note()) == Unchanged(note())
    assert isinstance(decided(wish(enforcement="warn"), note()), Change)
    assert isinstance(decided(wish(repeat_tool_calls=3), note()), Change)


def test_an_agent_never_changes_what_the_user_wrote_and_the_user_may_change_anything() -> None:
    assert decided(wish(), note(source="user")) == UserOwned()
    assert decided(wish(expected_rev=7), note(source="user")) == UserOwned()
    taken = decided(wish(source="user"), note())
    assert isinstance(taken, Change)
    assert (taken.note.source, taken.note.rev) == ("user", 2)


def test_a_stale_revision_is_told_with_the_current_one() -> None:
    assert decided(wish(expected_rev=1), note(rev=2)) == RevConflict(2)
    assert decided(wish(expected_rev=1)) == RevConflict(0)
    assert isinstance(decided(wish(expected_rev=2, value="x"), note(rev=2)), Change)


@pytest.mark.parametrize("level", ["warn", "block"])
def test_what_is_enforced_is_short(level: Enforcement) -> None:
    long = "x" * (MOST_ENFORCED_CHARS + 1)
    assert decided(wish(value=long, enforcement=level)) == TooLong(len(long))
    assert decided(wish(value=long), note(enforcement=level)) == TooLong(len(long))
    assert isinstance(decided(wish(value=long, enforcement="none"), note(enforcement=level)), Change)
    assert isinstance(decided(wish(value=long[1:], enforcement=level)), Create)


def test_full_stores_take_no_more_but_may_be_changed() -> None:
    assert decided(wish(), of_host=MOST_PER_HOST) == Full(20, per_host=True)
    assert decided(wish(), of_principal=MOST_PER_PRINCIPAL) == Full(2_000, per_host=False)
    assert isinstance(decided(wish(), of_host=19, of_principal=1_999), Create)
    assert isinstance(decided(wish(value="x"), note(), 20, 2_000), Change)


@pytest.mark.parametrize(
    ("outcome", "code", "reason"),
    [
        (UserOwned(), -32035, "notes.user_owned"),
        (TooLong(2001), -32602, "note_too_long"),
        (Full(20, per_host=True), -32003, "domain_notes.full"),
        (Full(2_000, per_host=False), -32003, "domain_notes.full"),
    ],
)
def test_a_refused_write_is_an_error(outcome: Any, code: int, reason: str) -> None:
    error = refusal(outcome, "shop.test", "K")
    assert isinstance(error, NovaError)
    assert (error.error_code, error.reason_code) == (code, reason)


def test_what_deleting_comes_to() -> None:
    mine, everybodys = note(), note(note_id=NoteId("n2"), principal="*", source="user")
    assert decide_removal([mine, everybodys], ("local", False), None) == Delete(mine)
    assert decide_removal([mine], ("local", False), 2) == RevConflict(1)
    assert decide_removal([], ("local", False), 2) == NoSuchNote()
    assert decide_removal([everybodys], ("local", False), None) == UserOwned()
    assert decide_removal([replace(mine, source="user")], ("local", False), None) == UserOwned()
    assert decide_removal([everybodys], ("*", True), None) == Delete(everybodys)
    assert decide_removal([everybodys], ("local", True), None) == NoSuchNote()


def test_a_wish_leaves_alone_what_it_does_not_name() -> None:
    assert (wish().enforcement, wish().repeat_minutes, wish().repeat_tool_calls) == (KEEP, KEEP, KEEP)


# -- playbooks


def playbook(*titles: str, body: str = "None observed: nobody looked.") -> str:
    return "\n\n".join(f"## {title}\n{body}" for title in titles)


def test_a_playbook_with_every_section_in_order_is_complete() -> None:
    assert check_playbook("# Shop\n\n" + playbook(*SECTIONS)).complete
    assert check_playbook("# Shop\n\n" + playbook(*SECTIONS)).missing_sections == ()


@given(left_out=st.sets(st.sampled_from(SECTIONS), min_size=1))
def test_a_section_that_is_not_there_is_named(left_out: set[str]) -> None:
    found = check_playbook(playbook(*(title for title in SECTIONS if title not in left_out)))
    assert not found.complete
    assert found.missing_sections == tuple(title for title in SECTIONS if title in left_out)


@given(order=st.permutations(SECTIONS))
def test_sections_out_of_order_are_missing(order: list[str]) -> None:
    assert check_playbook(playbook(*order)).complete is (tuple(order) == SECTIONS)


@pytest.mark.parametrize("body", ["", "   ", "### A heading alone", "```\n```"])
def test_an_empty_section_is_missing(body: str) -> None:
    text = playbook(*SECTIONS).replace("## Blockers\nNone observed: nobody looked.", f"## Blockers\n{body}")
    assert check_playbook(text).missing_sections == ("Blockers",)


def test_other_headings_and_what_stands_in_code_are_content() -> None:
    assert check_playbook(playbook(*SECTIONS, body="### Detail\ntext")).complete
    assert check_playbook(playbook(*SECTIONS, body="```\n## Navigation\n```")).complete
    hidden = playbook(*SECTIONS).replace("## Evidence\n", "```\n## Evidence\n") + "\n```"
    assert check_playbook(hidden).missing_sections == ("Evidence",)
    closed = playbook(*SECTIONS).replace("## Platform", "##  Platform  ##")
    assert check_playbook(closed).complete


@given(text=st.text())
def test_any_text_can_be_checked(text: str) -> None:
    found = check_playbook(text)
    assert found.complete is (not found.missing_sections)
