"""Nova inside a Python program: order a book, have the order proven, and see a repeat refused."""

import asyncio
import tempfile
from pathlib import Path

from nova_mcp import Settings, open_nova
from small_site import open_shop


async def order(url: str, data_dir: Path) -> None:
    async with open_nova(Settings(data_dir=data_dir)) as nova:
        print((await nova.call("nova.navigate", {"url": url})).text)
        print((await nova.call("nova.perceive")).text)
        await nova.call("nova.type_selector", {"selector": "#name", "text": "Ada"})

        # A button that orders is pressed only with a promise that can be checked afterwards.
        first = await nova.call("nova.click_selector", {"selector": "#send", "expect": ["text:Order received"]})
        print("ordered:", first.text)
        again = await nova.call("nova.click_selector", {"selector": "#send", "expect": ["text:Order received"]})
        print("again:", again.structured["reasonCode"] if again.is_error else again.text)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, open_shop() as shop:
        asyncio.run(order(shop.url, Path(folder)))
        print("orders that reached the shop:", shop.orders)


if __name__ == "__main__":
    main()
