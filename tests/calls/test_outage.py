"""While the store takes no records nothing that touches a page runs; what went unrecorded is named afterwards."""

import sqlite3
from typing import Any

import pytest

from nova_mcp.evidence.audit import verify
from nova_mcp.evidence.model import CallRecord
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.spec import AgentParams, Result, ToolSpec, tool


class Page:
    """What reached the page, and the tools that would reach it."""

    def __init__(self) -> None:
        self.touched: list[str] = []

    def tools(self) -> tuple[ToolSpec, ...]:
        return tuple(self._tool(effect) for effect in ("act", "navigate", "commit", "write", "read"))

    def _tool(self, effect: Any) -> ToolSpec:
        async def run(ctx: ToolContext, p: AgentParams) -> Result:
            """Touches the page."""
            self.touched.append(effect)
            if effect != "read":
                ctx.evidence.action_dispatched = True
            return Result()

        run.__name__ = f"do_{effect}"
        return tool(title=effect, effect=effect, bundles=("core",), target="none")(run)


TOUCHING = ("act", "navigate", "commit", "write")


@pytest.fixture
def page() -> Page:
    return Page()


@pytest.fixture
async def rig(make_rig: Any, page: Page) -> Any:
    return await make_rig(*page.tools())


def gaps(records: list[CallRecord]) -> list[dict[str, Any]]:
    return [dict(record.arguments) for record in records if record.kind == "gap" and isinstance(record.arguments, dict)]


async def sound(rig: Any) -> bool:
    return await rig.db.read(lambda conn: list(verify(conn))) == []


def gone(rig: Any) -> Any:
    path = rig.settings.data_dir / "nova.db"
    hidden = path.with_name("hidden.db")
    path.rename(hidden)
    return lambda: hidden.rename(path)


def upgraded(rig: Any) -> Any:
    def revision(number: str) -> None:
        with sqlite3.connect(rig.settings.data_dir / "nova.db") as conn:
            conn.execute(f"UPDATE alembic_version SET version_num = '{number}'")
        conn.close()

    with sqlite3.connect(rig.settings.data_dir / "nova.db") as conn:
        before = conn.execute("SELECT version_num FROM alembic_version").fetchone()[0]
    conn.close()
    revision("9999")
    return lambda: revision(before)


@pytest.mark.parametrize("fail", [gone, upgraded], ids=["moved away", "upgraded by a newer Nova"])
async def test_with_the_store_down_nothing_that_touches_a_page_runs_and_reads_say_so(
    rig: Any, page: Page, fail: Any
) -> None:
    await rig.call("nova.do_act")
    page.touched.clear()
    restore = fail(rig)
    for effect in TOUCHING:
        refused = await rig.call(f"nova.do_{effect}")
        assert (refused.is_error, refused.structured["reasonCode"]) == (True, "store.unavailable")
        assert refused.structured["stage"] == "gate"
        assert refused.structured.get("actionDispatched", False) is False
        assert refused.structured["message"].startswith("Nothing was done")
    for _ in range(2):
        read = await rig.call("nova.do_read")
        assert (read.is_error, read.structured["ok"], read.structured["evidenceRecorded"]) == (False, True, False)
        assert "not recorded" in read.text or "notRecorded" in read.text
    assert page.touched == ["read", "read"]
    began = rig.clock.now
    rig.clock.now += 90_000
    restore()
    assert (await rig.call("nova.do_act")).structured["ok"] is True
    records = await rig.records()
    assert [record.kind for record in records] == ["call", "gap", "call"]
    (gap,) = gaps(records)
    assert (gap["fromMs"], gap["toMs"]) == (began, began + 90_000)
    assert (gap["readsUnrecorded"], gap["callsRefused"]) == (2, len(TOUCHING))
    assert (gap["recordedLate"], gap["recordsLost"]) == (0, 0)
    assert await sound(rig)


async def test_a_call_that_was_under_way_when_the_store_failed_gets_its_record_later(rig: Any, page: Page) -> None:
    rig.fault.armed = True
    touched = await rig.call("nova.do_act")
    assert (touched.structured["actionDispatched"], touched.structured["evidenceRecorded"]) == (True, False)
    refused = await rig.call("nova.do_act")
    assert refused.structured["reasonCode"] == "store.unavailable"
    assert page.touched == ["act"]
    rig.fault.armed = False
    await rig.call("nova.do_read")
    late, gap, read = await rig.records()
    assert (late.call_id, late.outcome.action_dispatched) == (touched.structured.get("callId", late.call_id), True)
    assert (gap.kind, read.effect) == ("gap", "read")
    (said,) = gaps([gap])
    assert (said["recordedLate"], said["callsRefused"], said["reasons"]) == (1, 1, ["full"])
    assert await sound(rig)


async def test_a_record_that_breaks_for_good_is_counted_as_lost(rig: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from nova_mcp.evidence import store

    append = store.append_call

    def broken(conn: Any, record: CallRecord) -> Any:
        if record.kind == "call" and record.effect == "act":
            raise ValueError("no record of this")
        return append(conn, record)

    monkeypatch.setattr(store, "append_call", broken)
    assert (await rig.call("nova.do_act")).structured["evidenceRecorded"] is False
    await rig.call("nova.do_read")
    (said,) = gaps(await rig.records())
    assert (said["recordedLate"], said["recordsLost"]) == (0, 1)
    assert await sound(rig)


async def test_an_outage_is_closed_without_a_call_and_told_as_over(rig: Any) -> None:
    recorder = rig.pipeline._parts.recorder
    assert await recorder.trouble(1) is None
    restore = gone(rig)
    await rig.call("nova.do_act")
    assert (await recorder.trouble(1)).reason == "down"
    restore()
    assert await recorder.trouble(1) is None
    assert [record.kind for record in await rig.records()] == ["gap"]
    assert await recorder.trouble(1) is None
    assert len(await rig.records()) == 1


async def test_an_outage_under_a_clock_that_is_set_back_has_a_length(rig: Any) -> None:
    restore = gone(rig)
    await rig.call("nova.do_read")
    rig.clock.now -= 5 * 3_600_000
    restore()
    await rig.call("nova.do_read")
    gap, _ = await rig.records()
    assert gap.kind == "gap"
    assert gap.duration_ms >= 0
    assert await sound(rig)
