"""What already stood before the action: such evidence says nothing about it until it has changed."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

from nova_mcp.verification.contracts.evaluate import Truth, conjunction, disjunction, judge_assertion, negation
from nova_mcp.verification.model import (
    OMITTED,
    Assertion,
    AssertionSet,
    Contract,
    Reading,
    Seen,
    Trace,
    Unseen,
)


@dataclass(frozen=True, slots=True)
class Condition:
    """An assertion where it stands: under a `forbidden` list it holds by being false."""

    assertion: Assertion
    negated: bool = False

    @property
    def key(self) -> str:
        # Expected values may be lists and Python takes 1 for True, so neither hash nor equality will do.
        a = self.assertion
        expected = [] if a.expected is OMITTED else [a.expected]
        return json.dumps([a.fact_key, a.frame_id, a.operator, expected, self.negated], sort_keys=True)

    def truth(self, reading: Reading) -> Truth:
        passed = judge_assertion(self.assertion, reading).passed
        return negation(passed) if self.negated else passed


def conditions_of(joined: AssertionSet) -> Iterator[Condition]:
    for assertion in (*joined.all, *joined.any):
        yield Condition(assertion)
    for assertion in joined.forbidden:
        yield Condition(assertion, negated=True)
    for nested in (*joined.also, *joined.either):
        yield from conditions_of(nested)


def outcome_conditions(contract: Contract) -> Iterator[Condition]:
    for bucket in (contract.success, contract.forbidden, contract.ambiguous, contract.likely):
        yield from conditions_of(bucket)


def stale_at(contract: Contract, baseline: Reading) -> frozenset[str]:
    """The conditions that hold before anything is sent."""
    return frozenset(each.key for each in outcome_conditions(contract) if each.truth(baseline) is True)


def still_stale(contract: Contract, stale: frozenset[str], baseline: Reading, now: Reading) -> frozenset[str]:
    """Those of them that never ceased to hold, nor gave way to another instance of the same."""
    return frozenset(
        each.key for each in outcome_conditions(contract) if each.key in stale and not _renewed(each, baseline, now)
    )


def _renewed(condition: Condition, baseline: Reading, now: Reading) -> bool:
    before, after = (reading.get(condition.assertion.address, Unseen("fact_not_found")) for reading in (baseline, now))
    if isinstance(after, Unseen):
        return False
    if condition.truth(now) is not True:
        return True
    # That something is absent is no news because something else next to it was drawn again.
    return not condition.negated and isinstance(before, Seen) and before.stamp != after.stamp


@dataclass(frozen=True, slots=True)
class Freshly:
    """Whether a set holds without counting stale alternatives, and whether anything new makes it hold."""

    truth: Truth
    news: bool

    @property
    def satisfied(self) -> bool:
        return self.truth is True and self.news


def judge_freshly(joined: AssertionSet, reading: Reading, stale: frozenset[str]) -> Freshly:
    """A set that is not empty, with what already stood discounted."""
    truths: list[Truth] = []
    news = False
    for assertions, negated in ((joined.all, False), (joined.forbidden, True)):
        for condition in (Condition(assertion, negated) for assertion in assertions):
            truths.append(condition.truth(reading))
            news = news or (truths[-1] is True and condition.key not in stale)
    if joined.any:
        alternatives = [Condition(assertion) for assertion in joined.any]
        truths.append(disjunction(False if c.key in stale else c.truth(reading) for c in alternatives))
        news = news or truths[-1] is True
    for nested in (judge_freshly(one, reading, stale) for one in joined.also if one):
        truths.append(nested.truth)
        news = news or nested.satisfied
    either = [judge_freshly(one, reading, stale) for one in joined.either if one]
    if either:
        truths.append(disjunction(one.truth for one in either))
        news = news or any(one.satisfied for one in either)
    return Freshly(conjunction(truths), news)


def news_among(
    joined: AssertionSet, reading: Reading, stale: frozenset[str], traces: tuple[Trace, ...]
) -> tuple[Trace, ...]:
    """Of the traces that made a set trip, those that are news; all of them if that leaves none."""
    old = [judge_assertion(c.assertion, reading) for c in conditions_of(joined) if c.key in stale]
    return tuple(trace for trace in traces if trace not in old) or traces
