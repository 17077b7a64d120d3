"""Uploading: only allowed files, only what the input takes, read back from the input itself."""

import hashlib
import os
from pathlib import Path

import pytest

from nova_mcp.browser.act.action import Manner
from nova_mcp.browser.act.action_report import Judgement, build_report
from nova_mcp.browser.act.locate import Locator
from nova_mcp.browser.act.upload import upload
from nova_mcp.browser.files.download_files import OwnFiles
from nova_mcp.browser.files.upload_files import read_files
from nova_mcp.core.clock import system_ports
from nova_mcp.errors import InvalidParams, NotFound, PolicyDenied, Precondition

pytestmark = pytest.mark.browser
PORTS = system_ports()

OWN = OwnFiles(Path("/nowhere"), "tester")


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "uploads"
    root.mkdir()
    (root / "note.txt").write_text("a note")
    (root / "scan.pdf").write_bytes(b"%PDF-1.4")
    (root / "cat.png").write_bytes(b"\x89PNG")
    (root / "sub").mkdir()
    (tmp_path / "outside.txt").write_text("not yours")
    return root


@pytest.fixture
async def page(tab, site):
    await tab.page.goto(site.url("act/upload.html"))
    return tab


async def put(tab, folder, selector, *names, timeout_ms=500):
    files = await read_files([str(folder / name) for name in names], [folder], folder.parent / "staging", OWN)
    done = await upload(tab, Locator(selector=selector), files, Manner(timeout_ms=timeout_ms), PORTS)
    known = Judgement(done.verdict, differs_reason="upload.type_not_accepted")
    return done, build_report(done.acted, tab, known)


async def log_of(tab):
    return (await tab.page.text_content("#log")).split()


@pytest.mark.parametrize("selector", ["#one", "#hidden", "#labelled", "#label"])
async def test_a_file_goes_into_its_input_and_is_read_back(page, folder, selector):
    done, report = await put(page, folder, selector, "note.txt")
    assert (done.accepted, done.verdict) == (True, "readback_match")
    assert (report.status, report.verify_state, report.dispatch_proof) == ("ok", "verified", "event")
    field = "labelled" if selector == "#label" else selector[1:]
    assert await log_of(page) == [f"{field}:input:true:note.txt", f"{field}:change:true:note.txt"]


async def test_a_file_that_changed_since_is_handed_over_anew(page, folder):
    await put(page, folder, "#one", "note.txt")
    (folder / "note.txt").write_text("other!")
    done, report = await put(page, folder, "#one", "note.txt")
    assert (done.verdict, report.dispatch_proof) == ("readback_match", "event")
    assert await page.page.evaluate("document.querySelector('#one').files[0].text()") == "other!"


async def test_several_files_go_into_an_input_that_takes_them(page, folder):
    done, report = await put(page, folder, "#pictures", "cat.png", "scan.pdf")
    assert (done.accepted, report.verify_state) == (True, "verified")


@pytest.mark.parametrize(
    ("selector", "names", "reason"),
    [
        ("#pictures", ["note.txt"], "upload.type_not_accepted"),
        ("#one", ["note.txt", "cat.png"], "upload.multiple_not_allowed"),
        ("#off", ["note.txt"], "action.disabled"),
        ("#idle", ["note.txt"], "upload.not_file_input"),
        ("#picky", ["note.txt"], "upload.type_not_accepted"),
    ],
)
async def test_what_an_input_does_not_take_is_refused(page, folder, selector, names, reason):
    with pytest.raises(Precondition) as refused:
        await put(page, folder, selector, *names)
    assert refused.value.reason_code == reason
    assert str(folder) not in refused.value.message + refused.value.hint
    assert await log_of(page) == []


@pytest.mark.parametrize("selector", ["#button", "#late"])
async def test_a_button_that_asks_for_a_file_gets_it(page, folder, selector):
    done, report = await put(page, folder, selector, "note.txt")
    assert (done.accepted, done.verdict) == (True, "readback_match")
    assert (report.status, report.verify_state, report.dispatch_proof) == ("ok", "verified", "event")
    await page.page.wait_for_function("document.querySelector('#log').textContent.includes('made:note.txt:a note')")


async def test_a_page_that_takes_the_file_and_empties_the_input_is_believed_by_its_effect(page, folder):
    done, report = await put(page, folder, "#emptied", "note.txt")
    assert (done.accepted, done.verdict) == (True, None)
    assert report.verify_state == "likely"


async def test_the_browser_shows_file_choosers_again_afterwards(page, folder):
    await put(page, folder, "#button", "note.txt")
    async with page.page.expect_file_chooser() as chooser:
        await page.page.click("#button")
    assert not (await chooser.value).is_multiple()


async def test_files_are_measured_and_hashed(folder):
    (file,) = await read_files([str(folder / "note.txt")], [folder], folder.parent / "staging", OWN)
    assert (file.file_name, file.size) == ("note.txt", 6)
    assert file.sha256 == hashlib.sha256(b"a note").hexdigest()


async def test_a_bare_name_is_looked_for_in_the_allowed_folders(folder):
    (file,) = await read_files(["scan.pdf"], [folder.parent / "missing", folder], folder.parent / "staging", OWN)
    assert file.file_name == "scan.pdf"


async def test_links_and_dots_do_not_lead_out(folder, tmp_path):
    (folder / "link.txt").symlink_to(tmp_path / "outside.txt")
    (folder / "dir").symlink_to(tmp_path)
    (folder / "loop").symlink_to(folder / "loop")
    escapes = ["link.txt", "dir/outside.txt", "../outside.txt", "/etc/passwd", "/no/such", ".", ""]
    for path in (*escapes, str(tmp_path / "outside.txt")):
        with pytest.raises(PolicyDenied) as refused:
            await read_files([path], [folder], folder.parent / "staging", OWN)
        assert refused.value.reason_code == "upload.path_not_allowed"
        assert str(tmp_path) not in refused.value.message


async def test_links_inside_the_folder_are_followed(folder):
    (folder / "again.txt").symlink_to(folder / "note.txt")
    (file,) = await read_files(["again.txt"], [folder], folder.parent / "staging", OWN)
    assert file.file_name == "note.txt"


async def test_what_is_no_readable_file_is_not_found(folder):
    os.mkfifo(folder / "pipe")
    for name in ("absent.txt", "sub", "pipe"):
        with pytest.raises(NotFound) as refused:
            await read_files([name], [folder], folder.parent / "staging", OWN)
        assert refused.value.reason_code == "upload.not_found"


async def test_a_file_that_is_too_large_is_named_without_its_folder(folder):
    with (folder / "big.bin").open("wb") as file:
        file.truncate(50 * 1024 * 1024 + 1)
    with pytest.raises(InvalidParams) as refused:
        await read_files(["big.bin"], [folder], folder.parent / "staging", OWN)
    assert "big.bin" in refused.value.message
    assert str(folder) not in refused.value.message
    with (folder / "big.bin").open("wb") as file:
        file.truncate(50 * 1024 * 1024)
    assert (await read_files(["big.bin"], [folder], folder.parent / "staging", OWN))[0].size == 50 * 1024 * 1024
