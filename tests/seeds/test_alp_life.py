"""The life of entries over simulated weeks, through a real client on real pages: each step is shown and explained."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from learning_kit import DAY, Page, Server, fresh_page, serving
from loop_kit import Shop, shop

pytestmark = pytest.mark.browser

HEAD = "<!doctype html><html lang=en><title>{0}</title>"
BODY = "<main><h1>Desk</h1><p>Welcome back.</p><input name=q aria-label=Search></main>"
OLD = (
    HEAD.format("Desk")
    + "<nav><a id=reports href=/reports>Reports</a><a id=people href=/people>People</a></nav>"
    + BODY
)
NEW = (
    HEAD.format("Desk")
    + "<header><ul><li><a class=item href=/people>People</a></li>"
    + "<li><a class=item data-testid=nav-reports href=/reports>Reports</a></li></ul></header>"
    + BODY
)
REPORTS = HEAD.format("Reports") + "<main><h1>Reports</h1><a id=home href=/>Home</a></main>"
NEWS = "<main><h1>News</h1>" + "<p>Something happened today.</p>" * 40 + "</main>"
BANNER = (
    HEAD.format("News")
    + NEWS
    + "<div id=cmp role=dialog aria-label='We use cookies' style='position:fixed;inset:0;background:#fff;z-index:9'>"
    + "<p>We use cookies for advertising and statistics.</p><button id=yes onclick=cmp.remove()>Accept all</button>"
    + "<button id=no onclick=cmp.remove()>Reject all</button></div>"
)
PAGES = {"/": OLD, "/reports": REPORTS, "/plain": OLD, "/news": BANNER}


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def site() -> Iterator[Shop]:
    with shop() as running:
        running.pages.update(PAGES)
        yield running


@pytest.fixture
async def page(tmp_path: Any, site: Shop, anyio_backend: str) -> AsyncIterator[Page]:
    async with serving(tmp_path, site) as server:
        yield await fresh_page(server, str((await server.call("tab_new"))["targetId"]), "/")


class Tale:
    """One entry of one site, as an agent follows it."""

    def __init__(self, page: Page, stable_id: str) -> None:
        self.page = page
        self.server: Server = page.server
        self.id = stable_id

    async def promote(self, **more: Any) -> dict[str, Any]:
        told = await self.server.call("learn_promote", scope=self.page.scope, stableIds=[self.id], **more)
        assert told["ok"], told
        return dict(told["decisions"][0])

    async def stands(self) -> tuple[int, bool]:
        told = await self.server.call("explain", scope=self.page.scope, stableId=self.id)
        assert told["explain"]["summary"]
        return told["phenomenon"]["level"], told["phenomenon"]["deprecated"]

    async def missing(self) -> set[str]:
        told = await self.server.call("explain", scope=self.page.scope, stableId=self.id)
        failed = {gate["name"] for gate in told["explain"]["gates"] if not gate["passed"]}
        assert len(told["explain"]["remediation"]) == len(failed)
        return failed

    async def log(self) -> list[tuple[str, int, int]]:
        """The steps of the entry so far, oldest first, refusals left out."""
        told = await self.server.call("learn_feedback", scope=self.page.scope, since=0, limit=100)
        return [
            (event["reasonKind"], event["fromLevel"], event["toLevel"])
            for event in reversed(told["events"])
            if event["stableId"] == self.id and event["reason"].get("rejection") is None
        ]


async def use(page: Page, selector: str = "#reports") -> dict[str, Any]:
    """A visit on another day: look, follow the link, see that it led where it says."""
    page.later(DAY)
    await page.go("/")
    look = await page.perceive()
    pressed = await page.click(selector)
    assert (pressed["ok"], pressed["verifyState"]) == (True, "verified")
    await page.go("/")
    return look


async def test_a_link_is_learned_used_lost_repaired_and_trusted_again(page: Page, site: Shop) -> None:
    server = page.server
    nothing = await server.call("learn_suggest", scope=page.scope)
    assert (nothing["count"], nothing["opportunities"]) == (0, [])

    # Observed on two days, so it is suggested.
    for _ in range(2):
        await use(page)
    suggested = (await server.call("learn_suggest", scope=page.scope))["opportunities"][0]
    assert (suggested["supportCount"], suggested["distinctSessions"]) == (2, 2)
    assert sum(suggested["scoreBreakdown"].values()) == pytest.approx(suggested["score"])

    # Generated as a candidate that guides nobody.
    made = await server.call("learn_generate", scope=page.scope)
    (proposal,) = made["proposals"]
    assert (made["generated"], proposal["kind"], proposal["phenomenonType"]) == (1, "new_phenomenon", "nav_link")
    tale = Tale(page, proposal["targetStableId"])
    assert await tale.stands() == (0, False)
    assert (await server.call("pks_match", targetId=page.tab))["matched"] is False

    # What was seen before it was thought of counts, so it goes into review at once and waits for a third proof.
    dry = await tale.promote(dryRun=True)
    assert (dry["approved"], dry["applied"], dry["skippedBecause"]) == (True, False, "dry_run")
    assert (await tale.promote())["toLevel"] == 1
    held = await tale.promote()
    assert (held["approved"], held["rejectionReason"]) == (False, "successes")
    assert await tale.missing() == {"successes"}
    look = await use(page)
    assert [one["note"] for one in look["pks"]] == ["seen here before, 2 of 3 proofs"]
    assert (await tale.promote())["toLevel"] == 2

    # Matched and applied on a later visit.
    page.later(DAY)
    await page.go("/")
    look = await page.perceive()
    assert [one["kind"] for one in look["pksAdvice"]] == ["reuse"]
    assert (await server.call("pks_match", targetId=page.tab))["phenomenonId"] == tale.id
    applied = await page.call("phenomenon_apply", phenomenonId=tale.id)
    assert (applied["ok"], applied["verifyState"], applied["url"]) == (True, "verified", f"{page.origin}/reports")

    # The site is redesigned: nothing is pressed, and a check finds out.
    page.later(DAY)
    site.pages["/"] = NEW
    await page.go("/")
    refused = await page.call("phenomenon_apply", phenomenonId=tale.id)
    assert (refused["reasonCode"], refused["actionDispatched"]) == ("pks.not_present", False)
    (checked,) = (await server.call("revalidate", targetId=page.tab))["results"]
    assert (checked["verdict"], checked["telemetryOutcome"]) == ("gone", "silent_verify_drift")
    assert await tale.stands() == (1, False)
    assert (await tale.log())[-1] == ("demotion", 2, 1)

    # The repair is a suggestion; patched in, it has to prove itself again.
    found = checked["repairCandidate"]
    assert (found["label"], found["autoRepairSafe"]) == ("Reports", False)
    playbook = {"policy": "custom", "actions": [{"action": "click", "selector": found["selector"]}]}
    signals = {"signals": [{"kind": "dom", "match": found["selector"]}]}
    patched = await server.call(
        "pks_patch", scope=page.scope, phenomenonId=tale.id, patch={"fingerprint": signals, "playbook": playbook}
    )
    assert (patched["patched"], patched["level"], patched["unconfirmedSelectors"]) == (True, 1, [])
    assert await tale.missing() == {"successes", "success_sessions"}
    for proofs in range(3):
        look = await use(page, found["selector"])
        assert look["pks"][0]["note"] == f"seen here before, {proofs} of 3 proofs"
    assert (await tale.promote())["toLevel"] == 2
    assert await tale.log() == [
        ("learn_generate", 0, 0),
        ("l0_to_l1", 0, 1),
        ("l1_to_l2", 1, 2),
        ("demotion", 2, 1),
        ("l1_to_l2", 1, 2),
    ]


async def test_an_entry_that_fails_is_retired_and_revived_into_review(page: Page, site: Shop) -> None:
    server = page.server
    await use(page)
    entry = {
        "id": "reports-link",
        "type": "nav_link",
        "fingerprint": {"signals": [{"kind": "dom", "match": "#reports"}]},
        "playbook": {"policy": "custom", "actions": [{"action": "click", "selector": "#reports"}]},
    }
    written = await server.call("pks_upsert", scope=page.scope, phenomenon=entry)
    assert (written["action"], written["level"]) == ("created", 1)
    tale = Tale(page, "reports-link")
    look = await use(page)
    assert look["pks"][0]["note"] == "seen here before, 1 of 3 proofs"

    # The link leads to an error page three times in a row.
    site.failing.add("/reports")
    for _ in range(3):
        page.later(DAY)
        await page.go("/")
        await page.perceive()
        pressed = await page.click("#reports", expect=["text:Reports of the week", "!text:Something broke"])
        assert pressed["guardedCommit"]["verificationStatus"] == "verified_fail", pressed
    assert await tale.stands() == (0, True)
    assert (await tale.log())[-1] == ("deprecation", 1, 0)
    assert (await server.call("pks_get", scope=page.scope, phenomenonId=tale.id))["phenomena"][0]["deprecatedReason"]

    # It works again, on two more days.
    site.failing.clear()
    page.later(7 * DAY)
    await use(page)
    assert (await tale.promote())["rejectionReason"] == "successes"
    await use(page)
    back = await tale.promote()
    assert (back["reasonKind"], back["fromLevel"], back["toLevel"]) == ("revive", 0, 1)
    assert await tale.stands() == (1, False)


async def test_a_consent_banner_has_to_prove_itself_more_often(page: Page) -> None:
    server = page.server
    tale: Tale | None = None
    seen: list[tuple[bool, str | None]] = []
    for visit in range(6):
        page.later(DAY)
        await page.go("/news")
        await page.perceive()
        gone = await page.call("dismiss_blockers")
        assert gone["dismissed"] == 1, gone
        if visit == 1:
            await page.go("/news")
            made = await server.call("learn_generate", scope=page.scope)
            (proposal,) = [one for one in made["proposals"] if one["phenomenonType"] == "consent_cmp"]
            tale = Tale(page, proposal["targetStableId"])
            await tale.promote()
        elif tale is not None:
            decided = await tale.promote()
            seen.append((decided["approved"], decided["rejectionReason"]))
    assert tale is not None
    # Five proofs where other entries need three.
    assert seen == [(False, "successes"), (False, "successes"), (True, None), (False, "hard_drift_24h")]
    assert await tale.stands() == (2, False)
    entry = (await server.call("pks_get", scope=page.scope, phenomenonId=tale.id))["phenomena"][0]
    (action,) = entry["playbook"]["actions"]
    assert (action["selector"], action["declaredPolarity"]) == ("#no", "reject")
