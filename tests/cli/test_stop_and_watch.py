"""The emergency stop from the command line, and the live view that holds its key."""

import os
import pty
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cli_kit import Folder, command, nova, nova_process


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


def test_without_a_terminal_watching_prints_plain_lines(folder: Folder) -> None:
    folder.serve("s1")
    with subprocess.Popen(
        command("watch", "--data-dir", folder.path), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            # Written until the command, which starts with what comes after it, has seen one.
            seen = threading.Event()

            def write() -> None:
                while not seen.wait(0.1):
                    folder.call(tool="nova.reload")

            writer = threading.Thread(target=write)
            writer.start()
            line = process.stdout.readline()
            seen.set()
            writer.join()
            assert line.split("\t")[2] == "nova.reload"
            assert "\x1b" not in line
        finally:
            process.terminate()
