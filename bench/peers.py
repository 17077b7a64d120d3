"""Browser servers side by side, each a process of its own behind a real MCP client on stdio."""

import json
import os
import re
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import anyio
import anyio.abc
import psutil
from bpe_openai import get_encoding
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError

from bench.npm import npm_installed, version_of
from nova_mcp.browser.act.action import only_cause

PACKAGES = ("@playwright/mcp@0.0.83", "chrome-devtools-mcp@1.11.0")
VIEWPORT = "1280x800"
CALL_LIMIT_S = 60.0
START_LIMIT_S = 60.0
PIECE = 20_000
_TOKENS = get_encoding("o200k_base")


def tokens(text: str) -> int:
    """Counted in pieces that end with a line: the tokenizer refuses very long texts, and a token or two is lost."""
    total, rest = 0, text
    while len(rest) > PIECE:
        cut = rest.rfind("\n", 0, PIECE) + 1 or PIECE
        total, rest = total + len(_TOKENS.encode(rest[:cut])), rest[cut:]
    return total + len(_TOKENS.encode(rest))


class TooSlow(Exception):
    """A call did not come back in time; its server may still be at it and is not used again."""


class WentWrong(Exception):
    """A call was answered with an error where the measurement needs its effect."""


@dataclass(frozen=True, slots=True)
class Cpu:
    """Milliseconds of work, which a busy machine does not stretch as it does the time on the clock.

    The system counts in steps of ten, so only means over many calls say something.
    """

    server: float = 0.0
    browser: float = 0.0

    def __add__(self, other: "Cpu") -> "Cpu":
        return Cpu(self.server + other.server, self.browser + other.browser)


@dataclass(frozen=True, slots=True)
class Said:
    """One answer as the client got it, and what it took to ask."""

    text: str
    ms: float
    cpu: Cpu
    image_bytes: int = 0
    written: int = 0
    structured: Mapping[str, Any] = field(default_factory=dict)

    @property
    def read(self) -> int:
        return tokens(self.text)


def _since(before: Mapping[int, tuple[float, bool]], after: Mapping[int, tuple[float, bool]]) -> Cpu:
    spent = {True: 0.0, False: 0.0}
    for pid, (ms, browser) in after.items():
        spent[browser] += ms - before.get(pid, (0.0, browser))[0]
    return Cpu(spent[False], spent[True])


class Server:
    """One running server. Its connection lives in a task of its own, so that servers can end in any order."""

    def __init__(self, parameters: StdioServerParameters) -> None:
        self._parameters = parameters
        self._silence = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - closed when the server ends
        self._stop = anyio.Event()
        self.ended = anyio.Event()
        self.client: Client
        self.process: psutil.Process
        self.calls: list[Said] = []

    async def live(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        before = {child.pid for child in psutil.Process().children()}
        try:
            async with Client(stdio_client(self._parameters, self._silence), mode="legacy") as self.client:
                (self.process,) = [one for one in psutil.Process().children() if one.pid not in before]
                task_status.started()
                await self._stop.wait()
        finally:
            self._silence.close()
            self.ended.set()

    async def end(self) -> None:
        self._stop.set()
        await self.ended.wait()

    def processes(self) -> Iterator[tuple[psutil.Process, bool]]:
        """Everything that runs for this server, and whether it belongs to the browser."""
        for process in [self.process, *self.process.children(recursive=True)]:
            try:
                # Not by its title, which a program gives itself.
                yield process, "chrom" in Path(process.exe()).name.lower()
            except (psutil.NoSuchProcess, psutil.AccessDenied):
                continue

    def worked(self) -> Cpu:
        """All it has done so far."""
        return _since({}, self._worked())

    def _worked(self) -> dict[int, tuple[float, bool]]:
        found = {}
        for process, browser in self.processes():
            try:
                times = process.cpu_times()
            except psutil.NoSuchProcess:
                continue
            found[process.pid] = ((times.user + times.system) * 1000, browser)
        return found

    async def listed(self) -> str:
        """The tools as a client reads them, as one compact JSON text."""
        tools: list[Any] = []
        cursor: str | None = None
        while True:
            page = await self.client.list_tools(cursor=cursor)
            tools.extend(tool.model_dump(by_alias=True, exclude_none=True, mode="json") for tool in page.tools)
            if (cursor := page.next_cursor) is None:
                return json.dumps(tools, ensure_ascii=False, separators=(",", ":"))

    async def call(self, tool: str, arguments: Mapping[str, Any] | None = None) -> Said:
        """Call and time; an error answer is no measurement."""
        sent = dict(arguments or {})
        before = self._worked()
        started = time.perf_counter()
        try:
            with anyio.fail_after(CALL_LIMIT_S):
                answer = await self.client.call_tool(tool, sent)
        except TimeoutError:
            raise TooSlow(f"{tool} did not finish in {CALL_LIMIT_S:.0f} s") from None
        except MCPError as refused:
            raise WentWrong(f"{tool}: {refused}") from refused
        ms = (time.perf_counter() - started) * 1000
        cpu = _since(before, self._worked())
        text = "\n".join(block.text for block in answer.content if block.type == "text")
        images = sum(len(block.data) * 3 // 4 for block in answer.content if block.type == "image")
        if answer.is_error:
            raise WentWrong(f"{tool}: {text[:300]}")
        written = tokens(json.dumps({"name": tool, "arguments": sent}, ensure_ascii=False, separators=(",", ":")))
        said = Said(text, ms, cpu, images, written, answer.structured_content or {})
        self.calls.append(said)
        return said


class Hand(Protocol):
    """What every server can be asked for; marks are what its own look calls an element."""

    @property
    def server(self) -> Server: ...
    async def open(self, url: str) -> Said: ...
    async def look(self) -> Said: ...
    def mark(self, look: Said, role: str, name: str) -> str: ...
    async def click(self, mark: str) -> Said: ...
    async def click_and_see(self, mark: str, hint: str) -> list[Said]: ...
    async def type(self, mark: str, text: str) -> Said: ...
    async def picture(self) -> Said: ...


def _found(pattern: str, look: Said, what: str) -> str:
    if (found := re.search(pattern, look.text)) is None:
        raise WentWrong(f"{what} is not in what was seen")
    return found.group(1)


@dataclass(frozen=True, slots=True)
class NovaHand:
    server: Server

    async def open(self, url: str) -> Said:
        # The others wait for the load event too.
        return await self.server.call("nova.navigate", {"url": url, "waitUntil": "load", "timeoutMs": 60_000})

    async def look(self) -> Said:
        return await self.server.call("nova.perceive")

    def mark(self, look: Said, role: str, name: str) -> str:
        return _found(rf'(?m)^(e\d+) {role} "{re.escape(name)}', look, name)

    async def click(self, mark: str) -> Said:
        return await self.server.call("nova.click_selector", {"ref": mark})

    async def click_and_see(self, mark: str, hint: str) -> list[Said]:
        said = await self.click(mark)
        if hint not in said.text:
            raise WentWrong(f"the answer does not show the outcome: {said.text[:200]}")
        return [said]

    async def type(self, mark: str, text: str) -> Said:
        return await self.server.call("nova.type_selector", {"ref": mark, "text": text})

    async def picture(self) -> Said:
        return await self.server.call("nova.capture_screenshot", {"format": "jpeg"})


@dataclass(frozen=True, slots=True)
class PlaywrightHand:
    server: Server

    async def open(self, url: str) -> Said:
        return await self.server.call("browser_navigate", {"url": url})

    async def look(self) -> Said:
        return await self.server.call("browser_snapshot")

    def mark(self, look: Said, role: str, name: str) -> str:
        return _found(rf'{role} "{re.escape(name)}"[^\n]*\[ref=(\w+)\]', look, name)

    async def click(self, mark: str) -> Said:
        return await self.server.call("browser_click", {"target": mark})

    async def click_and_see(self, mark: str, hint: str) -> list[Said]:
        # The click's own answer only points to a file with the page in it.
        said = [await self.click(mark), await self.server.call("browser_find", {"text": hint})]
        if hint not in said[-1].text.partition("\n")[2]:
            raise WentWrong("the outcome was not found")
        return said

    async def type(self, mark: str, text: str) -> Said:
        return await self.server.call("browser_type", {"target": mark, "text": text})

    async def picture(self) -> Said:
        return await self.server.call("browser_take_screenshot", {"type": "jpeg"})


@dataclass(frozen=True, slots=True)
class DevtoolsHand:
    server: Server

    async def _page(self, tool: str, **more: object) -> Said:
        return await self.server.call(tool, {"pageId": 1, **more})

    async def open(self, url: str) -> Said:
        return await self._page("navigate_page", type="url", url=url, timeout=60_000)

    async def look(self) -> Said:
        return await self._page("take_snapshot")

    def mark(self, look: Said, role: str, name: str) -> str:
        return _found(rf'uid=(\w+) {role} "{re.escape(name)}"', look, name)

    async def click(self, mark: str) -> Said:
        return await self._page("click", uid=mark)

    async def click_and_see(self, mark: str, hint: str) -> list[Said]:
        said = await self._page("click", uid=mark, includeSnapshot=True)
        if hint not in said.text:
            raise WentWrong("the outcome is not in the snapshot")
        return [said]

    async def type(self, mark: str, text: str) -> Said:
        return await self._page("fill", uid=mark, value=text)

    async def picture(self) -> Said:
        return await self._page("take_screenshot", format="jpeg")


@dataclass(frozen=True, slots=True)
class Maker:
    """A server by name: how to start it in a fresh folder, and how to work with it."""

    name: str
    version: str
    parameters: Callable[[Path], StdioServerParameters]
    hand: Callable[[Server], Hand]


def _as_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0


def nova(browser: str, version: str) -> Maker:
    def parameters(folder: Path) -> StdioServerParameters:
        arguments = ["-m", "nova_mcp.cli", "serve", "--data-dir", str(folder), "--browser", browser]
        # An installed package is compiled already; a checkout is after its first start, unless that is forbidden.
        env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        return StdioServerParameters(command=sys.executable, args=arguments, env=env)

    return Maker("nova", version, parameters, NovaHand)


def playwright_mcp(browser: str, modules: Path) -> Maker:
    def parameters(folder: Path) -> StdioServerParameters:
        arguments = [str(modules / "@playwright/mcp/cli.js"), "--headless", "--isolated", "--executable-path", browser]
        arguments += ["--viewport-size", VIEWPORT, "--output-dir", str(folder)]
        arguments += ["--no-sandbox"] if _as_root() else []
        return StdioServerParameters(command="node", args=arguments, env=dict(os.environ), cwd=folder)

    return Maker("playwright-mcp", version_of(modules, "@playwright/mcp"), parameters, PlaywrightHand)


def chrome_devtools_mcp(browser: str, modules: Path) -> Maker:
    package = modules / "chrome-devtools-mcp"
    program = json.loads((package / "package.json").read_text(encoding="utf-8"))["bin"]["chrome-devtools-mcp"]

    def parameters(folder: Path) -> StdioServerParameters:
        arguments = [str(package / program), "--headless", "--isolated", "--executablePath", browser]
        arguments += ["--viewport", VIEWPORT, "--no-usage-statistics", "--no-performance-crux"]
        arguments += ["--chromeArg=--no-sandbox"] if _as_root() else []
        return StdioServerParameters(command="node", args=arguments, env=dict(os.environ), cwd=folder)

    return Maker("devtools-mcp", version_of(modules, "chrome-devtools-mcp"), parameters, DevtoolsHand)


def makers(browser: str, nova_version: str) -> list[Maker]:
    modules = npm_installed("browser-peers", *PACKAGES)
    return [nova(browser, nova_version), playwright_mcp(browser, modules), chrome_devtools_mcp(browser, modules)]


@asynccontextmanager
async def running(these: Sequence[Maker], kept: Path | None = None) -> AsyncIterator[dict[str, Hand]]:
    """All of them at once with fresh browser profiles, each in a folder of its own: a fresh one unless one is kept."""
    hands: dict[str, Hand] = {}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as fresh:
        folder = kept or fresh
        try:
            async with anyio.create_task_group() as group:
                try:
                    for index, maker in enumerate(these):
                        hands[maker.name] = await started(group, maker, Path(folder) / str(index))
                    yield hands
                finally:
                    with anyio.CancelScope(shield=True):
                        for hand in hands.values():
                            await hand.server.end()
        except BaseExceptionGroup as failures:
            raise only_cause(failures) from None


async def started(group: anyio.abc.TaskGroup, maker: Maker, folder: Path) -> Hand:
    await anyio.Path(folder).mkdir(parents=True, exist_ok=True)
    server = Server(maker.parameters(folder))
    with anyio.fail_after(START_LIMIT_S):
        await group.start(server.live)
    return maker.hand(server)
