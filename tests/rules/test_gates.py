"""Which calls may run: every gate in every mode, in table order."""

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nova_mcp.calls.admission.gates import (
    GATES,
    MET_ON_THE_WAY,
    Admitted,
    GateFacts,
    Notice,
    Refused,
    admit,
    shadow_gate,
)
from nova_mcp.calls.admission.session_budget import Exhausted
from nova_mcp.core.clock import SystemClock
from nova_mcp.core.connections import AgentConnections
from nova_mcp.core.leases import Lease
from nova_mcp.core.policy import NavigationPolicy
from nova_mcp.evidence.model import Effect
from nova_mcp.memory.facts.policies import Lacking
from nova_mcp.memory.notes.domain_model import DomainNote, Due, NoteId, Repeat
from nova_mcp.settings import GateMode, GateSettings
from nova_mcp.tools.catalogue import load_catalogue
from nova_mcp.tools.spec import GateId

ME = ("local", "default")
OTHER = ("local", "other")
ALL_GATES: tuple[GateId, ...] = get_args(GateId)
SETTINGS = GateSettings()
# A gate whose id ends like one of the settings takes its mode from there; the others always block.
ADJUSTABLE: dict[GateId, str] = {
    gate: gate.rpartition(".")[2] for gate in ALL_GATES if gate.rpartition(".")[2] in GateSettings.model_fields
}
EVERYTHING_BLOCKS = GateSettings.model_validate(dict.fromkeys(ADJUSTABLE.values(), "block"))


def facts(**changes: object) -> GateFacts:
    values: dict[str, object] = {"effect": "act", "owner": ME, "now_ms": 1_000, "free_mb": 10_000} | changes
    return GateFacts(**values)  # type: ignore[arg-type]


def note(**changes: Any) -> DomainNote:
    values: dict[str, Any] = {
        "note_id": NoteId("n1"),
        "principal": "local",
        "domain": "shop.test",
        "key": "K",
        "value": "text",
        "source": "user",
        "enforcement": "none",
        "repeat_minutes": None,
        "repeat_tool_calls": None,
        "rev": 1,
        "created_at_ms": 0,
        "updated_at_ms": 0,
        "last_delivered_at_ms": None,
        "chars": 4,
    }
    return DomainNote(**{**values, **changes})


FIRING: dict[GateId, tuple[GateFacts, int, str]] = {
    "safety.emergency_stop": (facts(stopped=True), -32001, "safety.emergency_stop"),
    "safety.disk_space_low": (facts(free_mb=499), -32001, "storage.low_free_space"),
    "policy.domain": (
        facts(effect="navigate", url="https://no.example/", policy=NavigationPolicy(deny_hosts=("no.example",))),
        -32035,
        "policy.host_denied",
    ),
    "policy.capability": (
        facts(lacking=Lacking("github", "is_authenticated", "block")),
        -32035,
        "policy.capability_missing",
    ),
    "safety.session_budget": (facts(exhausted=Exhausted("calls", 5, 1_800_001)), -32029, "budget.exhausted"),
    "claim.owner": (facts(lease=Lease(OTHER, 61_000)), -32040, "claim.owner_mismatch"),
    "user.domain_note": (
        facts(
            site=Due(
                AgentConnections(SystemClock()).of(ME),
                "tab_1",
                "shop.test",
                Repeat(60, 50),
                (note(enforcement="block"),),
            )
        ),
        -32001,
        "acknowledge_required",
    ),
    "setup.bootstrap": (facts(unprepared=True), -32001, "bootstrap.required"),
    "setup.shared_agent_id": (facts(agent_id_shared=True), -32001, "agent.shared_id"),
    "safety.perceive_first": (facts(unseen_document=True), -32001, "perceive.required"),
    "safety.overlay_detected": (facts(covered_by="consent"), -32001, "blocking_overlay_active"),
}


def test_the_table_holds_every_declared_gate_once() -> None:
    assert [gate.gate_id for gate in GATES] == list(ALL_GATES)
    assert set(FIRING) == set(ALL_GATES)


@pytest.mark.parametrize("gate_id", ALL_GATES)
def test_a_gate_that_is_not_declared_is_not_asked(gate_id: GateId) -> None:
    others = [gate for gate in ALL_GATES if gate != gate_id]
    assert isinstance(admit(others, FIRING[gate_id][0], EVERYTHING_BLOCKS), Admitted)


@pytest.mark.parametrize("gate_id", [gate for gate in ALL_GATES if gate not in ADJUSTABLE])
def test_fixed_gates_block_with_their_code_and_reason(gate_id: GateId) -> None:
    firing, code, reason = FIRING[gate_id]
    match admit(ALL_GATES, firing, SETTINGS):
        case Refused(found, error):
            assert (found, error.error_code, error.reason_code) == (gate_id, code, reason)
            assert error.stage in ("gate", "validate")
            assert error.action_dispatched is None
        case other:
            pytest.fail(f"{gate_id} did not block: {other}")


@pytest.mark.parametrize("mode", get_args(GateMode))
@pytest.mark.parametrize(("gate_id", "setting"), ADJUSTABLE.items())
def test_adjustable_gates_follow_their_mode(gate_id: GateId, setting: str, mode: GateMode) -> None:
    firing, code, reason = FIRING[gate_id]
    settings = GateSettings.model_validate({setting: mode})
    verdict = admit(ALL_GATES, firing, settings)
    if mode == "off":
        assert verdict == Admitted()
    elif mode == "block":
        assert isinstance(verdict, Refused)
        assert (verdict.gate_id, verdict.error.error_code, verdict.error.reason_code) == (gate_id, code, reason)
    else:
        assert isinstance(verdict, Admitted)
        status = "warned" if mode == "warn" else "shadow_blocked"
        assert [(notice.gate_id, notice.status) for notice in verdict.notices] == [(gate_id, status)]


def test_the_first_blocking_gate_in_table_order_decides() -> None:
    both = facts(stopped=True, free_mb=0, lease=Lease(OTHER, 61_000))
    verdict = admit(reversed(ALL_GATES), both, SETTINGS)
    assert isinstance(verdict, Refused)
    assert verdict.gate_id == "safety.emergency_stop"


def test_free_space_that_cannot_be_read_blocks() -> None:
    assert isinstance(admit(ALL_GATES, facts(free_mb=None), SETTINGS), Refused)


@pytest.mark.parametrize(
    ("effect", "artifacts", "free_mb", "passes"),
    [
        ("read", False, 50, True),
        ("read", False, 49, False),
        ("read", True, 499, False),
        ("read", True, 500, True),
        ("act", False, 499, False),
        ("act", False, 500, True),
        ("admin", False, 50, True),
    ],
)
def test_disk_floors(effect: Effect, artifacts: bool, free_mb: int, passes: bool) -> None:
    verdict = admit(ALL_GATES, facts(effect=effect, makes_artifacts=artifacts, free_mb=free_mb), SETTINGS)
    assert isinstance(verdict, Admitted) is passes


@given(effect=st.sampled_from(get_args(Effect)), expires=st.integers(0, 2_000), mine=st.booleans())
def test_only_a_foreign_live_lease_stops_a_mutation(effect: Effect, expires: int, mine: bool) -> None:
    lease = Lease(ME if mine else OTHER, expires)
    verdict = admit(["claim.owner"], facts(effect=effect, lease=lease), SETTINGS)
    stopped = not mine and expires > 1_000 and effect in ("navigate", "act", "commit", "write")
    assert isinstance(verdict, Refused) is stopped
    if isinstance(verdict, Refused):
        assert verdict.error.details == {"ownerAgentId": "other", "leaseRemainingMs": expires - 1_000}
        assert verdict.error.retry_after_ms == expires - 1_000


@pytest.mark.parametrize("effect", [effect for effect in get_args(Effect) if effect not in ("act", "commit", "write")])
def test_looking_first_is_asked_of_acting_calls_only(effect: Effect) -> None:
    settings = GateSettings(perceive_first="block")
    assert isinstance(admit(ALL_GATES, facts(effect=effect, unseen_document=True), settings), Admitted)


@pytest.mark.parametrize("mode", get_args(GateMode))
@pytest.mark.parametrize("gate_id", ALL_GATES)
def test_a_gate_that_cannot_be_evaluated_blocks_where_it_would_and_warns_elsewhere(
    gate_id: GateId, mode: GateMode
) -> None:
    settings = GateSettings.model_validate({ADJUSTABLE[gate_id]: mode} if gate_id in ADJUSTABLE else {})
    verdict = admit([gate_id], facts(unreadable=frozenset({gate_id})), settings)
    if gate_id in ADJUSTABLE and mode == "off":
        assert verdict == Admitted()
    elif gate_id in ADJUSTABLE and mode != "block":
        assert isinstance(verdict, Admitted)
        assert [notice.gate_id for notice in verdict.notices] == [gate_id]
    else:
        assert isinstance(verdict, Refused)
        assert (verdict.gate_id, verdict.error.error_code) == (gate_id, FIRING[gate_id][1])
        assert verdict.error.retryable


def test_facts_that_cannot_be_read_stop_only_the_gate_they_belong_to() -> None:
    unreadable = facts(unreadable=frozenset({"safety.perceive_first"}))
    assert admit(["claim.owner"], unreadable, EVERYTHING_BLOCKS) == Admitted()


def test_no_more_than_five_gates_speak_at_once() -> None:
    unreadable = facts(unreadable=frozenset(ALL_GATES))
    warning = GateSettings.model_validate(dict.fromkeys(ADJUSTABLE.values(), "warn"))
    verdict = admit(ADJUSTABLE, unreadable, warning)
    assert isinstance(verdict, Admitted)
    assert len(verdict.notices) == min(5, len(ADJUSTABLE))


def test_every_gate_met_on_the_way_is_known_by_its_error() -> None:
    assert {gate: family.gate_id for gate, family in MET_ON_THE_WAY.items()} == {gate: gate for gate in MET_ON_THE_WAY}
    assert MET_ON_THE_WAY.keys().isdisjoint(ALL_GATES)


def test_only_a_gate_on_trial_is_counted_on_the_record() -> None:
    warned = Notice("setup.shared_agent_id", "warned", "a")
    trial = Notice("safety.perceive_first", "shadow_blocked", "b")
    assert (shadow_gate([]), shadow_gate([warned]), shadow_gate([warned, trial])) == (None, None, trial.gate_id)


def test_a_demand_that_only_warns_never_blocks() -> None:
    lacking = Lacking("github", "is_authenticated", "warn")
    verdict = admit(ALL_GATES, facts(lacking=lacking), EVERYTHING_BLOCKS)
    assert isinstance(verdict, Admitted)
    assert [(notice.gate_id, notice.status) for notice in verdict.notices] == [("policy.capability", "warned")]
    assert "is_authenticated" in verdict.notices[0].message


def test_a_note_that_can_not_be_read_only_warns_where_notes_only_warn() -> None:
    verdict = admit(
        ["user.domain_note"], facts(unreadable=frozenset({"user.domain_note"}), notes_only_warn=True), SETTINGS
    )
    assert isinstance(verdict, Admitted)
    assert [(notice.gate_id, notice.status) for notice in verdict.notices] == [("user.domain_note", "warned")]


def test_whatever_acts_on_a_page_is_held_to_notes_and_a_sequence_step_by_step() -> None:
    held = {spec.name for spec in load_catalogue() if "user.domain_note" in spec.gates}
    acting = {spec.name for spec in load_catalogue() if spec.effect in ("act", "commit")}
    assert held == (acting - {"run_sequence"}) | {"eval"}
