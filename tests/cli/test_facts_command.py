"""Facts on a terminal and for programs, and playing observations back."""

import json

import pytest
from cli_kit import NOW_MS, Folder, nova
from sqlalchemy import update

from nova_mcp.cli.store import facts
from nova_mcp.memory.facts import retention, store
from nova_mcp.memory.facts.model import Observation, Page, Scope
from nova_mcp.memory.facts.rules import canonical
from nova_mcp.memory.facts.tables import fact

SCOPE = Scope("tab_1", "A", "local", "shop.test")
PAGE = Page("https://shop.test/cart", "h1", "shop.test/cart")


def note(folder: Folder, value: object, certainty: str = "certain", call: str = "c1", key: str = "shop.plan") -> None:
    seen = Observation(key, canonical(value), certainty, "agent", call, PAGE, NOW_MS)  # type: ignore[arg-type]
    folder.db.write_sync(store.note, SCOPE, [seen])


def test_current_facts_are_listed_and_history_on_request(folder: Folder) -> None:
    note(folder, "free", "likely")
    note(folder, "pro\x1b[2J", call="c2")
    shown = nova("facts", "--data-dir", folder.path).stdout
    assert "tab_1" in shown
    assert "shop.plan" in shown
    assert "pro" in shown
    assert "free" not in shown
    assert "\x1b" not in shown
    assert '"free"' in nova("facts", "--history", "--data-dir", folder.path).stdout
    assert "shop.plan" not in nova("facts", "--service", "else.test", "--data-dir", folder.path).stdout
    folder.db.write_sync(retention.close_target, "tab_1", NOW_MS)
    assert "shop.plan" not in nova("facts", "--data-dir", folder.path).stdout
    assert "shop.plan" in nova("facts", "--closed", "--data-dir", folder.path).stdout


def test_a_list_that_was_cut_says_so(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts, "LISTED", 2)
    for key in ("shop.a", "shop.b"):
        note(folder, 1, key=key)
    assert "Only the first" not in nova("facts", "--data-dir", folder.path).stderr
    note(folder, 1, key="shop.c")
    told = nova("facts", "--data-dir", folder.path)
    assert "Only the first 2 facts are shown" in told.stderr
    assert ("shop.b" in told.stdout, "shop.c" in told.stdout) == (True, False)
    cut = nova("facts", "--json", "--data-dir", folder.path)
    assert len(json.loads(cut.stdout)["facts"]) == 2


def test_programs_get_everything(folder: Folder) -> None:
    note(folder, "free", "likely")
    note(folder, "pro", call="c2")
    (one,) = json.loads(nova("facts", "--json", "--target", "tab_1", "--data-dir", folder.path).stdout)["facts"]
    assert (one["targetId"], one["serviceKey"], one["key"], one["value"]) == ("tab_1", "shop.test", "shop.plan", "pro")
    assert (one["version"], one["confidence"], one["source"], one["validToMs"]) == (2, 0.95, "agent", None)
    (old,) = one["history"]
    assert (old["value"], old["supersededBy"], old["validToMs"]) == ("free", 2, NOW_MS)


def test_replay_says_that_all_is_as_it_should_be(folder: Folder) -> None:
    note(folder, "free", "likely")
    note(folder, "pro", call="c2")
    for words in (("replay",), ("replay", "facts")):
        done = nova(*words, "--data-dir", folder.path)
        assert (done.exit_code, "2 observations in 1 scope led" in done.stdout) == (0, True)
    body = json.loads(nova("replay", "--json", "--data-dir", folder.path).stdout)
    assert body == {
        "ok": True,
        "facts": {"ok": True, "scopes": 1, "observations": 2, "facts": 2, "differences": []},
        "levels": {"ok": True, "entries": 0, "steps": 0, "differences": []},
    }


def test_replay_names_what_differs_and_fails(folder: Folder) -> None:
    note(folder, "free")
    folder.db.write_sync(lambda conn: conn.execute(update(fact).values(value='"gold"')))
    done = nova("replay", "facts", "--data-dir", folder.path)
    assert done.exit_code == 1
    assert 'DIFFERS tab_1/shop.test shop.plan version 1: value is "gold", replayed "free"' in done.stdout
    body = json.loads(nova("replay", "facts", "--json", "--data-dir", folder.path).stdout)
    assert (body["ok"], body["facts"]["differences"][0]["field"]) == (False, "value")
