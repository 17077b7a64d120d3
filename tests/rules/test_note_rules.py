"""What notes come to: fading, secrets, sensitive hosts, scores and making room."""

import math

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from nova_mcp.core.hosts import host_rule, normalize_host, site
from nova_mcp.memory.notes.model import OperatorNote
from nova_mcp.memory.notes.rules import (
    DAY_MS,
    HALF_LIFE_MS,
    IDLE_MS,
    REINFORCED_EVERY_MS,
    Evictable,
    Exclusions,
    Hits,
    decay_score,
    exclusion_reason,
    expiry_for,
    folded_identity,
    keywords,
    memory_identity,
    path_matches,
    pick_evictions,
    pick_idle,
    rank_notes,
    rarity,
    reinforce,
    score_note,
    secret_reason,
    text_identity,
)
from nova_mcp.memory.notes.sensitive_sites import sensitive_sites

NOW = 1_800_000_000_000
TYPES = st.sampled_from(sorted(HALF_LIFE_MS))
SCORES = st.floats(0.0501, 1.0)
SPANS = st.integers(0, 3 * 365 * DAY_MS)

# -- fading


@pytest.mark.parametrize(("kind", "days"), [("preference", 518.6), ("note", 259.3), ("context", 60.5)])
def test_a_fresh_memory_lives_so_many_days(kind, days):
    assert (expiry_for(kind, 1.0, NOW) - NOW) / DAY_MS == pytest.approx(days, abs=0.05)


@given(TYPES, SCORES)
def test_a_score_comes_back_from_its_expiry(kind, score):
    assert decay_score(kind, expiry_for(kind, score, NOW), NOW) == pytest.approx(score, rel=1e-8)


@given(TYPES, SCORES, SPANS, st.integers(1, 365 * DAY_MS))
def test_a_score_falls_with_time_and_stays_within_its_bounds(kind, score, span, more):
    expires = expiry_for(kind, score, NOW)
    earlier, later = decay_score(kind, expires, NOW + span), decay_score(kind, expires, NOW + span + more)
    assert 0 < later < earlier <= 1


@given(TYPES, SCORES, SPANS)
def test_a_score_halves_after_its_half_life(kind, score, span):
    expires = expiry_for(kind, score, NOW)
    now = decay_score(kind, expires, NOW + span)
    assert decay_score(kind, expires, NOW + span + HALF_LIFE_MS[kind]) == pytest.approx(now / 2, rel=1e-6)


@given(TYPES, st.integers(-(10**15), 10**15))
def test_a_score_is_never_out_of_bounds(kind, offset):
    assert 0 < decay_score(kind, NOW + offset, NOW) <= 1


@given(TYPES, SCORES, SPANS, SPANS)
def test_recalling_a_live_memory_never_makes_it_fainter(kind, score, span, later):
    expires = expiry_for(kind, score, NOW - span)
    assume(expires > NOW)
    renewed = reinforce(kind, expires, None, NOW)
    assert renewed is not None
    assert renewed >= expires
    assert decay_score(kind, renewed, NOW + later) >= decay_score(kind, expires, NOW + later)
    before = decay_score(kind, expires, NOW)
    assert decay_score(kind, renewed, NOW) == pytest.approx(before + 0.25 * (1 - before), rel=1e-6)


@given(TYPES, SCORES, st.lists(st.integers(0, 40 * DAY_MS), max_size=30))
def test_no_number_of_recalls_pushes_a_score_above_one(kind, score, pauses):
    now, expires, reinforced = NOW, expiry_for(kind, score, NOW), None
    for pause in pauses:
        now += pause
        renewed = reinforce(kind, expires, reinforced, now)
        if renewed is not None:
            expires, reinforced = renewed, now
        assert expires <= expiry_for(kind, 1.0, now) or renewed is None
    assert decay_score(kind, expires, now) <= 1


@given(TYPES, SCORES, st.integers(0, REINFORCED_EVERY_MS - 1))
def test_recalls_within_a_day_count_once(kind, score, pause):
    expires = reinforce(kind, expiry_for(kind, score, NOW), None, NOW)
    assert expires is not None
    assert reinforce(kind, expires, NOW, NOW + pause) is None
    assert reinforce(kind, expires, NOW, NOW + REINFORCED_EVERY_MS) is not None


@given(TYPES, SPANS)
def test_an_expired_memory_is_not_revived(kind, span):
    assert reinforce(kind, NOW - span, None, NOW) is None


# -- identity


def test_blanks_and_composition_make_no_other_text_but_case_does():
    assert text_identity(" Cafe\u0301\n  au lait ") == text_identity("Café au lait")
    assert text_identity("Cart") != text_identity("cart")
    assert folded_identity("Straße  NOW") == folded_identity("strasse now")


def test_identity_of_a_memory_takes_host_type_and_pattern_in():
    same = memory_identity("a.example", "note", None, "x  y")
    assert same == memory_identity("a.example", "note", None, "x y")
    others = {
        memory_identity("b.example", "note", None, "x y"),
        memory_identity("a.example", "context", None, "x y"),
        memory_identity("a.example", "note", "/a", "x y"),
        memory_identity("a.example", "note", None, "x z"),
    }
    assert len(others | {same}) == 5


# -- secrets

SECRETS = [
    "-----BEGIN RSA PRIVATE KEY-----\nMIIE",
    "-----BEGIN CERTIFICATE-----",
    "use eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
    "jwt_eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
    "AKIAIOSFODNN7EXAMPLE",
    "ghp_" + "a1B2" * 9,
    "gho_" + "a" * 36,
    "ghu_" + "a" * 36,
    "ghs_" + "a" * 36,
    "ghr_" + "a" * 36,
    "sk-" + "a1" * 10,
    "card 4111111111111111",
    "card 4111 1111 1111 1111",
    "4111-1111-1111-1111",
    "amex 3782 822463 10005",
    "4222222222222",
    "6304000000000000000",
    "password: hunter2",
    "Password=hunter2!",
    "passwort : geheim#",
    "my PIN: 1234",
    "secret=ab-cd",
    "token = abc1",
    "accessToken=abc1",
    '{"password": "hunter2"}',
    "password：hunter２",
]


@pytest.mark.parametrize("text", SECRETS)
def test_a_text_that_holds_a_secret_is_named_and_not_repeated(text):
    reason = secret_reason(f"please note: {text} thanks")
    assert reason is not None
    assert text not in reason


@pytest.mark.parametrize(
    "text",
    [
        "The password is kept in the vault",
        "password: required",
        "pin: abc",
        "shopping: 1234 items",
        "token: see wiki",
        "gh_" + "a" * 36,
        "ghp_" + "a" * 35,
        "AKIA1234",
        "sk-short",
        "4111111111111112",
        "order 123456789012",
        "12345678901234567890",
        "BEGIN RSA PRIVATE KEY",
        "tasks: 1234 done",
        "Prefers dark mode & 2 columns",
        "see moneyJackpots.example.company",
    ],
)
def test_a_harmless_text_is_kept(text):
    assert secret_reason(text) is None


@given(
    st.sampled_from(["password", "passwort", "pin", "secret", "token"]),
    st.sampled_from([":", "=", " : ", "= "]),
    st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=4, max_size=15),
    st.sampled_from([str, str.upper, str.title]),
)
def test_a_name_with_a_value_is_a_credential_unless_the_value_is_a_word(name, sign, value, spelled):
    reason = secret_reason(f"note {spelled(name)}{sign}{value}")
    assert (reason is None) is value.isalpha()


@given(st.integers(10**11, 10**18 - 1), st.sampled_from("x .:\n"))
def test_digits_with_a_valid_check_digit_are_a_card_number_wherever_they_stand(number, around):
    check = next(digit for digit in range(10) if _luhn(f"{number}{digit}"))
    assert secret_reason(f"{around}{number}{check}{around}") == "a card number"
    assert secret_reason(f"{around}{number}{(check + 1) % 10}{around}") is None


def _luhn(digits: str) -> bool:
    doubled = "0246813579"
    return sum(int(one if at % 2 == 0 else doubled[int(one)]) for at, one in enumerate(reversed(digits))) % 10 == 0


# -- hosts

SHIPPED = Exclusions(sensitive_sites=sensitive_sites())


def listed(*entries: str, allow: tuple[str, ...] = ()) -> Exclusions:
    return Exclusions(tuple(rule for one in entries if (rule := host_rule(one))), allow, sensitive_sites())


@pytest.mark.parametrize(
    ("host", "reason"),
    [
        ("acme.bank", "sensitive_suffix"),
        ("my.acme.insurance", "sensitive_suffix"),
        ("a.pharmacy", "sensitive_suffix"),
        ("paypal.com", "sensitive_site"),
        ("login.paypal.com", "sensitive_site"),
        ("pay.example.com", "sensitive_word"),
        ("my-bank.example", "sensitive_word"),
        ("onlinebanking.example.co.uk", "sensitive_word"),
        ("patient.github.io", "sensitive_word"),
        ("payroll.example.com", None),
        ("repay.example", None),
        ("banksy.example", None),
        ("example.com", None),
        ("paypal.com.evil.test", None),
        ("notpaypal.com", None),
        ("127.0.0.1", None),
        ("[::1]", None),
        ("localhost", None),
    ],
)
def test_a_sensitive_host_is_told_by_its_labels(host, reason):
    assert exclusion_reason(host, SHIPPED) == reason


@pytest.mark.parametrize(("category", "reason"), [("banking", "sensitive_category"), ("health", "sensitive_category"),
                                                 ("shopping", None)])  # fmt: skip
def test_what_a_site_is_known_as_counts(category, reason):
    assert exclusion_reason("example.com", SHIPPED, (category,)) == reason


def test_the_users_list_reaches_whole_labels():
    rules = listed("example.com", "=exact.test", ".gov")
    covered = ["example.com", "a.example.com", "exact.test", "irs.gov"]
    assert [exclusion_reason(host, rules) for host in covered] == ["user_list"] * 4
    free = ["notexample.com", "example.com.evil.test", "a.exact.test", "gov.test"]
    assert [exclusion_reason(host, rules) for host in free] == [None] * 4


def test_what_is_allowed_lifts_everything_but_the_users_list():
    rules = listed("bad.example", allow=("paypal.com", "pay.example.com", "acme.bank", "bad.example", "care.test"))
    for host in ("paypal.com", "www2.paypal.com", "pay.example.com", "acme.bank"):
        assert exclusion_reason(host, rules) is None
    assert exclusion_reason("care.test", rules, ("health",)) is None
    assert exclusion_reason("bad.example", rules) == "user_list"


LABELS = st.from_regex(r"[a-z][a-z0-9]{0,8}", fullmatch=True)


@given(LABELS, LABELS, LABELS)
def test_a_listed_host_covers_itself_and_what_is_below_it_only(prefix, name, other):
    host = f"{name}.example.com"
    rules = listed(host)
    assert exclusion_reason(host, rules) == "user_list"
    assert exclusion_reason(f"{prefix}.{host}", rules) == "user_list"
    assert exclusion_reason(f"{prefix}{host}", rules) != "user_list"
    assert exclusion_reason(f"{host}.{other}.test", rules) != "user_list"
    assert exclusion_reason("example.com", rules) != "user_list"


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        (None, "/any", True),
        ("/cart", "/cart", True),
        ("/cart", "/cart/1", False),
        ("/cart*", "/cart/1", True),
        ("/a/*/c", "/a/b/x/c", True),
        ("/a/*/c", "/a/c", False),
        ("/*x*y*", "/1x2y", True),
        ("/*x*y*", "/1y2x", False),
        ("/a*a", "/a", False),
        ("/a.c", "/abc", False),
        ("/[ab]", "/a", False),
    ],
)
def test_a_pattern_takes_the_whole_path(pattern, path, fits):
    assert path_matches(pattern, path) is fits


# -- making room

EVICTABLES = st.lists(
    st.builds(
        Evictable,
        memory_id=st.integers(1, 10**6),
        memory_type=TYPES,
        source=st.sampled_from(("agent", "user")),
        refreshed_at_ms=st.integers(NOW - 10 * DAY_MS, NOW),
        expires_at_ms=st.integers(NOW - 40 * DAY_MS, NOW + 500 * DAY_MS),
    ),
    max_size=12,
    unique_by=lambda row: row.memory_id,
)


@given(EVICTABLES, st.integers(0, 6))
def test_making_room_takes_the_faintest_rows_of_agents_and_no_others(rows, wanted):
    picked = pick_evictions(rows, wanted, NOW)
    theirs = [row for row in rows if row.source == "agent"]
    if picked is None:
        assert len(theirs) < wanted
        return
    assert len(picked) == wanted
    assert {row.memory_id for row in rows if row.source == "user"}.isdisjoint(picked)

    def presence(row):
        return (row.expires_at_ms - NOW) / HALF_LIFE_MS[row.memory_type]

    gone = [presence(row) for row in theirs if row.memory_id in picked]
    kept = [presence(row) for row in theirs if row.memory_id not in picked]
    assert not gone or not kept or max(gone) <= min(kept)


def note(note_id="n", content="text", tags=("tag",), **more):
    given = {"principal": "local", "category": None, "source": "agent", "rev": 1, "created_at_ms": NOW,
             "updated_at_ms": NOW, "last_matched_at_ms": None, "match_count": 0}  # fmt: skip
    return OperatorNote(note_id=note_id, content=content, tags=tags, **{**given, **more})


def test_room_for_a_note_comes_from_idle_notes_of_agents():
    old = NOW - IDLE_MS
    notes = [
        note("fresh", updated_at_ms=old + 1),
        note("found", updated_at_ms=old, match_count=1),
        note("users", updated_at_ms=old, source="user"),
        note("idle", updated_at_ms=old),
        note("older", updated_at_ms=old - 1),
    ]
    assert pick_idle(notes, 1, NOW) == ("older",)
    assert pick_idle(notes, 2, NOW) == ("older", "idle")
    assert pick_idle(notes, 3, NOW) is None


# -- scores


def ranked(notes, *given, min_score=0.0):
    return {one.note.note_id: one.score for one in rank_notes(notes, given, NOW, min_score)}


def test_keywords_of_filler_alone_are_dropped_and_none_left_finds_nothing():
    assert [one.text for one in keywords(["the", "Checkout  Flow", "checkout flow", "x"])] == ["checkout flow"]
    assert rank_notes([note()], ["the"], NOW, 0.0) == []


def test_a_keyword_hits_tags_as_a_whole_or_word_by_word():
    one = note(tags=("Checkout Flow", "coupons"))
    for word in ("checkout flow", "FLOW", "coupons checkout"):
        assert ranked([one], word)["n"].tag == 1
    assert ranked([one], "coupon")["n"].tag == 0
    assert ranked([one], "coupons", "nothing")["n"].tag == 0.5


def test_a_keyword_hits_text_or_category_with_all_its_words():
    one = note(content="Apply the coupon before shipping.", category="checkout")
    assert ranked([one], "coupon shipping")["n"].content == 1
    assert ranked([one], "coupon checkout")["n"].content == 1
    assert ranked([one], "coupon refunds")["n"].content == 0


def test_a_rare_keyword_weighs_more():
    notes = [note("both", "alpha beta"), note("common", "alpha"), note("rare", "beta"), note("c2", "alpha")]
    scores = ranked(notes, "alpha", "beta")
    assert scores["both"].content == pytest.approx(1)
    assert scores["rare"].content > scores["common"].content > 0
    weights = rarity(
        [Hits((), (True, True)), Hits((), (True, False)), Hits((), (False, True)), Hits((), (True, False))]
    )
    assert weights[0] == pytest.approx(math.log(1 + 1.5 / 3.5))
    assert scores["rare"].content == pytest.approx(weights[1] / sum(weights))


def test_order_is_score_then_newest_then_id():
    notes = [note("b"), note("a"), note("new", updated_at_ms=NOW + 1), note("best", content="coupon")]
    assert list(ranked(notes, "tag", "coupon")) == ["best", "new", "a", "b"]


BOOLS = st.lists(st.tuples(st.booleans(), st.booleans(), st.floats(0.01, 7)), min_size=1, max_size=10)
AGES = st.integers(0, 5000 * DAY_MS)


@given(BOOLS, AGES)
def test_a_score_lies_between_nothing_and_one(rows, age):
    tags, content, weights = zip(*rows, strict=True)
    scored = score_note(Hits(tags, content), weights, age)
    for value in (scored.tag, scored.content, scored.relevance, scored.freshness, scored.score):
        assert 0 <= value <= 1
    if all(tags):
        assert scored.score >= 0.5


@given(BOOLS, AGES, st.data())
def test_each_further_hit_makes_the_score_greater(rows, age, data):
    tags, content, weights = (list(part) for part in zip(*rows, strict=True))
    where = data.draw(st.integers(0, len(rows) - 1))
    which = data.draw(st.sampled_from(("tags", "content")))
    chosen = tags if which == "tags" else content
    assume(not chosen[where])
    # A full match by tags cannot get any better.
    assume(which == "tags" or not all(tags))
    before = score_note(Hits(tuple(tags), tuple(content)), weights, age).score
    chosen[where] = True
    assert score_note(Hits(tuple(tags), tuple(content)), weights, age).score > before


@given(BOOLS, AGES, st.integers(1, 1000 * DAY_MS))
def test_a_score_falls_with_age_and_never_below_half_of_its_relevance(rows, age, more):
    tags, content, weights = zip(*rows, strict=True)
    hits = Hits(tags, content)
    young, old = score_note(hits, weights, age), score_note(hits, weights, age + more)
    assert old.score <= young.score
    assert old.score >= 0.5 * old.relevance


@settings(deadline=None)
@given(st.integers(0, 10**6))
def test_being_found_changes_no_score(count):
    assert ranked([note(match_count=count)], "tag") == ranked([note()], "tag")


def test_every_shipped_site_is_spelled_as_it_is_compared():
    assert len(sensitive_sites()) > 100
    assert [one for one in sorted(sensitive_sites()) if normalize_host(one) != one or site(one) != one] == []
