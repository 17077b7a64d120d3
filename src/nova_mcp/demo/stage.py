"""The agents' side of the connection, and the chapters that come of it."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio
from mcp.client.client import Client
from mcp_types import TextContent, TextResourceContents

from nova_mcp.core.values import JsonObject
from nova_mcp.demo.site import PracticeSite
from nova_mcp.demo.story_clock import StoryClock

# Facts are told of a tab, whoever tells them.
_OF_NOBODY = frozenset({"ok_observe"})
_CONTROL = re.compile(r'^(e\d+) (\S+) "((?:[^"\\]|\\.)*)" (\S+)')


@dataclass(frozen=True, slots=True)
class Chapter:
    """One scene: what happened, what Nova said, what the site counted, and whether that is what should have been."""

    title: str
    nova: str
    site: str
    as_expected: bool


class Broken(Exception):
    """Something that later chapters need did not come about."""


@dataclass(frozen=True, slots=True)
class Told:
    """An answer: what programs read, and what an agent reads."""

    body: JsonObject
    text: str

    @property
    def first_line(self) -> str:
        return self.text.partition("\n")[0]

    @property
    def without_advice(self) -> str:
        """What happened, without what to do about it."""
        return self.first_line.partition(" · do_not_retry")[0]

    @property
    def flat(self) -> str:
        """All of it in one line."""
        return " · ".join(line.strip() for line in self.text.splitlines() if line.strip())

    @property
    def verified(self) -> bool:
        return self.body.get("verifyState") == "verified"

    @property
    def touched(self) -> bool:
        """Whether anything reached the page; what nobody can rule out counts."""
        return self.body.get("actionDispatched") is not False

    @property
    def commit(self) -> JsonObject:
        return self.body.get("guardedCommit") or {}

    @property
    def reason(self) -> str:
        return str(self.body.get("reasonCode"))

    @property
    def because(self) -> str:
        """A refusal in one line: its name and its sentence; where none came, what came instead."""
        return f"{self.reason}: {self.body.get('message')}" if self.body.get("reasonCode") else self.first_line

    def selector_of(self, name: str) -> str:
        """The control of that name among the lines of an answer of perceive."""
        for found in map(_CONTROL.match, self.text.splitlines()):
            if found is not None and found[3] == name:
                return found[4]
        raise Broken(f'no control "{name}" was shown')


@dataclass(slots=True)
class Agent:
    """One agent of the story; Nova knows it by its name, and it works in tabs of its own."""

    name: str
    client: Client
    on_call: Callable[[str, str], None]
    pause_s: float = 0.0

    async def call(self, tool: str, **arguments: Any) -> Told:
        self.on_call(self.name, tool)
        if tool not in _OF_NOBODY:
            arguments["agentId"] = self.name
        answer = await self.client.call_tool(f"nova.{tool}", arguments)
        await anyio.sleep(self.pause_s)
        text = "\n".join(block.text for block in answer.content if isinstance(block, TextContent))
        return Told(dict(answer.structured_content or {}), text)

    async def visit(self, url: str) -> Told:
        """Go there and look, as one has to before acting."""
        opened = await self.call("navigate", url=url)
        if opened.body.get("ok") is not True:
            raise Broken(f"{url} did not open: {opened.because}")
        return await self.call("perceive")

    async def read(self, uri: str) -> str:
        """What an address of Nova's own holds."""
        found = await self.client.read_resource(uri)
        return "".join(part.text for part in found.contents if isinstance(part, TextResourceContents))


@dataclass(slots=True)
class Stage:
    """Everything the chapters need: agents, the site, the clock, and somebody who tells what happens."""

    client: Client
    site: PracticeSite
    clock: StoryClock
    on_call: Callable[[str, str], None] = lambda agent, tool: None
    on_chapter: Callable[[Chapter], None] = lambda chapter: None
    # For people who watch the window.
    pause_s: float = 0.0
    chapters: list[Chapter] = field(default_factory=list)
    calls: Counter[str] = field(default_factory=Counter)

    def agent(self, name: str) -> Agent:
        return Agent(name, self.client, self._called, self.pause_s)

    def _called(self, agent: str, tool: str) -> None:
        self.calls[agent] += 1
        self.on_call(agent, tool)

    def tell(self, title: str, nova: str, site: str = "", *, expected: bool) -> None:
        chapter = Chapter(title, nova, site, expected)
        self.chapters.append(chapter)
        self.on_chapter(chapter)


def all_right(chapters: Sequence[Chapter]) -> bool:
    """Nothing told is nothing proven."""
    return bool(chapters) and all(chapter.as_expected for chapter in chapters)
