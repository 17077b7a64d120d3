"""Whatever pages, agents and notes call themselves, no page of the dashboard turns it into markup."""

from html.parser import HTMLParser
from typing import Any

import pytest
from dashboard_kit import HOSTILE, Stand
from filled import fill

from nova_mcp.calls.model import Answer
from pages import PAGES

# Elements that only our own templates have, and in which none of them puts a stranger's text.
FORBIDDEN = {"iframe", "object", "embed", "base", "style"}


class Reader(HTMLParser):
    """Every element and attribute as a browser would find them."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str]]] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    reader.close()
    return reader


@pytest.mark.parametrize("path", PAGES)
async def test_a_hostile_name_stays_text_on_every_page(desk: Stand, path: str):
    fill(desk, 30)
    async with desk.operator() as visitor:
        reader = read((await visitor.get(path)).text)
    scripts = [attributes.get("src", "") for tag, attributes in reader.found if tag == "script"]
    assert len(scripts) == 1
    assert scripts[0].startswith("/dashboard/static/")
    for tag, attributes in reader.found:
        assert tag not in FORBIDDEN
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
        for name in ("href", "src", "action", "formaction"):
            if name in attributes and tag != "link":
                assert attributes[name].startswith(("/dashboard", "#main")), (tag, attributes)
        if tag == "img":
            assert attributes["src"].startswith("/dashboard/calls/")


@pytest.mark.parametrize("path", ["/calls/{}", "/calls/{}/picture/before", "/goals/{}", "/tasks/runs/{}"])
@pytest.mark.parametrize("name", ["%00", "a%00b", "%0a", "%ff", "x" * 5_000])
async def test_the_store_is_never_asked_for_a_name_that_it_could_not_hold(
    desk: Stand, monkeypatch: pytest.MonkeyPatch, path: str, name: str
):
    asked: list[str] = []
    real = desk.db.read

    async def read(fn: Any, *args: Any, **named: Any) -> Any:
        asked.append(repr(args))
        return await real(fn, *args, **named)

    monkeypatch.setattr(desk.db, "read", read)
    async with desk.operator() as visitor:
        assert (await visitor.get(path.format(name))).status_code == 404
    assert asked
    assert not [told for told in asked if "\\x00" in told or "\\n" in told or len(told) > 500]


async def test_what_a_notice_says_hides_nothing(desk: Stand):
    desk.program.answer = Answer({"ok": False, "message": "evil\u202egnp.exe\u200b"}, "no", is_error=True)
    async with desk.operator() as visitor:
        answer = await visitor.post("/review/question", {"id": "x", "verdict": "defer"})
        told = (await visitor.get(answer.headers["location"].removeprefix("/dashboard"))).text
    assert "evil\\u202egnp.exe\\u200b" in told
    assert "\u202e" not in told


SHOWN_AT = ("/", "/calls", "/calls/call-hostile", "/calls/call-commit", "/questions", "/controls")


@pytest.mark.parametrize("path", SHOWN_AT)
async def test_the_hostile_name_is_really_there_and_can_be_read(desk: Stand, path: str):
    fill(desk, 30)
    async with desk.operator() as visitor:
        text = "".join(read(await visitor.page(path)).texts)
    assert HOSTILE in text


@pytest.mark.parametrize(
    "name", ["tool", "agent", "host", "outcome", "before", "told", "window", "feed", "name", "family"]
)
async def test_what_stands_in_an_address_stays_text_too(desk: Stand, name: str):
    async with desk.operator() as visitor:
        for path in ("/", "/calls", "/statistics", "/controls", "/controls/switch", "/enter"):
            answer = await visitor.get(path, params={name: HOSTILE, "ticket": HOSTILE})
            assert "<script>alert" not in answer.text
            assert "<img src=x" not in answer.text
