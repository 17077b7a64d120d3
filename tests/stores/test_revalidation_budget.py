"""What revalidation may spend, in the store: an hour's worth, however many servers look at once."""

import threading
from concurrent.futures import ThreadPoolExecutor

from sqlalchemy import func, select

from nova_mcp.memory.knowledge.drift import HOUR_MS, IN_ALL, PER_SCOPE, PER_TARGET
from nova_mcp.memory.promotion.revalidation.check_store import spend
from nova_mcp.memory.promotion.tables import revalidation_check

NOW = 1_800_000_000_000
HERE = "shop.example"


def spent(db):
    return db.read_sync(lambda conn: conn.execute(select(func.count()).select_from(revalidation_check)).scalar_one())


def test_what_is_allowed_is_taken_and_what_is_not_is_named(db):
    first = db.write_sync(spend, HERE, "tab_1", 4, NOW)
    assert (first.allowed, first.remaining, first.denied, first.retry_after_ms) == (4, PER_TARGET - 4, (), None)
    second = db.write_sync(spend, HERE, "tab_1", 4, NOW + 1000)
    assert (second.allowed, second.remaining, second.denied) == (PER_TARGET - 4, 0, ("budget_target",))
    assert second.retry_after_ms == HOUR_MS - 1000
    assert spent(db) == PER_TARGET


def test_an_hour_later_nothing_of_it_is_left(db):
    db.write_sync(spend, HERE, "tab_1", PER_TARGET, NOW)
    assert db.write_sync(spend, HERE, "tab_1", 1, NOW + HOUR_MS - 1).allowed == 0
    assert db.write_sync(spend, HERE, "tab_1", 1, NOW + HOUR_MS).allowed == 1
    assert spent(db) == 1


def test_asking_for_nothing_spends_nothing(db):
    assert db.write_sync(spend, HERE, "tab_1", 0, NOW).denied == ()
    assert spent(db) == 0


def _at_once(count, act):
    gate = threading.Barrier(count)

    def one(number):
        gate.wait()
        return act(number)

    with ThreadPoolExecutor(count) as threads:
        return list(threads.map(one, range(count)))


def test_servers_that_look_at_once_never_spend_more_than_there_is(store_url, open_db):
    bases = [open_db(store_url) for _ in range(4)]

    def one_site(writer):
        return sum(bases[writer].write_sync(spend, HERE, f"tab_{writer}_{n}", 1, NOW).allowed for n in range(6))

    assert sum(_at_once(4, one_site)) == PER_SCOPE

    def many_sites(writer):
        return sum(
            bases[writer].write_sync(spend, f"s{writer}-{n}.example", f"t{writer}_{n}", 1, NOW).allowed
            for n in range(20)
        )

    assert sum(_at_once(4, many_sites)) == IN_ALL - PER_SCOPE
    assert spent(bases[0]) == IN_ALL
