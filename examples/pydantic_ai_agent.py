"""Nova's tools in a Pydantic AI agent. Without `--model` a stand-in plays the model, so that this runs offline."""

import argparse
import asyncio
import tempfile
from pathlib import Path
from typing import Any

from pydantic_ai import Agent, ModelRetry
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.tools import Tool

from nova_mcp import Embedded, ListedTool, Settings, open_nova
from small_site import open_shop


def as_tool(nova: Embedded, listed: ListedTool) -> Tool[None]:
    """One tool of Nova as one of the framework; its schema is Nova's own, so nothing is described twice."""

    async def call(**arguments: Any) -> str:
        answer = await nova.call(listed.name, arguments)
        if answer.is_error and answer.structured.get("retryAdvice") == "safe_to_retry":
            # The framework shows this to the model and lets it try again.
            raise ModelRetry(answer.text)
        return answer.text

    return Tool.from_schema(
        call,
        name=listed.name.replace(".", "_"),
        description=listed.description,
        json_schema=listed.input_schema,
    )


def stand_in(url: str) -> FunctionModel:
    """Opens the page, reads it, and says what it read."""

    def play(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        returned = [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
        match len(returned):
            case 0:
                return ModelResponse(parts=[ToolCallPart("nova_navigate", {"url": url})])
            case 1:
                return ModelResponse(parts=[ToolCallPart("nova_read_text", {})])
            case _:
                return ModelResponse(parts=[TextPart(f"The page says: {returned[-1].content}")])

    return FunctionModel(play)


async def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__)
    flags.add_argument("--model", help="a model of yours, for example anthropic:claude-sonnet-4-5")
    chosen = flags.parse_args().model
    with tempfile.TemporaryDirectory() as folder, open_shop() as shop:
        async with open_nova(Settings(data_dir=Path(folder))) as nova:
            agent = Agent(chosen or stand_in(shop.url), tools=[as_tool(nova, tool) for tool in nova.tools("core")])
            result = await agent.run(f"What does the shop at {shop.url} sell?")
            print(result.output)


if __name__ == "__main__":
    asyncio.run(main())
