"""Verification steps: the call that one asks for has to be on record, by a member and on the page that is named."""

from dataclasses import replace

import pytest

from nova_mcp.core.urls import redact_query, url_hash
from nova_mcp.evidence.model import Caller, CallOutcome, CallRecord, PageState, ServerId, Signals
from nova_mcp.evidence.page_sights import Sight
from nova_mcp.evidence.store import ServerInfo, append_call, register_server
from nova_mcp.memory.tasks.coverage.evidence_collector import EvidenceCollector
from nova_mcp.memory.tasks.coverage.locators import path_hash
from nova_mcp.memory.tasks.model import VerificationStep
from nova_mcp.memory.tasks.runs.executed_calls import executed_steps
from nova_mcp.memory.tasks.runs.store import members
from run_kit import ADA, BOB, NOW, begin, items

FIRST, SECOND = "https://shop.example/list?page=1", "https://shop.example/list?page=2"
SERVER = ServerId("s1")


def call(tool: str, url: str, at_ms: int, owner=ADA, target: str = "T1", outcome: str = "ok") -> CallRecord:
    at = PageState(target, "A", redact_query(url))
    return CallRecord(
        f"call{at_ms}", Caller(*owner, SERVER), tool, "read", at_ms, 10, CallOutcome(outcome), before=at, after=at,
        signals=Signals(sight=Sight(url, url_hash(url), path_hash(url), 200)),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ([("nova.read_text", FIRST, NOW + 10)], False),
        ([("nova.read_text", FIRST, NOW + 10), ("nova.navigate", SECOND, NOW + 100)], False),
        ([("nova.navigate", SECOND, NOW + 100), ("nova.read_text", FIRST, NOW + 200)], False),
        ([("nova.navigate", SECOND, NOW + 100), ("nova.read_text", SECOND, NOW + 200)], True),
        ([("nova.read_text", SECOND, NOW + 10), ("nova.read_text", FIRST, NOW + 200)], True),
        ([("nova.read_text", SECOND, NOW + 10, BOB)], False),
        ([("nova.read_text", SECOND, NOW + 10, ADA, "T1", "failed")], False),
        ([("nova.navigate", SECOND, NOW + 10), ("nova.read_text", FIRST, NOW + 10, ADA, "T2")], False),
        ([("nova.read_text", SECOND, NOW - 30_001)], False),
    ],
)
def test_a_page_of_a_list_is_not_another_page_of_it(store_url, open_db, calls, expected):
    step = VerificationStep("s1", "nova.read_text", "Look again", "has_results", page_url=SECOND)

    def work(conn):
        register_server(conn, ServerInfo(SERVER, NOW, 1, 1, "test", "0"))
        collector = EvidenceCollector()
        for number, one in enumerate(calls):
            record = replace(call(*one), call_id=f"c{number}")
            collector.collect(conn, record, append_call(conn, record))
        run = begin(conn, items(mode="threshold", verification=(step,)))
        return executed_steps(conn, run, members(conn, run.instance_id))

    assert open_db(store_url).write_sync(work) == {"s1": expected}
