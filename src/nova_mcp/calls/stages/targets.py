"""The tab of a call: finding it, waiting for it, and what the call leaves known about it."""

from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Final

import anyio

from nova_mcp.browser.process.runtime import Browser
from nova_mcp.browser.targets.registry import SANDBOX_ID
from nova_mcp.calls.callers import tolerated
from nova_mcp.calls.endings import Ending, Failed, overdue
from nova_mcp.calls.stages.stage import Call, Proceed
from nova_mcp.core.clock import Clock
from nova_mcp.errors import InvalidParams, NotFound, Precondition
from nova_mcp.evidence.model import Flag
from nova_mcp.memory.claims.book import ClaimBook
from nova_mcp.tools.spec import Targeted
from nova_mcp.verification.coordinator import Coordinator

LOOKS: Final[frozenset[Flag]] = frozenset({"content_exposed", "visual_exposed"})
GRACE_MS: Final = 5_000


class TargetResolution:
    """Finds the tab that a call names, and the work context its agent holds on it."""

    def __init__(self, browser: Browser, claims: ClaimBook) -> None:
        self._browser = browser
        self._claims = claims

    async def around(self, call: Call, proceed: Proceed) -> Ending:
        await self._resolve(call)
        return await proceed()

    async def _resolve(self, call: Call) -> None:
        spec, params, envelope = call.spec, call.params, call.envelope
        if spec.target == "none" or not isinstance(params, Targeted):
            return
        if spec.target == "place" and SANDBOX_ID.fullmatch(params.target_id):
            return
        targets = self._browser.targets
        try:
            tab = await targets.resolve(envelope.caller, params.target_id, call.request.connection)
        except (NotFound, InvalidParams, Precondition) as missing:
            if tolerated(spec, missing):
                return
            raise
        envelope.evidence.tab = tab
        targets.used(envelope.caller.owner, call.request.connection, tab)
        work = self._claims.work_context(envelope.caller, tab.target_id)
        envelope.evidence.task_id = None if work is None else work.task_id


class Deadline:
    """Ends a call that takes too long, the time it waits for its tab included."""

    async def around(self, call: Call, proceed: Proceed) -> Ending:
        budget_ms = call.spec.deadline_ms(call.params) + GRACE_MS
        if call.request.within is not None:
            budget_ms = min(budget_ms, call.request.within.budget_ms)
        ending: Ending | None = None
        with anyio.move_on_after(budget_ms / 1000):
            ending = await proceed()
        return ending or Failed(overdue(budget_ms))


class TargetLocks:
    """Keeps other calls off the tab, as far as the tool asks for it."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator

    async def around(self, call: Call, proceed: Proceed) -> Ending:
        async with AsyncExitStack() as held:
            for lock in self._locks(call):
                await held.enter_async_context(lock)
            return await proceed()

    def _locks(self, call: Call) -> Iterator[AbstractAsyncContextManager[None]]:
        """In the order they are taken."""
        tab, kind = call.tab, call.spec.lock
        if tab is None:
            return
        # Changes stay out while a sequence is between two of its steps; the steps themselves are in already.
        if kind not in ("none", "shared") and call.request.within is None:
            yield tab.turns.exclusive() if kind == "turn" else tab.turns.shared()
        # A target that is being verified is refused at once; waiting for its lock would only hide that.
        if (window_ms := call.spec.guards(call.params)) is not None:
            yield self._coordinator.reserved(tab.target_id, call.envelope.call_id, window_ms)
        if kind not in ("none", "turn"):
            if call.request.background:
                yield tab.lock.passing()
            else:
                yield tab.lock.exclusive() if kind == "exclusive" else tab.lock.shared()


class TabUse:
    """Remembers which tab a connection works in, and that its agent has seen the page."""

    def __init__(self, browser: Browser, clock: Clock) -> None:
        self._browser = browser
        self._clock = clock

    async def around(self, call: Call, proceed: Proceed) -> Ending:
        ending = await proceed()
        # A tab that the call itself opened counts as well.
        if (tab := call.tab) is not None:
            owner = call.envelope.caller.owner
            if not LOOKS.isdisjoint(call.evidence.flags):
                # An agent that has seen the page may decide to do again what it did before.
                tab.observed[owner] = self._clock.now_ms()
            self._browser.targets.used(owner, call.request.connection, tab)
        return ending
