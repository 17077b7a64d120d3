"""Servers that die or share: nothing answered is missing, nothing is recorded twice, no browser stays."""

from pathlib import Path

import anyio
import pytest
from bench.kill import harness
from real_kit import findings, real_stdio, records

pytestmark = pytest.mark.browser


async def test_after_kill_minus_nine_every_answered_call_is_in_the_ledger() -> None:
    tally, missing, doubled, broken = await harness(calls=20, seed=7)
    assert tally.answered
    assert tally.rounds > 1
    assert (missing, doubled, broken, tally.browsers_left) == (0, 0, 0, 0)


async def test_four_servers_work_side_by_side_on_one_file(tmp_path: Path) -> None:
    calls = 25

    async def agent(name: str) -> None:
        async with real_stdio(tmp_path, "auto") as client:
            for number in range(calls):
                answer = await client.call_tool("nova.tabs", {"agentId": f"{name}-{number}"})
                assert not answer.is_error

    async with anyio.create_task_group() as group:
        for name in "abcd":
            group.start_soon(agent, name)
    seen = records(tmp_path)
    assert len(seen) == 4 * calls
    assert len({record.caller.server_id for record in seen}) == 4
    assert {record.caller.agent_id for record in seen} == {f"{name}-{n}" for name in "abcd" for n in range(calls)}
    assert findings(tmp_path) == []
