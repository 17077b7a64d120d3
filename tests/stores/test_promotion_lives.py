"""What holds of entries however agents, pages and reviews are mixed: levels have a history, and none is cheated."""

import itertools
import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier

import pytest

from nova_mcp.evidence.model import CallOutcome, Checked, Signals
from nova_mcp.evidence.store import hold_chain
from nova_mcp.memory.journal.statistics.counters import shard_of
from nova_mcp.memory.knowledge import store
from nova_mcp.memory.knowledge.model import Action, ElementPrint, Fingerprint, Playbook, Signal, StableId
from nova_mcp.memory.knowledge.writes.content_rules import LiveLook
from nova_mcp.memory.knowledge.writes.page_check import PageCheck
from nova_mcp.memory.knowledge.writes.rules import Patch, Upsert
from nova_mcp.memory.knowledge.writes.store import Writer
from nova_mcp.memory.promotion import event_store, promoter, retention, steps_store
from nova_mcp.memory.promotion.gates.counting import counts_for
from nova_mcp.memory.promotion.gates.entries import entry_of
from nova_mcp.memory.promotion.model import DAY_MS, HOUR_MS
from nova_mcp.memory.promotion.promoter import Wish
from nova_mcp.memory.promotion.replay import replay_levels
from nova_mcp.memory.promotion.service import reviewed
from promotion_kit import FAILED, HERE, NOW, SIGHTED, WORKED, Site, added, phenomenon

WRITER = Writer(steps_store)
CONTROLS = ("#go", "#ok", "#close")
FOUND = LiveLook(1, True)
SOUND = (WORKED, WORKED, WORKED, SIGHTED)
UNSOUND = (FAILED, FAILED, SIGHTED, WORKED, replace(WORKED, drift="light"), replace(SIGHTED, drift="hard"))


class Life:
    """Agents write, pages answer and reviews come, at random; the same seed is the same life."""

    def __init__(self, conn, site, seed):
        self.conn, self.site, self.made, self.now = conn, site, random.Random(seed), NOW

    def step(self):
        self.now += self.made.choice((40_000, HOUR_MS, 6 * HOUR_MS, DAY_MS))
        common, rare = (self.use,) * 7 + (self.look, self.review, self.review), (self.upsert, self.patch, self.forget)
        self.made.choice(common if self.made.random() < 0.95 else (*rare, self.deprecate))()

    def check(self):
        selectors = ("#layer", *CONTROLS) if self.made.random() < 0.8 else ("#layer",)
        looks = dict.fromkeys(CONTROLS, ElementPrint("button", text="Go")) if len(selectors) > 1 else {}
        return PageCheck(self.now, dict.fromkeys(selectors, FOUND), looks)

    def playbook(self):
        return Playbook("dismiss", (Action("click", self.made.choice(CONTROLS)),))

    def use(self):
        signals = self.made.choice(UNSOUND if (self.now - NOW) // (40 * DAY_MS) % 2 else SOUND)
        self.site.write(self.conn, self.site.record(self.now, signals, self.made.choice(CONTROLS)))

    def look(self):
        verdict = self.made.choice(("seen",) * 8 + ("light_drift", "hard_drift"))
        told = Signals(structure="page", checks=(Checked("bar", verdict),))
        looked = {"tool_name": "nova.revalidate", "effect": "read", "outcome": CallOutcome("ok")}
        self.site.write(self.conn, self.site.record(self.now, told, None, **looked))

    def review(self):
        if self.made.random() < 0.5:
            reviewed(self.conn, Wish(HERE), self.now)
        else:
            promoter.promote(self.conn, Wish(HERE), self.now)

    def upsert(self):
        wish = Upsert(StableId("bar"), "modal", Fingerprint((Signal("dom", "#layer"),)), self.playbook())
        WRITER.upsert(self.conn, HERE, wish, self.check())

    def patch(self):
        wish = Patch(playbook=self.playbook(), revive=self.made.random() < 0.3)
        WRITER.patch(self.conn, HERE, "bar", wish, self.check())

    def deprecate(self):
        WRITER.deprecate(self.conn, HERE, "bar", "it is gone", self.now)

    def forget(self):
        while retention.forgetting(0)(self.conn, self.now):
            pass

    def found(self):
        return store.find(self.conn, HERE, "bar")

    def risen(self):
        """The last decision that made something active."""
        told = event_store.events(self.conn, HERE, 0, 99)
        return next(one for one in told if one.rejection is None and one.to_level == 2)


@pytest.fixture
def site(db, build):
    return Site(db, build)


STATES = {("current", 1, False), ("current", 2, False), ("pending", 1, False), ("current", 0, True)}


def test_every_level_of_every_life_has_a_history_and_nothing_becomes_active_but_by_the_log(sqlite_url, open_db, build):
    site = Site(open_db(sqlite_url), build)

    def live(conn, seed):
        life, states, active = Life(conn, site, seed), set(), None
        life.upsert()
        for number in range(300):
            life.step()
            if number % 25 == 0:
                assert replay_levels(conn).differences == ()
            found = life.found()
            states |= {(one.slot, one.kept.level, one.kept.deprecated) for one in found}
            guiding = next((one.kept.revision for one in found if one.kept.may_guide), None)
            if guiding is not None and guiding != active:
                told = life.risen()
                assert (told.reason_kind, told.created_at_ms) == ("l1_to_l2", life.now)
                assert min(told.counts.successes - 1, told.counts.success_sessions) >= 2
            active = guiding
        assert replay_levels(conn).differences == ()
        for one in life.found():
            store.remove(conn, one.entry_id)
        return states

    # One transaction each: nobody else is there, and every commit would wait for the disk.
    assert set().union(*(site.db.write_sync(live, seed) for seed in range(4))) >= STATES


@pytest.mark.parametrize("level", [0, 1])
@pytest.mark.parametrize("seed", range(2))
def test_one_session_of_one_principal_makes_nothing_active_however_many_agents_and_tabs(site, level, seed):
    put = added(site.db, phenomenon(level=level))
    made, now = random.Random(seed), NOW
    kinds = (WORKED, WORKED, SIGHTED, Signals(telemetry="confirmed", target_stable_id="banner"), FAILED)
    for number in range(40):
        now += made.choice((1_000, 31_000, 10 * 60_000, 30 * 60_000))
        site.call(now, made.choice(kinds), agent=f"agent{number % 7}", target=f"tab_{number % 5}")
        site.db.write_sync(promoter.promote, Wish(HERE), now)
        assert site.entry().kept.level < 2
    assert len({mark.session_id for mark in site.marks(put)}) == 1


def test_retries_in_any_order_come_to_the_same_evidence(site):
    tries = (SIGHTED, WORKED, FAILED, WORKED)
    found = set()
    for number, order in enumerate(itertools.permutations(range(len(tries)))):
        put = added(site.db, phenomenon(f"e{number}", selector=f"#e{number}", level=0))
        for place, which in enumerate(order):
            site.call(NOW + number * HOUR_MS + place * 7_000, tries[which], f"#e{number}")
        now = NOW + (number + 1) * HOUR_MS
        counts = counts_for(entry_of(put), "l0_to_l1", site.marks(put, now), now)
        found.add((counts.support, counts.successes, counts.failures, counts.success_sessions))
    assert found == {(1, 1, 1, 1)}


def test_calls_tools_and_reviews_of_a_busy_site_never_wait_for_each_other_in_a_circle(store_url, open_db, build):
    """Servers that count in the same rows: a deadlock would be told as a store that is locked."""
    names = [f"s{number}" for number in range(999) if shard_of(f"s{number}") == shard_of("s0")][:4]
    sites = [Site(open_db(store_url), build, name) for name in names]
    for number in range(3):
        added(sites[0].db, phenomenon(f"e{number}", selector=CONTROLS[number]))
    workers, rounds = 2, 10
    start = Barrier(len(sites) * workers * 2)

    def calls(site, worker):
        start.wait(30)
        for turn in range(rounds):
            control, who = CONTROLS[(turn + worker) % 3], {"target": f"tab_{worker}", "principal": f"p{worker}"}
            made = site.record(NOW + turn * 61_000, WORKED, control, **who)
            site.db.write_sync(site.write, made)

    def tools(site, worker):
        def write(conn, made):
            # As a recorder does it: the chain first, figures behind everything else that a transaction writes.
            hold_chain(conn, made.caller.server_id)
            promoter.promote(conn, Wish(HERE), made.started_at_ms)
            site.write(conn, made)

        start.wait(30)
        for turn in range(rounds):
            told = Signals(high_signal=True)
            what = {"tool_name": "nova.pks_upsert", "effect": "write", "principal": f"t{worker}"}
            made = site.record(NOW + turn, told, None, target="tab_t", **what)
            site.db.write_sync(write, made)

    with ThreadPoolExecutor(len(sites) * workers * 2) as threads:
        running = [
            threads.submit(do, site, worker) for site in sites for worker in range(workers) for do in (calls, tools)
        ]
        for one in running:
            one.result(120)
    assert sites[0].db.read_sync(replay_levels).differences == ()
