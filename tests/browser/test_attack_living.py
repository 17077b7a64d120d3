"""Living with the browser under attack: sockets, swapped files, killed servers, tabs that go while they are claimed."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from .conftest import Site
from .nova_kit import NovaClient, open_nova

pytestmark = pytest.mark.browser

_KNOCK = """async ([page, worker]) => {
  const ended = (url) => new Promise((done) => {
    const socket = new WebSocket(url);
    socket.onclose = socket.onerror = socket.onopen = () => done();
  });
  const script = 'onmessage=e=>{const s=new WebSocket(e.data);s.onclose=s.onerror=s.onopen=()=>postMessage(1)}';
  const fromWorker = (url) => new Promise((done) => {
    const worker = new Worker(URL.createObjectURL(new Blob([script])));
    worker.onmessage = () => done();
    worker.postMessage(url);
  });
  await ended(page);
  await fromWorker(worker);
}"""


@pytest.fixture
async def client(tmp_path: Path, site: Site) -> AsyncIterator[NovaClient]:
    browser = {"filter_subresources": True, "deny_hosts": ["bad.localhost"]}
    async with open_nova(tmp_path, site, browser=browser) as opened:
        yield opened


async def test_sockets_of_pages_and_workers_stay_within_the_policy(client: NovaClient, site: Site) -> None:
    told = await client.show("<p>sockets")
    page = client.tab(told["targetId"]).page

    def at(host: str, path: str) -> str:
        return site.url(path, host=host).replace("http:", "ws:")

    await page.evaluate(_KNOCK, [at("bad.localhost", "denied-page"), at("bad.localhost", "denied-worker")])
    await page.evaluate(_KNOCK, [at("127.0.0.1", "fine-page"), at("127.0.0.1", "fine-worker")])
    knocked = {path for path in site.seen if path.startswith(("/denied", "/fine"))}
    assert knocked == {"/fine-page", "/fine-worker"}


async def test_the_jar_is_on_disk_before_a_commit_goes_out(client: NovaClient, tmp_path: Path) -> None:
    form = "<form method=post action=/nothing><button id=go>Order now</button></form>"
    told = await client.show(f"<script>document.cookie='basket=full-of-apples'</script>{form}")
    (state,) = (tmp_path / "sandboxes").glob("*/state.json")
    assert "full-of-apples" not in state.read_text()
    sent = await client.call("click_selector", selector="#go", expect=["gone:#go"])
    assert sent["actionDispatched"] is True
    cookies = json.loads(state.read_text())["storage"]["cookies"]
    assert [cookie["value"] for cookie in cookies] == ["full-of-apples"]
    assert told["targetId"] == sent["targetId"]


async def test_a_page_gets_the_file_that_was_hashed_though_it_was_swapped(client: NovaClient, tmp_path: Path) -> None:
    uploads = tmp_path / "uploads"
    uploads.mkdir()
    (uploads / "note.txt").write_text("as it was")
    told = await client.show("<input type=file id=f>")
    sent = await client.call("file_upload", selector="#f", paths=["note.txt"])
    assert sent["status"] == "ok"
    (uploads / "note.txt").write_text("something else entirely")
    read = await client.tab(told["targetId"]).page.evaluate("document.querySelector('#f').files[0].text()")
    assert read == "as it was"
    await client.call("tab_close", targetId=told["targetId"])
    browser = client.nova._parts.browser
    await browser.staging.tidy(browser.targets, 0)
    assert not list((tmp_path / "staging").rglob("note.txt"))


async def test_a_tab_that_closes_while_it_is_being_claimed_leaves_no_claim(client: NovaClient) -> None:
    told = await client.show("<p>claim me")
    browser = client.nova._parts.browser
    answers = []

    async def claim() -> None:
        answers.append(await client.call("tab_claim", targetId=told["targetId"]))

    async with anyio.create_task_group() as group, browser.claims._alone(("tester", "default")):
        group.start_soon(claim)
        await anyio.wait_all_tasks_blocked()
        await browser.targets.close_tab(client.tab(told["targetId"]))
    assert answers[0]["reasonCode"] == "tab.unknown"
    assert answers[0]["lastSeen"]["endReason"] == "closed"
    assert browser.claims.held_by(("tester", "default")) == []


async def test_connections_that_take_turns_must_name_their_tabs(client: NovaClient, site: Site) -> None:
    async def call(connection: str, tool: str, **arguments: object) -> dict[str, object]:
        return (await client.answer(tool, connection, **arguments)).structured

    one = await call("one", "navigate", url=site.url("html?body=one"))
    two = await call("two", "tab_new", url=site.url("html?body=two"))
    refused = await call("one", "read_text")
    assert refused["reasonCode"] == "tab.active_ambiguous"
    assert {tab["targetId"] for tab in refused["tabs"]} == {one["targetId"], two["targetId"]}
    named = await call("one", "read_text", targetId=one["targetId"])
    assert named["text"] == "one"
    await call("two", "tab_close", targetId=two["targetId"])
    await call("one", "set_active_tab", targetId=one["targetId"])
    assert (await call("one", "read_text"))["text"] == "one"


async def test_a_token_that_an_agent_repeats_everywhere_is_kept_nowhere(client: NovaClient) -> None:
    told = await client.show("<p>token")
    token = (await client.call("tab_claim", targetId=told["targetId"]))["finalizationToken"]
    again = await client.call("tab_claim", targetId=told["targetId"], debugLabel=f"x {token}"[:80])
    assert again["finalizationToken"] == token
    await client.call("search_text", text=token)
    await client.call("navigate", url=f"http://127.0.0.1:1/{token}")
    released = await client.call(
        "tab_release",
        targetId=told["targetId"],
        finalizationToken=token,
        finalizeDecision="commit",
        finalizeReasonCode=token,
        finalizeReasonText=f"because {token}",
        finalizeOutboxJobType="finalize.noop",
        finalizeOutboxPayload={"scope": token, "data": {token: [token]}},
    )
    assert released["released"] is True
    await client.nova._parts.browser.care()
    assert token.encode() not in client.kept()
