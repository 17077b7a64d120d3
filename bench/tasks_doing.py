"""What agents do on pages and say about a run: at random, or properly with a flaw now and then."""

import random
from dataclasses import replace
from typing import Any

from bench.tasks_judge import Said, Scan, Work
from bench.tasks_play import ADA, BOB, EVE, Play
from bench.tasks_world import ADDRESSES, PLAIN, REDIRECTS, TEXT, Owner
from nova_mcp.memory.tasks.runs.rules import CheckUpdate, FindingReport

SELECTORS = ("#buy", "button.save", "nav a.home")


def a_unit(play: Play) -> Work:
    dice, kind = play.dice, play.content.completion_condition.unit_kind
    if play.story.url_units:
        address = dice.choices(ADDRESSES, [6] * len(PLAIN) + [2] * (len(ADDRESSES) - len(PLAIN)))[0]
        return Work(address, "url", address)
    if kind == "selector":
        selector = dice.choice(SELECTORS)
        return Work(selector, "selector", selector)
    name = f"unit{dice.randrange(12)}"
    if name in play.story.units:
        return play.story.units[name]
    sort = dice.choice((None, "url", "path", "selector"))
    if sort is None:
        return Work(name, None)
    place = dice.choice(SELECTORS) if sort == "selector" else dice.choice(ADDRESSES)
    return Work(name, sort, place.partition("?")[0] if sort == "path" else place)  # type: ignore[arg-type]


# -- what agents do


def wander(play: Play, agent: Owner) -> None:
    """One thing that somebody does on a page, for no reason but that it may happen."""
    world, dice = play.world, play.dice
    places = [unit.place for unit in play.story.units.values() if unit.sort in ("url", "path")]
    kept = dice.random() > 0.01
    match dice.randrange(14):
        case 0 | 1 | 2 | 3:
            world.navigate(agent, dice.choice([*places, *places, *ADDRESSES[:6]]), kept=kept)
        case 4:
            world.look(agent, "nova.read_text", scan=_scan(dice, read=True) if dice.random() < 0.4 else None, kept=kept)
        case 5:
            world.look(agent, "nova.perceive", mode=dice.choice(("summary", "state")), kept=kept)
        case 6 | 7:
            world.look(agent, "nova.coverage_scan", scan=_scan(dice, read=False), kept=kept)
        case 8:
            world.look(agent, "nova.eval")
        case 9:
            world.look(agent, dice.choice(("nova.capture_screenshot", "nova.page_info", "nova.run_sequence")))
        case 10:
            world.look(agent, "nova.search_text", hit=dice.random() < 0.5)
        case 11:
            ok = dice.random() < 0.7
            world.look(agent, "nova.click_selector", selector=dice.choice(SELECTORS), ok=ok, kept=kept)
        case 12:
            world.moved_under(agent, "nova.read_text")
        case 13:
            _elsewhere(play, agent)
    world.wait(dice.choice((10, 200, 700, 1_200, 3_000, 3_000, 20_000)))


def _elsewhere(play: Play, agent: Owner) -> None:
    """Things that are no call on a page."""
    world, dice = play.world, play.dice
    match dice.randrange(4):
        case 0:
            world.stir(agent)
        case 1:
            world.close(agent)
        case 2:
            world.tab_of(agent).claim = f"claim{dice.randrange(1_000)}"
        case 3:
            # Two agents look at one tab.
            world.tabs[agent] = world.tab_of(dice.choice((ADA, BOB)))


def _scan(dice: random.Random, *, read: bool) -> Scan:
    """Mostly a good one; else with one thing that may be wrong with it."""
    name = TEXT if read else dice.choice((TEXT, TEXT, "nova_i18n_spellcheck_v1", "nova_structured_dom_v1"))
    base = Scan(name, channels=1 if read else 4, asks_channels=not read)
    wrong: tuple[dict[str, Any], ...] = (
        {"failed": True}, {"moved": True}, {"hydration": "unstable"}, {"hydration": "unchecked"}, {"extracted": 511},
        {"extracted": 510}, {"extracted": 424}, {"extracted": 425}, {"measured": 0, "extracted": 0}, {"channels": 3},
        {"frames": 1, "frames_read": False}, {"frames": 1}, {"whole": False}, {"measured": 10, "extracted": 14},
    )  # fmt: skip
    return replace(base, **dice.choice(wrong)) if dice.random() < 0.4 else base


# -- what agents say


def talk(play: Play, agent: Owner) -> None:
    """One report of progress that is legal as the run stands."""
    dice, story = play.dice, play.story
    units = list(story.units.values())
    match dice.randrange(8):
        case 0 | 1:
            play.discover(agent, list({(one := a_unit(play)).name: one for _ in range(dice.randint(1, 3))}.values()))
        case 2 | 3 | 4 if units:
            _advance(play, agent, dice.choice(units))
        case 5:
            key = f"f{dice.randrange(6)}"
            unit = dice.choice([None, *units])
            name = None if unit is None else play.named(unit)
            play.say(agent, findings=(FindingReport(key, "seen", name),))
            story.findings[key] = None if unit is None else unit.name
        case 6 if story.checks:
            check = dice.choice(sorted(story.checks))
            state = dice.choice(("satisfied", "failed", "waived", "not_applicable", "pending"))
            play.say(agent, checks=(CheckUpdate(check, state, "for a good reason"),))  # type: ignore[arg-type]
            story.checks[check] = (story.checks[check][0], state)
        case _:
            if dice.random() < 0.4:
                _freeze(play, agent)
            else:
                play.say(agent, note="Going on")


def _advance(play: Play, agent: Owner, unit: Work) -> None:
    if unit.status in ("checked", "excluded"):
        play.say(agent, note="Nothing new")
        return
    following = {
        "discovered": ("checked", "checked", "checked", "excluded", "blocked", "failed"),
        "blocked": ("discovered", "checked", "excluded"),
        "failed": ("discovered", "checked", "excluded"),
    }
    play.move(agent, unit, play.dice.choice(following[unit.status]))


def _freeze(play: Play, agent: Owner) -> None:
    if play.story.discovery != "frozen":
        play.story.discovery = "frozen"
        play.say(agent, discovery="frozen")


# -- doing it properly


def finish(play: Play) -> None:
    """Do what the run asks for as an honest agent would, with a slip now and then."""
    dice, story = play.dice, play.story
    slip = dice.choice((0.0, 0.0, 0.03, 0.15))
    # What now and then is wrong with a visit; in half of the plans nothing.
    flaw = dice.choice((None,) * 8 + FLAWS)
    agent = ADA if BOB not in story.members else dice.choice((ADA, BOB))
    _enough_units(play, agent)
    for unit in list(story.units.values()):
        if dice.random() < slip:
            continue
        _settle(play, agent, unit, flaw if dice.random() < 0.4 else None)
    for check in story.checks:
        if dice.random() >= slip:
            play.say(agent, checks=(CheckUpdate(check, "satisfied"),))
            story.checks[check] = (story.checks[check][0], "satisfied")
    _enough_findings(play, agent)
    for step in story.steps:
        if dice.random() >= slip:
            play.world.navigate(agent, step.page or PLAIN[0])
            play.world.look(agent, step.tool)
    if dice.random() >= slip:
        _freeze(play, agent)


def _enough_units(play: Play, agent: Owner) -> None:
    wanted = (play.story.stop or 1) if play.story.metric == "checked_units" else 1
    for _ in range(wanted):
        if sum(unit.status != "excluded" for unit in play.story.units.values()) < wanted:
            play.discover(agent, [a_unit(play)])


def _enough_findings(play: Play, agent: Owner) -> None:
    if play.story.metric != "distinct_findings":
        return
    units = [*play.story.units.values()] * 4
    for number, unit in enumerate(units[: play.story.stop or 1]):
        play.say(agent, findings=(FindingReport(f"g{number}", "seen", play.named(unit)),))
        play.story.findings[f"g{number}"] = unit.name


FLAWS = ("scan", "unread", "eval", "quick", "stranger", "elsewhere", "lost", "unscanned")


def _settle(play: Play, agent: Owner, unit: Work, flaw: str | None) -> None:
    """Look at a unit and say that it is checked, or leave it out where it can't be had."""
    world, dice = play.world, play.dice
    doer = EVE if flaw == "stranger" else agent
    if unit.sort == "selector":
        world.look(doer, "nova.click_selector", selector=unit.place, ok=flaw != "scan", kept=flaw != "lost")
    elif unit.sort is not None and flaw != "unread":
        _visit(play, doer, unit, flaw)
    elif unit.sort is not None:
        world.navigate(doer, unit.place)
    hopeless = unit.place in REDIRECTS or world.tab_of(agent).error_page
    if unit.status in ("discovered", "blocked", "failed"):
        play.move(agent, unit, "excluded" if hopeless and dice.random() < 0.8 else "checked")


def _visit(play: Play, agent: Owner, unit: Work, flaw: str | None) -> None:
    world, dice = play.world, play.dice
    world.navigate(agent, dice.choice(ADDRESSES) if flaw == "elsewhere" else unit.place)
    world.wait(dice.choice((5, 50, 300)))
    if flaw == "eval":
        world.look(agent, "nova.eval")
    read = dice.random() < 0.5
    scan = Scan(TEXT, channels=1 if read else 4, asks_channels=not read)
    if flaw == "scan":
        scan = _scan(dice, read=read)
    tool = "nova.read_text" if read else "nova.coverage_scan"
    if flaw == "unscanned":
        world.look(agent, "nova.perceive", mode=dice.choice(("summary", "state")))
    else:
        world.look(agent, tool, scan=scan, kept=flaw != "lost")
    world.wait(10 if flaw == "quick" else dice.choice((600, 900, 1_100, 1_500, 4_000)))


def reports(play: Play) -> dict[str, Said]:
    """What is said of the steps; most of it is true."""
    dice = play.dice
    states = ("passed",) * 12 + ("failed", "inconclusive", "skipped")
    return {
        step.step_id: Said(dice.choice(states), holds=dice.random() < 0.9)
        for step in play.story.steps
        if dice.random() < 0.9
    }
