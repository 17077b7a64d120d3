"""A scripted agent that uses Nova through MCP, chapter by chapter, and checks what each one claims."""

import shutil
import sqlite3
import sys
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from nova_mcp.demo.site import PracticeSite
from nova_mcp.observation.auditor import Finding, verify
from nova_mcp.observation.store import heads
from nova_mcp.storage.engine import Database

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Chapter:
    """One scene: what is asked, what came back, and whether that is what should have happened."""

    title: str
    outcome: str
    as_expected: bool


@dataclass(slots=True)
class Stage:
    """The agent's side of the connection."""

    client: Client
    site: PracticeSite
    chapters: list[Chapter]
    say: Say

    async def call(self, tool: str, /, **arguments: Any) -> tuple[dict[str, Any], str]:
        answer = await self.client.call_tool(f"nova.{tool}", arguments)
        text = "".join(block.text for block in answer.content if block.type == "text")
        return answer.structured_content or {}, text

    def tell(self, title: str, outcome: str, *, expected: bool) -> None:
        self.chapters.append(Chapter(title, outcome, expected))
        self.say(f"{'✓' if expected else '✗'} {title}: {outcome}")


async def _look(stage: Stage) -> None:
    opened, text = await stage.call("navigate", url=stage.site.base_url + "/")
    stage.tell(
        "open a page", text.splitlines()[0], expected=opened.get("status") == "ok" and opened["httpStatus"] == 200
    )
    seen, text = await stage.call("perceive")
    button = next((line for line in text.splitlines() if '"Add to cart"' in line), "")
    stage.tell("look at it", button or "no button seen", expected=seen.get("ok") is True and bool(button))


async def _act(stage: Stage) -> None:
    clicked, text = await stage.call("click_selector", selector="#add")
    count = stage.site.received["POST /api/cart"]
    right = clicked.get("actionDispatched") is True and clicked.get("verifyState") == "likely" and count == 1
    stage.tell("click, and see what it did", text.splitlines()[0], expected=right)
    typed, text = await stage.call("type_selector", selector="#search", text="kettle")
    stage.tell("type, and read it back", text.splitlines()[0], expected=typed.get("verifyState") == "verified")
    read, text = await stage.call("read_text")
    stage.tell("read the page", "1 item in your cart", expected="1 item in your cart" in text and read["ok"] is True)


async def _not_fooled(stage: Stage) -> None:
    await stage.call("navigate", url=stage.site.base_url + "/covered")
    await stage.call("perceive")
    refused, _ = await stage.call("click_selector", selector="#add", timeoutMs=500)
    _, after = await stage.call("read_text")
    untouched = "took the click" not in after and "added" not in after
    reason = str(refused.get("reasonCode"))
    right = reason == "action.obstructed" and refused.get("actionDispatched") is False and untouched
    stage.tell("a covered button", f"{reason}, nothing was clicked", expected=right)


async def _not_bought(stage: Stage) -> None:
    await stage.call("navigate", url=stage.site.base_url + "/checkout")
    await stage.call("perceive")
    blocked, _ = await stage.call("click_selector", selector="#order")
    orders = stage.site.received["POST /api/order"]
    reason = str(blocked.get("reasonCode"))
    right = reason == "guarded_commit.missing_contract" and orders == 0
    stage.tell("an order nobody vouched for", f"{reason}, orders received: {orders}", expected=right)


async def _ordered_once(stage: Stage) -> None:
    order = {"selector": "#order", "expect": ["text:Order received"]}
    done, text = await stage.call("click_selector", **order)
    orders = stage.site.received["POST /api/order"]
    right = done.get("verifyState") == "verified" and orders == 1
    stage.tell("the same order with its proof named", text.splitlines()[0], expected=right)
    await stage.call("navigate", url=stage.site.base_url + "/checkout")
    again, _ = await stage.call("click_selector", **order)
    orders = stage.site.received["POST /api/order"]
    reason = str(again.get("reasonCode"))
    right = reason == "guarded_commit.duplicate_suspected" and orders == 1
    stage.tell("ordering twice by accident", f"{reason}, orders received: {orders}", expected=right)


async def _not_believed(stage: Stage) -> None:
    await stage.call("navigate", url=stage.site.base_url + "/profile")
    await stage.call("perceive")
    saved, text = await stage.call("guarded_submit_form")
    status = (saved.get("guardedCommit") or {}).get("verificationStatus")
    _, shown = await stage.call("read_text")
    right = status == "verified_fail" and "Profile saved." in shown
    stage.tell("a page that says saved when the server refused", text.splitlines()[0], expected=right)


async def _unasked(stage: Stage) -> None:
    await stage.call("navigate", url=stage.site.base_url + "/news")
    seen, _ = await stage.call("perceive")
    kinds = [blocker["kind"] for blocker in seen.get("blockers", [])]
    gone, text = await stage.call("dismiss_blockers")
    rejected, accepted = (stage.site.received[f"POST /api/consent/{choice}"] for choice in ("rejected", "accepted"))
    right = kinds == ["consent"] and gone.get("consentChoice") == "rejected" and (rejected, accepted) == (1, 0)
    stage.tell("a cookie banner", text.splitlines()[0], expected=right)
    found, _ = await stage.call("call", tool="extract_table", args={})
    rows = found.get("tables", [{}])[0].get("rows", [])
    stage.tell("a table, as rows", str(rows), expected=rows == [["Kettle", "12", "29.00"], ["Lamp", "3", "18.50"]])


async def _known(stage: Stage) -> None:
    claims = [{"signalKey": "core.page.type", "value": "news", "certainty": "certain", "evidence": "The heading."}]
    await stage.call("call", tool="ok_observe", args={"claims": claims})
    weak = [{"signalKey": "core.page.type", "value": "shop", "certainty": "tentative"}]
    told, _ = await stage.call("call", tool="ok_observe", args={"claims": weak})
    held, text = await stage.call("call", tool="ok_facts", args={"keys": ["core.page.type"]})
    value = [fact["value"] for fact in held.get("facts", [])]
    right = value == ["news"] and [fact["state"] for fact in told.get("facts", [])] == ["observation_only"]
    stage.tell("a fact, and a guess that can't replace it", text.splitlines()[-1], expected=right)


def _audit_of(pages: list[str]) -> dict[str, Any]:
    done_when = {"coverageMode": "exhaustive", "unitKind": "page", "stopMetric": "all_units_processed"}
    task = {"taskType": "audit", "displayName": "Read the shop", "goal": "Read every page."}
    return {
        "adHocContext": {**task, "completionCondition": done_when},
        "targetUrl": pages[0],
        "unitSource": {"kind": "explicit", "explicitUrls": pages, "freezeAfterPopulate": True},
    }


async def _audited(stage: Stage) -> None:
    pages = [f"{stage.site.base_url}{path}" for path in ("/", "/profile")]
    begun, _ = await stage.call("call", tool="task_instance_create", args=_audit_of(pages))
    run = {"instanceId": begun.get("instanceId")}
    claimed = {"unitUpdates": [{"url": page, "status": "checked"} for page in pages]}
    told = {**run, "expectedInstanceRev": 0, "clientEventId": "told", **claimed}
    await stage.call("call", tool="task_instance_progress", args=told)
    done = {**run, "expectedInstanceRev": 1, "clientEventId": "done"}
    early, text = await stage.call("call", tool="task_instance_complete", args=done)
    right = early.get("completed") is False and early.get("reasonCode") == "url_units_remaining"
    stage.tell("done, says the agent that has read nothing", text.replace("\n", " · ")[:120], expected=right)
    for page in pages:
        await stage.call("navigate", url=page)
        await stage.call("call", tool="coverage_scan", args={"scanId": "nova_full_page_text_v1"})
    proven, text = await stage.call("call", tool="task_instance_complete", args=done)
    stage.tell("done, once every page was read", text.splitlines()[-1], expected=proven.get("completed") is True)


async def _noted(stage: Stage) -> None:
    await stage.call("navigate", url=stage.site.base_url + "/")
    note = {"domain": stage.site.base_url, "key": "RULES", "value": "One kettle per day.", "enforcement": "block"}
    await stage.call("call", tool="domain_note", args=note)
    before = stage.site.received["POST /api/cart"]
    held, _ = await stage.call("click_selector", selector="#add")
    right = held.get("reasonCode") == "acknowledge_required" and stage.site.received["POST /api/cart"] == before
    stage.tell("a note about the site that must be read first", str(held.get("message")), expected=right)
    await stage.call("call", tool="domain_note_ack", args={"domain": note["domain"], "key": "RULES"})
    await stage.call("click_selector", selector="#add")
    count = stage.site.received["POST /api/cart"] - before
    stage.tell("acknowledged, and the click goes through", f"requests received: {count}", expected=count == 1)
    await stage.call("call", tool="domain_note_delete", args={"domain": note["domain"], "key": "RULES"})


async def _candidate(stage: Stage, tab: str) -> None:
    noted, _ = await stage.call(
        "call",
        tool="memory_add_candidate",
        args={"targetId": tab, "component": "cookie-banner", "claim": "The banner goes after Reject all."},
    )
    stage.tell(
        "something that may be worth learning",
        f"candidate {noted.get('candidateId')} {noted.get('status')}, confidence {noted.get('confidence')}",
        expected=noted.get("created") is True and noted.get("status") == "unverified",
    )


async def _not_disturbed(stage: Stage) -> None:
    mine, _ = await stage.call("tab_claim")
    tab = mine.get("targetId", "")
    refused, _ = await stage.call("click_selector", agentId="visitor", targetId=tab, selector="#alert")
    right = refused.get("reasonCode") == "claim.owner_mismatch" and refused.get("actionDispatched") is not True
    stage.tell("a tab that belongs to another agent", str(refused.get("message")), expected=right)
    before, _ = await stage.call("perceive", targetId=tab)
    await stage.call("click_selector", targetId=tab, selector="#alert")
    _, text = await stage.call("perceive", targetId=tab, sinceRev=before.get("rev"))
    stage.tell("only what changed", text.splitlines()[-1], expected="Never mind" in text)
    await _candidate(stage, tab)
    done, text = await stage.call("tab_release", targetId=tab)
    right = done.get("released") is True and done.get("finalizeDecision") == "skip"
    stage.tell("released, and one claim is not enough to learn from", text.splitlines()[0], expected=right)


async def _bad_input(stage: Stage) -> None:
    wrong, _ = await stage.call("navigate", url="javascript:alert(1)")
    stage.tell(
        "a javascript: address", str(wrong.get("message")), expected=wrong.get("reasonCode") == "policy.scheme_denied"
    )
    wrong, _ = await stage.call("perceive", maxTokens="many")
    stage.tell("a wrong argument", str(wrong.get("message")), expected=wrong.get("reasonCode") == "invalid_params")


def _banner_entry(button: str) -> dict[str, Any]:
    return {
        "id": "news-cookies",
        "type": "consent_cmp",
        "fingerprint": {"signals": [{"kind": "dom", "match": "#cookies"}, {"kind": "text", "match": "use cookies"}]},
        "playbook": {
            "policy": "reject_preferred",
            "actions": [
                {"action": "click", "selector": f"[data-choice={button}]", "declaredPolarity": "reject"},
            ],
            "verify": [{"type": "absent", "selector": "#cookies"}],
        },
    }


async def _learned(stage: Stage) -> None:
    site = stage.site.base_url
    await stage.call("navigate", url=site + "/news")
    lie, _ = await stage.call("call", tool="pks_upsert", args={"scope": site, "phenomenon": _banner_entry("accepted")})
    reason = str(lie.get("reasonCode"))
    stage.tell(
        "knowledge that lies about a button", str(lie.get("message")), expected=reason == "pks.polarity_mismatch"
    )
    await stage.call("call", tool="pks_upsert", args={"scope": site, "phenomenon": _banner_entry("rejected")})
    trial = {"phenomenonId": "news-cookies", "trial": True}
    held, _ = await stage.call("call", tool="phenomenon_apply", args=trial)
    right = held.get("reasonCode") == "pks.trial_not_allowed" and held.get("actionDispatched") is not True
    stage.tell("a consent banner is nothing to practise on", str(held.get("message")), expected=right)
    reject = {"selector": "[data-choice=rejected]", "expect": ["gone:#cookies"]}
    await stage.call("perceive")
    await stage.call("click_selector", **reject)
    await stage.call("navigate", url=site + "/news")
    _, text = await stage.call("perceive")
    known = next((line for line in text.splitlines() if "news-cookies" in line), "not recognised")
    stage.tell("recognised on the next visit", known, expected="1 of 5 proofs" in known)
    why, text = await stage.call("call", tool="explain", args={"scope": site, "stableId": "news-cookies"})
    right = (why.get("phenomenon") or {}).get("level") == 1
    stage.tell("one proof is not enough to be believed", text.splitlines()[0], expected=right)
    await stage.call("click_selector", **reject)


SCENES: tuple[Callable[[Stage], Awaitable[None]], ...] = (
    _look,
    _act,
    _not_fooled,
    _not_bought,
    _ordered_once,
    _not_believed,
    _unasked,
    _learned,
    _known,
    _not_disturbed,
    _audited,
    _noted,
    _bad_input,
)


async def play(site: PracticeSite, data_dir: Path, say: Say) -> list[Chapter]:
    """Run the whole story on a server of its own; every chapter says whether it went as it should."""
    command = Path(sys.executable).with_name("nova")
    server = StdioServerParameters(command=str(command), args=["serve", "--data-dir", str(data_dir)])
    chapters: list[Chapter] = []
    async with Client(stdio_client(server), mode="auto") as client:
        stage = Stage(client, site, chapters, say)
        for scene in SCENES:
            await scene(stage)
    chapters += check_ledger(data_dir / "nova.db", say)
    return chapters


def _audit(path: Path) -> tuple[int, list[Finding]]:
    with Database.open(f"sqlite:///{path}") as db:
        entries = sum(row.head_seq for row in db.read_sync(heads))
        return entries, db.read_sync(lambda conn: list(verify(conn)))


def check_ledger(path: Path, say: Say) -> list[Chapter]:
    """Every call is in the chain; a copy with one changed word is caught."""
    entries, findings = _audit(path)
    counted = Chapter("the ledger", f"{entries} entries, chain intact", entries > 0 and not findings)
    copy = path.with_name("tampered.db")
    shutil.copy(path, copy)
    with closing(sqlite3.connect(copy)) as conn, conn:
        conn.execute(
            "UPDATE ledger_body SET body = CAST(replace(CAST(body AS TEXT), 'click', 'hover') AS BLOB) "
            "WHERE tool_name = 'nova.click_selector'"
        )
    _, broken = _audit(copy)
    told = f"entry {broken[0].server_seq}: {broken[0].detail}" if broken else "not noticed"
    caught = Chapter("one word changed in a copy", told, bool(broken))
    for chapter in (counted, caught):
        say(f"{'✓' if chapter.as_expected else '✗'} {chapter.title}: {chapter.outcome}")
    return [counted, caught]
