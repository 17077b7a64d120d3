"""The server as a process of its own: what it says to nonsense, and how it ends."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from wire_kit import LIMIT_S, SERVE_FAKE, Events, process_environment

from nova_mcp.settings import Settings

HANDSHAKE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "0"},
}
MODERN_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "0"},
}


class Process:
    """A raw peer: writes bytes, reads lines."""

    def __init__(self, events: Events, settings: Settings, era: str) -> None:
        self.era = era
        self.child = subprocess.Popen(
            [sys.executable, str(SERVE_FAKE)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=process_environment(events, settings),
        )

    def send_raw(self, data: bytes) -> None:
        assert self.child.stdin is not None
        self.child.stdin.write(data + b"\n")
        self.child.stdin.flush()

    def send(self, method: str, request_id: int | None = None, **params: Any) -> None:
        if self.era == "auto" and request_id is not None:
            params = {**params, "_meta": MODERN_META}
        body: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
        if request_id is not None:
            body["id"] = request_id
        self.send_raw(json.dumps(body).encode())

    def receive(self) -> dict[str, Any]:
        assert self.child.stdout is not None
        line = self.child.stdout.readline()
        assert line, "the server closed its output"
        message: dict[str, Any] = json.loads(line)
        return message

    def ask(self, method: str, request_id: int, **params: Any) -> dict[str, Any]:
        self.send(method, request_id, **params)
        answer = self.receive()
        assert answer["id"] == request_id
        return answer

    def greet(self) -> None:
        if self.era == "legacy":
            assert "result" in self.ask("initialize", 1, **HANDSHAKE)
            self.send("notifications/initialized")
        else:
            assert "result" in self.ask("server/discover", 1)

    def stop(self) -> tuple[bytes, bytes]:
        rest, log = self.child.communicate(timeout=LIMIT_S)
        return rest, log


@pytest.fixture
def start(events: Events, make_settings: Callable[..., Settings], era: str) -> Iterator[Callable[..., Process]]:
    started: list[Process] = []

    def begin(**changes: Any) -> Process:
        process = Process(events, make_settings(**changes), era)
        started.append(process)
        process.greet()
        return process

    yield begin
    for process in started:
        if process.child.poll() is None:
            process.child.kill()
        process.child.communicate(timeout=LIMIT_S)


@contextmanager
def still_serving(process: Process) -> Iterator[None]:
    yield
    answer = process.ask("tools/call", 99, name="nova.echo", arguments={"value": 1})
    assert answer["result"]["structuredContent"]["ok"] is True


def test_nonsense_is_answered_and_the_server_stays_up(start: Callable[..., Process]):
    process = start()
    deep = b"[" * 5_000 + b"]" * 5_000
    cases: list[tuple[bytes, int, Any]] = [
        (b"this is not json", -32700, None),
        (
            b'{"jsonrpc":"2.0","id":11,"method":"tools/call","params":{"name":"nova.echo","arguments":' + deep,
            -32700,
            11,
        ),
        (b'{"jsonrpc":"2.0","id":12,"method":"ping","params":{"v":"\xff"}}', -32700, 12),
        (b'{"jsonrpc":"2.0","id":13,"method":"ping","params":{"v":NaN}}', -32700, 13),
        (b'[{"jsonrpc":"2.0","id":14,"method":"ping"}]', -32600, None),
        (b'{"jsonrpc":"2.0","id":15,"method":"ping","params":[]}', -32600, 15),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600, None),
    ]
    with still_serving(process):
        for data, code, request_id in cases:
            process.send_raw(data)
            answer = process.receive()
            assert (answer["error"]["code"], answer["id"]) == (code, request_id), data[:80]
            assert answer["error"]["message"]
        process.send_raw(b"")
        process.send_raw(b"   \r")


def test_an_unknown_method_is_told_so(start: Callable[..., Process]):
    process = start()
    with still_serving(process):
        assert process.ask("tools/destroy", 5)["error"]["code"] == -32601


def test_malformed_parameters_are_named(start: Callable[..., Process]):
    process = start()
    with still_serving(process):
        error = process.ask("tools/call", 5, name="nova.echo", arguments="text")["error"]
        assert error["code"] == -32602
        assert "arguments" in error["message"]


def test_a_ten_megabyte_string_is_refused_by_size(start: Callable[..., Process]):
    process = start()
    with still_serving(process):
        error = process.ask("tools/call", 21, name="nova.echo", arguments={"value": "x" * 10_000_000})["error"]
        assert error["code"] == -32602
        assert error["data"]["reasonCode"] == "size_limit"
        assert "4194304" in error["message"]


def test_a_line_beyond_what_is_kept_is_refused_with_its_id(start: Callable[..., Process]):
    process = start()
    with still_serving(process):
        filler = b'{"method":"ping","params":{"v":"' + b"x" * (33 * 1024 * 1024) + b'"},"jsonrpc":"2.0","id":22}'
        process.send_raw(filler)
        answer = process.receive()
        assert (answer["id"], answer["error"]["data"]["reasonCode"]) == (22, "size_limit")


def test_nothing_but_protocol_reaches_standard_output(start: Callable[..., Process]):
    process = start()
    answer = process.ask("tools/call", 2, name="nova.noise", arguments={})
    assert answer["result"]["structuredContent"]["child"] == 0
    assert process.child.stdin is not None
    process.child.stdin.close()
    process.child.stdin = None
    rest, log = process.stop()
    assert rest == b""
    assert b"printed by a tool" in log
    assert b"printed by a child" in log


def test_the_backend_is_built_only_after_the_first_list_was_answered(start: Callable[..., Process], events: Events):
    process = start()
    assert "built" not in events.seen
    assert process.ask("tools/list", 2)["result"]["tools"]
    events.wait("warm")
    assert events.seen.count("built") == 1
    process.ask("tools/call", 3, name="nova.echo", arguments={})
    assert events.seen.count("built") == 1


def test_end_of_input_ends_the_calls_and_the_process(start: Callable[..., Process], events: Events):
    process = start()
    process.send("tools/call", 2, name="nova.slow", arguments={})
    events.wait("call nova.slow")
    assert process.child.stdin is not None
    process.child.stdin.close()
    process.child.stdin = None
    process.stop()
    events.wait("gone")
    assert process.child.returncode == 0
    assert events.seen[-4:] == ["slow recorded", "close end of input", "returned end of input", "gone"]


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_calls_answers_them_and_closes_the_backend(
    start: Callable[..., Process], events: Events, kind: signal.Signals
):
    process = start()
    process.send("tools/call", 2, name="nova.slow", arguments={})
    events.wait("call nova.slow")
    process.child.send_signal(kind)
    answer = process.receive()
    assert answer["id"] == 2
    assert answer["result"]["isError"] is True
    assert answer["result"]["structuredContent"]["reasonCode"] == "server.shutting_down"
    process.stop()
    events.wait("gone")
    assert process.child.returncode == 0
    assert events.seen[-4:] == [
        "slow recorded",
        f"close signal {kind.name}",
        f"returned signal {kind.name}",
        "gone",
    ]


def test_a_client_that_stops_reading_cannot_keep_the_server(start: Callable[..., Process], events: Events):
    process = start()
    # More than a pipe holds, so that the server's writing blocks for good.
    for number in range(2, 6):
        process.send("tools/call", number, name="nova.echo", arguments={"value": "x" * 200_000})
    events.wait("call nova.echo")
    process.child.send_signal(signal.SIGTERM)
    events.wait("close signal SIGTERM")
    events.wait("gone")


def test_a_dead_parent_ends_the_server_even_if_its_pipe_stays_open(
    events: Events, make_settings: Callable[..., Settings]
):
    # The middle process starts the server on a pipe that the test holds open, then dies without a word.
    middle = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, sys.argv[1]])\n"
        "print(child.pid, file=sys.stderr, flush=True)\n"
        "time.sleep(600)\n"
    )
    read_end, write_end = os.pipe()
    parent = subprocess.Popen(
        [sys.executable, "-c", middle, str(SERVE_FAKE)],
        stdin=read_end,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=process_environment(events, make_settings()),
    )
    os.close(read_end)
    try:
        body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HANDSHAKE}
        call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "nova.slow", "arguments": {}}}
        os.write(write_end, json.dumps(body).encode() + b"\n" + json.dumps(call).encode() + b"\n")
        events.wait("call nova.slow")
        parent.kill()
        parent.wait(LIMIT_S)
        events.wait("close parent process ended")
        events.wait("gone")
        assert "slow recorded" in events.seen
    finally:
        os.close(write_end)
        parent.kill()
        parent.communicate(timeout=LIMIT_S)
