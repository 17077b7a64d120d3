"""What is written down holds no secret, no query value, and never more than its bounds."""

import base64
import json
import math
import re
from re import _parser  # type: ignore[attr-defined]
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nova_mcp.core import redaction
from nova_mcp.core.redaction import (
    MAX_FILTERED_CHARS,
    MAX_RESULT_BYTES,
    REDACTED,
    SecretFilter,
    holds_card_number,
    is_card_number,
    is_sensitive_key,
    redact_arguments,
    redact_text,
)

# How long an example takes says nothing on a busy machine.
UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

SECRET = 'p@ss "w/rd"+ü€😀'
SECRETS = {"SHOP": SECRET}


def redact(args: dict[str, object], **options: object) -> dict[str, object]:
    merged: dict[str, object] = {"secrets": {}, "sensitive_fields": frozenset(), "keep_raw_urls": False, **options}
    return redact_arguments(args, **merged)  # type: ignore[arg-type,return-value]


def depth_of(value: object) -> int:
    if isinstance(value, dict):
        return 1 + max(map(depth_of, value.values()), default=0)
    return 1 + max(map(depth_of, value), default=0) if isinstance(value, list) else 0


def size_of(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode())


RAW = SECRET.encode()


@pytest.mark.parametrize(
    "spelling",
    [
        SECRET,
        quote(SECRET),
        quote(SECRET, safe=""),
        quote_plus(SECRET),
        quote(SECRET, safe="!'()*~;,/?:@&=+$#"),
        quote(SECRET, safe="").replace("%C3", "%c3").replace("%2B", "%2b"),
        json.dumps(SECRET),
        json.dumps(SECRET, ensure_ascii=False),
        json.dumps(SECRET).replace("/", "\\/"),
        base64.b64encode(RAW).decode(),
        base64.urlsafe_b64encode(RAW).decode(),
        base64.b64encode(RAW).decode().rstrip("="),
        base64.b64encode(b"user:" + RAW).decode(),
        base64.b64encode(b"u:" + RAW + b" tail").decode(),
        base64.b64encode(b"us:" + RAW + b"x").decode(),
    ],
)
def test_secret_is_replaced_by_its_name_in_every_encoding(spelling: str):
    text = redact_text(f"before {spelling} after", SECRETS)
    assert "«secret:SHOP»" in text
    assert spelling not in text
    assert text.startswith("before ")
    assert text.endswith(" after")


def test_longer_secret_wins_and_short_values_are_left_alone():
    secrets = {"A": "hunter2", "B": "hunter2-long", "C": "abc"}
    assert redact_text("hunter2-long hunter2 abc", secrets) == "«secret:B» «secret:A» abc"


@UNHURRIED
@given(
    st.text(alphabet='qxzQXZ +/=&%\\"üé漢😀', min_size=4, max_size=12),
    st.binary(max_size=7),
    st.binary(max_size=7),
)
def test_no_encoding_of_a_secret_survives(secret: str, before: bytes, after: bytes):
    known = SecretFilter({"N": secret})
    assert secret not in known(f"1{secret}2")
    assert quote(secret, safe="") not in known(quote(f"1{secret}2", safe=""))
    assert json.dumps(secret)[1:-1] not in known(json.dumps({"k": f"1{secret}2"}))
    encoded = base64.b64encode(before + secret.encode() + after).decode()
    assert known(encoded) != encoded


def test_secret_values_disappear_from_keys_strings_and_numbers():
    out = redact({"a": {"x-987654": "987654", "n": 987654, "u": "https://a.example/987654"}}, secrets={"PIN": "987654"})
    assert "987654" not in json.dumps(out)
    assert out["a"] == {
        "x-«secret:PIN»": "«secret:PIN»",
        "n": "«secret:PIN»",
        "u": "https://a.example/«secret:PIN»",
    }


@pytest.mark.parametrize(
    "key",
    [
        "password",
        "Password",
        "user_password",
        "newPassword",
        "token",
        "accessToken",
        "finalizationToken",
        "secret",
        "client_secret",
        "Authorization",
        "api-key",
        "cookie",
        "otp",
        "passwort",
    ],
)
def test_key_that_names_a_credential_is_redacted(key: str):
    assert is_sensitive_key(key)
    assert redact({"a": {key: "value"}}) == {"a": {key: REDACTED}}
    assert redact({key: ["value"]}) == {key: REDACTED}


@pytest.mark.parametrize("key", ["maxTokens", "continuationToken", "secretName", "text", "author", "pinned", "tokens"])
def test_key_that_only_resembles_a_credential_is_kept(key: str):
    assert redact({key: "value"}) == {key: "value"}


def test_text_of_a_sensitive_field_is_kept_as_its_length():
    out = redact({"text": "hunter2", "selector": "#pw"}, sensitive_fields=frozenset({"text"}))
    assert out == {"text": "«redacted 7 chars»", "selector": "#pw"}


def test_long_string_is_cut_and_says_how_long_it_was():
    assert redact({"a": "x" * 400}) == {"a": "x" * 400}
    assert redact({"a": "x" * 401}) == {"a": "x" * 400 + "… (401 chars)"}
    assert redact({"a": "x" * 1_000_000}) == {"a": "x" * 400 + "… (1000000 chars)"}


def test_secret_at_a_cut_leaves_no_part_behind():
    for offset in range(390, 402):
        out = redact({"a": "x" * offset + "correct-horse-battery"}, secrets={"N": "correct-horse-battery"})
        assert "correct" not in json.dumps(out)
    link = "https://a.example/?k="
    far = link + "x" * (65_536 - len(link) - 5) + " correct-horse-battery"
    assert "corr" not in json.dumps(redact({"a": far}, secrets={"N": "correct-horse-battery"}))


def test_query_values_go_unless_raw_urls_are_kept():
    url = "https://example.com/a?token=abc&q=1#x"
    assert redact({"url": url}) == {"url": "https://example.com/a?token&q"}
    assert redact({"text": f"see {url} now"}) == {"text": "see https://example.com/a?token&q now"}
    assert redact({"url": url}, keep_raw_urls=True) == {"url": url}


def test_numbers_that_json_lacks_become_text():
    out = redact({"a": math.nan, "b": math.inf, "c": -math.inf, "d": 1.5, "e": 10**5000, "f": True, "g": None})
    assert {**out, "e": ""} == {
        "a": "NaN",
        "b": "Infinity",
        "c": "-Infinity",
        "d": 1.5,
        "e": "",
        "f": True,
        "g": None,
    }
    assert str(out["e"]).startswith("int of ")


def test_things_that_are_not_json_are_named_by_type():
    out = redact({"a": b"x", "b": object(), "c": {1, 2}, "d": (1, "x")})
    assert out == {"a": "<bytes>", "b": "<object>", "c": "<set>", "d": [1, "x"]}
    assert redact({1: "x"}) == {"<int>": "x"}  # type: ignore[dict-item]


def test_nesting_is_cut_at_eight_and_cycles_end():
    deep: dict[str, object] = {}
    for _ in range(50):
        deep = {"k": deep}
    assert depth_of(redact(deep)) == 8
    ring: list[object] = []
    ring.extend([ring] * 100)
    assert size_of(redact({"ring": ring})) <= MAX_RESULT_BYTES


def test_wide_arguments_are_cut_with_a_count():
    out = redact({f"k{n}": n for n in range(1000)})
    assert len(out) == 65
    assert out["…"] == "936 more"
    assert (out["k0"], out["k63"]) == (0, 63)


def test_keys_that_alone_exceed_the_bound_are_cut_with_a_count():
    out = redact({"\x01" * 79 + str(n): "\x01" * 900 for n in range(9)})
    assert size_of(out) <= MAX_RESULT_BYTES
    assert 4 <= len(out) <= 8
    assert out["…"] == f"{9 - (len(out) - 1)} more"


def test_summary_keeps_short_values_beside_huge_ones():
    out = redact({"selector": "#buy", "blob": ["y" * 400] * 60, "text": "z" * 5000})
    assert out["selector"] == "#buy"
    assert size_of(out) <= MAX_RESULT_BYTES


JSONISH = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=60) | st.binary(max_size=5) | st.dates(),
    lambda inner: st.lists(inner, max_size=8) | st.dictionaries(st.text(max_size=8) | st.integers(), inner, max_size=8),
    max_leaves=60,
)


@UNHURRIED
@given(st.dictionaries(st.text(max_size=100), JSONISH | st.text(max_size=900), max_size=90))
def test_every_argument_has_a_small_json_summary(args: dict[str, object]):
    out = redact(args, secrets={"N": "aaaa"})
    assert size_of(out) <= MAX_RESULT_BYTES
    assert depth_of(out) <= 8 + 1


@UNHURRIED
@given(
    st.dictionaries(
        st.text(alphabet="kq漢\ud800", max_size=900), st.text(alphabet="漢\x01\ud800", max_size=900), max_size=64
    )
)
def test_bound_holds_for_text_that_grows_when_encoded(args: dict[str, object]):
    assert size_of(redact(args)) <= MAX_RESULT_BYTES


def test_what_is_typed_into_a_prompt_is_never_kept() -> None:
    # A prompt does not say whether it asks for a password.
    assert redact_arguments({"promptText": "hunter2"}, secrets={}) == {"promptText": "«redacted»"}


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("example.com/?token=abc", "example.com/?token"),
        ("/reset?token=abc#frag", "/reset?token"),
        ("data:text/html,abc", "data:"),
        ("javascript:steal('abc')", "javascript:"),
        ("https://u:abc@example.com/a?b=abc", "https://example.com/a?b"),
    ],
)
def test_an_argument_that_names_an_address_loses_its_values_whatever_it_looks_like(given: str, kept: str) -> None:
    assert redact_arguments({"url": given, "baseUrl": given}, secrets={}) == {"url": kept, "baseUrl": kept}
    assert redact_arguments({"url": given}, secrets={}, keep_raw_urls=True) == {"url": given}


@pytest.mark.parametrize(
    ("text", "card"),
    [
        ("4111 1111 1111 1111", True),
        ("4111-1111-1111-1111", True),
        (" 378282246310005 ", True),
        ("4111 1111 1111 1112", False),
        ("2026-11-16", False),
        ("41111111", False),
        ("order 4111111111111111", False),
        ("", False),
    ],
)
def test_a_card_number_is_known_by_its_check_digit(text: str, card: bool) -> None:
    assert is_card_number(text) is card


def test_a_claim_s_token_is_hidden_where_it_serves_as_a_key() -> None:
    token = "fin_" + "0a" * 24
    kept = json.dumps(redact_arguments({"payload": {token: {"inner": {token: 1}}}, token: True}, secrets={}))
    assert token not in kept


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("Pay with 4111 1111 1111 1111 here.", True),
        ("Room 12 4111 1111 1111 1111", True),
        ("since 2024 4111-1111-1111-1111, 7", True),
        ("4111111111111111", True),
        ("order 4111 1111 1111 1112", False),
        ("94111111111111111", False),
        ("tab 12 of 2024", False),
    ],
)
def test_a_card_number_is_found_beside_other_numbers(text: str, held: bool) -> None:
    assert holds_card_number(text) is held


# -- cost: what a filter reads grows with the text and is bounded, whatever stands in it

LONG_SECRET = "correct-horse-battery-staple"
# Beginnings of a secret, cut off again and again, and marks that make a text look encoded.
COSTLY = (
    "…",
    "corre…",
    "correct-horse-batter…",
    "corrcorrecorrect",
    "%%",
    "ccccc",
    "\\u0063",
    "4111 ",
    "fin_",
    "http://",
)


class Work:
    """Counts characters that are compared and characters that a pattern is let loose on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.chars = 0
        compare = redaction._shared_length

        def counted(value: str, text: str, at: int) -> int:
            size = compare(value, text, at)
            self.chars += size + 1
            return size

        monkeypatch.setattr(redaction, "_shared_length", counted)

    def of(self, known: SecretFilter, text: str) -> int:
        self.chars = 0
        known(text)
        return self.chars


@pytest.mark.parametrize("piece", COSTLY)
def test_twice_the_text_is_at_most_twice_the_work(piece: str, monkeypatch: pytest.MonkeyPatch):
    work, known = Work(monkeypatch), SecretFilter({"N": LONG_SECRET, "M": "correct", "O": "ccccccccd"})
    once, twice = piece * 500, piece * 1000
    assert work.of(known, twice) <= 2 * work.of(known, once) + 10 * len(LONG_SECRET)
    assert work.of(known, twice) <= len(twice) * (len(LONG_SECRET) + 1)


def test_a_text_beyond_the_bound_is_cut_before_it_is_searched(monkeypatch: pytest.MonkeyPatch):
    known = SecretFilter({"N": LONG_SECRET})
    searched: list[int] = []
    stumps = known._stumps

    def counted(text: str) -> str:
        searched.append(len(text))
        return stumps(text)

    monkeypatch.setattr(known, "_stumps", counted)
    at_the_cut = "x" * (MAX_FILTERED_CHARS - 10) + LONG_SECRET
    told = known(at_the_cut + "y" * MAX_FILTERED_CHARS)
    assert searched == [len(told)]
    assert len(told) <= MAX_FILTERED_CHARS + 40
    assert told.endswith(f"… ({2 * MAX_FILTERED_CHARS - 10 + len(LONG_SECRET)} chars)")
    assert "corre" not in told


@UNHURRIED
@given(
    st.text(alphabet="abé…-", min_size=6, max_size=14),
    st.text(alphabet="abé…-", max_size=12),
    st.integers(5, 13),
    st.sampled_from(["…", "… (900 chars)", "…»", ""]),
)
def test_no_stump_of_a_secret_is_left_where_a_text_was_cut(secret: str, before: str, size: int, after: str):
    stump = secret[: min(size, len(secret) - 1)].rstrip("…")
    told = SecretFilter({"N": secret})(f"{before}{stump}{after}")
    assert len(stump) < 5 or not told.removesuffix(after).endswith(stump) or "«secret:N»" in told


@pytest.mark.parametrize(
    "pattern",
    [value for value in vars(redaction).values() if isinstance(value, re.Pattern)],
    ids=lambda one: one.pattern,
)
def test_no_pattern_repeats_a_repetition(pattern: re.Pattern[str]):
    """Nested repetition is what makes a pattern try a text in exponentially many ways."""

    def repeats(node: object, inside: bool) -> bool:
        if isinstance(node, tuple) and len(node) == 2 and str(node[0]) in ("MAX_REPEAT", "MIN_REPEAT"):
            low, high, inner = node[1]
            again = high - low > 1
            return (inside and again) or repeats(list(inner), inside or again)
        if isinstance(node, list | tuple | _parser.SubPattern):
            return any(repeats(part, inside) for part in node)
        return False

    assert not repeats(list(_parser.parse(pattern.pattern, pattern.flags & ~re.UNICODE)), inside=False)
