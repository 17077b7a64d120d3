"""An audit of forty pages: refused while a page is unproven, accepted once all are, and nothing is lost to a kill."""

import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest
from coverage_kit import TEXT, Site, site
from etm_kit import Run, ad_hoc, condition
from loop_kit import Server
from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters, stdio_client

pytestmark = pytest.mark.browser
SETTINGS = {"enable_eval": True}

PATHS = tuple(f"/page{number:02}" for number in range(40))
ACCOUNT, GONE, SCRIPTED = PATHS[37:]
ONLY_OPENED = PATHS[:4]
# A server that is killed is asked for fewer pages: what counts is what it leaves behind.
SECTION = PATHS[:16]
LANES = 4
GONE_WITHIN_S = 20.0
# Beyond the dwell that makes a read strong proof.
LONG_ENOUGH_MS = 1_500


@pytest.fixture(scope="module")
def web() -> Iterator[Site]:
    """Forty pages; one asks to log in, one is gone."""
    with site() as running:
        for number, path in enumerate(PATHS):
            words = " ".join(f"line{number}word{count}" for count in range(30))
            running.pages[path] = f"<!doctype html><html lang=en><title>{path}</title><main><h1>{path}</h1><p>{words}"
        running.pages["/login"] = "<!doctype html><title>Log in</title><p>Please log in before you go on to this page."
        running.statuses[GONE] = 404
        yield running


@dataclass
class Auditor:
    """An agent that walks through pages on several tabs at once."""

    call: Callable[..., Awaitable[dict[str, Any]]]
    web: Site
    tabs: Sequence[str]
    later: Callable[[], None] = lambda: None

    async def on(self, path: str, tool: str | None = None, tab: int = 0, **arguments: Any) -> dict[str, Any]:
        """Open a page and do one thing there."""
        told = await self.call("navigate", targetId=self.tabs[tab], url=self.web.url(path))
        if tool is not None:
            told = await self.call(tool, targetId=self.tabs[tab], **arguments)
            assert told["ok"], told
        self.later()
        return told

    async def scan(self, path: str, tab: int = 0) -> dict[str, Any]:
        return await self.on(path, "coverage_scan", tab, scanId=TEXT)

    async def read(self, path: str, tab: int = 0) -> dict[str, Any]:
        return await self.on(path, "read_text", tab, scope="page", maxChars=20_000)

    async def proves(self, paths: Sequence[str], done: Callable[[str], None] = lambda path: None) -> None:
        """Take every second page in by a scan and the others by reading them to their end."""

        async def lane(number: int) -> None:
            for index in range(number, len(paths), len(self.tabs)):
                await (self.scan if index % 2 else self.read)(paths[index], number)
                done(paths[index])

        async with anyio.create_task_group() as group:
            for number in range(len(self.tabs)):
                group.start_soon(lane, number)


async def audit(server: Server, web: Site, evidence: str = "require_strong") -> Run:
    asked = condition(kind="page", evidencePolicy={"mode": evidence})
    source = {"kind": "explicit", "explicitUrls": [*PATHS], "freezeAfterPopulate": True}
    return await Run.new(server, ad_hoc(completionCondition=asked), targetUrl=web.url("/"), unitSource=source)


async def refused(run: Run, *codes: str) -> dict[str, Any]:
    """The refusal of a completion, with exactly these reasons in this order."""
    told = await run.complete()
    assert (told["ok"], told["completed"], told["completionAllowed"]) == (False, False, False), told
    assert [one["reasonCode"] for one in told["reasons"]] == list(codes), told
    assert told["reasonCode"] == codes[0]
    return told


def checked(paths: Sequence[str]) -> list[dict[str, str]]:
    return [{"url": path, "status": "checked"} for path in paths]


def moved(status: str, *paths: str) -> list[dict[str, str]]:
    return [{"url": path, "status": status, "reason": f"{status} for a test"} for path in paths]


async def grades(run: Run, status: str = "checked") -> dict[str, str]:
    told = await run.get(unitFilter=status, unitLimit=200)
    return {"/" + one["url"].rpartition("/")[2]: one["grade"] for one in told["units"]}


async def test_an_audit_is_done_when_every_page_is_proven_and_not_before(server: Server, web: Site) -> None:
    web.redirects[web.url(ACCOUNT)] = web.url("/login")

    def later() -> None:
        server.clock.shift_ms += LONG_ENOUGH_MS

    tabs = [await server.new_tab() for _ in range(LANES)]
    auditor = Auditor(server.call, web, tabs, later)
    run = await audit(server, web)
    assert (await run.get())["progress"]["totalUnits"] == 40

    # Nothing is read and nothing is said.
    told = await refused(run, "units_remaining", "no_units_checked", "url_units_remaining")
    assert told["currentState"]["urlUnitsRemaining"] == 40

    # All pages are claimed and none was visited.
    claimed = [path for path in PATHS if path not in (ACCOUNT, GONE)]
    await run.done(unitUpdates=checked(claimed))
    told = await refused(run, "units_remaining", "url_units_remaining", "evidence_gap")
    assert (told["evidenceSummary"]["claimedChecked"], told["evidenceSummary"]["none"]) == (38, 38)
    assert told["urlCoverage"]["covered"] == 0

    # Two pages can't be had: one leads to a login, one answers with an error.
    arrived = await auditor.scan(ACCOUNT)
    assert arrived["urlAfter"] == web.url("/login")
    assert [one["reasonCode"] for one in arrived["credited"]] == ["extra_scope_url"]
    assert [one["reasonCode"] for one in (await auditor.scan(GONE))["credited"]] == ["error_page"]
    assert await grades(run, "discovered") == {ACCOUNT: "none", GONE: "weak"}
    await run.done(unitUpdates=moved("blocked", ACCOUNT, GONE))
    told = await refused(run, "units_blocked_or_failed", "url_units_remaining", "evidence_gap")
    assert told["urlCoverage"]["remaining"] == 40
    await run.done(unitUpdates=moved("excluded", ACCOUNT, GONE))
    told = await refused(run, "url_units_remaining", "evidence_gap")
    assert (told["urlCoverage"]["excluded"], told["urlCoverage"]["remaining"]) == (2, 38)

    # Some pages are opened and no more, one is scanned after the agent's own script had touched it.
    for path in ONLY_OPENED:
        await auditor.on(path)
    await auditor.on(SCRIPTED, "eval", expression="document.body.dataset.mine = 1")
    touched = await server.call("coverage_scan", targetId=tabs[0], scanId=TEXT)
    assert [one["reasonCode"] for one in touched["credited"]] == ["agent_scripted"]
    later()

    # The rest is taken in, half by scans, half by reading.
    await auditor.proves([path for path in claimed if path not in (*ONLY_OPENED, SCRIPTED)])
    told = await refused(run, "url_units_remaining", "evidence_gap")
    assert told["urlCoverage"]["nextUrls"] == [web.url(path) for path in (*ONLY_OPENED, SCRIPTED)]
    assert (told["evidenceSummary"]["strong"], told["evidenceSummary"]["weak"]) == (33, 5)
    lacking = {one["unitKey"]: one["reasonCode"] for one in told["evidenceSummary"]["topExceptions"]}
    assert sorted(lacking.values()) == ["agent_scripted", *["no_read"] * 4]

    # A glance is strong proof of a visit and covers nothing; a stranger's scan is worth nothing at all.
    for path in ONLY_OPENED:
        await auditor.on(path, "perceive", mode="summary")
    stranger = await server.call("tab_new", agentId="stranger", url=web.url(SCRIPTED))
    seen = await server.call("coverage_scan", targetId=stranger["targetId"], agentId="stranger", scanId=TEXT)
    assert seen["credited"] == []
    told = await refused(run, "url_units_remaining", "evidence_gap")
    assert (told["urlCoverage"]["remaining"], told["evidenceSummary"]["weak"]) == (5, 1)

    # Proven at last.
    await auditor.proves(ONLY_OPENED)
    told = await refused(run, "url_units_remaining", "evidence_gap")
    assert told["urlCoverage"]["nextUrls"] == [web.url(SCRIPTED)]
    await auditor.scan(SCRIPTED)
    done = await run.complete(clientEventId="the end")
    assert done["completed"] is True, done
    assert done["instanceRev"] == 4
    assert {key: done["urlCoverage"][key] for key in ("total", "covered", "excluded", "remaining", "gateStatus")} == {
        "total": 40, "covered": 38, "excluded": 2, "remaining": 0, "gateStatus": "passed",
    }  # fmt: skip
    summary = done["evidenceSummary"]
    assert (summary["claimedChecked"], summary["observedChecked"], summary["strong"]) == (38, 38, 38)
    again = await run.change("complete", expectedInstanceRev=3, clientEventId="the end")
    assert (again["duplicate"], again["instanceRev"]) == (True, 4)
    assert again["evidenceSummary"] == summary


# -- a server that is killed


@dataclass
class Killable:
    """A server in a process of its own, and a client on it."""

    client: Client
    process: psutil.Process

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        answer = await self.client.call_tool(f"nova.{tool}", arguments)
        assert answer.structured_content is not None
        return dict(answer.structured_content)

    def kill(self) -> list[psutil.Process]:
        family = self.process.children(recursive=True)
        os.kill(self.process.pid, signal.SIGKILL)
        return family


@asynccontextmanager
async def real_server(data_dir: Path) -> AsyncIterator[Killable]:
    arguments = ["-m", "nova_mcp.cli", "serve", "--data-dir", str(data_dir), "--tools", "all"]
    parameters = StdioServerParameters(command=sys.executable, args=arguments, env=dict(os.environ))
    before = {child.pid for child in psutil.Process().children()}
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:  # noqa: ASYNC230 - opening the null device does not block
        async with Client(stdio_client(parameters, errlog=nowhere), mode="legacy") as client:
            (process,) = [child for child in psutil.Process().children() if child.pid not in before]
            yield Killable(client, process)


async def killed_while(data_dir: Path, work: Callable[[Killable, anyio.Event], Awaitable[None]]) -> None:
    """Work on a server that is killed as soon as the work says so, in the middle of whatever else goes on."""
    family: list[psutil.Process] = []
    try:
        async with real_server(data_dir) as server, anyio.create_task_group() as group:
            now = anyio.Event()
            group.start_soon(work, server, now)
            await now.wait()
            family = server.kill()
            group.cancel_scope.cancel()
    except* (MCPError, OSError, anyio.ClosedResourceError, anyio.BrokenResourceError):
        # The connection breaks with its server; that is the point.
        await anyio.lowlevel.checkpoint()
    psutil.wait_procs(family, timeout=GONE_WITHIN_S)


async def test_an_audit_goes_on_where_a_killed_server_left_it(tmp_path: Path, web: Site) -> None:
    web.redirects.clear()
    web.statuses.clear()
    known: dict[str, Any] = {}
    proven: list[str] = []
    source = {"kind": "explicit", "explicitUrls": [*SECTION], "freezeAfterPopulate": True}
    begin = {
        "adHocContext": ad_hoc(completionCondition=condition(kind="page")),
        "targetUrl": web.url("/"),
        "unitSource": source,
        "clientEventId": "begin",
    }
    half = {"expectedInstanceRev": 0, "clientEventId": "half", "unitUpdates": checked(SECTION[:8])}
    more = {"expectedInstanceRev": 1, "clientEventId": "more", "unitUpdates": checked(SECTION[8:10])}

    async def first_half(server: Killable, now: anyio.Event) -> None:
        run = (await server.call("task_instance_create", **begin))["instanceId"]
        tabs = [str((await server.call("tab_new"))["targetId"]) for _ in range(LANES)]
        auditor = Auditor(server.call, web, tabs)
        await auditor.proves(SECTION[:8])
        known.update(await server.call("task_instance_progress", instanceId=run, **half), run=run)
        known["before"] = await server.call("task_instance_get", instanceId=run)
        two = anyio.Event()

        def answered(path: str) -> None:
            proven.append(path)
            if len(proven) == 2:
                two.set()

        async with anyio.create_task_group() as group:
            group.start_soon(auditor.proves, SECTION[8:], answered)
            await two.wait()
            # Nobody hears whether this one came through.
            group.start_soon(lambda: server.call("task_instance_progress", instanceId=run, **more))
            now.set()

    await killed_while(tmp_path, first_half)
    run = known.pop("run")
    before = known.pop("before")
    assert (before["instanceRev"], before["progress"]["checkedUnits"], before["urlCoverage"]["covered"]) == (1, 8, 8)

    async with real_server(tmp_path) as server:
        again = await server.call("task_instance_create", **begin)
        assert (again["duplicate"], again["instanceId"]) == (True, run)
        resent = await server.call("task_instance_progress", instanceId=run, **half)
        assert resent == {**known, "duplicate": True}
        applied = await server.call("task_instance_progress", instanceId=run, **more)
        assert (applied["ok"], applied["instanceRev"]) == (True, 2)
        now = await server.call("task_instance_get", instanceId=run, eventLimit=100, unitFilter="uncovered")
        assert (now["instanceRev"], len(now["events"])) == (2, 2)
        assert now["progress"]["checkedUnits"] == 10
        assert now["progress"]["totalUnits"] == 16
        left = [str(one["url"]).removeprefix(web.url("")) for one in now["units"]]
        assert not {*left} & {*SECTION[:8], *proven}
        # At most what every tab was busy with has been recorded without being answered.
        assert 8 + len(proven) <= now["urlCoverage"]["covered"] <= 8 + len(proven) + LANES
        assert now["urlCoverage"]["remaining"] == len(left)

        tabs = [str((await server.call("tab_new"))["targetId"]) for _ in range(LANES)]
        await Auditor(server.call, web, tabs).proves(left)
        last = {"expectedInstanceRev": 2, "clientEventId": "last", "unitUpdates": checked(SECTION[10:])}
        told = await server.call("task_instance_progress", instanceId=run, **last)
        assert (told["instanceRev"], told["completionAllowed"], told["progress"]["checkedUnits"]) == (3, True, 16)
        done = await server.call(
            "task_instance_complete", instanceId=run, expectedInstanceRev=3, clientEventId="the end"
        )
        assert (done["completed"], done["instanceRev"]) == (True, 4)
        assert (done["urlCoverage"]["total"], done["urlCoverage"]["covered"]) == (16, 16)
        assert (done["evidenceSummary"]["claimedChecked"], done["evidenceSummary"]["observedChecked"]) == (16, 16)
