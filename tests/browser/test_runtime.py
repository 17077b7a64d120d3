"""The browser process: found in a fixed order, relaunched within limits, released when idle, never left behind."""

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nova_mcp.browser.act.navigate import navigate, reload
from nova_mcp.browser.process.chromium_flags import launch_args
from nova_mcp.browser.process.find_chromium import PATH_NAMES, Machine, find_browser, install_paths
from nova_mcp.browser.process.host_lag import BUSY_MS, PROBE_MS, HostLag
from nova_mcp.browser.process.orphans import alive, end_leftovers, mark, read_note, write_note
from nova_mcp.browser.process.runtime import MAX_RELAUNCHES, RELAUNCH_WINDOW_MS, Browser, may_launch, sandbox_mode
from nova_mcp.errors import Unavailable

from .conftest import Site, eventually, make_browser, make_caller

SRC = Path(__file__).resolve().parents[2] / "src"


@pytest.fixture
async def own(tmp_path: Path) -> AsyncIterator[Browser]:
    """A browser that this test may kill."""
    browser = make_browser(tmp_path)
    yield browser
    await browser.aclose()


def executable(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\nexit 1\n")
    path.chmod(0o755)
    return path


def machine(tmp_path: Path, platform: str = "darwin", managed: Path | None = None, path: str = "") -> Machine:
    return Machine(platform, {"PATH": path}, tmp_path / "home", managed)


# -- discovery


def test_the_order_is_override_path_installed_managed(tmp_path: Path) -> None:
    override = executable(tmp_path / "mine")
    managed = executable(tmp_path / "managed")
    folder = tmp_path / "bin"
    on_path = executable(folder / PATH_NAMES[-1])
    installed = executable(tmp_path / "home" / "Applications" / "Chromium.app" / "Contents" / "MacOS" / "Chromium")
    here = machine(tmp_path, managed=managed, path=str(folder))
    assert find_browser(override, here).source == "override"
    assert find_browser(None, here).path == on_path
    on_path.unlink()
    assert find_browser(None, here).path == installed
    installed.unlink()
    assert find_browser(None, here).path == managed


def test_a_missing_override_fails_although_others_are_there(tmp_path: Path) -> None:
    here = machine(tmp_path, managed=executable(tmp_path / "managed"))
    with pytest.raises(Unavailable) as caught:
        find_browser(tmp_path / "nothing", here)
    assert caught.value.reason_code == "browser.launch_failed"


def test_nothing_found_says_what_was_tried(tmp_path: Path) -> None:
    with pytest.raises(Unavailable) as caught:
        find_browser(None, machine(tmp_path, managed=tmp_path / "nowhere"))
    assert caught.value.reason_code == "browser.not_found"
    for tried in (*PATH_NAMES, "Chromium.app", "nowhere"):
        assert tried in caught.value.hint


def test_each_system_has_its_places() -> None:
    windows = install_paths("win32", {"PROGRAMFILES": "/pf"}, Path("/home"))
    assert Path("/pf/Google/Chrome/Application/chrome.exe") in windows
    assert Path("/usr/bin/chromium") in install_paths("linux", {}, Path("/home"))


# -- pure rules


def test_root_gets_no_chromium_sandbox_and_everybody_else_does() -> None:
    assert sandbox_mode("auto", 0) == "off_root"
    assert sandbox_mode("auto", 1000) == "on"
    assert sandbox_mode("auto", None) == "on"
    assert sandbox_mode("on", 0) == "on"
    assert sandbox_mode("off", 1000) == "off"


def test_the_browser_calls_nobody_on_its_own() -> None:
    assert "--disable-background-networking" in launch_args(headless=False)
    assert "--disable-gpu" in launch_args(headless=True)
    assert "--disable-gpu" not in launch_args(headless=False)


@given(st.lists(st.floats(0, 10**6), max_size=8), st.floats(0, 10**6))
def test_relaunches_are_limited_to_three_in_a_minute(earlier: list[float], now: float) -> None:
    recent = [at for at in earlier if now - at < RELAUNCH_WINDOW_MS]
    assert may_launch(tuple(earlier), now) == (len(recent) <= MAX_RELAUNCHES)


def test_a_late_heartbeat_makes_the_host_busy_for_the_time_that_holds_it() -> None:
    now = [0.0]
    lag = HostLag(lambda: now[0])
    lag.beat()
    now[0] = PROBE_MS + BUSY_MS
    lag.beat()
    assert not lag.busy_within(10_000)
    now[0] += PROBE_MS + BUSY_MS + 1
    assert lag.busy_within(10_000), "seen before the late beat itself"
    lag.beat()
    now[0] += 50
    assert lag.busy_within(100)
    lag.beat()
    assert not lag.busy_within(10)


# -- the real thing


async def test_nothing_starts_before_it_is_needed(own: Browser) -> None:
    assert not own.running
    await own.warm()
    assert not own.running
    first = await own.start()
    assert await own.start() is first
    assert own.info.version == first.version
    assert own.info.headless


async def test_a_browser_that_cannot_start_fails_without_a_fallback(tmp_path: Path) -> None:
    browser = make_browser(tmp_path, executable=executable(tmp_path / "broken"))
    with pytest.raises(Unavailable) as caught:
        await browser.start()
    assert caught.value.reason_code == "browser.launch_failed"
    assert "\n" not in caught.value.message
    await browser.aclose()


async def test_a_window_without_a_display_is_told_as_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nova_mcp.browser.process.runtime.has_display", lambda platform, environ: False)
    browser = make_browser(tmp_path, executable=executable(tmp_path / "broken"), headed=True)
    with pytest.raises(Unavailable) as caught:
        await browser.start()
    assert "there is no display" in caught.value.message
    assert "--headed" in caught.value.hint
    await browser.aclose()


async def test_a_killed_browser_loses_its_tabs_and_comes_back_on_the_next_call(own: Browser, site: Site) -> None:
    caller = make_caller()
    tab = await own.targets.open_tab(caller)
    await navigate(tab, site.url("html?title=here"))
    kill_browser_of(own)
    await tab.channel.closed()
    assert tab.state == "lost"
    assert await own.targets.resolve(caller) is tab
    with pytest.raises(Unavailable) as caught:
        tab.require_ready()
    assert caught.value.reason_code == "tab.lost"
    report = await reload(tab, recover=True)
    assert (report.status, report.title, report.recovered) == ("ok", "here", True)
    assert own.running


async def test_a_browser_that_keeps_dying_is_left_alone(own: Browser) -> None:
    for _ in range(1 + MAX_RELAUNCHES):
        await own.start()
        kill_browser_of(own)
        await eventually(lambda: not own.running)
    with pytest.raises(Unavailable) as caught:
        await own.start()
    assert (caught.value.reason_code, caught.value.retry_after_ms) == ("browser.restart_limit", 60_000)


async def every_other_start(own: Browser, tmp_path: Path, instead: str) -> Path:
    """A browser that does something else at the first of every two starts."""
    await own.start()
    real, path = own.info.browser, executable(tmp_path / "every-other")
    odd = f'rm "{tmp_path}/odd"; exec "{real}" "$@"'
    path.write_text(f'#!/bin/sh\nif [ -e "{tmp_path}/odd" ]; then {odd}; fi\ntouch "{tmp_path}/odd"\n{instead}\n')
    return path


async def test_a_browser_that_ends_as_it_starts_is_started_again_at_once_and_that_is_no_relaunch(
    own: Browser, tmp_path: Path
) -> None:
    browser = make_browser(tmp_path, executable=await every_other_start(own, tmp_path, "kill -KILL $$"))
    try:
        for _ in range(1 + MAX_RELAUNCHES):
            await browser.start()
            kill_browser_of(browser)
            await eventually(lambda: not browser.running)
        # Four starts that took two tries each: only now the limit is reached.
        with pytest.raises(Unavailable) as caught:
            await browser.start()
        assert caught.value.reason_code == "browser.restart_limit"
    finally:
        await browser.aclose()


async def test_a_browser_that_is_stopped_as_it_starts_is_ended_when_it_is_given_up(
    own: Browser, tmp_path: Path
) -> None:
    starting = await every_other_start(own, tmp_path, "kill -STOP $$")
    browser = make_browser(tmp_path, executable=starting, hang_timeout_s=2)
    try:
        await browser.start()
        assert browser._driver is not None
        family = psutil.Process(browser._driver.pid).children(recursive=True)
        assert [child for child in family if child.status() == psutil.STATUS_STOPPED] == []
    finally:
        await browser.aclose()


async def test_release_keeps_the_ids_and_waits_for_leases(own: Browser, site: Site) -> None:
    caller = make_caller()
    tab = await own.targets.open_tab(caller)
    await navigate(tab, site.url("html?title=kept"))
    assert own.idle_since() == 0
    tab.lease = None
    async with tab.lock.shared():
        assert own.idle_since() == 0
    tab.last_activity_ms = own._used_ms = 0
    assert own.idle_since() > 0
    await own.release()
    assert (own.running, tab.state) == (False, "lost")
    report = await reload(tab)
    assert (report.status, report.title) == ("ok", "kept")


async def test_an_idle_browser_is_released_by_the_background_care(tmp_path: Path) -> None:
    browser = make_browser(tmp_path, idle_release_s=5)
    await browser.start()
    async with anyio.create_task_group() as group:
        group.start_soon(browser.run)
        browser._used_ms = 0
        await eventually(lambda: not browser.running)
        group.cancel_scope.cancel()
    await browser.aclose()


async def test_tabs_of_a_remote_browser_are_never_touched(own: Browser, tmp_path: Path, site: Site) -> None:
    port_file = tmp_path / "profile" / "DevToolsActivePort"
    host = subprocess.Popen(  # noqa: ASYNC220
        [
            *(own_path(), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-port=0"),
            *("--disable-background-networking", f"--user-data-dir={port_file.parent}", site.url("html?title=theirs")),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        await eventually(lambda: port_file.exists() and bool(port_file.read_text().strip()))
        port = port_file.read_text().splitlines()[0]
        remote = make_browser(tmp_path / "data", cdp_endpoint=f"http://127.0.0.1:{port}")
        chromium = await remote.start()
        before = [page.url for context in chromium.contexts for page in context.pages]
        tab = await remote.targets.open_tab(make_caller())
        await navigate(tab, site.url("html?title=mine"))
        assert [page.url for page in chromium.contexts[0].pages] == before
        assert len(remote.targets.list_tabs(make_caller())) == 1
        await remote.aclose()
        assert host.poll() is None
    finally:
        host.kill()
        host.wait()


# -- nothing left behind


async def test_a_killed_server_leaves_no_browser(tmp_path: Path) -> None:
    program = f"""
import asyncio, sys
sys.path[:0] = [{str(SRC)!r}, {str(Path(__file__).parents[1])!r}]
from pathlib import Path
from browser.conftest import make_browser, make_caller
async def main():
    browser = make_browser(Path({str(tmp_path)!r}))
    await browser.targets.open_tab(make_caller())
    print("up", flush=True)
    await asyncio.sleep(600)
asyncio.run(main())
"""
    server = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)  # noqa: ASYNC220
    try:
        assert server.stdout is not None
        assert (await anyio.to_thread.run_sync(server.stdout.readline)).strip() == b"up"
        note = read_note(next((tmp_path / "browsers").glob("*.json")))
        assert note is not None
        assert note.server.pid == server.pid
        family = psutil.Process(server.pid).children(recursive=True)
        assert note.browser.pid in {process.pid for process in family}
    finally:
        server.send_signal(signal.SIGKILL)
        server.wait()
        if server.stdout is not None:
            server.stdout.close()
    _, survivors = await anyio.to_thread.run_sync(lambda: psutil.wait_procs(family, timeout=15))
    assert survivors == []
    assert end_leftovers(tmp_path) == 0
    assert list((tmp_path / "browsers").iterdir()) == []


def test_only_browsers_of_dead_servers_are_ended(tmp_path: Path) -> None:
    sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    was = mark(sleeper.pid)
    assert was is not None
    try:
        path = write_note(tmp_path, "server_a", sleeper.pid)
        assert path is not None
        assert end_leftovers(tmp_path) == 0, "its server, this process, is alive"
        assert sleeper.poll() is None
        path.write_text(path.read_text().replace(f'"pid": {os.getpid()}', '"pid": 4194300'))
        moved = path.read_text()
        path.write_text(moved.replace(str(was.started_ms), "15"))
        assert end_leftovers(tmp_path) == 0, "another process took the number"
        assert sleeper.poll() is None
        path.write_text(moved)
        assert end_leftovers(tmp_path) == 1
        assert alive(was) is None
    finally:
        sleeper.kill()
        sleeper.wait()


def test_a_damaged_note_is_removed(tmp_path: Path) -> None:
    (tmp_path / "browsers").mkdir()
    (tmp_path / "browsers" / "x.json").write_text("{")
    assert end_leftovers(tmp_path) == 0
    assert list((tmp_path / "browsers").iterdir()) == []


def kill_browser_of(browser: Browser) -> None:
    note = read_note(next((browser._home.data_dir / "browsers").glob("*.json")))
    assert note is not None
    os.kill(note.browser.pid, signal.SIGKILL)


def own_path() -> str:
    return str(find_browser(None, Machine(sys.platform, os.environ, Path.home(), None)).path)
