"""Started by the tests as a process of its own: the fake backend over standard input and output."""

import os
import socket
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import anyio
from fake_nova import build, fake_manifest

from nova_mcp.server.http.serve import serve_http
from nova_mcp.server.stdio.serve import serve_stdio
from nova_mcp.settings import Settings


def main() -> None:
    events = socket.create_connection(("127.0.0.1", int(os.environ["NOVA_TEST_EVENTS"])))
    settings = Settings.model_validate_json(os.environ["NOVA_TEST_SETTINGS"])

    def report(line: str) -> None:
        events.sendall(line.encode() + b"\n")

    def tell_ready(endpoint: str) -> None:
        report(f"ready {endpoint}")

    report("started")
    if "NOVA_TEST_HTTP" in os.environ:
        reason = anyio.run(serve_http, settings, lambda _: build(report), fake_manifest(), tell_ready)
    else:
        reason = anyio.run(serve_stdio, settings, lambda _: build(report), fake_manifest())
    report(f"returned {reason}")


main()
