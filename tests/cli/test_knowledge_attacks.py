"""Commands about knowledge in hostile or clumsy hands: broken stores, odd files, text that steers terminals."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from cli_kit import Folder, nova
from sqlalchemy import Table, update
from test_knowledge_command import content, found, line, pack, put, put_hint, success, take

from nova_mcp.cli import terminal
from nova_mcp.memory.knowledge.model import Content, Fingerprint, Playbook, Signal, VerifyStep
from nova_mcp.memory.knowledge.tables import knowledge_entry, knowledge_scope
from nova_mcp.memory.promotion.tables import learning_snapshot, learning_step
from nova_mcp.verification.model import Assertion

READING = (
    ("knowledge",),
    ("knowledge", "shop.test"),
    ("knowledge", "shop.test", "bar"),
    ("explain", "shop.test", "bar"),
    ("export",),
    ("replay", "levels"),
)


def changed(folder: Folder, table: Table, **values: Any) -> None:
    folder.db.write_sync(lambda conn: conn.execute(update(table).values(**values)))


def harmless(text: str) -> bool:
    return all(char.isprintable() or char in "\n\t" for char in text)


# -- terminals


def test_an_id_that_looks_like_markup_is_shown_as_it_is(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    put(folder, "[/bold]")
    put(folder, "[red]x")
    monkeypatch.setattr(terminal, "on_terminal", lambda: True)
    for name in ("[/bold]", "[red]x"):
        done = nova("knowledge", "shop.test", name, "--data-dir", folder.path)
        assert done.exit_code == 0, done.exception
        assert name in done.stdout


STEERING = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e\x7f"


@pytest.mark.parametrize("words", READING, ids=" ".join)
@pytest.mark.parametrize("form", [(), ("--json",)], ids=["text", "json"])
@pytest.mark.parametrize("seen", [True, False], ids=["terminal", "pipe"])
def test_nothing_that_steers_a_terminal_is_printed(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], form: tuple[str, ...], seen: bool
) -> None:
    signals = (Signal("dom", f"#bar{STEERING}"), Signal("text", STEERING))
    fact = VerifyStep("fact", assertion=Assertion(f"dom.{STEERING}", "eq", STEERING))
    said = Content("modal", Fingerprint(signals), Playbook("dismiss", content().playbook.actions, (fact,)))  # type: ignore[union-attr]
    put(folder, content=said, deprecated_reason=None)
    put(folder, "old", deprecated_reason=STEERING)
    put_hint(folder)
    changed(folder, knowledge_scope, service_categories=json.dumps([STEERING]))
    monkeypatch.setattr(terminal, "on_terminal", lambda: seen)
    if words == ("export",) and form:
        form = ()
    done = nova(*words, *form, "--data-dir", folder.path)
    assert harmless(done.stdout.replace("\x1b[1m", "").replace("\x1b[0m", "")), ascii(done.stdout)
    assert harmless(done.stderr), ascii(done.stderr)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception


# -- stores


BROKEN: list[tuple[Table, dict[str, Any]]] = [
    (knowledge_entry, {"content": "{"}),
    (knowledge_entry, {"content": "[]"}),
    (knowledge_entry, {"content": '{"type":"modal"}'}),
    (knowledge_entry, {"health": "7"}),
    (knowledge_entry, {"updated_at_ms": 2**62}),
    (knowledge_entry, {"level": 9}),
    (knowledge_scope, {"service_categories": "no list"}),
    (knowledge_scope, {"updated_at_ms": 2**62}),
    (learning_snapshot, {"body": "{"}),
    (learning_snapshot, {"body": '{"rules_version":99}'}),
    (learning_step, {"body": "null"}),
    (learning_step, {"kind": "wished"}),
]


@pytest.mark.parametrize("words", READING, ids=" ".join)
@pytest.mark.parametrize(("table", "values"), BROKEN, ids=lambda one: getattr(one, "name", str(one)))
def test_a_store_that_was_changed_from_outside_gives_a_line_and_no_trace_of_the_program(
    folder: Folder, words: tuple[str, ...], table: Table, values: dict[str, Any]
) -> None:
    success(folder, put(folder), "a", "s")
    changed(folder, table, **values)
    done = nova(*words, "--data-dir", folder.path)
    assert done.exception is None or isinstance(done.exception, SystemExit), repr(done.exception)
    assert done.exit_code in (0, 1)
    assert done.exit_code == 0 or "nova:" in done.stderr or "DIFFERS" in done.stdout or "left out" in done.stderr


def test_a_store_that_can_not_be_written_is_said_to_be_so(folder: Folder, tmp_path: Path) -> None:
    file = pack(tmp_path / "pack.jsonl", line())
    folder.db.write_sync(
        lambda conn: conn.exec_driver_sql(
            "CREATE TRIGGER t BEFORE INSERT ON knowledge_entry BEGIN SELECT RAISE(ABORT, 'no'); END"
        )
    )
    done = nova("import", file, "--data-dir", folder.path)
    assert (done.exit_code, done.exception is None or isinstance(done.exception, SystemExit)) == (1, True)
    assert "nova: the store" in done.stderr


# -- files


@pytest.mark.parametrize("name", [".", "..", "/", "", "x" * 255, "no/such/folder", "sub"])
def test_a_pack_goes_only_where_a_file_can_be(folder: Folder, tmp_path: Path, name: str) -> None:
    (tmp_path / "sub").mkdir()
    put(folder)
    done = nova("export", "--file", tmp_path / name if name not in ("", ".", "..") else name, "--data-dir", folder.path)
    assert isinstance(done.exception, SystemExit), repr(done.exception)
    assert done.exit_code in (1, 2)
    assert done.stderr
    assert sorted(one.name for one in tmp_path.iterdir() if ".nova-" in one.name) == []


def test_a_pipe_or_a_device_is_never_replaced_by_a_file(folder: Folder, tmp_path: Path) -> None:
    put(folder)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    done = nova("export", "--file", pipe, "--data-dir", folder.path)
    assert (done.exit_code, pipe.is_fifo()) == (1, True)


def test_a_link_stays_a_link_and_its_file_is_written(folder: Folder, tmp_path: Path) -> None:
    put(folder)
    real, link = tmp_path / "real.jsonl", tmp_path / "link.jsonl"
    real.write_text("old")
    link.symlink_to(real)
    assert nova("export", "--file", link, "--data-dir", folder.path).exit_code == 0
    assert link.is_symlink()
    assert real.read_text().startswith('{"format"')


def test_a_pack_never_takes_the_place_of_what_nova_keeps(folder: Folder) -> None:
    put(folder)
    kept = [one for one in folder.path.iterdir() if one.is_file()]
    assert kept
    for one in kept:
        before = one.read_bytes()
        done = nova("export", "--file", one, "--data-dir", folder.path)
        assert (done.exit_code, one.read_bytes() == before) == (1, True), one
    assert found(folder.db)


# -- packs


@pytest.mark.parametrize("number", ["1e999", "-1e999", "9" * 5000])
def test_a_number_that_no_answer_could_carry_is_not_taken(folder: Folder, tmp_path: Path, number: str) -> None:
    step = {"type": "fact", "assertion": {"factKey": "page.title", "operator": "eq", "expected": "NUMBER"}}
    row = json.dumps(line(playbook={"policy": "warn", "verify": [step]})).replace('"NUMBER"', number)
    code, body = take(folder, pack(tmp_path / "pack.jsonl", row))
    assert code == 2, body
    assert found(folder.db) == ()


def test_an_older_pack_changes_nothing_of_what_came_after_it(folder: Folder, tmp_path: Path) -> None:
    put(folder)
    old = pack(
        tmp_path / "old.jsonl",
        *(json.loads(row) for row in nova("export", "--data-dir", folder.path).stdout.splitlines()[1:]),
    )
    put(folder, "bar", slot="pending", revision=2, content=content("#newer"))
    before = found(folder.db)
    for words in ((), ("--replace",), ()):
        code, _ = take(folder, old, *words)
        assert code == 0
    assert found(folder.db)[0].kept.revision == before[0].kept.revision
    first = found(folder.db)
    take(folder, old)
    assert found(folder.db) == first


def test_a_file_that_is_no_file_is_refused(folder: Folder, tmp_path: Path) -> None:
    for file in (tmp_path, "/dev/zero", tmp_path / "x\x1b[2J", "/proc/self/mem"):
        done = nova("import", file, "--data-dir", folder.path)
        assert (done.exit_code, isinstance(done.exception, SystemExit)) == (2, True), (file, done.exception)
        assert harmless(done.stderr)
