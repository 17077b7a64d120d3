"""The fault site through a real client: every answer is what the table says, and the server agrees with the table."""

import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import Client

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parents[1] / "wire"))

from real_kit import real_stdio
from tests.pages.faults.cases import CASES, Case
from tests.pages.faults.site import FaultSite, fault_site

pytestmark = [pytest.mark.browser, pytest.mark.anyio]


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def site() -> Iterator[FaultSite]:
    with fault_site() as running:
        yield running


@pytest.fixture(scope="module")
async def client(tmp_path_factory: pytest.TempPathFactory, anyio_backend: str) -> AsyncIterator[Client]:
    async with real_stdio(tmp_path_factory.mktemp("nova"), "auto", "--tools", "all") as opened:
        yield opened


def told(answer: dict[str, Any]) -> dict[str, Any]:
    commit = answer.get("guardedCommit") or {}
    return {
        "actionDispatched": answer.get("actionDispatched"),
        "dispatchStatus": commit.get("dispatchStatus"),
        "verificationStatus": commit.get("verificationStatus"),
        "indeterminateReason": commit.get("indeterminateReason"),
        "reasonCode": answer.get("reasonCode"),
        "retryAdvice": answer.get("retryAdvice"),
    }


def test_every_case_of_the_table_has_a_name_of_its_own() -> None:
    assert len({case.name for case in CASES}) == len(CASES)


def test_the_site_tells_a_second_press_from_a_resend_and_a_receipt_from_a_commit(site: FaultSite) -> None:
    def post(case: str, key: str, nonce: str) -> int:
        with httpx.Client(trust_env=False) as http:
            return http.post(f"{site.base_url}/do/{case}/{key}", data={"nonce": nonce}).status_code

    assert [post("ok_fetch", "own", nonce) for nonce in ("1", "1", "2")] == [200, 200, 200]
    assert (site.count("own"), site.resent("own"), site.committed("own")) == (2, 1, 2)
    assert post("fetch_500", "bad", "1") == 500
    assert (site.count("bad"), site.committed("bad")) == (1, 0)
    with pytest.raises(httpx.RemoteProtocolError):
        post("lost_committed", "gone", "1")
    assert (site.count("gone"), site.committed("gone")) == (1, 1)
    assert site.count("never") == 0


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_answer_and_server_agree_with_the_table(case: Case, site: FaultSite, client: Client) -> None:
    # The key shows on the page, and names of faults are words of failure.
    key = f"t{CASES.index(case)}"
    opened = await client.call_tool("nova.navigate", {"url": site.url(case.path_case, key)})
    assert not opened.is_error, opened.content
    await client.call_tool("nova.perceive", {})
    for step in case.before:
        prepared = await client.call_tool(step.tool, step.filled(key))
        assert not prepared.is_error, prepared.content
    answer = await client.call_tool(case.act.tool, case.act.filled(key))
    said = told(answer.structured_content or {})
    expected = case.expected
    assert said["actionDispatched"] is expected.dispatched, answer.structured_content
    assert said["dispatchStatus"] in expected.dispatch_status, answer.structured_content
    assert said["verificationStatus"] in expected.verification, answer.structured_content
    assert said["indeterminateReason"] in expected.indeterminate, answer.structured_content
    assert said["reasonCode"] in expected.reason_codes, answer.structured_content
    assert said["retryAdvice"] in expected.advice, answer.structured_content
    assert site.committed(key) == expected.commits
    assert site.count(key) <= max(1, expected.commits)
