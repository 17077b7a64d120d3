"""Which controls of a layer may be pressed, in which order, and what is said about it afterwards."""

import json
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nova_mcp.browser.blockers.rules import (
    Blocker,
    BlockerMemory,
    Control,
    Escape,
    Manage,
    NotedLayer,
    Press,
    Switch,
    Tally,
    all_off,
    closing_proves,
    commits_something,
    judge,
    may_hide,
    speaks_for,
    steps_for,
    to_turn_off,
    weakest,
)
from nova_mcp.browser.commits.commit_points import CommitPoint
from nova_mcp.browser.perceive.elements import ElementFacts
from nova_mcp.browser.perceive.scan_values import SeenElement, SeenField, SeenForm
from nova_mcp.core.page.consent_words import said_by
from nova_mcp.core.page.control_labels import HUMAN, ControlFacts, label_for

KINDS = ["consent", "modal", "login_wall", "paywall", "newsletter", "age_gate", "chat", "challenge", "unknown"]


def element(name="", node=1):
    facts = ElementFacts(
        tag="button",
        role="button",
        name=name,
        type="button",
        id="",
        testid="",
        name_attr="",
        href_path="",
        row_key="",
        frame="",
    )
    return SeenElement(node, facts)


def control(*texts, kind="consent", node=1, **facts):
    known = ControlFacts(texts=texts, **facts)
    return Control(known, label_for(known, kind), element(texts[0] if texts else "", node), "http://127.0.0.1/")


def layer(*controls, kind="consent", blocking=True, **more):
    return Blocker(kind, blocking, "layer", element(node=99), controls, **more)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Accept all", "accept"),
        ("Allow all cookies", "accept"),
        ("I agree", "accept"),
        ("OK", "accept"),
        ("Got it!", "accept"),
        ("Continue", "accept"),
        ("Continue to the site", "accept"),
        ("Accept & close", "accept"),
        ("Allow selection", "accept"),
        ("Alle akzeptieren", "accept"),
        ("Einverstanden", "accept"),
        ("Tout accepter", "accept"),
        ("J'accepte", "accept"),
        ("Aceptar todo", "accept"),
        ("Entendido", "accept"),
        ("Accept only necessary cookies", "reject"),
        ("Accept necessary", "reject"),
        ("Only essential", "reject"),
        ("Use necessary cookies only", "reject"),
        ("Continue without accepting", "reject"),
        ("I do not accept", "reject"),
        ("Nur notwendige Cookies", "reject"),
        ("Nur technisch notwendige Cookies akzeptieren", "reject"),
        ("Ohne Zustimmung fortfahren", "reject"),
        ("Continuer sans accepter", "reject"),
        ("Je n'accepte pas", "reject"),
        ("Solo las necesarias", "reject"),
        ("Continuar sin aceptar", "reject"),
        ("Reject all", "reject"),
        ("Reject all and continue", "reject"),
        ("Decline", "reject"),
        ("Opt out", "reject"),
        ("Alle ablehnen", "reject"),
        ("Tout refuser", "reject"),
        ("Rechazar todas", "reject"),
        ("Accept all, not only necessary", "accept"),
        ("Accept necessary and marketing cookies", "accept"),
        ("Accept necessary and continue", "reject"),
        ("Accept necessary and tracking cookies", "accept"),
        ("Allow necessary & preference cookies", "accept"),
        ("Accept required + profiling", "accept"),
        ("Aceptar solo ofertas", "accept"),
        ("Aceptar solo lo necesario", "reject"),
        ("Nur notwendige und funktionale Cookies", "unknown"),
        ("Uniquement les cookies nécessaires et les partenaires", "unknown"),
        ("Do not accept only necessary", "accept"),
        ("Without consent I cannot go on, so yes", "unknown"),
        ("Reject and subscribe", "unknown"),
        ("Refuser et s'abonner", "unknown"),
        ("Ablehnen und Abo abschließen", "unknown"),
        ("Decline to opt out", "unknown"),
        ("Refuse to reject", "unknown"),
        ("Reject all except partners", "unknown"),
        ("Reject ads, ac\u00adcept all", "accept"),
        ("Reject later", "unknown"),
        ("Alle nicht notwendigen Cookies ablehnen", "reject"),
        ("Rechazar cookies no esenciales", "reject"),
        ("Ohne Cookies fortfahren", "reject"),
        ("Reject analytics cookies", "reject"),
        ("Apply recommended settings", "unknown"),
        ("Choose all", "unknown"),
        ("Not now", "close"),
        ("Not now, recommended settings please", "excuse"),
        ("No thanks, I like full price", "excuse"),
        ("Reject nothing", "unknown"),
        ("Don't reject", "unknown"),
        ("Nicht ablehnen", "unknown"),
        ("Ne pas refuser", "unknown"),
        ("Strictly necessary cookies", "unknown"),
        ("Learn why we use only necessary cookies", "unknown"),
        ("Close", "close"),
        ("×", "close"),
        ("X", "close"),
        ("Schließen", "close"),
        ("Fermer", "close"),
        ("Close my account", "unknown"),
        ("Close ticket", "unknown"),
        ("No thanks", "decline"),
        ("Nein danke", "decline"),
        ("Save my choices", "save"),
        ("Auswahl speichern", "save"),
        ("Manage options", "manage"),
        ("Cookie-Einstellungen", "manage"),
        ("Paramétrer", "manage"),
        ("Configurar", "manage"),
        ("Privacy policy", "unknown"),
        ("Subscribe", "unknown"),
        ("Delete", "unknown"),
        ("…", "unknown"),
        ("", None),
        ("   ", None),
    ],
)
def test_a_label_says_one_thing_and_acceptance_comes_before_refusal(name, said):
    assert said_by(name) == said


def phrases(name):
    raw = json.loads(files("nova_mcp.core.page").joinpath("data/consent_words.json").read_text("utf-8"))
    return st.sampled_from([phrase for texts in raw[name].values() for phrase in texts])


WORDS = st.text(st.characters(whitelist_categories=["Ll", "Zs"]), max_size=20)
OUTSIDE_ACCEPTANCE = {"close", "save", "manage", "decline"}


@given(WORDS, phrases("consent_accept"), WORDS)
def test_whatever_mentions_acceptance_is_never_closed_saved_or_managed(before, accept, after):
    assert said_by(f"{before} {accept} {after}") not in OUTSIDE_ACCEPTANCE


@given(phrases("consent_accept"), phrases("consent_everything"))
def test_accepting_everything_is_acceptance_whatever_else_it_says(accept, everything):
    assert said_by(f"{accept} {everything}") == "accept"


@given(st.text(max_size=300))
def test_any_text_gets_an_answer(text):
    assert said_by(text) in {None, "accept", "reject", "decline", "close", "save", "manage", "unknown"}


def test_every_list_of_texts_has_four_languages():
    raw = json.loads(files("nova_mcp.browser").joinpath("data/blocker_words.json").read_text("utf-8"))
    assert {frozenset(lists) for lists in raw.values()} == {frozenset({"en", "de", "fr", "es"})}


# -- labels of controls


@pytest.mark.parametrize(
    ("facts", "label"),
    [
        (ControlFacts(("Close", "Accept")), "accept"),
        (ControlFacts(("Close", "×")), "close"),
        (ControlFacts(("×",), ("btn accept-all",)), "accept"),
        (ControlFacts(("Close",), ("cookieAcceptClose",)), "accept"),
        (ControlFacts(("Only necessary",), ("btn-accept-essential",)), "reject"),
        (ControlFacts(("Reject all",), ("js-accept-all",)), "accept"),
        (ControlFacts((), ("popup-close",), small=True), "close"),
        (ControlFacts((), ("popup-close",), small=False), "unknown"),
        (ControlFacts((), ("accept-close",), small=True), "accept"),
        (ControlFacts(("Reject", "Close")), "unknown"),
        (ControlFacts(("Rifiuta",), platform="reject"), "reject"),
        (ControlFacts(("Accept all",), platform="reject"), "accept"),
        (ControlFacts(("Reject all",), platform="accept"), "accept"),
        (ControlFacts(("Manage options",), platform="reject"), "unknown"),
        (ControlFacts(("Cookie settings",), away="same"), "unknown"),
        (ControlFacts(("Reject all",), away="same"), "reject"),
        (ControlFacts(("Reject all",), away="other"), "unknown"),
        (ControlFacts(("Only necessary",), unfolds=True), "unknown"),
        (ControlFacts(("Settings",), unfolds=True), "manage"),
        (ControlFacts(("No thanks",)), "reject"),
        (ControlFacts(), "unknown"),
    ],
)
def test_a_control_is_known_by_everything_it_says(facts, label):
    assert label_for(facts, "consent") == label


def test_declining_an_offer_answers_a_request_for_consent_and_closes_anything_else():
    assert label_for(ControlFacts(("No thanks",)), "newsletter") == "close"


def test_of_several_that_reject_the_one_that_says_all_speaks_for_the_layer():
    parts = [control("Deny", node=n) for n in (1, 2, 3)]
    assert speaks_for(layer(*parts), "reject") is None
    assert speaks_for(layer(*parts, control("Deny all", node=4)), "reject").element.node == 4
    assert speaks_for(layer(control("Reject"), control("Only necessary", node=2)), "reject").element.node == 1
    assert speaks_for(layer(), "reject") is None


# -- the way through a pass


EVERYTHING = (
    control("Accept all", node=1),
    control("Reject all", node=2),
    control("Close", node=3),
    control("Settings", node=4),
)


def test_a_request_for_consent_is_rejected_then_closed_then_escaped_then_managed():
    steps = steps_for(layer(*EVERYTHING))
    assert [type(step) for step in steps] == [Press, Press, Escape, Manage]
    assert [step.method for step in steps[:2]] == ["reject", "close"]


def test_other_layers_are_closed_and_nothing_in_them_is_answered():
    for kind in ("modal", "newsletter", "chat", "unknown"):
        steps = steps_for(layer(*EVERYTHING, kind=kind))
        assert [type(step) for step in steps] == [Press, Escape]
        assert steps[0].method == "close"


@pytest.mark.parametrize("kind", sorted(HUMAN))
def test_what_needs_a_person_is_not_touched_and_not_hidden(kind):
    blocker = layer(*EVERYTHING, kind=kind)
    assert steps_for(blocker) == ()
    assert not may_hide(blocker)


def test_a_question_of_the_site_is_not_answered_by_closing_it():
    assert steps_for(layer(*EVERYTHING, kind="modal", alert=True)) == ()


def test_where_closing_means_agreeing_nothing_is_closed():
    steps = steps_for(layer(*EVERYTHING, closing_accepts=True))
    assert [type(step) for step in steps] == [Press, Manage]
    assert steps[0].method == "reject"


def test_a_part_of_the_layout_that_covers_nothing_is_left_alone():
    assert steps_for(layer(*EVERYTHING, kind="unknown", blocking=False)) == ()
    assert not may_hide(layer(kind="unknown", blocking=False))


LABELLED = st.lists(
    st.builds(
        lambda text, node, platform: control(text, node=node, platform=platform),
        st.one_of(
            phrases("consent_accept"),
            phrases("consent_go_on"),
            phrases("consent_reject"),
            phrases("layer_close"),
            WORDS,
        ),
        st.integers(1, 50),
        st.sampled_from([None, "accept", "reject", "close", "manage"]),
    ),
    max_size=6,
)


@given(LABELLED, st.sampled_from(KINDS), st.booleans(), st.booleans())
def test_no_step_ever_presses_what_accepts_or_is_not_understood(controls, kind, closing, alert):
    for step in steps_for(layer(*controls, kind=kind, closing_accepts=closing, alert=alert)):
        if isinstance(step, Press | Manage):
            assert step.control.label in ("reject", "close", "manage")
            assert all(said_by(text) != "accept" for text in step.control.facts.texts)


# -- switches


def switch(on=True, locked=False, stuck=False, shown=True):
    return Switch(on, locked, stuck, False, element() if on and shown else None, "")


def test_a_second_layer_is_saved_only_when_every_optional_switch_reads_off():
    assert all_off([switch(on=True, locked=True), switch(on=False)])
    assert not all_off([switch(on=False), switch(on=True)])
    assert not all_off([switch(on=False, stuck=True)])
    assert not all_off([])


def test_a_switch_that_is_out_of_sight_or_asks_the_other_way_round_stops_the_saving():
    assert to_turn_off([switch(), switch(on=False), switch(locked=True)]) == (switch(),)
    assert to_turn_off([switch(shown=False)]) is None
    assert to_turn_off([switch(on=False, stuck=True)]) is None
    assert to_turn_off([switch(locked=True, stuck=True)]) == ()


# -- commits


def point(kind):
    return CommitPoint(kind, "why", "nova.click_selector")


def form(*types):
    fields = tuple(SeenField("input", kind, "", "", "") for kind in types)
    return SeenForm(1, True, False, "post", "/", "", fields)


def test_refusing_consent_may_submit_its_own_form_and_nothing_else():
    assert not commits_something(None, "close", "newsletter", None)
    assert not commits_something(point("submit"), "reject", "consent", form("checkbox", "radio"))
    assert not commits_something(point("delete"), "reject", "consent", None)
    assert not commits_something(point("confirm"), "save", "consent", None)
    assert commits_something(point("submit"), "reject", "consent", form("email"))
    assert commits_something(point("submit"), "close", "consent", form())
    assert commits_something(point("submit"), "reject", "newsletter", form())
    for kind in ("payment", "auth", "send", "switch_model", "dialog_accept"):
        assert commits_something(point(kind), "reject", "consent", None)


# -- what is said afterwards


def tally(**changes):
    values = {"found": 1, "dismissed": 1, "hidden": 0, "remaining": (), "choice": "rejected", "dispatched": True}
    return Tally(**(values | changes))


@pytest.mark.parametrize(
    ("seen", "status", "reason", "verified"),
    [
        (tally(), "ok", None, True),
        (tally(found=0, dismissed=0, dispatched=False, choice="unknown"), "ok", None, True),
        (tally(dismissed=0, hidden=1), "partial", "blockers.hidden_only", False),
        (tally(dismissed=0, remaining=(layer(EVERYTHING[1]),)), "partial", "action.no_effect_observed", False),
        (tally(dismissed=0, remaining=(layer(EVERYTHING[0]),)), "partial", "blockers.needs_human", False),
        (
            tally(dismissed=0, dispatched=False, remaining=(layer(kind="paywall"),)),
            "blocked",
            "blockers.needs_human",
            False,
        ),
        (tally(found=2, remaining=(layer(kind="login_wall"),)), "partial", "blockers.needs_human", False),
        (tally(found=2, remaining=(layer(kind="chat", blocking=False),)), "ok", None, True),
    ],
)
def test_only_what_is_gone_counts_as_done(seen, status, reason, verified):
    verdict = judge(seen)
    assert (verdict.status, verdict.reason_code, verdict.verified) == (status, reason, verified)


def test_the_weakest_answer_holds_for_all():
    assert weakest(["rejected", "dismissed"]) == "dismissed"
    assert weakest(["rejected", "unknown"]) == "unknown"
    assert weakest(["rejected"]) == "rejected"
    assert weakest([]) == "unknown"


def test_a_window_of_the_site_that_goes_away_proves_only_that_it_was_closed():
    assert closing_proves("consent", "unknown")
    assert closing_proves("modal", "close")
    assert not closing_proves("modal", "unknown")
    assert not closing_proves("login_wall", "save")


# -- memory


def test_a_covered_target_is_known_for_the_document_that_was_looked_at():
    memory = BlockerMemory()
    memory.note(3, [NotedLayer("chat", False), NotedLayer("consent", True, frozenset({7}))])
    assert memory.over(3, 1) == "consent"
    assert memory.over(3, None) == "consent"
    assert memory.over(3, 7) is None
    assert memory.over(4, 1) is None
    memory.note(3, [NotedLayer("consent", False)])
    assert memory.over(3, 1) is None


def test_the_second_failure_on_one_document_gives_up_and_a_success_forgives():
    memory = BlockerMemory()
    here = ("http://a/", 1, "conservative")
    assert memory.failed(here) == 1
    assert not memory.given_up(here)
    assert memory.failed(here) == 2
    assert memory.given_up(here)
    assert not memory.given_up(("http://a/", 1, "aggressive"))
    assert not memory.given_up(("http://a/", 2, "conservative"))
    memory.succeeded(here)
    assert not memory.given_up(here)
    memory.failed(here)
    assert memory.failed(("http://a/", 2, "conservative")) == 1
    assert memory.failures == {("http://a/", 2, "conservative"): 1}
