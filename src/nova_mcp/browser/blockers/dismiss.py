"""Getting rid of layers over a page without ever agreeing to anything."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import anyio

from nova_mcp.browser.act.action import Acted, Guard, Manner, RefusesCommits, Scene
from nova_mcp.browser.act.action_report import ActionReport, Judgement, build_report
from nova_mcp.browser.act.choose import Choice, choose
from nova_mcp.browser.act.click import Press as MousePress
from nova_mcp.browser.act.click import click
from nova_mcp.browser.act.locate import Locator
from nova_mcp.browser.act.press_keys import Strokes, press_keys
from nova_mcp.browser.blockers.layers import HOLD_MS, is_gone
from nova_mcp.browser.blockers.look import look_for_blockers
from nova_mcp.browser.blockers.rules import (
    Blocker,
    ConsentChoice,
    Control,
    Done,
    Escape,
    Manage,
    Method,
    Mode,
    Press,
    Step,
    Switch,
    Tally,
    all_off,
    commits_something,
    may_hide,
    speaks_for,
    steps_for,
    to_turn_off,
    weakest,
)
from nova_mcp.browser.channel.page_channel import DocumentChanged, PageScriptError
from nova_mcp.browser.perceive.element_lines import one_line
from nova_mcp.browser.perceive.scan_values import SeenElement
from nova_mcp.core.clock import Ports
from nova_mcp.core.page.consent_words import said_by
from nova_mcp.core.page.control_labels import HUMAN, BlockerKind, Label
from nova_mcp.core.page.keys import parse_key
from nova_mcp.errors import CommitRefused, InvalidParams, NotFound, Precondition, Unavailable

if TYPE_CHECKING:
    from nova_mcp.browser.targets.tab import Tab

PASS_MS: Final = 12_000
_PRESS_MS: Final = 1500
# How long a layer may take to go, or to show what is behind its settings button.
_GOING_MS: Final = 1500
# Nobody waits for Escape on purpose; a layer that knows the key goes at once, though it may take its time to fade.
_ESCAPED_MS: Final = 250
_FADING_MS: Final = 1200
_LOOK_AGAIN_S: Final = 0.15
_MOST_SWITCHES: Final = 40
_NAME_CHARS: Final = 60

# Not there any more, covered, moving, or not to be pressed: nothing was sent, the next way is tried.
_NOT_PRESSED: Final = (CommitRefused, Precondition, NotFound, InvalidParams)


@dataclass(frozen=True, slots=True)
class Order:
    mode: Mode = "conservative"
    max_passes: int = 2


@dataclass(frozen=True, slots=True)
class Dismissal:
    """What was found, done and left; the reports are those of every input that was sent."""

    tally: Tally
    actions: tuple[Done, ...]
    reports: tuple[ActionReport, ...]
    kinds: tuple[BlockerKind, ...] = ()
    met: tuple[Blocker, ...] = ()


# Asked before anything reaches the page; a layer that is only hidden has no scene.
Touch = Callable[[Scene | None], Awaitable[None]]


async def dismiss(tab: "Tab", order: Order, touch: Touch, ports: Ports) -> Dismissal:
    """Answer, close or, when ordered, hide whatever lies over the page."""
    return await _Dismissing(tab, order, touch, ports).run()


class _PressGuard(RefusesCommits):
    """Lets through one press that was understood; whatever else it would set off is refused."""

    def __init__(self, label: Label, kind: BlockerKind, touch: Touch) -> None:
        self._label = label
        self._kind = kind
        self._touch = touch

    async def admit(self, scene: Scene) -> None:
        prepared = scene.prepared
        roads = ((prepared.acting, prepared.form), *prepared.also_acting)
        accepts = any(said_by(name) == "accept" for element, _ in roads for name in _names(element))
        form = next((form for _, form in roads if form is not None), None)
        if accepts or commits_something(scene.commit_point(), self._label, self._kind, form):
            raise CommitRefused(
                "guarded_commit.missing_contract",
                "This control does more than close the layer.",
                "Press it yourself if that is meant.",
                stage="guarded_commit_check",
            )

    async def commit(self, scene: Scene) -> None:
        await self.admit(scene)
        await self._touch(scene)


class _SwitchGuard(RefusesCommits):
    """A switch is turned off, which must not commit anything by itself."""

    def __init__(self, touch: Touch) -> None:
        self._touch = touch

    async def commit(self, scene: Scene) -> None:
        await self.admit(scene)
        await self._touch(scene)


def _names(element: SeenElement) -> tuple[str, ...]:
    return tuple(name for name in (element.facts.name, element.says) if name)


@dataclass(slots=True)
class _Dismissing:
    tab: "Tab"
    order: Order
    touch: Touch
    ports: Ports
    found: dict[tuple[int, int], Blocker] = field(default_factory=dict)
    gone: dict[tuple[int, int], ConsentChoice] = field(default_factory=dict)
    hidden: set[tuple[int, int]] = field(default_factory=set)
    actions: list[Done] = field(default_factory=list)
    reports: list[ActionReport] = field(default_factory=list)
    pressed: set[tuple[str, int]] = field(default_factory=set)
    # Second layers that came because they were asked for; they were not found on the page.
    opened: set[tuple[int, int]] = field(default_factory=set)
    # Took the refusal and thanks for it instead of going away.
    answered: set[tuple[int, int]] = field(default_factory=set)
    # Gone while another layer lay in the same place; whether the page can be reached shows at the end.
    unclear: set[tuple[int, int]] = field(default_factory=set)
    ends: float = 0.0

    async def run(self) -> Dismissal:
        self.ends = anyio.current_time() + self.order.max_passes * PASS_MS / 1000
        left = await self._look()
        for _ in range(self.order.max_passes):
            todo = [blocker for blocker in left if self._ways(blocker)]
            if not todo or self._late():
                break
            for blocker in todo:
                await self._answer(blocker)
            left = await self._look()
        if self.order.mode == "aggressive":
            left = await self._hide(left)
        kinds = tuple(sorted({blocker.kind for blocker in self.found.values()}))
        met = tuple(self.found.values())
        return Dismissal(await self._tally(left), tuple(self.actions), tuple(self.reports), kinds, met)

    async def _look(self) -> tuple[Blocker, ...]:
        found = await look_for_blockers(self.tab)
        for blocker in found:
            if self._key(blocker) not in self.opened:
                self.found.setdefault(self._key(blocker), blocker)
        return found

    def _key(self, blocker: Blocker) -> tuple[int, int]:
        return self.tab.page_epoch, blocker.node

    def _late(self) -> bool:
        return anyio.current_time() >= self.ends

    def _ways(self, blocker: Blocker) -> list[Step]:
        """What is still to be tried; nothing is pressed twice."""
        return [step for step in steps_for(blocker) if _spot(step, blocker) not in self.pressed]

    # -- one layer

    async def _answer(self, blocker: Blocker) -> None:
        key = self._key(blocker)
        now: Blocker | None = blocker
        while now is not None and (ways := self._ways(now)) and not self._late():
            self.pressed.add(_spot(ways[0], now))
            choice = await self._taken(now, ways[0])
            if choice is not None:
                self.gone[key] = "rejected" if key in self.answered else choice
                return
            if key[0] != self.tab.page_epoch:
                return
            now = await self._again(now)
            if now is not None and isinstance(ways[0], Press) and ways[0].method == "reject" and not _asks(now):
                self.answered.add(key)

    async def _taken(self, blocker: Blocker, step: Step) -> ConsentChoice | None:
        """One way out of a layer; the choice it made when the layer is gone for it."""
        match step:
            case Press(control, method):
                away = await self._left(blocker, await self._press(control, blocker, method))
                return None if not away else "rejected" if method == "reject" else "dismissed"
            case Escape():
                return "dismissed" if await self._left(blocker, await self._escape(), _ESCAPED_MS) else None
            case Manage(control):
                return "rejected" if await self._manage(blocker, control) else None

    async def _left(self, blocker: Blocker, acted: Acted | None, start_ms: int = _GOING_MS) -> bool:
        """Whether a layer is gone; the page may have been loaded anew to get rid of it."""
        if acted is None or acted.layer_gone:
            return acted is not None
        gone = await is_gone(self.tab, blocker.node, start_ms=start_ms, moving_ms=_FADING_MS)
        if gone == "covered":
            self.unclear.add(self._key(blocker))
        if gone != "left":
            return gone != "there"
        for _ in range(2):
            if any(one.kind == blocker.kind for one in await look_for_blockers(self.tab)):
                return False
            await anyio.sleep(HOLD_MS / 1000)
        return True

    async def _press(self, control: Control, blocker: Blocker, method: Method) -> Acted | None:
        manner = _manner(_PressGuard(control.label, blocker.kind, self.touch))
        locator = self._locator(control.element, control.url)
        try:
            acted = await click(self.tab, locator, MousePress(), manner, self.ports)
        except _NOT_PRESSED:
            return None
        self._note(acted, Done(method, one_line(control.name, _NAME_CHARS)))
        return acted

    async def _escape(self) -> Acted | None:
        guard = _SwitchGuard(self.touch)
        try:
            keyed = await press_keys(self.tab, None, Strokes(parse_key("Escape")), _manner(guard), self.ports)
        except _NOT_PRESSED:
            return None
        self._note(keyed.acted, Done("escape", "Escape"))
        return keyed.acted

    def _locator(self, element: SeenElement, url: str) -> Locator:
        (ref,) = self.tab.perception.assign([element], url, self.tab.page_epoch)
        return Locator(ref=ref)

    def _note(self, acted: Acted, done: Done | None) -> None:
        self.reports.append(build_report(acted, self.tab, Judgement()))
        if done is not None:
            self.actions.append(done)

    # -- the layer behind the settings button

    async def _manage(self, blocker: Blocker, control: Control) -> bool:
        if await self._press(control, blocker, "manage_reject") is None:
            return False
        second = await self._second_layer()
        if second is None:
            return False
        if not await self._reject_in(second):
            await self._leave(second)
            # A layer that was closed unanswered brings the first one back.
            refused = speaks_for(second, "reject")
            if refused is None or _place(refused) not in self.pressed:
                return False
        return await self._none_left()

    async def _second_layer(self) -> Blocker | None:
        """The consent layer that offers more than the first one did."""
        with anyio.move_on_after(_GOING_MS / 1000):
            while True:
                for one in await look_for_blockers(self.tab):
                    if self._key(one) not in self.found:
                        self.opened.add(self._key(one))
                    saves = bool(one.switches) and speaks_for(one, "save") is not None
                    if one.kind == "consent" and (speaks_for(one, "reject") is not None or saves):
                        return one
                await anyio.sleep(_LOOK_AGAIN_S)
        return None

    async def _reject_in(self, second: Blocker) -> bool:
        reject = speaks_for(second, "reject")
        if reject is not None:
            acted = await self._press(reject, second, "manage_reject")
            if acted is not None:
                self.pressed.add(_place(reject))
            if await self._left(second, acted):
                return True
            second = await self._again(second) or second
        save = speaks_for(second, "save")
        if save is None or not await self._all_turned_off(second):
            return False
        return await self._left(second, await self._press(save, second, "manage_reject"))

    async def _again(self, blocker: Blocker) -> Blocker | None:
        return next((one for one in await look_for_blockers(self.tab) if one.node == blocker.node), None)

    async def _all_turned_off(self, second: Blocker) -> bool:
        wanted = to_turn_off(second.switches)
        if wanted is None or len(wanted) > _MOST_SWITCHES:
            return False
        for switch in wanted:
            if self._late() or not await self._turn_off(switch):
                return False
        now = await self._again(second)
        return now is not None and all_off(now.switches)

    async def _turn_off(self, switch: Switch) -> bool:
        if switch.element is None:
            return False
        locator = self._locator(switch.element, switch.url)
        manner = _manner(_SwitchGuard(self.touch))
        try:
            chosen = await choose(self.tab, locator, Choice(checked=switch.picks), manner, self.ports)
        except _NOT_PRESSED:
            return False
        if not chosen.already_set:
            self._note(chosen.acted, None)
        return chosen.already_set or chosen.verdict == "readback_match"

    async def _none_left(self) -> bool:
        return not any(one.kind == "consent" for one in await look_for_blockers(self.tab))

    async def _leave(self, second: Blocker) -> None:
        """Not answered: the second layer must not be left open over the page."""
        close = speaks_for(second, "close")
        if second.closing_accepts or await self._again(second) is None:
            return
        if close is not None:
            await self._press(close, second, "close")
        elif await self._escape() is not None:
            await is_gone(self.tab, second.node, start_ms=_GOING_MS)

    # -- what can't be closed

    async def _hide(self, left: Sequence[Blocker]) -> tuple[Blocker, ...]:
        for blocker in left:
            if not may_hide(blocker) or blocker.kind in HUMAN:
                continue
            await self.touch(None)
            try:
                done = await self.tab.channel.ask("hideLayer", {"node": blocker.node})
            except (DocumentChanged, PageScriptError, NotFound, Unavailable):
                continue
            if done and await is_gone(self.tab, blocker.node, start_ms=0) != "there":
                self.hidden.add(self._key(blocker))
                self.actions.append(Done("hide", one_line(blocker.name, _NAME_CHARS)))
        return await self._look()

    # -- the end

    async def _tally(self, left: Sequence[Blocker]) -> Tally:
        still = {self._key(blocker) for blocker in left} | await self._still_covered()
        gone = {key: choice for key, choice in self.gone.items() if key not in still and key in self.found}
        open_ended = [*left, *(self.found[key] for key in self.hidden if key in self.found)]
        choices = [choice for key, choice in gone.items() if self.found[key].kind == "consent"]
        if any(blocker.kind == "consent" for blocker in open_ended):
            choices.append("unknown")
        return Tally(
            found=_apart(self.found.values()),
            dismissed=_apart(self.found[key] for key in gone),
            hidden=len(self.hidden),
            remaining=tuple(left),
            choice=weakest(choices),
            dispatched=any(report.action_dispatched for report in self.reports),
        )

    async def _still_covered(self) -> set[tuple[int, int]]:
        now = [key for key in self.unclear if key[0] == self.tab.page_epoch]
        return {key for key in now if await is_gone(self.tab, key[1], start_ms=0, hold_ms=0) == "covered"}


def _apart(blockers: Iterable[Blocker]) -> int:
    """How many layers these are; a layer that is drawn anew is still the same."""
    return len({(blocker.kind, blocker.name) for blocker in blockers})


def _spot(step: Step, blocker: Blocker) -> tuple[str, int]:
    match step:
        case Press(control=control) | Manage(control=control):
            return _place(control)
        case Escape():
            return "Escape", blocker.node


def _place(control: Control) -> tuple[str, int]:
    return control.element.facts.frame, control.element.node


def _asks(blocker: Blocker) -> bool:
    """Whether a layer still wants an answer."""
    return any(control.label in ("accept", "reject") for control in blocker.controls)


def _manner(guard: Guard) -> Manner:
    return Manner(timeout_ms=_PRESS_MS, guard=guard)
