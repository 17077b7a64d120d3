"""Contracts in plain words, for receipts and people."""

import json
from collections.abc import Iterator
from urllib.parse import unquote

from nova_mcp.verification.model import Assertion, AssertionSet, Contract, Omitted

_SIGNS = {"eq": "is", "not_eq": "is not", "neq": "is not", "gt": ">", "lt": "<", "gte": "≥", "lte": "≤"}


def contract_lines(contract: Contract) -> Iterator[str]:
    """One line per bucket that says something."""
    for name, conditions in (
        ("needs", contract.preconditions),
        ("success", contract.success),
        ("failure", contract.forbidden),
        ("unclear", contract.ambiguous),
    ):
        if conditions:
            yield f"{name}: {_set_words(conditions)}"


def _set_words(conditions: AssertionSet) -> str:
    parts = [_words(one) for one in conditions.all]
    if conditions.any:
        parts.append(" or ".join(map(_words, conditions.any)))
    parts += [f"not ({_words(one)})" for one in conditions.forbidden]
    parts += [f"({_set_words(one)})" for one in conditions.also if one]
    either = [f"({_set_words(one)})" for one in conditions.either if one]
    if either:
        parts.append(" or ".join(either))
    return " and ".join(parts)


def _words(assertion: Assertion) -> str:
    key = unquote(assertion.fact_key)
    match assertion.operator:
        case "exists":
            return f"{key} is there"
        case "not_exists":
            return f"{key} is not there"
        case operator:
            value = "there" if isinstance(assertion.expected, Omitted) else json.dumps(assertion.expected)
            return f"{key} {_SIGNS.get(operator, operator)} {value}"
