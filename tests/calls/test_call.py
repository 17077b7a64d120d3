"""The life of a call: whatever becomes of it, one record says so before the answer leaves."""

import json
from typing import Any

import anyio
import pytest
from pydantic import Field

from nova_mcp.errors import BudgetExhausted, Fix, NotFound, Unavailable, UnknownTool
from nova_mcp.tools.catalogue import catalogue_of
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.spec import AgentParams, Params, Result, ToolSpec, tool
from nova_mcp.tools.system import call


class WordParams(AgentParams):
    word: str = Field("x", max_length=10)


class WordResult(Result):
    word: str


@tool(title="Echo", effect="read", bundles=("core",), target="none")
async def echo(ctx: ToolContext, p: WordParams) -> WordResult:
    """Says it back."""
    ctx.evidence.flags.add("content_exposed")
    return WordResult(word=p.word)


@tool(title="Hidden", effect="read", bundles=("page_reading",), target="none")
async def hidden(ctx: ToolContext, p: WordParams) -> WordResult:
    """Is not listed by default."""
    return WordResult(word=p.word)


@tool(title="Missing", effect="act", bundles=("core",), target="none")
async def missing(ctx: ToolContext, p: AgentParams) -> Result:
    """Does not find what it looks for."""
    raise NotFound("selector.not_found", "no such element", "look again", fix=Fix("nova.hidden", {"word": "a"}))


@tool(title="Broken", effect="act", bundles=("core",), target="none")
async def broken(ctx: ToolContext, p: AgentParams) -> Result:
    """Has a defect."""
    ctx.evidence.action_dispatched = True
    raise RuntimeError("token=hunter2 in a stack trace")


@tool(title="Slow", effect="act", bundles=("core",), target="none", deadline_ms=lambda _: -4_500)
async def slow(ctx: ToolContext, p: AgentParams) -> Result:
    """Never ends by itself; its deadline is half a second, time enough to begin on a crowded machine."""
    ctx.evidence.action_dispatched = True
    await anyio.sleep_forever()
    return Result()


@tool(title="Pressing", effect="act", bundles=("core",), target="none", private_arguments=("word",))
async def pressing(ctx: ToolContext, p: WordParams) -> WordResult:
    """Touches the page."""
    ctx.evidence.action_dispatched = True
    ctx.evidence.input_is_harmless = p.word == "plain"
    ctx.evidence.selector = "#a  >  b"
    return WordResult(word="done")


@tool(title="Waiting", effect="act", bundles=("core",), target="none", deadline_ms=lambda _: 60_000)
async def waiting(ctx: ToolContext, p: AgentParams) -> Result:
    """Waits to be cancelled."""
    ctx.evidence.action_dispatched = True
    await ctx.call.progress(0, None, "waiting")
    await anyio.sleep_forever()
    return Result()


TOOLS: tuple[ToolSpec, ...] = (call.call, echo, hidden, missing, broken, slow, pressing, waiting)


async def test_a_call_is_recorded_with_its_arguments_and_flags(make_rig: Any) -> None:
    rig = await make_rig(*TOOLS)
    answer = await rig.call("nova.echo", {"word": "hi", "agentId": "ada"})
    assert answer.structured == {"ok": True, "word": "hi"}
    assert json.loads(answer.text) == answer.structured
    (record,) = await rig.records()
    assert (record.tool_name, record.effect, record.outcome.kind) == ("nova.echo", "read", "ok")
    assert record.caller.agent_id == "ada"
    assert record.arguments == {"word": "hi", "agentId": "ada"}
    assert record.touched.flags == {"content_exposed"}


@pytest.mark.parametrize(
    "name", ["nova.echo", "nova_echo", "echo", "mcp__nova__nova.echo", "mcp__nova__nova_echo", "mcp__nova__echo"]
)
async def test_every_spelling_is_recorded_under_the_canonical_name(make_rig: Any, name: str) -> None:
    rig = await make_rig(*TOOLS)
    await rig.call(name)
    assert [record.tool_name for record in await rig.records()] == ["nova.echo"]


async def test_an_unknown_tool_is_refused_and_recorded(make_rig: Any) -> None:
    rig = await make_rig(*TOOLS)
    with pytest.raises(UnknownTool) as unknown:
        await rig.call("nova.ecko", {"agentId": "ada"})
    assert unknown.value.closest == ("nova.echo",)
    (record,) = await rig.records()
    assert (record.tool_name, record.outcome.kind, record.outcome.error_code) == ("nova.ecko", "invalid", -32602)
    assert record.caller.agent_id == "ada"


async def test_wrong_arguments_are_refused_and_recorded(make_rig: Any) -> None:
    rig = await make_rig(*TOOLS)
    answer = await rig.call("nova.echo", {"word": 5, "agentId": "not valid"})
    assert answer.is_error
    assert answer.structured["errorCode"] == -32602
    assert answer.structured["stage"] == "validate"
    assert json.loads(answer.text) == answer.structured
    (record,) = await rig.records()
    assert (record.outcome.kind, record.outcome.reason_code) == ("invalid", "invalid_params")
    assert record.caller.agent_id == "default"


async def test_a_failure_names_its_reason_and_a_fix_that_can_be_called(make_rig: Any) -> None:
    rig = await make_rig(*TOOLS)
    answer = await rig.call("nova.missing")
    assert answer.is_error
    assert answer.structured["status"] == "not_found"
    assert answer.structured["actionDispatched"] is False
    assert answer.structured["fix"] == {"tool": "nova.call", "args": {"tool": "nova.hidden", "args": {"word": "a"}}}
    through = answer.structured["fix"]["args"]
    assert (await rig.call("nova.call", through)).structured["word"] == "a"
    failed, done = await rig.records()
    assert (failed.outcome.kind, failed.outcome.reason_code) == ("failed", "selector.not_found")
    assert (done.tool_name, done.via) == ("nova.hidden", "call")


async def test_a_defect_leaks_nothing_and_says_that_the_page_was_touched(make_rig: Any) -> None:
    rig = await make_rig(*TOOLS)
    answer = await rig.call("nova.broken")
    assert answer.structured["reasonCode"] == "internal"
    assert answer.structured["actionDispatched"] is True
    assert answer.structured["retryAdvice"] == "check_postcondition_first"
    assert "hunter2" not in answer.text
    (record,) = await rig.records()
    assert (record.outcome.kind, record.outcome.action_dispatched) == ("crashed", True)


async def test_a_call_ends_at_its_deadline_and_keeps_what_it_did(make_rig: Any) -> None:
    rig = await make_rig(*TOOLS)
    answer = await rig.call("nova.slow")
    assert answer.structured["reasonCode"] == "call.deadline"
    assert answer.structured["actionDispatched"] is True
    (record,) = await rig.records()
    assert (record.outcome.reason_code, record.outcome.action_dispatched) == ("call.deadline", True)


async def test_a_cancelled_call_is_recorded_once(make_rig: Any) -> None:
    rig = await make_rig(*TOOLS)
    started = anyio.Event()

    async def tell(done: float, total: float | None, message: str) -> None:
        started.set()

    async with anyio.create_task_group() as group:

        async def run() -> None:
            await rig.call("nova.waiting", progress=tell)

        group.start_soon(run)
        await started.wait()
        group.cancel_scope.cancel()
    (record,) = await rig.records()
    assert (record.outcome.kind, record.outcome.action_dispatched) == ("cancelled", True)


async def test_the_stop_file_cancels_what_runs_and_blocks_what_comes(make_rig: Any) -> None:
    rig = await make_rig(*TOOLS)
    started = anyio.Event()
    answers: list[Any] = []

    async def tell(done: float, total: float | None, message: str) -> None:
        started.set()

    async def run() -> None:
        answers.append(await rig.call("nova.waiting", progress=tell))
        group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(rig.pipeline.running.watch_stop_file, rig.settings.stop_file)
        group.start_soon(run)
        await started.wait()
        rig.settings.stop_file.write_text("stop")
    (stopped,) = answers
    assert stopped.structured["reasonCode"] == "safety.emergency_stop"
    assert stopped.structured["actionDispatched"] is True
    refused = await rig.call("nova.echo")
    assert refused.structured["status"] == "blocked"
    assert refused.structured["gateId"] == "safety.emergency_stop"
    rig.settings.stop_file.unlink()
    assert (await rig.call("nova.echo")).structured["ok"] is True
    first, second, third = await rig.records()
    assert first.outcome.action_dispatched is True
    assert (second.outcome.kind, second.outcome.gate_id) == ("blocked_preflight", "safety.emergency_stop")
    assert third.outcome.kind == "ok"


async def test_without_evidence_an_untouched_page_is_a_failure(make_rig: Any) -> None:
    rig = await make_rig(*TOOLS)
    rig.fault.armed = True
    answer = await rig.call("nova.missing")
    assert answer.is_error
    assert answer.structured["reasonCode"] == "store.unavailable"
    assert answer.structured["errorCode"] == -32002
    rig.fault.armed = False
    assert await rig.records() == []
    assert (await rig.call("nova.echo")).structured["ok"] is True


async def test_without_evidence_a_look_is_answered_and_says_so(make_rig: Any) -> None:
    rig = await make_rig(*TOOLS)
    rig.fault.armed = True
    answer = await rig.call("nova.echo", {"word": "hi"})
    assert (answer.is_error, answer.structured["word"]) == (False, "hi")
    assert answer.structured["evidenceRecorded"] is False
    assert "disk under the store is full" in answer.text


async def test_without_evidence_a_touched_page_is_told(make_rig: Any) -> None:
    rig = await make_rig(*TOOLS)
    rig.fault.armed = True
    answer = await rig.call("nova.pressing")
    assert answer.structured["actionDispatched"] is True
    assert answer.structured["evidenceRecorded"] is False
    assert json.loads(answer.text) == answer.structured


async def test_private_text_is_kept_as_a_length_unless_the_field_is_harmless(make_rig: Any) -> None:
    rig = await make_rig(*TOOLS)
    await rig.call("nova.pressing", {"word": "hunter2"})
    await rig.call("nova.pressing", {"word": "plain"})
    await rig.call("nova.pressing", {"word": "far too long to be right"})
    secret, plain, invalid = await rig.records()
    assert "hunter2" not in json.dumps(secret.arguments)
    assert plain.arguments == {"word": "plain"}
    assert "far too long" not in json.dumps(invalid.arguments)
    assert secret.touched.selector == "#a > b"
    assert secret.touched.selector_hash is not None
    assert "selector_touched" in secret.touched.flags


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"tool": "nova.call", "args": {"tool": "nova.echo"}}, "call.nested"),
        ({"tool": "mcp__nova__nova_call"}, "call.nested"),
        ({"tool": "nova.nothing"}, "unknown_tool"),
        ({"tool": ""}, "invalid_params"),
        ({"tool": "echo", "args": []}, "invalid_params"),
        ({"args": {}}, "invalid_params"),
        ({"tool": "echo", "arguments": {}}, "invalid_params"),
        ({"tool": "echo", "args": {"word": 1}}, "invalid_params"),
    ],
)
async def test_the_door_refuses_what_it_cannot_open(make_rig: Any, arguments: dict[str, Any], reason: str) -> None:
    rig = await make_rig(*TOOLS)
    answer = await rig.call("nova.call", arguments)
    assert answer.structured["reasonCode"] == reason
    (record,) = await rig.records()
    assert record.outcome.kind == "invalid"


async def test_the_door_gives_effect_gates_and_evidence_of_the_tool_behind_it(make_rig: Any) -> None:
    rig = await make_rig(*TOOLS)
    answer = await rig.call("nova.call", {"tool": "nova_pressing", "args": {"word": "plain", "agentId": "bob"}})
    assert answer.structured["word"] == "done"
    (record,) = await rig.records()
    assert (record.tool_name, record.effect, record.via) == ("nova.pressing", "act", "call")
    assert record.caller.agent_id == "bob"
    assert record.outcome.action_dispatched is True


async def test_two_connections_that_act_as_default_are_warned_once_each(make_rig: Any) -> None:
    @tool(title="Shared", effect="act", bundles=("core",), gates=("setup.shared_agent_id",), target="none")
    async def shared(ctx: ToolContext, p: AgentParams) -> Result:
        """Has the gate."""
        return Result()

    rig = await make_rig(shared)

    async def warned(connection: str, **arguments: Any) -> bool:
        answer = await rig.call("nova.shared", arguments, connection=connection)
        return "gates" in answer.structured

    assert [await warned("a"), await warned("b"), await warned("b"), await warned("a"), await warned("a")] == [
        False,
        True,
        False,
        True,
        False,
    ]
    assert await warned("c", agentId="own") is False


async def test_low_disk_space_blocks_acting_before_reading(make_rig: Any) -> None:
    rig = await make_rig(*TOOLS, gates={"low_disk_mb": 10**9})
    blocked = await rig.call("nova.pressing")
    assert blocked.structured["gateId"] == "safety.disk_space_low"
    assert blocked.structured["actionDispatched"] is False
    assert (await rig.call("nova.echo")).structured["ok"] is True


async def test_a_busy_store_is_not_blamed_on_the_caller(make_rig: Any) -> None:
    @tool(title="Store", effect="read", bundles=("core",), target="none")
    async def reads_store(ctx: ToolContext, p: AgentParams) -> Result:
        """Finds its store gone."""
        raise Unavailable("tab.busy", "busy", retry_after_ms=10)

    rig = await make_rig(reads_store)
    answer = await rig.call("nova.reads_store")
    assert (answer.structured["retryable"], answer.structured["retryAfterMs"]) == (True, 10)


async def test_a_call_over_the_servers_limit_is_recorded_but_not_run(make_rig: Any) -> None:
    rig = await make_rig(*TOOLS)
    spent = BudgetExhausted("rate.limited", "too many calls", "wait", stage="gate", retry_after_ms=100)
    answer = await rig.call("nova.pressing", refusal=spent)
    assert (answer.structured["errorCode"], answer.structured["retryAfterMs"]) == (-32029, 100)
    (record,) = await rig.records()
    assert (record.outcome.kind, record.outcome.gate_id) == ("blocked_preflight", "server.limit")
    assert record.outcome.action_dispatched is None


def test_two_tools_of_one_name_do_not_start() -> None:
    with pytest.raises(ValueError, match="two tools are called echo"):
        catalogue_of([echo, echo])


def test_a_tool_outside_every_bundle_does_not_start() -> None:
    @tool(title="Lost", effect="read", bundles=(), target="none")
    async def lost(ctx: ToolContext, p: Params) -> Result:
        """Belongs nowhere."""
        return Result()

    with pytest.raises(ValueError, match="in no bundle"):
        catalogue_of([lost])
