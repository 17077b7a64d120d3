"""Whether a playbook has brought about what it promises: its verify steps, asked of the page until they hold."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import anyio

from nova_mcp.browser.blockers.layers import HOLD_MS
from nova_mcp.browser.channel.page_channel import DocumentChanged, PageScriptError
from nova_mcp.browser.observe.host_window import HostWindow
from nova_mcp.browser.observe.page_witness import PageWitness
from nova_mcp.browser.read.knowledge_check import covered_share, look, signals
from nova_mcp.core.page.looks import SelectorSeen, WantedSignals
from nova_mcp.errors import NovaError
from nova_mcp.memory.knowledge.apply_rules import all_proven
from nova_mcp.memory.knowledge.model import PlaybookPolicy, VerifyStep
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.read.fact_hints import stored_facts
from nova_mcp.verification.contracts.evaluate import WINDOW_AND_HOLD_MS, judge_assertion
from nova_mcp.verification.model import Assertion, Reading

Truths = tuple[bool | None, ...]
T = TypeVar("T")

# No layer of the window may lie over the page, unless the step says how much of it.
NOTHING_COVERED: Final = 0.0
_AGAIN_S: Final = 0.1
_NOT_BLOCKED: Final = Assertion("overlay.blocking", "eq", expected=False)
_CLOSING: Final[frozenset[PlaybookPolicy]] = frozenset({"dismiss", "reject_preferred"})


def window_ms(policy: PlaybookPolicy) -> int:
    """How long the page may take to show the result."""
    return WINDOW_AND_HOLD_MS["dismiss_overlay" if policy in _CLOSING else "custom"][0]


@dataclass(frozen=True, slots=True)
class _Looked:
    """What was read for all verify steps at once; None where the page could not be asked."""

    selectors: dict[str, SelectorSeen] | None
    locked: bool | None
    covered: float | None
    facts: Reading


class Proof:
    """The verify steps of one playbook on one page, from before its first step on."""

    def __init__(self, ctx: ToolContext, steps: Sequence[VerifyStep], window: HostWindow) -> None:
        self._ctx = ctx
        self._steps = tuple(steps)
        self._witness = PageWitness(ctx.tab, window, store=stored_facts(ctx))

    def pressed(self) -> None:
        """The playbook begins to act: what the page sends from here on may be its doing."""
        self._witness.press()

    async def read(self) -> Truths:
        """What each step comes to now; what can't be read is unknown, never false."""
        if not self._steps:
            return ()
        seen = await self._look()
        return tuple(_truth(one, seen) for one in self._steps)

    async def settle(self, within_ms: float) -> Truths:
        """Until everything holds and has held for a moment, or the time is up."""
        clock = self._ctx.ports.clock
        ends = clock.monotonic_ms() + max(0.0, within_ms)
        since: float | None = None
        while True:
            truths = await self.read()
            now = clock.monotonic_ms()
            since = (now if since is None else since) if all_proven(truths) else None
            if not truths or (since is not None and now - since >= HOLD_MS) or (since is None and now >= ends):
                return truths
            await anyio.sleep(_AGAIN_S)

    async def _look(self) -> _Looked:
        tab, kinds = self._ctx.tab, {one.kind for one in self._steps}
        named = [one.selector for one in self._steps if one.selector is not None and one.kind in ("absent", "present")]
        shown = await _asked(lambda: signals(tab, WantedSignals())) if "scroll_unlocked" in kinds else None
        asserted = [one.assertion for one in self._steps if one.assertion is not None]
        if "topmost_clickability_restored" in kinds:
            asserted.append(_NOT_BLOCKED)
        return _Looked(
            selectors=await _asked(lambda: look(tab, named)) if named else {},
            locked=None if shown is None else "scroll_locked" in shown.interaction,
            covered=await _asked(lambda: covered_share(tab)) if "obstruction_cleared" in kinds else None,
            facts=await self._witness.read({one.address for one in asserted}) if asserted else {},
        )


async def _asked(question: Callable[[], Awaitable[T]]) -> T | None:
    """A page that is on its way elsewhere, or does not answer, says nothing."""
    try:
        return await question()
    except (NovaError, PageScriptError, DocumentChanged):
        return None


def _truth(step: VerifyStep, seen: _Looked) -> bool | None:
    match step.kind:
        case "absent" | "present":
            there = _visible(step.selector, seen)
            return there if there is None or step.kind == "present" else not there
        case "obstruction_cleared":
            limit = NOTHING_COVERED if step.threshold is None else step.threshold
            return None if seen.covered is None else seen.covered <= limit
        case "scroll_unlocked":
            return None if seen.locked is None else not seen.locked
        case "topmost_clickability_restored":
            return judge_assertion(_NOT_BLOCKED, seen.facts).passed
        case "fact":
            return None if step.assertion is None else judge_assertion(step.assertion, seen.facts).passed


def _visible(selector: str | None, seen: _Looked) -> bool | None:
    found = None if selector is None or seen.selectors is None else seen.selectors.get(selector)
    return None if found is None or found.unread or found.invalid else found.visible
