"""A scenario that calls every tool once so that it succeeds and once so that it is refused."""

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
from golden_kit import Agent
from tests.pages.faults.site import fault_site

from nova_mcp.core.mailbox import Mailbox
from nova_mcp.core.questions import Reply

Chapter = Callable[[Agent], Awaitable[None]]

SHOP = """<!doctype html><html lang="en"><title>Lamps</title>
<header><nav><a href="/plain">Home</a> <a href="/list">All lamps</a></nav></header>
<main><h1>Lamps</h1><p>Lamps for the desk and the floor, sent within two days.</p>
<form id="search" role="search" action="/list"><label>Find <input id="find" type="search" name="q"></label></form>
<label>Size <select id="size"><option>Small</option><option>Large</option></select></label>
<label>Note <input id="note" autocomplete="off"></label>
<label>Code <input id="code" type="password"></label>
<label>Plan <input id="file" type="file"></label>
<button id="more" type="button">More</button><output id="count">0</output>
<button id="remove" type="button">Delete lamp</button><button id="off" type="button" disabled>Not now</button>
<span id="menu" tabindex="0">Help</span><div id="help" hidden>Call us on Mondays.</div>
<table id="prices"><caption>Prices</caption><thead><tr><th>Lamp</th><th>Price</th></tr></thead>
<tbody><tr><td>Desk</td><td>20</td></tr><tr><td>Floor</td><td>45</td></tr></tbody></table>
<div style="height:3000px"></div><p id="end">The end of the list.</p></main>
<script>let n = 0; more.onclick = () => { count.textContent = ++n; };
menu.onmouseenter = () => { help.hidden = false; };</script></html>"""
PLAIN = '<!doctype html><html lang="en"><title>Home</title><main><h1>Home</h1><a href="/list">Lamps</a></main></html>'
BANNER = """<!doctype html><html lang="en"><title>News</title><main><h1>News</h1><p>Nothing happened today.</p></main>
<div id="cmp" role="dialog" aria-label="Cookies"
style="position:fixed;left:0;right:0;bottom:0;padding:16px;background:#fff">
<p>We use cookies to improve your visit.</p>
<button id="no" type="button" onclick="cmp.remove()">Reject all</button>
<button id="yes" type="button" onclick="cmp.remove()">Accept all</button></div></html>"""
LETTER = """<!doctype html><html lang="en"><title>Tips</title><main><h1>Tips</h1><p>Dust your lamps.</p></main>
<div id="letter" role="dialog" aria-modal="true" aria-label="Newsletter"
style="position:fixed;top:20%;left:30%;padding:40px;background:#fff">
<p>Our newsletter comes once a month.</p><button id="shut" type="button" onclick="letter.remove()">No, thanks</button>
</div></html>"""
PAGES = {
    "/letter": LETTER,
    "/lamps": SHOP,
    "/list": PLAIN.replace("Home", "All lamps"),
    "/plain": PLAIN,
    "/news": BANNER,
}

ALL_UNITS = {"coverageMode": "exhaustive", "unitKind": "item", "stopMetric": "all_units_processed"}
PROFILE = {"taskType": "audit", "displayName": "Lamp audit", "goal": "See every lamp", "completionCondition": ALL_UNITS}
NOBODY = "0" * 32
LAYER = {
    "id": "letter_layer",
    "type": "modal",
    "fingerprint": {"signals": [{"kind": "dom", "match": "#letter"}, {"kind": "text", "match": "Our newsletter"}]},
    "playbook": {
        "policy": "dismiss",
        "actions": [{"action": "click", "selector": "#shut"}],
        "verify": [{"type": "absent", "selector": "#letter"}],
    },
}


async def _finding_the_way(agent: Agent) -> None:
    await agent.success("get_instructions", mode="task", detail="compact")
    await agent.refusal("get_instructions", mode="sleep")
    await agent.success("tools_bundle", toolName="back")
    await agent.refusal("tools_bundle", bundle="garden")
    await agent.success("tab_new", url=agent.shop.url("/plain"))
    await agent.refusal("tab_new", url="file:///etc/passwd")
    await agent.success("tabs")
    await agent.refusal("tabs", verbose=True)
    await agent.success("call", tool="nova.page_info", args={})
    await agent.refusal("call", tool="nova.call", args={"tool": "nova.tabs"})
    await agent.success("memory_stats", windowHours=1)
    await agent.refusal("memory_stats", windowHours=0)


async def _moving(agent: Agent) -> None:
    await agent.call("navigate", url=agent.shop.url("/plain"))
    await agent.success("navigate", url=agent.shop.url("/lamps"))
    await agent.refusal("navigate", url="javascript:alert(1)")
    await agent.success("back")
    await agent.success("forward")
    await agent.refusal("forward")
    await agent.success("reload")
    await agent.refusal("reload", recover=True)
    other = await agent.call("tab_new", url=agent.shop.url("/list"))
    await agent.refusal("back")
    here = (await agent.call("tabs"))["tabs"][0]["targetId"]
    await agent.success("set_active_tab", targetId=here)
    await agent.refusal("set_active_tab", targetId="tab_nowhere")
    await agent.success("tab_close", targetId=other["targetId"])
    await agent.refusal("tab_close", targetId="tab_nowhere", force=True)
    await agent.success("sandbox_create", name="second", purpose="a second account")
    await agent.refusal("sandbox_create", timezone="Mars/Base")
    listed = await agent.success("sandbox_list")
    await agent.refusal("sandbox_list", all=True)
    second = listed["sandboxes"][-1]["sandboxId"]
    await agent.refusal("sandbox_delete", sandboxId="ZZZZ", confirm=True)
    await agent.success("sandbox_delete", sandboxId=second, confirm=True)


async def _reading(agent: Agent) -> None:
    await agent.call("navigate", url=agent.shop.url("/lamps"))
    look = await agent.success("perceive")
    await agent.refusal("perceive", mode="glance")
    await agent.success("perceive_snapshot_query", perceptionId=look["perceptionId"], op="search", query="lamp")
    await agent.refusal("perceive_snapshot_query", perceptionId="tab_1.p99")
    await agent.success("page_info")
    await agent.refusal("page_info", targetId="tab_nowhere")
    await agent.success("read_text")
    await agent.refusal("read_text", selector="#nowhere")
    await agent.success("search_text", text="desk")
    await agent.refusal("search_text", text="(", match="regex")
    await agent.success("extract_table", selector="#prices")
    await agent.refusal("extract_table", selector="#nowhere")
    await agent.success("wait_for_selector", selector="#count")
    await agent.refusal("wait_for_selector", selector="#nowhere", timeoutMs=100)
    await agent.success("capture_screenshot", selector="#prices")
    await agent.refusal("capture_screenshot", selector="#nowhere")
    await agent.success("scroll_smart", to="bottom")
    await agent.refusal("scroll_smart", container="#nowhere", deltaY=100)
    await agent.success("eval", expression="1 + 1")
    await agent.refusal("eval", expression="nobody.there")


async def _acting(agent: Agent) -> None:
    await agent.show("/lamps")
    await agent.success("click_selector", selector="#more", expect=["text:1"])
    await agent.refusal("click_selector", selector="#remove")
    await agent.success("type_selector", selector="#note", text="a red one")
    await agent.refusal("type_selector", selector="#more", text="x")
    await agent.success("choose_option", selector="#size", text="Large")
    await agent.refusal("choose_option", selector="#size", text="Huge")
    await agent.success("input_key", selector="#note", key="Tab")
    await agent.refusal("input_key", key="Control+W")
    await agent.success("hover", selector="#menu")
    await agent.refusal("hover", selector="#nowhere", timeoutMs=100)
    await agent.success("type_selector_secret", selector="#code", secretName="shop")
    await agent.refusal("type_selector_secret", selector="#code", secretName="nobody")
    await agent.success("file_upload", selector="#file", paths=[str(agent.data_dir / "uploads" / "plan.txt")])
    await agent.refusal("file_upload", selector="#file", paths=["/etc/hostname"])
    steps = [{"tool": "nova.click_selector", "args": {"selector": "#more"}}, {"tool": "nova.page_info"}]
    await agent.success("run_sequence", steps=steps)
    await agent.refusal("run_sequence", steps=[])
    await agent.show("/news")
    await agent.success("dismiss_blockers")
    await agent.refusal("dismiss_blockers", maxPasses=9)


async def _committing(agent: Agent) -> None:
    with fault_site() as site:
        port = site.url("ok_document", "x").split(":")[2].partition("/")[0]
        agent.ports.append(port)

        async def show(case: str) -> None:
            await agent.call("navigate", url=site.url(case, f"golden-{case}"))
            await agent.call("perceive")

        await show("ok_document")
        await agent.success("guarded_submit_form", selector="#go")
        await show("error_text_200")
        await agent.refusal("guarded_submit_form", selector="#go")
        await show("login_right")
        await agent.call("type_selector", selector="#username", text="ada")
        await agent.call("type_selector", selector="#password", text="open-sesame")
        await agent.success("guarded_login")
        await show("login_wrong")
        await agent.call("type_selector", selector="#username", text="ada")
        await agent.call("type_selector", selector="#password", text="let-me-in")
        await agent.refusal("guarded_login")
        await show("chat_streams")
        await agent.success("guarded_send_message", text="Good morning")
        await show("model_listbox")
        await agent.success("guarded_switch_model", model="Thorough")
        await agent.refusal("guarded_switch_model", model="Nobody's")
        await show("workspace_listbox")
        await agent.success("guarded_switch_sandbox", workspace="Team North")
        await agent.refusal("guarded_switch_sandbox", workspace="Team Nowhere")
    await agent.show("/plain")
    await agent.refusal("guarded_send_message", text="Good morning", timeoutMs=300)


async def _goals_and_people(agent: Agent) -> None:
    await agent.success("goal_register", op="create", summary="Buy a lamp", steps=[{"actionDesc": "Find the lamp"}])
    await agent.refusal("goal_register", op="close", goalId="goal_nowhere", state="completed")
    await agent.refusal("ask_human", why="log in, please", timeoutMs=1000)
    mailbox = Mailbox(agent.data_dir)

    async def answer() -> None:
        with anyio.fail_after(20):
            while not (waiting := mailbox.questions()):  # noqa: ASYNC110 - a person looks into a folder
                await anyio.sleep(0.02)
        mailbox.reply(waiting[0].id, Reply(resolved=True, by="ada", note="done"))

    with mailbox.attending():
        async with anyio.create_task_group() as group:
            group.start_soon(answer)
            await agent.success("ask_human", why="log in, please", kind="login")


async def _notes(agent: Agent) -> None:
    stored = await agent.success("operator_notes_store", content="Write short sentences.", tags=["style"])
    await agent.refusal("operator_notes_store", content="password: hunter2hunter2", tags=["style"])
    await agent.success("operator_notes_query", keywords=["style"])
    await agent.refusal("operator_notes_query", keywords=[])
    await agent.success("operator_notes_list")
    await agent.refusal("operator_notes_list", limit=0)
    await agent.success("operator_notes_delete", id=stored["noteId"])
    await agent.refusal("operator_notes_delete", id="nobody")
    await agent.success("memory_note", content="Prefers warm light.", domain="lamps.example")
    await agent.refusal("memory_note", content="x" * 2001, domain="lamps.example")
    await agent.success("memory_recall", domain="lamps.example")
    await agent.refusal("memory_recall", limit=0)
    await agent.success("memory_forget", domain="lamps.example")
    await agent.refusal("memory_forget")
    tab = await agent.show("/plain")
    await agent.success("domain_note", domain="127.0.0.1", key="hours", value="Closed on Mondays.", enforcement="warn")
    await agent.refusal("domain_note", domain="not a host", key="hours", value="x")
    await agent.success("domain_notes_list", domain="127.0.0.1")
    await agent.refusal("domain_notes_list", domain="not a host")
    await agent.success("domain_note_ack", targetId=tab, domain="127.0.0.1", key="hours")
    await agent.refusal("domain_note_ack", targetId=tab, domain="127.0.0.1", key="nothing")
    await agent.success("domain_note_delete", domain="127.0.0.1", key="hours")
    await agent.refusal("domain_note_delete", domain="not a host", key="hours")


async def _facts(agent: Agent) -> None:
    tab = await agent.show("/plain")
    await agent.success("ok_observe", targetId=tab, claims=[{"signalKey": "core.ui.theme", "value": "dark"}])
    await agent.refusal("ok_observe", targetId=tab, claims=[])
    await agent.success("ok_facts", targetId=tab)
    await agent.refusal("ok_facts", targetId=tab, limit=0)
    await agent.success("ok_signal_schema", namespace="core.ui")
    await agent.refusal("ok_signal_schema", maxEntries=0)


async def _knowledge(agent: Agent) -> None:
    tab = await agent.show("/letter")
    scope = agent.shop.base.removeprefix("http://")
    # Nova asked when the layer was dismissed for the first time.
    prompt = agent.answers["dismiss_blockers"]["success"].structured["pksSemanticLearning"]
    await agent.success("learn_resolve_opportunity", opportunityId=prompt["opportunityId"], verdict="not_applicable")
    await agent.refusal("learn_resolve_opportunity", opportunityId="sem:nothing", verdict="unsafe")
    await agent.show("/letter")
    await agent.success("pks_upsert", scope=scope, phenomenon=LAYER)
    await agent.refusal("pks_upsert", scope="elsewhere.example", phenomenon=LAYER)
    await agent.success("pks_get", scope=scope, phenomenonId="letter_layer")
    await agent.refusal("pks_get", scope="not a host")
    await agent.success("pks_list")
    await agent.refusal("pks_list", limit=0)
    await agent.success("pks_patch", scope=scope, phenomenonId="letter_layer", patch={"context": {"locale": "en"}})
    await agent.refusal("pks_patch", scope=scope, phenomenonId="nobody", patch={"deprecated": False})
    await agent.success("pks_match", targetId=tab)
    await agent.refusal("pks_match", targetId=tab, topK=0)
    await agent.success("phenomenon_apply", targetId=tab, phenomenonId="letter_layer", trial=True)
    await agent.refusal("phenomenon_apply", targetId=tab, phenomenonId="letter_layer")
    await agent.success("telemetry_report", targetId=tab, scope=scope, phenomenonId="letter_layer", outcome="success")
    await agent.refusal("telemetry_report", targetId=tab, scope=scope, phenomenonId="nobody", outcome="success")
    await agent.success("explain", scope=scope, stableId="letter_layer")
    await agent.refusal("explain", scope=scope, stableId="nobody")
    await agent.success("learn_promote", scope=scope, dryRun=True)
    await agent.refusal("learn_promote", scope="elsewhere.example", stableIds=["nobody"])
    await agent.success("learn_feedback", scope=scope)
    await agent.refusal("learn_feedback", limit=0)
    await agent.success("learn_suggest", scope=scope)
    await agent.refusal("learn_suggest", limit=0)
    await agent.success("learn_generate", scope=scope)
    await agent.refusal("learn_generate", scope="elsewhere.example")
    await agent.success("revalidate", targetId=tab)
    await agent.refusal("revalidate", targetId=tab, limit=0)
    hint = {"kind": "noise_region", "selectors": ["#letter"]}
    await agent.show("/letter")
    await agent.success("pks_upsert_hint", scope=scope, domainHint=hint)
    await agent.refusal("pks_upsert_hint", scope=scope, domainHint={"kind": "weather", "selectors": ["#letter"]})
    await agent.success("pks_platform_list")
    await agent.refusal("pks_platform_list", limit=1)
    await agent.success(
        "pks_platform_seed",
        stableId="acme_consent",
        displayName="Acme Consent",
        patterns=[{"kind": "dom", "match": "#acme-consent"}],
    )
    await agent.refusal("pks_platform_seed", stableId="onetrust", displayName="OneTrust")
    await agent.success("pks_platform_get", stableId="acme_consent")
    await agent.refusal("pks_platform_get", stableId="")
    await agent.success("pks_deprecate", scope=scope, phenomenonId="letter_layer", reason="the layer is gone")
    await agent.refusal("pks_deprecate", scope=scope, phenomenonId="nobody", reason="the layer is gone")


async def _claims(agent: Agent) -> None:
    tab = await agent.show("/plain")
    await agent.success("tab_claim", targetId=tab)
    await agent.refusal("tab_claim", targetId=tab, agentId="another")
    await agent.success(
        "memory_add_candidate", targetId=tab, component="link", claim="The lamps are behind the only link."
    )
    await agent.refusal("memory_add_candidate", targetId="tab_nowhere", component="link", claim="Nothing is here.")
    await agent.refusal("tab_release", targetId=tab, finalizationToken="wrong")
    await agent.success("tab_release", targetId=tab)


async def _tasks(agent: Agent) -> None:
    await agent.success("task_profile_upsert", profileId="lamp-audit", **PROFILE)
    await agent.refusal("task_profile_upsert", profileId="lamp-audit", goal="See more", expectedContentRev=9)
    await agent.success("task_profile_get", profileId="lamp-audit")
    await agent.refusal("task_profile_get", profileId="nobody")
    await agent.success("task_profiles")
    await agent.refusal("task_profiles", limit=0)
    await agent.success("task_search", query="lamp audit")
    await agent.refusal("task_search", query="")
    await agent.success("task_match", taskDescription="See every lamp, as an audit")
    await agent.refusal("task_match", taskDescription="x")
    run = (await agent.success("task_instance_create", profileId="lamp-audit"))["instanceId"]
    await agent.refusal("task_instance_create", profileId="nobody")
    await agent.success(
        "task_instance_progress",
        instanceId=run,
        expectedInstanceRev=0,
        clientEventId="found",
        discoveredUnits=[{"unitKey": "desk"}],
        setDiscoveryState="frozen",
    )
    await agent.refusal(
        "task_instance_progress", instanceId=run, expectedInstanceRev=0, clientEventId="late", note="too late"
    )
    await agent.success("task_instance_get", instanceId=run)
    await agent.refusal("task_instance_get", instanceId=NOBODY)
    await agent.success("task_instance_verify", instanceId=run)
    await agent.refusal("task_instance_verify", instanceId=NOBODY)
    await agent.refusal("task_instance_complete", instanceId=run, expectedInstanceRev=1, clientEventId="early")
    await agent.call(
        "task_instance_progress",
        instanceId=run,
        expectedInstanceRev=1,
        clientEventId="seen",
        unitUpdates=[{"unitKey": "desk", "status": "checked"}],
    )
    await agent.success("task_instance_complete", instanceId=run, expectedInstanceRev=2, clientEventId="end")
    other = (await agent.call("task_instance_create", profileId="lamp-audit"))["instanceId"]
    await agent.refusal(
        "task_instance_abort", instanceId=other, expectedInstanceRev=7, clientEventId="stop", reason="no time"
    )
    await agent.success(
        "task_instance_abort", instanceId=other, expectedInstanceRev=0, clientEventId="stop", reason="no time"
    )
    said: dict[str, Any] = {"guidanceKind": "style", "sourceKind": "user", "payload": {"text": "Name the bulb."}}
    logged = await agent.success("task_guidance_log_add", **said, profileId="lamp-audit")
    await agent.refusal("task_guidance_log_add", **said, profileId="nobody")
    for _ in range(3):
        again = (await agent.call("task_instance_create", profileId="lamp-audit"))["instanceId"]
        logged = await agent.call("task_guidance_log_add", **said, instanceId=again)
    await agent.success("task_guidance_logs", profileId="lamp-audit")
    await agent.refusal("task_guidance_logs", limit=0)
    await agent.success("task_promotion_candidates", profileId="lamp-audit")
    await agent.refusal("task_promotion_candidates", profileId="nobody")
    await agent.success("task_promote_guidance", guidanceLogId=logged["guidanceLogId"], profileId="lamp-audit")
    await agent.refusal("task_promote_guidance", guidanceLogId=NOBODY, profileId="lamp-audit")


async def _covering(agent: Agent) -> None:
    tab = await agent.show("/plain")
    await agent.success("coverage_scan", targetId=tab, scanId="nova_full_page_text_v1")
    await agent.refusal("coverage_scan", targetId=tab, scanId="nobody")


CHAPTERS: tuple[Chapter, ...] = (
    _finding_the_way,
    _moving,
    _reading,
    _acting,
    _committing,
    _goals_and_people,
    _notes,
    _facts,
    _knowledge,
    _claims,
    _tasks,
    _covering,
)


async def play(agent: Agent) -> None:
    for chapter in CHAPTERS:
        await chapter(agent)
