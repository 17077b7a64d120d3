"""Commit points: what needs a contract, what does not, and why."""

import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nova_mcp.browser.commits.commit_points import (
    CommitFacts,
    FormFacts,
    classify_commit_point,
    is_search_form,
    submits_harmlessly,
)
from nova_mcp.browser.commits.commit_words import commit_words
from nova_mcp.core.page.labels import words_of

# How long an example takes says nothing on a busy machine.
UNHURRIED = settings(deadline=None)

POST = FormFacts(method="post", action="/save")


def kind(**facts: object) -> str | None:
    point = classify_commit_point(CommitFacts(**{"tag": "button", **facts}))  # type: ignore[arg-type]
    return None if point is None else point.kind


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Pay $12.00", "payment"),
        ("Buy now", "payment"),
        ("Place your order", "payment"),
        ("Jetzt kaufen", "payment"),
        ("Zahlungspflichtig bestellen", "payment"),
        ("Payer", "payment"),
        ("Realizar pedido", "payment"),
        ("Transfer", "payment"),
        ("Delete", "delete"),
        ("Yes, delete it", "delete"),
        ("Konto löschen", "delete"),
        ("KONTO LOESCHEN", "delete"),
        ("Supprimer le compte", "delete"),
        ("Eliminar cuenta", "delete"),
        ("Cancel plan", "delete"),
        ("Remove item", "delete"),
        ("Unsubscribe", "delete"),
        ("Sign in", "auth"),
        ("Log in", "auth"),
        ("Login", "auth"),
        ("Sign up", "auth"),
        ("Sign out", "auth"),
        ("Anmelden", "auth"),
        ("Se connecter", "auth"),
        ("S’inscrire", "auth"),
        ("Iniciar sesión", "auth"),
        ("Cerrar sesion", "auth"),
        ("Confirm", "confirm"),
        ("I agree to the terms", "confirm"),
        ("Bestätigen", "confirm"),
        ("Submit", "submit"),
        ("Einreichen", "submit"),
        ("Reorder columns", None),
        ("Sort order", None),
        ("Order history", None),
        ("Order by price", None),
        ("Deleted items", None),
        ("Remove filter", None),
        ("Filter löschen", None),
        ("Undelete", None),
        ("Payments", None),
        ("Display", None),
        ("Buyers guide", None),
        ("Repost", None),
        ("Post", None),
        ("Send", "submit"),
        ("Publish", "confirm"),
        ("Deploy", "confirm"),
        ("inject now", "confirm"),
        ("Design ideas", None),
        ("Login help", "auth"),
        ("Add to cart", None),
        ("Accept all", None),
        ("Confirmed orders", None),
        ("", None),
        ("→", None),
    ],
)
def test_button_is_known_by_whole_phrases_of_its_name(name: str, expected: str | None):
    assert kind(name=name) == expected
    assert kind(tag="div", role="button", name=name) == expected
    assert kind(tag="div", role="menuitem", name=name) == expected
    assert kind(tag="div", name=name) is None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Sign out", "auth"),
        ("Abmelden", "auth"),
        ("Unsubscribe", "delete"),
        ("Delete account", "delete"),
        ("Konto löschen", "delete"),
        ("How to delete your account", None),
        ("Sign in", None),
        ("Buy now", None),
        ("Posts", None),
        ("Submit", None),
        ("Confirm", None),
        ("Order history", None),
    ],
)
def test_plain_link_commits_only_by_sign_out_unsubscribe_and_delete_wording(name: str, expected: str | None):
    assert kind(tag="a", is_link_href=True, name=name) == expected
    assert kind(tag="a", role="link", is_link_href=True, name=name, near_composer=True, form=POST) == expected


def test_link_dressed_as_a_button_or_without_destination_is_a_button():
    assert kind(tag="a", role="button", is_link_href=True, name="Buy now") == "payment"
    assert kind(tag="a", name="Buy now") == "payment"


@pytest.mark.parametrize(
    "name", ["Send", "Reply", "Post", "Publish", "Post comment", "Nachricht senden", "Envoyer", "Enviar"]
)
def test_send_words_count_beside_a_message_box_only(name: str):
    assert kind(name=name, near_composer=True) == "send"
    assert kind(name=name) in (None, "submit", "confirm")


def test_send_control_is_found_by_id_or_testid():
    assert kind(name="", testid="send-button", near_composer=True) == "send"
    assert kind(name="➤", id="composerSend", near_composer=True) == "send"
    assert kind(name="Repost", id="repost", near_composer=True) is None
    assert kind(name="Posts", id="posts", near_composer=True) is None
    assert kind(name="", testid="resend-code", near_composer=True) is None


def test_icon_without_name_is_known_by_its_id():
    assert kind(name="", id="deleteRow") == "delete"
    assert kind(name="Archive", id="deleteRow") is None


@pytest.mark.parametrize(
    ("tag", "type_", "expected"),
    [
        ("button", "submit", "submit"),
        ("button", "", "submit"),
        ("input", "submit", "submit"),
        ("input", "image", "submit"),
        ("button", "button", None),
        ("button", "reset", None),
        ("input", "text", None),
        ("input", "checkbox", None),
        ("select", "", None),
    ],
)
def test_submit_control_of_a_form_commits(tag: str, type_: str, expected: str | None):
    assert kind(tag=tag, type=type_, name="Next", form=POST) == expected
    assert kind(tag=tag, type=type_, name="Next") is None


@pytest.mark.parametrize("heavy", ["has_password", "has_card", "has_file", "has_textarea"])
def test_harmless_forms_hold_no_field_of_weight(heavy: str):
    for light in (
        FormFacts(role_search=True),
        FormFacts(has_search_type=True),
        FormFacts(search_names=("q",)),
        FormFacts(method="get", action="/list"),
    ):
        assert submits_harmlessly(light)
        assert kind(name="Go", form=light) is None
        assert kind(name="Submit", form=light) is None
        assert kind(tag="input", type="text", trigger="enter", form=light) is None
        values = {field: getattr(light, field) for field in light.__slots__}
        weighty = FormFacts(**{**values, heavy: True})
        expected = {"has_password": "auth", "has_card": "payment"}.get(heavy, "submit")
        assert kind(name="Go", form=weighty) == expected
        assert kind(tag="input", type="text", trigger="enter", form=weighty) == expected


@pytest.mark.parametrize("name", ["q", "query", "Search", "Suche", "suchbegriff", "Rechercher", "búsqueda", "BUSCAR"])
def test_search_field_makes_a_search_form_of_what_only_asks(name: str):
    for method in ("", "get"):
        assert is_search_form(FormFacts(method=method, search_names=("lang", name)))
    assert not is_search_form(FormFacts(method="post", search_names=("lang", name)))
    assert is_search_form(FormFacts(method="post", role_search=True))


@pytest.mark.parametrize("button", ["Delete", "Pay now", "Transfer", "Order", "Submit"])
@pytest.mark.parametrize("field", ["q", "query", "search"])
def test_no_name_of_a_field_frees_a_form_that_posts(button: str, field: str):
    form = FormFacts(method="post", has_search_type=True, search_names=(field,), button=(button,))
    assert kind(name=button, form=form, type="submit") is not None
    assert kind(tag="input", type="search", trigger="enter", form=form) is not None


def test_what_a_form_is_called_counts_against_its_being_a_search():
    for form in (
        FormFacts(method="get", action="/account/delete", addresses=("/account/delete",), search_names=("q",)),
        FormFacts(role_search=True, headings=("Delete account",)),
        FormFacts(method="get", action="/things/4", addresses=("/things/4", "delete")),
    ):
        assert kind(name="Go", form=form, type="submit") is not None
        assert kind(tag="input", type="text", trigger="enter", form=form) is not None


@pytest.mark.parametrize(
    ("name", "reading", "expected"),
    [
        ("Show details", "Pay $499 now", "payment"),
        ("Sign in", "Delete account", "delete"),
        ("Delete", "Buy now", "payment"),
        ("Buy now", "Show details", "payment"),
        ("Show details", "Order history", None),
    ],
)
def test_the_more_dangerous_reading_wins(name: str, reading: str, expected: str | None):
    point = classify_commit_point(CommitFacts("button", name=name, readings=(reading,)))
    assert (None if point is None else point.kind) == expected
    if point is not None:
        assert point.reads == ("" if name == "Buy now" else reading)


def test_yes_commits_what_its_dialog_asks_for():
    assert kind(name="Yes", question="Delete this account?") == "delete"
    assert kind(name="OK", question="Do you want to buy this?") == "payment"
    assert kind(name="Cancel", question="Delete this account?") is None
    assert kind(name="Yes", question="Show the order history?") is None


def test_a_payment_field_makes_a_payment_of_any_button():
    assert kind(name="Next", form=FormFacts(method="get", action="/x", has_card=True)) == "payment"
    assert kind(name="Next", near_card=True) == "payment"


def test_a_control_that_only_opens_a_file_picker_commits_nothing():
    assert kind(tag="input", type="file", role="button", name="Submit a file", form=POST) is None


@pytest.mark.parametrize("name", ["quantity", "research", "requests", "email", ""])
def test_other_fields_do_not_make_a_search_form(name: str):
    assert not is_search_form(FormFacts(search_names=(name,)))


def test_missing_method_or_action_proves_nothing():
    assert kind(name="Go", form=FormFacts(action="/list")) == "submit"
    assert kind(name="Go", form=FormFacts(method="get")) == "submit"


def test_strong_words_count_inside_a_search_form_too():
    assert kind(name="Delete", form=FormFacts(role_search=True)) == "delete"
    assert kind(name="Buy now", form=FormFacts(method="get", action="/x")) == "payment"


def test_password_makes_a_submit_an_auth_whatever_it_is_called():
    form = FormFacts(method="post", action="/s", has_password=True)
    for name in ("Weiter", "Submit", "Confirm", ""):
        assert kind(name=name, form=form, type="submit") == "auth"
    assert kind(tag="input", type="password", trigger="enter", form=form) == "auth"


def test_enter_in_fields():
    assert kind(tag="input", type="text", trigger="enter", form=POST) == "submit"
    assert kind(tag="textarea", trigger="enter", form=POST) is None
    assert kind(tag="textarea", trigger="enter", near_composer=True) == "send"
    assert kind(tag="div", trigger="enter", near_composer=True) == "send"
    assert kind(tag="input", type="text", name="Order number", trigger="enter") is None
    assert kind(tag="button", name="Delete", trigger="enter") == "delete"


def test_options_of_model_and_workspace_pickers():
    assert kind(tag="div", role="option", name="Large", picker_label="Model") == "switch_model"
    assert kind(tag="option", name="Large", picker_label="Modell wählen") == "switch_model"
    assert kind(tag="div", role="menuitemradio", name="Acme", picker_label="Workspace") == "switch_sandbox"
    assert kind(tag="div", role="option", name="Large", picker_label="Size") is None
    assert kind(tag="div", role="option", name="Large", picker_label="Remodel") is None


def test_accepting_dialogs_makes_any_action_a_commit_and_keeps_the_stronger_kind():
    assert kind(name="Show more", on_dialog_accept=True) == "dialog_accept"
    assert kind(name="Delete", on_dialog_accept=True) == "delete"
    assert kind(tag="a", is_link_href=True, name="Home", on_dialog_accept=True) == "dialog_accept"


@pytest.mark.parametrize(
    ("facts", "tool"),
    [
        (CommitFacts("button", name="Next", form=POST), "nova.guarded_submit_form"),
        (CommitFacts("button", name="Send", near_composer=True), "nova.guarded_send_message"),
        (CommitFacts("button", name="Log in"), "nova.guarded_login"),
        (CommitFacts("button", name="Pay"), "nova.click_selector"),
        (CommitFacts("option", name="X", picker_label="Model"), "nova.guarded_switch_model"),
        (CommitFacts("option", name="X", picker_label="Workspace"), "nova.guarded_switch_sandbox"),
    ],
)
def test_suggested_tool(facts: CommitFacts, tool: str):
    point = classify_commit_point(facts)
    assert point is not None
    assert point.suggested_tool == tool
    assert point.why


VERBS = ["pay", "buy", "order", "delete", "remove", "confirm", "submit", "login"]


@UNHURRIED
@given(st.sampled_from(VERBS), st.text(alphabet=string.ascii_lowercase, min_size=1, max_size=6), st.booleans())
def test_part_of_a_longer_word_never_counts(verb: str, letters: str, before: bool):
    word = letters + verb if before else verb + letters
    words = commit_words()
    lists = ("payment", "delete", "confirm", "submit", "sign_in", "sign_up", "sign_out", "unsubscribe")
    listed = any(words.find(name, word) for name in lists)
    assert (kind(name=word) is not None) == listed
    if word not in {phrase.words[0] for name in lists for found in words.phrases[name].values() for phrase in found}:
        assert not listed


@UNHURRIED
@given(st.sampled_from(VERBS), st.sampled_from([str.upper, str.title, lambda t: f"  {t}!", lambda t: f"{t}…"]))
def test_case_and_punctuation_do_not_matter(verb: str, dress: object):
    assert kind(name=dress(verb)) == kind(name=verb) is not None  # type: ignore[operator]


@UNHURRIED
@given(
    st.builds(
        CommitFacts,
        tag=st.sampled_from(["a", "button", "input", "div", "textarea", "option"]),
        role=st.sampled_from(["", "button", "link", "option"]),
        name=st.text(max_size=40),
        id=st.text(max_size=10),
        is_link_href=st.booleans(),
        form=st.none() | st.builds(FormFacts, method=st.sampled_from(["", "get", "post"]), has_password=st.booleans()),
        near_composer=st.booleans(),
        trigger=st.sampled_from(["click", "enter"]),
        on_dialog_accept=st.booleans(),
    )
)
def test_page_text_never_reaches_the_reason(facts: CommitFacts):
    point = classify_commit_point(facts)
    if facts.on_dialog_accept:
        assert point is not None
    if point is not None:
        assert point.why.isascii()
        assert len(point.why) <= 80


def test_every_shipped_phrase_is_found_by_its_own_list():
    words = commit_words()
    for name, by_first in words.phrases.items():
        for phrases in by_first.values():
            for phrase in phrases:
                assert words.find(name, " ".join(phrase.words)) is not None, phrase
    assert words_of("Créer un COMPTE!") == ("creer", "un", "compte")
