"""Verifying and completing runs through a client: the evaluator's rows, verification steps, the gate in its modes."""

from typing import Any

import pytest
from etm_kit import Run, ad_hoc, condition, event, to, units
from loop_kit import SECRET, Server, serving
from place_kit import failed

from nova_mcp.evidence.rules import DAY_MS
from nova_mcp.evidence.store import ledger_body
from nova_mcp.memory.tasks.runs import retention
from nova_mcp.memory.tasks.tables import task_instance, task_instance_event

PAGE = "https://shop.example/start"


def codes(told: dict[str, Any]) -> list[str]:
    return [one["reasonCode"] for one in told["reasons"]]


async def test_a_run_is_completed_when_all_holds(server: Server) -> None:
    run = await Run.new(server, ad_hoc(mandatoryChecks=[{"checkId": "c1", "description": "x"}]))
    await run.done(discoveredUnits=units("a", "b"), setDiscoveryState="frozen")
    told = await run.complete()
    assert (told["ok"], told["completed"], told["completionAllowed"]) == (False, False, False)
    assert codes(told) == ["pending_mandatory_checks", "units_remaining", "no_units_checked"]
    assert told["reasonCode"] == "pending_mandatory_checks"
    assert told["currentState"] == {
        "status": "active",
        "discoveryState": "frozen",
        "progress": (await run.get())["progress"],
        "urlUnitsRemaining": 0,
        "pendingMandatoryChecks": ["c1"],
    }
    assert [one["tool"] for one in told["nextActions"]] == ["nova.task_instance_progress"] * 2
    assert (told["verificationResults"], told["evidenceSummary"]["claimedChecked"]) == ([], 0)
    assert (await run.get())["instanceRev"] == 1
    waived = {"checkId": "c1", "state": "waived", "note": "nothing to read"}
    assert (await run.done(unitUpdates=to("checked", "a"), mandatoryCheckUpdates=[waived]))[
        "reasonCode"
    ] == "units_remaining"
    told = await run.done(unitUpdates=to("excluded", "b", reason="twice"))
    assert (told["completionAllowed"], told["reasonCode"]) == (True, None)
    assert (await run.verify())["completionVerification"]["completionAllowed"] is True
    done = await run.complete(note="all seen", clientEventId="the-end")
    assert (done["ok"], done["completed"], done["completionAllowed"], done["instanceRev"]) == (True, True, True, 4)
    assert done["waivedChecks"] == [waived]
    assert done["completedAtUtc"].endswith("Z")
    again = await run.call("complete", expectedInstanceRev=3, clientEventId="the-end", note="all seen")
    assert again == {**done, "duplicate": True}
    ended = await run.get()
    assert (ended["status"], ended["completionAllowed"], ended["reasonCode"]) == ("completed", True, None)
    assert ended["completedAtUtc"] == done["completedAtUtc"]
    assert ended["evidenceSummary"] == done["evidenceSummary"]
    (row,) = await server.rows(task_instance, task_instance.c.instance_id == run.instance_id)
    assert '"schemaVersion":1' in row["evidence_snapshot"]


@pytest.mark.parametrize("mode", ["exhaustive", "threshold", "exploratory"])
async def test_nothing_done_is_never_completed(server: Server, mode: str) -> None:
    run = await Run.new(server, ad_hoc(mode))
    told = await run.complete()
    expected = {
        "exhaustive": ["discovery_not_frozen", "no_units_discovered", "no_units_checked"],
        "threshold": ["threshold_not_met"],
        "exploratory": ["minimum_not_met"],
    }
    assert codes(told) == expected[mode]
    assert codes((await run.verify())["completionVerification"]) == expected[mode]


async def test_blocked_and_failed_units_hold_an_exhaustive_run(server: Server) -> None:
    run = await Run.new(server)
    await run.done(discoveredUnits=units("a", "b", "c"), setDiscoveryState="frozen")
    await run.done(
        unitUpdates=[*to("checked", "a"), *to("blocked", "b", reason="wall"), *to("failed", "c", reason="500")]
    )
    told = await run.complete()
    assert codes(told) == ["units_blocked_or_failed"]
    assert "b, c" in told["nextActions"][0]["why"]
    await run.done(unitUpdates=[*to("discovered", "b"), *to("excluded", "c", reason="gone")])
    assert codes(await run.complete()) == ["units_remaining"]
    await run.done(unitUpdates=to("checked", "b"))
    assert (await run.complete())["completed"] is True


async def test_findings_count_only_where_something_was_seen(server: Server) -> None:
    asked = {"coverageMode": "threshold", "unitKind": "page", "stopMetric": "distinct_findings", "stopValue": 1}
    run = await Run.new(server, ad_hoc(completionCondition=asked), targetUrl=PAGE)
    await run.done(discoveredUnits=[{"url": "/a"}], findings=[{"findingKey": "f", "detail": "d", "url": "/a"}])
    assert codes(await run.complete()) == ["threshold_not_met"]
    lax = {**asked, "evidencePolicy": {"mode": "none"}}
    run = await Run.new(server, ad_hoc(completionCondition=lax), targetUrl=PAGE)
    await run.done(findings=[{"findingKey": "f", "detail": "d"}, {"findingKey": "f", "detail": "e"}])
    assert (await run.complete())["completed"] is True


async def test_pages_nobody_opened_can_be_claimed_but_not_completed(server: Server) -> None:
    source = {"kind": "explicit", "explicitUrls": ["/a", "/b"], "freezeAfterPopulate": True}
    run = await Run.new(server, ad_hoc(kind="page"), targetUrl=PAGE, unitSource=source)
    await run.done(
        unitUpdates=[{"url": "/a", "status": "checked"}, {"url": "/b", "status": "excluded", "reason": "twice"}]
    )
    told = await run.complete()
    assert codes(told) == ["url_units_remaining", "evidence_gap"]
    assert told["urlCoverage"]["gateStatus"] == "blocked"
    assert (told["urlCoverage"]["remaining"], told["urlCoverage"]["excluded"]) == (1, 1)
    assert told["currentState"]["urlUnitsRemaining"] == 1
    assert told["nextActions"][0]["tool"] == "nova.coverage_scan"
    assert "https://shop.example/a" in told["nextActions"][0]["why"]
    assert told["evidenceSummary"]["none"] == 1


@pytest.mark.parametrize(
    ("mode", "status"), [("warn", "warned"), ("shadow_block", "shadow_blocked"), ("off", "not_applicable")]
)
async def test_the_gate_in_its_other_modes(tmp_path: Any, mode: str, status: str) -> None:
    async with serving(tmp_path, tasks={"url_coverage_gate": mode}) as server:
        asked = condition(kind="page", evidencePolicy={"mode": "none"})
        source = {"kind": "explicit", "explicitUrls": ["/a"], "freezeAfterPopulate": True}
        run = await Run.new(server, ad_hoc(completionCondition=asked), targetUrl=PAGE, unitSource=source)
        await run.done(unitUpdates=[{"url": "/a", "status": "checked"}])
        told = await run.complete()
        assert (told["completed"], told["urlCoverage"]["gateStatus"], told["urlCoverage"]["gateMode"]) == (
            True,
            status,
            mode,
        )
        (row,) = await server.rows(task_instance)
        assert ("shadowRefusal" in row["evidence_snapshot"]) == (mode == "shadow_block")
        rows = await server.rows(ledger_body, ledger_body.c.tool_name == "nova.task_instance_complete")
        gates = [b'"gate_id":"task.url_coverage"' in one["body"] for one in rows]
        assert gates == [mode == "shadow_block"]


# -- verification steps

STEP = {"stepId": "s1", "tool": "tools_bundle", "description": "List the tools", "assertionType": "has_results"}


def verified(*steps: dict[str, Any]) -> dict[str, Any]:
    return ad_hoc("threshold", verification={"steps": [*steps]})


async def ready(server: Server, *steps: dict[str, Any], agent: str = "default") -> Run:
    run = await Run.new(server, verified(*steps), agentId=agent)
    await run.done(discoveredUnits=units("a"), unitUpdates=to("checked", "a"))
    return run


async def test_a_step_passes_with_report_assertion_and_a_call_on_record(server: Server) -> None:
    run = await ready(server, STEP, agent="stepper")
    told = await run.verify()
    assert (told["hasContract"], told["steps"][0]["tool"]) == (True, "nova.tools_bundle")
    assert told["verificationResults"][0] == {
        "stepId": "s1",
        "required": True,
        "state": "skipped",
        "executionObserved": False,
        "detail": "no report; run nova.tools_bundle and report what it answered",
    }
    refused = await run.complete()
    assert codes(refused) == ["verification_failed"]
    assert refused["nextActions"][0]["tool"] == "nova.tools_bundle"
    report = [{"stepId": "s1", "state": "passed", "toolResult": {"toolNames": ["x"]}}]
    told = await run.verify(evidenceReport=report)
    (result,) = told["verificationResults"]
    assert (result["state"], result["executionObserved"]) == ("inconclusive", False)
    await server.call("tools_bundle")
    (result,) = (await run.verify(evidenceReport=report))["verificationResults"]
    assert (result["state"], result["executionObserved"]) == ("inconclusive", False), (
        "another agent's call proves nothing"
    )


async def test_a_members_call_counts_and_the_report_is_not_stored(server: Server) -> None:
    step = {**STEP, "tool": "task_profiles", "targetRef": "count", "assertionType": "field_equals", "expectedValue": 0}
    run = await ready(server, step, agent="caller")
    await server.call("task_profiles", agentId="caller")
    report = [{"stepId": "s1", "state": "passed", "toolResult": {"count": 0}}]
    told = await run.verify(evidenceReport=report)
    assert told["completionVerification"]["completionAllowed"] is True
    assert (await run.verify())["completionVerification"]["reasonCode"] == "verification_failed"
    assert (await run.get())["reasonCode"] == "verification_failed"
    wrong = [{"stepId": "s1", "state": "passed", "toolResult": {"count": False}}]
    assert (await run.verify(evidenceReport=wrong))["verificationResults"][0]["state"] == "failed"
    done = await run.complete(evidenceReport=report)
    assert (done["completed"], done["verificationResults"][0]["state"]) == (True, "passed")


async def test_what_is_reported_of_a_step_is_kept_without_secrets(server: Server) -> None:
    run = await ready(server, {**STEP, "tool": "task_profiles"}, agent="teller")
    await server.call("task_profiles", agentId="teller")
    report = {"stepId": "s1", "state": "passed", "toolResult": {"toolNames": [1]}, "detail": f"signed in with {SECRET}"}
    done = await run.complete(evidenceReport=[report], clientEventId="told")
    assert done["completed"] is True
    kept = await server.rows(task_instance_event, task_instance_event.c.instance_id == run.instance_id)
    assert "signed in with" in str(kept)
    assert SECRET not in str(kept)
    again = await run.call("complete", expectedInstanceRev=1, clientEventId="told", evidenceReport=[report])
    assert again == {**done, "duplicate": True}


async def test_a_run_whose_details_are_gone_still_stands_as_it_ended(server: Server) -> None:
    run = await Run.new(server)
    await run.done(discoveredUnits=units("a"), unitUpdates=to("checked", "a"), setDiscoveryState="frozen")
    assert (await run.complete())["completed"] is True
    later = server.clock.now_ms() + 181 * DAY_MS
    assert await server.nova._db.write(retention.forget, later) >= 1
    told = await run.verify()
    assert told["completionVerification"]["currentState"]["progress"] == (await run.get())["progress"]
    assert told["completionVerification"]["currentState"]["progress"]["checkedUnits"] == 1


@pytest.mark.parametrize(
    ("pattern", "text", "state"),
    [
        ("^a.c$", "abc", "passed"),
        ("^A", "abc", "failed"),
        ("^$", "", "passed"),
        ("(a+)+$", "a" * 60 + "b", "inconclusive"),
    ],
)
async def test_patterns_have_their_time(server: Server, pattern: str, text: str, state: str) -> None:
    step = {**STEP, "tool": "task_profiles", "assertionType": "field_match", "expectedValue": pattern, "targetRef": "t"}
    run = await ready(server, step, agent="matcher")
    await server.call("task_profiles", agentId="matcher")
    told = await run.verify(evidenceReport=[{"stepId": "s1", "state": "passed", "toolResult": {"t": text}}])
    assert told["verificationResults"][0]["state"] == state


async def test_a_pattern_beyond_ascii_is_read_before_it_is_kept(server: Server) -> None:
    step = {**STEP, "assertionType": "field_match"}
    for pattern, ok in (("^[ä-ü]+$", True), ("[ä-", False), (r"[\x41-\x5a", False)):
        asked = verified({**step, "expectedValue": pattern})
        for tool, sent in (("task_instance_create", {"adHocContext": asked}), ("task_profile_upsert", asked)):
            told = await server.call(tool, **sent)
            assert told["ok"] is ok, told
            named = None if ok else "verification.steps.0.expectedValue"
            assert (told.get("reasonCode"), told.get("argument")) == (None if ok else "invalid_params", named)


async def test_reports_are_about_steps_of_the_run(server: Server) -> None:
    run = await ready(server, STEP)
    unknown = [{"stepId": "zz", "state": "passed"}]
    told = failed(await run.verify(evidenceReport=unknown))
    assert told["knownStepIds"] == ["s1"]
    failed(await run.complete(evidenceReport=unknown))
    failed(await run.verify(evidenceReport=[{"stepId": "s1", "state": "passed"}] * 2))
    failed(await run.verify(evidenceReport=[{"stepId": f"s{n}", "state": "passed"} for n in range(21)]))
    failed(await run.verify(evidenceReport=[{"stepId": "s1", "state": "passed", "toolResult": "x" * 3999}]))
    assert (await run.verify(evidenceReport=[{"stepId": "s1", "state": "passed", "toolResult": "x" * 3998}]))["ok"]
    optional = await ready(server, {**STEP, "required": False})
    assert (await optional.complete())["completed"] is True


async def test_texts_of_verify_and_complete_name_the_next_step(server: Server) -> None:
    run = await ready(server, STEP)
    told = await run.raw("complete", expectedInstanceRev=1, clientEventId=event())
    assert told.content[0].text.splitlines() == [
        "not completed",
        "verification_failed: steps not passed: s1",
        "→ nova.tools_bundle: run step s1, then send its result in evidenceReport",
    ]
    told = await run.raw("verify")
    assert told.content[0].text.splitlines()[:2] == [
        "the run can't be completed yet",
        "verification_failed: steps not passed: s1",
    ]
