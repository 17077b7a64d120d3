"""Driver and browser are processes that end or hang at any moment: both are found, ended by their id and replaced."""

import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from loop_kit import Server, Shop, serving, shop

from nova_mcp.browser.process.orphans import read_note

HOME = "<!doctype html><title>Home</title><p>home</p>"
LOGIN = "<!doctype html><title>Login</title><script>document.cookie = 'sid=kept; max-age=9999'</script><p>in</p>"
SETTINGS: dict[str, Any] = {"browser": {"hang_timeout_s": 2, "ephemeral": False}}
SECRETS = {
    "NOVA_SECRET_BANK": "hunter2-nova",
    "PGPASSWORD": "hunter2-pg",
    "DATABASE_URL": "postgresql://u:hunter2-db@db/x",
    "GITHUB_TOKEN": "hunter2-token",
    "https_proxy": "http://u:hunter2-proxy@proxy.example:3128",
}


class Victim:
    """A server with a kept login and two tabs, and the processes that a test may end or stop."""

    def __init__(self, server: Server, pages: Shop) -> None:
        self.server, self.pages = server, pages

    def process(self, which: str) -> psutil.Process:
        (note,) = (read_note(path) for path in (self.server.data_dir / "browsers").glob("*.json"))
        assert note is not None
        known = note.driver if which == "driver" else note.browser
        assert known is not None
        return psutil.Process(known.pid)

    async def sign_in(self) -> str:
        tab = await self.server.new_tab()
        await self.server.call("navigate", targetId=tab, url=self.pages.url("/login"))
        assert await self.server.nova._parts.browser.sandboxes.by_id("A").save()
        return tab

    async def shown(self, tab: str) -> str:
        """What the page says that needs the login."""
        assert (await self.server.call("navigate", targetId=tab, url=self.pages.url("/home")))["ok"]
        return str(await self.server.tab(tab).page.evaluate("document.cookie"))

    def moved_aside(self) -> list[Path]:
        return list((self.server.data_dir / "sandboxes").glob("*/*.corrupt-*"))


@pytest.fixture(scope="module")
async def victim(tmp_path_factory: pytest.TempPathFactory, anyio_backend: str) -> AsyncIterator[Victim]:
    with pytest.MonkeyPatch.context() as patch, shop() as pages:
        for name, value in SECRETS.items():
            patch.setenv(name, value)
        pages.pages |= {"/login": LOGIN, "/home": HOME}
        async with serving(tmp_path_factory.mktemp("lost"), **SETTINGS) as server:
            yield Victim(server, pages)


@pytest.mark.parametrize("which", ["driver", "browser"])
@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGSTOP])
async def test_a_process_that_ends_or_hangs_is_replaced_and_logins_stay(
    victim: Victim, which: str, sent: signal.Signals
) -> None:
    server = victim.server
    server.nova._parts.browser._launches.clear()
    tab, other = await victim.sign_in(), await server.new_tab()
    lost = victim.process(which)
    os.kill(lost.pid, sent)
    refused = await server.call("perceive", targetId=tab)
    assert (refused["ok"], refused["reasonCode"]) in ((False, "tab.lost"), (False, "cdp.renderer_stalled")), refused
    fresh = await server.call("tab_new")
    assert fresh["ok"], fresh
    refused = await server.call("perceive", targetId=other)
    assert refused["reasonCode"] == "tab.lost"
    assert tab in refused["message"]
    assert other in refused["message"]
    assert (await server.call("reload", targetId=tab, recover=True))["recovered"]
    assert "sid=kept" in await victim.shown(tab)
    assert "sid=kept" in await victim.shown(fresh["targetId"])
    assert victim.moved_aside() == []
    assert not lost.is_running() or lost.status() == psutil.STATUS_ZOMBIE
    for target in (tab, other, fresh["targetId"]):
        await server.call("tab_close", targetId=target)


async def test_a_new_tab_names_those_that_were_lost(victim: Victim) -> None:
    server = victim.server
    server.nova._parts.browser._launches.clear()
    tab = await server.new_tab()
    os.kill(victim.process("driver").pid, signal.SIGKILL)
    fresh = await server.call("tab_new")
    assert fresh["ok"], fresh
    assert tab in str(fresh), fresh
    for target in (tab, fresh["targetId"]):
        await server.call("tab_close", targetId=target)


async def test_secrets_of_the_server_reach_neither_driver_nor_browser(victim: Victim) -> None:
    await victim.server.new_tab()
    driver = victim.process("driver")
    family = [driver, *driver.children(recursive=True)]
    assert victim.process("browser") in family
    assert len(family) > 3
    for process in family:
        known = process.environ()
        assert "hunter2" not in str(known)
        assert not [name for name in known if name.startswith("NOVA_")]
    assert driver.environ()["PATH"] == os.environ["PATH"]
