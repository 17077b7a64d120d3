"""Commands beside a real server with a real client: they see its calls, stop it, and check its ledger."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cli_kit import command, nova, nova_process
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters


def server(data_dir: Path) -> StdioServerParameters:
    return StdioServerParameters(
        command=sys.executable, args=["-m", "nova_mcp.cli", "serve", "--data-dir", str(data_dir)]
    )


async def test_calls_of_a_running_server_are_listed_verified_and_kept(tmp_path: Path) -> None:
    async with Client(server(tmp_path)) as client:
        await client.call_tool("nova.tools_bundle", {})
        await client.call_tool("nova.tools_bundle", {"noSuchArgument": 1})
        done = nova("events", "--json", "--data-dir", tmp_path)
        calls = [json.loads(line) for line in done.stdout.splitlines()]
        assert [(call["toolName"], call["outcomeKind"]) for call in calls] == [
            ("nova.tools_bundle", "ok"),
            ("nova.tools_bundle", "invalid"),
        ]
        assert nova("ledger", "verify", "--data-dir", tmp_path).exit_code == 0
        assert nova("db", "prune", "--data-dir", tmp_path).exit_code == 0
        assert nova_process("doctor", "--no-start", "--data-dir", tmp_path).returncode == 0
        assert not (await client.call_tool("nova.tools_bundle", {})).is_error
    assert "3 records in 1 chain:" in nova("ledger", "verify", "--data-dir", tmp_path).stdout


async def test_stop_refuses_the_next_call_of_a_running_server_and_resume_lets_it_through(tmp_path: Path) -> None:
    async with Client(server(tmp_path)) as client:
        assert not (await client.call_tool("nova.tabs", {})).is_error
        assert nova("stop", "--data-dir", tmp_path).exit_code == 0
        refused = await client.call_tool("nova.tabs", {})
        assert refused.is_error
        assert refused.structured_content is not None
        assert refused.structured_content["reasonCode"] == "safety.emergency_stop"
        assert nova("resume", "--data-dir", tmp_path).exit_code == 0
        assert not (await client.call_tool("nova.tabs", {})).is_error
    done = nova("events", "--json", "--outcome", "blocked_preflight", "--data-dir", tmp_path)
    assert [json.loads(line)["reasonCode"] for line in done.stdout.splitlines()] == ["safety.emergency_stop"]


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_an_http_server_says_where_it_is_and_ends_well_on_a_signal(tmp_path: Path) -> None:
    words = command("serve", "--http", "127.0.0.1:0", "--data-dir", tmp_path)
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        assert re.search(r"serving http://127\.0\.0\.1:[1-9]\d*/mcp", line), line
        assert str(tmp_path / "mcp.json") in line
        assert json.loads((tmp_path / "mcp.json").read_text())["token"] not in line
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, "")


def test_an_http_token_that_others_can_read_is_refused_with_code_2(tmp_path: Path) -> None:
    (tmp_path / "mcp.json").write_text("{}")
    (tmp_path / "mcp.json").chmod(0o644)
    words = command("serve", "--http", "127.0.0.1:0", "--data-dir", tmp_path)
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "chmod 600" in done.stderr
    assert "Traceback" not in done.stderr
