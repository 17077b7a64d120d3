"""A sequence is a row of ordinary calls: gated and recorded one by one, and never past a doubtful commit."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, JsonValue

from nova_mcp.browser.targets.tab import Tab, TabHost
from nova_mcp.core.leases import Lease
from nova_mcp.errors import NotFound, Unavailable
from nova_mcp.evidence.model import CallRecord
from nova_mcp.tools.catalogue import load_catalogue
from nova_mcp.tools.context import StepAnswer, ToolContext
from nova_mcp.tools.guarded.sequence import BARRED, PAGE_BUNDLES, run_sequence
from nova_mcp.tools.guarded.sequence_rules import StepOutcome, judged, next_move, overall
from nova_mcp.tools.spec import AgentParams, Result, TargetParams, ToolSpec, maybe, tool
from nova_mcp.tools.system import call

PAGE = ("browser_automation",)


@dataclass
class Stage:
    """What the scripted tools do, and what they were asked."""

    answers: dict[str, list[Any]] = field(default_factory=dict)
    seen: list[tuple[str, str, str]] = field(default_factory=list)
    entered: anyio.Event = field(default_factory=anyio.Event)
    go_on: anyio.Event = field(default_factory=anyio.Event)


class PlayParams(TargetParams):
    name: str = Field("one", max_length=20)
    text: str = ""
    expect: list[str] | None = None


class PlayResult(Result):
    target_id: str
    verify_state: str | None = maybe()
    guarded_commit: dict[str, JsonValue] | None = maybe()
    retry_advice: str | None = maybe()
    action_dispatched: bool | None = None


def scripted(stage: Stage) -> tuple[ToolSpec, ...]:
    async def perform(ctx: ToolContext, p: PlayParams) -> PlayResult:
        stage.seen.append((p.name, ctx.tab.target_id, ctx.caller.agent_id))
        if p.name == "wait":
            ctx.evidence.action_dispatched = True
            stage.entered.set()
            await ctx.call.progress(1, None, "still waiting")
            await stage.go_on.wait()
        turns = stage.answers.get(p.name, [])
        turn = turns.pop(0) if turns else {}
        if isinstance(turn, Exception):
            raise turn
        ctx.evidence.action_dispatched = turn.pop("dispatched", True)
        return PlayResult(target_id=ctx.tab.target_id, action_dispatched=ctx.evidence.action_dispatched, **turn)

    @tool(
        title="Play",
        effect="act",
        bundles=PAGE,
        gates=("claim.owner", "safety.perceive_first"),
        private_arguments=("text",),
        deadline_ms=lambda _: 60_000,
        guards=lambda p: 1000 if p.expect else None,
    )
    async def play(ctx: ToolContext, p: PlayParams) -> PlayResult:
        """Does as it is told."""
        return await perform(ctx, p)

    @tool(title="Look", effect="read", bundles=PAGE)
    async def look(ctx: ToolContext, p: TargetParams) -> Result:
        """Looks."""
        stage.seen.append(("look", ctx.tab.target_id, ctx.caller.agent_id))
        return Result()

    @tool(title="List", effect="read", bundles=PAGE, target="none")
    async def listing(ctx: ToolContext, p: AgentParams) -> Result:
        """Lists."""
        return Result()

    @tool(title="Note", effect="write", bundles=("system_tools",), target="none")
    async def note(ctx: ToolContext, p: AgentParams) -> Result:
        """Has nothing to do with pages."""
        return Result()

    return (play, look, listing, note, run_sequence, call.call)


Opened = tuple[Any, Stage]


@pytest.fixture
async def opened(make_rig: Callable[..., Any]) -> Opened:
    stage = Stage()
    rig = await make_rig(*scripted(stage))
    _add_tab(rig, "tab_1", active=True)
    _add_tab(rig, "tab_2", active=False)
    return rig, stage


def _add_tab(rig: Any, target_id: str, *, active: bool) -> Tab:
    owner = ("local", "default")
    tab = Tab(target_id, "A", owner, cast(TabHost, None), rig.clock)
    rig.browser.targets._tabs[target_id] = tab
    if active:
        rig.browser.targets._active[owner] = target_id
    return tab


def steps(*given: str | dict[str, Any]) -> dict[str, Any]:
    rows = [{"tool": "play", "args": {"name": one}} if isinstance(one, str) else one for one in given]
    return {"steps": rows}


def missing() -> NotFound:
    return NotFound("selector.not_found", "no such element", "look again")


def names(records: list[CallRecord]) -> list[tuple[str, str | None, str]]:
    return [(record.tool_name, record.via, record.outcome.kind) for record in records]


# -- what runs


async def test_every_step_leaves_its_own_record_and_the_sequence_closes_last(opened: Opened) -> None:
    rig, _stage = opened
    told: list[tuple[float, float | None, str]] = []

    async def tell(done: float, total: float | None, message: str) -> None:
        told.append((done, total, message))

    look = {"tool": "nova_look"}
    answer = await rig.call("nova.run_sequence", steps("one", look, "two"), progress=tell)
    body = answer.structured
    assert (body["ok"], body["status"], body["completedSteps"], body["totalSteps"]) == (True, "ok", 3, 3)
    assert [(row["i"], row["tool"], row["status"]) for row in body["trace"]] == [
        (1, "nova.play", "ok"),
        (2, "nova.look", "ok"),
        (3, "nova.play", "ok"),
    ]
    assert "failedAt" not in body
    assert body["last"]["targetId"] == "tab_1"
    assert body["actionDispatched"] is True
    assert body["retryAdvice"] == "do_not_retry"
    records = await rig.records()
    assert names(records) == [
        ("nova.play", "run_sequence", "ok"),
        ("nova.look", "run_sequence", "ok"),
        ("nova.play", "run_sequence", "ok"),
        ("nova.run_sequence", None, "ok"),
    ]
    assert len({record.call_id for record in records}) == 4
    assert [(done, total) for done, total, _ in told] == [(1, 3), (2, 3), (3, 3)]


async def test_every_step_acts_on_the_tab_and_for_the_agent_of_the_sequence(opened: Opened) -> None:
    rig, stage = opened
    rig.browser.targets._tabs["tab_2"].owner = ("local", "ada")
    arguments = steps("one", {"tool": "play", "args": {"name": "two", "targetId": "active"}}, {"tool": "listing"})
    await rig.call("nova.run_sequence", {**arguments, "targetId": "tab_2", "agentId": "ada"})
    assert stage.seen == [("one", "tab_2", "ada"), ("two", "tab_2", "ada")]
    assert {record.caller.agent_id for record in await rig.records()} == {"ada"}


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ({"tool": "plya"}, "nova.play"),
        ({"tool": "play", "args": {"nmae": "x"}}, "nmae is not an argument"),
        ({"tool": "play", "args": {"name": 5}}, "name must be a string"),
        ({"tool": "play", "args": {"targetId": "tab_2"}}, "targetId"),
        ({"tool": "play", "args": {"agentId": "eve"}}, "agentId"),
        ({"tool": "run_sequence", "args": {"steps": []}}, "nova.run_sequence"),
        ({"tool": "nova.call", "args": {"tool": "play"}}, "nova.call"),
        ({"tool": "note"}, "nova.note"),
    ],
)
async def test_a_wrong_step_is_named_and_nothing_runs(opened: Opened, step: dict[str, Any], words: str) -> None:
    rig, stage = opened
    answer = await rig.call("nova.run_sequence", steps("one", step))
    assert answer.is_error
    assert answer.structured["errorCode"] == -32602
    assert answer.structured["step"] == 2
    assert "step 2" in answer.structured["message"]
    assert words in answer.text
    assert stage.seen == []
    assert names(await rig.records()) == [("nova.run_sequence", None, "invalid")]


async def test_wrong_steps_are_told_before_any_gate_is_asked(opened: Opened) -> None:
    rig, _ = opened
    rig.settings.stop_file.write_text("stop")
    answer = await rig.call("nova.run_sequence", steps({"tool": "nothing"}))
    assert answer.structured["errorCode"] == -32602


def test_what_can_not_be_a_step_is_barred_and_private_text_of_every_tool_stays_private() -> None:
    catalogue = load_catalogue()
    allowed = [spec for spec in catalogue if spec.name not in BARRED and not spec.bundles.isdisjoint(PAGE_BUNDLES)]
    assert {"navigate", "click_selector", "type_selector", "perceive", "ask_human"} <= {spec.name for spec in allowed}
    private = frozenset[str]().union(*(spec.private_arguments for spec in allowed))
    assert private <= run_sequence.private_arguments


async def test_private_text_of_a_step_is_in_no_record(opened: Opened) -> None:
    rig, _ = opened
    secret = {"tool": "play", "args": {"text": "hunter2 is my word"}}
    await rig.call("nova.run_sequence", steps(secret))
    await rig.call("nova.run_sequence", steps(secret, {"tool": "nothing"}))
    records = await rig.records()
    assert len(records) == 3
    assert "hunter2" not in json.dumps([record.arguments for record in records])


# -- when a step goes wrong


async def test_the_first_problem_stops_the_run_and_is_told_in_one_line(opened: Opened) -> None:
    rig, stage = opened
    stage.answers["bad"] = [missing()]
    answer = await rig.call("nova.run_sequence", steps("one", "bad", "two", "three"))
    body = answer.structured
    assert (body["status"], body["failedAt"], body["completedSteps"]) == ("partial", 2, 1)
    assert (body["reasonCode"], body["retryAdvice"]) == ("selector.not_found", "check_postcondition_first")
    assert body["last"]["reasonCode"] == "selector.not_found"
    assert not answer.is_error
    assert [name for name, *_ in stage.seen] == ["one", "bad"]
    assert sum(line.startswith("step ") for line in answer.text.splitlines()) == 1


async def test_a_first_step_that_touched_nothing_fails_the_whole(opened: Opened) -> None:
    rig, stage = opened
    stage.answers["bad"] = [missing()]
    answer = await rig.call("nova.run_sequence", steps("bad", "one"))
    assert answer.is_error
    assert (answer.structured["status"], answer.structured["errorCode"]) == ("not_found", -32004)
    assert answer.structured["actionDispatched"] is False
    assert answer.structured["retryAdvice"] == "safe_to_retry"
    assert (await rig.records())[-1].outcome.action_dispatched is False


async def test_continue_goes_on_and_the_whole_is_partial(opened: Opened) -> None:
    rig, stage = opened
    stage.answers["bad"] = [missing()]
    bad = {"tool": "play", "args": {"name": "bad"}, "onError": "continue"}
    body = (await rig.call("nova.run_sequence", steps("one", bad, "two"))).structured
    assert (body["status"], body["failedAt"], body["completedSteps"]) == ("partial", 2, 2)
    assert [name for name, *_ in stage.seen] == ["one", "bad", "two"]


@pytest.mark.parametrize(("on_error", "ran"), [("abort", 1), ("retry", 1), ("continue", 2)])
async def test_partial_stops_unless_told_to_continue(opened: Opened, on_error: str, ran: int) -> None:
    rig, stage = opened
    stage.answers["half"] = [{"ok": False, "status": "partial", "reason_code": "action.no_effect_observed"}]
    half = {"tool": "play", "args": {"name": "half"}, "onError": on_error}
    body = (await rig.call("nova.run_sequence", steps(half, "two"))).structured
    assert body["status"] == "partial"
    assert len(stage.seen) == ran


async def test_retry_tries_once_what_touched_nothing(opened: Opened) -> None:
    rig, stage = opened
    stage.answers["bad"] = [missing(), {}]
    bad = {"tool": "play", "args": {"name": "bad"}, "onError": "retry"}
    body = (await rig.call("nova.run_sequence", steps(bad, "two"))).structured
    assert body["status"] == "ok"
    assert body["trace"][0]["retried"] is True
    assert [name for name, *_ in stage.seen] == ["bad", "bad", "two"]
    stage.answers["bad"] = [missing(), missing(), {}]
    assert (await rig.call("nova.run_sequence", steps(bad, "two"))).structured["failedAt"] == 1
    touched = Unavailable("tab.crashed", "gone", "", action_dispatched=True)
    stage.answers["bad"] = [touched, {}]
    body = (await rig.call("nova.run_sequence", steps(bad, "two"))).structured
    assert (body["failedAt"], body["status"], body["actionDispatched"]) == (1, "partial", True)


@pytest.mark.parametrize("verdict", ["indeterminate", "verified_fail"])
async def test_nothing_is_built_on_an_unverified_commit(opened: Opened, verdict: str) -> None:
    rig, stage = opened
    commit = {"verificationStatus": verdict}
    stage.answers["buy"] = [{"ok": False, "status": "partial", "guarded_commit": commit}]
    buy = {"tool": "play", "args": {"name": "buy"}, "onError": "continue"}
    body = (await rig.call("nova.run_sequence", steps(buy, "two"))).structured
    assert (body["failedAt"], len(stage.seen)) == (1, 1)


async def test_a_call_that_says_what_should_come_of_it_must_have_come_off(opened: Opened) -> None:
    rig, stage = opened
    stage.answers["buy"] = [missing()]
    buy = {"tool": "play", "args": {"name": "buy", "expect": ["text:x"]}, "onError": "continue"}
    body = (await rig.call("nova.run_sequence", steps(buy, "two"))).structured
    assert (body["failedAt"], len(stage.seen)) == (1, 1)


async def test_gates_are_asked_for_every_step(opened: Opened) -> None:
    rig, _stage = opened
    rig.browser.targets._tabs["tab_2"].lease = Lease(("local", "eve"), rig.clock.now + 60_000)
    answer = await rig.call("nova.run_sequence", {**steps("one"), "targetId": "tab_2"})
    assert answer.structured["reasonCode"] == "claim.owner_mismatch"
    assert names(await rig.records()) == [("nova.run_sequence", None, "blocked_preflight")]
    tab = rig.browser.targets._tabs["tab_1"]
    tab.url = "https://shop.test/"
    answer = await rig.call("nova.run_sequence", steps("one"))
    assert answer.structured["last"]["gates"][0]["gateId"] == "safety.perceive_first"


async def test_a_lost_record_stops_the_run(opened: Opened) -> None:
    rig, stage = opened
    rig.fault.armed = True
    answer = await rig.call("nova.run_sequence", steps({"tool": "play", "args": {}, "onError": "continue"}, "two"))
    assert len(stage.seen) == 1
    assert answer.structured["evidenceRecorded"] is False
    assert answer.structured["actionDispatched"] is True


# -- one tab, one turn


@asynccontextmanager
async def waiting_sequence(opened: Opened, *after: str) -> AsyncIterator[list[Any]]:
    """A sequence that stands between its first step and the next until it is let go."""
    rig, stage = opened
    answers: list[Any] = []

    async def run() -> None:
        answers.append(await rig.call("nova.run_sequence", steps("one", "wait", *after)))

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await stage.entered.wait()
        yield answers


async def test_no_other_change_slips_between_two_steps(opened: Opened) -> None:
    rig, stage = opened
    with anyio.fail_after(30):
        async with waiting_sequence(opened, "two", "three"), anyio.create_task_group() as group:
            group.start_soon(rig.call, "nova.play", {"name": "other"})
            while not rig.browser.targets._tabs["tab_1"].turns._queue:
                await anyio.lowlevel.checkpoint()
            stage.go_on.set()
    assert [name for name, *_ in stage.seen] == ["one", "wait", "two", "three", "other"]


async def test_another_tab_is_free_meanwhile(opened: Opened) -> None:
    rig, stage = opened
    async with waiting_sequence(opened):
        assert (await rig.call("nova.play", {"name": "other", "targetId": "tab_2"})).structured["ok"] is True
        stage.go_on.set()


async def test_steps_end_with_the_emergency_stop_and_say_so(opened: Opened) -> None:
    rig, _ = opened
    async with anyio.create_task_group() as group:
        group.start_soon(rig.pipeline.running.watch_stop_file, rig.settings.stop_file)
        async with waiting_sequence(opened, "two") as answers:
            rig.settings.stop_file.write_text("stop")
        group.cancel_scope.cancel()
    assert answers[0].structured["reasonCode"] == "safety.emergency_stop"
    assert answers[0].structured["actionDispatched"] is True
    first, step, whole = await rig.records()
    assert first.outcome.kind == "ok"
    assert (step.tool_name, step.via, step.outcome.reason_code) == (
        "nova.play",
        "run_sequence",
        "safety.emergency_stop",
    )
    assert (whole.outcome.reason_code, whole.outcome.action_dispatched) == ("safety.emergency_stop", True)


async def test_a_client_that_cancels_leaves_a_record_of_the_step_and_of_the_whole(opened: Opened) -> None:
    rig, stage = opened
    async with anyio.create_task_group() as group:
        group.start_soon(rig.call, "nova.run_sequence", steps("wait", "two"))
        await stage.entered.wait()
        group.cancel_scope.cancel()
    records = await rig.records()
    assert names(records) == [
        ("nova.play", "run_sequence", "cancelled"),
        ("nova.run_sequence", None, "cancelled"),
    ]
    assert [record.outcome.action_dispatched for record in records] == [True, True]
    assert not rig.browser.targets._tabs["tab_1"].turns.held


async def test_a_sequence_out_of_time_starts_no_further_step(opened: Opened) -> None:
    rig, stage = opened
    async with waiting_sequence(opened, "two") as answers:
        rig.clock.now += 120_001
        stage.go_on.set()
    body = answers[0].structured
    assert (body["status"], body["reasonCode"], body["failedAt"]) == ("partial", "call.deadline", 3)
    assert [name for name, *_ in stage.seen] == ["one", "wait"]
    assert (await rig.records())[-1].outcome.reason_code == "call.deadline"


async def test_a_step_ends_when_the_time_of_the_sequence_does(opened: Opened) -> None:
    rig, _stage = opened

    async def wear_on(done: float, total: float | None, message: str) -> None:
        if done == 1:
            rig.clock.now += 119_980

    body = (await rig.call("nova.run_sequence", steps("one", "wait", "two"), progress=wear_on)).structured
    assert (body["failedAt"], body["reasonCode"], body["status"]) == (2, "call.deadline", "partial")
    _, step, whole = await rig.records()
    assert (step.outcome.reason_code, step.outcome.action_dispatched) == ("call.deadline", True)
    assert whole.tool_name == "nova.run_sequence"


async def test_long_steps_show_signs_of_life_that_never_go_back(opened: Opened) -> None:
    rig, stage = opened
    stage.go_on.set()
    told: list[float] = []

    async def tell(done: float, total: float | None, message: str) -> None:
        told.append(done)

    await rig.call("nova.run_sequence", steps("wait", "wait"), progress=tell)
    assert told == [0.5, 1, 1.5, 2]


async def test_fifty_troubled_steps_are_told_in_few_lines(opened: Opened) -> None:
    rig, stage = opened
    stage.answers["bad"] = [missing() for _ in range(50)]
    bad = {"tool": "play", "args": {"name": "bad"}, "onError": "continue"}
    answer = await rig.call("nova.run_sequence", steps(*[bad] * 50))
    assert len(answer.text.splitlines()) < 15
    assert "and 40 more" in answer.text
    assert len(answer.structured["trace"]) == 50
    assert answer.is_error


# -- the rules by themselves

STATUSES = ("ok", "partial", "failed", "blocked", "not_found")
outcomes = st.builds(
    StepOutcome,
    status=st.sampled_from(STATUSES),
    reason_code=st.sampled_from(
        [None, "selector.not_found", "safety.emergency_stop", "guarded_commit.missing_contract"]
    ),
    verify_state=st.sampled_from([None, "verified", "likely", "uncertain", "failed"]),
    dispatched=st.booleans(),
    unsettled=st.booleans(),
    recorded=st.booleans(),
    stage=st.just("done"),
    retryable=st.booleans(),
    advice=st.sampled_from(["safe_to_retry", "do_not_retry"]),
)


@given(outcomes, st.sampled_from(["abort", "continue", "retry"]), st.booleans())
def test_only_what_touched_nothing_is_tried_again_and_only_once(one: StepOutcome, on_error: Any, again: bool) -> None:
    move = next_move(one, on_error, tried_again=again)
    if move == "again":
        assert on_error == "retry"
        assert not one.dispatched
        assert not again
    if move == "next":
        assert one.passed or (on_error == "continue" and not one.unsettled and one.recorded)


@given(st.lists(outcomes, min_size=1, max_size=6), st.integers(0, 3))
def test_the_whole_is_ok_only_if_everything_was_and_an_error_only_if_nothing_happened(
    ran: list[StepOutcome], more: int
) -> None:
    whole = overall(ran, len(ran) + more)
    assert (whole.status == "ok") == (more == 0 and all(one.passed for one in ran))
    if whole.status in ("failed", "blocked", "not_found"):
        assert not any(one.dispatched for one in ran)
        assert not any(one.status == "ok" for one in ran)
    if whole.status != "ok" and any(one.dispatched for one in ran):
        assert whole.retry_advice == "check_postcondition_first"


def test_a_refused_commit_counts_as_unsettled() -> None:
    refused = StepAnswer({"ok": False, "status": "blocked", "reasonCode": "guarded_commit.missing_contract"}, "", False)
    assert judged(refused, watched=False).unsettled
    done = StepAnswer({"ok": True, "guardedCommit": {"verificationStatus": "verified_success"}}, "", True)
    assert judged(done, watched=True).passed
