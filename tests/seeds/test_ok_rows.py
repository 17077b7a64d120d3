"""Live facts as their contract describes them, row by row, through a real client on a real page."""

import hashlib
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from loop_kit import ShiftedClock, Shop, shop
from mcp import Client
from real_kit import records, text_of
from sqlalchemy import select

from nova_mcp.app import Nova, build
from nova_mcp.core.clock import Ports, SystemIds
from nova_mcp.core.signal_vocabulary import SIGNALS
from nova_mcp.core.tokens import estimate_tokens
from nova_mcp.memory.facts.model import MOST_CUSTOM
from nova_mcp.memory.facts.replay import replay
from nova_mcp.memory.facts.tables import fact, fact_account, fact_binding, fact_observation
from nova_mcp.server.manifest import load_manifest
from nova_mcp.server.protocol import Wiring, build_server
from nova_mcp.settings import Settings
from nova_mcp.storage.errors import StoreUnavailable

pytestmark = pytest.mark.browser

MINUTE = 60_000
_numbers = count(1)
HINT_FIELDS = {
    *("shouldObserve", "missingOrStaleKeys", "lastObservedAgoMs", "serviceKey", "firstVisit", "urlChanged"),
    "currentFacts",
}
FACT_FIELDS = {
    *("key", "value", "state", "certaintyLevel", "confidence", "support", "contradictions", "isStale"),
    *("urlAtObservation", "firstObservedAt", "lastObservedAt", "history"),
}
CORE = [
    "core.login_state",
    "core.model.active",
    "core.model.family",
    "core.model.routing_mode",
    "core.models.available",
    "core.plan.label",
    "core.plan.tier",
    "core.account.display_name",
    "core.account.email",
    "core.session.state",
    "core.page.type",
    "core.ui.language",
    "core.ui.theme",
    "core.subscription.active",
    "core.feature.available",
]
PAGES = {
    "/plain": "<!doctype html><title>Plain</title><main><h1>Plain</h1><button id=go type=button "
    "onclick='out.textContent = `done`'>Go</button><p id=out></p></main>",
    "/other": "<!doctype html><title>Other</title><main><h1>Other</h1></main>",
    "/dark": "<!doctype html><html lang=de-AT><title>Dark</title><body style='background:#111;color:#eee'>Hallo</body>",
    "/login": "<!doctype html><html lang=en><title>Sign in</title><form action=/in method=post>"
    "<label>Mail <input type=email name=mail autocomplete=username></label>"
    "<label>Password <input type=password name=pw autocomplete=current-password></label>"
    "<button>Sign in</button></form>",
    "/in": "<!doctype html><title>In</title><nav><button>Sign out</button></nav><main><h1>Welcome</h1></main>",
}


@dataclass
class Fault:
    armed: bool = False

    def hit(self, point: str) -> None:
        if self.armed and point == "ledger.before_commit":
            raise StoreUnavailable("full")


@dataclass
class Server:
    """A server, its client, its clock, and the fault that can be put into its store."""

    client: Client
    clock: ShiftedClock
    data_dir: Path
    nova: Nova
    fault: Fault
    site: Shop

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        answer = await self.client.call_tool(f"nova.{tool}", arguments)
        assert answer.structured_content is not None
        return dict(answer.structured_content)

    async def rows(self, table: Any, *where: Any) -> list[dict[str, Any]]:
        found = await self.nova._db.read(lambda conn: conn.execute(select(table).where(*where)).all())
        return [row._asdict() for row in found]


@dataclass
class Page:
    """The default agent's tab on a service that nobody knows anything about yet."""

    server: Server
    tab: str
    service: str

    def url(self, path: str) -> str:
        return f"http://{self.service}{path}"

    async def observe(self, *claims: dict[str, Any], **arguments: Any) -> dict[str, Any]:
        return await self.server.call("ok_observe", **{"targetId": self.tab, "claims": list(claims), **arguments})

    async def perceive(self, **arguments: Any) -> dict[str, Any]:
        return await self.server.call("perceive", targetId=self.tab, **arguments)

    async def hints(self, **arguments: Any) -> dict[str, Any]:
        found: dict[str, Any] = (await self.perceive(**arguments))["okHints"]
        return found

    async def facts(self, **arguments: Any) -> dict[str, Any]:
        return await self.server.call("ok_facts", targetId=self.tab, **arguments)

    async def fact(self, key: str) -> dict[str, Any]:
        (found,) = (await self.facts(keys=[key], includeHistory=True))["facts"]
        assert set(found) == FACT_FIELDS
        return dict(found)

    async def go(self, path: str) -> None:
        assert (await self.server.call("navigate", targetId=self.tab, url=self.url(path)))["ok"]

    async def stored(self, table: Any) -> list[dict[str, Any]]:
        return await self.server.rows(table, table.c.binding_id == f"{self.tab}/{self.service}")

    def later(self, ms: int) -> None:
        self.server.clock.shift_ms += ms


def claim(key: str, value: Any, certainty: str | None = "likely", **more: Any) -> dict[str, Any]:
    return {"signalKey": key, "value": value, "certainty": certainty, **more}


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def site() -> Iterator[Shop]:
    with shop() as running:
        running.pages.update(PAGES)
        yield running


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory, site: Shop, anyio_backend: str) -> AsyncIterator[Server]:
    clock, fault, data_dir = ShiftedClock(), Fault(), tmp_path_factory.mktemp("facts")
    (data_dir / "secrets.toml").write_text('[shop]\nvalue = "correct horse"\nhosts = ["127.0.0.1"]\n')
    (data_dir / "secrets.toml").chmod(0o600)
    settings = Settings.model_validate({"data_dir": data_dir, "tools": "all"})
    nova = await build(settings, Ports(clock, SystemIds(clock), fault))

    async def backend() -> Any:
        return nova

    try:
        async with Client(build_server(load_manifest(), settings, Wiring(backend=backend))) as client:
            yield Server(client, clock, data_dir, nova, fault, site)
    finally:
        await nova.close("test")


@pytest.fixture(scope="module")
async def tab(server: Server) -> str:
    return str((await server.call("tab_new"))["targetId"])


async def elsewhere(server: Server, tab: str) -> Page:
    """The tab on a service of its own: every name under localhost is one."""
    page = Page(server, tab, f"s{next(_numbers)}.localhost:{server.site.base.rpartition(':')[2]}")
    await page.go("/plain")
    return page


@pytest.fixture
async def page(server: Server, tab: str) -> Page:
    return await elsewhere(server, tab)


@pytest.fixture(scope="module")
async def still(server: Server, tab: str) -> Page:
    """A page for calls that must leave no trace."""
    return await elsewhere(server, str((await server.call("tab_new"))["targetId"]))


def refused(body: dict[str, Any], code: int = -32602, reason: str = "invalid_params") -> str:
    assert (body["ok"], body["errorCode"], body["reasonCode"]) == (False, code, reason), body
    return str(body["message"])


async def nothing_was_written(page: Page) -> None:
    assert await page.stored(fact_observation) == []
    assert await page.stored(fact) == []


# -- guard conditions


@pytest.mark.parametrize("extra", [{"agentId": "ada"}, {"claim": []}, {"certainty": "likely"}, {"confidence": 1}])
async def test_an_unknown_top_level_argument_is_refused_with_the_accepted_ones(still: Page, extra: Any) -> None:
    said = refused(await still.observe(claim("core.ui.theme", "dark"), **extra))
    for name in (*extra, "targetId", "perceptionId", "claims"):
        assert name in said
    await nothing_was_written(still)


async def test_meta_is_welcome(page: Page) -> None:
    assert (await page.observe(claim("core.ui.theme", "dark"), _meta={"trace": "t1"}))["accepted"] == 1


async def test_an_unknown_name_inside_a_claim_is_refused(still: Page) -> None:
    assert "confidence" in refused(await still.observe(claim("core.ui.theme", "dark", confidence=0.9)))


@pytest.mark.parametrize("claims", [None, [], {}, "x", 5])
async def test_missing_or_empty_claims_are_refused(still: Page, claims: Any) -> None:
    assert "claims" in refused(await still.server.call("ok_observe", targetId=still.tab, claims=claims))
    assert "claims is required" in refused(await still.server.call("ok_observe", targetId=still.tab))


async def test_fifty_claims_are_taken_and_fifty_one_refused(page: Page) -> None:
    claims = [claim(f"shop.slot{number}", number) for number in range(51)]
    assert "claims" in refused(await page.observe(*claims))
    await nothing_was_written(page)
    assert (await page.observe(*claims[:50]))["accepted"] == 50


@pytest.mark.parametrize(
    "key",
    [
        *("", "core", "Core.login_state", "shop.", ".cart", "shop..cart", "shop cart.x", "1shop.cart", "shop.Cart"),
        *("shop.1", "a_b.c", "x." + "y" * 127),
    ],
)
async def test_a_key_of_the_wrong_shape_is_refused(still: Page, key: str) -> None:
    assert "signalKey" in refused(await still.observe(claim(key, 1)))


async def test_custom_keys_in_camel_case_are_taken(page: Page) -> None:
    told = await page.observe(claim("myApp.cartCount", 3), claim("shop.checkout.stepName", "address"))
    assert (told["accepted"], told["rejected"]) == (2, 0)
    assert [one["key"] for one in told["facts"]] == ["myApp.cartCount", "shop.checkout.stepName"]


async def test_a_key_of_128_characters_is_taken(page: Page) -> None:
    assert (await page.observe(claim("x." + "y" * 126, 1)))["accepted"] == 1


async def test_an_unknown_core_key_refuses_the_whole_call_and_names_the_nearest(still: Page) -> None:
    said = refused(await still.observe(claim("core.ui.theme", "dark"), claim("core.login_stat", "logged_in")))
    assert "core.login_state" in said
    await nothing_was_written(still)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("core.login_state", True), ("core.login_state", None), ("core.login_state", " "), ("core.plan.tier", 1),
        ("core.models.available", "gpt"), ("core.models.available", ["a", 1]), ("core.subscription.active", "yes"),
        ("core.subscription.active", None), ("core.feature.available", {"upload": True}),
    ],
)  # fmt: skip
async def test_a_core_value_of_the_wrong_type_refuses_the_whole_call(still: Page, key: str, value: Any) -> None:
    said = refused(await still.observe(claim("core.ui.theme", "dark"), claim(key, value)))
    assert key in said
    await nothing_was_written(still)


async def test_a_claim_without_a_value_is_refused_but_null_is_a_value(page: Page) -> None:
    assert "value is required" in refused(await page.observe({"signalKey": "shop.cart"}))
    told = await page.observe(claim("shop.coupon", None))
    assert told["facts"] == [{"key": "shop.coupon", "value": None, "state": "fresh", "isNew": True}]


async def test_a_value_has_at_most_16384_characters_of_json(page: Page) -> None:
    words = "ab " * 6000
    assert (await page.observe(claim("shop.note", words[: 16_384 - 2])))["accepted"] == 1
    assert "16384" in refused(await page.observe(claim("shop.note", words[: 16_384 - 1])))


@pytest.mark.parametrize("certainty", ["sure", "", 1, True, "Certain"])
async def test_an_unsupported_certainty_is_refused(still: Page, certainty: Any) -> None:
    said = refused(await still.observe({"signalKey": "core.ui.theme", "value": "dark", "certainty": certainty}))
    assert "certainty must be one of certain | likely | tentative" in said


@pytest.mark.parametrize("given", [{}, {"certainty": None}])
async def test_certainty_left_out_or_null_is_likely(page: Page, given: Any) -> None:
    await page.observe({"signalKey": "core.ui.theme", "value": "dark", **given})
    found = await page.fact("core.ui.theme")
    assert (found["certaintyLevel"], found["confidence"]) == ("likely", 0.75)


async def test_a_weak_contradiction_is_observation_only_with_a_warning(page: Page) -> None:
    await page.observe(claim("core.ui.theme", "dark"))
    told = await page.observe(claim("core.ui.theme", "light", "tentative"))
    assert told["facts"] == [{"key": "core.ui.theme", "value": "light", "state": "observation_only", "isNew": False}]
    assert (told["accepted"], told["rejected"], len(told["warnings"])) == (1, 0, 1)


async def test_a_full_scope_refuses_custom_keys_but_takes_core_ones(page: Page) -> None:
    for start in range(0, MOST_CUSTOM, 50):
        await page.observe(*(claim(f"shop.s{number}", 1) for number in range(start, start + 50)))
    told = await page.observe(claim("shop.one_more", 1), claim("core.ui.theme", "dark"), claim("shop.s7", 2, "certain"))
    assert [one["state"] for one in told["facts"]] == ["scope_full", "fresh", "fresh"]
    assert (told["accepted"], told["rejected"], told["superseded"]) == (2, 1, 1)
    assert "shop.one_more" in told["warnings"][0]
    assert not [row for row in await page.stored(fact_observation) if row["signal_key"] == "shop.one_more"]
    body = await page.facts(limit=200)
    assert (body["count"], len(body["facts"])) == (MOST_CUSTOM + 1, 200)


# -- what must not be kept


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("shop.account.password", "hunter2"), ("shop.note", {"apiKey": "abcdef123"}),
        ("shop.card", "4111 1111 1111 1111"), ("core.plan.label", "ghp_0123456789abcdefABCDEF0123456789"),
        ("shop.session", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N"),
        ("shop.note", ["fine", "aZ3kQ9xW1bN7vT5mR2pL8sD4"]),
    ],
)  # fmt: skip
async def test_what_looks_like_a_secret_refuses_the_whole_call(still: Page, key: str, value: Any) -> None:
    body = await still.observe(claim("core.ui.theme", "dark"), claim(key, value))
    said = refused(body, -32602, "ok.sensitive_value")
    assert "claims[1].value" in said
    await nothing_was_written(still)
    leaf = value if isinstance(value, str) else json.dumps(value)
    assert leaf not in json.dumps(body)
    assert leaf not in str(records(still.server.data_dir)[-1].arguments)


async def test_a_stored_secret_and_a_token_in_the_evidence_refuse_it_too(still: Page) -> None:
    refused(await still.observe(claim("shop.note", "correct horse")), -32602, "ok.sensitive_value")
    said = refused(
        await still.observe(claim("shop.note", "x", evidence="token sk-abcdefghijklmnopqrstuvwx")),
        -32602,
        "ok.sensitive_value",
    )
    assert "claims[0].evidence" in said
    await nothing_was_written(still)


async def test_without_a_web_page_there_is_no_service(server: Server) -> None:
    tab = (await server.call("tab_new"))["targetId"]
    refused(
        await server.call("ok_observe", targetId=tab, claims=[claim("core.ui.theme", "dark")]), -32003, "ok.no_service"
    )
    refused(await server.call("ok_facts", targetId=tab), -32003, "ok.no_service")
    assert (await server.call("perceive", targetId=tab))["okHints"] is None
    await server.call("tab_close", targetId=tab)


# -- the contract's variables


async def test_the_example_of_the_contract(page: Page) -> None:
    await page.server.call("set_active_tab", targetId=page.tab)
    told = await page.server.call(
        "ok_observe",
        targetId="active",
        perceptionId="perceive_7f3a",
        claims=[
            claim("core.login_state", "logged_in", "likely", evidence="Visible user menu is present."),
            claim("core.plan.tier", "pro", "tentative", evidence="A Pro label is visible near the account menu."),
        ],
    )
    assert told == {
        "ok": True,
        "targetId": page.tab,
        "serviceKey": page.service,
        "accepted": 2,
        "rejected": 0,
        "superseded": 0,
        "facts": [
            {"key": "core.login_state", "value": "logged_in", "state": "fresh", "isNew": True},
            {"key": "core.plan.tier", "value": "pro", "state": "fresh", "isNew": True},
        ],
        "warnings": None,
    }
    first, second = await page.stored(fact_observation)
    assert (first["perception_id"], first["evidence"]) == ("perceive_7f3a", "Visible user menu is present.")
    assert (first["confidence"], second["confidence"], first["source_kind"]) == (750, 500, "agent")
    assert first["call_id"] == second["call_id"] == records(page.server.data_dir)[-1].call_id


@pytest.mark.parametrize("given", [{}, {"targetId": None}, {"targetId": "active"}])
async def test_target_left_out_null_or_active_is_the_current_tab(page: Page, given: Any) -> None:
    await page.server.call("set_active_tab", targetId=page.tab)
    told = await page.server.call("ok_observe", claims=[claim("core.ui.theme", "dark")], **given)
    assert told["targetId"] == page.tab


async def test_a_sandbox_id_means_the_latest_tab_in_it(page: Page) -> None:
    assert (await page.observe(claim("core.ui.theme", "dark"), targetId="A"))["targetId"] == page.tab


async def test_an_unknown_target_is_refused(still: Page) -> None:
    refused(await still.observe(claim("core.ui.theme", "dark"), targetId="tab_99999"), -32602, "tab.unknown")


@pytest.mark.parametrize("given", [{}, {"perceptionId": None}, {"perceptionId": "tab_1.p1"}])
async def test_perception_id_groups_and_is_optional(page: Page, given: Any) -> None:
    assert (await page.observe(claim("core.ui.theme", "dark"), **given))["accepted"] == 1


async def test_a_perception_of_another_tab_or_page_is_told(page: Page) -> None:
    told = await page.observe(claim("core.ui.theme", "dark"), perceptionId="tab_999.p1")
    assert "tab_999" in told["warnings"][0]
    own = (await page.perceive())["perceptionId"]
    assert (await page.observe(claim("core.ui.theme", "dark"), perceptionId=own))["warnings"] is None
    await page.go("/other")
    moved = await page.observe(claim("core.ui.theme", "dark"), perceptionId=own)
    assert (moved["accepted"], len(moved["warnings"])) == (1, 1)
    assert f"{page.tab} has moved on since that perceptionId" in moved["warnings"][0]


@pytest.mark.parametrize(("certainty", "confidence"), [("certain", 0.95), ("likely", 0.75), ("tentative", 0.5)])
async def test_certainty_maps_to_confidence(page: Page, certainty: str, confidence: float) -> None:
    await page.observe(claim("core.plan.tier", "pro", certainty))
    found = await page.fact("core.plan.tier")
    assert (found["certaintyLevel"], found["confidence"]) == (certainty, confidence)


async def test_evidence_has_at_most_2000_characters(page: Page) -> None:
    seen = "a menu " * 300
    assert (await page.observe(claim("core.ui.theme", "dark", evidence=seen[:2000])))["accepted"] == 1
    assert "evidence" in refused(await page.observe(claim("core.ui.theme", "dark", evidence=seen[:2001])))


async def test_any_json_value_comes_back_as_it_was(page: Page) -> None:
    values = [0, -1.5, True, False, "", "ä\u0000\U0001f600", [], {"a": [1, {"b": None}]}]
    told = await page.observe(*(claim(f"shop.v{number}", value) for number, value in enumerate(values)))
    assert [one["value"] for one in told["facts"]] == values
    assert [one["value"] for one in (await page.facts())["facts"]] == values


async def test_the_vocabulary_is_the_contracts(page: Page) -> None:
    body = await page.server.call("ok_signal_schema")
    assert sorted(one["signalKey"] for one in body["keys"]) == sorted(CORE)
    assert (body["count"], body["truncated"]) == (15, False)
    for one in body["keys"]:
        assert set(one) == {"signalKey", "namespace", "valueType", "description", "example", "deprecated"}
        told = await page.observe(claim(one["signalKey"], one["example"]))
        assert told["accepted"] == 1
    assert len((await page.facts())["facts"]) == len(SIGNALS)


async def test_the_schema_is_filtered_and_cut(server: Server) -> None:
    assert (await server.call("ok_signal_schema", namespace="core", includeDeprecated=True))["count"] == 15
    assert await server.call("ok_signal_schema", namespace="shop") == {
        "ok": True,
        "keys": [],
        "count": 0,
        "truncated": False,
    }
    cut = await server.call("ok_signal_schema", maxEntries=3)
    assert (cut["count"], len(cut["keys"]), cut["truncated"]) == (3, 3, True)
    for past in (0, 501, "5"):
        assert "maxEntries" in refused(await server.call("ok_signal_schema", maxEntries=past))


# -- states


async def test_the_second_call_that_agrees_confirms(page: Page) -> None:
    both = await page.observe(claim("core.plan.tier", "pro"), claim("core.plan.tier", "pro"))
    assert [one["state"] for one in both["facts"]] == ["fresh", "fresh"]
    told = await page.observe(claim("core.plan.tier", "pro", "certain"))
    assert told["facts"] == [{"key": "core.plan.tier", "value": "pro", "state": "confirmed", "isNew": False}]
    found = await page.fact("core.plan.tier")
    assert (found["support"], found["confidence"], found["certaintyLevel"]) == (3, 0.95, "certain")


async def test_a_contradiction_of_the_same_strength_conflicts_and_the_next_word_settles_it(page: Page) -> None:
    await page.observe(claim("core.plan.tier", "pro"))
    told = await page.observe(claim("core.plan.tier", "free"))
    assert told["facts"] == [{"key": "core.plan.tier", "value": "pro", "state": "conflicted", "isNew": False}]
    assert (told["accepted"], told["superseded"], len(told["warnings"])) == (1, 0, 1)
    assert (await page.fact("core.plan.tier"))["contradictions"] == 1
    settled = await page.observe(claim("core.plan.tier", "free"))
    assert settled["facts"] == [{"key": "core.plan.tier", "value": "free", "state": "fresh", "isNew": False}]
    assert settled["superseded"] == 1


async def test_a_confirmation_at_least_as_strong_clears_a_conflict_and_a_weaker_one_does_not(page: Page) -> None:
    await page.observe(claim("core.plan.tier", "pro", "certain"))
    await page.observe(claim("core.plan.tier", "free", "certain"))
    weak = await page.observe(claim("core.plan.tier", "pro", "likely"))
    assert (weak["facts"][0]["state"], len(weak["warnings"])) == ("conflicted", 1)
    assert (await page.observe(claim("core.plan.tier", "pro", "certain")))["facts"][0]["state"] == "confirmed"


async def test_a_clearly_stronger_claim_supersedes_and_the_old_one_stays_as_history(page: Page) -> None:
    await page.observe(claim("core.plan.tier", "free", "likely"))
    told = await page.observe(claim("core.plan.tier", "pro", "certain"))
    assert (told["superseded"], told["facts"][0]["state"], told["facts"][0]["isNew"]) == (1, "fresh", False)
    found = await page.fact("core.plan.tier")
    (past,) = found["history"]
    assert (found["value"], past["value"], past["validTo"] >= past["validFrom"]) == ("pro", "free", True)


async def test_a_fact_older_than_five_minutes_gives_way(page: Page) -> None:
    await page.observe(claim("core.plan.tier", "free", "certain"))
    page.later(5 * MINUTE + 1000)
    assert (await page.fact("core.plan.tier"))["isStale"] is True
    assert (await page.observe(claim("core.plan.tier", "pro", "likely")))["superseded"] == 1


async def test_a_route_dependent_fact_gives_way_on_another_page_and_others_do_not(page: Page) -> None:
    await page.observe(claim("core.page.type", "list", "certain"), claim("core.plan.tier", "free", "certain"))
    await page.go("/other")
    told = await page.observe(claim("core.page.type", "detail", "likely"), claim("core.plan.tier", "pro", "likely"))
    assert [one["state"] for one in told["facts"]] == ["fresh", "conflicted"]
    assert told["superseded"] == 1


# -- hints


async def test_the_first_visit_asks_for_what_is_relevant(page: Page) -> None:
    hints = await page.hints()
    assert hints == {
        "shouldObserve": True,
        "missingOrStaleKeys": ["core.login_state", "core.page.type"],
        "lastObservedAgoMs": None,
        "serviceKey": page.service,
        "firstVisit": True,
        "urlChanged": False,
        "currentFacts": None,
    }


async def test_no_hint_while_everything_relevant_is_fresh(page: Page) -> None:
    await page.observe(claim("core.login_state", "logged_out"), claim("core.page.type", "list"))
    assert await page.hints() is None


async def test_half_of_it_is_still_a_first_visit_and_shows_what_is_known(page: Page) -> None:
    await page.observe(claim("core.login_state", "logged_in", "certain"))
    hints = await page.hints()
    assert set(hints) == HINT_FIELDS
    assert (hints["missingOrStaleKeys"], hints["firstVisit"], hints["urlChanged"]) == (["core.page.type"], True, False)
    assert 0 <= hints["lastObservedAgoMs"] < MINUTE
    known = hints["currentFacts"]["core.login_state"]
    assert set(known) == {"valueJson", "factState", "certaintyLevel", "lastObservedAt"}
    assert (known["valueJson"], known["factState"], known["certaintyLevel"]) == ('"logged_in"', "fresh", "certain")


async def test_an_old_fact_is_asked_for_again(page: Page) -> None:
    await page.observe(claim("core.login_state", "logged_in"), claim("core.page.type", "list"))
    page.later(5 * MINUTE + 1000)
    hints = await page.hints()
    assert (hints["shouldObserve"], hints["firstVisit"], hints["urlChanged"]) == (True, False, False)
    assert hints["missingOrStaleKeys"] == ["core.login_state", "core.page.type"]
    assert hints["lastObservedAgoMs"] > 5 * MINUTE


async def test_another_address_is_told_and_route_dependent_keys_are_asked_for(page: Page) -> None:
    await page.observe(claim("core.login_state", "logged_in"), claim("core.page.type", "list"))
    await page.go("/other")
    hints = await page.hints()
    assert (hints["urlChanged"], hints["firstVisit"]) == (True, False)
    assert hints["missingOrStaleKeys"] == ["core.page.type"]
    await page.observe(claim("core.page.type", "detail"))
    assert await page.hints() is None


async def test_a_conflicted_fact_is_asked_for(page: Page) -> None:
    await page.observe(claim("core.login_state", "logged_in"), claim("core.page.type", "list"))
    await page.observe(claim("core.login_state", "logged_out"))
    assert (await page.hints())["missingOrStaleKeys"] == ["core.login_state"]


async def test_the_same_hint_comes_again_without_the_facts_and_to_another_agent_in_full(page: Page) -> None:
    await page.observe(claim("core.login_state", "logged_in"))
    assert "currentFacts" in await page.hints()
    again = await page.hints()
    assert set(again) == (HINT_FIELDS - {"currentFacts"}) | {"unchanged"}
    assert (again["unchanged"], again["shouldObserve"], again["missingOrStaleKeys"]) == (True, True, ["core.page.type"])
    assert "currentFacts" in await page.hints(agentId="ada")
    await page.go("/other")
    assert "unchanged" not in await page.hints()


async def test_the_text_says_it_within_the_budget(page: Page) -> None:
    models = [f"Model {number} with a rather long name" for number in range(100)]
    await page.observe(claim("core.models.available", models), claim("core.login_state", "logged_in"))
    answer = await page.server.client.call_tool("nova.perceive", {"targetId": page.tab, "maxTokens": 200})
    text, body = text_of(answer), answer.structured_content
    assert body is not None
    assert "ok: observe core.page.type (first visit)" in text
    assert estimate_tokens(text) <= 200
    assert list(body["okHints"]["currentFacts"]) == ["core.login_state"]
    assert body["advisoryOmitted"] == ["okHints.currentFacts"]


async def test_the_text_speaks_of_a_first_visit_once_and_the_field_as_long_as_something_is_missing(page: Page) -> None:
    async def line(**more: Any) -> str:
        answer = await page.server.client.call_tool("nova.perceive", {"targetId": page.tab, **more})
        assert answer.structured_content is not None
        assert answer.structured_content["okHints"]["firstVisit"] is True
        return next(one for one in text_of(answer).splitlines() if one.startswith("ok: "))

    asked = "ok: observe core.login_state core.page.type"
    assert await line() == f"{asked} (first visit)"
    assert await line() == asked
    await page.go("/other")
    assert await line() == asked
    assert await line(agentId="ada") == f"{asked} (first visit)"


# -- what Nova sees by itself


async def test_a_look_notes_language_and_theme_with_less_confidence(page: Page) -> None:
    await page.go("/dark")
    await page.perceive()
    facts = {one["key"]: one for one in (await page.facts())["facts"]}
    assert {key: one["value"] for key, one in facts.items()} == {"core.ui.language": "de", "core.ui.theme": "dark"}
    assert facts["core.ui.theme"]["confidence"] == 0.6
    assert {row["source_kind"] for row in await page.stored(fact_observation)} == {"system"}
    await page.perceive(mode="state")
    assert (await page.fact("core.ui.theme"))["state"] == "confirmed"
    kept = len(await page.stored(fact_observation))
    await page.server.call("page_info", targetId=page.tab)
    assert len(await page.stored(fact_observation)) == kept


async def test_a_login_page_is_known_as_one(page: Page) -> None:
    await page.go("/login")
    await page.perceive()
    assert (await page.fact("core.login_state"))["value"] == "logged_out"
    assert (await page.fact("core.page.type"))["value"] == "login"
    assert await page.hints() is None


async def test_what_nova_sees_otherwise_is_a_warning_and_an_agents_fact_stays_as_it_is(page: Page) -> None:
    await page.go("/login")
    await page.observe(claim("core.login_state", "logged_in"), claim("core.ui.language", "English"))
    before, kept = await page.fact("core.login_state"), len(await page.stored(fact_observation))
    for _ in range(3):
        answer = await page.server.client.call_tool("nova.perceive", {"targetId": page.tab, "maxTokens": 400})
        body, text = answer.structured_content, text_of(answer)
        assert body is not None
        (warning,) = body["warnings"]
        assert warning.startswith('core.login_state="logged_in" was reported, but to Nova the page looks logged_out')
        assert f"ok: {warning}" in text
        assert estimate_tokens(text) <= 400
        assert body["budget"]["maxTokens"] == 400
    assert await page.fact("core.login_state") == before
    assert (await page.fact("core.ui.language"))["state"] == "fresh"
    system = (await page.stored(fact_observation))[kept:]
    assert "core.login_state" not in {row["signal_key"] for row in system}
    assert (await page.facts())["capabilities"]["is_authenticated"] is True
    page.later(6 * MINUTE)
    body = await page.perceive()
    assert "warnings" not in body
    assert "core.login_state" in body["okHints"]["missingOrStaleKeys"]
    assert (await page.fact("core.login_state"))["value"] == "logged_in"


async def test_a_certain_agent_outdoes_what_nova_saw(page: Page) -> None:
    await page.go("/dark")
    await page.perceive()
    assert (await page.observe(claim("core.ui.theme", "light", "certain")))["superseded"] == 1


# -- capabilities, contracts, policies


async def test_facts_become_capabilities(page: Page) -> None:
    await page.observe(
        claim("core.login_state", "logged_out"),
        claim("core.plan.label", "Basic"),
        claim("core.subscription.active", False),
        claim("core.feature.available", ["File upload"]),
        claim("core.models.available", ["a", "b"], "tentative"),
    )
    able = (await page.facts())["capabilities"]
    assert able == {"feature.file_upload": True, "has_subscription": False, "is_authenticated": False}
    await page.observe(claim("core.login_state", "logged_in", "certain"), claim("core.plan.tier", "pro"))
    able = (await page.facts())["capabilities"]
    assert (able["is_authenticated"], able["can_use_pro"]) == (True, True)
    page.later(6 * MINUTE)
    assert (await page.facts())["capabilities"] == {}


def precondition(key: str, expected: Any) -> dict[str, Any]:
    return {
        "preconditions": {"all": [{"factKey": key, "operator": "eq", "expected": expected}]},
        "postconditions": {"success": {"all": [{"factKey": "dom.#out@text", "operator": "eq", "expected": "done"}]}},
        "stabilityMs": 0,
    }


async def press(page: Page, contract: dict[str, Any]) -> dict[str, Any]:
    return await page.server.call("click_selector", targetId=page.tab, selector="#go", transitionContract=contract)


@pytest.mark.parametrize("key", ["core.plan.tier", "ok.core.plan.tier", "shop.cart.items"])
async def test_a_contract_can_ask_for_a_fact(page: Page, key: str) -> None:
    unknown = await press(page, precondition(key, "pro"))
    assert unknown["reasonCode"] == "guarded_commit.precondition_error"
    await page.observe(claim(key.removeprefix("ok."), "free"))
    assert (await press(page, precondition(key, "pro")))["reasonCode"] == "guarded_commit.precondition_failed"
    await page.observe(claim(key.removeprefix("ok."), "pro", "certain"))
    assert (await press(page, precondition(key, "pro")))["actionDispatched"] is True
    page.later(6 * MINUTE)
    stale = await press(page, precondition(key, "pro"))
    assert (stale["reasonCode"], stale["actionDispatched"]) == ("guarded_commit.precondition_error", False)
    assert "stale_fact" in json.dumps(stale)


async def test_a_contract_with_an_unknown_core_signal_is_refused(still: Page) -> None:
    assert "core.plan.tier" in refused(await press(still, precondition("core.plan.teer", "pro")))


# -- where facts belong


async def test_a_fact_of_one_tab_is_not_answered_for_another(page: Page) -> None:
    await page.observe(claim("core.plan.tier", "pro"))
    other = (await page.server.call("tab_new", url=page.url("/plain")))["targetId"]
    body = await page.server.call("ok_facts", targetId=other)
    assert (body["facts"], body["count"], body["capabilities"]) == ([], 0, {})
    await page.server.call("tab_close", targetId=other)


async def test_another_service_in_the_same_tab_knows_nothing_of_it(page: Page) -> None:
    await page.observe(claim("core.plan.tier", "pro"))
    await page.server.call("navigate", targetId=page.tab, url=page.server.site.url("/plain"))
    assert (await page.facts())["facts"] == []
    assert (await page.hints())["firstVisit"] is True
    await page.go("/plain")
    assert (await page.fact("core.plan.tier"))["value"] == "pro"


async def test_closing_a_tab_closes_its_facts(server: Server) -> None:
    tab = (await server.call("tab_new", url=server.site.url("/plain")))["targetId"]
    await server.call("ok_observe", targetId=tab, claims=[claim("core.plan.tier", "pro")])
    await server.call("tab_close", targetId=tab)
    (row,) = await server.rows(fact, fact.c.binding_id.startswith(f"{tab}/"))
    (scope,) = await server.rows(fact_binding, fact_binding.c.target_id == tab)
    assert row["valid_to_ms"] == scope["closed_at_ms"] is not None
    assert row["superseded_by"] is None


async def test_deleting_a_sandbox_removes_what_was_known_there(server: Server) -> None:
    sandbox = (await server.call("sandbox_create"))["sandboxId"]
    for index in range(2):
        tab = (await server.call("tab_new", sandboxId=sandbox, url=server.site.url("/plain")))["targetId"]
        claims = [claim("core.account.email", "ada@example.org")]
        assert (await server.call("ok_observe", targetId=tab, claims=claims))["accepted"] == 1
        if index == 0:
            await server.call("tab_close", targetId=tab)
    service = server.site.base.partition("://")[2]
    (account,) = await server.rows(fact_account, fact_account.c.service_key == service)
    assert account["account_hash"] == hashlib.sha256(f"{service}:ada@example.org".encode()).hexdigest()[:16]
    await server.call("sandbox_delete", sandboxId=sandbox, confirm=True)
    assert await server.rows(fact_binding, fact_binding.c.sandbox_id == sandbox) == []
    assert await server.rows(fact_account, fact_account.c.service_key == service) == []
    gone = fact_observation.c.binding_id.endswith(f"/{service}"), fact_observation.c.value.contains("ada@")
    assert await server.rows(fact_observation, *gone) == []


async def test_facts_live_in_the_transaction_of_the_call(still: Page) -> None:
    still.server.fault.armed = True
    try:
        refused(await still.observe(claim("core.plan.tier", "pro")), -32002, "store.unavailable")
    finally:
        still.server.fault.armed = False
    await nothing_was_written(still)
    assert (await still.facts())["facts"] == []


async def test_keys_filter_and_history_is_asked_for(page: Page) -> None:
    await page.observe(claim("core.plan.tier", "free"), claim("shop.cart", 1), claim("shop.a", 2))
    await page.observe(claim("core.plan.tier", "pro", "certain"))
    body = await page.facts()
    assert [one["key"] for one in body["facts"]] == ["core.plan.tier", "shop.a", "shop.cart"]
    assert [one["history"] for one in body["facts"]] == [[], [], []]
    assert [one["key"] for one in (await page.facts(keys=["shop.cart"]))["facts"]] == ["shop.cart"]
    assert "nearest: core.plan.tier" in refused(await page.facts(keys=["core.plan.teer"]))
    cut = await page.facts(limit=1)
    assert (len(cut["facts"]), cut["count"]) == (1, 3)
    text = text_of(await page.server.client.call_tool("nova.ok_facts", {"targetId": page.tab}))
    assert 'core.plan.tier="pro" fresh certain' in text


async def test_everything_observed_here_replays_to_the_same_facts(server: Server) -> None:
    done = await server.nova._db.read(replay)
    assert done.observations > 100
    assert done.differences == ()
