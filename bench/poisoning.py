"""Who can put something wrong into what is known, and how many have to work together for it."""

from dataclasses import dataclass

import anyio

from bench.findings import bad_share
from bench.learning_server import DAY_MS, LearningServer, learning_server
from bench.poisoning_attacks import WAYS, Attack, Way
from bench.poisoning_groups import GROUPS, MOST, RIDES, Ridden, lowered, ridden, smallest
from bench.poisoning_pages import PAGES
from bench.practice_agent import new_agent
from bench.practice_site import PracticeSite, practice_site
from bench.results import Finding
from bench.tables import machine, remark, show, tell

# What the gates promise by default: two sessions, for consent as for every entry.
EXPECTED = (2, 2, 2, 2)


@dataclass(frozen=True, slots=True)
class Tried:
    name: str
    calls: int
    top: int
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Found:
    tried: list[Tried]
    together: list[int | None]
    ridden: list[Ridden]
    lowered: int | None


async def _alone(server: LearningServer, site: PracticeSite, number: int, name: str, way: Way) -> Tried:
    """One user, one session, a site that nobody knows anything about."""
    server.later(DAY_MS)
    site.begin()
    async with server.client("mallory") as client:
        agent = await new_agent(client, f"mallory-{number}")
        one = Attack(name, server, site, agent, f"site{number}.localhost:{site.port}")
        await way(one)
        await agent.call("tab_close")
    return Tried(name, one.calls, one.top, tuple(one.reasons))


async def run(*, long: bool = False) -> Found:
    with practice_site({"first": PAGES, "second": PAGES}) as site:
        async with learning_server() as server:
            tried = [await _alone(server, site, number, name, way) for number, (name, way) in enumerate(WAYS)]
            together = [await smallest(server, site, group, number) for number, group in enumerate(GROUPS)]
            riders = [await ridden(server, site, kind) for kind in RIDES]
            return Found(tried, together, riders, await lowered(server, site))


def _show_tried(tried: list[Tried]) -> int:
    words = {-1: "nothing stored", 0: "0 candidate", 1: "1 shadow", 2: "2 ACTIVE"}
    rows = [(one.name, one.calls, words[one.top], ", ".join(one.reasons[:5])) for one in tried]
    show("One user, one session", ("attack", "calls", "highest level", "stopped by"), rows)
    active = sum(one.top == 2 for one in tried)
    tell(bad_share("T8", "attacks of one user in one session that reached an active entry", active, len(tried), 0))
    return active


def _judge(found: Found) -> None:
    groups = list(zip(GROUPS, found.together, EXPECTED, strict=True))
    tell(
        Finding(
            aim="T8",
            what="the number of colluders at which it breaks",
            measured="; ".join(f"{group.name}: {least or f'more than {MOST}'}" for group, least, _ in groups),
            bound="; ".join(f"≥ {most}" for *_, most in groups),
            n=len(groups),
            met=all(least is None or least >= most for _, least, most in groups),
        )
    )
    ridden = sum(one.revision_active for one in found.ridden)
    tell(bad_share("T8", "steps of a stranger carried to active by honest use", ridden, len(found.ridden), 0))


def main(long: bool = False) -> int:
    found = anyio.run(lambda: run(long=long))
    print(machine())
    bad = _show_tried(found.tried)
    rows = [
        (group.name, f"more than {MOST}" if least is None else least, expected)
        for group, least, expected in zip(GROUPS, found.together, EXPECTED, strict=True)
    ]
    show("Together: with how many a planted entry becomes active", ("colluders", "smallest k", "promised"), rows)
    bad += sum(least is not None and least < expected for least, expected in zip(found.together, EXPECTED, strict=True))
    for one in found.ridden:
        what = "BECAME ACTIVE" if one.revision_active else f"stayed at level {one.level}"
        remark(f"a step added to what everybody does ({one.name}): {what} after {one.honest_calls} honest calls")
    bad += sum(one.revision_active for one in found.ridden)
    remark(f"calls of one session that bring an honest active entry down: {found.lowered or 'no number of them'}\n")
    _judge(found)
    return bad
