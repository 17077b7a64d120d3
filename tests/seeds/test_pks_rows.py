"""Knowledge as its contract describes it, row by row, through a real client on real pages."""

from dataclasses import replace
from typing import Any

import pks_kit
import pytest
from loop_kit import SECRET, Server, Shop
from pks_kit import Site, click, consent, dom, refused
from place_kit import DAY, MINUTE
from real_kit import records

from nova_mcp.calls.model import CallRequest
from nova_mcp.errors import InvalidParams
from nova_mcp.memory.journal.candidate_store import candidate
from nova_mcp.memory.journal.store import observation
from nova_mcp.memory.knowledge import store
from nova_mcp.memory.knowledge.model import Health, ScopeName
from nova_mcp.memory.knowledge.tables import knowledge_entry, knowledge_scope
from nova_mcp.memory.promotion.tables import telemetry_backing
from nova_mcp.tools.knowledge.lookup import MatchParams, _scope

pytestmark = pytest.mark.browser

GET_FIELDS = {"ok", "found", "scope", "trust", "contentRev", "contextMatch", "mismatches", "counts", "phenomena"}
ENTRY_FIELDS = {"phenomenonId", "type", "level", "deprecated", "deprecatedReason", "mayGuide", "revision", "health"}
HEALTH_FIELDS = {
    *("state", "attempts", "successes", "failures", "consecutiveFailures", "severeMisfires", "silentVerifyFails"),
    *("successRate30d", "staleness"),
}
MATCH_FIELDS = {
    *("ok", "matched", "scope", "source", "phenomenonId", "phenomenonType", "confidence", "minConfidence", "score"),
    *("contextMatch", "mismatches", "playbook", "health", "topMatches", "domainHints", "ranking"),
}
PAGES = pks_kit.PAGES
SETTINGS = {"enable_eval": True}
GONE = {"all": [{"factKey": "dom.#cmp", "operator": "not_exists"}]}
BROKEN = {"all": [{"factKey": "dom.#note@text", "operator": "eq", "expected": "Failed"}]}


@pytest.fixture
async def site(server: Server, pages: Shop, tab: str) -> Site:
    """A fresh site with its banner up."""
    found = Site.new(server, pages, tab)
    await found.go("/banner")
    return found


@pytest.fixture(scope="module")
async def still(server: Server, pages: Shop) -> Site:
    """A site for writes that must leave no trace."""
    found = Site.new(server, pages, await server.new_tab())
    await found.go("/banner")
    return found


async def nothing_known(site: Site) -> None:
    assert await site.server.rows(knowledge_entry, knowledge_entry.c.scope == site.scope) == []
    assert await site.server.rows(knowledge_scope, knowledge_scope.c.scope == site.scope) == []


# -- pks_upsert


async def test_a_first_write_is_a_shadow_entry_that_the_page_confirms(site: Site) -> None:
    told = await site.upsert()
    assert told == {
        "ok": True,
        "action": "created",
        "scope": site.scope,
        "phenomenonId": "cmp",
        "level": 1,
        "revision": 1,
        "unconfirmedSelectors": [],
        "warnings": [],
    }
    kept = (await site.shelved("cmp")).kept
    element = kept.content.playbook.actions[0].element
    assert (element.tag, element.text, element.id) == ("button", "Reject all", "no")
    assert {one.match for one in kept.baseline} == {"#cmp", "We use cookies"}
    around = await site.server.nova._db.read(store.surroundings, (await site.shelved("cmp")).entry_id)
    assert {one.text for one in around} >= {"Reject all", "Accept all", "Home"}


async def test_a_write_seeds_a_verified_candidate_and_is_on_record(site: Site) -> None:
    await site.upsert()
    rows = await site.server.rows(candidate, candidate.c.context_host == site.scope)
    assert [(row["component"], row["status"], row["confidence"]) for row in rows] == [("pks_upsert", "verified", 0.82)]


async def test_the_same_again_changes_nothing_and_something_else_is_a_revision(site: Site) -> None:
    await site.upsert()
    assert (await site.upsert())["action"] == "unchanged"
    changed = await site.upsert(consent(click("#shut", "noop")))
    assert (changed["action"], changed["revision"], changed["level"]) == ("updated", 2, 1)


async def test_what_a_write_leaves_out_stays(site: Site) -> None:
    await site.upsert(consent(context={"device": "desktop", "routes": ["banner"]}))
    entry = consent()
    del entry["playbook"]
    assert (await site.upsert(entry))["action"] == "unchanged"
    (full,) = (await site.get("cmp"))["phenomena"]
    assert full["context"] == {"device": "desktop", "routes": ["banner"]}
    assert full["playbook"]["actions"][0]["selector"] == "#no"


async def test_an_id_is_made_up_from_the_situation(site: Site) -> None:
    entry = consent()
    del entry["id"]
    first = await site.upsert(entry)
    assert first["phenomenonId"].startswith("consent_cmp_")
    assert (await site.upsert(entry))["phenomenonId"] == first["phenomenonId"]


async def test_selectors_that_are_not_there_are_told_and_keep_it_from_rising(site: Site) -> None:
    told = await site.upsert(consent(click("#no", "reject", fallbackSelectors=["#not-there"])))
    assert told["unconfirmedSelectors"] == ["#not-there"]
    assert told["warnings"]
    await site.go("/plain")
    absent = await site.upsert(consent(id="other"))
    assert absent["unconfirmedSelectors"] == ["#cmp", "#no"]
    await site.go("/banner")
    assert (await site.upsert(consent(id="other")))["unconfirmedSelectors"] == []


async def test_changed_content_of_an_active_entry_waits_beside_it(site: Site) -> None:
    await site.upsert()
    await site.change("cmp", level=2)
    told = await site.upsert(consent(click("#shut", "noop")))
    assert (told["action"], told["level"], told["revision"]) == ("updated", 1, 2)
    (full,) = (await site.get("cmp"))["phenomena"]
    assert (full["level"], full["revision"], full["mayGuide"]) == (2, 1, True)
    assert (full["pending"]["level"], full["pending"]["revision"], full["pending"]["mayGuide"]) == (1, 2, False)
    assert (await site.match())["playbook"]["actions"][0]["selector"] == "#no"


async def test_health_survives_a_write(site: Site) -> None:
    await site.upsert()
    await site.change("cmp", health=Health(attempts=7, successes=7))
    await site.upsert(consent(click("#shut", "noop")))
    assert (await site.get())["phenomena"][0]["health"]["attempts"] == 7


async def test_a_retired_entry_returns_to_review_only_if_the_page_shows_it(site: Site) -> None:
    await site.upsert()
    told = await site.server.call("pks_deprecate", scope=site.scope, phenomenonId="cmp", reason="went away")
    assert told == {"ok": True, "deprecated": True, "phenomenonId": "cmp", "reason": "went away"}
    await site.go("/plain")
    assert (await site.upsert())["action"] == "unchanged"
    assert (await site.get())["counts"]["deprecated"] == 1
    await site.go("/banner")
    back = await site.upsert()
    assert (back["action"], back["level"]) == ("reactivated", 1)


async def test_a_site_may_be_said_to_be_of_some_kind(site: Site) -> None:
    await site.upsert(serviceCategories=["shopping", "food"])
    assert (await site.get())["serviceCategories"] == ["shopping", "food"]
    rev = (await site.get())["contentRev"]
    await site.upsert(serviceCategories=["shopping", "food"])
    assert (await site.get())["contentRev"] == rev
    listed = await site.server.call("pks_list", serviceCategory="food", prefix=site.scope)
    assert [one["scope"] for one in listed["scopes"]] == [site.scope]
    assert "nonsense" in refused(await site.upsert(serviceCategories=["nonsense"]))


# -- refusals of writes


@pytest.mark.parametrize(
    ("selector", "reason"),
    [
        ("*", "pks.selector_too_broad"),
        ("#cmp *", "pks.selector_too_broad"),
        ("button", "pks.selector_too_broad"),
        ("[class*=tw]", "pks.selector_too_broad"),
        ("[role=dialog]", "pks.selector_too_broad"),
        ("body", "pks.selector_too_broad"),
        ("#cmp .twin", "pks.selector_too_broad"),
        ("#outside", "pks.outside_surface"),
        ("#home", "pks.outside_surface"),
        ("#no[onclick='javascript:alert(1)']", "pks.script_content"),
        ("#no[data-x='eval(atob(1))']", "pks.script_content"),
        ("#no[data-key='ghp_0123456789abcdefABCDEF0123456789']", "pks.secret_like"),
        ("#no[[", "selector.invalid"),
    ],
)
async def test_a_selector_that_may_not_be_acted_on_is_refused(still: Site, selector: str, reason: str) -> None:
    refused(await still.upsert(consent(click(selector, "reject"))), reason)
    refused(await still.upsert(consent(click("#no", "reject", fallbackSelectors=[selector]))), reason)
    await nothing_known(still)


@pytest.mark.parametrize("surface", ["body", "html", "*"])
async def test_a_layer_is_not_the_whole_page(still: Site, surface: str) -> None:
    entry = consent(click("#outside", "reject"), fingerprint={"signals": [dom(surface)]})
    refused(await still.upsert(entry), "pks.selector_too_broad")
    await nothing_known(still)


async def test_consent_says_what_it_decides(still: Site) -> None:
    refused(await still.upsert(consent(click("#no"))), "pks.polarity_required")
    refused(await still.upsert(consent(click("#no", "yes"))))
    await nothing_known(still)


@pytest.mark.parametrize(
    ("selector", "polarity"),
    [
        ("#yes", "reject"),
        ("#no", "accept"),
        ("#yes", "noop"),
        ("#more", "reject"),
        ("#no", "manage"),
        ("#yes", "navigate"),
    ],
)
async def test_a_label_that_says_otherwise_refuses_the_polarity(still: Site, selector: str, polarity: str) -> None:
    refused(await still.upsert(consent(click(selector, polarity))), "pks.polarity_mismatch")
    await nothing_known(still)


async def test_labels_are_read_in_other_languages_too(server: Server, tab: str, pages: Shop) -> None:
    site = Site.new(server, pages, tab)
    await site.go("/de")
    entry = consent(click("#yes", "reject"), fingerprint={"signals": [dom("#cmp")]})
    refused(await site.upsert(entry), "pks.polarity_mismatch")
    entry["playbook"]["actions"] = [click("#no", "reject")]
    assert (await site.upsert(entry))["action"] == "created"


@pytest.mark.parametrize(
    "value",
    ["4111 1111 1111 1111", "password: hunter22", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVm"],
)
async def test_values_that_look_like_credentials_are_refused_and_kept_nowhere(still: Site, value: str) -> None:
    entry = consent(fingerprint={"signals": [dom("#cmp"), {"kind": "text", "match": value}]})
    refused(await still.upsert(entry), "pks.secret_like")
    refused(await still.upsert(consent(fingerprint={"signals": [dom(f"#{SECRET}")]})), "pks.secret_like")
    kept = b"".join(path.read_bytes() for path in still.server.data_dir.glob("nova.db*"))
    assert value.encode() not in kept
    assert SECRET.encode() not in kept
    await nothing_known(still)


@pytest.mark.parametrize("scope", ["", "  ", "*", "*.example.com", "co.uk", "com", "file:///etc", "http://", "a b"])
@pytest.mark.parametrize("tool", ["pks_get", "pks_upsert"])
async def test_what_names_no_site_is_refused(still: Site, tool: str, scope: str) -> None:
    more = {"phenomenon": consent()} if tool == "pks_upsert" else {}
    assert "scope" in str(await still.server.call(tool, scope=scope, **more))
    refused(await still.server.call(tool, scope=scope, **more))


@pytest.mark.parametrize(
    ("tool", "more"),
    [
        ("pks_upsert", {"phenomenon": consent()}),
        ("pks_patch", {"phenomenonId": "cmp", "patch": {"type": "modal"}}),
        ("pks_deprecate", {"phenomenonId": "cmp", "reason": "gone"}),
        ("pks_upsert_hint", {"domainHint": {"kind": "noise_region", "selectors": ["#ad"]}}),
    ],
)
async def test_a_site_is_written_about_only_while_it_is_open(still: Site, tool: str, more: dict[str, Any]) -> None:
    for scope in ("shop.example", still.scope.replace("localhost", "evil.localhost"), still.scope.rpartition(":")[0]):
        body = await still.server.call(tool, scope=scope, **more)
        refused(body, "pks.scope_not_open", -32003)
        assert body["fix"]["tool"] == "nova.navigate"


async def test_entries_are_shared_and_another_principals_tab_does_not_open_a_site(site: Site) -> None:
    await site.upsert()

    async def stranger(tool: str, **more: Any) -> dict[str, Any]:
        request = CallRequest(f"nova.{tool}", {"scope": site.scope, **more}, "stranger", None)
        return dict((await site.server.nova.call(request)).structured)

    assert (await stranger("pks_get"))["counts"]["shadow"] == 1
    refused(await stranger("pks_upsert", phenomenon=consent()), "pks.scope_not_open", -32003)
    refused(await stranger("pks_patch", phenomenonId="cmp", patch={"type": "modal"}), "pks.scope_not_open", -32003)


async def test_a_scope_is_full_at_two_hundred(site: Site) -> None:
    await site.upsert()
    one = await site.shelved("cmp")

    def fill(conn: Any) -> None:
        for number in range(199):
            store.add(conn, ScopeName(site.scope), replace(one.kept, stable_id=f"p{number}"), store.Birth())

    await site.server.nova._db.write(fill)
    refused(await site.upsert(consent(id="one-more")), "pks.scope_full")
    hint = {"kind": "noise_region", "selectors": ["#ad"]}
    refused(await site.server.call("pks_upsert_hint", scope=site.scope, domainHint=hint), "pks.scope_full")
    assert (await site.upsert(consent(click("#shut", "noop"))))["action"] == "updated"
    assert len(await site.server.rows(knowledge_entry, knowledge_entry.c.scope == site.scope)) == 200


async def test_nested_arguments_are_strict_and_named(still: Site) -> None:
    for change, name in (
        ({"surprise": 1}, "surprise"),
        ({"type": "banner"}, "phenomenon.type"),
        ({"fingerprint": {"signals": []}}, "signals"),
        ({"fingerprint": {"signals": [dom("#a")], "minConfidence": 1.1}}, "minConfidence"),
        ({"fingerprint": {"signals": [{"kind": "smell", "match": "x"}]}}, "kind"),
        ({"playbook": {"policy": "maybe"}}, "policy"),
        ({"playbook": {"policy": "custom", "actions": [{"action": "type", "selector": "#x"}]}}, "valueSource"),
        (
            {
                "playbook": {
                    "policy": "custom",
                    "actions": [{"action": "type", "selector": "#x", "valueSource": "agent_supplied"}],
                }
            },
            "valueName",
        ),
        ({"playbook": {"policy": "custom", "actions": [{"action": "type", "selector": "#x", "value": "v"}]}}, "value"),
        ({"context": {"routes": ["a b"]}}, "routes"),
        ({"id": "two words"}, "id"),
        ({"id": ""}, "id"),
    ):
        assert name in refused(await still.upsert(consent(**change)))
    await nothing_known(still)


# -- pks_patch


async def test_a_patch_replaces_only_what_it_names(site: Site) -> None:
    await site.upsert(consent(context={"device": "desktop"}))
    told = await site.patch(
        {"playbook": {"policy": "dismiss", "actions": [click("#shut", "noop")]}}, expectedRevision=1
    )
    assert told == {
        "ok": True,
        "patched": True,
        "phenomenonId": "cmp",
        "level": 1,
        "revision": 2,
        "unconfirmedSelectors": [],
    }
    (full,) = (await site.get("cmp"))["phenomena"]
    assert (full["context"], full["playbook"]["policy"]) == ({"device": "desktop"}, "dismiss")
    cleared = await site.patch({"context": None})
    assert cleared["patched"]
    assert (await site.get("cmp"))["phenomena"][0].get("context", {}) == {}


async def test_a_patch_of_something_older_is_refused(site: Site) -> None:
    await site.upsert()
    stale = await site.patch({"type": "modal"}, expectedRevision=9)
    assert (stale["ok"], stale["reasonCode"], stale["patched"], stale["revision"]) == (False, "rev_conflict", False, 1)
    assert (await site.get())["phenomena"][0]["revision"] == 1


async def test_a_patch_is_checked_like_a_write(site: Site) -> None:
    await site.upsert()
    playbook = {"policy": "accept", "actions": [click("#yes", "reject")]}
    refused(await site.patch({"playbook": playbook}), "pks.polarity_mismatch")
    refused(await site.patch({}))
    for name in ("type", "fingerprint", "playbook", "deprecated"):
        assert name in refused(await site.patch({name: None}))
    refused(await site.patch({"deprecated": True}))
    refused(await site.patch({"level": 2}))


async def test_a_patch_needs_something_to_patch(site: Site) -> None:
    refused(await site.patch({"type": "modal"}), "pks.scope_not_found", -32004)
    await site.upsert()
    body = await site.patch({"type": "modal"}, "other")
    refused(body, "pks.phenomenon_not_found", -32004)
    assert body["availableIds"] == ["cmp"]


async def test_a_patch_brings_back_what_was_retired(site: Site) -> None:
    await site.upsert()
    await site.server.call("pks_deprecate", scope=site.scope, phenomenonId="cmp", reason="went away")
    kept = await site.patch({"context": {"device": "desktop"}})
    assert (kept["patched"], (await site.get())["counts"]["deprecated"]) == (True, 1)
    back = await site.patch({"deprecated": False})
    assert (back["patched"], back["level"], (await site.get())["counts"]["deprecated"]) == (True, 1, 0)


# -- pks_deprecate


async def test_an_active_entry_is_retired_only_on_evidence(site: Site) -> None:
    await site.upsert()
    await site.change("cmp", level=2)
    named = {"scope": site.scope, "phenomenonId": "cmp", "reason": "no longer there"}
    kept = await site.server.call("pks_deprecate", **named)
    assert (kept["ok"], kept["reasonCode"], kept["deprecated"]) == (False, "pks.evidence_required", False)
    now = site.server.clock.now_ms()
    await site.change("cmp", health=Health(last_drift_at_ms=now - 8 * DAY))
    assert (await site.server.call("pks_deprecate", **named))["reasonCode"] == "pks.evidence_required"
    await site.change("cmp", health=Health(last_drift_at_ms=now - 6 * DAY))
    assert (await site.server.call("pks_deprecate", **named))["deprecated"]
    assert not (await site.match())["matched"]


async def test_a_reason_has_three_to_five_hundred_characters(still: Site) -> None:
    for reason in ("", "no", "  x  ", "x" * 501):
        assert (
            "reason"
            in str(
                refused(await still.server.call("pks_deprecate", scope=still.scope, phenomenonId="p", reason=reason))
            )
            or not reason.strip()
        )
    body = await still.server.call("pks_deprecate", scope=still.scope, phenomenonId="p", reason="x" * 500)
    refused(body, "pks.scope_not_found", -32004)


# -- pks_upsert_hint


async def test_a_hint_is_stored_in_review(site: Site) -> None:
    hint = {"id": "items", "kind": "result_item", "mode": "item_root", "selectors": [".item", ".css-9z8y7x"]}
    told = await site.server.call("pks_upsert_hint", scope=site.scope, domainHint={**hint, "extract": {"title": "p"}})
    assert (told["action"], told["hintId"], told["kind"], told["level"]) == ("created", "items", "result_item", 1)
    assert told["selectorCount"] == 2
    assert any("css-9z8y7x" in one for one in told["warnings"])
    body = await site.get()
    assert (body["counts"]["hints"], body["domainHints"][0]["extract"]) == (1, {"title": "p"})
    assert (await site.match(observation={"signals": [dom("#cmp")]}))["domainHints"] == []


@pytest.mark.parametrize(
    ("hint", "reason"),
    [
        ({"kind": "noise_region", "selectors": ["*"]}, "pks.selector_too_broad"),
        ({"kind": "noise_region", "selectors": ["body"]}, "pks.selector_too_broad"),
        ({"kind": "noise_region", "selectors": ["#a[x='javascript:y()']"]}, "pks.script_content"),
        ({"kind": "noise_region", "selectors": [f"#{SECRET}"]}, "pks.secret_like"),
        ({"kind": "noise_region", "selectors": ["#a[["]}, "selector.invalid"),
        ({"kind": "noise_region", "selectors": ["#a"], "extract": {"t": "p"}}, "invalid_params"),
        ({"kind": "ads", "selectors": ["#a"]}, "invalid_params"),
        ({"kind": "noise_region", "selectors": ["#a"] * 11}, "invalid_params"),
        ({"kind": "noise_region", "selectors": ["#a"], "enumerateMax": 51}, "invalid_params"),
    ],
)
async def test_a_hint_hides_no_page_and_carries_nothing_else(still: Site, hint: dict[str, Any], reason: str) -> None:
    refused(await still.server.call("pks_upsert_hint", scope=still.scope, domainHint=hint), reason)
    await nothing_known(still)


# -- pks_get


async def test_what_is_known_is_told_in_short_or_in_full(site: Site) -> None:
    await site.upsert()
    short = await site.get()
    assert short.keys() >= GET_FIELDS
    assert (short["found"], short["scope"], short["trust"], short["contextMatch"]) == (True, site.scope, "low", True)
    assert short["counts"] == {"candidate": 0, "shadow": 1, "active": 0, "deprecated": 0, "hints": 0}
    (entry,) = short["phenomena"]
    assert set(entry) == ENTRY_FIELDS
    assert entry["health"].keys() >= HEALTH_FIELDS
    (full,) = (await site.get("cmp"))["phenomena"]
    assert set(full) == ENTRY_FIELDS | {"fingerprint", "playbook", "context", "unconfirmedSelectors"}
    action = full["playbook"]["actions"][0]
    assert action["elementPrint"]["source"] == "page"
    assert (await site.get("cmp", outputDetail="summary"))["phenomena"] == short["phenomena"]
    assert (await site.get(outputDetail="full"))["phenomena"] == [full]


async def test_an_unknown_id_is_told_with_the_known_ones(site: Site) -> None:
    await site.upsert()
    body = await site.get("other")
    assert (body["ok"], body["found"], body["availableIds"], body["phenomena"]) == (True, False, ["cmp"], [])
    nowhere = await site.server.call("pks_get", scope="nobody.example")
    assert (nowhere["found"], nowhere["trust"], nowhere["contentRev"]) == (False, "unknown", 0)


async def test_a_context_that_does_not_fit_is_told(site: Site) -> None:
    await site.upsert(consent(context={"device": "mobile", "locale": "de"}))
    body = await site.get("cmp", context={"device": "desktop", "locale": "de-AT"})
    assert (body["contextMatch"], body["mismatches"]) == (False, ["device"])


async def test_what_was_read_can_be_written_back(site: Site) -> None:
    await site.upsert()
    (full,) = (await site.get("cmp"))["phenomena"]
    entry = {key: full[key] for key in ("type", "fingerprint", "playbook", "context")}
    told = await site.upsert({"id": "cmp", **entry})
    assert told["action"] == "unchanged"
    assert any("elementPrint" in one for one in told["warnings"])


# -- pks_list


async def test_sites_are_listed_by_prefix_type_trust_and_health(site: Site) -> None:
    await site.upsert()
    (row,) = (await site.server.call("pks_list", prefix=site.scope))["scopes"]
    assert set(row) == {
        *("scope", "active", "shadow", "candidate", "deprecated", "avgSuccessRate30d", "types", "trust"),
        *("serviceCategories", "updatedAtUtc"),
    }
    assert (row["shadow"], row["types"], row["trust"], row["avgSuccessRate30d"]) == (1, ["consent_cmp"], "low", None)
    for wanted, count in (
        ({"type": "paywall"}, 0), ({"type": "consent_cmp"}, 1), ({"trust": "medium"}, 0), ({"trust": "low"}, 1),
        ({"minHealth": 0.0}, 0), ({"offset": 1}, 0),
    ):  # fmt: skip
        body = await site.server.call("pks_list", prefix=site.scope, **wanted)
        assert (body["count"], body["hasMore"]) == (count, False)


# -- pks_match


async def test_only_an_active_entry_matches(site: Site) -> None:
    await site.upsert()
    body = await site.match()
    assert set(body) == MATCH_FIELDS
    assert (body["matched"], body["phenomenonId"], body["topMatches"]) == (False, None, [])
    await site.change("cmp", level=2)
    found = await site.match()
    assert (found["matched"], found["phenomenonId"], found["phenomenonType"]) == (True, "cmp", "consent_cmp")
    assert (found["confidence"], found["minConfidence"], found["source"]) == (1.0, 0.6, "local")
    assert found["ranking"]["model"] == "weighted_v1"
    assert found["playbook"]["actions"][0]["selector"] == "#no"
    await site.change("cmp", deprecated_reason="gone")
    assert (await site.match())["topMatches"] == []


async def test_a_near_miss_is_told_as_such(site: Site) -> None:
    await site.upsert(
        consent(fingerprint={"signals": [dom("#cmp"), dom("#gone"), dom("#gone2")], "minConfidence": 0.6})
    )
    await site.change("cmp", level=2)
    body = await site.match()
    assert (body["matched"], body["phenomenonId"], body["playbook"]) == (False, "cmp", None)
    assert body["topMatches"][0]["matched"] is False
    assert round(body["confidence"], 2) == 0.33


async def test_signals_may_be_sent_instead(site: Site) -> None:
    await site.upsert()
    await site.change("cmp", level=2)
    sent = {"signals": [dom("#cmp"), {"kind": "text", "match": "WE USE  COOKIES"}]}
    await site.go("/plain")
    assert (await site.match(scope=site.scope, observation=sent))["matched"]
    assert not (await site.match(scope=site.scope))["matched"]
    assert not (await site.match(scope=site.scope, observation={**sent, "type": "modal"}))["matched"]


async def test_without_signals_and_page_there_is_nothing_to_match(site: Site) -> None:
    refused(await site.match(scope="nobody.example"), "signals_required")
    lost = await site.server.call("pks_match", agentId="nobody-here")
    refused(lost, "signals_required")
    sent = {"signals": [dom("#cmp")]}
    assert (await site.match(scope="nobody.example", observation=sent))["matched"] is False


def test_signals_without_a_site_ask_for_the_site() -> None:
    with pytest.raises(InvalidParams) as told:
        _scope(MatchParams.model_validate({"observation": {"signals": [{"kind": "dom", "match": "#b"}]}}), None)
    assert (told.value.reason_code, told.value.details) == ("invalid_params", {"argument": "scope"})


async def test_a_context_that_is_missed_rules_an_entry_out(site: Site) -> None:
    await site.upsert(consent(context={"device": "mobile", "routes": ["banner"]}))
    await site.change("cmp", level=2)
    assert (await site.match(context={"device": "mobile"}))["matched"]
    body = await site.match(context={"device": "desktop"})
    assert (body["matched"], body["contextMatch"], body["mismatches"]) == (False, False, ["device"])
    assert not (await site.match(context={"route": "/other"}))["matched"]


async def test_a_quarantined_entry_matches_with_a_warning(site: Site) -> None:
    await site.upsert()
    await site.change(
        "cmp", level=2, health=Health(consecutive_failures=3, failures=3, attempts=3, quarantined_at_ms=1)
    )
    body = await site.match()
    assert (body["matched"], body["health"]["state"]) == (True, "quarantined")
    assert any("quarantined" in one for one in body["warnings"])


# -- telemetry_report


async def test_a_report_without_a_call_behind_it_is_a_claim(site: Site) -> None:
    await site.upsert()
    told = await site.report("success", features={"notes": "it went away", "matchConfidence": 0.9})
    assert (told["recorded"], told["backed"], told["outcome"]) == (True, False, "success")
    kinds = await site.server.rows(observation, observation.c.context_host == site.scope)
    assert [(row["kind"], row["outcome"]) for row in kinds if row["kind"].startswith("tele")] == [
        ("telemetry_confirmed", 0)
    ]


async def test_a_report_is_backed_by_one_call_once(site: Site) -> None:
    await site.upsert()
    await site.press("#no", {"success": GONE})
    assert not (await site.report("failure"))["backed"]
    first = await site.report("success")
    assert (first["backed"], first["health"]["failures"]) == (True, 0)
    assert not (await site.report("success"))["backed"]
    kinds = await site.server.rows(observation, observation.c.context_host == site.scope)
    told = {(row["kind"], row["outcome"]) for row in kinds if row["kind"] == "telemetry_confirmed"}
    assert ("telemetry_confirmed", 1) in told
    assert (await site.get())["phenomena"][0]["level"] == 1


async def test_a_call_of_more_than_ten_minutes_ago_backs_nothing(site: Site) -> None:
    await site.upsert()
    await site.press("#no", {"success": GONE})
    spent = len(await site.server.rows(telemetry_backing))
    site.server.clock.shift_ms += 10 * MINUTE + 1000
    assert not (await site.report("success"))["backed"]
    assert len(await site.server.rows(telemetry_backing)) == spent


async def test_a_failure_that_a_call_shows_counts_against_the_entry(site: Site) -> None:
    await site.upsert(consent(click("#more", "manage")))
    clicked = await site.press("#more", {"success": GONE, "forbidden": BROKEN}, "failed")
    assert clicked["guardedCommit"]["verificationStatus"] == "verified_fail"
    assert not (await site.report("success"))["backed"]
    told = await site.report("failure")
    assert told["backed"]
    kinds = await site.server.rows(observation, observation.c.context_host == site.scope)
    assert [(row["outcome"], row["severity"]) for row in kinds if row["kind"] == "selector_drift"] == [(-1, 2)]


async def test_a_report_counts_where_its_call_was_made_wherever_the_tab_is_now(
    site: Site, server: Server, pages: Shop
) -> None:
    await site.upsert()
    await site.press("#no", {"success": GONE})
    other = Site.new(server, pages, site.tab)
    await other.go("/plain")
    assert (await site.report("success"))["backed"]
    kinds = await server.rows(observation, observation.c.kind == "telemetry_confirmed")
    assert kinds[-1]["context_host"] == site.scope


async def test_not_applicable_says_nothing(site: Site) -> None:
    await site.upsert()
    told = await site.report("not_applicable")
    assert (told["recorded"], told["backed"]) == (True, False)
    kinds = await site.server.rows(observation, observation.c.context_host == site.scope)
    assert [row["kind"] for row in kinds if row["kind"].startswith("tele")] == []


async def test_a_report_is_about_something_that_exists(site: Site) -> None:
    refused(await site.report("success"), "pks.scope_not_found", -32004)
    await site.upsert()
    refused(await site.report("success", "other"), "pks.phenomenon_not_found", -32004)
    refused(await site.report("maybe"))
    refused(await site.report("success", elapsedMs=-1))
    refused(await site.report("success", features={"notes": "x" * 501}))


# -- platforms


async def test_of_an_unknown_site_every_tool_says_the_same(site: Site) -> None:
    entry = {"scope": site.scope, "phenomenonId": "cmp"}
    asked: dict[str, dict[str, Any]] = {
        "explain": {"scope": site.scope, "stableId": "cmp"},
        "phenomenon_apply": {"targetId": site.tab, "phenomenonId": "cmp"},
        "pks_patch": {**entry, "patch": {"type": "modal"}},
        "pks_deprecate": {**entry, "reason": "It is gone."},
        "telemetry_report": {**entry, "outcome": "success"},
    }
    told = [await site.server.call(name, **given) for name, given in asked.items()]
    said = {refused(one, "pks.scope_not_found", -32004) for one in told}
    assert said == {f"Nothing is known of {site.scope}."}
    await site.upsert()
    for name in asked:
        given = {key: "nobody" if value == "cmp" else value for key, value in asked[name].items()}
        body = await site.server.call(name, **given)
        assert refused(body, "pks.phenomenon_not_found", -32004) == f'{site.scope} has no entry "nobody".'


async def test_an_entry_is_not_taken_with_a_number_that_no_answer_could_carry(site: Site) -> None:
    fact = {"type": "fact", "assertion": {"factKey": "page.title", "operator": "eq", "expected": [float("inf")]}}
    entry = consent()
    entry["playbook"]["verify"] = [fact]
    given = {"scope": site.scope, "phenomenon": entry}
    request = CallRequest("nova.pks_upsert", given, "local", None)
    told = await site.server.nova.call(request)
    assert told.structured["reasonCode"] == "invalid_params"
    assert (await site.get())["found"] is False


async def test_an_entry_is_not_taken_with_a_bottomless_print(site: Site) -> None:
    bomb: Any = 1
    for _ in range(220):
        bomb = {"a": bomb}
    told = refused(await site.upsert(consent(click("#no", "reject", elementPrint={"deep": bomb}))))
    assert told == "arguments are nested too deeply"
    assert (await site.get())["found"] is False


async def test_platforms_are_listed_and_read(server: Server) -> None:
    body = await server.call("pks_platform_list")
    assert body["count"] == len(body["platforms"]) >= 20
    assert set(body["platforms"][0]) == {
        "stableId", "displayName", "builtIn", "patternCount", "aliasCount", "lastSeenAtUtc"
    }  # fmt: skip
    one = await server.call("pks_platform_get", stableId="onetrust")
    assert (one["found"], one["platform"]["builtIn"]) == (True, True)
    assert {"kind": "script_host", "value": "cdn.cookielaw.org"} in one["platform"]["aliases"]
    assert await server.call("pks_platform_get", stableId="nobody") == {"ok": True, "found": False, "platform": None}


async def test_a_platform_is_added_to_and_guarded(server: Server) -> None:
    seed = {
        "stableId": "acme",
        "displayName": "Acme",
        "aliases": [{"kind": "script_host", "value": "CDN.acme.example"}],
    }
    told = await server.call("pks_platform_seed", **seed, patterns=[dom("#acme-banner")])
    assert told == {"ok": True, "stableId": "acme", "patternsUpserted": 1, "aliasesUpserted": 1}
    assert (await server.call("pks_platform_seed", **seed))["aliasesUpserted"] == 0
    (alias,) = (await server.call("pks_platform_get", stableId="acme"))["platform"]["aliases"]
    assert alias == {"kind": "script_host", "value": "cdn.acme.example"}
    refused(await server.call("pks_platform_seed", **{**seed, "stableId": "other"}), "pks.alias_taken", -32003)
    refused(await server.call("pks_platform_seed", **{**seed, "stableId": "onetrust"}), "pks.builtin_platform", -32035)
    taken = {**seed, "stableId": "thief", "aliases": [{"kind": "script_host", "value": "cdn.cookielaw.org"}]}
    refused(await server.call("pks_platform_seed", **taken), "pks.alias_taken", -32003)
    for change in (
        {"stableId": "A"}, {"stableId": "x"}, {"stableId": "a b"}, {"displayName": ""}, {"displayName": " "},
        {"aliases": []}, {"homepageUrl": "javascript:alert(1)"}, {"aliases": [{"kind": "x", "value": "y"}]},
    ):  # fmt: skip
        refused(await server.call("pks_platform_seed", **{**seed, "stableId": "fresh", **change}))
    broad = {**seed, "stableId": "fresh", "aliases": [{"kind": "dom_marker", "value": "div"}]}
    refused(await server.call("pks_platform_seed", **broad), "pks.selector_too_broad")


async def test_a_platform_met_on_a_new_site_leaves_a_candidate_and_nothing_more(
    server: Server, tab: str, pages: Shop
) -> None:
    site = Site.new(server, pages, tab)
    await site.go("/onetrust")
    assert not (await site.match())["matched"]
    body = await site.get()
    assert [(one["phenomenonId"], one["level"], one["mayGuide"]) for one in body["phenomena"]] == [
        ("cmp_onetrust", 0, False)
    ]
    assert not (await site.match())["matched"]
    assert (await site.get())["contentRev"] == body["contentRev"]
    seen = {one["stableId"]: one["lastSeenAtUtc"] for one in (await server.call("pks_platform_list"))["platforms"]}
    assert seen["onetrust"] is not None


# -- poisoning


async def test_words_of_a_page_stay_data_bounded_and_marked(server: Server, tab: str, pages: Shop) -> None:
    site = Site.new(server, pages, tab)
    await site.go("/orders")
    told = await site.upsert(consent(fingerprint={"signals": [dom("#cmp")]}))
    assert (told["action"], told["level"]) == ("created", 1)
    (full,) = (await site.get("cmp"))["phenomena"]
    element = full["playbook"]["actions"][0]["elementPrint"]
    assert element["source"] == "page"
    assert len(element.get("text", "")) <= 120
    assert "Ignore all previous" not in str(await site.get("cmp"))
    assert not full["mayGuide"]


async def test_a_page_that_an_agent_has_scripted_confirms_nothing(server: Server, tab: str, pages: Shop) -> None:
    site = Site.new(server, pages, tab)
    await site.go("/plain")
    planted = "document.body.insertAdjacentHTML('beforeend', '<div id=cmp><button id=no>Reject all</button></div>')"
    assert (await server.call("eval", targetId=tab, expression=planted)).get("ok")
    told = await site.upsert(consent(fingerprint={"signals": [dom("#cmp")]}))
    assert told["unconfirmedSelectors"] == ["#cmp", "#no"]


async def test_consent_by_another_name_is_consent_all_the_same(server: Server, tab: str, pages: Shop) -> None:
    site = Site.new(server, pages, tab)
    await site.go("/onetrust")
    entry = {
        "id": "sneaky",
        "type": "modal",
        "fingerprint": {"signals": [dom("#onetrust-banner-sdk")]},
        "playbook": {"policy": "dismiss", "actions": [click("#onetrust-accept-btn-handler")]},
    }
    refused(await site.upsert(entry), "pks.polarity_required")
    entry["playbook"] = {"policy": "dismiss", "actions": [click("#onetrust-accept-btn-handler", "reject")]}
    refused(await site.upsert(entry), "pks.polarity_mismatch")
    await nothing_known(site)


async def test_a_site_that_looks_like_another_is_another(server: Server, tab: str, site: Site, pages: Shop) -> None:
    """A look-alike name can be open at the same time, and still nothing of it gets into what it imitates."""
    await site.upsert()
    twin = Site.new(server, pages, await server.new_tab())
    twin.scope = site.scope.replace("k", "\u043a", 1)
    port = site.scope.rpartition(":")[2]
    await server.call("navigate", targetId=twin.tab, url=f"http://{twin.scope}/banner")
    told = await twin.upsert(consent(click("#shut", "noop")))
    assert (told["action"], told["scope"].startswith("xn--"), told["scope"].endswith(port)) == ("created", True, True)
    assert (await site.get())["phenomena"][0]["revision"] == 1
    await server.call("tab_close", targetId=twin.tab)


async def test_one_visit_raises_nothing_however_often_it_is_repeated(site: Site) -> None:
    for _ in range(8):
        await site.upsert()
        await site.report("success")
    (entry,) = (await site.get())["phenomena"]
    assert (entry["level"], entry["mayGuide"]) == (1, False)


async def test_refused_writes_change_nothing_and_are_on_record(site: Site) -> None:
    await site.upsert()
    (before,) = await site.server.rows(knowledge_scope, knowledge_scope.c.scope == site.scope)
    await site.patch({"type": "modal"}, expectedRevision=5)
    refused(await site.patch({"type": "modal"}, "nobody"), "pks.phenomenon_not_found", -32004)
    refused(await site.upsert(consent(click("#yes", "reject"))), "pks.polarity_mismatch")
    assert await site.server.rows(knowledge_scope, knowledge_scope.c.scope == site.scope) == [before]
    newest = records(site.server.data_dir)[-3:]
    assert [one.outcome.reason_code for one in newest] == [
        "rev_conflict", "pks.phenomenon_not_found", "pks.polarity_mismatch"
    ]  # fmt: skip
    assert [one.outcome.kind for one in newest] == ["ok", "failed", "invalid"]


# -- what a write answers


async def test_a_matching_write_answers_the_question_that_was_asked(site: Site) -> None:
    pressed = await site.press("#no", {"success": GONE})
    asked = pressed["pksSemanticLearning"]
    assert asked["kind"] == "consent_cmp"
    await site.go("/banner")
    told = (await site.upsert())["pksSemanticLearningResolution"]
    assert set(told) == {"status", "opportunityId", "verdict", "reason", "matchSource"}
    assert (told["status"], told["opportunityId"], told["verdict"]) == ("resolved", asked["opportunityId"], "upsert")
    assert told["matchSource"] in ("fingerprint", "selector")
    assert "pksSemanticLearningResolution" not in await site.upsert(consent(click("#shut", "noop")))


async def test_a_platform_met_while_its_layer_is_answered_leaves_a_candidate(
    server: Server, tab: str, pages: Shop
) -> None:
    site = Site.new(server, pages, tab)
    await site.go("/onetrust")
    gone = {"all": [{"factKey": "dom.#onetrust-banner-sdk", "operator": "not_exists"}]}
    await site.press("#onetrust-reject-all-handler", {"success": gone})
    entries = {one["phenomenonId"]: one["level"] for one in (await site.get())["phenomena"]}
    assert entries["cmp_onetrust"] == 0
