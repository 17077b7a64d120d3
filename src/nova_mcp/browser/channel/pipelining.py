"""Protocol commands sent one after the other without waiting for replies in between."""

from typing import Any

import anyio
from playwright.async_api import CDPSession, Error


async def sent_together(session: CDPSession, *commands: tuple[str, dict[str, Any] | None]) -> list[dict[str, Any]]:
    """The replies to commands that were sent without waiting in between; the browser takes them in this order."""
    replies: list[dict[str, Any]] = [{} for _ in commands]
    refused: list[Error] = []

    async def send(place: int, method: str, params: dict[str, Any] | None) -> None:
        try:
            replies[place] = await session.send(method, params)
        except Error as error:
            refused.append(error)

    async with anyio.create_task_group() as group:
        for place, (method, params) in enumerate(commands):
            group.start_soon(send, place, method, params)
    if refused:
        raise refused[0]
    return replies
