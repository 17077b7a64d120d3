"""What a page showed, as the knowledge rules read it, and what stored entries have it asked."""

import pytest

from nova_mcp.browser.read.knowledge_check import page_signs
from nova_mcp.core.page.control_labels import ControlFacts
from nova_mcp.core.page.looks import ElementSeen, PrintSeen, SelectorSeen, SignalsSeen, VendorSign, WantedSignals
from nova_mcp.memory.knowledge.matching.fingerprints import match
from nova_mcp.memory.knowledge.matching.page_facts import (
    live_looks,
    observed_signals,
    page_elements,
    print_of,
    surroundings,
    wanted_of,
)
from nova_mcp.memory.knowledge.model import (
    Action,
    Alias,
    Content,
    ElementPrint,
    Fingerprint,
    Phenomenon,
    Platform,
    PlatformId,
    Playbook,
    Signal,
    StableId,
)
from nova_mcp.memory.knowledge.repair.repair import PageElement
from nova_mcp.memory.knowledge.writes.content_rules import check_live

REJECT = ControlFacts(texts=("Reject all",))


def phenomenon(*signals: Signal, baseline: tuple[Signal, ...] = ()) -> Phenomenon:
    content = Content("modal", Fingerprint(signals))
    return Phenomenon(StableId("p"), content, 1, 0, 0, baseline=frozenset(baseline))


def test_a_print_that_comes_from_a_page_keeps_every_field_within_its_bounds():
    seen = PrintSeen(
        "BUTTON",
        "submit",
        "n",
        "Save\u202e now",
        "/a",
        "i",
        "t",
        "button",
        "aria",
        ("c",) * 40,
        ("x" * 99,),
        "a/b",
        (0.5, 1),
        "fa fa-save" + "x" * 99,
    )
    kept = print_of(seen)
    assert kept == ElementPrint(
        *("button", "submit", "n", "Save now", "/a", "i", "t", "button", "aria", ("c",) * 12, ("x" * 60,), "a/b"),
        place=(0.5, 1),
        picture="fa fa-save" + "x" * 50,
    )
    found = page_elements([ElementSeen(7, seen, "#i"), ElementSeen(3, seen)])
    assert found == (PageElement(7, kept, "#i", 0), PageElement(3, kept, None, 1))


def test_a_selector_that_time_did_not_suffice_for_counts_as_not_looked_for():
    seen = {"#a": SelectorSeen("#a", 1, True, True, control=REJECT), "#b": SelectorSeen("#b", 0, unread=True)}
    looks = live_looks(seen)
    assert set(looks) == {"#a"}
    actions = (Action("click", "#a", polarity="reject"), Action("click", "#b", polarity="reject"))
    verdict = check_live(
        Content("consent_cmp", Fingerprint((Signal("dom", "#a"),)), Playbook("custom", actions)), looks
    )
    assert verdict.problems == ()
    assert verdict.unconfirmed == ("#b",)


def test_what_holds_on_the_page_matches_a_fingerprint_kind_by_kind():
    seen = SignalsSeen(("#a",), ("We use cookies",), ("onetrust",), ("scroll_locked",), ("full_overlay",))
    signals = (
        Signal("dom", "#a"),
        Signal("text", "we  USE cookies"),
        Signal("vendor", "onetrust"),
        Signal("interaction", "scroll_locked"),
        Signal("layout", "full_overlay"),
    )
    assert match(Fingerprint(signals), observed_signals(seen)).confidence == 1
    crossed = tuple(Signal("layout" if one.kind != "layout" else "dom", one.match) for one in signals)
    assert match(Fingerprint(crossed), observed_signals(seen)).confidence == 0


def test_a_page_is_asked_for_every_signal_of_the_entries_and_their_baselines_once():
    entries = (
        phenomenon(Signal("dom", "#a > b"), Signal("text", "Hello"), Signal("layout", "full_overlay")),
        phenomenon(Signal("dom", "#a>b"), Signal("text", "hello"), baseline=(Signal("dom", "#old"),)),
    )
    assert wanted_of(entries) == WantedSignals(dom=("#a > b", "#old"), text=("Hello",))


def test_vendors_are_asked_for_by_their_aliases_and_strangers_by_their_script_host():
    platform = Platform(
        PlatformId("acme"), "Acme", aliases=(Alias("script_host", "CDN.acme.example"), Alias("dom_marker", "#acme"))
    )
    entry = phenomenon(Signal("vendor", "acme"), Signal("vendor", "js.other.example"), Signal("vendor", "somebody"))
    assert wanted_of([entry], [platform]).vendors == (
        VendorSign("acme", ("cdn.acme.example",), ("#acme",)),
        VendorSign("js.other.example", ("js.other.example",)),
    )


@pytest.mark.parametrize(
    ("at", "most", "first", "last"),
    [(0, 5, 0, 4), (2, 5, 0, 4), (10, 5, 8, 12), (19, 5, 15, 19), (7, 80, 0, 19), (7, 1, 7, 7), (19, 6, 14, 19)],
)
def test_surroundings_are_the_nearest_elements_in_the_order_of_the_page(at, most, first, last):
    prints = [ElementPrint("a", text=str(index)) for index in range(20)]
    found = surroundings(prints, prints[at], most)
    assert found == tuple(prints[first : last + 1])
    assert prints[at] in found


def test_an_element_that_is_not_on_the_page_has_no_surroundings():
    assert surroundings([ElementPrint("a")], ElementPrint("b")) == ()
    assert surroundings([], ElementPrint("b")) == ()


def test_the_fixed_signs_each_say_what_they_mean_and_every_framework_has_a_mark():
    signs = page_signs()
    assert all(
        isinstance(text, str) and text.endswith(".")
        for kind in ("interaction", "layout")
        for text in signs[kind].values()
    )
    assert all(marks for marks in signs["frameworks"].values())
