"""Looking and looking back as a client does it."""

import re
from urllib.parse import quote

import pytest
from tool_kit import tool_kit

from nova_mcp.core.tokens import estimate_tokens
from nova_mcp.tools.read.perceive import page_info, perceive
from nova_mcp.tools.read.snapshot import perceive_snapshot_query

pytestmark = pytest.mark.browser
ROWS = "".join(f"<li>Row {i} <a href='/r/{i}'>Open {i}</a></li>" for i in range(40))
PAGE = (
    "<header><nav><a href=/home>Home</a></nav></header><main><h1>List</h1><form><input aria-label=Filter name=filter>"
    f"</form><ul>{ROWS}</ul></main><footer><a href=/legal>Legal</a></footer>"
)


@pytest.fixture
async def kit(browser, caller, tmp_path):
    specs = (perceive, perceive_snapshot_query, page_info)
    async with tool_kit(tmp_path, browser, specs, caller.principal) as kit:
        yield kit


@pytest.fixture
async def seen(kit, tab, site):
    await tab.page.goto(site.url(f"html?title=Garden&body={quote(PAGE)}"))
    return await kit.call("perceive", targetId=tab.target_id, maxTokens=400)


async def ask(kit, seen, **arguments):
    return await kit.call("perceive_snapshot_query", perceptionId=seen["perceptionId"], **arguments)


async def test_a_snapshot_lists_everything_it_saw_page_by_page(kit, seen):
    first = await ask(kit, seen, op="elements", role="link", limit=30)
    rest = await ask(kit, seen, op="elements", role="link", offset=first["nextOffset"], limit=200, maxTokens=20_000)
    names = [line.split('"')[1] for line in (*first["items"], *rest["items"])]
    assert names == ["Home", *(f"Open {i}" for i in range(40)), "Legal"]
    assert (first["total"], first["returned"], "nextOffset" in rest) == (42, 30, False)
    refs = [line.split(" ")[0] for line in (*first["items"], *rest["items"])]
    assert len(set(refs)) == 42


async def test_a_snapshot_can_be_asked_by_region_outline_and_in_sum(kit, seen):
    regions = {
        region: [line.split('"')[1] for line in (await ask(kit, seen, op="elements", region=region)).get("items", [])]
        for region in ("nav", "footer", "aside", "form", "dialog")
    }
    assert regions == {"nav": ["Home"], "footer": ["Legal"], "aside": [], "form": ["Filter"], "dialog": []}
    assert 'h1 "List"' in (await ask(kit, seen, op="outline"))["items"]
    assert "42 link" in (await ask(kit, seen))["items"]


async def test_a_snapshot_is_searched_by_words_and_by_patterns(kit, seen):
    words = await ask(kit, seen, op="search", query="ROW 7")
    assert [line.split('"')[1] for line in words["items"]] == ["Open 7"]
    pattern = await ask(kit, seen, op="search", query=r"open (1|2)\b", match="regex")
    assert [line.split('"')[1] for line in pattern["items"]] == ["Open 1", "Open 2"]
    wrong = await ask(kit, seen, op="search", query="(", match="regex")
    assert (wrong["reasonCode"], wrong["errorCode"]) == ("invalid_params", -32602)
    missing = await ask(kit, seen, op="search")
    assert "op search needs query" in missing["message"]


async def test_a_pattern_without_end_is_ended(kit, tab, site):
    await tab.page.goto(site.url(f"html?body={quote('<button>' + 'a' * 60 + 'b</button>')}"))
    seen = await kit.call("perceive", targetId=tab.target_id)
    told = await ask(kit, seen, op="search", query="(a+)+$", match="regex")
    assert (told["reasonCode"], told["errorCode"]) == ("search.regex_timeout", -32003)


async def test_a_ref_is_read_in_full_with_every_way_to_name_it(kit, seen, tab):
    (line,) = (await ask(kit, seen, op="search", query="filter"))["items"]
    ref = line.split(" ")[0]
    told = (await ask(kit, seen, op="read_ref", ref=ref))["element"]
    assert (told["role"], told["name"], told["tag"], told["stillLive"]) == ("textbox", "Filter", "input", True)
    assert told["attributes"] == {"name": "filter", "type": "text"}
    kinds = {one["kind"]: (one["unique"], one["fragile"]) for one in told["selectorCandidates"]}
    assert kinds["aria"] == kinds["name"] == (True, False)
    assert kinds["positional"] == (True, True)
    await tab.page.evaluate("document.querySelector('input').remove()")
    gone = (await ask(kit, seen, op="read_ref", ref=ref))["element"]
    assert (gone["stillLive"], gone["name"]) == (False, "Filter")
    unknown = await ask(kit, seen, op="read_ref", ref="e99999")
    assert unknown["reasonCode"] == "ref.stale"


async def test_a_snapshot_of_nobody_or_of_somebody_else_is_expired(kit, seen, browser, tmp_path):
    gone = await kit.call("perceive_snapshot_query", perceptionId="tab_1.p999999")
    assert (gone["reasonCode"], gone["status"], gone["errorCode"]) == ("snapshot.expired", "not_found", -32004)
    (tmp_path / "other").mkdir()
    async with tool_kit(tmp_path / "other", browser, (perceive_snapshot_query,), "stranger") as stranger:
        theirs = await stranger.call("perceive_snapshot_query", perceptionId=seen["perceptionId"])
    assert theirs["reasonCode"] == "snapshot.expired"


async def test_perceive_answers_with_every_part_in_its_place(kit, tab, site):
    await tab.page.goto(site.url("social/login_password.html"))
    answer = await kit.answer("perceive", targetId=tab.target_id, mode="form_analysis", resolveRefs=["e1"])
    told = answer.structured
    assert (told["okHints"]["firstVisit"], told["goalContext"], told["auth"]["stage"]) == (True, None, "login_wall")
    assert told["budget"] == {"maxTokens": 1200, "estTokens": estimate_tokens(answer.text)}
    control = told["forms"][0]["controls"][0]
    assert {"ref", "label", "type", "required", "invalid", "preferredTool", "autocomplete"} <= control.keys()
    assert told["resolved"][0]["ref"] == "e1"
    wrong = await kit.call("perceive", targetId=tab.target_id, mode="everything")
    assert wrong["reasonCode"] == "invalid_params"
    assert "summary | state | ctas | form_analysis | modals | full" in wrong["message"].replace('"', "")


async def test_scope_takes_a_selector_or_a_ref_and_a_picture_rides_along(kit, tab, site):
    await tab.page.goto(
        site.url(f"html?body={quote('<div id=a tabindex=0 role=button><button>In</button></div><button>Out')}")
    )
    whole = await kit.call("perceive", targetId=tab.target_id)
    ref = next(line.split(" ")[0] for line in whole["elements"] if "#a" in line)
    for scope in ("#a", ref):
        told = await kit.answer("perceive", targetId=tab.target_id, scope=scope, includeScreenshot=True)
        assert '"In"' in " ".join(told.structured["elements"])
        assert '"Out"' not in " ".join(told.structured["elements"])
        assert told.structured["screenshot"]["mimeType"] == "image/jpeg"
        assert len(told.images) == 1


async def test_page_info_is_short_and_tells_dialogs_sign_in_and_scripting(kit, tab, site):
    await tab.page.goto(site.url("social/login_password.html"))
    await tab.page.evaluate(
        "document.body.insertAdjacentHTML('beforeend', `<dialog open aria-label='${'Long '.repeat(40)}'>x</dialog>`)"
    )
    answer = await kit.answer("page_info", targetId=tab.target_id)
    told = answer.structured
    assert (told["auth"]["stage"], len(told["dialogs"]), "agentScripted" in told) == ("login_wall", 1, False)
    assert "perceivedRev" not in told
    assert estimate_tokens(answer.text) <= 200
    assert re.search(r"viewport \d+×\d+", answer.text)
    tab.scripted_epoch = tab.page_epoch
    await kit.call("perceive", targetId=tab.target_id)
    told = await kit.call("page_info", targetId=tab.target_id)
    assert (told["agentScripted"], told["perceivedRev"]) == (True, told["rev"])
    tab.scripted_epoch = None
