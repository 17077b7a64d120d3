"""The decisions behind the HTTP gate: names, origins, tokens, limits, open schemas."""

import json
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nova_mcp.errors import BudgetExhausted
from nova_mcp.server.http.bearer_tokens import NamedToken, TokenFileError, bearer, load_credentials, verify
from nova_mcp.server.http.origins import host_allowed, is_loopback, origin_allowed, served_hosts
from nova_mcp.server.rate_limits import MINUTE_MS, Bucket, Empty, Limits, Taken, take

ENDPOINT = "http://127.0.0.1:27183/mcp"


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("127.0.0.1:27183", True),
        ("localhost", True),
        ("LOCALHOST:80", True),
        ("[::1]:27183", True),
        ("nova.example:9", True),
        ("pinned.example:99", True),
        ("pinned.example:98", False),
        ("pinned.example", False),
        ("evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("localhost.evil.example:27183", False),
        ("user@127.0.0.1", False),
        ("127.0.0.1:99999", False),
        ("127.0.0.1/x", False),
        ("", False),
        (None, False),
    ],
)
def test_only_names_of_this_server_are_hosts(host, allowed):
    assert host_allowed(host, served_hosts("127.0.0.1", ("Nova.example", "pinned.example:99"))) is allowed


def test_a_wildcard_address_is_no_name():
    assert "0.0.0.0" not in served_hosts("0.0.0.0", ())
    assert "192.168.1.5" in served_hosts("192.168.1.5", ())
    assert is_loopback("127.0.0.9")
    assert not is_loopback("192.168.1.5")


@pytest.mark.parametrize(
    ("origin", "allowed"),
    [
        (None, True),
        ("http://localhost:3000", True),
        ("https://127.0.0.1", True),
        ("http://[::1]:5", True),
        ("https://app.example", True),
        ("https://app.example:443", True),
        ("http://app.example", False),
        ("https://app.example.evil.example", False),
        ("null", False),
        ("", False),
        ("file://", False),
        ("chrome-extension://localhost", False),
        ("http://localhost.evil.example", False),
        ("http://localhost@evil.example", False),
    ],
)
def test_pages_come_from_loopback_or_from_where_the_operator_said(origin, allowed):
    assert origin_allowed(origin, ("https://app.example",)) is allowed


@pytest.mark.parametrize(
    ("header", "token"),
    [("Bearer abc", "abc"), ("bearer  abc ", "abc"), ("Basic abc", None), ("Bearer", None), ("", None), (None, None)],
)
def test_a_bearer_header_is_understood(header, token):
    assert bearer(header) == token


TOKENS = (NamedToken(name="local", token="a" * 16), NamedToken(name="robot", token="b" * 16))


@given(st.text(max_size=40))
def test_only_a_known_token_stands_for_somebody(presented: str):
    known = {entry.token: entry.name for entry in TOKENS}
    assert verify(presented, TOKENS) == known.get(presented)


def test_each_token_stands_for_its_own_principal():
    assert [verify(entry.token, TOKENS) for entry in TOKENS] == ["local", "robot"]
    assert verify(None, TOKENS) is None


def test_the_token_file_is_private_and_stays_the_same(tmp_path: Path):
    first = load_credentials(tmp_path / "new", ENDPOINT)
    assert stat.S_IMODE(first.path.stat().st_mode) == 0o600
    again = load_credentials(tmp_path / "new", "http://127.0.0.1:1/mcp")
    assert again.tokens == first.tokens
    stored = json.loads(first.path.read_text())
    assert stored["endpoint"] == "http://127.0.0.1:1/mcp"
    assert stat.S_IMODE(first.path.stat().st_mode) == 0o600
    assert [entry.name for entry in again.tokens] == ["local"]
    assert [entry.name for entry in first.path.parent.iterdir()] == ["mcp.json"]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
def test_a_token_file_others_can_read_is_refused_with_the_cure(tmp_path: Path, mode: int):
    path = load_credentials(tmp_path, ENDPOINT).path
    token = json.loads(path.read_text())["token"]
    path.chmod(mode)
    with pytest.raises(TokenFileError, match="chmod 600") as refused:
        load_credentials(tmp_path, ENDPOINT)
    assert token not in str(refused.value)


@pytest.mark.parametrize(
    "change",
    [
        {"token": "short"},
        {"surprise": 1},
        {"tokens": [{"name": "local", "token": "c" * 20}]},
        {"tokens": [{"name": "a b", "token": "c" * 20}]},
        {"tokens": [{"name": "x", "token": "c" * 20}, {"name": "y", "token": "c" * 20}]},
    ],
)
def test_a_token_file_that_makes_no_sense_is_refused_without_quoting_it(tmp_path: Path, change):
    path = load_credentials(tmp_path, ENDPOINT).path
    content = json.loads(path.read_text()) | change
    path.write_text(json.dumps(content))
    with pytest.raises(TokenFileError) as refused:
        load_credentials(tmp_path, ENDPOINT)
    assert content["token"] not in str(refused.value)
    assert "c" * 20 not in str(refused.value)


def test_a_token_file_that_is_a_link_or_no_json_is_refused(tmp_path: Path):
    real = load_credentials(tmp_path / "real", ENDPOINT).path
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mcp.json").symlink_to(real)
    with pytest.raises(TokenFileError):
        load_credentials(tmp_path / "other", ENDPOINT)
    real.write_text("{")
    with pytest.raises(TokenFileError, match="not JSON"):
        load_credentials(tmp_path / "real", ENDPOINT)


@given(st.integers(1, 5000), st.lists(st.integers(0, 5000), min_size=1, max_size=80))
def test_no_minute_holds_more_than_two_allowances_and_waiting_as_told_helps(per_minute: int, pauses: list[int]):
    bucket: Bucket | None = None
    now = 0.0
    taken: list[float] = []
    for pause in pauses:
        now += pause
        match take(bucket, now, per_minute):
            case Taken(after):
                bucket = after
                taken.append(now)
            case Empty(retry_after_ms):
                assert isinstance(take(bucket, now + retry_after_ms, per_minute), Taken)
                assert retry_after_ms <= MINUTE_MS + 1
    for start in taken:
        assert sum(1 for at in taken if start <= at < start + MINUTE_MS) <= 2 * per_minute


class StillClock:
    def __init__(self) -> None:
        self.ms = 0.0

    def now_ms(self) -> int:
        return int(self.ms)

    def monotonic_ms(self) -> float:
        return self.ms


def test_principals_do_not_share_an_allowance():
    clock = StillClock()
    limits = Limits(clock, per_minute=2, at_once=1)
    limits.spend("a")
    limits.spend("a")
    with pytest.raises(BudgetExhausted) as spent:
        limits.spend("a")
    assert spent.value.retry_after_ms == 30_000
    limits.spend("b")
    clock.ms = 30_000
    limits.spend("a")


def test_a_place_is_given_back_however_the_call_ends():
    limits = Limits(StillClock(), per_minute=10, at_once=1)
    with pytest.raises(KeyError), limits.running("a"):
        with pytest.raises(BudgetExhausted), limits.running("a"):
            pass
        with limits.running("b"):
            pass
        raise KeyError
    with limits.running("a"):
        pass
