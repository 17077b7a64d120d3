"""Printing: pages can't steer the terminal, and programs get lines they can split."""

import json
import unicodedata

import pytest
from cli_kit import Folder, nova
from hypothesis import given
from hypothesis import strategies as st

from nova_mcp.cli.terminal import moment, print_json, size, visible


@given(st.text())
def test_printed_text_holds_nothing_that_acts_on_a_terminal(text: str) -> None:
    shown = visible(text)
    assert not {unicodedata.category(char) for char in shown} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert "\n" not in shown
    assert "\t" not in shown


@given(st.text(st.characters(categories=["L", "N", "P", "S", "Zs"])))
def test_ordinary_text_is_printed_as_it_is(text: str) -> None:
    assert visible(text) == text


@pytest.mark.parametrize(("text", "shown"), [("\x1b[2J", "\\x1b[2J"), ("a\nb", "a\\x0ab"), ("\u202e", "\\u202e")])
def test_control_characters_are_shown_by_their_code(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_a_hostile_agent_name_and_address_reach_the_terminal_as_text(folder: Folder) -> None:
    folder.call(agent="\x1b]0;owned\x07[bold]x", url="https://e.test/\u202egpj\r\nfake row")
    done = nova("events", "--data-dir", folder.path)
    assert "\x1b" not in done.stdout
    assert "\u202e" not in done.stdout
    assert "[bold]x" in done.stdout
    assert len(done.stdout.splitlines()) == 2


def test_times_are_utc_and_sizes_have_units() -> None:
    assert moment(1_790_000_000_123) == "2026-09-21 14:13:20.123Z"
    assert [size(n) for n in (0, 999, 1_500, 83_000_000_000)] == ["0 B", "999 B", "1.5 kB", "83.0 GB"]


def test_json_for_programs_steers_no_terminal_and_means_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    value = {"a\x9b31m": "x\u202ey\u2028\x1b[2J\ud800 Grüße 東京 🎉", "list": ["\x7f\U000e0001"]}
    for line in (True, False):
        print_json(value, line=line)
        printed = capsys.readouterr().out
        assert all(char.isprintable() or char == "\n" for char in printed)
        assert "Grüße 東京 🎉" in printed
        assert json.loads(printed) == value
