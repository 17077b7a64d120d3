"""Registered scans on real pages: what they take in, when they are believed, and what they cover."""

from collections.abc import Iterator
from typing import Any

import anyio
import pytest
from coverage_kit import BUILD, SPELLING, TEXT, Site, Work, site
from loop_kit import Server
from sqlalchemy import select

from nova_mcp.memory.tasks.tables import coverage_observation, site_url, visit_window

pytestmark = pytest.mark.browser
SETTINGS = {"enable_eval": True}

LONG = " ".join(f"word{number}" for number in range(60))
PLAIN = f"""<!doctype html><html lang=en><title>Plain</title><header><h1>Shop</h1><nav aria-label="Main menu">
<a href="/next">Next</a> <a href="https://elsewhere.example/">Away</a></nav></header><main><p>{LONG}</p>
<img src=x alt="A red kettle" width=20 height=20><form><label for=who>Your name</label>
<input id=who placeholder="Jane Doe" value="secret value"></form><p lang=de>Guten Tag</p></main>
<p style="display:none">out of sight</p><p style="position:absolute;left:-9999px">{LONG}</p>
<footer>End</footer></html>"""
FRAMES = f"""<!doctype html><title>Frames</title><p>Outside {LONG}</p>
<iframe src="/inner" width=300 height=200></iframe>
<iframe src="http://other.localhost:PORT/inner" width=300 height=200></iframe>"""
SHADOW = f"""<!doctype html><title>Shadow</title><p>Light</p><div id=host><b slot=s>Slotted text</b>Unslotted text</div>
<script>host.attachShadow({{mode: "open"}}).innerHTML = "<p>Deep {LONG}</p><slot name=s>fallback</slot>"</script>"""
GROWING = """<!doctype html><title>Growing</title><p id=p>Start</p>
<script>setInterval(() => { p.textContent += " and more and more and more and more" }, 50)</script>"""
LATE = f"""<!doctype html><title>Late</title><p id=p>Wait</p>
<script>setTimeout(() => {{ p.textContent = "{LONG}" }}, 300)</script>"""
HOSTILE = f"""<!doctype html><title>Hostile</title><p>{LONG}</p><form id=trap>
<input name=firstChild><input name=nextSibling><input name=nodeType></form><script>
String.prototype.replace = () => "x".repeat(5000); Array.prototype.push = function () {{ throw 1 }};
Element.prototype.getAttribute = () => {{ throw 1 }}; Node.prototype.__proto__ = null;
Object.defineProperty(Node.prototype, "firstChild", {{ get() {{ throw 1 }} }});
Object.defineProperty(CharacterData.prototype, "data", {{ get: () => "forged" }});
window.getComputedStyle = () => {{ throw 1 }}; performance.now = () => 1e12; performance.getEntriesByType = () => [];
</script>"""
TABLE = "<table><tr><th>Kettle<th>Price<tr><td>Red<td>20</table>"
PIECES = "<!doctype html><title>Long</title>" + "".join(f"<p>Paragraph {n} {LONG}</p>" for n in range(10))


@pytest.fixture(scope="module")
def web() -> Iterator[Site]:
    with site() as running:
        running.pages.update(
            {
                "/plain": PLAIN,
                "/inner": f"<!doctype html><p>Inside {LONG}</p>",
                "/frames": FRAMES.replace("PORT", str(running.port)),
                "/shadow": SHADOW,
                "/growing": GROWING,
                "/late": LATE,
                "/hostile": HOSTILE,
                "/pieces": PIECES,
                "/missing": f"<!doctype html><title>404</title><p>{LONG}</p>",
                "/empty": "<!doctype html><title>Empty</title><p></p>",
                "/login": f"<!doctype html><title>Log in</title><p>{LONG}</p>",
            }
        )
        running.statuses["/missing"] = 404
        yield running


def evidence(told: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    found = told["coverageEvidence"]
    return found["document"], found["extraction"], found["trust"]


async def scanned(server: Server, tab: str, url: str, scan_id: str = TEXT, **arguments: Any) -> tuple[Work, dict]:
    work = await Work.on(server, tab, url)
    await work.go(url)
    return work, await work.scan(scan_id, **arguments)


async def test_every_field_of_the_answer(server: Server, tab: str, web: Site) -> None:
    work, told = await scanned(server, tab, web.url("/plain"))
    assert set(told) == {
        "ok",
        "targetId",
        "urlBefore",
        "urlAfter",
        "coverageEvidence",
        "text",
        "textTruncated",
        "credited",
    }
    found = told["coverageEvidence"]
    document, extraction, trust = evidence(told)
    assert {key: found[key] for key in ("version", "producer", "registeredScanId")} == {
        "version": 1,
        "producer": "nova_registered_scan",
        "registeredScanId": TEXT,
    }
    assert found["scanHash"].startswith("sha256:")
    assert set(document) == {
        *("effectiveUrl", "httpStatus", "visibleTextCharsMeasured", "nodeCount", "iframeCount", "opaqueFrames"),
        *("shadowRootCount", "hydration"),
    }
    assert (document["effectiveUrl"], document["httpStatus"]) == (web.url("/plain"), 200)
    assert document["hydration"] == "stable"
    assert set(extraction) == {
        *("textChars", "textCoverageRatio", "includedVisibleText", "includedAriaLabels", "includedInputs"),
        *("includedAltText", "includedShadowDom", "includedIframes", "domSkeleton"),
    }
    assert extraction["textCoverageRatio"] == 1.0
    assert extraction["textChars"] == document["visibleTextCharsMeasured"]
    assert trust == {"trusted": True, "reason": "server_registered_scan"}
    assert told["credited"] == [
        {
            "instanceId": work.run,
            "unitKey": work.keys[0],
            "eligible": True,
            "reasonCode": "ok",
            "remaining": 0,
            "nextUrl": None,
        }
    ]


async def test_the_text_has_all_four_channels_and_no_field_value(server: Server, tab: str, web: Site) -> None:
    _, told = await scanned(server, tab, web.url("/plain"))
    for said in ("Shop", LONG, "[aria] Main menu", "[input] Your name", "[input] Jane Doe", "[alt] A red kettle"):
        assert said in told["text"]
    assert told["text"].count("word59") == 1
    assert "secret value" not in told["text"]
    assert "out of sight" not in told["text"]


async def test_the_spelling_scan_names_languages_and_counts_what_is_hidden(server: Server, tab: str, web: Site) -> None:
    _, told = await scanned(server, tab, web.url("/plain"), SPELLING)
    assert "[de] Guten Tag" in told["text"]
    assert "[en] Shop" in told["text"]
    assert "[en alt] A red kettle" in told["text"]
    assert told["coverageEvidence"]["extraction"]["hiddenText"]["elements"] >= 2


async def test_the_structure_scan_takes_no_text(server: Server, tab: str, web: Site) -> None:
    work = await Work.on(server, tab, web.url("/plain"), task_kind="ui_smoke")
    await work.go(web.url("/plain"))
    told = await work.scan(BUILD)
    _, extraction, _ = evidence(told)
    skeleton = extraction["domSkeleton"]
    assert skeleton["tagOrder"] == ["header", "nav", "main", "footer"]
    assert skeleton["landmarks"] == ["banner", "navigation", "main", "contentinfo"]
    assert skeleton["counts"] == {"button": 0, "input": 1, "link": 2, "form": 1, "heading": 1, "modalLike": 0}
    assert (told["text"], extraction["textChars"], extraction["textCoverageRatio"]) == ("", 0, None)
    assert told["credited"][0]["reasonCode"] == "ok"


async def test_a_run_that_reads_everything_takes_no_structure_scan(server: Server, tab: str, web: Site) -> None:
    work, told = await scanned(server, tab, web.url("/plain"), BUILD)
    assert told["credited"][0]["reasonCode"] == "scan_not_accepted_for_kind"
    assert (await work.unit()).covered_by_observation_id is None


async def test_text_is_cut_where_the_caller_has_enough(server: Server, tab: str, web: Site) -> None:
    _, told = await scanned(server, tab, web.url("/plain"), maxTextChars=10)
    assert (len(told["text"]), told["textTruncated"]) == (10, True)
    assert told["credited"][0]["eligible"] is True
    work = await Work.on(server, tab, web.url("/plain"))
    assert (await work.scan(maxTextChars=0))["text"] == ""


async def test_frames_of_the_same_origin_are_read_and_others_counted(server: Server, tab: str, web: Site) -> None:
    work, told = await scanned(server, tab, web.url("/frames"))
    document, extraction, _ = evidence(told)
    assert (document["iframeCount"], document["opaqueFrames"]) == (2, 1)
    assert told["text"].count("Inside") == 1
    assert extraction["textCoverageRatio"] == 1.0
    without = await work.scan(scopeOptions={"includeIframes": False})
    assert "Inside" not in without["text"]
    assert without["credited"][0]["reasonCode"] == "iframes_not_included"


async def test_shadow_trees_are_read_unless_the_caller_leaves_them_out(server: Server, tab: str, web: Site) -> None:
    work, told = await scanned(server, tab, web.url("/shadow"))
    document, extraction, _ = evidence(told)
    assert document["shadowRootCount"] == 1
    assert "Deep" in told["text"]
    assert "Slotted text" in told["text"]
    assert "Unslotted" not in told["text"]
    assert "fallback" not in told["text"]
    assert extraction["textCoverageRatio"] == 1.0
    without = await work.scan(scopeOptions={"includeShadowDom": False})
    assert "Deep" not in without["text"]
    assert "Slotted text" in without["text"]
    assert without["credited"][0]["reasonCode"] == "text_coverage_below_0_85"


async def test_a_page_that_never_settles_is_unstable(server: Server, tab: str, web: Site) -> None:
    work, told = await scanned(server, tab, web.url("/growing"), scopeOptions={"hydrationTimeoutMs": 600})
    assert evidence(told)[0]["hydration"] == "unstable"
    assert told["credited"][0]["reasonCode"] == "hydration_unstable"
    assert (await work.unit()).covered_by_observation_id is None


async def test_a_page_that_fills_late_is_waited_for(server: Server, tab: str, web: Site) -> None:
    _, told = await scanned(server, tab, web.url("/late"))
    assert LONG in told["text"]
    assert told["credited"][0]["eligible"] is True


async def test_without_waiting_hydration_is_unchecked(server: Server, tab: str, web: Site) -> None:
    _, told = await scanned(server, tab, web.url("/plain"), scopeOptions={"waitForHydration": False})
    assert evidence(told)[0]["hydration"] == "unchecked"
    assert told["credited"][0]["reasonCode"] == "hydration_unchecked"


async def test_an_error_page_covers_nothing(server: Server, tab: str, web: Site) -> None:
    work, told = await scanned(server, tab, web.url("/missing"))
    assert evidence(told)[0]["httpStatus"] == 404
    assert told["credited"][0]["reasonCode"] == "error_page"
    server.clock.shift_ms += 5_000
    await work.call("page_info")
    assert await work.grade() == ("weak", "error_page")


async def test_a_document_that_an_agent_scripted_covers_nothing(server: Server, tab: str, web: Site) -> None:
    work = await Work.on(server, tab, web.url("/plain"))
    await work.go(web.url("/plain"))
    assert (await work.call("eval", expression="document.title = 'mine'"))["ok"] is True
    told = await work.scan()
    assert told["coverageEvidence"]["trust"]["trusted"] is True
    assert told["credited"][0]["reasonCode"] == "agent_scripted"
    await work.go(web.url("/plain"))
    assert (await work.scan())["credited"][0]["reasonCode"] == "ok"


async def test_an_empty_page_has_nothing_to_measure(server: Server, tab: str, web: Site) -> None:
    _, told = await scanned(server, tab, web.url("/empty"))
    assert told["credited"][0]["reasonCode"] == "no_measurable_text"
    assert evidence(told)[1]["textCoverageRatio"] is None


async def test_a_hostile_page_can_neither_forge_nor_stop_a_scan(server: Server, tab: str, web: Site) -> None:
    _, told = await scanned(server, tab, web.url("/hostile"))
    assert LONG in told["text"]
    assert "forged" not in told["text"]
    document, extraction, trust = evidence(told)
    assert trust["trusted"] is True
    assert document["httpStatus"] == 200
    assert extraction["textCoverageRatio"] == 1.0


async def test_a_page_that_moves_on_during_the_scan_is_not_believed(server: Server, tab: str, web: Site) -> None:
    moving = "<script>let n = 0; setInterval(() => history.pushState(0, '', `/moved${n++}`), 50)</script></main>"
    web.pages["/moving"] = PLAIN.replace("</main>", moving)
    _, told = await scanned(server, tab, web.url("/moving"))
    assert evidence(told)[2] == {"trusted": False, "reason": "effective_url_mismatch"}
    assert told["urlBefore"] != told["urlAfter"]
    assert told["ok"] is True


async def test_an_unknown_scan_names_the_known_ones(server: Server, tab: str, web: Site) -> None:
    work = await Work.on(server, tab, web.url("/plain"))
    told = await work.scan("nova_guess_v1")
    assert (told["errorCode"], told["reasonCode"]) == (-32602, "unknown_scan")
    assert told["knownScanIds"] == [TEXT, SPELLING, BUILD]


async def test_a_page_that_is_no_unit_is_beyond_the_scope(server: Server, tab: str, web: Site) -> None:
    work = await Work.on(server, tab, web.url("/other"))
    await work.go(web.url("/plain"))
    (credit,) = (await work.scan())["credited"]
    assert credit == {
        "instanceId": work.run,
        "unitKey": None,
        "eligible": False,
        "reasonCode": "extra_scope_url",
        "remaining": 1,
        "nextUrl": web.url("/other"),
    }


async def test_an_excluded_unit_gets_no_credit(server: Server, tab: str, web: Site) -> None:
    work = await Work.on(server, tab, web.url("/plain"))
    await work.exclude()
    await work.go(web.url("/plain"))
    assert (await work.scan())["credited"][0]["reasonCode"] == "unit_excluded"
    assert (await work.unit()).covered_by_observation_id is None


async def test_a_unit_is_covered_once_and_stays_covered(server: Server, tab: str, web: Site) -> None:
    work, _ = await scanned(server, tab, web.url("/plain"))
    first = (await work.unit()).covered_by_observation_id
    await work.scan()
    await work.scan(scopeOptions={"waitForHydration": False})
    row = await work.unit()
    assert (row.covered_by_observation_id, row.covered_by_scan_id) == (first, TEXT)


async def test_overlapping_runs_share_a_scan_and_strangers_get_nothing(server: Server, tab: str, web: Site) -> None:
    stranger = await Work.on(server, tab, web.url("/plain"), agent="stranger")
    first = await Work.on(server, tab, web.url("/plain"))
    second = await Work.on(server, tab, web.url("/plain"), beside=True)
    await first.go(web.url("/plain"))
    told = await first.scan()
    assert sorted(credit["instanceId"] for credit in told["credited"]) == sorted([first.run, second.run])
    covered = [(await work.unit()).covered_by_observation_id for work in (first, second, stranger)]
    assert covered[0] == covered[1] is not None
    assert covered[2] is None
    assert await stranger.grade() == ("none", "no_matching_observation")


async def test_links_of_the_same_site_become_known_addresses(server: Server, tab: str, web: Site) -> None:
    await scanned(server, tab, web.url("/plain"))
    known = {row["url"]: row["source"] for row in await server.rows(site_url)}
    assert known[web.url("/next")] == "link"
    assert known[web.url("/plain")] == "visited"
    assert web.url("/missing") not in known
    assert not any("elsewhere" in url for url in known)


async def test_a_redirect_that_changes_only_spelling_leads_to_the_unit(server: Server, tab: str, web: Site) -> None:
    asked, there = web.url("/plain", "www.a.localhost"), web.url("/plain", "a.localhost")
    web.redirects[asked] = there
    work = await Work.on(server, tab, asked)
    await work.go(asked)
    assert (await work.scan())["credited"][0]["unitKey"] == work.keys[0]
    assert (await work.unit()).covered_by_observation_id is not None


async def test_any_other_redirect_earns_nothing(server: Server, tab: str, web: Site) -> None:
    asked = web.url("/account", "a.localhost")
    web.redirects[asked] = web.url("/login", "a.localhost")
    work = await Work.on(server, tab, asked)
    await work.go(asked)
    assert (await work.scan())["credited"][0]["reasonCode"] == "extra_scope_url"
    assert await work.grade() == ("none", "no_matching_observation")


async def test_a_whole_page_read_covers_like_a_text_scan(server: Server, tab: str, web: Site) -> None:
    work = await Work.on(server, tab, web.url("/pieces"))
    await work.go(web.url("/pieces"))
    assert "taskHints" not in await work.call("read_text", scope="page", maxChars=20_000)
    row = await work.unit()
    assert row.covered_by_scan_id == TEXT
    (kept,) = await server.rows(
        coverage_observation, coverage_observation.c.observation_id == row.covered_by_observation_id
    )
    assert (kept["trusted"], kept["trust_reason"]) == (True, "server_registered_scan")


async def test_a_page_read_in_pieces_is_covered_with_the_last_one(server: Server, tab: str, web: Site) -> None:
    work = await Work.on(server, tab, web.url("/pieces"))
    await work.go(web.url("/pieces"))
    told = await work.call("read_text", scope="page", maxChars=2_000)
    assert (await work.unit()).covered_by_observation_id is None
    while token := told.get("continuationToken"):
        assert (await work.unit()).covered_by_observation_id is None
        told = await work.call("read_text", maxChars=2_000, continuationToken=token)
    assert (await work.unit()).covered_by_scan_id == TEXT


async def test_a_read_with_a_gap_or_of_hidden_text_covers_nothing(server: Server, tab: str, web: Site) -> None:
    work = await Work.on(server, tab, web.url("/pieces"))
    await work.go(web.url("/pieces"))
    await work.call("read_text", scope="page", maxChars=1_000)
    await work.call("read_text", scope="page", maxChars=20_000, offset=1_001)
    await work.call("read_text", scope="page", maxChars=20_000, includeHidden=True)
    await work.call("read_text", selector="body", maxChars=20_000)
    assert (await work.unit()).covered_by_observation_id is None


async def test_reading_an_uncovered_unit_recommends_a_scan_once(server: Server, tab: str, web: Site) -> None:
    work = await Work.on(server, tab, web.url("/plain"), web.url("/late"), task_kind="legal")
    await work.go(web.url("/plain"))
    assert "taskHints" not in await work.call("perceive", mode="state")
    told = await work.call("perceive", mode="summary")
    assert told["taskHints"] == {
        "coverageScanRecommended": {"instanceId": work.run, "unitKey": work.keys[0], "scanId": SPELLING}
    }
    await work.go(web.url("/late"))
    assert "taskHints" not in await work.call("perceive", mode="summary")


@pytest.mark.parametrize("traits", [{"coverage_mode": "threshold"}, {"unit_kind": "item"}])
async def test_no_scan_is_recommended_where_nothing_has_to_be_covered(
    server: Server, tab: str, web: Site, traits: dict[str, str]
) -> None:
    work = await Work.on(server, tab, web.url("/plain"), **traits)
    await work.go(web.url("/plain"))
    assert "taskHints" not in await work.call("perceive", mode="summary")


async def test_a_read_on_a_page_that_stays_is_strong(server: Server, tab: str, web: Site) -> None:
    web.pages["/fresh"] = PLAIN
    work = await Work.on(server, tab, web.url("/fresh"))
    await work.go(web.url("/fresh"))
    assert await work.grade() == ("weak", "no_read")
    await work.call("perceive", mode="summary")
    server.clock.shift_ms += 2_000
    await work.call("page_info")
    assert await work.grade() == ("strong", None)


async def test_scans_are_the_callers_whoever_claims_the_tab(server: Server, web: Site) -> None:
    opened = await server.call("tab_new", agentId="holder", url=web.url("/plain"), claim=True)
    work = await Work.on(server, opened["targetId"], web.url("/plain"), agent="visitor")
    assert (await work.scan())["credited"][0]["eligible"] is True
    rows = await server.nova._db.read(
        lambda conn: conn.execute(
            select(coverage_observation.c.agent_id).where(coverage_observation.c.agent_id == work.agent)
        ).all()
    )
    assert len(rows) == 1


async def test_a_page_that_leaves_by_itself_gets_no_more_time_than_it_stood(
    server: Server, tab: str, web: Site
) -> None:
    web.pages["/leaves"] = "<!doctype html><p>Soon gone</p>"
    work = await Work.on(server, tab, web.url("/leaves"))
    await work.go(web.url("/leaves"))
    gone = anyio.Event()
    silence = server.tab(tab).channel.on_document(lambda _: gone.set())
    await work.call("eval", expression="setTimeout(() => { location = '/inner' }, 200), 1")
    with anyio.fail_after(20):
        await gone.wait()
    silence()
    server.clock.shift_ms += 9_000
    await work.call("page_info")
    windows = await server.rows(visit_window, visit_window.c.url_hash == work.keys[0].removeprefix("url:"))
    assert all(one["settled"] for one in windows)
    assert windows[-1]["stayed_ms"] < 2_500


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("perceive", {"mode": "summary"}),
        ("read_text", {}),
        ("read_text", {"selector": "p"}),
        ("search_text", {"text": "word59"}),
        ("extract_table", {}),
    ],
)
async def test_an_error_page_that_came_unheard_is_known_by_its_own_word(
    server: Server, tab: str, web: Site, tool: str, arguments: dict[str, Any]
) -> None:
    web.pages["/later"] = "<!doctype html><p>Now</p><script>setTimeout(() => location = '/lost', 300)</script>"
    web.pages["/lost"], web.statuses["/lost"] = web.pages["/missing"] + TABLE, 404
    work = await Work.on(server, tab, web.url("/lost"))
    await work.go(web.url("/later"))
    assert (await work.call("wait_for_selector", selector="text=word59"))["ok"] is True
    server.tab(tab).http_status = None
    assert (await work.call(tool, **arguments))["ok"] is True
    assert server.tab(tab).http_status == 404
    server.clock.shift_ms += 2_000
    await work.go(web.url("/plain"))
    assert await work.grade() == ("weak", "error_page")


async def test_an_answer_without_a_document_says_nothing_of_the_next_page(server: Server, tab: str, web: Site) -> None:
    web.pages["/nothing"], web.statuses["/nothing"] = "", 204
    leaves = "setTimeout(() => location = '/lost', 1500)"
    web.pages["/fork"] = f"""<!doctype html><a href=/nothing onclick="{leaves}">Nothing, then an error</a>"""
    web.pages["/lost"], web.statuses["/lost"] = web.pages["/missing"], 404
    work = await Work.on(server, tab, web.url("/lost"))
    await work.go(web.url("/fork"))
    assert (await work.call("click_selector", selector="a"))["actionDispatched"] is True
    await server.tab(tab).page.wait_for_url(web.url("/lost"))
    told = await work.scan()
    assert told["coverageEvidence"]["document"]["httpStatus"] == 404
    assert [one["reasonCode"] for one in told["credited"]] == ["error_page"]
