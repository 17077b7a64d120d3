"""The emergency stop from the command line, and the live view that holds its key."""

import os
import pty
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from cli_kit import Folder, command, nova, nova_process
from rich.console import Console

from nova_mcp.cli.serving import watch
from nova_mcp.cli.serving.questions import Questions
from nova_mcp.cli.serving.watch import SHOWN
from nova_mcp.cli.store.call_lines import last_calls
from nova_mcp.core.mailbox import Mailbox, this_process
from nova_mcp.core.questions import Question
from nova_mcp.core.stop_file import remove_stop, stop_requested, write_stop
from nova_mcp.evidence.reader import EventFilter
from nova_mcp.settings import Settings


def test_stop_sets_the_file_and_resume_takes_it_away(tmp_path: Path) -> None:
    data = tmp_path / "data"
    assert nova("stop", "--reason", "looks odd", "--data-dir", data).exit_code == 0
    assert "looks odd" in (data / "STOP").read_text()
    assert nova("resume", "--data-dir", data).exit_code == 0
    assert not (data / "STOP").exists()


def test_a_second_stop_keeps_the_first_note_and_a_second_resume_is_no_failure(tmp_path: Path) -> None:
    nova("stop", "--reason", "first", "--data-dir", tmp_path)
    again = nova("stop", "--reason", "second", "--data-dir", tmp_path)
    assert (again.exit_code, "Already" in again.stdout) == (0, True)
    assert "first" in (tmp_path / "STOP").read_text()
    assert [nova("resume", "--data-dir", tmp_path).exit_code for _ in range(2)] == [0, 0]


def test_a_stop_that_can_not_be_written_is_told_with_code_1(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = nova_process("stop", "--data-dir", tmp_path / "file" / "below")
    assert done.returncode == 1
    assert "could not be written" in done.stderr


def test_a_stop_that_is_lifted_while_it_is_set_does_not_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop, lifted = tmp_path / "STOP", list[bool]()

    def lifted_at_once(way: str) -> None:
        real = getattr(Path, way)

        def then_lifted(path: Path, *args: Any, **named: Any) -> Any:
            made = real(path, *args, **named)
            if path == stop and not lifted:
                lifted.append(remove_stop(stop))
            return made

        monkeypatch.setattr(Path, way, then_lifted)

    lifted_at_once("open")
    lifted_at_once("touch")
    assert write_stop(stop, "odd")
    assert lifted == [True]
    assert not stop_requested(stop)


def test_what_only_takes_the_name_of_the_stop_is_not_called_a_stop(tmp_path: Path) -> None:
    (tmp_path / "STOP").symlink_to(tmp_path / "nowhere")
    done = nova("stop", "--data-dir", tmp_path)
    assert (done.exit_code, "Already" in done.output) == (1, False)


def test_a_note_that_no_text_file_can_hold_does_not_keep_the_stop_from_holding(tmp_path: Path) -> None:
    assert write_stop(tmp_path / "STOP", "odd \udcff")
    assert "odd ?" in (tmp_path / "STOP").read_text()


class Screen:
    """The far end of a terminal in which a command runs."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.text = ""

    def wait_for(self, wanted: str) -> None:
        while wanted not in self.text:
            self.text += os.read(self.descriptor, 65536).decode(errors="replace")

    def press(self, key: str) -> None:
        self.text = ""
        os.write(self.descriptor, key.encode())


@contextmanager
def terminal(*words: object) -> Iterator[tuple[Screen, "subprocess.Popen[bytes]"]]:
    near, far = pty.openpty()
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "160", "LINES": "30"}
    with subprocess.Popen(command(*words), stdin=far, stdout=far, stderr=far, env=env) as process:
        os.close(far)
        try:
            yield Screen(near), process
        finally:
            process.kill()
            os.close(near)


def test_watching_shows_calls_as_they_come_and_its_keys_stop_resume_and_quit(folder: Folder) -> None:
    folder.call(tool="nova.navigate")
    with terminal("watch", "--data-dir", folder.path) as (screen, process):
        screen.wait_for("nova.navigate")
        folder.call(tool="nova.click_selector")
        screen.wait_for("nova.click_selector")
        screen.press("s")
        screen.wait_for("STOPPED")
        assert (folder.path / "STOP").exists()
        screen.press("r")
        screen.wait_for("running")
        assert not (folder.path / "STOP").exists()
        screen.press("q")
        assert process.wait(timeout=30) == 0


@pytest.mark.parametrize("width", [60, 80, 200])
def test_the_newest_call_and_the_keys_are_in_sight_on_a_small_terminal(folder: Folder, width: int) -> None:
    for number in range(40):
        folder.call(tool="nova.click_selector", url=f"https://shop.test/{'a-long-way/' * 20}{number}")
    folder.call(tool="nova.hover", reason="guarded_commit.duplicate_suspected")
    calls, positions = last_calls(folder.db, EventFilter(limit=SHOWN))
    view = watch.Screen(calls, positions, Questions(folder.path))
    console = Console(width=width, height=20, file=StringIO(), record=True)
    console.print(view.render(Settings(data_dir=folder.path), console.height))
    lines = console.export_text().splitlines()
    assert len(lines) <= console.height
    assert "q quit" in lines[-1]
    assert "nova.h" in lines[-2]


def first_line(process: subprocess.Popen[str], folder: Folder) -> str:
    """What is printed first; calls are written until the command, which begins with the next one, has seen one."""
    assert process.stdout is not None
    seen = threading.Event()

    def write() -> None:
        while not seen.wait(0.1):
            folder.call(tool="nova.reload")

    writer = threading.Thread(target=write)
    writer.start()
    line = process.stdout.readline()
    seen.set()
    writer.join()
    return line


def test_without_a_terminal_watching_prints_plain_lines(folder: Folder) -> None:
    folder.serve("s1")
    with subprocess.Popen(
        command("watch", "--data-dir", folder.path), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            line = first_line(process, folder)
            assert line.split("\t")[2] == "nova.reload"
            assert "\x1b" not in line
        finally:
            process.terminate()


def ask(data_dir: Path, question_id: str, why: str, asked_at_ms: int = 1) -> Mailbox:
    mailbox = Mailbox(data_dir)
    mailbox.post(
        Question(
            id=question_id,
            kind="login",
            why=why,
            agent_id="ada",
            target_id="tab_7",
            url="https://shop.test/login",
            asked_at_ms=asked_at_ms,
            expires_at_ms=asked_at_ms + 1,
            asker=this_process(),
        )
    )
    return mailbox


def test_questions_of_agents_are_shown_while_watching_and_answered_with_a_key(folder: Folder) -> None:
    mailbox = Mailbox(folder.path)
    assert not mailbox.attended()
    with terminal("watch", "--data-dir", folder.path) as (screen, process):
        screen.wait_for("No calls yet.")
        assert mailbox.attended()
        ask(folder.path, "aaaaaaaa", "log in \x1b[31mnow")
        screen.wait_for("d done")
        assert "log in \\x1b[31mnow" in screen.text
        assert "tab_7" in screen.text
        screen.press("t")
        screen.wait_for("Return ends it")
        for key in "qs!":
            screen.press(key)
        screen.wait_for("note: qs!")
        screen.press("\n")
        screen.wait_for("t note: qs!")
        ask(folder.path, "bbbbbbbb", "second one", asked_at_ms=2)
        screen.wait_for("second one")
        screen.press("d")
        screen.wait_for("second one")
        first = mailbox.reply_to("aaaaaaaa")
        assert first is not None
        assert (first.resolved, first.note, bool(first.by)) == (True, "qs!", True)
        screen.press("n")
        screen.wait_for("No calls yet.")
        second = mailbox.reply_to("bbbbbbbb")
        assert second is not None
        assert (second.resolved, second.note) == (False, None)
        assert not (folder.path / "STOP").exists()
        screen.press("q")
        assert process.wait(timeout=30) == 0
    assert not mailbox.attended()


def test_watching_without_a_terminal_is_nobody_who_could_answer(folder: Folder) -> None:
    with subprocess.Popen(
        command("watch", "--data-dir", folder.path), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            first_line(process, folder)
            assert not Mailbox(folder.path).attended()
        finally:
            process.terminate()


def test_keys_mean_nothing_to_questions_while_there_are_none(tmp_path: Path) -> None:
    questions = Questions(tmp_path)
    questions.refresh()
    assert not any(questions.take_key(key) for key in "dnt")
    assert questions.lines(0) == []


def test_a_note_can_be_corrected_dropped_and_is_bounded(tmp_path: Path) -> None:
    ask(tmp_path, "aaaaaaaa", "log in")
    questions = Questions(tmp_path)
    questions.refresh()
    for key in ("t", "a", "b", "\x7f", "\x00", "c"):
        assert questions.take_key(key)
    assert (questions.note, questions.writing) == ("ac", True)
    assert questions.take_key("\x1b")
    assert (questions.note, questions.writing) == ("", False)
    for key in ["t", *"x" * 400, "\r", "d"]:
        assert questions.take_key(key)
    reply = Mailbox(tmp_path).reply_to("aaaaaaaa")
    assert reply is not None
    assert reply.note == "x" * 280
    assert questions.waiting == []
