"""Guidance in the store: counted once per occasion whoever says it, promoted once, and nobody sees another's."""

import threading
from collections.abc import Callable
from typing import Any

from test_task_profiles import CONTENT, TENANTS, Counting, Still, found, make, run_row

from nova_mcp.core.clock import Ports
from nova_mcp.errors import NovaError
from nova_mcp.memory.tasks.guidance import store as guidance_store
from nova_mcp.memory.tasks.guidance.rules import GuidanceLog, Said
from nova_mcp.memory.tasks.guidance.service import GuidanceKeeper, Logged, Saying, Verdict
from nova_mcp.memory.tasks.profiles import store as profile_store
from nova_mcp.memory.tasks.refusals import Refused
from nova_mcp.memory.tasks.tables import task_instance
from nova_mcp.storage.engine import Database
from run_kit import tried

WRITERS = 4


def keeper(db: Database, seed: int = 0) -> GuidanceKeeper:
    ids = Counting()
    ids.made = seed * 1000
    return GuidanceKeeper(db, Ports(Still(), ids), TENANTS)


def say(db: Database, run: str, text: str = "Keep names.", principal: str = "ada", seed: int = 0) -> object:
    saying = Saying(Said(None, "style", text), "user", {"text": text}, run, "default")
    return tried(lambda: db.write_sync(keeper(db, seed).log, principal, saying))


def judge(db: Database, log_id: str, profile_id: str = "typos", principal: str = "ada", **more: Any) -> object:
    verdict = Verdict(log_id, profile_id, more.get("decision", "promote"), more.get("reason"), lambda content: None)
    return tried(lambda: db.write_sync(keeper(db).decide, principal, verdict))


def runs(db: Database, count: int, principal: str = "ada") -> list[str]:
    ids = [f"{principal}{number}".encode().hex().rjust(32, "0") for number in range(count)]
    rows = [{**run_row(one, principal, CONTENT), "profile_id": "typos"} for one in ids]
    db.write_sync(lambda conn: conn.execute(task_instance.insert(), rows))
    return ids


def at_once(work: Callable[[int], None]) -> None:
    threads = [threading.Thread(target=work, args=(number,)) for number in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_writers_that_say_the_same_at_once_share_one_row(store_url: str, open_db: Any) -> None:
    bases = [open_db(store_url) for _ in range(WRITERS)]
    make(bases[0], "typos")
    ids = runs(bases[0], WRITERS)
    said: list[object] = []
    at_once(lambda number: said.append(say(bases[number], ids[number], seed=number + 1)))
    logged = [one for one in said if isinstance(one, Logged)]
    assert len({one.log.log_id for one in logged}) == 1
    assert sum(one.created for one in logged) == 1
    assert sorted(one.log.occurrence_count for one in logged) == [1, 2, 3, 4]
    (log,) = bases[0].read_sync(guidance_store.logs, "ada", guidance_store.Asked())
    assert (log.occurrence_count, log.status) == (WRITERS, "proposed")


def test_of_several_that_promote_one_log_at_once_one_does(store_url: str, open_db: Any) -> None:
    bases = [open_db(store_url) for _ in range(WRITERS)]
    make(bases[0], "typos")
    for number, one in enumerate(runs(bases[0], 3)):
        logged = say(bases[0], one, seed=number + 1)
    assert isinstance(logged, Logged)
    outcomes: list[object] = []
    at_once(lambda number: outcomes.append(judge(bases[number], logged.log.log_id)))
    assert sum(isinstance(one, GuidanceLog) for one in outcomes) == 1
    assert outcomes.count(Refused("already_decided")) == WRITERS - 1
    kept = bases[0].read_sync(profile_store.profile, "ada", "typos")
    assert kept is not None
    assert (kept.content_rev, len(kept.content.stable_guidance)) == (2, 1)


def test_what_was_promoted_finds_the_profile(db: Database) -> None:
    make(db, "typos")
    for number, one in enumerate(runs(db, 3)):
        logged = say(db, one, "Capitals of brands matter", seed=number + 1)
    assert isinstance(logged, Logged)
    assert isinstance(judge(db, logged.log.log_id), GuidanceLog)
    assert found(db, "capitals of brands") == ["typos"]


def test_another_principal_neither_sees_nor_decides(db: Database) -> None:
    make(db, "typos")
    make(db, "typos", principal="bob")
    for number, one in enumerate(runs(db, 3)):
        logged = say(db, one, seed=number + 1)
    assert isinstance(logged, Logged)
    assert db.read_sync(guidance_store.logs, "bob", guidance_store.Asked()) == []
    assert db.read_sync(guidance_store.ripe_logs, "bob", "typos", 1) == []
    assert db.read_sync(guidance_store.overrides_of, "bob", "typos") == []
    refused = judge(db, logged.log.log_id, principal="bob")
    assert isinstance(refused, NovaError)
    assert refused.reason_code == "task.guidance_not_found"
    stranger = say(db, runs(db, 1, "bob")[0], principal="ada")
    assert isinstance(stranger, NovaError)
    assert stranger.reason_code == "task.instance_not_found"


def test_the_same_words_of_two_principals_are_two_rows(db: Database) -> None:
    make(db, "typos")
    make(db, "typos", principal="bob")
    mine = say(db, runs(db, 1)[0], seed=1)
    theirs = say(db, runs(db, 1, "bob")[0], principal="bob", seed=2)
    assert isinstance(mine, Logged)
    assert isinstance(theirs, Logged)
    assert (mine.created, theirs.created) == (True, True)
    assert mine.log.log_id != theirs.log.log_id
