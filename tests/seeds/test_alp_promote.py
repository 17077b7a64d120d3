"""Levels as the learning contract describes them: guards, fields and states of promoting, feedback and explaining."""

import json
from dataclasses import dataclass, replace
from typing import Any

import pytest
from loop_kit import Server, Shop
from place_kit import Place, failed
from real_kit import text_of
from sqlalchemy import text as sql

from nova_mcp.errors import InvalidParams
from nova_mcp.memory.knowledge import store
from nova_mcp.memory.knowledge.model import DomainHint, Phenomenon
from nova_mcp.memory.knowledge.store import Shelved
from nova_mcp.memory.promotion.collector import witnessed
from nova_mcp.memory.promotion.model import DAY_MS, HOUR_MS, Mark
from nova_mcp.server.manifest import load_manifest
from nova_mcp.tools.arguments import parse_arguments
from nova_mcp.tools.learning.explain import ExplainParams
from nova_mcp.tools.learning.promote import FeedbackParams, PromoteParams
from promotion_kit import hint, phenomenon

PAGE = """<!doctype html><title>Desk</title><main><h1>Desk</h1>
<button id=show type=button onclick="{}">Show</button><p id=out></p></main>"""
PAGES = {"/desk": PAGE.format("out.textContent = 'Shown'"), "/broken": PAGE.format("out.textContent = 'Oops'")}
COUNTERS = ("approved", "rejected", "applied", "writeFailed", "total")
DECISION = {
    *("stableId", "approved", "applied", "skippedBecause", "writeError", "reasonKind", "fromLevel", "toLevel"),
    "rejectionReason",
}
EVENT = {
    *("stableId", "contextHost", "fromLevel", "toLevel", "reasonKind", "reason", "createdAtMs", "createdAtUtc"),
}
GATE = {"name", "required", "observed", "passed", "deltaToPass"}
TRANSITIONS = ("l0_to_l1", "l1_to_l2", "demotion", "deprecation", "revive")
ENTRY = "lcj_8c1a2f9d44ab"


@dataclass
class Here(Place):
    """A site, its entries and, where there is one, the tab that shows it."""

    async def keep(self, kept: Phenomenon | DomainHint) -> Shelved:
        now = self.server.clock.now_ms()
        (shelved,) = await self.put(replace(kept, created_at_ms=now, updated_at_ms=now))
        return shelved

    async def proven(self, shelved: Shelved, successes: int, sessions: int = 2, failures: int = 0) -> None:
        """Marks as calls leave them; the newest is a moment old."""
        now = self.server.clock.now_ms()
        bad = [
            Mark(0, now - 5000 + number, "action_failure", -1, f"f{number}-{now}", "s0") for number in range(failures)
        ]
        good = [
            Mark(0, now - 1000 + number, "action_success", 1, f"g{number}-{now}", f"s{number % sessions}")
            for number in range(successes)
        ]

        def write(conn: Any) -> None:
            (kept,) = store.by_ids(conn, [shelved.entry_id])
            witnessed(conn, kept, [*bad, *good])

        await self.server.nova._db.write(write)

    async def promote(self, **arguments: Any) -> dict[str, Any]:
        return await self.server.call("learn_promote", scope=self.scope, **arguments)

    async def feedback(self, **arguments: Any) -> dict[str, Any]:
        return await self.server.call("learn_feedback", **{"scope": self.scope, **arguments})

    async def explain(self, stable_id: str = ENTRY, **arguments: Any) -> dict[str, Any]:
        return await self.server.call("explain", scope=self.scope, stableId=stable_id, **arguments)

    async def use(self, path: str = "/desk", later_ms: int = HOUR_MS) -> dict[str, Any]:
        """Press the button after a while, where it works or where it does not."""
        self.later(later_ms)
        await self.visit(path)
        return await self.click("#show", expect=["text:Shown", "!text:Oops"])


@pytest.fixture
def closed(server: Server, pages: Shop) -> Here:
    """A site that no tab shows."""
    return Here.new(server, pages)


@pytest.fixture
async def here(server: Server, pages: Shop, tab: str) -> Here:
    found = Here.new(server, pages, tab)
    await found.visit("/desk")
    return found


def known(stable_id: str = ENTRY, level: int = 1, **changes: Any) -> Phenomenon:
    return phenomenon(stable_id, changes.pop("selector", "#show"), level=level, **changes)


def says_no(params: Any, **arguments: Any) -> str:
    with pytest.raises(InvalidParams) as caught:
        parse_arguments(params, arguments)
    assert caught.value.reason_code == "invalid_params"
    return str(caught.value.message)


# -- guard conditions, as far as they need no server


@pytest.mark.parametrize("params", [PromoteParams, FeedbackParams, ExplainParams])
@pytest.mark.parametrize("extra", ["stableid", "dry_run", "targetId", "force", "level"])
def test_guard_an_unknown_argument_is_refused_with_the_accepted_ones(params: Any, extra: str) -> None:
    given = {"scope": "shop.test"} | ({"stableId": "x"} if params is ExplainParams else {})
    said = says_no(params, **given, **{extra: "x"})
    assert extra in said
    assert "scope" in said


@pytest.mark.parametrize("given", [{}, {"scope": None}, {"scope": 5}, {"scope": ["shop.test"]}])
@pytest.mark.parametrize("params", [PromoteParams, ExplainParams])
def test_guard_a_scope_is_required(params: Any, given: dict[str, Any]) -> None:
    more = {"stableId": "x"} if params is ExplainParams else {}
    assert "scope" in says_no(params, **given, **more)


@pytest.mark.parametrize("limit", [0, 101, -1, 1.5, "20", True])
def test_guard_feedback_tells_one_to_a_hundred_events(limit: Any) -> None:
    assert "limit" in says_no(FeedbackParams, limit=limit)
    for edge in (1, 100):
        assert parse_arguments(FeedbackParams, {"limit": edge}).limit == edge


@pytest.mark.parametrize("since", [-1, "2026-01-01", 1.5, "0", 2**53 + 1, True])
def test_guard_since_is_a_time_in_milliseconds(since: Any) -> None:
    assert "since" in says_no(FeedbackParams, since=since)


@pytest.mark.parametrize(
    "ids", [[], "all", "lcj_1", {"a": 1}, [5], [None], [""], ["x" * 129], ["all", "lcj_1"], ["lcj_1", "all"]]
)
def test_guard_stable_ids_are_a_list_of_names_or_all_alone(ids: Any) -> None:
    assert "stableIds" in says_no(PromoteParams, scope="shop.test", stableIds=ids)


def test_stable_ids_left_out_and_all_mean_the_whole_scope() -> None:
    for given in ({}, {"stableIds": None}, {"stableIds": ["all"]}):
        assert parse_arguments(PromoteParams, {"scope": "shop.test", **given}).wanted() is None
    named = parse_arguments(PromoteParams, {"scope": "shop.test", "stableIds": ["b", "a", "b"]})
    assert named.wanted() == ("b", "a")


@pytest.mark.parametrize("transition", ["l2_to_l3", "promote", "L1_TO_L2", "", 1, ["l1_to_l2"]])
def test_guard_a_transition_is_one_of_five(transition: Any) -> None:
    said = says_no(PromoteParams, scope="shop.test", transition=transition)
    assert all(name in said for name in TRANSITIONS)
    for name in (*TRANSITIONS, None):
        assert parse_arguments(PromoteParams, {"scope": "shop.test", "transition": name}).transition == name


@pytest.mark.parametrize("dry", ["true", "false", 1, 0, None])
def test_guard_dry_run_is_true_or_false_and_no_text(dry: Any) -> None:
    assert "dryRun" in says_no(PromoteParams, scope="shop.test", dryRun=dry)


def test_guard_both_spellings_of_a_name_have_to_say_the_same() -> None:
    here = {"scope": "shop.test"}
    for one, other in (("stableId", "stable_id"), ("observedSignals", "observed_signals")):
        values: tuple[Any, Any] = ("a", "b") if one == "stableId" else (["a"], ["b"])
        rest = {} if one == "stableId" else {"stableId": "x"}
        said = says_no(ExplainParams, **here, **rest, **{one: values[0], other: values[1]})
        assert one in said
        assert other in said
        for given in ({one: values[0]}, {other: values[0]}, {one: values[0], other: values[0]}):
            parsed = parse_arguments(ExplainParams, {**here, **rest, **given})
            assert getattr(parsed, other) == values[0]


def test_the_published_schema_asks_for_the_stable_id_by_its_first_name() -> None:
    schema: Any = load_manifest().by_name["nova.explain"].input_schema
    assert set(schema["required"]) == {"scope", "stableId"}
    assert "stable_id" not in schema["properties"]


def test_defaults_are_those_of_the_contract() -> None:
    plain = parse_arguments(PromoteParams, {"scope": "shop.test"})
    assert (plain.stable_ids, plain.transition, plain.dry_run) == (None, None, False)
    read = parse_arguments(FeedbackParams, {})
    assert (read.scope, read.since, read.limit) == (None, None, 20)


# -- guard conditions through a client


@pytest.mark.browser
@pytest.mark.parametrize("scope", ["", "   ", "*", "*.example.com", "com", "co.uk", "about:blank", "file:///etc/x"])
@pytest.mark.parametrize("tool", ["learn_promote", "explain"])
async def test_guard_a_scope_is_one_concrete_site(server: Server, tool: str, scope: str) -> None:
    more = {"stableId": "x"} if tool == "explain" else {"dryRun": True}
    assert failed(await server.call(tool, scope=scope, **more))


@pytest.mark.browser
async def test_guard_nothing_is_written_about_a_site_that_is_not_open(closed: Here) -> None:
    put = await closed.keep(known())
    await closed.proven(put, 3)
    body = await closed.promote()
    assert "is not open" in failed(body, -32003, "pks.scope_not_open")["message"]
    assert body["fix"]["tool"] == "nova.navigate"
    assert (await closed.entry(ENTRY)).level == 1
    assert (await closed.feedback())["count"] == 0
    looked = await closed.promote(dryRun=True)
    assert (looked["ok"], looked["approved"], looked["applied"]) == (True, 1, 0)


@pytest.mark.browser
async def test_guard_a_refused_call_decides_nothing(here: Here) -> None:
    await here.proven(await here.keep(known()), 3)
    for wrong in ({"dryRun": "false"}, {"stableIds": []}, {"transition": "up"}, {"really": True}):
        failed(await here.promote(**wrong))
    failed(await here.feedback(limit=101))
    failed(await here.server.call("explain", scope=here.scope, stableId=ENTRY, stable_id="another"))
    assert (await here.entry(ENTRY)).level == 1


@pytest.mark.browser
async def test_guard_what_is_unknown_is_not_found(here: Here) -> None:
    failed(await here.explain(), -32004, "pks.scope_not_found")
    await here.keep(hint())
    failed(await here.explain(), -32004, "pks.phenomenon_not_found")


# -- the example


@pytest.mark.browser
async def test_the_example_is_answered_with_exactly_these_fields(closed: Here) -> None:
    await closed.proven(await closed.keep(known()), 3)
    asked = {"scope": closed.scope, "stableIds": [ENTRY], "transition": "l1_to_l2", "dryRun": True}
    answer = await closed.server.client.call_tool("nova.learn_promote", asked)
    assert answer.structured_content == {
        "ok": True,
        "scope": closed.scope,
        "dryRun": True,
        "approved": 1,
        "rejected": 0,
        "applied": 0,
        "writeFailed": 0,
        "total": 1,
        "decisions": [
            {
                "stableId": ENTRY,
                "approved": True,
                "applied": False,
                "skippedBecause": "dry_run",
                "writeError": None,
                "reasonKind": "l1_to_l2",
                "fromLevel": 1,
                "toLevel": 2,
                "rejectionReason": None,
            }
        ],
    }
    said = text_of(answer)
    assert f"{ENTRY}: l1_to_l2 L1→L2 dry_run" in said
    assert "without dryRun" in said


# -- contract rows


@pytest.mark.browser
async def test_promoting_a_whole_scope_tells_every_entry_and_hint(here: Here) -> None:
    ready = await here.keep(known("a", 0, selector="#a"))
    await here.proven(ready, 3)
    await here.keep(known("b", 1, selector="#b"))
    await here.keep(known("c", 2, selector="#c"))
    await here.keep(hint())
    for given in ({}, {"stableIds": ["all"]}):
        body = await here.promote(dryRun=True, **given)
        assert [one["stableId"] for one in body["decisions"]] == ["a", "ads", "b", "c"]
    body = await here.promote()
    assert [body[name] for name in COUNTERS] == [1, 3, 1, 0, 4]
    assert body["dryRun"] is False
    assert all(set(one) == DECISION for one in body["decisions"])
    by = {one["stableId"]: one for one in body["decisions"]}
    assert [(name, one["reasonKind"], one["skippedBecause"], one["rejectionReason"]) for name, one in by.items()] == [
        ("a", "l0_to_l1", None, None),
        ("ads", "l1_to_l2", "not_approved", "successes"),
        ("b", "l1_to_l2", "not_approved", "successes"),
        ("c", "demotion", "not_approved", "hard_drift_24h"),
    ]
    assert [(one["fromLevel"], one["toLevel"]) for one in by.values()] == [(0, 1), (1, 1), (1, 1), (2, 2)]


@pytest.mark.browser
async def test_named_entries_and_a_named_transition_narrow_the_look(here: Here) -> None:
    await here.proven(await here.keep(known("a", 1, selector="#a")), 3)
    await here.keep(known("b", 2, selector="#b"))
    body = await here.promote(stableIds=["b", "nobody", "a"], transition="l1_to_l2", dryRun=True)
    assert [(one["stableId"], one["approved"], one["rejectionReason"]) for one in body["decisions"]] == [
        ("b", False, "not_applicable"),
        ("nobody", False, "not_found"),
        ("a", True, None),
    ]
    assert [body[name] for name in COUNTERS] == [1, 2, 0, 0, 3]
    assert {one["reasonKind"] for one in body["decisions"]} == {"l1_to_l2"}
    unknown = await here.promote(stableIds=["nobody"], dryRun=True)
    assert (unknown["ok"], unknown["decisions"][0]["reasonKind"]) == (True, None)


@pytest.mark.browser
async def test_a_dry_run_writes_nothing_and_a_clean_write_says_so(here: Here) -> None:
    await here.proven(await here.keep(known()), 3)
    await here.promote(dryRun=True)
    assert ((await here.entry(ENTRY)).level, (await here.feedback())["count"]) == (1, 0)
    body = await here.promote()
    assert (body["ok"], body["applied"], body["writeFailed"]) == (True, 1, 0)
    assert ((await here.entry(ENTRY)).level, (await here.feedback())["count"]) == (2, 1)


@pytest.mark.browser
async def test_an_entry_that_cannot_be_written_is_told_and_the_answer_is_not_ok(here: Here) -> None:
    for name in ("good", "stuck"):
        await here.proven(await here.keep(known(name, selector=f"#{name}")), 3)
    forbid = "CREATE TRIGGER stuck BEFORE UPDATE ON knowledge_entry WHEN old.stable_id = 'stuck' BEGIN SELECT {}; END"
    await here.server.nova._db.write(lambda conn: conn.execute(sql(forbid.format("RAISE(ABORT, 'it is stuck')"))))
    try:
        answer = await here.server.client.call_tool("nova.learn_promote", {"scope": here.scope})
    finally:
        await here.server.nova._db.write(lambda conn: conn.execute(sql("DROP TRIGGER stuck")))
    body = answer.structured_content
    assert body is not None
    assert [body[name] for name in ("ok", "reasonCode", *COUNTERS)] == [False, "learn.write_failed", 2, 0, 1, 1, 2]
    stuck = body["decisions"][1]
    assert (stuck["approved"], stuck["applied"], stuck["skippedBecause"]) == (True, False, "write_failed")
    assert "it is stuck" in stuck["writeError"]
    assert "call again" in text_of(answer)
    assert [(await here.entry(name)).level for name in ("good", "stuck")] == [2, 1]
    assert (await here.promote(stableIds=["stuck"]))["applied"] == 1


@pytest.mark.browser
async def test_asking_again_is_no_second_step_without_more_evidence(here: Here) -> None:
    await here.proven(await here.keep(known(level=0)), 1)
    first = (await here.promote())["decisions"][0]
    assert (first["approved"], first["rejectionReason"]) == (False, "support")
    assert (await here.promote())["applied"] == 0
    events = (await here.feedback())["events"]
    assert [(one["reasonKind"], one["fromLevel"], one["toLevel"]) for one in events] == [("l0_to_l1", 0, 0)]


@pytest.mark.browser
async def test_feedback_tells_what_changed_when_and_why(here: Here) -> None:
    started = here.server.clock.now_ms()
    await here.proven(await here.keep(known(level=0)), 3)
    await here.promote()
    await here.promote()
    body = await here.feedback()
    assert set(body) == {"ok", "scope", "since", "count", "events"}
    assert (body["scope"], body["count"]) == (here.scope, 2)
    assert all(set(one) == EVENT for one in body["events"])
    newest, oldest = body["events"]
    assert [(one["reasonKind"], one["fromLevel"], one["toLevel"]) for one in body["events"]] == [
        ("l1_to_l2", 1, 2),
        ("l0_to_l1", 0, 1),
    ]
    assert newest["contextHost"] == here.scope
    assert newest["createdAtMs"] >= oldest["createdAtMs"] >= started
    assert newest["createdAtUtc"].endswith("Z")
    assert {gate["name"]: gate["observed"] for gate in newest["reason"]["gates"]}["successes"] == 3
    assert all(set(gate) == GATE for gate in newest["reason"]["gates"])
    assert newest["reason"]["counts"]["successSessions"] == 2
    assert (await here.feedback(limit=1))["events"] == [newest]


@pytest.mark.browser
async def test_feedback_looks_back_a_week_unless_told_otherwise_and_over_all_sites_without_one(here: Here) -> None:
    await here.keep(known())
    started = here.server.clock.now_ms()
    await here.promote()
    here.later(8 * DAY_MS)
    assert (await here.feedback())["count"] == 0
    assert (await here.feedback(since=started))["count"] == 1
    for everywhere in ({"scope": "*"}, {"scope": None}):
        told = await here.feedback(since=started, **everywhere)
        assert (told["scope"], told["since"]) == ("*", started)
        assert here.scope in {one["contextHost"] for one in told["events"]}
    assert (await here.server.call("learn_feedback"))["since"] > started


@pytest.mark.browser
async def test_an_explanation_has_its_gates_what_to_do_and_how_the_page_fits(closed: Here) -> None:
    await closed.proven(await closed.keep(known()), 1, 1)
    body = await closed.explain(observedSignals=["dom:#layer"])
    assert set(body) == {"ok", "scope", "phenomenon", "explain", "match"}
    assert body["phenomenon"] == {"stableId": ENTRY, "type": "modal", "level": 1, "deprecated": False}
    why = body["explain"]
    assert set(why) == {"transition", "summary", "gates", "remediation"}
    assert why["transition"] == "l1_to_l2"
    assert [tuple(one.values()) for one in why["gates"]] == [
        ("successes", 3, 1, False, 2),
        ("success_sessions", 2, 1, False, 1),
        ("failures", 1, 0, True, 0),
        ("drift_7d", 0, 0, True, 0),
    ]
    assert all(set(one) == GATE for one in why["gates"])
    assert len(why["remediation"]) == 2
    assert body["match"]["minConfidence"] == 0.6
    assert body["match"]["confidence"] == pytest.approx(1 / 1.7, abs=1e-4)
    assert body["match"]["signals"] == [
        {"kind": "dom", "match": "#layer", "weight": 1.0, "applicable": True, "matched": True},
        {"kind": "text", "match": "Newsletter", "weight": 0.7, "applicable": True, "matched": False},
    ]
    assert (await closed.explain())["match"] is None
    alias = await closed.server.call(
        "explain", scope=closed.scope, stable_id=ENTRY, observed_signals=["NEWSLETTER", "vendor:#layer"]
    )
    assert [one["matched"] for one in alias["match"]["signals"]] == [False, True]


@pytest.mark.browser
async def test_a_hint_is_explained_without_a_match(closed: Here) -> None:
    await closed.keep(hint())
    body = await closed.explain("ads", observedSignals=["dom:#ad"])
    assert (body["phenomenon"]["type"], body["match"]) == ("ad_container", None)


@pytest.mark.browser
async def test_a_banner_is_judged_by_the_gates_of_every_entry(here: Here) -> None:
    put = await here.keep(known(type="consent_cmp"))
    await here.proven(put, 2, 2)
    gates = {one["name"]: one["required"] for one in (await here.explain())["explain"]["gates"]}
    assert gates == {"successes": 3, "success_sessions": 2, "failures": 1, "drift_7d": 0}
    assert (await here.promote())["decisions"][0]["rejectionReason"] == "successes"
    await here.proven(put, 1, 1)
    assert (await here.promote())["applied"] == 1


@pytest.mark.browser
async def test_texts_say_what_to_do_next(here: Here) -> None:
    async def said(tool: str, **arguments: Any) -> str:
        return str(text_of(await here.server.client.call_tool(f"nova.{tool}", {"scope": here.scope, **arguments})))

    assert "nova.learn_suggest" in await said("learn_promote", dryRun=True)
    put = await here.keep(known())
    assert "nova.explain" in await said("learn_promote")
    assert "2/3" not in await said("explain", stableId=ENTRY)
    await here.proven(put, 2)
    assert "✗ successes 2/3" in await said("explain", stableId=ENTRY)
    await here.proven(put, 3)
    assert "Call nova.learn_promote" in await said("explain", stableId=ENTRY)
    assert "confirm on the page" in await said("learn_promote")
    assert "l1_to_l2 L1→L2" in await said("learn_feedback")


@pytest.mark.browser
async def test_a_long_list_is_told_in_few_lines(closed: Here) -> None:
    for number in range(60):
        await closed.keep(known(f"entry-{number}", selector=f"#e{number}"))
    answer = await closed.server.client.call_tool("nova.learn_promote", {"scope": closed.scope, "dryRun": True})
    assert answer.structured_content is not None
    assert len(answer.structured_content["decisions"]) == 60
    assert len(text_of(answer).splitlines()) < 20
    assert "48 more" in text_of(answer)


# -- the learning states, lived through on a real page


@pytest.mark.browser
async def test_a_whole_life_from_candidate_to_active_to_retired_and_back(here: Here) -> None:
    await here.keep(known(level=0))
    here.later(DAY_MS)

    async def decided(**arguments: Any) -> tuple[Any, ...]:
        (one,) = (await here.promote(**arguments))["decisions"]
        return one["reasonKind"], one["applied"], one["rejectionReason"]

    # Candidate: one proof is not enough, and a repeat within half a minute is no second one.
    assert (await here.use())["verifyState"] == "verified"
    await here.use(later_ms=5000)
    assert await decided() == ("l0_to_l1", False, "support")
    # Shadow.
    await here.use()
    assert await decided() == ("l0_to_l1", True, None)
    assert await decided() == ("l1_to_l2", False, "successes")
    # Active.
    await here.use()
    assert await decided() == ("l1_to_l2", True, None)
    assert (await here.entry(ENTRY)).may_guide
    # Demoted by two failures in a row, without anybody asking and whatever was seen in between.
    assert not (await here.use("/broken"))["ok"]
    assert (await here.entry(ENTRY)).level == 2
    await here.visit("/desk")
    await here.use("/broken")
    fallen = await here.entry(ENTRY)
    assert (fallen.level, fallen.deprecated, fallen.may_guide) == (1, False, False)
    assert await decided() == ("l1_to_l2", False, "successes")
    # Deprecated by a third.
    await here.use("/broken")
    gone = await here.entry(ENTRY)
    assert (gone.level, gone.deprecated_reason) == (0, "3 failures in a row")
    assert (await here.explain())["explain"]["transition"] == "revive"
    # Revived by two successes in two sessions, into review and no further.
    await here.use()
    assert await decided() == ("revive", False, "successes")
    await here.use()
    assert await decided() == ("revive", True, None)
    back = await here.entry(ENTRY)
    assert (back.level, back.deprecated, back.may_guide) == (1, False, False)
    told = [(one["reasonKind"], one["fromLevel"], one["toLevel"]) for one in (await here.feedback())["events"]]
    assert [one for one in told[::-1] if one[1] != one[2]] == [
        ("l0_to_l1", 0, 1),
        ("l1_to_l2", 1, 2),
        ("demotion", 2, 1),
        ("deprecation", 1, 0),
        ("revive", 0, 1),
    ]


@pytest.mark.browser
async def test_one_session_takes_no_entry_to_active(here: Here) -> None:
    await here.keep(known())
    for _ in range(4):
        await here.use(later_ms=61_000)
    body = await here.promote()
    assert body["decisions"][0]["rejectionReason"] == "success_sessions"
    assert (await here.entry(ENTRY)).level == 1


@pytest.mark.browser
async def test_what_an_agent_says_about_evidence_changes_no_level(here: Here) -> None:
    await here.keep(known())
    await here.server.call("tab_claim", targetId=here.tab)
    claim = {"component": "modal", "claim": "It works.", "status": "verified", "confidence": 1.0}
    assert (await here.server.call("memory_add_candidate", targetId=here.tab, **claim))["ok"]
    assert (await here.promote())["decisions"][0]["rejectionReason"] == "successes"


@pytest.mark.browser
async def test_the_ledger_keeps_who_asked_for_a_decision(here: Here) -> None:
    await here.keep(known())
    await here.promote()
    rows = await here.server.nova._db.read(
        lambda conn: conn.execute(
            sql("SELECT tool_name, arguments FROM tool_event ORDER BY created_at_ms DESC, event_id DESC LIMIT 1")
        ).all()
    )
    assert rows[0][0] == "nova.learn_promote"
    assert json.loads(rows[0][1])["scope"] == here.scope
