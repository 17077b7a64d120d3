"""Evidence of units at registration: what members saw before, and nothing of anybody else."""

import pytest

from nova_mcp.core.urls import normalize_url, url_hash
from nova_mcp.memory.tasks.coverage import evidence_store, site_urls, visit_store
from nova_mcp.memory.tasks.coverage.locators import Declared, path_hash
from nova_mcp.memory.tasks.coverage.visits import Visit
from task_evidence_kit import ADA, BOB, add_units, grade_of, join, open_run, unit

PAGE = "https://shop.example/a?x=1"
JOINED = 100_000


def visit(url: str = PAGE, *, at_ms: int = JOINED, reads: int = 1, stayed_ms: int = 2_000, **more) -> Visit:
    return Visit(
        target_id="T1",
        task_id=None,
        url_hash=url_hash(url),
        path_hash=path_hash(url),
        started_at_ms=at_ms,
        ended_at_ms=at_ms + 10,
        last_call_at_ms=at_ms,
        last_read_at_ms=at_ms if reads else None,
        stayed_ms=stayed_ms,
        settled=True,
        reads=reads,
        **more,
    )


@pytest.fixture
def write(store_url, open_db):
    return open_db(store_url).write_sync


def test_registration_finds_what_a_member_saw(write):
    def work(conn):
        open_run(conn)
        keys = add_units(conn, PAGE, "https://shop.example/b")
        visit_store.save(conn, ADA, visit())
        evidence_store.fill(conn, "run", keys, JOINED)
        return [grade_of(conn, key) for key in keys]

    assert write(work) == [("strong", None), ("none", "no_matching_observation")]


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (visit(reads=0), ("weak", "no_read")),
        (visit(stayed_ms=989), ("weak", "dwell_too_short")),
        (visit(stayed_ms=990), ("strong", None)),
        (visit(error_page=True), ("weak", "error_page")),
        (visit(agent_scripted=True), ("weak", "agent_scripted")),
        (visit("https://shop.example/a"), ("none", "no_matching_observation")),
    ],
)
def test_each_row_of_the_table(write, seen, expected):
    def work(conn):
        open_run(conn)
        (key,) = add_units(conn, PAGE)
        visit_store.save(conn, ADA, seen)
        evidence_store.fill(conn, "run", [key], JOINED)
        return grade_of(conn, key)

    assert write(work) == expected


@pytest.mark.parametrize(("before_ms", "name"), [(30_000, "strong"), (30_001, "none")])
def test_a_member_brings_what_it_did_half_a_minute_before(write, before_ms, name):
    def work(conn):
        open_run(conn)
        (key,) = add_units(conn, PAGE)
        visit_store.save(conn, ADA, visit(at_ms=JOINED - before_ms))
        evidence_store.fill(conn, "run", [key], JOINED)
        return grade_of(conn, key)[0]

    assert write(work) == name


def test_of_a_visit_that_began_too_early_only_the_later_part_counts(write):
    def work(conn):
        open_run(conn)
        (key,) = add_units(conn, PAGE)
        long = visit(at_ms=JOINED - 60_000, stayed_ms=0)
        read_early = Visit(
            **{field: getattr(long, field) for field in long.__dataclass_fields__}
            | {"ended_at_ms": JOINED, "last_call_at_ms": JOINED - 5, "calls": 9}
        )
        visit_store.save(conn, ADA, read_early)
        evidence_store.fill(conn, "run", [key], JOINED)
        return grade_of(conn, key)

    assert write(work) == ("weak", "no_read")


def test_what_others_saw_proves_nothing(write):
    def work(conn):
        open_run(conn)
        (key,) = add_units(conn, PAGE)
        visit_store.save(conn, BOB, visit())
        visit_store.save(conn, ("other", "ada"), visit())
        evidence_store.fill(conn, "run", [key], JOINED)
        return grade_of(conn, key)

    assert write(work) == ("none", "no_matching_observation")


def test_who_joins_brings_what_it_just_saw(write):
    def work(conn):
        open_run(conn)
        (key,) = add_units(conn, PAGE)
        visit_store.save(conn, BOB, visit(at_ms=JOINED + 5_000))
        evidence_store.fill(conn, "run", [key], JOINED)
        before = grade_of(conn, key)[0]
        join(conn, "run", BOB, JOINED + 20_000)
        evidence_store.fill_for(conn, "run", BOB, JOINED + 20_000)
        return before, grade_of(conn, key)[0]

    assert write(work) == ("none", "strong")


def test_a_redirect_seen_by_the_member_leads_to_the_page(write):
    def work(conn):
        open_run(conn)
        keys = add_units(conn, "http://www.shop.example/A?x=1", "http://other.example/a?x=1")
        visit_store.save(conn, ADA, visit())
        evidence_store.fill(conn, "run", keys, JOINED)
        before = [grade_of(conn, key)[0] for key in keys]
        visit_store.redirected(conn, ADA, [key.removeprefix("url:") for key in keys[:1]], url_hash(PAGE), JOINED)
        evidence_store.fill(conn, "run", keys, JOINED)
        return before, [grade_of(conn, key)[0] for key in keys]

    assert write(work) == (["none", "none"], ["strong", "none"])


def test_a_redirect_of_somebody_else_or_of_long_ago_leads_nowhere(write):
    def work(conn):
        open_run(conn)
        (key,) = add_units(conn, "http://www.shop.example/a?x=1")
        visit_store.save(conn, ADA, visit())
        visit_store.redirected(conn, BOB, [key.removeprefix("url:")], url_hash(PAGE), JOINED)
        visit_store.redirected(conn, ADA, [key.removeprefix("url:")], url_hash(PAGE), JOINED - 30_001)
        evidence_store.fill(conn, "run", [key], JOINED)
        return grade_of(conn, key)[0]

    assert write(work) == "none"


def test_a_path_matches_any_query_and_a_control_is_never_strong(write):
    def work(conn):
        open_run(conn, unit_kind="item")
        path = Declared("url_path", "https://shop.example/a?other=2")
        exact = Declared("url_exact", "https://shop.example/a")
        control = Declared("selector", "#save")
        keys = [
            *add_units(conn, "by path", kind="item", declared=path),
            *add_units(conn, "by address", kind="item", declared=exact),
            *add_units(conn, "by control", kind="item", declared=control),
        ]
        visit_store.save(conn, ADA, visit())
        visit_store.touch(conn, ADA, unit(conn, "by control").locator_hash, JOINED)
        evidence_store.fill(conn, "run", keys, JOINED)
        return [grade_of(conn, key) for key in keys]

    assert write(work) == [("strong", None), ("none", "no_matching_observation"), ("weak", "locator_weak_only")]


def test_seeds_are_the_newest_known_addresses_of_a_domain(write):
    def work(conn):
        for number, url in enumerate(
            [
                "https://shop.example/1",
                "https://www.shop.example/2",
                "https://eu.shop.example/3",
                "https://notshop.example/4",
                "https://shop.example/5",
            ]
        ):
            site_urls.note(conn, "local", number, visited=[normalize_url(url)])
        site_urls.note(conn, "other", 9, visited=["https://shop.example/6"])
        site_urls.note(conn, "local", 7, links=["https://shop.example/1"])
        return (
            site_urls.seeds(conn, "local", "shop.example", 3),
            site_urls.seeds(conn, "local", "eu.shop.example", 10),
            site_urls.seeds(conn, "local", "not a host", 10),
        )

    assert write(work) == (
        ["https://shop.example/1", "https://shop.example/5", "https://eu.shop.example/3"],
        ["https://eu.shop.example/3"],
        [],
    )
