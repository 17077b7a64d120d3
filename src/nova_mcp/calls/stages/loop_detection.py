"""Noticing an agent that goes on failing the same way: the same call on the same page, the third time."""

import hashlib
import json
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from nova_mcp.calls.endings import Done, Ending
from nova_mcp.calls.stages.stage import Call, Proceed
from nova_mcp.core.clock import Clock
from nova_mcp.core.values import Json, Owner
from nova_mcp.errors import Fix, Internal, InvalidParams, NovaError, Precondition, Repeated, Stage
from nova_mcp.evidence.model import Caller
from nova_mcp.tools.browse.lost_selectors import note_lost
from nova_mcp.tools.context import Evidence
from nova_mcp.tools.spec import Params, Result, ToolSpec

if TYPE_CHECKING:
    from nova_mcp.browser.targets.tab import Tab

THE_LAST_STRAW: Final = 3
HELD_BACK_MS: Final = 60_000
FORGOTTEN_MS: Final = 10 * 60_000
KEPT_PER_OWNER: Final = 64
KEPT_OWNERS: Final = 1_000
FAILED_STATES: Final = ("failed", "blocked", "not_found")


@dataclass(frozen=True, slots=True)
class Attempt:
    """What makes two calls the same: tool, arguments with the element in them, and the page they were made for."""

    owner: Owner
    tool: str
    target_id: str
    arguments_hash: str
    page_epoch: int
    rev: int


@dataclass(frozen=True, slots=True)
class Failure:
    """How a call failed; `touched` when it reached the page all the same."""

    reason_code: str
    message: str
    hint: str
    stage: Stage
    touched: bool = False
    details: Mapping[str, Json] | None = None


@dataclass(frozen=True, slots=True)
class Streak:
    """Failures of one attempt without a success between them."""

    count: int
    last: Failure
    at_ms: int


def prolonged(before: Streak | None, failure: Failure, now_ms: int) -> Streak:
    going_on = before is not None and now_ms - before.at_ms <= FORGOTTEN_MS
    return Streak(before.count + 1 if before is not None and going_on else 1, failure, now_ms)


def is_loop(streak: Streak) -> bool:
    return streak.count >= THE_LAST_STRAW


def held_back(streak: Streak | None, now_ms: int) -> bool:
    """Whether a third attempt is not even made: both before it reached the page and failed there, a moment ago.

    A failure that touched nothing may be cured by the page itself, so such a call is made and only its failure is told.
    """
    return (
        streak is not None
        and streak.last.touched
        and streak.count >= THE_LAST_STRAW - 1
        and now_ms - streak.at_ms <= HELD_BACK_MS
    )


def loop_error(attempt: Attempt, streak: Streak) -> NovaError:
    last = streak.last
    details: dict[str, Json] = {**(last.details or {}), "lastReasonCode": last.reason_code, "failures": streak.count}
    advice = f"Look at the page, then choose another element, way or tool; sent as it is, it fails again. {last.hint}"
    return Precondition(
        "loop.same_action",
        f"This very call has failed {streak.count} times on an unchanged page: {last.reason_code}. {last.message}",
        advice.rstrip(),
        stage=last.stage,
        fix=Fix("nova.perceive", {"agentId": attempt.owner[1], "targetId": attempt.target_id}),
        details=details,
    )


def attempt_of(spec: ToolSpec, params: Params, caller: Caller, tab: "Tab | None") -> Attempt | None:
    """What the call would be known by if it failed; one without a page can't wait for a page to change.

    Arguments may hold private text, so they are remembered by their hash.
    """
    if tab is None:
        return None
    arguments = params.model_dump(mode="json", by_alias=True, exclude={"agent_id", "target_id"})
    written = json.dumps(arguments, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    digest = hashlib.sha256(written.encode("ascii")).hexdigest()
    return Attempt(caller.owner, spec.canonical, tab.target_id, digest, tab.page_epoch, tab.rev)


def failure_of(error: NovaError, evidence: Evidence) -> Failure | None:
    """Nothing for what a gate decided, for wrong arguments, and for what is meant to be tried again later."""
    if error.retryable or error.gate_id is not None or isinstance(error, InvalidParams | Internal | Repeated):
        return None
    touched = bool(error.action_dispatched) or bool(evidence.action_dispatched)
    return Failure(error.reason_code, error.message, error.hint, error.stage, touched, error.details)


def failure_in(result: Result, evidence: Evidence) -> Failure | None:
    if result.status not in FAILED_STATES or getattr(result, "retryable", False):
        return None
    message = getattr(result, "message", None) or "It did not work."
    hint = getattr(result, "hint", None) or ""
    return Failure(result.reason_code or result.status, message, hint, "verify", bool(evidence.action_dispatched))


class Loops:
    """The latest failures of every owner, in memory: a loop that outlives the server is noticed again soon enough."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._owners: OrderedDict[Owner, OrderedDict[Attempt, Streak]] = OrderedDict()

    async def around(self, call: Call, proceed: Proceed) -> Ending:
        """Before the call waits for its tab: refuse what would only fail on the page once more."""
        call.attempt = attempt_of(call.spec, call.params, call.envelope.caller, call.tab)
        self.check(call.attempt)
        return await proceed()

    def check(self, attempt: Attempt | None) -> None:
        streak = self._streak(attempt)
        if attempt is not None and streak is not None and held_back(streak, self._clock.now_ms()):
            raise loop_error(attempt, streak)

    def failed(self, attempt: Attempt | None, error: NovaError, evidence: Evidence) -> NovaError | None:
        """What to say instead of an error that has been said twice already."""
        failure = failure_of(error, evidence)
        if attempt is None or failure is None:
            return None
        streak = self._noted(attempt, failure)
        if not is_loop(streak):
            return None
        looping = loop_error(attempt, streak)
        looping.action_dispatched = error.action_dispatched
        return looping

    def ended(self, attempt: Attempt | None, result: Result, evidence: Evidence) -> None:
        if attempt is None:
            return
        if (failure := failure_in(result, evidence)) is not None:
            self._noted(attempt, failure)
        elif result.status not in FAILED_STATES:
            self._owners.get(attempt.owner, OrderedDict()).pop(attempt, None)

    def _streak(self, attempt: Attempt | None) -> Streak | None:
        return None if attempt is None else self._owners.get(attempt.owner, OrderedDict()).get(attempt)

    def _noted(self, attempt: Attempt, failure: Failure) -> Streak:
        known = self._owners.setdefault(attempt.owner, OrderedDict())
        self._owners.move_to_end(attempt.owner)
        streak = prolonged(known.pop(attempt, None), failure, self._clock.now_ms())
        known[attempt] = streak
        while len(known) > KEPT_PER_OWNER:
            known.popitem(last=False)
        while len(self._owners) > KEPT_OWNERS:
            self._owners.popitem(last=False)
        return streak


class LoopCount:
    """Around the tool: counts its failures, and tells the third one in a row of the very same call as what it is."""

    def __init__(self, loops: Loops) -> None:
        self._loops = loops

    async def around(self, call: Call, proceed: Proceed) -> Ending:
        try:
            ending = await proceed()
        except NovaError as error:
            call.evidence.settle_touch(error.action_dispatched)
            await note_lost(call.context, call.spec.effect, call.params, error)
            raise self._loops.failed(call.attempt, error, call.evidence) or error from None
        if isinstance(ending, Done):
            self._loops.ended(call.attempt, ending.result, call.evidence)
        return ending
