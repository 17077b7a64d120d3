"""Profiles in the store: their words are found, their runs counted, their changes guarded; nobody sees another's."""

import json
import threading
from dataclasses import replace
from typing import Any

import pytest
from former_store import migrate
from sqlalchemy import Connection, Table, column, create_engine, func, insert, select, table

from nova_mcp.core.clock import Ports
from nova_mcp.core.hosts import MULTI_TENANT_DOMAINS
from nova_mcp.errors import NovaError
from nova_mcp.memory.tasks.content_codec import content_json
from nova_mcp.memory.tasks.model import (
    Check,
    CompletionCondition,
    EvidencePolicy,
    Guidance,
    TaskContent,
    VerificationStep,
)
from nova_mcp.memory.tasks.profiles import store
from nova_mcp.memory.tasks.profiles.matching import match_profiles, query_of
from nova_mcp.memory.tasks.profiles.rules import Change, Profile, created_profile
from nova_mcp.memory.tasks.profiles.service import ProfileKeeper, Upsert, Upserted
from nova_mcp.memory.tasks.profiles.shortlist import LEAST_JUDGED, PROFILES_PER_TERM
from nova_mcp.memory.tasks.refusals import Refused
from nova_mcp.memory.tasks.tables import task_instance, task_profile, task_profile_term, task_term
from nova_mcp.storage.engine import Database
from run_kit import tried

CONDITION = CompletionCondition("exhaustive", "page", "all_units_processed", None, EvidencePolicy("require_observed"))
CONTENT = TaskContent("spelling", "Spelling of the shop", "Find typing errors in product texts", CONDITION)
WHOLE = replace(
    CONTENT,
    domain="shop.example",
    platform="shopware",
    task_kind="content_audit",
    stable_guidance=(Guidance("g1", "style", "Names stay as they are"),),
    mandatory_checks=(Check("imprint", "The imprint was read", required=False),),
    known_exceptions=("Quotes from customers",),
    verification=(
        VerificationStep("s1", "nova.read_text", "Read it again", "field_equals", {"a": 1}, expected_value=0),
    ),
)
TENANTS = MULTI_TENANT_DOMAINS


class Still:
    def __init__(self) -> None:
        self.now = 1_000_000

    def now_ms(self) -> int:
        return self.now

    def monotonic_ms(self) -> float:
        return float(self.now)


class Counting:
    def __init__(self) -> None:
        self.made = 0

    def call_id(self) -> Any:
        raise AssertionError("no calls here")

    def token(self, size: int = 16) -> str:
        self.made += 1
        return f"{self.made:0{2 * size}x}"


@pytest.fixture
def clock() -> Still:
    return Still()


@pytest.fixture
def keeper(db: Database, clock: Still) -> ProfileKeeper:
    return ProfileKeeper(db, Ports(clock, Counting()), TENANTS)


def make(db: Database, profile_id: str, content: TaskContent = CONTENT, principal: str = "ada", at: int = 1) -> Profile:
    new = created_profile(profile_id, content, Change(), at)
    assert db.write_sync(store.create, principal, new, TENANTS)
    return new


def found(db: Database, text: str, principal: str = "ada", domain: str | None = None) -> list[str]:
    query = query_of(text, domain=domain, site=domain)
    candidates = db.read_sync(store.candidates, principal, query, TENANTS, 10)
    return [one.candidate.profile_id for one in match_profiles(query, candidates)]


def rows(db: Database, table: Any) -> int:
    return db.read_sync(lambda conn: conn.execute(select(func.count()).select_from(table)).scalar_one())


def test_a_profile_reads_back_as_it_was_written(db: Database) -> None:
    new = make(db, "whole", WHOLE)
    assert db.read_sync(store.profile, "ada", "whole") == new


def test_a_profile_of_somebody_else_is_not_there(db: Database) -> None:
    make(db, "mine")
    assert db.read_sync(store.profile, "bob", "mine") is None
    assert found(db, "spelling of the shop", "bob") == []
    assert db.read_sync(store.listed, "bob", store.Wanted()) == []
    assert db.read_sync(store.several, "bob", ["mine"]) == {}


def test_two_principals_may_use_one_id(db: Database) -> None:
    make(db, "same")
    make(db, "same", replace(CONTENT, goal="Something else"), "bob")
    assert db.read_sync(store.profile, "ada", "same") != db.read_sync(store.profile, "bob", "same")


def test_a_profile_is_found_by_its_words_and_by_the_beginning_of_long_ones(db: Database) -> None:
    make(db, "typos")
    make(db, "prices", TaskContent("prices", "Competitor prices", "Compare prices every week", CONDITION))
    assert found(db, "typing errors") == ["typos"]
    assert found(db, "comparison of competitors") == ["prices"]
    assert found(db, "weather") == []


def test_what_is_no_longer_in_a_profile_no_longer_finds_it(db: Database) -> None:
    old = make(db, "typos")
    new = replace(old, content=replace(CONTENT, goal="Find broken pictures"), content_rev=2)
    db.write_sync(store.change, "ada", old, new, TENANTS)
    assert found(db, "typing") == []
    assert found(db, "pictures") == ["typos"]
    counted = {row.term: row.profiles for row in db.read_sync(lambda conn: conn.execute(select(task_term)).all())}
    assert set(counted.values()) == {1}
    assert "typing" not in counted


def test_an_archived_profile_is_not_found_and_comes_back_whole(db: Database) -> None:
    old = make(db, "typos")
    gone = replace(old, archived=True)
    db.write_sync(store.change, "ada", old, gone, TENANTS)
    assert found(db, "typing errors") == []
    assert (rows(db, task_profile_term), rows(db, task_term)) == (0, 0)
    assert db.read_sync(store.listed, "ada", store.Wanted()) == []
    assert [one.profile_id for one in db.read_sync(store.listed, "ada", store.Wanted(archived=True))] == ["typos"]
    db.write_sync(store.change, "ada", gone, old, TENANTS)
    assert found(db, "typing errors") == ["typos"]


def test_profiles_of_the_site_are_looked_at_however_many_newer_ones_there_are(db: Database) -> None:
    make(db, "ours", replace(CONTENT, domain="shop.example"), at=1)

    def many(conn: Any) -> None:
        for number in range(PROFILES_PER_TERM + 20):
            store.create(conn, "ada", created_profile(f"p{number:04}", CONTENT, Change(), 2 + number), TENANTS)

    db.write_sync(many)
    assert "ours" in found(db, "typing errors", domain="shop.example")
    assert "ours" not in found(db, "typing errors")
    assert len(found(db, "typing errors")) == PROFILES_PER_TERM


def test_neither_newer_ones_nor_those_of_another_type_crowd_out_what_is_meant(db: Database) -> None:
    make(db, "named", replace(CONTENT, display_name="Invoices", task_type="billing"), at=1)
    aside = replace(CONTENT, stable_guidance=(Guidance("g1", "style", "Leave invoices alone"),))

    def many(conn: Any) -> None:
        for number in range(3 * LEAST_JUDGED):
            store.create(conn, "ada", created_profile(f"p{number:04}", aside, Change(), 2 + number), TENANTS)

    db.write_sync(many)
    assert found(db, "invoices")[0] == "named"
    query = query_of("typing errors", task_type="billing")
    assert [one.profile_id for one in db.read_sync(store.candidates, "ada", query, TENANTS, 10)] == ["named"]


def test_a_word_that_moves_to_another_field_is_worth_what_it_is_there(db: Database) -> None:
    old = make(db, "typos")
    new = replace(old, content=replace(CONTENT, display_name="Typing", goal="Of the shop"), content_rev=2)
    db.write_sync(store.change, "ada", old, new, TENANTS)
    where = (task_profile_term.c.term == "typing", task_term.c.term == task_profile_term.c.term)
    asked = select(task_profile_term.c.credit, task_term.c.profiles).where(*where)
    assert db.read_sync(lambda conn: [tuple(row) for row in conn.execute(asked)]) == [(10, 1)]


def test_profiles_are_listed_last_changed_first_and_by_exact_filters(db: Database) -> None:
    make(db, "old", at=1)
    make(db, "new", replace(CONTENT, domain="shop.example", platform="shopware", task_type="prices"), at=3)
    make(db, "mid", at=2)
    everything = db.read_sync(store.listed, "ada", store.Wanted())
    assert [one.profile_id for one in everything] == ["new", "mid", "old"]
    for wanted in (
        store.Wanted(task_type="prices"),
        store.Wanted(domain="shop.example"),
        store.Wanted(platform="shopware"),
    ):
        assert [one.profile_id for one in db.read_sync(store.listed, "ada", wanted)] == ["new"]
    page = db.read_sync(store.listed, "ada", store.Wanted(limit=1, offset=1))
    assert [one.profile_id for one in page] == ["mid", "old"]


def test_runs_are_counted_where_confidence_reads_them(db: Database) -> None:
    make(db, "typos")

    def runs(conn: Any) -> None:
        for _ in range(4):
            store.note_started(conn, "ada", "typos")
        store.note_ended(conn, "ada", "typos", "completed", 50)
        store.note_ended(conn, "ada", "typos", "failed", 70)
        store.note_ended(conn, "ada", "typos", "aborted", 60)
        store.note_ended(conn, "ada", "nothing", "completed", 60)
        store.note_started(conn, "bob", "typos")

    db.write_sync(runs)
    kept = db.read_sync(store.profile, "ada", "typos")
    assert kept is not None
    assert (kept.runs, kept.completed, kept.failed, kept.aborted, kept.last_ended_at_ms) == (4, 1, 1, 1, 70)


# -- changes, as a call's transaction takes them


def upsert(db: Database, keeper: ProfileKeeper, principal: str = "ada", **asked: Any) -> Upserted | Refused | NovaError:
    change = asked.pop("change", Change())
    wish = Upsert(change, asked.pop("check", lambda content: None), **asked)
    return tried(lambda: db.write_sync(keeper.upsert, principal, wish))


FIELDS = {
    "task_type": "spelling",
    "display_name": "Rechtschreibung: Größe",
    "goal": "Find typing errors",
    "completion_condition": CONDITION,
}


def test_a_new_profile_gets_an_id_from_its_name(db: Database, keeper: ProfileKeeper) -> None:
    done = upsert(db, keeper, change=Change(FIELDS))
    assert isinstance(done, Upserted)
    assert (done.kind, done.profile.content_rev, done.profile.profile_id) == (
        "created",
        1,
        "rechtschreibung-grosse-00000001",
    )


def test_a_profile_that_exists_is_changed_only_from_the_revision_that_was_read(
    db: Database, keeper: ProfileKeeper, clock: Still
) -> None:
    upsert(db, keeper, change=Change(FIELDS), profile_id="typos")
    blind = upsert(db, keeper, change=Change({"goal": "New"}), profile_id="typos")
    assert isinstance(blind, NovaError)
    assert blind.reason_code == "expected_content_rev_required"
    late = upsert(db, keeper, change=Change({"goal": "New"}), profile_id="typos", expected_rev=2)
    assert late == Refused("content_rev_conflict", {"currentContentRev": 1})
    clock.now += 5
    done = upsert(db, keeper, change=Change({"goal": "New"}), profile_id="typos", expected_rev=1)
    assert isinstance(done, Upserted)
    assert (done.kind, done.profile.content_rev, done.profile.updated_at_ms) == ("updated", 2, clock.now)
    assert db.read_sync(store.profile, "ada", "typos") == done.profile


def test_what_changes_nothing_is_unchanged_and_what_stands_beside_the_content_moves_no_revision(
    db: Database, keeper: ProfileKeeper, clock: Still
) -> None:
    made = upsert(db, keeper, change=Change(FIELDS), profile_id="typos")
    clock.now += 5
    same = upsert(db, keeper, change=Change({"goal": FIELDS["goal"]}, 0.5, False), profile_id="typos", expected_rev=1)
    assert isinstance(same, Upserted)
    assert isinstance(made, Upserted)
    assert (same.kind, same.profile) == ("unchanged", made.profile)
    moved = upsert(db, keeper, change=Change({}, 0.9, True), profile_id="typos", expected_rev=1)
    assert isinstance(moved, Upserted)
    assert (moved.kind, moved.profile.content_rev) == ("updated", 1)
    assert (moved.profile.base_confidence, moved.profile.archived) == (0.9, True)


def test_a_new_profile_without_what_it_needs_is_refused_by_name(db: Database, keeper: ProfileKeeper) -> None:
    lacking = upsert(db, keeper, change=Change({"goal": "Find"}), profile_id="new-one")
    assert isinstance(lacking, NovaError)
    assert lacking.reason_code == "invalid_params"
    assert "taskType is required; displayName is required; completionCondition is required" in lacking.message
    assert db.read_sync(store.profile, "ada", "new-one") is None


def test_what_the_whole_content_must_not_be_leaves_the_store_as_it_was(db: Database, keeper: ProfileKeeper) -> None:
    error = NovaError.__subclasses__()[0]("invalid_params", "too large")
    before = upsert(db, keeper, change=Change(FIELDS), profile_id="typos")

    def check(content: TaskContent) -> None:
        raise error

    refused = upsert(db, keeper, change=Change({"goal": "x"}), profile_id="typos", expected_rev=1, check=check)
    assert refused is error
    assert isinstance(before, Upserted)
    assert db.read_sync(store.profile, "ada", "typos") == before.profile


def run_row(instance_id: str, principal: str, content: TaskContent) -> dict[str, Any]:
    """A run, of which only its content matters here."""
    empty = {str: "", int: 0, bool: False}
    row = {one.name: empty[one.type.python_type] for one in task_instance.c if not one.nullable}
    context = json.dumps({**content_json(content), "currentScope": {}})
    told = {"instance_id": instance_id, "principal": principal, "effective_context": context}
    return {**row, **told, "overrides": "{}", "status": "completed"}


def test_a_run_fills_the_fields_that_were_not_given(db: Database, keeper: ProfileKeeper) -> None:
    run = "ab" * 16
    db.write_sync(lambda conn: conn.execute(insert(task_instance), [run_row(run, "ada", WHOLE)]))
    done = upsert(db, keeper, change=Change({"goal": "Mine"}), source_instance_id=run)
    assert isinstance(done, Upserted)
    assert done.profile.content == replace(WHOLE, goal="Mine")
    for principal, asked in (("bob", run), ("ada", "cd" * 16)):
        missing = upsert(db, keeper, principal, change=Change(FIELDS), source_instance_id=asked)
        assert isinstance(missing, NovaError)
        assert missing.reason_code == "task.instance_not_found"


def test_of_several_writers_that_read_one_revision_one_is_taken(store_url: str, open_db: Any) -> None:
    bases = [open_db(store_url) for _ in range(4)]
    make(bases[0], "typos")
    outcomes: list[object] = []

    def one(number: int) -> None:
        keeper = ProfileKeeper(bases[number], Ports(Still(), Counting()), TENANTS)
        change = Change({"goal": f"Goal {number}"})
        outcomes.append(upsert(bases[number], keeper, change=change, profile_id="typos", expected_rev=1))

    threads = [threading.Thread(target=one, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(isinstance(one, Upserted) for one in outcomes) == 1
    assert sum(one == Refused("content_rev_conflict", {"currentContentRev": 2}) for one in outcomes) == 3


def test_of_several_creators_of_one_id_one_creates(store_url: str, open_db: Any) -> None:
    bases = [open_db(store_url) for _ in range(4)]
    outcomes: list[object] = []

    def one(number: int) -> None:
        keeper = ProfileKeeper(bases[number], Ports(Still(), Counting()), TENANTS)
        outcomes.append(upsert(bases[number], keeper, change=Change(FIELDS), profile_id="typos"))

    threads = [threading.Thread(target=one, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    created = [one for one in outcomes if isinstance(one, Upserted)]
    wrong = [one.reason_code for one in outcomes if isinstance(one, NovaError)]
    assert [one.kind for one in created] == ["created"]
    assert wrong == ["expected_content_rev_required"] * 3


def test_profiles_from_before_terms_had_credits_are_worth_what_they_would_be_now(tmp_path, empty_url, open_db) -> None:
    db = open_db(f"sqlite:///{tmp_path / 'now.db'}")
    make(db, "whole", WHOLE)
    make(db, "typos", CONTENT, "bob")
    profiles, terms = (db.read_sync(_all, one) for one in (task_profile, task_profile_term))
    engine = create_engine(empty_url)
    with engine.begin() as conn:
        migrate(conn, "0008")
        conn.execute(insert(task_profile), profiles)
        old = [{name: value for name, value in row.items() if name != "credit"} for row in terms]
        bare = table("task_profile_term", *(column(name) for name in old[0]))
        conn.execute(insert(bare), old)
        migrate(conn)
    engine.dispose()
    assert len({row["credit"] for row in terms}) > 1
    assert open_db(empty_url).read_sync(_all, task_profile_term) == terms


def _all(conn: Connection, table: Table) -> list[dict[str, Any]]:
    return [dict(row) for row in conn.execute(select(table).order_by(*table.primary_key)).mappings()]
