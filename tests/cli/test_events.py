"""`nova events`: filters, forms and following, beside whoever writes."""

import json
import subprocess

import pytest
from cli_kit import NOW_MS, Folder, command, nova, nova_process

from nova_mcp.cli.store.call_lines import since


def listed(folder: Folder, *flags: object) -> list[dict[str, object]]:
    done = nova("events", "--data-dir", folder.path, "--json", *flags)
    assert done.exit_code == 0, done.output
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_calls_are_printed_oldest_first_and_the_limit_keeps_the_newest(folder: Folder) -> None:
    for number in range(5):
        folder.call(at_ms=NOW_MS + number)
    assert [call["startedAtMs"] for call in listed(folder, "--limit", 3)] == [NOW_MS + 2, NOW_MS + 3, NOW_MS + 4]


@pytest.mark.parametrize(
    ("flags", "found"),
    [
        (("--tool", "click_selector"), "s1-call-2"),
        (("--tool", "nova_click_selector"), "s1-call-2"),
        (("--tool", "mcp__nova__nova_click_selector"), "s1-call-2"),
        (("--outcome", "blocked_preflight"), "s1-call-3"),
        (("--agent", "writer"), "s1-call-4"),
        (("--target", "B7"), "s1-call-5"),
        (("--since", "2026-09-21T14:13:21"), "s1-call-6"),
        (("--since", "2026-09-21T16:13:21+02:00"), "s1-call-6"),
    ],
)
def test_each_filter_leaves_what_it_names(folder: Folder, flags: tuple[str, ...], found: str) -> None:
    folder.call()
    folder.call(tool="nova.click_selector")
    folder.call(outcome="blocked_preflight", reason="safety.emergency_stop")
    folder.call(agent="writer")
    folder.call(target="B7")
    folder.call(at_ms=NOW_MS + 5_000)
    assert [call["callId"] for call in listed(folder, *flags)] == [found]


def test_a_json_line_carries_the_whole_envelope_with_its_link(folder: Folder) -> None:
    link = folder.call(outcome="failed", reason="selector.not_found")
    (call,) = listed(folder)
    assert call["hash"] == link.hash.hex()
    assert (call["serverId"], call["serverSeq"], call["callId"]) == ("s1", 1, "s1-call-1")
    assert (call["outcomeKind"], call["reasonCode"]) == ("failed", "selector.not_found")
    assert call["after"] == {
        "targetId": "A1",
        "sandboxId": "A",
        "url": "https://shop.test/cart",
        "routeKey": None,
        "pageEpoch": 1,
    }


def test_without_a_terminal_a_table_is_tab_separated_lines(folder: Folder) -> None:
    folder.call(reason=None)
    heading, line = nova("events", "--data-dir", folder.path).stdout.splitlines()
    cells = dict(zip(heading.split("\t"), line.split("\t"), strict=True))
    assert cells["tool"] == "nova.perceive"
    assert cells["url"] == "https://shop.test/cart"


def test_no_match_is_said_on_stderr_and_is_no_failure(folder: Folder) -> None:
    done = nova("events", "--data-dir", folder.path)
    assert (done.exit_code, done.stdout) == (0, "")
    assert "No calls" in done.stderr


def test_a_missing_store_is_not_created_by_looking(tmp_path) -> None:
    done = nova_process("events", "--data-dir", tmp_path / "typo")
    assert done.returncode == 1
    assert "no store" in done.stderr
    assert not (tmp_path / "typo").exists()


@pytest.mark.parametrize("text", ["soon", "10 parsecs", "", "2026-13-01", "-5m"])
def test_a_time_nobody_understands_is_refused(folder: Folder, text: str) -> None:
    done = nova("events", "--data-dir", folder.path, f"--since={text}")
    assert done.exit_code == 2
    assert "30s, 10m" in done.stderr


def test_ages_are_counted_back_from_now() -> None:
    assert [since(text, 10_000_000) for text in ("250ms", "30s", "10m", "2h")] == [
        9_999_750,
        9_970_000,
        9_400_000,
        2_800_000,
    ]


def test_a_damaged_record_is_told_and_not_thrown(folder: Folder) -> None:
    folder.call()
    folder.db.write_sync(lambda conn: conn.exec_driver_sql("UPDATE ledger_body SET body = x'00'"))
    done = nova("events", "--data-dir", folder.path)
    assert done.exit_code == 1
    assert "nova ledger verify" in done.stderr


def test_following_prints_calls_of_every_server_as_they_are_written(folder: Folder) -> None:
    folder.call("s1")
    with subprocess.Popen(
        command("events", "--follow", "--json", "--data-dir", folder.path), stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert json.loads(process.stdout.readline())["callId"] == "s1-call-1"
            folder.call("s1")
            # A server that starts later, with a clock behind: positions are per chain, so nothing is skipped.
            folder.call("s0", at_ms=NOW_MS - 60_000)
            folder.call("s1")
            seen = [json.loads(process.stdout.readline())["callId"] for _ in range(3)]
            assert sorted(seen) == ["s0-call-1", "s1-call-2", "s1-call-3"]
        finally:
            process.terminate()


def test_following_with_a_filter_skips_the_rest(folder: Folder) -> None:
    folder.serve("s1")
    flags = ("--follow", "--json", "--agent", "writer", "--data-dir", folder.path)
    folder.call(agent="writer")
    with subprocess.Popen(command("events", *flags), stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            folder.call(agent="reader")
            folder.call(agent="writer")
            assert json.loads(process.stdout.readline())["callId"] == "s1-call-3"
        finally:
            process.terminate()
