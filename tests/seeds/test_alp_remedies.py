"""Every gate that an entry may stand before, and its remedy: followed literally through a real client, it passes."""

import re
from dataclasses import replace
from typing import Any

import pytest
from place_kit import DAY, HOUR, MINUTE, Lesson, Place, phenomenon
from sqlalchemy import Connection

from nova_mcp.memory.knowledge.model import Action, Content, Fingerprint, Health, Playbook, Signal, VerifyStep
from nova_mcp.memory.promotion import steps_store
from nova_mcp.memory.promotion.collector import witnessed
from nova_mcp.memory.promotion.model import Mark

pytestmark = pytest.mark.browser

HEAD = "<!doctype html><html lang=en><title>{0}</title>"
SHOW = "<button id=show type=button onclick=\"out.textContent = 'Shown'\">Show</button><p id=out></p>"
PAGES = {
    "/plain": HEAD.format("Plain") + "<main><h1>Plain</h1></main>",
    "/desk": HEAD.format("Desk") + f"<main><h1>Desk</h1>{SHOW}</main>",
    "/steps": HEAD.format("Steps")
    + "<main><h1>Steps</h1><button id=one type=button onclick='two.hidden = false'>Open</button>"
    "<button id=two type=button hidden onclick='done.hidden = false'>Go on</button><p id=done hidden>Done</p></main>",
}
ONE = Lesson((Signal("dom", "#show"),), (Action("click", "#show"),), type="custom", policy="custom")
TWO = Lesson(
    (Signal("dom", "#one"),),
    (Action("click", "#one"), Action("click", "#two")),
    (VerifyStep("present", "#done"),),
    type="custom",
    policy="custom",
)


class Patient:
    """One entry and what `explain` says of it."""

    def __init__(self, place: Place, name: str = "entry") -> None:
        self.place = place
        self.name = name

    async def explained(self) -> dict[str, Any]:
        told = await self.place.server.call("explain", scope=self.place.scope, stableId=self.name)
        return dict(told["explain"])

    async def passed(self, gate: str) -> bool:
        """A gate that is not asked any more is passed."""
        return all(one["passed"] for one in (await self.explained())["gates"] if one["name"] == gate)

    async def remedy(self, *words: str) -> str:
        """The one remedy that says all of this."""
        found = [one for one in (await self.explained())["remediation"] if all(word in one for word in words)]
        assert len(found) == 1, (words, await self.explained())
        return str(found[0])

    async def marked(self, *outcomes: int, ago: int = HOUR, kind: str = "action_success") -> None:
        """Evidence as calls leave it, an hour old unless said otherwise."""
        shelved, now = await self.place.shelved(self.name), self.place.server.clock.now_ms()
        marks = [
            Mark(
                0,
                now - ago + number,
                kind,
                outcome,
                f"{now}-{number}",
                f"s{number}",
                2 if kind == "selector_drift" else 0,
            )  # type: ignore[arg-type]
            for number, outcome in enumerate(outcomes)
        ]

        def write(conn: Connection) -> None:
            witnessed(conn, shelved, marks)

        await self.place.server.nova._db.write(write)

    async def use(self, later_ms: int = MINUTE, selector: str = "#show") -> None:
        """As the remedies say: act through the control with proof."""
        self.place.later(later_ms)
        await self.place.visit("/desk")
        told = await self.place.click(selector, expect=["text:Shown"])
        assert told["verifyState"] == "verified", told


async def patient(place: Place, level: Any = 1, **more: Any) -> Patient:
    await place.visit("/desk")
    await place.learn(ONE, level=level, **more)
    return Patient(place)


def count_in(remedy: str) -> int:
    found = re.search(r"(\d+) more", remedy)
    assert found is not None, remedy
    return int(found.group(1))


@pytest.mark.parametrize("gate", ["support", "success_support"])
async def test_a_candidate_that_was_met_too_rarely_is_used_as_often_as_the_remedy_says(place: Place, gate: str) -> None:
    ill = await patient(place, level=0)
    assert not await ill.passed(gate)
    remedy = await ill.remedy("half a minute apart", "Use it" if gate == "support" else "verified success")
    assert '"#show"' in remedy
    assert "nova.click_selector with expect" in remedy
    for _ in range(count_in(remedy)):
        await ill.use()
    assert await ill.passed(gate)


@pytest.mark.parametrize("gate", ["confidence", "evidence_score"])
async def test_a_figure_that_is_short_rises_with_each_verified_success(place: Place, gate: str) -> None:
    ill = await patient(place, level=0)
    await ill.marked(1, -1)
    assert not await ill.passed(gate)
    assert any("each verified success raises it" in one for one in (await ill.explained())["remediation"])
    before = {one["name"]: one["observed"] for one in (await ill.explained())["gates"]}[gate]
    await ill.use()
    assert {one["name"]: one["observed"] for one in (await ill.explained())["gates"]}[gate] > before
    for _ in range(3):
        await ill.use()
    assert await ill.passed(gate)


async def test_a_disproven_claim_is_stored_by_hand(place: Place) -> None:
    ill = await patient(place, level=0)
    shelved = await place.shelved()
    await place.server.nova._db.write(steps_store.disproved, shelved, place.server.clock.now_ms())
    assert "nova.pks_upsert" in await ill.remedy("disproven")
    entry = {
        "id": "entry",
        "type": "custom",
        "fingerprint": {"signals": [{"kind": "dom", "match": "#show"}]},
        "playbook": {"policy": "custom", "actions": [{"action": "click", "selector": "#show"}]},
    }
    told = await place.server.call("pks_upsert", scope=place.scope, phenomenon=entry)
    assert (told["level"], await ill.passed("not_disproven")) == (1, True)


async def test_missing_successes_and_sessions_come_by_verified_use(place: Place) -> None:
    ill = await patient(place)
    successes = await ill.remedy("more verified success(es)")
    sessions = await ill.remedy("more session(s)", "half an hour")
    for _ in range(count_in(successes)):
        await ill.use()
    assert (await ill.passed("successes"), await ill.passed("success_sessions")) == (True, False)
    for _ in range(count_in(sessions) - 1):
        await ill.use(31 * MINUTE)
    assert await ill.passed("success_sessions")
    assert (await ill.explained())["remediation"] == ["Call nova.learn_promote to apply it."]
    told = await place.server.call("learn_promote", scope=place.scope, stableIds=["entry"])
    assert told["decisions"][0]["toLevel"] == 2


@pytest.mark.parametrize("way", ["patch", "wait"])
async def test_failures_are_left_behind_by_a_correction_or_by_time(place: Place, way: str) -> None:
    ill = await patient(place)
    await ill.marked(-1, 1, -1, 1)
    remedy = await ill.remedy("failure(s) too many", "nova.pks_patch", "30 days")
    assert remedy.startswith("1 ")
    await (corrected(place) if way == "patch" else waited(place, 30 * DAY))
    assert await ill.passed("failures")


@pytest.mark.parametrize("way", ["patch", "wait"])
async def test_a_drift_is_left_behind_by_a_correction_or_by_time(place: Place, way: str) -> None:
    ill = await patient(place)
    await ill.marked(-1, kind="selector_drift")
    remedy = await ill.remedy("drifted", "nova.pks_patch")
    hours = re.search(r"let (\d+) hour", remedy)
    assert hours is not None
    await (corrected(place) if way == "patch" else waited(place, int(hours.group(1)) * HOUR))
    assert await ill.passed("drift_7d")


async def corrected(place: Place) -> None:
    await place.visit("/desk")
    body = {"policy": "custom", "actions": [{"action": "click", "selector": "main > #show"}]}
    told = await place.server.call("pks_patch", scope=place.scope, phenomenonId="entry", patch={"playbook": body})
    assert (told["patched"], told["unconfirmedSelectors"]) == (True, [])


async def waited(place: Place, ms: int) -> None:
    place.later(ms)


@pytest.mark.parametrize("way", ["use", "revalidate", "patch"])
async def test_selectors_that_nobody_has_seen_are_used_or_looked_for_or_taken_out(place: Place, way: str) -> None:
    await place.visit("/plain")
    signs = Fingerprint((Signal("dom", "#show"), Signal("dom", "#elsewhere")), 0.5)
    content = Content("custom", signs, Playbook("custom", (Action("click", "#show", ("#spare",)),)))
    entry = replace(phenomenon("entry", "#show", level=1), content=content)
    missing = ("#show", "#elsewhere", "#spare") if way != "revalidate" else ("#show",)
    await place.put(replace(entry, unconfirmed=missing))
    ill = Patient(place)
    assert not await ill.passed("unconfirmed_selectors")
    remedy = await ill.remedy("Not seen on a page yet", '"#show"', "nova.revalidate", "nova.pks_patch", "with proof")
    assert "nova.click_selector with expect" in remedy
    if way == "use":
        await ill.use()
    elif way == "revalidate":
        await place.visit("/desk")
        await place.revalidate()
    else:
        await place.visit("/desk")
        fingerprint = {"signals": [{"kind": "dom", "match": "#show"}]}
        body = {"policy": "custom", "actions": [{"action": "click", "selector": "#show"}]}
        patch = {"fingerprint": fingerprint, "playbook": body}
        await place.server.call("pks_patch", scope=place.scope, phenomenonId="entry", patch=patch)
    assert await ill.passed("unconfirmed_selectors")
    playbook = (await place.entry()).content.playbook
    assert playbook is not None
    assert playbook.actions[0].element is not None


async def test_a_retired_entry_is_revived_by_verified_use(place: Place) -> None:
    ill = await patient(place, level=0, deprecated_reason="3 failures in a row")
    successes, sessions = await ill.remedy("more verified success(es)"), await ill.remedy("more session(s)")
    for _ in range(max(count_in(successes), count_in(sessions))):
        await ill.use(31 * MINUTE)
    told = await place.server.call("learn_promote", scope=place.scope, stableIds=["entry"])
    assert (told["decisions"][0]["reasonKind"], told["decisions"][0]["toLevel"]) == ("revive", 1)


# -- what keeps evidence from counting


async def test_several_steps_are_proven_by_the_trial_that_the_remedy_names(place: Place) -> None:
    await place.visit("/steps")
    await place.learn(TWO, level=1)
    ill = Patient(place)
    remedy = await ill.remedy("more verified success(es)", "nova.phenomenon_apply with trial:true")
    for _ in range(count_in(remedy)):
        place.later(31 * MINUTE)
        await place.visit("/steps")
        told = await place.apply(trial=True)
        assert told["verifyState"] == "verified", told
    assert await ill.passed("successes")
    assert await ill.passed("unconfirmed_selectors")


async def test_a_quarantine_that_stops_trials_ends_as_the_remedy_says(place: Place) -> None:
    await place.visit("/steps")
    now = place.server.clock.now_ms()
    health = Health(attempts=1, failures=1, severe_misfires=1, quarantined_at_ms=now)
    await place.learn(TWO, level=1, health=health)
    ill = Patient(place)
    assert (await place.apply(trial=True))["reasonCode"] == "pks.quarantined"
    assert "three times half a minute apart" in await ill.remedy("quarantined", "nova.revalidate")
    for _ in range(3):
        place.later(MINUTE)
        await place.visit("/steps")
        await place.revalidate()
    assert (await place.apply(trial=True))["verifyState"] == "verified"


async def test_a_control_that_two_entries_press_proves_either_once_the_other_has_gone(place: Place) -> None:
    ill = await patient(place)
    await place.learn(ONE, level=1, name="twin")
    assert '"twin"' in await ill.remedy("nova.pks_deprecate")
    await ill.use()
    assert {one["name"]: one["observed"] for one in (await ill.explained())["gates"]}["successes"] == 0
    await place.server.call("pks_deprecate", scope=place.scope, phenomenonId="twin", reason="one is enough")
    await ill.use()
    assert {one["name"]: one["observed"] for one in (await ill.explained())["gates"]}["successes"] == 1


@pytest.mark.parametrize(
    ("playbook", "words"),
    [
        ({"policy": "warn"}, "It does nothing"),
        (
            {
                "policy": "custom",
                "actions": [{"action": "click", "selector": "#show", "declaredPolarity": "accept"}],
            },
            "It gives consent",
        ),
    ],
)
async def test_what_no_use_can_prove_says_so_and_what_to_write_instead(
    place: Place, playbook: dict[str, Any], words: str
) -> None:
    ill = await patient(place)
    actions = tuple(Action("click", one["selector"], polarity="accept") for one in playbook.get("actions", ()))
    entry = await place.entry()
    content = replace(entry.content, playbook=Playbook(playbook["policy"], actions))
    await place.change(content=content, unconfirmed=())
    await ill.use()
    assert await ill.remedy(words, "nova.pks_patch")
    assert {one["name"]: one["observed"] for one in (await ill.explained())["gates"]}["successes"] == 0
    await corrected(place)
    assert count_in(await ill.remedy("more verified success(es)")) == 3
    await ill.use(selector="main > #show")
    assert {one["name"]: one["observed"] for one in (await ill.explained())["gates"]}["successes"] == 1
