"""Copies of uploads: what was hashed is what is handed over, and nothing of it stays longer than it can be read."""

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from nova_mcp.browser.files import upload_files
from nova_mcp.browser.files.download_files import OwnFiles
from nova_mcp.browser.files.upload_files import read_files
from nova_mcp.browser.files.upload_rules import Inside, Outside
from nova_mcp.browser.files.upload_staging import GRACE_MS, LOCK_FILE, UploadStaging
from nova_mcp.core.file_lock import Hold, take_hold
from nova_mcp.errors import Blocked, InvalidParams, NotFound

OWN = OwnFiles(Path("/nowhere"), "tester")


@dataclass(eq=False)
class Tab:
    target_id: str = "tab_1"
    page_epoch: int = 1


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "uploads"
    folder.mkdir()
    (folder / "note.txt").write_bytes(b"as it was")
    return folder


def staging_in(data: Path, server: str = "one") -> UploadStaging:
    names = iter(range(100))
    return UploadStaging(data, server, lambda size: f"{next(names):0{2 * size}x}")


async def test_a_file_that_is_swapped_after_it_was_read_is_handed_over_as_it_was(root: Path, tmp_path: Path) -> None:
    (file,) = await read_files(["note.txt"], [root], tmp_path / "copies", OWN)
    (root / "note.txt").unlink()
    (root / "note.txt").symlink_to("/etc/passwd")
    assert file.path.read_bytes() == b"as it was"
    assert file.sha256 == hashlib.sha256(b"as it was").hexdigest()
    assert (file.file_name, file.short) == ("note.txt", "note.txt")
    assert not file.path.is_relative_to(root)
    assert file.path.stat().st_mode & 0o777 == 0o600
    assert file.path.parent.stat().st_mode & 0o777 == 0o700


async def test_copies_keep_their_names_and_their_time_when_two_are_called_alike(root: Path, tmp_path: Path) -> None:
    (root / "more").mkdir()
    (root / "more" / "note.txt").write_bytes(b"another")
    os.utime(root / "note.txt", (1000, 2000))
    first, second = await read_files(["note.txt", "more/note.txt"], [root], tmp_path / "copies", OWN)
    assert (first.path.name, second.path.name) == ("note.txt", "note.txt")
    assert (first.path.read_bytes(), second.path.read_bytes()) == (b"as it was", b"another")
    assert first.path.stat().st_mtime == 2000


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="this system can't tell which file was opened")
async def test_a_folder_that_becomes_a_link_after_the_path_was_judged_does_not_lead_out(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "sub").mkdir()
    (root / "sub" / "note.txt").write_bytes(b"fine")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "note.txt").write_bytes(b"not yours")
    real_judge = upload_files.judge_path

    def judged_then_swapped(path: Path, roots: Sequence[Path]) -> Inside | Outside:
        verdict = real_judge(path, roots)
        (root / "sub").rename(tmp_path / "moved")
        (root / "sub").symlink_to(outside)
        return verdict

    monkeypatch.setattr(upload_files, "judge_path", judged_then_swapped)
    with pytest.raises(NotFound) as caught:
        await read_files(["sub/note.txt"], [root], tmp_path / "copies", OWN)
    assert caught.value.reason_code == "upload.not_found"
    assert not list((tmp_path / "copies").rglob("*.txt"))


async def test_folders_and_pipes_are_not_found(root: Path, tmp_path: Path) -> None:
    (root / "sub").mkdir()
    os.mkfifo(root / "pipe")
    for name in ("sub", "pipe"):
        with pytest.raises(NotFound):
            await read_files([name], [root], tmp_path / "copies", OWN)


async def test_a_file_that_can_not_be_copied_is_told_without_its_folder(root: Path, tmp_path: Path) -> None:
    (tmp_path / "copies").write_text("in the way")
    with pytest.raises(Blocked) as caught:
        await read_files(["note.txt"], [root], tmp_path / "copies", OWN)
    assert caught.value.reason_code == "storage.low_free_space"
    assert str(tmp_path) not in caught.value.message + caught.value.hint


async def test_a_file_that_is_too_large_is_refused(root: Path, tmp_path: Path) -> None:
    with (root / "big.bin").open("wb") as file:
        file.truncate(50 * 1024 * 1024 + 1)
    with pytest.raises(InvalidParams):
        await read_files(["big.bin"], [root], tmp_path / "copies", OWN)


async def test_copies_stay_while_their_document_does_and_a_little_longer(root: Path, tmp_path: Path) -> None:
    staging, tab = staging_in(tmp_path), Tab()
    staged = await staging.begin(tab)
    (file,) = await read_files(["note.txt"], [root], staged.folder, OWN)
    await staging.tidy([tab], 1_000_000)
    assert file.path.exists()
    tab.page_epoch += 1
    await staging.tidy([tab], 2_000_000)
    await staging.tidy([tab], 2_000_000 + GRACE_MS - 1)
    assert file.path.exists()
    await staging.tidy([tab], 2_000_000 + GRACE_MS)
    assert not staged.folder.exists()


async def test_copies_go_with_their_tab_and_at_the_end_of_the_server(root: Path, tmp_path: Path) -> None:
    staging, closed, left = staging_in(tmp_path), Tab("tab_1"), Tab("tab_2")
    gone, kept = await staging.begin(closed), await staging.begin(left)
    for staged in (gone, kept):
        await read_files(["note.txt"], [root], staged.folder, OWN)
    await staging.tidy([left], 1000)
    assert (gone.folder.exists(), kept.folder.exists()) == (False, True)
    await staging.aclose()
    assert list((tmp_path / "staging").iterdir()) == []


async def test_a_start_removes_the_copies_of_dead_servers_and_no_others(root: Path, tmp_path: Path) -> None:
    living = staging_in(tmp_path, "living")
    staged = await living.begin(Tab())
    await read_files(["note.txt"], [root], staged.folder, OWN)
    dead = tmp_path / "staging" / "dead"
    hold = take_hold(dead / LOCK_FILE)
    assert isinstance(hold, Hold)
    hold.release()
    (dead / "0").mkdir()
    (dead / "0" / "note.txt").write_text("left behind")
    staging_in(tmp_path, "new").clear_leftovers()
    assert not dead.exists()
    assert (staged.folder / "0" / "note.txt").exists()
    await living.aclose()
