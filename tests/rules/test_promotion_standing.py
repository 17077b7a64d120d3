"""What promotion sees of an entry and what it gives back: nothing is lost on the way, nothing else is touched."""

from dataclasses import fields, replace

from nova_mcp.memory.knowledge.model import (
    Content,
    DomainHint,
    FailureRun,
    Fingerprint,
    Health,
    HintId,
    Phenomenon,
    ScopeName,
    Signal,
    StableId,
    Standing,
)
from nova_mcp.memory.knowledge.store import Shelved
from nova_mcp.memory.promotion.gates.entries import entry_of, with_entry

STANDING = Standing(3, 4, 5, disproven=True, run=FailureRun(1, 2, 3, "c"))
PHENOMENON = Phenomenon(
    StableId("banner"),
    Content("modal", Fingerprint((Signal("dom", "#m"),))),
    level=1,
    created_at_ms=1,
    updated_at_ms=2,
    revision=6,
    deprecated_reason="gone",
    health=Health(attempts=2),
    unconfirmed=("#a", "#b"),
    standing=STANDING,
)
HINT = DomainHint(
    HintId("ads"), "ad_container", ("#ad",), 1, 2, level=2, revision=3, health=Health(failures=1), standing=STANDING
)
KEPT = (Shelved(7, ScopeName("shop.test"), "current", PHENOMENON), Shelved(8, ScopeName("shop.test"), "pending", HINT))


def test_every_field_of_an_entry_comes_from_what_is_kept():
    entry = entry_of(KEPT[0])
    assert (entry.stable_id, entry.host, entry.phenomenon_type) == ("banner", "shop.test", "modal")
    assert (entry.level, entry.revision, entry.deprecated, entry.deprecated_reason) == (1, 6, True, "gone")
    assert (entry.unconfirmed_selectors, entry.created_at_ms, entry.health) == (2, 1, Health(attempts=2))
    for field in fields(Standing):
        assert getattr(entry, field.name) == getattr(STANDING, field.name)
    hint = entry_of(KEPT[1])
    assert (hint.stable_id, hint.phenomenon_type, hint.level, hint.unconfirmed_selectors) == (
        "ads",
        "ad_container",
        2,
        0,
    )


def test_an_entry_that_did_not_change_goes_back_as_it_was():
    for shelved in KEPT:
        assert with_entry(shelved, entry_of(shelved)) == shelved


def test_what_changed_is_kept_and_the_rest_stays():
    moved = replace(entry_of(KEPT[0]), level=2, deprecated=False, disproven=False, unsettled_at_ms=99, run=FailureRun())
    after = with_entry(KEPT[0], moved, 50)
    assert entry_of(after) == replace(moved, deprecated_reason=None)
    assert (after.kept.updated_at_ms, after.kept.content, after.kept.unconfirmed) == (
        50,
        PHENOMENON.content,
        PHENOMENON.unconfirmed,
    )
