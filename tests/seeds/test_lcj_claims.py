"""Every row of the contract about claims and releases, through a real client. BR-28 is the sum of this file."""

import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from loop_kit import Server as PlainServer
from loop_kit import ShiftedClock, Shop, serving, shop
from mcp import Client
from real_kit import records, text_of
from sqlalchemy import select

from nova_mcp.app import Nova, build
from nova_mcp.browser.targets.registry import Targets
from nova_mcp.core.clock import Ports, SystemIds
from nova_mcp.core.leases import Lease
from nova_mcp.evidence.model import Caller, ServerId
from nova_mcp.memory.claims.book import ClaimBook
from nova_mcp.memory.claims.rules import hash_token
from nova_mcp.memory.claims.store import claim_journal
from nova_mcp.memory.journal.finalize_store import finalize_decision, outbox_job
from nova_mcp.server.manifest import load_manifest
from nova_mcp.server.protocol import Wiring, build_server
from nova_mcp.settings import Settings
from nova_mcp.storage.engine import Database
from nova_mcp.storage.errors import StoreUnavailable

pytestmark = pytest.mark.browser

CLAIM_FIELDS = {
    *("ok", "targetId", "claimed", "claimState", "taskId", "ownerAgentId", "agentRole", "debugLabel", "renewed"),
    *("reclaimed", "finalizationToken", "ttlMs", "leaseMs", "leaseRemainingMs", "claimedAtUtc", "expiresAtUtc"),
}
RELEASE_FIELDS = {
    *("ok", "targetId", "taskId", "releaseState", "releaseAuthorization", "hadActiveClaim", "released", "finalized"),
    *("finalizeDecision", "decisionSource", "finalizeReasonCode", "finalizeStats"),
}
NOTHING = {
    "candidatesTotal": 0,
    "candidatesVerified": 0,
    "candidatesPromotable": 0,
    "curatedUpserts": 0,
    "evidenceMinScore": None,
    "evidenceAvgScore": None,
}
TWINS = {
    "candidatesTotal": "candidates_total",
    "candidatesVerified": "candidates_verified",
    "candidatesPromotable": "candidates_promotable",
    "curatedUpserts": "curated_upserts",
    "evidenceMinScore": "evidence_min_score",
    "evidenceAvgScore": "evidence_avg_score",
}
_numbers = count(1)


@dataclass
class ClaimFault:
    armed: bool = False

    def hit(self, point: str) -> None:
        if self.armed and point == "claim.before_commit":
            raise StoreUnavailable("full")


@dataclass
class Server:
    """A server, its client, its clock, and the fault that can be put into its store."""

    client: Client
    clock: ShiftedClock
    data_dir: Path
    nova: Nova
    fault: ClaimFault = field(default_factory=ClaimFault)
    used: set[str] = field(default_factory=set)

    def rows(self, table: Any, **where: Any) -> list[dict[str, Any]]:
        wanted = select(table).where(*(table.c[name] == value for name, value in where.items()))
        with Database.open(f"sqlite:///{self.data_dir / 'nova.db'}") as db:
            return [row._asdict() for row in db.read_sync(lambda conn: conn.execute(wanted).all())]

    async def agent(self) -> "Worker":
        """Somebody new with a tab of its own, one that an earlier test is done with if there is one."""
        worker = self.stranger()
        free = next((tab for tab in self.targets if tab.target_id not in self.used and tab.sandbox_id == "A"), None)
        if free is None:
            worker.tab = (await worker.call("tab_new"))["targetId"]
        else:
            free.owner = _caller(worker).owner
            free.lease = Lease(free.owner, self.clock.now_ms() + 120_000)
            self.targets.activate(_caller(worker), free)
            worker.tab = free.target_id
        self.used.add(worker.tab)
        return worker

    @property
    def targets(self) -> Targets:
        return self.nova._parts.browser.targets

    @property
    def claims(self) -> ClaimBook:
        return self.nova._parts.browser.claims

    def stranger(self) -> "Worker":
        return Worker(self, f"agent-{next(_numbers)}")


@dataclass
class Worker:
    """One agent of the server."""

    server: Server
    name: str
    tab: str = ""

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        answer = await self.server.client.call_tool(f"nova.{tool}", {"agentId": self.name, **arguments})
        assert answer.structured_content is not None
        return dict(answer.structured_content)

    async def claim(self, **arguments: Any) -> dict[str, Any]:
        body = await self.call("tab_claim", **{"targetId": self.tab or "active", **arguments})
        assert body["ok"], body
        return body

    async def release(self, **arguments: Any) -> dict[str, Any]:
        return await self.call("tab_release", **{"targetId": self.tab or "active", **arguments})


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory, anyio_backend: str) -> AsyncIterator[Server]:
    clock, fault, data_dir = ShiftedClock(), ClaimFault(), tmp_path_factory.mktemp("claims")
    settings = Settings.model_validate({"data_dir": data_dir, "tools": "all"})
    nova = await build(settings, Ports(clock, SystemIds(clock), fault))

    async def backend() -> Any:
        return nova

    try:
        async with Client(build_server(load_manifest(), settings, Wiring(backend=backend))) as client:
            yield Server(client, clock, data_dir, nova, fault)
    finally:
        await nova.close("test")


@pytest.fixture(autouse=True)
def later(server: Server) -> Iterator[None]:
    """After each test every claim has run out and every tab may be used again."""
    yield
    # Not so much later that the browser counts as idle.
    server.clock.shift_ms += 130_000
    server.used.clear()


@pytest.fixture(scope="module")
def store() -> Iterator[Shop]:
    with shop() as running:
        running.pages["/plain"] = "<!doctype html><title>Plain</title><main><button id=go>Go</button></main>"
        yield running


def refused(body: dict[str, Any], code: int, reason: str) -> None:
    assert (body["ok"], body["errorCode"], body["reasonCode"]) == (False, code, reason), body


# -- tab_claim


async def test_a_claim_tells_everything_about_itself(server: Server) -> None:
    ada = await server.agent()
    body = await ada.claim(agentRole="archivist", ttlMs=60_000, debugLabel="orders")
    assert set(body) == CLAIM_FIELDS
    assert (body["targetId"], body["claimed"], body["claimState"]) == (ada.tab, True, "active")
    assert (body["ownerAgentId"], body["agentRole"], body["debugLabel"]) == (ada.name, "archivist", "orders")
    assert (body["renewed"], body["reclaimed"]) == (False, False)
    assert body["ttlMs"] == body["leaseMs"] == body["leaseRemainingMs"] == 60_000
    assert body["taskId"].startswith("claim_")
    assert body["claimedAtUtc"] < body["expiresAtUtc"]


async def test_a_claim_without_arguments_takes_the_current_tab_for_two_minutes(server: Server) -> None:
    ada = await server.agent()
    body = await ada.call("tab_claim")
    assert (body["targetId"], body["ttlMs"], body["agentRole"], body["debugLabel"]) == (ada.tab, 120_000, "actor", None)


async def test_the_text_of_a_claim_is_enough_for_clients_that_read_only_text(server: Server) -> None:
    ada = await server.agent()
    answer = await server.client.call_tool("nova.tab_claim", {"agentId": ada.name})
    assert answer.structured_content is not None
    for name in ("targetId", "taskId", "finalizationToken"):
        assert answer.structured_content[name] in text_of(answer)


async def test_claiming_again_renews_and_keeps_task_and_token(server: Server) -> None:
    ada = await server.agent()
    first = await ada.claim(debugLabel="one")
    server.clock.shift_ms += 60_000
    again = await ada.claim(ttlMs=30_000, debugLabel="  ")
    assert (again["renewed"], again["taskId"], again["claimedAtUtc"]) == (True, first["taskId"], first["claimedAtUtc"])
    assert again["finalizationToken"] == first["finalizationToken"]
    assert (again["debugLabel"], again["ttlMs"], again["leaseRemainingMs"]) == ("one", 30_000, 30_000)
    assert (await ada.claim(debugLabel="two"))["debugLabel"] == "two"


@pytest.mark.parametrize(
    "wrong",
    [
        {"ttlMs": 4_999},
        {"ttlMs": 1_800_001},
        {"ttlMs": "60000"},
        {"agentRole": "owner"},
        {"debugLabel": "x" * 81},
        {"reclaimReason": ""},
        {"reclaimReason": "   "},
        {"reclaimReason": "x" * 281},
        {"surprise": 1},
    ],
    ids=str,
)
async def test_wrong_arguments_of_a_claim_are_refused_before_anything_happens(server: Server, wrong: Any) -> None:
    ada = await server.agent()
    refused(await ada.call("tab_claim", **wrong), -32602, "invalid_params")
    assert (await ada.release())["releaseState"] == "no_active_claim"


async def test_an_unknown_target_cannot_be_claimed(server: Server) -> None:
    ada = server.stranger()
    refused(await ada.call("tab_claim", targetId="tab_99999"), -32602, "tab.unknown")
    refused(await ada.call("tab_claim", targetId="ZZZZ"), -32602, "sandbox.unknown")
    refused(await ada.call("tab_claim"), -32004, "tab.no_active_tab")


async def test_thirty_two_claims_are_the_limit(server: Server) -> None:
    ada = server.stranger()
    sandboxes = server.nova._parts.browser.sandboxes
    letters = [(await sandboxes.create(("local", ada.name))).sandbox_id for _ in range(33)]
    for sandbox_id in letters[:32]:
        await ada.claim(targetId=sandbox_id)
    refused(await ada.call("tab_claim", targetId=letters[32]), -32044, "claim.too_many")
    opened_before = (await ada.call("tabs"))["totalCount"]
    refused(await ada.call("tab_new", claim=True), -32044, "claim.too_many")
    assert (await ada.call("tabs"))["totalCount"] == opened_before
    assert (await ada.claim(targetId=letters[0]))["renewed"]
    assert (await ada.release(targetId=letters[0]))["released"]
    await ada.claim(targetId=letters[32])


# -- who may change a claimed tab


@pytest.mark.parametrize("kind", ["implicit", "explicit"])
async def test_br28_only_the_owner_changes_a_tab(server: Server, store: Shop, kind: str) -> None:
    ada, bob = await server.agent(), await server.agent()
    await ada.call("navigate", url=store.url("/plain"))
    if kind == "explicit":
        await ada.claim()
    for tool, more in (
        ("navigate", {"url": store.url("/")}),
        ("reload", {}),
        ("back", {}),
        ("click_selector", {"selector": "#go"}),
        ("tab_close", {}),
        ("tab_claim", {}),
    ):
        body = await bob.call(tool, targetId=ada.tab, **more)
        refused(body, -32040, "claim.owner_mismatch")
        assert (body["status"], body["gateId"], body["ownerAgentId"]) == ("blocked", "claim.owner", ada.name)
        assert 0 < body["leaseRemainingMs"] <= 120_000
        assert body["retryAfterMs"] == body["leaseRemainingMs"]
    seen = records(server.data_dir)[-6:]
    assert {record.outcome.kind for record in seen} == {"blocked_preflight"}
    for tool in ("perceive", "page_info", "read_text"):
        assert (await bob.call(tool, targetId=ada.tab))["ok"]
    assert (await ada.call("reload", targetId=ada.tab))["ok"]


async def test_an_implicit_lease_is_no_work_context(server: Server) -> None:
    ada = await server.agent()
    assert (await ada.release())["hadActiveClaim"] is False
    assert server.claims.work_context(_caller(ada), ada.tab) is None
    body = await ada.claim()
    found = server.claims.work_context(_caller(ada), ada.tab)
    assert found is not None
    assert found.task_id == body["taskId"]


def _caller(worker: Worker) -> Caller:
    return Caller("local", worker.name, ServerId("s"))


@pytest.mark.parametrize("tool", ["page_info", "reload"])
async def test_calls_of_the_owner_renew_the_claim(server: Server, tool: str) -> None:
    ada, bob = await server.agent(), server.stranger()
    await ada.claim(ttlMs=60_000)
    server.clock.shift_ms += 50_000
    assert (await ada.call(tool))["ok"]
    server.clock.shift_ms += 50_000
    refused(await bob.call("reload", targetId=ada.tab), -32040, "claim.owner_mismatch")
    await bob.call("page_info", targetId=ada.tab)
    server.clock.shift_ms += 20_000
    assert (await bob.call("reload", targetId=ada.tab))["ok"]


async def test_a_sandbox_claim_covers_all_its_tabs_and_new_ones(server: Server) -> None:
    ada, bob = server.stranger(), server.stranger()
    letters = (await server.nova._parts.browser.sandboxes.create(("local", ada.name))).sandbox_id
    first = (await ada.call("tab_new", sandboxId=letters))["targetId"]
    body = await ada.claim(targetId=letters)
    assert body["targetId"] == letters
    second = (await ada.call("tab_new", sandboxId=letters))["targetId"]
    for tab in (first, second):
        refused(await bob.call("reload", targetId=tab), -32040, "claim.owner_mismatch")
        refused(await bob.call("tab_claim", targetId=tab), -32040, "claim.owner_mismatch")
        assert (await ada.call("reload", targetId=tab))["ok"]
    refused(await bob.call("tab_claim", targetId=letters), -32040, "claim.owner_mismatch")
    opening = await bob.call("tab_new", sandboxId=letters)
    refused(opening, -32040, "claim.owner_mismatch")
    assert opening["gateId"] == "claim.owner"
    listed = await bob.call("tabs", sandboxId=letters, outputDetail="full")
    assert {tab["claim"]["taskId"] for tab in listed["tabs"]} == {body["taskId"]}
    released = await ada.release(targetId=letters)
    assert (released["released"], released["targetId"]) == (True, letters)
    assert (await bob.call("reload", targetId=second))["ok"]


async def test_two_claims_make_active_ambiguous_and_the_tabs_are_listed(server: Server) -> None:
    ada = await server.agent()
    other = (await ada.call("tab_new", claim=True))["targetId"]
    assert (await ada.call("page_info"))["targetId"] == other
    await ada.claim()
    for tool in ("page_info", "tab_claim", "tab_release"):
        body = await ada.call(tool)
        refused(body, -32003, "tab.active_ambiguous")
        assert {tab["targetId"] for tab in body["tabs"]} == {ada.tab, other}
    await ada.release()
    assert (await ada.call("page_info"))["targetId"] == other


# -- taking over


async def test_br28_a_takeover_kills_the_old_token_and_tells_the_displaced_once(server: Server) -> None:
    ada, bob = await server.agent(), await server.agent()
    old = await ada.claim()
    new = await bob.claim(targetId=ada.tab, reclaimReason="ada is stuck")
    assert (new["reclaimed"], new["previousOwnerAgentId"], new["renewed"]) == (True, ada.name, False)
    assert new["taskId"] != old["taskId"]
    assert new["finalizationToken"] != old["finalizationToken"]
    told = await ada.call("tabs")
    (notice,) = told["gates"]
    assert (notice["gateId"], notice["status"]) == ("claim.reclaimed", "warned")
    assert bob.name in notice["message"]
    assert ada.tab in notice["message"]
    assert "gates" not in await ada.call("tabs")
    refused(await ada.release(finalizationToken=old["finalizationToken"]), -32040, "claim.owner_mismatch")
    body = await bob.release(targetId=ada.tab, finalizationToken=old["finalizationToken"])
    refused(body, -32040, "claim.finalization_token_mismatch")
    (row,) = server.rows(claim_journal, task_id=old["taskId"])
    assert (row["end_reason"], row["finalize_decision"], row["successor"]) == ("reclaimed", "skip", new["taskId"])
    (row,) = server.rows(claim_journal, task_id=new["taskId"])
    assert row["reclaim_reason"] == "ada is stuck"


async def test_the_word_of_a_takeover_reaches_the_displaced_even_with_a_refusal(server: Server) -> None:
    ada, bob = await server.agent(), await server.agent()
    await ada.claim()
    await bob.claim(targetId=ada.tab, reclaimReason="needed")
    body = await ada.call("reload", targetId=ada.tab)
    refused(body, -32040, "claim.owner_mismatch")
    assert [notice["gateId"] for notice in body["gates"]] == ["claim.reclaimed"]
    assert "gates" not in await ada.call("reload", targetId=ada.tab)


# -- tab_release


async def test_a_release_tells_everything_and_a_second_one_finds_nothing(server: Server) -> None:
    ada = await server.agent()
    claim = await ada.claim()
    body = await ada.release()
    assert set(body) == RELEASE_FIELDS
    assert (body["ok"], body["targetId"], body["taskId"]) == (True, ada.tab, claim["taskId"])
    assert (body["releaseState"], body["releaseAuthorization"]) == ("released", "owner")
    assert (body["hadActiveClaim"], body["released"], body["finalized"]) == (True, True, True)
    assert (body["finalizeDecision"], body["decisionSource"], body["finalizeReasonCode"]) == (
        "skip",
        "auto",
        "no_candidates",
    )
    assert body["finalizeStats"] == NOTHING
    again = await ada.release(finalizationToken=claim["finalizationToken"])
    assert set(again) == RELEASE_FIELDS
    assert (again["ok"], again["releaseState"], again["releaseAuthorization"]) == (True, "no_active_claim", "none")
    assert (again["hadActiveClaim"], again["released"], again["finalized"], again["taskId"]) == (
        False,
        False,
        False,
        None,
    )


async def test_a_released_tab_is_free_at_once(server: Server) -> None:
    ada, bob = await server.agent(), server.stranger()
    await ada.claim()
    await ada.release()
    assert (await bob.call("reload", targetId=ada.tab))["ok"]


async def test_the_token_is_optional_without_a_decision_but_must_be_right(server: Server) -> None:
    ada = await server.agent()
    claim = await ada.claim()
    body = await ada.release(finalizationToken="fin_wrong")
    refused(body, -32040, "claim.finalization_token_mismatch")
    assert (await ada.claim())["taskId"] == claim["taskId"]
    body = await ada.release(finalizationToken=claim["finalizationToken"])
    assert (body["released"], body["releaseAuthorization"], body["decisionSource"]) == (True, "token", "auto")


@pytest.mark.parametrize("decision", ["commit", "skip"])
async def test_a_decision_needs_the_token_of_the_claim_and_its_owner(server: Server, decision: str) -> None:
    ada, bob = await server.agent(), server.stranger()
    claim = await ada.claim()
    token = claim["finalizationToken"]
    refused(await ada.release(finalizeDecision=decision), -32602, "claim.finalization_token_required")
    wrong = await ada.release(finalizeDecision=decision, finalizationToken="wrong")
    refused(wrong, -32040, "claim.finalization_token_mismatch")
    other = await bob.release(targetId=ada.tab, finalizeDecision=decision, finalizationToken=token)
    refused(other, -32040, "claim.owner_mismatch")
    assert (await ada.claim())["taskId"] == claim["taskId"]
    body = await ada.release(finalizeDecision=decision, finalizationToken=token, finalizeReasonCode="by_hand")
    assert (body["finalizeDecision"], body["decisionSource"]) == (decision, "caller")
    assert (body["releaseAuthorization"], body["finalizeReasonCode"]) == ("token", "by_hand")
    assert ("outbox" in body) is (decision == "commit")


async def test_a_commit_without_a_job_type_leaves_one_that_does_nothing(server: Server) -> None:
    ada = await server.agent()
    claim = await ada.claim()
    body = await ada.release(finalizeDecision="commit", finalizationToken=claim["finalizationToken"])
    assert (body["outbox"]["jobType"], body["outbox"]["state"]) == ("finalize.noop", "pending")
    (job,) = server.rows(outbox_job, task_id=claim["taskId"])
    assert (job["job_id"], job["payload"]) == (body["outbox"]["jobId"], "{}")
    assert body["finalizeStats"] == NOTHING


SAVE = {"scope": "shop.test", "data": {"phenomenonId": "p"}}


async def test_each_job_type_takes_its_payload(server: Server) -> None:
    ada = await server.agent()
    for job_type in ("finalize.noop", "finalize.memory.promote"):
        claim = await ada.claim()
        promote = {"taskId": claim["taskId"], "targetId": ada.tab, "candidateIds": [1, 2]}
        payload = promote if job_type == "finalize.memory.promote" else SAVE
        body = await ada.release(
            finalizeDecision="commit",
            finalizationToken=claim["finalizationToken"],
            finalizeOutboxJobType=job_type,
            finalizeOutboxPayload=payload,
        )
        assert body["outbox"]["jobType"] == job_type
        (job,) = server.rows(outbox_job, task_id=claim["taskId"])
        # Neither of the two is a candidate of this claim, let alone one that may be promoted.
        expected = {**payload, "candidateIds": []} if "candidateIds" in payload else payload
        assert json.loads(job["payload"]) == expected


async def test_a_promotion_without_payload_names_its_own_claim(server: Server) -> None:
    ada = await server.agent()
    claim = await ada.claim()
    order = {"finalizeDecision": "commit", "finalizationToken": claim["finalizationToken"]}
    promote = {**order, "finalizeOutboxJobType": "finalize.memory.promote"}
    other = {"taskId": "claim_other", "targetId": ada.tab, "candidateIds": []}
    refused(await ada.release(**promote, finalizeOutboxPayload=other), -32602, "invalid_params")
    assert (await ada.release(**promote))["released"]
    (job,) = server.rows(outbox_job, task_id=claim["taskId"])
    assert json.loads(job["payload"]) == {"taskId": claim["taskId"], "targetId": ada.tab, "candidateIds": []}


def _sized(size: int) -> dict[str, Any]:
    """A payload of exactly that many bytes."""
    payload = {"scope": "s", "data": {"x": ""}}
    payload["data"] = {"x": "y" * (size - len(json.dumps(payload)))}
    assert len(json.dumps(payload)) == size
    return payload


COMMIT = {"finalizeDecision": "commit", "finalizationToken": "t"}
SAVING = {**COMMIT, "finalizeOutboxJobType": "pks.domain.save"}
# Takes any payload, so that nothing but its size is judged.
IDLE = {**COMMIT, "finalizeOutboxJobType": "finalize.noop"}
PROMOTING = {**COMMIT, "finalizeOutboxJobType": "finalize.memory.promote"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"surprise": 1},
        {"finalizeDecision": "maybe", "finalizationToken": "t"},
        {"finalizationToken": ""},
        {"finalizationToken": 5},
        {"finalizeReasonCode": "x" * 65},
        {"finalizeReasonText": "x" * 501},
        {"coverageExhausted": "true"},
        {"coverageExhaustedReason": "x" * 19},
        {"coverageExhaustedReason": "x" * 501},
        {"finalizeOutboxJobType": "finalize.noop"},
        {"finalizeOutboxJobType": "finalize.noop", "finalizeDecision": "skip", "finalizationToken": "t"},
        {**COMMIT, "finalizeOutboxJobType": "other"},
        {**COMMIT, "finalizeOutboxPayload": SAVE},
        {"finalizeOutboxPayload": SAVE},
        SAVING,
        {**SAVING, "finalizeOutboxPayload": []},
        {**SAVING, "finalizeOutboxPayload": {"scope": "", "data": {}}},
        {**SAVING, "finalizeOutboxPayload": {"scope": "s", "data": []}},
        {**SAVING, "finalizeOutboxPayload": {**SAVE, "more": 1}},
        {**SAVING, "finalizeOutboxPayload": {"taskId": "a", "targetId": "b", "candidateIds": []}},
        {**IDLE, "finalizeOutboxPayload": _sized(16_385)},
        {**PROMOTING, "finalizeOutboxPayload": SAVE},
        {**PROMOTING, "finalizeOutboxPayload": {"taskId": "a", "targetId": "b", "candidateIds": ["1"]}},
        {**PROMOTING, "finalizeOutboxPayload": {"taskId": "a", "targetId": "b", "candidateIds": [True]}},
        {"finalizeStats": []},
        {"finalizeStats": None},
        {"finalizeStats": "3"},
        {"finalizeStats": {"other": 1}},
        {"finalizeStats": {"candidatesTotal": -1}},
        {"finalizeStats": {"candidatesTotal": 1.5}},
        {"finalizeStats": {"candidatesTotal": "1"}},
        {"finalizeStats": {"candidatesTotal": None}},
        {"finalizeStats": {"candidatesTotal": True}},
        {"finalizeStats": {"evidence_min_score": "high"}},
        {"finalizeStats": {"candidatesTotal": 1, "candidates_total": 2}},
        {"finalizeStats": {"candidatesTotal": 1, "candidates_total": True}},
    ],
    ids=lambda wrong: str(wrong)[:90],
)
async def test_wrong_arguments_of_a_release_leave_the_claim_untouched(holder: Worker, wrong: Any) -> None:
    refused(await holder.release(**wrong), -32602, "invalid_params")
    assert (await holder.claim())["renewed"]


@pytest.fixture
async def holder(server: Server) -> Worker:
    """An agent with a claim."""
    ada = await server.agent()
    await ada.claim()
    return ada


async def test_a_payload_of_sixteen_kilobytes_is_taken(server: Server) -> None:
    ada = await server.agent()
    claim = await ada.claim()
    order = {**IDLE, "finalizationToken": claim["finalizationToken"], "finalizeOutboxPayload": _sized(16_384)}
    assert (await ada.release(**order))["released"]


@pytest.mark.parametrize("camel", TWINS)
async def test_figures_come_in_either_spelling_and_are_kept_as_claims(server: Server, camel: str) -> None:
    ada = await server.agent()
    for stats in ({camel: 2}, {TWINS[camel]: 2}, {camel: 2, TWINS[camel]: 2}):
        claim = await ada.claim()
        body = await ada.release(finalizeStats=stats)
        assert (body["claimedStats"], body["statsMismatch"]) == ({camel: 2}, [camel])
        assert body["finalizeStats"] == NOTHING
        (row,) = server.rows(finalize_decision, task_id=claim["taskId"])
        assert json.loads(row["claimed_stats"]) == {camel: 2}


async def test_figures_that_agree_are_no_mismatch(server: Server) -> None:
    ada = await server.agent()
    await ada.claim()
    body = await ada.release(finalizeStats={"candidatesTotal": 0, "curated_upserts": 0})
    assert body["claimedStats"] == {"candidatesTotal": 0, "curatedUpserts": 0}
    assert "statsMismatch" not in body
    await ada.claim()
    assert "claimedStats" not in await ada.release(finalizeStats={})


async def test_reasons_are_kept_without_secrets(server: Server) -> None:
    ada = await server.agent()
    claim = await ada.claim()
    token = claim["finalizationToken"]
    await ada.release(finalizeReasonCode="done", finalizeReasonText=f"my token was {token}, ok")
    (row,) = server.rows(finalize_decision, task_id=claim["taskId"])
    assert (row["claimed_reason_code"], row["reason_code"]) == ("done", "no_candidates")
    assert row["claimed_reason_text"] == "my token was «redacted», ok"


@pytest.mark.parametrize("more", [{}, {"coverageExhaustedReason": "nothing more could be reached"}])
async def test_coverage_is_not_asked_about_while_there_is_no_learn_mode(server: Server, more: Any) -> None:
    ada = await server.agent()
    await ada.claim()
    body = await ada.release(coverageExhausted=True, **more)
    assert body["released"]
    assert "learnMode" not in body


async def test_br28_expiry_frees_the_tab_and_skips(server: Server) -> None:
    ada, bob = await server.agent(), server.stranger()
    claim = await ada.claim(ttlMs=5_000)
    server.clock.shift_ms += 6_000
    assert (await bob.call("reload", targetId=ada.tab))["ok"]
    body = await ada.release(finalizeDecision="commit", finalizationToken=claim["finalizationToken"])
    assert (body["ok"], body["releaseState"], body["releaseAuthorization"]) == (True, "expired", "none")
    assert (body["hadActiveClaim"], body["released"], body["finalized"]) == (False, False, False)
    assert (body["taskId"], body["finalizeDecision"], body["finalizeReasonCode"]) == (
        claim["taskId"],
        "skip",
        "context_expired",
    )
    (row,) = server.rows(claim_journal, task_id=claim["taskId"])
    assert (row["end_reason"], row["finalize_decision"]) == ("expired", "skip")


async def test_after_expiry_a_claim_is_a_new_one(server: Server) -> None:
    ada = await server.agent()
    old = await ada.claim(ttlMs=5_000)
    server.clock.shift_ms += 6_000
    new = await ada.claim()
    assert not new["renewed"]
    assert new["taskId"] != old["taskId"]
    refused(await ada.release(finalizationToken=old["finalizationToken"]), -32040, "claim.finalization_token_mismatch")


async def test_br28_a_release_is_atomic_under_a_store_fault(server: Server) -> None:
    ada, bob = await server.agent(), server.stranger()
    claim = await ada.claim()
    order = {"finalizeDecision": "commit", "finalizationToken": claim["finalizationToken"]}
    server.fault.armed = True
    try:
        body = await ada.release(**order)
        closing = await ada.call("tab_close", targetId=ada.tab)
    finally:
        server.fault.armed = False
    for failed in (body, closing):
        refused(failed, -32002, "claim.finalize_failed")
        assert (failed["retryable"], failed["status"]) == (True, "failed")
    refused(await bob.call("reload", targetId=ada.tab), -32040, "claim.owner_mismatch")
    assert server.rows(finalize_decision, task_id=claim["taskId"]) == []
    assert server.rows(outbox_job, task_id=claim["taskId"]) == []
    (row,) = server.rows(claim_journal, task_id=claim["taskId"])
    assert row["ended_at_ms"] is None
    assert (await ada.release(**order))["released"]
    assert len(server.rows(outbox_job, task_id=claim["taskId"])) == 1


# -- tokens


async def test_br28_the_token_is_nowhere_but_in_the_answer_to_the_claim(server: Server) -> None:
    ada = await server.agent()
    claim = await ada.claim()
    token = claim["finalizationToken"]
    shown = [await ada.call("tabs", outputDetail="full")]
    for given in ({"finalisationToken": token}, {"finalizationToken": token}):
        args = {"agentId": f"{ada.name}-2", "targetId": ada.tab, **given}
        answer = await server.client.call_tool("nova.call", {"tool": "nova.tab_release", "args": args})
        shown.append(answer.structured_content or {})
    shown.append(await ada.call("ask_human", why=f"is {token} right?"))
    shown.append(await ada.release(finalizationToken=token, finalizeReasonText=token))
    assert shown[-1]["released"]
    assert token not in json.dumps(shown)
    kept = b"".join(path.read_bytes() for path in server.data_dir.glob("nova.db*"))
    assert token.encode() not in kept
    assert hash_token(token).encode() in kept
    releases = [record for record in records(server.data_dir) if record.tool_name == "nova.tab_release"]
    assert "redacted" in str(releases[-1].arguments)


async def test_the_ledger_knows_which_work_context_a_call_belonged_to(server: Server) -> None:
    ada = await server.agent()
    claim = await ada.claim()
    await ada.call("page_info")
    await ada.release()
    await ada.call("page_info")
    seen = [record.task_id for record in records(server.data_dir) if record.caller.agent_id == ada.name]
    assert seen == [claim["taskId"], claim["taskId"], claim["taskId"], None]


# -- the tools around


async def test_a_new_tab_may_come_with_a_claim(server: Server) -> None:
    ada = server.stranger()
    body = await ada.call("tab_new", claim=True, ttlMs=9_000)
    claim = body["claim"]
    assert set(claim) == CLAIM_FIELDS - {"ok"}
    assert (claim["targetId"], claim["ttlMs"]) == (body["targetId"], 9_000)
    released = await ada.release(finalizeDecision="skip", finalizationToken=claim["finalizationToken"])
    assert released["taskId"] == claim["taskId"]
    assert "claim" not in await ada.call("tab_new")


@pytest.mark.parametrize("wrong", [{"claim": True, "ttlMs": 4_999}, {"claim": True, "url": "shop.test"}, {"claim": 1}])
async def test_a_wrong_claim_fails_before_the_tab_is_opened(server: Server, wrong: Any) -> None:
    ada = server.stranger()
    before = (await ada.call("tabs"))["totalCount"]
    refused(await ada.call("tab_new", **wrong), -32602, "invalid_params")
    assert (await ada.call("tabs"))["totalCount"] == before


async def test_the_list_of_tabs_shows_claims_and_their_detail_on_request(server: Server) -> None:
    ada, bob = await server.agent(), server.stranger()
    implicit = await _listed(bob, ada.tab)
    assert (implicit["ownerAgentId"], implicit["implicit"], set(implicit)) == (
        ada.name,
        True,
        {"ownerAgentId", "leaseRemainingMs", "implicit"},
    )
    claim = await ada.claim(agentRole="mcp", debugLabel="orders")
    compact, full = await _listed(bob, ada.tab), await _listed(bob, ada.tab, outputDetail="full")
    assert (compact["implicit"], set(compact)) == (False, {"ownerAgentId", "leaseRemainingMs", "implicit"})
    assert (full["taskId"], full["agentRole"], full["debugLabel"], full["claimedAtUtc"]) == (
        claim["taskId"],
        "mcp",
        "orders",
        claim["claimedAtUtc"],
    )
    await ada.release()
    assert await _listed(bob, ada.tab) is None


async def _listed(worker: Worker, tab: str, **arguments: Any) -> Any:
    body = await worker.call("tabs", **arguments)
    (entry,) = [entry for entry in body["tabs"] if entry["targetId"] == tab]
    return entry.get("claim")


async def test_br28_closing_a_tab_finalizes_its_claim(server: Server) -> None:
    ada = await server.agent()
    claim = await ada.claim()
    body = await ada.call("tab_close", targetId=ada.tab)
    assert (body["closed"], body["released"], body["finalized"]) == (True, True, True)
    (row,) = server.rows(finalize_decision, task_id=claim["taskId"])
    assert (row["decision"], row["reason_code"]) == ("skip", "no_candidates")
    gone = await ada.release()
    refused(gone, -32602, "tab.unknown")
    assert gone["lastSeen"]["endReason"] == "closed"
    assert gone["lastSeen"]["claim"]["endReason"] == "tab_closed"
    again = await ada.call("tab_close", targetId=ada.tab)
    assert (again["closed"], again["finalized"], again["reasonCode"]) == (False, False, "tab.already_closed")


async def test_a_page_that_closes_itself_ends_its_claim(server: Server, store: Shop) -> None:
    ada = await server.agent()
    store.pages["/opener"] = "<!doctype html><button id=open onclick=\"window.open('/closing')\">Open</button>"
    store.pages["/closing"] = "<!doctype html><title>Closing</title>"
    await ada.call("navigate", url=store.url("/opener"))
    await ada.call("perceive")
    (popup,) = (await ada.call("click_selector", selector="#open"))["newTabIds"]
    claim = await ada.claim(targetId=popup)
    targets = server.targets
    tab = await targets.resolve(_caller(ada), popup)
    await tab.page.close()
    await targets.page_closed(tab, tab.page)
    await server.claims.settle()
    (row,) = server.rows(claim_journal, task_id=claim["taskId"])
    assert (row["end_reason"], row["finalize_decision"]) == ("tab_closed", "skip")


async def test_a_popup_belongs_to_whoever_holds_its_opener(server: Server, store: Shop) -> None:
    ada, bob = await server.agent(), server.stranger()
    store.pages["/pops"] = "<!doctype html><button id=open onclick=\"window.open('/plain')\">Open</button>"
    await ada.call("navigate", url=store.url("/pops"))
    await bob.claim(targetId=ada.tab, reclaimReason="handed over")
    await bob.call("perceive", targetId=ada.tab)
    (popup,) = (await bob.call("click_selector", targetId=ada.tab, selector="#open"))["newTabIds"]
    assert (await bob.call("reload", targetId=popup))["ok"]
    refused(await ada.call("reload", targetId=popup), -32040, "claim.owner_mismatch")


# -- restart


async def _claimed_before_a_restart(agent: PlainServer) -> tuple[str, str, str]:
    tab = (await agent.call("tab_new"))["targetId"]
    sandbox = (await agent.call("tabs"))["tabs"][0]["sandboxId"]
    first = await agent.call("tab_claim", targetId=tab, agentId="default")
    second = await agent.call("tab_claim", targetId=sandbox, agentId="default")
    return tab, sandbox, first["taskId"] + " " + second["taskId"]


async def test_br28_a_restart_ends_claims_with_a_skip_and_the_owner_is_told(tmp_path: Path) -> None:
    async with serving(tmp_path) as agent:
        tab, sandbox, tasks = await _claimed_before_a_restart(agent)
    on_tab, on_sandbox = tasks.split()
    async with serving(tmp_path) as agent:
        body = await agent.call("page_info", targetId=tab)
        refused(body, -32602, "tab.unknown")
        seen = body["lastSeen"]
        assert seen["endReason"] == "server_restart"
        assert (seen["claim"]["taskId"], seen["claim"]["endReason"]) == (on_tab, "server_restart")
        assert seen["claim"]["finalizeDecision"] == "skip"
        other = await agent.call("page_info", targetId=tab, agentId="other")
        assert "claim" not in other["lastSeen"]
        # The kept sandbox is there again under its id, without its claim.
        await agent.call("tab_new", agentId="other")
        released = await agent.call("tab_release", targetId=sandbox)
        assert (released["releaseState"], released["hadActiveClaim"]) == ("no_active_claim", False)
        assert released["lastSeen"]["claim"]["taskId"] == on_sandbox
