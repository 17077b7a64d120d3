"""What learning has yet to see of a control before it is used, on both stores."""

from dataclasses import replace

from nova_mcp.memory.knowledge.matching.routes import route_of
from nova_mcp.memory.knowledge.model import Action, Playbook
from nova_mcp.memory.promotion.sightings import Unseen, unseen_at
from promotion_kit import HERE, NOW, added, hint, phenomenon

DESK = route_of("https://shop.test/desk")


def plain(name, **changes):
    """An entry whose control nobody has described."""
    made = phenomenon(name, **changes)
    playbook = Playbook("dismiss", (Action("click", "#go"),))
    return replace(made, content=replace(made.content, playbook=playbook))


def test_nothing_is_missing_where_nothing_is_known(db):
    assert db.read_sync(unseen_at, HERE, "#go", DESK) == Unseen()


def test_entries_on_this_route_that_act_through_the_control_say_what_they_miss(db):
    added(db, replace(plain("open"), unconfirmed=("#layer",)))
    added(db, plain("elsewhere", routes=("other",)))
    added(db, replace(plain("gone"), deprecated_reason="gone", unconfirmed=("#old",)))
    added(db, phenomenon("known"))
    assert db.read_sync(unseen_at, HERE, "#go", DESK).selectors == ("#layer", "#go")
    assert db.read_sync(unseen_at, HERE, "#other", DESK) == Unseen()


def test_lists_that_it_may_stand_in_are_named_and_retired_ones_are_not(db):
    items = hint("items", kind="result_item", created_at_ms=NOW)
    added(db, items)
    added(db, hint("old", kind="result_item", deprecated_reason="gone", selectors=("#old",)))
    added(db, hint("ads", selectors=("#ads",)))
    assert db.read_sync(unseen_at, HERE, "#go", DESK).lists == (items,)
