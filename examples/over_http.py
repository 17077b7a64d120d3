"""One Nova over HTTP for several agents; here a server of its own, usually one that already runs."""

import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client


async def tabs(data_dir: Path) -> None:
    access = json.loads((data_dir / "mcp.json").read_text())
    headers = {"Authorization": f"Bearer {access['token']}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(streamable_http_client(access["endpoint"], http_client=http)) as client,
    ):
        answer = await client.call_tool("nova.tabs", {})
        print("tabs:", (answer.structured_content or {})["tabs"])


@contextmanager
def serving(data_dir: Path) -> Iterator[None]:
    """`nova serve --http` until the block ends; it says on stderr when it listens."""
    words = [sys.executable, "-m", "nova_mcp.cli", "serve", "--http", "127.0.0.1:0", "--data-dir", str(data_dir)]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as server:
        try:
            if not any("serving http" in line for line in server.stderr or ()):
                raise RuntimeError("the server ended before it listened")
            yield
        finally:
            server.terminate()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder)):
        asyncio.run(tabs(Path(folder)))


if __name__ == "__main__":
    main()
