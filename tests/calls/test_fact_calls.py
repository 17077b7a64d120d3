"""Live facts through whole calls without a browser: what the ledger keeps, what an answer may claim, who may ask."""

import json
from types import SimpleNamespace
from typing import Any, cast, get_args

import pytest
from sqlalchemy import select

from nova_mcp.browser.targets.tab import Tab, TabHost
from nova_mcp.errors import CapabilityMissing
from nova_mcp.memory.facts.policies import ToolClass
from nova_mcp.memory.facts.tables import fact, fact_observation
from nova_mcp.tools.catalogue import load_catalogue
from nova_mcp.tools.facts.facts import ok_facts, ok_observe
from nova_mcp.tools.guarded.guard import CallGuard, Wish

TOKEN = "ghp_0123456789abcdefabcdef0123456789"


async def shop(make_rig: Any, **more: Any) -> Any:
    rig = await make_rig(ok_observe, ok_facts, **more)
    for name, owner in (("tab_1", ("local", "default")), ("tab_2", ("other", "default"))):
        tab = Tab(name, "A", owner, cast(TabHost, None), rig.clock)
        tab.url = "https://shop.test/cart"
        tab.channel = cast(Any, SimpleNamespace(state="ready"))
        rig.browser.targets._tabs[name] = tab
        rig.browser.targets._active[owner] = name
    return rig


def claim(key: str = "shop.note", value: Any = "x", **more: Any) -> dict[str, Any]:
    return {"signalKey": key, "value": value, **more}


async def observe(rig: Any, *claims: dict[str, Any], principal: str = "local", **more: Any) -> dict[str, Any]:
    answer = await rig.call("nova.ok_observe", {"claims": list(claims), **more}, principal=principal)
    return dict(answer.structured)


async def rows(rig: Any, table: Any) -> list[Any]:
    return list(await rig.db.read(lambda conn: conn.execute(select(table)).all()))


@pytest.mark.parametrize(
    "arguments",
    [
        {"perceptionId": TOKEN, "claims": [claim()]},
        {"claims": [claim(f"shop.{TOKEN}")]},
        {"claims": [claim(value={"deep": [{TOKEN: {}}]})]},
        {"claims": [claim(evidence=TOKEN)]},
        # refused for another reason, with a secret beside it
        {"perceptionId": TOKEN, "claims": [claim("core.nonsense")]},
        {"claims": [claim("core.subscription.active", TOKEN)]},
        {"claims": [claim(value=TOKEN, confidence=1)]},
        {"claims": TOKEN},
        {"claims": [claim()], "note": TOKEN},
    ],
)
async def test_a_refused_secret_is_neither_kept_nor_recorded(make_rig: Any, arguments: dict[str, Any]) -> None:
    rig = await shop(make_rig)
    answer = await rig.call("nova.ok_observe", arguments)
    assert (answer.is_error, answer.structured["errorCode"]) == (True, -32602)
    (record,) = await rig.records()
    assert TOKEN not in json.dumps(record.arguments)
    assert await rows(rig, fact_observation) == []


async def test_the_answer_counts_what_was_committed(make_rig: Any) -> None:
    rig = await shop(make_rig)
    claims = [claim("shop.a", 1, certainty="tentative"), claim("shop.a", 2), claim("shop.a", 2), claim("shop.b", None)]
    told = await observe(rig, *claims)
    assert (told["accepted"], told["rejected"], told["superseded"]) == (4, 0, 1)
    assert [(one["value"], one["state"], one["isNew"]) for one in told["facts"]] == [
        (1, "fresh", True),
        (2, "fresh", False),
        (2, "fresh", False),
        (None, "fresh", True),
    ]
    (record,) = await rig.records()
    assert {row.call_id for row in await rows(rig, fact_observation)} == {record.call_id}


async def test_nothing_is_told_of_a_commit_that_failed(make_rig: Any) -> None:
    rig = await shop(make_rig)
    rig.fault.armed = True
    told = await observe(rig, claim())
    assert (told["ok"], told["reasonCode"], "facts" in told) == (False, "store.unavailable", False)
    rig.fault.armed = False
    assert await rows(rig, fact) == []
    again = await observe(rig, claim())
    assert (again["facts"][0]["state"], again["facts"][0]["isNew"]) == ("fresh", True)


async def test_another_principals_tab_is_unknown(make_rig: Any) -> None:
    rig = await shop(make_rig)
    assert (await observe(rig, claim()))["accepted"] == 1
    assert (await observe(rig, claim(), targetId="tab_1", principal="other"))["reasonCode"] == "tab.unknown"
    for target in ("tab_1", "active"):
        answer = await rig.call("nova.ok_facts", {"targetId": target}, principal="other")
        assert answer.structured.get("facts", []) == []


DEMAND = """
[[policy]]
service = "*"
tools = ["navigate", "act", "commit", "write"]
needs = "is_authenticated"
"""


async def test_a_demand_never_stands_in_the_way_of_reporting_what_it_asks_for(make_rig: Any) -> None:
    rig = await shop(make_rig, policies=DEMAND, gates={"capability": "block"})
    assert (await observe(rig, claim("core.login_state", "logged_in")))["accepted"] == 1


def test_every_class_that_a_demand_can_name_is_asked_and_reading_never() -> None:
    asked = [spec for spec in load_catalogue() if "policy.capability" in spec.gates]
    # Whether an action commits is seen at its control, and asked there.
    assert {spec.effect for spec in asked} == set(get_args(ToolClass)) - {"commit"}
    assert ok_observe not in asked


class Lets:
    """A transition that has nothing against it."""

    contract = SimpleNamespace(has_outcome=True)
    in_force = False

    async def bind(self) -> None: ...


@pytest.mark.parametrize(
    ("tools", "mode", "kind", "refused"),
    [
        ("commit", "block", "purchase", True),
        ("commit", "block", None, False),
        ("commit", "block", "auth", False),
        ("commit", "shadow_block", "purchase", False),
        ("write", "block", "purchase", False),
    ],
)
async def test_a_demand_on_commits_is_asked_at_the_control(
    make_rig: Any, tools: str, mode: str, kind: str | None, refused: bool
) -> None:
    text = DEMAND.replace('"navigate", "act", "commit", "write"', f'"{tools}"')
    rig = await shop(make_rig, policies=text, gates={"capability": mode})
    ctx = SimpleNamespace(
        tab=rig.browser.targets._tabs["tab_1"],
        caller=SimpleNamespace(owner=("local", "default")),
        call=SimpleNamespace(call_id="c1", tool_name="nova.click_selector", session_id="s"),
        settings=rig.settings,
        facts=rig.pipeline._parts.memory.facts,
        verifier=SimpleNamespace(begin=lambda _: Lets()),
    )
    point = None if kind is None else SimpleNamespace(kind=kind)
    # A control without a selector: there is nothing to learn of it.
    prepared = SimpleNamespace(selector=None, layer=None)
    scene = cast(Any, SimpleNamespace(tab=ctx.tab, prepared=prepared, commit_point=lambda: point))
    guard = CallGuard(cast(Any, ctx), Wish())
    if refused:
        with pytest.raises(CapabilityMissing) as said:
            await guard.admit(scene)
        assert said.value.gate_id == "policy.capability"
        assert (await observe(rig, claim("core.login_state", "logged_in")))["accepted"] == 1
    await guard.admit(scene)


@pytest.mark.parametrize("depth", [1, 25, 100, 2_000])
async def test_a_deep_value_comes_back_as_it_was_or_is_refused(make_rig: Any, depth: int) -> None:
    rig, value = await shop(make_rig), cast(Any, 1)
    for _ in range(depth):
        value = [value]
    told = await observe(rig, claim(value=value))
    if depth <= 25:
        assert told["facts"][0]["value"] == value
        assert (await rig.call("nova.ok_facts")).structured["facts"][0]["value"] == value
    else:
        assert (told["errorCode"], await rows(rig, fact)) == (-32602, [])


async def test_a_huge_number_is_a_value_like_any_other(make_rig: Any) -> None:
    rig = await shop(make_rig)
    for number, value in enumerate((10**400, -(10**400), 2**63, 1e308, 5e-324)):
        told = await observe(rig, claim(f"shop.n{number}", value))
        assert told["facts"][0]["value"] == value


async def test_five_hundred_custom_facts_fit_and_one_more_is_told(make_rig: Any) -> None:
    rig = await shop(make_rig)
    for start in range(0, 500, 50):
        told = await observe(rig, *(claim(f"shop.k{number}", number) for number in range(start, start + 50)))
        assert told["accepted"] == 50
    told = await observe(rig, claim("shop.more", 1), claim("core.ui.theme", "dark"), claim("shop.k3", 3))
    assert [one["state"] for one in told["facts"]] == ["scope_full", "fresh", "confirmed"]
    assert (told["accepted"], told["rejected"], len(told["warnings"])) == (2, 1, 1)
