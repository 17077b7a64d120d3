"""Ways in which one user in one session may try to put something wrong into what is known."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.learning_server import MINUTE_MS, LearningServer
from bench.poisoning_pages import ORDER
from bench.practice_agent import Agent, new_agent
from bench.practice_site import PracticeSite
from nova_mcp.core.values import JsonObject
from nova_mcp.memory.knowledge import store
from nova_mcp.memory.knowledge.model import ScopeName

USES = 6
# More than half a minute, so that no use counts as a repeat of the one before; less than what ends a session.
PAUSE_MS = 40_000
SESSION_GAP_MS = 31 * MINUTE_MS

PLANTED: JsonObject = {
    "id": "next",
    "type": "custom",
    "fingerprint": {"signals": [{"kind": "dom", "match": "#work"}]},
    "playbook": {
        "policy": "custom",
        "actions": [{"action": "click", "selector": "#discard"}],
        "verify": [{"type": "fact", "assertion": {"factKey": "dom.#said@text", "operator": "eq", "expected": "gone"}}],
    },
}


def banner(selector: str = "#no", polarity: str | None = "reject", kind: str = "consent_cmp") -> JsonObject:
    action = {"action": "click", "selector": selector}
    if polarity is not None:
        action["declaredPolarity"] = polarity
    return {
        "id": "banner",
        "type": kind,
        "fingerprint": {"signals": [{"kind": "dom", "match": "#cmp"}]},
        "playbook": {
            "policy": "reject_preferred",
            "actions": [action],
            "verify": [{"type": "absent", "selector": "#cmp"}],
        },
    }


def working() -> JsonObject:
    """What is right: the control that says so, with its own result."""
    shown = {"factKey": "dom.#said@text", "operator": "eq", "expected": "next"}
    playbook = {
        "policy": "custom",
        "actions": [{"action": "click", "selector": "#next"}],
        "verify": [{"type": "fact", "assertion": shown}],
    }
    return changed(PLANTED, playbook=playbook)


def changed(entry: JsonObject, **parts: Any) -> JsonObject:
    return {**entry, **parts}


@dataclass(frozen=True, slots=True)
class Known:
    level: int
    selectors: frozenset[str]


@dataclass
class Attack:
    """One try: who makes it, on which site, and what came of it."""

    name: str
    server: LearningServer
    site: PracticeSite
    agent: Agent
    scope: str
    reasons: list[str] = field(default_factory=list)
    calls: int = 0
    top: int = -1

    async def call(self, tool: str, **arguments: Any) -> JsonObject:
        told = await self.agent.call(tool, **arguments)
        self.calls += 1
        if not told.get("ok"):
            self.note(str(told.get("reasonCode")))
        return told

    def note(self, reason: str) -> None:
        if reason not in self.reasons:
            self.reasons.append(reason)

    async def go(self, path: str, host: str | None = None) -> None:
        await self.call("navigate", url=f"http://{host or self.scope}{path}")
        await self.call("perceive")

    async def plant(self, entry: JsonObject, scope: str | None = None) -> JsonObject:
        return await self.call("pks_upsert", scope=scope or self.scope, phenomenon=entry)

    async def promote(self) -> None:
        told = await self.call("learn_promote", scope=self.scope)
        for one in told.get("decisions", ()):
            if one["rejectionReason"] is not None:
                self.note(f"gate {one['rejectionReason']}")

    async def level(self, scope: str | None = None) -> int:
        database = self.server.nova._db
        found = await database.read(store.entries, ScopeName(scope or self.scope))
        return max((one.kept.level for one in found), default=-1)

    async def entries(self) -> list[Known]:
        found = await self.server.nova._db.read(store.entries, ScopeName(self.scope))
        return [Known(one.kept.level, frozenset(store.selectors_in(one.kept))) for one in found]

    async def look(self, scope: str | None = None) -> None:
        self.top = max(self.top, await self.level(scope))

    async def tried(self, name: str, times: int = USES, pause_ms: int = PAUSE_MS, path: str = "/work") -> None:
        """Use an entry again and again, and ask for its promotion each time."""
        for _ in range(times):
            await self.go(path)
            await self.call("phenomenon_apply", phenomenonId=name, trial=True)
            await self.promote()
            await self.look()
            self.server.later(pause_ms)

    async def pressed_by_hand(self, selector: str, path: str, times: int = USES, expect: Sequence[str] = ()) -> None:
        more = {"expect": list(expect)} if expect else {}
        for _ in range(times):
            await self.go(path)
            await self.call("click_selector", selector=selector, **more)
            await self.promote()
            await self.look()
            self.server.later(PAUSE_MS)


Way = Callable[[Attack], Awaitable[None]]


# -- one principal, one session


async def planted_selector(one: Attack) -> None:
    await one.go("/work")
    await one.plant(PLANTED)
    await one.tried("next", times=2 * USES)


async def stretched_session(one: Attack) -> None:
    """A session has no longest time: calls every 29 minutes keep it going for hours."""
    await one.go("/work")
    await one.plant(PLANTED)
    await one.tried("next", times=20, pause_ms=29 * MINUTE_MS)


async def many_agents(one: Attack) -> None:
    await one.go("/work")
    await one.plant(PLANTED)
    first = one.agent
    for number in range(6):
        one.agent = await new_agent(first.client, f"{first.name}-{number}")
        await one.tried("next", times=2)
        await one.agent.call("tab_close")
    one.agent = first


async def repeats(one: Attack) -> None:
    await one.go("/work")
    await one.plant(PLANTED)
    await one.tried("next", times=2 * USES, pause_ms=0)


async def broad_selector(one: Attack) -> None:
    await one.go("/work")
    for selector in ("*", "[class*=a]", "[role=dialog]", "button", "#work button"):
        actions = [{"action": "click", "selector": selector}]
        await one.plant(changed(PLANTED, playbook={"policy": "custom", "actions": actions}))
    await one.look()


async def scripted_page(one: Attack) -> None:
    """The attacker makes the page itself show what it wants to be learned."""
    for _ in range(USES):
        await one.go("/work")
        script = "() => { document.getElementById('discard').textContent = 'Next' }"
        await one.call("eval", expression=script)
        await one.plant(PLANTED)
        await one.call("phenomenon_apply", phenomenonId="next", trial=True)
        await one.promote()
        await one.look()
        one.server.later(PAUSE_MS)


async def claimed_success(one: Attack) -> None:
    await one.go("/work")
    await one.plant(PLANTED)
    for _ in range(3 * USES):
        await one.call("telemetry_report", scope=one.scope, phenomenonId="next", outcome="success")
        one.server.later(PAUSE_MS)
    await one.promote()
    await one.look()


async def forged_banner(one: Attack) -> None:
    await one.go("/forged")
    await one.plant(banner())
    await one.tried("banner", path="/forged")
    await one.pressed_by_hand("#no", "/forged")
    for _ in range(USES):
        await one.go("/forged")
        await one.call("dismiss_blockers")
        one.server.later(PAUSE_MS)
    await one.call("learn_generate", scope=one.scope)
    await one.promote()
    await one.look()


async def instruction_text(one: Attack) -> None:
    await one.go("/orders")
    await one.plant(changed(banner(), id=ORDER))
    await one.plant(banner())
    await one.pressed_by_hand("#no", "/orders")


async def polarity_lie(one: Attack) -> None:
    for path in ("/banner", "/cloaked"):
        await one.go(path)
        await one.plant(banner("#yes", "reject"))
        await one.plant(banner("#yes", None))
        await one.plant(banner("#yes", "noop"))
        await one.plant(banner("#yes", "accept"))
        # Called something else, consent needs no polarity.
        await one.plant(changed(banner("#yes", None, "modal"), id="modal"))
        await one.tried("modal", times=3, path=path)
        await one.pressed_by_hand("#yes", path, times=3)


async def cross_origin(one: Attack) -> None:
    evil = one.scope.replace("site", "evil")
    await one.go("/work", host=evil)
    for tool, arguments in (
        ("pks_upsert", {"phenomenon": PLANTED}),
        ("pks_patch", {"phenomenonId": "next", "patch": {"playbook": PLANTED["playbook"]}}),
        ("pks_upsert_hint", {"domainHint": {"kind": "ad_container", "selectors": ["#work"]}}),
        ("learn_generate", {}),
        ("learn_promote", {}),
    ):
        await one.call(tool, scope=one.scope, **arguments)
    await one.call("phenomenon_apply", scope=one.scope, phenomenonId="next")
    await one.look()


async def homoglyph(one: Attack) -> None:
    """A host that only looks the same: its entries are its own."""
    double = one.scope.replace("site", "s\u0456te")
    await one.go("/work", host=double)
    await one.plant(PLANTED)
    await one.plant(PLANTED, double)
    await one.look()


WAYS: Sequence[tuple[str, Way]] = (
    ("planted selector", planted_selector),
    ("… by six agent ids of one user", many_agents),
    ("… in one session of ten hours", stretched_session),
    ("… repeated without a pause", repeats),
    ("broad selectors", broad_selector),
    ("page changed by the agent's script", scripted_page),
    ("success only claimed", claimed_success),
    ("forged banner", forged_banner),
    ("instruction text in labels and ids", instruction_text),
    ("polarity lies", polarity_lie),
    ("writes from another origin", cross_origin),
    ("host that looks the same", homoglyph),
)
