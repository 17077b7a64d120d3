"""Runs of tasks through a client: every argument, refusal, error and field of create, get, progress and abort."""

import hashlib
import json
from typing import Any

import pytest
from etm_kit import Run, ad_hoc, condition, event, to, units
from loop_kit import SECRET, Server
from place_kit import DAY, failed
from sqlalchemy import update

from nova_mcp.evidence.store import ledger_body
from nova_mcp.memory.tasks.tables import (
    task_finding,
    task_guidance_log,
    task_instance,
    task_instance_event,
    task_profile,
    task_profile_term,
    task_unit,
)

PAGE = "https://shop.example/start"


async def create(server: Server, **arguments: Any) -> dict[str, Any]:
    return await server.call("task_instance_create", **arguments)


# -- create


async def test_a_run_begins_at_revision_0_with_what_it_is_held_to(server: Server) -> None:
    told = await create(
        server,
        adHocContext=ad_hoc(mandatoryChecks=[{"checkId": "c1", "description": "Read it"}]),
        targetUrl=f"{PAGE}#top",
        currentScope={"locale": "de", "tags": ["a"], "authState": "anonymous", "variables": {"n": 1}},
        overrides={"tags": {"include": ["b"], "exclude": ["a"]}, "variables": {"m": 2}},
        agentId="ada",
    )
    assert (told["ok"], told["status"], told["instanceRev"], told["discoveryState"]) == (True, "pending", 0, "unknown")
    assert (told["profileId"], told["profileRevApplied"]) == (None, None)
    context = told["effectiveContext"]
    assert context["currentScope"] == {
        "locale": "de",
        "tags": ["b"],
        "authState": "anonymous",
        "variables": {"n": 1, "m": 2},
    }
    assert context["mandatoryChecks"] == [{"checkId": "c1", "description": "Read it", "required": True}]
    canonical = json.dumps(context, sort_keys=True, separators=(",", ":"))
    assert told["effectiveContextHash"] == hashlib.sha256(canonical.encode()).hexdigest()
    assert told["taskKind"] == {"effective": None, "source": "default"}
    assert told["evidenceWindow"]["agentId"] == "ada"
    assert abs(told["evidenceWindow"]["sinceAtMs"] + 30_000 - server.clock.now_ms()) < 60_000
    assert told["seeding"] == {"unitsWritten": 0, "skipped": [], "truncated": False}
    assert told["urlCoverage"]["gateStatus"] == "not_applicable"
    assert [one["instanceId"] for one in told["taskAwareness"]["activeInstances"]] == [told["instanceId"]]
    assert len(told["instanceId"]) == 32


async def test_a_profile_is_applied_as_it_stands_and_counted(server: Server) -> None:
    await server.call(
        "task_profile_upsert",
        profileId="shop-audit",
        **ad_hoc(stableGuidance=[{"text": "Be calm"}], taskKind="ui_smoke"),
    )
    told = await create(server, profileId="shop-audit")
    assert (told["profileId"], told["profileRevApplied"]) == ("shop-audit", 1)
    assert told["taskKind"] == {"effective": "ui_smoke", "source": "profile"}
    assert told["taskAwareness"]["profileMatch"]["profileId"] == "shop-audit"
    changed = await server.call("task_profile_upsert", profileId="shop-audit", expectedContentRev=1, goal="Another")
    assert changed["contentRev"] == 2
    kept = await Run(server, told["instanceId"]).get()
    assert kept["effectiveContext"]["goal"] == "See what is there"
    assert (await server.call("task_profile_get", profileId="shop-audit"))["usageCount"] == 1
    aborted = await Run(server, told["instanceId"]).abort(outcome="failed")
    assert aborted["status"] == "failed"
    (row,) = await server.rows(task_profile, task_profile.c.profile_id == "shop-audit")
    assert (row["runs"], row["failed_runs"], row["completed_runs"]) == (1, 1, 0)


async def test_an_archived_profile_is_refused(server: Server) -> None:
    await server.call("task_profile_upsert", profileId="old-audit", archived=True, **ad_hoc())
    told = await create(server, profileId="old-audit")
    assert (told["ok"], told["applied"], told["reasonCode"]) == (False, False, "profile_archived")


async def test_what_is_wrong_with_a_creation_is_told_by_name(server: Server) -> None:
    failed(await create(server), reason="context_required")
    failed(await create(server, profileId="abc", adHocContext=ad_hoc()), reason="conflicting_arguments")
    failed(await create(server, profileId="nobody"), code=-32004, reason="task.profile_not_found")
    bad = ad_hoc(completionCondition=condition("exhaustive", stopValue=3))
    failed(await create(server, adHocContext=bad), reason="invalid_completion_condition")
    for name in ("mandatoryChecks", "completionCondition", "verification"):
        failed(await create(server, adHocContext=ad_hoc(), overrides={name: None}), reason="override_forbidden")
        patch = {"currentScopePatch": {name: []}}
        failed(await create(server, adHocContext=ad_hoc(), overrides=patch), reason="override_forbidden")
    failed(await create(server, adHocContext=ad_hoc(), overrides={"goal": "x"}))
    failed(await create(server, adHocContext=ad_hoc(), targetUrl="ftp://x"))
    failed(await create(server, adHocContext=ad_hoc(), currentScope={"unknown": 1}))
    failed(await create(server, adHocContext=ad_hoc(), currentScope={"variables": {"v": "x" * 8192}}))
    grown = {"variables": {"v": "x" * 8192}}
    failed(await create(server, adHocContext=ad_hoc(), overrides=grown), reason="size_limit")
    failed(
        await create(
            server, adHocContext=ad_hoc(mandatoryChecks=[{"checkId": f"c{n}", "description": "x"} for n in range(51)])
        ),
        reason="size_limit",
    )


@pytest.mark.parametrize(
    ("kind", "source"),
    [
        ("page", {"kind": "explicit"}),
        ("page", {"kind": "site_urls"}),
        ("page", {"kind": "site_urls", "scopeDomain": "not a host"}),
        ("page", {"kind": "explicit", "scopeDomain": "shop.example"}),
        ("item", {"kind": "explicit", "explicitUrls": [PAGE]}),
        ("item", {"kind": "site_urls", "scopeDomain": "shop.example"}),
    ],
)
async def test_units_come_from_a_whole_source_and_into_runs_of_pages_alone(
    server: Server, kind: str, source: Any
) -> None:
    failed(await create(server, adHocContext=ad_hoc(kind=kind), unitSource=source), reason="invalid_unit_source")


async def test_seeding_collapses_duplicates_and_says_what_it_left_out(server: Server) -> None:
    urls = [
        "/a",
        "https://shop.example/a?utm_source=x",
        "https://shop.example/b",
        "mailto:x",
        "https://x/" + "y" * 2100,
    ]
    source = {"kind": "explicit", "explicitUrls": urls, "freezeAfterPopulate": True}
    told = await create(server, adHocContext=ad_hoc(kind="page"), targetUrl=PAGE, unitSource=source)
    assert told["discoveryState"] == "frozen"
    assert told["seeding"]["unitsWritten"] == 2
    assert [one["reason"] for one in told["seeding"]["skipped"]] == ["unsupported_scheme", "url_too_long"]
    coverage = told["urlCoverage"]
    assert (coverage["total"], coverage["remaining"], coverage["percentCovered"]) == (2, 2, 0.0)
    assert coverage["nextUrls"] == ["https://shop.example/a", "https://shop.example/b"]
    assert (coverage["gateMode"], coverage["gateStatus"]) == ("block", "blocked")
    assert coverage["recommendedScanId"] == "nova_full_page_text_v1"
    empty = {"kind": "explicit", "explicitUrls": ["mailto:x"], "freezeAfterPopulate": True}
    told = await create(server, adHocContext=ad_hoc(kind="page"), unitSource=empty)
    assert told["discoveryState"] == "unknown"


@pytest.mark.parametrize(
    ("declared", "name", "effective", "source", "scan"),
    [
        ("legal", "Look", "legal", "declared", "nova_i18n_spellcheck_v1"),
        ("ui_smoke", "Look", "ui_smoke", "declared", "nova_structured_dom_v1"),
        ("ui_smoke", "Find typos", "content_audit", "wording", "nova_i18n_spellcheck_v1"),
        (None, "Look", None, "default", "nova_full_page_text_v1"),
    ],
)
async def test_the_kind_decides_which_scan_is_recommended(
    server: Server, declared: str | None, name: str, effective: str | None, source: str, scan: str
) -> None:
    context = ad_hoc(kind="page", displayName=name)
    told = await create(server, adHocContext=context, **({"declaredTaskKind": declared} if declared else {}))
    assert told["taskKind"] == {"effective": effective, "source": source}
    assert told["urlCoverage"]["recommendedScanId"] == scan


async def test_the_same_creation_gives_the_same_run_for_a_day(server: Server) -> None:
    name = event()
    first = await create(server, adHocContext=ad_hoc(), clientEventId=name)
    again = await create(server, adHocContext=ad_hoc(), clientEventId=name)
    assert (again["instanceId"], again["duplicate"]) == (first["instanceId"], True)
    assert "duplicate" not in first
    failed(await create(server, adHocContext=ad_hoc("threshold"), clientEventId=name), reason="event_id_reused")
    other = await create(server, adHocContext=ad_hoc(), clientEventId=name, agentId="other")
    assert other["instanceId"] != first["instanceId"]
    server.clock.shift_ms += DAY + 1000
    later = await create(server, adHocContext=ad_hoc(), clientEventId=name)
    assert later["instanceId"] != first["instanceId"]


# -- progress


async def test_a_report_is_applied_and_answered_in_full(server: Server) -> None:
    run = await Run.new(server, ad_hoc(mandatoryChecks=[{"checkId": "c1", "description": "x"}]))
    told = await run.report(
        discoveredUnits=[*units("a", "b"), {"unitKey": "c", "label": "C"}],
        unitUpdates=[*to("checked", "a"), *to("blocked", "b", reason="login wall")],
        findings=[{"findingKey": "f", "detail": "typo", "unitKey": "a", "severity": "low"}],
        mandatoryCheckUpdates=[{"checkId": "c1", "state": "satisfied"}],
        resumeStateDelta={"cursor": "3", "lastAction": "looked", "checkpoint": {"n": 1}},
        setDiscoveryState="partial",
        note="halfway",
    )
    assert told == {
        "ok": True,
        "applied": True,
        "instanceId": run.instance_id,
        "instanceRev": 1,
        "status": "active",
        "discoveryState": "partial",
        "progress": {
            "totalUnits": 3,
            "checkedUnits": 1,
            "excludedUnits": 0,
            "remainingUnits": 1,
            "blockedUnits": 1,
            "failedUnits": 0,
            "lateUnits": 0,
            "distinctFindings": 1,
            "percentComplete": 33,
        },
        "completionAllowed": False,
        "reasonCode": "discovery_not_frozen",
        "duplicate": False,
    }


async def test_a_repeated_event_gets_its_answer_again_and_changes_nothing(server: Server) -> None:
    run, name = await Run.new(server), event()
    first = await run.report(clientEventId=name, discoveredUnits=units("a"))
    await run.done(discoveredUnits=units("b"))
    again = await run.call("progress", expectedInstanceRev=0, clientEventId=name, discoveredUnits=units("a"))
    assert again == {**first, "duplicate": True}
    assert (await run.get())["instanceRev"] == 2
    other = await run.call("progress", expectedInstanceRev=2, clientEventId=name, discoveredUnits=units("c"))
    failed(other, reason="event_id_reused")
    failed(await run.call("abort", expectedInstanceRev=2, clientEventId=name, reason="why"), reason="event_id_reused")


async def test_a_stale_revision_is_refused_with_the_current_one(server: Server) -> None:
    run = await Run.new(server)
    await run.done(note="on")
    for tool, more in (("progress", {"note": "x"}), ("abort", {"reason": "why"})):
        told = await run.call(tool, expectedInstanceRev=0, clientEventId=event(), **more)
        assert (told["ok"], told["applied"], told["reasonCode"], told["instanceRev"]) == (
            False,
            False,
            "rev_conflict",
            1,
        )
    told = await run.call("complete", expectedInstanceRev=0, clientEventId=event())
    assert (told["completed"], told["reasonCode"], told["instanceRev"]) == (False, "rev_conflict", 1)


async def test_a_refused_or_wrong_call_may_be_sent_again_under_its_id(server: Server) -> None:
    run, name = await Run.new(server), event()
    assert not (await run.call("progress", expectedInstanceRev=5, clientEventId=name, note="x"))["ok"]
    failed(await run.call("progress", expectedInstanceRev=0, clientEventId=name), reason="empty_update")
    assert (await run.call("progress", expectedInstanceRev=0, clientEventId=name, note="x"))["instanceRev"] == 1


async def test_errors_name_the_offenders_and_leave_everything_as_it_was(server: Server) -> None:
    run = await Run.new(server, ad_hoc(mandatoryChecks=[{"checkId": "c1", "description": "x"}]))
    await run.done(discoveredUnits=units("a", "b"), unitUpdates=to("checked", "a"), setDiscoveryState="frozen")
    before = await run.get(eventLimit=100, unitFilter="checked")

    async def wrong(reason: str, *offenders: str, **report: Any) -> None:
        told = failed(await run.report(note="kept only if all is", **report), reason=reason)
        assert told.get("offenders", []) == list(offenders)

    await wrong("unknown_unit", "x", "y", unitUpdates=[*to("checked", "x", "b"), *to("checked", "y")])
    await wrong("unknown_unit", "x", findings=[{"findingKey": "f", "detail": "d", "unitKey": "x"}])
    await wrong("unknown_unit", "https://a.example/", unitUpdates=[{"url": "https://a.example/", "status": "checked"}])
    await wrong("illegal_unit_transition", "a checked→blocked", unitUpdates=to("blocked", "a", reason="why"))
    await wrong("reason_required", "b", unitUpdates=to("excluded", "b"))
    await wrong("unknown_check", "zz", mandatoryCheckUpdates=[{"checkId": "zz", "state": "satisfied"}])
    await wrong("note_required", "c1", mandatoryCheckUpdates=[{"checkId": "c1", "state": "waived", "note": "short"}])
    await wrong("illegal_discovery_transition", "frozen→partial", setDiscoveryState="partial")
    await wrong("invalid_unit_locator", "https://a.example/", discoveredUnits=[{"url": "https://a.example/"}])
    await wrong("size_limit", discoveredUnits=units(*map(str, range(501))))
    await wrong("size_limit", unitUpdates=to("checked", *["b"] * 501))
    await wrong("size_limit", findings=[{"findingKey": str(n), "detail": "d"} for n in range(101)])
    await wrong("size_limit", mandatoryCheckUpdates=[{"checkId": "c1", "state": "failed"}] * 51)
    await wrong("invalid_params", resumeStateDelta={"checkpoint": "x" * 4096})
    await wrong("invalid_params", unitUpdates=[{"status": "checked"}])
    await wrong("invalid_params", unitUpdates=[{"unitKey": "a", "url": "https://a.example/", "status": "checked"}])
    after = await run.get(eventLimit=100, unitFilter="checked")
    assert {**after, "taskAwareness": None} == {**before, "taskAwareness": None}


async def test_a_run_takes_5000_units(server: Server) -> None:
    run = await Run.new(server)
    for part in range(10):
        await run.done(discoveredUnits=units(*(f"{part}-{n}" for n in range(500))))
    failed(await run.report(discoveredUnits=units("one more")), reason="size_limit")
    assert (await run.done(discoveredUnits=units("0-0")))["progress"]["totalUnits"] == 5000


async def test_the_resume_state_has_8_kib_and_null_removes(server: Server) -> None:
    run = await Run.new(server)
    await run.done(resumeStateDelta={"checkpoint": "x" * 4000, "lastProcessedUrl": "https://a.example/" + "y" * 2000})
    await run.done(resumeStateDelta={"cursor": "z" * 500, "lastAction": "w" * 500})
    await run.done(resumeStateDelta={"checkpoint": None, "cursor": None})
    assert set((await run.get())["resumeState"]) == {"lastProcessedUrl", "lastAction"}


async def test_units_found_after_freezing_are_late(server: Server) -> None:
    run = await Run.new(server)
    await run.done(discoveredUnits=units("a"), setDiscoveryState="frozen")
    told = await run.done(discoveredUnits=units("b"))
    assert (told["progress"]["lateUnits"], told["progress"]["totalUnits"], told["discoveryState"]) == (1, 2, "frozen")


async def test_page_runs_take_addresses_in_any_spelling(server: Server) -> None:
    run = await Run.new(server, ad_hoc(kind="url"), targetUrl=PAGE)
    await run.done(discoveredUnits=[{"url": "/a"}, {"url": "https://shop.example/b/?utm_medium=x"}])
    told = await run.done(unitUpdates=[{"url": "HTTPS://shop.example:443/a", "status": "checked"}])
    assert told["progress"]["checkedUnits"] == 1
    (unit,) = (await run.get(unitFilter="checked"))["units"]
    assert unit == {
        "unitKey": f"url:{hashlib.sha256(b'https://shop.example/a').hexdigest()[:16]}",
        "url": "https://shop.example/a",
        "label": "",
        "status": "checked",
        "reason": None,
        "grade": "none",
        "covered": False,
    }
    await run.done(unitUpdates=[{"unitKey": unit["unitKey"], "status": "checked"}])
    for wrong in (
        {"unitKey": "x"},
        {"url": "no address"},
        {"url": "/c", "locator": {"type": "selector", "value": "#a"}},
    ):
        failed(await run.report(discoveredUnits=[wrong]), reason="invalid_unit_locator")


# -- reading


async def test_a_run_is_read_page_by_page(server: Server) -> None:
    run = await Run.new(server, ad_hoc(mandatoryChecks=[{"checkId": "c1", "description": "Read it"}]), targetUrl=PAGE)
    await run.done(discoveredUnits=units(*"abcde"), unitUpdates=to("excluded", "c", reason="twice"))
    await run.done(mandatoryCheckUpdates=[{"checkId": "c1", "state": "waived", "note": "not on this site"}])
    first = await run.get(unitLimit=2)
    assert ([one["unitKey"] for one in first["units"]], first["events"]) == (["a", "b"], [])
    second = await run.get(unitLimit=2, unitCursor=first["nextUnitCursor"], eventLimit=1)
    assert ([one["unitKey"] for one in second["units"]], second["nextUnitCursor"]) == (["d", "e"], None)
    (newest,) = second["events"]
    assert (newest["instanceRev"], newest["kind"], newest["agentId"]) == (2, "progress", "default")
    assert newest["delta"]["checks"] == {"c1": {"state": "waived", "note": "not on this site"}}
    assert (await run.get(unitFilter="excluded"))["units"][0]["reason"] == "twice"
    assert (await run.get(unitLimit=0))["units"] == []
    assert (await run.get(unitFilter="uncovered"))["units"] == []
    failed(await run.get(unitCursor="zz"))
    whole = await run.get()
    assert set(whole) == {
        *("ok", "instanceId", "profileId", "profileRevApplied", "instanceRev", "status", "discoveryState", "targetUrl"),
        *("progress", "mandatoryChecksState", "completionAllowed", "reasonCode", "resumeState", "members"),
        *("effectiveContext", "effectiveContextHash", "units", "nextUnitCursor", "events", "evidenceSummary"),
        *("urlCoverage", "taskAwareness", "startedAtUtc", "lastActivityAtUtc", "completedAtUtc"),
    }
    assert whole["mandatoryChecksState"] == [
        {
            "checkId": "c1",
            "description": "Read it",
            "required": True,
            "state": "waived",
            "note": "not on this site",
        }
    ]
    assert whole["targetUrl"] == PAGE
    assert (whole["status"], whole["completedAtUtc"]) == ("active", None)


async def test_units_of_kinds_that_nobody_can_see_are_unknown(server: Server) -> None:
    run = await Run.new(server)
    await run.done(discoveredUnits=units("a"), unitUpdates=to("checked", "a"))
    summary = (await run.get())["evidenceSummary"]
    assert (summary["claimedChecked"], summary["observedChecked"], summary["unknown"]) == (1, 0, 1)
    assert summary["topExceptions"] == [{"unitKey": "a", "grade": "unknown", "reasonCode": "no_locator"}]
    assert summary["gapPercent"] == 100.0


async def test_agents_join_by_reporting(server: Server) -> None:
    run = await Run.new(server, agentId="ada")
    helper = Run(server, run.instance_id, 0, "bob")
    assert (await helper.get())["taskAwareness"]["activeInstances"] == []
    await helper.done(note="helping")
    told = await helper.get()
    assert [one["agentId"] for one in told["members"]] == ["ada", "bob"]
    assert [one["instanceId"] for one in told["taskAwareness"]["activeInstances"]] == [run.instance_id]


async def test_unknown_runs_are_not_found(server: Server) -> None:
    nobody = Run(server, "0" * 32)
    for told in (
        await nobody.get(),
        await nobody.verify(),
        await nobody.report(note="x"),
        await nobody.complete(),
        await nobody.abort(),
    ):
        failed(told, code=-32004, reason="task.instance_not_found")
    failed(await Run(server, "no id").get())


# -- ending early


@pytest.mark.parametrize("outcome", ["aborted", "failed"])
async def test_a_run_that_is_given_up_takes_no_more(server: Server, outcome: str) -> None:
    run = await Run.new(server)
    await run.done(note="on")
    told = await run.abort(outcome=outcome, clientEventId="give-up")
    assert told == {
        "ok": True,
        "status": outcome,
        "previousStatus": "active",
        "instanceId": run.instance_id,
        "instanceRev": 2,
    }
    again = await run.call(
        "abort", expectedInstanceRev=1, clientEventId="give-up", reason="not needed", outcome=outcome
    )
    assert again == {**told, "duplicate": True}
    for refused in (await run.report(note="x"), await run.abort()):
        assert (refused["ok"], refused["applied"], refused["reasonCode"]) == (False, False, "terminal_status")
        assert (refused["instanceRev"], refused["status"]) == (2, outcome)
    refused = await run.complete()
    assert (refused["ok"], refused["completed"], refused["reasonCode"]) == (False, False, "terminal_status")
    ended = await run.get()
    assert (ended["status"], ended["completionAllowed"], ended["reasonCode"]) == (outcome, False, "terminal_status")
    assert ended["taskAwareness"]["activeInstances"] == [] or all(
        one["instanceId"] != run.instance_id for one in ended["taskAwareness"]["activeInstances"]
    )


async def test_the_ledger_says_what_the_store_decided(server: Server) -> None:
    run = await Run.new(server, agentId="ledger-reader")
    await run.report(note="x")
    await run.call("progress", expectedInstanceRev=0, clientEventId=event(), note="x")
    await run.report()
    found = await server.rows(ledger_body, ledger_body.c.agent_id == "ledger-reader")
    assert [(one["tool_name"].rpartition("_")[2], one["outcome_kind"], one["reason_code"]) for one in found] == [
        ("create", "ok", None),
        ("progress", "ok", None),
        ("progress", "ok", "rev_conflict"),
        ("progress", "invalid", "empty_update"),
    ]


async def test_the_texts_say_what_to_do(server: Server) -> None:
    run = await Run.new(server, agentId="texts")
    told = await run.raw("progress", expectedInstanceRev=7, clientEventId=event(), note="x")
    assert told.content[0].text.startswith("not applied, rev_conflict: the run is at revision 0 by now")
    told = await run.raw("progress", expectedInstanceRev=0, clientEventId=event(), discoveredUnits=units("a"))
    assert told.content[0].text.splitlines() == [
        "revision 1, active, discovery unknown",
        "1 units: 0 checked, 0 excluded, 1 remaining (0 %) · not done: discovery_not_frozen",
    ]
    told = await run.raw("get")
    assert "discovered unknown a" in told.content[0].text


async def test_stored_secrets_are_not_kept_in_a_run(server: Server) -> None:
    run = await Run.new(server, ad_hoc(goal=f"Sign in with {SECRET}"))
    await run.done(
        discoveredUnits=[{"unitKey": "a", "label": SECRET}],
        unitUpdates=to("blocked", "a", reason=f"needs {SECRET}"),
        findings=[{"findingKey": "f", "detail": f"shows {SECRET}"}],
        resumeStateDelta={"checkpoint": {"typed": SECRET}},
        note=SECRET,
    )
    await run.abort(reason=f"because of {SECRET}")
    kept = [
        str(row)
        for table in (task_instance, task_instance_event, task_unit, task_finding)
        for row in await server.rows(table, table.c.instance_id == run.instance_id)
    ]
    assert len(kept) == 5
    assert not [one for one in kept if SECRET in one]


async def test_stored_secrets_are_not_kept_in_a_profile_or_in_guidance(server: Server) -> None:
    wanted = ad_hoc(
        goal=f"Sign in with {SECRET}",
        stableGuidance=[{"kind": "workflow", "text": f"Type {SECRET} first"}],
        mandatoryChecks=[{"checkId": "c1", "description": f"{SECRET} works"}],
        knownExceptions=[{"text": f"{SECRET} is old"}],
    )
    told = await server.call("task_profile_upsert", profileId="with-secret", **wanted)
    assert told["ok"], told
    payload = {"text": f"Always type {SECRET}", "rationale": SECRET, "appliesTo": SECRET, "tags": [SECRET]}
    said = {"guidanceKind": "workflow", "sourceKind": "user", "profileId": "with-secret", "payload": payload}
    logged = await server.call("task_guidance_log_add", **said)
    assert logged["ok"], logged
    refused = {"guidanceLogId": logged["guidanceLogId"], "profileId": "with-secret", "decision": "reject"}
    await server.call("task_promote_guidance", **refused, reason=f"shows {SECRET}")
    kept = [
        str(row) for table in (task_profile, task_profile_term, task_guidance_log) for row in await server.rows(table)
    ]
    assert any("with-secret" in one for one in kept)
    assert not [one for one in kept if SECRET.casefold() in one.casefold()]


async def test_awareness_stays_within_2000_characters(server: Server) -> None:
    long = ad_hoc(displayName="N" * 120)
    for number in range(4):
        run = await Run.new(server, long, agentId="busy", targetUrl=f"{PAGE}/{number}{'x' * 500}")
        await run.done(resumeStateDelta={"cursor": "c" * 500, "lastAction": "a" * 500, "checkpoint": ["k" * 1000]})
    block = (await run.get())["taskAwareness"]
    assert len(json.dumps(block, separators=(",", ":"))) <= 2000
    assert [one["instanceRev"] for one in block["activeInstances"]] == [1] * len(block["activeInstances"])
    assert block["activeInstances"][0]["instanceId"] == run.instance_id
    assert 1 <= len(block["activeInstances"]) <= 3


async def test_another_principal_sees_nothing_of_it(server: Server) -> None:
    run = await Run.new(server)
    theirs = (
        update(task_instance).where(task_instance.c.instance_id == run.instance_id).values(principal="somebody else")
    )
    await server.nova._db.write(lambda conn: conn.execute(theirs))
    failed(await run.get(), code=-32004, reason="task.instance_not_found")
