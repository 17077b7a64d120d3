"""Files that pages hand over: into the sandbox's folder, under a clean name, within limits, told truthfully."""

import hashlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from nova_mcp.browser.act.navigate import navigate
from nova_mcp.browser.files.download_files import DownloadFiles
from nova_mcp.browser.files.download_rules import DownloadLimits
from nova_mcp.browser.files.downloads import REMOTE_NOT_SAVED, Downloads, _Place
from nova_mcp.browser.process.runtime import Browser
from nova_mcp.browser.targets.registry import Tab
from nova_mcp.evidence.model import Caller
from nova_mcp.tools.browse import navigate as navigation_tools

from .conftest import Handler, Site, eventually
from .tool_kit import Kit, tool_kit

FILE = b"x" * 64


@pytest.fixture
async def kit(browser: Browser, caller: Caller, tab: Tab, tmp_path: Path) -> AsyncIterator[Kit]:
    async with tool_kit(tmp_path, browser, (navigation_tools.navigate, navigation_tools.back), caller.principal) as kit:
        yield kit


@pytest.fixture
def limits(browser: Browser) -> Any:
    def limit(**given: int) -> None:
        browser.downloads.limits = DownloadLimits(**given)

    yield limit
    browser.downloads.limits = DownloadLimits()


@pytest.fixture
def serve(site: Site, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """An address that hands over a file in the given way."""

    def serving(answer: Callable[[Handler], None]) -> str:
        monkeypatch.setattr(Handler, "at_file", lambda handler, query: answer(handler), raising=False)
        return site.url("file")

    return serving


def folder(browser: Browser, tab: Tab) -> Path:
    return browser._home.data_dir / "downloads" / browser.sandboxes.by_id(tab.sandbox_id).sandbox_ref


def arrived(browser: Browser, tab: Tab) -> list[str]:
    return sorted(path.name for path in folder(browser, tab).iterdir() if path.is_file())


def on_disk(path: str) -> tuple[bytes, int]:
    return Path(path).read_bytes(), Path(path).stat().st_mode & 0o777


def everything_in(place: Path) -> list[Path]:
    return list(place.rglob("*"))


async def test_a_file_lands_in_its_sandbox_and_is_told_with_size_and_hash(browser, tab, site, kit) -> None:
    told = await kit.call("navigate", url=site.url("download"))
    assert (told["status"], told["reasonCode"]) == ("partial", "navigation.became_download")
    (file,) = told["downloads"]
    assert file == {
        "fileName": "a.bin",
        "bytes": 64,
        "sha256": hashlib.sha256(FILE).hexdigest(),
        "mimeType": "application/octet-stream",
        "state": "completed",
        "path": str(folder(browser, tab) / "a.bin"),
    }
    assert on_disk(file["path"]) == (FILE, 0o600)
    after = await kit.answer("navigate", url=site.url("html"))
    assert "downloads" not in after.structured, "an end is told once"


async def test_a_name_that_climbs_stays_inside_and_never_overwrites(browser, tab, serve, kit) -> None:
    url = serve(
        lambda handler: handler.reply(
            200,
            b"<h1>hi</h1>",
            Content_Type="text/html",
            Content_Disposition="attachment; filename*=UTF-8''..%2F..%2F..%2F%2Ebashrc%00%0A%C3%A9.html",
        )
    )
    first, second = [(await kit.call("navigate", url=url))["downloads"][0] for _ in range(2)]
    inside = folder(browser, tab)
    for file in (first, second):
        assert Path(file["path"]).parent == inside
        assert file["state"] == "completed"
        assert file["mimeType"] == "text/html"
        assert file["fileName"].isascii()
        assert not file["fileName"].startswith(".")
    assert first["path"] != second["path"]


async def test_a_file_that_never_ends_is_cut_off_at_its_limit(browser, tab, site, serve, kit, limits) -> None:
    limits(file_bytes=300_000)
    before = arrived(browser, tab)
    cut: list[int] = []

    def endless(handler: Handler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "application/zip")
        handler.send_header("Content-Disposition", "attachment; filename=endless.zip")
        handler.end_headers()
        sent = 0
        handler.close_connection = True
        try:
            while not site.gate.wait(0.01):
                handler.wfile.write(b"z" * 20_000)
                sent += 20_000
        except OSError:
            cut.append(sent)

    told = await kit.call("navigate", url=serve(endless))
    seen = {"downloads": told.get("downloads", [])}
    while seen["downloads"][0]["state"] == "running":
        seen = await kit.call("navigate", url=site.url("html"))
    (file,) = seen["downloads"]
    assert (file["state"], file["note"]) == ("cancelled", "larger than 300000 bytes")
    assert "path" not in file
    await eventually(lambda: bool(cut))
    assert arrived(browser, tab) == before
    # The server sees the end of the connection before the browser has deleted what came of it.
    incoming = folder(browser, tab) / ".incoming"
    await eventually(lambda: list(incoming.iterdir()) == [])


async def test_an_announced_size_over_the_limit_is_refused_at_once(browser, tab, serve, kit, limits) -> None:
    limits(file_bytes=1000)
    before = arrived(browser, tab)
    url = serve(lambda handler: handler.reply(200, b"y" * 5000, Content_Disposition="attachment; filename=big.bin"))
    (file,) = (await kit.call("navigate", url=url))["downloads"]
    assert (file["state"], file["note"]) == ("cancelled", "larger than 1000 bytes")
    assert arrived(browser, tab) == before


async def test_a_full_sandbox_takes_no_more(browser, tab, site, kit, limits) -> None:
    held = browser.downloads._places[browser.sandboxes.by_id(tab.sandbox_id).sandbox_ref].kept[0]
    limits(sandbox_bytes=held + 100)
    await navigate(tab, site.url("html"))
    one, two = [(await kit.call("navigate", url=site.url("download")))["downloads"][0] for _ in range(2)]
    assert (one["state"], two["state"]) == ("completed", "cancelled")
    assert "used up" in two["note"]


async def test_a_slow_file_is_running_first_and_told_as_finished_by_a_later_answer(tab, site, serve, kit) -> None:
    def slow(handler: Handler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "application/zip")
        handler.send_header("Content-Disposition", "attachment; filename=slow.bin")
        handler.send_header("Content-Length", "10")
        handler.end_headers()
        handler.wfile.write(b"12345")
        handler.wfile.flush()
        site.gate.wait(30)
        handler.wfile.write(b"67890")

    told = await kit.call("navigate", url=serve(slow))
    (file,) = told["downloads"]
    assert (file["fileName"], file["state"], file["sha256"]) == ("slow.bin", "running", None)
    site.gate.set()
    await eventually(lambda: tab.downloads[0].state != "running")
    answer = await kit.answer("navigate", url=site.url("html"))
    (file,) = answer.structured["downloads"]
    assert (file["state"], file["bytes"]) == ("completed", 10)
    assert file["path"] in answer.text


async def test_a_page_made_blob_is_saved_like_any_file(browser, tab, site, kit) -> None:
    await navigate(tab, site.url("html"))
    await tab.page.evaluate(
        "() => { const a = document.createElement('a'); a.href = URL.createObjectURL(new Blob(['a,b']));"
        " a.download = 'table.csv'; a.click(); }"
    )
    await eventually(lambda: bool(tab.downloads) and tab.downloads[0].state != "running")
    (seen,) = tab.downloads
    assert (seen.state, seen.bytes, seen.mime_type) == ("completed", 3, "text/csv")
    tab.downloads.clear()


async def test_downloads_of_a_remote_browser_are_reported_not_saved(tmp_path: Path) -> None:
    seen = Downloads(tmp_path, remote=True).claimed("ab" * 16, "http://x.test/f", "../f.pdf", "")
    assert (seen.file_name, seen.state, seen.note) == ("f.pdf", "not_saved", REMOTE_NOT_SAVED)
    assert everything_in(tmp_path) == []


# -- two reports of one download


REFS = ("aa" * 16, "bb" * 16)


def desk(tmp_path: Path) -> Downloads:
    """A desk with two sandboxes and no browser; the test speaks for it."""
    downloads = Downloads(tmp_path)
    for ref in REFS:
        files = DownloadFiles(tmp_path, ref)
        files.prepare("tester")
        downloads._places[ref] = _Place(files, f"context {ref}", (0, 0))
    return downloads


async def tell(downloads: Downloads, ref: str, guid: str, url: str = "http://x.test/f") -> None:
    place = downloads._places[ref].files.incoming / guid
    place.write_bytes(ref.encode())
    await downloads._on_progress(
        {"guid": guid, "state": "completed", "receivedBytes": 32, "totalBytes": 32, "filePath": str(place)}
    )


async def begin(downloads: Downloads, guid: str) -> None:
    await downloads._on_begin({"guid": guid, "url": "http://x.test/f", "suggestedFilename": "f"})


async def test_a_file_that_was_there_before_its_page_told_of_it_is_found(tmp_path: Path) -> None:
    downloads = desk(tmp_path)
    await begin(downloads, "g1")
    await tell(downloads, REFS[0], "g1")
    assert downloads.claimed(REFS[1], "http://x.test/f", "f", "").state == "running", "it is another sandbox's"
    assert downloads.claimed(REFS[0], "http://x.test/f", "f", "").state == "completed"
    assert not downloads.running


async def test_one_address_fetched_by_two_sandboxes_goes_to_each_its_own(tmp_path: Path) -> None:
    downloads = desk(tmp_path)
    seen = [downloads.claimed(ref, "http://x.test/f", "f", "") for ref in REFS]
    await begin(downloads, "g1")
    await begin(downloads, "g2")
    # The browser names no owner while they come: here they come the other way round.
    await tell(downloads, REFS[1], "g1")
    await tell(downloads, REFS[0], "g2")
    for one, ref in zip(seen, REFS, strict=True):
        assert one.state == "completed"
        assert Path(str(one.path)).parent.name == ref
        assert on_disk(str(one.path))[0] == ref.encode()


async def test_a_browser_that_ends_takes_its_downloads_along(tmp_path: Path) -> None:
    downloads = desk(tmp_path)
    seen = downloads.claimed(REFS[0], "http://x.test/f", "f", "")
    other = downloads.claimed(REFS[0], "http://x.test/g", "g", "")
    await begin(downloads, "g1")
    downloads.browser_gone()
    assert [(one.state, one.note) for one in (seen, other)] == [("failed", "the browser ended")] * 2
    assert not downloads.running
