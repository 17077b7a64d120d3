"""nova.eval: off by default, killed when it does not end, bounded, and never evidence."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from nova_mcp.browser.act.navigate import navigate
from nova_mcp.browser.act.script import MAX_JSON, evaluate
from nova_mcp.browser.process.runtime import Browser
from nova_mcp.browser.targets.registry import Tab
from nova_mcp.core.leases import Lease
from nova_mcp.errors import Precondition
from nova_mcp.evidence.model import Caller
from nova_mcp.tools.browse import script

from .conftest import Site
from .tool_kit import Kit, tool_kit


@pytest.fixture
async def page(tab: Tab, site: Site) -> Tab:
    await navigate(tab, site.url("html?title=here&body=<script>var%20mine=7</script>"))
    return tab


@pytest.fixture
async def kit(browser: Browser, caller: Caller, page: Tab, tmp_path: Path) -> AsyncIterator[Kit]:
    async with tool_kit(tmp_path, browser, (script.eval,), caller.principal, enable_eval=True) as kit:
        yield kit


async def test_it_is_off_unless_the_operator_says_so(browser, caller, page, tmp_path) -> None:
    async with tool_kit(tmp_path, browser, (script.eval,), caller.principal) as kit:
        told = await kit.call("eval", expression="document.title = 'changed'")
        nobody = await Kit(kit.pipeline, kit.db, "nobody").call("eval", expression="1")
    assert (told["errorCode"], told["reasonCode"]) == (-32035, "feature.disabled")
    assert nobody["reasonCode"] == "feature.disabled"
    assert await page.page.title() == "here"
    assert page.scripted_epoch is None


@pytest.mark.parametrize(
    ("expression", "value", "kind"),
    [
        ("1 + 1", 2, "number"),
        ("({a: [1, null], b: 'ü'})", {"a": [1, None], "b": "ü"}, "object"),
        ("[1, 2]", [1, 2], "array"),
        ("undefined", None, "undefined"),
        ("null", None, "null"),
        ("NaN", "NaN", "number"),
        ("10n", "10n", "bigint"),
        ("(function f() {})", None, "function"),
        ("Promise.resolve('later')", "later", "string"),
        ("let a = 2; a * 21", 42, "number"),
    ],
)
async def test_values_come_back_as_json(page: Tab, expression: str, value: object, kind: str) -> None:
    told = await evaluate(page, expression, "isolated", 2000)
    assert (told.value, told.value_type, told.truncated) == (value, kind, False)


async def test_the_worlds_differ_and_novas_own_is_neither(page: Tab) -> None:
    assert (await evaluate(page, "typeof mine", "isolated", 2000)).value == "undefined"
    assert (await evaluate(page, "mine", "main", 2000)).value == 7
    for world in ("isolated", "main"):
        assert (await evaluate(page, "typeof globalThis.__nova", world, 2000)).value == "undefined"


@pytest.mark.parametrize("expression", ["'x'.repeat(50000)", "Array(30000).fill(1)", "({deep: 'y'.repeat(50000)})"])
async def test_a_long_value_is_cut_and_says_so(page: Tab, expression: str) -> None:
    told = await evaluate(page, expression, "isolated", 2000)
    assert told.truncated
    assert isinstance(told.value, str)
    assert len(told.value) == MAX_JSON


@pytest.mark.parametrize(
    ("expression", "word"),
    [
        ("nothing.here", "nothing is not defined"),
        ("throw 'a\\n\"b'", "a"),
        ("Promise.reject(new Error('no'))", "no"),
        ("(", "Unexpected"),
        ("const c = {}; c.c = c; c", "JSON"),
    ],
)
async def test_a_script_that_throws_is_told_in_one_line(page: Tab, expression: str, word: str) -> None:
    with pytest.raises(Precondition) as caught:
        await evaluate(page, expression, "isolated", 2000)
    assert caught.value.reason_code == "eval.script_threw"
    assert word in caught.value.message
    assert "\n" not in caught.value.message


@pytest.mark.parametrize("expression", ["for (;;);", "new Promise(() => {})"])
async def test_a_script_that_does_not_end_is_stopped_and_the_page_lives(page: Tab, expression: str) -> None:
    with pytest.raises(Precondition) as caught:
        await evaluate(page, expression, "isolated", 100)
    assert (caught.value.reason_code, caught.value.details) == ("eval.script_threw", {"timedOut": True})
    assert await page.channel.evaluate("1 + 1") == 2


async def test_the_document_is_marked_until_it_unloads(page: Tab, site: Site, kit: Kit) -> None:
    told = await kit.call("eval", expression="document.title = 'forged'")
    assert (told["ok"], told["value"]) == (True, "forged")
    assert page.scripted_epoch == page.page_epoch
    await navigate(page, site.url("html"))
    assert page.scripted_epoch != page.page_epoch
    (record,) = await kit.records()
    assert (record.effect, record.outcome.action_dispatched) == ("write", True)


async def test_it_is_a_change_for_claims_and_gates(page: Tab, kit: Kit, caller: Caller) -> None:
    unseen = await kit.call("eval", expression="1")
    assert [gate["gateId"] for gate in unseen["gates"]] == ["setup.bootstrap", "safety.perceive_first"]
    again = await kit.call("eval", expression="1")
    assert [gate["gateId"] for gate in again["gates"]] == ["safety.perceive_first"]
    page.lease = Lease((caller.principal, "other"), 2**60)
    refused = await kit.call("eval", expression="document.title = 'x'", targetId=page.target_id)
    assert (refused["errorCode"], refused["reasonCode"]) == (-32040, "claim.owner_mismatch")
    assert await page.page.title() == "here"
