"""Chapters in the wiki: the way to a page is observed, drafted, tried, trusted and reused, until the wiki changes."""

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from nova_mcp.core.keywords import some
from nova_mcp.demo.stage import Agent, Broken, Stage, Told

LABELS = ("Departments", "Purchasing", "Suppliers", "Price list")
GOAL = "/suppliers/prices"
LEVELS = ("candidate", "shadow", "active")
# Who finds the page without help and with it; what they needed is read off the ledger by these names.
BY_HAND, WITH_HELP = "ada-by-hand", "ben-with-help"


async def find_by_hand(stage: Stage, agent: Agent) -> list[str]:
    """Look, press, look again: every list opens only when its button is pressed."""
    seen = await agent.visit(stage.site.url("wiki"))
    used: list[str] = []
    for number, label in enumerate(LABELS):
        if number:
            seen = await agent.call("perceive")
        used.append(seen.selector_of(label))
        pressed = await agent.call("click_selector", selector=used[-1])
        if pressed.body.get("ok") is not True:
            raise Broken(f"{label}: {pressed.because}")
    return used


def _content(selectors: list[str]) -> dict[str, Any]:
    """The whole way: how its beginning is recognised, four presses, and the address that proves them."""
    arrived = {"factKey": f"page.urlMatches@{quote(GOAL, safe='')}", "operator": "eq", "expected": True}
    signs = [{"kind": "dom", "match": "#menu"}, {"kind": "dom", "match": selectors[0]}]
    return {
        "fingerprint": {"signals": signs},
        "playbook": {
            "policy": "custom",
            "actions": [{"action": "click", "selector": selector} for selector in selectors],
            "verify": [{"type": "fact", "assertion": arrived}],
        },
    }


def _arrivals(stage: Stage) -> int:
    return stage.site.received("wiki", "GET", GOAL)


def _counted(stage: Stage) -> str:
    return f"{some(_arrivals(stage), 'visit')} to the price list so far"


def _archived(stage: Stage) -> int:
    return stage.site.received("wiki", "POST", "/api/archive")


@dataclass(slots=True)
class WikiTale:
    """One entry of knowledge, from the first visit to the last."""

    id: str = ""
    way: list[str] = field(default_factory=list)

    # -- small things

    async def _level(self, stage: Stage, agent: Agent) -> str:
        told = await agent.call("explain", scope=stage.site.scope("wiki"), stableId=self.id)
        level = (told.body.get("phenomenon") or {}).get("level")
        return LEVELS[level] if level in (0, 1, 2) else "unknown"

    async def _promote(self, stage: Stage, agent: Agent) -> str:
        await agent.call("learn_promote", scope=stage.site.scope("wiki"), stableIds=[self.id])
        return await self._level(stage, agent)

    async def _patch(self, stage: Stage, agent: Agent) -> Told:
        return await agent.call(
            "pks_patch", scope=stage.site.scope("wiki"), phenomenonId=self.id, patch=_content(self.way)
        )

    # -- evidence

    async def first_visit(self, stage: Stage) -> None:
        self.way = await find_by_hand(stage, stage.agent(BY_HAND))
        told = f"{some(stage.calls[BY_HAND], 'call')}: look, press, look again: {' → '.join(LABELS)}"
        stage.tell("Finding the price list by hand", told, _counted(stage), expected=_arrivals(stage) == 1)

    async def candidate(self, stage: Stage) -> None:
        """The second visit: what recurs is suggested, and drafted as a candidate that guides nobody."""
        ada, scope = stage.agent("ada"), stage.site.scope("wiki")
        await find_by_hand(stage, ada)
        suggested = await ada.call("learn_suggest", scope=scope)
        best = (suggested.body.get("opportunities") or [{}])[0]
        right = best.get("supportCount", 0) >= 2 and best.get("distinctSessions") == 2
        told = suggested.first_line.partition(": ")[0]
        stage.tell("The same way on another day is noticed", told, _counted(stage), expected=right)
        await ada.visit(stage.site.url("wiki"))
        made = await ada.call("learn_generate", scope=scope)
        proposal = (made.body.get("proposals") or [{}])[0]
        self.id = str(proposal.get("targetStableId", ""))
        matched = await ada.call("pks_match", scope=scope)
        level = await self._level(stage, ada)
        right = made.body.get("generated") == 1 and level == "candidate" and matched.body.get("matched") is False
        told = f"{self.id}: {proposal.get('reason')} It is a {level}: it guides nobody yet."
        stage.tell("Nova drafts an entry from what it saw", told, expected=right)

    async def shadow(self, stage: Stage) -> None:
        """Enough was seen for a review; the agent adds the three presses that come before the drafted one."""
        ada = stage.agent("ada")
        await ada.visit(stage.site.url("wiki"))
        level = await self._promote(stage, ada)
        patched = await self._patch(stage, ada)
        early = await ada.call("phenomenon_apply", phenomenonId=self.id)
        right = level == "shadow" and patched.body.get("patched") is True and early.reason == "pks.not_active"
        told = f"candidate → {level}; with all four presses revision {patched.body.get('revision')} · {early.because}"
        stage.tell("It goes into review, and can't be used yet", told, expected=right)

    # -- proof by use

    async def _tried(self, stage: Stage, wanted: str, title: str) -> None:
        ada = stage.agent("ada")
        seen = await ada.visit(stage.site.url("wiki"))
        note = next((one["note"] for one in seen.body.get("pks", []) if one["phenomenonId"] == self.id), "")
        before = _arrivals(stage)
        used = await ada.call("phenomenon_apply", phenomenonId=self.id, trial=True)
        right = used.verified and _arrivals(stage) == before + 1
        level = await (self._promote if wanted == "active" else self._level)(stage, ada)
        told = f"{note} · {used.first_line} · now {level}"
        stage.tell(title, told, _counted(stage), expected=right and level == wanted)

    async def try_out(self, stage: Stage) -> None:
        """One use of what is in review; it counts like any other evidence."""
        await self._tried(stage, "shadow", "Tried out while in review")

    async def last_try(self, stage: Stage) -> None:
        await self._tried(stage, "active", "The third proof, and it is trusted")

    async def _reused(self, stage: Stage, name: str, whose: str) -> None:
        agent = stage.agent(name)
        began = stage.calls[name]
        seen = await agent.visit(stage.site.url("wiki"))
        advice = next((one["text"] for one in seen.body.get("pksAdvice", []) if one["kind"] == "reuse"), "")
        before = _arrivals(stage)
        used = await agent.call("phenomenon_apply", phenomenonId=self.id)
        needed = stage.calls[name] - began
        right = bool(advice) and used.verified and _arrivals(stage) == before + 1 and needed < stage.calls[BY_HAND]
        title = f"{whose} finds the price list in {some(needed, 'call')} instead of {stage.calls[BY_HAND]}"
        stage.tell(title, f"told by perceive: {advice} · {used.first_line}", _counted(stage), expected=right)

    async def reuse(self, stage: Stage) -> None:
        await self._reused(stage, WITH_HELP, "A new agent, on its first day,")

    async def reuse_again(self, stage: Stage) -> None:
        await self._reused(stage, "fay", "Another new agent")

    # -- the redesign

    async def redesign(self, stage: Stage) -> None:
        """The old name of the first button now belongs to a switch, which a script that remembers would throw."""
        ada = stage.agent("ada")
        stage.site.state.redesigned = True
        await ada.visit(stage.site.url("wiki"))
        refused = await ada.call("phenomenon_apply", phenomenonId=self.id)
        right = refused.reason == "pks.element_changed" and not refused.touched and _archived(stage) == 0
        counted = f'"Archive this wiki" (now #departments) was pressed {some(_archived(stage), "time")}'
        stage.tell("The learned button now archives the wiki", refused.because, counted, expected=right)

    async def repaired(self, stage: Stage) -> None:
        """The repair is a suggestion; patched in, it has to prove itself like anything new."""
        ada = stage.agent("ada")
        tab = str((await ada.call("page_info")).body.get("targetId"))
        checked = await ada.call("revalidate", targetId=tab)
        row: dict[str, Any] = next((one for one in checked.body.get("results", []) if one["stableId"] == self.id), {})
        found = row.get("repairCandidate") or {}
        right = row.get("verdict") == "drift" and found.get("label") == LABELS[0]
        stage.tell("A check that touches nothing suggests a repair", checked.text.splitlines()[-1], expected=right)
        why = await ada.call("explain", scope=stage.site.scope("wiki"), stableId=self.id)
        right = (why.body.get("phenomenon") or {}).get("level") == 1
        stage.tell("Drift: it was active, and the trust is gone", why.first_line.partition(": ")[2], expected=right)
        self.way = [str(found.get("selector")) if one == found.get("lostSelector") else one for one in self.way]
        patched = await self._patch(stage, ada)
        why = await ada.call("explain", scope=stage.site.scope("wiki"), stableId=self.id)
        level = (why.body.get("phenomenon") or {}).get("level")
        right = patched.body.get("patched") is True and level == 1
        told = why.first_line.partition(": ")[2]
        stage.tell("Repaired by the agent, it has to prove itself anew", told, expected=right)

    async def life(self, stage: Stage) -> None:
        """Every step of the entry, as the promotion log has it."""
        told = await stage.agent("ada").call("learn_feedback", scope=stage.site.scope("wiki"), since=0, limit=100)
        steps = [
            (event["reasonKind"], event["toLevel"])
            for event in reversed(told.body.get("events", []))
            if event["stableId"] == self.id and event["reason"].get("rejection") is None
        ]
        right = [level for _, level in steps] == [0, 1, 2, 1, 2]
        line = " → ".join(f"{LEVELS[level]} ({kind})" for kind, level in steps)
        stage.tell("The life of this entry, from the promotion log", line, expected=right)
