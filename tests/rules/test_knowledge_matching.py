"""Which entry fits a page: fingerprints, their ranking, and what never matches."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nova_mcp.memory.knowledge.health import DAY_MS
from nova_mcp.memory.knowledge.matching.entry_ranking import (
    MODEL,
    WEIGHTS,
    Question,
    Request,
    context_fit,
    health_worth,
    order,
    rank,
    weighted,
)
from nova_mcp.memory.knowledge.matching.fingerprints import (
    KINDS,
    ObservedSignal,
    applies,
    distinct,
    explained,
    holding,
    match,
    same_locale,
    told,
)
from nova_mcp.memory.knowledge.model import Content, Context, DayCount, Fingerprint, Health, Phenomenon, Signal

NOW = 20_000 * DAY_MS
FRESH = Health(last_confirmed_at_ms=NOW)
X = (Signal("dom", "#x"),)


def seen(*texts):
    return [told(text) for text in texts]


def entry(name="a", *, signals=X, need=0.6, level=2, context=None, health=FRESH, retired=None):
    content = Content("modal", Fingerprint(tuple(signals), need), None, context or Context())
    return Phenomenon(name, content, level, NOW, NOW, health=health, deprecated_reason=retired)


def asked(*texts, request=None, trust="medium", kind=None):
    return Question(seen(*texts), request or Request(), trust, NOW, kind)


# -- fingerprints


@pytest.mark.parametrize(
    ("kind", "weight"), [("dom", 1.0), ("vendor", 0.85), ("text", 0.70), ("interaction", 0.60), ("layout", 0.55)]
)
def test_each_kind_of_signal_has_its_weight(kind, weight):
    found = match(Fingerprint((Signal(kind, "m"), Signal("dom", "#other"))), seen(f"{kind}:m"))
    assert found.signals[0].weight == weight
    assert found.confidence == pytest.approx(weight / (weight + 1.0))


def test_without_applicable_signals_confidence_is_nothing():
    french = Fingerprint((Signal("text", "refuser", "fr"),), 0.0)
    found = match(french, seen("refuser"), "de")
    assert (found.confidence, found.reached, found.signals[0].applicable) == (0.0, False, False)
    assert match(Fingerprint(()), seen("x")).confidence == 0.0


def test_a_text_of_another_language_is_left_out_of_the_sum():
    both = Fingerprint((Signal("dom", "#x"), Signal("text", "ablehnen", "de"), Signal("text", "refuser", "fr")))
    assert match(both, seen("#x", "ablehnen"), "de-AT").confidence == 1.0
    assert match(both, seen("#x", "ablehnen")).confidence == pytest.approx(1.7 / 2.4)
    assert applies(Signal("dom", "#x", "fr"), "de")


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [("de", "de-AT", True), ("de_AT", "DE", True), ("de-AT", "de-DE", False), ("de", "fr", False), (None, "fr", True)],
)
def test_locales_exclude_each_other_only_where_they_differ(one, other, expected):
    assert same_locale(one, other) is same_locale(other, one) is expected


def test_signals_are_compared_in_one_spelling():
    print_ = Fingerprint((Signal("dom", "#a>b"), Signal("text", "Alles  Ablehnen")))
    assert match(print_, [ObservedSignal("#a > b", "dom"), ObservedSignal("alles ablehnen", "text")]).confidence == 1.0
    assert match(print_, [ObservedSignal("#A > b", "dom")]).confidence == 0.0


def test_a_told_signal_has_a_kind_or_stands_for_any():
    assert told("dom:#x") == ObservedSignal("#x", "dom")
    assert told("Vendor: onetrust") == ObservedSignal("onetrust", "vendor")
    assert told("a:hover") == ObservedSignal("a:hover", None)
    assert told("text:") == ObservedSignal("text:", None)
    print_ = Fingerprint((Signal("text", "#x"), Signal("dom", "#x")))
    assert [row.matched for row in explained(print_, ["dom:#x"]).signals] == [False, True]
    assert [row.matched for row in explained(print_, ["#x"]).signals] == [True, True]


def test_saying_a_signal_twice_does_not_make_it_weigh_more():
    twice = Fingerprint((Signal("dom", "#x"), Signal("dom", " #x "), Signal("text", "t")))
    assert len(distinct(twice.signals)) == 2
    assert match(twice, seen("#x")).confidence == pytest.approx(1 / 1.7)


def test_what_holds_is_told_signal_by_signal():
    signals = (Signal("dom", "#x"), Signal("text", "t", "fr"), Signal("text", "u"))
    assert holding(Fingerprint(signals), seen("#x", "t")) == frozenset(signals[:2])


@pytest.mark.parametrize(("need", "reached", "half"), [(0.5, True, True), (0.51, False, True), (1.0, False, True)])
def test_the_needed_confidence_is_reached_at_the_number_itself(need, reached, half):
    found = match(Fingerprint((Signal("dom", "#x"), Signal("dom", "#y")), need), seen("#x"))
    assert (found.confidence, found.reached, found.half_reached) == (0.5, reached, half)


signals = st.builds(
    Signal, st.sampled_from(KINDS), st.text("abc", min_size=1, max_size=2), st.sampled_from([None, "de", "fr", "de-AT"])
)
prints = st.lists(signals, max_size=8).map(lambda found: Fingerprint(tuple(found)))
locales = st.sampled_from([None, "de", "fr", "de-CH"])


@given(prints, st.sets(signals, max_size=6), st.sets(signals, max_size=6), locales)
def test_seeing_more_never_lowers_confidence(print_, first, more, locale):
    few = [ObservedSignal(one.match, one.kind) for one in first]
    many = [*few, *(ObservedSignal(one.match, one.kind) for one in more)]
    assert match(print_, few, locale).confidence <= match(print_, many, locale).confidence


@given(prints, st.sets(signals, max_size=6), signals, locales)
def test_adding_a_matching_signal_never_lowers_confidence(print_, first, extra, locale):
    observed = [ObservedSignal(one.match, one.kind) for one in {*first, extra}]
    wider = replace(print_, signals=(*print_.signals, extra))
    assert match(print_, observed, locale).confidence <= match(wider, observed, locale).confidence


@given(prints, st.sets(signals, max_size=6), locales)
def test_confidence_is_a_share(print_, held, locale):
    assert 0.0 <= match(print_, [ObservedSignal(one.match, one.kind) for one in held], locale).confidence <= 1.0


# -- ranking


def test_the_ranking_adds_up_as_published():
    assert MODEL == "weighted_v1"
    assert list(WEIGHTS.values()) == [0.65, 0.20, 0.10, 0.05]
    assert weighted(1.0, 1.0, "high", 1.0) == pytest.approx(1.0)
    assert weighted(1.0, 0.0, "unknown", 0.0) == pytest.approx(0.675)
    assert weighted(0.0, 1.0, "low", 0.0) == pytest.approx(0.25)
    assert weighted(0.0, 0.0, "medium", 1.0) == pytest.approx(0.125)


@pytest.mark.parametrize(
    ("health", "worth"),
    [
        (FRESH, 0.5),
        (replace(FRESH, recent=(DayCount(20_000, 0, 4, 0),)), 1.0),
        (replace(FRESH, recent=(DayCount(20_000, 0, 3, 1),)), 0.75),
        (replace(FRESH, recent=(DayCount(20_000, 0, 3, 1),), consecutive_failures=1), 0.65),
        (replace(FRESH, recent=(DayCount(20_000, 0, 4, 0),), consecutive_failures=9), 0.7),
        (replace(FRESH, recent=(DayCount(20_000, 0, 4, 0),), last_confirmed_at_ms=NOW - 15 * DAY_MS), 0.9),
        (Health(recent=(DayCount(20_000, 0, 4, 0),)), 0.8),
        (Health(consecutive_failures=3), 0.0),
        (Health(recent=(DayCount(20_000, 0, 0, 2),), consecutive_failures=2), 0.0),
    ],
)
def test_health_is_worth_its_rate_less_staleness_and_failures(health, worth):
    assert health_worth(health, NOW) == pytest.approx(worth)


@pytest.mark.parametrize(
    ("context", "request_", "specificity", "missed"),
    [
        (Context(), Request("mobile", "de", "in", ("x",)), 0.0, ()),
        (Context(device="mobile"), Request("Mobile"), 0.25, ()),
        (Context("mobile", "de", "in", ("x",)), Request("mobile", "de-AT", "in", ("x", "y")), 1.0, ()),
        (Context(device="mobile"), Request("desktop"), 0.0, ("device",)),
        (Context(device="mobile", locale="de"), Request("mobile", "fr"), 0.25, ("locale",)),
        (Context(device="mobile", auth="in"), Request("mobile"), 0.25, ()),
        (Context(routes=("*",)), Request(route=("x",)), 0.0, ()),
        (Context(routes=("_root", "feed")), Request(route=("feed",)), 0.25, ()),
        (Context(routes=("_root",)), Request(route=("feed",)), 0.0, ("route",)),
    ],
)
def test_conditions_that_are_met_count_and_one_that_is_missed_rules_out(context, request_, specificity, missed):
    fit = context_fit(context, request_)
    assert (fit.specificity, fit.mismatches, fit.fits) == (specificity, missed, not missed)


def test_only_active_entries_that_are_not_retired_are_returned():
    ranking = rank(
        [entry("cand", level=0), entry("shadow", level=1), entry("gone", retired="old"), entry("live")], asked("#x")
    )
    assert [one.phenomenon.stable_id for one in ranking.matches] == ["live"]
    assert ranking.near_misses == ()
    assert ranking.best is not None


def test_a_near_miss_is_told_as_one_and_nothing_at_all_is_not():
    two = (Signal("dom", "#x"), Signal("dom", "#y"))
    ranking = rank([entry("near", signals=two), entry("far", signals=(Signal("dom", "#z"),), need=0.0)], asked("#x"))
    assert ranking.best is None
    assert [one.phenomenon.stable_id for one in ranking.near_misses] == ["near"]


def test_another_type_or_place_rules_an_entry_out():
    here = entry("here", context=Context(routes=("feed",)))
    assert rank([here], asked("#x", kind="paywall")) == rank([], asked("#x"))
    away = rank([here], asked("#x", request=Request(route=("x",))))
    assert (away.matches, [(one.stable_id, missed) for one, missed in away.ruled_out]) == ((), [("here", ("route",))])


def test_a_quarantined_entry_matches_but_may_not_be_applied():
    ranking = rank([entry("ill", health=replace(FRESH, quarantined_at_ms=NOW))], asked("#x"))
    assert (ranking.best.state, ranking.best.may_apply) == ("quarantined", False)
    assert rank([entry("well")], asked("#x")).best.may_apply


def test_confidence_outweighs_health():
    sure = entry("sure", signals=(Signal("dom", "#x"),), health=Health(consecutive_failures=2))
    half = entry("half", signals=(Signal("dom", "#x"), Signal("dom", "#q")), need=0.4, health=FRESH)
    assert [one.phenomenon.stable_id for one in rank([half, sure], asked("#x")).matches] == ["sure", "half"]


healths = st.builds(Health, consecutive_failures=st.integers(0, 4), last_confirmed_at_ms=st.sampled_from([None, NOW]))
entries = st.lists(
    st.builds(
        entry,
        st.sampled_from("abcdef"),
        signals=st.lists(signals, min_size=1, max_size=4).map(tuple),
        need=st.sampled_from([0.0, 0.3, 0.6]),
        level=st.sampled_from([0, 1, 2]),
        health=healths,
        retired=st.sampled_from([None, None, "old"]),
    ),
    max_size=6,
    unique_by=lambda one: one.stable_id,
)


@given(entries, st.lists(signals, max_size=5), st.randoms(use_true_random=False))
def test_ranking_is_a_total_order_whatever_the_order_of_the_store(found, held, chance):
    question = Question([ObservedSignal(one.match, one.kind) for one in held], Request(), "low", NOW)
    shuffled = list(found)
    chance.shuffle(shuffled)
    ranking = rank(found, question)
    assert rank(shuffled, question) == ranking
    keys = [order(one) for one in ranking.matches]
    assert keys == sorted(set(keys))
    assert all(one.phenomenon.level == 2 and not one.phenomenon.deprecated for one in ranking.matches)
    assert all(0.0 <= one.score <= 1.0 for one in (*ranking.matches, *ranking.near_misses))
