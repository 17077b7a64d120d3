"""The life of entries over simulated weeks, through a real client on real pages: each step is shown and explained."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from loop_kit import Server, Shop, serving, shop
from place_kit import DAY, Place, phenomenon

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


@pytest.fixture
def pages() -> Iterator[Shop]:
    with shop() as running:
        running.pages.update(PAGES)
        yield running


@pytest.fixture
async def place(tmp_path: Path, pages: Shop, anyio_backend: str) -> AsyncIterator[Place]:
    async with serving(tmp_path, learning={"passes": True}) as server:
        found = Place.new(server, pages, await server.new_tab())
        await found.go("/")
        yield found


class Tale:
    """One entry of one site, as an agent follows it."""

    def __init__(self, place: Place, stable_id: str) -> None:
        self.place = place
        self.server: Server = place.server
        self.id = stable_id

    async def promote(self, **more: Any) -> dict[str, Any]:
        told = await self.server.call("learn_promote", scope=self.place.scope, stableIds=[self.id], **more)
        assert told["ok"], told
        return dict(told["decisions"][0])

    async def stands(self) -> tuple[int, bool]:
        told = await self.server.call("explain", scope=self.place.scope, stableId=self.id)
        assert told["explain"]["summary"]
        return told["phenomenon"]["level"], told["phenomenon"]["deprecated"]

    async def missing(self) -> set[str]:
        told = await self.server.call("explain", scope=self.place.scope, stableId=self.id)
        failed = {gate["name"] for gate in told["explain"]["gates"] if not gate["passed"]}
        assert len(told["explain"]["remediation"]) == len(failed)
        return failed

    async def log(self) -> list[tuple[str, int, int]]:
        """The steps of the entry so far, oldest first, refusals left out."""
        told = await self.server.call("learn_feedback", scope=self.place.scope, since=0, limit=100)
        return [
            (event["reasonKind"], event["fromLevel"], event["toLevel"])
            for event in reversed(told["events"])
            if event["stableId"] == self.id and event["reason"].get("rejection") is None
        ]


async def use(place: Place, selector: str = "#reports") -> dict[str, Any]:
    """A visit on another day: look, follow the link, see that it led where it says."""
    place.later(DAY)
    await place.go("/")
    look = await place.perceive()
    pressed = await place.click(selector)
    assert (pressed["ok"], pressed["verifyState"]) == (True, "verified")
    await place.go("/")
    return look


async def test_a_link_is_learned_used_lost_repaired_and_trusted_again(place: Place, pages: Shop) -> None:
    server = place.server
    nothing = await server.call("learn_suggest", scope=place.scope)
    assert (nothing["count"], nothing["opportunities"]) == (0, [])

    # Observed on two days, so it is suggested.
    for _ in range(2):
        await use(place)
    suggested = (await server.call("learn_suggest", scope=place.scope))["opportunities"][0]
    assert (suggested["supportCount"], suggested["distinctSessions"]) == (2, 2)
    assert sum(suggested["scoreBreakdown"].values()) == pytest.approx(suggested["score"])

    # Generated as a candidate that guides nobody.
    made = await server.call("learn_generate", scope=place.scope)
    (proposal,) = made["proposals"]
    assert (made["generated"], proposal["kind"], proposal["phenomenonType"]) == (1, "new_phenomenon", "nav_link")
    tale = Tale(place, proposal["targetStableId"])
    assert await tale.stands() == (0, False)
    assert (await server.call("pks_match", targetId=place.tab))["matched"] is False

    # What was seen before it was thought of counts, so it goes into review at once and waits for a third proof.
    dry = await tale.promote(dryRun=True)
    assert (dry["approved"], dry["applied"], dry["skippedBecause"]) == (True, False, "dry_run")
    assert (await tale.promote())["toLevel"] == 1
    held = await tale.promote()
    assert (held["approved"], held["rejectionReason"]) == (False, "successes")
    assert await tale.missing() == {"successes"}
    look = await use(place)
    assert [one["note"] for one in look["pks"]] == ["seen here before, 2 of 3 proofs"]
    assert (await tale.promote())["toLevel"] == 2

    # Matched and applied on a later visit.
    place.later(DAY)
    await place.go("/")
    look = await place.perceive()
    assert [one["kind"] for one in look["pksAdvice"]] == ["reuse"]
    assert (await server.call("pks_match", targetId=place.tab))["phenomenonId"] == tale.id
    applied = await place.call("phenomenon_apply", phenomenonId=tale.id)
    assert (applied["ok"], applied["verifyState"], applied["url"]) == (True, "verified", f"{place.origin}/reports")

    # The site is redesigned: nothing is pressed, and a check finds out.
    place.later(DAY)
    pages.pages["/"] = NEW
    await place.go("/")
    refused = await place.call("phenomenon_apply", phenomenonId=tale.id)
    assert (refused["reasonCode"], refused["actionDispatched"]) == ("pks.not_present", False)
    (checked,) = (await server.call("revalidate", targetId=place.tab))["results"]
    assert (checked["verdict"], checked["telemetryOutcome"]) == ("gone", "silent_verify_drift")
    assert await tale.stands() == (1, False)
    assert (await tale.log())[-1] == ("demotion", 2, 1)

    # The repair is a suggestion; patched in, it has to prove itself again.
    found = checked["repairCandidate"]
    assert (found["label"], found["autoRepairSafe"]) == ("Reports", False)
    playbook = {"policy": "custom", "actions": [{"action": "click", "selector": found["selector"]}]}
    signals = {"signals": [{"kind": "dom", "match": found["selector"]}]}
    patched = await server.call(
        "pks_patch", scope=place.scope, phenomenonId=tale.id, patch={"fingerprint": signals, "playbook": playbook}
    )
    assert (patched["patched"], patched["level"], patched["unconfirmedSelectors"]) == (True, 1, [])
    assert await tale.missing() == {"successes", "success_sessions"}
    for proofs in range(3):
        look = await use(place, found["selector"])
        assert look["pks"][0]["note"] == f"seen here before, {proofs} of 3 proofs"
    assert (await tale.promote())["toLevel"] == 2
    assert await tale.log() == [
        ("learn_generate", 0, 0),
        ("l0_to_l1", 0, 1),
        ("l1_to_l2", 1, 2),
        ("demotion", 2, 1),
        ("l1_to_l2", 1, 2),
    ]


async def test_an_entry_that_fails_is_retired_and_revived_into_review(place: Place, pages: Shop) -> None:
    server = place.server
    await use(place)
    entry = {
        "id": "reports-link",
        "type": "nav_link",
        "fingerprint": {"signals": [{"kind": "dom", "match": "#reports"}]},
        "playbook": {"policy": "custom", "actions": [{"action": "click", "selector": "#reports"}]},
    }
    written = await server.call("pks_upsert", scope=place.scope, phenomenon=entry)
    assert (written["action"], written["level"]) == ("created", 1)
    tale = Tale(place, "reports-link")
    look = await use(place)
    assert look["pks"][0]["note"] == "seen here before, 1 of 3 proofs"

    # The link leads to an error page three times in a row.
    pages.failing.add("/reports")
    for _ in range(3):
        place.later(DAY)
        await place.go("/")
        await place.perceive()
        pressed = await place.click("#reports", expect=["text:Reports of the week", "!text:Something broke"])
        assert pressed["guardedCommit"]["verificationStatus"] == "verified_fail", pressed
    assert await tale.stands() == (0, True)
    assert (await tale.log())[-1] == ("deprecation", 1, 0)
    assert (await server.call("pks_get", scope=place.scope, phenomenonId=tale.id))["phenomena"][0]["deprecatedReason"]

    # It works again, on two more days.
    pages.failing.clear()
    place.later(7 * DAY)
    await use(place)
    assert (await tale.promote())["rejectionReason"] == "successes"
    await use(place)
    back = await tale.promote()
    assert (back["reasonKind"], back["fromLevel"], back["toLevel"]) == ("revive", 0, 1)
    assert await tale.stands() == (1, False)


async def test_a_consent_banner_proves_itself_like_any_entry(place: Place) -> None:
    server = place.server
    tale: Tale | None = None
    seen: list[tuple[bool, str | None]] = []
    for visit in range(4):
        place.later(DAY)
        await place.go("/news")
        await place.perceive()
        gone = await place.call("dismiss_blockers")
        assert gone["dismissed"] == 1, gone
        if visit == 1:
            await place.go("/news")
            made = await server.call("learn_generate", scope=place.scope)
            (proposal,) = [one for one in made["proposals"] if one["phenomenonType"] == "consent_cmp"]
            tale = Tale(place, proposal["targetStableId"])
            await tale.promote()
        elif tale is not None:
            decided = await tale.promote()
            seen.append((decided["approved"], decided["rejectionReason"]))
    assert tale is not None
    assert seen == [(True, None), (False, "hard_drift_24h")]
    assert await tale.stands() == (2, False)
    entry = (await server.call("pks_get", scope=place.scope, phenomenonId=tale.id))["phenomena"][0]
    (action,) = entry["playbook"]["actions"]
    assert (action["selector"], action["declaredPolarity"]) == ("#no", "reject")


async def test_stricter_gates_for_banners_are_a_setting_that_explain_shows(
    tmp_path: Path, pages: Shop, anyio_backend: str
) -> None:
    async with serving(tmp_path, learning={"passes": False, "consent_gates": "strict"}) as server:
        place = Place.new(server, pages, await server.new_tab())
        await place.go("/news")
        await place.put(phenomenon("banner", "#cmp", level=1, selector="#no", type="consent_cmp"))
        told = (await server.call("explain", scope=place.scope, stableId="banner"))["explain"]
        gates = {one["name"]: one["required"] for one in told["gates"]}
        assert (gates["successes"], gates["success_sessions"], gates["failures"]) == (5, 3, 0)
        assert 'consent_gates = "strict"' in told["summary"]
        look = await place.perceive()
        assert [one["note"] for one in look["pks"]] == ["seen here before, 0 of 5 proofs"]
