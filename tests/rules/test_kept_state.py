"""What is kept of a sandbox: written and read back the same, counted without values, never half replaced."""

import errno
import json
import logging
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nova_mcp.browser.state.sandbox_saver import SAVE_EVERY_MS, is_due
from nova_mcp.browser.state.sandboxes import sandbox_letters, sandbox_number
from nova_mcp.browser.state.state_files import FOLDER, KeptFiles, KeptUnreadable, Taken
from nova_mcp.browser.state.state_format import KeptState, cookies_per_host, from_json, to_json, with_older_databases
from nova_mcp.core.file_lock import HeldBy

REF = "0123456789abcdef" * 2
COOKIE = {
    "name": "sid",
    "value": "v",
    "domain": ".shop.example",
    "path": "/",
    "expires": -1,
    "httpOnly": True,
    "secure": True,
    "sameSite": "Lax",
}
STATE = KeptState(
    REF,
    "A",
    "local",
    1,
    2,
    {"cookies": [COOKIE], "origins": [{"origin": "https://shop.example", "localStorage": [], "indexedDB": [{"n": 1}]}]},
    {"https://shop.example": {"token": "t"}},
    ("https://shop.example/cart",),
)


def test_a_state_is_read_as_it_was_written() -> None:
    assert from_json(json.loads(json.dumps(to_json(STATE)))) == STATE
    fresh = KeptState(REF)
    assert from_json(json.loads(json.dumps(to_json(fresh)))) == fresh


@pytest.mark.parametrize(
    "change",
    [
        {"v": 2},
        {"sandboxRef": "../../etc"},
        {"sandboxId": "a"},
        {"storage": {"cookies": [{"name": "x"}], "origins": []}},
        {"storage": {}},
        {"sessions": {"https://x.example": {"a": 1}}},
        {"more": 1},
    ],
)
def test_what_is_not_a_state_is_not_read_as_one(change: dict[str, object]) -> None:
    with pytest.raises(ValueError):
        from_json(to_json(STATE) | change)


def test_only_the_moment_of_saving_makes_no_difference() -> None:
    assert STATE.same_content(replace(STATE, saved_at_ms=99))
    assert not STATE.same_content(replace(STATE, urls=()))


def test_cookies_are_counted_per_host_and_never_shown() -> None:
    other = COOKIE | {"name": "b", "domain": "shop.example"}
    assert cookies_per_host({"cookies": [COOKIE, other, COOKIE | {"domain": "a.example"}], "origins": []}) == {
        "a.example": 1,
        "shop.example": 2,
    }


def test_a_capture_without_databases_keeps_those_known_before() -> None:
    newer = {
        "cookies": [],
        "origins": [{"origin": "https://shop.example", "localStorage": [{"name": "a", "value": "1"}]}],
    }
    merged = with_older_databases(newer, STATE.storage)
    assert merged["origins"] == [
        {"indexedDB": [{"n": 1}], "origin": "https://shop.example", "localStorage": [{"name": "a", "value": "1"}]}
    ]
    gone = with_older_databases({"cookies": [], "origins": []}, STATE.storage)
    assert [origin["origin"] for origin in gone["origins"]] == ["https://shop.example"]


def test_it_is_saved_at_most_every_half_minute_even_if_the_clock_jumps_back() -> None:
    assert not is_due(1_000_000, 1_000_000 + SAVE_EVERY_MS - 1)
    assert is_due(1_000_000, 1_000_000 + SAVE_EVERY_MS)
    assert is_due(1_000_000, 0)


@given(st.integers(1, 10**6))
def test_letters_and_numbers_are_the_same_thing(number: int) -> None:
    assert sandbox_number(sandbox_letters(number)) == number


# -- files


def test_a_state_is_private_on_disk_and_no_draft_stays(tmp_path: Path) -> None:
    files = KeptFiles(tmp_path)
    files.write(STATE)
    files.write(replace(STATE, saved_at_ms=3))
    folder = tmp_path / FOLDER / REF
    assert [path.name for path in folder.iterdir()] == ["state.json"]
    assert stat.S_IMODE((folder / "state.json").stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_one_holder_at_a_time(tmp_path: Path) -> None:
    first = KeptFiles(tmp_path).take()
    assert isinstance(first, Taken)
    assert first.state is None
    second = KeptFiles(tmp_path).take()
    assert isinstance(second, HeldBy)
    assert second.pid is not None
    first.hold.release()
    third = KeptFiles(tmp_path).take()
    assert isinstance(third, Taken)
    third.hold.release()


@pytest.mark.parametrize("text", ["", "{", '{"v": 1}', "[]", "\x00\x00"])
def test_a_damaged_file_is_moved_aside_and_said_loudly(tmp_path: Path, text: str, caplog) -> None:
    files = KeptFiles(tmp_path)
    files.write(STATE)
    path = tmp_path / FOLDER / REF / "state.json"
    path.write_text(text)
    with caplog.at_level(logging.ERROR):
        taken = files.take()
    assert isinstance(taken, Taken)
    taken.hold.release()
    assert taken.state is None
    assert not path.exists()
    assert len(list(path.parent.glob("state.json.corrupt-*"))) == 1
    assert "damaged" in caplog.text


def test_a_file_that_can_not_be_read_at_the_moment_is_neither_moved_nor_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = KeptFiles(tmp_path)
    files.write(STATE)
    path = tmp_path / FOLDER / REF / "state.json"
    before = path.read_bytes()

    def exhausted(*_: object, **__: object) -> str:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_text", exhausted)
        with pytest.raises(KeptUnreadable, match="Too many open files"):
            files.take()
    assert (path.read_bytes(), [file.name for file in path.parent.iterdir()]) == (before, ["state.json"])
    again = files.take()
    assert isinstance(again, Taken)
    assert again.state == STATE
    again.hold.release()


def _drafts(folder):
    return sorted(path.name for path in folder.rglob(".state.json.*"))


def test_what_a_killed_save_left_behind_goes_when_the_sandbox_is_taken_up(tmp_path):
    files = KeptFiles(tmp_path)
    files.write(KeptState("a" * 32, "A", "local", 1, 1))
    kept = tmp_path / "sandboxes" / ("a" * 32)
    never = tmp_path / "sandboxes" / ("b" * 32)
    never.mkdir()
    for folder in (kept, never):
        (folder / ".state.json.deadbeef").write_text("half a jar")
    taken = files.take()
    assert isinstance(taken, Taken)
    assert taken.state is not None
    assert _drafts(tmp_path) == []
    taken.hold.release()


def test_the_draft_of_a_sandbox_that_another_server_is_writing_stays(tmp_path):
    files = KeptFiles(tmp_path)
    other = files.hold_new("c" * 32)
    files.write(KeptState("c" * 32, "C", "local", 1, 1, first=False))
    (tmp_path / "sandboxes" / ("c" * 32) / ".state.json.deadbeef").write_text("in the making")
    first = files.take()
    assert _drafts(tmp_path) == [".state.json.deadbeef"]
    assert isinstance(files.take_other("c" * 32), HeldBy)
    assert _drafts(tmp_path) == [".state.json.deadbeef"]
    other.release()
    taken = files.take_other("c" * 32)
    assert isinstance(taken, Taken)
    assert _drafts(tmp_path) == []
    taken.hold.release()
    assert isinstance(first, Taken)
    first.hold.release()
