"""`nova ledger`: sound chains pass, each broken one is named with code 1, kept heads find a cut tail."""

import json
from pathlib import Path

import pytest
from cli_kit import Folder, nova, nova_process


def edit(folder: Folder, statement: str) -> None:
    folder.db.write_sync(lambda conn: conn.exec_driver_sql(statement))


def test_a_sound_ledger_passes_with_its_numbers(folder: Folder) -> None:
    for server in ("s1", "s1", "s2"):
        folder.call(server)
    done = nova_process("ledger", "verify", "--data-dir", folder.path)
    assert done.returncode == 0
    assert "3 records in 2 chains" in done.stdout


def test_the_first_broken_link_of_each_chain_is_named(folder: Folder) -> None:
    for server in ("s1", "s1", "s1", "s2", "s2", "s3"):
        folder.call(server)
    edit(
        folder,
        "UPDATE ledger_body SET body = CAST(replace(body, 'perceive', 'navigate') AS BLOB) WHERE server_seq >= 2",
    )
    done = nova_process("ledger", "verify", "--data-dir", folder.path)
    assert done.returncode == 1
    first, second = done.stdout.splitlines()
    assert "server s1, seq 2, call s1-call-2" in first
    assert "server s2, seq 2, call s2-call-2" in second
    assert "the body is not the one that was hashed" in first


def test_findings_as_json_say_where_and_what(folder: Folder) -> None:
    folder.call()
    edit(folder, "UPDATE ledger_link SET hash = zeroblob(32)")
    done = nova("ledger", "verify", "--json", "--data-dir", folder.path)
    assert done.exit_code == 1
    answer = json.loads(done.stdout)
    assert answer["ok"] is False
    (finding,) = answer["findings"]
    assert (finding["serverId"], finding["serverSeq"], finding["callId"]) == ("s1", 1, "s1-call-1")
    assert finding["fault"] == "link_hash"


def test_heads_kept_elsewhere_find_a_tail_that_was_cut_with_its_head(folder: Folder, tmp_path: Path) -> None:
    folder.call()
    earlier = json.loads(nova("ledger", "head", "--json", "--data-dir", folder.path).stdout)["heads"][0]
    folder.call()
    kept = tmp_path / "heads.json"
    kept.write_text(nova("ledger", "head", "--json", "--data-dir", folder.path).stdout)
    edit(folder, "DELETE FROM ledger_body WHERE server_seq = 2")
    edit(folder, "DELETE FROM ledger_link WHERE server_seq = 2")
    edit(folder, f"UPDATE ledger_server SET head_seq = 1, head_hash = x'{earlier['hash']}'")
    assert nova("ledger", "verify", "--data-dir", folder.path).exit_code == 0
    done = nova("ledger", "verify", "--heads", kept, "--data-dir", folder.path)
    assert done.exit_code == 1
    assert "kept_head" in done.stdout


@pytest.mark.parametrize("content", ["", "{}", '{"heads": [{"serverId": "s", "serverSeq": 0, "hash": "00"}]}'])
def test_a_file_without_heads_is_refused(folder: Folder, tmp_path: Path, content: str) -> None:
    kept = tmp_path / "heads.json"
    kept.write_text(content)
    assert nova("ledger", "verify", "--heads", kept, "--data-dir", folder.path).exit_code == 2


def test_heads_are_printed_as_lines_too(folder: Folder) -> None:
    link = folder.call()
    heading, line = nova("ledger", "head", "--data-dir", folder.path).stdout.splitlines()
    assert heading.split("\t")[0] == "server"
    assert line.split("\t")[:2] == ["s1", "1"]
    assert line.endswith(link.hash.hex())


def test_a_store_without_its_tables_is_told_plainly(folder: Folder) -> None:
    folder.call()
    edit(folder, "DROP TABLE ledger_open_intent")
    edit(folder, "DROP TABLE ledger_body")
    done = nova_process("ledger", "verify", "--data-dir", folder.path)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "does not hold what a Nova store holds" in done.stderr
