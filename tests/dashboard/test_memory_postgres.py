"""What the pages on memory and work read, on PostgreSQL as on SQLite."""

from collections.abc import Iterator
from typing import Any

import memory_kit
import pytest
from bench.postgres import private_cluster
from dashboard_kit import NOW, Stand

from nova_mcp.dashboard import reviews
from nova_mcp.dashboard.pages import entry, facts, goals, knowledge, notes, review, tasks
from nova_mcp.dashboard.pages import run as run_page
from nova_mcp.dashboard.pages.facts import FactsAsked
from nova_mcp.memory.knowledge.model import ScopeName
from nova_mcp.memory.promotion import steps_store
from nova_mcp.storage.engine import Database

pytestmark = pytest.mark.postgres

SHOP = ScopeName("shop.test")


@pytest.fixture(scope="module")
def postgres() -> Iterator[Database]:
    with private_cluster() as cluster, Database.open(cluster.fresh_database(template=cluster.migrated)) as db:
        yield db


def views(db: Database, run: str) -> dict[str, Any]:
    """Every view, with nothing in it that depends on which store made up a number."""
    read = db.read_sync
    waiting = read(review.review, "local", None, NOW, "standard")
    return {
        "sites": read(knowledge.sites, "", "", NOW),
        "sites by name": read(knowledge.sites, "wiki", "shop.test", NOW),
        "site": read(knowledge.site, SHOP, NOW, "standard"),
        "entry": read(entry.entry, SHOP, "newsletter", NOW, "standard"),
        "preview": read(reviews.preview, SHOP, "cart-drawer", NOW, "standard"),
        "waiting": waiting.waiting.entries,
        "questions": waiting.questions,
        "patterns": waiting.patterns,
        "claims": [(one.candidate.claim, one.score, one.strength) for one in waiting.claims],
        "decisions": waiting.decisions,
        "facts": read(facts.facts, FactsAsked()).groups,
        "facts further on": read(facts.facts, FactsAsked(after=("tab_1", "chat.test", "auth.logged_in"))).facts,
        "facts of ended tabs": read(facts.facts, FactsAsked(service_key="wiki.test", closed=True)).facts,
        "fact": [one.value for one in known(read(facts.fact, "tab_1", "chat.test", "chat.model", NOW)).versions],
        "goals": read(goals.goals, "local", NOW),
        "goal": read(goals.goal, "local", "goal_lamp", NOW),
        "tasks": [(one.run.principal, one.tally) for one in read(tasks.tasks, None, NOW, ended=True).runs],
        "profile": read(tasks.profile, "local", "shop-audit", NOW),
        "run": shown(read(run_page.run, run_page.RunAsked(run), "block")),
        "uncovered": len(known(read(run_page.run, run_page.RunAsked(run, "uncovered", 10), "block")).units),
        "notes": [
            [one.value for one in read(notes.notes, "domain", "", NOW).sites],
            [one.content for one in read(notes.notes, "operator", "", NOW).rules],
            [one.row.content for one in read(notes.notes, "memory", "", NOW).memories],
        ],
        "steps": len(read(steps_store.latest, 1, 500)),
    }


def known(found: Any) -> Any:
    assert found is not None
    return found


def shown(found: Any) -> Any:
    view = known(found)
    return view.proof, view.reasons, view.checks, view.map, view.units, view.findings, len(view.events)


def test_both_stores_show_the_same(desk: Stand, postgres: Database):
    ours = views(desk.db, memory_kit.everything(desk.db))
    theirs = views(postgres, memory_kit.everything(postgres))
    assert ours.keys() == theirs.keys()
    for name, view in ours.items():
        assert view == theirs[name], name
    assert len(ours["waiting"]) == 5
    assert len(ours["facts further on"]) == 2
