"""Tasks and their runs on a terminal and for programs: of everybody, and never changed by looking."""

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from cli_kit import nova
from loop_kit import Server, serving

PAGES = {"coverageMode": "exhaustive", "unitKind": "page", "stopMetric": "all_units_processed"}
PROFILE = {
    "profileId": "spelling",
    "taskType": "proofreading",
    "displayName": "Spelling\x1b[2J audit",
    "goal": "Correct mistakes",
    "completionCondition": PAGES,
    "domain": "shop.example",
    "stableGuidance": [{"kind": "style", "text": "Names stay"}],
    "mandatoryChecks": [{"checkId": "imprint", "description": "The imprint was read"}],
    "knownExceptions": [{"text": "Quotes"}],
}
Shown = Callable[..., str]


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    async with serving(tmp_path) as running:
        await running.call("task_profile_upsert", **PROFILE)
        yield running


@pytest.fixture
def shown(server: Server) -> Shown:
    def run(*words: str) -> str:
        done = nova("tasks", *words, "--data-dir", server.data_dir)
        assert done.exit_code == 0, done.output
        return str(done.stdout)

    return run


async def started(server: Server, **more: Any) -> str:
    answer = await server.call("task_instance_create", profileId="spelling", targetUrl="https://shop.example/", **more)
    assert answer["ok"], answer
    return str(answer["instanceId"])


async def test_profiles_are_listed_and_archived_ones_on_request(server: Server, shown: Shown) -> None:
    assert "spelling\tlocal\tproofreading" in shown("profiles")
    assert "\x1b" not in shown("profiles")
    assert "spelling" not in shown("profiles", "--principal", "somebody")
    await server.call("task_profile_upsert", profileId="spelling", expectedContentRev=1, archived=True)
    assert "spelling" not in shown("profiles")
    assert "(archived)" in shown("profiles", "--archived")
    (one,) = json.loads(shown("profiles", "--archived", "--json"))["profiles"]
    assert (one["profileId"], one["contentRev"], one["confidence"], one["archived"]) == ("spelling", 1, 0.5, True)


async def test_one_profile_is_shown_whole(server: Server, shown: Shown) -> None:
    told = shown("profile", "spelling")
    for part in ("Correct mistakes", "Names stay", "imprint", "Quotes", "exhaustive by page", "confidence 0.50"):
        assert part in told
    assert "\x1b" not in told
    (one,) = json.loads(shown("profile", "spelling", "--json"))["profiles"]
    assert one["mandatoryChecks"] == [{**PROFILE["mandatoryChecks"][0], "required": True}]  # type: ignore[index]
    missing = nova("tasks", "profile", "nobody", "--data-dir", server.data_dir)
    assert (missing.exit_code, "there is no profile nobody" in missing.stderr) == (1, True)


async def test_runs_are_listed_and_ended_ones_on_request(server: Server, shown: Shown) -> None:
    run = await started(server)
    assert run in shown("runs")
    change = {"instanceId": run, "expectedInstanceRev": 0, "clientEventId": "e", "reason": "No time"}
    assert (await server.call("task_instance_abort", **change))["ok"]
    assert run not in shown("runs")
    (one,) = json.loads(shown("runs", "--all", "--json"))["runs"]
    assert (one["instanceId"], one["status"], one["units"]["total"]) == (run, "aborted", 0)
    assert run not in shown("runs", "--all", "--principal", "somebody")


async def test_one_run_is_shown_with_what_was_said_and_seen(server: Server, shown: Shown) -> None:
    run = await started(server)
    units = [{"url": "https://shop.example/a"}, {"url": "https://shop.example/b"}]
    said = [{"url": "https://shop.example/a", "status": "checked"}]
    change = {"instanceId": run, "expectedInstanceRev": 0, "clientEventId": "e"}
    assert (await server.call("task_instance_progress", **change, discoveredUnits=units, unitUpdates=said))["ok"]
    told = shown("run", run)
    assert "2 units: 1 checked, 0 excluded, 1 remaining" in told
    assert "https://shop.example/a\tchecked\tnone\tFalse" in told
    assert "progress" in told
    whole = json.loads(shown("run", run, "--json"))
    assert [(one["status"], one["grade"]) for one in whole["unitsShown"]] == [
        ("checked", "none"),
        ("discovered", "none"),
    ]
    assert (whole["instanceRev"], whole["percentComplete"], whole["covered"]) == (1, 50, 0)
    assert [one["agentId"] for one in whole["members"]] == ["default"]
    assert whole["checks"] == {"imprint": "pending"}
    missing = nova("tasks", "run", "f" * 32, "--data-dir", server.data_dir)
    assert (missing.exit_code, "there is no run" in missing.stderr) == (1, True)


async def test_without_a_word_more_profiles_and_open_runs_are_shown(server: Server, shown: Shown) -> None:
    assert "spelling\tlocal" in shown()
    run = await started(server)
    told = shown()
    assert told.index("spelling\tlocal") < told.index(run)
    both = json.loads(shown("--json"))
    assert [one["profileId"] for one in both["profiles"]] == ["spelling"]
    assert [one["instanceId"] for one in both["runs"]] == [run]


def test_a_store_without_tasks_is_said_to_have_none(tmp_path: Path) -> None:
    nova("db", "upgrade", "--data-dir", tmp_path)
    done = nova("tasks", "--data-dir", tmp_path)
    assert (done.exit_code, done.stdout) == (0, "")
    assert "no profiles and no open runs" in done.stderr


async def test_looking_changes_nothing(server: Server, shown: Shown) -> None:
    run = await started(server)
    before = await server.call("task_instance_get", instanceId=run)
    for words in ((), ("profiles",), ("profile", "spelling"), ("runs", "--all"), ("run", run)):
        shown(*words)
    assert await server.call("task_instance_get", instanceId=run) == before
