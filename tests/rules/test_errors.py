"""The error tree: every reason has one family and one number."""

import ast
from pathlib import Path

import pytest

import nova_mcp
from nova_mcp import errors
from nova_mcp.errors import FAMILIES, Blocked, InvalidParams, Killed, NovaError, Reason, Unavailable
from nova_mcp.tools.publish import reasons_text

SOURCE = Path(nova_mcp.__file__).parent
CATALOGUE = {code: reason for family in (*FAMILIES, Killed) for code, reason in family.reasons.items()}

NUMBERS = {
    "invalid_params": -32602,
    "selector.invalid": -32602,
    "tab.unknown": -32602,
    "sandbox.unknown": -32602,
    "tab.no_active_tab": -32004,
    "frame.unknown": -32004,
    "frame.detached": -32004,
    "selector.not_found": -32004,
    "ref.stale": -32004,
    "ref.stale_document": -32004,
    "screenshot.not_capturable": -32004,
    "tab.active_ambiguous": -32003,
    "selector.ambiguous": -32003,
    "ref.ambiguous": -32003,
    "ref.identity_changed": -32003,
    "action.obstructed": -32003,
    "action.disabled": -32003,
    "action.unstable": -32003,
    "action.not_visible": -32003,
    "navigation.beforeunload_blocked": -32003,
    "navigation.cannot_go_back": -32003,
    "navigation.cannot_go_forward": -32003,
    "reload.not_needed": -32003,
    "type.not_editable": -32003,
    "read.source_changed": -32003,
    "tab.limit_reached": -32003,
    "sandbox.limit_reached": -32003,
    "browser.not_found": -32002,
    "browser.launch_failed": -32002,
    "browser.restart_limit": -32002,
    "sandbox.node_lost": -32002,
    "tab.crashed": -32002,
    "tab.lost": -32002,
    "tab.busy": -32002,
    "cdp.renderer_stalled": -32002,
    "page.navigating": -32002,
    "dialog.storm": -32002,
    "navigation.failed": -32002,
    "navigation.timeout": -32002,
    "call.deadline": -32002,
    "store.unavailable": -32002,
    "safety.emergency_stop": -32001,
    "storage.low_free_space": -32001,
    "perceive.required": -32001,
    "agent.shared_id": -32001,
    "guarded_commit.missing_contract": -32001,
    "policy.host_denied": -32035,
    "policy.scheme_denied": -32035,
    "policy.private_network": -32035,
    "policy.file_denied": -32035,
    "claim.owner_mismatch": -32040,
    "claim.finalization_token_mismatch": -32040,
    "claim.finalization_token_required": -32602,
    "claim.finalize_failed": -32002,
    "claim.too_many": -32044,
    "learn.coverage_not_met": -32041,
    "learn.coverage_reason_required": -32602,
    "rate.limited": -32029,
    "internal": -32603,
}


def family_of(reason: str) -> type[NovaError]:
    (family,) = [family for family in FAMILIES if reason in family.reasons]
    return family


@pytest.mark.parametrize(("reason", "number"), list(NUMBERS.items()))
def test_a_reason_belongs_to_one_family_with_its_number(reason: str, number: int) -> None:
    assert family_of(reason).error_code == number


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
