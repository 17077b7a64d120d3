"""Knowledge is decided in the record of the call: servers that act and servers that write never hold each other up."""

import itertools
from concurrent.futures import ThreadPoolExecutor

import pytest

from nova_mcp.evidence import store as ledger
from nova_mcp.evidence.decision import decide
from nova_mcp.evidence.model import CallOutcome, PageState, Signals, Touched
from nova_mcp.memory.journal.collector import derive
from nova_mcp.memory.knowledge import store
from nova_mcp.memory.knowledge.model import Action, Context, Fingerprint, Playbook, ScopeName, Signal, StableId
from nova_mcp.memory.knowledge.writes.content_rules import LiveLook
from nova_mcp.memory.knowledge.writes.entry_write import entry_write
from nova_mcp.memory.knowledge.writes.page_check import PageCheck
from nova_mcp.memory.knowledge.writes.rules import Patch, Upsert, Written
from nova_mcp.memory.knowledge.writes.store import Writer
from nova_mcp.memory.promotion import steps_store
from nova_mcp.memory.promotion.collector import HOOKS
from nova_mcp.memory.promotion.telemetry import BACKING_MS, Report, backing, event_keys
from nova_mcp.tools.knowledge.write_context import written

HERE = ScopeName("shop.test")
NOW = 1_800_000_000_000
MINUTE = 60_000
WRITER = Writer(steps_store)
WISH = Upsert(
    StableId("bar"), "modal", Fingerprint((Signal("dom", "#bar"),)), Playbook("dismiss", (Action("click", "#go"),))
)
CHECK = PageCheck(NOW, {"#bar": LiveLook(1), "#go": LiveLook(1, True)})
KEYS = event_keys(HERE, ["nova.click_selector"], ["#go"])


class Caller:
    """One server's calls on the page, each in the transaction of its record."""

    def __init__(self, db, build, server):
        self.db, self.build, self.server = db, build, server
        self.numbers = itertools.count(1)
        db.write_sync(ledger.register_server, build.server(server))

    def _page(self):
        return PageState(self.server, "A", "https://shop.test/desk", "shop.test/desk", 1)

    def _record(self, at_ms, **changes):
        page = self._page()
        call_id = f"{self.server}-c{next(self.numbers)}"
        return self.build.page_call(self.server, call_id, at_ms, **{"before": page, "after": page, **changes})

    def click(self, at_ms, label="success"):
        verified = "verified" if label == "success" else None
        made = self._record(
            at_ms,
            tool_name="nova.click_selector",
            outcome=CallOutcome("ok", action_dispatched=True, verification=verified),
            signals=Signals(label=label),
            touched=Touched("#go", "hash", "el_1"),
        )
        self.db.write_sync(lambda conn: derive(conn, made, ledger.append_call(conn, made), HOOKS))
        return made

    def write(self, at_ms, write):
        made = self._record(
            at_ms, tool_name="nova.pks_upsert", effect="write", outcome=CallOutcome("ok"), touched=Touched()
        )

        def run(conn):
            ledger.hold_chain(conn, made.caller.server_id)
            told, done = decide(conn, made, entry_write(write))
            derive(conn, told, ledger.append_call(conn, told), HOOKS)
            return done, told

        return self.db.write_sync(run)


def test_acting_and_writing_servers_finish_together_and_lose_nothing(store_url, open_db, build):
    actors = [Caller(open_db(store_url), build, name) for name in ("a1", "a2")]
    authors = [Caller(open_db(store_url), build, name) for name in ("w1", "w2")]
    authors[0].write(NOW, lambda conn: WRITER.upsert(conn, HERE, WISH, CHECK))
    rounds = 12

    def act(caller):
        for number in range(rounds):
            caller.click(NOW + number * MINUTE)

    def author(caller):
        for number in range(rounds):
            patch = Patch(context=Context(routes=(f"{caller.server}-{number}", "desk")))
            done, _ = caller.write(
                NOW + number * MINUTE, lambda conn, patch=patch: WRITER.patch(conn, HERE, "bar", patch, CHECK)
            )
            assert isinstance(done, Written)

    with ThreadPoolExecutor(4) as threads:
        for done in [threads.submit(act, one) for one in actors] + [threads.submit(author, one) for one in authors]:
            done.result()
    (kept,) = actors[0].db.read_sync(store.find, HERE, "bar")
    assert kept.kept.revision == 1 + 2 * rounds
    assert kept.kept.health.successes == 2 * rounds


def test_a_write_that_was_refused_says_so_on_its_record(db, build):
    caller = Caller(db, build, "s1")

    def patch(patch):
        def write(conn):
            return written(WRITER.patch(conn, HERE, "bar", patch, CHECK), "patch", HERE, "bar")

        return caller.write(NOW, write)

    _, told = patch(Patch(type="custom"))
    assert (told.outcome.kind, told.outcome.reason_code) == ("failed", "pks.scope_not_found")
    _, first = caller.write(NOW, lambda conn: WRITER.upsert(conn, HERE, WISH, CHECK))
    assert (first.outcome.kind, first.signals.high_signal) == ("ok", True)
    _, again = caller.write(NOW, lambda conn: WRITER.upsert(conn, HERE, WISH, CHECK))
    assert (again.outcome.kind, again.signals.high_signal) == ("ok", False)
    stale = Patch(type="custom", expected_revision=7)
    _, late = patch(stale)
    assert (late.outcome.kind, late.outcome.reason_code, late.signals.high_signal) == ("ok", "rev_conflict", False)
    broad = Patch(playbook=Playbook("dismiss", (Action("click", "*"),)))
    _, bad = patch(broad)
    assert (bad.outcome.kind, bad.outcome.error_code) == ("invalid", -32602)


# -- what stands behind a report


def report(caller, at_ms, verdict="success", principal=None, host=HERE, number=0):
    given = principal or caller.build.page_call(caller.server, "x", 0).caller.principal
    return Report(given, host, verdict, KEYS, f"report{number}", at_ms)


@pytest.mark.parametrize(
    ("change", "backed"),
    [
        ({}, True),
        ({"verdict": "failure"}, False),
        ({"principal": "somebody-else"}, False),
        ({"host": "other.test"}, False),
    ],
)
def test_a_report_needs_a_call_of_the_same_principal_site_and_result(db, build, change, backed):
    caller = Caller(db, build, "s1")
    made = caller.click(NOW)
    found = db.write_sync(backing, report(caller, NOW + MINUTE, **change))
    assert (None if found is None else found.call_id) == (made.call_id if backed else None)


@pytest.mark.parametrize(("late", "backed"), [(0, True), (1, False)])
def test_a_call_stands_behind_a_report_for_ten_minutes(db, build, late, backed):
    caller = Caller(db, build, "s1")
    made = caller.click(NOW)
    ended = made.started_at_ms + made.duration_ms
    assert (db.write_sync(backing, report(caller, ended + BACKING_MS + late)) is not None) is backed


def test_sightings_and_other_controls_stand_behind_nothing(db, build):
    caller = Caller(db, build, "s1")
    caller.click(NOW, "sighting")
    assert db.write_sync(backing, report(caller, NOW + MINUTE)) is None
    caller.click(NOW + MINUTE)
    other = Report(
        report(caller, 0).principal, HERE, "success", event_keys(HERE, ["nova.hover"], ["#go"]), "r", NOW + MINUTE
    )
    assert db.write_sync(backing, other) is None


def test_one_call_stands_behind_one_report_however_many_are_made(store_url, open_db, build):
    callers = [Caller(open_db(store_url), build, name) for name in ("s1", "s2", "s3")]
    callers[0].click(NOW)

    def tell(number):
        caller = callers[number % 3]
        return caller.db.write_sync(backing, report(callers[0], NOW + MINUTE, number=number))

    with ThreadPoolExecutor(3) as threads:
        assert sum(one is not None for one in threads.map(tell, range(9))) == 1
