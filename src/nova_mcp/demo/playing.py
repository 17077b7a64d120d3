"""Puts the practice site, a server, a client and the story together, and counts afterwards what it came to."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import anyio
import anyio.to_thread

from nova_mcp.demo.chat_chapters import SECRETS_FILE
from nova_mcp.demo.quick import Comparison, side_by_side, through_nova, through_the_driver
from nova_mcp.demo.serving import Serving, connected, serving, story_settings
from nova_mcp.demo.site import practice_site
from nova_mcp.demo.stage import Agent, Chapter, Stage, all_right
from nova_mcp.demo.story import DAYS, Listener, Moment, moments, play
from nova_mcp.demo.story_clock import StoryClock
from nova_mcp.demo.tally import Tally, check_evidence, counted
from nova_mcp.demo.wiki_chapters import WikiTale
from nova_mcp.secrets.store import FILE_NAME as SECRETS_NAME
from nova_mcp.settings import Settings

# Between two calls, so that somebody who watches the window sees what happens.
PAUSE_S = 0.4


@dataclass(frozen=True, slots=True)
class Played:
    """A story that was told to its end."""

    chapters: tuple[Chapter, ...]
    tally: Tally

    @property
    def right(self) -> bool:
        return all_right(self.chapters)


Afterwards = Callable[[Played, Serving], Awaitable[None]]


async def _nothing_more(played: Played, server: Serving) -> None:
    return


async def play_story(
    folder: Path,
    listener: Listener,
    *,
    headed: bool = False,
    told: tuple[Moment, ...] | None = None,
    then: Afterwards = _nothing_more,
) -> Played | None:
    """The whole story on a server of its own; nothing if somebody ended it. `then` runs while everything still does."""
    settings = story_settings(folder, headed=headed)
    _keep_the_password(settings)
    played: Played | None = None
    clock = StoryClock(DAYS)
    with practice_site() as site:
        async with serving(settings, clock) as server, anyio.create_task_group() as group:
            group.start_soon(_leave_with, server, group.cancel_scope)
            async with connected(server) as client:
                stage = Stage(client, site, clock, listener.call, listener.chapter, PAUSE_S if headed else 0.0)
                begun = await _begun(stage)
                if begun:
                    await play(stage, listener, moments(WikiTale()) if told is None else told)
            if begun:
                listener.heading("Afterwards · the evidence is looked over")
                await anyio.to_thread.run_sync(_look_over, stage, folder)
            tally = await anyio.to_thread.run_sync(counted, folder, site)
            played = Played(tuple(stage.chapters), tally)
            await then(played, server)
            group.cancel_scope.cancel()
    return played


def _keep_the_password(settings: Settings) -> None:
    """Where an operator would put it: in a file that only Nova reads."""
    settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = settings.data_dir / SECRETS_NAME
    path.touch(mode=0o600)
    path.write_text(SECRETS_FILE, encoding="utf-8")


async def _leave_with(server: Serving, scope: anyio.CancelScope) -> None:
    await server.ending.event.wait()
    scope.cancel()


async def _begun(stage: Stage) -> bool:
    """Whether a page opens at all; without a browser there is one thing to tell, and not fifty."""
    opened = await stage.agent("ada").call("navigate", url=stage.site.url("shop"))
    if opened.body.get("ok") is not True:
        stage.tell("A browser for the story", f"{opened.because} {opened.body.get('hint') or ''}", expected=False)
    return opened.body.get("ok") is True


def _look_over(stage: Stage, folder: Path) -> None:
    for chapter in check_evidence(folder, stage.site):
        stage.tell(chapter.title, chapter.nova, chapter.site, expected=chapter.as_expected)


# -- half a minute


async def play_quick(folder: Path, listener: Listener, *, headed: bool = False) -> list[Comparison]:
    """The same mishaps for a plain driver and for Nova, each on a site of its own."""
    settings, clock = story_settings(folder, headed=headed), StoryClock(1)
    # The server gets ready while the driver is at work.
    with practice_site() as ours, practice_site() as theirs:
        async with serving(settings, clock) as server:
            plain = await through_the_driver(settings.browser, theirs)
            async with connected(server) as client:
                nova = await through_nova(Agent("ada", client, listener.call), ours, clock)
    return side_by_side(plain, nova)
