"""Judging assertions in three values, sets of them as Kleene has it, and what an outcome advises."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeGuard

from nova_mcp.core.values import Json
from nova_mcp.errors import RetryAdvice
from nova_mcp.verification.contracts.fact_keys import FactRef, UnknownFact, parse_fact
from nova_mcp.verification.model import (
    OMITTED,
    ActionKind,
    Assertion,
    AssertionSet,
    Contract,
    Operator,
    Reading,
    SetVerdict,
    Trace,
    TraceError,
    Unseen,
    Verdict,
)

Truth = bool | None

WINDOW_AND_HOLD_MS: Final[dict[ActionKind, tuple[int, int]]] = {
    "dismiss_overlay": (3000, 250),
    "send_message": (5000, 300),
    "submit_form": (8000, 300),
    "select_option": (2000, 100),
    "custom": (5000, 250),
}
# Optimistic pages show success first and roll it back when the server refuses.
COMMIT_HOLD_MS: Final = 1200
WINDOW_BOUNDS_MS: Final = (500, 30_000)
HOLD_BOUNDS_MS: Final = (0, 5000)
# A request that is still out when the window ends buys this much more.
EXTENSION_MS: Final = 2000


def conjunction(truths: Iterable[Truth]) -> Truth:
    unknown = False
    for truth in truths:
        if truth is False:
            return False
        unknown = unknown or truth is None
    return None if unknown else True


def disjunction(truths: Iterable[Truth]) -> Truth:
    return negation(conjunction(negation(truth) for truth in truths))


def negation(truth: Truth) -> Truth:
    return None if truth is None else not truth


def same_json(left: Json, right: Json) -> bool:
    """Deep equality as JSON has it: numbers by value, and true is not 1."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same_json(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same_json, left, right))
    return left == right


def judge_assertion(assertion: Assertion, reading: Reading) -> Trace:
    """What one assertion comes to; a fact that could not be read is unknown, never false."""
    fact = reading.get(assertion.address, Unseen("fact_not_found"))
    if isinstance(fact, Unseen):
        return _trace(assertion, None, None, fact.error)
    try:
        ref = parse_fact(assertion.fact_key)
    except UnknownFact:
        return _trace(assertion, fact.value, None, "fact_not_found")
    value, present = _selected(ref, fact.value)
    operator, expected = assertion.operator, assertion.expected
    if operator in ("exists", "not_exists"):
        return _trace(assertion, value, present is (operator == "exists"))
    if ref.is_dom and ref.field is None and (expected is OMITTED or isinstance(expected, bool)):
        # A whole element is an object and equals no boolean, so a boolean can only mean its existence.
        expected, value = (True if expected is OMITTED else expected), present
        operator = operator if operator in ("not_eq", "neq") else "eq"
    elif ref.name == "network.responseOk" and isinstance(expected, bool) and _is_number(value):
        value = 200 <= value < 400
    if expected is OMITTED:
        return _trace(assertion, value, None, "type_mismatch")
    if fact.masked is not None and (ref.field == "value" or isinstance(expected, dict)):
        same = _masked_equality(operator, fact.masked, expected)
        return _trace(assertion, value, same, "fact_unreadable" if same is None else None)
    if ref.source != "store" and not ref.is_dom and value is None and expected is not None:
        # Nova's own facts are null when there is nothing to tell, which is no answer either way.
        return _trace(assertion, None, None, "fact_not_found")
    passed = _compare(operator, value, expected)
    return _trace(assertion, value, passed, "type_mismatch" if passed is None else None)


def _masked_equality(operator: Operator, masked: Mapping[str, bool], expected: Json) -> Truth:
    """What the page said about a value it keeps to itself; anything it was not asked stays unknown."""
    same = masked.get(expected) if isinstance(expected, str) else None
    if operator == "eq":
        return same
    return negation(same) if operator in ("not_eq", "neq") else None


def _trace(assertion: Assertion, observed: Json, passed: Truth, error: TraceError | None = None) -> Trace:
    return Trace(assertion.fact_key, assertion.operator, assertion.expected, observed, passed, error)


def _selected(ref: FactRef, value: Json) -> tuple[Json, bool]:
    """The value an assertion is about, and whether it is there. Element facts may carry the object or one field."""
    if not ref.is_dom:
        return value, value is not None
    if isinstance(value, dict):
        present = value.get("exists") is True
        return (value if ref.field is None else value.get(ref.field)), present
    if ref.field in ("exists", "count"):
        return value, bool(value)
    return value, value is not None


def _compare(operator: Operator, value: Json, expected: Json) -> Truth:
    match operator:
        case "eq":
            return same_json(value, expected)
        case "not_eq" | "neq":
            return not same_json(value, expected)
        case "contains":
            return _contains(value, expected)
        case "gt" | "lt" | "gte" | "lte":
            return _ordered(operator, value, expected)
        case _:
            raise AssertionError(f"{operator} compares nothing")


def _contains(value: Json, expected: Json) -> Truth:
    if isinstance(value, list):
        return any(same_json(item, expected) for item in value)
    if isinstance(value, str) and isinstance(expected, str):
        return expected in value
    return None


def _ordered(operator: Operator, value: Json, expected: Json) -> Truth:
    if not _is_number(value) or not _is_number(expected):
        return None
    return {"gt": value > expected, "lt": value < expected, "gte": value >= expected, "lte": value <= expected}[
        operator
    ]


def _is_number(value: Json) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def set_truth(conditions: AssertionSet, truth_of: Callable[[Assertion], Truth]) -> Truth:
    """The truth of a set that is not empty, given that of its members."""
    parts: list[Truth] = []
    if conditions.all:
        parts.append(conjunction(map(truth_of, conditions.all)))
    if conditions.any:
        parts.append(disjunction(map(truth_of, conditions.any)))
    if conditions.forbidden:
        parts.append(negation(disjunction(map(truth_of, conditions.forbidden))))
    parts += [set_truth(joined, truth_of) for joined in conditions.also if joined]
    either = [joined for joined in conditions.either if joined]
    if either:
        parts.append(disjunction(set_truth(joined, truth_of) for joined in either))
    return conjunction(parts)


def judge_set(conditions: AssertionSet, reading: Reading) -> SetVerdict | None:
    """The verdict on a set; None for an empty one, which is absent and neither holds nor fails."""
    if not conditions:
        return None
    truth = set_truth(conditions, lambda assertion: judge_assertion(assertion, reading).passed)
    return "unknown" if truth is None else "satisfied" if truth else "failed"


def failed_traces(conditions: AssertionSet, reading: Reading, *, tripped: bool = False) -> tuple[Trace, ...]:
    """What decided: the unmet and unknown ones of a set that should have held, or the true ones of one that tripped."""
    if not conditions:
        return ()
    if tripped:
        return tuple(_tripping(conditions, reading))
    return tuple(_unmet(conditions, reading))


def _unmet(conditions: AssertionSet, reading: Reading) -> Iterable[Trace]:
    yield from (t for t in _each(conditions.all, reading) if t.passed is not True)
    alternatives = _each(conditions.any, reading)
    if not any(trace.passed for trace in alternatives):
        yield from alternatives
    yield from (t for t in _each(conditions.forbidden, reading) if t.passed is not False)
    for joined in conditions.also:
        yield from _unmet(joined, reading)
    if not any(judge_set(joined, reading) == "satisfied" for joined in conditions.either):
        for joined in conditions.either:
            yield from _unmet(joined, reading)


def _tripping(conditions: AssertionSet, reading: Reading) -> Iterable[Trace]:
    held = [t for t in _each((*conditions.all, *conditions.any), reading) if t.passed]
    # A set made only of what must be absent trips by the absence.
    yield from held or (t for t in _each(conditions.forbidden, reading) if t.passed is False)
    for joined in conditions.also:
        yield from _tripping(joined, reading)
    for joined in conditions.either:
        if judge_set(joined, reading) == "satisfied":
            yield from _tripping(joined, reading)


def _each(assertions: Iterable[Assertion], reading: Reading) -> list[Trace]:
    return [judge_assertion(assertion, reading) for assertion in assertions]


@dataclass(frozen=True, slots=True)
class Timing:
    """How long to look for an outcome, and how long a success must stand before it counts."""

    window_ms: int
    hold_ms: int


def timing(contract: Contract, *, commit_point: bool, new_document: bool) -> Timing:
    """A contract's own values win, within bounds; a success that a new document shows needs no hold."""
    window, hold = WINDOW_AND_HOLD_MS[contract.action_kind]
    if new_document:
        hold = 0
    elif commit_point:
        hold = COMMIT_HOLD_MS
    if contract.window_ms is not None:
        window = _clamp(contract.window_ms, WINDOW_BOUNDS_MS)
    if contract.hold_ms is not None:
        hold = _clamp(contract.hold_ms, HOLD_BOUNDS_MS)
    return Timing(window, hold)


def watched_at_most_ms(contract: Contract) -> int:
    """The longest an outcome may be watched for: the window, its one extension, and a hold that began in time."""
    hold = COMMIT_HOLD_MS if contract.hold_ms is None else _clamp(contract.hold_ms, HOLD_BOUNDS_MS)
    return timing(contract, commit_point=False, new_document=False).window_ms + EXTENSION_MS + hold


def _clamp(value: int, bounds: tuple[int, int]) -> int:
    low, high = bounds
    return max(low, min(high, value))


def retry_advice_for(contract: Contract, verdict: Verdict, *, is_retry: bool = False) -> RetryAdvice:
    """What to do next after a dispatch under a contract; `is_retry` says that this call was itself a repeat."""
    if verdict.status != "indeterminate" or contract.retry_policy == "no_retry":
        return "do_not_retry"
    if verdict.reason == "ambiguous_signal":
        if contract.ambiguity_policy == "abort":
            return "do_not_retry"
        if contract.ambiguity_policy == "retry_once" and is_retry:
            return "check_postcondition_first"
    return "safe_to_retry" if contract.retry_policy == "idempotent" else "check_postcondition_first"
