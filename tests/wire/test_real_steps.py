"""Sequences and questions to people through a real client, a real Chromium and a real ledger."""

from pathlib import Path

import anyio
import pytest
from real_kit import findings, real_stdio, records, small_site, text_of

from nova_mcp.core.mailbox import Mailbox
from nova_mcp.core.questions import Reply

pytestmark = pytest.mark.browser

SHOP = """<!doctype html><html lang="en"><title>Shop</title><main><h1>Shop</h1>
<button id="more" type="button">More</button><p id="count" role="status">0</p>
<form method="post" action="/order"><label>Name <input id="name" name="name"></label>
<button id="buy">Place order</button></form></main>
<script>let n = 0; more.onclick = () => { count.textContent = ++n; };</script></html>"""


async def test_a_sequence_drives_a_page_and_stops_at_a_commit_without_a_contract(tmp_path: Path) -> None:
    told: list[tuple[float, float | None]] = []

    async def tell(done: float, total: float | None, message: str | None) -> None:
        told.append((done, total))

    steps = [
        {"tool": "nova.perceive"},
        {"tool": "click_selector", "args": {"selector": "#more"}},
        {"tool": "nova_click_selector", "args": {"selector": "#nothing", "timeoutMs": 0}, "onError": "continue"},
        {"tool": "nova.type_selector", "args": {"selector": "#name", "text": "Ada"}},
        {"tool": "nova.click_selector", "args": {"selector": "#buy"}, "onError": "continue"},
        {"tool": "nova.read_text"},
    ]
    with small_site({"/shop": SHOP}) as (base, _):
        async with real_stdio(tmp_path, "auto") as client:
            await client.call_tool("nova.navigate", {"url": f"{base}/shop"})
            args = {"tool": "nova.run_sequence", "args": {"steps": steps}}
            answer = await client.call_tool("nova.call", args, progress_callback=tell)
    body = answer.structured_content
    assert body is not None
    assert (body["status"], body["completedSteps"], body["totalSteps"], body["failedAt"]) == ("partial", 3, 6, 5)
    assert [row["status"] for row in body["trace"]] == ["ok", "ok", "not_found", "ok", "blocked"]
    assert body["reasonCode"] == "guarded_commit.missing_contract"
    assert body["last"]["fix"]["args"]["targetId"] == "tab_1"
    assert [done for done, _ in told if done == int(done)] == [1, 2, 3, 4, 5]
    assert sum(line.startswith("step ") for line in text_of(answer).splitlines()) == 2
    seen = [record for record in records(tmp_path) if record.kind == "call"]
    assert [(record.tool_name, record.via) for record in seen] == [
        ("nova.navigate", None),
        ("nova.perceive", "run_sequence"),
        ("nova.click_selector", "run_sequence"),
        ("nova.click_selector", "run_sequence"),
        ("nova.type_selector", "run_sequence"),
        ("nova.click_selector", "run_sequence"),
        ("nova.run_sequence", "call"),
    ]
    assert seen[-1].outcome.action_dispatched is True
    assert findings(tmp_path) == []


async def test_a_person_answers_a_waiting_call(tmp_path: Path) -> None:
    mailbox = Mailbox(tmp_path)

    async def tell(done: float, total: float | None, message: str | None) -> None:
        (question,) = mailbox.questions()
        assert (question.kind, question.target_id) == ("captcha", "tab_1")
        mailbox.reply(question.id, Reply(resolved=True, by="anna", note="solved"))

    with small_site() as (base, _):
        async with real_stdio(tmp_path, "auto") as client:
            await client.call_tool("nova.navigate", {"url": f"{base}/start"})
            alone = await client.call_tool("nova.ask_human", {"why": "solve it"})
            assert alone.structured_content is not None
            assert alone.structured_content["reasonCode"] == "human.unavailable"
            assert "nova login 127.0.0.1" in alone.structured_content["hint"]
            with mailbox.attending(), anyio.fail_after(60):
                asked = {"why": "solve it", "kind": "captcha"}
                answer = await client.call_tool("nova.ask_human", asked, progress_callback=tell)
    assert answer.structured_content is not None
    assert answer.structured_content == {"ok": True, "status": "ok", "resolved": True, "by": "anna", "note": "solved"}
    assert [record.outcome.kind for record in records(tmp_path)] == ["ok", "failed", "ok"]
