"""A scripted backend for the wire tests: every call does what its name says, and tells what happened."""

import subprocess
import sys
from collections.abc import Callable

import anyio

from nova_mcp.calls.model import Answer, CallRequest, ResourceContent, refused
from nova_mcp.errors import Unavailable, UnknownTool
from nova_mcp.server.backend import Backend, Health
from nova_mcp.server.manifest import ListedTool, Manifest
from nova_mcp.tools.spec import Image

SECRET = "the text of an exception nobody should read"
PIXEL = b"\x89PNG not really"

Report = Callable[[str], None]


def listed(name: str, bundles: tuple[str, ...] = ("core",)) -> ListedTool:
    output = {
        "type": "object",
        "required": ["ok"],
        "properties": {"ok": {"type": "boolean"}, "tool": {"type": "string"}, "sometimes": {"type": "string"}},
    }
    return ListedTool(
        name=f"nova.{name}",
        title=name.title(),
        description=f"Does what {name} says.",
        effect="read",
        bundles=bundles,
        input_schema={"type": "object", "properties": {"value": {}}},
        output_schema=output,
        annotations={"readOnlyHint": True},
    )


def fake_manifest() -> Manifest:
    names = ("echo", "slow", "progress", "image", "fail", "boom", "busy", "odd", "noise", "call", "tools_bundle")
    return Manifest((*(listed(name) for name in names), listed("rare", ("extra",))))


class FakeBackend:
    def __init__(self, report: Report) -> None:
        self._report = report

    async def call(self, request: CallRequest) -> Answer:
        if request.refusal is not None:
            return refused(request.refusal)
        self._report(f"call {request.tool}")
        match request.tool:
            case "nova.echo" | "nova.rare":
                return self._echo(request)
            case "nova.slow":
                return await self._slow(request)
            case "nova.progress":
                for step in (1, 2, 3):
                    await request.progress(step, 3, f"step {step}")
                return self._echo(request)
            case "nova.image":
                return Answer({"ok": True, "tool": "nova.image"}, "a picture", images=(Image(PIXEL, "image/png"),))
            case "nova.fail":
                body = {"ok": False, "status": "failed", "errorCode": -32004, "reasonCode": "selector.not_found"}
                return Answer(body, "nothing matched", is_error=True)
            case "nova.boom":
                raise RuntimeError(SECRET)
            case "nova.busy":
                raise Unavailable("tab.busy", "The tab is busy", "Wait.", retry_after_ms=250)
            case "nova.odd":
                body = {"ok": True, "tool": "nova.odd", "half\ud800": ["\udc00x", float("nan"), "\ud83d\ude00", 1.5]}
                return Answer(body, "half \ud83d of a face")
            case "nova.noise":
                return self._noise(request)
        raise UnknownTool(request.tool, ("nova.echo",))

    def _echo(self, request: CallRequest) -> Answer:
        body = {"ok": True, "tool": request.tool, "principal": request.principal, "arguments": dict(request.arguments)}
        size = len(str(request.arguments))
        return Answer(body, f"echo {size}")

    async def _slow(self, request: CallRequest) -> Answer:
        try:
            await anyio.sleep_forever()
        finally:
            # What the pipeline does: the record is closed even though the call is being cancelled.
            with anyio.CancelScope(shield=True):
                await anyio.sleep(0.05)
                self._report("slow recorded")
        return self._echo(request)

    def _noise(self, request: CallRequest) -> Answer:
        print("printed by a tool")
        sys.stdout.flush()
        child = subprocess.run(["/bin/cat"], stdout=None, check=True, timeout=20)
        subprocess.run(["/bin/echo", "printed by a child"], check=True)
        return Answer({"ok": True, "tool": request.tool, "child": child.returncode}, "quiet")

    async def read_resource(self, uri: str, principal: str) -> ResourceContent | None:
        if uri == "nova://ledger/c1":
            return ResourceContent(uri, "application/json", text='{"callId":"c1"}')
        if uri == "nova://screenshot/s1":
            return ResourceContent(uri, "image/png", data=PIXEL)
        return None

    async def warm(self) -> None:
        self._report("warm")

    async def health(self) -> Health:
        return Health("ok", "test", "open", "running")

    async def close(self, reason: str) -> None:
        self._report(f"close {reason}")


async def build(report: Report) -> Backend:
    report("built")
    return FakeBackend(report)
