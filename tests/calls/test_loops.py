"""A call that goes on failing the same way is told so, through the whole pipeline."""

from typing import Any, cast

import pytest

from nova_mcp.browser.targets.tab import Tab, TabHost
from nova_mcp.errors import Precondition, Unavailable
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.spec import PageResult, TargetParams, tool


class PokeParams(TargetParams):
    selector: str = "#a"
    outcome: str = "obstructed"


class PokeResult(PageResult):
    message: str | None = None


ran: list[str] = []


@tool(title="Poke", effect="act", bundles=("core",))
async def poke(ctx: ToolContext, p: PokeParams) -> PokeResult:
    """Does as it is told."""
    ran.append(p.selector)
    if p.outcome == "busy":
        raise Unavailable("tab.busy", "busy", "wait", retry_after_ms=10)
    if p.outcome == "obstructed":
        raise Precondition("action.obstructed", "covered", "uncover it", stage="actionability", action_dispatched=False)
    ctx.evidence.action_dispatched = True
    if p.outcome == "refused":
        return PokeResult(ok=False, status="failed", reason_code="guarded_commit.postcondition_failed", **_at(ctx))
    return PokeResult(**_at(ctx))


def _at(ctx: ToolContext) -> dict[str, Any]:
    return {"target_id": ctx.tab.target_id, "url": ctx.tab.url}


@pytest.fixture
async def rig(make_rig: Any) -> Any:
    ran.clear()
    rig = await make_rig(poke)
    tab = rig.tab = Tab("tab_1", "A", ("local", "default"), cast(TabHost, None), rig.clock)
    rig.browser.targets._tabs["tab_1"] = tab
    rig.browser.targets._active["local", "default"] = "tab_1"
    return rig


async def reasons(rig: Any, times: int, **arguments: Any) -> list[Any]:
    return [(await rig.call("nova.poke", arguments)).structured.get("reasonCode") for _ in range(times)]


async def test_the_third_identical_failure_is_a_loop_and_the_ledger_says_so(rig: Any) -> None:
    assert await reasons(rig, 4) == ["action.obstructed"] * 2 + ["loop.same_action"] * 2
    body = (await rig.call("nova.poke")).structured
    assert (body["errorCode"], body["lastReasonCode"], body["actionDispatched"]) == (-32003, "action.obstructed", False)
    assert body["fix"]["args"]["args"] == {"agentId": "default", "targetId": "tab_1"}
    assert {record.outcome.kind for record in await rig.records()} == {"failed"}
    assert (await rig.records())[2].outcome.reason_code == "loop.same_action"


async def test_default_arguments_spelled_out_are_the_same_call(rig: Any) -> None:
    await reasons(rig, 2)
    assert await reasons(rig, 1, selector="#a", targetId="tab_1", agentId="default") == ["loop.same_action"]


async def test_a_page_that_changed_or_another_element_is_another_call(rig: Any) -> None:
    await reasons(rig, 2)
    rig.tab.rev += 1
    assert await reasons(rig, 2) == ["action.obstructed"] * 2
    assert await reasons(rig, 2, selector="#b") == ["action.obstructed"] * 2


async def test_a_success_between_them_ends_the_row(rig: Any) -> None:
    await reasons(rig, 2)
    for streaks in rig.pipeline._loops._owners.values():
        assert len(streaks) == 1
    assert await reasons(rig, 1, outcome="fine") == [None]
    await reasons(rig, 2, outcome="refused")
    assert await reasons(rig, 1, outcome="refused") == ["loop.same_action"]


async def test_what_failed_on_the_page_twice_is_not_sent_a_third_time(rig: Any) -> None:
    told = await reasons(rig, 3, outcome="refused")
    assert told == ["guarded_commit.postcondition_failed"] * 2 + ["loop.same_action"]
    assert len(ran) == 2
    assert (await rig.records())[-1].outcome.action_dispatched is not True


async def test_a_call_that_is_to_be_tried_again_later_is_never_a_loop(rig: Any) -> None:
    assert await reasons(rig, 5, outcome="busy") == ["tab.busy"] * 5
