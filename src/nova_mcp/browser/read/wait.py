"""Waiting for an element to appear, to go, or to come to rest; another document on the way is asked in its turn."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import anyio

from nova_mcp.browser.act.locate import Locator, Target, aim, described
from nova_mcp.browser.channel.page_channel import DocumentChanged
from nova_mcp.browser.perceive.scan_values import Answer, answer, read_element
from nova_mcp.core.values import Json
from nova_mcp.errors import InvalidParams, Missed, NotFound, NovaError, Precondition, Unavailable

if TYPE_CHECKING:
    from nova_mcp.browser.targets.tab import Tab

WaitState: TypeAlias = Literal["visible", "hidden", "attached", "detached"]

# The page waits by itself in pieces this long, so that a page that stopped answering is noticed in time.
_SLICE_MS: Final = 2000
_ANSWER_MS: Final = 5000
_AGAIN_S: Final = 0.1
_RETRY_MS: Final = 1000
# What a page between two documents answers; whoever waits goes on waiting.
_PASSING: Final = frozenset({"page.navigating"})
_LOST_REFS: Final = frozenset(
    {"ref.stale", "ref.stale_document", "ref.identity_changed", "ref.ambiguous", "frame.detached"}
)


@dataclass(frozen=True, slots=True)
class WaitRequest:
    locator: Locator
    state: WaitState = "visible"
    timeout_ms: int = 10_000
    stable_ms: int = 0

    @property
    def for_absence(self) -> bool:
        return self.state in ("hidden", "detached")


@dataclass(frozen=True, slots=True)
class WaitReport:
    """The state came about."""

    url: str
    waited_ms: int
    match_count: int
    element: str | None = None
    text: str = ""


async def wait_for(tab: "Tab", request: WaitRequest) -> WaitReport:
    """Until the state has come about and, if asked for, the text has stood still; a refusal says which did not."""
    return await _Waiting(tab, request, anyio.current_time()).run()


@dataclass(slots=True)
class _Waiting:
    tab: "Tab"
    request: WaitRequest
    began: float
    target: Target | None = None
    # What the last answer said, for the refusal and for the next question.
    last: Answer | None = None
    since: Json = None
    epoch: int = -1

    async def run(self) -> WaitReport:
        while True:
            left = self.request.timeout_ms - self._waited_ms()
            told = await self._piece(max(0, left))
            if told is not None and told["done"]:
                return await self._report(told)
            if left <= 0:
                raise self._missed()

    def _waited_ms(self) -> int:
        return round((anyio.current_time() - self.began) * 1000)

    async def _piece(self, left: int) -> Answer | None:
        """One answer of the page; None when it was between two documents."""
        try:
            return await self._ask(left)
        except DocumentChanged:
            self.target, self.since = None, None
        except Unavailable as unavailable:
            if unavailable.reason_code not in _PASSING:
                raise
        if left > 0:
            await anyio.sleep(min(left / 1000, _AGAIN_S))
        return None

    async def _ask(self, left: int) -> Answer | None:
        if self.tab.page_epoch != self.epoch:
            self.epoch, self.target, self.since = self.tab.page_epoch, None, None
        if self.target is None:
            try:
                self.target = await aim(self.tab, self.request.locator)
            except (NotFound, Precondition) as lost:
                return await self._lost(lost, left)
        request = self.request
        piece = min(left, _SLICE_MS)
        question: Json = {
            "selector": request.locator.selector,
            "node": self.target.node,
            "nth": request.locator.nth,
            "state": request.state,
            "stableMs": request.stable_ms,
            "waitMs": piece,
            "since": self.since or {"text": None, "forMs": 0},
        }
        frame_id = self.target.frame_id
        told = answer(await self.tab.channel.ask("waitFor", question, frame_id=frame_id, timeout_ms=piece + _ANSWER_MS))
        if told["state"] == "invalid":
            raise InvalidParams("selector.invalid", f"The selector {request.locator.spoken} can't be read.")
        self.last, self.since = told, told["since"]
        if self.target.node is not None and told["matchCount"] == 0:
            # Rendered anew it may be another node by now.
            self.target = None
        return told

    async def _lost(self, lost: NovaError, left: int) -> Answer | None:
        """A ref or frame that is gone: what was to go has gone; what was to come may still come back."""
        if lost.reason_code not in _LOST_REFS or self.tab.perception.get(self.request.locator.ref or "") is None:
            raise lost
        if self.request.for_absence:
            return {"done": True, "matchCount": 0, "element": None, "text": "", "url": self.tab.url}
        if left <= 0:
            raise lost
        await anyio.sleep(min(left / 1000, _AGAIN_S))
        return None

    async def _report(self, told: Answer) -> WaitReport:
        line = None
        waited = self._waited_ms()
        if told["element"] is not None:
            frame = self.target.frame_id if self.target is not None else None
            (shown,) = await described(self.tab, [read_element(told["element"], frame or "")])
            line = str(shown["line"]) if isinstance(shown, dict) else None
        return WaitReport(told["url"], waited, told["matchCount"], line, told["text"])

    def _missed(self) -> NovaError:
        request, last = self.request, self.last
        met = last is not None and bool(last["met"])
        count = 0 if last is None else int(last["matchCount"])
        details: dict[str, Json] = {"met": False, "waitedMs": self._waited_ms(), "matchCount": count}
        if self.tab.host_busy(request.timeout_ms):
            details["hostBusy"] = True
        spoken = request.locator.spoken
        if met:
            return Precondition(
                "wait_for_selector.still_changing",
                f"{spoken} is {request.state}, but it kept changing for {request.timeout_ms} ms.",
                stage="observe",
                retry_after_ms=_RETRY_MS,
                details=details,
            )
        return Missed(
            "wait_for_selector.timeout",
            f"{spoken} was not {request.state} within {request.timeout_ms} ms.",
            stage="observe",
            retry_after_ms=_RETRY_MS,
            details=details,
        )
