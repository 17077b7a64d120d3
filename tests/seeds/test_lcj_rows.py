"""Every row of the journal's contract about events, observations and candidates, through a client on a real page."""

import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from loop_kit import ShiftedClock, Shop, shop
from mcp import Client
from real_kit import text_of
from sqlalchemy import select

from nova_mcp.app import Nova, build
from nova_mcp.core.clock import Ports, SystemIds
from nova_mcp.memory.journal.candidate_store import candidate, curated_entry, find_candidate
from nova_mcp.memory.journal.candidates import evidence_score, strength
from nova_mcp.memory.journal.finalize_store import finalize_decision, outbox_job
from nova_mcp.memory.journal.store import observation, tool_event
from nova_mcp.server.manifest import load_manifest
from nova_mcp.server.protocol import Wiring, build_server
from nova_mcp.settings import Settings

pytestmark = pytest.mark.browser

ANSWER = {
    *("ok", "targetId", "taskId", "ownerAgentId", "candidateId", "created", "status", "confidence", "updatedAtUtc"),
}
SECRET = "tulip-Orchid-4417"
# Takes digits only, so that one field can be typed into with and without success.
DIGITS = """<!doctype html><title>Desk</title><main><h1>Desk</h1><nav><a id=away href="/done">Leave</a></nav>
<label>Code <input id=code oninput="value = value.replace(/[^0-9]/g, '')"></label>
<button id=show type=button onclick="said.textContent = 'Shown'">Show</button>
<button id=off type=button disabled>Off</button><p id=said role=status></p></main>"""
BANNER = """<!doctype html><title>Banner</title><main><h1>News</h1><p>Text</p></main>
<div id=cookies role=dialog aria-label="Cookies" style="position:fixed;inset:auto 0 0 0;background:#fff;padding:2em">
We use cookies. <button onclick="cookies.remove()">Reject all</button> <button>Accept all</button></div>"""
ORDER = """<!doctype html><title>Order</title><form method=post action="/order"><label>Name <input name=who></label>
<button id=buy>Order now</button></form>"""
_numbers = count(1)


@dataclass
class Server:
    client: Client
    clock: ShiftedClock
    data_dir: Path
    nova: Nova

    async def rows(self, table: Any, **where: Any) -> list[dict[str, Any]]:
        (key,) = table.primary_key.columns.values()
        wanted = select(table).where(*(table.c[name] == value for name, value in where.items())).order_by(key)
        found = await self.nova._db.read(lambda conn: conn.execute(wanted).all())
        return [row._asdict() for row in found]

    async def score(self, candidate_id: int) -> float:
        found = await self.nova._db.read(find_candidate, candidate_id)
        assert found is not None
        return evidence_score(found)


@dataclass
class Worker:
    """One agent with a tab that it has claimed."""

    server: Server
    name: str
    tab: str = "active"
    task: str = ""
    token: str = ""

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        answer = await self.server.client.call_tool(f"nova.{tool}", {"agentId": self.name, **arguments})
        assert answer.structured_content is not None
        return dict(answer.structured_content)

    async def add(self, **arguments: Any) -> dict[str, Any]:
        given = {"targetId": self.tab, "component": "desk", "claim": f"Codes are digits, says {self.name}."}
        return await self.call("memory_add_candidate", **{**given, **arguments})

    async def note(self, **arguments: Any) -> dict[str, Any]:
        body = await self.add(**arguments)
        assert body["ok"], body
        return body

    async def claim(self) -> None:
        body = await self.call("tab_claim", targetId=self.tab)
        self.tab, self.task, self.token = body["targetId"], body["taskId"], body["finalizationToken"]

    async def show(self, url: str) -> None:
        assert (await self.call("navigate", targetId=self.tab, url=url))["ok"]
        await self.call("perceive", targetId=self.tab)

    async def types(self, text: str) -> dict[str, Any]:
        return await self.call("type_selector", targetId=self.tab, selector="#code", text=text)

    async def release(self, **arguments: Any) -> dict[str, Any]:
        return await self.call("tab_release", targetId=self.tab, **arguments)

    async def events(self) -> list[dict[str, Any]]:
        return await self.server.rows(tool_event, owner_agent_id=self.name)

    async def seen(self, *kinds: str) -> list[dict[str, Any]]:
        rows = await self.server.rows(observation, owner_agent_id=self.name)
        return [row for row in rows if row["kind"] in kinds] if kinds else rows

    async def kept(self) -> list[dict[str, Any]]:
        return await self.server.rows(candidate, task_id=self.task)


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory, anyio_backend: str) -> AsyncIterator[Server]:
    clock, data_dir = ShiftedClock(), tmp_path_factory.mktemp("journal")
    secrets = data_dir / "secrets.toml"
    secrets.write_text(f'[door]\nvalue = "{SECRET}"\nhosts = ["127.0.0.1"]\n')
    secrets.chmod(0o600)
    settings = Settings.model_validate({"data_dir": data_dir, "tools": "all", "enable_eval": True})
    nova = await build(settings, Ports(clock, SystemIds(clock)))

    async def backend() -> Any:
        return nova

    try:
        async with Client(build_server(load_manifest(), settings, Wiring(backend=backend))) as client:
            yield Server(client, clock, data_dir, nova)
    finally:
        await nova.close("test")


@pytest.fixture(scope="module")
def site() -> Iterator[Shop]:
    with shop() as running:
        running.pages |= {"/desk": DIGITS, "/banner": BANNER, "/order-form": ORDER}
        yield running


@pytest.fixture(scope="module")
async def tab(server: Server, site: Shop) -> str:
    """One page for the whole file; agents take turns on it."""
    first = Worker(server, "opener")
    return str((await first.call("tab_new", url=site.url("/desk")))["targetId"])


@pytest.fixture
async def ada(server: Server, site: Shop, tab: str) -> AsyncIterator[Worker]:
    """An agent nobody knows yet, on the desk page, with a claim of its own."""
    # Longer than anything is throttled for, shorter than a session's gap.
    server.clock.shift_ms += 130_000
    worker = Worker(server, f"agent-{next(_numbers)}", tab)
    await worker.claim()
    await worker.show(site.url("/desk"))
    yield worker
    await worker.release()


def refused(body: dict[str, Any], code: int, reason: str) -> None:
    assert (body["ok"], body["errorCode"], body["reasonCode"]) == (False, code, reason), body


# -- the example


async def test_the_example_answers_with_the_documented_fields(ada: Worker) -> None:
    claim = "Consent banner disappears after clicking the footer reject link."
    body = await ada.add(component="consent-dialog", claim=claim, status="unverified", confidence=0.65)
    assert set(body) == ANSWER
    assert (body["ok"], body["targetId"], body["taskId"], body["ownerAgentId"]) == (True, ada.tab, ada.task, ada.name)
    assert isinstance(body["candidateId"], int)
    assert (body["created"], body["status"], body["confidence"]) == (True, "unverified", 0.65)
    assert body["updatedAtUtc"].endswith("Z")


async def test_the_text_of_the_answer_says_the_same(ada: Worker) -> None:
    arguments = {"targetId": ada.tab, "agentId": ada.name, "component": "desk", "claim": "Told twice."}
    answer = await ada.server.client.call_tool("nova.memory_add_candidate", arguments)
    assert json.loads(text_of(answer)) == answer.structured_content


async def test_the_active_tab_may_be_meant(ada: Worker) -> None:
    await ada.call("set_active_tab", targetId=ada.tab)
    assert (await ada.note(targetId="active"))["targetId"] == ada.tab


async def test_a_sandbox_that_is_claimed_covers_its_tabs(ada: Worker) -> None:
    box = (await ada.call("sandbox_create", name="journal"))["sandboxId"]
    try:
        claimed = await ada.call("tab_claim", targetId=box)
        body = await ada.note(targetId=box)
        assert (body["taskId"], body["ownerAgentId"]) == (claimed["taskId"], ada.name)
    finally:
        await ada.call("sandbox_delete", sandboxId=box)


# -- guard rows


async def test_guard_an_unknown_argument_is_refused(ada: Worker) -> None:
    for extra in ({"severity": 1}, {"candidate_id": 1}, {"Claim": "x"}):
        refused(await ada.add(**extra), -32602, "invalid_params")
    assert await ada.kept() == []


async def test_guard_without_a_claimed_context_nothing_is_noted(server: Server, ada: Worker) -> None:
    bob = Worker(server, f"{ada.name}-other", ada.tab)
    foreign = await bob.add()
    refused(foreign, -32040, "lcj.context_missing")
    assert "fix" not in foreign
    await ada.release()
    free = await ada.add()
    refused(free, -32040, "lcj.context_missing")
    assert free["fix"] == {"tool": "nova.tab_claim", "args": {"targetId": ada.tab, "agentId": ada.name}}
    await ada.claim()
    assert (await ada.add())["ok"]


async def test_guard_a_lease_that_came_by_working_is_no_context(server: Server, ada: Worker) -> None:
    await ada.release()
    await ada.call("reload", targetId=ada.tab)
    refused(await ada.add(), -32040, "lcj.context_missing")


async def test_guard_an_agent_without_any_tab_has_no_context(server: Server, ada: Worker) -> None:
    nobody = Worker(server, f"{ada.name}-nobody")
    refused(await nobody.add(), -32040, "lcj.context_missing")


async def test_guard_a_claim_that_ran_out_is_no_context(server: Server, ada: Worker) -> None:
    server.clock.shift_ms += 130_000
    refused(await ada.add(), -32040, "lcj.context_missing")


@pytest.mark.parametrize("name", ["targetId", "component", "claim"])
async def test_guard_required_fields_are_required(ada: Worker, name: str) -> None:
    given = {"targetId": ada.tab, "component": "desk", "claim": "Something."}
    body = await ada.call("memory_add_candidate", **{key: value for key, value in given.items() if key != name})
    refused(body, -32602, "invalid_params")
    assert name in body["message"]


@pytest.mark.parametrize("name", ["component", "claim"])
@pytest.mark.parametrize("blank", ["", "   ", "\t\n ", "\u200b\u2060"])
async def test_guard_blank_words_are_empty_words(ada: Worker, name: str, blank: str) -> None:
    refused(await ada.add(**{name: blank}), -32602, "invalid_params")


@pytest.mark.parametrize(("name", "limit"), [("component", 64), ("claim", 280)])
async def test_guard_words_have_a_longest_length(ada: Worker, name: str, limit: int) -> None:
    refused(await ada.add(**{name: "x" * (limit + 1)}), -32602, "invalid_params")
    assert (await ada.note(**{name: "x" * limit}))["created"]


@pytest.mark.parametrize("text", ["one\ntwo", "one\x00two", "one\u2028two"])
async def test_a_claim_is_one_line(ada: Worker, text: str) -> None:
    refused(await ada.add(claim=text), -32602, "invalid_params")


@pytest.mark.parametrize("status", ["promoted", "Verified", "", None, 1])
async def test_guard_a_status_is_one_of_three(ada: Worker, status: Any) -> None:
    refused(await ada.add(status=status), -32602, "invalid_params")


@pytest.mark.parametrize(
    "confidence", [-0.01, 1.01, "1.5", "-1", "NaN", "inf", "Infinity", "1e999", "", "half", "\u0661", True]
)
async def test_guard_a_confidence_is_finite_and_between_zero_and_one(ada: Worker, confidence: Any) -> None:
    refused(await ada.add(confidence=confidence), -32602, "invalid_params")


@pytest.mark.parametrize(("given", "kept"), [(0, 0.0), (1, 1.0), ("0.5", 0.5), (" 1 ", 1.0), ("2.5e-1", 0.25)])
async def test_guard_a_confidence_may_come_as_text(ada: Worker, given: Any, kept: float) -> None:
    assert (await ada.note(confidence=given))["confidence"] == kept


async def test_guard_finalize_stats_that_are_no_object_are_refused(ada: Worker) -> None:
    for stats in (3, "many", [], {"candidatesTotal": "two"}, {"somethingElse": 1}):
        refused(await ada.release(finalizeStats=stats), -32602, "invalid_params")


async def test_a_claim_with_a_secret_in_it_is_refused_and_kept_nowhere(ada: Worker) -> None:
    card, key = "4111 1111 1111 1111", "sk-live-9Qw7Er5Ty3Ui1Op8As6Df4"
    for unspeakable in (SECRET, ada.token, card, f"12 {card}", key, "password: hunter22"):
        refused(await ada.add(claim=f"The site wants {unspeakable} here."), -32602, "invalid_params")
    refused(await ada.add(component=SECRET), -32602, "invalid_params")
    assert await ada.kept() == []
    kept = b"".join(path.read_bytes() for path in ada.server.data_dir.glob("nova.db*"))
    for gone in (SECRET, ada.token, card, key, "hunter22"):
        assert gone.encode() not in kept


# -- contract rows


async def test_a_component_is_kept_trimmed_and_in_lower_case(ada: Worker) -> None:
    await ada.note(component="  Consent-Dialog ", claim="  Goes away. ")
    (row,) = await ada.kept()
    assert (row["component"], row["claim"]) == ("consent-dialog", "Goes away.")
    assert row["candidate_key"].startswith("lcj_ck_")
    assert row["stable_id"].startswith("lcj_")
    assert len(row["stable_id"]) == len("lcj_") + 12
    assert (row["origin"], row["level"]) == ("semantic", 0)


async def test_defaults_are_unverified_and_middling(ada: Worker) -> None:
    body = await ada.note()
    assert (body["status"], body["confidence"]) == ("unverified", 0.65)


async def test_saying_it_again_adds_to_the_same_candidate(ada: Worker) -> None:
    first = await ada.note(confidence=0.7)
    again = await ada.note(component="DESK", claim=f"codes are digits,  says {ada.name}", confidence=0.6)
    better = await ada.note(confidence=0.9)
    assert (first["created"], again["created"], better["created"]) == (True, False, False)
    assert first["candidateId"] == again["candidateId"] == better["candidateId"]
    assert (again["confidence"], better["confidence"]) == (0.7, 0.9)
    assert better["updatedAtUtc"] >= first["updatedAtUtc"]


async def test_a_status_only_moves_on(ada: Worker) -> None:
    await ada.note(status="verified")
    assert (await ada.note(status="unverified"))["status"] == "verified"
    assert (await ada.note(status="disproven"))["status"] == "disproven"


async def test_a_disproven_candidate_is_never_brought_back(ada: Worker) -> None:
    dead = await ada.note(status="disproven")
    assert (await ada.note(status="disproven"))["candidateId"] == dead["candidateId"]
    new = await ada.note()
    assert (new["created"], new["status"]) == (True, "unverified")
    assert new["candidateId"] != dead["candidateId"]


async def test_the_agent_must_be_the_owner_of_the_claim(server: Server, ada: Worker) -> None:
    body = await ada.add(agentId=f"{ada.name}-2")
    refused(body, -32040, "lcj.context_missing")


async def test_on_a_page_without_a_site_a_candidate_has_no_host(server: Server, ada: Worker) -> None:
    empty = Worker(server, f"{ada.name}-empty", (await ada.call("tab_new"))["targetId"])
    empty.name = ada.name
    try:
        await empty.claim()
        await empty.note()
        (row,) = await empty.kept()
        assert (row["context_host"], row["source_event_id"]) == ("", None)
    finally:
        await ada.call("tab_close", targetId=empty.tab)


# -- states


async def test_state_tool_event_every_call_leaves_one(ada: Worker) -> None:
    await ada.call("click_selector", targetId=ada.tab, selector="#off", timeoutMs=0)
    await ada.call("click_selector", targetId=ada.tab, nonsense=1)
    events = await ada.events()
    told = [(row["tool_name"], row["success"], row["error"]) for row in events]
    assert ("nova.tab_claim", 1, None) in told
    assert ("nova.perceive", 1, None) in told
    assert ("nova.click_selector", 0, "action.disabled") in told
    assert ("nova.click_selector", 0, "invalid_params") in told
    (look,) = [row for row in events if row["tool_name"] == "nova.perceive"]
    assert look["context_host"] == ada.server.nova._parts.browser.targets._tabs[ada.tab].url.split("/")[2]
    assert (look["task_id"], look["target_id"]) == (ada.task, ada.tab)
    assert len(look["activity_session_id"]) == 16
    assert all(len(row["arguments"]) <= 400 for row in events)


async def test_state_unverified_waits_for_evidence(ada: Worker) -> None:
    body = await ada.note()
    (row,) = await ada.kept()
    assert (row["status"], row["verified_at_ms"]) == ("unverified", None)
    assert (await ada.release())["finalizeReasonCode"] == "no_verified_candidates"
    assert await ada.server.score(body["candidateId"]) < 1.45


async def test_state_verified_without_evidence_stays_weak(server: Server, ada: Worker) -> None:
    other = Worker(server, ada.name, (await ada.call("tab_new"))["targetId"])
    try:
        await other.claim()
        body = await other.note(status="verified", confidence=1.0)
        assert strength(await server.score(body["candidateId"])) == "weak"
        assert (await other.release())["finalizeReasonCode"] == "evidence_below_threshold"
    finally:
        await ada.call("tab_close", targetId=other.tab)


async def test_looking_again_does_not_prove_what_an_agent_claims(ada: Worker) -> None:
    body = await ada.note(status="verified", confidence=1.0)
    for tool, more in (("perceive", {}), ("read_text", {}), ("reload", {}), ("perceive", {})):
        assert (await ada.call(tool, targetId=ada.tab, **more))["ok"]
    (row,) = await ada.kept()
    assert (row["status"], row["source_verdict"], row["resolution_event_id"]) == ("verified", "neutral", None)
    assert strength(await ada.server.score(body["candidateId"])) == "weak"
    assert (await ada.release())["finalizeReasonCode"] == "evidence_below_threshold"


async def test_state_disproven_two_failures_in_a_row_speak_against_a_claim(ada: Worker) -> None:
    await ada.types("12")
    body = await ada.note(status="verified")
    assert (await ada.types("ab"))["reasonCode"] == "type.value_mismatch"
    (row,) = await ada.kept()
    assert (row["status"], row["failures_in_row"]) == ("verified", 1)
    await ada.types("34")
    await ada.types("cd")
    await ada.types("ef")
    (row,) = await ada.kept()
    assert (row["candidate_id"], row["status"]) == (body["candidateId"], "disproven")


async def test_state_strong_a_verified_candidate_with_enough_evidence_is_promoted(ada: Worker) -> None:
    await ada.types("12")
    body = await ada.note(status="verified", confidence=1.0)
    assert strength(await ada.server.score(body["candidateId"])) == "medium"
    await ada.types("34")
    assert await ada.server.score(body["candidateId"]) >= 1.45
    acts = [row for row in await ada.events() if row["tool_name"].endswith("selector")]
    done = await ada.release()
    assert (done["finalizeDecision"], done["decisionSource"], done["finalizeReasonCode"]) == ("commit", "auto", None)
    stats = done["finalizeStats"]
    assert (stats["candidatesTotal"], stats["candidatesVerified"]) == (1, 1)
    assert (stats["candidatesPromotable"], stats["curatedUpserts"]) == (1, 1)
    assert done["evidenceStrength"] == {"weak": 0, "medium": 0, "strong": 1}
    assert stats["evidenceMinScore"] == stats["evidenceAvgScore"] == await ada.server.score(body["candidateId"])
    (row,) = await ada.server.rows(curated_entry, candidate_id=body["candidateId"])
    assert (row["component"], row["merge_count"]) == ("desk", 0)
    (job,) = await ada.server.rows(outbox_job, task_id=ada.task)
    assert (job["job_type"], json.loads(job["payload"])["candidateIds"]) == (
        "finalize.memory.promote",
        [body["candidateId"]],
    )
    # Whatever was decided, nothing was done on the page.
    assert [row for row in await ada.events() if row["tool_name"].endswith("selector")] == acts


async def test_state_after_promotion_the_same_claim_is_merged_not_written_twice(ada: Worker) -> None:
    for _ in range(2):
        await ada.types("12")
        body = await ada.note(status="verified", confidence=1.0, claim="Told by several.")
        await ada.types("34")
        assert (await ada.release())["finalizeStats"]["curatedUpserts"] == 1
        await ada.claim()
    (row,) = await ada.server.rows(curated_entry, claim="Told by several.")
    assert (row["merge_count"], row["candidate_id"]) == (1, body["candidateId"])
    assert row["last_promoted_at_ms"] > row["first_promoted_at_ms"]


async def test_a_failure_after_the_verification_keeps_a_candidate_back(ada: Worker) -> None:
    await ada.types("12")
    await ada.note(status="verified", confidence=1.0)
    await ada.types("34")
    await ada.types("ab")
    done = await ada.release()
    assert (done["finalizeDecision"], done["finalizeReasonCode"]) == ("skip", "evidence_below_threshold")
    assert done["finalizeStats"]["candidatesPromotable"] == 0


# -- finalize


async def test_an_override_needs_the_token_and_writes_only_what_is_ready(ada: Worker) -> None:
    await ada.note(status="verified")
    refused(await ada.release(finalizeDecision="commit"), -32602, "claim.finalization_token_required")
    done = await ada.release(finalizeDecision="commit", finalizationToken=ada.token)
    assert (done["finalizeDecision"], done["decisionSource"]) == ("commit", "caller")
    assert done["finalizeStats"]["curatedUpserts"] == 0
    assert await ada.server.rows(curated_entry, claim=f"Codes are digits, says {ada.name}.") == []


async def test_a_caller_may_leave_what_is_ready_alone(ada: Worker) -> None:
    await ada.types("12")
    await ada.note(status="verified", confidence=1.0)
    await ada.types("34")
    done = await ada.release(finalizeDecision="skip", finalizationToken=ada.token, finalizeReasonCode="not now")
    assert (done["finalizeDecision"], done["finalizeStats"]["candidatesPromotable"]) == ("skip", 1)
    assert await ada.server.rows(curated_entry, claim=f"Codes are digits, says {ada.name}.") == []


async def test_a_promotion_names_only_what_is_ready(ada: Worker) -> None:
    body = await ada.note(status="verified")
    payload = {"taskId": ada.task, "targetId": ada.tab, "candidateIds": [body["candidateId"], 999_999]}
    order = {"finalizeOutboxJobType": "finalize.memory.promote", "finalizeOutboxPayload": payload}
    await ada.release(finalizeDecision="commit", finalizationToken=ada.token, **order)
    (job,) = await ada.server.rows(outbox_job, task_id=ada.task)
    assert json.loads(job["payload"])["candidateIds"] == []


async def test_closing_the_tab_decides_like_a_release(server: Server, site: Shop, ada: Worker) -> None:
    other = Worker(server, ada.name, (await ada.call("tab_new", url=site.url("/desk")))["targetId"])
    await other.claim()
    await other.call("perceive", targetId=other.tab)
    await other.types("12")
    body = await other.note(status="verified", confidence=1.0)
    await other.types("34")
    closed = await ada.call("tab_close", targetId=other.tab)
    assert closed["finalized"]
    (row,) = await server.rows(finalize_decision, task_id=other.task)
    assert (row["decision"], json.loads(row["stats"])["curatedUpserts"]) == ("commit", 1)
    assert len(await server.rows(curated_entry, candidate_id=body["candidateId"])) == 1


async def test_a_context_that_runs_out_changes_no_candidate(server: Server, ada: Worker) -> None:
    await ada.types("12")
    await ada.note(status="verified", confidence=1.0)
    await ada.types("34")
    before = await ada.kept()
    server.clock.shift_ms += 130_000
    await server.nova._parts.browser.claims.settle()
    (row,) = await server.rows(finalize_decision, task_id=ada.task)
    assert (row["decision"], row["reason_code"]) == ("skip", "context_expired")
    assert json.loads(row["stats"])["candidatesPromotable"] == 1
    assert await ada.kept() == before
    assert await server.rows(curated_entry, claim=f"Codes are digits, says {ada.name}.") == []


# -- observations


async def test_a_look_leaves_the_signature_of_the_page_once(ada: Worker) -> None:
    await ada.call("perceive", targetId=ada.tab)
    (row,) = await ada.seen("perceive_signature")
    assert (row["outcome"], row["severity"], row["tool_name"]) == (0, 0, "nova.perceive")
    assert len(row["fingerprint_hash"]) == 32


async def test_typing_that_is_read_back_is_a_success_and_one_that_differs_a_failure(ada: Worker) -> None:
    for text in ("12", "34", "ab", "cd"):
        await ada.types(text)
    told = [
        (row["kind"], row["outcome"], row["severity"]) for row in await ada.seen("action_success", "action_failure")
    ]
    assert told == [("action_success", 1, 0), ("action_failure", -1, 0)]
    row = (await ada.seen("action_success"))[0]
    assert row["fingerprint_hash"].startswith("el_")
    assert (row["selector_norm"], row["task_id"]) == ("#code", ada.task)
    assert len(row["activity_session_id"]) == 16
    assert row["server_seq"] > 0


async def test_half_a_minute_later_the_same_counts_again(ada: Worker) -> None:
    await ada.types("12")
    ada.server.clock.shift_ms += 31_000
    await ada.types("12")
    assert len(await ada.seen("action_success")) == 2


async def test_a_click_without_proof_is_a_sighting(ada: Worker) -> None:
    assert (await ada.call("click_selector", targetId=ada.tab, selector="#show"))["verifyState"] == "likely"
    (row,) = await ada.seen("action_success", "action_failure")
    assert row["outcome"] == 0


async def test_a_proof_within_half_a_minute_replaces_the_sighting(ada: Worker) -> None:
    await ada.call("click_selector", targetId=ada.tab, selector="#show")
    await ada.call("reload", targetId=ada.tab)
    await ada.call("perceive", targetId=ada.tab)
    done = await ada.call("click_selector", targetId=ada.tab, selector="#show", expect=["text:Shown"])
    assert done["verifyState"] == "verified"
    (row,) = await ada.seen("action_success", "action_failure")
    assert (row["outcome"], json.loads(row["payload"])["contract"]) == (1, "verified_success")


async def test_a_link_that_led_where_it_says_is_a_success_of_the_page_it_was_on(ada: Worker) -> None:
    await ada.call("click_selector", targetId=ada.tab, selector="#away", waitForNavigation=True)
    (row,) = await ada.seen("action_success")
    assert (row["outcome"], json.loads(row["payload"])["route"].endswith("/desk")) == (1, True)


async def test_what_never_reached_the_page_is_no_observation(ada: Worker) -> None:
    await ada.call("click_selector", targetId=ada.tab, selector="#off", timeoutMs=0)
    await ada.call("click_selector", targetId=ada.tab, selector="#nowhere", timeoutMs=0)
    assert await ada.seen("action_success", "action_failure") == []


async def test_what_a_gate_stopped_is_no_evidence_at_all(site: Shop, ada: Worker) -> None:
    await ada.show(site.url("/order-form"))
    refused(
        await ada.call("click_selector", targetId=ada.tab, selector="#buy"), -32001, "guarded_commit.missing_contract"
    )
    assert await ada.seen("action_success", "action_failure") == []
    assert await ada.kept() == []


async def test_a_page_that_an_agent_has_scripted_teaches_nothing(ada: Worker) -> None:
    before = await ada.seen()
    await ada.call("eval", targetId=ada.tab, expression="document.title = 'Mine'")
    await ada.types("12")
    await ada.types("ab")
    await ada.call("perceive", targetId=ada.tab)
    assert await ada.seen() == before
    assert await ada.kept() == []


async def test_a_dismissed_layer_is_an_observation_of_its_own(site: Shop, ada: Worker) -> None:
    await ada.show(site.url("/banner"))
    assert (await ada.call("dismiss_blockers", targetId=ada.tab))["dismissed"] == 1
    (row,) = await ada.seen("blocker_dismissed")
    assert (row["outcome"], json.loads(row["payload"])["layers"]) == (1, ["consent"])
    assert row["candidate_key"].startswith("lcj_ck_")
    await ada.call("dismiss_blockers", targetId=ada.tab)
    assert len(await ada.seen("blocker_dismissed")) == 1


# -- candidates that come by themselves


async def test_a_failed_call_is_diagnosed_and_the_next_success_confirms_it(site: Shop, ada: Worker) -> None:
    # Under a name of its own, where no other test has failed before.
    await ada.show(site.url("/desk").replace("127.0.0.1", "localhost"))
    await ada.call("click_selector", targetId=ada.tab, selector="#off", timeoutMs=0)
    (row,) = await ada.kept()
    assert (row["origin"], row["status"], row["confidence"]) == ("diagnostic", "unverified", 0.40)
    assert (row["component"], row["claim"]) == ("click_selector", "click_selector fails with action.disabled.")
    await ada.call("click_selector", targetId=ada.tab, selector="#show")
    (row,) = await ada.kept()
    assert (row["status"], row["confidence"], row["recovered"]) == ("verified", 0.75, 1)
    assert row["source_event_id"] != row["resolution_event_id"]
    done = await ada.release()
    assert (done["finalizeDecision"], done["finalizeReasonCode"]) == ("skip", "evidence_below_threshold")


async def test_a_verified_commit_seeds_a_candidate_in_novas_words(site: Shop, ada: Worker) -> None:
    await ada.show(site.url("/order-form"))
    done = await ada.call("guarded_submit_form", targetId=ada.tab)
    assert done["verifyState"] == "verified"
    (row,) = await ada.kept()
    assert (row["origin"], row["status"], row["confidence"]) == ("semantic", "verified", 0.82)
    assert (row["component"], row["high_signal"]) == ("guarded_submit_form", 1)
    assert "Order now" not in row["claim"]
    assert await ada.server.score(row["candidate_id"]) == 1.31


async def test_a_sequence_whose_every_act_is_verified_seeds_a_candidate(ada: Worker) -> None:
    steps = [{"tool": "nova.type_selector", "args": {"selector": "#code", "text": "12"}}]
    done = await ada.call("run_sequence", targetId=ada.tab, steps=steps)
    assert done["verifyState"] == "verified"
    (row,) = await ada.kept()
    assert (row["component"], row["status"], row["confidence"]) == ("run_sequence", "verified", 0.82)


async def test_agents_of_one_principal_share_a_session(server: Server, ada: Worker) -> None:
    await ada.release()
    bob = Worker(server, f"{ada.name}-twin", ada.tab)
    await bob.call("perceive", targetId=ada.tab)
    mine, theirs = (await ada.events())[-2], (await bob.events())[-1]
    assert mine["activity_session_id"] == theirs["activity_session_id"] is not None
    server.clock.shift_ms += 31 * 60_000
    await bob.call("page_info", targetId=ada.tab)
    assert (await bob.events())[-1]["activity_session_id"] != theirs["activity_session_id"]
    await ada.claim()
