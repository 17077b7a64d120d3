"""What a claim does to a fact, as pure rules: the five cases, freshness, hints, secrets, capabilities, services."""

import json
import random
import string
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nova_mcp.core.signal_vocabulary import SIGNALS, Signal, key_problem, near, value_problem, value_warning
from nova_mcp.memory.facts.accounts import account_hash
from nova_mcp.memory.facts.capabilities import compile_capabilities
from nova_mcp.memory.facts.model import (
    CONFIDENCE,
    FRESH_MS,
    Added,
    Agreed,
    Disputed,
    Full,
    Observation,
    OnlyObserved,
    Page,
    Replaced,
)
from nova_mcp.memory.facts.policies import Lacking, Policy, demanded, lacking, load_policies
from nova_mcp.memory.facts.replay import rebuilt
from nova_mcp.memory.facts.rules import (
    RELEVANT,
    canonical,
    decide,
    doubted,
    fit,
    hint,
    is_stale,
    result_of,
    usable,
    worth_noting,
)
from nova_mcp.memory.facts.sensitive import sensitive_key, sensitive_reason, sensitive_text
from nova_mcp.memory.facts.services import service_of, well_known

HERE, THERE = Page("https://a.test/x", "h1", "a.test/x"), Page("https://a.test/y", "h2", "a.test/y")
NOW = 1_800_000_000_000
CALLS = st.integers(0, 10**6).map(str)


def seen(value="a", certainty="likely", source="agent", key="shop.slot", call="c1", at=NOW, page=HERE):
    return Observation(key, canonical(value), certainty, source, call, page, at)


def after(*observations):
    """The current fact once all these have been taken."""
    current = None
    for one in observations:
        match decide(current, one):
            case Added(new) | Agreed(new) | Disputed(new) | OnlyObserved(new) | Replaced(_, new):
                current = new
    return current


observations = st.builds(
    seen,
    value=st.sampled_from(["a", "b", "c"]),
    certainty=st.sampled_from(list(CONFIDENCE)),
    source=st.sampled_from(["agent", "system"]),
    key=st.sampled_from(["shop.slot", "shop.other", "core.page.type"]),
    call=CALLS,
    at=st.integers(NOW, NOW + 4 * FRESH_MS),
    page=st.sampled_from([HERE, THERE]),
)


# -- the five rules


def test_rule_1_a_first_observation_is_a_fresh_fact():
    decision = decide(None, seen(certainty="tentative"))
    assert isinstance(decision, Added)
    fact = decision.fact
    assert (fact.state, fact.version, fact.support, fact.confidence) == ("fresh", 1, 1, 500)
    assert (fact.valid_from_ms, fact.valid_to_ms) == (NOW, None)
    assert isinstance(decide(None, seen(), room=False), Full)


def test_rule_2_only_another_call_confirms():
    same = after(seen(), seen("a", "certain"))
    assert (same.state, same.support, same.confidence, same.certainty) == ("fresh", 2, 950, "certain")
    other = after(seen(), seen(call="c2", certainty="tentative", at=NOW + 1))
    assert (other.state, other.confidence, other.certainty) == ("confirmed", 750, "likely")
    assert (other.first_observed_at_ms, other.last_observed_at_ms) == (NOW, NOW + 1)


@pytest.mark.parametrize(("confirming", "state"), [("certain", "confirmed"), ("likely", "conflicted")])
def test_rule_2_a_conflict_is_cleared_by_as_much_confidence_as_made_it(confirming, state):
    doubted = after(seen(certainty="certain"), seen("b", "certain", call="c2"))
    assert (doubted.state, doubted.contradictions) == ("conflicted", 1)
    assert (
        after(seen(certainty="certain"), seen("b", "certain", call="c2"), seen(certainty=confirming, call="c3")).state
        == state
    )


def test_rule_3_a_tentative_contradiction_touches_nothing_however_old_the_fact():
    fact = after(seen(certainty="tentative"))
    decision = decide(fact, seen("b", "tentative", at=NOW + 10 * FRESH_MS))
    assert decision == OnlyObserved(fact)


REPLACING = [
    ("stale", seen(certainty="certain"), seen("b", at=NOW + FRESH_MS + 1)),
    ("from the future", seen(certainty="certain", at=NOW + FRESH_MS + 1), seen("b")),
    ("another route", seen(certainty="certain", key="core.page.type"), seen("b", key="core.page.type", page=THERE)),
    ("stronger", seen(certainty="tentative"), seen("b")),
    ("stronger", seen(), seen("b", "certain")),
    ("exactly as much stronger", seen(source="system"), seen("b")),
    ("certain against system", seen(certainty="certain", source="system"), seen("b", "certain")),
]


@pytest.mark.parametrize(("why", "old", "new"), REPLACING)
def test_rule_4_what_supersedes(why, old, new):
    decision = decide(after(old), new)
    assert isinstance(decision, Replaced), why
    assert (decision.closed.valid_to_ms, decision.closed.superseded_by) == (new.observed_at_ms, 2)
    assert (decision.fact.version, decision.fact.state, decision.fact.value) == (2, "fresh", '"b"')
    assert decision.fact.support == 1


def test_rule_4_a_conflicted_fact_gives_way():
    assert isinstance(decide(after(seen(), seen("b", call="c2")), seen("c", call="c3")), Replaced)


KEEPING = [
    (seen(), seen("b", at=NOW + FRESH_MS)),
    (seen(certainty="certain"), seen("b", "certain")),
    (seen(certainty="certain"), seen("b", page=THERE)),
    (seen(source="system"), seen("b", source="system")),
]


@pytest.mark.parametrize(("old", "new"), KEEPING)
def test_rule_5_everything_else_only_casts_doubt(old, new):
    fact = after(old)
    decision = decide(fact, new)
    assert isinstance(decision, Disputed)
    doubted = decision.fact
    assert (doubted.state, doubted.contradictions, doubted.value) == ("conflicted", 1, fact.value)
    assert doubted.last_observed_at_ms == fact.last_observed_at_ms


@pytest.mark.parametrize("certainty", list(CONFIDENCE))
@pytest.mark.parametrize("at", [NOW, NOW + 10 * FRESH_MS])
def test_what_nova_sees_otherwise_leaves_an_agents_fact_as_it_is(certainty, at):
    fact = after(seen(certainty=certainty))
    assert decide(fact, seen("b", "certain", source="system", at=at, page=THERE)) == OnlyObserved(fact)
    confirmed = after(seen(), seen(source="system", call="c2"))
    assert (confirmed.state, confirmed.source, confirmed.confidence) == ("confirmed", "agent", 750)


@given(st.lists(observations, min_size=1, max_size=30))
def test_replaying_gives_the_same_and_every_key_has_one_current_version(stream):
    once, twice = rebuilt(stream), rebuilt(stream)
    assert once == twice
    for key in {one.key for one in stream}:
        versions = [fact for (name, _), fact in once.items() if name == key]
        assert [fact.version for fact in versions] == list(range(1, len(versions) + 1))
        assert [fact for fact in versions if fact.valid_to_ms is None] == versions[-1:]
        for old, new in pairwise(versions):
            assert (old.superseded_by, old.valid_to_ms) == (new.version, new.valid_from_ms)
            assert old.value != new.value


@given(st.lists(observations, min_size=1, max_size=30))
def test_a_key_is_touched_by_its_own_observations_alone(stream):
    whole = rebuilt(stream)
    for key in {one.key for one in stream}:
        alone = rebuilt([one for one in stream if one.key == key])
        assert {name: fact for name, fact in whole.items() if name[0] == key} == alone


@given(st.lists(observations, min_size=1, max_size=30))
def test_what_an_agent_stands_for_is_replaced_by_agents_only(stream):
    current = {}
    for one in stream:
        held = current.get(one.key)
        decision = decide(held, one)
        if one.source == "system" and held is not None and held.source == "agent":
            assert isinstance(decision, Agreed) or decision == OnlyObserved(held)
        current[one.key] = decision.fact


@given(observations, observations)
def test_results_add_up(first, second):
    decision = decide(after(first), replace(second, key=first.key))
    told = result_of(second, decision)
    assert told.stored
    assert told.superseded == isinstance(decision, Replaced)
    assert (told.warning is None) == (told.state in ("fresh", "confirmed"))
    assert told.value == (second.value if told.state == "observation_only" else decision.fact.value)


# -- values

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


@given(JSON)
def test_a_value_survives_as_ascii_and_equal_values_have_one_text(value):
    text = canonical(value)
    assert text.isascii()
    assert json.loads(text) == value
    assert canonical(json.loads(text)) == text


def test_numbers_that_are_equal_are_the_same_value():
    assert canonical(1.0) == canonical(1)
    assert canonical({"b": 1, "a": [2.0]}) == canonical({"a": [2], "b": 1})
    assert canonical(True) != canonical(1)


# -- freshness and hints


def test_five_minutes_to_the_millisecond():
    fact = after(seen())
    assert not is_stale(fact, NOW + FRESH_MS)
    assert is_stale(fact, NOW + FRESH_MS + 1)
    assert is_stale(fact, NOW - FRESH_MS - 1)


def known(*pairs, **more):
    return {key: after(seen(value, key=key, **more)) for key, value in pairs}


LIST = (("core.login_state", "logged_in"), ("core.page.type", "list"))


def test_hints_ask_for_what_the_kind_of_service_needs():
    assert hint("chat", {}, None, "h1", NOW).keys == ("core.login_state", "core.model.active", "core.plan.tier")
    assert hint("other", {}, None, "h1", NOW).keys == ("core.login_state", "core.page.type")


def test_no_hint_while_all_is_fresh_and_of_this_page():
    assert hint("other", known(*LIST), "h1", "h1", NOW + FRESH_MS) is None


def test_a_hint_tells_the_age_of_the_oldest_relevant_fact():
    facts = known(LIST[0]) | known(LIST[1], at=NOW + 1000) | known(("shop.slot", 1), at=NOW - 10**9)
    told = hint("other", facts, "h1", "h1", NOW + FRESH_MS + 500)
    assert (told.keys, told.oldest_ago_ms, told.first_visit) == (("core.login_state",), FRESH_MS + 500, False)


def test_an_address_where_no_agent_reported_anything_changes_the_hint():
    told = hint("other", known(*LIST), "h1", "h2", NOW)
    assert (told.url_changed, told.first_visit, told.keys) == (True, False, ("core.page.type",))
    assert not hint("other", {}, None, "h2", NOW).url_changed


@given(st.sampled_from(["chat", "other"]), st.integers(0, 3 * FRESH_MS), st.sets(st.sampled_from(RELEVANT["chat"])))
def test_a_hint_is_there_exactly_when_something_is_missing_or_old(kind, age, given_keys):
    facts = known(*((key, "x") for key in given_keys))
    told = hint(kind, facts, "h1" if facts else None, "h1", NOW + age)
    wanted = [key for key in RELEVANT[kind] if key not in facts or age > FRESH_MS]
    assert list(told.keys if told else ()) == wanted
    assert (told is None) == (not wanted)


def test_what_a_fact_is_fit_for():
    assert fit(after(seen()), "h1", NOW) == "fit"
    assert fit(after(seen()), "h2", NOW) == "fit"
    assert fit(after(seen(key="core.page.type")), "h2", NOW) == "stale"
    assert fit(after(seen()), "h1", NOW + FRESH_MS + 1) == "stale"
    assert fit(after(seen(certainty="tentative")), "h1", NOW) == "unsure"
    assert not usable(after(seen(), seen("b", call="c2")), "h1", NOW)


# -- what Nova sees itself


def test_what_was_just_said_is_not_said_again():
    kwargs = {"key": "core.ui.theme", "source": "system"}
    first = after(seen("dark", **kwargs))
    assert worth_noting(None, seen("dark", **kwargs))
    assert worth_noting(first, seen("dark", call="c2", **kwargs))
    confirmed = after(seen("dark", **kwargs), seen("dark", call="c2", **kwargs))
    assert not worth_noting(confirmed, seen("dark", call="c3", at=NOW + 59_999, **kwargs))
    assert worth_noting(confirmed, seen("dark", call="c3", at=NOW + 60_000, **kwargs))
    assert worth_noting(confirmed, seen("dark", call="c3", page=THERE, **kwargs))
    assert worth_noting(confirmed, seen("light", call="c3", **kwargs))


@pytest.mark.parametrize(
    ("key", "held", "noticed", "worth"),
    [
        ("core.ui.language", "en", "de", True),
        ("core.ui.language", "English", "en", False),
        ("core.ui.language", "en-US", "en", False),
        ("core.login_state", "logged_in", "logged_out", True),
        ("core.login_state", "two factors pending", "logged_out", False),
        ("core.page.type", "inbox", "login", False),
        ("core.page.type", "chat", "login", True),
        ("core.ui.theme", "system", "dark", False),
    ],
)
def test_other_words_for_it_are_no_contradiction(key, held, noticed, worth):
    ours, theirs = after(seen(held, key=key, source="system")), after(seen(held, key=key))
    assert worth_noting(ours, seen(noticed, key=key, source="system")) is worth
    assert not worth_noting(theirs, seen(noticed, key=key, source="system"))
    sighted = {key: canonical(noticed)}
    assert doubted({key: theirs}, sighted, "h1", NOW) == ((key,) if worth else ())
    assert doubted({key: ours}, sighted, "h1", NOW) == ()
    assert doubted({}, sighted, "h1", NOW) == ()


def test_only_a_fact_that_still_counts_is_doubted():
    told = {"core.login_state": after(seen("logged_in", key="core.login_state"))}
    assert doubted(told, {"core.login_state": '"logged_out"'}, "h2", NOW + FRESH_MS) == ("core.login_state",)
    assert doubted(told, {"core.login_state": '"logged_out"'}, "h1", NOW + FRESH_MS + 1) == ()
    assert doubted(told, {"core.login_state": '"logged_in"'}, "h1", NOW) == ()


def test_a_conflict_that_nova_cannot_settle_is_not_fed_on_every_look():
    torn = after(seen("dark", "certain", key="core.ui.theme"), seen("light", "certain", key="core.ui.theme", call="c2"))
    again = seen("dark", key="core.ui.theme", source="system", call="c3", at=NOW + 59_999)
    assert torn.state == "conflicted"
    assert not worth_noting(torn, again)
    assert worth_noting(torn, replace(again, observed_at_ms=NOW + 60_000))


# -- vocabulary


def test_every_example_fits_its_own_signal():
    assert len(SIGNALS) == 15
    for signal in SIGNALS.values():
        assert key_problem(signal.key) is None
        assert value_problem(signal.key, signal.example) is None
        assert sensitive_reason(signal.key, signal.example) is None
        assert value_warning(signal.key, signal.example) is None


@pytest.mark.parametrize(
    ("typed", "meant"), [("core.login", "core.login_state"), ("core.plan", "core.plan.tier"), ("core.zzz", None)]
)
def test_a_misspelt_core_key_is_answered_with_the_nearest(typed, meant):
    assert near(typed)
    assert meant is None or meant in (key_problem(typed) or "")


@pytest.mark.parametrize("key", ["myApp.cartCount", "shop.cart.itemCount", "a.b_C9", "shop.cart_items"])
def test_a_custom_key_may_be_written_in_camel_case(key):
    assert key_problem(key) is None


@pytest.mark.parametrize("key", ["core.loginState", "cORE.login_state", "coRe.x", "core.Login_state"])
def test_no_spelling_of_the_core_namespace_makes_a_custom_key(key):
    assert key_problem(key) is not None


@pytest.mark.parametrize("key", ["shop.apiKey", "myApp.userPassword", "myApp.sessionToken"])
def test_a_credential_is_known_by_a_name_in_camel_case(key):
    assert sensitive_reason(key, "abc123") == "a credential"


def test_a_deprecated_signal_and_a_strange_address_are_warned_about():
    old = {"core.old": Signal("core.old", "string", "", "", deprecated=True)}
    assert "deprecated" in (value_warning("core.old", "x", old) or "")
    assert "mail address" in (value_warning("core.account.email", "Ada") or "")


# -- secrets

SECRETS = [
    ("shop.password", "hunter2"),
    ("shop.state", {"password": "letmein"}),
    ("shop.api_key", "abc123"),
    ("shop.otp", 482913),
    ("shop.note", "password: Tr0ub4dor&3"),
    ("shop.note", "My passwort is geheim99!"),
    ("shop.card", "4111 1111 1111 1111"),
    ("shop.card", 5500005555555559),
    ("shop.card", "378282246310005"),
    ("shop.note", "paid with 4111-1111-1111-1111 yesterday"),
    ("shop.key", "AKIAIOSFODNN7EXAMPLE"),
    ("shop.auth", "Bearer abcdef0123456789abcdef"),
    ("shop.auth", "sk-ant-api03-abcdefghijklmnop"),
    ("shop.key", "-----BEGIN RSA PRIVATE KEY-----"),
    ("shop.sid", "9f86d081884c7d659a2feaa0c55ad015"),
    ("shop.sid", "dGhpcyBpcyBhIHNlY3JldCB0b2tlbiB2YWx1ZQ=="),
    ("shop.sid", ["a", {"b": "xK9mP2vL5nQ8wR3tY6uI"}]),
    ("shop.claim", "fin_0123456789abcdef0123456789abcdef"),
    ("core.plan.label", "xoxb-123456789012-abcdefghij"),
    ("shop.map", {"aZ3kQ9xW1bN7vT5mR2pL8sD4": 1}),
    ("shop.note", {"token": "f00ba4"}),
    # names of objects, whatever stands under them
    ("shop.map", {"aZ3kQ9xW1bN7vT5mR2pL8sD4": "x"}),
    ("shop.map", {"ghp_0123456789abcdefABCDEF0123456789": {}}),
    ("shop.map", [{"ghp_0123456789abcdefABCDEF0123456789": {"a": True}}]),
    ("shop.map", {"4111 1111 1111 1111": "visa"}),
    # a telling name further up, or beside
    ("shop.state", {"password": {"value": "hunter2"}}),
    ("shop.password.value", "hunter2"),
    ("shop.passwords", ["hunter2"]),
    ("shop.user_password_plain", "hunter2"),
    ("shop.access_token_value", "abc123"),
    ("shop.fields", [{"label": "Password", "value": "letmein"}]),
    ("shop.fields", {"name": "pin", "value": 4821}),
    ("shop.pin", 1234.0),
    ("shop.session_id", "abc123def"),
    ("shop.cookie", "sid=abc123; theme=dark"),
    ("shop.authorization", "Basic dXNlcjpwYXNz"),
    # cards as pages print them
    ("shop.note", "Paid with 4111 1111 1111 1111."),
    ("shop.note", "4111\u00a01111\u00a01111\u00a01111"),
    ("shop.note", "4111 – 1111 – 1111 – 1111"),
    ("shop.note", "4111 1111 1111 1111 12/29"),
    ("shop.note", "3782 822463 10005"),
    ("shop.card", 4111111111111111.0),
    ("shop.account", "DE89 3704 0044 0532 0130 00"),
    ("shop.note", "IBAN GB29NWBK60161331926819 EUR."),
    # said in words
    ("shop.note", "password=letmein"),
    ("shop.note", "Das Kennwort lautet geheim99"),
    ("shop.note", "PIN: 4821"),
    ("shop.note", "CVV 123"),
    ("shop.note", "Authorization: Basic dXNlcjpwYXNz"),
    ("shop.note", "https://ada:s3cr3t@shop.test/"),
    ("shop.note", "https://k3j9x7q2m5z8w1v4p6t0r2n5@shop.test/"),
    ("shop.note", "-----BEGIN PGP PRIVATE KEY BLOCK-----"),
    ("shop.note", "xapp-1-A111-222-abcdef0123"),
    ("shop.note", "sk-svcacct-abcdefghijklmnopqrs"),
    ("shop.note", "dop_v1_" + "0a1b2c3d" * 8),
    ("shop.note", "k3j9x7q2m5z8w1v4p6t0r2n5"),
]
HARMLESS = [
    ("core.model.active", "gpt-4o-mini-2024-07-18"),
    ("core.model.active", "claude-sonnet-4-5-20250929"),
    ("core.model.active", "us.anthropic.claude-3-7-sonnet-20250219-v1:0"),
    ("core.model.active", "Qwen2.5-Coder-32B-Instruct"),
    ("core.model.active", "meta-llama/Meta-Llama-3.1-405B-Instruct-Turbo"),
    ("core.model.active", "ft:gpt-4o:acme::9fKq2"),
    ("shop.model", "model-3f2504e0-4f89-11d3-9a0c-0305e82c3301"),
    ("shop.id", "3F2504E0-4F89-11D3-9A0C-0305E82C3301"),
    ("shop.note", "The page shows a long and entirely ordinary sentence about the plan that the account is on."),
    ("shop.note", "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft"),
    ("shop.note", "supercalifragilisticexpialidocious"),
    ("shop.note", "AuthenticationServiceProviderFactory"),
    ("shop.password", True),
    ("shop.password", "set"),
    ("shop.password", "••••••"),
    ("shop.password_state", "weak"),
    ("shop.consent.cookie", "accepted"),
    ("shop.token", "required"),
    ("shop.tokens_left", 12000),
    ("shop.pin", "Holiday photo"),
    ("shop.order", "1234567890123456"),
    ("shop.order", 4111111111111112),
    ("shop.time", 1790000000000),
    ("shop.big", 1.7976931348623157e308),
    ("shop.digits", "31415926535897932384626433832795028841"),
    ("shop.url", "https://shop.example/orders/2024/invoice-000123456789.pdf?page=2"),
    ("shop.iso", "2026-11-16T08:25:31.123Z"),
    ("shop.phone", "+49 170 1234567"),
    ("shop.price", "1.299.000,00 EUR"),
    ("shop.version", "v1.2.3-beta.4+build.567"),
    ("core.account.email", "ada.lovelace+newsletter2026@example.org"),
    ("core.account.email", "x9k2m4n7p1q8r5s3t6@relay.example.org"),
    ("shop.sku", "ABC-12345-XYZ-67890-DE"),
    ("shop.note", "Password: required"),
    ("shop.note", "the password is shown as dots"),
    ("shop.window", "iPhone15ProMax256GB"),
    ("shop.route", "/projects/my_first_project_2026/settings/members"),
    ("shop.route", "/api/v1/users/42/orders/7/items"),
    ("shop.url", "https://x.test/a/b1/c2/d3/e4/f5/g6"),
    ("core.page.type", "order_2024_q3_v2_list"),
    ("shop.flag", "feature_flag_v2_2024_q3_rollout"),
    ("shop.file", "Rechnung_2026-11-16_Kunde_4711_v2_final.pdf"),
    ("shop.phone", "+49 1511 2345678"),
    ("shop.phone", "+4111111111111111"),
    ("shop.isbn", "978-3-16-148410-0"),
    ("shop.ulid", "01ARZ3NDEKTSV4RRFFQ69G5FAV"),
    ("shop.dates", "2026-11-16 2026-11-17 2026-11-18"),
    ("shop.password", "not set"),
    ("shop.password", "Nicht gesetzt"),
    ("shop.password", "last changed 3 days ago"),
    ("shop.api_key", "not configured"),
    ("shop.tokens", 128000),
    ("shop.cookies", {"necessary": True, "marketing": "rejected", "count": 12}),
    ("shop.rules", {"password": {"min_length": 8, "strength": "weak"}}),
    ("shop.fields", {"label": "Password", "value": ""}),
    ("shop.note", "Password: 8-20 characters"),
    ("shop.note", "The OTP is 6-digit"),
    ("shop.note", "Die Seite zeigt den Kontonamen; das Kennwort ist ausgeblendet."),
    ("shop.window", "Windows11Pro64BitVersion23H2Build22631"),
    ("core.models.available", ["GPT-5.1-Codex-Max", "Mixtral-8x22B-Instruct-v0.1", "Qwen3-235B-A22B-Thinking-2507"]),
    ("core.model.active", "Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf"),
    ("core.account.display_name", "Dr. Käthe Müller-Lüdenscheidt"),
]


@pytest.mark.parametrize(("key", "value"), SECRETS)
def test_secrets_are_known_by_their_look(key, value):
    reason = sensitive_reason(key, value)
    assert reason is not None
    assert str(value) not in reason


@pytest.mark.parametrize(("key", "value"), HARMLESS)
def test_names_sentences_and_numbers_are_no_secrets(key, value):
    assert sensitive_reason(key, value) is None


@pytest.mark.parametrize(
    "key", ["shop.a9f86d081884c7d659a2feaa0c55ad015", "shop.fin_0123456789abcdef", "x.ok.ghp_abcdefghijklmnopqrstuv"]
)
def test_a_key_can_be_a_secret_itself(key):
    assert sensitive_key(key) is not None
    assert key.rpartition(".")[2] not in (sensitive_key(key) or "")


def test_ordinary_keys_are_no_secrets():
    for key in (*SIGNALS, "shop.cart.items", "x." + "y" * 126, "shop.password", "shop.slot_12_a1_b2_c3"):
        assert sensitive_key(key) is None


@given(
    st.lists(
        st.sampled_from(
            ["the", "page", "shows", "a", "menu", "with", "seven", "entries", "and", "one", "plan", "called", "Pro"]
        ),
        max_size=60,
    )
)
def test_plain_words_are_never_taken_for_secrets(words):
    assert sensitive_text(" ".join(words)) is None


@given(st.uuids())
def test_uuids_are_names(uuid):
    assert sensitive_reason("shop.id", f"conv-{uuid}") is None


def test_most_random_strings_are_caught():
    signs = string.ascii_letters + string.digits
    made = random.Random(7)
    drawn = ["".join(made.choices(signs, k=made.randrange(20, 64))) for _ in range(2000)]
    assert sum(sensitive_reason("shop.x", one) is not None for one in drawn) > 1900


# -- capabilities, accounts, services, policies


def test_capabilities_say_no_only_where_the_fact_is_exhaustive():
    assert compile_capabilities({"core.login_state": "logged_in"}) == {"is_authenticated": True}
    assert compile_capabilities({"core.login_state": "logged_out"}) == {"is_authenticated": False}
    assert compile_capabilities({"core.login_state": "who knows"}) == {}
    assert compile_capabilities({"core.plan.label": "Claude Pro (yearly)"}) == {"can_use_pro": True}
    assert compile_capabilities({"core.plan.label": "Free", "core.plan.tier": "free"}) == {}
    for label in ("Improved", "Plus", "Free – upgrade to Pro", "Try Max for a month", "Pro (expired)", "No Team plan"):
        assert compile_capabilities({"core.plan.label": label}) == {}
    assert compile_capabilities({"core.subscription.active": False}) == {"has_subscription": False}
    assert compile_capabilities({"core.models.available": ["a"]}) == {}
    assert compile_capabilities({"shop.anything": "pro"}) == {}


def test_an_account_is_its_mail_address_else_its_name_and_only_a_hash():
    mail, name = {"core.account.email": "Ada@x.org"}, {"core.account.display_name": "Ada"}
    assert account_hash("s", mail | name) == account_hash("s", {"core.account.email": "ada@x.org"})
    assert account_hash("s", name) != account_hash("t", name)
    assert account_hash("s", {}) is None
    assert len(account_hash("s", name) or "") == 16


@pytest.mark.parametrize(
    ("url", "key", "kind"),
    [
        ("https://chatgpt.com/c/1", "chatgpt", "chat"),
        ("https://www.chatgpt.com/", "chatgpt", "chat"),
        ("https://mail.google.com/", "gmail", "other"),
        ("https://www.google.com/search?q=x", "google", "other"),
        ("https://gemini.google.com/app", "gemini", "chat"),
        ("https://notchatgpt.com/", "notchatgpt.com", "other"),
        ("https://chatgpt.com.evil.test/", "evil.test", "other"),
        ("https://chatgpt.com:8443/", "chatgpt.com:8443", "other"),
        ("https://shop.example.co.uk/a", "example.co.uk", "other"),
        ("http://127.0.0.1:8080/", "127.0.0.1:8080", "other"),
        ("http://localhost/", "localhost", "other"),
        ("http://[::1]:9/", "[::1]:9", "other"),
        ("https://ada.github.io/x", "ada.github.io", "other"),
        ("https://acme.atlassian.net/", "acme.atlassian.net", "other"),
        ("https://x.test:443/", "x.test", "other"),
        ("http://x.test:443/", "x.test:443", "other"),
    ],
)
def test_a_service_is_known_by_its_host(url, key, kind):
    service = service_of(url)
    assert service is not None
    assert (service.key, service.kind) == (key, kind)


@pytest.mark.parametrize(
    "url", ["about:blank", "data:text/html,x", "file:///etc/passwd", "chrome://version", "", "ftp://x.test/"]
)
def test_there_is_no_service_outside_the_web(url):
    assert service_of(url) is None


def test_the_operator_says_which_domains_many_tenants_share():
    assert service_of("https://acme.host.test/") == service_of("https://other.host.test/")
    own = service_of("https://acme.host.test/", {"host.test"})
    assert own is not None
    assert own.key == "acme.host.test"


def test_the_table_of_services_is_in_order():
    for host, service in well_known().items():
        assert service_of(f"https://{host}/") == service
        assert service.kind in RELEVANT


def policy(**changes):
    return Policy.model_validate({"service": "github", "tools": ["act"], "needs": "is_authenticated", **changes})


def test_the_first_demand_that_fits_decides_and_reading_is_never_asked():
    rules = [policy(decision="allow"), policy(service="*", tools=["act", "navigate"])]
    assert demanded(rules, "act", "github") is rules[0]
    assert demanded(rules, "navigate", "github") is rules[1]
    assert demanded(rules, "act", "gitlab") is rules[1]
    assert demanded(rules, "read", "github") is None
    assert lacking(rules[0], "github", {}) is None
    assert lacking(rules[1], "gitlab", {"is_authenticated": True}) is None
    assert lacking(rules[1], "gitlab", {"is_authenticated": False}) == Lacking("gitlab", "is_authenticated", "block")


def test_a_service_may_be_named_by_its_host():
    assert policy(service="GitHub.com") == policy()
    assert policy(service="chat.openai.com").service == "chatgpt"
    assert policy(service="Shop.Example").service == "shop.example"


@pytest.mark.parametrize(
    "text", ["[[policy]", "[[policy]]\nservice = 1", '[[policy]]\nservice="x"\ntools=["read"]\nneeds="a"']
)
def test_a_file_that_cannot_be_read_demands_nothing_and_is_told(tmp_path, caplog, text):
    assert load_policies(tmp_path) == ()
    (tmp_path / "policies.toml").write_text(text)
    assert load_policies(tmp_path) == ()
    assert "policies.toml is not in force" in caplog.text


def test_demands_are_read_as_written(tmp_path):
    (tmp_path / "policies.toml").write_text(
        '[[policy]]\nservice="github"\ntools=["act","commit"]\nneeds="x"\ndecision="warn"\n'
    )
    assert load_policies(tmp_path) == (policy(tools=["act", "commit"], needs="x", decision="warn"),)
