"""A tool-calling loop without a framework. `Scripted` stands where a model would; put yours there."""

import asyncio
import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from nova_mcp import Embedded, Settings, UnknownTool, open_nova
from small_site import open_shop


@dataclass(frozen=True)
class ToolCall:
    id: str
    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Reply:
    """What a model says: calls to make, or a last word."""

    text: str = ""
    calls: Sequence[ToolCall] = ()


class Model(Protocol):
    async def reply(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> Reply: ...


def offered(nova: Embedded) -> list[dict[str, Any]]:
    """Nova's tools in the form most model APIs take; not all of them allow a dot in a name."""
    return [
        {
            "name": tool.name.replace(".", "_"),
            "description": tool.description,
            "input_schema": tool.input_schema,
        }
        for tool in nova.tools("core")
    ]


async def run(nova: Embedded, model: Model, task: str, limit: int = 20) -> str:
    """Ask, do what is asked for, show what came of it, until the model has nothing more to call."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": task}]
    tools = offered(nova)
    for _ in range(limit):
        reply = await model.reply(messages, tools)
        if not reply.calls:
            return reply.text
        messages.append({"role": "assistant", "content": reply.text, "calls": list(reply.calls)})
        for call in reply.calls:
            try:
                answer = await nova.call(call.name, dict(call.arguments))
                said, failed = answer.text, answer.is_error
            except UnknownTool as error:
                said, failed = str(error), True
            # A refusal is worth reading: it says what would clear the way.
            messages.append({"role": "tool", "id": call.id, "content": said, "is_error": failed})
    return "gave up: too many steps"


@dataclass
class Scripted:
    """Calls what it was told to call; real ones read `messages` and choose from `tools`."""

    script: list[ToolCall]
    heard: list[str] = field(default_factory=list)

    async def reply(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> Reply:
        self.heard = [message["content"] for message in messages if message["role"] == "tool"]
        known = {tool["name"] for tool in tools}
        if not self.script:
            return Reply(text=f"done after {len(self.heard)} calls; the last one said: {self.heard[-1]}")
        call = self.script.pop(0)
        if call.name not in known:
            raise LookupError(f"{call.name} was not offered")
        return Reply(calls=[call])


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder, open_shop() as shop:
        steps: list[tuple[str, dict[str, Any]]] = [
            ("nova_navigate", {"url": shop.url}),
            ("nova_perceive", {}),
            ("nova_type_selector", {"selector": "#name", "text": "Grace"}),
            ("nova_click_selector", {"selector": "#send"}),
            ("nova_click_selector", {"selector": "#send", "expect": ["text:Order received"]}),
        ]
        model = Scripted([ToolCall(f"call-{place}", name, args) for place, (name, args) in enumerate(steps)])
        async with open_nova(Settings(data_dir=Path(folder))) as nova:
            print(await run(nova, model, "Order a book for Grace."))
        print("without a promise:", json.loads(model.heard[3])["reasonCode"])
        print("orders that reached the shop:", shop.orders)


if __name__ == "__main__":
    asyncio.run(main())
