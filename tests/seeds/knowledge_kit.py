"""A whole server with one browser, a site with many hosts, and entries of knowledge learned from its real pages."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

from loop_kit import ShiftedClock, Shop
from mcp import Client
from sqlalchemy import select

from nova_mcp.app import Nova, build
from nova_mcp.browser.knowledge_look import look, signals
from nova_mcp.browser.tab import Tab
from nova_mcp.clock import Ports, SystemIds
from nova_mcp.journal.store import observation
from nova_mcp.knowledge import store
from nova_mcp.knowledge.fingerprints import holding
from nova_mcp.knowledge.live import observed_signals, print_of, wanted_of
from nova_mcp.knowledge.model import (
    Action,
    Content,
    Context,
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
from nova_mcp.knowledge.platforms import built_in
from nova_mcp.knowledge.store import Birth, Shelved, Slot
from nova_mcp.server.manifest import load_manifest
from nova_mcp.server.mcp import Wiring, build_server
from nova_mcp.settings import Settings

_numbers = count(1)


@dataclass
class Server:
    """A server, its client, its clock and its site."""

    client: Client
    clock: ShiftedClock
    data_dir: Path
    nova: Nova
    site: Shop

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        answer = await self.client.call_tool(f"nova.{tool}", arguments)
        assert answer.structured_content is not None
        body = dict(answer.structured_content)
        if "status" in body:
            assert answer.is_error is (body["status"] in ("failed", "blocked", "not_found")), body
            assert body["ok"] is (body["status"] == "ok"), body
        return body

    async def rows(self, table: Any, *where: Any) -> list[dict[str, Any]]:
        found = await self.nova._db.read(lambda conn: conn.execute(select(table).where(*where)).all())
        return [row._asdict() for row in found]

    def tab(self, target_id: str) -> Tab:
        return self.nova._parts.browser.targets._tabs[target_id]


@asynccontextmanager
async def served(data_dir: Path, site: Shop, **settings: Any) -> AsyncIterator[Server]:
    clock = ShiftedClock()
    (data_dir / "secrets.toml").write_text('[shop]\nvalue = "correct horse"\nhosts = ["*.localhost"]\n')
    (data_dir / "secrets.toml").chmod(0o600)
    chosen = Settings.model_validate({"data_dir": data_dir, "tools": "all", "learning": {"passes": False}, **settings})
    nova = await build(chosen, Ports(clock, SystemIds(clock)))

    async def backend() -> Any:
        return nova

    try:
        async with Client(build_server(load_manifest(), chosen, Wiring(backend=backend))) as client:
            yield Server(client, clock, data_dir, nova, site)
    finally:
        await nova.close("test")


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
    """A tab on a host that nobody knows anything about yet."""

    server: Server
    tab: str
    scope: str

    async def go(self, path: str) -> None:
        told = await self.server.call("navigate", targetId=self.tab, url=f"http://{self.scope}{path}")
        assert told["ok"], told
        await self.server.call("perceive", targetId=self.tab)

    async def apply(self, name: str = "entry", **arguments: Any) -> dict[str, Any]:
        return await self.server.call("phenomenon_apply", targetId=self.tab, phenomenonId=name, **arguments)

    async def revalidate(self, **arguments: Any) -> dict[str, Any]:
        return await self.server.call("revalidate", targetId=self.tab, **arguments)

    async def asked(self, expression: str) -> Any:
        return await self.server.tab(self.tab).page.evaluate(expression)

    async def observed(self, *kinds: str) -> list[dict[str, Any]]:
        found = await self.server.rows(observation, observation.c.context_host == self.scope)
        return [row for row in found if not kinds or row["kind"] in kinds]

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
        entry = replace(entry, baseline=held, **more)
        return await self.server.nova._db.write(store.add, ScopeName(self.scope), entry, Birth(slot=slot))

    async def entry(self, name: str = "entry", slot: Slot = "current") -> Phenomenon:
        found = await self.server.nova._db.read(store.find, ScopeName(self.scope), name)
        kept = {one.slot: one.kept for one in found}[slot]
        assert isinstance(kept, Phenomenon)
        return kept


def _printed(action: Action, prints: Mapping[str, Any]) -> Action:
    if action.element is not None or action.selector not in prints:
        return action
    return replace(action, element=prints[action.selector])


async def elsewhere(server: Server, tab: str, path: str = "/plain") -> Place:
    """The tab on a host of its own: every name under localhost is one."""
    place = Place(server, tab, f"k{next(_numbers)}.localhost:{server.site.base.rpartition(':')[2]}")
    await place.go(path)
    return place


def refused(body: dict[str, Any], reason: str) -> dict[str, Any]:
    """A refusal is a normal answer that says no."""
    assert (body["ok"], body["reasonCode"], body["actionDispatched"]) == (False, reason, False), body
    assert "errorCode" not in body
    return body


def failed(body: dict[str, Any], code: int, reason: str) -> dict[str, Any]:
    assert (body["ok"], body.get("errorCode"), body["reasonCode"]) == (False, code, reason), body
    return body
