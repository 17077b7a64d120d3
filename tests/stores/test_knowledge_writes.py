"""Writes of knowledge: racing writers keep the limit and lose nothing, what is refused leaves no trace."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from random import Random

import pytest
from sqlalchemy import func, select

from nova_mcp.memory.knowledge import store
from nova_mcp.memory.knowledge.model import (
    MAX_PHENOMENA,
    Action,
    Alias,
    Context,
    DomainHint,
    ElementPrint,
    Fingerprint,
    HintId,
    Platform,
    PlatformId,
    Playbook,
    Problem,
    ScopeName,
    Signal,
    StableId,
)
from nova_mcp.memory.knowledge.platforms import store as platform_store
from nova_mcp.memory.knowledge.platforms.templates import built_in
from nova_mcp.memory.knowledge.service import KnowledgeKeeper
from nova_mcp.memory.knowledge.site_list import Wanted, listed
from nova_mcp.memory.knowledge.tables import knowledge_entry, knowledge_scope
from nova_mcp.memory.knowledge.writes.content_rules import LiveLook
from nova_mcp.memory.knowledge.writes.hint_rules import HintWritten
from nova_mcp.memory.knowledge.writes.page_check import PageCheck
from nova_mcp.memory.knowledge.writes.rules import Conflict, Patch, Refused, Upsert, Written
from nova_mcp.memory.knowledge.writes.store import Missing, Retirement, Writer
from nova_mcp.memory.promotion import steps_store
from nova_mcp.memory.promotion.gates.entries import entry_of
from nova_mcp.memory.promotion.gates.folding import replay

HERE = ScopeName("shop.example")
NOW = 1_800_000_000_000
WRITER = Writer(steps_store)
PRINT = Fingerprint((Signal("dom", "#bar"),))
NO = Playbook("dismiss", (Action("click", "#bar .no"),))
CLOSE = Playbook("dismiss", (Action("click", "#bar .close"),))
ONE = LiveLook(1, True)


class StillClock:
    def now_ms(self):
        return NOW


@pytest.fixture
def clock():
    return StillClock()


def seen(*selectors, at=NOW, **more):
    prints = more.pop("prints", dict.fromkeys(selectors, ElementPrint("button", text="No")))
    return PageCheck(at, dict.fromkeys(("#bar", *selectors), ONE), prints, **more)


SEEN = seen("#bar .no", "#bar .close")


def wish(name="bar", playbook=NO, **more):
    return Upsert(StableId(name), "modal", PRINT, playbook, **more)


def upsert(db, wanted=None, check=SEEN, scope=HERE):
    return db.write_sync(WRITER.upsert, scope, wanted or wish(), check)


def rows(db, table=knowledge_entry):
    return db.read_sync(lambda conn: conn.execute(select(func.count()).select_from(table)).scalar_one())


def raised(db, name="bar", level=2):
    """The entry as if it had earned its level."""
    (one,) = db.read_sync(store.find, HERE, name)
    up = replace(one, kept=replace(one.kept, level=level))
    db.write_sync(store.save, up, visible=True)
    db.write_sync(steps_store.born, up)
    return up


def replayed(db, shelved):
    def read(conn):
        after, begin = steps_store.snapshot(conn, shelved.entry_id)
        return replay(begin, [step for _, _, step in steps_store.steps(conn, shelved.entry_id, after)]).snapshot.entry

    return db.read_sync(read)


def test_racing_writers_of_one_scope_stop_exactly_at_the_limit(db):
    for number in range(MAX_PHENOMENA - 3):
        upsert(db, wish(f"p{number}"))
    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(lambda number: upsert(db, wish(f"late{number}")), range(12)))
    assert sum(isinstance(one, Written) for one in done) == 3
    assert {one.problems[0].code for one in done if isinstance(one, Refused)} == {"pks.scope_full"}
    assert rows(db) == MAX_PHENOMENA
    assert upsert(db, wish("p0", CLOSE)).kind == "updated"


def test_racing_first_writers_of_one_entry_make_one_of_it(db):
    with ThreadPoolExecutor(6) as pool:
        done = list(pool.map(lambda _: upsert(db), range(6)))
    assert sorted(one.kind for one in done) == ["created"] + ["unchanged"] * 5
    assert (rows(db), rows(db, knowledge_scope)) == (1, 1)


def test_racing_writers_of_different_sections_lose_nothing(db):
    upsert(db)

    def write(number):
        if number % 2:
            return db.write_sync(WRITER.patch, HERE, "bar", Patch(context=Context(routes=(f"r{number}",))), SEEN)
        return db.write_sync(WRITER.patch, HERE, "bar", Patch(playbook=CLOSE), SEEN)

    with ThreadPoolExecutor(6) as pool:
        assert all(isinstance(one, Written) for one in pool.map(write, range(8)))
    (kept,) = db.read_sync(store.find, HERE, "bar")
    assert kept.kept.content.playbook.actions[0].selector == "#bar .close"
    assert kept.kept.content.context.routes[0].startswith("r")
    assert kept.kept.unconfirmed == ()
    assert kept.kept.revision == 6


def test_a_stale_revision_is_told_and_changes_nothing(db):
    upsert(db)
    upsert(db, wish(playbook=CLOSE))
    before = db.read_sync(store.find, HERE, "bar"), db.read_sync(store.state_rev, HERE)
    stale = Patch(playbook=NO, expected_revision=1)
    assert db.write_sync(WRITER.patch, HERE, "bar", stale, SEEN) == Conflict(1, 2)
    assert (db.read_sync(store.find, HERE, "bar"), db.read_sync(store.state_rev, HERE)) == before
    assert db.write_sync(WRITER.patch, HERE, "bar", replace(stale, expected_revision=2), SEEN).written.revision == 3


def test_only_one_of_racing_patches_of_a_revision_is_taken(db):
    upsert(db)

    def write(number):
        patch = Patch(context=Context(routes=(f"r{number}",)), expected_revision=1)
        return db.write_sync(WRITER.patch, HERE, "bar", patch, SEEN)

    with ThreadPoolExecutor(6) as pool:
        done = list(pool.map(write, range(6)))
    assert sum(isinstance(one, Written) for one in done) == 1
    assert sum(isinstance(one, Conflict) for one in done) == 5


def test_what_is_refused_leaves_not_even_the_scope(db):
    broad = Playbook("dismiss", (Action("click", "*"),))
    assert isinstance(upsert(db, wish(playbook=broad)), Refused)
    assert isinstance(upsert(db, check=seen(at=NOW, problems=(Problem("selector.invalid", "no"),))), Refused)
    assert db.write_sync(WRITER.patch, HERE, "bar", Patch(type="custom"), SEEN) == Missing(scope=True)
    assert db.write_sync(WRITER.deprecate, HERE, "bar", "gone", NOW) == Missing(scope=True)
    assert (rows(db), rows(db, knowledge_scope)) == (0, 0)


def test_an_active_entry_is_left_alone_and_what_is_new_stands_beside_it(db):
    upsert(db)
    active = raised(db)
    done = upsert(db, wish(playbook=CLOSE))
    assert (done.kind, done.written.level, done.written.revision) == ("updated", 1, 2)
    current, pending = db.read_sync(store.find, HERE, "bar")
    (press,) = pending.kept.content.playbook.actions
    assert (current, pending.slot, press.selector) == (active, "pending", CLOSE.actions[0].selector)
    again = upsert(db, wish(playbook=Playbook("ignore")))
    assert (again.written.revision, len(db.read_sync(store.find, HERE, "bar"))) == (3, 2)


def test_every_level_that_is_stored_is_the_one_its_steps_come_to(db):
    writes = [
        lambda: upsert(db, wish(level=0), seen()),
        lambda: upsert(db, wish()),
        lambda: upsert(db, wish(playbook=CLOSE)),
        lambda: db.write_sync(WRITER.deprecate, HERE, "bar", "went away", NOW),
        lambda: db.write_sync(WRITER.patch, HERE, "bar", Patch(playbook=NO), SEEN),
        lambda: upsert(db, wish(playbook=NO), seen()),
        lambda: upsert(db, wish(playbook=NO)),
    ]
    levels = []
    for write in writes:
        write()
        (one,) = db.read_sync(store.find, HERE, "bar")
        told, folded = entry_of(one), replayed(db, one)
        assert (folded.level, folded.deprecated, folded.revision) == (told.level, told.deprecated, told.revision)
        assert folded.unconfirmed_selectors == told.unconfirmed_selectors
        levels.append((told.level, told.deprecated, told.unconfirmed_selectors))
    assert levels == [
        (0, False, 1), (1, False, 0), (1, False, 0), (0, True, 0), (0, True, 0), (0, True, 0), (1, False, 0),
    ]  # fmt: skip


def test_a_retired_entry_returns_only_when_the_page_shows_it(db):
    upsert(db)
    db.write_sync(WRITER.deprecate, HERE, "bar", "  went   away ", NOW)
    (gone,) = db.read_sync(store.find, HERE, "bar")
    assert (gone.kept.deprecated_reason, gone.kept.level) == ("went away", 0)
    assert upsert(db, check=PageCheck(NOW, {"#bar": LiveLook(0), "#bar .no": LiveLook(0)})).kind == "unchanged"
    back = upsert(db)
    assert (back.kind, back.written.level, back.written.deprecated) == ("reactivated", 1, False)


def test_health_survives_a_write(db):
    upsert(db)
    (one,) = db.read_sync(store.find, HERE, "bar")
    db.write_sync(
        store.save, replace(one, kept=replace(one.kept, health=replace(one.kept.health, attempts=9))), visible=False
    )
    upsert(db, wish(playbook=CLOSE))
    (after,) = db.read_sync(store.find, HERE, "bar")
    assert (after.kept.health.attempts, after.kept.revision) == (9, 2)


def test_what_stood_around_an_element_is_kept_with_its_looks(db):
    button, other = ElementPrint("button", text="No"), ElementPrint("a", text="Home")
    check = seen("#bar .no", prints={"#bar .no": button}, around=(other, button))
    done = upsert(db, check=check)
    assert done.written.content.playbook.actions[0].element == button
    (one,) = db.read_sync(store.find, HERE, "bar")
    assert db.read_sync(store.surroundings, one.entry_id) == (other, button)
    moved = seen("#bar .no", prints={"#bar .no": replace(button, text="No!")})
    assert upsert(db, check=moved).kind == "unchanged"
    (same,) = db.read_sync(store.find, HERE, "bar")
    assert same.kept.content.playbook.actions[0].element == button


def test_a_page_that_an_agent_has_scripted_confirms_nothing(db):
    done = upsert(db, check=replace(SEEN, distrusted=True, prints={"#bar .no": ElementPrint("button")}))
    assert done.written.unconfirmed == ("#bar", "#bar .no")
    assert done.written.content.playbook.actions[0].element is None


@pytest.mark.parametrize("reason", ["javascript:alert(1)", "password: hunter22"])
def test_a_reason_is_read_by_others_and_holds_no_script_or_secret(db, reason):
    upsert(db)
    assert isinstance(db.write_sync(WRITER.deprecate, HERE, "bar", reason, NOW), Refused)


def test_retiring_takes_a_revision_in_review_along(db):
    upsert(db)
    one = raised(db)
    upsert(db, wish(playbook=CLOSE))
    refused = db.write_sync(WRITER.deprecate, HERE, "bar", "no longer", NOW)
    assert refused.problems[0].code == "pks.evidence_required"
    failed = replace(one, kept=replace(one.kept, health=replace(one.kept.health, last_failure_at_ms=NOW - 1)))
    db.write_sync(store.save, failed, visible=False)
    assert isinstance(db.write_sync(WRITER.deprecate, HERE, "bar", "no longer", NOW), Retirement)
    assert all(each.kept.deprecated for each in db.read_sync(store.find, HERE, "bar"))
    again = db.write_sync(WRITER.deprecate, HERE, "bar", "twice", NOW)
    assert (again.changed, again.kept.deprecated_reason) == (False, "no longer")


# -- hints


def hint(**more):
    return replace(DomainHint(HintId("ads"), "ad_container", ("#ad", ".css-1x2y3z"), NOW, NOW), **more)


def test_a_hint_is_written_as_an_entry_of_its_own(db):
    done = db.write_sync(WRITER.upsert_hint, HERE, hint())
    assert isinstance(done, HintWritten)
    assert (done.kind, done.written.level) == ("created", 1)
    assert any("css-1x2y3z" in one for one in done.warnings)
    assert db.write_sync(WRITER.upsert_hint, HERE, hint()).kind == "unchanged"
    assert db.write_sync(WRITER.upsert_hint, HERE, hint(selectors=("#ad2",))).kind == "updated"
    raised(db, "ads")
    assert db.write_sync(WRITER.upsert_hint, HERE, hint(selectors=("#ad3",))).kind == "updated"
    current, pending = db.read_sync(store.find, HERE, "ads")
    assert (current.kept.level, current.kept.selectors, pending.kept.level) == (2, ("#ad2",), 1)


def test_an_id_belongs_to_one_kind_of_entry(db):
    upsert(db)
    taken = db.write_sync(WRITER.upsert_hint, HERE, hint(hint_id=HintId("bar")))
    assert taken.problems[0].code == "invalid_params"
    db.write_sync(WRITER.upsert_hint, HERE, hint())
    assert upsert(db, wish("ads")).problems[0].code == "invalid_params"


# -- reading


async def test_a_scope_is_read_again_only_when_it_has_changed(db, clock):
    keeper = KnowledgeKeeper(db, clock, steps_store)
    assert (await keeper.known(HERE)).phenomena == ()
    upsert(db)
    first = await keeper.known(HERE)
    assert [one.stable_id for one in first.phenomena] == ["bar"]
    assert (first.trust, first.guiding) == ("low", ())
    assert await keeper.known(HERE) is first
    raised(db)
    now = await keeper.known(HERE)
    assert (now.trust, [one.stable_id for one in now.guiding]) == ("medium", ["bar"])


def test_sites_are_listed_in_pieces_and_filtered(db):
    for number in range(7):
        upsert(db, scope=ScopeName(f"s{number}.example"))
    upsert(db, scope=ScopeName("amazon.com"))
    every = db.read_sync(listed, Wanted(prefix="s", limit=3, offset=2), NOW)
    assert [one.scope for one in every.sites] == ["s2.example", "s3.example", "s4.example"]
    assert every.has_more
    assert not db.read_sync(listed, Wanted(prefix="s", limit=5, offset=2), NOW).has_more
    (shop,) = db.read_sync(listed, Wanted(category="shopping"), NOW).sites
    assert (shop.scope, shop.shadow, shop.trust, shop.types) == ("amazon.com", 1, "low", ("modal",))
    assert db.read_sync(listed, Wanted(min_health=0.0), NOW).sites == ()
    assert db.read_sync(listed, Wanted(type="paywall"), NOW).sites == ()


# -- platforms


def platform(name="acme", **more):
    return Platform(PlatformId(name), "Acme", aliases=(Alias("script_host", "cdn.acme.example"),), **more)


def test_an_alias_goes_to_one_platform_however_many_want_it(db):
    with ThreadPoolExecutor(6) as pool:
        done = list(pool.map(lambda n: db.write_sync(platform_store.seed, platform(f"acme{n}"), NOW), range(6)))
    assert sum(isinstance(one, Problem) for one in done) == 5
    assert {one.code for one in done if isinstance(one, Problem)} == {"pks.alias_taken"}
    assert len(db.read_sync(platform_store.added)) == 1


def test_servers_that_add_the_same_new_platform_at_once_all_succeed(db):
    def add(number):
        alias = Alias("script_host", f"cdn{number}.acme.example")
        return db.write_sync(platform_store.seed, Platform(PlatformId("acme"), "Acme", aliases=(alias,)), NOW)

    with ThreadPoolExecutor(6) as pool:
        done = list(pool.map(add, range(6)))
    assert not [one for one in done if isinstance(one, Problem)]
    (kept,) = db.read_sync(platform_store.added)
    assert len(kept.aliases) == 6


def test_a_platform_seen_on_a_new_site_leaves_one_candidate_there(db):
    one = built_in()[0]
    assert db.write_sync(platform_store.met, steps_store, HERE, [one], NOW) == 1
    assert db.write_sync(platform_store.met, steps_store, HERE, [one], NOW + 5) == 0
    (draft,) = db.read_sync(store.entries, HERE)
    assert (draft.kept.level, draft.origin, draft.stable_id) == (0, "platform", f"cmp_{one.stable_id}")
    assert db.read_sync(platform_store.last_seen) == {one.stable_id: NOW + 5}


# -- whatever happens


def _fate(db, random):
    """What evidence may do to a revision meanwhile: raise, lower or retire it."""
    rows = db.read_sync(store.find, HERE, "bar")
    if not rows:
        return
    one = random.choice(rows)
    level = random.choice((0, 1, 2)) if one.slot == "current" else random.choice((0, 1))
    reason = random.choice((None, None, "failed"))
    now = replace(one, kept=replace(one.kept, level=0 if reason else level, deprecated_reason=reason))
    db.write_sync(store.save, now, visible=True)
    db.write_sync(steps_store.born, now)


def _write(db, random):
    playbook = random.choice((NO, CLOSE, Playbook("ignore")))
    nothing = PageCheck(NOW, {one: LiveLook(0) for one in ("#bar", "#bar .no", "#bar .close")})
    printed = seen("#bar .no", "#bar .close", prints={"#bar .no": ElementPrint("button", text="No")})
    check = random.choice((SEEN, nothing, printed, seen(), replace(SEEN, distrusted=True)))
    match random.randrange(5):
        case 0 | 1:
            upsert(db, wish(playbook=playbook, level=random.choice((0, 1, 1))), check)
        case 2:
            upsert(db, Upsert(StableId("bar"), random.choice(("modal", "custom")), PRINT), check)
        case 3:
            patch = Patch(playbook=playbook, revive=random.random() < 0.5)
            db.write_sync(WRITER.patch, HERE, "bar", patch, check)
        case 4:
            db.write_sync(WRITER.deprecate, HERE, "bar", "no longer there", NOW)


@pytest.mark.parametrize("seed", range(12))
def test_no_order_of_writes_raises_an_entry_or_breaks_its_replay(db, seed):
    random = Random(seed)
    for _ in range(40):
        if random.random() < 0.3:
            _fate(db, random)
            continue
        before = {one.slot: one for one in db.read_sync(store.find, HERE, "bar")}
        _write(db, random)
        after = {one.slot: one for one in db.read_sync(store.find, HERE, "bar")}
        active = before.get("current")
        if active is not None and active.kept.may_guide:
            kept = after["current"].kept
            assert (kept.content.fingerprint, kept.level, kept.revision, kept.deprecated) == (
                active.kept.content.fingerprint, 2, active.kept.revision, False
            )  # fmt: skip
        else:
            assert all(not one.kept.may_guide for one in after.values())
        if before:
            newest = (before.get("pending") or before["current"]).kept.revision
            assert newest <= (after.get("pending") or after["current"]).kept.revision <= newest + 1
        for one in after.values():
            told, folded = entry_of(one), replayed(db, one)
            assert (folded.level, folded.deprecated, folded.revision) == (told.level, told.deprecated, told.revision)
            assert folded.unconfirmed_selectors == told.unconfirmed_selectors


def test_a_write_tells_which_entries_it_can_not_be_told_apart_from(db):
    upsert(db)
    done = upsert(db, wish("other"))
    assert ['also pressed by "bar"' in one for one in done.warnings] == [True]
    assert upsert(db, wish("third", CLOSE)).warnings == ()
    moved = db.write_sync(WRITER.patch, HERE, "third", Patch(playbook=NO), SEEN)
    assert len(moved.warnings) == 2
