"""What knowledge says beside an answer, once; and the platforms that are known without having been learned."""

import re
from dataclasses import replace

import pytest

from nova_mcp.browser.read.knowledge_check import page_signs
from nova_mcp.memory.knowledge.advice import (
    Noted,
    Told,
    UsedAction,
    advise,
    framework_hints,
    gravest,
    news,
    noted,
    present,
    proofs,
    warning_of,
)
from nova_mcp.memory.knowledge.health import DAY_MS
from nova_mcp.memory.knowledge.matching.entry_ranking import Question, Request, rank
from nova_mcp.memory.knowledge.matching.fingerprints import told
from nova_mcp.memory.knowledge.matching.routes import route_of
from nova_mcp.memory.knowledge.model import (
    Action,
    Alias,
    Content,
    Context,
    DayCount,
    DomainHint,
    Fingerprint,
    Health,
    HintId,
    Phenomenon,
    Platform,
    Playbook,
    Problem,
    Signal,
)
from nova_mcp.memory.knowledge.platforms.templates import PLATFORM_ID, Seeded, built_in, drafted, recognised, seeded
from nova_mcp.memory.knowledge.writes.content_rules import check_content

NOW = 20_000 * DAY_MS
FRESH = Health(last_confirmed_at_ms=NOW)
PRESS = Playbook("dismiss", (Action("click", "#no"),))
SCOPE = "s.test"


def entry(name="p", *, level=2, health=FRESH, debt=0.0, playbook=PRESS, retired=None):
    content = Content("modal", Fingerprint((Signal("dom", "#x"),)), playbook)
    return Phenomenon(name, content, level, NOW, NOW, health=health, drift_debt=debt, deprecated_reason=retired)


def matches(*entries):
    return rank(entries, Question([told("#x")], Request(), "medium", NOW)).matches


# -- beside a perception


def test_shadow_entries_are_told_as_proofs_and_never_as_guidance():
    told_ = noted([entry("s", level=1), entry("a"), entry("c", level=0), entry("r", retired="x")], {"s": (2, 3)}, NOW)
    assert told_ == (
        Noted("a", "modal", 2, "healthy"),
        Noted("s", "modal", 1, "healthy", "seen here before, 2 of 3 proofs"),
    )
    assert proofs(9, 5) == "seen here before, 5 of 5 proofs"


def test_at_most_eight_entries_are_noted():
    found = noted([entry(f"p{n}", level=1 + n % 2) for n in range(20)], {}, NOW)
    assert len(found) == 8
    assert {one.level for one in found} == {2}


# -- advice


def test_an_active_entry_that_holds_is_offered_for_reuse():
    (one,) = advise(SCOPE, matches(entry()))
    assert (one.kind, one.phenomenon_id, one.fix.tool, one.fix.args) == (
        "reuse",
        "p",
        "nova.phenomenon_apply",
        {"phenomenonId": "p"},
    )


def test_advice_names_the_values_that_an_entry_needs():
    typed = tuple(
        Action("type", f"#{name}", value_source=source, value_name=name)
        for name, source in (("user", "agent_supplied"), ("code", "user_prompt"), ("user", "agent_supplied"))
    )
    hidden = Action("type", "#pass", value_source="secret", value_name="stored")
    (one,) = advise(SCOPE, matches(entry(playbook=Playbook("custom", (*typed, hidden)))))
    assert one.text.endswith("phenomenon_apply runs it with values user, code.")
    assert one.fix.args == {"phenomenonId": "p"}


@pytest.mark.parametrize(
    "one",
    [
        entry(health=replace(FRESH, quarantined_at_ms=NOW)),
        entry(playbook=None),
        entry(playbook=replace(PRESS, policy="warn")),
        entry(playbook=replace(PRESS, policy="accept")),
        entry(level=1),
    ],
)
def test_what_can_not_be_applied_is_not_offered(one):
    assert advise(SCOPE, matches(one)) == ()


def test_a_verified_action_that_is_not_stored_is_a_gap():
    (one,) = advise(SCOPE, (), UsedAction("#save", "nova.click_selector"))
    assert (one.kind, one.fix.tool) == ("gap", "nova.pks_upsert")
    assert one.fix.args["scope"] == SCOPE
    assert advise(SCOPE, (), UsedAction("#save", "nova.click_selector", "p")) == ()


def test_a_generated_selector_is_advised_against_rather_than_kept():
    (one,) = advise(SCOPE, (), UsedAction(".css-1a2b3c", "nova.click_selector"))
    assert (one.kind, one.fix) == ("fragile_selector", None)


def test_advice_is_short_and_there_is_little_of_it():
    found = advise(SCOPE, matches(*(entry(f"p{n}" * 60) for n in range(9))), UsedAction("#" + "x" * 400, "t"))
    assert [one.kind for one in found] == ["gap", "reuse", "reuse"]
    assert all(len(one.text) <= 160 for one in found)


# -- warnings


def doubts(*entries):
    told = (warning_of(SCOPE, one, NOW) for one in entries if one.may_guide)
    return gravest(one for one in told if one is not None)


@pytest.mark.parametrize(
    ("one", "state"),
    [
        (entry(), None),
        (entry(health=replace(FRESH, quarantined_at_ms=NOW)), "quarantined"),
        (entry(debt=0.4), "drift"),
        (entry(debt=0.39), None),
        (entry(health=replace(FRESH, recent=(DayCount(20_000, 0, 3, 1),))), "watch"),
        (entry(health=Health()), "stale"),
        (entry(health=Health(last_confirmed_at_ms=NOW - 29 * DAY_MS)), None),
        (entry(level=1, health=replace(FRESH, quarantined_at_ms=NOW)), None),
    ],
)
def test_doubts_about_active_entries_are_told(one, state):
    assert [found.state for found in doubts(one)] == ([] if state is None else [state])


def test_the_gravest_three_warnings_come_first():
    ill = entry("z", health=replace(FRESH, quarantined_at_ms=NOW))
    found = doubts(entry("a", health=Health()), entry("b", health=Health()), entry("c", debt=0.5), ill)
    assert [one.phenomenon_id for one in found] == ["z", "c", "a"]


# -- once


def test_the_same_is_told_once_and_a_change_again():
    first, memory = news(doubts(entry(debt=0.5)), Told())
    assert len(first) == 1
    again, memory = news(doubts(entry(debt=0.6)), memory)
    assert again == ()
    worse, memory = news(doubts(entry(health=replace(FRESH, quarantined_at_ms=NOW))), memory)
    assert [one.state for one in worse] == ["quarantined"]


def test_each_gap_is_told_by_what_it_quotes():
    one, memory = news(advise(SCOPE, (), UsedAction("#a", "t")), Told())
    other, memory = news(advise(SCOPE, (), UsedAction("#b", "t")), memory)
    again, _ = news(advise(SCOPE, (), UsedAction("#a", "t")), memory)
    assert (len(one), len(other), len(again)) == (1, 1, 0)


def test_a_proof_more_is_news():
    _, memory = news(noted([entry(level=1)], {"p": (1, 3)}, NOW), Told())
    more, memory = news(noted([entry(level=1)], {"p": (2, 3)}, NOW), memory)
    same, _ = news(noted([entry(level=1)], {"p": (2, 3)}, NOW), memory)
    assert (len(more), len(same)) == (1, 0)


def test_what_a_caller_was_told_is_kept_within_bounds():
    memory = Told()
    for number in range(1000):
        _, memory = news(advise(SCOPE, (), UsedAction(f"[name=a{number}]", "t")), memory)
    assert len(memory.said) == 256


# -- platforms


def test_the_large_platforms_are_built_in():
    found = {one.stable_id: one for one in built_in()}
    assert {"onetrust", "cookiebot", "usercentrics", "didomi", "sourcepoint", "trustarc", "klaro"} <= set(found)
    assert len(found) == len(built_in()) >= 20
    aliases = [alias for one in built_in() for alias in one.aliases]
    assert len(aliases) == len(set(aliases))
    for one in built_in():
        assert one.built_in
        assert PLATFORM_ID.fullmatch(one.stable_id)
        assert one.patterns
        assert all(re.fullmatch(r"[a-z0-9.-]+", alias.value) for alias in one.aliases if alias.kind == "script_host")


@pytest.mark.parametrize("one", built_in(), ids=lambda one: one.stable_id)
def test_a_platform_seen_on_a_new_site_drafts_a_candidate_and_nothing_more(one):
    draft = drafted(one, NOW)
    assert (draft.level, draft.may_guide, draft.content.type) == (0, False, "consent_cmp")
    assert check_content(draft.content) == ()
    assert draft.unconfirmed
    actions = draft.content.playbook.actions
    assert all(action.polarity == "reject" for action in actions)
    assert bool(actions) is bool(one.refusing)


def test_what_lies_in_a_frame_is_not_drafted_as_an_action():
    frames = {one.stable_id for one in built_in() if not one.refusing}
    assert {"trustarc", "sourcepoint"} <= frames
    assert "onetrust" not in frames


@pytest.mark.parametrize(
    ("hosts", "marks", "expected"),
    [
        (["cdn.cookielaw.org"], [], ["onetrust"]),
        (["x.CDN.cookielaw.org"], [], ["onetrust"]),
        (["evilcdn.cookielaw.org.example"], [], []),
        ([], ["#CybotCookiebotDialog"], ["cookiebot"]),
        (["cdn.cookielaw.org"], ["#didomi-notice"], ["onetrust", "didomi"]),
        ([], [], []),
    ],
)
def test_platforms_are_recognised_by_script_or_mark(hosts, marks, expected):
    assert [one.stable_id for one in recognised(built_in(), hosts, marks)] == expected


MINE = Platform("mycmp", "My CMP", (Signal("dom", "#mycmp"),), (Alias("script_host", "cmp.example"),))


def test_a_platform_is_added_and_extended():
    first = seeded(MINE, built_in())
    assert isinstance(first, Seeded)
    assert (first.patterns_upserted, first.aliases_upserted) == (1, 1)
    more = replace(MINE, patterns=(Signal("dom", "#mycmp2"),), homepage_url="https://cmp.example/")
    second = seeded(more, [*built_in(), first.platform])
    assert (second.patterns_upserted, second.aliases_upserted, len(second.platform.patterns)) == (1, 0, 2)


@pytest.mark.parametrize(
    ("wish", "code"),
    [
        (replace(MINE, stable_id="onetrust"), "pks.builtin_platform"),
        (replace(MINE, aliases=(Alias("script_host", "cdn.cookielaw.org"),)), "pks.alias_taken"),
        (replace(MINE, patterns=(), aliases=()), "invalid_params"),
        (replace(MINE, stable_id="X"), "invalid_params"),
        (replace(MINE, stable_id="x"), "invalid_params"),
        (replace(MINE, stable_id="x" * 65), "invalid_params"),
        (replace(MINE, patterns=tuple(Signal("dom", f"#p{n}") for n in range(21))), "invalid_params"),
        (replace(MINE, homepage_url="javascript:x"), "pks.script_content"),
        (replace(MINE, aliases=(Alias("dom_marker", "*"),)), "pks.selector_too_broad"),
        (replace(MINE, aliases=(Alias("dom_marker", "div"),)), "pks.selector_too_broad"),
    ],
)
def test_a_platform_takes_nothing_from_others_and_not_every_page(wish, code):
    refused = seeded(wish, built_in())
    assert isinstance(refused, Problem)
    assert refused.code == code


# -- what holds here, and how its framework wants to be read


def test_only_shadow_and_active_entries_whose_situation_holds_are_present():
    named = [
        entry("a"),
        entry("s", level=1),
        entry("c", level=0),
        entry("r", retired="x"),
        entry("rs", level=1, retired="x"),
    ]
    other = replace(entry("o"), content=replace(entry("o").content, fingerprint=Fingerprint((Signal("dom", "#y"),))))
    away = replace(entry("w", level=1), content=replace(entry("w").content, context=Context(routes=("cart",))))
    found = present(
        [*named, other, away], Question([told("#x")], Request(route=route_of("https://s.test/")), "low", NOW)
    )
    assert [one.stable_id for one in found.entries] == ["a", "s"]
    assert [one.phenomenon.stable_id for one in found.matches] == ["a"]


@pytest.mark.parametrize(
    ("tool", "step"),
    [
        ("nova.click_selector", {"action": "click", "selector": "#buy"}),
        (
            "nova.type_selector",
            {"action": "type", "valueSource": "agent_supplied", "valueName": "text", "selector": "#buy"},
        ),
        ("nova.choose_option", None),
    ],
)
def test_what_is_worth_keeping_comes_as_a_call_that_keeps_it(tool, step):
    (gap,) = advise(SCOPE, (), UsedAction("#buy", tool))
    assert gap.fix is not None
    wish = gap.fix.args["phenomenon"]
    assert wish["fingerprint"] == {"signals": [{"kind": "dom", "match": "#buy"}]}
    assert wish.get("playbook") == (None if step is None else {"policy": "custom", "actions": [step]})


def test_a_selector_that_counts_positions_is_neither_worth_keeping_nor_called_generated():
    assert advise(SCOPE, (), UsedAction("li:nth-child(3)", "nova.click_selector")) == ()


def test_frameworks_are_spoken_of_only_where_active_hints_are_read_by():
    active = DomainHint(HintId("h"), "result_item", (".row",), NOW, NOW, level=2)
    frameworks = ["react", "unheard-of", "htmx", "wordpress", "vue", "react"]
    assert framework_hints(frameworks, [replace(active, level=1), replace(active, deprecated_reason="x")]) == ()
    assert framework_hints([], [active]) == ()
    noise = replace(active, hint_id=HintId("n"), kind="noise_region")
    told_ = framework_hints(frameworks, [active, noise])
    assert [one.framework for one in told_] == ["react", "htmx", "wordpress"]
    assert {one.applies_to for one in told_} == {"noise_region, result_item"}
    assert all(0 < len(one.advice) <= 160 for one in told_)
    assert news(told_, news(told_, Told())[1])[0] == ()


def test_every_framework_that_pages_can_show_has_advice():
    hint = DomainHint(HintId("h"), "result_item", (".row",), NOW, NOW, level=2)
    for name in page_signs()["frameworks"]:
        assert len(framework_hints([name], [hint])) == 1
