"""Words on controls in four languages: whole-phrase matching against lists shipped as data."""

import functools
import json
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NOT_WORD = re.compile(r"[\W_]+")
# Scripts written without spaces: every character is a word, so that a phrase is found inside a longer run.
_UNSPACED: Final = re.compile(r"([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3])")
# Letters that no decomposition takes apart, and the Turkish i that capitals don't tell from the other.
_PLAIN_FORMS: Final = str.maketrans({"ı": "i", "ł": "l", "ø": "o", "đ": "d", "æ": "ae"})
_MAX_NAME_CHARS: Final = 200
# Where a single verb stands when it is the point of a label: German puts it last ("Konto löschen").
_VERB_LAST: Final = frozenset({"de"})


@dataclass(frozen=True, slots=True)
class _Phrase:
    words: tuple[str, ...]
    may_end: bool


@dataclass(frozen=True, slots=True)
class Wording:
    """The phrases of each list by their first word, and words that may come before one."""

    phrases: Mapping[str, Mapping[str, tuple[_Phrase, ...]]]
    fillers: frozenset[str]
    # The first word of every phrase of every list: a label without any of them says nothing of interest.
    openings: frozenset[str]

    def find(self, kind: str, name: str) -> str | None:
        """The phrase of a list that a label says.

        A single word counts where a label puts its verb; a phrase of several words counts anywhere. Parts of
        words never count.
        """
        words = self._without_fillers(words_of(name))
        by_first = self.phrases[kind]
        for index, word in enumerate(words):
            for phrase in by_first.get(word, ()):
                size = len(phrase.words)
                if words[index : index + size] != phrase.words:
                    continue
                at_verb_place = index == 0 or (phrase.may_end and index + size == len(words))
                if size > 1 or at_verb_place:
                    return " ".join(phrase.words)
        return None

    def starts(self, kind: str, name: str) -> bool:
        """Whether a label begins with a phrase of a list."""
        words = self._without_fillers(words_of(name))
        if not words:
            return False
        return any(words[: len(phrase.words)] == phrase.words for phrase in self.phrases[kind].get(words[0], ()))

    def has_token(self, kind: str, identifier: str) -> str | None:
        """The single-word phrase that occurs as a part of an id such as `sendButton` or `btn-send`."""
        by_first = self.phrases[kind]
        for token in identifier_words(identifier):
            if any(len(phrase.words) == 1 for phrase in by_first.get(token, ())):
                return token
        return None

    def is_exactly(self, kind: str, name: str) -> bool:
        """Whether a name consists of one phrase of a list and nothing else."""
        words = words_of(name)
        return bool(words) and any(words == phrase.words for phrase in self.phrases[kind].get(words[0], ()))

    def _without_fillers(self, words: tuple[str, ...]) -> tuple[str, ...]:
        start = 0
        while start < len(words) - 1 and words[start] in self.fillers:
            start += 1
        return words[start:]


def _fold(text: str) -> str:
    if text.isascii():
        return text[:_MAX_NAME_CHARS].casefold()
    decomposed = unicodedata.normalize("NFKD", text[:_MAX_NAME_CHARS].casefold())
    # What is not seen between two letters parts no word.
    bare = "".join(one for one in decomposed if not unicodedata.combining(one) and unicodedata.category(one) != "Cf")
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


def _index(lists: Mapping[str, list[str]]) -> dict[str, tuple[_Phrase, ...]]:
    by_first: dict[str, list[_Phrase]] = {}
    for language, phrases in lists.items():
        for text in phrases:
            words = words_of(text)
            by_first.setdefault(words[0], []).append(_Phrase(words, language in _VERB_LAST))
    return {first: tuple(sorted(found, key=lambda p: -len(p.words))) for first, found in by_first.items()}


@functools.cache
def commit_wording() -> Wording:
    """The shipped lists of words that mark commit points."""
    raw = json.loads(files("nova_mcp.browser").joinpath("data/commit_words.json").read_text("utf-8"))
    fillers = frozenset(word for text in raw.pop("fillers") for word in words_of(text))
    phrases = {kind: _index(lists) for kind, lists in raw.items()}
    return Wording(phrases, fillers, frozenset(word for by_first in phrases.values() for word in by_first))
