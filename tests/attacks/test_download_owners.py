"""A download belongs to the principal whose page fetched it: no other one can hand it to a page by its path."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import pytest
from loop_kit import Server

from network_kit import LOOPBACK, Page, Web, web
from nova_mcp.calls.model import CallRequest

pytestmark = pytest.mark.browser
# The operator lets pages show files, Nova's own folder among them.
SETTINGS = {"browser": {"allow_file_roots": [gettempdir()]}}


@pytest.fixture(scope="module")
def here() -> Iterator[Web]:
    note = Page("a note", "text/plain", headers={"Content-Disposition": "attachment; filename=note.txt"})
    file = Page("the secret", "application/zip", headers={"Content-Disposition": "attachment; filename=secret.zip"})
    pages = {
        "/note.txt": note,
        "/secret.zip": file,
        "/form": Page("<!doctype html><title>form</title><input type=file id=f>"),
    }
    with web(lambda _: pages) as running:
        yield running


async def upload(server: Server, here: Web, principal: str, path: str) -> dict[str, Any]:
    async def call(tool: str, **arguments: Any) -> dict[str, Any]:
        return (await server.nova.call(CallRequest(f"nova.{tool}", arguments, principal, None))).structured

    await call("navigate", url=here.url(LOOPBACK, "/form"))
    await call("perceive")
    return await call("file_upload", selector="#f", paths=[path])


async def test_another_principals_download_answers_like_a_file_that_is_not_there(server: Server, here: Web) -> None:
    request = CallRequest("nova.navigate", {"url": here.url(LOOPBACK, "/secret.zip")}, "owner", None)
    (file,) = (await server.nova.call(request)).structured["downloads"]
    path = Path(file["path"])
    mine = await upload(server, here, "owner", str(path))
    assert (mine["status"], mine["accepted"]) == ("ok", True)
    foreign = await upload(server, here, "stranger", str(path))
    missing = await upload(server, here, "stranger", str(path.with_name("other.zip")))
    assert (foreign["status"], foreign["reasonCode"]) == ("not_found", "upload.not_found")
    assert foreign["message"].replace("secret.zip", "other.zip") == missing["message"]


async def test_what_is_still_arriving_and_novas_own_notes_are_nobodys_to_hand_over(server: Server, here: Web) -> None:
    request = CallRequest("nova.navigate", {"url": here.url(LOOPBACK, "/secret.zip")}, "owner", None)
    (file,) = (await server.nova.call(request)).structured["downloads"]
    folder = Path(file["path"]).parent
    (folder / ".incoming" / "part").write_text("half of it")
    for path in (folder / ".incoming" / "part", folder / ".state" / "owner"):
        assert path.exists()
        refused = await upload(server, here, "owner", str(path))
        assert refused["reasonCode"] == "upload.not_found", path


async def test_another_principals_download_can_not_be_opened_as_a_page(server: Server, here: Web) -> None:
    async def go(principal: str, url: str) -> dict[str, Any]:
        return (await server.nova.call(CallRequest("nova.navigate", {"url": url}, principal, None))).structured

    (file,) = (await go("owner", here.url(LOOPBACK, "/note.txt")))["downloads"]
    url = Path(file["path"]).as_uri()
    assert (await go("owner", url))["status"] == "ok"
    await go("stranger", here.url(LOOPBACK, "/form"))
    refused = await go("stranger", url)
    missing = await go("stranger", url.replace("note.txt", "other.txt"))
    assert refused["reasonCode"] == missing["reasonCode"] == "policy.file_denied"
    assert refused["message"] == missing["message"]
    assert (await go("owner", (server.data_dir / "secrets.toml").as_uri()))["reasonCode"] == "policy.file_denied"
