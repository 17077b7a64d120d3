"""A scripted agent that sees task pages only through Nova's tools and writes its contracts from the task text."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.driving import NO_TOOL, Hand, Told

Assertion = dict[str, Any]

MOST_ITEMS = 60
WINDOW_MS = 2000
HOLD_MS = 200


class Stopped(Exception):
    """A step did not do what it should; a careful agent goes no further."""


class Unsupported(Exception):
    """The task needs a tool that is not there."""


def holds(css: str, part: str, expected: str | bool = True) -> Assertion:
    return {"factKey": f"dom.{css}@{part}", "operator": "eq", "expected": expected}


def there(css: str) -> Assertion:
    return {"factKey": f"dom.{css}", "operator": "exists"}


# Every task ends by covering itself, whether it was solved or not: it says that something was handed in, no more.
HANDED_IN = holds("#sync-task-cover", "visible")


@dataclass(slots=True)
class Agent:
    """One run of one script."""

    hand: Hand
    steps: list[Told] = field(default_factory=list)

    async def read(self, selector: str, nth: int | None = None) -> str | None:
        arguments: dict[str, Any] = {"selector": selector}
        if nth is not None:
            arguments["nth"] = nth
        body = await self.hand.call("nova.read_text", arguments)
        return str(body["text"]).replace("**", "").strip() if body.get("status") == "ok" else None

    async def query(self) -> str:
        return " ".join((await self.read("#query") or "").split())

    async def texts(self, selector: str) -> list[str]:
        found: list[str] = []
        while len(found) < MOST_ITEMS and (text := await self.read(selector, len(found))) is not None:
            found.append(text)
        return found

    async def press(
        self, selector: str, before: Sequence[Assertion] = (), after: Sequence[Assertion] = (HANDED_IN,), **more: object
    ) -> None:
        contract: dict[str, Any] = {
            "postconditions": {"success": {"all": list(after)}},
            "stabilityWindowMs": WINDOW_MS,
            "stabilityMs": HOLD_MS,
        }
        if before:
            contract["preconditions"] = {"all": list(before)}
        arguments = {"selector": selector, "transitionContract": contract, **more}
        self._keep(await self.hand.act("nova.click_selector", arguments))

    async def press_quietly(self, selector: str, before: Sequence[Assertion]) -> None:
        """A press that the page answers with nothing: it counts as done unless it provably was not."""
        try:
            await self.press(selector, before, [{**before[0], "operator": "eq"}])
        except Stopped:
            if not self.steps[-1].dispatched or self.steps[-1].claim == "failed":
                raise

    async def exists(self, selector: str) -> bool:
        return await self.read(selector) is not None

    async def enter(self, selector: str, text: str) -> None:
        self._keep(await self.hand.act("nova.type_selector", {"selector": selector, "text": text}))

    async def choose(self, selector: str, text: str) -> None:
        told = await self.hand.act("nova.choose_option", {"selector": selector, "text": text})
        if told.reason_code == NO_TOOL:
            raise Unsupported("nova.choose_option")
        self._keep(told)

    async def fact(self, css: str, part: str) -> str:
        """What a fact reads, asked by a precondition that can't hold: nothing is pressed."""
        never = "no field says this"
        contract = {
            "preconditions": {"all": [holds(css, part, never)]},
            "postconditions": {"success": {"all": [HANDED_IN]}},
        }
        told = await self.hand.act("nova.click_selector", {"selector": "#subbtn", "transitionContract": contract})
        failed = told.commit.get("failedAssertions") or [{}]
        return str(failed[0].get("observed", ""))

    def _keep(self, told: Told) -> None:
        self.steps.append(told)
        if told.claim not in ("verified", "likely"):
            raise Stopped(told.reason_code or told.claim)
