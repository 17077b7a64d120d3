"""Every row of the closed-loop contract that is about goals, through a real client."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from real_kit import small_site, text_of

from nova_mcp.app import build
from nova_mcp.core.clock import Ports, SystemClock, SystemIds
from nova_mcp.core.tokens import estimate_tokens
from nova_mcp.server.manifest import load_manifest
from nova_mcp.server.protocol import Wiring, build_server
from nova_mcp.settings import Settings

GOAL_FIELDS = {
    *("goalId", "summary", "mode", "state", "targetId", "ownerAgentId", "sidecarSessionId", "currentStep"),
    *("totalSteps", "stepStatus", "stepAction", "preconditionVerdict", "leaseMs", "leaseExpiresAtUtc", "createdAtUtc"),
}
CONTEXT_FIELDS = {
    *("goalId", "summary", "mode", "state", "currentStep", "totalSteps", "stepStatus", "stepAction"),
}
DAY_MS = 86_400_000
SURE = {"factKey": "page.readyState", "operator": "exists"}
CONTRACT = {"postconditions": {"success": {"any": [{"factKey": "dom.#count@text", "operator": "eq", "expected": "1"}]}}}

FORM = """<!doctype html><title>Order</title><main><h1>Order</h1>
<form id="order" action="/done" method="get"><button id="buy" type="submit">Buy now</button></form>
<button id="more" type="button">More</button><p id="count">0</p></main>
<script>let n = 0; more.onclick = () => { count.textContent = ++n; };</script>"""
DONE = "<!doctype html><title>Done</title><main><h1>Thank you</h1></main>"


class ShiftedClock(SystemClock):
    """The machine's clock, put forward by a test."""

    shift_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.shift_ms


@dataclass
class Agent:
    """A client of one server, and the server's clock."""

    client: Client
    clock: ShiftedClock

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        answer = await self.client.call_tool(f"nova.{tool}", arguments)
        assert answer.structured_content is not None
        return dict(answer.structured_content)

    async def register(self, op: str, **arguments: Any) -> dict[str, Any]:
        body = await self.call("goal_register", op=op, **arguments)
        assert body["ok"] is True, body
        return body

    async def create(self, summary: str = "Buy a lamp", **arguments: Any) -> dict[str, Any]:
        return dict((await self.register("create", summary=summary, **arguments))["goal"])

    async def query(self, goal_id: str, **arguments: Any) -> dict[str, Any]:
        return dict((await self.register("query", goalId=goal_id, **arguments))["goal"])

    async def refused(self, **arguments: Any) -> dict[str, Any]:
        answer = await self.client.call_tool("nova.goal_register", arguments)
        assert answer.is_error is True
        assert answer.structured_content is not None
        assert json.loads(text_of(answer)) == answer.structured_content
        return dict(answer.structured_content)

    async def invalid(self, **arguments: Any) -> str:
        body = await self.refused(**arguments)
        assert (body["errorCode"], body["reasonCode"]) == (-32602, "invalid_params")
        return str(body["message"])

    async def context(self, **arguments: Any) -> dict[str, Any] | None:
        return (await self.call("perceive", **arguments))["goalContext"]


@pytest.fixture
async def agent(tmp_path: Path) -> AsyncIterator[Agent]:
    clock = ShiftedClock()
    settings = Settings(data_dir=tmp_path)
    nova = await build(settings, Ports(clock, SystemIds(clock)))

    async def backend() -> Any:
        return nova

    async with Client(build_server(load_manifest(), settings, Wiring(backend=backend))) as client:
        yield Agent(client, clock)
    await nova.close("test")


@pytest.fixture
async def on_page(agent: Agent) -> AsyncIterator[Agent]:
    """The agent on a page with a button, a form and no goal."""
    with small_site({"/order": FORM, "/done": DONE, "/done?": DONE}) as (base, _):
        opened = await agent.call("navigate", url=f"{base}/order")
        assert opened["status"] == "ok"
        yield agent


# -- nova.goal_register, op ------------------------------------------------------------------------------------------


async def test_goal_register_creates_queries_annotates_and_closes(agent: Agent) -> None:
    goal = await agent.create(steps=[{"actionDesc": "open the shop"}])
    assert set(goal) == GOAL_FIELDS | {"steps"}
    assert (await agent.query(goal["goalId"])) == goal
    noted = await agent.register("annotate", goalId=goal["goalId"], content="found it")
    assert noted["eventId"].startswith(goal["goalId"])
    closed = await agent.register("close", goalId=goal["goalId"], state="completed")
    assert (closed["previousState"], closed["goal"]["state"]) == ("active", "completed")


@pytest.mark.parametrize("op", [None, "delete", 1])
async def test_op_is_required_and_one_of_four(agent: Agent, op: Any) -> None:
    message = await agent.invalid(**({} if op is None else {"op": op}))
    assert "op" in message
    if op == "delete":
        assert "create | query | close | annotate" in message


@pytest.mark.parametrize(
    ("call", "foreign"),
    [
        ({"op": "create", "summary": "x", "goalId": "g"}, "goalId"),
        ({"op": "create", "summary": "x", "state": "failed"}, "state"),
        ({"op": "query", "summary": "x"}, "summary"),
        ({"op": "query", "content": "x"}, "content"),
        ({"op": "close", "goalId": "g", "state": "failed", "content": "x"}, "content"),
        ({"op": "close", "goalId": "g", "state": "failed", "targetId": "tab_1"}, "targetId"),
        ({"op": "annotate", "goalId": "g", "content": "x", "leaseMs": 5000}, "leaseMs"),
        ({"op": "annotate", "goalId": "g", "content": "x", "includeEvents": True}, "includeEvents"),
    ],
)
async def test_each_op_takes_its_own_fields_only(agent: Agent, call: dict[str, Any], foreign: str) -> None:
    assert f"op {call['op']} takes no {foreign}" in await agent.invalid(**call)


# -- targetId --------------------------------------------------------------------------------------------------------


async def test_a_goal_made_before_the_first_tab_is_bound_to_none(agent: Agent) -> None:
    assert (await agent.create())["targetId"] is None
    assert (await agent.register("query", targetId="active"))["goals"] == []
    assert len((await agent.register("query"))["goals"]) == 1


async def test_a_target_nobody_knows_is_refused_on_create_and_matches_nothing_in_a_query(agent: Agent) -> None:
    body = await agent.refused(op="create", summary="x", targetId="tab_99")
    assert (body["errorCode"], body["reasonCode"]) == (-32602, "tab.unknown")
    assert (await agent.register("query", targetId="tab_99"))["goals"] == []


@pytest.mark.browser
async def test_create_takes_the_active_tab_and_query_filters_by_target(on_page: Agent) -> None:
    goal = await on_page.create()
    assert goal["targetId"] == (await on_page.call("tabs"))["activeTargetId"]
    for target in ("active", goal["targetId"]):
        found = await on_page.register("query", targetId=target)
        assert [one["goalId"] for one in found["goals"]] == [goal["goalId"]]
    body = await on_page.refused(op="query", goalId=goal["goalId"], targetId="tab_99")
    assert body["reasonCode"] == "goal.not_found"


# -- goalId ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", ["close", "annotate"])
async def test_goal_id_is_required_for_close_and_annotate(agent: Agent, op: str) -> None:
    more = {"state": "failed"} if op == "close" else {"content": "x"}
    assert f"op {op} needs goalId" in await agent.invalid(op=op, **more)


@pytest.mark.parametrize(
    "call", [{"op": "query"}, {"op": "close", "state": "failed"}, {"op": "annotate", "content": "x"}]
)
async def test_a_goal_nobody_has_is_not_found(agent: Agent, call: dict[str, Any]) -> None:
    body = await agent.refused(**call, goalId="goal_0")
    assert (body["errorCode"], body["reasonCode"], body["status"]) == (-32004, "goal.not_found", "not_found")


async def test_without_a_goal_id_the_newest_goals_come_first_and_at_most_fifty(agent: Agent) -> None:
    for number in range(52):
        agent.clock.shift_ms = number
        await agent.create(f"goal {number}")
    listed = (await agent.register("query", includeSteps=False))["goals"]
    assert [one["summary"] for one in listed] == [f"goal {number}" for number in range(51, 1, -1)]


# -- summary, mode ---------------------------------------------------------------------------------------------------


async def test_summary_is_required_for_create(agent: Agent) -> None:
    assert "op create needs summary" in await agent.invalid(op="create")
    assert "summary" in await agent.invalid(op="create", summary="")
    assert (await agent.create("Grüße 東京"))["summary"] == "Grüße 東京"


@pytest.mark.parametrize("mode", ["agent_driven", "runtime_assisted", "fully_autonomous"])
async def test_mode_is_recorded_and_defaults_to_agent_driven(agent: Agent, mode: str) -> None:
    assert (await agent.create(mode=mode))["mode"] == mode
    assert (await agent.create())["mode"] == "agent_driven"
    assert "mode must be one of" in await agent.invalid(op="create", summary="x", mode="autonomous")


# -- preconditions ---------------------------------------------------------------------------------------------------


async def test_goal_preconditions_are_judged_unknown_without_a_page_and_block_nothing(agent: Agent) -> None:
    goal = await agent.create(preconditions={"all": [SURE]})
    assert (goal["state"], goal["preconditionVerdict"]) == ("active", "unknown")
    assert (await agent.create())["preconditionVerdict"] is None


@pytest.mark.browser
async def test_goal_preconditions_are_judged_on_the_page_when_the_goal_opens(on_page: Agent) -> None:
    wrong = {"factKey": "page.title", "operator": "eq", "expected": "Elsewhere"}
    right = {"factKey": "page.title", "operator": "eq", "expected": "Order"}
    for conditions, verdict in ({"all": [right]}, "satisfied"), ({"all": [right, wrong]}, "failed"):
        goal = await on_page.create(preconditions=conditions)
        assert (goal["state"], goal["preconditionVerdict"]) == ("active", verdict)
        assert (await on_page.query(goal["goalId"]))["preconditionVerdict"] == verdict


@pytest.mark.parametrize(
    "conditions",
    [
        {"some": []},
        {"all": [{"factKey": "page.titel", "operator": "exists"}]},
        {"all": [{"factKey": "page.title"}]},
        {"all": [{**SURE, "extra": 1}]},
    ],
)
async def test_conditions_nobody_can_check_are_refused(agent: Agent, conditions: dict[str, Any]) -> None:
    assert "preconditions" in await agent.invalid(op="create", summary="x", preconditions=conditions)


# -- ownerAgentId, sidecarSessionId ----------------------------------------------------------------------------------


async def test_owner_and_session_are_bound_only_when_given(agent: Agent) -> None:
    free = await agent.create(agentId="ada")
    assert (free["ownerAgentId"], free["sidecarSessionId"]) == (None, None)
    bound = await agent.create(ownerAgentId="ada", sidecarSessionId="s-1")
    assert (bound["ownerAgentId"], bound["sidecarSessionId"]) == ("ada", "s-1")


@pytest.mark.browser
async def test_a_bound_goal_is_shown_to_its_owner_and_session_alone(on_page: Agent) -> None:
    target = (await on_page.call("tabs"))["activeTargetId"]
    await on_page.create(ownerAgentId="ada", sidecarSessionId="s-1")
    mine = {"targetId": target, "_meta": {"sidecarSessionId": "s-1"}}
    assert await on_page.context(agentId="ada", **mine) is not None
    assert await on_page.context(agentId="ada", targetId=target) is None
    assert await on_page.context(agentId="ada", targetId=target, _meta={"sidecarSessionId": "s-2"}) is None
    assert await on_page.context(agentId="bob", **mine) is None
    shared = await on_page.create("For everybody")
    for who in ("ada", "bob"):
        context = await on_page.context(agentId=who, targetId=target)
        assert context is not None
        assert context["goalId"] == shared["goalId"]


# -- leaseMs ---------------------------------------------------------------------------------------------------------


async def test_a_lease_lasts_two_minutes_unless_told_otherwise(agent: Agent) -> None:
    assert (await agent.create())["leaseMs"] == 120_000
    for lease in (1_000, 600_000):
        assert (await agent.create(leaseMs=lease))["leaseMs"] == lease
    for lease in (999, 600_001, "5000", 5000.5):
        assert "leaseMs" in await agent.invalid(op="create", summary="x", leaseMs=lease)


async def test_without_progress_a_goal_is_orphaned_until_an_annotation_revives_it(agent: Agent) -> None:
    goal = await agent.create(leaseMs=5_000)
    agent.clock.shift_ms = 5_001
    assert (await agent.query(goal["goalId"]))["state"] == "orphaned"
    revived = await agent.register("annotate", goalId=goal["goalId"], content="still here")
    assert revived["goal"]["state"] == "active"
    agent.clock.shift_ms += 5_001 + DAY_MS
    body = await agent.refused(op="annotate", goalId=goal["goalId"], content="too late")
    assert (body["errorCode"], body["reasonCode"]) == (-32003, "goal.terminal")


async def test_a_query_does_not_renew_the_lease(agent: Agent) -> None:
    goal = await agent.create(leaseMs=60_000)
    agent.clock.shift_ms = 30_000
    assert (await agent.query(goal["goalId"]))["leaseExpiresAtUtc"] == goal["leaseExpiresAtUtc"]
    noted = await agent.register("annotate", goalId=goal["goalId"], content="x")
    assert noted["goal"]["leaseExpiresAtUtc"] > goal["leaseExpiresAtUtc"]


# -- steps -----------------------------------------------------------------------------------------------------------


async def test_steps_are_an_ordered_plan_of_at_most_fifty(agent: Agent) -> None:
    steps = [{"actionDesc": f"step {number}"} for number in range(1, 51)]
    goal = await agent.create(steps=steps)
    assert [one["actionDesc"] for one in goal["steps"]] == [one["actionDesc"] for one in steps]
    assert (goal["currentStep"], goal["totalSteps"], goal["stepAction"]) == (1, 50, "step 1")
    assert "steps" in await agent.invalid(op="create", summary="x", steps=[*steps, {"actionDesc": "one more"}])


async def test_a_goal_without_steps_counts_none(agent: Agent) -> None:
    goal = await agent.create()
    assert (goal["currentStep"], goal["totalSteps"], goal["stepStatus"], goal["stepAction"]) == (0, 0, None, None)


@pytest.mark.parametrize("step", [{}, {"actionDesc": ""}, {"actionDesc": 1}, {"actionDesc": "x", "extra": 1}, "x"])
async def test_every_step_needs_its_action_and_nothing_unknown(agent: Agent, step: Any) -> None:
    assert "steps.0" in await agent.invalid(op="create", summary="x", steps=[step])


async def test_a_steps_contract_is_stored_as_it_was_given(agent: Agent) -> None:
    goal = await agent.create(steps=[{"actionDesc": "save", "contract": CONTRACT}, {"actionDesc": "leave"}])
    found = (await agent.query(goal["goalId"]))["steps"]
    assert found[0]["contract"] == CONTRACT
    assert "contract" not in found[1]
    wrong = {"postconditions": {"success": {"any": [{"factKey": "form.fields.vaild", "operator": "exists"}]}}}
    message = await agent.invalid(op="create", summary="x", steps=[{"actionDesc": "save", "contract": wrong}])
    assert "form.fields.valid" in message


# -- includeSteps, includeEvents, eventsLimit ------------------------------------------------------------------------


async def test_a_query_shows_steps_unless_told_not_to_and_events_when_told_to(agent: Agent) -> None:
    goal = await agent.create(steps=[{"actionDesc": "one"}])
    plain = await agent.query(goal["goalId"])
    assert ("steps" in plain, "events" in plain) == (True, False)
    other = await agent.query(goal["goalId"], includeSteps=False, includeEvents=True)
    assert ("steps" in other, [one["kind"] for one in other["events"]]) == (False, ["created"])
    (listed,) = (await agent.register("query", includeSteps=False, includeEvents=True))["goals"]
    assert listed == other


async def test_events_are_the_last_fifty_unless_told_otherwise(agent: Agent) -> None:
    goal = await agent.create()
    for number in range(60):
        await agent.register("annotate", goalId=goal["goalId"], content=f"note {number}")
    events = (await agent.query(goal["goalId"], includeEvents=True))["events"]
    assert [one["content"] for one in events] == [f"note {number}" for number in range(10, 60)]
    few = (await agent.query(goal["goalId"], includeEvents=True, eventsLimit=1))["events"]
    assert [one["content"] for one in few] == ["note 59"]
    for limit in (0, 201):
        assert "eventsLimit" in await agent.invalid(op="query", eventsLimit=limit)


# -- state (close), content and source (annotate) --------------------------------------------------------------------


@pytest.mark.parametrize("state", ["completed", "failed", "aborted"])
async def test_a_goal_is_closed_with_a_terminal_state_once(agent: Agent, state: str) -> None:
    goal = await agent.create(steps=[{"actionDesc": "one"}])
    closed = await agent.register("close", goalId=goal["goalId"], state=state)
    assert (closed["goal"]["state"], closed["previousState"]) == (state, "active")
    for call in ({"op": "close", "state": "aborted"}, {"op": "annotate", "content": "x"}):
        body = await agent.refused(**call, goalId=goal["goalId"])
        assert (body["errorCode"], body["reasonCode"], body["state"]) == (-32003, "goal.terminal", state)


async def test_close_needs_a_terminal_state(agent: Agent) -> None:
    goal = await agent.create()
    assert "op close needs state" in await agent.invalid(op="close", goalId=goal["goalId"])
    assert "state must be one of completed | failed | aborted" in await agent.invalid(
        op="close", goalId=goal["goalId"], state="active"
    )


async def test_an_annotation_needs_content_and_names_its_source(agent: Agent) -> None:
    goal = await agent.create()
    assert "op annotate needs content" in await agent.invalid(op="annotate", goalId=goal["goalId"])
    first = await agent.register("annotate", goalId=goal["goalId"], content="by default")
    second = await agent.register("annotate", goalId=goal["goalId"], content="by name", source="planner")
    events = (await agent.query(goal["goalId"], includeEvents=True))["events"]
    assert [(one["eventId"], one["source"], one["content"]) for one in events[1:]] == [
        (first["eventId"], "agent", "by default"),
        (second["eventId"], "planner", "by name"),
    ]


# -- legacy aliases --------------------------------------------------------------------------------------------------


async def test_older_names_are_accepted_and_mean_the_same(agent: Agent) -> None:
    goal = await agent.create(
        preconditionsJson=json.dumps({"all": [SURE]}),
        ownerAgent="ada",
        ownerSession="s-1",
        leaseTimeoutMs=5_000,
        steps=[{"actionDesc": "save", "contractJson": json.dumps(CONTRACT)}],
    )
    assert (goal["ownerAgentId"], goal["sidecarSessionId"], goal["leaseMs"]) == ("ada", "s-1", 5_000)
    assert goal["preconditionVerdict"] == "unknown"
    assert goal["steps"][0]["contract"] == CONTRACT


@pytest.mark.parametrize(
    "mixed",
    [
        {"preconditionsJson": "{}", "preconditions": {}},
        {"ownerAgent": "ada", "ownerAgentId": "ada"},
        {"ownerAgent": "ada", "leaseMs": 5_000},
        {"ownerSession": "s", "steps": [{"actionDesc": "x", "contract": CONTRACT}]},
        {"sidecarSessionId": "s", "steps": [{"actionDesc": "x", "contractJson": json.dumps(CONTRACT)}]},
        {"steps": [{"actionDesc": "x", "contract": CONTRACT}, {"actionDesc": "y", "contractJson": "{}"}]},
        {"leaseTimeoutMs": 5_000, "leaseMs": 6_000},
    ],
)
async def test_older_and_newer_names_are_never_mixed(agent: Agent, mixed: dict[str, Any]) -> None:
    assert "old and new names" in await agent.invalid(op="create", summary="x", **mixed)


@pytest.mark.parametrize(
    ("legacy", "words"),
    [
        ({"preconditionsJson": "{"}, "preconditionsJson is no JSON"),
        ({"preconditionsJson": "[]"}, "preconditionsJson must hold a JSON object"),
        ({"preconditionsJson": '{"some": []}'}, "preconditionsJson: some is not an argument"),
        ({"steps": [{"actionDesc": "x", "contractJson": '{"actionKind": "buy"}'}]}, "contractJson: actionKind must be"),
        ({"leaseTimeoutMs": 999}, "leaseTimeoutMs must be at least 1000"),
    ],
)
async def test_what_stands_in_an_older_field_is_checked_as_strictly(
    agent: Agent, legacy: dict[str, Any], words: str
) -> None:
    assert words in await agent.invalid(op="create", summary="x", **legacy)


# -- goalContext -----------------------------------------------------------------------------------------------------


@pytest.mark.browser
async def test_goal_context_is_null_without_an_active_goal_and_again_when_it_ends(on_page: Agent) -> None:
    assert await on_page.context() is None
    goal = await on_page.create(leaseMs=60_000)
    assert await on_page.context() is not None
    on_page.clock.shift_ms = 60_001
    assert await on_page.context() is None
    await on_page.register("annotate", goalId=goal["goalId"], content="back")
    assert await on_page.context() is not None
    await on_page.register("close", goalId=goal["goalId"], state="aborted")
    assert await on_page.context() is None


@pytest.mark.browser
async def test_goal_context_is_the_anchor_to_resume_from_and_stays_within_the_budget(on_page: Agent) -> None:
    goal = await on_page.create(
        "Count to one " + "and so on " * 40,
        mode="runtime_assisted",
        steps=[{"actionDesc": "press More " + "carefully " * 40}, {"actionDesc": "leave"}],
    )
    answer = await on_page.client.call_tool("nova.perceive", {"maxTokens": 200})
    assert answer.structured_content is not None
    context = answer.structured_content["goalContext"]
    assert set(context) == CONTEXT_FIELDS
    assert {key: context[key] for key in CONTEXT_FIELDS} == {key: goal[key] for key in CONTEXT_FIELDS}
    assert (context["state"], context["stepStatus"]) == ("active", "ready")
    text = text_of(answer)
    assert f"goal {goal['goalId']}" in text.splitlines()[1]
    assert estimate_tokens(text) <= 200
    glance = text_of(await on_page.client.call_tool("nova.perceive", {"mode": "state"}))
    assert "step 1/2 ready: press More" in glance


@pytest.mark.browser
async def test_the_owners_acts_run_as_steps_and_another_agents_guarded_act_is_refused(on_page: Agent) -> None:
    target = (await on_page.call("tabs"))["activeTargetId"]
    goal = await on_page.create(
        ownerAgentId="ada",
        leaseMs=600_000,
        steps=[{"actionDesc": "press More", "contract": CONTRACT}, {"actionDesc": "leave"}],
    )
    # Whoever worked on the tab last holds it for a while, which is another guard than the goal's.
    on_page.clock.shift_ms += 2 * 60_000
    other = await on_page.call(
        "click_selector", agentId="bob", targetId=target, selector="#more", transitionContract=CONTRACT
    )
    assert (other["reasonCode"], other["actionDispatched"]) == ("guarded_commit.dispatch_prepare_rejected", False)
    assert other["guardedCommit"]["dispatchStatus"] == "blocked_goal"
    on_page.clock.shift_ms += 2 * 60_000
    mine = await on_page.call("click_selector", agentId="ada", targetId=target, selector="#more")
    assert mine["guardedCommit"]["verificationStatus"] == "verified_success"
    found = await on_page.query(goal["goalId"])
    assert [one["status"] for one in found["steps"]] == ["done", "ready"]
    assert found["steps"][0]["verificationStatus"] == "verified_success"
    assert (found["currentStep"], found["leaseExpiresAtUtc"] > goal["leaseExpiresAtUtc"]) == (2, True)
