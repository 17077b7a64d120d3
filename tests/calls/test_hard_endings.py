"""Calls that end badly twice over: cancelled by two sides, refused without a store, misspelt with a password."""

import json
from contextlib import suppress
from typing import Any

import anyio
import pytest
from pydantic import Field

from nova_mcp.browser.act.navigation_report import NavigationReport
from nova_mcp.calls.admission.gates import GateFacts, Refused, admit
from nova_mcp.calls.endings import store_failed
from nova_mcp.calls.model import CallRequest
from nova_mcp.calls.running_calls import emergency_stop
from nova_mcp.core.leases import IMPLICIT_LEASE_MS, Lease
from nova_mcp.errors import Blocked, Fix, NotFound, UnknownTool
from nova_mcp.settings import GateSettings
from nova_mcp.storage.errors import StoreUnavailable
from nova_mcp.tools.browse import navigate
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.spec import AgentParams, Result, ToolSpec, tool
from nova_mcp.tools.system import call


class TypeParams(AgentParams):
    selector: str | None = None
    text: str = Field(max_length=100)
    url: str | None = None


@tool(title="Typing", effect="act", bundles=("core",), target="none", private_arguments=("text",))
async def typing(ctx: ToolContext, p: TypeParams) -> Result:
    """Types a secret."""
    ctx.evidence.action_dispatched = True
    ctx.evidence.selector = p.selector
    return Result()


@tool(title="Stubborn", effect="act", bundles=("core",), target="none", deadline_ms=lambda _: 60_000)
async def stubborn(ctx: ToolContext, p: AgentParams) -> Result:
    """Tidies up before it lets itself be ended."""
    await ctx.call.progress(0, None, "waiting")
    try:
        await anyio.sleep_forever()
    finally:
        with anyio.CancelScope(shield=True):
            await ctx.call.progress(1, None, "tidying")
    return Result()


@tool(title="Lost", effect="read", bundles=("core",), target="none")
async def lost(ctx: ToolContext, p: AgentParams) -> Result:
    """Names the way out."""
    raise NotFound("tab.no_active_tab", "nothing here", "type", fix=Fix("nova.typing", {"text": "a"}))


TOOLS: tuple[ToolSpec, ...] = (call.call, typing, stubborn, lost)


async def test_a_call_that_operator_and_client_end_together_is_recorded_once(make_rig: Any) -> None:
    rig = await make_rig(*TOOLS)
    waiting, tidying, let_go = anyio.Event(), anyio.Event(), anyio.Event()

    async def tell(done: float, total: float | None, message: str) -> None:
        if message == "waiting":
            waiting.set()
        else:
            tidying.set()
            await let_go.wait()

    async def run() -> None:
        await rig.call("nova.stubborn", progress=tell)

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await waiting.wait()
        rig.pipeline.running.cancel(emergency_stop())
        await tidying.wait()
        group.cancel_scope.cancel()
        let_go.set()
    assert len(await rig.records()) == 1


@tool(title="Going", effect="navigate", bundles=("core",), target="none", deadline_ms=lambda _: -4_990)
async def going(ctx: ToolContext, p: AgentParams) -> Result:
    """Sets out and never arrives."""
    await navigate._under_way(ctx, _never())
    return Result()


async def _never() -> NavigationReport:
    await anyio.sleep_forever()
    raise AssertionError("unreachable")


async def test_a_navigation_that_is_cut_off_counts_as_sent(make_rig: Any) -> None:
    rig = await make_rig(going)
    answer = await rig.call("nova.going")
    assert answer.structured["reasonCode"] == "call.deadline"
    assert answer.structured["actionDispatched"] is True
    assert answer.structured["retryAdvice"] == "check_postcondition_first"
    (record,) = await rig.records()
    assert record.outcome.action_dispatched is True
    assert "navigation_intent" in record.touched.flags


async def test_an_unknown_tool_without_a_store_is_not_called_a_defect(make_rig: Any) -> None:
    rig = await make_rig(*TOOLS)
    rig.fault.armed = True
    answer = await rig.call("nova.nope")
    assert answer.structured["reasonCode"] == "store.unavailable"
    rig.fault.armed = False
    with pytest.raises(UnknownTool):
        await rig.call("nova.nope")
    assert [record.kind for record in await rig.records()] == ["gap", "call"]


async def test_a_cancelled_call_without_a_store_stays_cancelled(make_rig: Any) -> None:
    rig = await make_rig(*TOOLS)
    waiting = anyio.Event()
    ended: list[str] = []

    async def tell(done: float, total: float | None, message: str) -> None:
        waiting.set()

    async def run() -> None:
        try:
            await rig.call("nova.stubborn", progress=tell)
        except anyio.get_cancelled_exc_class():
            ended.append("cancelled")
            raise

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await waiting.wait()
        rig.fault.armed = True
        group.cancel_scope.cancel()
    assert ended == ["cancelled"]


async def test_a_touched_page_is_told_even_if_the_ledger_breaks_in_an_unknown_way(
    make_rig: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = await make_rig(*TOOLS)

    def broken(point: str) -> None:
        raise LookupError("no such server")

    monkeypatch.setattr(rig.fault, "hit", broken, raising=False)
    answer = await rig.call("nova.typing", {"text": "x"})
    assert answer.structured["actionDispatched"] is True
    assert answer.structured["evidenceRecorded"] is False


PASSWORD = "hunter2"


@pytest.mark.parametrize(
    ("tool_name", "arguments"),
    [
        ("nova.typing", {"text": PASSWORD, "agentId": "no way"}),
        ("nova.typing", {"value": PASSWORD}),
        ("nova.typing", {"values": [PASSWORD]}),
        ("nova.typing", {"fill": {"into": PASSWORD}}),
        ("nova.tpying", {"text": PASSWORD}),
        ("nova.call", {"tool": "nova.typing", "arguments": {"text": PASSWORD}}),
        ("nova.call", {"tool": "nova.tpying", "args": {"text": PASSWORD}}),
        ("nova.call", {"tool": "nova.typing", "args": {"text": PASSWORD}, "agentId": "ada"}),
        ("nova.call", {"tool": "nova.typing", "args": {"text": PASSWORD, "clear": True}}),
        ("nova.typing", {"text": "x", "url": f"example.com/reset?token={PASSWORD}"}),
        ("nova.typing", {"text": "x", "url": f"/reset?token={PASSWORD}#{PASSWORD}"}),
        ("nova.typing", {"text": "x", "url": f"data:text/html,{PASSWORD}"}),
        ("nova.typing", {"text": "x", "url": f"https:/u:{PASSWORD}@example.com/?{PASSWORD}=1&t={PASSWORD}"}),
        ("nova.typing", {"text": "x", "selector": f"a[href='https://example.com/?t={PASSWORD}']"}),
    ],
)
async def test_private_text_stays_out_of_the_ledger_however_it_was_sent(
    make_rig: Any, tool_name: str, arguments: dict[str, Any]
) -> None:
    rig = await make_rig(*TOOLS)
    with suppress(UnknownTool):
        await rig.call(tool_name, arguments)
    (record,) = await rig.records()
    assert PASSWORD not in json.dumps(record.arguments).replace(f"?{PASSWORD}", "")
    assert PASSWORD not in str(record.touched)


async def test_what_a_refused_call_got_wrong_can_still_be_seen(make_rig: Any) -> None:
    rig = await make_rig(*TOOLS)
    await rig.call("nova.typing", {"text": "abc", "selector": 7, "worth": "abcd"})
    (record,) = await rig.records()
    assert record.arguments == {"text": "«redacted 3 chars»", "selector": 7, "worth": "«redacted 4 chars»"}


@pytest.mark.parametrize(("spelling", "name"), [("dotted", "nova.typing"), ("underscore", "nova_typing")])
async def test_a_fix_bears_the_name_that_the_client_was_shown(make_rig: Any, spelling: str, name: str) -> None:
    rig = await make_rig(*TOOLS, tool_names=spelling)
    assert (await rig.call("nova.lost")).structured["fix"] == {"tool": name, "args": {"text": "a"}}


def test_the_way_past_an_unseen_page_leads_to_that_page() -> None:
    facts = GateFacts("act", ("local", "ada"), 0, free_mb=9_999, unseen_document=True, target_id="tab_7")
    verdict = admit(("safety.perceive_first",), facts, GateSettings(perceive_first="block"))
    assert isinstance(verdict, Refused)
    assert isinstance(verdict.error, Blocked)
    assert verdict.error.fix == Fix("nova.perceive", {"agentId": "ada", "targetId": "tab_7"})


class HeldTab:
    """As much of a tab as the gates look at."""

    target_id, url, perceived_epoch, page_epoch = "tab_1", "about:blank", 1, 1

    def __init__(self, lease: Lease) -> None:
        self.lease: Lease | None = lease


async def test_a_clock_set_back_does_not_prolong_a_lease(make_rig: Any) -> None:
    rig = await make_rig(*TOOLS)
    tab: Any = HeldTab(Lease(("local", "ada"), rig.clock.now_ms() + IMPLICIT_LEASE_MS))
    rig.clock.now -= 86_400_000
    params = TypeParams(text="x")
    connection = rig.pipeline._open(_request()).connection
    facts = rig.pipeline._parts.admission.facts(typing, params, connection, tab)
    assert facts.lease is not None
    assert facts.lease.expires_at_ms == rig.clock.now_ms() + IMPLICIT_LEASE_MS
    rig.clock.now += IMPLICIT_LEASE_MS
    later = rig.pipeline._parts.admission.facts(typing, params, connection, tab)
    assert later.lease is not None
    assert later.lease.expires_at_ms <= rig.clock.now_ms()


def _request() -> Any:
    return CallRequest(tool="nova.typing", arguments={}, principal="local")


def test_a_store_failure_keeps_its_hint() -> None:
    failed = store_failed(StoreUnavailable("network_fs", "/mnt is on nfs4"))
    assert failed.reason_code == "store.unavailable"
    assert "PostgreSQL" in failed.hint
