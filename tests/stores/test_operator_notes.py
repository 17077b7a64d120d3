"""Operator Notes as both stores keep them: one text once, revisions, limits, and whose note it is."""

from itertools import count

import pytest
from sqlalchemy import insert, select, update

from nova_mcp.core.clock import SystemClock, SystemIds
from nova_mcp.memory.notes import operator_store
from nova_mcp.memory.notes.operator_store import Draft, Refused, Stale, matched, page, remove, store, united, visible_to
from nova_mcp.memory.notes.rules import DAY_MS, IDLE_MS
from nova_mcp.memory.notes.service import NoteKeeper
from nova_mcp.memory.notes.tables import operator_note
from nova_mcp.settings import NoteSettings

NOW = 1_800_000_000_000


@pytest.fixture
def put(db):
    numbers = count(1)

    def write(content="Check the cart", tags=("cart",), category=None, source="agent", now=NOW, **more):
        draft = Draft(more.pop("principal", "local"), content, tuple(tags), category, source, **more)
        return db.write_sync(store, draft, now, lambda: f"{next(numbers):032x}")

    return write


def stored(db):
    return db.read_sync(lambda conn: conn.execute(select(operator_note).order_by(operator_note.c.note_id)).all())


def test_a_new_note_starts_at_revision_one(put):
    made = put(category="shop")
    assert (made.action, made.note.rev, made.count, made.deduplicated, made.evicted) == ("created", 1, 1, False, 0)


def test_the_same_text_again_is_one_note_with_the_tags_of_both(db, put):
    first = put("Check  the CART", tags=("cart", "Shop"), category="old")
    again = put("check the cart", tags=("shop", "till"), now=NOW + 5)
    assert (again.action, again.deduplicated, again.note.note_id) == ("updated", True, first.note.note_id)
    assert again.note.tags == ("cart", "Shop", "till")
    assert (again.note.rev, again.note.updated_at_ms, again.note.category) == (2, NOW + 5, "old")
    assert again.note.content == "Check  the CART"
    assert len(stored(db)) == 1


def test_of_many_tags_the_first_twenty_stay(put):
    put(tags=[f"a{number}" for number in range(15)])
    again = put(tags=[f"b{number}" for number in range(15)])
    assert again.note.tags == (*(f"a{number}" for number in range(15)), *(f"b{number}" for number in range(5)))
    assert united(("Tag",), ("tag", "TAG ")) == ("Tag",)


@pytest.mark.parametrize("principal", ["local", "*"])
def test_the_same_text_as_the_users_changes_nothing(db, put, principal):
    put(source="user", principal=principal)
    before = stored(db)
    again = put(tags=("other",), now=NOW + 1)
    assert (again.action, again.note.source) == ("unchanged", "user")
    assert stored(db) == before


def test_text_of_another_principal_is_not_seen(db, put):
    put(principal="ada")
    assert put().action == "created"
    assert [one.principal for one in db.read_sync(visible_to, "local")] == ["local"]


def test_an_update_keeps_what_it_does_not_name_and_raises_the_revision(db, put):
    made = put(category="shop")
    changed = put("New text", ("new",), now=NOW + 9, note_id=made.note.note_id, expected_rev=1)
    assert (changed.action, changed.note.rev, changed.note.category) == ("updated", 2, "shop")
    assert (changed.note.content, changed.note.tags, changed.note.updated_at_ms) == ("New text", ("new",), NOW + 9)
    assert (changed.note.created_at_ms, changed.count) == (NOW, 1)
    same = put("New text", ("new",), now=NOW + 10, note_id=made.note.note_id)
    assert (same.action, same.note.rev, same.note.updated_at_ms) == ("unchanged", 2, NOW + 9)


def test_a_changed_note_is_found_by_its_new_text(put):
    made = put()
    put("New text", note_id=made.note.note_id)
    assert put("new TEXT").note.note_id == made.note.note_id
    assert put().action == "created"


def test_an_unknown_note_is_not_created_under_another_id(db, put):
    assert put(note_id="f" * 32) == Refused("missing")
    theirs = put(principal="ada")
    assert put("x", note_id=theirs.note.note_id) == Refused("missing")
    assert len(stored(db)) == 1


def test_a_stale_revision_changes_nothing(db, put):
    made = put()
    before = stored(db)
    assert put("x", note_id=made.note.note_id, expected_rev=2) == Stale(made.note.note_id, 1)
    assert put(expected_rev=7) == Stale(made.note.note_id, 1)
    assert put("new one", expected_rev=1) == Stale(None, 0)
    assert stored(db) == before


@pytest.mark.parametrize("principal", ["local", "*"])
def test_an_agent_neither_changes_nor_deletes_what_the_user_wrote(db, put, principal):
    made = put(source="user", principal=principal)
    before = stored(db)
    assert put("x", note_id=made.note.note_id) == Refused("user_owned")
    assert db.write_sync(remove, "local", made.note.note_id, "agent") == "user_owned"
    assert stored(db) == before
    assert db.write_sync(remove, "local", made.note.note_id, "user") == "deleted"


def test_deleting_takes_only_ones_own(db, put):
    theirs, mine = put(principal="ada"), put()
    assert db.write_sync(remove, "local", theirs.note.note_id, "agent") == "missing"
    assert db.write_sync(remove, "local", mine.note.note_id, "agent") == "deleted"
    assert [row.principal for row in stored(db)] == ["ada"]


def fill(db, number, **more):
    given = {"principal": "local", "tags": "[]", "source": "agent", "rev": 1, "match_count": 0}
    given |= {"created_at_ms": NOW, "updated_at_ms": NOW, **more}
    rows = [
        {"note_id": f"f{index:031x}", "content": f"text {index}", "identity_hash": f"{index}", **given}
        for index in range(number)
    ]
    db.write_sync(lambda conn: conn.execute(insert(operator_note), rows))


def test_an_idle_note_of_an_agent_makes_room(db, put):
    fill(db, operator_store.PER_PRINCIPAL)
    assert put() == Refused("full")
    idle = update(operator_note).where(operator_note.c.note_id == f"f{7:031x}")
    db.write_sync(lambda conn: conn.execute(idle.values(updated_at_ms=NOW - IDLE_MS, match_count=1)))
    assert put() == Refused("full")
    db.write_sync(lambda conn: conn.execute(idle.values(match_count=0)))
    made = put()
    assert (made.action, made.evicted, made.count) == ("created", 1, operator_store.PER_PRINCIPAL)
    assert f"f{7:031x}" not in {row.note_id for row in stored(db)}
    assert put().action == "updated"


def test_notes_of_the_user_are_never_thrown_out(db, put):
    fill(db, operator_store.PER_PRINCIPAL, source="user", updated_at_ms=NOW - 2 * IDLE_MS)
    assert put() == Refused("full")
    assert len(stored(db)) == operator_store.PER_PRINCIPAL
    assert put(principal="ada").action == "created"


def test_pages_show_ones_own_and_everybodys_notes_the_last_updated_first(db, put):
    for number, principal in enumerate(("local", "*", "ada", "local")):
        put(f"text {number}", principal=principal, now=NOW + number)
    notes, total = db.read_sync(page, "local", 0, 2)
    assert ([one.content for one in notes], total) == (["text 3", "text 1"], 3)
    notes, total = db.read_sync(page, "local", 2, 2)
    assert ([one.content for one in notes], total) == (["text 0"], 3)


def test_being_found_is_counted_and_changes_neither_revision_nor_age(db, put):
    put("a")
    put("b")
    db.write_sync(matched, [one for one in db.read_sync(visible_to, "local") if one.content == "a"], NOW + DAY_MS)
    found = {row.content: (row.match_count, row.last_matched_at_ms, row.rev, row.updated_at_ms) for row in stored(db)}
    assert found == {"a": (1, NOW + DAY_MS, 1, NOW), "b": (0, None, 1, NOW)}


async def test_reading_notes_for_a_task_changes_nothing(db, put):
    clock = SystemClock()
    keeper = NoteKeeper(db, clock, SystemIds(clock), NoteSettings())
    put("Check the cart", tags=("cart",), now=clock.now_ms())
    put("Nothing to see", tags=("other",), now=clock.now_ms())
    before = stored(db)
    [found] = await keeper.for_keywords("local", ["cart"])
    assert (found.note.content, found.score.tag) == ("Check the cart", 1)
    assert stored(db) == before
    assert await keeper.for_keywords("ada", ["cart"]) == []
