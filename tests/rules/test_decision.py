"""Writes that are decided with the call's record: nothing is raised inside, everything is told afterwards."""

from typing import Any

import pytest

from nova_mcp.errors import InvalidParams, NotFound, NovaError
from nova_mcp.evidence.decision import Deciding, with_reason
from nova_mcp.evidence.model import Caller, CallOutcome, CallRecord, OutcomeKind, ServerId

CONN: Any = None


def record(kind: OutcomeKind = "ok") -> CallRecord:
    return CallRecord("c", Caller("local", "a", ServerId("s")), "nova.t", "write", 1, 1, CallOutcome(kind))


def deciding(outcome: str | NovaError) -> Deciding[str]:
    return Deciding(lambda conn, record: outcome, with_reason)


@pytest.mark.parametrize("kind", ["ok", "partial"])
def test_a_call_that_got_as_far_is_decided(kind: OutcomeKind) -> None:
    one = deciding("stale")
    assert one.decide(CONN, record(kind)).outcome == CallOutcome(kind, reason_code="stale")
    assert one.result() == "stale"


def test_a_call_that_did_not_writes_nothing() -> None:
    one = deciding("stale")
    assert one.decide(CONN, record("failed")) == record("failed")
    with pytest.raises(AssertionError):
        one.result()


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (InvalidParams("invalid_params", "No.", "Try again."), "invalid"),
        (NotFound("task.instance_not_found", "Not there.", "Look."), "failed"),
    ],
)
def test_an_error_is_on_record_first_and_raised_after(error: NovaError, kind: OutcomeKind) -> None:
    one = deciding(error)
    outcome = one.decide(CONN, record()).outcome
    assert (outcome.kind, outcome.error_code, outcome.reason_code) == (kind, error.error_code, error.reason_code)
    with pytest.raises(type(error)):
        one.result()
