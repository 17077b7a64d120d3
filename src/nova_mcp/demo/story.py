"""The days of the story in order, played by scripted agents through a real client, and what they come to."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from nova_mcp.demo import banner_chapters as banner
from nova_mcp.demo import chat_chapters as chat
from nova_mcp.demo import memory_chapters as memory
from nova_mcp.demo import shop_chapters as shop
from nova_mcp.demo import task_chapters as task
from nova_mcp.demo.stage import Broken, Chapter, Stage
from nova_mcp.demo.wiki_chapters import WikiTale

Scene = Callable[[Stage], Awaitable[None]]


class Listener(Protocol):
    """Whoever shows the story while it happens."""

    def heading(self, text: str) -> None: ...

    def call(self, agent: str, tool: str) -> None: ...

    def chapter(self, chapter: Chapter) -> None: ...


@dataclass(frozen=True, slots=True)
class Moment:
    """Some scenes, on a day of the story and so many hours into it; a later part of a day has no title of its own."""

    day: int
    title: str
    scenes: tuple[Scene, ...]
    hours: int = 0


DAYS = 8


def moments(tale: WikiTale) -> tuple[Moment, ...]:
    """The story: what is observed, drafted, reviewed, trusted and reused, and everything that must not happen."""
    return (
        Moment(1, "nothing is known yet", (shop.consent, shop.act, shop.covered_button, shop.order, tale.first_visit)),
        Moment(2, "what recurs is drafted", (banner.write_it_down, shop.lying_page, tale.candidate, tale.shadow)),
        Moment(3, "in review", (banner.once_more, chat.sign_in, chat.send_a_message, tale.try_out)),
        Moment(3, "", (tale.try_out, task.claimed_too_early), hours=8),
        Moment(4, "trusted", (banner.known, tale.last_try, task.proven)),
        Moment(5, "reused", (tale.reuse, chat.lost_message, memory.working_rule)),
        Moment(6, "the wiki was redesigned overnight", (tale.redesign, tale.repaired)),
        Moment(6, "", (tale.try_out, memory.rule_of_the_site), hours=8),
        Moment(7, "proving itself again", (tale.try_out, memory.facts, memory.whose_tab, memory.bad_input)),
        Moment(8, "today", (banner.handled, tale.last_try, tale.reuse_again, tale.life)),
    )


async def play(stage: Stage, listener: Listener, told: Sequence[Moment]) -> None:
    """Scene after scene; one that breaks off is a chapter that failed, and the story goes on."""
    for moment in told:
        stage.clock.move_to(moment.day, moment.hours)
        stage.site.state.day = moment.day
        if moment.title:
            listener.heading(f"Day {moment.day} · {stage.clock.today()} · {moment.title}")
        for scene in moment.scenes:
            try:
                await scene(stage)
            except Exception as error:  # noqa: BLE001 - whatever breaks in a scene is what this run has to tell
                told_as = str(error) if isinstance(error, Broken) else f"{type(error).__name__}: {error}"
                stage.tell("This part of the story broke off", told_as, expected=False)
