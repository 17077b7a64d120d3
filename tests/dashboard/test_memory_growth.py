"""Pages on memory and work cost the same however much is remembered: the work does not grow with what is not shown."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import memory_kit
import pytest
from dashboard_kit import NOW, Stand, stand
from growth_kit import Reading, plans, work
from sqlalchemy import Connection, Table, insert, select

from nova_mcp.dashboard.pages import entry, facts, goals, knowledge, notes, review, run, tasks
from nova_mcp.dashboard.pages.tasks import RunPlace
from nova_mcp.memory.facts.tables import fact, fact_binding
from nova_mcp.memory.journal.candidate_store import candidate
from nova_mcp.memory.knowledge.model import ScopeName
from nova_mcp.memory.knowledge.tables import knowledge_entry, knowledge_scope
from nova_mcp.memory.notes.tables import browser_memory, domain_note, operator_note
from nova_mcp.memory.promotion.model import DAY_MS
from nova_mcp.memory.promotion.tables import learning_event, learning_step, semantic_opportunity
from nova_mcp.memory.tasks.tables import task_instance, task_profile
from nova_mcp.verification.goals.store import goal

FEW, MANY = 1_000, 10_000
HERE = ScopeName("shop.test")
# What a page may have to read more of where there is more: the tree of an index grows a little with its rows.
SLACK = 1.6
CHUNK = 2_000


def copied(conn: Connection, table: Table, number: int, change: Callable[[int], dict[str, Any]]) -> None:
    """More rows like one that is there, as the server has written it."""
    row = conn.execute(select(table).limit(1)).one()._asdict()
    for start in range(0, number, CHUNK):
        rows = [{**row, **change(at)} for at in range(start, min(number, start + CHUNK))]
        conn.execute(insert(table), rows)


def grow(conn: Connection, number: int) -> None:
    """Everything that people may gather, so many of each."""
    c = knowledge_entry.c
    own = conn.execute(select(c.entry_id).where(c.scope == HERE, c.stable_id == "newsletter")).scalars().first()
    copied(conn, knowledge_scope, number, lambda at: {"scope": f"s{at:06}.test"})
    copied(
        conn,
        knowledge_entry,
        number,
        lambda at: {
            "entry_id": 100_000 + at,
            "scope": f"s{at:06}.test",
            "stable_id": f"e{at}",
            "slot": "current",
            "level": 2 if at % 3 else 1,
            "deprecated_reason": None,
            "candidate_key": None,
        },
    )
    # Every review of an entry looks through its own last thirty days, and so does its page.
    copied(
        conn,
        learning_step,
        FEW,
        lambda at: {"step_id": 100_000 + at, "entry_id": own, "at_ms": NOW - (FEW - at) * 60_000},
    )
    copied(
        conn,
        learning_event,
        number,
        lambda at: {"event_id": 100_000 + at, "scope": HERE, "stable_id": "newsletter", "created_at_ms": NOW - at},
    )
    copied(
        conn,
        semantic_opportunity,
        number,
        lambda at: {"opportunity_id": f"o{at}", "origin": f"s{at}", "state": "dismissed" if at % 4 else "prompted"},
    )
    copied(
        conn,
        candidate,
        number,
        lambda at: {"candidate_id": 10_000 + at, "candidate_key": f"k{at}", "updated_at_ms": at},
    )
    grow_work(conn, number)
    grow_notes(conn, number)


def grow_work(conn: Connection, number: int) -> None:
    copied(conn, goal, number, lambda at: {"goal_id": f"g{at}", "created_at_ms": NOW - at, "principal": "local"})
    copied(
        conn,
        task_instance,
        number,
        lambda at: {
            "instance_id": f"{at:032d}x",
            "create_event_id": None,
            "status": ("active", "completed", "failed")[at % 3],
            "last_activity_at_ms": NOW - DAY_MS - at,
            "ended_at_ms": None if at % 3 == 0 else NOW,
        },
    )
    copied(conn, task_profile, number, lambda at: {"profile_id": f"p{at}", "updated_at_ms": NOW - at})


def grow_notes(conn: Connection, number: int) -> None:
    copied(conn, fact_binding, number, lambda at: {"binding_id": f"z{at:06}/a", "target_id": f"z{at:06}"})
    copied(conn, fact, number, lambda at: {"binding_id": f"z{at:06}/a", "version": 1, "valid_to_ms": None})
    copied(
        conn,
        fact,
        number,
        lambda at: {
            "binding_id": "tab_1/chat.test",
            "signal_key": "chat.model",
            "version": 100 + at,
            "valid_to_ms": NOW,
            "superseded_by": 101 + at,
        },
    )
    copied(conn, domain_note, number, lambda at: {"note_id": f"n{at}", "domain": f"s{at}.test", "key": f"k{at}"})
    # Of these a principal may have a bounded number.
    copied(conn, operator_note, number, lambda at: {**whose(at), "note_id": f"n{at}", "identity_hash": f"h{at}"})
    copied(conn, browser_memory, number, lambda at: {**whose(at), "memory_id": 10_000 + at, "identity_hash": f"h{at}"})


def whose(at: int) -> dict[str, Any]:
    return {"principal": f"p{at // 20:04}"}


READINGS: dict[str, Reading] = {
    "sites": lambda conn: knowledge.sites(conn, "", "", NOW),
    "sites further on": lambda conn: knowledge.sites(conn, "", "s000300.test", NOW),
    "one site": lambda conn: knowledge.site(conn, HERE, NOW, "standard"),
    "one entry": lambda conn: entry.entry(conn, HERE, "newsletter", NOW, "standard"),
    "what waits for a review": lambda conn: review.review(conn, "local", None, NOW, "standard"),
    "what waited earlier": lambda conn: review.review(conn, "local", 100_300, NOW, "standard"),
    "facts": lambda conn: facts.facts(conn, facts.FactsAsked()),
    "facts further on": lambda conn: facts.facts(conn, facts.FactsAsked(after=("z000300", "a", "b"))),
    "facts of a tab": lambda conn: facts.facts(conn, facts.FactsAsked(target_id="tab_2")),
    "one fact": lambda conn: facts.fact(conn, "tab_1", "chat.test", "chat.model", NOW),
    "goals": lambda conn: goals.goals(conn, "local", NOW),
    "open runs": lambda conn: tasks.tasks(conn, None, NOW, ended=False),
    "all runs": lambda conn: tasks.tasks(conn, None, NOW, ended=True),
    "runs further on": lambda conn: tasks.tasks(conn, RunPlace(NOW - DAY_MS - 300, "x"), NOW, ended=True),
    "notes about sites": lambda conn: notes.notes(conn, "domain", "", NOW),
    "notes about one site": lambda conn: notes.notes(conn, "domain", "shop.test", NOW),
    "working rules": lambda conn: notes.notes(conn, "operator", "", NOW),
    "memories": lambda conn: notes.notes(conn, "memory", "", NOW),
}
# Walked from their beginning along an index, and left where the page is full.
ALONG = frozenset(
    {"task_profile", "operator_note", "browser_memory", "knowledge_scope", "knowledge_entry", "fact", "domain_note"}
    | {"candidate"}
)


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Stand, Stand]]:
    folder: Path = tmp_path_factory.mktemp("growth")
    with stand(folder / "few") as few, stand(folder / "many") as many:
        for desk, number in ((few, FEW), (many, MANY)):
            memory_kit.everything(desk.db)
            desk.db.write_sync(grow, number)
            desk.db.write_sync(lambda conn: conn.exec_driver_sql("ANALYZE"))
        yield few, many


@pytest.mark.parametrize("name", READINGS)
def test_a_page_does_not_cost_more_where_more_is_kept(stores: tuple[Stand, Stand], name: str):
    few, many = (one.db.read_sync(work, READINGS[name]) for one in stores)
    assert few > 0
    assert many <= SLACK * few + 50, f"{few} with {FEW} of each, {many} with {MANY}"


@pytest.mark.parametrize("name", READINGS)
def test_whatever_is_walked_is_walked_along_an_index_and_only_so_far(stores: tuple[Stand, Stand], name: str):
    found = stores[1].db.read_sync(plans, READINGS[name])
    assert found, "nothing was asked"
    for step, statement in found:
        walked = re.match(r"SCAN (\w+)", step)
        if walked is None or "CONSTANT" in step:
            continue
        assert walked[1] in ALONG, (step, statement)
        assert "LIMIT" in statement, (step, statement)


def test_one_run_costs_as_much_as_it_has_units(stores: tuple[Stand, Stand]):
    """The map shows all of them; however many other runs there are, they are not looked at."""

    def reading(conn: Connection) -> object:
        c = task_instance.c
        (own,) = conn.execute(select(c.instance_id).where(c.units == 40, c.instance_id.not_like("%x"))).scalars()
        return own

    costs = []
    for one in stores:
        own = str(one.db.read_sync(reading))
        asked = run.RunAsked(own)
        costs.append(one.db.read_sync(work, lambda conn, asked=asked: run.run(conn, asked, "block")))
    assert costs[1] <= SLACK * costs[0] + 50, costs
