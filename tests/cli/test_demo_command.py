"""`nova demo`: every step happens, what is told is what was counted, and the exit code says so."""

import re
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cli_kit import command, nova, nova_process

from nova_mcp.cli import demo
from nova_mcp.demo.playing import Played
from nova_mcp.demo.quick import TRIALS, Comparison, Side
from nova_mcp.demo.stage import Chapter
from nova_mcp.demo.tally import Tally

RIGHT = Chapter("A chapter", "it was so", "and was counted", as_expected=True)
WRONG = replace(RIGHT, title="Another one", as_expected=False)
FIGURES = replace(Tally(*([0] * 17)), by_hand=9, with_help=3)
FINE, BAD = Side("yes", "1 order", as_expected=True), Side("no", "2 orders", as_expected=False)


def plays(*chapters: Chapter) -> Callable[..., Any]:
    """A story that ends with these chapters."""

    async def play_story(folder: Path, listener: Any, *, headed: bool, then: Any) -> Played:
        for chapter in chapters:
            listener.chapter(chapter)
        played = Played(chapters, FIGURES)
        await then(played, SimpleNamespace())
        return played

    return play_story


@pytest.mark.parametrize(("chapters", "code"), [((RIGHT, RIGHT), 0), ((RIGHT, WRONG), 1), ((WRONG, RIGHT), 1), ((), 1)])
def test_a_chapter_that_did_not_do_what_it_says_makes_the_exit_code_say_so(
    monkeypatch: pytest.MonkeyPatch, chapters: tuple[Chapter, ...], code: int
) -> None:
    monkeypatch.setattr(demo, "play_story", plays(*chapters))
    done = nova("demo")
    assert done.exit_code == code
    right = sum(chapter.as_expected for chapter in chapters)
    assert f"{right} of {len(chapters)} chapters did what they say" in done.stdout
    assert done.stdout.count("✗ Another one") == 2 * chapters.count(WRONG)
    assert "9 → 3 (67% saved)" in done.stdout


def test_what_to_do_with_what_is_left_is_said_where_something_is_left(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(demo, "play_story", plays(RIGHT))
    assert "nova demo --serve" in nova("demo").stdout
    kept = nova("demo", "--data-dir", tmp_path / "kept").stdout
    assert f"nova serve --http --data-dir {tmp_path / 'kept'}" in kept
    assert f"nova receipt --data-dir {tmp_path / 'kept'}" in kept


def test_a_story_that_somebody_ended_is_no_success(monkeypatch: pytest.MonkeyPatch) -> None:
    async def ended(*args: Any, **options: Any) -> None:
        return None

    monkeypatch.setattr(demo, "play_story", ended)
    assert nova("demo").exit_code == 1


@pytest.mark.parametrize(("plain", "ours", "code"), [(FINE, FINE, 0), (BAD, FINE, 1), (FINE, BAD, 1)])
def test_both_sides_of_the_quick_demo_have_to_be_as_told(
    monkeypatch: pytest.MonkeyPatch, plain: Side, ours: Side, code: int
) -> None:
    async def play_quick(*args: Any, **options: Any) -> list[Comparison]:
        return [Comparison("A mishap", FINE, FINE), Comparison("Another", plain, ours)]

    monkeypatch.setattr(demo, "play_quick", play_quick)
    assert nova("demo", "--quick").exit_code == code


def test_a_quick_demo_that_compared_nothing_is_no_success(monkeypatch: pytest.MonkeyPatch) -> None:
    async def play_quick(*args: Any, **options: Any) -> list[Comparison]:
        return []

    monkeypatch.setattr(demo, "play_quick", play_quick)
    assert nova("demo", "--quick").exit_code == 1


def test_text_of_a_page_steers_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "play_story", plays(replace(RIGHT, nova="\x1b[2J gone", site="a\nb")))
    done = nova("demo")
    assert "\x1b" not in done.stdout
    assert "\\x1b[2J gone" in done.stdout


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "nova.db").write_text("mine")
    done = nova("demo", "--data-dir", tmp_path)
    assert done.exit_code == 2
    assert (tmp_path / "nova.db").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir() if path.name != "home"] == ["nova.db"]


@pytest.mark.parametrize("flag", [("--serve",), ("--data-dir", "x")])
def test_the_quick_demo_has_nothing_to_serve_or_keep(flag: tuple[str, ...]) -> None:
    assert nova("demo", "--quick", *flag).exit_code == 2


def test_without_a_browser_the_story_says_so_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NOVA_BROWSER", str(tmp_path / "nowhere"))
    done = nova_process("demo")
    assert done.returncode == 1
    assert done.stdout.count("browser.launch_failed") == 1
    assert "0 of 1 chapters" in done.stdout
    assert "Day" not in done.stdout
    assert done.stderr == ""


def test_without_a_browser_neither_side_of_the_comparison_went_as_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("NOVA_BROWSER", str(tmp_path / "nowhere"))
    done = nova_process("demo", "--quick")
    assert done.returncode == 1
    assert done.stdout.count("broke off") == 2 * len(TRIALS)


@pytest.mark.browser
def test_the_quick_demo_shows_both_sides() -> None:
    done = nova_process("demo", "--quick")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "✗" not in done.stdout
    for wanted in (*(trial.title for trial in TRIALS), "action.obstructed", "2 orders received", "1 order received"):
        assert wanted in done.stdout


@pytest.mark.browser
def test_the_story_goes_as_it_should_and_leaves_its_evidence(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    # Two minutes on a machine that does nothing else; a crowded one may take its time.
    told_to = command("demo", "--data-dir", kept)
    done = subprocess.run(told_to, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "✗" not in done.stdout
    assert (days := re.findall(r"^Day (\d)", done.stdout, re.MULTILINE)) == sorted(days)
    assert len(days) == 8
    (told,) = re.findall(r"calls recorded, of which stopped before they ran\t(\d+), \d+\tledger", done.stdout)
    listed = nova("events", "--json", "--limit", 5000, "--data-dir", kept)
    assert len([line for line in listed.stdout.splitlines() if '"kind":"call"' in line]) == int(told)
    assert nova("ledger", "verify", "--data-dir", kept).exit_code == 0
    assert nova("replay", "--data-dir", kept).exit_code == 0
