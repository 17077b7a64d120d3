"""Buttons of the large languages of the web: which of them commit, and which stay free."""

import json
from pathlib import Path

import pytest

from nova_mcp.browser.commits.commit_points import CommitFacts, classify_commit_point

LABELS: dict[str, dict[str, list[str]]] = json.loads(Path(__file__).with_name("commit_labels.json").read_text("utf-8"))


def commits(label: str) -> bool:
    return classify_commit_point(CommitFacts("button", "button", name=label)) is not None


@pytest.mark.parametrize("language", LABELS)
def test_a_button_that_commits_in_its_language_needs_a_contract(language: str):
    assert [label for label in LABELS[language]["commits"] if not commits(label)] == []


@pytest.mark.parametrize("language", LABELS)
def test_a_button_that_only_shows_filters_or_leads_on_stays_free(language: str):
    assert [label for label in LABELS[language]["free"] if commits(label)] == []


def test_at_least_twenty_four_languages_are_read():
    assert len(LABELS) >= 24


@pytest.mark.parametrize(
    "label",
    [
        "P\u0430y now",
        "\u0440\u0430\u0443",
        "D\u0435l\u0435t\u0435 account",
        "P\u200ba\u2060y",
        "\uff30\uff41\uff59 now",
        "\U0001d40f\U0001d41a\U0001d432",
        "\u24c5\u24d0\u24e8",
        "\u1d18\u1d00\u028f now",
        "P a y",
        "P.a.y n.o.w",
        "De-lete",
        "de1ete",
        "$499 \u2013 Pay",
        "Show details | Pay $499",
        "Review and pay",
        "Please delete",
        "PAY NOW",
    ],
)
def test_no_spelling_hides_a_verb(label: str):
    assert commits(label)


@pytest.mark.parametrize(
    "label",
    ["Order history", "Reorder columns", "Deleted items", "Payments", "Sort order", "Pre-ordered", "Web 3.0", "Go"],
)
def test_parts_of_names_and_of_words_are_no_verbs(label: str):
    assert not commits(label)
