"""What the tools of live facts refuse and say, without a page."""

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from nova_mcp.core.clock import Ports
from nova_mcp.errors import InvalidParams
from nova_mcp.memory.facts.model import ClaimResult
from nova_mcp.memory.facts.service import FactKeeper
from nova_mcp.secrets.redactor import Redactor
from nova_mcp.tools.arguments import parse_arguments
from nova_mcp.tools.context import Evidence
from nova_mcp.tools.facts.facts import CurrentFact, FactsResult, ObserveParams, ObserveResult, PastFact, ok_observe
from nova_mcp.tools.read.fact_hints import note_page

TOKEN = "ghp_0123456789abcdefabcdef0123456789"


def observe(*claims: dict[str, Any], **more: Any) -> ObserveParams:
    return parse_arguments(ObserveParams, {"claims": list(claims), **more})


def claim(key: str = "shop.note", value: Any = "x", **more: Any) -> dict[str, Any]:
    return {"signalKey": key, "value": value, **more}


@pytest.mark.parametrize(
    ("where", "claims", "more"),
    [
        ("perceptionId", [claim()], {"perceptionId": TOKEN}),
        ("claims[0].signalKey", [claim(f"shop.{TOKEN}")], {}),
        ("claims[1].value", [claim(), claim(value={"a": [{TOKEN: {}}]})], {}),
        ("claims[1].evidence", [claim(), claim(evidence=f"the page shows {TOKEN}.")], {}),
    ],
)
def test_a_secret_anywhere_in_the_call_refuses_it_and_is_not_repeated(where: str, claims: Any, more: Any) -> None:
    with pytest.raises(InvalidParams) as refused:
        ok_observe.check(observe(*claims, **more), None)  # type: ignore[arg-type]
    error = refused.value
    assert error.reason_code == "ok.sensitive_value"
    assert error.message.startswith(f"{where} looks like ")
    assert TOKEN not in json.dumps([error.message, error.hint, error.details])


@pytest.mark.parametrize("size", [16_384, 16_385])
@pytest.mark.parametrize("sign", ["a", "ä", "\U0001f600"])
def test_a_value_is_measured_in_characters_whatever_they_weigh(sign: str, size: int) -> None:
    value = sign * (size - 2)
    if size > 16_384:
        with pytest.raises(InvalidParams, match="16384"):
            observe(claim(value=value))
    else:
        assert observe(claim(value=value)).claims[0].value == value


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [[float("-inf")]], "\ud800"])
def test_what_json_cannot_say_is_refused(value: Any) -> None:
    with pytest.raises(InvalidParams):
        observe(claim(value=value))


def test_a_value_nested_without_end_is_refused() -> None:
    bomb: Any = 1
    for _ in range(5_000):
        bomb = [bomb]
    with pytest.raises(InvalidParams):
        observe(claim(value=bomb))


# -- what is answered once the record is there

NOW = 1_800_000_000_000
CLOCK = SimpleNamespace(now_ms=lambda: NOW)
KEPT = ClaimResult("shop.note", '"x"', "fresh", is_new=True, superseded=False, stored=True)
FULL = replace(KEPT, state="scope_full", is_new=False, stored=False, warning="full")


def look(number: int, url: str, epoch: int) -> tuple[str, Any]:
    return f"tab_1.p{number}", SimpleNamespace(epoch=epoch, scan=SimpleNamespace(page=SimpleNamespace(url=url)))


LOOKS = dict(
    [
        look(1, "https://shop.test/cart", 2),
        look(2, "https://else.test/cart", 1),
        look(3, "https://shop.test/list", 2),
        look(4, "https://shop.test/cart", 1),
    ]
)


async def told(results: tuple[ClaimResult, ...] | None, *claims: dict[str, Any], **more: Any) -> ObserveResult:
    """The answer to a call whose claims came to these results."""
    tab = SimpleNamespace(
        target_id="tab_1",
        sandbox_id="A",
        principal="local",
        url="https://shop.test/cart",
        page_epoch=2,
        require_ready=lambda: None,
        perception=SimpleNamespace(snapshot=lambda name, _: LOOKS.get(name)),
    )

    async def commit_derived(derive: object) -> tuple[ClaimResult, ...] | None:
        # The tab goes on; the answer is about the page the claims were taken for.
        tab.url, tab.page_epoch = "https://later.test/", 3
        return results

    ctx = SimpleNamespace(
        tab=tab,
        evidence=Evidence(),
        facts=FactKeeper(cast(Any, None), cast(Any, CLOCK)),
        secrets=SimpleNamespace(redactor=Redactor()),
        call=SimpleNamespace(call_id="c1"),
        ports=cast(Ports, SimpleNamespace(clock=CLOCK)),
        commit_derived=commit_derived,
    )
    answer = await ok_observe.run(cast(Any, ctx), observe(*claims, **more))
    assert isinstance(answer, ObserveResult)
    return answer


@pytest.mark.parametrize(
    ("perception", "warns"),
    [
        (None, None),
        ("tab_1.p1", None),
        ("tab_1.p2", "has moved on"),
        ("tab_1.p3", "has moved on"),
        ("tab_1.p4", "has moved on"),
        ("tab_1.p99", None),
        ("tab_2.p1", "is of tab_2"),
        ("my own trace", None),
    ],
)
async def test_claims_read_off_another_page_are_told(perception: str | None, warns: str | None) -> None:
    answer = await told((KEPT,), claim(), perceptionId=perception)
    assert answer.service_key == "shop.test"
    if warns is None:
        assert answer.warnings is None
    else:
        (warning,) = answer.warnings or ()
        assert warns in warning


async def test_every_claim_is_accepted_or_rejected_and_the_text_says_so() -> None:
    answer = await told((KEPT, FULL, KEPT), claim(), claim(), claim("core.account.email", "Ada"))
    assert (answer.accepted, answer.rejected, len(answer.facts)) == (2, 1, 3)
    assert answer.text().splitlines() == [
        "tab_1 shop.test: 2 accepted, 1 rejected, 0 superseded",
        'shop.note="x" fresh new',
        'shop.note="x" scope_full',
        'shop.note="x" fresh new',
        "warning: full",
        "warning: core.account.email does not look like a mail address.",
    ]


async def test_a_tab_that_closed_first_took_nothing() -> None:
    answer = await told(None, claim(), claim())
    assert (answer.accepted, answer.rejected, answer.superseded) == (0, 2, 0)
    assert [one.is_new for one in answer.facts] == [False, False]
    assert "closed before anything could be stored" in answer.text()


async def test_a_long_value_does_not_fill_the_text() -> None:
    long = "ä" * 16_000
    answer = await told((replace(KEPT, value=json.dumps(long)),), claim(value=long))
    assert answer.facts[0].value == long
    assert len(answer.text()) < 400
    assert "(16002 characters)" in answer.text()
    past = PastFact(value=long, state="fresh", certainty_level="likely", confidence=0.75, valid_from="a", valid_to="b")
    one = CurrentFact(
        key="shop.note",
        value=long,
        state="fresh",
        certainty_level="likely",
        confidence=0.75,
        support=1,
        contradictions=0,
        is_stale=False,
        url_at_observation="u",
        first_observed_at="f",
        last_observed_at="l",
        history=[past],
    )
    known = FactsResult(target_id="tab_1", service_key="shop.test", facts=[one], capabilities={}, count=1)
    assert known.text().startswith("tab_1 shop.test: 1 fact\n")
    assert len(known.text()) < 600


# -- what Nova notes by itself


@pytest.mark.parametrize(
    ("seen_at", "scripted", "noted"),
    [
        ("https://shop.test/cart", None, True),
        ("https://shop.test/cart#top", None, True),
        ("https://shop.test/list", None, False),
        ("https://else.test/cart", None, False),
        ("https://shop.test/cart", 2, False),
    ],
)
def test_what_was_seen_is_noted_only_for_the_page_it_was_seen_on(
    seen_at: str, scripted: int | None, noted: bool
) -> None:
    tab = SimpleNamespace(
        target_id="tab_1",
        sandbox_id="A",
        principal="local",
        url="https://shop.test/cart",
        page_epoch=2,
        scripted_epoch=scripted,
    )
    ctx = SimpleNamespace(
        tab=tab,
        evidence=Evidence(),
        facts=FactKeeper(cast(Any, None), cast(Any, CLOCK)),
        call=SimpleNamespace(call_id="c1"),
    )
    page = SimpleNamespace(url=seen_at, lang="de-AT", theme="dark")
    sighted = note_page(cast(Any, ctx), cast(Any, page), None)
    assert sighted == ({"core.ui.language": "de", "core.ui.theme": "dark"} if noted else {})
    assert len(ctx.evidence.also) == int(noted)
