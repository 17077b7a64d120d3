"""Runs and pages: what members open, read and scan is what a run of pages can be completed with, and nothing else."""

from typing import Any

from etm_kit import Run, ad_hoc, condition
from loop_kit import Server
from place_kit import Place, failed

from nova_mcp.evidence.store import ledger_body

TEXT = (
    "<!doctype html><html lang=en><title>{0}</title><h1>{0}</h1><p>All there is to say about {0}, at some length.</p>"
)
PAGES = {path: TEXT.format(path) for path in ("/plain", "/a", "/b", "/c")}


async def page_run(place: Place, *paths: str, **context: Any) -> Run:
    source = {"kind": "explicit", "explicitUrls": [*paths], "freezeAfterPopulate": True}
    asked = context.pop("completionCondition", condition(kind="page"))
    return await Run.new(
        place.server, ad_hoc(completionCondition=asked, **context), targetUrl=f"{place.origin}/", unitSource=source
    )


async def grades(run: Run, wanted: str = "checked") -> dict[str, str]:
    told = await run.get(unitFilter=wanted)
    return {one["url"].rpartition("/")[2]: one["grade"] for one in told["units"]}


async def test_pages_that_were_read_and_scanned_complete_a_run(place: Place) -> None:
    run = await page_run(place, "/a", "/b")
    for path in ("/a", "/b"):
        await place.go(path)
        await place.call("read_text")
        place.later(1_500)
        scanned = await place.call("coverage_scan", scanId="nova_full_page_text_v1")
        assert scanned["coverageEvidence"]["trust"]["trusted"], scanned
        assert [one["eligible"] for one in scanned["credited"] if one["instanceId"] == run.instance_id] == [True], (
            scanned
        )
    told = await run.done(unitUpdates=[{"url": path, "status": "checked"} for path in ("/a", "/b")])
    assert (told["completionAllowed"], told["reasonCode"]) == (True, None)
    done = await run.complete()
    assert done["completed"] is True, done
    assert (done["evidenceSummary"]["strong"], done["evidenceSummary"]["observedChecked"]) == (2, 2)
    assert (done["urlCoverage"]["covered"], done["urlCoverage"]["gateStatus"]) == (2, "passed")
    await place.go("/c")
    assert (await run.get())["evidenceSummary"] == done["evidenceSummary"]


async def test_a_visit_that_still_goes_on_is_counted_up_to_now(place: Place) -> None:
    run = await page_run(place, "/a")
    await run.done(unitUpdates=[{"url": "/a", "status": "checked"}])
    await place.go("/a")
    await place.call("read_text")
    # No call follows that could settle the visit.
    place.later(1_500)
    assert await grades(run) == {"a": "strong"}


async def test_what_a_member_did_shortly_before_counts(place: Place) -> None:
    await place.go("/a")
    await place.call("read_text")
    place.later(2_000)
    await place.go("/plain")
    run = await page_run(place, "/a", "/b")
    assert await grades(run, "discovered") == {"a": "strong", "b": "none"}
    place.later(40_000)
    late = await page_run(place, "/a")
    assert await grades(late, "discovered") == {"a": "none"}


async def test_nobody_elses_calls_prove_anything_until_they_join(place: Place) -> None:
    run = await page_run(place, "/a")
    theirs = str((await place.server.call("tab_new", agentId="guest"))["targetId"])
    for tool, more in (("navigate", {"url": f"{place.origin}/a"}), ("read_text", {})):
        assert (await place.server.call(tool, targetId=theirs, agentId="guest", **more))["ok"]
    place.later(1_500)
    assert await grades(run, "discovered") == {"a": "none"}
    guest = Run(place.server, run.instance_id, run.rev, "guest")
    await guest.done(note="joining")
    assert await grades(run, "discovered") == {"a": "strong"}
    await place.server.call("tab_close", targetId=theirs, agentId="guest")


async def test_calls_are_labelled_with_the_latest_open_run_of_their_host(place: Place) -> None:
    async def label() -> str | None:
        await place.call("read_text")
        rows = await place.server.rows(ledger_body, ledger_body.c.tool_name == "nova.read_text")
        newest = max(rows, key=lambda row: row["server_seq"])
        found = newest["instance_id"]
        return None if found is None else str(found)

    await place.go("/a")
    assert await label() is None
    first = await page_run(place, "/a")
    assert await label() == first.instance_id
    place.later(10)
    second = await page_run(place, "/b")
    assert await label() == second.instance_id
    await second.abort()
    assert await label() == first.instance_id


async def test_findings_count_where_their_page_was_seen(place: Place) -> None:
    asked = {"coverageMode": "threshold", "unitKind": "page", "stopMetric": "distinct_findings", "stopValue": 1}
    run = await page_run(place, "/a", "/b", completionCondition=asked)
    await place.go("/a")
    await place.call("read_text")
    await run.done(findings=[{"findingKey": "f", "detail": "d", "url": "/b"}])
    assert (await run.complete())["reasonCode"] == "threshold_not_met"
    await run.done(findings=[{"findingKey": "g", "detail": "d", "url": "/a"}])
    assert (await run.complete())["completed"] is True


async def test_a_step_on_a_page_needs_its_call_there(place: Place) -> None:
    step = {
        "stepId": "s1",
        "tool": "read_text",
        "description": "Read the end",
        "assertionType": "has_results",
        "pageUrl": f"{place.origin}/c",
    }
    run = await Run.new(place.server, ad_hoc("threshold", verification={"steps": [step]}), targetUrl=f"{place.origin}/")
    report = [{"stepId": "s1", "state": "passed", "toolResult": "text"}]
    for path, state in (("/a", "inconclusive"), ("/c", "passed")):
        await place.go(path)
        await place.call("read_text")
        (found,) = (await run.verify(evidenceReport=report))["verificationResults"]
        assert (found["state"], found["executionObserved"]) == (state, state == "passed")


async def test_site_urls_seed_what_was_visited(server: Server, place: Place) -> None:
    for path in ("/a", "/b"):
        await place.go(path)
    host = place.origin.partition("://")[2].partition(":")[0]
    source = {"kind": "site_urls", "scopeDomain": host, "freezeAfterPopulate": True}
    told = await server.call(
        "task_instance_create", adHocContext=ad_hoc(kind="page"), targetUrl=f"{place.origin}/", unitSource=source
    )
    assert told["discoveryState"] == "frozen"
    found = await Run(server, told["instanceId"]).get()
    assert {one["url"] for one in found["units"]} == {f"{place.origin}{path}" for path in ("/plain", "/a", "/b")}
    failed(
        await server.call("task_instance_create", adHocContext=ad_hoc(), unitSource=source),
        reason="invalid_unit_source",
    )
