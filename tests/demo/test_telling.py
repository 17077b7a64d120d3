"""The story as a judge of itself: a chapter that did not happen fails, and so does the whole."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from mcp_types import CallToolResult, TextContent

from nova_mcp.demo.site import practice_site
from nova_mcp.demo.stage import Broken, Chapter, Stage, Told, all_right
from nova_mcp.demo.story import DAYS, Moment, moments, play
from nova_mcp.demo.story_clock import StoryClock
from nova_mcp.demo.wiki_chapters import WikiTale


class Silent:
    def heading(self, text: str) -> None:
        return

    def call(self, agent: str, tool: str) -> None:
        return

    def chapter(self, chapter: Chapter) -> None:
        return


class SaysYes:
    """A client whose server does nothing and is content with it."""

    def __init__(self, **more: Any) -> None:
        self.more = more

    async def call_tool(self, name: str, arguments: dict[str, Any]) -> CallToolResult:
        lines = 'done\ne1 button "Departments" #departments\ne2 button "Price list" #price-list'
        body = {"ok": True, "status": "ok", "verifyState": "verified", "actionDispatched": True, **self.more}
        return CallToolResult(content=[TextContent(type="text", text=lines)], structured_content=body)

    async def read_resource(self, uri: str) -> Any:
        return SimpleNamespace(contents=[])


async def told_by(client: Any, told: tuple[Moment, ...] | None = None) -> list[Chapter]:
    with practice_site() as site:
        stage = Stage(client, site, StoryClock(DAYS))
        await play(stage, Silent(), moments(WikiTale()) if told is None else told)
        return stage.chapters


async def test_a_server_that_says_yes_to_everything_passes_no_chapter():
    chapters = await told_by(SaysYes())
    assert len(chapters) >= 20
    assert [chapter.title for chapter in chapters if chapter.as_expected] == []


@pytest.mark.parametrize("error", [Broken("the page did not open"), KeyError("x")])
async def test_a_scene_that_breaks_off_is_a_chapter_that_failed_and_the_next_one_is_played(error: Exception):
    async def breaks(stage: Stage) -> None:
        raise error

    async def works(stage: Stage) -> None:
        stage.tell("fine", "yes", expected=True)

    chapters = await told_by(SaysYes(), (Moment(1, "x", (breaks, works)),))
    assert [chapter.as_expected for chapter in chapters] == [False, True]
    assert not all_right(chapters)


def test_one_wrong_chapter_makes_the_story_wrong_and_so_does_none():
    right = Chapter("a", "b", "c", as_expected=True)
    assert all_right([right, right])
    assert not all_right([right, replace(right, as_expected=False)])
    assert not all_right([])


def test_a_refusal_that_was_expected_and_did_not_come_is_told_by_what_came_instead():
    refused = Told({"reasonCode": "action.obstructed", "message": "It is covered."}, "{}")
    assert refused.because == "action.obstructed: It is covered."
    assert Told({"ok": True}, "clicked e1\nmore").because == "clicked e1"


def test_a_control_is_found_by_its_whole_name_in_what_was_shown():
    told = Told({}, 'e1 button "Price list of old" #old\ne2 link "Price list" #price-list [link]')
    assert told.selector_of("Price list") == "#price-list"
    with pytest.raises(Broken):
        told.selector_of("Price")
