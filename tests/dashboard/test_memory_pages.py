"""Pages on knowledge, facts, notes, goals and tasks: what the store holds is on them, and nothing on them acts."""

import hashlib
import re
from html import unescape
from html.parser import HTMLParser
from urllib.parse import parse_qsl, urlencode, urlsplit

import memory_kit
import pytest
from dashboard_kit import NOW, Stand, Visitor
from memory_kit import EVIL
from sqlalchemy import Connection

from nova_mcp.dashboard.pages import facts, knowledge, review, tasks
from nova_mcp.dashboard.pages import run as run_page
from nova_mcp.memory.knowledge.model import ScopeName
from nova_mcp.storage.engine import Database
from nova_mcp.verification.goals import store
from nova_mcp.verification.goals.model import NewGoal


def address(path: str, **values: str) -> str:
    return f"{path}?{urlencode(values)}"


ENTRY = address("/knowledge/entry", scope="shop.test", id="newsletter")


@pytest.fixture
def run(desk: Stand) -> str:
    return memory_kit.everything(desk.db)


def every_page(run: str, question: str) -> list[str]:
    return [
        "/knowledge",
        address("/knowledge", prefix="wiki"),
        address("/knowledge/site", scope="shop.test"),
        address("/knowledge/site", scope="wiki.test"),
        ENTRY,
        address("/knowledge/entry", scope="wiki.test", id=EVIL),
        address("/knowledge/entry", scope="shop.test", id="ads"),
        address("/knowledge/entry", scope="shop.test", id="old-banner"),
        "/review",
        address("/review/entry", scope="shop.test", id="cart-drawer", act="decide"),
        address("/review/entry", scope="wiki.test", id=EVIL, act="retire"),
        address("/review/question", id=question),
        "/facts",
        address("/facts", closed="yes"),
        address("/facts/one", target="tab_1", service="chat.test", key="chat.model"),
        address("/facts/one", target="tab_2", service="wiki.test", key="page.title"),
        "/notes",
        "/notes?kind=operator",
        "/notes?kind=memory",
        "/goals",
        "/goals/goal_lamp",
        "/goals/goal_done",
        "/tasks",
        "/tasks?ended=yes",
        address("/tasks/profile", principal="local", id="shop-audit"),
        f"/tasks/runs/{run}",
        f"/tasks/runs/{run}?units=uncovered",
    ]


class Page(HTMLParser):
    """What a browser would make of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.scripts: list[str] = []
        self.acting: list[tuple[str, str]] = []
        self.words: list[str] = []
        self.tags: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attributes:
            if name.startswith("on") or name == "style" or (value or "").lower().startswith("javascript:"):
                self.acting.append((tag, name))
        if tag == "script":
            self.scripts.append(dict(attributes).get("src") or "inline")

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.words))


async def seen(visitor: Visitor, path: str) -> str:
    return Page(await visitor.page(path)).text


async def told(desk: Stand, path: str) -> str:
    async with desk.operator() as visitor:
        return await seen(visitor, path)


# -- hostile words


async def test_every_page_is_shown_and_what_pages_said_is_escaped(desk: Stand, run: str):
    question = memory_kit.question(desk.db)
    met = 0
    async with desk.operator() as visitor:
        for path in every_page(run, question):
            text = await visitor.page(path)
            page = Page(text)
            assert all(src.startswith("/dashboard/static/") for src in page.scripts), path
            assert page.acting == [], path
            assert "img" not in page.tags, path
            met += "<script>alert(1)</script>" in unescape(text)
    # On most of the pages there is something that a page made up; if not, this test would have shown nothing.
    assert met >= 14


async def test_signs_that_hide_or_turn_text_are_shown_as_what_they_are(desk: Stand):
    memory_kit.fact(desk.db, "safe\u202etxt.exe\u200b", NOW, "page.title")
    turned = NewGoal("goal_turned", "local", "ada", "pay\u202etxt", NOW, 60_000)
    desk.db.write_sync(store.create_goal, turned)
    one = address("/facts/one", target="tab_1", service="chat.test", key="page.title")
    for path in ("/facts", one, "/goals", "/goals/goal_turned"):
        text = await told(desk, path)
        assert "\u202e" not in text, path
        assert "\\u202e" in text, path


# -- knowledge


async def test_sites_are_listed_with_what_their_entries_have_come_to(desk: Stand, run: str):
    text = await told(desk, "/knowledge")
    assert "shop.test" in text
    assert "1 active, 1 shadow, 1 candidate, 1 retired" in text
    assert "wiki.test" not in await told(desk, address("/knowledge", prefix="shop"))
    assert "No known site begins with “nowhere”." in await told(desk, address("/knowledge", prefix="nowhere"))


async def test_a_site_shows_its_entries_and_what_was_decided(desk: Stand, run: str):
    text = await told(desk, address("/knowledge/site", scope="https://shop.test/cart"))
    for words in ("newsletter", "cart-drawer", "2 of 3 proofs", "in review", "hint: ad_container", "shadow → active"):
        assert words in text, words


async def test_an_entry_shows_its_life_as_a_picture_and_as_a_table(desk: Stand, run: str):
    async with desk.operator() as visitor:
        html = await visitor.page(ENTRY)
    label = re.search(r'class="life"[^>]*aria-label="([^"]+)"', html)
    assert label is not None
    assert label[1].startswith(
        "candidate → shadow → active → shadow → active; 14 proofs, 1 sighting, 1 drift, 1 failure"
    )
    assert html.count('class="riser up"') == 3
    assert html.count('class="riser down"') == 1
    text = Page(html).text
    for words in ("became a shadow", "became active", "demoted", "repaired", "written (auto)", "click #decline"):
        assert words in text, words
    assert "the page called it" in text
    assert "What would demote it" in text
    assert "Revision 3, in review to take its place" in text
    assert "0 of 3 open" in text


async def test_a_retired_entry_says_why(desk: Stand, run: str):
    text = await told(desk, address("/knowledge/entry", scope="shop.test", id="old-banner"))
    assert "Retired: the layer is gone" in text
    assert "Retire…" not in text


@pytest.mark.parametrize(
    "path",
    [
        address("/knowledge/site", scope="nowhere.test"),
        address("/knowledge/site", scope=""),
        address("/knowledge/site", scope="*"),
        address("/knowledge/entry", scope="shop.test", id="nothing"),
        address("/knowledge/entry", scope="shop.test", id="a\x00b"),
        address("/review/entry", scope="shop.test", id="newsletter", act="burn"),
        address("/review/question", id="sem:nothing"),
        address("/facts/one", target="tab_1", service="chat.test", key="nothing"),
        "/goals/goal_nothing",
        "/tasks/runs/nothing",
        address("/tasks/profile", principal="robot", id="shop-audit"),
    ],
)
async def test_what_is_not_there_is_not_found(desk: Stand, run: str, path: str):
    async with desk.operator() as visitor:
        assert (await visitor.get(path)).status_code == 404


# -- facts


async def test_facts_are_told_tab_by_tab_and_one_with_its_history(desk: Stand, run: str):
    text = await told(desk, "/facts")
    assert '"beta"' in text
    assert '"alpha-1"' not in text
    assert "wiki.test in tab_2, robot" in text
    assert "chat.test" not in await told(desk, address("/facts", service="wiki.test"))
    one = await told(desk, address("/facts/one", target="tab_1", service="chat.test", key="chat.model"))
    assert one.rindex('"beta"') < one.rindex('"alpha-2"') < one.rindex('"alpha-1"')


# -- goals and tasks


async def test_goals_are_those_of_the_operators_own_agents(desk: Stand, run: str):
    text = await told(desk, "/goals")
    assert "Buy a lamp" in text
    assert "1 of 3" in text
    assert "Not yours" not in text
    async with desk.operator() as visitor:
        assert (await visitor.get("/goals/goal_hers")).status_code == 404
        html = await visitor.page("/goals/goal_lamp")
    assert "verified success" in Page(html).text
    assert len(re.findall('aria-current="step"', html)) == 1


async def test_runs_are_those_of_every_principal_as_on_the_command_line(desk: Stand, run: str):
    assert "other" not in await told(desk, "/tasks")
    text = await told(desk, "/tasks?ended=yes")
    assert "completed" in text
    assert "other" in text
    assert "Audit the shop" in text
    assert "23 of 40, 3 stuck" in text


async def test_a_run_tells_what_is_claimed_from_what_was_seen(desk: Stand, run: str):
    async with desk.operator() as visitor:
        html = await visitor.page(f"/tasks/runs/{run}")
    counts = {kind: html.count(f'class="square {kind}" x=') - 1 for kind in ("proven", "claimed", "open", "stuck")}
    assert counts == {"proven": 14, "claimed": 6, "open": 14, "stuck": 3}
    text = Page(html).text
    assert "14 of 20 checked" in text
    assert "evidence gap" in text
    assert "6 of 20 checked units were not observed" in text
    assert "37 of 37 pages have no accepted scan" in text


async def test_units_can_be_narrowed_down(desk: Stand, run: str):
    text = await told(desk, f"/tasks/runs/{run}?units=blocked")
    assert "page/20" in text
    assert "page/1 " not in text.partition("Units")[2]
    same = await told(desk, f"/tasks/runs/{run}?units=everything")
    assert "page/1 " in same.partition("Units")[2]


# -- notes


async def test_notes_of_every_kind_are_read(desk: Stand, run: str):
    sites = await told(desk, "/notes")
    assert "blocks until acknowledged" in sites
    assert "for everybody" in sites
    assert "style" not in await told(desk, "/notes?kind=domain&domain=shop.test")
    assert "Always check the cart" in await told(desk, "/notes?kind=operator")
    assert "Prefers dark mode" in await told(desk, "/notes?kind=memory")
    assert "There are no such notes." in await told(desk, "/notes?kind=memory&domain=nowhere.test")


# -- reading


def digest(db: Database) -> str:
    def read(conn: Connection) -> str:
        raw = conn.connection.dbapi_connection
        assert raw is not None
        return hashlib.sha256("\n".join(raw.iterdump()).encode()).hexdigest()  # type: ignore[attr-defined]

    return db.read_sync(read)


async def test_looking_at_pages_writes_nothing_and_calls_no_tool(desk: Stand, run: str):
    question = memory_kit.question(desk.db)
    before = digest(desk.db)
    async with desk.operator() as visitor:
        for path in every_page(run, question):
            await visitor.page(path)
    assert digest(desk.db) == before
    assert desk.program.calls == []


async def walked(desk: Stand, path: str, name: str) -> list[str]:
    """What the pages of a list name, from the first to the last."""
    found: list[str] = []
    async with desk.operator() as visitor:
        following: str | None = path
        while following is not None:
            html = await visitor.page(following)
            found += [unescape(one) for one in re.findall(name, html)]
            more = re.search(r'rel="next" href="/dashboard([^"]+)"', html)
            following = None if more is None else unescape(more[1])
            assert len(found) < 1_000
    return found


async def test_a_long_list_of_sites_is_walked_page_by_page(desk: Stand):
    names = [f"site{number:03}.test" for number in range(knowledge.SITES * 2 + 3)]
    for name in names:
        memory_kit.added(desk.db, memory_kit.entry("a", "#a"), scope=ScopeName(name))
    assert await walked(desk, "/knowledge", r'site\?scope=([^"]+)"') == names


async def test_a_long_list_of_facts_is_walked_page_by_page(desk: Stand):
    keys = [f"shop.k{number:03}" for number in range(facts.FACTS + 9)]
    for key in keys:
        memory_kit.fact(desk.db, key, NOW, key)
    memory_kit.fact(desk.db, 1, NOW, "a.first", memory_kit.Scope("tab_2", "A", "local", "chat.test"))
    found = await walked(desk, "/facts", r'/facts/one\?([^"]+)"')
    assert [dict(parse_qsl(one))["key"] for one in found] == [*keys, "a.first"]


async def test_a_long_list_of_entries_to_review_is_walked_page_by_page(desk: Stand, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(review, "WAITING", 4)
    names = [f"e{number:02}" for number in range(30)]
    for number, name in enumerate(names):
        memory_kit.added(desk.db, memory_kit.entry(name, f"#{name}", 2 if number % 5 < 2 else 0))
    found = await walked(desk, "/review", r"id=(e\d\d)&amp;act=decide")
    assert found == [name for number, name in reversed(list(enumerate(names))) if number % 5 >= 2]


async def test_a_long_list_of_runs_and_of_units_is_walked_page_by_page(desk: Stand):
    def write(conn: Connection) -> list[str]:
        made = [
            memory_kit.run_kit.begin(conn, memory_kit.PAGES, at_ms=NOW - number * 1_000)
            for number in range(tasks.RUNS + 5)
        ]
        story = memory_kit.run_kit.Story(conn, made[0], at_ms=NOW)
        urls = [f"https://shop.test/{number:03}" for number in range(run_page.UNITS + 4)]
        story.tell(discovered=memory_kit.run_kit.pages(*urls))
        return [one.instance_id for one in made]

    runs = desk.db.write_sync(write)
    assert await walked(desk, "/tasks", r'/tasks/runs/([0-9a-f]+)"') == runs
    units = await walked(desk, f"/tasks/runs/{runs[0]}", r'<th scope="row">https://shop.test/(\d+)')
    assert units == [f"{number:03}" for number in range(run_page.UNITS + 4)]


async def test_runs_that_were_active_in_one_millisecond_are_all_walked(desk: Stand):
    def write(conn: Connection) -> list[str]:
        made = [memory_kit.run_kit.begin(conn, memory_kit.PAGES, at_ms=NOW) for _ in range(tasks.RUNS + 5)]
        return sorted(one.instance_id for one in made)

    runs = desk.db.write_sync(write)
    assert await walked(desk, "/tasks", r'/tasks/runs/([0-9a-f]+)"') == runs


async def test_addresses_keep_their_question_and_nothing_else(desk: Stand, run: str):
    async with desk.operator() as visitor:
        html = await visitor.page(address("/knowledge/site", scope="wiki.test"))
    link = next(one for one in re.findall(r'href="([^"]+)"', html) if "/knowledge/entry" in one)
    asked = dict(parse_qsl(urlsplit(unescape(link)).query))
    assert asked == {"scope": "wiki.test", "id": EVIL}
