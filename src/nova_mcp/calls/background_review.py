"""Looks after sites that agents work on, between their calls: what gates allow, and what holds on the page."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Final

import anyio

from nova_mcp.browser.targets.tab import Tab
from nova_mcp.calls.callers import OWN
from nova_mcp.calls.model import Answer, CallRequest
from nova_mcp.core.clock import Clock
from nova_mcp.core.values import Json
from nova_mcp.memory.knowledge.model import SHADOW, ScopeName
from nova_mcp.memory.promotion.learning import Learning
from nova_mcp.tools.knowledge.scope_argument import page_scope

# How often a server asks the store whether a site is due; whether it is, the store says.
ASK_EVERY_MS: Final = 5 * 60_000
WAITING: Final = 64
REMEMBERED: Final = 1_000
REVALIDATE: Final = "nova.revalidate"


class Passes:
    """One per server. Nothing here delays a call or fails one: it works when nobody does, and gives way."""

    def __init__(self, learning: Learning, clock: Clock, call: Callable[[CallRequest], Awaitable[Answer]]) -> None:
        self._learning = learning
        self._clock = clock
        self._call = call
        self._asked: OrderedDict[ScopeName, int] = OrderedDict()
        self._waiting: OrderedDict[ScopeName, Tab] = OrderedDict()
        self._wake = anyio.Event()
        self._done = anyio.Event()
        self._done.set()

    def notice(self, tab: Tab | None) -> None:
        """Somebody has just worked in that tab."""
        scope, now = None if tab is None else page_scope(tab), self._clock.now_ms()
        if tab is None or scope is None or abs(now - self._asked.get(scope, now - ASK_EVERY_MS)) < ASK_EVERY_MS:
            return
        if len(self._waiting) >= WAITING:
            return
        self._asked[scope] = now
        self._asked.move_to_end(scope)
        while len(self._asked) > REMEMBERED:
            self._asked.popitem(last=False)
        self._waiting[scope] = tab
        if self._done.is_set():
            self._done = anyio.Event()
        self._wake.set()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self._wake.wait()
            self._wake = anyio.Event()
            try:
                while self._waiting:
                    await self._look_after(*self._waiting.popitem(last=False))
            finally:
                self._done.set()

    async def settled(self) -> None:
        """Return when every site that was due has had its turn."""
        await self._done.wait()

    async def _look_after(self, scope: ScopeName, tab: Tab) -> None:
        promotion = self._learning.promotion
        if await promotion.review_due(scope):
            await promotion.review(scope)
        known = await self._learning.knowledge.known(scope)
        if any(one.level >= SHADOW and not one.deprecated for one in known.phenomena):
            await self._revalidate(scope, tab)

    async def _revalidate(self, scope: ScopeName, tab: Tab) -> None:
        if tab.state != "ready" or tab.lock.held or page_scope(tab) != scope:
            # The next call there brings it up again.
            self._asked.pop(scope, None)
            return
        turn = await self._learning.promotion.take_turn(scope)
        if turn is None:
            return
        arguments: dict[str, Json] = {"targetId": tab.target_id, "agentId": OWN}
        answer = await self._call(CallRequest(REVALIDATE, arguments, tab.principal, background=True))
        if answer.is_error:
            await self._learning.promotion.give_back(scope, turn)
