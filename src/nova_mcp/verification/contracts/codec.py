"""Contracts as JSON, and joining a macro's own contract with a caller's."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, TypeVar, get_args

from nova_mcp.core.values import Json
from nova_mcp.verification.contracts.fact_keys import FactKind, FactRef, parse_fact
from nova_mcp.verification.model import (
    OMITTED,
    ActionKind,
    AmbiguityPolicy,
    Assertion,
    AssertionSet,
    Contract,
    Omitted,
    Operator,
    RetryPolicy,
)

T = TypeVar("T", bound=str)

_LISTS: Final = ("all", "any", "forbidden")
_JOINED: Final = ("also", "either")
_BUCKETS: Final = ("success", "forbidden", "ambiguous")
_FIELDS: Final = frozenset(
    {
        "actionKind",
        "preconditions",
        "postconditions",
        "retryPolicy",
        "ambiguityPolicy",
        "stabilityWindowMs",
        "stabilityMs",
    }
)


class BadContract(ValueError):
    """JSON that is no contract, said in one sentence."""


def contract_to_json(contract: Contract) -> dict[str, Json]:
    """The caller's own shape without what is default.

    Joined sets and `freshOnly` appear too where a contract has them: that is for storing it, a caller can't send them.
    """
    plain = Contract()
    body: dict[str, Json] = {}
    if contract.action_kind != plain.action_kind:
        body["actionKind"] = contract.action_kind
    if contract.preconditions:
        body["preconditions"] = _set_to_json(contract.preconditions)
    buckets = (contract.success, contract.forbidden, contract.ambiguous)
    outcome: dict[str, Json] = {
        name: _set_to_json(bucket) for name, bucket in zip(_BUCKETS, buckets, strict=True) if bucket
    }
    if outcome:
        body["postconditions"] = outcome
    if contract.retry_policy_given or contract.retry_policy != plain.retry_policy:
        body["retryPolicy"] = contract.retry_policy
    if contract.ambiguity_policy != plain.ambiguity_policy:
        body["ambiguityPolicy"] = contract.ambiguity_policy
    if contract.window_ms is not None:
        body["stabilityWindowMs"] = contract.window_ms
    if contract.hold_ms is not None:
        body["stabilityMs"] = contract.hold_ms
    if contract.fresh_only:
        body["freshOnly"] = True
    return body


def _set_to_json(conditions: AssertionSet) -> dict[str, Json]:
    body: dict[str, Json] = {}
    lists = (conditions.all, conditions.any, conditions.forbidden)
    for name, assertions in zip(_LISTS, lists, strict=True):
        if assertions:
            body[name] = [_assertion_to_json(assertion) for assertion in assertions]
    for name, joined in zip(_JOINED, (conditions.also, conditions.either), strict=True):
        if joined:
            body[name] = [_set_to_json(one) for one in joined]
    return body


def _assertion_to_json(assertion: Assertion) -> dict[str, Json]:
    body: dict[str, Json] = {"factKey": assertion.fact_key, "operator": assertion.operator}
    if assertion.expected is not OMITTED:
        body["expected"] = assertion.expected
    if assertion.frame_id is not None:
        body["frameId"] = assertion.frame_id
    return body


def contract_from_json(body: Json, *, stored: bool = False) -> Contract:
    """The contract a JSON object describes; raises BadContract. `stored` also takes what only Nova itself writes."""
    given = _object(body, "transitionContract", _FIELDS | ({"freshOnly"} if stored else set()))
    outcome = _object(given.get("postconditions", {}), "postconditions", frozenset(_BUCKETS))
    return Contract(
        action_kind=_choice(given.get("actionKind", "custom"), "actionKind", get_args(ActionKind)),
        preconditions=_set_from_json(given.get("preconditions", {}), "preconditions", stored),
        success=_set_from_json(outcome.get("success", {}), "success", stored),
        forbidden=_set_from_json(outcome.get("forbidden", {}), "forbidden", stored),
        ambiguous=_set_from_json(outcome.get("ambiguous", {}), "ambiguous", stored),
        retry_policy=_choice(given.get("retryPolicy", "non_idempotent"), "retryPolicy", get_args(RetryPolicy)),
        retry_policy_given="retryPolicy" in given,
        ambiguity_policy=_choice(given.get("ambiguityPolicy", "signal"), "ambiguityPolicy", get_args(AmbiguityPolicy)),
        window_ms=_milliseconds(given.get("stabilityWindowMs"), "stabilityWindowMs"),
        hold_ms=_milliseconds(given.get("stabilityMs"), "stabilityMs"),
        fresh_only=given.get("freshOnly") is True,
    )


def _set_from_json(body: Json, where: str, stored: bool) -> AssertionSet:
    given = _object(body, where, frozenset((*_LISTS, *_JOINED) if stored else _LISTS))
    lists = {
        name: tuple(_assertion_from_json(item, f"{where}.{name}") for item in _list(given.get(name, []), where))
        for name in _LISTS
    }
    joined = {
        name: tuple(_set_from_json(item, f"{where}.{name}", stored) for item in _list(given.get(name, []), where))
        for name in _JOINED
    }
    return AssertionSet(lists["all"], lists["any"], lists["forbidden"], joined["also"], joined["either"])


def _assertion_from_json(body: Json, where: str) -> Assertion:
    given = _object(body, where, frozenset({"factKey", "operator", "expected", "frameId"}))
    key, frame = given.get("factKey"), given.get("frameId")
    if not isinstance(key, str) or not key:
        raise BadContract(f"An assertion of {where} needs a factKey.")
    if frame is not None and not isinstance(frame, str):
        raise BadContract(f"The frameId of an assertion of {where} is a string or null.")
    operator: Operator = _choice(given.get("operator"), "operator", get_args(Operator))
    return Assertion(key, operator, given.get("expected", OMITTED), frame)


def _object(body: Json, where: str, fields: frozenset[str]) -> Mapping[str, Json]:
    if not isinstance(body, dict):
        raise BadContract(f"{where} is an object.")
    unknown = sorted(body.keys() - fields)
    if unknown:
        raise BadContract(f"{where} has no field {', '.join(unknown)}; it takes {', '.join(sorted(fields))}.")
    return body


def _list(body: Json, where: str) -> list[Json]:
    if not isinstance(body, list):
        raise BadContract(f"The lists of {where} are arrays.")
    return body


def _choice(value: Json, name: str, choices: tuple[T, ...]) -> T:
    for choice in choices:
        if value == choice:
            return choice
    raise BadContract(f"{name} is one of {', '.join(choices)}.")


def _milliseconds(value: Json, name: str) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadContract(f"{name} is a whole number of milliseconds.")
    return value


def check_contract(contract: Contract) -> None:
    """Raises UnknownFact for a fact nobody can read and BadContract for a comparison with nothing."""
    for assertion in (*contract.preconditions.members, *contract.outcome_members):
        ref = parse_fact(assertion.fact_key)
        comparing = assertion.operator not in ("exists", "not_exists")
        if comparing and assertion.expected is OMITTED and not (ref.is_dom and ref.field is None):
            raise BadContract(f'{assertion.operator} on "{assertion.fact_key[:120]}" needs an expected value.')
        if comparing and (wrong := _mismatch(assertion, ref)) is not None:
            raise BadContract(f'{assertion.operator} on "{assertion.fact_key[:120]}" {wrong}.')


_ORDERS: Final = ("gt", "lt", "gte", "lte")
_KIND_WORDS: Final = {"truth": "true or false", "number": "a number", "text": "a text", "element": "an element"}


def _mismatch(assertion: Assertion, ref: FactRef) -> str | None:
    """Why this comparison could never be judged, whatever the page shows; None for what may come out either way."""
    kind, operator, expected = ref.kind, assertion.operator, assertion.expected
    if kind is None:
        return None
    if operator in _ORDERS:
        if kind != "number":
            return f"can't be judged: that fact is {_KIND_WORDS[kind]}, not a number"
        return None if _kind_of(expected) == "number" else "compares with a number, so expected has to be one"
    if operator == "contains":
        if kind != "text":
            return f"can't be judged: that fact is {_KIND_WORDS[kind]}, not a text"
        return None if _kind_of(expected) == "text" else "looks for a text, so expected has to be one"
    if kind == "element" or expected is None or expected is OMITTED:
        return None
    allowed = (kind, "truth") if ref.name == "network.responseOk" else (kind,)
    return None if _kind_of(expected) in allowed else f"compares with {_KIND_WORDS[kind]}, so expected has to be that"


def _kind_of(value: "Json | Omitted") -> FactKind | None:
    match value:
        case bool():
            return "truth"
        case int() | float():
            return "number"
        case str():
            return "text"
        case _:
            return None


def compared_texts(contract: Contract) -> dict[str, tuple[str, ...]]:
    """By fact key: the texts that values of elements are compared with."""
    found: dict[str, list[str]] = {}
    for assertion in (*contract.preconditions.members, *contract.outcome_members):
        ref = parse_fact(assertion.fact_key)
        if ref.is_dom and ref.field == "value" and isinstance(assertion.expected, str):
            found.setdefault(assertion.fact_key, []).append(assertion.expected)
    return {key: tuple(dict.fromkeys(texts)) for key, texts in found.items()}


def both(first: AssertionSet, second: AssertionSet) -> AssertionSet:
    """The set that holds when both do."""
    if not first or not second:
        return first or second
    if (first.any and second.any) or (first.either and second.either):
        return replace(first, also=(*first.also, second))
    return AssertionSet(
        all=(*first.all, *second.all),
        any=first.any or second.any,
        forbidden=(*first.forbidden, *second.forbidden),
        also=(*first.also, *second.also),
        either=first.either or second.either,
    )


def one_of(first: AssertionSet, second: AssertionSet) -> AssertionSet:
    """The set that holds when either does."""
    if not first or not second:
        return first or second
    choices = (_alternatives(first), _alternatives(second))
    if all(choices):
        return AssertionSet(any=(*choices[0], *choices[1]))
    return AssertionSet(either=(first, second))


def _alternatives(conditions: AssertionSet) -> tuple[Assertion, ...]:
    """The members of a set that any single one of them satisfies; empty when it is not of that kind."""
    if conditions.forbidden or conditions.also or conditions.either:
        return ()
    if not conditions.all:
        return conditions.any
    return conditions.all if len(conditions.all) == 1 and not conditions.any else ()


def tighten(own: Contract, given: Contract) -> Contract:
    """A macro's contract with a caller's: more must hold, more may go wrong, never the other way round."""
    return replace(
        own,
        preconditions=both(own.preconditions, given.preconditions),
        success=both(own.success, given.success),
        forbidden=one_of(own.forbidden, given.forbidden),
        ambiguous=one_of(own.ambiguous, given.ambiguous),
        retry_policy=given.retry_policy if given.retry_policy_given else own.retry_policy,
        retry_policy_given=own.retry_policy_given or given.retry_policy_given,
        ambiguity_policy=own.ambiguity_policy if given.ambiguity_policy == "signal" else given.ambiguity_policy,
        window_ms=own.window_ms if given.window_ms is None else given.window_ms,
        hold_ms=own.hold_ms if given.hold_ms is None else given.hold_ms,
        fresh_only=own.fresh_only or given.fresh_only,
    )
