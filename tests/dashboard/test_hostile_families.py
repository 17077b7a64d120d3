"""Markup, quotes, turned and hidden signs, long words and templates stay text on every page, on both stores."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import filled
import memory_kit
import pytest
from bench.postgres import private_cluster
from dashboard_kit import Stand, stand
from test_memory_pages import address, every_page

from nova_mcp.memory.tasks.model import Check, Guidance
from pages import PAGES

HARMLESS = "harmless words"
FAMILIES = {
    "markup": "</td></table><script src=//evil.example/x.js></script><svg onload=alert(1)><b>bold</b><!--",
    "attributes": "\"' autofocus onfocus=alert(1) style=position:fixed x=\"'` onclick='alert(1)",
    "links": "javascript:alert(1)//https://evil.example/?a=1&b=<a href=javascript:alert(1)>data:text/html,x",
    "templates": "{{ 7*7 }}{% raw %}${7*7}#{7*7}<%= 7*7 %>{# gone #}[[constructor.constructor('alert(1)')()]]",
    "turned": "safe\u202egpj.exe\u2066\u2067\u200f\u061c\u200b\ufeff\u00ad\u2028\u2029end",
    "control": "bell\x07\x1b[31mred\x08\r\nSet-Cookie: a=b\r\n\x7f\x85end",
    "long": "W" * 180,
    "heaped": "Z" + "\u0341\u0317" * 60 + "\U000e0041\U000e0042\ufe0f\ufe0e",
}
# Elements that no template puts a stranger's text into.
FORBIDDEN = frozenset({"iframe", "object", "embed", "base", "style", "b", "img", "frame", "meta-refresh"})
# Signs that must never reach a reader as they are: they turn, hide or end what stands around them.
RAW = frozenset("\u202e\u2066\u2067\u200f\u061c\u200b\ufeff\x07\x1b\x08\x7f\x85\u2028\u2029")
Store = Callable[[], str | None]
Named = tuple[str, str]


class Reader(HTMLParser):
    """What a browser would build, and what a person would read."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.built: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.built.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        self.built.append(f"/{tag}")

    def handle_data(self, data: str) -> None:
        self.words.append(data)


Pages = list[tuple[str, Reader]]


@pytest.fixture(scope="module")
def cluster() -> Iterator[object]:
    with private_cluster() as running:
        yield running


@pytest.fixture(scope="module")
def twins() -> dict[str, Pages]:
    """The pages filled with harmless words by store: they are the same for every family."""
    return {}


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def store_kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def new_stand(
    store_kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> Callable[[str], AbstractContextManager[Stand]]:
    def make(name: str) -> AbstractContextManager[Stand]:
        if store_kind == "sqlite":
            return stand(tmp_path / name)
        running = request.getfixturevalue("cluster")
        return stand(tmp_path / name, store=running.fresh_database(template=running.migrated))

    return make


def fill(desk: Stand, word: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every page has something to show, with the word wherever a page or an agent chooses words; returns the pages."""
    name = f"x{''.join(sign for sign in word if sign.isprintable())}".replace(" ", "_")
    for module, attribute, value in (
        (memory_kit, "HOSTILE", word),
        (memory_kit, "EVIL", name),
        (filled, "HOSTILE", word),
        (
            memory_kit,
            "PAGES",
            replace(
                memory_kit.PAGES,
                display_name=f"Audit {word}",
                stable_guidance=(Guidance("g1", "tip", f"Mind {word}"),),
                mandatory_checks=(Check("c1", "Look at the imprint"), Check("c2", f"Look at {word}")),
            ),
        ),
    ):
        monkeypatch.setattr(module, attribute, value)
    filled.fill(desk, 30)
    run = memory_kit.everything(desk.db)
    question = memory_kit.question(desk.db)
    evil = address("/knowledge/entry", scope="wiki.test", id=name)
    known = [path for path in every_page(run, question) if "alert" not in path]
    return [*PAGES, *known, evil, address("/review/entry", scope="wiki.test", id=name, act="retire")]


async def read(desk: Stand, paths: list[str]) -> Pages:
    async with desk.operator() as visitor:
        answers = [(path.partition("?")[0], await visitor.get(path)) for path in paths]
    # Three addresses name what only the other kit's words would have made.
    assert sum(answer.status_code == 200 for _, answer in answers) >= len(answers) - 4
    return [(path, Reader(answer.text)) for path, answer in answers]


@pytest.mark.parametrize("family", FAMILIES)
async def test_no_family_of_hostile_words_executes_links_out_or_changes_a_page(
    family: str,
    store_kind: str,
    new_stand: Callable[[str], AbstractContextManager[Stand]],
    twins: dict[str, Pages],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    word = FAMILIES[family]
    with new_stand("hostile") as desk:
        hostile = await read(desk, fill(desk, word, monkeypatch))
    if store_kind not in twins:
        with new_stand("harmless") as desk:
            twins[store_kind] = await read(desk, fill(desk, HARMLESS, monkeypatch))
    for (path, page), (_, twin) in zip(hostile, twins[store_kind], strict=True):
        assert page.built == twin.built, path
        assert not FORBIDDEN.intersection(page.built) - FORBIDDEN.intersection(twin.built), path
        for tag, name, value in page.attributes:
            assert not name.startswith("on"), (path, tag, name)
            assert name != "style", (path, tag)
            if name in ("href", "src", "action", "formaction") and tag != "link":
                assert value.startswith(("/dashboard", "#")), (path, tag, value)
        assert not RAW.intersection("".join(page.words)), (path, [one for one in page.words if RAW & set(one)])
        assert not [value for _, name, value in page.attributes if name == "title" and RAW & set(value)], path
        assert "49" not in [text.strip() for text in page.words] or "49" in [text.strip() for text in twin.words], path
    shown = sum(word[:8] in " ".join(page.words) for _, page in hostile)
    assert shown >= 14 or RAW & set(word[:8]) or not word.isprintable()
