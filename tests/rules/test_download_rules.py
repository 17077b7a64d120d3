"""Downloads stay in their folder under plain names and inside their limits."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nova_mcp.browser.files.download_files import DownloadFiles, OwnFiles, clear_partial
from nova_mcp.browser.files.download_rules import (
    MAX_NAME,
    DownloadLimits,
    Stock,
    clean_name,
    mime_type,
    numbered,
    refused_at_start,
    refused_growth,
)

PLAIN = re.compile(r"[A-Za-z0-9._ -]{1,120}")
LIMITS = DownloadLimits(file_bytes=100, sandbox_bytes=250, at_once=2, files=3)


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        ("report.pdf", "report.pdf"),
        ("../../x", "x"),
        ("..\\..\\evil.exe", "evil.exe"),
        ("/etc/passwd", "passwd"),
        (".bashrc", "bashrc"),
        ("..", "download"),
        ("", "download"),
        ("a\x00b\nc.txt", "a_b_c.txt"),
        ("résumé.pdf", "r_sum_.pdf"),
        ("CON", "_CON"),
        ("nul.txt", "_nul.txt"),
        ("com1.tar.gz", "_com1.tar.gz"),
        ("trailing. . ", "trailing"),
        ("x" * 300 + ".pdf", "x" * 116 + ".pdf"),
        ("a." + "b" * 300, "a." + "b" * 118),
    ],
)
def test_a_name_is_reduced_to_a_plain_basename(raw: str, name: str) -> None:
    assert clean_name(raw) == name


@given(st.text(max_size=400), st.integers(1, 10**6))
def test_no_name_leaves_its_folder_hides_or_grows_too_long(raw: str, number: int) -> None:
    for name in (clean_name(raw), numbered(clean_name(raw), number)):
        assert PLAIN.fullmatch(name)
        assert not name.startswith(".")
        assert not name.endswith((" ", "."))
        assert len(name) <= MAX_NAME


@given(st.text(max_size=200))
def test_cleaning_twice_changes_nothing(raw: str) -> None:
    assert clean_name(clean_name(raw)) == clean_name(raw)


@given(st.text(max_size=200), st.integers(1, 500), st.integers(1, 500))
def test_two_numbers_never_give_one_name(raw: str, one: int, two: int) -> None:
    name = clean_name(raw)
    assert (numbered(name, one) == numbered(name, two)) == (one == two)


@pytest.mark.parametrize(
    ("declared", "name", "kind"),
    [
        ("application/pdf", "x", "application/pdf"),
        ("Text/CSV; charset=utf-8", "x.bin", "text/csv"),
        ("", "x.pdf", "application/pdf"),
        ("not a type", "x.zip", "application/zip"),
        ("<script>/x", "x", "application/octet-stream"),
        ("a/" + "b" * 500, "x", "application/octet-stream"),
    ],
)
def test_the_type_is_the_servers_word_or_the_names(declared: str, name: str, kind: str) -> None:
    assert mime_type(declared, name) == kind


def test_a_file_may_grow_to_its_limit_and_not_past_it() -> None:
    assert refused_growth(100, 0, Stock(), LIMITS) is None
    assert "larger than 100" in str(refused_growth(101, 0, Stock(), LIMITS))


def test_an_announced_size_counts_before_it_has_come() -> None:
    assert "larger than 100" in str(refused_growth(0, 101, Stock(), LIMITS))


def test_what_lies_there_and_what_is_coming_counts_against_the_sandbox() -> None:
    assert refused_growth(50, 0, Stock(kept_bytes=150, arriving_bytes=50), LIMITS) is None
    assert "250 bytes" in str(refused_growth(51, 0, Stock(kept_bytes=150, arriving_bytes=50), LIMITS))


def test_a_full_sandbox_takes_not_even_the_first_byte() -> None:
    assert refused_at_start(Stock(kept_bytes=249), LIMITS) is None
    assert refused_at_start(Stock(kept_bytes=250), LIMITS) is not None
    assert "at once" in str(refused_at_start(Stock(arriving_files=2), LIMITS))
    assert "3 files" in str(refused_at_start(Stock(kept_files=2, arriving_files=1), LIMITS))


def test_the_published_limits() -> None:
    assert (DownloadLimits().file_bytes, DownloadLimits().sandbox_bytes) == (200_000_000, 1_000_000_000)


def test_nothing_is_overwritten_and_files_are_private(tmp_path) -> None:
    files = DownloadFiles(tmp_path, "ab" * 16)
    files.prepare("tester")
    for content in (b"one", b"two"):
        (files.incoming / "guid").write_bytes(content)
        files.file("guid", "../x.txt")
    assert {path.name: path.read_bytes() for path in files.folder.glob("*.txt")} == {"x.txt": b"one", "x-2.txt": b"two"}
    assert files.kept() == (6, 2)
    assert (files.folder / "x.txt").stat().st_mode & 0o777 == 0o600
    assert files.remove() == 2
    assert not files.folder.exists()


def test_what_an_earlier_server_left_half_done_is_cleared(tmp_path) -> None:
    files = DownloadFiles(tmp_path, "ab" * 16)
    files.prepare("tester")
    (files.incoming / "half").write_bytes(b"x")
    (files.folder / "whole").write_bytes(b"x")
    files.prepare("tester")
    assert list(files.incoming.iterdir()) == []
    assert files.kept() == (1, 1)


def test_what_was_arriving_when_a_server_died_is_swept_at_the_next_start(tmp_path) -> None:
    dead, living = DownloadFiles(tmp_path, "ab" * 16), DownloadFiles(tmp_path, "cd" * 16)
    for files in (dead, living):
        files.prepare("tester")
        (files.incoming / "half").write_bytes(b"x")
        (files.folder / "whole").write_bytes(b"x")
    dead.release()
    clear_partial(tmp_path)
    assert not dead.incoming.exists()
    assert (living.incoming / "half").exists()
    assert dead.kept() == living.kept() == (1, 1)
    living.release()


def test_only_finished_downloads_of_ones_own_may_be_handed_over(tmp_path) -> None:
    files = DownloadFiles(tmp_path, "ab" * 16)
    files.prepare("owner")
    outside = tmp_path.parent / "elsewhere" / "note.txt"
    cases = {
        files.folder / "a.zip": {"owner"},
        files.incoming / "half": set(),
        files.folder / ".hidden": set(),
        tmp_path / "downloads" / "unknown" / "a.zip": set(),
        tmp_path / "uploads" / "note.txt": {"owner", "stranger"},
        tmp_path / "sandboxes" / "ref" / "state.json": set(),
        tmp_path / "staging" / "server" / "copy.txt": set(),
        tmp_path / "secrets.toml": set(),
        outside: {"owner", "stranger"},
    }
    for path, takers in cases.items():
        allowed = {who for who in ("owner", "stranger") if OwnFiles(tmp_path, who).covers(path, tmp_path)}
        assert allowed == takers, path
    assert OwnFiles(tmp_path, "stranger").covers(tmp_path / "shared" / "a.txt", tmp_path / "shared")
    assert not OwnFiles(tmp_path, "stranger").covers(tmp_path / "staging" / "a.txt", tmp_path / "staging")
    files.release()
