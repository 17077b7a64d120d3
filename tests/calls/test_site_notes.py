"""Notes about a site against whole calls: what they stop, what they warn of, and what clears them."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest
from playwright.async_api import Page

from nova_mcp.browser.targets.tab import Tab, TabHost
from nova_mcp.errors import NotFound
from nova_mcp.memory.notes.domain_model import Wish
from nova_mcp.memory.notes.domain_store import all_notes, put
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.guarded.guard import refuse_unheard
from nova_mcp.tools.guarded.sequence import run_sequence
from nova_mcp.tools.notes import domain_notes
from nova_mcp.tools.spec import Result, TargetParams, tool

MINUTE = 60_000
PAGE = ("browser_automation",)


class PressParams(TargetParams):
    fails: bool = False
    misses: bool = False


class PressResult(Result):
    target_id: str

    def text(self) -> str:
        return "pressed"


@tool(title="Press", effect="act", bundles=PAGE, repeat_safe=True)
async def press(ctx: ToolContext, p: PressParams) -> PressResult:
    """Touches the page."""
    if p.fails:
        raise NotFound("selector.not_found", "gone", "look again", action_dispatched=False)
    ctx.evidence.action_dispatched = not p.misses
    return PressResult(target_id=ctx.tab.target_id)


@tool(title="Script", effect="write", bundles=PAGE, gates=("user.domain_note",))
async def script(ctx: ToolContext, p: TargetParams) -> PressResult:
    """Is no acting tool, and interacts all the same."""
    ctx.evidence.action_dispatched = True
    return PressResult(target_id=ctx.tab.target_id)


@tool(title="Look", effect="read", bundles=PAGE)
async def look(ctx: ToolContext, p: TargetParams) -> PressResult:
    """Reads."""
    return PressResult(target_id=ctx.tab.target_id)


@tool(title="Go", effect="navigate", bundles=PAGE)
async def go(ctx: ToolContext, p: TargetParams) -> PressResult:
    """Navigates."""
    ctx.evidence.action_dispatched = True
    return PressResult(target_id=ctx.tab.target_id)


class WanderParams(TargetParams):
    to: str


@tool(title="Wander", effect="act", bundles=PAGE)
async def wander(ctx: ToolContext, p: WanderParams) -> PressResult:
    """Its first input takes the tab elsewhere, where it wants to go on."""
    await refuse_unheard(ctx, ctx.tab)
    ctx.evidence.action_dispatched = ctx.evidence.prepared_page = True
    ctx.tab.url = p.to
    await refuse_unheard(ctx, ctx.tab)
    return PressResult(target_id=ctx.tab.target_id)


class WaitParams(TargetParams):
    ms: int


@tool(title="Wait and press", effect="act", bundles=PAGE)
async def wait_press(ctx: ToolContext, p: WaitParams) -> PressResult:
    """While it waits for its element, somebody writes a note."""
    wish = Wish("local", "shop.test", "LATE", "Just written.", "user", enforcement="block")
    await ctx.domain_notes._db.write(put, wish, 1, lambda: "late")
    cast(Any, ctx.ports.clock).now += p.ms
    await refuse_unheard(ctx, ctx.tab)
    ctx.evidence.action_dispatched = True
    return PressResult(target_id=ctx.tab.target_id)


TOOLS = (
    wait_press,
    press,
    wander,
    script,
    look,
    go,
    run_sequence,
    domain_notes.domain_note,
    domain_notes.domain_notes_list,
    domain_notes.domain_note_ack,
    domain_notes.domain_note_delete,
)


@dataclass
class Site:
    """A pipeline with a tab on shop.test."""

    rig: Any
    tabs: list[Tab] = field(default_factory=list)

    def open(self, url: str = "http://shop.test/") -> str:
        tab = Tab(f"tab_{len(self.tabs) + 1}", "A", ("local", "default"), cast(TabHost, None), self.rig.clock)
        tab.url, tab.perceived_epoch = url, tab.page_epoch
        tab.page = cast(Page, SimpleNamespace(url=url))
        self.tabs.append(tab)
        self.rig.browser.targets._tabs[tab.target_id] = tab
        self.rig.browser.targets._active.setdefault(("local", "default"), tab.target_id)
        return tab.target_id

    async def call(self, name: str, *, principal: str = "local", **arguments: Any) -> dict[str, Any]:
        answer = await self.rig.call(f"nova.{name}", arguments, principal=principal)
        return {**answer.structured, "text": answer.text}

    async def note(self, key: str = "RULES", level: str = "block", **more: Any) -> dict[str, Any]:
        given = {"domain": "shop.test", "key": key, "value": f"Mind {key}.", "enforcement": level, **more}
        told = await self.call("domain_note", **given)
        assert told["ok"], told
        return told

    async def blocked(self, name: str = "press", **arguments: Any) -> list[str]:
        """The keys that stop a call, none when it ran."""
        told = await self.call(name, **arguments)
        if told["ok"]:
            return []
        assert (told["errorCode"], told["reasonCode"]) == (-32001, "acknowledge_required")
        return [note["key"] for note in told["notes"]]

    async def ack(self, key: str = "*", **more: Any) -> dict[str, Any]:
        return await self.call("domain_note_ack", domain="shop.test", key=key, **more)


@pytest.fixture
def make_site(make_rig: Any) -> Any:
    async def make(**settings: Any) -> Site:
        site = Site(await make_rig(*TOOLS, **settings))
        site.open()
        return site

    return make


# -- block


async def test_a_blocking_note_stops_interactions_before_anything_is_sent(make_site: Any) -> None:
    site = await make_site()
    written = await site.note(value="Ask before you order.")
    told = await site.call("press")
    assert (told["errorCode"], told["reasonCode"], told["gateId"]) == (
        -32001,
        "acknowledge_required",
        "user.domain_note",
    )
    assert (told["status"], told["stage"], told["actionDispatched"]) == ("blocked", "gate", False)
    assert (told["targetId"], told["domain"]) == ("tab_1", "shop.test")
    assert told["notes"] == [
        {
            "noteId": written["noteId"],
            "key": "RULES",
            "rev": 1,
            "source": "agent",
            "text": "Ask before you order.",
            "repeatMinutes": 60,
            "repeatToolCalls": 50,
        }
    ]
    assert told["fix"]["args"]["tool"] == "nova.domain_note_ack"
    record = (await site.rig.records())[-1]
    assert (record.outcome.kind, record.outcome.gate_id) == ("blocked_preflight", "user.domain_note")


async def test_repeating_the_call_is_no_acknowledgement(make_site: Any) -> None:
    site = await make_site()
    await site.note()
    assert [await site.blocked() for _ in range(5)] == [["RULES"]] * 5


async def test_the_fix_of_a_refusal_clears_the_way(make_site: Any) -> None:
    site = await make_site(tools="all")
    await site.note()
    fix = (await site.call("press"))["fix"]
    told = await site.call(fix["tool"].removeprefix("nova."), **fix["args"])
    assert told["pending"] == 0
    assert (await site.call("press"))["ok"]


@pytest.mark.parametrize(("name", "stopped"), [("press", True), ("script", True), ("look", False), ("go", False)])
async def test_reads_and_navigation_always_run(make_site: Any, name: str, stopped: bool) -> None:
    site = await make_site()
    await site.note()
    assert (await site.blocked(name) != []) is stopped
    told = await site.call(name)
    assert told["ok"] is not stopped
    if stopped:
        assert told["actionDispatched"] is False


async def test_every_pending_note_is_named_at_once_and_only_of_this_host(make_site: Any) -> None:
    site = await make_site()
    await site.note("B")
    await site.note("A")
    await site.note("HINT", "none")
    await site.note("ELSEWHERE", domain="www.other.test")
    assert await site.blocked() == ["A", "B"]


async def test_a_parent_never_stops_or_warns(make_site: Any) -> None:
    site = await make_site()
    await site.note()
    await site.note("SOFT", "warn")
    other = site.open("http://deep.shop.test/")
    told = await site.call("press", targetId=other)
    assert told["ok"]
    assert "siteNoteWarning" not in told


async def test_www_and_ports_are_the_same_host(make_site: Any) -> None:
    site = await make_site()
    await site.note()
    for url in ("https://www.shop.test/x", "http://SHOP.test:8080/", "http://shop.test./"):
        assert await site.blocked(targetId=site.open(url)) == ["RULES"]


async def test_however_long_its_address_is_a_page_stands_on_its_host(make_site: Any) -> None:
    site = await make_site()
    await site.note()
    for rest in ("#" + "x" * 70_000, "?q=" + "y" * 200_000):
        assert await site.blocked(targetId=site.open(f"http://shop.test/{rest}")) == ["RULES"]


async def test_a_page_without_a_host_has_no_notes(make_site: Any) -> None:
    site = await make_site()
    await site.note()
    assert await site.blocked(targetId=site.open("about:blank")) == []


async def test_a_call_whose_page_goes_to_another_host_is_held_to_the_notes_there(make_site: Any) -> None:
    site = await make_site()
    await site.note(domain="other.test")
    assert (await site.call("wander", to="http://third.test/"))["ok"]
    told = await site.call("wander", to="http://other.test/")
    assert (told["reasonCode"], told["gateId"], told["domain"]) == (
        "acknowledge_required",
        "user.domain_note",
        "other.test",
    )
    # What came before has reached the page, and the answer says so.
    assert (told["actionDispatched"], told["retryAdvice"]) == (True, "check_postcondition_first")
    assert (await site.call("domain_note_ack", domain="other.test", key="RULES"))["ok"]
    assert (await site.call("wander", to="http://other.test/"))["ok"]


async def test_a_note_that_is_written_while_a_call_waits_stops_it_too(make_site: Any) -> None:
    site = await make_site()
    told = await site.call("wait_press", ms=3_000)
    assert (told["reasonCode"], told["actionDispatched"]) == ("acknowledge_required", False)
    assert told["notes"][0]["text"] == "Just written."
    assert (await site.ack())["pending"] == 0
    assert (await site.call("wait_press", ms=3_000))["ok"]


# -- acknowledgement


async def test_an_acknowledgement_holds_for_its_minutes(make_site: Any) -> None:
    site = await make_site()
    await site.note(repeatMinutes=2)
    await site.blocked()
    told = await site.ack()
    (one,) = told["acknowledged"]
    assert (one["key"], one["rev"], one["callsLeft"]) == ("RULES", 1, 50)
    assert one["validUntilUtc"] == "2027-01-15T08:02:00.000Z"
    site.rig.clock.now += 2 * MINUTE - 1
    assert await site.blocked() == []
    site.rig.clock.now += 1
    assert await site.blocked() == ["RULES"]


async def test_an_acknowledgement_holds_for_its_calls_and_only_dispatched_ones_count(make_site: Any) -> None:
    site = await make_site()
    await site.note(repeatToolCalls=2, repeatMinutes=0)
    await site.blocked()
    (one,) = (await site.ack())["acknowledged"]
    assert (one["validUntilUtc"], one["callsLeft"]) == (None, 2)
    assert await site.blocked() == []
    for name, arguments in (("press", {"misses": True}), ("look", {}), ("go", {})):
        assert (await site.call(name, **arguments))["ok"]
    assert (await site.call("press", fails=True))["reasonCode"] == "selector.not_found"
    assert await site.blocked("script") == []
    assert await site.blocked() == ["RULES"]


async def test_zero_switches_a_trigger_off_and_null_means_the_usual(make_site: Any) -> None:
    site = await make_site(notes={"repeat_minutes": 1, "repeat_tool_calls": 1})
    await site.note(repeatMinutes=0, repeatToolCalls=0)
    await site.blocked()
    (one,) = (await site.ack())["acknowledged"]
    assert (one["validUntilUtc"], one["callsLeft"]) == (None, None)
    site.rig.clock.now += 100_000 * MINUTE
    assert [await site.blocked() for _ in range(3)] == [[], [], []]
    await site.note(repeatMinutes=None, repeatToolCalls=None)
    await site.blocked()
    (one,) = (await site.ack())["acknowledged"]
    assert one["callsLeft"] == 1
    assert [await site.blocked() for _ in range(2)] == [[], ["RULES"]]


async def test_an_edit_invalidates_every_acknowledgement(make_site: Any) -> None:
    site = await make_site()
    await site.note()
    await site.blocked()
    await site.ack()
    assert await site.blocked() == []
    await site.note(value="Something else now.")
    assert await site.blocked() == ["RULES"]


async def test_other_agents_and_other_tabs_have_acknowledgements_of_their_own(make_site: Any) -> None:
    site = await make_site()
    second = site.open()
    await site.note()
    await site.blocked()
    await site.ack(targetId="tab_1")
    assert await site.blocked(targetId="tab_1") == []
    assert await site.blocked(targetId=second) == ["RULES"]
    assert await site.blocked(targetId="tab_1", agentId="other") == ["RULES"]


async def test_a_key_can_only_be_acknowledged_once_its_current_text_was_delivered(make_site: Any) -> None:
    site = await make_site()
    await site.note()
    told = await site.ack("RULES")
    assert (told["errorCode"], told["reasonCode"]) == (-32003, "domain_note.not_delivered")
    nothing = await site.ack("*")
    assert (nothing["acknowledged"], nothing["pending"]) == ([], 1)
    await site.blocked()
    # What one agent has read, another has not.
    assert (await site.ack("RULES", agentId="other", targetId="tab_1"))["reasonCode"] == "domain_note.not_delivered"
    assert [one["key"] for one in (await site.ack("RULES"))["acknowledged"]] == ["RULES"]
    await site.note(value="Edited.")
    assert (await site.ack("RULES"))["reasonCode"] == "domain_note.not_delivered"


async def test_acknowledging_one_of_two_leaves_the_other_pending(make_site: Any) -> None:
    site = await make_site()
    await site.note("A")
    await site.note("B")
    await site.blocked()
    told = await site.ack("A")
    assert ([one["key"] for one in told["acknowledged"]], told["pending"]) == (["A"], 1)
    assert await site.blocked() == ["B"]


async def test_reading_the_list_delivers_what_is_not_cut(make_site: Any) -> None:
    site = await make_site()
    await site.note("A", value="x" * 900)
    await site.note("B", value="y" * 900)
    told = await site.call("domain_notes_list", domain="shop.test", maxChars=1000)
    assert [(one["key"], len(one["value"]), one["truncated"]) for one in told["notes"]] == [
        ("A", 900, False),
        ("B", 100, True),
    ]
    assert (await site.ack("A"))["ok"]
    assert (await site.ack("B"))["reasonCode"] == "domain_note.not_delivered"


async def test_what_an_acknowledgement_must_name(make_site: Any) -> None:
    site = await make_site()
    unknown = await site.ack("NOPE")
    assert (unknown["errorCode"], unknown["reasonCode"]) == (-32004, "domain_note.not_found")
    await site.note()
    await site.note("RULES", domain="other.test")
    await site.blocked()
    elsewhere = await site.call("domain_note_ack", domain="other.test", key="RULES")
    assert (elsewhere["errorCode"], elsewhere["reasonCode"]) == (-32602, "host_mismatch")
    blank = await site.ack("RULES", targetId=site.open("about:blank"))
    assert (blank["errorCode"], blank["reasonCode"]) == (-32602, "host_mismatch")
    nowhere = await site.ack("RULES", agentId="homeless")
    assert (nowhere["errorCode"], nowhere["reasonCode"]) == (-32602, "no_target")
    invalid = await site.call("domain_note_ack", domain="co.uk", key="*")
    assert (invalid["errorCode"], invalid["reasonCode"]) == (-32602, "invalid_domain")


async def test_an_answer_that_was_not_recorded_has_delivered_and_acknowledged_nothing(make_site: Any) -> None:
    site = await make_site()
    await site.note()
    site.rig.fault.armed = True
    assert (await site.call("press"))["reasonCode"] == "store.unavailable"
    site.rig.fault.armed = False
    assert (await site.ack("RULES"))["reasonCode"] == "domain_note.not_delivered"
    await site.blocked()
    site.rig.fault.armed = True
    assert (await site.ack("RULES"))["reasonCode"] == "store.unavailable"
    site.rig.fault.armed = False
    assert await site.blocked() == ["RULES"]


# -- warn


def warned(told: dict[str, Any]) -> list[Any]:
    assert told["ok"], told
    block = told.get("siteNoteWarning")
    return (
        [] if block is None else [(one["key"], one.get("text"), one.get("unchanged", False)) for one in block["notes"]]
    )


async def test_a_warning_comes_with_the_answer_and_again_after_its_calls(make_site: Any) -> None:
    site = await make_site()
    await site.note("SOFT", "warn", value="Prices are net.", repeatToolCalls=2)
    told = await site.call("press")
    assert warned(told) == [("SOFT", "Prices are net.", False)]
    assert told["siteNoteWarning"]["domain"] == "shop.test"
    assert "Prices are net." in told["text"]
    # The second and third call are the two that count since.
    assert [warned(await site.call("press")) for _ in range(3)] == [[], [], [("SOFT", None, True)]]


async def test_a_warning_repeats_after_its_minutes_and_at_once_when_it_changed(make_site: Any) -> None:
    site = await make_site()
    await site.note("SOFT", "warn", value="one", repeatMinutes=5)
    assert warned(await site.call("press")) == [("SOFT", "one", False)]
    site.rig.clock.now += 5 * MINUTE
    assert warned(await site.call("press")) == [("SOFT", None, True)]
    await site.note("SOFT", "warn", value="two")
    assert warned(await site.call("press")) == [("SOFT", "two", False)]
    assert warned(await site.call("press")) == []


async def test_a_warning_is_counted_per_target_and_caller(make_site: Any) -> None:
    site = await make_site()
    second = site.open()
    await site.note("SOFT", "warn", value="one")
    assert warned(await site.call("press")) == [("SOFT", "one", False)]
    assert warned(await site.call("press", targetId=second)) == [("SOFT", None, True)]
    assert warned(await site.call("press", targetId="tab_1", agentId="other")) == [("SOFT", "one", False)]


async def test_a_call_that_fails_carries_its_warning_too(make_site: Any) -> None:
    site = await make_site()
    await site.note("SOFT", "warn", value="one")
    told = await site.call("press", fails=True)
    assert (told["reasonCode"], told["siteNoteWarning"]["notes"][0]["text"]) == ("selector.not_found", "one")
    assert warned(await site.call("press")) == []


async def test_after_25_names_a_warning_is_told_in_full_again(make_site: Any) -> None:
    site = await make_site()
    await site.note("SOFT", "warn", value="one", repeatToolCalls=1)
    seen = [warned(await site.call("press")) for _ in range(54)]
    told = [one for one in seen if one]
    assert [one[0][2] for one in told[:27]] == [False, *[True] * 25, False]


# -- modes


async def test_the_operators_mode_caps_what_notes_do(make_site: Any) -> None:
    site = await make_site(notes={"domain_note_mode": "warn"})
    await site.note(value="stop")
    assert warned(await site.call("press")) == [("RULES", "stop", False)]


async def test_switched_off_notes_neither_stop_nor_warn(make_site: Any) -> None:
    site = await make_site(notes={"domain_note_mode": "off"})
    await site.note()
    await site.note("SOFT", "warn")
    assert warned(await site.call("press")) == []
    listed = await site.call("domain_notes_list", domain="shop.test")
    assert [one["enforcement"] for one in listed["notes"]] == ["block", "warn"]


# -- sequences


def steps(*names: str, on_error: str = "abort", **more: Any) -> dict[str, Any]:
    return {"steps": [{"tool": f"nova.{name}", "onError": on_error} for name in names], **more}


async def test_inside_a_sequence_every_step_is_held_to_the_notes(make_site: Any) -> None:
    site = await make_site()
    await site.note()
    told = await site.call("run_sequence", **steps("look", "press", "look"))
    assert (told["failedAt"], told["reasonCode"], told["completedSteps"]) == (2, "acknowledge_required", 1)
    assert told["last"]["notes"][0]["text"] == "Mind RULES."
    assert "Mind RULES." in told["text"]
    assert told["actionDispatched"] is False
    # The sequence passed the refusal on, so the note counts as delivered.
    assert (await site.ack("RULES"))["ok"]
    assert (await site.call("run_sequence", **steps("press", "press")))["ok"]


async def test_a_refusal_that_a_sequence_swallows_has_delivered_nothing(make_site: Any) -> None:
    site = await make_site()
    await site.note()
    told = await site.call("run_sequence", **steps("press", "look", on_error="continue"))
    assert "Mind RULES." not in told["text"]
    assert (await site.ack("RULES"))["reasonCode"] == "domain_note.not_delivered"


async def test_steps_count_one_by_one(make_site: Any) -> None:
    site = await make_site()
    await site.note(repeatToolCalls=2)
    await site.blocked()
    await site.ack()
    told = await site.call("run_sequence", **steps("press", "press", "press"))
    assert (told["failedAt"], told["reasonCode"]) == (3, "acknowledge_required")


async def test_a_sequence_passes_a_warning_of_its_steps_on_once(make_site: Any) -> None:
    site = await make_site()
    await site.note("SOFT", "warn", value="one")
    told = await site.call("run_sequence", **steps("press", "press", "look"))
    assert warned(told) == [("SOFT", "one", False)]
    assert "siteNoteWarning" not in told["last"]
    assert warned(await site.call("press")) == []


async def test_a_sequence_over_several_hosts_passes_on_the_warnings_of_each(make_site: Any) -> None:
    site = await make_site()
    await site.note("SOFT", "warn", value="one")
    await site.note("OTHER", "warn", value="two", domain="other.test")
    there = {"tool": "nova.wander", "args": {"to": "http://other.test/"}}
    told = await site.call("run_sequence", steps=[there, {"tool": "nova.press"}])
    assert sorted(warned(told)) == [("OTHER", "two", False), ("SOFT", "one", False)]
    block = told["siteNoteWarning"]
    assert block["domain"] == "other.test"
    assert [one.get("domain") for one in block["notes"]] == [None, "shop.test"]
    assert warned(await site.call("press")) == []
    assert warned(await site.call("press", targetId=site.open())) == [("SOFT", None, True)]


# -- principals and the operator


async def put_by_operator(site: Site, principal: str = "*", key: str = "HOUSE", level: Any = "block") -> None:
    wish = Wish(principal, "shop.test", key, "The house says.", "user", enforcement=level)
    await site.rig.db.write(put, wish, site.rig.clock.now, lambda: f"{principal}{key}")


async def test_a_note_for_everybody_holds_beside_an_own_one_of_the_same_key(make_site: Any) -> None:
    site = await make_site()
    await put_by_operator(site)
    await site.note("HOUSE", value="Mine.")
    told = await site.call("press")
    assert [(one["source"], one["text"]) for one in told["notes"]] == [("user", "The house says."), ("agent", "Mine.")]
    assert len((await site.ack("HOUSE"))["acknowledged"]) == 2
    assert (await site.call("press"))["ok"]


async def test_nobody_sees_or_is_held_to_another_principals_notes(make_site: Any) -> None:
    site = await make_site()
    await site.call("domain_note", principal="them", domain="shop.test", key="X", value="theirs", enforcement="block")
    assert await site.blocked() == []
    assert (await site.call("domain_notes_list", domain="shop.test"))["notes"] == []
    gone = await site.call("domain_note_delete", domain="shop.test", key="X")
    assert (gone["ok"], gone["deleted"]) == (True, False)
    assert (await site.ack("X"))["reasonCode"] == "domain_note.not_found"
    listed = await site.call("domain_notes_list", principal="them", domain="shop.test")
    assert [one["value"] for one in listed["notes"]] == ["theirs"]


@pytest.mark.parametrize("principal", ["*", "local"])
async def test_an_agent_neither_changes_nor_deletes_what_the_user_wrote(make_site: Any, principal: str) -> None:
    site = await make_site()
    await put_by_operator(site, principal)
    before = await site.rig.db.read(all_notes)
    deleted = await site.call("domain_note_delete", domain="shop.test", key="HOUSE")
    assert (deleted["errorCode"], deleted["reasonCode"]) == (-32035, "notes.user_owned")
    if principal == "local":
        changed = await site.call("domain_note", domain="shop.test", key="HOUSE", value="mine now")
        assert (changed["errorCode"], changed["reasonCode"]) == (-32035, "notes.user_owned")
        assert (await site.rig.records())[-1].outcome.kind == "failed"
    assert await site.rig.db.read(all_notes) == before
