"""Runs an agent's own script in a page: in a world of its own or the page's, under the host's clock."""

import json
from dataclasses import dataclass
from typing import Any, Literal, cast

import anyio

from nova_mcp.browser.channel.page_channel import DocumentChanged, PageChannel, PageScriptError
from nova_mcp.browser.perceive.element_lines import one_line
from nova_mcp.browser.targets.tab import Tab
from nova_mcp.core.values import Json
from nova_mcp.errors import Precondition, Unavailable

World = Literal["isolated", "main"]

# Not the world of Nova's own scripts: what an agent leaves behind must not change what Nova reads.
WORLD = "nova_eval"
MAX_JSON = 20_000
STOP_MS = 2000
READ_MS = 2000
SHOWN = 80
_PACK = (
    "function(most){const text=JSON.stringify(this);return text===undefined?null:{text:text.slice(0,most),"
    "length:text.length}}"
)


@dataclass(frozen=True, slots=True)
class Evaluated:
    """What a script gave; a value too long for an answer is the beginning of its JSON text."""

    value: Json
    value_type: str
    truncated: bool = False


async def evaluate(tab: Tab, expression: str, world: World, timeout_ms: int) -> Evaluated:
    """The value of an expression; a script that throws or does not end is told as such."""
    tab.require_ready()
    # Before it runs: whatever becomes of it, the document is no longer the site's own.
    tab.scripted()
    async with tab.watch():
        try:
            reply = await _run(tab.channel, expression, world, timeout_ms)
            tab.scripted()
            if (thrown := reply.get("exceptionDetails")) is not None:
                raise _threw(_said(thrown))
            return await _value(tab.channel, reply["result"])
        except DocumentChanged:
            raise Unavailable(
                "page.navigating",
                "The page moved to another document while the script ran.",
                "Look at the page with nova.perceive.",
                stage="observe",
                retry_after_ms=500,
                action_dispatched=True,
            ) from None
        except PageScriptError as error:
            raise _threw(str(error)) from None


async def _run(channel: PageChannel, expression: str, world: World, timeout_ms: int) -> dict[str, Any]:
    params: dict[str, Any] = {"expression": expression, "awaitPromise": True, "userGesture": False}
    if world == "isolated":
        order = {"frameId": channel.frame_id, "worldName": WORLD}
        params["contextId"] = (await channel.send("Page.createIsolatedWorld", order))["executionContextId"]
    reply: dict[str, Any] | None = None
    with anyio.move_on_after(timeout_ms / 1000):
        # The channel's own limit lies behind this one, so that a script that is slow is not called a stalled page.
        reply = await channel.send("Runtime.evaluate", params, timeout_ms=timeout_ms + STOP_MS)
    if reply is None:
        await _stop(channel)
        raise _threw(f"it did not end within {timeout_ms} ms and was stopped", timed_out=True)
    return reply


async def _stop(channel: PageChannel) -> None:
    """End a script that still holds the page; one that only waits for a promise has let go of it already."""
    try:
        await channel.send("Runtime.terminateExecution", timeout_ms=STOP_MS)
    except (Unavailable, DocumentChanged, PageScriptError):
        return


async def _value(channel: PageChannel, result: dict[str, Any]) -> Evaluated:
    kind = str(result.get("subtype") or result["type"])
    if (odd := result.get("unserializableValue")) is not None:
        return Evaluated(str(odd)[:MAX_JSON], kind)
    if (handle := result.get("objectId")) is None:
        value = cast(Json, result.get("value"))
        text = json.dumps(value, ensure_ascii=False)
        return _cut(text, len(text), kind) if len(text) > MAX_JSON else Evaluated(value, kind)
    order = {
        "functionDeclaration": _PACK,
        "objectId": handle,
        "arguments": [{"value": MAX_JSON}],
        "returnByValue": True,
    }
    reply = await channel.send("Runtime.callFunctionOn", order, timeout_ms=READ_MS)
    if (thrown := reply.get("exceptionDetails")) is not None:
        raise _threw(f"its value can't be written as JSON: {_said(thrown)}")
    packed = reply["result"].get("value")
    # Functions and symbols have no JSON; the page's own world may also answer something else entirely.
    if not isinstance(packed, dict) or not isinstance(packed.get("text"), str):
        return Evaluated(None, kind)
    return _cut(packed["text"], int(packed.get("length") or 0), kind)


def _cut(text: str, length: int, kind: str) -> Evaluated:
    if length > MAX_JSON or len(text) > MAX_JSON:
        return Evaluated(text[:MAX_JSON], kind, truncated=True)
    try:
        return Evaluated(cast(Json, json.loads(text)), kind)
    except ValueError:
        return Evaluated(text, kind)


def _said(details: dict[str, Any]) -> str:
    thrown = details.get("exception", {})
    text = thrown.get("description") or thrown.get("value") or details.get("text") or "no reason given"
    return str(text).partition("\n")[0]


def _threw(why: str, *, timed_out: bool = False) -> Precondition:
    return Precondition(
        "eval.script_threw",
        f'The script failed: "{one_line(why, SHOWN)}"',
        stage="dispatch",
        action_dispatched=True,
        details={"timedOut": True} if timed_out else None,
    )
