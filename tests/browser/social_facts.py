"""Reading facts of a fixture page by name."""

from typing import Any

from nova_mcp.browser.targets.tab import Tab


async def read(tab: Tab, *names: str, base: dict[str, Any] | None = None, **hints: str) -> dict[str, Any]:
    """The values by name; None stands for a fact that can't be known. `base` is filled and compared with."""
    kept = {} if base is None else base
    refs = [{"name": name} for name in names]
    told = await tab.channel.ask("readFacts", {"facts": refs, "base": kept, **hints})
    kept.update(told["base"])
    return {name: fact.get("v") for name, fact in zip(names, told["values"], strict=True)}
