"""What may be written into knowledge, what it does to what is there, and what is refused."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nova_mcp.core.page.control_labels import ControlFacts
from nova_mcp.memory.knowledge.health import DAY_MS
from nova_mcp.memory.knowledge.matching.routes import meet
from nova_mcp.memory.knowledge.model import (
    MAX_PHENOMENA,
    Action,
    Content,
    Context,
    DomainHint,
    ElementPrint,
    Fingerprint,
    Health,
    Phenomenon,
    Playbook,
    Revisions,
    Signal,
    VerifyStep,
)
from nova_mcp.memory.knowledge.writes.content_rules import (
    LiveLook,
    LiveVerdict,
    bounded,
    check_content,
    check_hint,
    check_live,
    contradicts,
    holds_script,
    selectors_of,
    surface_of,
    unread_in,
)
from nova_mcp.memory.knowledge.writes.rules import (
    Conflict,
    Live,
    Patch,
    Refused,
    Upsert,
    Written,
    confirmed,
    deprecated,
    deprecation_problem,
    patched,
    shared_controls,
    upserted,
)
from nova_mcp.verification.model import Assertion

NOW = 20_000 * DAY_MS
PRINT = Fingerprint((Signal("dom", "#bar"), Signal("text", "cookies", "en")))
PRESS = Playbook("dismiss", (Action("click", "#bar .no"),), (VerifyStep("absent", "#bar"),))
OTHER = Playbook("dismiss", (Action("click", "#bar .close"),))
SEEN = Live(LiveVerdict(), frozenset(PRINT.signals[:1]), NOW)
UNSEEN = Live(LiveVerdict(unconfirmed=("#bar .no",)), frozenset(), NOW)


def content(playbook=PRESS, *, kind="modal", print_=PRINT, context=None):
    return Content(kind, print_, playbook, context or Context())


def entry(level=1, *, retired=None, health=None, body=None, **more):
    return Revisions(
        Phenomenon(
            "p", body or content(), level, 1, 1, deprecated_reason=retired, health=health or Health(attempts=7), **more
        )
    )


def wish(playbook=PRESS, **more):
    return Upsert("p", "modal", PRINT, playbook, **more)


def codes(problems):
    return [one.code for one in problems]


# -- refused without a page


@pytest.mark.parametrize("selector", ["*", "[class*=btn]", "[role=dialog]", "button", "#bar *"])
@pytest.mark.parametrize("kind", ["click", "type", "dismiss", "press_key"])
def test_nothing_is_done_to_broad_selectors(selector, kind):
    action = Action(kind, selector, value_source="agent_supplied", value_name="v", key="Enter")
    assert codes(check_content(content(Playbook("custom", (action,))))) == ["pks.selector_too_broad"]
    fallback = replace(action, selector="#ok", fallbacks=(selector,))
    assert codes(check_content(content(Playbook("custom", (fallback,))))) == ["pks.selector_too_broad"]


def test_waiting_for_and_verifying_something_broad_touches_nothing():
    playbook = Playbook("custom", (Action("wait", "[role=dialog]"),), (VerifyStep("absent", "[role=dialog]"),))
    assert check_content(content(playbook)) == ()


@pytest.mark.parametrize("kind", ["click", "dismiss"])
def test_consent_is_declared(kind):
    silent = Playbook("reject_preferred", (Action(kind, "#bar .no"),))
    assert codes(check_content(content(silent, kind="consent_cmp"))) == ["pks.polarity_required"]
    assert check_content(content(silent, kind="modal")) == ()
    said = Playbook("reject_preferred", (Action(kind, "#bar .no", polarity="reject"),))
    assert check_content(content(said, kind="consent_cmp")) == ()


SCRIPTS = [
    *(
        "javascript:alert(1)",
        "JaVa\u200bScript :x",
        "java\nscript:x",
        "<script>x</script>",
        "< SCRIPT",
        "eval(x)",
        "EVAL (x)",
    ),
    *("new Function('x')", "setTimeout(go, 1)", "<img onerror=x>", "data:text/html,x", "vbscript:x", "() => {x}"),
    *("document.cookie", "window['x']", "function(){x}", "ｊavascript:x", "document.querySelector('a').click()"),
]


@pytest.mark.parametrize("text", SCRIPTS)
def test_script_is_refused_in_every_field(text):
    assert holds_script(text)
    bodies = [
        content(print_=Fingerprint((Signal("text", text),))),
        content(print_=Fingerprint((Signal("dom", text),))),
        content(Playbook("custom", (Action("press_key", key=text),))),
        content(Playbook("custom", (Action("click", "#ok", (text,)),))),
        content(Playbook("custom", (Action("click", "#ok", element=ElementPrint("a", href=text)),))),
        content(Playbook("custom", (Action("click", "#ok"),), (VerifyStep("absent", text),))),
        content(
            Playbook("custom", (Action("click", "#ok"),), (VerifyStep("fact", assertion=Assertion("k", "eq", text)),))
        ),
    ]
    for body in bodies:
        assert "pks.script_content" in codes(check_content(body))


@pytest.mark.parametrize(
    "text",
    [
        "We use cookies",
        "Sign the document.",
        "JavaScript is required",
        "Description: eval",
        "Top: news",
        "a => b",
        "window",
    ],
)
def test_words_about_script_are_no_script(text):
    assert not holds_script(text)


@pytest.mark.parametrize("text", ["password: hunter2x", "sk-live-4f9d8a7b6c5e4f3a2b1c", "4111 1111 1111 1111"])
def test_values_that_look_like_credentials_are_refused(text):
    assert codes(check_content(content(print_=Fingerprint((Signal("text", text),))))) == ["pks.secret_like"]


def test_a_generated_selector_is_fragile_and_no_secret():
    body = content(print_=Fingerprint((Signal("dom", "#aK3jd82Lmx9Qw04Zt7Vb"),)))
    assert check_content(body) == ()


@pytest.mark.parametrize(
    "body",
    [
        content(print_=Fingerprint(())),
        content(print_=Fingerprint(tuple(Signal("text", f"t{n}") for n in range(33)))),
        content(print_=replace(PRINT, min_confidence=1.1)),
        content(print_=Fingerprint((Signal("text", " "),))),
        content(print_=Fingerprint((Signal("text", "word " * 100),))),
        content(context=Context(routes=("/feed",))),
        content(Playbook("custom", (Action("wait"),) * 11)),
        content(Playbook("custom", (), (VerifyStep("scroll_unlocked"),) * 11)),
        content(Playbook("custom", (Action("click"),))),
        content(Playbook("custom", (Action("type", "#q"),))),
        content(Playbook("custom", (Action("press_key"),))),
        content(Playbook("custom", (Action("click", "#a", tuple(f"#f{n}" for n in range(6))),))),
    ],
)
def test_what_is_out_of_bounds_is_refused(body):
    assert set(codes(check_content(body))) == {"invalid_params"}


def test_the_bounds_themselves_are_taken():
    signals = tuple(Signal("text", f"t{n}") for n in range(32))
    steps = tuple(Action("click", f"#a{n}", tuple(f"#f{m}" for m in range(5))) for n in range(10))
    body = content(Playbook("custom", steps, (VerifyStep("absent", "#a"),) * 10), print_=Fingerprint(signals, 1.0))
    assert check_content(body) == ()


# -- refused by the page

ACCEPT, REJECT = ControlFacts(("Alle akzeptieren",)), ControlFacts(("Reject all",))
CLOSE, MANAGE, UNKNOWN = ControlFacts(("×",)), ControlFacts(("Manage cookies",)), ControlFacts(("Hello there",))


@pytest.mark.parametrize(
    ("polarity", "control", "wrong"),
    [
        ("reject", REJECT, False),
        ("reject", ACCEPT, True),
        ("reject", MANAGE, True),
        ("reject", CLOSE, True),
        ("reject", UNKNOWN, False),
        ("accept", ACCEPT, False),
        ("accept", REJECT, True),
        ("manage", MANAGE, False),
        ("manage", ACCEPT, True),
        ("navigate", ACCEPT, True),
        ("navigate", UNKNOWN, False),
        ("noop", CLOSE, False),
        ("noop", ACCEPT, True),
        ("noop", REJECT, True),
    ],
)
def test_a_label_may_contradict_what_is_claimed_for_it(polarity, control, wrong):
    assert contradicts(polarity, control) is wrong
    body = content(Playbook("custom", (Action("click", "#go", polarity=polarity),)), kind="consent_cmp")
    found = check_live(body, {"#go": LiveLook(1, inside=True, control=control), "#bar": LiveLook(1)})
    assert codes(found.problems) == (["pks.polarity_mismatch"] if wrong else [])


def test_one_selector_for_several_elements_is_refused():
    found = check_live(content(), {"#bar": LiveLook(3), "#bar .no": LiveLook(2, inside=True)})
    assert codes(found.problems) == ["pks.selector_too_broad"]


def test_what_lies_outside_the_layer_is_refused():
    looks = {"#bar": LiveLook(1), "#bar .no": LiveLook(1, inside=False)}
    assert codes(check_live(content(), looks).problems) == ["pks.outside_surface"]
    assert check_live(content(kind="nav_link"), looks).problems == ()
    assert surface_of(content()) == ("#bar",)
    assert surface_of(content(kind="custom")) == ()


def test_selectors_that_were_not_seen_are_remembered_as_such():
    body = content(Playbook("custom", (Action("click", "#a", ("#b",)),)))
    assert selectors_of(body) == ("#bar", "#a", "#b")
    found = check_live(body, {"#bar": LiveLook(1), "#a": LiveLook(0)})
    assert (found.unconfirmed, found.passed) == (("#a", "#b"), False)
    assert check_live(body, {one: LiveLook(1, inside=True) for one in selectors_of(body)}).passed


# -- merging


def test_a_first_write_is_a_shadow_entry_with_a_frozen_baseline():
    done = upserted(None, wish(), SEEN, entries=0)
    assert isinstance(done, Written)
    one = done.written
    assert (done.kind, one.level, one.revision, one.deprecated) == ("created", 1, 1, False)
    assert one.baseline == frozenset(PRINT.signals[:1])
    assert one.health.last_confirmed_at_ms == NOW


def test_without_a_look_the_claim_is_the_baseline_and_stays_unconfirmed():
    one = upserted(None, wish(), UNSEEN, entries=0).written
    assert (one.baseline, one.unconfirmed, one.health.last_confirmed_at_ms) == (
        frozenset(PRINT.signals),
        ("#bar .no",),
        None,
    )
    assert confirmed(one, ["#bar .no"]).unconfirmed == ()
    assert confirmed(one, ["#else"]) is one


def test_a_full_scope_takes_no_new_entry_but_changes_old_ones():
    assert MAX_PHENOMENA == 200
    assert isinstance(upserted(None, wish(), SEEN, entries=199), Written)
    assert codes(upserted(None, wish(), SEEN, entries=200).problems) == ["pks.scope_full"]
    assert upserted(entry(), wish(OTHER), SEEN, entries=200).kind == "updated"


def test_the_same_again_changes_nothing():
    before = entry()
    done = upserted(before, wish(), SEEN, entries=1)
    assert (done.kind, done.entry) == ("unchanged", before)


@pytest.mark.parametrize(("label", "kind"), [("Keep it", "unchanged"), ("Apply changes", "updated")])
@pytest.mark.parametrize("level", [1, 2])
def test_the_same_words_for_an_element_under_another_label_are_something_new(label, kind, level):
    def press(text):
        return Playbook("custom", (Action("click", "#keep", element=ElementPrint("button", text=text, id="keep")),))

    done = upserted(entry(level, body=content(press("Keep it"))), wish(press(label)), SEEN, entries=1)
    assert done.kind == kind
    assert done.written.content.playbook == press(label)
    assert (done.entry.pending is not None) is (kind == "updated" and level == 2)


def test_a_shadow_entry_is_changed_in_place_and_keeps_its_health():
    before = entry(drift_debt=0.3)
    done = upserted(before, wish(OTHER), SEEN, entries=1)
    one = done.written
    assert (done.kind, one.revision, one.level, one.health.attempts, one.drift_debt) == ("updated", 2, 1, 7, 0.0)
    assert done.entry.pending is None


def test_sections_left_out_stay():
    before = entry(body=content(context=Context(device="mobile")))
    done = upserted(before, Upsert("p", "paywall", PRINT), SEEN, entries=1)
    assert done.written.content == content(kind="paywall", context=Context(device="mobile"))


def test_a_candidate_written_by_hand_becomes_a_shadow_entry():
    done = upserted(entry(0), wish(), SEEN, entries=1)
    assert (done.kind, done.written.level, done.written.revision) == ("updated", 1, 1)


def test_changed_content_of_an_active_entry_is_a_shadow_revision():
    before = entry(2)
    done = upserted(before, wish(OTHER), SEEN, entries=1)
    assert done.entry.current == before.current
    one = done.entry.pending
    assert (one.level, one.revision, one.health.attempts, one.content.playbook) == (1, 2, 0, OTHER)
    again = upserted(done.entry, wish(OTHER), SEEN, entries=1)
    assert (again.kind, again.entry) == ("unchanged", done.entry)
    third = upserted(done.entry, wish(Playbook("ignore")), SEEN, entries=1)
    assert (third.entry.current, third.entry.pending.revision) == (before.current, 3)


def test_a_retired_entry_comes_back_to_review_only_if_the_page_confirms_it():
    before = entry(2, retired="broke")
    back = upserted(before, wish(), SEEN, entries=1)
    assert (back.kind, back.written.level, back.written.deprecated) == ("reactivated", 1, False)
    kept = upserted(before, wish(OTHER), UNSEEN, entries=1)
    assert (kept.kind, kept.written.deprecated) == ("updated", True)


def test_what_is_refused_writes_nothing():
    broad = Playbook("custom", (Action("click", "*"),))
    assert codes(upserted(None, wish(broad), SEEN, entries=0).problems) == ["pks.selector_too_broad"]
    live = replace(SEEN, verdict=check_live(content(), {"#bar .no": LiveLook(2)}))
    assert codes(upserted(entry(), wish(), live, entries=1).problems) == ["pks.selector_too_broad"]
    assert isinstance(patched(entry(), Patch(playbook=broad), SEEN), Refused)


def test_fragile_selectors_are_stored_and_warned_about():
    done = upserted(None, wish(Playbook("custom", (Action("click", "#bar .css-1a2b3c"),))), SEEN, entries=0)
    assert any("css-1a2b3c" in one for one in done.warnings)


def test_a_patch_replaces_only_what_it_names():
    before = entry(body=content(context=Context(device="mobile")))
    assert patched(before, Patch(), SEEN).kind == "unchanged"
    assert patched(before, Patch(playbook=OTHER), SEEN).written.content == replace(
        before.current.content, playbook=OTHER
    )
    assert patched(before, Patch(context=None), SEEN).written.content.context == Context()
    assert patched(before, Patch(type="custom"), SEEN).written.content.type == "custom"


def test_a_patch_of_an_active_entry_has_to_prove_itself_too():
    done = patched(entry(2), Patch(playbook=OTHER), SEEN)
    assert (done.entry.current.level, done.entry.pending.level) == (2, 1)
    more = patched(done.entry, Patch(type="custom"), SEEN)
    assert more.entry.pending.content == content(OTHER, kind="custom")


@pytest.mark.parametrize(("expected", "conflict"), [(None, False), (1, False), (2, True)])
def test_a_patch_of_something_older_is_a_conflict(expected, conflict):
    done = patched(entry(), Patch(playbook=OTHER, expected_revision=expected), SEEN)
    assert isinstance(done, Conflict) is conflict


def test_a_patch_revives_only_when_asked_to():
    before = entry(2, retired="broke")
    assert patched(before, Patch(playbook=OTHER), SEEN).written.deprecated
    assert not patched(before, Patch(revive=True), SEEN).written.deprecated
    assert patched(before, Patch(revive=True), SEEN).written.level == 1
    assert patched(before, Patch(revive=True), UNSEEN).written.deprecated


playbooks = st.sampled_from([PRESS, OTHER, Playbook("ignore"), Playbook("custom", (Action("wait"),))])
lives = st.sampled_from([SEEN, UNSEEN])


@given(st.sampled_from([0, 1, 2]), st.sampled_from([None, "old"]), st.lists(st.tuples(playbooks, lives, st.booleans())))
def test_no_write_raises_an_entry_or_touches_an_active_one(level, retired, writes):
    first = entry(level, retired=retired)
    found = first
    for playbook, live, by_patch in writes:
        before = found
        done = (
            patched(found, Patch(playbook=playbook, revive=True), live)
            if by_patch
            else upserted(found, wish(playbook), live, entries=1)
        )
        found = done.entry
        assert found.newest.level <= max(1, before.current.level)
        assert found.newest.revision >= before.newest.revision
        if before.current.may_guide:
            assert found.current == before.current
    assert found.current.may_guide is first.current.may_guide


# -- retiring


@pytest.mark.parametrize(
    ("level", "health", "needed"),
    [
        (1, Health(), False),
        (0, Health(), False),
        (2, Health(), True),
        (2, Health(last_failure_at_ms=NOW - 7 * DAY_MS), True),
        (2, Health(last_failure_at_ms=NOW - 7 * DAY_MS + 1), False),
        (2, Health(last_drift_at_ms=NOW - DAY_MS), False),
        (2, Health(last_drift_at_ms=NOW - 8 * DAY_MS), True),
    ],
)
def test_an_active_entry_is_retired_only_on_evidence(level, health, needed):
    problem = deprecation_problem(entry(level, health=health).current, NOW)
    assert (problem is not None) is needed
    assert problem is None or problem.code == "pks.evidence_required"


def test_a_retired_entry_guides_nobody():
    one = deprecated(entry(2).current, "  no  longer there ", NOW)
    assert (one.deprecated_reason, one.may_guide) == ("no longer there", False)


# -- hints and prints


def hint(*selectors, kind="ad_container", extract=()):
    return DomainHint("h", kind, selectors, NOW, NOW, extract=extract)


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (hint(".ad"), []),
        (hint("[class*=advert]"), []),
        (hint("*"), ["pks.selector_too_broad"]),
        (hint("body"), ["pks.selector_too_broad"]),
        (hint(), ["invalid_params"]),
        (hint(*(f".a{n}" for n in range(11))), ["invalid_params"]),
        (hint(".ad", extract=(("title", "h3"),)), ["invalid_params"]),
        (hint(".item", kind="result_item", extract=(("title", "h3"),)), []),
        (hint("javascript:x"), ["pks.script_content"]),
    ],
)
def test_a_hint_hides_no_whole_page(one, expected):
    assert codes(check_hint(one)) == expected


def test_what_is_kept_of_an_element_is_bounded():
    one = bounded(
        ElementPrint("BUTTON", text="a\n\u202eb " * 500, classes=("c" * 999,) * 99, neighbours=("n" * 999,) * 99)
    )
    assert (one.tag, len(one.text) <= 120, len(one.classes), len(one.neighbours)) == ("button", True, 12, 4)
    assert "\u202e" not in one.text
    assert bounded(one) == one


# -- claims that no label supports


def consent(polarity, label):
    action = Action("click", "#bar .no", polarity=polarity, element=ElementPrint("button", text=label))
    body = content(Playbook("reject_preferred", (action,)), kind="consent_cmp")
    looks = {"#bar": LiveLook(1), "#bar .no": LiveLook(1, True, ControlFacts((label,)))}
    return body, check_live(body, looks)


@pytest.mark.parametrize(
    ("polarity", "label", "doubted"),
    [
        ("reject", "Hafna öllu", True),
        ("noop", "Samþykkja", True),
        ("reject", "Reject all", False),
        ("reject", "Rifiuta tutto", False),
        ("accept", "Samþykkja", False),
    ],
)
def test_a_choice_that_the_label_can_not_confirm_is_told_when_it_is_written_and_explained(polarity, label, doubted):
    body, verdict = consent(polarity, label)
    expected = (("#bar .no", polarity),) if doubted else ()
    assert verdict.problems == ()
    assert verdict.unread == unread_in(body) == expected
    done = upserted(None, Upsert("p", "consent_cmp", PRINT, body.playbook), Live(verdict, frozenset(), NOW), entries=0)
    assert [f"is {polarity} is only claimed" in one for one in done.warnings] == [True] * doubted


def test_an_acceptance_in_another_language_contradicts_a_claimed_refusal():
    for label in ("Accetta tutti i cookie", "すべて受け入れる", "Ассept all"):
        assert codes(consent("reject", label)[1].problems) == ["pks.polarity_mismatch"]


# -- what a write means for the rest of the site


@pytest.mark.parametrize("kind", ["nav_link", "spa_route", "custom"])
def test_what_is_expected_everywhere_says_so_or_names_its_routes(kind):
    def told(*routes):
        wanted = Upsert("p", kind, PRINT, PRESS, Context(routes=routes))
        return [one for one in upserted(None, wanted, SEEN, entries=0).warnings if "context.routes" in one]

    assert len(told()) == 1
    assert told("*") == told("feed") == []
    assert upserted(None, wish(), SEEN, entries=0).warnings == ()


def other(name="q", selector="#bar .no", routes=(), **more):
    body = content(Playbook("dismiss", (Action("click", "#q", (selector,)),)), context=Context(routes=routes))
    return Phenomenon(name, body, 1, 1, 1, **more)


@pytest.mark.parametrize(
    ("beside", "shared"),
    [
        (other(), True),
        (other(selector="#bar   .no"), True),
        (other("p"), False),
        (other(selector="#bar .yes"), False),
        (other(deprecated_reason="gone"), False),
        (other(routes=("feed",)), True),
        (other(routes=("shop",)), False),
    ],
)
def test_an_entry_that_acts_through_the_control_of_another_is_told(beside, shared):
    mine = Phenomenon("p", content(context=Context(routes=("feed",))), 1, 1, 1)
    told = shared_controls(mine, [beside])
    assert ['also pressed by "q"' in one for one in told] == [True] * shared
    assert all("nova.pks_deprecate" in one for one in told)


@pytest.mark.parametrize(
    ("some", "others", "both"),
    [
        ((), ("feed",), True),
        (("*",), ("_root",), True),
        (("feed",), ("feed/*",), True),
        (("in/*",), ("in/me/*",), True),
        (("in/a/*",), ("in/b/*",), False),
        (("_root",), ("feed",), False),
        (("_root", "shop"), ("shop",), True),
    ],
)
def test_routes_meet_where_a_page_can_be_on_both(some, others, both):
    assert meet(some, others) is both
    assert meet(others, some) is both
