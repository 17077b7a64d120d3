"""Learn Mode in the store: turned on for standing claims, counted with each record, ended with its claim."""

from dataclasses import replace
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import event

from nova_mcp.core.urls import normalize_url, route_key
from nova_mcp.evidence.model import Caller, CallOutcome, CallRecord, PageState, ServerId, Signals, Touched
from nova_mcp.evidence.recorder import describe_server
from nova_mcp.evidence.store import end_server, register_server
from nova_mcp.memory.claims import store
from nova_mcp.memory.claims.rules import Claim, hash_token
from nova_mcp.memory.claims.store import Closing, Taking
from nova_mcp.memory.journal.model import Coverage, FinalizeOrder
from nova_mcp.memory.tasks.instructions import learn_store
from nova_mcp.memory.tasks.instructions.learn_mode import LearnMode, Wished
from nova_mcp.memory.tasks.instructions.learn_rules import Floors, Progress, learn_progress
from nova_mcp.memory.tasks.tables import learn_count

ADA, BOB = Caller("local", "ada", ServerId("s")), Caller("local", "bob", ServerId("s"))
FLOORS = Floors(2, 1)
numbers = count(100)


class StillClock:
    now = 1_000

    def now_ms(self):
        return self.now

    def monotonic_ms(self):
        return float(self.now)


@pytest.fixture
def learn(db):
    return LearnMode(db, StillClock(), FLOORS, frozenset())


def claimed(db, task_id="claim_1", caller=ADA, target="tab_1"):
    claim = Claim(task_id, target, "A", caller.owner, hash_token("t"), 1, 60_000)
    db.write_sync(store.claim_taken, Taking(claim, "server"), 1)
    return claim


def page(path, host="shop.test"):
    url = normalize_url(f"https://{host}{path}")
    return PageState("tab_1", "A", url, route_key(url), 1)


def look(path="/", caller=ADA, at_ms=2_000, host="shop.test", **signals):
    here = page(path, host)
    return CallRecord(
        "c",
        caller,
        "nova.perceive",
        "read",
        at_ms,
        1,
        CallOutcome("ok"),
        before=here,
        after=here,
        touched=Touched(flags=frozenset({"content_exposed"})),
        signals=Signals(**signals),
    )


def click(path="/", control="#go", **changes):
    record = look(path, page_changed=True)
    return replace(
        record,
        tool_name="nova.click_selector",
        effect="act",
        outcome=CallOutcome("ok", action_dispatched=True),
        touched=Touched(selector_hash=control),
        **changes,
    )


def counted(db, learn, *records):
    for record in records:
        db.write_sync(learn.count, record, None)


def progress(db, task_id="claim_1"):
    return db.read_sync(learn_store.find, task_id).progress


async def activate(learn, task_id="claim_1", caller=ADA, host="https://shop.test/", domain=None):
    (told,) = await learn.activate(caller, [Wished("tab_1", task_id, host)], domain)
    return told.refused


# -- turning it on


async def test_a_claim_learns_the_site_its_tab_shows(db, learn):
    claimed(db)
    assert await activate(learn, host="https://www.eu.shop.test:8443/cart") is None
    (visit,) = await learn.visits(ADA)
    assert (visit.task_id, visit.domain, visit.progress) == ("claim_1", "shop.test", Progress())
    assert await learn.visits(BOB) == []


async def test_without_a_claim_or_on_another_site_nothing_is_turned_on(db, learn):
    assert await activate(learn, None) == "claim_required"
    assert await activate(learn, "claim_never") == "claim_required"
    claimed(db)
    assert await activate(learn, domain="other.test") == "domain_mismatch"
    assert await activate(learn, host="about:blank", domain="shop.test") == "domain_mismatch"
    assert await activate(learn, host=None) == "domain_mismatch"
    assert await learn.visits(ADA) == []


async def test_asking_again_goes_on_counting(db, learn):
    claimed(db)
    await activate(learn)
    counted(db, learn, look("/a"))
    assert await activate(learn, domain="https://shop.test") is None
    assert progress(db) == Progress(1, 0)
    assert await activate(learn, host="https://other.test/") == "domain_mismatch"
    assert (await learn.visits(ADA))[0].domain == "shop.test"


async def test_a_claim_that_is_over_learns_no_more(db, learn):
    claim = claimed(db)
    await activate(learn)
    db.write_sync(store.claims_expired, [claim], learn)
    assert await activate(learn) == "claim_required"


# -- counting


async def test_calls_count_for_their_agent_since_activation_on_any_target(db, learn):
    claimed(db)
    counted(db, learn, look("/before"))
    await activate(learn)
    elsewhere = replace(look("/b"), after=replace(page("/b"), target_id="tab_9"))
    counted(db, learn, look("/a"), elsewhere, look("/c", caller=BOB), look("/old", at_ms=999))
    counted(db, learn, look("/d", host="other.test"), look("/d", caller=Caller("eve", "ada", ServerId("s"))))
    assert progress(db) == Progress(2, 0)


async def test_every_visit_of_an_agent_counts_for_itself(db, learn):
    claimed(db)
    claimed(db, "claim_2", target="tab_2")
    await activate(learn)
    counted(db, learn, look("/a"))
    await activate(learn, "claim_2")
    counted(db, learn, look("/a"), click("/a"))
    assert (progress(db), progress(db, "claim_2")) == (Progress(1, 1), Progress(1, 1))


PATHS = ["/", "/cart", "/blog/a-post", "/blog/b-post", "/blog/c-post", "/item/1", "/#/x"]
looks = st.builds(
    lambda path, names: look(path, dialogs=names), st.sampled_from(PATHS), st.lists(st.sampled_from("abcde")).map(tuple)
)
clicks = st.builds(lambda path, control: click(path, control), st.sampled_from(PATHS), st.sampled_from(["#a", "#b"]))
others = st.builds(lambda path: look(path, caller=BOB), st.sampled_from(PATHS))


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.one_of(looks, clicks, others), max_size=15))
async def test_the_store_counts_what_the_rule_counts(db, learn, records):
    task_id = f"claim_{next(numbers)}"
    claimed(db, task_id)
    await activate(learn, task_id)
    counted(db, learn, *records)
    own = [one for one in records if one.caller == ADA]
    found = progress(db, task_id)
    db.write_sync(learn_store.end, task_id, FLOORS, 5_000, None)
    assert found == learn_progress(own, "shop.test")


async def test_an_agent_without_a_visit_costs_one_lookup_and_other_calls_none(db, learn):
    statements = []

    def run(conn, record):
        event.listen(conn, "before_cursor_execute", lambda *args: statements.append(args[2]))
        learn.count(conn, record, None)

    db.write_sync(run, look())
    assert len(statements) == 1
    db.write_sync(run, replace(look(), tool_name="nova.navigate"))
    assert len(statements) == 1


# -- ends


def closing(claim, reason="released", **order):
    return Closing(claim, reason, FinalizeOrder(**order), "job_1", 9_000)


async def test_coverage_is_told_until_the_visit_ends(db, learn):
    assert db.read_sync(learn.coverage, "claim_1") is None
    claim = claimed(db)
    await activate(learn)
    counted(db, learn, look("/a"), click("/a"))
    assert db.read_sync(learn.coverage, "claim_1") == Coverage(
        {"visitedSurfaces": 2, "meaningfulInteractions": 1}, {"visitedSurfaces": 1, "meaningfulInteractions": 1}
    )
    db.write_sync(store.claims_expired, [claim], learn)
    assert db.read_sync(learn.coverage, "claim_1") is None
    counted(db, learn, look("/b"))
    visit = db.read_sync(learn_store.find, "claim_1")
    assert (visit.outcome, visit.progress, visit.ended) == ("incomplete", Progress(1, 1), True)


@pytest.mark.parametrize("end", ["expired", "reclaimed", "restart"])
async def test_ends_that_nobody_asked_for_leave_it_incomplete(db, learn, end):
    claim = claimed(db)
    await activate(learn)
    if end == "expired":
        db.write_sync(store.claims_expired, [claim], learn)
    elif end == "reclaimed":
        taker = Claim("claim_2", "tab_1", "A", BOB.owner, hash_token("u"), 5, 60_000)
        db.write_sync(store.claim_taken, Taking(taker, "server", "needed", (claim,)), 5, learn)
    else:
        db.write_sync(register_server, describe_server(ServerId("server"), 1, "test"))
        db.write_sync(end_server, ServerId("server"), 2, "gone")
        assert db.write_sync(store.claims_of_ended_servers, 5, learn) == 1
    visit = db.read_sync(learn_store.find, "claim_1")
    assert (visit.outcome, visit.ended) == ("incomplete", True)


async def test_a_reason_is_kept_beside_the_counters_only_where_it_was_needed(db, learn):
    claimed(db)
    await activate(learn)
    db.write_sync(learn_store.end, "claim_1", FLOORS, 5, "the rest needs a login that we lack")
    visit = db.read_sync(learn_store.find, "claim_1")
    assert (visit.outcome, visit.exhausted_reason) == ("exhausted", "the rest needs a login that we lack")
    db.write_sync(learn_store.end, "claim_1", FLOORS, 6, None)
    assert db.read_sync(learn_store.find, "claim_1") == visit
    claimed(db, "claim_2")
    await activate(learn, "claim_2")
    counted(db, learn, look("/a"), look("/b"), click("/a"))
    db.write_sync(learn_store.end, "claim_2", FLOORS, 5, "the rest needs a login that we lack")
    done = db.read_sync(learn_store.find, "claim_2")
    assert (done.outcome, done.exhausted_reason) == ("complete", None)


async def test_ended_visits_are_forgotten_with_their_counts_and_open_ones_stay(db, learn):
    claimed(db)
    claimed(db, "claim_2", BOB)
    await activate(learn)
    await activate(learn, "claim_2", BOB)
    counted(db, learn, look("/a"), look("/a", caller=BOB))
    db.write_sync(learn_store.end, "claim_1", FLOORS, 5_000, None)
    day = 86_400_000
    forget = learn_store.forgetting(30)
    assert db.write_sync(forget, 30 * day) == 0
    assert db.write_sync(forget, 5_001 + 30 * day) == 1
    left = db.read_sync(lambda conn: conn.execute(learn_count.select()).all())
    assert [row.task_id for row in left] == ["claim_2"]
    assert db.read_sync(learn_store.find, "claim_1") is None
