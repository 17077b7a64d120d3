"""The figures at the end: counted in the ledger, the promotion log and the site's own log, and nowhere else."""

import sqlite3
from contextlib import closing
from dataclasses import astuple, replace
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from cli_kit import Folder

from nova_mcp.demo.site import practice_site
from nova_mcp.demo.site_answers import PASSWORD
from nova_mcp.demo.tally import Tally, check_figures, check_ledger, check_levels, check_secret, counted, figures
from nova_mcp.demo.wiki_chapters import BY_HAND, WITH_HELP
from nova_mcp.memory.promotion import event_store
from nova_mcp.memory.promotion.model import LearningEvent
from nova_mcp.storage.engine import Database


@pytest.fixture
def folder(tmp_path: Path):
    with Database.open(f"sqlite:///{tmp_path / 'nova.db'}") as db:
        yield Folder(tmp_path, db)


def tally(folder: Folder, *posts: tuple[str, str]) -> Tally:
    with practice_site() as site:
        for name, path in posts:
            host = {"Host": f"{name}.localhost"}
            try:
                urlopen(Request(f"{site.base_url}{path}", b"x", host, method="POST"), timeout=10).close()
            except HTTPError as refused:
                refused.close()
        return counted(folder.path, site)


def test_an_empty_store_and_a_site_nobody_visited_come_to_nothing(folder: Folder):
    found = tally(folder)
    assert set(astuple(found)) == {0}
    assert found.saved == 0
    assert not check_figures(found).as_expected


def test_calls_are_counted_in_the_ledger_by_agent_and_by_reason(folder: Folder):
    for agent, count in ((BY_HAND, 9), (WITH_HELP, 3)):
        for _ in range(count):
            folder.call(agent=agent)
    refused = {
        "guarded_commit.duplicate_suspected": 2,
        "url_units_remaining": 1,
        "action.obstructed": 1,
        "pks.element_changed": 1,
        "something.else": 4,
    }
    for reason, count in refused.items():
        for _ in range(count):
            folder.call(reason=reason, outcome="blocked_preflight")
    found = tally(folder)
    assert (found.calls, found.refused, found.by_hand, found.with_help) == (21, 9, 9, 3)
    assert (found.duplicates, found.too_early, found.wrong_clicks) == (2, 1, 2)
    assert found.saved == pytest.approx(2 / 3)
    assert "9 → 3 (67% saved)" in [figure.value for figure in figures(found)]


def test_steps_of_entries_are_counted_in_the_promotion_log_and_refused_ones_are_none(folder: Folder):
    steps = [("learn_generate", 0, 0, None), ("l0_to_l1", 0, 1, None), ("l1_to_l2", 1, 2, None)]
    steps += [("demotion", 2, 1, None), ("l1_to_l2", 1, 2, "successes")]
    for number, (kind, before, after, rejection) in enumerate(steps):
        event = LearningEvent("e", "wiki.test", before, after, kind, 1 + number, rejection=rejection)
        folder.db.write_sync(event_store.add, event)
    found = tally(folder)
    assert (found.promoted, found.demoted) == (2, 1)


def test_what_arrived_is_counted_by_the_site(folder: Folder):
    posts = [("shop", "/api/order")] * 2 + [("shop", "/api/consent/rejected"), ("shop", "/api/consent/accepted")]
    posts += [("chat", "/api/messages"), ("wiki", "/api/archive"), ("shop", "/api/profile")]
    found = tally(folder, *posts)
    assert (found.orders, found.messages, found.refusals, found.consents) == (2, 1, 1, 1)
    assert (found.archived, found.failed, found.requests) == (1, 1, 7)


GOOD = Tally(*([0] * 17))
GOOD = replace(GOOD, lies_caught=2, failed=2, orders=1, messages=1, refusals=7)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, ""),
        ({"orders": 2}, "one order and one message arrived"),
        ({"messages": 0}, "one order and one message arrived"),
        ({"lies_caught": 1}, "every submit that the site could not take was told as failed"),
        ({"archived": 1}, "nothing was archived"),
        ({"consents": 1}, "nobody consented"),
    ],
)
def test_a_figure_that_the_site_does_not_confirm_is_a_failed_chapter(change: dict[str, int], said: str):
    chapter = check_figures(replace(GOOD, **change))
    assert chapter.as_expected is (not said)
    assert not said or chapter.nova == f"not so: {said}"


def test_a_whole_ledger_is_told_from_one_that_was_tampered_with(folder: Folder):
    for _ in range(3):
        folder.call(tool="nova.click_selector")
    path = folder.path / "nova.db"
    whole, caught = check_ledger(path)
    assert (whole.as_expected, caught.as_expected) == (True, True)
    with closing(sqlite3.connect(path)) as conn, conn:
        conn.execute("UPDATE ledger_body SET body = CAST(replace(CAST(body AS TEXT), 'click', 'hover') AS BLOB)")
    assert not check_ledger(path)[0].as_expected


def test_a_store_that_learned_nothing_proves_no_levels(folder: Folder):
    assert not check_levels(folder.path / "nova.db").as_expected


def test_the_password_may_lie_in_its_own_file_alone(tmp_path: Path):
    (tmp_path / "secrets.toml").write_text(PASSWORD)
    assert not check_secret(tmp_path).as_expected
    (tmp_path / "log").write_text("fine")
    assert check_secret(tmp_path).as_expected
    (tmp_path / "log").write_text(f"x{PASSWORD}x")
    chapter = check_secret(tmp_path)
    assert (chapter.as_expected, chapter.nova) == (False, "in log")
