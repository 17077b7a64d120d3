"""One action on one element: looked at, admitted, sent once, watched, told."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

import anyio
import anyio.lowlevel

from nova_mcp.browser.act.locate import Locator, Prepared, Purpose, lower, obstructed, prepare
from nova_mcp.browser.channel.page_channel import DocumentChanged, PageScriptError, storm
from nova_mcp.browser.commits.check import commit_facts
from nova_mcp.browser.commits.commit_points import CommitPoint, Trigger, accepts_dialogs, classify_commit_point
from nova_mcp.browser.observe.effects import Mark, Observation, Watch, mark
from nova_mcp.browser.observe.host_window import HostWindow, OnDialog
from nova_mcp.browser.perceive.scan_values import Answer
from nova_mcp.core.clock import Ports
from nova_mcp.errors import CommitRefused, NotFound, Precondition, Unavailable
from nova_mcp.verification.model import GuardedCommit, Verdict

if TYPE_CHECKING:
    from nova_mcp.browser.targets.tab import Tab

# A driver that does not come back says nothing about the input: the observer decides.
PRESS_MS: Final = 5000


@dataclass(frozen=True, slots=True)
class Scene:
    """An element that is about to be acted on, and how.

    `trigger` is None for input that sets nothing off by itself. `text` is what the element will hold by the time it is
    committed.
    """

    tab: "Tab"
    window: HostWindow
    prepared: Prepared
    trigger: Trigger | None = "click"
    accepts: bool = False
    text: str | None = None
    appends: bool = False

    def commit_point(self) -> CommitPoint | None:
        """The commit this input would be, if any."""
        if self.trigger is None:
            return accepts_dialogs() if self.accepts else None
        prepared = self.prepared
        for element, form in ((prepared.acting, prepared.form), *prepared.also_acting):
            point = classify_commit_point(commit_facts(element, form, self.trigger, accepts=self.accepts))
            if point is not None:
                return point
        return None


S = TypeVar("S", bound=Scene)


def trigger_of_filling(prepared: Prepared) -> Trigger | None:
    """Filling a field sets nothing off by itself, unless the field's own script submits its form."""
    return "fill" if prepared.acting.submits or prepared.acting.fills else None


class AlreadyDone(Exception):
    """An earlier dispatch of this very commit turns out to have worked, so nothing is sent."""

    def __init__(self, commit: GuardedCommit) -> None:
        super().__init__(commit.transition_id)
        self.commit = commit


class Guard(Protocol):
    """What an action must pass before it reaches the page, and what judges it afterwards."""

    async def admit(self, scene: Scene) -> None:
        """Nothing was sent yet: refuse what must not be done."""

    async def touch(self, scene: Scene) -> None:
        """Input that commits nothing goes out next: from here on the page counts as touched."""

    async def commit(self, scene: Scene) -> None:
        """The decisive input goes out next: the last refusal, then the intent is on record."""

    async def follow(self, scene: Scene) -> Verdict | None:
        """After the input: until the outcome is decided; None when there is nothing to judge it by."""

    async def end(self) -> None:
        """The action is over, however it went."""


class RefusesCommits:
    """For callers without a contract: whatever commits is left alone."""

    async def admit(self, scene: Scene) -> None:
        if (point := scene.commit_point()) is not None:
            raise CommitRefused(
                "guarded_commit.missing_contract",
                f"This is a commit point ({point.kind}): {point.why}.",
                stage="guarded_commit_check",
                details={"commitKind": point.kind, "why": point.why},
            )

    async def touch(self, scene: Scene) -> None:
        return None

    async def commit(self, scene: Scene) -> None:
        await self.admit(scene)

    async def follow(self, scene: Scene) -> Verdict | None:
        return None

    async def end(self) -> None:
        return None


REFUSES_COMMITS: Final = RefusesCommits()


@dataclass(frozen=True, slots=True)
class Manner:
    """How an action is carried out, whatever it is."""

    timeout_ms: int = 3000
    wait_for_navigation: bool = False
    navigation_timeout_ms: int = 10_000
    on_dialog: OnDialog = "dismiss"
    prompt_text: str | None = None
    guard: Guard = REFUSES_COMMITS


@dataclass(frozen=True, slots=True)
class Acted:
    """What was done and seen; the tool decides what to make of it. No observation: nothing had to be sent."""

    prepared: Prepared
    window: HostWindow
    observation: Observation | None
    verdict: Verdict | None = None
    already_done: GuardedCommit | None = None
    waited_for_navigation: bool = False
    # The layer around the element went away for good, and what it covered can be reached.
    layer_gone: bool = False


class Deed(Protocol):
    """The part of an action that is its own: where it aims, what it sends."""

    @property
    def purpose(self) -> Purpose: ...

    @property
    def trigger(self) -> Trigger | None: ...

    async def aim(self, scene: Scene) -> Scene:
        """The last look before input is sent: refuses when the way is not clear, and says what it would set off."""

    async def send(self, scene: Scene) -> None:
        """Send the input; a driver that fails says nothing about what arrived."""


async def perform(tab: "Tab", locator: Locator, deed: Deed, manner: Manner, ports: Ports) -> Acted:
    """Act on exactly one element, or on nothing."""
    async with tab.watch(manner.on_dialog, manner.prompt_text) as window:
        prepared = await prepare(tab, locator, manner.timeout_ms, deed.purpose)
        scene = Scene(tab, window, prepared, deed.trigger, accepts=manner.on_dialog == "accept")
        try:
            await manner.guard.admit(scene)
            scene = await deed.aim(scene)
            acted, since = await dispatched(scene, manner, ports, deed.send)
        except AlreadyDone as done:
            return Acted(prepared, window, None, already_done=done.commit)
        finally:
            await lower_shield(tab, prepared)
            await manner.guard.end()
        return await followed(scene, locator, acted, manner, since)


async def dispatched(
    scene: S, manner: Manner, ports: Ports, send: Callable[[S], Awaitable[None]]
) -> tuple[Acted, Mark]:
    """The decisive input, once: on record before it goes out, watched afterwards."""
    await manner.guard.commit(scene)
    ports.faults.hit("before_dispatch")
    since = mark(scene.window)
    await send(scene)
    ports.faults.hit("after_dispatch")
    return await watched(scene, since, manner), since


async def looked_at(tab: "Tab", locator: Locator, timeout_ms: int) -> Acted:
    """An element that already is as it should be: found and named, and nothing sent."""
    async with tab.watch() as window:
        prepared = await prepare(tab, locator, timeout_ms)
        await lower_shield(tab, prepared)
        return Acted(prepared, window, None)


async def watched(scene: Scene, since: Mark, manner: Manner, told: Answer | None = None) -> Acted:
    """What the page does after the input, until it is quiet and, under a contract, until the outcome is decided.

    `told` is what the page has told already, for input that is proven otherwise: nothing more is waited for then.
    """
    verdict: Verdict | None = None
    judged = False

    async def judge() -> None:
        nonlocal verdict, judged
        verdict = await manner.guard.follow(scene)
        judged = True

    try:
        async with anyio.create_task_group() as group:
            group.start_soon(judge)
            watch = Watch(scene.tab, scene.window, scene.prepared, since)
            if told is None:
                observation = await watch.observe()
            else:
                # Whoever has nothing to judge is through with that at once.
                await anyio.lowlevel.checkpoint()
                observation = watch.at_once(told)
            if observation.dispatch_proof == "none":
                group.cancel_scope.cancel()
            elif not judged:
                await _relax(scene)
    except BaseExceptionGroup as failures:
        # One of the two broke: whoever called knows what to make of the cause, not of a bundle around it.
        raise only_cause(failures) from None
    if scene.window.dialog_storm:
        raise storm()
    return Acted(scene.prepared, scene.window, watch.brought_up_to_date(observation), verdict)


def only_cause(failures: BaseExceptionGroup[BaseException]) -> BaseException:
    """The one failure inside nested bundles; the bundle itself where there are several."""
    cause: BaseException = failures
    while isinstance(cause, BaseExceptionGroup) and len(cause.exceptions) == 1:
        cause = cause.exceptions[0]
    return cause


async def followed(scene: Scene, locator: Locator, acted: Acted, manner: Manner, since: Mark) -> Acted:
    """Refuse what never arrived, then wait for the navigation that was asked for."""
    if acted.observation is not None:
        await refuse_if_undelivered(scene.tab, locator, acted.observation)
    if not manner.wait_for_navigation:
        return acted
    before = since.navigations
    window = scene.window
    await window.wait_for(lambda: len(window.navigations) > before, manner.navigation_timeout_ms)
    return replace(acted, waited_for_navigation=True)


async def _relax(scene: Scene) -> None:
    """The press is over: people at the same page may use it while the outcome is being watched."""
    for frame_id in (scene.prepared.frame_id, *scene.prepared.holders):
        try:
            await scene.tab.channel.ask("relax", frame_id=frame_id, timeout_ms=1000)
        except (DocumentChanged, PageScriptError, Unavailable, NotFound):
            continue


async def lower_shield(tab: "Tab", prepared: Prepared) -> None:
    frames: Sequence[str | None] = (prepared.frame_id, *prepared.holders)
    await lower(tab, frames)


async def refuse_if_undelivered(tab: "Tab", locator: Locator, observation: Observation) -> None:
    """The shield stopped the press, or it never arrived: nothing was touched."""
    if observation.dispatch_proof != "none":
        return
    if observation.proof.stopped:
        raise await obstructed(tab, locator, observation.foreign)
    raise gone(locator)


def left_the_page(spoken: str) -> Precondition:
    """The element is no longer there, and nothing decisive was sent to it."""
    return Precondition("action.unstable", f"{spoken} left the page.", stage="actionability")


def gone(locator: Locator) -> Precondition:
    return Precondition(
        "action.unstable",
        f"{locator.spoken} was gone when the press arrived.",
        stage="dispatch",
        action_dispatched=False,
    )
