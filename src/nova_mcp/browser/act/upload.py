"""Uploading: files go into one file input, or into the one its button asks for, and are read back."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

import anyio
from playwright.async_api import Error

from nova_mcp.browser.act.action import (
    PRESS_MS,
    Acted,
    AlreadyDone,
    Manner,
    Scene,
    dispatched,
    followed,
    lower_shield,
    perform,
    trigger_of_filling,
)
from nova_mcp.browser.act.click import point_at
from nova_mcp.browser.act.locate import Locator, Prepared, Purpose, Target, aim, described, prepare, read_acting
from nova_mcp.browser.channel.page_channel import DocumentChanged, PageScriptError
from nova_mcp.browser.channel.stable_question import navigating
from nova_mcp.browser.commits.commit_points import Trigger
from nova_mcp.browser.files.upload_files import UploadFile
from nova_mcp.browser.files.upload_rules import is_accepted
from nova_mcp.browser.perceive.element_lines import quoted
from nova_mcp.browser.perceive.scan_values import Answer, answer, facts_to_page, read_element
from nova_mcp.core.clock import Ports
from nova_mcp.core.values import Json
from nova_mcp.errors import NotFound, Precondition, Unavailable

if TYPE_CHECKING:
    from nova_mcp.browser.targets.tab import Tab

_CHOOSER_MS: Final = 3000
_SET_MS: Final = 10_000


@dataclass(frozen=True, slots=True)
class Uploaded:
    """What the input took; the verdict is None when the page emptied it again at once."""

    acted: Acted
    accepted: bool
    verdict: Literal["readback_match", "readback_differs"] | None


async def upload(tab: "Tab", locator: Locator, files: Sequence[UploadFile], manner: Manner, ports: Ports) -> Uploaded:
    """Put files into a file input, or press what opens a file chooser and answer that."""
    work = _Uploading(tab, locator, tuple(files), manner, ports)
    try:
        target = await aim(tab, locator)
        found = await work.find(target)
        if found is None:
            found = await work.wait(target)
        if found is not None:
            return await work.into(found, target)
        return await work.through_trigger()
    except DocumentChanged:
        raise navigating() from None
    finally:
        await manner.guard.end()


@dataclass(slots=True)
class _Uploading:
    tab: "Tab"
    locator: Locator
    files: tuple[UploadFile, ...]
    manner: Manner
    ports: Ports
    # The frame whose document holds the input.
    frame_id: str | None = None

    # -- which element

    async def find(self, target: Target) -> Answer | None:
        question: Json = {
            "selector": self.locator.selector,
            "nth": self.locator.nth,
            "node": target.node,
            "expect": None if target.expect is None else facts_to_page(target.expect),
        }
        self.frame_id = target.frame_id
        try:
            told = answer(await self.tab.channel.ask("uploadFind", question, frame_id=target.frame_id))
        except PageScriptError:
            return None
        return told if told["isFile"] else None

    async def wait(self, target: Target) -> Answer | None:
        """No file input yet: wait for whatever is named; a hidden input may turn up meanwhile."""
        try:
            prepared = await prepare(self.tab, self.locator, self.manner.timeout_ms)
        except (Precondition, NotFound):
            if (found := await self.find(target)) is not None:
                return found
            raise
        await lower_shield(self.tab, prepared)
        return await self.find(target)

    # -- straight into an input

    async def into(self, told: Answer, target: Target) -> Uploaded:
        async with self.tab.watch(self.manner.on_dialog) as window:
            prepared = await self._prepared(told, target)
            scene = Scene(self.tab, window, prepared, trigger=trigger_of_filling(prepared))
            try:
                self.refuse_unfit(told)
                await self.manner.guard.admit(scene)
                acted, since = await dispatched(scene, self.manner, self.ports, lambda _: self.hand_over())
            except AlreadyDone as done:
                return Uploaded(Acted(prepared, window, None, already_done=done.commit), accepted=False, verdict=None)
            finally:
                await lower_shield(self.tab, prepared)
            acted = await followed(scene, self.locator, acted, self.manner, since)
        return await self.read_back(acted)

    async def _prepared(self, told: Answer, target: Target) -> Prepared:
        frame = target.frame_id or ""
        element = read_element(told["element"], frame)
        acting, form = read_acting(told["acting"], frame)
        (shown,) = await described(self.tab, [element])
        named = shown if isinstance(shown, dict) else {}
        return Prepared(
            x=0,
            y=0,
            spot=(0, 0),
            holders=(),
            element=element,
            acting=acting,
            form=form,
            also_acting=(),
            ref=str(named.get("ref", "")),
            line=str(named.get("line", "")),
            selector=self.locator.selector,
            standing=told["standing"],
            href=None,
            secret=False,
            url=told["url"],
            recent_paths=frozenset(told["recentPaths"]),
            frame_id=target.frame_id,
            rebound=target.rebound,
            drift=target.drift,
        )

    def refuse_unfit(self, told: Answer) -> None:
        """What the input itself would not take."""
        if told.get("disabled"):
            raise self._refused("action.disabled", "is disabled", "Fill in what it waits for, then call again.")
        if told["folder"]:
            raise self._refused("upload.not_file_input", "asks for a whole folder", "Folders can't be uploaded.")
        if len(self.files) > 1 and not told["several"]:
            raise self._refused("upload.multiple_not_allowed", "takes one file at a time", "Give one path.")
        for file in self.files:
            if not is_accepted(told["accept"], file.file_name):
                raise Precondition(
                    "upload.type_not_accepted",
                    f"{self.locator.spoken} does not take {quoted(file.file_name, 80)}.",
                    f"It takes {quoted(told['accept'], 80)}.",
                    stage="actionability",
                )

    def _refused(self, reason: str, what: str, hint: str) -> Precondition:
        return Precondition(reason, f"{self.locator.spoken} {what}.", hint, stage="actionability")

    async def hand_over(self) -> None:
        """A page that fails in between says nothing about the files: the read-back decides."""
        with suppress(DocumentChanged, PageScriptError, NotFound):
            handle = await self.tab.channel.node("uploadInput", frame_id=self.frame_id)
            order: dict[str, Any] = {"files": [str(file.path) for file in self.files], "objectId": handle}
            await self.tab.channel.send("DOM.setFileInputFiles", order, frame_id=self.frame_id, timeout_ms=_SET_MS)

    # -- through a button

    async def through_trigger(self) -> Uploaded:
        deed = _Trigger(self)
        # A plain function: the driver keeps marks on its listeners, and a slotted object has no room for them.
        async with self.intercepted(lambda event: deed.opened(event)):
            acted = await perform(self.tab, self.locator, deed, self.manner, self.ports)
        if acted.observation is None:
            return Uploaded(acted, accepted=False, verdict=None)
        if deed.chooser is None:
            raise Precondition(
                "upload.not_file_input",
                f"{self.locator.spoken} is no file input, and pressing it asked for no file.",
                stage="verify",
                action_dispatched=True,
            )
        return await self.read_back(acted)

    @asynccontextmanager
    async def intercepted(self, opened: Callable[[dict[str, Any]], None]) -> AsyncIterator[None]:
        """While this lasts the browser tells of a file chooser instead of showing it."""
        channel = self.tab.channel
        sessions = {id(one): one for one in (channel.session(), channel.session(self.frame_id))}
        for session in sessions.values():
            session.on("Page.fileChooserOpened", opened)
            with suppress(Error):
                await session.send("Page.setInterceptFileChooserDialog", {"enabled": True})
        try:
            yield
        finally:
            with anyio.CancelScope(shield=True):
                for session in sessions.values():
                    session.remove_listener("Page.fileChooserOpened", opened)
                    with anyio.move_on_after(1), suppress(Error):
                        await session.send("Page.setInterceptFileChooserDialog", {"enabled": False})

    async def answer_chooser(self, event: dict[str, Any]) -> None:
        node = event.get("backendNodeId")
        if node is None:
            raise self._refused("upload.not_file_input", "opens a chooser of its own", "Name the file input itself.")
        frame_id = str(event["frameId"])
        self.frame_id = None if frame_id == self.tab.channel.frame_id else frame_id
        told = answer(await self.tab.channel.ask_node(int(node), "uploadOpened", {}, frame_id=self.frame_id))
        if not told["isFile"]:
            raise self._refused("upload.not_file_input", "opens no file input", "Name the file input itself.")
        self.refuse_unfit(told)
        await self.hand_over()

    # -- afterwards

    async def read_back(self, acted: Acted) -> Uploaded:
        wanted = [(file.file_name, file.size) for file in self.files]
        try:
            told = answer(await self.tab.channel.ask("uploadState", frame_id=self.frame_id))
        except (DocumentChanged, PageScriptError, Unavailable, NotFound):
            return Uploaded(acted, accepted=False, verdict=None)
        if told["lost"]:
            return Uploaded(acted, accepted=False, verdict=None)
        given, holds = _listed(told["given"]), _listed(told["holds"])
        if holds == wanted:
            return Uploaded(acted, accepted=True, verdict="readback_match")
        taken = given == wanted
        emptied = taken and not holds
        return Uploaded(acted, accepted=taken, verdict=None if emptied else "readback_differs")


def _listed(raw: Any) -> list[tuple[str, int]] | None:
    return None if raw is None else [(str(file["name"]), int(file["bytes"])) for file in raw]


@dataclass(slots=True)
class _Trigger:
    """A press on something that asks for files."""

    work: _Uploading
    purpose: Purpose = "click"
    trigger: Trigger | None = "click"
    chooser: dict[str, Any] | None = None
    asked: anyio.Event = field(default_factory=anyio.Event)

    def opened(self, event: dict[str, Any]) -> None:
        if self.chooser is None:
            self.chooser = event
            self.asked.set()

    async def aim(self, scene: Scene) -> Scene:
        return await point_at(scene, self.work.locator)

    async def send(self, scene: Scene) -> None:
        mouse = scene.tab.page.mouse
        with anyio.move_on_after(PRESS_MS / 1000), suppress(Error):
            await mouse.down()
            await mouse.up()
        with anyio.move_on_after(_CHOOSER_MS / 1000):
            await self.asked.wait()
        if self.chooser is not None:
            await self.work.answer_chooser(self.chooser)
