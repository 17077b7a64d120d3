"""The promises about the browser, one by one: each is held by tests that exist, and the rest of them are here."""

import ast
import base64
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import anyio
import pytest
from playwright.async_api import Error

from nova_mcp.browser.channel.page_channel import DocumentChanged
from nova_mcp.browser.targets.tab import Tab
from nova_mcp.errors import NovaError
from nova_mcp.tools.catalogue import load_catalogue

from .conftest import Site
from .must_hold import HELD
from .nova_kit import NovaClient, open_nova, secrets_file

pytestmark = pytest.mark.browser

ROOT = Path(__file__).resolve().parents[2]
SECRET = 'pa"ss wörd/&42'


# -- the table


def names_in(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_every_promise_is_held_by_tests_that_exist() -> None:
    assert list(HELD) == [f"BR-{number:02d}" for number in range(1, 35)]
    named = {one for tests in HELD.values() for one in tests}
    missing = {one for one in named if one.partition("::")[2] not in names_in(one.partition("::")[0])}
    assert missing == set()
    assert [promise for promise, tests in HELD.items() if not tests] == []


# -- what is held here


@pytest.fixture(scope="module")
async def client(tmp_path_factory: pytest.TempPathFactory, server: Site) -> AsyncIterator[NovaClient]:
    data = tmp_path_factory.mktemp("must-hold")
    secrets_file(data, shop=SECRET)
    async with open_nova(data, server) as client:
        yield client


async def current(client: NovaClient) -> Tab:
    return client.tab((await client.call("tabs", activeOnly=True))["activeTargetId"])


async def test_br05_a_storm_of_alerts_ends_typed_and_holds_up_no_other_tab(client: NovaClient) -> None:
    await client.show("<p>quiet</p>", agentId="quiet")
    here = (await client.show("<button id=b onclick='for(;;) alert(1)'>Go</button>"))["targetId"]
    over = anyio.Event()
    told: dict[str, Any] = {}
    meanwhile: list[bool] = []

    async def storm() -> None:
        told.update(await client.call("click_selector", selector="#b"))
        over.set()

    async with anyio.create_task_group() as group:
        group.start_soon(storm)
        while not over.is_set():
            meanwhile.append((await client.call("page_info", agentId="quiet"))["ok"])
    assert (told["reasonCode"], told["errorCode"], told["actionDispatched"]) == ("dialog.storm", -32002, True)
    assert len(meanwhile) > 3
    assert all(meanwhile)
    again = await client.show("<p>calm</p>")
    assert (again["targetId"], again["ok"]) == (here, True)


async def test_br06_a_page_that_never_lets_go_is_told_by_every_read_and_revived_under_its_id(
    client: NovaClient,
) -> None:
    here = (await client.show("<p>x</p>"))["targetId"]
    await client.tab(here).channel.evaluate("setTimeout(() => { for (;;); }, 0); 1")
    told: dict[str, dict[str, Any]] = {}

    async def ask(tool: str, **arguments: Any) -> None:
        told[tool] = await client.call(tool, **arguments)

    async with anyio.create_task_group() as group:
        for tool in ("perceive", "page_info", "read_text", "extract_table"):
            group.start_soon(ask, tool)
    answers = {tool: (body["reasonCode"], body["retryAfterMs"]) for tool, body in told.items()}
    assert answers == dict.fromkeys(told, ("cdp.renderer_stalled", 2000))
    revived = await client.call("reload", recover=True)
    assert (revived["ok"], revived["recovered"], revived["targetId"]) == (True, True, here)
    assert (await client.call("read_text"))["text"] == "x"


def leaving(tab: Tab, url: str, times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page moves on while it is asked, as often as that."""
    real, left = tab.channel.ask, [times]

    async def ask(*question: Any, **options: Any) -> Any:
        if left[0] <= 0:
            return await real(*question, **options)
        left[0] -= 1
        # Several questions may be on their way together, and one navigation cuts off the other.
        with suppress(Error):
            await tab.page.goto(url)
        raise DocumentChanged

    monkeypatch.setattr(tab.channel, "ask", ask)


@pytest.mark.parametrize("tool", ["perceive", "read_text", "page_info"])
async def test_br09_a_read_in_the_middle_of_a_navigation_tells_the_new_page_or_that_it_moves(
    client: NovaClient, monkeypatch: pytest.MonkeyPatch, tool: str
) -> None:
    tab = client.tab((await client.show("<p>old</p>"))["targetId"])
    there = client.site.url("html?title=new&body=new")
    with monkeypatch.context() as patch:
        leaving(tab, there, 1, patch)
        told = await client.call(tool)
        assert (told["ok"], told["url"], told["navigatedDuringCall"]) == (True, there, True)
    with monkeypatch.context() as patch:
        leaving(tab, there, 100, patch)
        moving = await client.call(tool)
        assert (moving["reasonCode"], moving["errorCode"], moving["retryable"]) == ("page.navigating", -32002, True)
        assert "DocumentChanged" not in json.dumps(moving)


# -- crashes

PAGE = (
    "<form id=form><input id=name name=name value=a><button id=submit>Save</button></form><button id=go>Go</button>"
    "<select id=size><option>s<option>x</select><input type=file id=file><table><tr><td>1</td></tr></table>"
    "<div role=log><p>hi</p></div><textarea placeholder=Message></textarea><button>Send</button>"
)
DURING: dict[str, dict[str, Any]] = {
    "back": {},
    "capture_screenshot": {},
    "choose_option": {"selector": "#size", "text": "x"},
    "click_selector": {"selector": "#go"},
    "coverage_scan": {"scanId": "nova_full_page_text_v1"},
    "dismiss_blockers": {},
    "extract_table": {},
    "file_upload": {"selector": "#file", "paths": ["a.txt"]},
    "forward": {},
    "guarded_login": {},
    "guarded_send_message": {"text": "x"},
    "guarded_submit_form": {"selector": "#submit"},
    "guarded_switch_model": {"model": "x"},
    "guarded_switch_sandbox": {"workspace": "x"},
    "hover": {"selector": "#go"},
    "input_key": {"key": "Tab"},
    "navigate": {"url": ""},
    "page_info": {},
    "perceive": {},
    "phenomenon_apply": {"phenomenonId": "go", "trial": True},
    "pks_match": {},
    "read_text": {},
    "reload": {},
    "revalidate": {"targetId": ""},
    "run_sequence": {"steps": [{"tool": "nova.perceive"}]},
    "scroll_smart": {"to": "bottom"},
    "search_text": {"text": "Go"},
    "type_selector": {"selector": "#name", "text": "x"},
    "type_selector_secret": {"selector": "#name", "secretName": "shop"},
    "wait_for_selector": {"selector": "#go"},
}
KNOWN = {
    "id": "go",
    "type": "modal",
    "fingerprint": {"signals": [{"kind": "dom", "match": "#go"}]},
    "playbook": {"policy": "dismiss", "actions": [{"action": "click", "selector": "#go"}]},
}
# These ask no page: they read the book of tabs, what is remembered, a person, or are switched off.
WITHOUT_A_PAGE = {
    "ask_human",
    "domain_note_ack",
    "eval",
    "get_instructions",
    "goal_register",
    "memory_add_candidate",
    "ok_facts",
    "ok_observe",
    "set_active_tab",
    "tab_claim",
    "tab_close",
    "tab_release",
    "telemetry_report",
}


def an_upload(client: NovaClient) -> str:
    path = client.data / "uploads" / "a.txt"
    path.parent.mkdir(exist_ok=True)
    path.write_text("a")
    return str(path)


def crash_soon(tab: Tab, monkeypatch: pytest.MonkeyPatch) -> None:
    """The renderer dies when the page is asked for the first time, and what was asked meets a dead page."""
    channel = tab.channel
    real: Callable[..., Awaitable[Any]] = channel._timed

    async def timed(*command: Any) -> Any:
        monkeypatch.setattr(channel, "_timed", real)
        with suppress(NovaError):
            await real(lambda: channel.cdp.send("Page.crash"), 5000)
        return await real(*command)

    monkeypatch.setattr(channel, "_timed", timed)


def test_br10_every_tool_that_asks_a_page_is_tried() -> None:
    asking = {spec.name for spec in load_catalogue() if spec.target != "none"}
    assert asking - WITHOUT_A_PAGE == set(DURING)


async def test_br10_a_crash_during_any_tool_is_typed_recorded_and_recoverable(
    client: NovaClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload = an_upload(client)
    here = (await client.show(PAGE))["targetId"]
    there = client.site.url(f"html?body={quote(PAGE)}")
    known = await client.call("pks_upsert", scope=there, phenomenon=KNOWN)
    assert known["ok"], known
    told: dict[str, tuple[Any, ...]] = {}
    for tool, arguments in DURING.items():
        await client.call("perceive")
        before = len(await client.records())
        with monkeypatch.context() as patch:
            crash_soon(client.tab(here), patch)
            given = {
                name: {"url": there, "paths": [upload], "targetId": here}.get(name, value)
                for name, value in arguments.items()
            }
            body = await client.call(tool, **given)
        (record,) = [one for one in (await client.records())[before:] if one.tool_name == f"nova.{tool}"]
        # One that judges many entries says of each why it could not.
        reason = body.get("reasonCode") or next((row["error"] for row in body.get("results", [])), None)
        told[tool] = (reason, record.outcome.kind)
        back = await client.call("navigate", url=there, targetId=here)
        assert (back["ok"], back["targetId"]) == (True, here), (tool, back)
    # Going somewhere mends a crashed tab, and history ends before anything is asked.
    mended = {"navigate", "reload", "back", "forward"}
    odd = {
        tool: answer
        for tool, answer in told.items()
        if answer[1] not in ("failed", "partial") and not (tool in {*mended, "revalidate"} and answer[1] == "ok")
    }
    assert odd == {}
    assert {reason for tool, (reason, _) in told.items() if tool not in mended} == {"tab.crashed"}


# -- frames, submits, targets


async def test_br11_a_frame_that_left_after_the_look_gets_nothing_and_nobody_else_does(client: NovaClient) -> None:
    inner = quote("<button id=b onclick='parent.postMessage(1,`*`)'>Go</button>")
    frame = f"<iframe src='{client.site.url(f'html?body={inner}', host='localhost')}'></iframe>"
    own = "<button id=b onclick='document.title=`pressed`'>Mine</button>"
    here = (await client.show(f"{frame}{own}"))["targetId"]
    tab = client.tab(here)
    frame_id = (await tab.channel.frame_ids())[1]
    pressed = await client.call("click_selector", selector="#b", frameId=frame_id)
    assert pressed["actionDispatched"] is True
    await tab.page.evaluate("document.querySelector('iframe').remove()")
    gone = await client.call("click_selector", selector="#b", frameId=frame_id)
    assert (gone["reasonCode"], gone["actionDispatched"]) == ("frame.detached", False)
    assert await tab.read_title() != "pressed"


@pytest.fixture
async def fresh(tmp_path: Path, server: Site) -> AsyncIterator[NovaClient]:
    """A browser of its own: in the one that the tests before share the storm has hung, and why is not known yet."""
    async with open_nova(tmp_path, server) as client:
        yield client


async def test_br13_popups_that_nobody_asked_for_stay_five_however_long_they_come(fresh: NovaClient) -> None:
    here = (await fresh.open("host/popups.html"))["targetId"]
    tab = fresh.tab(here)
    opening = "window.opened = (window.opened ?? []).concat([...Array(30)].map(() => open('/html?title=popup')))"
    for _ in range(2):
        # A wave comes when the ten seconds of the one before are over.
        tab._popup_moments.clear()
        await tab.page.evaluate(f"{opening}; 0")
        # Its own windows are asked for: of one that closes early the driver tells nobody. And they are asked from
        # outside: a page behind others draws nothing, and a wait inside it would wait for that.
        with anyio.fail_after(60):
            while await tab.page.evaluate("opened.filter(one => !one.closed).length") > 5:  # noqa: ASYNC110 - nor of this
                await anyio.sleep(0.05)
            while fresh.nova._parts.browser.targets.opening:  # noqa: ASYNC110 - nobody is told when a popup has its row
                await anyio.sleep(0.02)
        listed = (await fresh.call("tabs", outputDetail="full"))["tabs"]
        assert len([one for one in listed if one.get("openerTargetId") == here]) == 5
    assert (await fresh.call("page_info"))["targetId"] == here


FAILING = {
    "with an error status": "fetch('/html?status=500', {method: 'POST'})",
    "with a good status and words of failure": "fetch('/html', {method: 'POST'}).then(() => {"
    " note.textContent = 'Your card was declined, payment failed' })",
    "with no answer in time": "fetch('/never', {method: 'POST'})",
}


@pytest.mark.parametrize("how", FAILING)
async def test_br16_a_submit_that_failed_is_never_told_as_likely_or_verified(client: NovaClient, how: str) -> None:
    form = "<form id=f><input name=a value=1><p id=note role=status></p><button id=s>Pay</button></form>"
    script = f"<script>f.onsubmit = (event) => {{ event.preventDefault(); {FAILING[how]} }}</script>"
    await client.show(form + script)
    contract = {"stabilityWindowMs": 700}
    told = await client.call("guarded_submit_form", selector="#s", intentKey=how, transitionContract=contract)
    assert told["actionDispatched"] is True
    assert told["status"] in ("partial", "failed")
    assert told["verifyState"] in ("uncertain", "failed")


UNTOUCHABLE = {
    "missing": "",
    "disabled": "<fieldset disabled>{}</fieldset>",
    "hidden": "<div style='visibility:hidden'>{}</div>",
    "gone": "{}",
}
ACTING: dict[str, tuple[str, dict[str, Any]]] = {
    "click_selector": ("<button id=t>Go</button>", {}),
    "hover": ("<button id=t>Go</button>", {}),
    "type_selector": ("<input id=t>", {"text": "x"}),
    "type_selector_secret": ("<input id=t>", {"secretName": "shop"}),
    "choose_option": ("<select id=t><option>a<option>x</select>", {"text": "x"}),
    "input_key": ("<input id=t>", {"key": "a"}),
    "file_upload": ("<input id=t type=file>", {"paths": ["UPLOAD"]}),
}
HEARD = (
    "<script>globalThis.heard = 0; for (const kind of ['pointerdown', 'click', 'keydown', 'input', 'change'])"
    " addEventListener(kind, (event) => { heard += event.isTrusted ? 1 : 0 }, true)</script>"
)


@pytest.mark.parametrize("state", UNTOUCHABLE)
async def test_br19_no_tool_touches_what_is_missing_disabled_gone_or_hidden(client: NovaClient, state: str) -> None:
    upload = an_upload(client)
    odd = {}
    for tool, (control, arguments) in ACTING.items():
        # Hovering asks nothing of a control but to be seen, and pages hide their file inputs behind a button.
        if (tool, state) in (("hover", "disabled"), ("file_upload", "hidden")):
            continue
        tab = client.tab((await client.show(HEARD + UNTOUCHABLE[state].format(control)))["targetId"])
        given = {key: [upload] if value == ["UPLOAD"] else value for key, value in arguments.items()}
        where: dict[str, Any] = {"selector": "#t"}
        if state == "gone":
            lines = (await client.call("perceive", mode="full"))["elements"]
            where = {"ref": next(line.split(" ", 1)[0] for line in lines if "#t" in line)}
            await tab.page.evaluate("document.querySelector('#t').remove()")
        told = await client.call(tool, **where, **given, timeoutMs=0)
        heard = await tab.page.evaluate("heard")
        if told["ok"] or told["actionDispatched"] or heard:
            odd[tool] = (told.get("reasonCode"), told["actionDispatched"], heard)
    assert odd == {}


async def test_br34_an_ambiguous_selector_touches_nothing_whatever_the_tool_and_its_candidates_are_distinct(
    client: NovaClient,
) -> None:
    for tool, (control, arguments) in ACTING.items():
        twins = control.replace("id=t", "class=t aria-label=One") + control.replace("id=t", "class=t aria-label=Two")
        tab = client.tab((await client.show(HEARD + twins))["targetId"])
        given = {key: [an_upload(client)] if value == ["UPLOAD"] else value for key, value in arguments.items()}
        told = await client.call(tool, selector=".t", **given)
        assert (tool, told["reasonCode"], told["actionDispatched"]) == (tool, "selector.ambiguous", False)
        assert len({candidate["ref"] for candidate in told["candidates"]}) == 2
        assert await tab.page.evaluate("heard") == 0


# -- pages that do not come


async def test_br22_a_page_that_did_not_come_has_its_reason_and_leaves_no_error_page_anywhere(
    client: NovaClient, refused_port: int
) -> None:
    port = client.site.port
    expected = {
        client.site.url("no-such-page"): ("partial", "navigation.http_error", 404),
        f"http://127.0.0.1:{refused_port}/": ("failed", "navigation.failed", "ERR_CONNECTION_REFUSED"),
        "http://nowhere.invalid/": ("failed", "navigation.failed", "ERR_NAME_NOT_RESOLVED"),
        f"https://127.0.0.1:{port}/": ("failed", "navigation.failed", "ERR_SSL_PROTOCOL_ERROR"),
        f"http://127.0.0.1:{port}/loop": ("failed", "navigation.failed", "ERR_TOO_MANY_REDIRECTS"),
    }
    told = {}
    for url in expected:
        body = await client.call("navigate", url=url)
        told[url] = (body["status"], body["reasonCode"], body.get("netError") or body["httpStatus"])
        if body["status"] == "failed":
            seen = await client.answer("perceive")
            assert seen.structured["elements"] == []
            assert seen.structured["title"] == ""
            assert (await client.call("read_text"))["text"] == ""
    assert told == expected
    kept = client.kept()
    assert b"This site can" not in kept
    assert b"chrome-error" not in kept


# -- secrets


def spellings(secret: str) -> set[str]:
    encoded = base64.b64encode(secret.encode()).decode()
    return {secret, quote(secret), quote(secret, safe=""), json.dumps(secret)[1:-1], encoded}


async def test_br24_a_secret_that_a_page_echoes_in_every_spelling_is_nowhere(client: NovaClient) -> None:
    shown = "".join(f"<p>{text.replace('&', '&amp;')}</p>" for text in sorted(spellings(SECRET)))
    plain = SECRET.replace("&", "&amp;").replace('"', "&quot;")
    body = (
        f"<h1>{plain}</h1>{shown}<a href='#{quote(SECRET)}'>{plain}</a><table><tr><td>{plain}</td></tr></table>"
        f'<button id=b aria-label="{plain}" onclick="alert(this.ariaLabel)">x</button><input aria-label="{plain}">'
    )
    await client.call("navigate", url=client.site.url(f"html?title={quote(SECRET)}&body={quote(body)}"))
    looked = await client.answer("perceive", mode="full")
    kept = {"perceptionId": looked.structured["perceptionId"]}
    answers = [
        looked,
        *[
            await client.answer("perceive", mode=mode)
            for mode in ("summary", "state", "ctas", "form_analysis", "modals")
        ],
        *[await client.answer("perceive_snapshot_query", op=op, **kept) for op in ("summary", "elements", "outline")],
        await client.answer("perceive_snapshot_query", op="search", query="p", **kept),
        await client.answer("read_text"),
        await client.answer("search_text", text="p"),
        await client.answer("extract_table"),
        await client.answer("page_info"),
        await client.answer("tabs", outputDetail="full"),
        await client.answer("wait_for_selector", selector="h1"),
        await client.answer("click_selector", selector="#b", outputDetail="full"),
        await client.answer("hover", selector=SECRET),
        await client.answer("type_selector", selector="input", text=SECRET),
        await client.answer("sandbox_list", outputDetail="full"),
    ]
    leaks = []
    for number, answer in enumerate(answers):
        everything = answer.text + json.dumps(answer.structured, ensure_ascii=False) + str(answer.structured)
        leaks += [(number, spelling) for spelling in spellings(SECRET) if spelling in everything]
    assert leaks == []
    assert any("«secret:shop»" in answer.text for answer in answers)
    stored = client.kept().decode("utf-8", "replace")
    assert [spelling for spelling in spellings(SECRET) if spelling in stored] == []


# -- many at once

AGENTS = 50
AT_ONCE = 8
OWN = (
    "<title>{0}</title><h1>Room {0}</h1><p id=said role=status></p><input id=field>"
    "<button id=go onclick=\"said.textContent = confirm('dialog {0}') ? 'yes {0}' : 'no {0}'\">Press {0}</button>"
)


async def test_br26_fifty_agents_on_fifty_tabs_hear_only_of_their_own(client: NovaClient) -> None:
    # A sandbox holds fifty tabs, so they need one of their own.
    client = replace(client, principal="fifty")
    heard: dict[str, list[str]] = {}
    tabs: dict[str, str] = {}

    # All tabs live at once; how many are asked at the same moment is a matter of the machine, not of the promise.
    at_once = anyio.CapacityLimiter(AT_ONCE)

    async def arrive(name: str) -> None:
        url = client.site.url(f"html?body={quote(OWN.format(name))}")
        async with at_once:
            opened = await client.call("tab_new", url=url, agentId=name, timeoutMs=60_000)
        assert opened["ok"], opened
        tabs[name] = opened["targetId"]

    async def work(name: str) -> None:
        async with at_once:
            looked = await client.answer("perceive", agentId=name)
        button = next(line for line in looked.structured["elements"] if "Press" in line)
        async with at_once:
            pressed = await client.call("click_selector", ref=button.split(" ", 1)[0], agentId=name, timeoutMs=20_000)
        async with at_once:
            typed = await client.call("type_selector", selector="#field", text=name, agentId=name, timeoutMs=20_000)
        async with at_once:
            read = await client.answer("read_text", agentId=name)
        assert {pressed["targetId"], typed["targetId"]} == {tabs[name]}
        assert [dialog["message"] for dialog in pressed["dialogs"]] == [f"dialog {name}"]
        assert (typed["valueMatches"], pressed["reasonCode"]) == (True, "dialog.confirm_dismissed")
        heard[name] = [looked.text, read.text, json.dumps(pressed), json.dumps(typed)]

    names = [f"agent-{number:02d}" for number in range(AGENTS)]
    try:
        for stage in (arrive, work):
            async with anyio.create_task_group() as group:
                for name in names:
                    group.start_soon(stage, name)
        assert len(set(tabs.values())) == AGENTS
        for name in names:
            everything = " ".join(heard[name])
            assert f"no {name}" in everything
            assert [other for other in names if other != name and other in everything] == []
        foreign = await client.call("click_selector", selector="#go", agentId="agent-00", targetId=tabs["agent-01"])
        assert (foreign["errorCode"], foreign["ownerAgentId"]) == (-32040, "agent-01")
    finally:
        for name, target_id in tabs.items():
            await client.call("tab_close", targetId=target_id, agentId=name)
