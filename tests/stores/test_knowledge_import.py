"""Taking knowledge in: whatever a pack says, nothing rises, nothing that guides changes, and it can be done again."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import func, select
from typer.testing import CliRunner

from nova_mcp.cli.commands import app
from nova_mcp.memory.knowledge import store
from nova_mcp.memory.knowledge.model import (
    Action,
    Context,
    DomainHint,
    Fingerprint,
    HintId,
    Playbook,
    ScopeName,
    Signal,
    StableId,
)
from nova_mcp.memory.knowledge.tables import knowledge_entry, knowledge_scope
from nova_mcp.memory.knowledge.writes.content_rules import LiveLook
from nova_mcp.memory.knowledge.writes.page_check import PageCheck
from nova_mcp.memory.knowledge.writes.rules import Upsert
from nova_mcp.memory.knowledge.writes.store import Writer
from nova_mcp.memory.promotion import steps_store
from nova_mcp.memory.promotion.gates.entries import entry_of
from nova_mcp.memory.promotion.gates.folding import replay
from nova_mcp.memory.promotion.import_pack import Categories, Intake, portable, take_in
from nova_mcp.tools.knowledge.pack import BadPack, entry_line, read_line, read_pack

HERE = ScopeName("shop.example")
NOW = 1_800_000_000_000
INTAKE = Intake(NOW)
PRINT = Fingerprint((Signal("dom", "#bar"),))


def wish(name="bar", selector="#bar .no", **more):
    return Upsert(StableId(name), "modal", PRINT, Playbook("dismiss", (Action("click", selector),)), Context(), **more)


def hint(name="ads", selector=".ad", **more):
    return DomainHint(HintId(name), "ad_container", (selector,), NOW, NOW, **more)


def take(db, *packed, intake=INTAKE):
    return db.write_sync(take_in, HERE, packed, intake)


def held(db):
    return db.read_sync(store.entries, HERE)


def replayed(db, shelved):
    def read(conn):
        after, begin = steps_store.snapshot(conn, shelved.entry_id)
        return replay(begin, [step for _, _, step in steps_store.steps(conn, shelved.entry_id, after)]).snapshot.entry

    return db.read_sync(read)


def stands(entry):
    return entry.level, entry.revision, entry.deprecated, entry.unconfirmed_selectors


def raised(db, name, **changes):
    """The entry as if it had earned or lost its level."""
    one = db.read_sync(store.find, HERE, name)[-1]
    up = replace(one, kept=replace(one.kept, **changes))
    db.write_sync(store.save, up, visible=True)
    db.write_sync(steps_store.born, up)


def test_what_is_taken_in_can_be_replayed(db):
    take(db, wish(), hint(), wish("other"))
    raised(db, "bar", level=2)
    take(
        db, wish(selector="#bar .close"), wish("other", "#x"), hint(selector=".b"), intake=Intake(NOW + 1, replace=True)
    )
    found = held(db)
    assert [(one.stable_id, one.slot, one.kept.level, one.kept.revision) for one in found] == [
        ("ads", "current", 1, 2),
        ("bar", "current", 2, 1),
        ("bar", "pending", 1, 2),
        ("other", "current", 1, 2),
    ]
    assert [one.origin for one in found] == ["imported"] * 4
    for one in found:
        assert stands(replayed(db, one)) == stands(entry_of(one))


def test_a_dry_run_and_a_refusal_leave_no_trace(db):
    def rows():
        return [
            db.read_sync(lambda conn, table=table: conn.execute(select(func.count()).select_from(table)).scalar_one())
            for table in (knowledge_scope, knowledge_entry)
        ]

    would = take(db, wish(), hint(), Categories(("shopping",)), intake=Intake(NOW, dry_run=True))
    assert ([one.came for one in would], rows()) == (["created", "created", "updated"], [0, 0])
    (no,) = take(db, wish(selector="*"))
    assert (no.came, no.problems[0].code, rows()) == ("refused", "pks.selector_too_broad", [0, 0])
    assert take(db, wish(), hint(), Categories(("shopping",))) == would


def test_what_a_site_is_said_to_be_here_stays(db):
    assert take(db, Categories(("shopping",)))[0].why == "site_unknown"
    take(db, wish(), Categories(("shopping",)))
    (other,) = take(db, Categories(("banking",)))
    assert (other.came, other.why) == ("kept", "categories_here")
    assert db.read_sync(store.scope_row, HERE).service_categories == ("shopping",)


def test_racing_imports_of_one_pack_make_one_of_it(db):
    packed = [wish(f"e{number}") for number in range(5)]
    with ThreadPoolExecutor(4) as pool:
        done = [one for taken in pool.map(lambda _: take(db, *packed), range(4)) for one in taken]
    assert sorted(one.came for one in done) == ["created"] * 5 + ["unchanged"] * 15
    assert len(held(db)) == 5


def test_an_agent_that_has_the_page_open_confirms_an_imported_entry_by_storing_it_again(db):
    take(db, wish())
    seen = PageCheck(NOW + 1, dict.fromkeys(("#bar", "#bar .no"), LiveLook(1, inside=True)))
    done = db.write_sync(Writer(steps_store).upsert, HERE, wish(), seen)
    assert (done.kind, done.written.level, done.written.unconfirmed) == ("unchanged", 1, ())
    assert held(db)[0].kept.unconfirmed == ()


STANDS = st.sampled_from(
    [{"level": 0}, {"level": 1}, {"level": 2}, {"level": 0, "deprecated_reason": "gone"}, {"level": 2, "revision": 7}]
)
PIECES = st.lists(
    st.one_of(
        st.builds(wish, st.sampled_from(["a", "b"]), st.sampled_from(["#x", "#y", "#bar .no"])),
        st.builds(hint, st.sampled_from(["b", "c"]), st.sampled_from([".x", ".y"])),
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    before=PIECES,
    how=st.lists(STANDS, min_size=3, max_size=3),
    packs=st.lists(PIECES, min_size=1, max_size=3),
    over=st.booleans(),
)
def test_no_pack_touches_what_guides_or_raises_anything_above_review(sqlite_db, before, how, packs, over):
    db = sqlite_db
    db.write_sync(lambda conn: [store.remove(conn, one.entry_id) for one in store.entries(conn, HERE)])
    take(db, *before)
    for name, stand in zip(("a", "b", "c"), how, strict=True):
        if db.read_sync(store.find, HERE, name):
            raised(db, name, **stand)
    was = {(one.stable_id, one.slot): one for one in held(db)}
    for pack in packs:
        take(db, *pack, intake=Intake(NOW + 1, replace=over))
        again = held(db)
        last = {(type(one), one.stable_id if isinstance(one, Upsert) else one.hint_id): one for one in pack}
        if len(last) == len(pack):
            take(db, *pack, intake=Intake(NOW + 2, replace=over))
            assert held(db) == again
    for one in held(db):
        old = was.get((one.stable_id, one.slot))
        if old is not None and (old.kept.level == 2 or old.kept.deprecated):
            assert one == old
        elif old is None or one.kept.level != old.kept.level:
            assert one.kept.level == 1


@pytest.fixture
def sqlite_db(open_db, sqlite_url):
    return open_db(sqlite_url)


def test_commands_work_on_either_kind_of_store(store_url, tmp_path):
    def run(*words):
        done = CliRunner().invoke(app, [*words, "--store", store_url, "--data-dir", str(tmp_path)])
        assert done.exit_code == 0, done.output
        return done.stdout

    entry = {"id": "bar", "type": "custom", "fingerprint": {"signals": [{"kind": "text", "match": "sale"}]}}
    pack = [{"format": "nova-knowledge", "version": 1}, {"scope": HERE, "phenomenon": entry}]
    (tmp_path / "p").write_text("\n".join(map(json.dumps, pack)))
    assert "1 created" in run("import", str(tmp_path / "p"))
    assert "1 unchanged" in run("import", str(tmp_path / "p"))
    assert "low\t0\t1" in run("knowledge")
    assert "0 of 3 proofs" in run("knowledge", HERE)
    assert "origin\timported" in run("knowledge", HERE, "bar")
    assert "a shadow" in run("explain", "bar")
    assert len(run("export").splitlines()) == 2


# -- reading packs


TEXT = st.text(alphabet=st.characters(exclude_categories=()), max_size=20)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXT),
    lambda one: st.one_of(st.lists(one, max_size=4), st.dictionaries(TEXT, one, max_size=4)),
    max_leaves=12,
)
NAMES = st.sampled_from(
    ["scope", "level", "phenomenon", "domainHint", "serviceCategories", "id", "type", "fingerprint"]
)


@given(st.one_of(TEXT, st.dictionaries(NAMES, JSON).map(json.dumps), JSON.map(json.dumps)))
def test_whatever_a_line_holds_it_is_taken_or_named(row):
    text = '{"format":"nova-knowledge","version":1}\n' + row
    assert all(line >= 2 for line in lines_of(text))


def lines_of(text):
    """The lines that were taken, or those that something is wrong with."""
    try:
        return [one.number for one in read_pack(text, NOW).lines]
    except BadPack as bad:
        return [one.line for one in bad.problems if one.message]


def test_what_is_exported_is_read_back_as_it_was(db):
    take(db, wish(), hint())
    for _, kept in db.read_sync(portable, HERE):
        value = entry_line(HERE, kept)
        read = read_line(value, 1, NOW)
        assert (read.scope, read.problems) == (HERE, ())
        assert take(db, read.packed)[0].came == "unchanged"
