"""What a new entry begins with: what was seen of its own controls, and everything that ever spoke against them."""

from dataclasses import replace

import pytest

from nova_mcp.memory.knowledge import store
from nova_mcp.memory.knowledge.store import Birth
from nova_mcp.memory.promotion import promoter
from nova_mcp.memory.promotion.model import DAY_MS, HOUR_MS
from nova_mcp.memory.promotion.promoter import Wish
from promotion_kit import FAILED, HERE, NOW, Site, added, hint, phenomenon

YESTERDAY = NOW - DAY_MS
DRAFT = Birth("generated")


@pytest.fixture
def site(db, build):
    return Site(db, build)


def proven(site, selector="#go", **more):
    """Three proofs in two sessions, of which no entry knew anything."""
    for at in (YESTERDAY, YESTERDAY + HOUR_MS, YESTERDAY + 2 * HOUR_MS):
        site.call(at, selector=selector, **more)


def promoted(site, stable_id, at=NOW):
    (decision,) = site.db.write_sync(promoter.promote, Wish(HERE, (stable_id,)), at)
    return decision


def test_what_was_proven_of_a_control_counts_for_the_entry_that_is_made_of_it(site):
    proven(site)
    put = added(site.db, phenomenon(created_at_ms=NOW), DRAFT)
    assert len(site.marks(put)) == 3
    assert promoted(site, "banner").applied


def test_what_somebody_claims_is_proven_by_the_visit_it_is_claimed_on_and_no_earlier_one(site):
    proven(site)
    put = added(site.db, phenomenon(created_at_ms=NOW))
    assert len(site.marks(put)) == 1


@pytest.mark.parametrize("renamed", [False, True])
def test_what_failed_under_one_name_is_not_washed_off_by_another(site, renamed):
    proven(site)
    added(site.db, phenomenon("first", created_at_ms=NOW - 20 * HOUR_MS))
    for minute in range(3):
        site.call(NOW - HOUR_MS + minute * 60_000, FAILED)
    retired = site.entry("first")
    assert retired.kept.deprecated
    if renamed:
        other = phenomenon("first", "#elsewhere").content
        gone = replace(retired, kept=replace(retired.kept, content=other))
        site.db.write_sync(lambda conn: store.save(conn, gone, visible=True))
    put = added(site.db, phenomenon("second", created_at_ms=NOW))
    assert sum(mark.outcome < 0 for mark in site.marks(put)) == 3
    decision = promoted(site, "second")
    assert not decision.applied


def test_a_selector_that_is_spelled_like_a_tool_or_a_claim_inherits_nothing_of_them(site):
    proven(site, selector=None)
    put = added(site.db, phenomenon(selector="nova.click_selector", created_at_ms=NOW))
    assert site.marks(put) == ()


def test_clicks_prove_items_and_never_that_something_is_an_ad(site):
    proven(site, selector="#ad")
    assert site.marks(added(site.db, hint(created_at_ms=NOW))) == ()
    noise = added(site.db, hint("noise", kind="noise_region", created_at_ms=NOW))
    items = added(site.db, hint("items", kind="result_item", created_at_ms=NOW), DRAFT)
    assert (len(site.marks(noise)), len(site.marks(items))) == (0, 3)
