"""The ledger's pure decisions: canonical bodies, the hash chain, visit windows and retention."""

import hashlib
import json
from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from nova_mcp.evidence.model import (
    Caller,
    CallOutcome,
    CallRecord,
    Effect,
    Flag,
    OutcomeKind,
    PageState,
    RecordKind,
    Touched,
)
from nova_mcp.evidence.rules import (
    DAY_MS,
    EraseBody,
    Holds,
    KeepBody,
    PageLife,
    RetentionPolicy,
    RetentionSubject,
    VisitCall,
    action_kind,
    body_hash,
    canonical_body,
    genesis_hash,
    host_of,
    index_columns,
    link_hash,
    record_from_body,
    retention,
    storable_text,
    visit_windows,
)

maybe_text = st.none() | st.text(max_size=12)
whole = st.integers(0, 2**53)
numbers = st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.none() | st.booleans() | numbers | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
pages = st.builds(
    PageState,
    target_id=maybe_text,
    sandbox_id=maybe_text,
    url=maybe_text,
    route_key=maybe_text,
    page_epoch=st.none() | whole,
)
records = st.builds(
    CallRecord,
    call_id=st.text(max_size=12),
    caller=st.builds(Caller, st.text(max_size=8), st.text(max_size=8), st.text(max_size=8)),
    tool_name=st.text(max_size=12),
    effect=st.sampled_from(get_args(Effect)),
    started_at_ms=whole,
    duration_ms=whole,
    outcome=st.builds(
        CallOutcome,
        kind=st.sampled_from(get_args(OutcomeKind)),
        error_code=st.none() | st.integers(-40_000, 40_000),
        reason_code=maybe_text,
        gate_id=maybe_text,
        action_dispatched=st.none() | st.booleans(),
        verification=maybe_text,
    ),
    kind=st.sampled_from(get_args(RecordKind)),
    via=maybe_text,
    task_id=maybe_text,
    instance_id=maybe_text,
    before=pages,
    after=pages,
    touched=st.builds(
        Touched,
        selector=maybe_text,
        selector_hash=maybe_text,
        fingerprint_id=maybe_text,
        flags=st.frozensets(st.sampled_from(get_args(Flag))),
    ),
    arguments=json_values,
    closes=maybe_text,
)

PLAIN = CallRecord(
    call_id="0190-1",
    caller=Caller("local", "agent", "server"),
    tool_name="perceive",
    effect="read",
    started_at_ms=1_000,
    duration_ms=5,
    outcome=CallOutcome("ok"),
)

# -- bodies ----------------------------------------------------------------------------------------------------------


@given(records)
def test_a_body_reads_back_as_the_record_it_was_made_from(record):
    assert record_from_body(canonical_body(record)) == record


@given(records)
def test_a_body_is_compact_sorted_utf8_json_of_version_one(record):
    body = canonical_body(record)
    data = json.loads(body.decode("utf-8"))
    assert data["v"] == 1
    assert json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode() == body


@given(records, records)
def test_different_records_have_different_bodies(one, other):
    assume(one != other)
    assert canonical_body(one) != canonical_body(other)


def test_the_body_has_exactly_this_form():
    record = replace(
        PLAIN, touched=Touched(flags=frozenset({"viewport_only", "dom_exposed"})), arguments={"b": 1, "a": "é"}
    )
    page = '{"page_epoch":null,"route_key":null,"sandbox_id":null,"target_id":null,"url":null}'
    assert canonical_body(record).decode() == (
        f'{{"after":{page},"arguments":{{"a":"é","b":1}},"before":{page},"call_id":"0190-1",'
        '"caller":{"agent_id":"agent","principal":"local","server_id":"server"},"closes":null,"duration_ms":5,'
        '"effect":"read","instance_id":null,"kind":"call",'
        '"outcome":{"action_dispatched":null,"error_code":null,"gate_id":null,"kind":"ok","reason_code":null,'
        '"verification":null},"started_at_ms":1000,"task_id":null,"tool_name":"perceive",'
        '"touched":{"fingerprint_id":null,"flags":["dom_exposed","viewport_only"],"selector":null,'
        '"selector_hash":null},"v":1,"via":null}'
    )  # fmt: skip


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_numbers_that_json_does_not_know_are_refused(number):
    with pytest.raises(ValueError, match="JSON compliant"):
        canonical_body(replace(PLAIN, arguments={"x": [number]}))


def test_a_lone_surrogate_is_kept_and_not_confused_with_the_character_it_is_half_of():
    broken = replace(PLAIN, arguments="\ud83d")
    assert record_from_body(canonical_body(broken)) == broken
    assert canonical_body(replace(PLAIN, arguments="\ud83d\ude00")) != canonical_body(replace(PLAIN, arguments="😀"))


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b'{"v":2}', b"\xff", b"null", canonical_body(PLAIN)[:-1], b"[" * 9_999]
)
def test_bytes_that_are_no_body_are_refused(body):
    with pytest.raises(ValueError):
        record_from_body(body)


@given(st.text(st.characters(codec=None), max_size=20))
def test_indexed_text_fits_every_database(text):
    stored = storable_text(text)
    assert "\0" not in stored
    stored.encode("utf-8")
    assert storable_text(stored) == stored


@given(records)
def test_index_columns_come_from_the_body_alone(record):
    assert index_columns(record_from_body(canonical_body(record))) == index_columns(record)


@pytest.mark.parametrize(
    ("url", "host"),
    [(None, None), ("https://Example.com:8443/x", "example.com"), ("about:blank", None), ("http://[broken", None)],
)
def test_the_host_of_a_url(url, host):
    assert host_of(url) == host


def test_the_host_is_where_the_call_ended_or_else_began():
    before, after = PageState(url="https://a.example/"), PageState(url="https://b.example/")
    assert index_columns(replace(PLAIN, before=before, after=after)).host == "b.example"
    assert index_columns(replace(PLAIN, before=before)).host == "a.example"
    assert index_columns(PLAIN).host is None


@pytest.mark.parametrize(
    ("effect", "kind"),
    [
        ("read", "read"),
        ("navigate", "navigate"),
        ("act", "interact"),
        ("commit", "interact"),
        ("write", "write"),
        ("admin", "meta"),
    ],
)
def test_the_action_kind_follows_from_the_effect(effect, kind):
    assert action_kind(effect) == kind


# -- the chain -------------------------------------------------------------------------------------------------------

digests = st.binary(min_size=32, max_size=32)
triples = st.tuples(digests, st.integers(1, 2**63 - 1), digests)


def test_chain_format_one_has_this_byte_layout():
    previous, digest = bytes(range(32)), bytes(range(32, 64))
    layout = b"nova-ledger/link/1\n" + previous + b"\0\0\0\0\0\0\1\2" + digest
    assert link_hash(previous, 258, digest) == hashlib.sha256(layout).digest()
    assert genesis_hash("s") == hashlib.sha256(b"nova-ledger/genesis/1\ns").digest()
    assert body_hash(b"x") == hashlib.sha256(b"x").digest()


@given(triples, triples)
def test_links_differ_when_any_part_differs(one, other):
    assume(one != other)
    assert link_hash(*one) != link_hash(*other)


@given(st.text(max_size=5), st.text(max_size=5))
def test_every_server_starts_from_its_own_genesis(one, other):
    assert (genesis_hash(one) == genesis_hash(other)) == (one == other)


@pytest.mark.parametrize(("previous", "digest"), [(b"", b"x" * 32), (b"x" * 32, b"x" * 31)])
def test_a_hash_of_another_length_cannot_be_linked(previous, digest):
    with pytest.raises(ValueError, match="32 bytes"):
        link_hash(previous, 1, digest)


def chain(bodies):
    head = genesis_hash("s")
    for seq, body in enumerate(bodies, 1):
        head = link_hash(head, seq, body_hash(body))
    return head


@given(st.lists(st.binary(max_size=4), min_size=1, max_size=6), st.data())
def test_changing_dropping_or_moving_a_body_changes_the_head(bodies, data):
    place = data.draw(st.integers(0, len(bodies) - 1))
    edited = [*bodies[:place], bodies[place] + b"!", *bodies[place + 1 :]]
    shorter = bodies[:place] + bodies[place + 1 :]
    assert len({chain(bodies), chain(edited), chain(shorter)}) == 3
    shuffled = data.draw(st.permutations(bodies))
    assert (chain(shuffled) == chain(bodies)) == (shuffled == bodies)


# -- visit windows ---------------------------------------------------------------------------------------------------


def visit(start, end, url="u", target="t", task="k", read=False, flags=()):
    return VisitCall(target, url, task, start, end, read, frozenset(flags))


def shape(windows):
    return [(window.started_at_ms, window.dwell_ms, window.calls) for window in windows]


def test_calls_on_one_page_form_one_window():
    calls = [visit(0, 100, read=True, flags=["content_exposed"]), visit(500, 700, flags=["dom_exposed"])]
    (window,) = visit_windows(calls, now_ms=800)
    assert (window.dwell_ms, window.calls, window.reads) == (800, 2, 1)
    assert window.flags == {"content_exposed", "dom_exposed"}
    assert window.last_call_end_ms == 700


def test_the_stay_after_the_last_call_counts_up_to_its_limit():
    assert shape(visit_windows([visit(0, 100)], now_ms=50_000)) == [(0, 2_600, 1)]


def test_the_stay_ends_when_the_page_is_left():
    life = {"t": PageLife(left_at_ms=(40, 1_100))}
    assert shape(visit_windows([visit(0, 100)], 50_000, life)) == [(0, 1_100, 1)]


def test_another_url_splits_and_ends_the_stay():
    calls = [visit(0, 100), visit(300, 400, url="v"), visit(600, 700)]
    assert shape(visit_windows(calls, 700)) == [(0, 300, 1), (300, 300, 1), (600, 100, 1)]


def test_another_claim_splits():
    assert shape(visit_windows([visit(0, 100), visit(300, 400, task="other")], 400)) == [(0, 300, 1), (300, 100, 1)]


@pytest.mark.parametrize(("start", "windows"), [(2_600, 1), (2_601, 2)])
def test_silence_of_more_than_two_and_a_half_seconds_splits(start, windows):
    assert len(visit_windows([visit(0, 100), visit(start, start)], 9_000)) == windows


def test_page_activity_bridges_silence():
    calls = [visit(0, 100), visit(5_000, 5_100)]
    assert len(visit_windows(calls, 9_000, {"t": PageLife(active_at_ms=(2_550,))})) == 1
    assert len(visit_windows(calls, 9_000, {"t": PageLife(active_at_ms=(2_400,))})) == 2
    assert len(visit_windows(calls, 9_000, {"other": PageLife(active_at_ms=(2_550,))})) == 2


def test_targets_do_not_split_each_other():
    calls = [visit(0, 100), visit(150, 200, target="x", url="v"), visit(300, 400)]
    assert shape(visit_windows(calls, 400)) == [(0, 400, 2), (150, 250, 1)]


def test_a_long_call_covers_a_short_one_beside_it():
    assert shape(visit_windows([visit(0, 9_000), visit(10, 20), visit(9_500, 9_600)], 9_600)) == [(0, 9_600, 3)]


visits = st.builds(
    lambda start, length, url, target, task, read: visit(start, start + length, url, target, task, read),
    st.integers(0, 20_000),
    st.integers(0, 4_000),
    st.sampled_from("uv"),
    st.sampled_from("st"),
    st.sampled_from([None, "k"]),
    st.booleans(),
)


@given(st.lists(visits, max_size=12), st.randoms())
def test_windows_hold_every_call_once_whatever_the_order_of_arrival(calls, random):
    now = 30_000
    windows = visit_windows(calls, now)
    assert sum(window.calls for window in windows) == len(calls)
    assert sum(window.reads for window in windows) == sum(call.read for call in calls)
    shuffled = list(calls)
    random.shuffle(shuffled)
    assert visit_windows(shuffled, now) == windows


@given(st.lists(visits, max_size=12), st.lists(st.integers(0, 25_000), max_size=5))
def test_dwell_is_bounded_by_the_calls_and_the_longest_stay(calls, left):
    life = {"t": PageLife(left_at_ms=tuple(left))}
    for window in visit_windows(calls, 30_000, life):
        span = window.last_call_end_ms - window.started_at_ms
        assert span <= window.dwell_ms <= span + 2_500
        assert window.started_at_ms + window.dwell_ms <= 30_000


@given(st.lists(visits, max_size=12), st.lists(st.integers(0, 25_000), max_size=8))
def test_more_page_activity_never_splits_more(calls, active):
    quiet = len(visit_windows(calls, 30_000))
    lively = len(visit_windows(calls, 30_000, {"t": PageLife(active_at_ms=tuple(active))}))
    assert lively <= quiet


# -- retention -------------------------------------------------------------------------------------------------------

POLICY = RetentionPolicy()
HOLDS = Holds(
    open=frozenset({"o"}), ended=frozenset({"e", "g"}), with_gaps=frozenset({"g"}), referenced=frozenset({"r"})
)


def decide(days, call_id="c", outcome="ok", **changes):
    subject = RetentionSubject(call_id, 0, outcome, **changes)
    return retention(subject, int(days * DAY_MS), POLICY, HOLDS)


@pytest.mark.parametrize(
    ("changes", "limit", "rule"),
    [
        ({"task_id": "e"}, 7, "ended"),
        ({"instance_id": "e"}, 7, "ended"),
        ({"task_id": "g"}, 30, "gaps"),
        ({"task_id": "e", "instance_id": "g"}, 30, "gaps"),
        ({}, 30, "other"),
        ({"task_id": "unheard-of"}, 30, "other"),
        ({"task_id": "e", "outcome": "blocked_preflight"}, 30, "other"),
    ],
)
def test_a_body_goes_after_its_period_and_not_before(changes, limit, rule):
    assert decide(limit, **changes) == KeepBody("young")
    assert decide(limit + 0.001, **changes) == EraseBody(rule)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"instance_id": "o", "task_id": "e"}, "open_run"),
        ({"call_id": "r"}, "referenced"),
        ({"open_intent": True}, "open_intent"),
    ],
)
def test_what_something_alive_needs_stays_for_ever(changes, reason):
    assert decide(9_999, **changes) == KeepBody(reason)


def test_a_clock_that_jumped_back_erases_nothing():
    assert retention(RetentionSubject("c", 10 * DAY_MS, "ok"), 0, POLICY) == KeepBody("young")


def test_a_negative_period_is_refused():
    with pytest.raises(ValueError, match="not negative"):
        RetentionPolicy(ended_days=-1)
