"""Facts of one page from before the dispatch until the verdict, through every document that comes in between."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import anyio

from nova_mcp.browser.channel.messages import Message
from nova_mcp.browser.channel.page_channel import DocumentChanged, PageScriptError
from nova_mcp.browser.observe.frame_facts import FrameFacts, question
from nova_mcp.errors import NotFound, NovaError
from nova_mcp.verification.model import Fact, FactAddress, Loss, Reading, Sample

if TYPE_CHECKING:
    from nova_mcp.browser.observe.page_witness import Asked, PageWitness

ARM_MS: Final = 3000
LOOK_MS: Final = 2000
BEGIN_TRIES: Final = 3
_END_MS: Final = 500
# A page between two processes can't be asked; nothing tells when it can, except its next try.
_AGAIN_S: Final = 0.05
# A frame on its way to another process is for a moment nowhere to be found.
_MISSES: Final = 6


class PageFollower:
    """Samples whenever something changed; the pages tell, nobody asks them in turns."""

    def __init__(self, witness: "PageWitness", asked: "Asked") -> None:
        self._witness = witness
        self._channel = witness.channel
        self._asked = asked
        self._stored: dict[FactAddress, Fact] = {}
        self._document = self._channel.document
        self._baseline_document = self._document
        self._misses: dict[str | None, int] = {}
        self._lost: Loss | None = None
        self._wake = anyio.Event()
        self._endings: list[Callable[[], None]] = []
        self._baseline: Reading = {}
        self._last: Sample | None = None

    @property
    def baseline(self) -> Reading:
        """The facts as they stood before anything was sent."""
        return self._baseline

    @property
    def document(self) -> int:
        """The document the baseline was read in."""
        return self._baseline_document

    @property
    def _main(self) -> FrameFacts:
        return self._asked.frames[0]

    # -- beginning and end

    async def begin(self) -> None:
        """Arm every frame and read the baseline."""
        channel = self._channel
        for frame in self._asked.frames:
            frame.renew()
        self._endings = [
            channel.on_message(self._on_message),
            channel.on_document(self._on_document),
            channel.on_frame(self._on_frame),
            channel.on_end(self._on_end),
            self._witness.window.on_change(self._note),
        ]
        self._stored = await self._witness.read_stored(self._asked)
        for _ in range(BEGIN_TRIES):
            if not await self._arm_due():
                break
        if channel.state != "ready":
            self._on_end()
        self._document = self._baseline_document = channel.document
        self._baseline = self._reading()
        self._last = self._sample()

    async def end(self) -> None:
        """Stop watching; a page that does not answer forgets by itself."""
        for ending in self._endings:
            ending()
        self._endings = []
        for frame in self._asked.frames:
            if frame.due or frame.gone or self._channel.state != "ready" or self._channel.departing:
                continue
            with suppress(NovaError, DocumentChanged, PageScriptError):
                await self._channel.ask(
                    "unwatchFacts", {"id": frame.watch_id}, frame_id=frame.frame_id, timeout_ms=_END_MS
                )

    def pressed(self) -> None:
        """Input is being sent now; what began earlier is not the action's doing."""
        self._witness.press()
        for frame in self._asked.frames:
            frame.changed = frame.carried = False

    # -- samples

    async def next(self, wait_ms: float) -> Sample | None:
        """The next sample once something changed; None when nothing did within that time."""
        with anyio.move_on_after(max(0.0, wait_ms) / 1000):
            while True:
                wake = self._wake
                if (sample := self._news()) is not None:
                    return sample
                if self._lost is None and await self._arm_due():
                    # What could not be armed now is tried again soon, or as soon as something happens.
                    with anyio.move_on_after(_AGAIN_S):
                        await self._wake.wait()
                    continue
                if wake is self._wake:
                    await wake.wait()
        return self._news()

    async def look(self) -> Sample:
        """Everything as it stands at this moment, asked for instead of waited for."""
        for frame in self._asked.frames:
            if frame.refs and not frame.gone and not frame.due and self._lost is None:
                await self._look_in(frame)
        self._last = self._sample()
        return self._last

    async def _look_in(self, frame: FrameFacts) -> None:
        watch_id = frame.watch_id
        try:
            told = await self._channel.ask("lookFacts", {"id": watch_id}, frame_id=frame.frame_id, timeout_ms=LOOK_MS)
        except (DocumentChanged, PageScriptError, NovaError):
            told = None
        if frame.watch_id == watch_id and not frame.take(told):
            # The document that was armed no longer answers: what it said last proves nothing now.
            frame.facts = frame.all_unseen("fact_unreadable")
            frame.due = True

    def _news(self) -> Sample | None:
        sample, last = self._sample(), self._last
        if last is not None and replace(sample, at_ms=last.at_ms) == last:
            return None
        self._last = sample
        return sample

    def _sample(self) -> Sample:
        lost = self._lost or self._frames_lost() or ("page_navigated" if self._witness.load_failed else None)
        reading = self._last.reading if lost is not None and self._last is not None else self._reading()
        return Sample(
            at_ms=anyio.current_time() * 1000,
            reading=reading,
            document=self._channel.document,
            requests=self._witness.requests(),
            changed=self._witness.host_changed() or any(frame.changed for frame in self._asked.frames),
            lost=lost,
            anchor_only=self._witness.moved_by_anchor(),
        )

    def _reading(self) -> Reading:
        reading: dict[FactAddress, Fact] = dict(self._stored)
        for frame in self._asked.frames:
            reading.update(frame.facts)
        steady = self._channel.document == self._document or self._main.ready
        reading.update(self._witness.read_host(self._asked.host, steady=steady))
        return reading

    def _frames_lost(self) -> Loss | None:
        """A frame that is gone ends the watch only when nothing else is left to be read."""
        told = [frame for frame in self._asked.frames if frame.refs]
        if not told or self._asked.host or not all(frame.gone for frame in told):
            return None
        return "frame_destroyed"

    # -- arming

    async def _arm_due(self) -> bool:
        """Arm what is not armed; True when something still is not."""
        for frame in self._asked.frames:
            if frame.due and self._lost is None:
                await self._arm(frame)
        return self._lost is None and any(frame.due for frame in self._asked.frames)

    async def _arm(self, frame: FrameFacts) -> None:
        channel, watch_id = self._channel, frame.watch_id
        # Whoever waits for a sample may leave before the answer is here; the page then tells it unasked as well.
        args = {**question(frame, self._witness.hints), "id": watch_id, "announce": True}
        try:
            if frame.frame_id is not None:
                await channel.reach(frame.frame_id)
            told = await channel.ask("watchFacts", args, frame_id=frame.frame_id, timeout_ms=ARM_MS)
        except DocumentChanged:
            return
        except PageScriptError:
            # Protocol errors of a moment look the same; only a page that fails each time is lost.
            if self._fails(frame):
                self._lost = "eval_error"
        except NotFound:
            if self._fails(frame) or not self._baseline:
                frame.lose()
                self._note()
        except NovaError:
            if channel.state != "ready":
                self._on_end()
        else:
            if frame.watch_id == watch_id:
                self._misses.pop(frame.frame_id, None)
                frame.take(told)
                self._note()

    def _fails(self, frame: FrameFacts) -> bool:
        """Whether arming this frame failed once too often."""
        self._misses[frame.frame_id] = self._misses.get(frame.frame_id, 0) + 1
        return self._misses[frame.frame_id] >= _MISSES

    # -- what wakes

    def _note(self) -> None:
        wake, self._wake = self._wake, anyio.Event()
        wake.set()

    def _on_message(self, message: Message) -> None:
        if message.get("kind") != "facts":
            return
        for frame in self._asked.frames:
            if message.get("watch") == frame.watch_id and frame.take(message):
                self._note()

    def _on_document(self, url: str) -> None:
        self._witness.committed(url, anyio.current_time() * 1000)
        for frame in self._asked.frames:
            if not frame.gone:
                frame.renew()
        self._note()

    def _on_frame(self, frame_id: str) -> None:
        for frame in self._asked.frames:
            if frame.frame_id == frame_id and not frame.gone:
                frame.renew()
                self._note()

    def _on_end(self) -> None:
        self._lost = self._lost or "page_navigated"
        self._note()
