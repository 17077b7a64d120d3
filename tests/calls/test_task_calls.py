"""Calls on runs when the store fails under them: all of a call is kept, with its record, or nothing."""

from typing import Any

import pytest

from nova_mcp.storage.errors import StoreUnavailable
from nova_mcp.tools.tasks.complete import task_instance_abort, task_instance_complete
from nova_mcp.tools.tasks.progress import task_instance_progress
from nova_mcp.tools.tasks.runs import task_instance_create, task_instance_get

TOOLS = (
    task_instance_create,
    task_instance_get,
    task_instance_progress,
    task_instance_complete,
    task_instance_abort,
)
CONTEXT = {
    "taskType": "audit",
    "displayName": "Look",
    "goal": "Look",
    "completionCondition": {
        "coverageMode": "threshold",
        "unitKind": "item",
        "stopMetric": "checked_units",
        "stopValue": 1,
    },
}
UNIT = {"discoveredUnits": [{"unitKey": "a"}], "unitUpdates": [{"unitKey": "a", "status": "checked"}]}


@pytest.fixture
async def rig(make_rig: Any) -> Any:
    return await make_rig(*TOOLS)


async def new_run(rig: Any) -> str:
    told = await rig.call("nova.task_instance_create", {"adHocContext": CONTEXT, "clientEventId": "start"})
    return str(told.structured["instanceId"])


def change(run: str, rev: int, event: str, **more: Any) -> dict[str, Any]:
    return {"instanceId": run, "expectedInstanceRev": rev, "clientEventId": event, **more}


CHANGES = [
    ("progress", UNIT),
    ("abort", {"reason": "why not", "outcome": "failed"}),
]


@pytest.mark.parametrize(("tool", "more"), CHANGES)
async def test_a_call_whose_record_fails_changes_nothing_and_may_be_sent_again(rig: Any, tool: str, more: Any) -> None:
    run = await new_run(rig)
    sent = change(run, 0, "e1", **more)
    rig.fault.armed = True
    lost = await rig.call(f"nova.task_instance_{tool}", sent)
    rig.fault.armed = False
    assert (lost.is_error, lost.structured["reasonCode"]) == (True, "store.unavailable")
    found = (await rig.call("nova.task_instance_get", {"instanceId": run})).structured
    assert (found["instanceRev"], found["status"], found["progress"]["totalUnits"]) == (0, "pending", 0)
    again = await rig.call(f"nova.task_instance_{tool}", sent)
    assert (again.structured["instanceRev"], again.structured.get("duplicate", False)) == (1, False)


@pytest.mark.parametrize(("tool", "more"), CHANGES)
async def test_an_answer_lost_after_the_commit_is_given_again(rig: Any, tool: str, more: Any, monkeypatch: Any) -> None:
    run = await new_run(rig)
    sent = change(run, 0, "e1", **more)

    def gone(point: str) -> None:
        if point == "ledger.after_commit":
            raise StoreUnavailable("down", "the process ended", "")

    monkeypatch.setattr(rig.fault, "hit", gone, raising=False)
    assert (await rig.call(f"nova.task_instance_{tool}", sent)).is_error
    monkeypatch.undo()
    again = await rig.call(f"nova.task_instance_{tool}", sent)
    assert (again.structured["instanceRev"], again.structured["duplicate"]) == (1, True)
    assert (await rig.call("nova.task_instance_get", {"instanceId": run})).structured["instanceRev"] == 1


async def test_a_creation_lost_after_the_commit_gives_the_same_run(rig: Any, monkeypatch: Any) -> None:
    def gone(point: str) -> None:
        if point == "ledger.after_commit":
            raise StoreUnavailable("down", "the process ended", "")

    monkeypatch.setattr(rig.fault, "hit", gone, raising=False)
    assert (await rig.call("nova.task_instance_create", {"adHocContext": CONTEXT, "clientEventId": "start"})).is_error
    monkeypatch.undo()
    first = await rig.call("nova.task_instance_create", {"adHocContext": CONTEXT, "clientEventId": "start"})
    assert first.structured["duplicate"] is True
    assert first.structured["instanceId"] == await new_run(rig)


async def test_a_failed_run_is_no_failed_call(rig: Any) -> None:
    run = await new_run(rig)
    told = await rig.call("nova.task_instance_abort", change(run, 0, "e1", reason="could not", outcome="failed"))
    assert (told.is_error, told.structured["ok"], told.structured["status"]) == (False, True, "failed")
    record = (await rig.records())[-1]
    assert (record.tool_name, record.outcome.kind) == ("nova.task_instance_abort", "ok")


async def test_completing_is_recorded_with_its_refusal(rig: Any) -> None:
    run = await new_run(rig)
    await rig.call("nova.task_instance_complete", change(run, 0, "e1"))
    await rig.call("nova.task_instance_progress", change(run, 0, "e2", **UNIT))
    done = await rig.call("nova.task_instance_complete", change(run, 1, "e1"))
    assert done.structured["completed"] is True
    kinds = [(one.outcome.kind, one.outcome.reason_code) for one in (await rig.records())[1:]]
    assert kinds == [("ok", "threshold_not_met"), ("ok", None), ("ok", None)]
