"""A scripted agent on the practice site: it sees Nova's answers alone, and every call it makes is counted."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mcp import Client
from mcp_types import TextContent

from bench.practice_tasks import Part, Task, Wish
from nova_mcp.core.tokens import estimate_tokens

_LINE = re.compile(r'^(e\d+) (\S+) "((?:[^"\\]|\\.)*)" (.+?)(?: \[[a-z, ]+\])*$')
_ROLES = {
    "press": {"button", "link", "checkbox", "radio", "tab", "switch", "menuitem"},
    "fill": {"textbox", "searchbox"},
}
_NEEDED = re.compile(r" with values (.+)\.$")
# Tools that speak of a site and not of a tab.
_OF_SITES = {"pks_upsert", "pks_patch", "pks_get", "pks_list", "pks_deprecate", "learn_promote", "explain"}
_OF_SITES |= {"learn_generate", "learn_suggest", "learn_feedback", "pks_upsert_hint"}


class Stuck(Exception):
    """What the agent wants is nowhere to be seen, or did not work."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A control as an answer lists it."""

    role: str
    name: str
    selector: str


def shown_in(lines: Sequence[str]) -> list[Shown]:
    """The controls among the lines of an answer."""
    found = (_LINE.match(line) for line in lines)
    return [Shown(one[2], one[3], one[4]) for one in found if one is not None]


@dataclass
class Bill:
    """What a visit cost."""

    calls: int = 0
    tokens: int = 0
    tools: list[str] = field(default_factory=list)


@dataclass
class Agent:
    """One agent id with one tab."""

    client: Client
    name: str
    tab: str = ""
    bill: Bill = field(default_factory=Bill)
    seen: list[Shown] = field(default_factory=list)
    rev: int | None = None
    said: list[str] = field(default_factory=list)

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        sent = {"targetId": self.tab, **arguments} if self.tab and tool not in _OF_SITES else arguments
        answer = await self.client.call_tool(f"nova.{tool}", {**sent, "agentId": self.name})
        text = "\n".join(one.text for one in answer.content if isinstance(one, TextContent))
        self.bill.calls += 1
        self.bill.tokens += estimate_tokens(text)
        self.bill.tools.append(tool)
        self.said.append(f"{tool} {arguments}\n{text}")
        return dict(answer.structured_content or {})

    async def arrive(self, address: str) -> None:
        told = await self.call("navigate", url=address)
        if not told.get("ok"):
            raise Stuck(str(told.get("message")))
        self.seen, self.rev = [], None

    async def look(self) -> dict[str, Any]:
        """Everything at first, afterwards what is new."""
        since = {} if self.rev is None else {"sinceRev": self.rev}
        told = await self.call("perceive", **since)
        delta = told.get("delta") or {}
        lines = [*told.get("elements", ()), *delta.get("added", ()), *delta.get("changed", ())]
        fresh = shown_in([line if isinstance(line, str) else str(line.get("line", "")) for line in lines])
        self.seen = fresh if not delta else [*fresh, *self.seen]
        self.rev = told.get("rev")
        return told

    def _find(self, wish: Wish) -> Shown | None:
        fitting = (one for one in self.seen if one.name == wish.label and one.role in _ROLES[wish.do])
        return next(fitting, None)

    async def _found(self, wish: Wish) -> Shown:
        """A control that was shown; one that was not is looked for before anything is pressed."""
        if (found := self._find(wish)) is None:
            await self.look()
            found = self._find(wish)
        if found is None:
            raise Stuck(f'no "{wish.label}" among {[one.name for one in self.seen]}')
        return found

    async def by_hand(self, part: Part, task: Task, renamed: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
        """Do a stretch of a task by looking and acting; what was done is returned as the steps of a playbook."""
        steps: list[dict[str, Any]] = []
        for number, wish in enumerate(part.wishes):
            meant = replace(wish, label=(renamed or {}).get(wish.label, wish.label))
            steps.append(await self._one(meant, part, task, last=number == len(part.wishes) - 1))
        return steps

    async def _one(self, wish: Wish, part: Part, task: Task, *, last: bool) -> dict[str, Any]:
        if wish.do == "clear_layers":
            return await self._refuse_consent()
        found = await self._found(wish)
        if wish.do == "fill":
            told = await self.call("type_selector", selector=found.selector, text=task.values[wish.name])
            step = {
                "action": "type",
                "selector": found.selector,
                "valueSource": "agent_supplied",
                "valueName": wish.name,
            }
        else:
            expect = {"expect": list(part.expect)} if last and part.expect else {}
            told = await self._pressed(found, part, expect if last else {}, last=last)
            step = {"action": "click", "selector": found.selector}
        if not told.get("ok"):
            raise Stuck(f"{wish.label}: {told.get('reasonCode')} {told.get('message')}")
        if (told.get("effect") or {}).get("channels", ()) and "navigation" in told["effect"]["channels"]:
            self.seen, self.rev = [], None
        return step

    async def _pressed(self, found: Shown, part: Part, expect: Mapping[str, Any], *, last: bool) -> dict[str, Any]:
        """Signing in has a tool of its own, which takes what is filled in already."""
        if last and part.type == "login_wall":
            return await self.call("guarded_login", **expect)
        return await self.call("click_selector", selector=found.selector, **expect)

    async def _refuse_consent(self) -> dict[str, Any]:
        told = await self.call("dismiss_blockers")
        if told.get("consentChoice") != "rejected":
            raise Stuck(f"the layer stayed: {told.get('reasonCode')}")
        pressed = told["actions"][-1]["name"]
        found = next(one for one in self.seen if one.name == pressed)
        return {"action": "click", "selector": found.selector, "declaredPolarity": "reject"}


async def new_agent(client: Client, name: str) -> Agent:
    """A fresh agent with a tab of its own; having a tab is not part of any task."""
    agent = Agent(client, name)
    told = await agent.call("tab_new")
    if "targetId" not in told:
        raise Stuck(f"no tab: {told.get('reasonCode')} {told.get('message')} {told}")
    agent.tab, agent.bill = str(told["targetId"]), Bill()
    return agent


def values_named(seen: Mapping[str, Any]) -> dict[str, list[str]]:
    """The entries that an answer advises to reuse, with the values that it says they need."""
    told: dict[str, list[str]] = {}
    for one in seen.get("pksAdvice", ()):
        if one["kind"] == "reuse":
            found = _NEEDED.search(one["text"])
            told[one["phenomenonId"]] = [] if found is None else found[1].split(", ")
    return told


def lesson(task: Task, part: Part, steps: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """An entry as the agent would store it: for the part of the site that the task begins in."""
    return {
        "id": part.entry,
        "type": part.type,
        "fingerprint": {"signals": list(part.signals)},
        "playbook": {"policy": part.policy, "actions": list(steps), "verify": list(part.verify)},
        "context": {"routes": [task.path.strip("/")]},
    }
