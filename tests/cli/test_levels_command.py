"""Playing the history of knowledge back on a terminal and for programs."""

import json

from cli_kit import NOW_MS, Folder, nova
from sqlalchemy import update

from nova_mcp.memory.knowledge.tables import knowledge_entry
from nova_mcp.memory.promotion.collector import witnessed
from nova_mcp.memory.promotion.model import DAY_MS
from promotion_kit import added, phenomenon, success


def test_levels_that_their_history_leads_to_are_said_to_be_right(folder: Folder) -> None:
    put = added(folder.db, phenomenon())
    folder.db.write_sync(witnessed, put, [success("a", NOW_MS)])
    done = nova("replay", "levels", "--data-dir", folder.path)
    assert done.exit_code == 0
    assert "1 step led to exactly the levels that are stored: 1 entry." in done.stdout
    body = json.loads(nova("replay", "levels", "--json", "--data-dir", folder.path).stdout)
    assert body == {"ok": True, "levels": {"ok": True, "entries": 1, "steps": 1, "differences": []}}


def test_a_level_that_nothing_led_to_is_named_and_fails(folder: Folder) -> None:
    added(folder.db, phenomenon())
    folder.db.write_sync(lambda conn: conn.execute(update(knowledge_entry).values(level=2)))
    for words in (("replay",), ("replay", "levels")):
        done = nova(*words, "--data-dir", folder.path)
        assert done.exit_code == 1
        assert "DIFFERS shop.test banner current: level is 2, replayed 1" in done.stdout
    body = json.loads(nova("replay", "--json", "--data-dir", folder.path).stdout)
    assert (body["ok"], body["facts"]["ok"], body["levels"]["ok"]) == (False, True, False)
    (one,) = body["levels"]["differences"]
    assert one == {
        "scope": "shop.test",
        "stableId": "banner",
        "slot": "current",
        "field": "level",
        "stored": "2",
        "replayed": "1",
    }


def test_what_is_forgotten_of_knowledge_is_counted(folder: Folder) -> None:
    put = added(folder.db, phenomenon())
    folder.db.write_sync(witnessed, put, [success("a", DAY_MS)])
    for words, said in (
        (("--dry-run",), "rows about knowledge: 1 would go"),
        ((), "rows about knowledge: 1 forgotten"),
    ):
        assert said in nova("db", "prune", *words, "--data-dir", folder.path).stdout
    assert nova("replay", "levels", "--data-dir", folder.path).exit_code == 0
