"""The words of a label as they are compared: without case, accents and what is not seen."""

import functools
import re
import unicodedata
from typing import Final

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NOT_WORD = re.compile(r"[\W_]+")
# Scripts written without spaces: every character is a word, so that a phrase is found inside a longer run.
_UNSPACED: Final = re.compile(r"([\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3])")
# Letters that no decomposition takes apart, and the Turkish i that capitals don't tell from the other.
_PLAIN_FORMS: Final = str.maketrans({"ı": "i", "ł": "l", "ø": "o", "đ": "d", "æ": "ae"})
# Capitals in boxes and circles, those that flags are made of, and letters and signs that show nothing.
_SHOWN_AS: Final = {
    **{first + at: 0x61 + at for first in (0x1F130, 0x1F150, 0x1F170, 0x1F1E6) for at in range(26)},
    **dict.fromkeys((0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0), 0x20),
}
_UNSEEN: Final = frozenset({"Mn", "Mc", "Me", "Cf"})
# Vowels of Thai are marks, and words differ by them.
_THAI_MARK: Final = re.compile(r"[\u0e31-\u0e4e]")
_MAX_NAME_CHARS: Final = 400


def _fold(text: str) -> str:
    if text.isascii():
        return text[:_MAX_NAME_CHARS].casefold()
    # Letters of mathematics have capitals of their own, which are capitals only once they are taken apart.
    decomposed = unicodedata.normalize("NFKD", text[:_MAX_NAME_CHARS].translate(_SHOWN_AS).casefold()).casefold()
    # What is not seen between two letters parts no word.
    bare = "".join(one for one in decomposed if unicodedata.category(one) not in _UNSEEN or _THAI_MARK.match(one))
    return unicodedata.normalize("NFC", bare).translate(_PLAIN_FORMS)


def folded(text: str) -> str:
    """A phrase as it is compared, on one line."""
    return " ".join(_NOT_WORD.split(_fold(text))).strip()


@functools.lru_cache(maxsize=4096)
def words_of(text: str) -> tuple[str, ...]:
    """The words of a label, without case, accents and punctuation."""
    plain = _fold(text)
    if not plain.isascii():
        plain = _UNSPACED.sub(r" \1 ", plain)
    return tuple(word for word in _NOT_WORD.split(plain) if word)


def is_unspaced(word: str) -> bool:
    return _UNSPACED.match(word) is not None


def identifier_words(identifier: str) -> tuple[str, ...]:
    """The words of an identifier written with capitals, dashes or underscores."""
    return words_of(_CAMEL.sub(" ", identifier[:_MAX_NAME_CHARS]))
