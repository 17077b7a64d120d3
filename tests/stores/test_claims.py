"""Claims in the store: every change is a row, an end is decided once, and a fault leaves everything as it was."""

import json
from dataclasses import dataclass, field, replace

import anyio
import pytest
from sqlalchemy import select

from nova_mcp.core.clock import Ports
from nova_mcp.core.leases import Lease, Place
from nova_mcp.errors import ClaimHeld, ClaimMismatch, CoverageNotMet, InvalidParams, TooManyClaims, Unavailable
from nova_mcp.evidence.model import Caller
from nova_mcp.evidence.store import end_server, register_server
from nova_mcp.memory.claims import store
from nova_mcp.memory.claims.book import ClaimBook, Claimed, NothingHeld, Released
from nova_mcp.memory.claims.rules import Claim, Wish, hash_token, owner_key
from nova_mcp.memory.claims.store import Closing, Taking, claim_journal
from nova_mcp.memory.journal import finalize_store
from nova_mcp.memory.journal.finalize_store import finalize_decision, outbox_job
from nova_mcp.memory.journal.model import Coverage, Decision, FinalizeOrder
from nova_mcp.storage.errors import StoreUnavailable

ADA, BOB = ("local", "ada"), ("local", "bob")
TAB, OTHER, SANDBOX = Place("tab_1", "A"), Place("tab_2", "A"), Place("A", "A")


@dataclass
class Tab:
    """As much of a tab as claims look at."""

    target_id: str = "tab_1"
    sandbox_id: str = "A"
    lease: Lease | None = None


@dataclass
class World:
    """A clock that stands, ids that count, and a store that fails on order."""

    now: int = 1_000_000
    number: int = 0
    broken: bool = False
    seen: list[str] = field(default_factory=list)

    def now_ms(self) -> int:
        return self.now

    def monotonic_ms(self) -> float:
        return float(self.now)

    def call_id(self):
        raise AssertionError("claims make no calls")

    def token(self, size=16):
        self.number += 1
        return f"{self.number:0{2 * size}x}"

    def hit(self, point):
        self.seen.append(point)
        if self.broken:
            raise StoreUnavailable("full")


@pytest.fixture
def world():
    return World()


@pytest.fixture
def claims(db, world):
    return ClaimBook(Ports(world, world, world), db, "server")


def rows(db, table=claim_journal, **where):
    wanted = select(table).where(*(table.c[name] == value for name, value in where.items()))
    return [row._asdict() for row in db.read_sync(lambda conn: conn.execute(wanted).all())]


def the_row(db, table=claim_journal, **where):
    (row,) = rows(db, table, **where)
    return row


async def taken(claims, place=TAB, owner=ADA, tabs=None, **wish) -> Claimed:
    return await claims.claim(Wish(place, owner, **wish), [Tab()] if tabs is None else tabs)


# -- the journal


async def test_a_claim_is_a_row_with_hashes_where_its_secrets_were(claims, db, world):
    told = await taken(claims, ttl_ms=60_000, agent_role="mcp", debug_label="orders")
    row = the_row(db)
    assert row["task_id"] == told.claim.task_id
    assert row["task_id"].startswith("claim_")
    assert (row["target_id"], row["sandbox_id"], row["owner_agent_id"]) == ("tab_1", "A", "ada")
    assert (row["owner_key_hash"], row["token_hash"]) == (owner_key(ADA), hash_token(told.token))
    assert (row["server_instance"], row["agent_role"], row["debug_label"]) == ("server", "mcp", "orders")
    assert (row["acquired_at_ms"], row["expires_at_ms"]) == (world.now, world.now + 60_000)
    assert (row["ended_at_ms"], row["end_reason"], row["finalize_decision"]) == (None, None, None)
    assert told.token not in json.dumps([rows(db), rows(db, finalize_decision)])


async def test_renewing_keeps_the_row_the_task_and_the_token(claims, db, world):
    first = await taken(claims, debug_label="one")
    world.now += 50_000
    again = await taken(claims, debug_label="two", agent_role="archivist")
    assert (again.claim.task_id, again.token, again.renewed) == (first.claim.task_id, first.token, True)
    row = the_row(db)
    assert (row["expires_at_ms"], row["debug_label"], row["agent_role"]) == (world.now + 120_000, "two", "archivist")


async def test_calls_of_the_owner_prolong_the_row_a_little_later(claims, db, world):
    await taken(claims)
    world.now += 60_000
    claims.touched(Tab(), ADA, take=False)
    await claims.settle()
    assert the_row(db)["expires_at_ms"] == world.now + 120_000
    claims.touched(Tab(), BOB, take=False)
    await claims.settle()
    assert the_row(db)["expires_at_ms"] == world.now + 120_000


async def test_expiry_ends_the_context_with_a_skip_at_its_own_moment(claims, db, world):
    told = await taken(claims)
    world.now += 500_000
    await claims.settle()
    row = the_row(db)
    assert (row["end_reason"], row["finalize_decision"], row["ended_at_ms"]) == ("expired", "skip", 1_120_000)
    decided = the_row(db, finalize_decision, task_id=told.claim.task_id)
    assert (decided["decision"], decided["source"], decided["reason_code"]) == ("skip", "auto", "context_expired")
    assert rows(db, outbox_job) == []


async def test_a_takeover_ends_the_old_row_and_keeps_the_reason(claims, db):
    old = await taken(claims)
    new = await taken(claims, owner=BOB, reclaim_reason="ada went silent")
    assert new.previous_owner_agent_id == "ada"
    before, after = the_row(db, task_id=old.claim.task_id), the_row(db, task_id=new.claim.task_id)
    assert (before["end_reason"], before["finalize_decision"]) == ("reclaimed", "skip")
    assert before["successor"] == new.claim.task_id
    assert (after["reclaim_reason"], after["ended_at_ms"]) == ("ada went silent", None)
    with pytest.raises(ClaimHeld):
        await claims.release(ADA, TAB, FinalizeOrder(), old.token, [])
    with pytest.raises(ClaimMismatch, match="finalizationToken"):
        await claims.release(BOB, TAB, FinalizeOrder(), old.token, [])


async def test_the_displaced_owner_is_told_once(claims):
    await taken(claims)
    await taken(claims, owner=BOB, reclaim_reason="x")
    (word,) = claims.words_for(ADA)
    assert (word.target_id, word.by_agent_id) == ("tab_1", "bob")
    assert claims.words_for(BOB) == ()
    claims.told(ADA, [word])
    assert claims.words_for(ADA) == ()


async def test_a_takeover_of_a_sandbox_ends_every_claim_inside_and_every_lease(claims, db, world):
    tabs = [Tab(), Tab("tab_2"), Tab("tab_3", lease=Lease(("local", "cleo"), world.now + 9_000))]
    await taken(claims, TAB, ADA, tabs[:1])
    await taken(claims, OTHER, BOB, tabs[1:2])
    await taken(claims, Place("tab_4", "A"), BOB, [])
    await taken(claims, SANDBOX, ("local", "dan"), tabs, reclaim_reason="cleaning up")
    assert [row["end_reason"] for row in rows(db, target_id="tab_1") + rows(db, target_id="tab_2")] == ["reclaimed"] * 2
    assert [tab.lease for tab in tabs] == [None] * 3
    words = {name: [word.target_id for word in claims.words_for(("local", name))] for name in ("ada", "bob", "cleo")}
    assert words == {"ada": ["tab_1"], "bob": ["tab_2", "tab_4"], "cleo": ["A"]}


async def test_claims_of_dead_servers_end_at_the_next_start_and_living_ones_stay(claims, db, build, world):
    for server in ("server", "living"):
        db.write_sync(register_server, build.server(server))
    lost = await taken(claims)
    kept = await ClaimBook(Ports(world, world, world), db, "living").claim(Wish(OTHER, BOB), [])
    db.write_sync(end_server, "server", 2_000, "gone")
    assert db.write_sync(store.claims_of_ended_servers, 5_000) == 1
    assert db.write_sync(store.claims_of_ended_servers, 6_000) == 0
    row = the_row(db, task_id=lost.claim.task_id)
    assert (row["end_reason"], row["ended_at_ms"], row["finalize_decision"]) == ("server_restart", 5_000, "skip")
    assert the_row(db, finalize_decision)["task_id"] == lost.claim.task_id
    assert the_row(db, task_id=kept.claim.task_id)["ended_at_ms"] is None
    seen = db.read_sync(store.last_ended, ADA, ["tab_1"])
    assert seen.describe() == {
        "taskId": lost.claim.task_id,
        "endedAtUtc": "1970-01-01T00:00:05.000Z",
        "endReason": "server_restart",
        "finalizeDecision": "skip",
    }


async def test_only_the_owner_hears_how_its_claim_ended(claims, db, world):
    await taken(claims)
    assert await claims.last_ended(ADA, TAB) is None
    world.now += 200_000
    await claims.settle()
    ended = await claims.last_ended(ADA, TAB)
    assert ended is not None
    assert ended.end_reason == "expired"
    assert await claims.last_ended(BOB, TAB) is None
    assert await claims.last_ended(("other", "ada"), TAB) is None


# -- release, decision and outbox


async def test_a_release_ends_the_row_and_writes_the_decision(claims, db, world):
    told = await taken(claims)
    released = await claims.release(ADA, TAB, FinalizeOrder(claimed={"candidatesTotal": 3}), None, [])
    assert isinstance(released, Released)
    assert (released.authorization, released.conclusion.decision) == (
        "owner",
        Decision("skip", "auto", "no_candidates"),
    )
    assert released.conclusion.mismatches == ("candidatesTotal",)
    row = the_row(db)
    assert (row["end_reason"], row["finalize_decision"], row["ended_at_ms"]) == ("released", "skip", world.now)
    decided = the_row(db, finalize_decision)
    assert (json.loads(decided["claimed_stats"]), json.loads(decided["stats"])["candidatesTotal"]) == (
        {"candidatesTotal": 3},
        0,
    )
    again = await claims.release(ADA, TAB, FinalizeOrder(), told.token, [])
    assert isinstance(again, NothingHeld)
    assert len(rows(db, finalize_decision)) == 1


async def test_a_commit_leaves_one_pending_job(claims, db, world):
    told = await taken(claims)
    payload = {"scope": "shop.test", "data": {"note": "ä\x00\ud800"}}
    order = FinalizeOrder("commit", "good", "all went well", "pks.domain.save", payload)
    released = await claims.release(ADA, TAB, order, told.token, [])
    assert isinstance(released, Released)
    assert released.authorization == "token"
    job = the_row(db, outbox_job)
    assert released.conclusion.job is not None
    assert job["job_id"] == released.conclusion.job.job_id
    assert (job["job_type"], job["state"], job["attempts"]) == ("pks.domain.save", "pending", 0)
    assert (job["principal"], job["agent_id"], job["target_id"]) == ("local", "ada", "tab_1")
    assert (job["job_key"], job["due_at_ms"]) == (f"finalize:{told.claim.task_id}", world.now)
    assert json.loads(job["payload"]) == payload
    decided = the_row(db, finalize_decision)
    assert (decided["reason_code"], decided["claimed_reason_text"]) == ("good", "all went well")


async def test_br28_a_store_fault_keeps_the_claim_and_writes_nothing(claims, db, world):
    told = await taken(claims)
    world.broken = True
    with pytest.raises(Unavailable) as failed:
        await claims.release(ADA, TAB, FinalizeOrder("commit"), told.token, [])
    assert (failed.value.reason_code, failed.value.retryable) == ("claim.finalize_failed", True)
    assert failed.value.details["taskId"] == told.claim.task_id
    assert the_row(db)["ended_at_ms"] is None
    assert (rows(db, finalize_decision), rows(db, outbox_job)) == ([], [])
    assert claims.work_context(Caller(*ADA, "s"), "tab_1") is not None
    with pytest.raises(ClaimHeld):
        await taken(claims, owner=BOB)
    world.broken = False
    again = await claims.release(ADA, TAB, FinalizeOrder("commit"), told.token, [])
    assert isinstance(again, Released)
    assert (the_row(db)["end_reason"], len(rows(db, outbox_job))) == ("released", 1)


async def test_a_release_that_was_committed_unnoticed_tells_the_same_again(claims, db, world):
    told = await taken(claims)
    closing = Closing(told.claim, "released", FinalizeOrder("commit", "first"), "job_x", world.now)
    db.write_sync(store.claim_closed, closing, lambda: None)
    again = await claims.release(ADA, TAB, FinalizeOrder("skip", "second"), told.token, [])
    assert isinstance(again, Released)
    assert again.conclusion.decision == Decision("commit", "caller", "first")
    assert again.conclusion.job is not None
    assert again.conclusion.job.job_id == "job_x"
    assert len(rows(db, finalize_decision)) == len(rows(db, outbox_job)) == 1


async def test_a_claim_that_the_journal_refuses_is_none(db, world):
    book = ClaimBook(Ports(world, world, world), db, "server")
    await taken(book)

    class Away:
        async def write(self, *_):
            raise StoreUnavailable("down")

    book._db = Away()
    with pytest.raises(StoreUnavailable):
        await taken(book, OTHER, BOB)
    with pytest.raises(StoreUnavailable):
        await taken(book, TAB, BOB, reclaim_reason="x")
    assert book.over(OTHER) is None
    standing = book.over(TAB)
    assert standing is not None
    assert standing.owner == ADA
    assert book.words_for(ADA) == ()


async def test_a_tab_that_goes_by_itself_finalizes_its_claim_by_the_plan(claims, db):
    told = await taken(claims)
    claims.gone("tab_1", "tab_closed")
    assert claims.over(TAB) is None
    await claims.settle()
    assert (the_row(db)["end_reason"], the_row(db)["finalize_decision"]) == ("tab_closed", "skip")
    assert the_row(db, finalize_decision)["reason_code"] == "no_candidates"
    await claims.settle()
    assert claims.work_context(Caller(*ADA, "s"), "tab_1") is None
    assert told.claim.task_id == the_row(db)["task_id"]


async def test_closing_a_tab_finalizes_its_own_claim_but_not_its_sandboxes(claims, db):
    tab = Tab()
    await taken(claims, SANDBOX, tabs=[tab])
    assert await claims.finish(ADA, tab) is None
    await taken(claims, TAB, tabs=[tab])
    done = await claims.finish(ADA, tab)
    assert done is not None
    assert done.decision.reason_code == "no_candidates"
    assert the_row(db, target_id="tab_1")["end_reason"] == "tab_closed"
    assert the_row(db, target_id="A")["ended_at_ms"] is None


# -- who holds what


async def test_a_work_context_is_the_callers_own_live_claim_also_through_its_sandbox(claims, world):
    caller, tab = Caller(*ADA, "s"), Tab()
    claims.opened(tab)
    claims.touched(tab, ADA, take=True)
    assert claims.work_context(caller, "tab_1") is None
    told = await taken(claims, SANDBOX, tabs=[tab])
    for name in ("tab_1", "A"):
        context = claims.work_context(caller, name)
        assert context is not None
        assert (context.task_id, context.target_id, context.agent_id) == (told.claim.task_id, "A", "ada")
    assert claims.work_context(Caller(*BOB, "s"), "tab_1") is None
    assert claims.work_context(Caller("other", "ada", "s"), "tab_1") is None
    assert claims.work_context(caller, "tab_7") is None
    world.now += 120_000
    assert claims.work_context(caller, "tab_1") is None


async def test_a_released_sandbox_leaves_no_lease_of_its_owner_behind(claims, world):
    tabs = [Tab(lease=Lease(ADA, world.now + 9_000)), Tab("tab_2")]
    await taken(claims, SANDBOX, tabs=tabs)
    tabs[1].lease = Lease(ADA, world.now + 9_000)
    await claims.release(ADA, SANDBOX, FinalizeOrder(), None, tabs)
    assert [tab.lease for tab in tabs] == [None, None]


async def test_releasing_a_tab_of_a_claimed_sandbox_releases_the_sandbox(claims):
    await taken(claims, SANDBOX)
    released = await claims.release(ADA, TAB, FinalizeOrder(), None, [])
    assert isinstance(released, Released)
    assert released.claim.target_id == "A"


async def test_nobody_opens_tabs_in_a_sandbox_that_another_agent_claimed(claims):
    await taken(claims, SANDBOX)
    claims.require_free(ADA, "A")
    claims.require_free(BOB, "B")
    with pytest.raises(ClaimHeld) as refused:
        claims.require_free(BOB, "A")
    assert refused.value.details["ownerAgentId"] == "ada"


@pytest.mark.parametrize("place", [TAB, SANDBOX])
async def test_a_sandbox_with_foreign_work_in_it_is_not_ended(claims, place):
    await taken(claims, place)
    with pytest.raises(ClaimHeld):
        claims.foreign_within(BOB, "A", [Tab()])
    claims.foreign_within(ADA, "A", [Tab()])
    claims.foreign_within(BOB, "B", [Tab("tab_9", "B")])


def test_an_implicit_lease_is_taken_by_changes_only_and_never_from_somebody(claims, world):
    tab = Tab()
    claims.touched(tab, ADA, take=False)
    assert tab.lease is None
    claims.touched(tab, ADA, take=True)
    assert tab.lease == Lease(ADA, world.now + 120_000)
    world.now += 60_000
    claims.touched(tab, BOB, take=True)
    assert tab.lease == Lease(ADA, world.now + 60_000)
    claims.touched(tab, ADA, take=False)
    assert tab.lease == Lease(ADA, world.now + 120_000)
    assert claims.lease_on(tab) == tab.lease


async def test_thirty_two_claims_are_the_limit_of_an_owner(claims, world):
    for number in range(32):
        await taken(claims, Place(f"tab_{number}", "A"), tabs=[])
    with pytest.raises(TooManyClaims) as refused:
        await taken(claims, Place("tab_99", "A"), tabs=[])
    assert (refused.value.error_code, refused.value.reason_code) == (-32044, "claim.too_many")
    with pytest.raises(TooManyClaims):
        claims.require_room(ADA)
    await claims.release(ADA, Place("tab_0", "A"), FinalizeOrder(), None, [])
    claims.require_room(ADA)
    await taken(claims, Place("tab_99", "A"), tabs=[])
    world.now += 200_000
    assert claims.held_by(ADA) == []
    assert not claims.any_live()


async def test_a_clock_set_back_does_not_stretch_a_claim(claims, world):
    await taken(claims, ttl_ms=60_000)
    world.now -= 500_000
    lease = claims.lease_on(Tab())
    assert lease is not None
    assert lease.expires_at_ms == world.now + 60_000


async def test_of_many_who_claim_at_once_one_gets_it(claims, db):
    won: list[str] = []

    async def claim(name):
        try:
            await taken(claims, owner=("local", name), tabs=[])
        except ClaimHeld:
            return
        won.append(name)

    async with anyio.create_task_group() as group:
        for name in "abcdefgh":
            group.start_soon(claim, name)
    assert len(won) == len(rows(db)) == 1


# -- Learn Mode


class Unfinished:
    """Learn Mode that has seen one page of three, and what it was told of ends."""

    def __init__(self):
        self.ends = []

    def coverage(self, conn, task_id):
        return Coverage({"pages": 3}, {"pages": 1})

    def ended(self, conn, task_id, at_ms, exhausted=None):
        self.ends.append((task_id, at_ms, exhausted))


@pytest.fixture
def learning(db, world):
    return ClaimBook(Ports(world, world, world), db, "server", Unfinished())


async def test_unmet_floors_keep_the_claim(learning, db):
    told = await taken(learning)
    with pytest.raises(CoverageNotMet) as refused:
        await learning.release(ADA, TAB, FinalizeOrder(), None, [])
    assert (refused.value.error_code, refused.value.status) == (-32041, "blocked")
    assert refused.value.details == {
        "taskId": told.claim.task_id,
        "releaseState": "blocked",
        "required": {"pages": 3},
        "current": {"pages": 1},
    }
    with pytest.raises(InvalidParams) as unexplained:
        await learning.release(ADA, TAB, FinalizeOrder(coverage_exhausted=True), None, [])
    assert unexplained.value.reason_code == "learn.coverage_reason_required"
    assert the_row(db)["ended_at_ms"] is None
    order = FinalizeOrder(coverage_exhausted=True, coverage_reason="the rest needs a login we lack")
    released = await learning.release(ADA, TAB, order, None, [])
    assert isinstance(released, Released)
    assert released.coverage == Coverage({"pages": 3}, {"pages": 1})


async def test_a_tab_closed_before_its_floors_were_met_is_skipped_for_that(learning, db):
    await taken(learning)
    done = await learning.finish(ADA, Tab())
    assert done is not None
    assert done.decision == Decision("skip", "auto", "learn_floors_unmet")


# -- the functions themselves


def test_the_first_end_of_a_claim_stands(db):
    claim = Claim("claim_1", "tab_1", "A", ADA, hash_token("t"), 1, 2)
    db.write_sync(store.claim_taken, Taking(claim, "server"), 1)
    db.write_sync(store.claims_expired, [claim])
    db.write_sync(store.claims_expired, [replace(claim, expires_at_ms=9)])
    db.write_sync(store.claims_renewed, [replace(claim, expires_at_ms=99)])
    row = the_row(db)
    assert (row["ended_at_ms"], row["expires_at_ms"]) == (2, 2)
    stored = db.read_sync(finalize_store.decision_of, "claim_1")
    assert (stored.decision, stored.decided_at_ms) == (Decision("skip", "auto", "context_expired"), 2)
    assert db.read_sync(finalize_store.job_of, "claim_1") is None
    assert db.read_sync(finalize_store.conclusion_of, "claim_2") is None


async def test_closing_a_tab_waits_its_turn_and_then_leaves_what_somebody_else_took_over(claims, db):
    told = await taken(claims)
    tab = Tab()
    async with anyio.create_task_group() as group, claims._alone(ADA):
        refused: list[ClaimHeld] = []

        async def close() -> None:
            with pytest.raises(ClaimHeld) as caught:
                await claims.finish(ADA, tab)
            refused.append(caught.value)

        group.start_soon(close)
        await anyio.wait_all_tasks_blocked()
        # As a reclaim that was ahead in the queue leaves it.
        claims._claims["tab_1"] = replace(told.claim, owner=BOB, task_id="claim_of_bob")
    assert [error.reason_code for error in refused] == ["claim.owner_mismatch"]
    assert claims.over(TAB) is not None
    assert rows(db, finalize_decision) == []


async def test_renewals_that_could_not_be_written_are_written_later(claims, db, world):
    await taken(claims)
    world.now += 60_000
    claims.touched(Tab(), ADA, take=False)

    class Away:
        async def write(self, *_):
            raise StoreUnavailable("down")

    claims._db, there = Away(), claims._db
    with pytest.raises(StoreUnavailable):
        await claims.settle()
    claims._db = there
    await claims.settle()
    assert the_row(db)["expires_at_ms"] == world.now + 120_000
