"""The error tree: every reason has one family, one sentence and one hint."""

import ast
from pathlib import Path

import pytest

import nova_mcp
from nova_mcp import errors
from nova_mcp.errors import FAMILIES, Blocked, InvalidParams, Killed, NovaError, Reason, Unavailable
from nova_mcp.tools.publish import reasons_text

SOURCE = Path(nova_mcp.__file__).parent
CATALOGUE = {code: reason for family in (*FAMILIES, Killed) for code, reason in family.reasons.items()}


def test_no_reason_is_claimed_twice() -> None:
    reasons = [reason for family in FAMILIES for reason in family.reasons]
    assert len(reasons) == len(set(reasons))


def test_a_reason_of_another_family_is_a_defect() -> None:
    with pytest.raises(ValueError, match=r"tab\.busy"):
        Blocked("tab.busy", "no")


def test_whether_to_retry_follows_from_what_happened() -> None:
    assert Unavailable("tab.busy", "x", retry_after_ms=5).retryable is True
    assert Unavailable("tab.busy", "x").retry_advice(dispatched=False) == "safe_to_retry"
    assert Unavailable("call.deadline", "x").retry_advice(dispatched=True) == "check_postcondition_first"
    assert InvalidParams("invalid_params", "x").retry_advice(dispatched=False) == "do_not_retry"


@pytest.mark.parametrize("reason", CATALOGUE.values(), ids=list(CATALOGUE))
def test_a_reason_says_in_one_sentence_what_happened_and_in_another_what_to_do(reason: Reason) -> None:
    assert reason.message
    assert reason.hint.endswith(".")
    assert "\n" not in reason.message + reason.hint


def test_a_failure_that_knows_no_more_says_what_the_catalogue_says() -> None:
    usual = CATALOGUE["tab.busy"]
    assert (Unavailable("tab.busy").message, Unavailable("tab.busy").hint) == usual
    own = Unavailable("tab.busy", "Two calls held it.", "")
    assert (own.message, str(own), own.hint) == ("Two calls held it.", "Two calls held it.", "")


def test_every_reason_stands_on_the_reference_page_once() -> None:
    rows = [line.split("`")[1] for line in reasons_text().splitlines() if line.startswith("| `")]
    assert sorted(rows) == sorted(CATALOGUE)


def test_no_failure_repeats_what_the_catalogue_says() -> None:
    names = {name for name, held in vars(errors).items() if isinstance(held, type) and issubclass(held, NovaError)}
    repeated = [
        f"{path.relative_to(SOURCE)}:{node.lineno}"
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names
        if repeats(node.args)
    ]
    assert repeated == []


def repeats(arguments: list[ast.expr]) -> bool:
    texts = [one.value if isinstance(one, ast.Constant) else None for one in arguments]
    known = CATALOGUE.get(texts[0]) if texts and isinstance(texts[0], str) else None
    return known is not None and (known.message in texts[1:2] or known.hint in texts[2:3])
