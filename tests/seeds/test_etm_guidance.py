"""Every row of the contract about guidance that is said again and again, through a real client."""

import itertools
from collections.abc import AsyncIterator
from typing import Any

import pytest
from loop_kit import Server, serving

from nova_mcp.memory.tasks.tables import task_guidance_log, task_guidance_occurrence, task_profile

DAY_MS = 24 * 60 * 60 * 1000
PAGES = {"coverageMode": "exhaustive", "unitKind": "page", "stopMetric": "all_units_processed"}
NEW = {"taskType": "audit", "displayName": "Audit", "goal": "Look", "completionCondition": PAGES}
SAID = {"guidanceKind": "style", "sourceKind": "user"}
COUNT = itertools.count(1)


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory, anyio_backend: str) -> AsyncIterator[Server]:
    async with serving(tmp_path_factory.mktemp("guidance")) as running:
        yield running


@pytest.fixture
async def profile(server: Server) -> str:
    answer = await server.call("task_profile_upsert", **NEW, profileId=f"profile-{next(COUNT)}")
    return str(answer["profileId"])


async def run(server: Server, profile_id: str | None, **overrides: Any) -> str:
    """A run of a profile, or one that has none."""
    what: dict[str, Any] = {"adHocContext": NEW} if profile_id is None else {"profileId": profile_id}
    answer = await server.call("task_instance_create", **what, **({"overrides": overrides} if overrides else {}))
    assert answer["ok"], answer
    return str(answer["instanceId"])


async def say(server: Server, text: str, **where: Any) -> dict[str, Any]:
    answer = await server.call("task_guidance_log_add", **SAID, payload={"text": text}, **where)
    assert answer["ok"], answer
    return answer


async def ripe(server: Server, profile_id: str, text: str = "Keep names as they are.") -> str:
    for _ in range(3):
        answer = await say(server, text, instanceId=await run(server, profile_id))
    assert (answer["status"], answer["occurrenceCount"]) == ("proposed", 3)
    return str(answer["guidanceLogId"])


def reason(answer: dict[str, Any]) -> tuple[int | None, str | None]:
    assert answer["ok"] is False
    return answer.get("errorCode"), answer.get("reasonCode")


# -- logging


async def test_guidance_is_new_once_and_then_known(server: Server, profile: str) -> None:
    first = await say(server, "Keep names.", profileId=profile)
    assert first.keys() == {"ok", "guidanceLogId", "normalizedHash", "occurrenceCount", "status", "created"}
    assert (first["occurrenceCount"], first["status"], first["created"]) == (1, "logged", True)
    again = await say(server, "  keep   NAMES!", profileId=profile)
    assert again == {**first, "created": False}


async def test_guidance_said_many_times_in_one_run_counts_once(server: Server, profile: str) -> None:
    here = await run(server, profile)
    for _ in range(5):
        answer = await say(server, "Keep names.", instanceId=here)
    assert (answer["occurrenceCount"], answer["status"]) == (1, "logged")
    found = await server.rows(task_guidance_occurrence, task_guidance_occurrence.c.log_id == answer["guidanceLogId"])
    assert len(found) == 1


async def test_outside_of_runs_an_agent_counts_once_a_day(server: Server, profile: str) -> None:
    assert (await say(server, "Keep names.", profileId=profile))["occurrenceCount"] == 1
    assert (await say(server, "Keep names.", profileId=profile))["occurrenceCount"] == 1
    assert (await say(server, "Keep names.", profileId=profile, agentId="second"))["occurrenceCount"] == 2
    server.clock.shift_ms += DAY_MS
    assert (await say(server, "Keep names.", profileId=profile))["occurrenceCount"] == 3


async def test_what_is_said_in_a_run_belongs_to_its_profile(server: Server, profile: str) -> None:
    in_run = await say(server, "Keep names.", instanceId=await run(server, profile))
    beside = await say(server, "Keep names.", profileId=profile)
    assert in_run["guidanceLogId"] == beside["guidanceLogId"]
    alone = await say(server, "Keep names.", instanceId=await run(server, None))
    assert alone["guidanceLogId"] != beside["guidanceLogId"]


async def test_guidance_needs_something_it_belongs_to(server: Server, profile: str) -> None:
    before = await server.rows(task_guidance_log)
    for where, code in (
        ({}, (-32602, "context_required")),
        ({"profileId": "nobody"}, (-32004, "task.profile_not_found")),
        ({"instanceId": "f" * 32}, (-32004, "task.instance_not_found")),
        ({"profileId": profile, "guidanceKind": "rule"}, (-32602, "invalid_params")),
        ({"profileId": profile, "sourceKind": "nova"}, (-32602, "invalid_params")),
        ({"profileId": profile, "payload": {"text": " ab "}}, (-32602, "invalid_params")),
        ({"profileId": profile, "payload": {"text": "x" * 501}}, (-32602, "invalid_params")),
        ({"profileId": profile, "payload": {"text": "abc", "tags": ["t"] * 11}}, (-32602, "invalid_params")),
        ({"profileId": profile, "payload": {"text": "abc", "evidenceRefs": ["t"] * 11}}, (-32602, "invalid_params")),
        ({"profileId": profile, "payload": {"text": "abc", "other": 1}}, (-32602, "invalid_params")),
    ):
        arguments = {**SAID, "payload": {"text": "Keep names."}, **where}
        assert reason(await server.call("task_guidance_log_add", **arguments)) == code
    assert await server.rows(task_guidance_log) == before


# -- looking at it


async def test_logs_are_read_by_profile_run_kind_and_status(server: Server, profile: str) -> None:
    here, there = await run(server, profile), await run(server, profile)
    first = await say(server, "First of all.", instanceId=here)
    server.clock.shift_ms += 1000
    await say(server, "Second of all.", instanceId=there)
    await say(server, "First of all.", instanceId=there)
    found = await server.call("task_guidance_logs", profileId=profile)
    assert found["count"] == 2
    assert {one["payload"]["text"] for one in found["logs"]} == {"First of all.", "Second of all."}
    assert found["logs"][0].keys() == {
        *("guidanceLogId", "profileId", "guidanceKind", "payload", "sourceKind", "status", "occurrenceCount"),
        *("promotedToContentRev", "createdAtUtc", "updatedAtUtc"),
    }
    only = await server.call("task_guidance_logs", instanceId=here)
    assert [one["guidanceLogId"] for one in only["logs"]] == [first["guidanceLogId"]]
    assert only["profileLearningStats"] is None
    assert (await server.call("task_guidance_logs", instanceId=there))["count"] == 2
    assert (await server.call("task_guidance_logs", profileId=profile, guidanceKind="quality"))["count"] == 0
    assert (await server.call("task_guidance_logs", profileId=profile, status="proposed"))["count"] == 0
    assert (await server.call("task_guidance_logs", profileId=profile, limit=1))["count"] == 1
    unknown = await server.call("task_guidance_logs", profileId="nobody")
    assert reason(unknown) == (-32004, "task.profile_not_found")
    assert reason(await server.call("task_guidance_logs", instanceId="f" * 32)) == (-32004, "task.instance_not_found")


async def test_stats_of_a_profile_tell_how_runs_went_and_what_they_overrode(server: Server, profile: str) -> None:
    for depth in (2, 2, 3):
        await run(server, profile, variables={"depth": depth})
    stats = (await server.call("task_guidance_logs", profileId=profile))["profileLearningStats"]
    assert stats == {
        "runs": 3,
        "completed": 0,
        "failed": 0,
        "aborted": 0,
        "completionPercent": 0,
        "topOverrides": [
            {"path": "variables.depth", "value": 2, "occurrenceCount": 2},
            {"path": "variables.depth", "value": 3, "occurrenceCount": 1},
        ],
    }


async def test_candidates_are_what_came_up_often_enough_and_is_undecided(server: Server, profile: str) -> None:
    log = await ripe(server, profile)
    once = await say(server, "Said once.", profileId=profile)
    for _ in range(3):
        await run(server, profile, tags={"include": ["de"]})
    found = await server.call("task_promotion_candidates", profileId=profile)
    assert [one["guidanceLogId"] for one in found["guidanceCandidates"]] == [log]
    assert found["overrideCandidates"] == [{"path": "tags.include", "value": "de", "occurrenceCount": 3}]
    assert (found["guidanceCandidateCount"], found["overrideCandidateCount"], found["threshold"]) == (1, 1, 3)
    every = await server.call("task_promotion_candidates", profileId=profile, threshold=1)
    assert {one["guidanceLogId"] for one in every["guidanceCandidates"]} == {log, once["guidanceLogId"]}
    none = await server.call("task_promotion_candidates", profileId=profile, threshold=4)
    assert (none["guidanceCandidates"], none["overrideCandidates"]) == ([], [])
    await server.call("task_promote_guidance", guidanceLogId=log, profileId=profile)
    assert (await server.call("task_promotion_candidates", profileId=profile))["guidanceCandidateCount"] == 0
    unknown = await server.call("task_promotion_candidates", profileId="nobody")
    assert reason(unknown) == (-32004, "task.profile_not_found")


# -- deciding


async def test_ripe_guidance_joins_the_profile_once(server: Server, profile: str) -> None:
    log = await ripe(server, profile)
    answer = await server.call("task_promote_guidance", guidanceLogId=log, profileId=profile)
    assert answer == {"ok": True, "guidanceLogId": log, "status": "promoted", "promotedToContentRev": 2}
    kept = await server.call("task_profile_get", profileId=profile)
    assert kept["contentRev"] == 2
    assert [(one["kind"], one["text"]) for one in kept["stableGuidance"]] == [("style", "Keep names as they are.")]
    again = await server.call("task_promote_guidance", guidanceLogId=log, profileId=profile)
    assert (again["applied"], reason(again)) == (False, (None, "already_decided"))
    assert (await server.call("task_profile_get", profileId=profile))["contentRev"] == 2
    (row,) = (await server.call("task_guidance_logs", profileId=profile))["logs"]
    assert (row["status"], row["promotedToContentRev"]) == ("promoted", 2)
    later = await say(server, "keep names as they are", instanceId=await run(server, profile))
    assert (later["status"], later["occurrenceCount"]) == ("promoted", 4)


async def test_guidance_that_stands_in_the_profile_already_still_moves_the_revision_by_one(
    server: Server, profile: str
) -> None:
    text = "Keep names as they are."
    change = {"profileId": profile, "expectedContentRev": 1}
    await server.call("task_profile_upsert", **change, stableGuidance=[{"kind": "style", "text": text}])
    log = await ripe(server, profile, text)
    answer = await server.call("task_promote_guidance", guidanceLogId=log, profileId=profile)
    assert answer["promotedToContentRev"] == 3
    kept = await server.call("task_profile_get", profileId=profile)
    assert (kept["contentRev"], [one["text"] for one in kept["stableGuidance"]]) == (3, [text])


async def test_guidance_that_is_not_ripe_is_refused_with_what_it_lacks(server: Server, profile: str) -> None:
    once = await say(server, "Keep names.", profileId=profile)
    answer = await server.call("task_promote_guidance", guidanceLogId=once["guidanceLogId"], profileId=profile)
    assert (answer["applied"], reason(answer)) == (False, (None, "not_mature"))
    assert (answer["occurrenceCount"], answer["required"]) == (1, 3)
    assert (await server.call("task_profile_get", profileId=profile))["contentRev"] == 1


async def test_guidance_of_one_profile_is_not_for_another_and_free_guidance_is_for_any(
    server: Server, profile: str
) -> None:
    other = (await server.call("task_profile_upsert", **NEW, profileId=f"profile-{next(COUNT)}"))["profileId"]
    log = await ripe(server, profile)
    answer = await server.call("task_promote_guidance", guidanceLogId=log, profileId=other)
    assert reason(answer) == (None, "profile_mismatch")
    for _ in range(3):
        free = await say(server, f"Free guidance for {profile}.", instanceId=await run(server, None))
    done = await server.call("task_promote_guidance", guidanceLogId=free["guidanceLogId"], profileId=other)
    assert (done["status"], done["promotedToContentRev"]) == ("promoted", 2)


async def test_an_archived_profile_takes_no_guidance(server: Server, profile: str) -> None:
    log = await ripe(server, profile)
    await server.call("task_profile_upsert", profileId=profile, expectedContentRev=1, archived=True)
    answer = await server.call("task_promote_guidance", guidanceLogId=log, profileId=profile)
    assert reason(answer) == (None, "profile_archived")


async def test_turning_guidance_down_needs_a_reason_and_is_final(server: Server, profile: str) -> None:
    log = await ripe(server, profile)
    asked = {"guidanceLogId": log, "profileId": profile}
    bare = await server.call("task_promote_guidance", **asked, decision="reject")
    assert reason(bare) == (-32602, "invalid_params")
    done = await server.call("task_promote_guidance", **asked, decision="reject", reason="Not ours.")
    assert (done["status"], done["promotedToContentRev"]) == ("rejected", None)
    again = await server.call("task_promote_guidance", **asked)
    assert reason(again) == (None, "already_decided")
    (row,) = await server.rows(task_guidance_log, task_guidance_log.c.log_id == log)
    assert (row["status"], row["decided_reason"]) == ("rejected", "Not ours.")
    assert (await server.call("task_profile_get", profileId=profile))["contentRev"] == 1


async def test_a_full_profile_takes_no_more_and_nothing_happens(server: Server, profile: str) -> None:
    log = await ripe(server, profile)
    full = [{"text": f"Rule {n}."} for n in range(50)]
    await server.call("task_profile_upsert", profileId=profile, expectedContentRev=1, stableGuidance=full)
    before = await server.rows(task_profile, task_profile.c.profile_id == profile)
    answer = await server.call("task_promote_guidance", guidanceLogId=log, profileId=profile)
    assert reason(answer) == (-32602, "size_limit")
    assert await server.rows(task_profile, task_profile.c.profile_id == profile) == before
    (row,) = await server.rows(task_guidance_log, task_guidance_log.c.log_id == log)
    assert row["status"] == "proposed"


async def test_what_is_not_there_or_not_ones_own_is_not_found(server: Server, profile: str) -> None:
    log = await ripe(server, profile)
    missing = await server.call("task_promote_guidance", guidanceLogId="f" * 32, profileId=profile)
    assert reason(missing) == (-32004, "task.guidance_not_found")
    nobody = await server.call("task_promote_guidance", guidanceLogId=log, profileId="nobody")
    assert reason(nobody) == (-32004, "task.profile_not_found")
