"""Browser Memory as both stores keep it: renewing, order, recall, limits, forgetting."""

from dataclasses import dataclass, replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, insert, select, update

from nova_mcp.core.clock import SystemIds
from nova_mcp.core.connections import AgentConnections
from nova_mcp.memory.knowledge.tables import knowledge_scope
from nova_mcp.memory.notes import memory_store
from nova_mcp.memory.notes.daily_work import daily
from nova_mcp.memory.notes.memory_store import Forgetting, Full, NewMemory, Wanted, forget, pruning, save, search
from nova_mcp.memory.notes.rules import DAY_MS, HALF_LIFE_MS, decay_score, expiry_for
from nova_mcp.memory.notes.service import NoteKeeper, RecallQuery, words_of
from nova_mcp.memory.notes.tables import browser_memory
from nova_mcp.settings import NoteSettings

NOW = 1_800_000_000_000
HOST = "shop.example.com"


@dataclass
class Clock:
    now: int = NOW

    def now_ms(self):
        return self.now

    def monotonic_ms(self):
        return float(self.now)


def new(content="dark mode", **more):
    given = {"principal": "local", "domain": HOST, "memory_type": "note", "url_pattern": None, "source": "agent"}
    return NewMemory(content=content, **{**given, **more})


def keeper_of(db, **memory):
    clock = Clock()
    chosen = NoteSettings.model_validate({"browser_memory": {"users": ["local"], **memory}})
    keeper = NoteKeeper(db, clock, SystemIds(clock), chosen)
    return keeper, clock


def recall(db, keeper, host=None, query="", now=NOW, **more):
    given = {"principal": "local", "memory_type": None, "include_expired": False, "limit": 10}
    wanted = RecallQuery(host=host, words=words_of(query), **{**given, **more})
    return db.write_sync(keeper.recall, wanted, now)


def stored(db):
    return db.read_sync(lambda conn: conn.execute(select(browser_memory).order_by(browser_memory.c.memory_id)).all())


def fill(db, count, *, domain=HOST, source="agent", expires=NOW + DAY_MS, principal="local", kind="note"):
    rows = [
        {
            "principal": principal,
            "domain": domain,
            "memory_type": kind,
            "content": f"row {number}",
            "content_fold": f"row {number}",
            "identity_hash": f"{principal} {domain} {source} {number}",
            "source": source,
            "created_at_ms": NOW,
            "refreshed_at_ms": NOW + number,
            "access_count": 0,
            "expires_at_ms": expires + number,
            "content_rev": 1,
        }
        for number in range(count)
    ]
    db.write_sync(lambda conn: conn.execute(insert(browser_memory), rows))


def test_the_same_text_again_renews_the_row_even_if_it_had_expired(db):
    first = db.write_sync(save, new("Dark  mode"), NOW)
    late = NOW + 400 * DAY_MS
    again = db.write_sync(save, new(" Dark mode"), late)
    assert (first.action, again.action) == ("created", "refreshed")
    assert again.row.memory_id == first.row.memory_id
    assert (again.row.content_rev, again.row.refreshed_at_ms) == (2, late)
    assert again.row.expires_at_ms == expiry_for("note", 1.0, late)
    [row] = stored(db)
    assert (row.content, row.content_rev, row.expires_at_ms) == (" Dark mode", 2, again.row.expires_at_ms)


def test_another_host_type_pattern_text_or_principal_is_another_row(db):
    for one in (
        new(),
        new(domain="other.example"),
        new(memory_type="context"),
        new(url_pattern="/cart"),
        new("light mode"),
        new(principal="ada"),
    ):
        assert db.write_sync(save, one, NOW).action == "created"
    assert len(stored(db)) == 6


def test_what_the_user_wrote_stays_the_users(db):
    db.write_sync(save, new(source="user"), NOW)
    assert db.write_sync(save, new(), NOW).row.source == "user"
    db.write_sync(save, new("x"), NOW)
    assert db.write_sync(save, new("x", source="user"), NOW).row.source == "user"


MIXED = st.lists(
    st.tuples(st.sampled_from(sorted(HALF_LIFE_MS)), st.floats(0.001, 1.0), st.integers(0, 3)), max_size=15
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(MIXED)
def test_rows_come_in_the_order_of_their_scores_and_only_live_ones(db, mixed):
    db.write_sync(lambda conn: conn.execute(delete(browser_memory)))
    for number, (kind, score, age) in enumerate(mixed):
        saved = db.write_sync(save, new(f"row {number}", memory_type=kind), NOW - age)
        expires = expiry_for(kind, score, NOW)
        change = update(browser_memory).where(browser_memory.c.memory_id == saved.row.memory_id)
        db.write_sync(lambda conn, change=change, at=expires: conn.execute(change.values(expires_at_ms=at)))

    def rank(row):
        return -((row.expires_at_ms - NOW) / HALF_LIFE_MS[row.memory_type]), -row.refreshed_at_ms, -row.memory_id

    every = db.read_sync(search, Wanted("local", include_expired=True), NOW, 100)
    assert [row.memory_id for row in every] == [row.memory_id for row in sorted(every, key=rank)]
    scores = [decay_score(row.memory_type, row.expires_at_ms, NOW) for row in every]
    assert scores == sorted(scores, reverse=True)
    live = {row.memory_id for row in db.read_sync(search, Wanted("local"), NOW, 100)}
    assert live == {row.memory_id for row in every if row.expires_at_ms > NOW}
    assert all(
        (decay_score(row.memory_type, row.expires_at_ms, NOW) > 0.05) == (row.memory_id in live) for row in every
    )


# -- recall


def test_recall_reinforces_live_rows_once_a_day_and_counts_every_time(db):
    keeper, _ = keeper_of(db)
    saved = db.write_sync(save, new(), NOW - 60 * DAY_MS)
    [(row, matched)] = recall(db, keeper, HOST).rows
    assert (matched, row.access_count, row.reinforced_at_ms) == ("host", 1, NOW)
    assert decay_score("note", row.expires_at_ms, NOW) == pytest.approx(0.5 + 0.25 * 0.5)
    [(again, _)] = recall(db, keeper, HOST, now=NOW + DAY_MS - 1).rows
    assert (again.access_count, again.expires_at_ms, again.reinforced_at_ms) == (2, row.expires_at_ms, NOW)
    [(later, _)] = recall(db, keeper, HOST, now=NOW + DAY_MS).rows
    assert later.expires_at_ms > row.expires_at_ms
    [kept] = stored(db)
    assert kept.memory_id == saved.row.memory_id
    assert (kept.access_count, kept.accessed_at_ms) == (3, NOW + DAY_MS)
    assert kept.expires_at_ms == later.expires_at_ms


def test_an_expired_row_is_shown_on_demand_and_never_revived(db):
    keeper, _ = keeper_of(db)
    db.write_sync(save, new(), NOW - 300 * DAY_MS)
    [before] = stored(db)
    assert recall(db, keeper, HOST).rows == ()
    [(row, _)] = recall(db, keeper, HOST, include_expired=True).rows
    assert (row.expires_at_ms, row.access_count) == (before.expires_at_ms, 1)
    assert stored(db)[0].expires_at_ms == before.expires_at_ms


def test_recall_for_a_host_takes_its_site_in_and_nothing_else(db):
    keeper, _ = keeper_of(db)
    for domain in (HOST, "example.com", "other.example.com", "example.com.evil.test"):
        db.write_sync(save, new(domain, domain=domain), NOW)
    found = {row.domain: matched for row, matched in recall(db, keeper, HOST).rows}
    assert found == {HOST: "host", "example.com": "parent"}
    every = {row.domain: matched for row, matched in recall(db, keeper).rows}
    assert set(every.values()) == {"any"}
    assert len(every) == 4


def test_tenants_of_one_domain_are_told_apart_as_the_settings_say(db):
    clock = Clock()
    chosen = NoteSettings.model_validate({"browser_memory": {"users": ["*"]}, "multi_tenant_domains": ["example.com"]})
    keeper = NoteKeeper(db, clock, SystemIds(clock), chosen)
    for domain in ("a.acme.example.com", "acme.example.com", "example.com"):
        db.write_sync(save, new(domain, domain=domain), NOW)
    found = {row.domain for row, _ in recall(db, keeper, "a.acme.example.com").rows}
    assert found == {"a.acme.example.com", "acme.example.com"}


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("STRASSE", ["Straße 100% a_b\\c"]),
        ("100%", ["Straße 100% a_b\\c"]),
        ("a_b", ["Straße 100% a_b\\c"]),
        ("b\\c", ["Straße 100% a_b\\c"]),
        ("%", ["Straße 100% a_b\\c"]),
        ("straße nothing", []),
        ("axb", ["1000 axb"]),
    ],
)
def test_every_word_of_a_query_must_occur_as_it_is(db, query, found):
    keeper, _ = keeper_of(db)
    for text in ("Straße 100% a_b\\c", "1000 axb"):
        db.write_sync(save, new(text), NOW)
    assert [row.content for row, _ in recall(db, keeper, query=query).rows] == found


def test_recall_keeps_to_type_limit_and_principal(db):
    keeper, _ = keeper_of(db)
    for number in range(5):
        db.write_sync(save, new(f"n{number}", memory_type="preference" if number % 2 else "note"), NOW)
    db.write_sync(save, new("other", principal="ada"), NOW)
    assert len(recall(db, keeper, limit=3).rows) == 3
    assert {row.memory_type for row, _ in recall(db, keeper, memory_type="preference").rows} == {"preference"}
    assert all(row.principal == "local" for row, _ in recall(db, keeper, limit=50).rows)


def test_excluded_hosts_are_left_out_and_named(db):
    keeper, _ = keeper_of(db, exclude_domains=["=example.com", "hidden.test"])
    for domain in (HOST, "example.com", "a.hidden.test", "paypal.com"):
        db.write_sync(save, new(domain, domain=domain), NOW)
    assert {row.domain for row, _ in recall(db, keeper).rows} == {HOST}
    assert {row.domain for row, _ in recall(db, keeper, HOST).rows} == {HOST}
    asked = recall(db, keeper, "a.hidden.test")
    assert (asked.rows, asked.excluded) == ((), "user_list")
    assert recall(db, keeper, "paypal.com").excluded == "sensitive_site"
    untouched = {row.domain: row.access_count for row in stored(db)}
    assert untouched == {HOST: 2, "example.com": 0, "a.hidden.test": 0, "paypal.com": 0}


def test_recall_reaches_past_many_excluded_rows(db):
    keeper, _ = keeper_of(db, exclude_domains=["hidden.test"])
    fill(db, 450, domain="hidden.test", expires=NOW + 100 * DAY_MS)
    fill(db, 3)
    assert len(recall(db, keeper, limit=50).rows) == 3


@pytest.mark.parametrize("scope", [HOST, f"www.{HOST}", f"{HOST}:8443", "example.com"])
def test_a_site_that_knowledge_calls_a_bank_is_excluded(db, scope):
    keeper, _ = keeper_of(db)
    described = {
        "scope": scope,
        "content_rev": 1,
        "state_rev": 1,
        "context": "{}",
        "service_categories": '["banking"]',
        "framework_markers": "[]",
        "updated_at_ms": NOW,
    }
    assert db.read_sync(keeper.excluded, HOST) is None
    db.write_sync(lambda conn: conn.execute(insert(knowledge_scope).values(described)))
    assert db.read_sync(keeper.excluded, HOST) == "sensitive_category"
    assert db.read_sync(keeper.excluded, "xshop.example.net") is None


def test_the_table_of_known_hosts_counts_where_nothing_was_said(db):
    keeper, _ = keeper_of(db)
    assert db.read_sync(keeper.excluded, "who.int") == "sensitive_category"
    assert db.read_sync(keeper.excluded, "cdc.gov") == "sensitive_category"
    assert db.read_sync(keeper.excluded, "github.com") is None


# -- limits


def test_the_faintest_row_of_an_agent_makes_room_at_a_full_host(db):
    fill(db, memory_store.PER_HOST - 2)
    fill(db, 2, source="user", expires=NOW - DAY_MS)
    faintest = min((row for row in stored(db) if row.source == "agent"), key=lambda row: row.expires_at_ms)
    saved = db.write_sync(save, new(), NOW)
    assert (saved.action, saved.evicted) == ("created", 1)
    kept = {row.memory_id for row in stored(db)}
    assert len(kept) == memory_store.PER_HOST
    assert faintest.memory_id not in kept
    assert sum(row.source == "user" for row in stored(db)) == 2


def test_a_host_full_of_the_users_own_rows_takes_no_more(db):
    fill(db, memory_store.PER_HOST, source="user")
    assert isinstance(db.write_sync(save, new(), NOW), Full)
    assert len(stored(db)) == memory_store.PER_HOST
    assert db.write_sync(save, new(domain="other.test"), NOW).action == "created"


def test_a_principal_has_a_limit_too(db, monkeypatch):
    monkeypatch.setattr(memory_store, "PER_PRINCIPAL", 6)
    fill(db, 3, domain="a.test", source="user")
    fill(db, 3, domain="b.test")
    fill(db, 9, domain="b.test", principal="ada")
    saved = db.write_sync(save, new(), NOW)
    assert saved.evicted == 1
    own = [row for row in stored(db) if row.principal == "local"]
    assert len(own) == 6
    assert sum(row.domain == "b.test" for row in own) == 2
    assert sum(row.principal == "ada" for row in stored(db)) == 9
    for number in range(2):
        db.write_sync(save, new(f"more {number}"), NOW)
    db.write_sync(lambda conn: conn.execute(update(browser_memory).values(source="user")))
    assert db.write_sync(save, new("too much"), NOW) == Full(6, "principal")


def test_renewing_needs_no_room(db):
    db.write_sync(save, new(source="user"), NOW)
    fill(db, memory_store.PER_HOST - 1, source="user")
    assert db.write_sync(save, new(), NOW).action == "refreshed"


# -- forgetting


@pytest.fixture
def spread(db):
    for principal in ("local", "ada"):
        for domain in (HOST, "a.shop.example.com", "example.com", "xshop.example.com", "s_op.example.com"):
            for kind in ("note", "preference"):
                db.write_sync(save, new(domain=domain, memory_type=kind, principal=principal), NOW)
    return db


@pytest.mark.parametrize(
    ("what", "gone"),
    [
        ({"domain": HOST}, lambda row: row.domain in (HOST, "a.shop.example.com")),
        ({"domain": "s_op.example.com"}, lambda row: row.domain == "s_op.example.com"),
        ({"domain": "example.com"}, lambda row: True),
        ({"memory_type": "note"}, lambda row: row.memory_type == "note"),
        (
            {"domain": HOST, "memory_type": "note"},
            lambda row: row.domain in (HOST, "a.shop.example.com") and row.memory_type == "note",
        ),
        ({}, lambda row: True),
        ({"domain": "nothing.test"}, lambda row: False),
    ],
)
def test_forgetting_takes_what_it_names_of_one_principal_and_nothing_else(spread, what, gone):
    before = stored(spread)
    doomed = {row.memory_id for row in before if row.principal == "local" and gone(row)}
    assert spread.write_sync(forget, Forgetting("local", **what)) == len(doomed)
    assert {row.memory_id for row in stored(spread)} == {row.memory_id for row in before} - doomed


def test_forgetting_by_id_takes_no_row_of_somebody_else(spread):
    theirs = next(row.memory_id for row in stored(spread) if row.principal == "ada")
    assert spread.write_sync(forget, Forgetting("local", theirs)) == 0
    assert spread.write_sync(forget, Forgetting("ada", theirs)) == 1


@pytest.mark.parametrize("days", [0, 30])
def test_pruning_takes_what_was_forgotten_so_long_ago_and_no_live_row(db, days):
    edge = NOW - days * DAY_MS
    for number, expires in enumerate((edge - 1, edge, edge + 1, NOW + 1)):
        fill(db, 1, domain=f"h{number}.test", expires=expires)
    assert db.write_sync(pruning(days), NOW) == 2
    assert {row.domain for row in stored(db)} == {"h2.test", "h3.test"}
    assert db.write_sync(pruning(days), NOW) == 0


def test_a_daily_chore_rests_once_it_is_done(db):
    fill(db, 1, domain="a.test", expires=NOW - DAY_MS)
    chore = daily(pruning(0))
    assert db.write_sync(chore, NOW) == 1
    assert db.write_sync(chore, NOW) == 0
    fill(db, 1, domain="b.test", expires=NOW - DAY_MS)
    assert db.write_sync(chore, NOW + DAY_MS - 1) == 0
    assert db.write_sync(chore, NOW + DAY_MS) == 1


# -- surfacing


async def surfaced(keeper, host=HOST, path="/", limit=2, chars=120, principal="local"):
    return await keeper.surfaced_memory(principal, host, path, limit, chars)


async def test_a_page_brings_to_mind_what_fits_its_host_and_path_and_changes_nothing(db):
    keeper, _ = keeper_of(db)
    db.write_sync(save, new("x" * 200, memory_type="preference"), NOW)
    db.write_sync(save, new("only in the cart", url_pattern="/cart*"), NOW)
    db.write_sync(save, new("of the site", domain="example.com"), NOW)
    db.write_sync(save, new("elsewhere", domain="other.example.com"), NOW)
    db.write_sync(save, new("long gone"), NOW - 300 * DAY_MS)
    before = stored(db)
    found = await surfaced(keeper)
    assert (found.count, len(found.items)) == (2, 2)
    assert {len(one.content) for one in found.items} == {120, len("of the site")}
    assert (await surfaced(keeper, path="/cart/1", limit=1)).count == 3
    assert await surfaced(keeper, host="nothing.test") is None
    assert await surfaced(keeper, principal="ada") is None
    assert stored(db) == before


async def test_nothing_surfaces_on_an_excluded_host(db):
    for settings_given, host in (({"exclude_domains": [HOST]}, HOST), ({}, "paypal.com")):
        keeper, _ = keeper_of(db, **settings_given)
        db.write_sync(save, new(domain=host), NOW)
        assert await surfaced(keeper, host=host) is None


async def test_a_connection_is_told_once_in_half_an_hour_or_when_something_is_new(db):
    keeper, clock = keeper_of(db)
    connections = AgentConnections(clock)
    ada, bob = (connections.of(("local", "ada"), session) for session in ("one", "two"))
    db.write_sync(save, new(), NOW)
    found = await surfaced(keeper)
    assert keeper.is_news(ada, found)
    keeper.told(ada, found)
    assert not keeper.is_news(ada, found)
    assert keeper.is_news(bob, found)
    assert keeper.is_news(ada, replace(found, host="other.test"))
    db.write_sync(save, new(), NOW)
    renewed = await surfaced(keeper)
    assert keeper.is_news(ada, renewed)
    keeper.told(ada, renewed)
    clock.now += 30 * 60_000 - 1
    assert not keeper.is_news(ada, renewed)
    clock.now += 1
    assert keeper.is_news(ada, renewed)
