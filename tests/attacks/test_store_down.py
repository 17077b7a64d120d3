"""A store that vanishes under a running server: no act, navigation or script reaches the page, looks say so."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from loop_kit import Shop
from place_kit import Place

from nova_mcp.evidence.reader import EventFilter, events

pytestmark = [pytest.mark.browser, pytest.mark.anyio]

SETTINGS: dict[str, Any] = {"enable_eval": True}
PAGES = {
    "/counter": "<!doctype html><title>Counter</title><h1>Counter</h1><p id=n>0</p>"
    '<button onclick="n.textContent = Number(n.textContent) + 1">More</button>'
    "<form method=post action=/order><label>Name <input id=name name=name></label><button>Order</button></form>",
}


@contextmanager
def store_gone(place: Place) -> Iterator[None]:
    path = place.server.data_dir / "nova.db"
    hidden = path.with_name("hidden.db")
    path.rename(hidden)
    try:
        yield
    finally:
        hidden.rename(path)


TOUCHING: tuple[tuple[str, dict[str, Any]], ...] = (
    ("click_selector", {"selector": "button"}),
    ("type_selector", {"selector": "#name", "text": "Ada"}),
    ("input_key", {"key": "Tab"}),
    ("scroll_smart", {}),
    ("navigate", {"url": "/plain"}),
    ("reload", {}),
    ("tab_new", {}),
    ("guarded_submit_form", {"selector": "form button"}),
    ("eval", {"expression": "document.title = 'changed'"}),
    ("run_sequence", {"steps": [{"tool": "click_selector", "args": {"selector": "button"}}]}),
)


async def test_nothing_reaches_the_page_while_the_store_is_gone_and_a_gap_record_says_so(
    pages: Shop, place: Place
) -> None:
    await place.go("/counter")
    posted = dict(pages.posted)
    with store_gone(place):
        for tool, arguments in TOUCHING:
            given = {"targetId": place.tab} | arguments
            if tool == "tab_new":
                given.pop("targetId")
            if "url" in given:
                given["url"] = place.origin + given["url"]
            refused = await place.server.call(tool, **given)
            assert refused["reasonCode"] == "store.unavailable", (tool, refused)
            assert refused.get("actionDispatched", False) is False
        looked = await place.server.call("perceive", targetId=place.tab)
        read = await place.server.call("read_text", targetId=place.tab)
        for seen in (looked, read):
            assert (seen["ok"], seen["evidenceRecorded"]) == (True, False), seen
        assert "Counter" in str(looked)
        assert "Counter 0" in str(read).replace("\\n", " ").replace("  ", " ")
    assert dict(pages.posted) == posted
    assert (await place.server.call("read_text", targetId=place.tab)).get("evidenceRecorded", True) is True
    page = await place.server.nova.database.read(events, EventFilter(limit=1000))
    (gap,) = [call.record.arguments for call in page.calls if call.record is not None and call.record.kind == "gap"]
    assert isinstance(gap, dict)
    assert gap["readsUnrecorded"] == 2
    assert gap["callsRefused"] == len(TOUCHING)
    assert gap["recordedLate"] == 0
