"""`nova login`: a person logs in once; it refuses plainly, and tells counts, never values."""

import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import typer
from cli_kit import nova

from nova_mcp.browser.process.find_chromium import has_display
from nova_mcp.browser.state.manual_login import Kept, LoginWindow
from nova_mcp.browser.state.state_files import KeptFiles, Taken
from nova_mcp.cli.setup.login import at_the_terminal, perform, report, site_url
from nova_mcp.core.file_lock import HeldBy
from nova_mcp.settings import Settings


@pytest.fixture
def site() -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Set-Cookie", "sid=value-of-the-cookie; Path=/")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>in</title>")

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("shop.example", "https://shop.example"),
        ("shop.example/login?next=1", "https://shop.example/login?next=1"),
        ("localhost:8000", "https://localhost:8000"),
        ("http://127.0.0.1:8000/x", "http://127.0.0.1:8000/x"),
        ("HTTPS://shop.example", "HTTPS://shop.example"),
        ("", None),
        ("two words", None),
        ("javascript:alert(1)", None),
        ("file:///etc/passwd", None),
    ],
)
def test_a_site_is_an_address_with_https_unless_it_says_otherwise(given: str, url: str | None) -> None:
    assert site_url(given) == url


def test_what_is_no_site_is_a_mistake_of_the_command_line(tmp_path: Path) -> None:
    done = nova("login", "two words", "--data-dir", tmp_path)
    assert done.exit_code == 2
    assert "two words" in done.stderr


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="there is always a display there")
def test_without_a_display_it_says_where_to_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    done = nova("login", "shop.example", "--data-dir", tmp_path)
    assert done.exit_code == 1
    assert "no display" in done.stderr
    assert list(tmp_path.glob("sandboxes")) == []


def test_a_display_is_where_the_environment_says_or_where_there_always_is_one() -> None:
    assert has_display("darwin", {})
    assert has_display("win32", {})
    assert has_display("linux", {"DISPLAY": ":0"})
    assert has_display("linux", {"WAYLAND_DISPLAY": "wayland-0"})
    assert not has_display("linux", {"DISPLAY": ""})


def test_a_running_server_is_named_and_nothing_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISPLAY", ":0")
    held = KeptFiles(tmp_path).take()
    assert isinstance(held, Taken)
    try:
        done = nova("login", "shop.example", "--data-dir", tmp_path)
    finally:
        held.hold.release()
    assert done.exit_code == 1
    assert "running Nova server (process " in done.stderr
    assert "Close the client" in done.stderr


def test_a_login_is_kept_and_told_in_numbers(tmp_path: Path, site: str, capsys: pytest.CaptureFixture[str]) -> None:
    async def person(window: LoginWindow) -> None:
        await window.page.wait_for_url(site)

    kept = perform(Settings(data_dir=tmp_path), site, person, headed=False)
    report(kept)
    told = capsys.readouterr().out
    assert "127.0.0.1 1" in told
    assert "value-of-the-cookie" not in told
    (state,) = (tmp_path / "sandboxes").glob("*/state.json")
    assert "value-of-the-cookie" in state.read_text()
    assert list((tmp_path / "browsers").iterdir()) == []


def test_without_a_terminal_the_window_decides(tmp_path: Path, site: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)

    async def person(window: LoginWindow) -> None:
        # Nobody closes a window before it shows anything; a page closed in mid-arrival once stayed open.
        await window.page.wait_for_load_state()
        await window.page.close()
        await at_the_terminal(window)

    assert isinstance(perform(Settings(data_dir=tmp_path), site, person, headed=False), Kept)


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        (HeldBy(None), "A running Nova server is using"),
        (HeldBy(77), "process 77"),
        (Kept({}, 0, saved=False), "could not be kept"),
    ],
)
def test_failures_are_one_line_and_code_1(outcome: Kept | HeldBy, said: str, capsys) -> None:
    with pytest.raises(typer.Exit) as caught:
        report(outcome)
    assert caught.value.exit_code == 1
    assert said in capsys.readouterr().err


def test_many_hosts_are_counted_not_listed(capsys: pytest.CaptureFixture[str]) -> None:
    report(Kept({f"h{number}.example": 1 for number in range(25)}, 3, saved=True))
    told = capsys.readouterr().out
    assert "h19.example 1 and 5 more hosts" in told
    assert "stored data: 3" in told
