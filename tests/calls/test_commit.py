"""A tool commits its call: record and write are one transaction, its value comes back, and the answer stays honest."""

from typing import Any

import anyio
import pytest
from pydantic import Field
from sqlalchemy import Connection, func, select

from nova_mcp.calls.running_calls import emergency_stop
from nova_mcp.errors import NotFound
from nova_mcp.evidence.audit import verify
from nova_mcp.evidence.model import CallRecord, Link
from nova_mcp.memory.notes import memory_store
from nova_mcp.memory.notes.memory_store import NewMemory
from nova_mcp.memory.notes.tables import browser_memory
from nova_mcp.storage.engine import Database
from nova_mcp.storage.errors import StoreUnavailable
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.spec import AgentParams, Result, ToolSpec, tool


class KeepParams(AgentParams):
    ends: str = Field("well", max_length=20)


class KeepResult(Result):
    kept: int


class Stale:
    def on_record(self, record: CallRecord) -> CallRecord:
        return record.with_reason("rev_conflict")


def count(conn: Connection) -> int:
    return int(conn.execute(select(func.count()).select_from(browser_memory)).scalar_one())


async def keep(ctx: ToolContext, p: KeepParams) -> KeepResult:
    """Writes one row with its record."""

    def write(conn: Connection, record: CallRecord) -> int | Stale:
        memory_store.save(conn, NewMemory("local", "shop.test", "note", record.call_id, None, "agent"), 1)
        match p.ends:
            case "missing":
                raise NotFound("selector.not_found", "It is gone.", "Look again.")
            case "defect":
                raise KeyError("a defect")
            case "stale":
                return Stale()
        return count(conn)

    done = await ctx.commit(write)
    match p.ends:
        case "twice":
            await ctx.commit(write)
        case "broken":
            raise RuntimeError("after the commit")
        case "refused":
            raise NotFound("selector.not_found", "It went after the commit.", "Look again.")
        case "endless":
            await ctx.call.progress(0, None, "committed")
            await anyio.sleep_forever()
    if isinstance(done, Stale):
        return KeepResult(ok=False, reason_code="rev_conflict", kept=0)
    return KeepResult(kept=done)


async def peek(ctx: ToolContext, p: KeepParams) -> KeepResult:
    """Asks what stands behind its record."""

    def derive(conn: Connection, record: CallRecord, link: Link) -> int:
        if p.ends == "defect":
            memory_store.save(conn, NewMemory("local", "shop.test", "note", record.call_id, None, "agent"), 1)
            raise KeyError("a defect")
        return link.server_seq

    return KeepResult(kept=await ctx.commit_derived(derive))


KEEP = tool(
    title="Keep",
    effect="write",
    bundles=("core",),
    target="none",
    # With the grace that is one second.
    deadline_ms=lambda p: -4_000 if p.ends == "endless" else 10_000,
)(keep)
PEEK = tool(title="Peek", effect="read", bundles=("core",), target="none")(peek)
TOOLS: tuple[ToolSpec, ...] = (KEEP, PEEK)


async def outcome(rig: Any) -> tuple[str, int | None, str | None]:
    (record,) = await rig.records()
    assert await rig.db.read(lambda conn: list(verify(conn))) == []
    return record.outcome.kind, record.outcome.error_code, record.outcome.reason_code


async def test_the_value_is_handed_back_and_the_record_written_once(make_rig: Any) -> None:
    rig = await make_rig(*TOOLS)
    assert (await rig.call("nova.keep")).structured == {"ok": True, "kept": 1}
    assert await outcome(rig) == ("ok", None, None)
    assert await rig.db.read(count) == 1


async def test_what_stands_behind_the_record_is_handed_back(make_rig: Any) -> None:
    rig = await make_rig(*TOOLS)
    assert (await rig.call("nova.peek")).structured == {"ok": True, "kept": 1}
    assert await outcome(rig) == ("ok", None, None)


async def test_a_refusal_that_is_an_answer_stands_on_the_record_as_its_reason(make_rig: Any) -> None:
    rig = await make_rig(*TOOLS)
    answer = await rig.call("nova.keep", {"ends": "stale"})
    assert (answer.is_error, answer.structured["reasonCode"]) == (False, "rev_conflict")
    assert await outcome(rig) == ("ok", None, "rev_conflict")


async def test_an_error_leaves_its_record_and_nothing_else(make_rig: Any) -> None:
    rig = await make_rig(*TOOLS)
    answer = await rig.call("nova.keep", {"ends": "missing"})
    assert (answer.is_error, answer.structured["message"]) == (True, "It is gone.")
    assert await outcome(rig) == ("failed", NotFound.error_code, "selector.not_found")
    assert await rig.db.read(count) == 0


@pytest.mark.parametrize("ends", ["broken", "refused", "twice", "endless"])
async def test_a_call_that_fails_after_its_commit_is_not_told_as_undone(make_rig: Any, ends: str) -> None:
    rig = await make_rig(*TOOLS)
    answer = await rig.call("nova.keep", {"ends": ends})
    assert (answer.is_error, answer.structured["reasonCode"]) == (True, "internal")
    assert answer.structured["message"] == "The call was carried out and recorded, but its answer could not be made."
    assert answer.structured["retryAdvice"] == "check_postcondition_first"
    assert await outcome(rig) == ("ok", None, None)
    assert await rig.db.read(count) == 1


async def test_a_call_that_is_stopped_after_its_commit_is_not_told_as_undone(make_rig: Any) -> None:
    rig = await make_rig(*TOOLS)

    async def stop(_: float, __: float | None, message: str) -> None:
        assert message == "committed"
        rig.pipeline.running.cancel(emergency_stop())

    answer = await rig.call("nova.keep", {"ends": "endless"}, progress=stop)
    assert answer.structured["message"] == "The call was carried out and recorded, but its answer could not be made."
    assert await outcome(rig) == ("ok", None, None)


async def test_a_client_that_leaves_after_the_commit_leaves_one_record(make_rig: Any) -> None:
    rig = await make_rig(*TOOLS)
    with anyio.CancelScope() as scope:

        async def leave(_: float, __: float | None, message: str) -> None:
            scope.cancel()

        await rig.call("nova.keep", {"ends": "endless"}, progress=leave)
    assert scope.cancelled_caught
    assert await outcome(rig) == ("ok", None, None)


@pytest.mark.parametrize("name", ["nova.keep", "nova.peek"])
async def test_without_a_record_nothing_is_written_and_the_failure_counts_once(make_rig: Any, name: str) -> None:
    rig = await make_rig(*TOOLS)
    rig.fault.armed = True
    answer = await rig.call(name)
    assert (answer.is_error, answer.structured["reasonCode"]) == (True, "store.unavailable")
    assert await rig.db.read(count) == 0
    rig.fault.armed = False
    await rig.call("nova.peek")
    records = await rig.records()
    assert [record.kind for record in records] == ["gap", "call"]
    gap = dict(records[0].arguments)
    assert gap["readsUnrecorded"] + gap["callsRefused"] == 1


@pytest.mark.parametrize("name", ["nova.keep", "nova.peek"])
async def test_a_defect_of_what_is_committed_leaves_a_record_of_a_broken_call_and_nothing_else(
    make_rig: Any, name: str
) -> None:
    rig = await make_rig(*TOOLS)
    answer = await rig.call(name, {"ends": "defect"})
    assert (answer.is_error, answer.structured["reasonCode"]) == (True, "internal")
    assert "carried out" not in answer.structured["message"]
    assert (await outcome(rig))[0] == "crashed"
    assert await rig.db.read(count) == 0


@pytest.mark.parametrize("name", ["nova.keep", "nova.peek"])
async def test_a_defect_before_the_commit_leaves_a_record_of_a_broken_call_and_nothing_else(
    make_rig: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = await make_rig(*TOOLS)
    lessons = rig.pipeline._lessons
    usual, broken = lessons.draw, [True]

    def draw(*given: Any) -> Any:
        if broken.pop() if broken else False:
            raise KeyError("a defect")
        return usual(*given)

    monkeypatch.setattr(lessons, "draw", draw)
    answer = await rig.call(name)
    assert (answer.is_error, answer.structured["reasonCode"]) == (True, "internal")
    assert "carried out" not in answer.structured["message"]
    assert (await outcome(rig))[0] == "crashed"
    assert await rig.db.read(count) == 0


async def test_a_store_that_goes_away_behind_a_commit_leaves_it_open_whether_it_is_done(
    make_rig: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = await make_rig(*TOOLS)
    usual, lost = Database.write, [True]

    async def write(db: Database, *given: Any) -> Any:
        done = await usual(db, *given)
        # Whether the store can be written at all is asked with a write of its own.
        if any(isinstance(one, CallRecord) for one in given) and lost and lost.pop():
            raise StoreUnavailable("down", "the connection was lost")
        return done

    monkeypatch.setattr(Database, "write", write)
    answer = await rig.call("nova.keep")
    assert answer.structured["reasonCode"] == "store.unavailable"
    assert answer.structured["retryAdvice"] == "check_postcondition_first"
    assert await rig.db.read(count) == 1
