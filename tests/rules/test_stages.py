"""Stages of a call, each alone: they go on once, and do what they promise when that comes back or breaks."""

from types import SimpleNamespace
from typing import Any, cast

import anyio
import pytest

from nova_mcp.calls.endings import Done, Ending, Failed
from nova_mcp.calls.site_notes import GATE, SiteNotes
from nova_mcp.calls.stages.recording import StoreCheck
from nova_mcp.calls.stages.stage import Call
from nova_mcp.calls.stages.targets import GRACE_MS, Deadline, TabUse
from nova_mcp.errors import NotFound, NovaError
from nova_mcp.storage.errors import StoreUnavailable
from nova_mcp.tools.spec import Result

DONE = Done(Result())


async def done() -> Ending:
    return DONE


def a_call(**more: Any) -> Call:
    spec = SimpleNamespace(effect="write", gates=(), deadline_ms=lambda _: 20 - GRACE_MS, **more.pop("spec", {}))
    evidence = SimpleNamespace(tab=None, flags=set(), action_dispatched=None, **more.pop("evidence", {}))
    envelope = SimpleNamespace(evidence=evidence, caller=SimpleNamespace(owner=("local", "ada")))
    call = Call(cast(Any, SimpleNamespace(within=None, connection="here", **more)), cast(Any, envelope))
    call.spec, call.params = cast(Any, spec), cast(Any, None)
    return call


async def test_a_deadline_ends_what_does_not_end_by_itself() -> None:
    assert await Deadline().around(a_call(), done) is DONE

    async def never() -> Ending:
        await anyio.sleep_forever()
        return DONE

    ending = await Deadline().around(a_call(), never)
    assert isinstance(ending, Failed)
    assert ending.error.reason_code == "call.deadline"


@pytest.mark.parametrize(("effect", "goes_on"), [("read", True), ("write", False), ("act", False)])
async def test_without_a_store_only_reads_go_on(effect: str, goes_on: bool) -> None:
    async def down() -> None:
        raise StoreUnavailable("full")

    call = a_call()
    call.spec = cast(Any, SimpleNamespace(effect=effect))
    stage = StoreCheck(cast(Any, SimpleNamespace(require=down)))
    if goes_on:
        assert await stage.around(call, done) is DONE
        return
    with pytest.raises(NovaError) as refused:
        await stage.around(call, done)
    assert refused.value.reason_code == "store.unavailable"


@pytest.mark.parametrize("breaks", [False, True])
async def test_what_a_call_sent_to_a_site_counts_however_it_ends(breaks: bool) -> None:
    sent: list[str] = []
    notes = SimpleNamespace(deliveries=SimpleNamespace(dispatched=sent.append))
    stage = SiteNotes(cast(Any, notes), cast(Any, None))
    call = a_call()
    call.spec = cast(Any, SimpleNamespace(gates=(GATE,)))

    async def opens_a_tab() -> Ending:
        call.evidence.tab = cast(Any, SimpleNamespace(target_id="tab_1"))
        call.evidence.action_dispatched = True
        if breaks:
            raise NotFound("selector.not_found", "It is gone.", "Look again.")
        return DONE

    try:
        await stage.around(call, opens_a_tab)
    except NotFound:
        assert breaks
    assert sent == ["tab_1"]


async def test_a_look_is_remembered_only_of_a_call_that_came_back() -> None:
    tab = SimpleNamespace(observed={})
    used: list[object] = []
    browser = SimpleNamespace(targets=SimpleNamespace(used=lambda *call: used.append(call)))
    stage = TabUse(cast(Any, browser), cast(Any, SimpleNamespace(now_ms=lambda: 7)))
    call = a_call()
    call.evidence.tab, call.evidence.flags = cast(Any, tab), {"content_exposed"}

    async def breaks() -> Ending:
        raise NotFound("selector.not_found", "It is gone.", "Look again.")

    with pytest.raises(NotFound):
        await stage.around(call, breaks)
    assert (tab.observed, used) == ({}, [])
    assert await stage.around(call, done) is DONE
    assert (tab.observed, used) == ({("local", "ada"): 7}, [(("local", "ada"), "here", tab)])
