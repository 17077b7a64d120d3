"""How many tokens a text costs a model: an estimate by character classes, and cutting to a budget."""

import re
from typing import Final

# Runs of letters and digits in both cases are encoded data, in which almost no token is long.
_OPAQUE = re.compile(r"(?<![A-Za-z0-9])(?=[a-z0-9]*[A-Z])(?=[A-Z0-9]*[a-z])(?=[A-Za-z]*[0-9])[A-Za-z0-9]{12,}")
_HAN = re.compile(r"[\u2e80-\u2fdf\u3400-\u9fff\uf900-\ufaff]")
_KANA_OR_HANGUL = re.compile(r"[\u1100-\u11ff\u3040-\u30ff\u3130-\u318f\uac00-\ud7af]")
_OTHER_SCRIPT = re.compile(r"[\u0370-\u10ff\u1200-\u1fff\ua000-\uabff]")
_ASTRAL = re.compile(r"[\U00010000-\U0010ffff]")
# How tokenizers first cut a text: a word with the sign before it, three digits, a run of signs, blanks.
_PIECE = re.compile(
    r"(?:[^\r\n\w]|_)?(?:[A-Z]*[a-z\u00df-\u024f]+|[A-Z\u00c0-\u00de]+(?![a-z])|[^\W\d_])"
    r"|\d{1,3}| ?(?:[^\s\w]|_)+[\r\n/]*|\s*[\r\n]+|\s+"
)
_LONG_WORD = re.compile(r"[A-Za-z]?[a-z]{8,}")
_ACCENTED_WORD = re.compile(r"(?<![A-Za-z])[A-Za-z]*[\u00c0-\u024f][A-Za-z\u00c0-\u024f]*")
_SIGN_BEFORE_WORD = re.compile(r"[\"'(/.#=&?<\[{@$-][a-z]{3}")

_CHARS_PER_TOKEN_OPAQUE: Final = 1.45
_PER_HAN_CHAR: Final = 0.86
_PER_KANA_OR_HANGUL_CHAR: Final = 0.73
_PER_OTHER_CHAR: Final = 0.33
_PER_ASTRAL_CHAR: Final = 1.6
_PER_LONG_WORD: Final = 0.4
_PER_CHAR_BEYOND_TEN: Final = 0.2
_PER_ACCENTED_WORD: Final = 0.8
_PER_SIGN_BEFORE_WORD: Final = 0.3

ELLIPSIS: Final = "…"


def _foreign_tokens(text: str) -> tuple[float, str]:
    """Tokens of the characters outside the Latin alphabet, and the text without them."""
    total = 0.0
    for pattern, weight in (
        (_HAN, _PER_HAN_CHAR),
        (_KANA_OR_HANGUL, _PER_KANA_OR_HANGUL_CHAR),
        (_OTHER_SCRIPT, _PER_OTHER_CHAR),
        (_ASTRAL, _PER_ASTRAL_CHAR),
    ):
        text, count = pattern.subn("", text)
        total += weight * count
    return total + _PER_ACCENTED_WORD * len(_ACCENTED_WORD.findall(text)), text


def estimate_tokens(text: str) -> int:
    """Tokens in the text, within fifteen per cent of o200k on prose, data and element lines of some length."""
    if not text:
        return 0
    total = 0.0
    if not text.isascii():
        total, text = _foreign_tokens(text)
    opaque = _OPAQUE.findall(text)
    if opaque:
        total += sum(map(len, opaque)) / _CHARS_PER_TOKEN_OPAQUE
        text = _OPAQUE.sub("", text)
    long_words = _LONG_WORD.findall(text)
    total += sum(_PER_LONG_WORD + _PER_CHAR_BEYOND_TEN * max(0, len(word) - 10) for word in long_words)
    total += _PER_SIGN_BEFORE_WORD * len(_SIGN_BEFORE_WORD.findall(text))
    total += len(_PIECE.findall(text))
    return max(1, round(total))


def line_tokens(line: str) -> int:
    """What a line takes of a longer text, its line break included; an empty one is left out and takes nothing."""
    return estimate_tokens(line) + 1 if line else 0


def _fits(text: str, budget: int) -> bool:
    return estimate_tokens(text + ELLIPSIS) <= budget


def _longest_prefix(text: str, budget: int) -> int:
    # Most texts hold fewer than twelve characters a token, so the whole text is rarely measured.
    high = min(len(text), 12 * budget + 64)
    while high < len(text) and _fits(text[:high], budget):
        high = min(len(text), 2 * high)
    low = 0
    while low < high:
        middle = (low + high + 1) // 2
        if _fits(text[:middle], budget):
            low = middle
        else:
            high = middle - 1
    return low


def fit_tokens(text: str, budget: int) -> str:
    """The text, or as much of its beginning as the budget holds, followed by an ellipsis.

    The cut falls at a line's end if that keeps at least half of what would fit.
    """
    if budget <= 0:
        return ""
    if len(text) <= 64 * budget and estimate_tokens(text) <= budget:
        return text
    end = _longest_prefix(text, budget)
    line_end = text.rfind("\n", 0, end + 1)
    if line_end * 2 >= end > 0 and _fits(text[:line_end], budget):
        end = line_end
    # A shorter text may by chance be estimated higher, so what is returned is measured itself.
    while end > 0 and not _fits(text[:end].rstrip(), budget):
        end -= 1
    return text[:end].rstrip() + ELLIPSIS
