"""Answers in their two forms: typed JSON for machines, short text for models."""

from collections.abc import Collection

from nova_mcp.errors import Fix, NovaError
from nova_mcp.observation.model import Effect, Json
from nova_mcp.pipeline.gates import Notice
from nova_mcp.pipeline.model import Answer, compact
from nova_mcp.tools.spec import Result

ACTING: Collection[Effect] = ("navigate", "act", "commit")


def render_fix(fix: Fix, listed: Collection[str]) -> dict[str, Json]:
    """A fix must be callable as it stands: an unlisted tool is reached through the door."""
    args: dict[str, Json] = dict(fix.args)
    if fix.tool in listed:
        return {"tool": fix.tool, "args": args}
    return {"tool": "nova.call", "args": {"tool": fix.tool, "args": args}}


def _gates(notices: tuple[Notice, ...], listed: Collection[str]) -> list[Json]:
    blocks: list[Json] = []
    for notice in notices:
        block: dict[str, Json] = {"gateId": notice.gate_id, "status": notice.status, "message": notice.message}
        if notice.fix is not None:
            block["fix"] = render_fix(notice.fix, listed)
        blocks.append(block)
    return blocks


def render_result(result: Result, notices: tuple[Notice, ...], listed: Collection[str]) -> Answer:
    structured = result.structured()
    text = result.text()
    if notices:
        structured["gates"] = _gates(notices, listed)
        text += "".join(f"\n! {notice.gate_id}: {notice.message}" for notice in notices)
    failed = structured.get("status") in ("failed", "blocked", "not_found")
    return Answer(structured=structured, text=text, is_error=failed, images=result.images())


def render_error(error: NovaError, effect: Effect | None, call_id: str, listed: Collection[str]) -> Answer:
    """The same body in both forms; acting tools always say whether the page was touched."""
    body = error.body() | {"callId": call_id}
    if error.fix is not None:
        body["fix"] = render_fix(error.fix, listed)
    if effect in ACTING or error.action_dispatched:
        body |= {"actionDispatched": error.action_dispatched, "effect": None, "verifyState": "failed"}
    body |= {key: value for key, value in error.details.items() if key not in body or key == "verifyState"}
    return Answer(structured=body, text=compact(body), is_error=True)
