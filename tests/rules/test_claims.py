"""Claims as pure rules: who may take, change, renew and let go, and what becomes of the learning under them."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from nova_mcp.core.leases import Lease, Place
from nova_mcp.core.values import Owner
from nova_mcp.memory.claims.rules import (
    DEFAULT_TTL_MS,
    MAX_TTL_MS,
    MIN_TTL_MS,
    MOST_CLAIMS,
    Claim,
    Foreign,
    Grant,
    NotHeld,
    NotYours,
    Occupied,
    Releasable,
    Renewal,
    TooMany,
    Wish,
    WrongToken,
    governing,
    hash_token,
    held_by,
    held_by_other,
    judge_claim,
    judge_release,
    lapsed,
    may_mutate,
    owner_key,
    prolonged,
    token_fits,
    within_term,
)
from nova_mcp.memory.journal.model import (
    CandidateEvidence,
    Coverage,
    Decision,
    EvidenceStrength,
    FinalizeOrder,
    FinalizeStats,
    FinalizeSummary,
    WorkContext,
)
from nova_mcp.memory.journal.rules import (
    PROMOTABLE_SCORE,
    abandoned,
    auto_plan,
    conclude,
    figures,
    judge_coverage,
    mismatches,
    promotable,
)

ADA: Owner = ("local", "ada")
BOB: Owner = ("local", "bob")
TAB = Place("tab_1", "A")
SANDBOX = Place("A", "A")


def claim(place=TAB, owner=ADA, until=10_000, **changes):
    base = Claim(f"claim_{place.target_id}", place.target_id, place.sandbox_id, owner, hash_token("t"), 0, until)
    return replace(base, **changes)


def book(*claims):
    return {one.target_id: one for one in claims}


# -- taking


def test_a_free_place_is_granted_for_the_term_asked_for():
    assert judge_claim(Wish(TAB, ADA, 5_000), {}, (), 0) == Grant(5_000)
    assert judge_claim(Wish(TAB, ADA), {}, (), 0) == Grant(DEFAULT_TTL_MS)
    assert (MIN_TTL_MS, MAX_TTL_MS, DEFAULT_TTL_MS, MOST_CLAIMS) == (5_000, 1_800_000, 120_000, 32)


def test_the_same_owner_renews_and_keeps_task_and_token():
    own = claim(ttl_ms=30_000, debug_label="first")
    verdict = judge_claim(Wish(TAB, ADA, 60_000, "archivist", "second"), book(own), (), 1_000)
    assert verdict == Renewal(
        replace(own, ttl_ms=60_000, expires_at_ms=61_000, agent_role="archivist", debug_label="second")
    )


@pytest.mark.parametrize("label", [None, "", "   "])
def test_a_blank_label_leaves_the_old_one(label):
    verdict = judge_claim(Wish(TAB, ADA, debug_label=label), book(claim(debug_label="first")), (), 0)
    assert isinstance(verdict, Renewal)
    assert verdict.claim.debug_label == "first"


@pytest.mark.parametrize(
    ("before", "asked", "after"), [(60_000, None, 120_000), (900_000, None, 900_000), (900_000, 5_000, 5_000)]
)
def test_a_renewal_shortens_only_when_asked_to(before, asked, after):
    verdict = judge_claim(Wish(TAB, ADA, asked), book(claim(ttl_ms=before)), (), 0)
    assert isinstance(verdict, Renewal)
    assert (verdict.claim.ttl_ms, verdict.claim.expires_at_ms) == (after, after)


def test_what_somebody_else_holds_is_refused_with_the_time_left():
    assert judge_claim(Wish(TAB, BOB), book(claim()), (), 4_000) == Occupied(Foreign("ada", 6_000))


def test_an_implicit_lease_keeps_others_from_claiming_but_not_its_owner():
    lease = Lease(ADA, 10_000)
    assert judge_claim(Wish(TAB, BOB), {}, [lease], 0) == Occupied(Foreign("ada", 10_000))
    assert judge_claim(Wish(TAB, ADA), {}, [lease], 0) == Grant(DEFAULT_TTL_MS)
    assert judge_claim(Wish(TAB, BOB), {}, [lease], 10_000) == Grant(DEFAULT_TTL_MS)


def test_a_reason_takes_over_and_names_whom_it_displaced():
    old = claim()
    verdict = judge_claim(Wish(TAB, BOB, reclaim_reason="ada is gone"), book(old), (), 0)
    assert verdict == Grant(DEFAULT_TTL_MS, (old,), (ADA,))
    implicit = judge_claim(Wish(TAB, BOB, reclaim_reason="ada is gone"), {}, [Lease(ADA, 10_000)], 0)
    assert implicit == Grant(DEFAULT_TTL_MS, (), (ADA,))


def test_a_reason_given_for_ones_own_claim_only_renews_it():
    assert isinstance(judge_claim(Wish(TAB, ADA, reclaim_reason="mine"), book(claim()), (), 0), Renewal)


@pytest.mark.parametrize(
    ("held", "wanted", "clash"),
    [
        (SANDBOX, TAB, True),
        (TAB, SANDBOX, True),
        (SANDBOX, SANDBOX, True),
        (Place("tab_2", "A"), TAB, False),
        (Place("tab_9", "B"), SANDBOX, False),
        (Place("B", "B"), TAB, False),
    ],
)
def test_a_sandbox_claim_covers_all_its_tabs_and_nothing_else(held, wanted, clash):
    verdict = judge_claim(Wish(wanted, BOB), book(claim(held)), (), 0)
    assert isinstance(verdict, Occupied if clash else Grant)
    taken = judge_claim(Wish(wanted, BOB, reclaim_reason="x"), book(claim(held)), (), 0)
    assert isinstance(taken, Grant)
    assert taken.displaced == ((claim(held),) if clash else ())


def test_the_limit_counts_live_explicit_claims_of_one_owner():
    many = book(*(claim(Place(f"tab_{n + 100}", "B")) for n in range(MOST_CLAIMS)))
    assert judge_claim(Wish(TAB, ADA), many, (), 0) == TooMany(MOST_CLAIMS)
    assert isinstance(judge_claim(Wish(Place("tab_103", "B"), ADA), many, (), 0), Renewal)
    assert isinstance(judge_claim(Wish(TAB, BOB), many, (), 0), Grant)
    assert isinstance(judge_claim(Wish(TAB, ADA), many, (), 10_000), Grant)
    many.popitem()
    assert isinstance(judge_claim(Wish(TAB, ADA), many, (), 0), Grant)


def test_the_limit_holds_for_a_takeover_as_well():
    many = book(*(claim(Place(f"tab_{n + 100}", "B")) for n in range(MOST_CLAIMS)), claim(TAB, BOB))
    assert judge_claim(Wish(TAB, ADA, reclaim_reason="x"), many, (), 0) == TooMany(MOST_CLAIMS)


# -- letting go


def test_only_the_owner_releases_and_the_token_never_stands_in_for_it():
    assert judge_release(claim(), ADA, None, 0) == Releasable(claim(), "owner")
    assert judge_release(claim(), ADA, "t", 0) == Releasable(claim(), "token")
    assert judge_release(claim(), ADA, "wrong", 0) == WrongToken()
    assert judge_release(claim(), BOB, "t", 4_000) == NotYours(Foreign("ada", 6_000))
    assert judge_release(None, ADA, "t", 0) == NotHeld()
    assert judge_release(claim(), ADA, "t", 10_000) == NotHeld()


@given(st.text(), st.text())
def test_a_token_fits_exactly_itself(one, other):
    assert token_fits(claim(token_hash=hash_token(one)), other) is (one == other)


@given(st.tuples(st.text(), st.text()), st.tuples(st.text(), st.text()))
def test_an_owners_key_is_its_own(one, other):
    assert (owner_key(one) == owner_key(other)) is (one == other)


# -- time


def test_owner_calls_prolong_and_a_clock_set_back_does_not():
    own = claim(ttl_ms=10_000)
    assert prolonged(own, 5_000).expires_at_ms == 15_000
    assert within_term(own, 0) is own
    assert within_term(replace(own, expires_at_ms=99_000), 1_000).expires_at_ms == 11_000


def test_the_tabs_own_claim_comes_before_its_sandboxes():
    both = book(claim(TAB), claim(SANDBOX))
    assert governing(both, TAB, 0) == both["tab_1"]
    assert governing(both, Place("tab_2", "A"), 0) == both["A"]
    assert governing(both, SANDBOX, 0) == both["A"]
    assert governing(book(claim(TAB, until=1), claim(SANDBOX)), TAB, 5) == claim(SANDBOX)
    assert governing(both, TAB, 10_000) is None
    assert governing(both, Place("tab_5", "B"), 0) is None


def test_the_refusal_says_who_how_long_and_what_to_do():
    error = held_by_other(Foreign("ada", 6_000), "bob")
    assert (error.error_code, error.reason_code, error.retry_after_ms) == (-32040, "claim.owner_mismatch", 6_000)
    assert error.details == {"ownerAgentId": "ada", "leaseRemainingMs": 6_000}
    assert error.gate_id == "claim.owner"
    assert error.fix is not None
    assert "nova.tab_claim" in error.hint
    # In a claimed sandbox another tab would be refused too.
    assert held_by_other(Foreign("ada", 1), "bob", SANDBOX).fix is None


OWNERS: tuple[Owner, ...] = (ADA, BOB, ("local", "cleo"))
TABS = tuple(Place(f"tab_{n}", "A" if n < 3 else "B") for n in range(5))
PLACES = (*TABS, SANDBOX, Place("B", "B"))


class ClaimLife(RuleBasedStateMachine):
    """Any order of claiming, renewing, waiting, taking over and releasing, against a list of plain facts."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0
        self.claims: dict[str, Claim] = {}
        self.tokens: dict[str, str] = {}
        self.ended: set[str] = set()
        self.number = 0

    def live(self) -> list[Claim]:
        return [one for one in self.claims.values() if one.expires_at_ms > self.now]

    def end(self, gone: Claim) -> None:
        self.claims.pop(gone.target_id, None)
        self.ended.add(gone.task_id)

    @rule(
        owner=st.sampled_from(OWNERS),
        place=st.sampled_from(PLACES),
        ttl=st.integers(MIN_TTL_MS, 20_000),
        force=st.booleans(),
    )
    def take(self, owner, place, ttl, force):
        for gone in lapsed(self.claims, self.now):
            self.end(gone)
        inside = {tab.target_id for tab in TABS if place in (tab, Place(tab.sandbox_id, tab.sandbox_id))}
        clashing = [
            one
            for one in self.live()
            if one.owner != owner
            and inside & {tab.target_id for tab in TABS if one.target_id in (tab.target_id, tab.sandbox_id)}
        ]
        before = self.claims.get(place.target_id)
        match judge_claim(Wish(place, owner, ttl, reclaim_reason="x" if force else None), self.claims, (), self.now, 4):
            case Occupied(foreign):
                assert clashing
                assert not force
                assert foreign.lease_remaining_ms == max(one.expires_at_ms for one in clashing) - self.now
            case TooMany(held):
                assert held == 4 == sum(one.owner == owner for one in self.live())
            case Renewal(after):
                assert not clashing
                assert before is not None
                assert (after.task_id, after.token_hash, after.owner) == (before.task_id, before.token_hash, owner)
                self.claims[place.target_id] = after
            case Grant(ttl_ms, displaced, previous):
                assert bool(clashing) is bool(displaced)
                assert set(displaced) == set(clashing)
                assert set(previous) == {one.owner for one in clashing}
                assert force or not clashing
                for gone in displaced:
                    self.end(gone)
                self.number += 1
                task, token = f"claim_{self.number}", f"token-{self.number}"
                self.tokens[task] = token
                self.claims[place.target_id] = Claim(
                    task,
                    place.target_id,
                    place.sandbox_id,
                    owner,
                    hash_token(token),
                    self.now,
                    self.now + ttl_ms,
                    ttl_ms,
                )

    @rule(owner=st.sampled_from(OWNERS), place=st.sampled_from(PLACES), token=st.integers(1, 40) | st.none())
    def release(self, owner, place, token):
        standing = governing(self.claims, place, self.now)
        given_token = None if token is None else f"token-{token}"
        match judge_release(standing, owner, given_token, self.now):
            case Releasable(gone, authorization):
                assert gone.owner == owner
                assert authorization == ("owner" if token is None else "token")
                assert token is None or self.tokens[gone.task_id] == given_token
                assert gone.task_id not in self.ended
                self.end(gone)
            case NotYours():
                assert standing is not None
                assert standing.owner != owner
            case WrongToken():
                assert standing is not None
                assert self.tokens[standing.task_id] != given_token
            case NotHeld():
                assert standing is None

    @rule(ms=st.integers(0, 15_000))
    def wait(self, ms):
        self.now += ms

    @precondition(lambda self: self.claims)
    @rule(data=st.data())
    def owner_calls(self, data):
        one = data.draw(st.sampled_from(sorted(self.claims.values(), key=lambda one: one.task_id)))
        if one.expires_at_ms > self.now:
            after = prolonged(one, self.now)
            assert after.expires_at_ms >= one.expires_at_ms
            self.claims[one.target_id] = after

    @invariant()
    def every_tab_has_at_most_one_owner(self):
        for tab in TABS:
            owners = {one.owner for one in self.live() if one.target_id in (tab.target_id, tab.sandbox_id)}
            assert len(owners) <= 1
            standing = governing(self.claims, tab, self.now)
            lease = None if standing is None else standing.lease
            may = {owner for owner in OWNERS if may_mutate(lease, owner, self.now) is None}
            assert may == (owners or set(OWNERS))

    @invariant()
    def nobody_holds_more_than_allowed_and_no_dead_claim_stands(self):
        for owner in OWNERS:
            assert len(held_by(self.claims, owner, self.now)) <= 4
        assert not {one.task_id for one in self.live()} & self.ended


TestClaimLife = ClaimLife.TestCase


# -- finalizing


def candidate(number=1, status="verified", score=PROMOTABLE_SCORE, **more):
    return CandidateEvidence(number, status, score, **more)


CONTEXT = WorkContext("claim_1", "tab_1", "A", "local", "ada", 0)


@pytest.mark.parametrize(
    ("candidates", "decision"),
    [
        ((), Decision("skip", "auto", "no_candidates")),
        ((candidate(status="unverified", score=2.0),), Decision("skip", "auto", "no_verified_candidates")),
        ((candidate(status="disproven", score=2.0),), Decision("skip", "auto", "no_verified_candidates")),
        ((candidate(score=1.4499),), Decision("skip", "auto", "evidence_below_threshold")),
        ((candidate(origin="diagnostic", score=2.0),), Decision("skip", "auto", "evidence_below_threshold")),
        ((candidate(failed_since_verified=True),), Decision("skip", "auto", "evidence_below_threshold")),
        ((candidate(score=1.45),), Decision("commit", "auto")),
        ((candidate(status="disproven"), candidate(2)), Decision("commit", "auto")),
    ],
)
def test_novas_own_plan(candidates, decision):
    assert auto_plan(FinalizeSummary(tuple(candidates))) == decision


def test_a_context_that_nobody_released_is_skipped():
    assert abandoned() == Decision("skip", "auto", "context_expired")
    assert auto_plan(FinalizeSummary((candidate(),)), floors_met=False) == Decision(
        "skip", "auto", "learn_floors_unmet"
    )


def test_a_callers_commit_still_writes_only_promotable_candidates():
    summary = FinalizeSummary((candidate(1), candidate(2, score=0.5), candidate(3, status="unverified")))
    done = conclude(CONTEXT, FinalizeOrder("commit", "good_run"), summary, "job_1")
    assert done.decision == Decision("commit", "caller", "good_run")
    average = round((1.45 + 0.5 + 1.45) / 3, 4)
    assert done.stats == FinalizeStats(3, 2, 1, 1, 0.5, average, EvidenceStrength(weak=1, medium=0, strong=2))
    assert done.job is not None
    assert (done.job.job_type, done.job.job_key) == ("finalize.memory.promote", "finalize:claim_1")
    assert done.job.payload == {"taskId": "claim_1", "targetId": "tab_1", "candidateIds": [1]}


def test_the_plans_own_commit_proposes_the_promotable_ones():
    done = conclude(CONTEXT, FinalizeOrder(), FinalizeSummary((candidate(7), candidate(3))), "job_1")
    assert done.job is not None
    assert done.job.job_type == "finalize.memory.promote"
    assert done.job.payload == {"taskId": "claim_1", "targetId": "tab_1", "candidateIds": [3, 7]}


def test_a_skip_writes_nothing_and_leaves_no_job():
    done = conclude(CONTEXT, FinalizeOrder("skip"), FinalizeSummary((candidate(),)), "job_1")
    assert (done.job, done.stats.curated_upserts, done.stats.candidates_promotable) == (None, 0, 1)


def test_an_order_may_carry_its_own_job():
    payload = {"scope": "shop.test", "data": {"id": "x"}}
    order = FinalizeOrder("commit", job_type="pks.domain.save", payload=payload)
    job = conclude(CONTEXT, order, FinalizeSummary(), "job_1").job
    assert job is not None
    assert (job.job_type, job.payload, job.state) == ("pks.domain.save", payload, "pending")


def test_figures_of_the_caller_are_compared_one_by_one():
    computed = FinalizeStats(3, 2, 1, 1, 0.5, 1.1333)
    assert mismatches({}, computed) == ()
    assert mismatches({"candidatesTotal": 3, "evidenceAvgScore": 1.13}, computed) == ()
    assert mismatches({"candidatesTotal": 4, "evidenceMinScore": 0.6}, computed) == (
        "candidatesTotal",
        "evidenceMinScore",
    )
    assert mismatches({"evidenceMinScore": 0}, FinalizeStats()) == ("evidenceMinScore",)


CANDIDATES = st.builds(
    candidate,
    number=st.integers(1, 99),
    status=st.sampled_from(["unverified", "verified", "disproven"]),
    score=st.floats(0, 3),
    origin=st.sampled_from(["semantic", "diagnostic"]),
    failed_since_verified=st.booleans(),
)


@given(st.lists(CANDIDATES, max_size=8))
def test_a_plan_commits_exactly_when_something_is_promotable_and_gives_a_reason_otherwise(candidates):
    summary = FinalizeSummary(tuple(candidates))
    plan = auto_plan(summary)
    assert (plan.kind == "commit") is any(map(promotable, candidates))
    assert (plan.reason_code is None) is (plan.kind == "commit")
    counted = figures(summary, plan)
    assert counted.curated_upserts == (counted.candidates_promotable if plan.kind == "commit" else 0)
    assert counted.candidates_promotable <= counted.candidates_verified <= counted.candidates_total
    assert mismatches({name: n for name, n in counted.named().items() if n is not None}, counted) == ()


def test_learn_mode_keeps_a_context_until_its_floors_are_met_or_given_up_for_a_reason():
    unmet, met = Coverage({"pages": 3}, {"pages": 2}), Coverage({"pages": 3}, {"pages": 3})
    given_up = FinalizeOrder(coverage_exhausted=True)
    assert judge_coverage(None, given_up) == "free"
    assert judge_coverage(met, given_up) == "free"
    assert judge_coverage(unmet, FinalizeOrder(coverage_reason="there was nothing more to see")) == "not_met"
    assert judge_coverage(unmet, given_up) == "reason_required"
    assert judge_coverage(unmet, replace(given_up, coverage_reason="the rest needs a login we lack")) == "free"
