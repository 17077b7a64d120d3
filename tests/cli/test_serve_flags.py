"""`nova serve`: flags become settings, mistakes are one line and exit code 2, and nothing heavy is imported."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest
from cli_kit import nova, nova_process
from hypothesis import given
from hypothesis import strategies as st

from nova_mcp.cli.serving.serve import configuration, http_address, parser, settings_tree
from nova_mcp.settings import SettingsError


def tree(*argv: str) -> dict[str, object]:
    return settings_tree(vars(parser("nova serve").parse_args(list(argv))))


def test_no_flag_leaves_every_setting_to_environment_and_file() -> None:
    assert tree() == {}


def test_every_flag_reaches_its_setting(tmp_path: Path) -> None:
    given = vars(
        parser("nova serve").parse_args(
            [
                "--http",
                "0.0.0.0:8080",
                "--tools",
                "all",
                "--tool-names",
                "underscore",
                "--data-dir",
                str(tmp_path),
                "--store",
                "postgresql://db/nova",
                "--headed",
                "--browser",
                "/opt/chrome",
                "--cdp-endpoint",
                "http://127.0.0.1:9222",
                "--text-only",
                "--output-schemas",
                "--keep-raw-urls",
                "--enable-eval",
                "--log-level",
                "debug",
            ]
        )
    )
    settings = configuration(given)
    assert (settings.http.host, settings.http.port) == ("0.0.0.0", 8080)
    assert (settings.tools, settings.tool_names, settings.log_level) == ("all", "underscore", "debug")
    assert (settings.data_dir, settings.store_url) == (tmp_path, "postgresql://db/nova")
    assert settings.browser.headed
    assert settings.browser.executable == Path("/opt/chrome")
    assert settings.browser.cdp_endpoint == "http://127.0.0.1:9222"
    assert settings.text_only
    assert settings.output_schemas
    assert settings.keep_raw_urls
    assert settings.enable_eval


def test_flags_win_over_the_environment_and_the_environment_over_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "nova.toml").write_text('tools = "page_reading"\ntool_names = "underscore"\nlog_level = "info"\n')
    monkeypatch.setenv("NOVA_TOOL_NAMES", "dotted")
    monkeypatch.setenv("NOVA_LOG_LEVEL", "error")
    settings = configuration({"data_dir": tmp_path, "log_level": "debug"})
    assert (settings.tools, settings.tool_names, settings.log_level) == ("page_reading", "dotted", "debug")


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("", {}),
        ("9000", {"port": 9000}),
        (":9000", {"port": 9000}),
        ("localhost", {"host": "localhost"}),
        ("localhost:0", {"host": "localhost", "port": 0}),
        ("[::1]:27183", {"host": "::1", "port": 27183}),
        ("[::1]", {"host": "::1"}),
        ("::1", {"host": "::1"}),
    ],
)
def test_an_http_address_may_leave_out_either_half(text: str, address: dict[str, object]) -> None:
    assert http_address(text) == address


@pytest.mark.parametrize("text", ["host:port", "host:70000", "[::1", "[::1]x", "host:-1", "host:１"])
def test_a_wrong_http_address_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="--http"):
        http_address(text)


@given(st.text(max_size=40))
def test_any_http_address_is_understood_or_refused(text: str) -> None:
    try:
        address = http_address(text)
    except SettingsError:
        return
    assert set(address) <= {"host", "port"}
    assert 0 <= int(address.get("port", 0)) <= 65535


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (("--store", "mysql://db"), "mysql"),
        (("--http", "host:port"), "not a port"),
        (("--tools", "no_such_bundle"), "no_such_bundle"),
        (("--tool-names", "camel"), "--tool-names"),
        (("--no-such-flag",), "--no-such-flag"),
    ],
)
def test_a_configuration_mistake_is_told_on_stderr_with_code_2(
    flags: tuple[str, ...], told: str, tmp_path: Path
) -> None:
    done = nova_process("serve", "--data-dir", tmp_path, *flags)
    assert done.returncode == 2
    assert done.stdout == ""
    assert told in done.stderr
    assert "Traceback" not in done.stderr


def test_a_broken_configuration_file_is_one_line_and_code_2(tmp_path: Path) -> None:
    (tmp_path / "nova.toml").write_text("tools = \n")
    done = nova_process("serve", "--data-dir", tmp_path)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "nova.toml" in done.stderr


def test_help_says_what_each_flag_does_in_both_ways_to_reach_it() -> None:
    direct = nova_process("serve", "--help")
    assert direct.returncode == 0
    for flag in ("--http", "--tools", "--tool-names", "--cdp-endpoint", "--store", "--keep-raw-urls"):
        assert flag in direct.stdout
    assert nova("--help").output.count("serve") >= 1


def test_a_stdio_server_without_a_client_ends_at_once_and_writes_nothing(tmp_path: Path) -> None:
    done = nova_process("serve", "--data-dir", tmp_path)
    assert (done.returncode, done.stdout) == (0, "")


def test_a_taken_port_is_told_with_code_1(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = nova_process("serve", "--http", f"127.0.0.1:{taken.getsockname()[1]}", "--data-dir", tmp_path)
    assert done.returncode == 1
    assert "can't listen" in done.stderr


def test_the_way_to_a_server_imports_nothing_it_does_not_need() -> None:
    code = (
        "import sys, nova_mcp.cli, nova_mcp.cli.serving.serve, nova_mcp.server.stdio.serve, nova_mcp.server.manifest;"
        "print(*[name for name in ('rich', 'typer', 'sqlalchemy', 'playwright', 'alembic', 'nova_mcp.app') "
        "if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_reading_flags_does_not_import_the_protocol_library() -> None:
    code = "import sys, nova_mcp.cli.serving.serve; print('mcp' in sys.modules, 'anyio' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False False"
