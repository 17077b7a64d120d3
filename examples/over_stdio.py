"""Nova as an MCP server on the other end of a pipe, the way every MCP client runs it."""

import asyncio
import os
import sys
import tempfile

from mcp import Client
from mcp.client.stdio import StdioServerParameters

from small_site import open_shop


async def look(url: str, data_dir: str) -> None:
    nova = StdioServerParameters(
        command=sys.executable,
        args=["-m", "nova_mcp.cli", "serve", "--data-dir", data_dir],
        env=dict(os.environ),
    )
    async with Client(nova) as client:
        tools = (await client.list_tools()).tools
        print(f"{len(tools)} tools, among them {tools[0].name}")
        opened = await client.call_tool("nova.navigate", {"url": url})
        print("status:", (opened.structured_content or {})["status"])
        read = await client.call_tool("nova.read_text", {})
        print(*(block.text for block in read.content if block.type == "text"))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, open_shop() as shop:
        asyncio.run(look(shop.url, folder))


if __name__ == "__main__":
    main()
