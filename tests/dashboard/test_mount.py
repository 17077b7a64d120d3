"""The dashboard where it is served: beside the protocol, on the same port, behind the same names."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import httpx
import pytest
from dashboard_kit import Program
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from typer.testing import CliRunner

from nova_mcp.cli.serving.dashboard import app, reachable
from nova_mcp.core.clock import SystemClock
from nova_mcp.server.backend import Backend
from nova_mcp.server.http.bearer_tokens import load_credentials, read_token_file
from nova_mcp.server.http.origins import LOOPBACK_NAMES
from nova_mcp.server.http.request_guard import Door, Gate
from nova_mcp.server.http.serve import serve_http
from nova_mcp.server.lifetime import Ending
from nova_mcp.server.rate_limits import Limits
from nova_mcp.settings import Settings
from nova_mcp.storage.engine import Database


@asynccontextmanager
async def served(folder: Path) -> AsyncIterator[str]:
    """A real HTTP server over an empty store; gives its root."""
    settings = Settings.model_validate({"data_dir": folder, "http": {"port": 0}})
    ready, ending, found = anyio.Event(), Ending(), list[str]()

    def on_ready(endpoint: str) -> None:
        found.append(endpoint.removesuffix("/mcp"))
        ready.set()

    with Database.open(settings.store_url) as database:

        async def backend(_: Settings) -> Backend:
            return Program(database)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: serve_http(settings, backend, None, on_ready, ending))
            await ready.wait()
            yield found[0]
            ending.because("test over")


async def test_the_link_of_the_command_opens_the_served_dashboard_once(tmp_path: Path):
    async with served(tmp_path) as root, httpx.AsyncClient(base_url=root) as http:
        printed = await anyio.to_thread.run_sync(lambda: CliRunner().invoke(app, ["--data-dir", str(tmp_path)]))
        assert printed.exit_code == 0
        link = printed.stdout.strip()
        assert link.startswith(f"{root}/dashboard/enter?ticket=")
        shown = await http.get(link)
        ticket = re.search(r'name="ticket" value="([^"]+)"', shown.text)
        assert ticket is not None
        headers = {"origin": root}
        entered = await http.post("/dashboard/enter", data={"ticket": ticket[1]}, headers=headers)
        assert entered.status_code == 303
        page = await http.get("/dashboard/")
        assert (page.status_code, "No calls yet" in page.text) == (200, True)
        again = await http.post("/dashboard/enter", data={"ticket": ticket[1]}, headers=headers)
        assert again.status_code == 401


async def test_a_borrowed_name_or_a_foreign_page_gets_nothing(tmp_path: Path):
    async with served(tmp_path) as root, httpx.AsyncClient(base_url=root) as http:
        rebound = await http.get("/dashboard/login", headers={"host": "evil.test"})
        foreign = await http.post("/dashboard/login", data={"token": "x"}, headers={"origin": "https://evil.test"})
        assert [rebound.status_code, foreign.status_code] == [403, 403]


async def test_a_session_is_no_way_into_the_protocol_and_a_bearer_header_none_into_the_pages(tmp_path: Path):
    async with served(tmp_path) as root, httpx.AsyncClient(base_url=root) as http:
        token = read_token_file(tmp_path).token
        assert (await http.get("/dashboard/", headers={"authorization": f"Bearer {token}"})).status_code == 401
        await http.post("/dashboard/login", data={"token": token}, headers={"origin": root})
        assert (await http.get("/dashboard/")).status_code == 200
        assert (await http.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "ping"})).status_code == 401
        assert (await http.get("/dashboardx", headers={"authorization": f"Bearer {token}"})).status_code == 404


async def test_nothing_is_begun_on_the_pages_of_a_server_that_is_ending_and_what_was_begun_is_waited_for(
    tmp_path: Path,
):
    begun, go_on = anyio.Event(), anyio.Event()

    async def pages(scope: Scope, receive: Receive, send: Send) -> None:
        begun.set()
        await go_on.wait()
        await Response("done")(scope, receive, send)

    door = Door("127.0.0.1", LOOPBACK_NAMES, (), load_credentials(tmp_path, "http://127.0.0.1:1/mcp"), 1000)
    gate = Gate(pages, door, Limits(SystemClock(), 10, 10), Program, pages)  # type: ignore[arg-type]
    answers: list[int] = []
    quiet = anyio.Event()
    async with httpx.AsyncClient(transport=httpx.ASGITransport(gate), base_url="http://127.0.0.1:1") as http:

        async def ask() -> None:
            answers.append((await http.post("/dashboard/review/entry")).status_code)

        async def wait() -> None:
            await gate.quiet(60)
            quiet.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await begun.wait()
            gate.closing = True
            tasks.start_soon(wait)
            with anyio.fail_after(20):
                late = await http.post("/dashboard/review/entry")
            assert (late.status_code, late.headers["retry-after"]) == (503, "5")
            assert not quiet.is_set()
            go_on.set()
    assert (answers, quiet.is_set()) == ([200], True)


def test_without_a_server_the_command_says_how_to_start_one(tmp_path: Path):
    answer = CliRunner().invoke(app, ["--data-dir", str(tmp_path)])
    assert answer.exit_code == 1
    assert "nova serve --http" in answer.stderr


async def test_a_server_that_has_ended_gets_no_link(tmp_path: Path):
    async with served(tmp_path) as root:
        pass
    answer = CliRunner().invoke(app, ["--data-dir", str(tmp_path)])
    assert (answer.exit_code, answer.stdout) == (1, "")
    assert root in answer.stderr
    assert "nova serve --http" in answer.stderr


@pytest.mark.parametrize(
    ("endpoint", "root"),
    [
        ("http://127.0.0.1:27183/mcp", "http://127.0.0.1:27183"),
        ("http://0.0.0.0:80/mcp", "http://127.0.0.1:80"),
        ("http://[::]:9/mcp", "http://[::1]:9"),
        ("http://[::1]:9/mcp", "http://[::1]:9"),
        ("http://nova.example:9/mcp", "http://nova.example:9"),
    ],
)
def test_the_link_uses_an_address_that_a_browser_can_reach(endpoint: str, root: str):
    assert reachable(endpoint) == root
