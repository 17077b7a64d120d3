"""Pages on knowledge, facts, notes, goals and tasks: what the store holds is on them, and nothing on them acts."""

import re
from urllib.parse import quote, urlencode

import memory_kit
import pytest
from dashboard_kit import HOSTILE, NOW, Stand

EVIL = f"x{HOSTILE}".replace(" ", "_")


def address(path: str, **values: str) -> str:
    return f"{path}?{urlencode(values)}"


ENTRY = address("/knowledge/entry", scope="shop.test", id="newsletter")


@pytest.fixture
def run(desk: Stand) -> str:
    return memory_kit.everything(desk.db)


def every_page(run: str) -> list[str]:
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


def test_every_page_is_shown_and_what_pages_said_is_escaped(desk: Stand, run: str, anyio_backend):
    ...


