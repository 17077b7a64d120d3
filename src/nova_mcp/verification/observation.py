"""One observation after a dispatch, as a state machine without a clock: samples in, a verdict out."""

from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import quote, urlsplit

from nova_mcp.verification.contracts.evaluate import EXTENSION_MS, failed_traces, judge_set, timing
from nova_mcp.verification.contracts.fact_keys import FactRef, concerns, parse_fact
from nova_mcp.verification.contracts.freshness import judge_freshly, news_among, stale_at, still_stale
from nova_mcp.verification.model import (
    AssertionSet,
    Contract,
    Diagnostics,
    Fact,
    FactAddress,
    IndeterminateReason,
    Loss,
    Reading,
    Sample,
    Seen,
    SentRequest,
    Trace,
    Unseen,
    Verdict,
)

# An error text that flashes up while a form is rebuilt is no failure.
FORBIDDEN_STANDS_MS: Final = 100
AMBIGUOUS_STANDS_MS: Final = 1000
# A message may come a moment after the page that brings it.
LIKELY_STANDS_MS: Final = 1000
_ADDRESS_FACTS: Final = ("page.url", "page.route", "page.urlChanged", "page.urlMatches")


@dataclass(frozen=True, slots=True)
class Plan:
    """What is looked for, and what the page was like before anything was sent."""

    contract: Contract
    baseline: Reading
    document: int
    started_ms: float
    commit_point: bool
    # Requests that the contract judges itself; the default ban on refused ones does not hold for them.
    judged: tuple[FactRef, ...] = ()

    @property
    def window_ends_ms(self) -> float:
        times = timing(self.contract, commit_point=self.commit_point, new_document=False)
        return self.started_ms + times.window_ms

    def hold_ms(self, document: int) -> int:
        new = document > self.document
        return timing(self.contract, commit_point=self.commit_point, new_document=new).hold_ms


@dataclass(frozen=True, slots=True)
class State:
    """What is known so far. The `_since` times say from when on a bucket has stood without a break."""

    at_ms: float
    reading: Reading
    document: int
    stale: frozenset[str]
    requests: tuple[SentRequest, ...] = ()
    changed: bool = False
    lost: Loss | None = None
    forbidden_since: float | None = None
    success_since: float | None = None
    ambiguous_since: float | None = None
    likely_since: float | None = None
    # Whether a request was pending when the window ended; None until a sample from after the end has come.
    extended: bool | None = None

    @property
    def _own(self) -> list[SentRequest]:
        return [request for request in self.requests if request.mutating and request.reports]

    @property
    def pending(self) -> list[SentRequest]:
        """What is still out: requests that change something, and the document the action leads to."""
        return [request for request in self.requests if request.pending and (request in self._own or request.leads)]

    @property
    def mutated(self) -> bool:
        return bool(self._own)

    @property
    def lost_requests(self) -> list[SentRequest]:
        return [request for request in self._own if request.failed and request.status is None]

    def refused(self, plan: Plan) -> list[SentRequest]:
        """Requests the server turned down, unless the page sent the same again, as it does after renewing a token."""
        concerned = [request for request in self.requests if request in self._own or request.leads]
        newest = {(request.method.upper(), request.url): request for request in concerned}
        turned_down = [one for one in newest.values() if one.status is not None and one.status >= 400]
        return [one for one in turned_down if not any(concerns(ref, one) for ref in plan.judged)]


def make_plan(contract: Contract, baseline: Reading, document: int, *, started_ms: float, commit_point: bool) -> Plan:
    refs = [parse_fact(one.fact_key) for one in contract.outcome_members if one.fact_key.startswith("network.")]
    # A macro keeps the default whatever is asked of it: a caller's contract only tightens it.
    judged = () if contract.fresh_only else tuple(refs)
    return Plan(contract, baseline, document, started_ms, commit_point, judged)


def begin(plan: Plan) -> State:
    """Until the first sample the page is as it was."""
    stale = stale_at(plan.contract, plan.baseline)
    return State(at_ms=plan.started_ms, reading=plan.baseline, document=plan.document, stale=stale)


def advance(plan: Plan, state: State, sample: Sample) -> State:
    """What is known after one more look."""
    at = max(sample.at_ms, state.at_ms)
    extended = state.extended
    if extended is None and at > plan.window_ends_ms:
        extended = bool(state.pending)
    state = replace(
        state,
        at_ms=at,
        document=sample.document,
        requests=sample.requests,
        changed=state.changed or sample.changed,
        lost=sample.lost,
        extended=extended,
        stale=frozenset() if sample.document != plan.document else state.stale,
    )
    if sample.lost is not None:
        return _since(plan, state, forbidden=False, success=False, ambiguous=False, likely=False)
    stale = still_stale(plan.contract, state.stale, plan.baseline, sample.reading)
    state = replace(state, reading=sample.reading, stale=stale)
    success = _succeeds(plan, state)
    by_anchor = success and sample.anchor_only and not _succeeds(plan, _before_the_anchor(plan, state))
    return _since(
        plan,
        state,
        forbidden=_trips(plan.contract.forbidden, state),
        success=success and not by_anchor,
        ambiguous=_trips(plan.contract.ambiguous, state),
        likely=by_anchor or _trips(plan.contract.likely, state),
    )


def _before_the_anchor(plan: Plan, state: State) -> State:
    """The same with the address as it was: an anchor that changed is no evidence of what was done."""
    address = {at: fact for at, fact in plan.baseline.items() if at.key.partition("@")[0] in _ADDRESS_FACTS}
    return replace(state, reading={**state.reading, **address}, changed=False)


def _since(plan: Plan, state: State, *, forbidden: bool, success: bool, ambiguous: bool, likely: bool) -> State:
    forbidden = forbidden or bool(state.refused(plan))

    def stood(since: float | None, stands: bool) -> float | None:
        return (state.at_ms if since is None else since) if stands else None

    return replace(
        state,
        forbidden_since=stood(state.forbidden_since, forbidden),
        success_since=stood(state.success_since, success),
        ambiguous_since=stood(state.ambiguous_since, ambiguous),
        likely_since=stood(state.likely_since, likely),
    )


def _trips(bucket: AssertionSet, state: State) -> bool:
    return bool(bucket) and judge_freshly(bucket, state.reading, state.stale).satisfied


def _succeeds(plan: Plan, state: State) -> bool:
    success = plan.contract.success
    if judge_set(success, state.reading) != "satisfied" or state.pending:
        return False
    if state.lost_requests and state.document <= plan.document:
        return False
    if judge_freshly(success, state.reading, state.stale).satisfied:
        return True
    return state.changed and not plan.contract.fresh_only


def _deadline(plan: Plan, state: State) -> float:
    extended = bool(state.pending) if state.extended is None else state.extended
    return plan.window_ends_ms + (EXTENSION_MS if extended else 0)


def _held_at(plan: Plan, state: State) -> float | None:
    """When the success that stands now has stood long enough; None if there is none that came in time."""
    if state.success_since is None or state.success_since > _deadline(plan, state):
        return None
    return state.success_since + plan.hold_ms(state.document)


def _over_at(plan: Plan, state: State) -> float:
    """A success that came in time may finish its hold after the window."""
    deadline, held = _deadline(plan, state), _held_at(plan, state)
    return deadline if held is None else max(deadline, held)


def _ambiguous_at(plan: Plan, state: State) -> float | None:
    if state.ambiguous_since is None or state.pending:
        return None
    return state.ambiguous_since + max(plan.hold_ms(state.document), AMBIGUOUS_STANDS_MS)


def _likely_at(plan: Plan, state: State) -> float | None:
    """When waiting for more than this ends; what speaks for the outcome but proves nothing."""
    if state.likely_since is None or state.pending or state.ambiguous_since is not None:
        return None
    return state.likely_since + max(plan.hold_ms(state.document), LIKELY_STANDS_MS)


def judge(plan: Plan, state: State, now_ms: float) -> Verdict | None:
    """The verdict, or None while it is open: forbidden outranks success, success outranks ambiguous."""
    now = max(now_ms, state.at_ms)
    over = now >= _over_at(plan, state)
    if state.forbidden_since is not None:
        # An error shown while the server has not answered may be the page's impatience and not the server's refusal.
        stood = now >= state.forbidden_since + FORBIDDEN_STANDS_MS
        return _failed(plan, state) if stood and (over or not state.pending) else None
    held = _held_at(plan, state)
    if held is not None and now >= held:
        diagnostics = _diagnostics(plan, state)
        return Verdict("verified_success", None, "satisfied", (), diagnostics, mutated=state.mutated)
    ambiguous = _ambiguous_at(plan, state)
    if held is None and ambiguous is not None and now >= ambiguous:
        return _ambiguous(plan, state)
    likely = _likely_at(plan, state)
    if held is None and likely is not None and now >= likely:
        return _ended(plan, state)
    return _ended(plan, state) if over else None


def next_wake(plan: Plan, state: State, now_ms: float) -> float:
    """The moment at which the verdict may change without a new sample."""
    if judge(plan, state, now_ms) is not None:
        return now_ms
    forbidden = None if state.forbidden_since is None else state.forbidden_since + FORBIDDEN_STANDS_MS
    undecided = (_ambiguous_at(plan, state), _likely_at(plan, state))
    moments = (forbidden, _held_at(plan, state), *undecided, _over_at(plan, state))
    return min(moment for moment in moments if moment is not None and moment > max(now_ms, state.at_ms))


def _failed(plan: Plan, state: State) -> Verdict:
    bucket = plan.contract.forbidden
    decided: tuple[Trace, ...] = ()
    if state.lost is None and _trips(bucket, state):
        true = failed_traces(bucket, state.reading, tripped=True)
        decided = news_among(bucket, state.reading, state.stale, true)
    decided += tuple(map(_refusal, state.refused(plan)))
    unanswered = bool(state.lost_requests or [one for one in state.pending if one.mutating])
    verdict = Verdict("verified_fail", None, "failed", decided, _diagnostics(plan, state), mutated=state.mutated)
    if not unanswered:
        return verdict
    return replace(
        verdict, status="indeterminate", reason="ambiguous_signal", outcome_verdict="unknown", lost_request=True
    )


def _refusal(request: SentRequest) -> Trace:
    return Trace(f"network.response@{quote(_named(request), safe='')}", "gte", 400, request.status, passed=True)


def _named(request: SentRequest) -> str:
    # A query may hold what nobody should read in an answer.
    return f"{request.method.upper()} {urlsplit(request.url).path or '/'}"


def _ambiguous(plan: Plan, state: State) -> Verdict:
    bucket = plan.contract.ambiguous
    true = failed_traces(bucket, state.reading, tripped=True)
    return _undecided(plan, state, "ambiguous_signal", news_among(bucket, state.reading, state.stale, true))


def _ended(plan: Plan, state: State) -> Verdict:
    if state.ambiguous_since is not None:
        return _ambiguous(plan, state)
    diagnostics = _diagnostics(plan, state)
    reason: IndeterminateReason = "no_signal_yet"
    likely = state.likely_since is not None and not (state.pending or state.lost_requests)
    if state.lost is not None:
        reason = state.lost
    elif not likely and (diagnostics.unreadable or state.pending or state.lost_requests):
        reason = "timeout"
    unmet = () if state.lost is not None else failed_traces(plan.contract.success, state.reading)
    return replace(_undecided(plan, state, reason, unmet), likely=likely)


def _undecided(plan: Plan, state: State, reason: IndeterminateReason, traces: tuple[Trace, ...]) -> Verdict:
    # A request that is pending when nobody looks any more may still do its work.
    unanswered = bool(state.lost_requests or [one for one in state.pending if one.mutating])
    return Verdict(
        status="indeterminate",
        reason=reason,
        outcome_verdict="unknown",
        failed_assertions=traces,
        diagnostics=_diagnostics(plan, state),
        lost_request=unanswered,
        mutated=state.mutated,
    )


def _could_be_read(address: FactAddress, fact: Fact | None) -> bool:
    """An answer that never came is something that was seen, not something that could not be."""
    unanswered = fact == Unseen("fact_not_found") and address.key.startswith("network.")
    return isinstance(fact, Seen) or unanswered


def _diagnostics(plan: Plan, state: State) -> Diagnostics:
    addresses = {assertion.address for assertion in plan.contract.outcome_members}
    readable = 0
    if state.lost is None:
        readable = sum(_could_be_read(address, state.reading.get(address)) for address in addresses)
    return Diagnostics(
        readable=readable,
        unreadable=len(addresses) - readable,
        changed=state.changed,
        pending_requests=tuple(map(_named, state.pending)),
        lost_requests=tuple(map(_named, state.lost_requests)),
        success=None if state.lost is not None else judge_set(plan.contract.success, state.reading),
    )
