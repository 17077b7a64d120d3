"""A report on a run meets a call that proves something about its units: one waits for the other, both end."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import text

from nova_mcp.core.urls import url_hash
from nova_mcp.memory.tasks.answers import Progressed
from nova_mcp.memory.tasks.coverage import evidence_store
from nova_mcp.memory.tasks.coverage.evidence_store import Findings
from nova_mcp.memory.tasks.coverage.locators import path_hash
from nova_mcp.memory.tasks.coverage.visits import Visit
from nova_mcp.memory.tasks.runs.read import Wanted, look
from nova_mcp.memory.tasks.runs.store import run_of
from nova_mcp.memory.tasks.runs.transactions import Occasion, Runs
from run_kit import ADA, NOW, Story, begin, items, moved_pages, pages

pytestmark = pytest.mark.postgres
RUNS = Runs("block", evidence_store)
ONE, OTHER = "https://shop.example/a", "https://shop.example/b"


def wait_for_a_blocked_session(conn, other):
    while not other.done() and not conn.execute(text("SELECT count(*) FROM pg_locks WHERE NOT granted")).scalar():
        pass


def visit(url):
    return Visit("T1", None, url_hash(url), path_hash(url), NOW, NOW + 2_000, NOW, NOW, settled=True, reads=1)


def seen_both(conn):
    """What the record of a call does that leaves one page of a run for another."""
    runs = evidence_store.open_runs(conn, ADA)
    return evidence_store.apply(conn, runs, Findings([visit(ONE), visit(OTHER)]), NOW)


@pytest.fixture
def stores(postgres_url, open_db):
    return open_db(postgres_url), open_db(postgres_url)


@pytest.mark.parametrize("moved", [ONE, OTHER])
def test_a_report_and_a_visit_never_wait_for_each_other(stores, moved):
    first, second = stores

    def started(conn):
        story = Story(conn, begin(conn, items(kind="page"), target_url="https://shop.example/"))
        story.tell(discovered=pages("/a", "/b"))
        return story.run

    run = first.write_sync(started)
    with ThreadPoolExecutor(1) as thread:

        def overlap(conn):
            story = Story(conn, run, runs=RUNS)
            told = story.tell(updates=moved_pages("checked", moved))
            other = thread.submit(second.write_sync, seen_both)
            wait_for_a_blocked_session(conn, other)
            # Whatever the report still touches is its own until it ends.
            everything = [one for one in (ONE, OTHER) if one != moved]
            again = story.tell(updates=moved_pages("checked", *everything))
            return told, again, other

        told, again, other = first.write_sync(overlap)
        assert isinstance(told, Progressed)
        assert isinstance(again, Progressed)
        assert {unit.evidence.grade.name for unit in other.result(30)} == {"strong"}
    view = first.write_sync(look, RUNS, Occasion(ADA, NOW), run.instance_id, Wanted("checked"))
    assert [one.grade.name for one in view.units] == ["strong", "strong"]
    assert first.read_sync(run_of, "local", run.instance_id).state.rev == 3


def test_a_visit_that_waited_for_the_end_of_a_run_leaves_it_alone(stores):
    first, second = stores

    def started(conn):
        story = Story(conn, begin(conn, items(kind="page"), target_url="https://shop.example/"))
        story.tell(discovered=pages("/a", "/b"))
        return story.run

    run = first.write_sync(started)
    with ThreadPoolExecutor(1) as thread:

        def overlap(conn):
            ended = Story(conn, run, runs=RUNS).abort()
            other = thread.submit(second.write_sync, seen_both)
            wait_for_a_blocked_session(conn, other)
            return ended, other

        ended, other = first.write_sync(overlap)
        assert ended.status == "aborted"
        assert other.result(30) == []
