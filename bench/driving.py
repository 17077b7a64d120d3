"""Nova in this process, one tab per worker, and what its answers claim."""

import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal

from nova_mcp.app import Nova, build
from nova_mcp.calls.model import CallRequest
from nova_mcp.errors import UnknownTool
from nova_mcp.settings import load_settings

Claim = Literal["verified", "likely", "failed", "unclear", "untouched", "duplicate", "broken"]

DUPLICATE = "guarded_commit.duplicate_suspected"
# A defect of Nova itself; it must never hide among the refusals.
BROKEN = "internal"
NO_TOOL = "no such tool"


@dataclass(frozen=True, slots=True)
class Told:
    """One answer, reduced to what it claims."""

    claim: Claim
    dispatched: bool
    reason_code: str | None
    verification: str | None
    body: Mapping[str, Any]

    @property
    def commit(self) -> Mapping[str, Any]:
        return self.body.get("guardedCommit") or {}


def read_answer(body: Mapping[str, Any]) -> Told:
    """What a careful agent would take from an answer; anything but `verified` and `likely` is no success."""
    commit = body.get("guardedCommit") or {}
    dispatched = bool(body.get("actionDispatched"))
    reason = body.get("reasonCode")
    state = body.get("verifyState")
    claim: Claim
    if reason == BROKEN:
        claim = "broken"
    elif reason == DUPLICATE:
        claim = "duplicate"
    elif state in ("verified", "likely") and body.get("status") in ("ok", "partial"):
        claim = "verified" if state == "verified" else "likely"
    elif not dispatched:
        claim = "untouched"
    elif state == "failed" or commit.get("verificationStatus") == "verified_fail":
        claim = "failed"
    else:
        claim = "unclear"
    return Told(claim, dispatched, reason, commit.get("verificationStatus"), body)


@dataclass(frozen=True, slots=True)
class Hand:
    """One agent on one tab."""

    nova: Nova
    agent: str
    tab: str

    async def call(self, tool: str, arguments: Mapping[str, Any] | None = None) -> dict[str, Any]:
        sent = {"targetId": self.tab, **(arguments or {}), "agentId": self.agent}
        try:
            answer = await self.nova.call(CallRequest(tool, sent, "bench", connection=self.agent))
        except UnknownTool:
            return {"status": "failed", "reasonCode": NO_TOOL, "verifyState": "failed"}
        return dict(answer.structured)

    async def act(self, tool: str, arguments: Mapping[str, Any] | None = None) -> Told:
        return read_answer(await self.call(tool, arguments))

    async def open(self, url: str) -> None:
        body = await self.call("nova.navigate", {"url": url})
        if body.get("status") not in ("ok", "partial"):
            raise RuntimeError(f"{url} did not open: {body.get('reasonCode')} {body.get('message')}")


async def new_hand(nova: Nova, agent: str) -> Hand:
    answer = await nova.call(CallRequest("nova.tab_new", {"agentId": agent}, "bench", connection=agent))
    if answer.is_error:
        raise RuntimeError(f"no tab: {answer.text}")
    return Hand(nova, agent, str(answer.structured["targetId"]))


async def close_hand(hand: Hand) -> None:
    await hand.call("nova.tab_close")


@asynccontextmanager
async def nova_here(*, pictures: bool = True) -> AsyncIterator[Nova]:
    """A complete Nova with a store of its own; only the network server is left out.

    Receipts without pictures make room for more trials where pictures are not the question.
    """
    with tempfile.TemporaryDirectory() as folder:
        flags = {"data_dir": folder, "tools": "all", "receipts": {"pictures": pictures}}
        nova = await build(load_settings(flags, environ={}))
        try:
            yield nova
        finally:
            await nova.close("done")
