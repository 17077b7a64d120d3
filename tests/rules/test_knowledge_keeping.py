"""What a page's answer means for a write, what is kept of its elements, hints, and what kind of service a site is."""

from dataclasses import replace

import pytest

from nova_mcp.memory.knowledge.matching.categories import built_in_categories, categories, categories_of, known_hosts
from nova_mcp.memory.knowledge.matching.fingerprints import ObservedSignal
from nova_mcp.memory.knowledge.model import (
    MAX_PHENOMENA,
    Action,
    Content,
    DomainHint,
    ElementPrint,
    Fingerprint,
    Phenomenon,
    Playbook,
    Scope,
    ScopeName,
    Signal,
    StableId,
)
from nova_mcp.memory.knowledge.scopes import scope_of
from nova_mcp.memory.knowledge.writes.content_rules import LiveLook
from nova_mcp.memory.knowledge.writes.hint_rules import HintPair, HintWritten, hint_upserted
from nova_mcp.memory.knowledge.writes.page_check import PageCheck, harmless
from nova_mcp.memory.knowledge.writes.rules import Refused

NOW = 1_000_000
BUTTON = ElementPrint("button", text="No thanks", neighbours=("Yes please", "Our policy"))
CONTENT = Content(
    "modal",
    Fingerprint((Signal("dom", "#bar"), Signal("text", "Welcome"))),
    Playbook("dismiss", (Action("click", "#no", ("#close",)),)),
)
KNOWN = Phenomenon(StableId("bar"), CONTENT, 1, 1, 1, unconfirmed=("#close",))
ALL = {"#bar": LiveLook(1), "#no": LiveLook(1, True), "#close": LiveLook(1, True)}


# -- what the page said


def test_what_was_found_is_confirmed_and_what_was_not_is_told() -> None:
    check = PageCheck(NOW, {**ALL, "#close": LiveLook(0)}, observed=(ObservedSignal("#bar", "dom"),))
    live = check.live(CONTENT, None)
    assert (live.verdict.unconfirmed, live.held) == (("#close",), frozenset({Signal("dom", "#bar")}))
    assert PageCheck(NOW, ALL).live(CONTENT, None).verdict.passed


def test_what_was_seen_before_and_not_asked_for_now_stays_seen() -> None:
    none_asked = PageCheck(NOW)
    assert none_asked.live(CONTENT, None).verdict.unconfirmed == ("#bar", "#no", "#close")
    assert none_asked.live(CONTENT, KNOWN).verdict.unconfirmed == ("#close",)
    gone = PageCheck(NOW, {"#no": LiveLook(0)})
    assert gone.live(CONTENT, KNOWN).verdict.unconfirmed == ("#no", "#close")


def test_a_retired_entry_has_everything_to_prove() -> None:
    retired = replace(KNOWN, deprecated_reason="gone")
    assert PageCheck(NOW).live(CONTENT, retired).verdict.unconfirmed == ("#bar", "#no", "#close")


def test_a_page_that_an_agent_scripted_can_only_speak_against_a_write() -> None:
    check = PageCheck(NOW, {**ALL, "#no": LiveLook(3, True)}, prints={"#no": BUTTON}, distrusted=True)
    live = check.live(CONTENT, None)
    assert live.verdict.unconfirmed == ("#bar", "#no", "#close")
    assert [one.code for one in live.verdict.problems] == ["pks.selector_too_broad"]
    assert check.printed(CONTENT, None) == CONTENT


def test_an_element_is_described_from_the_page_else_from_where_it_was_seen_before() -> None:
    (action,) = PageCheck(NOW, prints={"#close": BUTTON}).printed(CONTENT, None).playbook.actions
    assert action.element == BUTTON
    older = replace(BUTTON, text="Not now")
    seen = replace(KNOWN, content=replace(CONTENT, playbook=Playbook("dismiss", (replace(action, element=older),))))
    (kept,) = PageCheck(NOW).printed(CONTENT, seen).playbook.actions
    assert kept.element == older
    (fresh,) = PageCheck(NOW, prints={"#no": BUTTON}).printed(CONTENT, seen).playbook.actions
    assert fresh.element == BUTTON


@pytest.mark.parametrize(
    "text", ["4111 1111 1111 1111", "password: hunter22", "javascript:alert(1)", "<script>x</script>", "the-secret-one"]
)
def test_nothing_of_an_element_is_kept_that_nobody_should_keep(text: str) -> None:
    shown = replace(BUTTON, text=text, name=text, neighbours=(text, "Our policy"))
    kept = harmless(shown, lambda given: given.replace("the-secret-one", "***"))
    assert (kept.text, kept.name, kept.neighbours, kept.tag) == ("", "", ("Our policy",), "button")
    assert harmless(BUTTON) is BUTTON or harmless(BUTTON) == BUTTON


# -- hints


def hint(**changes: object) -> DomainHint:
    return replace(DomainHint("ads", "ad_container", ("#ad",), NOW, NOW), **changes)


def written(found: HintPair | None, wish: DomainHint, missing: tuple[str, ...] = (), entries: int = 1) -> HintWritten:
    done = hint_upserted(found, wish, missing, entries=entries)
    assert isinstance(done, HintWritten)
    return done


def test_a_new_hint_is_in_review_and_a_full_scope_takes_none() -> None:
    assert (written(None, hint()).kind, written(None, hint()).written.level) == ("created", 1)
    full = hint_upserted(None, hint(), (), entries=MAX_PHENOMENA)
    assert isinstance(full, Refused)
    assert full.problems[0].code == "pks.scope_full"
    assert written(HintPair(hint()), hint(selectors=("#b",)), entries=MAX_PHENOMENA).kind == "updated"


def test_a_hint_that_guides_is_left_alone() -> None:
    active = HintPair(hint(level=2, revision=4))
    assert written(active, hint()).kind == "unchanged"
    done = written(active, hint(selectors=("#b",)))
    assert (done.pair.current, done.pair.pending.revision, done.pair.pending.level) == (active.current, 5, 1)
    third = written(done.pair, hint(selectors=("#c",)))
    assert (third.pair.current, third.pair.pending.revision) == (active.current, 6)


def test_a_draft_becomes_a_hint_when_it_is_written_by_hand() -> None:
    done = written(HintPair(hint(level=0)), hint())
    assert (done.kind, done.written.level, done.written.revision) == ("updated", 1, 1)


def test_a_retired_hint_comes_back_only_if_something_of_it_is_seen() -> None:
    gone = HintPair(hint(level=0, deprecated_reason="old"))
    assert written(gone, hint(), ("#ad",)).kind == "unchanged"
    back = written(gone, hint())
    assert (back.kind, back.written.level, back.written.deprecated) == ("reactivated", 1, False)
    assert written(gone, hint(selectors=("#b",)), ("#b",)).written.deprecated


def test_what_will_not_last_or_is_not_there_is_warned_about() -> None:
    told = written(None, hint(selectors=(".css-1a2b3c", "#ad")), ("#ad",)).warnings
    assert len(told) == 2


# -- kinds of service


def test_the_table_holds_hosts_as_scopes_spell_them() -> None:
    every = [host for hosts in known_hosts().values() for host in hosts]
    assert all(scope_of(host) == host for host in every)
    assert {"banking", "health", "shopping"} <= set(categories())
    assert all(len(hosts) == len(set(hosts)) for hosts in known_hosts().values())


@pytest.mark.parametrize(
    ("scope", "found"),
    [
        ("amazon.com", ("shopping",)),
        ("www.amazon.com", ("shopping",)),
        ("www.amazon.com:8443", ("shopping",)),
        ("notamazon.com", ()),
        ("amazon.com.evil.example", ()),
        ("xn--mazon-3ve.com", ()),
        ("[::1]:8080", ()),
    ],
)
def test_a_host_below_a_known_one_is_of_its_kind_and_a_look_alike_is_not(scope: str, found: tuple[str, ...]) -> None:
    assert built_in_categories(ScopeName(scope)) == found


def test_what_was_said_about_a_site_goes_before_the_table() -> None:
    assert categories_of(Scope(ScopeName("amazon.com"))) == ("shopping",)
    assert categories_of(Scope(ScopeName("amazon.com"), service_categories=("music",))) == ("music",)
