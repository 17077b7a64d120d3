"""What is learned can be used, and nothing is learned that should not be, through a real client on a real page."""

from dataclasses import replace
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from place_kit import HOUR, MINUTE, Lesson, Place, failed, phenomenon
from sqlalchemy import select

from nova_mcp.memory.journal.candidate_store import curated_entry
from nova_mcp.memory.journal.finalize_store import outbox_job
from nova_mcp.memory.knowledge import store
from nova_mcp.memory.knowledge.model import Action, DomainHint, HintId, Signal
from nova_mcp.memory.knowledge.store import Shelved

pytestmark = pytest.mark.browser

HEAD = "<!doctype html><html lang=en><title>{0}</title>"
SHOW = "<button id=show type=button onclick=\"out.textContent = 'Shown'\">Show</button><p id=out></p>"
DESK = f"<main><h1>Desk</h1>{{0}}{SHOW}"
COVER = "position:fixed;inset:0;background:#fff"
SEND = "<form method=post action=/sent><button id=send>Delete account</button></form>"
PAGES = {
    "/plain": HEAD.format("Plain") + "<main><h1>Plain</h1></main>",
    "/a": HEAD.format("A") + "<main><h1>A</h1></main>",
    "/desk": HEAD.format("Desk") + DESK.format("") + "</main>",
    "/desk/long": HEAD.format("Desk") + DESK.format("<nav><a href=/x>X</a></nav><ul><li>1<li>2</ul>") + "</main>",
    "/desk/other": HEAD.format("Desk") + "<main><h1>Desk</h1><label>Show <input id=show></label></main>",
    "/form": HEAD.format("Form") + f"<main><h1>One</h1>{SEND}</main>",
    "/form/long": HEAD.format("Form") + f"<main><h1>Two</h1><nav><a href=/a>A</a></nav>{SEND}</main>",
    "/links": HEAD.format("Links") + "<main><h1>Links</h1><a id=next href=/a>Next</a></main>",
    "/layer": HEAD.format("Layer")
    + "<main><h1>News</h1></main><div id=cookies style='position:fixed;left:0;right:0;bottom:0;padding:16px'>"
    "<p>We use cookies to improve your visit.</p><button id=yes type=button>Accept all</button>"
    "<button id=no type=button onclick='this.parentNode.remove()'>Reject all</button></div>",
    "/found": HEAD.format("Found")
    + "<main><h1>Found</h1><ul class=found>"
    + "".join(f"<li class=hit><h3>Thing {n}</h3><p>About it</p><a href=/thing/{n}>Open</a></li>" for n in range(9))
    + "</ul></main>",
}
PROOF = ["text:Shown"]


async def raised(place: Place, selector: str, ways: tuple[tuple[str, str], ...], expect: list[str]) -> dict[str, Any]:
    """Use a control under different circumstances; the answer of the last use."""
    told: dict[str, Any] = {}
    for before, path in ways:
        await place.go(before)
        await place.visit(path)
        told = await place.click(selector, expect=expect)
        assert told["verifyState"] == "verified", told
        place.later(MINUTE)
    return told


async def entries(place: Place) -> list[Shelved]:
    return await place.server.nova._db.read(store.entries, place.scope)


async def promoted(place: Place, name: str) -> dict[str, Any]:
    told = await place.server.call("learn_promote", scope=place.scope, stableIds=[name])
    return dict(told["decisions"][0])


WAYS = (("/plain", "/desk"), ("/a", "/desk/long"), ("/plain", "/desk"))


async def test_what_nova_raises_by_itself_becomes_active_and_is_applied(place: Place) -> None:
    block = (await raised(place, "#show", WAYS, PROOF))["pksAutoLearn"]
    entry = await place.entry(block["stableId"])
    (action,) = entry.content.playbook.actions if entry.content.playbook else ()
    assert action.element is not None
    assert (action.element.tag, action.element.text) == ("button", "Show")
    assert (entry.level, entry.unseen) == (0, ())
    assert (await promoted(place, entry.stable_id))["toLevel"] == 1
    place.later(HOUR)
    await raised(place, "#show", WAYS[:1], PROOF)
    assert (await promoted(place, entry.stable_id))["toLevel"] == 2
    await place.visit("/desk")
    told = await place.apply(entry.stable_id)
    assert (told["ok"], told["actionDispatched"], told["stepsExecuted"]) == (True, True, 1), told
    assert await place.asked("document.getElementById('out').textContent") == "Shown"
    assert (await place.entry(entry.stable_id)).level == 2


@pytest.mark.parametrize("path", ["/desk/other", "/plain"])
async def test_a_refusal_to_apply_never_takes_a_level(place: Place, path: str) -> None:
    await place.visit("/desk")
    lesson = Lesson((Signal("dom", "h1"),), (Action("click", "#show"),), type="custom", policy="custom")
    await place.learn(lesson)
    for _ in range(4):
        await place.visit(path)
        told = failed(await place.apply(), -32003, "pks.element_changed")
        assert told["actionDispatched"] is False
        place.later(MINUTE)
    failed(await place.apply(), -32003, "pks.element_changed")
    assert ((await place.entry()).level, (await place.entry()).deprecated) == (2, False)
    told = await place.server.call("explain", scope=place.scope, stableId="entry")
    assert [one["passed"] for one in told["explain"]["gates"]] == [False, False]
    # A check that looks on purpose is another matter, even right after a refusal.
    await place.revalidate()
    assert (await place.entry()).level == 1


async def test_an_entry_whose_looks_are_unknown_does_not_become_active_before_a_use_has_shown_them(
    place: Place,
) -> None:
    await place.put(phenomenon("entry", "#show", selector="#show", level=1, type="custom"))
    for number in range(3):
        place.later(HOUR)
        await place.visit("/desk")
        if not number:
            told = await place.server.call("explain", scope=place.scope, stableId="entry")
            gates = {one["name"]: one for one in told["explain"]["gates"]}
            assert gates["unconfirmed_selectors"]["passed"] is False
        await place.click("#show", expect=PROOF)
    entry = await place.entry()
    assert entry.unseen == ()
    assert (await promoted(place, "entry"))["toLevel"] == 2
    assert (await place.apply())["actionDispatched"] is True


async def test_an_active_entry_is_applied_or_it_is_not_active(place: Place) -> None:
    await place.visit("/desk")
    lesson = Lesson((Signal("dom", "#show"),), (Action("click", "#show"),), type="custom", policy="custom")
    await place.learn(lesson)

    async def stands() -> tuple[int, str]:
        (entry,) = (await place.server.call("pks_get", scope=place.scope, phenomenonId="entry"))["phenomena"]
        return entry["level"], entry["health"]["state"]

    await refuted(place)
    assert await stands() == (2, "watch")
    await place.visit("/desk")
    assert (await place.apply())["actionDispatched"] is True
    await refuted(place)
    assert await stands() == (1, "quarantined")
    (event,) = (await place.server.call("learn_feedback", scope=place.scope))["events"]
    assert (event["reasonKind"], event["fromLevel"], event["toLevel"]) == ("demotion", 2, 1)
    await place.visit("/desk")
    assert (await place.apply())["reasonCode"] == "pks.not_active"
    # What it proves from here on makes it active again, and applicable with that.
    for _ in range(3):
        place.later(HOUR)
        await place.visit("/desk")
        await place.click("#show", expect=PROOF)
    assert (await promoted(place, "entry"))["toLevel"] == 2
    assert (await stands())[1] != "quarantined"
    await place.visit("/desk")
    assert (await place.apply())["actionDispatched"] is True


async def refuted(place: Place) -> None:
    place.later(MINUTE)
    await place.visit("/desk")
    told = await place.click("#show", expect=["text:Never", "!text:Shown"])
    assert told["guardedCommit"]["verificationStatus"] == "verified_fail", told


# -- what commits


@pytest.mark.parametrize("raw", [False, True])
async def test_a_control_that_commits_is_learned_neither_as_a_link_nor_by_itself(place: Place, raw: bool) -> None:
    ways = (("/plain", "/form"), ("/a", "/form/long"), ("/plain", "/form"), ("/a", "/form/long"))
    for number, (before, path) in enumerate(ways):
        await place.go(before)
        await place.visit(path)
        told = await place.click("#send", expect=["text:Thank you"], intentKey=f"again {number} {raw}")
        assert told["verifyState"] == "verified", told
        assert "pksAutoLearn" not in told
        place.later(HOUR)
    await place.visit("/form")
    body = await place.server.call("learn_generate", scope=place.scope)
    assert body["generated"] == 0, body
    assert "commit_control" in {one["reasonCode"] for one in body["skipped"]}
    assert await entries(place) == []


# -- counting


async def test_an_applied_dismissal_counts_once(place: Place) -> None:
    await place.visit("/layer")
    press = Action("click", "#no", polarity="reject")
    lesson = Lesson((Signal("dom", "#cookies"),), (press,), type="consent_cmp", policy="reject_preferred")
    await place.learn(lesson)
    assert (await place.apply())["actionDispatched"] is True
    place.later(MINUTE)
    await place.visit("/layer")
    assert (await place.call("dismiss_blockers"))["dismissed"] == 1
    health = (await place.entry()).health
    assert (health.attempts, health.successes) == (health.successes, len({row["call_id"] for row in await won(place)}))


async def won(place: Place) -> list[dict[str, Any]]:
    rows = await place.observed("action_success", "blocker_dismissed")
    return [row for row in rows if row["outcome"] > 0]


async def test_verified_applies_of_an_entry_without_checks_are_successes(place: Place) -> None:
    await place.visit("/links")
    lesson = Lesson((Signal("dom", "#next"),), (Action("click", "#next"),), type="nav_link", policy="custom")
    await place.learn(lesson, level=1)
    for _ in range(3):
        place.later(HOUR)
        await place.visit("/links")
        told = await place.apply(trial=True)
        assert (told["verifyState"], told["verifyResults"], told["telemetryReported"]) == ("verified", [], True), told
    assert (await place.entry()).health.successes == 3
    assert (await promoted(place, "entry"))["toLevel"] == 2


async def test_a_step_that_nothing_proves_makes_no_success_of_a_playbook(place: Place) -> None:
    await place.visit("/desk")
    lesson = Lesson((Signal("dom", "#show"),), (Action("click", "#show"),), type="custom", policy="custom")
    await place.learn(lesson, level=1)
    told = await place.apply(trial=True)
    assert told["verifyState"] != "verified", told
    assert (await place.entry()).health.successes == 0


# -- hints


@pytest.mark.parametrize("written", ["li.hit", "ul.found > li"])
async def test_a_hint_at_a_list_rises_by_uses_of_its_entries(place: Place, written: str) -> None:
    now = place.server.clock.now_ms()
    await place.put(DomainHint(HintId("things"), "result_item", (written,), now, now, mode="item_root", level=0))
    for number in range(3):
        place.later(HOUR)
        await place.visit("/found")
        told = await place.click(f'a[href="/thing/{number}"]')
        assert told["verifyState"] == "verified", told
        if number == 1:
            assert (await promoted(place, "things"))["toLevel"] == 1
    assert (await promoted(place, "things"))["toLevel"] == 2
    await place.visit("/found")
    matched = await place.call("pks_match")
    assert [one["hintId"] for one in matched["domainHints"]] == ["things"]


async def test_a_hint_gains_nothing_from_what_happens_beside_its_list(place: Place) -> None:
    now = place.server.clock.now_ms()
    hint = DomainHint(HintId("things"), "result_item", ("li.hit",), now, now, mode="item_root", level=0)
    await place.put(hint, replace(hint, hint_id=HintId("ads"), kind="ad_container", selectors=("ul.found",)))
    await place.visit("/links")
    assert (await place.click("#next"))["verifyState"] == "verified"
    await place.visit("/found")
    assert (await place.click('a[href="/thing/1"]'))["verifyState"] == "verified"
    gates = {}
    for name in ("things", "ads"):
        told = await place.server.call("explain", scope=place.scope, stableId=name)
        gates[name] = {one["name"]: one["observed"] for one in told["explain"]["gates"]}["support"]
        if name == "ads":
            assert told["explain"]["remediation"] == [
                "Nothing that a page shows proves what is an advertisement or noise: this hint stays in review."
            ]
    assert gates == {"things": 1, "ads": 0}


async def test_a_generated_hint_begins_with_the_uses_that_it_was_made_of(place: Place) -> None:
    for number in range(3):
        place.later(HOUR)
        await place.visit("/found")
        await place.click(f'a[href="/thing/{number}"]')
    await place.visit("/found")
    made = await place.server.call("learn_generate", scope=place.scope)
    (hint,) = (one for one in made["proposals"] if one["kind"] == "domain_hint")
    assert [(await promoted(place, hint["targetStableId"]))["toLevel"] for _ in range(2)] == [1, 2]


# -- claims and answers


async def test_an_answer_that_an_entry_was_stored_is_refused_where_there_is_none(place: Place) -> None:
    await place.put(phenomenon("auto", "#h1", level=0, selector="#show"), origin="auto")
    await place.go("/layer")
    prompt = (await place.call("dismiss_blockers"))["pksSemanticLearning"]
    asked = {"opportunityId": prompt["opportunityId"], "verdict": "upsert"}
    told = await place.server.call("learn_resolve_opportunity", **asked)
    assert (told["ok"], told["reasonCode"], told["resolvedState"]) == (False, "learn.entry_missing", "prompted")
    assert told["message"].startswith("Not closed")
    assert "nova.pks_upsert" in told["hint"]
    assert (told["fr1CandidatesSuperseded"], (await place.entry("auto")).deprecated) == (0, False)
    # With an entry that another way of storing has brought, the same answer closes it.
    await place.put(phenomenon("banner", "#cookies", level=1, selector="#no", type="consent_cmp"))
    told = await place.server.call("learn_resolve_opportunity", **asked)
    assert (told["ok"], told["resolvedState"], told["fr1CandidatesSuperseded"]) == (True, "resolved", 1)


async def worked_off(place: Place, task_id: str) -> None:
    wanted = select(outbox_job.c.state).where(outbox_job.c.task_id == task_id)
    with anyio.fail_after(30):
        while await place.server.nova._db.read(lambda conn: conn.execute(wanted).scalar_one()) != "done":
            await anyio.lowlevel.checkpoint()


async def test_a_committed_candidate_becomes_an_entry_or_leaves_its_reason(place: Place) -> None:
    claim = await place.call("tab_claim")
    await place.visit("/desk")
    claimed = {"component": "show", "claim": "The button shows it.", "status": "verified", "confidence": 1.0}
    for number in range(3):
        assert (await place.click("#show", expect=PROOF))["ok"]
        if number == 1:
            assert (await place.call("memory_add_candidate", **claimed))["ok"]
        place.later(MINUTE)
        await place.visit("/desk")
    body = await place.call("tab_release", finalizationToken=claim["finalizationToken"], finalizeDecision="commit")
    stats = body["finalizeStats"]
    assert (body["finalizeDecision"], stats["candidatesPromotable"] > 0) == ("commit", True), body
    rows = await place.server.rows(curated_entry, curated_entry.c.context_host == place.scope)
    assert stats["curatedUpserts"] == len(rows) > 0
    await worked_off(place, claim["taskId"])
    known = {one.candidate_key for one in await entries(place)}
    told = await place.server.call("learn_feedback", scope=place.scope)
    reasons = {one["stableId"]: one["reason"]["rejection"] for one in told["events"]}
    for row in rows:
        assert row["stable_id"] in reasons or row["stable_id"] in known
    assert set(reasons.values()) - {None}, told
