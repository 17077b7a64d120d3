"""Knowledge in the store: an entry comes back as it was put in, selectors lead to it, and changes can be told."""

from dataclasses import replace

from nova_mcp.memory.knowledge import store
from nova_mcp.memory.knowledge.model import (
    Action,
    Content,
    Context,
    DayCount,
    DomainHint,
    ElementPrint,
    FailureRun,
    Fingerprint,
    Health,
    HintId,
    Phenomenon,
    Playbook,
    ScopeName,
    Signal,
    StableId,
    Standing,
    VerifyStep,
)
from nova_mcp.memory.knowledge.store import Birth
from nova_mcp.verification.model import Assertion

HERE = ScopeName("shop.example")


def phenomenon(stable_id: str = "banner", **changes: object) -> Phenomenon:
    seen = ElementPrint("button", text="No thanks", classes=("btn",), place=(0.5, 1.0))
    content = Content(
        "consent_cmp",
        Fingerprint((Signal("dom", "#cmp"), Signal("text", "cookies", "en")), 0.7),
        Playbook(
            "reject_preferred",
            (Action("click", "#cmp >  button.no", ("#no",), seen, polarity="reject"), Action("wait", wait_ms=50)),
            (
                VerifyStep("absent", "#cmp"),
                VerifyStep("obstruction_cleared", threshold=0.0),
                VerifyStep("fact", assertion=Assertion("url.path", "equals", None)),
                VerifyStep("fact", assertion=Assertion("dialog.open", "exists")),
            ),
        ),
        Context(locale="en", routes=("feed", "in/*")),
    )
    made = Phenomenon(
        stable_id=StableId(stable_id),
        content=content,
        level=1,
        created_at_ms=10,
        updated_at_ms=20,
        revision=3,
        health=Health(attempts=2, successes=1, recent=(DayCount(4, 0, 1, 1),), clean=("a",), last_success_at_ms=9),
        baseline=frozenset({Signal("dom", "#cmp")}),
        drift_debt=0.25,
        unconfirmed=("#no",),
        standing=Standing(unsettled_at_ms=5, run=FailureRun(uses=1, last_call_id="c")),
    )
    return replace(made, **changes)


def test_an_entry_comes_back_as_it_was_put_in(db):
    put = db.write_sync(store.add, HERE, phenomenon(), Birth("generated", "lcj_ck_1"))
    assert db.read_sync(store.find, HERE, "banner") == (put,)
    changed = replace(put, kept=replace(put.kept, level=2, deprecated_reason="old", health=Health()))
    db.write_sync(store.save, changed, visible=True)
    assert db.read_sync(store.entries, HERE) == [changed]


def test_a_hint_comes_back_as_it_was_put_in(db):
    hint = DomainHint(HintId("ads"), "result_item", ("li.item",), 1, 2, "item_root", (("title", "h3"),), 20)
    put = db.write_sync(store.add, HERE, hint, Birth())
    assert db.read_sync(store.by_ids, [put.entry_id]) == [put]


def test_selectors_lead_to_the_entries_that_act_through_them(db):
    put = db.write_sync(store.add, HERE, phenomenon(), Birth())
    (owner,) = db.read_sync(store.owners, HERE, "#cmp > button.no")
    assert (owner.entry_id, owner.deprecated, owner.content.context.routes) == (put.entry_id, False, ("feed", "in/*"))
    assert db.read_sync(store.owners, HERE, "#cmp") == []
    assert db.read_sync(store.owners, "other.example", "#no") == []
    db.write_sync(store.save, replace(put, kept=replace(put.kept, deprecated_reason="gone")), visible=True)
    assert [one.deprecated for one in db.read_sync(store.owners, HERE, "#no")] == [True]


def test_a_reader_sees_only_visible_changes_and_a_cache_sees_all(db):
    put = db.write_sync(store.add, HERE, phenomenon(), Birth())
    db.write_sync(store.save, replace(put, kept=replace(put.kept, drift_debt=0.3)), visible=False)
    scope = db.read_sync(store.scope_row, HERE)
    assert (scope.content_rev, db.read_sync(store.state_rev, HERE)) == (1, 2)
    assert db.read_sync(store.state_rev, ScopeName("nowhere.example")) == 0


def test_a_newer_revision_takes_the_place_of_the_one_before(db):
    old = db.write_sync(store.add, HERE, phenomenon(level=2), Birth())
    new = db.write_sync(store.add, HERE, phenomenon(revision=4), Birth(slot="pending"))
    assert store.paired(db.read_sync(store.find, HERE, "banner")).pending == new.kept
    assert db.read_sync(store.count, HERE) == 1
    db.write_sync(store.keep_surroundings, old.entry_id, [ElementPrint("a")], 5)
    taken = db.write_sync(store.succeed, replace(new, kept=replace(new.kept, level=2)))
    assert db.read_sync(store.find, HERE, "banner") == (taken,)
    assert (taken.slot, taken.kept.revision) == ("current", 4)
    assert db.read_sync(store.surroundings, old.entry_id) is None


def test_surroundings_are_replaced_as_a_whole(db):
    put = db.write_sync(store.add, HERE, phenomenon(), Birth())
    assert db.read_sync(store.surroundings, put.entry_id) is None
    for prints in ([ElementPrint("a", text="one")], [ElementPrint("a"), ElementPrint("input", name="q")]):
        db.write_sync(store.keep_surroundings, put.entry_id, prints, 5)
        assert db.read_sync(store.surroundings, put.entry_id) == tuple(prints)


def test_scopes_are_listed_by_name_and_prefix(db):
    for name in ("b.example", "a.example", "a%.example"):
        db.write_sync(store.add, ScopeName(name), phenomenon(), Birth())
    assert [one.name for one, _ in db.read_sync(store.scopes)] == ["a%.example", "a.example", "b.example"]
    assert [one.name for one, _ in db.read_sync(store.scopes, "a%")] == ["a%.example"]
    assert [one.name for one, _ in db.read_sync(store.scopes, "", "a.example")] == ["b.example"]
