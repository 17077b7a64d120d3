"""Every gate in every mode, through a whole call: what runs, what the ledger says, what the answer shows."""

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast, get_args

import pytest
from playwright.async_api import Page
from pydantic import Field

from nova_mcp.browser.blockers.rules import NotedLayer
from nova_mcp.browser.targets.tab import Tab, TabHost
from nova_mcp.calls.admission.gates import GATES, MET_ON_THE_WAY
from nova_mcp.calls.model import Answer
from nova_mcp.core.leases import Lease
from nova_mcp.core.tokens import estimate_tokens
from nova_mcp.errors import CommitRefused
from nova_mcp.evidence.model import CallRecord
from nova_mcp.memory.notes.domain_model import Wish
from nova_mcp.memory.notes.domain_store import put
from nova_mcp.settings import GateMode
from nova_mcp.tools.browse.act_support import TEXT_TOKENS, ElementResult
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.results import EffectSeen
from nova_mcp.tools.spec import GateId, Result, TargetParams, maybe, tool
from nova_mcp.verification import refusals

SCRIPTED_GATES: tuple[GateId, ...] = (
    "policy.domain",
    "claim.owner",
    "setup.bootstrap",
    "setup.shared_agent_id",
    "safety.perceive_first",
    "safety.overlay_detected",
)


class PressParams(TargetParams):
    url: str | None = None
    ref: str | None = None
    word: str = Field("x", max_length=10)


class PressResult(Result):
    target_id: str
    action_dispatched: bool
    text_room: int = maybe(0)


@tool(title="Press", effect="act", bundles=("core",), gates=SCRIPTED_GATES)
async def press(ctx: ToolContext, p: PressParams) -> PressResult:
    """Touches the page, unless an operator or a missing contract is met on the way."""
    if p.word in ("killed", "here"):
        raise refusals.killed("global" if p.word == "killed" else "domain", "127.0.0.1")
    if p.word == "commit":
        raise CommitRefused("guarded_commit.missing_contract", "it commits", "say what should come of it")
    ctx.evidence.action_dispatched = True
    return PressResult(target_id=ctx.tab.target_id, action_dispatched=True, text_room=ctx.call.reserved_tokens)


@tool(title="Tell", effect="act", bundles=("core",), gates=SCRIPTED_GATES)
async def tell(ctx: ToolContext, p: PressParams) -> ElementResult:
    """Answers at length, as an action does."""
    ctx.evidence.action_dispatched = True
    return ElementResult(
        target_id=ctx.tab.target_id,
        url="http://127.0.0.1/",
        action_dispatched=True,
        dispatch_proof="event",
        effect=EffectSeen(observed=True, channels=["dom_mutation"], new_text=["a new line of text " * 4] * 3),
        verify_state="likely",
        rev=1,
        element='e1 button "' + "a long name of a button " * 8 + '"',
        verb="clicked",
        beside=ctx.call.reserved_tokens,
    )


@dataclass(frozen=True)
class Case:
    """How a gate is made to fire, and what it answers with."""

    code: int
    reason: str
    arrange: Callable[[Any, Tab], None] = lambda rig, tab: None
    arguments: dict[str, Any] | None = None
    settings: dict[str, Any] | None = None
    mode_setting: str | None = None
    calls_before: int = 0


def _stop(rig: Any, tab: Tab) -> None:
    rig.settings.stop_file.touch()


def _foreign(rig: Any, tab: Tab) -> None:
    tab.lease = Lease(("local", "other"), rig.clock.now + 60_000)


def _unseen(rig: Any, tab: Tab) -> None:
    tab.url, tab.perceived_epoch = "http://127.0.0.1/", None


def _noted(rig: Any, tab: Tab) -> None:
    tab.url = "http://127.0.0.1/"
    wish = Wish("local", "127.0.0.1", "FIRST", "Read this.", "agent", enforcement="block")
    rig.db.write_sync(put, wish, rig.clock.now, lambda: "n1")


def _covered(rig: Any, tab: Tab) -> None:
    tab.blockers.note(tab.page_epoch, [NotedLayer("consent", True)])


CASES: dict[str, Case] = {
    "safety.emergency_stop": Case(-32001, "safety.emergency_stop", _stop),
    "safety.disk_space_low": Case(-32001, "storage.low_free_space", settings={"low_disk_mb": 10**9}),
    "policy.domain": Case(-32035, "policy.scheme_denied", arguments={"url": "javascript:alert(1)"}),
    "policy.capability": Case(
        -32035, "policy.capability_missing", settings={"capability": "block"}, mode_setting="capability"
    ),
    "safety.session_budget": Case(
        -32029, "budget.exhausted", settings={"session_calls": 1}, mode_setting="session_budget", calls_before=1
    ),
    "claim.owner": Case(-32040, "claim.owner_mismatch", _foreign),
    "user.domain_note": Case(-32001, "acknowledge_required", _noted),
    "setup.bootstrap": Case(-32001, "bootstrap.required", mode_setting="bootstrap"),
    "setup.shared_agent_id": Case(-32001, "agent.shared_id", mode_setting="shared_agent_id"),
    "safety.perceive_first": Case(-32001, "perceive.required", _unseen, mode_setting="perceive_first"),
    "safety.overlay_detected": Case(
        -32001, "blocking_overlay_active", _covered, {"ref": "e1"}, mode_setting="overlay_detected"
    ),
    "safety.kill_switch": Case(-32035, "guarded_commit.kill_switch_global", arguments={"word": "killed"}),
    "safety.guarded_commit": Case(-32001, "guarded_commit.missing_contract", arguments={"word": "commit"}),
}
FIXED = [gate for gate, case in CASES.items() if case.mode_setting is None]
ADJUSTABLE = [gate for gate, case in CASES.items() if case.mode_setting is not None]


def _add_tab(rig: Any) -> Tab:
    owner = ("local", "default")
    tab = Tab("tab_1", "A", owner, cast(TabHost, None), rig.clock)
    tab.page = cast(Page, SimpleNamespace(url="about:blank"))
    rig.browser.targets._tabs["tab_1"] = tab
    rig.browser.targets._active[owner] = "tab_1"
    return tab


def test_every_gate_of_the_table_and_those_met_on_the_way_have_a_case() -> None:
    assert set(CASES) == {*(gate.gate_id for gate in GATES), *MET_ON_THE_WAY}


POLICY = """
[[policy]]
service = "127.0.0.1"
tools = ["act"]
needs = "is_authenticated"
"""


async def fired(make_rig: Any, gate_id: str, mode: GateMode | None = None, name: str = "press") -> tuple[Answer, Any]:
    case = CASES[gate_id]
    settings = {"bootstrap": "off"} | dict(case.settings or {})
    if case.mode_setting is not None and mode is not None:
        settings[case.mode_setting] = mode
    rig = await make_rig(press, tell, gates=settings, policies=POLICY if gate_id == "policy.capability" else "")
    tab = _add_tab(rig)
    tab.url = "http://127.0.0.1/" if gate_id == "policy.capability" else tab.url
    tab.perceived_epoch = tab.page_epoch
    for _ in range(case.calls_before):
        await rig.call(f"nova.{name}")
    if gate_id == "setup.shared_agent_id":
        await rig.call("nova.press", connection="elsewhere")
    case.arrange(rig, tab)
    answer = await rig.call(f"nova.{name}", case.arguments, connection="here")
    return answer, rig


async def last(rig: Any) -> CallRecord:
    return (await rig.records())[-1]


def _is_block(answer: Answer, gate_id: str) -> None:
    case, body = CASES[gate_id], answer.structured
    assert answer.is_error
    assert (body["status"], body["gateId"], body["errorCode"]) == ("blocked", gate_id, case.code)
    assert body["reasonCode"] == case.reason
    assert body["actionDispatched"] is False
    assert body["message"]
    assert body["hint"]


async def _recorded_as_blocked(rig: Any, gate_id: str) -> None:
    record = await last(rig)
    assert (record.outcome.kind, record.outcome.gate_id) == ("blocked_preflight", gate_id)
    assert not record.outcome.action_dispatched
    assert record.touched.selector is None


@pytest.mark.parametrize("gate_id", FIXED)
async def test_a_fixed_gate_stops_the_call_and_leaves_a_row_that_is_no_failure(make_rig: Any, gate_id: str) -> None:
    answer, rig = await fired(make_rig, gate_id)
    _is_block(answer, gate_id)
    await _recorded_as_blocked(rig, gate_id)


@pytest.mark.parametrize("mode", get_args(GateMode))
@pytest.mark.parametrize("gate_id", ADJUSTABLE)
async def test_an_adjustable_gate_does_what_its_mode_says(make_rig: Any, gate_id: str, mode: GateMode) -> None:
    answer, rig = await fired(make_rig, gate_id, mode)
    if mode == "block":
        _is_block(answer, gate_id)
        assert answer.structured["stage"] == "gate"
        await _recorded_as_blocked(rig, gate_id)
        return
    record = await last(rig)
    assert (answer.is_error, record.outcome.kind, record.outcome.action_dispatched) == (False, "ok", True)
    if mode == "off":
        assert "gates" not in answer.structured
        assert record.outcome.gate_id is None
        return
    (shown,) = cast(list[dict[str, Any]], answer.structured["gates"])
    assert (shown["gateId"], shown["status"]) == (gate_id, "warned" if mode == "warn" else "shadow_blocked")
    assert shown["message"]
    assert f"! {gate_id}" in answer.text
    # A gate that is being tried out is counted by its name on the record; one that only warns is not.
    assert record.outcome.gate_id == (gate_id if mode == "shadow_block" else None)


async def test_a_gate_on_trial_never_turns_a_failure_into_a_refusal(make_rig: Any) -> None:
    rig = await make_rig(press, gates={"perceive_first": "shadow_block"})
    _unseen(rig, _add_tab(rig))
    await rig.call("nova.press", {"word": "commit"})
    assert (await last(rig)).outcome.gate_id == "safety.guarded_commit"


async def test_a_switch_for_one_site_stops_what_commits_there(make_rig: Any) -> None:
    rig = await make_rig(press)
    _add_tab(rig)
    told = (await rig.call("nova.press", {"word": "here"})).structured
    assert (told["reasonCode"], told["gateId"]) == ("guarded_commit.kill_switch_domain", "safety.kill_switch")
    assert (await last(rig)).outcome.kind == "blocked_preflight"


async def test_arguments_are_judged_before_any_gate(make_rig: Any) -> None:
    rig = await make_rig(press)
    _stop(rig, _add_tab(rig))
    answer = await rig.call("nova.press", {"word": 5})
    assert answer.structured["errorCode"] == -32602
    assert (await last(rig)).outcome.gate_id is None


async def test_the_budget_names_its_counter_and_counts_every_call_of_the_owner_once(make_rig: Any) -> None:
    rig = await make_rig(press, gates={"session_calls": 2})
    _add_tab(rig)
    assert not (await rig.call("nova.press")).is_error
    assert not (await rig.call("nova.press")).is_error
    body = (await rig.call("nova.press")).structured
    assert (body["counter"], body["cap"], body["retryable"]) == ("calls", 2, True)
    assert body["retryAfterMs"] > 30 * 60_000
    rig.clock.now += 31 * 60_000
    assert not (await rig.call("nova.press")).is_error


async def test_pictures_are_charged_by_their_weight_and_stop_only_pictures(make_rig: Any) -> None:
    @tool(title="Shoot", effect="read", bundles=("core",), target="none", makes_artifacts=True)
    async def shoot(ctx: ToolContext, p: TargetParams) -> Result:
        """Makes a picture."""
        ctx.evidence.image_bytes += 60
        return Result()

    rig = await make_rig(press, shoot, gates={"session_image_bytes": 100})
    _add_tab(rig)
    assert [(await rig.call("nova.shoot")).is_error for _ in range(3)] == [False, False, True]
    assert not (await rig.call("nova.press")).is_error


async def test_what_gates_say_does_not_push_an_answer_over_its_budget(make_rig: Any) -> None:
    answer, _rig = await fired(make_rig, "safety.perceive_first", "warn", "tell")
    assert "! safety.perceive_first" in answer.text
    assert "likely" in answer.text
    assert estimate_tokens(answer.text) <= TEXT_TOKENS


async def test_a_warning_that_is_told_once_is_not_spent_on_a_tool_that_does_not_tell_it(make_rig: Any) -> None:
    @tool(title="Quiet", effect="read", bundles=("core",), target="none")
    async def quiet(ctx: ToolContext, p: TargetParams) -> Result:
        """Has no such gate."""
        return Result()

    rig = await make_rig(press, quiet)
    _add_tab(rig)
    assert told_by(await rig.call("nova.quiet", connection="one")) == []
    assert told_by(await rig.call("nova.press", connection="one")) == ["setup.bootstrap"]
    await rig.call("nova.quiet", connection="two")
    assert told_by(await rig.call("nova.press", connection="two")) == ["setup.bootstrap", "setup.shared_agent_id"]


def told_by(answer: Answer) -> list[str]:
    return [gate["gateId"] for gate in cast(list[dict[str, Any]], answer.structured.get("gates", []))]


@pytest.mark.parametrize("preparing", ["get_instructions", "tools_bundle"])
async def test_an_owner_that_asked_how_to_work_here_is_not_told_to(make_rig: Any, preparing: str) -> None:
    rig = await make_rig(press, _named(preparing), gates={"bootstrap": "block"})
    _add_tab(rig)
    assert (await rig.call("nova.press")).structured["reasonCode"] == "bootstrap.required"
    assert "get_instructions" in str((await rig.call("nova.press")).structured["fix"])
    await rig.call(f"nova.{preparing}")
    assert not (await rig.call("nova.press")).is_error
    rig.clock.now += 31 * 60_000
    assert (await rig.call("nova.press")).structured["reasonCode"] == "bootstrap.required"


def _named(name: str) -> Any:
    async def run(ctx: ToolContext, p: TargetParams) -> Result:
        """Stands for the real one."""
        return Result()

    run.__name__ = name
    return tool(title="Prepare", effect="read", bundles=("core",), target="none")(run)


async def test_a_session_hears_once_that_it_has_no_instructions_and_a_new_one_again(make_rig: Any) -> None:
    rig = await make_rig(press)
    _add_tab(rig)
    # A call that is refused tells nobody, so the word is still to come.
    assert (await rig.call("nova.press", {"word": "commit"})).is_error
    assert [told_by(await rig.call("nova.press")) for _ in range(3)] == [["setup.bootstrap"], [], []]
    rig.clock.now += 31 * 60_000
    assert told_by(await rig.call("nova.press")) == ["setup.bootstrap"]
