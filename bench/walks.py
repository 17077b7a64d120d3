"""Counts the files and functions of Nova that run during one call, from the server to its answer.

A call is traced after a first one of its kind has warmed everything up. What counts is what began in each of several
such calls, and was not led to by a loop that had begun before: background work that runs meanwhile is left out.
"""

import argparse
import inspect
import json
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

import anyio
from mcp import Client

import nova_mcp
from nova_mcp.app import build
from nova_mcp.server.manifest import load_manifest
from nova_mcp.server.protocol import Wiring, build_server
from nova_mcp.settings import load_settings

SOURCE: Final = Path(nova_mcp.__file__).parent
ROUNDS: Final = 3
PREFIX: Final = f"{SOURCE}/"
# The compiler's own functions belong to the function they stand in; a class body runs where the class is defined.
_INLINE: Final = frozenset({"<module>", "<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})
_OPTIMIZED: Final = 0x1
_RESUMABLE: Final = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


@dataclass(frozen=True, slots=True)
class Function:
    """A function of Nova's source."""

    file: str
    name: str
    line: int


@dataclass(frozen=True, slots=True)
class Trace:
    """The functions of one call in the order in which each began, and who called it first (None: another thread)."""

    callers: Mapping[Function, Function | None]

    @property
    def functions(self) -> frozenset[Function]:
        return frozenset(self.callers)

    @property
    def size(self) -> dict[str, int]:
        return {"files": len({function.file for function in self.callers}), "functions": len(self.callers)}

    def within(self, functions: frozenset[Function]) -> "Trace":
        return Trace({one: caller for one, caller in self.callers.items() if one in functions})


class Tracer:
    """Notes every function of Nova that begins while a call is traced, in every thread started after `installed`."""

    def __init__(self) -> None:
        self._known: dict[CodeType, Function | None] = {}
        self._callers: dict[Function, Function | None] | None = None
        # Loops that had begun before, and what they lead to.
        self._background: set[Function] = set()

    @contextmanager
    def installed(self) -> Iterator["Tracer"]:
        threading.setprofile(self._on_event)
        sys.setprofile(self._on_event)
        try:
            yield self
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    @contextmanager
    def tracing(self) -> Iterator[Callable[[], Trace]]:
        """Yields what gives the trace afterwards."""
        callers: dict[Function, Function | None] = {}
        self._callers, self._background = callers, set()
        try:
            yield lambda: Trace(callers)
        finally:
            self._callers = None

    def _on_event(self, frame: FrameType, event: str, _: object) -> None:
        callers = self._callers
        if callers is None or event != "call":
            return
        function = self._function(frame.f_code)
        if function is None or function in callers:
            return
        caller = self._caller(frame)
        if _resumes(frame) or (caller in self._background and caller not in callers):
            self._background.add(function)
        else:
            callers[function] = caller

    def _function(self, code: CodeType) -> Function | None:
        try:
            return self._known[code]
        except KeyError:
            ours = code.co_filename.startswith(PREFIX) and code.co_name not in _INLINE and code.co_flags & _OPTIMIZED
            file = code.co_filename.removeprefix(PREFIX)
            found = Function(file, code.co_qualname, code.co_firstlineno) if ours else None
            self._known[code] = found
            return found

    def _caller(self, frame: FrameType) -> Function | None:
        outer = frame.f_back
        while outer is not None:
            if (function := self._function(outer.f_code)) is not None:
                return function
            outer = outer.f_back
        return None


def _resumes(frame: FrameType) -> bool:
    """Whether a coroutine or generator goes on; one that begins stands on its first line."""
    return bool(frame.f_code.co_flags & _RESUMABLE) and frame.f_lineno != frame.f_code.co_firstlineno


# -- calls that are traced

PAGE = """<!doctype html><html lang="en"><title>Lamps</title>
<main><h1>Lamps</h1><p>Lamps for the desk and the floor, sent within two days.</p>
<button id="more" type="button">More</button><output id="count">0</output></main>
<div id="letter" role="dialog" aria-label="Newsletter" style="position:fixed;bottom:0;padding:40px;background:#fff">
<p>Our newsletter comes once a month.</p><button id="shut" type="button" onclick="letter.remove()">No, thanks</button>
</div><script>let n = 0; more.onclick = () => { count.textContent = ++n; };</script></html>"""
ENTRY: Final = {
    "id": "letter_layer",
    "type": "modal",
    "fingerprint": {"signals": [{"kind": "dom", "match": "#letter"}, {"kind": "text", "match": "Our newsletter"}]},
    "playbook": {
        "policy": "dismiss",
        "actions": [{"action": "click", "selector": "#shut"}],
        "verify": [{"type": "absent", "selector": "#letter"}],
    },
}
PROFILE: Final = {
    "profileId": "lamp-audit",
    "taskType": "audit",
    "displayName": "Lamp audit",
    "goal": "See every lamp",
    "completionCondition": {
        "coverageMode": "exhaustive",
        "unitKind": "item",
        "stopMetric": "all_units_processed",
    },
}


@dataclass
class Agent:
    """A client of a server in this process, with one tab on a small page that is served here."""

    client: Client
    base: str
    clicks: int = field(default=0)

    @property
    def scope(self) -> str:
        return self.base.removeprefix("http://")

    async def call(self, tool: str, **arguments: Any) -> Mapping[str, Any]:
        answer = await self.client.call_tool(f"nova.{tool}", arguments)
        if answer.is_error or answer.structured_content is None:
            raise RuntimeError(f"{tool} failed: {answer.structured_content or answer.content}")
        return dict(answer.structured_content)


Arguments = dict[str, Any]
Prepare = Callable[[Agent], Awaitable[Arguments]]


async def _click(agent: Agent) -> Arguments:
    agent.clicks += 1
    return {"selector": "#more", "expect": [f"text:{agent.clicks}"]}


async def _nothing(_: Agent) -> Arguments:
    return {}


async def _complete(agent: Agent) -> Arguments:
    instance = (await agent.call("task_instance_create", profileId="lamp-audit"))["instanceId"]
    steps: tuple[Arguments, ...] = (
        {"discoveredUnits": [{"unitKey": "desk"}], "setDiscoveryState": "frozen"},
        {"unitUpdates": [{"unitKey": "desk", "status": "checked"}]},
    )
    for number, step in enumerate(steps):
        revision = {"instanceId": instance, "expectedInstanceRev": number, "clientEventId": f"step{number}"}
        await agent.call("task_instance_progress", **revision, **step)
    return {"instanceId": instance, "expectedInstanceRev": len(steps), "clientEventId": "end"}


async def _promote(agent: Agent) -> Arguments:
    return {"scope": agent.scope}


WALKS: Final[Mapping[str, Prepare]] = {
    "click_selector": _click,
    "perceive": _nothing,
    "pks_match": _nothing,
    "task_instance_complete": _complete,
    "learn_promote": _promote,
}
FLOOR: Final = "floor"


async def trace_walks(names: Sequence[str] = tuple(WALKS)) -> dict[str, Trace]:
    """The traces of these calls, each through a server with a browser and a store of its own."""
    tracer = Tracer()
    with tracer.installed(), _page() as base, tempfile.TemporaryDirectory() as folder:
        async with _agent(base, folder) as agent:
            return {name: await _trace(tracer, agent, name) for name in names}


async def _trace(tracer: Tracer, agent: Agent, name: str) -> Trace:
    prepare = WALKS[name]
    await agent.call(name, **await prepare(agent))
    traces: list[Trace] = []
    for _ in range(ROUNDS):
        arguments = await prepare(agent)
        with tracer.tracing() as trace:
            await agent.call(name, **arguments)
        traces.append(trace())
    return traces[0].within(frozenset.intersection(*(trace.functions for trace in traces)))


@asynccontextmanager
async def _agent(base: str, folder: str) -> AsyncIterator[Agent]:
    settings = load_settings({"data_dir": folder, "tools": "all", "learning": {"passes": False}}, environ={})
    nova = await build(settings)

    async def backend() -> Any:
        return nova

    try:
        async with Client(build_server(load_manifest(), settings, Wiring(backend=backend))) as client:
            agent = Agent(client, base)
            await agent.call("tab_new", url=base)
            await agent.call("perceive")
            await agent.call("pks_upsert", scope=agent.scope, phenomenon=ENTRY)
            await agent.call("task_profile_upsert", **PROFILE)
            yield agent
    finally:
        await nova.close("done")


@contextmanager
def _page() -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = PAGE.encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *_: object) -> None:  # noqa: A002
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def sizes(traces: Mapping[str, Trace]) -> dict[str, dict[str, int]]:
    """Files and functions of each walk, and of what all walks share."""
    shared = frozenset.intersection(*(trace.functions for trace in traces.values()))
    floor = next(iter(traces.values())).within(shared)
    return {**{name: trace.size for name, trace in traces.items()}, FLOOR: floor.size}


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="scripts/walk", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("walk", nargs="*", help=f"only these of {', '.join(WALKS)}")
    parser.add_argument("--json", action="store_true", help="print {walk: {files, functions}}")
    parser.add_argument("--list", action="store_true", help="print the functions of each walk in order")
    options = parser.parse_args(arguments)
    if unknown := sorted({*options.walk} - {*WALKS}):
        parser.error(f"there is no walk {', '.join(unknown)}; there are {', '.join(WALKS)}")
    traces = anyio.run(trace_walks, tuple(options.walk or WALKS))
    if options.json:
        print(json.dumps(sizes(traces), indent=1))
    elif options.list:
        for name, trace in traces.items():
            print(f"{name}:", *(f"  {one.file}:{one.line} {one.name}" for one in trace.callers), sep="\n")
    else:
        print(f"{'walk':<24}{'files':>7}{'functions':>11}")
        for name, size in sizes(traces).items():
            print(f"{name:<24}{size['files']:>7}{size['functions']:>11}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
