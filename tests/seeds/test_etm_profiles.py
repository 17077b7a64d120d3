"""Every row of the contract about profiles of recurring tasks, through a real client and without any page."""

import itertools
from collections.abc import AsyncIterator
from typing import Any

import pytest
from loop_kit import Server, serving

from nova_mcp.memory.tasks.profiles import store
from nova_mcp.memory.tasks.tables import task_profile

DAY_MS = 24 * 60 * 60 * 1000
PAGES = {"coverageMode": "exhaustive", "unitKind": "page", "stopMetric": "all_units_processed"}
NEW = {
    "taskType": "proofreading",
    "displayName": "Spelling audit",
    "goal": "Correct typing mistakes in articles",
    "completionCondition": PAGES,
}
COUNT = itertools.count(1)


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory, anyio_backend: str) -> AsyncIterator[Server]:
    async with serving(tmp_path_factory.mktemp("profiles")) as running:
        yield running


@pytest.fixture
def name() -> str:
    """A word and an id that no other test uses."""
    return f"word{next(COUNT)}zq"


async def made(server: Server, name: str, **given: Any) -> dict[str, Any]:
    wanted = {**NEW, "displayName": f"Spelling audit {name}", "profileId": name, **given}
    answer = await server.call("task_profile_upsert", **wanted)
    assert answer["ok"], answer
    return answer


def reason(answer: dict[str, Any]) -> tuple[int | None, str | None]:
    assert answer["ok"] is False
    return answer.get("errorCode"), answer.get("reasonCode")


# -- writing


async def test_a_profile_is_created_and_reads_back_whole(server: Server, name: str) -> None:
    whole = {
        "domain": "https://www.Shop.example/cart",
        "platform": "shopware",
        "taskKind": "content_audit",
        "stableGuidance": [{"guidanceId": "g1", "kind": "style", "text": "Names stay."}],
        "mandatoryChecks": [{"checkId": "imprint", "description": "The imprint was read"}],
        "knownExceptions": [{"text": "Quotes"}],
        "verification": {
            "steps": [
                {"stepId": "s", "tool": "read_text", "description": "Again", "assertionType": "has_results"},
            ]
        },
        "confidence": 0.8,
    }
    answer = await made(server, name, **whole)
    assert answer == {"ok": True, "profileId": name, "contentRev": 1, "action": "created"}
    kept = await server.call("task_profile_get", profileId=name)
    assert kept["domain"] == "shop.example"
    assert kept["completionCondition"] == {
        **PAGES,
        "stopValue": None,
        "evidencePolicy": {"mode": "require_observed", "maxGapPercent": 0, "treatUnknownAs": "gap"},
    }
    assert kept["mandatoryChecks"] == [{**whole["mandatoryChecks"][0], "required": True}]
    assert kept["stableGuidance"] == whole["stableGuidance"]
    assert kept["knownExceptions"] == whole["knownExceptions"]
    assert kept["verification"]["steps"][0]["tool"] == "nova.read_text"
    assert (kept["taskKind"], kept["platform"], kept["contentRev"]) == ("content_audit", "shopware", 1)
    assert (kept["confidence"], kept["usageCount"], kept["archived"]) == (0.8, 0, False)
    assert kept["confidenceTuning"] == {
        "base": 0.8,
        "effective": 0.8,
        "completed": 0,
        "failed": 0,
        "idleDays": pytest.approx(0, abs=0.1),
        "recencyFactor": 1.0,
    }
    assert {"createdAtUtc", "updatedAtUtc", "goal", "displayName", "taskType"} <= kept.keys()


async def test_a_profile_without_an_id_gets_a_readable_one(server: Server) -> None:
    answer = await server.call("task_profile_upsert", **{**NEW, "displayName": "Preise prüfen"})
    assert answer["profileId"].startswith("preise-prufen-")
    assert (await server.call("task_profile_get", profileId=answer["profileId"]))["displayName"] == "Preise prüfen"


@pytest.mark.parametrize("missing", ["taskType", "displayName", "goal", "completionCondition"])
async def test_a_new_profile_needs_what_a_task_is(server: Server, name: str, missing: str) -> None:
    given = {key: value for key, value in NEW.items() if key != missing}
    answer = await server.call("task_profile_upsert", profileId=name, **given)
    assert reason(answer) == (-32602, "invalid_params")
    assert missing in answer["message"]
    assert reason(await server.call("task_profile_get", profileId=name)) == (-32004, "task.profile_not_found")


@pytest.mark.parametrize("cleared", ["taskType", "displayName", "goal", "completionCondition"])
async def test_what_a_profile_needs_can_not_be_cleared(server: Server, name: str, cleared: str) -> None:
    await made(server, name)
    answer = await server.call("task_profile_upsert", profileId=name, expectedContentRev=1, **{cleared: None})
    assert reason(answer) == (-32602, "invalid_params")


async def test_a_given_field_replaces_the_whole_field_and_null_clears_it(server: Server, name: str) -> None:
    guidance = [{"guidanceId": "a", "text": "One"}, {"guidanceId": "b", "text": "Two"}]
    await made(server, name, stableGuidance=guidance, domain="shop.example", platform="x", taskKind="legal")
    change = {"profileId": name, "expectedContentRev": 1}
    answer = await server.call("task_profile_upsert", **change, stableGuidance=guidance[1:], domain=None, taskKind=None)
    assert (answer["action"], answer["contentRev"]) == ("updated", 2)
    kept = await server.call("task_profile_get", profileId=name)
    assert [one["guidanceId"] for one in kept["stableGuidance"]] == ["b"]
    assert (kept["domain"], kept["taskKind"], kept["platform"], kept["goal"]) == (None, None, "x", NEW["goal"])
    cleared = await server.call("task_profile_upsert", profileId=name, expectedContentRev=2, stableGuidance=None)
    assert cleared["contentRev"] == 3
    assert (await server.call("task_profile_get", profileId=name))["stableGuidance"] == []


async def test_the_revision_rises_only_when_the_content_changed(server: Server, name: str) -> None:
    await made(server, name)
    same = await server.call("task_profile_upsert", profileId=name, expectedContentRev=1, goal=f"  {NEW['goal']} ")
    assert (same["action"], same["contentRev"]) == ("unchanged", 1)


async def test_a_change_names_the_revision_it_was_made_from(server: Server, name: str) -> None:
    await made(server, name)
    blind = await server.call("task_profile_upsert", profileId=name, goal="Other")
    assert reason(blind) == (-32602, "expected_content_rev_required")
    late = await server.call("task_profile_upsert", profileId=name, expectedContentRev=7, goal="Other")
    assert (late["ok"], late["applied"], late["reasonCode"]) == (False, False, "content_rev_conflict")
    assert late["currentContentRev"] == 1
    assert "errorCode" not in late
    assert (await server.call("task_profile_get", profileId=name))["goal"] == NEW["goal"]


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"completionCondition": {**PAGES, "stopValue": 3}}, "invalid_completion_condition"),
        ({"domain": "co.uk"}, "invalid_domain"),
        ({"knownExceptions": [{"text": f"e{n}"} for n in range(51)]}, "size_limit"),
        ({"mandatoryChecks": [{"checkId": f"c{n}", "description": "d"} for n in range(51)]}, "size_limit"),
        ({"stableGuidance": [{"text": f"g{n}"} for n in range(51)]}, "size_limit"),
        ({"confidence": 1}, "invalid_params"),
        ({"confidence": 0.09}, "invalid_params"),
        ({"profileId": "Ab"}, "invalid_params"),
        ({"taskKind": "audit"}, "invalid_params"),
        ({"platform": "Big"}, "invalid_params"),
        ({"sourceInstanceId": "f" * 32}, "task.instance_not_found"),
        ({"usageCount": 5}, "invalid_params"),
    ],
)
async def test_what_is_refused_leaves_the_store_as_it_was(
    server: Server, name: str, given: dict[str, Any], code: str
) -> None:
    before = await server.rows(task_profile)
    answer = await server.call("task_profile_upsert", **{**NEW, "profileId": name, **given})
    assert reason(answer)[1] == code
    assert await server.rows(task_profile) == before


async def test_a_profile_that_would_outgrow_its_limit_is_refused_in_its_own_call(server: Server, name: str) -> None:
    steps = [
        {
            "stepId": f"s{n}",
            "tool": "read_text",
            "description": "d",
            "assertionType": "has_results",
            "args": {"x": "x" * 6000},
        }
        for n in range(10)
    ]
    await made(server, name, verification={"steps": steps})
    more = {"stableGuidance": [{"text": f"{n} {'y' * 480}"} for n in range(20)]}
    answer = await server.call("task_profile_upsert", profileId=name, expectedContentRev=1, **more)
    assert reason(answer) == (-32602, "size_limit")
    assert (await server.call("task_profile_get", profileId=name))["contentRev"] == 1


async def test_a_run_fills_what_was_not_given(server: Server, name: str) -> None:
    await made(server, name, domain="shop.example", stableGuidance=[{"guidanceId": "a", "text": "One"}])
    profile = await server.call("task_profile_get", profileId=name)
    run = await server.call("task_instance_create", profileId=name, currentScope={"locale": "de"})
    wish = {"sourceInstanceId": run["instanceId"], "goal": "Mine", "profileId": f"{name}2"}
    assert (await server.call("task_profile_upsert", **wish))["action"] == "created"
    copy = await server.call("task_profile_get", profileId=f"{name}2")
    keys = ("taskType", "displayName", "domain", "platform", "taskKind", "completionCondition")
    keys += ("stableGuidance", "mandatoryChecks", "knownExceptions", "verification")
    assert copy["goal"] == "Mine"
    assert {key: copy[key] for key in keys} == {key: profile[key] for key in keys}
    patched = await server.call("task_profile_upsert", **{**wish, "expectedContentRev": 1, "goal": profile["goal"]})
    assert (patched["action"], patched["contentRev"]) == ("updated", 2)


# -- recognising


async def test_a_described_task_is_recognised(server: Server, name: str) -> None:
    await made(
        server,
        name,
        domain="shop.example",
        mandatoryChecks=[{"checkId": "imprint", "description": "Read"}],
        stableGuidance=[{"text": "Names stay."}],
    )
    answer = await server.call(
        "task_match",
        taskDescription=f"Please check the spelling audit {name}",
        targetUrl="https://shop.example/blog?page=2",
        currentScope={"locale": "de"},
        agentId="newcomer",
    )
    best = answer["bestMatch"]
    assert best == answer["matches"][0]
    assert (best["profileId"], best["accepted"], best["rejectedBecause"]) == (name, True, None)
    assert best["scoreBreakdown"].keys() == {"text", "domain", "platform"}
    assert (best["scoreBreakdown"]["domain"], best["scoreBreakdown"]["platform"]) == (1.0, None)
    assert best.keys() == {
        *("profileId", "displayName", "domain", "platform", "finalScore"),
        *("accepted", "rejectedBecause", "scoreBreakdown"),
    }
    assert (answer["thresholdUsed"], answer["currentScope"]) == (0.6, {"locale": "de"})
    assert answer["count"] == len(answer["matches"]) <= 3
    told = answer["taskAwareness"]["profileMatch"]
    assert told.keys() == {
        *("profileId", "displayName", "taskType", "finalScore", "confidence", "goal", "guidanceSummary"),
        *("requiredChecks", "completionCondition", "knownExceptionsCount"),
    }
    assert told["requiredChecks"] == [{"checkId": "imprint", "description": "Read"}]
    assert answer["taskAwareness"]["activeInstances"] == []
    run = await server.call("task_instance_create", profileId=name, agentId="newcomer")
    again = await server.call("task_match", taskDescription=f"spelling audit {name}", agentId="newcomer")
    assert [one["instanceId"] for one in again["taskAwareness"]["activeInstances"]] == [run["instanceId"]]


async def test_a_task_of_another_place_or_platform_is_not_accepted(server: Server, name: str) -> None:
    await made(server, name, domain="shop.example", platform="shopware", taskType=name)
    asked = {"taskDescription": "spelling audit", "taskType": name}
    for place, why in (
        ({"domain": "www.other.example"}, "domain_mismatch"),
        ({"targetUrl": "http://other.example/"}, "domain_mismatch"),
        ({"platform": "typo3"}, "platform_mismatch"),
    ):
        answer = await server.call("task_match", **asked, **place)
        assert [(one["accepted"], one["rejectedBecause"]) for one in answer["matches"]] == [(False, why)]
        assert (answer["bestMatch"], answer["taskAwareness"]["profileMatch"]) == (None, None)
    here = await server.call("task_match", **asked, domain="blog.shop.example", platform="shopware")
    assert here["bestMatch"]["scoreBreakdown"] == {"text": 1.0, "domain": 0.8, "platform": 1.0}
    weak = await server.call("task_match", taskDescription="audit of taxes and salaries", taskType=name)
    assert weak["matches"][0]["rejectedBecause"] == "weak_text"
    between = await server.call("task_match", taskDescription="spelling taxes", taskType=name)
    assert between["matches"][0]["rejectedBecause"] == "below_threshold"
    nothing = await server.call("task_match", taskDescription="spelling audit", taskType="nothing like it")
    assert (nothing["bestMatch"], nothing["matches"], nothing["count"]) == (None, [], 0)


async def test_a_host_that_is_none_and_a_scope_that_is_too_large_are_refused(server: Server) -> None:
    asked = {"taskDescription": "spelling"}
    assert reason(await server.call("task_match", **asked, domain="co.uk")) == (-32602, "invalid_domain")
    large = await server.call("task_match", **asked, currentScope={"tags": ["x" * 8192]})
    assert reason(large) == (-32602, "size_limit")
    for wrong in ({"targetUrl": "ftp://a.example/"}, {"targetUrl": "shop"}, {"taskDescription": " ab "}):
        assert reason(await server.call("task_match", **{**asked, **wrong})) == (-32602, "invalid_params")


async def test_search_scores_and_leaves_weak_matches_out(server: Server, name: str) -> None:
    await made(server, name, stableGuidance=[{"text": "Names stay."}])
    await made(server, f"{name}x", displayName=f"{name} alone", goal="Nothing of it")
    found = await server.call("task_search", query=f"spelling audit mistakes {name}", limit=50)
    rows = {one["profileId"]: one for one in found["candidates"]}
    assert rows[name].keys() == {
        *("profileId", "displayName", "goal", "taskType", "domain", "score", "accepted", "hasGuidance", "usageCount"),
    }
    assert (rows[name]["hasGuidance"], rows[name]["accepted"], rows[name]["usageCount"]) == (True, True, 0)
    assert found["minScore"] == 0.3
    assert found["count"] == len(found["candidates"])
    assert all(one["score"] >= 0.3 for one in found["candidates"])
    assert f"{name}x" not in rows
    assert found["omittedWeakMatches"] >= 1
    one = await server.call("task_search", query=f"spelling audit {name}", limit=1)
    assert [row["profileId"] for row in one["candidates"]] == [name]


async def test_an_archived_profile_is_neither_matched_nor_listed_unless_asked_for(server: Server, name: str) -> None:
    await made(server, name, taskType=name)
    archived = await server.call("task_profile_upsert", profileId=name, expectedContentRev=1, archived=True)
    assert (archived["action"], archived["contentRev"]) == ("updated", 1)
    assert (await server.call("task_match", taskDescription=f"spelling audit {name}", taskType=name))["matches"] == []
    assert (await server.call("task_profiles", taskType=name))["profiles"] == []
    (row,) = (await server.call("task_profiles", taskType=name, includeArchived=True))["profiles"]
    assert row["archived"] is True


async def test_profiles_are_listed_in_pages(server: Server, name: str) -> None:
    for number in range(3):
        server.clock.shift_ms += 1000
        await made(server, f"{name}{number}", taskType=name, domain="shop.example", platform="p")
    first = await server.call("task_profiles", taskType=name, limit=2)
    assert ([one["profileId"] for one in first["profiles"]], first["hasMore"]) == ([f"{name}2", f"{name}1"], True)
    assert first["count"] == 2
    rest = await server.call("task_profiles", taskType=name, limit=2, offset=2)
    assert ([one["profileId"] for one in rest["profiles"]], rest["hasMore"]) == ([f"{name}0"], False)
    assert rest["profiles"][0].keys() == {
        *("profileId", "taskType", "displayName", "domain", "platform", "goal", "confidence", "contentRev"),
        *("usageCount", "archived", "updatedAtUtc"),
    }
    filtered = await server.call("task_profiles", taskType=name, domain="www.shop.example", platform="p")
    assert filtered["count"] == 3
    assert (await server.call("task_profiles", taskType=name, domain="other.example"))["count"] == 0
    assert (await server.call("task_profiles", taskType=name, platform="q"))["count"] == 0


async def test_confidence_moves_with_runs_and_time_and_is_never_written_back(server: Server, name: str) -> None:
    await made(server, name)
    now = server.clock.now_ms()

    def ran(conn: Any) -> None:
        for outcome in ("completed", "completed", "failed", "aborted"):
            store.note_started(conn, "local", name)
            store.note_ended(conn, "local", name, outcome, now)

    await server.nova._db.write(ran)
    tuning = (await server.call("task_profile_get", profileId=name))["confidenceTuning"]
    assert (tuning["completed"], tuning["failed"]) == (2, 1)
    assert tuning["effective"] == pytest.approx((4 * 0.5 + 2) / 7, abs=1e-3)
    (before,) = await server.rows(task_profile, task_profile.c.profile_id == name)
    server.clock.shift_ms += 365 * DAY_MS
    later = await server.call("task_profile_get", profileId=name)
    server.clock.shift_ms -= 365 * DAY_MS
    assert later["confidenceTuning"]["recencyFactor"] == 0.7
    assert later["confidence"] == pytest.approx(0.7 * 4 / 7, abs=1e-3)
    assert later["usageCount"] == 4
    assert await server.rows(task_profile, task_profile.c.profile_id == name) == [before]


async def test_a_profile_nobody_knows_is_not_found(server: Server) -> None:
    assert reason(await server.call("task_profile_get", profileId="nobody")) == (-32004, "task.profile_not_found")
