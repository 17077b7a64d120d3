"""Knowledge on a terminal: read, explained, carried elsewhere, and taken in without trusting it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from cli_kit import NOW_MS, Folder, nova, nova_process

from nova_mcp.cli.knowledge import knowledge as command
from nova_mcp.core.clock import SystemClock
from nova_mcp.memory.knowledge import store
from nova_mcp.memory.knowledge.model import (
    Action,
    Content,
    Context,
    DomainHint,
    ElementPrint,
    Fingerprint,
    Health,
    HintId,
    Level,
    Phenomenon,
    Playbook,
    ScopeName,
    Signal,
    StableId,
    VerifyStep,
)
from nova_mcp.memory.knowledge.store import Birth, Shelved, Slot
from nova_mcp.memory.knowledge.writes.store import categorized
from nova_mcp.memory.promotion import event_store, steps_store
from nova_mcp.memory.promotion.collector import witnessed
from nova_mcp.memory.promotion.model import Gate, LearningEvent, Mark
from nova_mcp.storage.engine import Database
from nova_mcp.verification.model import Assertion

SHOP = ScopeName("shop.test")
# What no page can leave behind: labels are cleaned when they are kept.
HOSTILE_LABEL = "No \x1b[2Jthanks\u202e " + "x" * 200


def content(selector: str = "#bar .no", kind: str = "modal", label: str = "No thanks") -> Content:
    seen = ElementPrint("button", text=label, neighbours=("Hello Anna",))
    return Content(
        kind,  # type: ignore[arg-type]
        Fingerprint((Signal("dom", "#bar"), Signal("text", "Größe wählen", "de")), 0.7),
        Playbook(
            "dismiss",
            (Action("click", selector, ("#no",), seen), Action("wait", wait_ms=50)),
            (
                VerifyStep("absent", "#bar"),
                VerifyStep("obstruction_cleared", threshold=0.0),
                VerifyStep("fact", assertion=Assertion("page.url", "contains", "/done")),
            ),
        ),
        Context(locale="de", routes=("feed", "in/*")),
    )


def put(
    folder: Folder, name: str = "bar", level: Level = 1, slot: Slot = "current", scope: str = SHOP, **more: object
) -> Shelved:
    at = SystemClock().now_ms() - 1000
    said = more.pop("content", None) or content()
    kept = Phenomenon(StableId(name), said, level, at, at, **more)  # type: ignore[arg-type]
    return shelve(folder, kept, scope, slot)


def put_hint(folder: Folder, name: str = "ads", level: Level = 1) -> Shelved:
    hint = DomainHint(HintId(name), "result_item", (".item",), 1, 1, extract=(("title", "h2"),), level=level)
    return shelve(folder, hint, SHOP, "current")


def shelve(folder: Folder, kept: Phenomenon | DomainHint, scope: str, slot: Slot) -> Shelved:
    shelved = folder.db.write_sync(store.add, ScopeName(scope), kept, Birth(slot=slot))
    folder.db.write_sync(steps_store.born, shelved)
    return shelved


def success(folder: Folder, shelved: Shelved, call: str, session: str) -> None:
    mark = Mark(1, SystemClock().now_ms() - 500, "action_success", 1, call, session)
    folder.db.write_sync(witnessed, shelved, [mark])


def found(db: Database, name: str = "bar", scope: str = SHOP) -> tuple[Shelved, ...]:
    return db.read_sync(store.find, ScopeName(scope), name)


def exported(folder: Folder, *words: str) -> list[dict]:
    done = nova("export", *words, "--data-dir", folder.path)
    assert done.exit_code == 0, done.output
    return [json.loads(line) for line in done.stdout.splitlines()]


def pack(path: Path, *lines: object) -> Path:
    header = {"format": "nova-knowledge", "version": 1}
    text = "\n".join(one if isinstance(one, str) else json.dumps(one) for one in (header, *lines))
    path.write_text(text + "\n", encoding="utf-8")
    return path


def line(name: str = "bar", scope: str = SHOP, **changes: object) -> dict:
    entry = {
        "id": name,
        "type": "modal",
        "fingerprint": {"signals": [{"kind": "dom", "match": "#bar"}]},
        "playbook": {"policy": "dismiss", "actions": [{"action": "click", "selector": "#bar .no"}]},
        "context": {},
    }
    return {"scope": scope, "phenomenon": entry | changes}


def take(folder: Folder, file: Path, *words: str) -> tuple[int, dict]:
    done = nova("import", file, "--json", *words, "--data-dir", folder.path)
    return done.exit_code, json.loads(done.stdout) if done.stdout else {"stderr": done.stderr}


# -- reading


def test_sites_are_listed_with_levels_trust_and_health(folder: Folder) -> None:
    put(folder, "a", 2)
    put(folder, "b", 1)
    put(folder, "c", 0)
    put(folder, "d", 1, deprecated_reason="gone")
    put_hint(folder)
    put(
        folder,
        "e",
        1,
        scope="zoo.test",
        health=Health(consecutive_failures=3, attempts=3, failures=3, quarantined_at_ms=1),
    )
    shown = nova("knowledge", "--data-dir", folder.path).stdout.splitlines()
    assert shown[1].split("\t")[:8] == ["shop.test", "medium", "1", "1", "1", "1", "1", "-"]
    assert "1 quarantined" in shown[2]
    told = json.loads(nova("knowledge", "--json", "--prefix", "zoo", "--data-dir", folder.path).stdout)["sites"]
    assert [(one["scope"], one["trust"], one["shadow"], one["quarantined"]) for one in told] == [
        ("zoo.test", "low", 1, 1)
    ]


def test_a_list_of_sites_that_was_cut_says_so(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "LISTED", 1)
    put(folder)
    assert "Only the first" not in nova("knowledge", "--data-dir", folder.path).stderr
    put(folder, scope="zoo.test")
    assert "Only the first 1 sites" in nova("knowledge", "--data-dir", folder.path).stderr


def test_a_site_shows_how_far_its_entries_are_and_what_is_in_review(folder: Folder) -> None:
    shadow = put(folder, "shadow", 1)
    for number in range(2):
        success(folder, shadow, f"c{number}", f"s{number}")
        (shadow,) = found(folder.db, "shadow")
    put(folder, "active", 2, drift_debt=0.5)
    put(folder, "active", 1, "pending", revision=2, content=content("#bar .close"))
    put_hint(folder)
    shown = nova("knowledge", "https://Shop.Test/cart", "--data-dir", folder.path).stdout
    rows = {row.split("\t")[0].strip(): row.split("\t") for row in shown.splitlines() if "\t" in row}
    assert rows["shadow"][2:5] == ["shadow", "2 of 3 proofs", "healthy 100% (2/2)"]
    assert (rows["active"][2:4], rows["active"][6]) == (["active", "-"], "0.50")
    assert rows["active (in review)"][2:4] == ["shadow", "0 of 3 proofs"]
    assert rows["ads"][1] == "hint: result_item"
    body = json.loads(nova("knowledge", SHOP, "--json", "--data-dir", folder.path).stdout)
    first = {one.get("phenomenonId", one.get("hintId")): one for one in body["entries"]}
    assert first["shadow"]["progress"] | {"waitsFor": []} == {
        "transition": "l1_to_l2", "have": 2, "need": 3, "unit": "proofs", "waitsFor": []
    }  # fmt: skip
    assert (first["active"]["pending"]["revision"], first["shadow"]["pending"]) == (2, None)


def test_enough_proofs_name_what_an_entry_still_waits_for(folder: Folder) -> None:
    shadow = put(folder, "bar", 1, unconfirmed=("#no",))
    for number in range(3):
        success(folder, shadow, f"c{number}", "one session")
        (shadow,) = found(folder.db)
    shown = nova("knowledge", SHOP, "--data-dir", folder.path).stdout
    assert "3 of 3 proofs, waits for success_sessions, unconfirmed_selectors" in shown


def test_an_entry_is_shown_whole_and_what_a_page_said_is_marked_bounded_and_harmless(folder: Folder) -> None:
    put(folder, "bar", 2, unconfirmed=("#no",), drift_debt=0.25, content=content(label=HOSTILE_LABEL))
    put(folder, "bar", 1, "pending", revision=2, content=content("#bar .close"))
    gates = (Gate("successes", 3, 3, passed=True, delta_to_pass=0),)
    event = LearningEvent("bar", SHOP, 1, 2, "l1_to_l2", NOW_MS, gates)
    folder.db.write_sync(event_store.add, event)
    folder.db.write_sync(event_store.add, replace(event, to_level=1, rejection="failures"))
    folder.db.write_sync(event_store.add, replace(event, stable_id="other", reason_kind="revive"))
    shown = nova("knowledge", SHOP, "bar", "--data-dir", folder.path).stdout
    for text in ("#bar .no", "#bar .close", "Größe wählen", "in de, under feed, in/*", "drift debt\t0.25"):
        assert text in shown
    assert "l1_to_l2: shadow → active\tsuccesses 3/3" in shown
    assert "l1_to_l2 held back: failures" in shown
    assert "revive" not in shown
    assert "<button> «No \\x1b[2Jthanks" in shown
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "x" * 60 not in shown
    body = json.loads(nova("knowledge", SHOP, "bar", "--json", "--data-dir", folder.path).stdout)
    assert body["entry"]["playbook"]["actions"][0]["elementPrint"]["source"] == "page"
    assert (body["entry"]["unconfirmedSelectors"], body["pending"]["revision"]) == (["#no"], 2)
    assert [one["reasonKind"] for one in body["life"]] == ["l1_to_l2", "l1_to_l2"]


def test_a_hint_is_shown_whole(folder: Folder) -> None:
    put_hint(folder)
    shown = nova("knowledge", SHOP, "ads", "--data-dir", folder.path).stdout
    assert "reads\t.item" in shown
    assert "takes title\th2" in shown


def test_what_is_not_there_is_a_line_and_a_code(folder: Folder) -> None:
    put(folder)
    for words, code, text in (
        (("knowledge", "zoo.test"), 1, "nothing is known of zoo.test"),
        (("knowledge", SHOP, "nope\x1b"), 1, "it has bar"),
        (("knowledge", "*.test"), 2, "wildcards"),
        (("explain", SHOP, "nope"), 1, "it has bar"),
        (("explain", "nope"), 1, "no site has an entry"),
        (("export", "zoo.test"), 1, "nothing is known of zoo.test"),
        (("export", ""), 2, "can't be empty"),
    ):
        done = nova(*words, "--data-dir", folder.path)
        assert (done.exit_code, text in done.stderr) == (code, True), (words, done.output)
        assert "\x1b" not in done.output


def test_reading_creates_no_store(tmp_path: Path) -> None:
    for words in (("knowledge",), ("explain", "a"), ("export",), ("import", pack(tmp_path / "p"), "--dry-run")):
        assert nova(*words, "--data-dir", tmp_path / "none").exit_code == 1
    assert not (tmp_path / "none").exists()


# -- explaining


def test_an_entry_is_explained_with_its_gates_and_what_would_help(folder: Folder) -> None:
    success(folder, put(folder), "c1", "s1")
    shown = nova("explain", SHOP, "bar", "--data-dir", folder.path).stdout
    assert "shop.test bar: This entry is a shadow" in shown
    assert "successes\t3\t1\tno\t2" in shown
    assert "failures\t1\t0\tyes\t-" in shown
    assert "Next: 2 more verified success(es)" in shown
    body = json.loads(nova("explain", "bar", "--json", "--data-dir", folder.path).stdout)
    assert (body["scope"], body["explain"]["transition"], body["match"]) == (SHOP, "l1_to_l2", None)


def test_an_id_alone_is_enough_only_where_one_site_has_it(folder: Folder) -> None:
    put(folder)
    put(folder, scope="zoo.test")
    done = nova("explain", "bar", "--data-dir", folder.path)
    assert (done.exit_code, "name one: shop.test, zoo.test" in done.stderr) == (1, True)


# -- exporting


def test_a_pack_holds_what_was_learned_and_nothing_else(folder: Folder) -> None:
    put(folder, "active", 2, revision=4, health=Health(attempts=9, successes=9), drift_debt=0.2)
    put(folder, "active", 1, "pending", revision=5, content=content("#secretly"))
    put(folder, "draft", 0)
    put(folder, "gone", 1, deprecated_reason="broken")
    put_hint(folder)
    header, active, hint = exported(folder)
    assert header == {"format": "nova-knowledge", "version": 1}
    assert (active["scope"], active["level"], active["phenomenon"]["id"]) == (SHOP, 2, "active")
    assert active["phenomenon"].keys() == {"id", "type", "fingerprint", "playbook", "context"}
    assert active["phenomenon"]["playbook"]["verify"][2]["assertion"]["expected"] == "/done"
    assert hint["domainHint"]["extract"] == {"title": "h2"}
    raw = nova("export", "--data-dir", folder.path).stdout
    for word in ("Anna", "thanks", "elementPrint", "health", "AtMs", "AtUtc", "manual", "#secretly", "draft", "gone"):
        assert word not in raw


def test_only_the_sites_that_were_asked_for_are_exported(folder: Folder) -> None:
    for scope in ("zoo.test", SHOP, "bank.test"):
        put(folder, scope=scope)
    assert [one["scope"] for one in exported(folder)[1:]] == ["bank.test", "shop.test", "zoo.test"]
    assert [one["scope"] for one in exported(folder, "zoo.test", SHOP, "zoo.test")[1:]] == ["shop.test", "zoo.test"]


def test_a_file_is_written_whole_and_private(folder: Folder, tmp_path: Path) -> None:
    put(folder)
    file = tmp_path / "pack.jsonl"
    file.write_text("old")
    done = nova("export", "--file", file, "--data-dir", folder.path)
    assert (done.exit_code, "1 entry of 1 site in" in done.stdout) == (0, True)
    assert file.read_text("utf-8") == nova("export", "--data-dir", folder.path).stdout
    assert file.stat().st_mode & 0o777 == 0o600
    wrong = nova("export", "--file", tmp_path / "no" / "pack", "--data-dir", folder.path)
    assert (wrong.exit_code, "can't be written" in wrong.stderr) == (1, True)
    assert [one.name for one in tmp_path.iterdir() if "pack" in one.name] == ["pack.jsonl"]


def test_an_entry_with_a_stored_secret_stays_at_home(folder: Folder) -> None:
    put(folder, "fine")
    put(folder, "leaky", content=replace(content(), context=Context(routes=("correct-horse-battery",))))
    secrets = folder.path / "secrets.toml"
    secrets.write_text('[shop]\nvalue = "correct-horse-battery"\nhosts = ["shop.test"]\n')
    secrets.chmod(0o600)
    done = nova("export", "--data-dir", folder.path)
    assert "correct-horse" not in done.output
    assert "left out: shop.test leaky: pks.secret_like" in done.stderr
    assert len(done.stdout.splitlines()) == 2


# -- taking in


def test_a_pack_comes_back_the_same_but_for_levels(folder: Folder, tmp_path: Path) -> None:
    put(folder, "active", 2)
    put(folder, "shadow", 1, content=content(kind="custom"))
    put_hint(folder)
    folder.db.write_sync(categorized, SHOP, ["shopping"], NOW_MS)
    file = tmp_path / "pack.jsonl"
    nova("export", "--file", file, "--data-dir", folder.path)
    with Database.open(f"sqlite:///{tmp_path / 'other' / 'nova.db'}") as db:
        other = Folder(tmp_path / "other", db)
        code, told = take(other, file)
        assert (code, told["created"], told["updated"]) == (0, 3, 1)
        assert {one["level"] for one in told["entries"]} == {1, None}
        before, after = exported(folder), exported(other)
        assert [one | {"level": 1} for one in before[1:] if "level" in one] == [
            one for one in after[1:] if "level" in one
        ]
        assert before[-1] == after[-1] == {"scope": SHOP, "serviceCategories": ["shopping"]}
        (one,) = found(db, "active")
        assert (one.origin, one.kept.level, one.kept.unconfirmed) == ("imported", 1, ("#bar", "#bar .no", "#no"))
        assert isinstance(one.kept, Phenomenon)
        assert one.kept.health == Health()
        assert one.kept.content.playbook is not None
        assert one.kept.content.playbook.actions[0].element is None
        again = take(other, file)[1]
        assert (again["unchanged"], again["created"], again["updated"], again["kept"]) == (4, 0, 0, 0)
        assert exported(other) == after


def test_a_dry_run_says_the_same_and_writes_nothing(folder: Folder, tmp_path: Path) -> None:
    put(folder, "bar", 2)
    file = pack(tmp_path / "p", line("bar"), line("new"), line("new", "zoo.test"))
    code, would = take(folder, file, "--dry-run")
    assert (code, would["dryRun"], len(found(folder.db)), found(folder.db, "new")) == (0, True, 1, ())
    assert folder.db.read_sync(store.scope_row, ScopeName("zoo.test")) is None
    done = take(folder, file)[1]
    assert done | {"dryRun": True} == would
    assert (done["created"], done["updated"]) == (2, 1)


def test_what_is_active_stays_and_the_packs_content_stands_beside_it(folder: Folder, tmp_path: Path) -> None:
    put(folder, "bar", 2, health=Health(attempts=5, successes=5))
    file = pack(tmp_path / "p", line())
    (entry,) = take(folder, file)[1]["entries"]
    assert (entry["result"], entry["level"], entry["besideActive"], entry["revision"]) == ("updated", 1, True, 2)
    current, pending = found(folder.db)
    assert (current.kept.level, current.kept.health.attempts, current.origin) == (2, 5, "manual")
    assert (pending.kept.level, pending.origin, pending.slot) == (1, "imported", "pending")
    assert take(folder, file)[1]["unchanged"] == 1
    assert (
        "a revision in review beside the active one"
        in nova("import", pack(tmp_path / "q", line(type="custom")), "--replace", "--data-dir", folder.path).stdout
    )


def test_what_is_in_review_stays_unless_it_shall_be_replaced(folder: Folder, tmp_path: Path) -> None:
    put(folder, "bar", 1)
    put(folder, "draft", 0)
    file = pack(tmp_path / "p", line("bar"), line("draft"))
    code, told = take(folder, file)
    assert (code, told["kept"], {one["reason"] for one in told["entries"]}) == (0, 2, {"in_review_here"})
    assert found(folder.db)[0].kept.revision == 1
    assert take(folder, file, "--replace")[1]["updated"] == 2
    assert [(one.kept.level, one.kept.revision) for name in ("bar", "draft") for one in found(folder.db, name)] == [
        (1, 2),
        (1, 2),
    ]


@pytest.mark.parametrize("words", [(), ("--replace",)])
def test_what_was_retired_here_does_not_come_back_with_a_pack(folder: Folder, tmp_path: Path, words) -> None:
    said = Content("custom", Fingerprint((Signal("text", "sale"),)))
    put(folder, "bar", 0, deprecated_reason="broken", content=said)
    same = {"type": "custom", "fingerprint": {"signals": [{"kind": "text", "match": "sale"}]}, "playbook": None}
    for one in (line(), line(**same)):
        told = take(folder, pack(tmp_path / "p", one), *words)[1]
        assert (told["kept"], told["entries"][0]["reason"]) == (1, "retired_here")
    assert found(folder.db)[0].kept.deprecated


def test_an_entry_without_selectors_counts_as_seen_by_nobody(folder: Folder, tmp_path: Path) -> None:
    said = {"fingerprint": {"signals": [{"kind": "text", "match": "sale"}]}, "playbook": None}
    assert take(folder, pack(tmp_path / "p", line(**said)))[0] == 0
    assert found(folder.db)[0].kept.health.last_confirmed_at_ms is None


def fact(key: str = "page.url", expected: object = "/done") -> dict:
    assertion = {"factKey": key, "operator": "eq", "expected": expected}
    return {"playbook": {"policy": "custom", "verify": [{"type": "fact", "assertion": assertion}]}}


SCRIPT = "javascript:alert(1)"
HOSTILE = {
    "pks.script_content": {"fingerprint": {"signals": [{"kind": "text", "match": SCRIPT}]}},
    "pks.script_content in a place": {"context": {"device": SCRIPT}},
    "pks.script_content in an expected value": fact("shop.state", expected=[{"a": [SCRIPT]}]),
    "pks.script_content in a fact": fact(f"dom.{SCRIPT}.text"),
    "pks.selector_too_broad": {"playbook": {"policy": "dismiss", "actions": [{"action": "click", "selector": "*"}]}},
    "pks.polarity_required": {"type": "consent_cmp"},
    "pks.secret_like": {"context": {"routes": ["ghp_16C7e42F292c6912E7710c838347Ae178B4a"]}},
}


@pytest.mark.parametrize("code", HOSTILE)
def test_what_an_agent_may_not_write_no_pack_brings_in_either(folder: Folder, tmp_path: Path, code: str) -> None:
    exit_code, told = take(folder, pack(tmp_path / "p", line("bad", **HOSTILE[code]), line("good")))
    by_id = {one["id"]: one for one in told["entries"]}
    assert (exit_code, told["ok"], by_id["good"]["result"]) == (1, False, "created")
    assert (by_id["bad"]["result"], by_id["bad"]["problems"][0]["code"]) == ("refused", code.split()[0])
    assert found(folder.db, "bad") == ()


def test_a_stored_secret_is_not_taken_in(folder: Folder, tmp_path: Path) -> None:
    secrets = folder.path / "secrets.toml"
    secrets.write_text('[shop]\nvalue = "correct-horse-battery"\nhosts = ["shop.test"]\n')
    secrets.chmod(0o600)
    one = line(context={"device": "correct-horse-battery"})
    done = nova("import", pack(tmp_path / "p", one), "--data-dir", folder.path)
    assert (done.exit_code, "pks.secret_like" in done.stdout) == (1, True)
    assert "correct-horse" not in done.output


def test_an_id_that_names_another_kind_of_entry_is_refused(folder: Folder, tmp_path: Path) -> None:
    put_hint(folder, "bar")
    assert take(folder, pack(tmp_path / "p", line()))[1]["entries"][0]["problems"][0]["code"] == "invalid_params"


def test_a_full_site_takes_no_more(folder: Folder, tmp_path: Path) -> None:
    file = pack(tmp_path / "p", *(line(f"e{number}") for number in range(201)))
    code, told = take(folder, file)
    assert (code, told["created"], told["refused"]) == (1, 200, 1)
    assert told["entries"][-1]["problems"][0]["code"] == "pks.scope_full"


def test_a_store_that_is_not_there_yet_is_made(tmp_path: Path) -> None:
    done = nova_process("import", pack(tmp_path / "p", line()), "--data-dir", tmp_path / "new")
    assert (done.returncode, "1 created" in done.stdout) == (0, True), done.stderr
    assert "bar" in nova_process("knowledge", SHOP, "--data-dir", tmp_path / "new").stdout


def test_a_pack_can_come_from_another_program(folder: Folder, tmp_path: Path) -> None:
    text = pack(tmp_path / "p", line()).read_text()
    done = nova_process("import", "-", "--data-dir", folder.path, stdin=text)
    assert (done.returncode, len(found(folder.db))) == (0, 1)


UNSOUND = {
    "no header": json.dumps({"scope": SHOP}),
    "empty": "",
    "a later version": '{"format":"nova-knowledge","version":2}',
    "a version that is none": '{"format":"nova-knowledge","version":true}',
    "more in the header": '{"format":"nova-knowledge","version":1,"x":1}',
    "no JSON": "\x1b[2J",
    "one document": json.dumps([line()]),
}


@pytest.mark.parametrize("name", UNSOUND)
def test_a_file_that_is_no_pack_is_refused(folder: Folder, tmp_path: Path, name: str) -> None:
    file = tmp_path / "p"
    file.write_text(UNSOUND[name])
    done = nova("import", file, "--data-dir", folder.path)
    assert (done.exit_code, f"{file}:1:" in done.stderr) == (2, True), done.output
    assert "\x1b" not in done.output
    assert "Traceback" not in done.output


BROKEN = {
    "cut": '{"scope":"shop.test","phen',
    "no object": "[1]",
    "unknown field": line() | {"origin": "manual"},
    "health": line(health={"attempts": 100}),
    "no entry": {"scope": SHOP},
    "two entries": line() | {"domainHint": {"id": "h", "kind": "ad_container", "selectors": [".ad"]}},
    "level 3": line() | {"level": 3},
    "no id": {"scope": SHOP, "phenomenon": {k: v for k, v in line()["phenomenon"].items() if k != "id"}},
    "an id that reads as a sentence": line("do this now"),
    "a wildcard site": line(scope="*.test"),
    "a public suffix": line(scope="co.uk"),
    "said twice": '{"scope":"shop.test","scope":"bank.test"}',
    "no number": '{"scope":"shop.test","level":NaN}',
    "too deep": '{"scope":' + "[" * 60 + "]" * 60 + "}",
    "far too deep": "[" * 100_000,
    "half a character": '{"scope":"shop.test","phenomenon":"\\ud800"}',
    "a number without end": '{"level":' + "9" * 5000 + "}",
    "an unknown category": {"scope": SHOP, "serviceCategories": ["nonsense"]},
    "a value": line(playbook={"policy": "custom", "actions": [{"action": "type", "selector": "#a", "value": "x"}]}),
    "too many signals": line(fingerprint={"signals": [{"kind": "dom", "match": f"#a{n}"} for n in range(33)]}),
    "a long line": json.dumps(line("x" * 210_000)),
    "the same again": line("good"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_one_broken_line_and_nothing_of_the_file_is_taken(folder: Folder, tmp_path: Path, name: str) -> None:
    file = pack(tmp_path / "p", line("good"), BROKEN[name], line("other"))
    done = nova("import", file, "--data-dir", folder.path)
    assert (done.exit_code, f"{file}:3:" in done.stderr) == (2, True), done.output
    assert "nothing was taken" in done.stderr
    assert len(done.stderr) < 2000
    assert found(folder.db, "good") == ()


def test_a_file_that_is_too_large_or_no_text_is_refused(
    folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for data in (b"\xff\xfe\x00", b"\x80"):
        (tmp_path / "p").write_bytes(data)
        done = nova("import", tmp_path / "p", "--data-dir", folder.path)
        assert (done.exit_code, "is not UTF-8" in done.stderr) == (2, True)
    for missing in (tmp_path / "none", tmp_path):
        done = nova("import", missing, "--data-dir", folder.path)
        assert (done.exit_code, "can't be read" in done.stderr) == (2, True)
    monkeypatch.setattr("nova_mcp.cli.knowledge.import_pack.MAX_BYTES", 100)
    done = nova("import", pack(tmp_path / "p", line()), "--data-dir", folder.path)
    assert (done.exit_code, "is larger than" in done.stderr) == (2, True)
    monkeypatch.undo()
    monkeypatch.setattr("nova_mcp.tools.knowledge.pack.MAX_LINES", 2)
    assert nova("import", tmp_path / "p", "--data-dir", folder.path).exit_code == 2
