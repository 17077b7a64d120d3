"""Benchmarks run for a report: bounded in time, in a process of their own, and never silently left out."""

import sys
from pathlib import Path

import psutil
import pytest
from bench.report_run import Order, Ran, problem_of, read_lines, run, status_of
from bench.results import Ended, Remark
from bench.tables import RECORD_VARIABLE

TELL = f'echo \'{{"kind":"remark","text":"so far"}}\' >> "${RECORD_VARIABLE}"; '
SO_FAR = Remark(text="so far")
ORDER = Order("truth", "short", (), 60)


def _alive(pid: int) -> bool:
    """Whoever inherits a dead process may be slow to take note of it."""
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def test_a_run_that_tells_its_end_is_done_even_if_an_aim_was_missed(tmp_path: Path) -> None:
    script = (
        "from bench.results import Ended\nfrom bench.tables import keep, remark\nremark('so far')\n"
        "keep(Ended(code=1))\nraise SystemExit(1)"
    )
    ran = run([sys.executable, "-c", script], 60, tmp_path / "log")
    assert (ran.code, ran.lines) == (1, (SO_FAR, Ended(code=1)))
    assert (status_of(ran), problem_of(ORDER, ran)) == ("done", "")
    assert (tmp_path / "log").read_text() == "so far\n"


def test_a_run_that_breaks_is_failed_and_its_last_words_are_kept(tmp_path: Path) -> None:
    ran = run(["sh", "-c", f"{TELL} echo it broke >&2; exit 3"], 60, tmp_path / "log")
    assert (status_of(ran), ran.lines) == ("failed", (SO_FAR,))
    assert problem_of(ORDER, ran) == "ended with code 3: it broke"


def test_a_run_that_takes_too_long_is_ended_with_everything_it_started_and_what_it_told_is_kept(tmp_path: Path) -> None:
    child = tmp_path / "child"
    script = f"{TELL} trap '' INT; sleep 600 & echo $! > {child}; wait; sleep 600"
    ran = run(["sh", "-c", script], 1.5, tmp_path / "log", tidy_s=0.5)
    assert (ran.code, status_of(ran), ran.lines) == (None, "cut off", (SO_FAR,))
    assert problem_of(ORDER, ran) == "cut off after 60 s"
    assert not _alive(int(child.read_text()))


def test_a_run_keeps_its_temporary_files_in_a_folder_that_goes_with_it(tmp_path: Path) -> None:
    told = tmp_path / "told"
    run(["sh", "-c", f'touch "$TMPDIR/left"; echo "$TMPDIR" > {told}'], 60, tmp_path / "log")
    assert not Path(told.read_text().strip()).exists()


def test_a_line_cut_in_the_middle_is_no_line() -> None:
    assert read_lines('{"kind":"remark","text":"so far"}\n{"kind":"rem') == (SO_FAR,)


@pytest.mark.parametrize(("form", "words"), [("short", ["--x=1"]), ("long", ["--long", "--x=1"])])
def test_a_benchmark_is_called_as_from_a_terminal(form, words) -> None:
    assert Order("kill", form, ("--x=1",), 1).command() == [sys.executable, "-m", "bench", "kill", *words]


def test_a_run_without_words_says_so() -> None:
    assert problem_of(ORDER, Ran(-9, 1.0, (), "")) == "ended with code -9: said nothing"
