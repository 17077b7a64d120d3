"""Whether the page was touched: the answer and the ledger say the same, and both are true."""

from pathlib import Path
from typing import Any

import pytest
from real_kit import real_stdio, records, small_site

pytestmark = pytest.mark.browser

PAGES = {
    "/late-cover": """<!doctype html><title>t</title><button id=go onclick="said.textContent='clicked'">Go</button>
        <p id=said></p><div id=veil hidden style="position:fixed;inset:0" onclick="said.textContent='veil'"></div>
        <script>go.onpointermove = () => { veil.hidden = false; };</script>""",
    "/vanishing": """<!doctype html><title>t</title><button id=go>Go</button>
        <script>go.onpointermove = () => go.remove();</script>""",
    "/dead": "<!doctype html><title>t</title><button id=go type=button>Go</button>",
    "/busy": """<!doctype html><title>t</title><button id=go type=button>Go</button><p id=said role=status>0</p>
        <script>go.onclick = () => { said.textContent = 'done'; };</script>""",
    "/confirm": """<!doctype html><title>t</title><button id=go type=button>Go</button>
        <script>go.onclick = () => { if (confirm('Sure?')) document.title = 'gone'; };</script>""",
    "/frozen": "<!doctype html><title>t</title><input id=go readonly value=x>",
    "/upper": """<!doctype html><title>t</title><input id=go>
        <script>go.oninput = () => { go.value = go.value.toUpperCase(); };</script>""",
    "/form": """<!doctype html><title>t</title>
        <form method=post action=/sent><input id=f><button id=go>Save</button></form>""",
    "/password": "<!doctype html><title>t</title><input type=password id=go>",
    "/away": "-> http://10.1.2.3/",
}

CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "/late-cover": ("click_selector", {}, {"reasonCode": "action.obstructed", "actionDispatched": False}),
    "/vanishing": ("click_selector", {"timeoutMs": 400}, {"reasonCode": "action.unstable", "actionDispatched": False}),
    "/dead": ("click_selector", {}, {"reasonCode": "action.no_effect_observed", "verifyState": "uncertain"}),
    "/busy": ("click_selector", {}, {"reasonCode": None, "verifyState": "likely", "dispatchProof": "event"}),
    "/confirm": ("click_selector", {}, {"reasonCode": "dialog.confirm_dismissed", "status": "partial"}),
    "/frozen": ("type_selector", {"text": "y"}, {"reasonCode": "type.not_editable", "actionDispatched": False}),
    "/upper": ("type_selector", {"text": "low"}, {"reasonCode": "type.value_mismatch", "actualValue": "LOW"}),
    "/form": ("click_selector", {}, {"gateId": "safety.guarded_commit", "actionDispatched": False}),
    "/password": ("type_selector", {"text": "hunter2"}, {"verifyState": "verified", "valueMatches": True}),
}
TOUCHED = {"/dead", "/busy", "/confirm", "/upper", "/password"}


async def test_every_answer_says_what_reached_the_page_and_the_ledger_agrees(tmp_path: Path) -> None:
    answers: dict[str, dict[str, Any]] = {}
    with small_site(PAGES) as (base, _):
        async with real_stdio(tmp_path, "auto") as client:
            for path, (tool, arguments, _) in CASES.items():
                await client.call_tool("nova.navigate", {"url": base + path})
                await client.call_tool("nova.perceive", {})
                answer = await client.call_tool(f"nova.{tool}", {"selector": "#go", "agentId": "default", **arguments})
                answers[path] = answer.structured_content or {}
            said = await client.call_tool("nova.read_text", {})
            away = await client.call_tool("nova.navigate", {"url": base + "/away"})
    for path, (_, _, expected) in CASES.items():
        told = {key: answers[path].get(key) for key in expected}
        assert told == expected, f"{path}: {answers[path]}"
        assert answers[path]["actionDispatched"] is (path in TOUCHED), path
    acted = [record for record in records(tmp_path) if record.effect == "act"]
    assert [bool(record.outcome.action_dispatched) for record in acted] == [path in TOUCHED for path in CASES]
    kinds = dict(zip(CASES, (record.outcome.kind for record in acted), strict=True))
    assert kinds["/form"] == "blocked_preflight"
    assert kinds["/busy"] == "ok"
    assert kinds["/dead"] == "partial"
    assert "hunter2" not in (tmp_path / "nova.db").read_bytes().decode("latin-1")
    assert said.structured_content is not None
    assert away.is_error
    assert away.structured_content is not None
    assert away.structured_content["reasonCode"] == "policy.private_network"
    assert away.structured_content["errorCode"] == -32035
