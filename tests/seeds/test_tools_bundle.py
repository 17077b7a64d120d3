"""tools_bundle through a real client: every lookup, what it shows by default, and what it refuses."""

from typing import Any

import pytest
from loop_kit import Server
from place_kit import failed

from nova_mcp.tools.catalogue import BUNDLES, load_catalogue

SETTINGS = {"tools": "core"}
CATALOGUE = load_catalogue()
CORE = sorted(spec.canonical for spec in CATALOGUE.bundle("core"))


async def looked_up(server: Server, **arguments: Any) -> dict[str, Any]:
    body = await server.call("tools_bundle", **arguments)
    assert body["ok"], body
    assert body["toolNames"] == [one["name"] for one in body["tools"]]
    return body


async def test_without_an_argument_it_shows_browser_automation_and_the_catalogue(server: Server) -> None:
    body = await looked_up(server)
    assert (body["lookup"], body["resolvedBundle"]) == ("bundle", "browser_automation")
    assert body["description"] == BUNDLES["browser_automation"]
    assert body["availableCount"] == body["requestedCount"] == len(body["tools"])
    assert (body["hasMore"], body["partialMatch"]) == (False, False)
    assert body["knownBundles"] == list(BUNDLES)
    assert body["bundleCatalog"] == [
        {"bundle": name, "description": text, "toolCount": len(CATALOGUE.bundle(name))}
        for name, text in BUNDLES.items()
    ]
    assert all("inputSchema" not in one and "description" not in one for one in body["tools"])


async def test_core_is_what_the_list_shows(server: Server) -> None:
    listed = await server.client.list_tools()
    assert sorted(one.name for one in listed.tools) == CORE
    body = await looked_up(server, bundle="core")
    assert (sorted(body["toolNames"]), body["listed"]) == (CORE, True)
    assert (await looked_up(server, bundle="notes"))["listed"] is False


@pytest.mark.parametrize("name", ["nova.tab_claim", "tab_claim", "nova_tab_claim", "mcp__nova__tab_claim"])
async def test_a_tool_is_found_under_every_spelling_with_its_schema(server: Server, name: str) -> None:
    body = await looked_up(server, toolName=name)
    (one,) = body["tools"]
    assert (one["name"], one["available"]) == ("nova.tab_claim", True)
    assert "reclaimReason" in one["inputSchema"]["properties"]
    assert "outputSchema" not in one
    assert (body["lookup"], body["resolvedBundle"], body["requestedCount"]) == ("toolName", None, 1)


async def test_descriptions_and_schemas_come_when_asked_for(server: Server) -> None:
    (one,) = (await looked_up(server, toolName="eval", includeInputSchema=False, includeDescriptions=True))["tools"]
    assert "inputSchema" not in one
    assert one["description"]
    shown = (await looked_up(server, bundle="sandboxes", includeInputSchema=True))["tools"]
    assert all("inputSchema" in tool and "description" not in tool for tool in shown)


async def test_tools_that_are_switched_off_are_shown_as_such_or_left_out(server: Server) -> None:
    (one,) = (await looked_up(server, toolName="eval"))["tools"]
    assert one["available"] is False
    body = await looked_up(server, bundle="page_reading")
    assert body["availableCount"] == body["requestedCount"] - 1
    assert "nova.eval" not in (await looked_up(server, bundle="page_reading", includeUnavailable=False))["toolNames"]


async def test_a_query_ranks_and_cuts(server: Server) -> None:
    body = await looked_up(server, query="tab claim")
    assert (body["lookup"], body["toolNames"][0], body["partialMatch"]) == ("query", "nova.tab_claim", False)
    cut = await looked_up(server, query="tab", maxResults=2)
    assert (len(cut["tools"]), cut["hasMore"]) == (2, True)
    assert cut["requestedCount"] > 2
    partial = await looked_up(server, query="screenshot xyzzy")
    assert (partial["partialMatch"], partial["toolNames"][0]) == (True, "nova.capture_screenshot")
    nothing = await looked_up(server, query="xyzzy")
    assert (nothing["tools"], nothing["partialMatch"]) == ([], False)


async def test_maxresults_cuts_queries_only(server: Server) -> None:
    assert len((await looked_up(server, bundle="core", maxResults=1))["tools"]) == len(CORE)


async def test_the_catalogue_can_be_left_out(server: Server) -> None:
    body = await looked_up(server, includeCatalog=False)
    assert "bundleCatalog" not in body
    assert body["knownBundles"]


async def test_one_lookup_at_a_time(server: Server) -> None:
    for given in (
        {"bundle": "core", "toolName": "eval"},
        {"toolName": "eval", "query": "x"},
        {"bundle": "core", "toolName": "eval", "query": "x"},
    ):
        failed(await server.call("tools_bundle", **given), reason="conflicting_lookup")


async def test_what_is_unknown_comes_with_what_is_known(server: Server) -> None:
    body = failed(await server.call("tools_bundle", bundle="nothing"), reason="unknown_bundle")
    assert body["knownBundles"] == list(BUNDLES)
    body = failed(await server.call("tools_bundle", toolName="nova.clik_selector"), reason="unknown_tool")
    assert body["closest"][0] == "nova.click_selector"
    assert len(body["closest"]) <= 5


async def test_an_empty_query_is_refused(server: Server) -> None:
    failed(await server.call("tools_bundle", query="   "))
    assert (await server.call("tools_bundle", query=f" {'x' * 200} "))["ok"]


async def test_whatever_is_shown_can_be_called_through_the_door(server: Server) -> None:
    inner = {"tool": "task_match", "args": {"taskDescription": "check the prices"}}
    answer = await server.client.call_tool("nova.call", inner)
    assert answer.structured_content is not None
    assert answer.structured_content["ok"]
