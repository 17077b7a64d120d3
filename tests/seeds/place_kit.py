"""A tab on a site that nobody knows anything about yet, and entries of knowledge to put there."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Self

from loop_kit import Server, Shop
from sqlalchemy import Connection

from nova_mcp.browser.read.knowledge_check import look, signals
from nova_mcp.memory.journal.store import observation
from nova_mcp.memory.knowledge import store
from nova_mcp.memory.knowledge.matching.fingerprints import holding
from nova_mcp.memory.knowledge.matching.page_facts import observed_signals, print_of, wanted_of
from nova_mcp.memory.knowledge.model import (
    Action,
    Content,
    Context,
    DomainHint,
    Fingerprint,
    Level,
    Phenomenon,
    PhenomenonType,
    Playbook,
    PlaybookPolicy,
    ScopeName,
    Signal,
    StableId,
    VerifyStep,
)
from nova_mcp.memory.knowledge.platforms.templates import built_in
from nova_mcp.memory.knowledge.store import Birth, Shelved, Slot
from nova_mcp.memory.promotion import steps_store

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR
_numbers = count(1)


@dataclass(frozen=True)
class Lesson:
    """What an entry says, before the page has told how its elements look."""

    signals: tuple[Signal, ...]
    actions: tuple[Action, ...] = ()
    verify: tuple[VerifyStep, ...] = ()
    type: PhenomenonType = "modal"
    policy: PlaybookPolicy = "dismiss"
    context: Context = field(default_factory=Context)
    min_confidence: float = 0.6

    def content(self, playbook: Playbook | None) -> Content:
        return Content(self.type, Fingerprint(self.signals, self.min_confidence), playbook, self.context)


@dataclass
class Place:
    """A tab on a site of its own; without a tab, a site that nobody has open."""

    server: Server
    tab: str
    scope: ScopeName

    @classmethod
    def new(cls, server: Server, pages: Shop, tab: str = "") -> Self:
        """Every name under localhost is a site."""
        return cls(server, tab, ScopeName(f"k{next(_numbers)}.localhost:{pages.base.rpartition(':')[2]}"))

    @property
    def origin(self) -> str:
        return f"http://{self.scope}"

    # -- what an agent does

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return await self.server.call(tool, **{"targetId": self.tab, **arguments})

    async def go(self, path: str) -> dict[str, Any]:
        told = await self.call("navigate", url=f"{self.origin}{path}")
        assert told["ok"], told
        return told

    async def perceive(self, **arguments: Any) -> dict[str, Any]:
        return await self.call("perceive", **arguments)

    async def visit(self, path: str) -> None:
        """Go there and look, as one has to before acting."""
        await self.go(path)
        await self.perceive()

    async def click(self, selector: str, **arguments: Any) -> dict[str, Any]:
        return await self.call("click_selector", selector=selector, **arguments)

    async def apply(self, name: str = "entry", **arguments: Any) -> dict[str, Any]:
        return await self.call("phenomenon_apply", phenomenonId=name, **arguments)

    async def revalidate(self, **arguments: Any) -> dict[str, Any]:
        return await self.call("revalidate", **arguments)

    async def asked(self, expression: str) -> Any:
        return await self.server.tab(self.tab).page.evaluate(expression)

    def later(self, ms: int) -> None:
        self.server.clock.shift_ms += ms

    # -- what is known

    async def put(self, *entries: Phenomenon | DomainHint, **birth: Any) -> list[Shelved]:
        """Knowledge as if it had been earned."""

        def write(conn: Connection) -> list[Shelved]:
            added = [store.add(conn, self.scope, one, Birth(**birth)) for one in entries]
            for one in added:
                steps_store.born(conn, one)
            return added

        return await self.server.nova._db.write(write)

    async def learn(
        self, lesson: Lesson, *, level: Level = 2, name: str = "entry", slot: Slot = "current", **more: Any
    ) -> Shelved:
        """Write the entry down as it is learned on the page that is open now."""
        tab, now = self.server.tab(self.tab), self.server.clock.now_ms()
        wanted = [one.selector for one in lesson.actions if one.selector is not None]
        prints = {key: print_of(one.seen) for key, one in (await look(tab, wanted)).items() if one.seen is not None}
        playbook = Playbook(lesson.policy, tuple(_printed(one, prints) for one in lesson.actions), lesson.verify)
        entry = Phenomenon(StableId(name), lesson.content(playbook), level, now, now)
        seen = observed_signals(await signals(tab, wanted_of([entry], built_in())))
        held = holding(entry.content.fingerprint, seen)
        (shelved,) = await self.put(replace(entry, baseline=held, **more), slot=slot)
        return shelved

    async def shelved(self, name: str = "entry", slot: Slot = "current") -> Shelved:
        found = await self.server.nova._db.read(store.find, self.scope, name)
        return {one.slot: one for one in found}[slot]

    async def entry(self, name: str = "entry", slot: Slot = "current") -> Phenomenon:
        kept = (await self.shelved(name, slot)).kept
        assert isinstance(kept, Phenomenon)
        return kept

    async def change(self, name: str = "entry", **changes: Any) -> None:
        """The entry as if it had come to this by itself."""
        one = await self.shelved(name)
        now = replace(one, kept=replace(one.kept, **changes))

        def write(conn: Connection) -> None:
            store.save(conn, now, visible=True)
            steps_store.born(conn, now)

        await self.server.nova._db.write(write)

    async def observed(self, *kinds: str) -> list[dict[str, Any]]:
        found = await self.server.rows(observation, observation.c.context_host == self.scope)
        return [row for row in found if not kinds or row["kind"] in kinds]


def _printed(action: Action, prints: Mapping[str, Any]) -> Action:
    if action.element is not None or action.selector not in prints:
        return action
    return replace(action, element=prints[action.selector])


def phenomenon(
    stable_id: str, *signals: str, level: int = 2, selector: str | None = None, **changes: Any
) -> Phenomenon:
    """An entry of long ago that is recognised by selectors and presses one of them."""
    dom = tuple(Signal("dom", one) for one in signals)
    playbook = None if selector is None else Playbook("dismiss", (Action("click", selector),))
    content = Content(changes.pop("type", "modal"), Fingerprint(dom), playbook)
    made = Phenomenon(StableId(stable_id), content, 2, 1, 1, baseline=frozenset(dom))
    return replace(made, level=level, **changes)


def failed(body: dict[str, Any], code: int = -32602, reason: str = "invalid_params") -> dict[str, Any]:
    assert (body["ok"], body.get("errorCode"), body.get("reasonCode")) == (False, code, reason), body
    return body
