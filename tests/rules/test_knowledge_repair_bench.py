"""The measurement of repairs: its pages are reproducible, its truth is its own, and it counts what it says."""

import random

import pytest
from bench.repair import Score, Trial, bare, guarded, scored, trials_of
from bench.repair_labs import lab_pairs, lab_trials, nothing_stored
from bench.repair_pages import STRENGTHS, made_pair
from bench.repair_sites import SITES, Site
from bench.repair_truth import (
    FOLDER,
    Heading,
    Label,
    Labels,
    Mislabelled,
    drafted,
    keys_of,
    read_labels,
    site_labels,
    truth_of,
)

from nova_mcp.memory.knowledge.model import ElementPrint
from nova_mcp.memory.knowledge.repair.repair import PageElement, assess


def test_the_same_seed_makes_the_same_pages():
    one, other = (made_pair(STRENGTHS[1], random.Random(5)) for _ in range(2))
    assert one == other
    assert one != made_pair(STRENGTHS[1], random.Random(6))


def test_every_old_element_became_one_node_or_none():
    for how in STRENGTHS:
        pair = made_pair(how, random.Random(1))
        nodes = [node for node in pair.truth if node is not None]
        assert len(pair.truth) == len(pair.before)
        assert len(nodes) == len(set(nodes)) <= len(pair.after)
        assert [one.node for one in pair.after] == list(range(len(pair.after)))


def test_scores_add_up_and_guards_only_abstain_more():
    trials = trials_of([made_pair(STRENGTHS[2], random.Random(seed)) for seed in (1, 5)])
    careful, careless = scored(trials, guarded(0.0)), scored(trials, bare(0.0))
    assert careful.total == careless.total == len(trials)
    assert careful.wrong <= careless.wrong
    assert careful.proposed <= careless.proposed
    assert careless.wrong > 0


# -- labels of real pages

HOME = ElementPrint("a", text="Home", href="/")
EMAIL = ElementPrint("input", "email", text="Email")
SEND = ElementPrint("button", "submit", text="Send")
MORE = ElementPrint("a", text="More")
LABELLED = """# how it was labelled
== 1.0 a.html > 2.0 b.html
= a "Home" /
~ input:email "Email" >> input:email "Your email" mail
~ a "More" >> a "More" || a "More" #2
- button "Send"
? a "More" #2
+ a "New"
"""
NEW = [
    HOME,
    ElementPrint("input", "email", "mail", "Your email"),
    MORE,
    MORE,
    ElementPrint("a", text="New"),
]


def test_an_element_is_written_by_what_it_is_called_and_where_it_leads_and_numbered_where_that_repeats():
    assert keys_of([HOME, EMAIL, MORE, MORE]) == ['a "Home" /', 'input:email "Email"', 'a "More"', 'a "More" #2']


def test_labels_say_what_became_of_every_element():
    (heading, labels), *rest = read_labels(LABELLED).items()
    assert (heading, rest) == (Heading("1.0", "a.html", "2.0", "b.html"), [])
    assert str(heading) == "== 1.0 a.html > 2.0 b.html"
    found = truth_of(labels, [HOME, EMAIL, MORE, SEND, MORE], NEW)
    assert found == [frozenset({0}), frozenset({1}), frozenset({2, 3}), frozenset(), None]


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ([HOME], [HOME, MORE], "not accounted for"),
        ([HOME, MORE], [HOME], "not labelled"),
        ([], [HOME], "not on the old page"),
        ([HOME], [], "not on the new page"),
    ],
)
def test_labels_that_do_not_fit_their_pages_are_refused(old, new, complaint):
    labels = Labels((Label('a "Home" /', ('a "Home" /',)),))
    with pytest.raises(Mislabelled, match=complaint):
        truth_of(labels, old, new)


@pytest.mark.parametrize("text", ["= a", "== 1.0 a.html\n", "== 1 a > 2 b\n! a", "== 1 a > 2 b\n~ a"])
def test_a_line_that_is_no_label_is_refused(text):
    with pytest.raises(Mislabelled):
        read_labels(text)


def test_a_draft_takes_only_what_is_written_alike_and_equally_often():
    lines = list(drafted(Heading("1", "a", "2", "b"), [HOME, MORE, SEND], [HOME, MORE, MORE]))
    assert lines == ["== 1 a > 2 b", '= a "Home" /', '- a "More"', '- button "Send"', '+ a "More"', '+ a "More" #2', ""]
    (labels,) = read_labels("\n".join(lines)).values()
    assert truth_of(labels, [HOME, MORE, SEND], [HOME, MORE, MORE]) == [frozenset({0}), frozenset(), frozenset()]


def test_every_site_is_labelled_page_by_page():
    assert {file.stem for file in FOLDER.glob("*.txt")} == {site.name for site in SITES}
    for site in SITES:
        wanted = {
            Heading(site.versions[old][0], site.path(page, old), site.versions[new][0], site.path(page, new))
            for page, old, new in site.pairs()
        }
        labelled = site_labels(site.name)
        assert set(labelled) == wanted
        for heading, labels in labelled.items():
            olds = [label.old for label in labels.labels]
            assert len(olds) == len(set(olds)), heading
            became = {key for label in labels.labels for key in label.became or ()}
            assert not became & set(labels.added), heading


def test_sites_with_several_versions_are_both_studied_and_kept_for_the_end():
    assert {site.use for site in SITES} == {"tuning", "held out"}
    assert all(len(site.versions) >= 2 for site in SITES)
    assert all(len(paths) in (1, len(site.versions)) for site in SITES for paths in site.pages)


def elements(*prints):
    return tuple(PageElement(10 + at, one, f"#n{at}", at) for at, one in enumerate(prints))


def test_pages_that_do_not_fit_their_labels_are_left_out(monkeypatch, capsys):
    site = Site("made", "made", "tuning", (("1.0", ""), ("2.0", "")), (("a.html",),))
    good = {Heading("1.0", "a.html", "2.0", "a.html"): Labels((Label('a "Home" /', ('a "Home" /',)),))}
    monkeypatch.setattr("bench.repair_labs.site_labels", lambda name: good)
    seen = {("made", "1.0"): {"a.html": elements(HOME)}, ("made", "2.0"): {"a.html": elements(HOME)}}
    (pair,) = lab_pairs([site], seen)
    assert pair.truth == (frozenset({10}),)
    (trial,) = lab_trials([pair])
    assert trial.found is not None
    assert trial.found.candidate.node == 10
    assert lab_trials([pair], nothing_stored)[0].found.mutual is None
    assert list(lab_pairs([site], {**seen, ("made", "2.0"): {"a.html": elements(HOME, MORE)}})) == []
    assert "not accounted for" in capsys.readouterr().err


def test_what_is_gone_counts_as_spared_or_wrong_and_any_of_several_right_answers_is_right():
    page = elements(HOME, SEND)
    found = assess(HOME, page, [HOME, EMAIL, SEND])
    trials = [
        Trial(frozenset({10}), found),
        Trial(frozenset({10, 11}), found),
        Trial(frozenset({11}), found),
        Trial(frozenset(), found),
        Trial(frozenset(), None),
        Trial(frozenset({10}), None),
    ]
    assert scored(trials, guarded(0.0)) == Score(right=2, wrong=2, abstained=2, spared=1)
