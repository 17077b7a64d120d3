"""Ids are never given twice, and a target that is gone leaves word of itself."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from nova_mcp.evidence import store as ledger
from nova_mcp.evidence.targets import store
from nova_mcp.evidence.targets.store import OpenedTarget


@pytest.fixture
def opened(db):
    target = OpenedTarget("t1", "s1", "server", "local", "about:blank", 1_000)
    db.write_sync(store.target_opened, target)
    return db


def test_numbers_are_never_given_twice_even_to_several_servers_at_once(store_url, open_db):
    bases = [open_db(store_url) for _ in range(3)]
    with ThreadPoolExecutor(6) as threads:
        numbers = list(threads.map(lambda n: bases[n % 3].write_sync(store.next_id, "target"), range(90)))
    assert sorted(numbers) == list(range(1, 91))
    assert bases[0].write_sync(store.next_id, "sandbox") == 1


def test_a_living_target_is_seen_where_it_went_last(opened):
    opened.write_sync(store.target_moved, "t1", "https://example.com/")
    seen = opened.read_sync(store.last_seen, "local", "t1")
    assert (seen.url, seen.ended_at_ms, seen.end_reason) == ("https://example.com/", None, None)


def test_the_first_end_of_a_target_stands(opened):
    opened.write_sync(store.target_ended, "t1", 2_000, "closed")
    opened.write_sync(store.target_ended, "t1", 3_000, "browser_exit")
    seen = opened.read_sync(store.last_seen, "local", "t1")
    assert (seen.ended_at_ms, seen.end_reason) == (2_000, "closed")


def test_another_principal_learns_nothing(opened):
    assert opened.read_sync(store.last_seen, "stranger", "t1") is None
    assert opened.read_sync(store.last_seen, "local", "t2") is None


def test_a_server_that_is_gone_ends_its_open_targets_only(opened, build):
    for server in ("server", "other"):
        opened.write_sync(ledger.register_server, build.server(server))
    opened.write_sync(store.target_opened, OpenedTarget("t2", "s1", "server", "local", None, 1_000))
    opened.write_sync(store.target_opened, OpenedTarget("t3", "s1", "other", "local", None, 1_000))
    opened.write_sync(store.target_ended, "t2", 1_500, "closed")
    assert opened.write_sync(store.targets_of_ended_servers, 1_900) == 0
    opened.write_sync(ledger.end_server, "server", 1_950, "gone")
    assert opened.write_sync(store.targets_of_ended_servers, 2_000) == 1
    reasons = [opened.read_sync(store.last_seen, "local", name).end_reason for name in ("t1", "t2", "t3")]
    assert reasons == ["server_restart", "closed", None]
