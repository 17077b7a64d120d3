"""Words that commit something in the most used languages of the web, and how a label is read for them."""

import functools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

from nova_mcp.core.page.labels import identifier_words, is_unspaced, words_of
from nova_mcp.core.page.look_alikes import as_seen, mixes_alphabets

# Where a single verb may stand at the end of a label too ("Konto löschen").
_VERB_LAST: Final = frozenset({"de", "nl", "hu", "tr", "ja", "ko", "fa"})
# Languages whose names of things end with the verb they are made of ("method of payment"): only a beginning counts.
_NOUN_FIRST: Final = frozenset({"vi", "th"})
# What parts a label into pieces that are read on their own: "Show details | Pay $499".
_PARTS: Final = re.compile(r"[\n—–|•·;:/,.!?()\[\]{}\"…]+|\s-\s")
_INNER_SIGN: Final = re.compile(r"[^\W_][^\w\s]+[^\W_]|(?<!\w)\w\s\w(?!\w)")
_LETTER_AND_DIGIT: Final = re.compile(r"[a-z][013]|[013][a-z]", re.IGNORECASE)
_NUMBER: Final = re.compile(r"\d+")
_CURRENCIES: Final = frozenset(
    {
        "eur",
        "usd",
        "gbp",
        "chf",
        "rub",
        "pln",
        "czk",
        "sek",
        "nok",
        "dkk",
        "huf",
        "try",
        "tl",
        "zl",
        "kr",
        "ron",
        "lei",
        "rp",
        "idr",
        "vnd",
        "jpy",
        "cny",
        "krw",
        "uah",
    }
)
# A phrase of so many signs of a script without spaces is long enough to be meant wherever it stands.
_LONG_RUN: Final = 4
_SHORTEST_SPELT: Final = 3
_MAX_CHARS: Final = 400
# What follows this sign is drawn from right to left, up to the sign that ends it: "yaP" is seen as Pay.
_TURNED: Final = re.compile("\u202e([^\u202c\u202d\u202e\n]*)\u202c?")
# The lists a button is read for; the others name fields and pickers.
LABEL_LISTS: Final = (
    "send",
    "submit",
    "sign_in",
    "sign_up",
    "sign_out",
    "payment",
    "delete",
    "unsubscribe",
    "confirm",
    "act",
    "affirm",
)
MIXED: Final = "mixed"

Words = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Phrase:
    """`text` as it is shipped; `whole` when nothing else may stand beside it."""

    words: Words
    text: str
    may_end: bool
    anywhere: bool
    whole: bool


@dataclass(frozen=True, slots=True)
class _Label:
    """The words of one label, and the pieces it consists of as places of their first word and after their last."""

    words: Words
    pieces: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class CommitWords:
    """The phrases of each list by their first word, and the words that may stand around one."""

    phrases: Mapping[str, Mapping[str, tuple[_Phrase, ...]]]
    fillers: Mapping[str, tuple[Words, ...]]
    joins: frozenset[str]
    tails: tuple[Words, ...]
    # Every word with which a phrase of a button begins: a plain label without any of them says nothing of interest.
    openings: frozenset[str]

    def read(self, text: str) -> Mapping[str, str]:
        """Every list of which a label says a phrase, with that phrase."""
        return _read(text[:_MAX_CHARS])

    def find(self, kind: str, text: str) -> str | None:
        """The phrase of a list that a label says."""
        for label in self._labels(text[:_MAX_CHARS]):
            phrase = self._said(kind, label)
            if phrase is not None:
                return phrase.text
        return None

    def has_token(self, kind: str, identifier: str) -> str | None:
        """The single-word phrase that occurs as a part of an id such as `sendButton` or `btn-send`."""
        by_first = self.phrases[kind]
        for token in identifier_words(identifier):
            if any(len(phrase.words) == 1 and not phrase.whole for phrase in by_first.get(token, ())):
                return token
        return None

    def is_exactly(self, kind: str, name: str) -> bool:
        """Whether a name consists of one phrase of a list and nothing else."""
        words = words_of(name)
        return bool(words) and any(words == phrase.words for phrase in self.phrases[kind].get(words[0], ()))

    def mentions(self, kind: str, text: str) -> str | None:
        """The phrase of a list that stands anywhere in a sentence; those that count only alone are left out."""
        for label in self._labels(text[:_MAX_CHARS]):
            plain = self._plain(label.words)
            for index, phrase in self._standing(kind, label.words):
                if not phrase.whole and not _is_covered(index, len(phrase.words), plain):
                    return phrase.text
        return None

    # -- reading

    def _labels(self, text: str) -> Iterator[_Label]:
        """A label as it is written, and as it looks: spelt apart, hyphenated, or in letters of another alphabet."""
        for label in _spellings(text, self.openings):
            yield label
            seen = as_seen(label.words)
            if seen != label.words:
                yield _Label(seen, label.pieces)

    def _standing(self, kind: str, words: Words) -> Iterator[tuple[int, _Phrase]]:
        by_first = self.phrases[kind]
        for index, word in enumerate(words):
            for phrase in by_first.get(word, ()):
                if words[index : index + len(phrase.words)] == phrase.words:
                    yield index, phrase

    def _plain(self, words: Words) -> Sequence[tuple[int, int]]:
        """Where words mean nothing here, and how many: parts of names, lists and states ("order history")."""
        return [(index, len(phrase.words)) for index, phrase in self._standing("plain", words)]

    def _said(self, kind: str, label: _Label) -> _Phrase | None:
        plain = () if kind == "plain" else self._plain(label.words)
        # As they stand too: what says nothing may also be how a verb begins.
        pieces = [place for piece in self._joined(label) for place in (piece, self._bare(label.words, piece))]
        wholes = [place for piece in label.pieces for place in (piece, self._bare(label.words, piece))]
        for index, phrase in self._standing(kind, label.words):
            size = len(phrase.words)
            if not _is_covered(index, size, plain) and _counts(
                phrase, index, index + size, wholes if phrase.whole else pieces
            ):
                return phrase
        return None

    def _joined(self, label: _Label) -> Iterator[tuple[int, int]]:
        """The pieces of a label, parted at its "and"s as well."""
        for start, end in label.pieces:
            begin = start
            for index in range(start, end):
                if label.words[index] in self.joins and start < index < end - 1:
                    yield begin, index
                    begin = index + 1
            yield begin, end
            if begin != start:
                yield start, end

    def _bare(self, words: Words, piece: tuple[int, int]) -> tuple[int, int]:
        """A piece without what may stand before and after its verb."""
        start, end = piece
        while size := self._filling(words, start, end):
            start += size
        for tail in self.tails:
            if end - len(tail) > start and words[end - len(tail) : end] == tail:
                end -= len(tail)
                break
        while start < end - 1 and _is_amount(words[end - 1]):
            end -= 1
        return start, end

    def _filling(self, words: Words, start: int, end: int) -> int:
        """How many words at the beginning of a piece say nothing; never all of them."""
        if start >= end - 1:
            return 0
        if _is_amount(words[start]):
            return 1
        fillers = self.fillers.get(words[start], ())
        return next(
            (len(one) for one in fillers if start + len(one) < end and words[start : start + len(one)] == one), 0
        )


def _is_amount(word: str) -> bool:
    return word in _CURRENCIES or _NUMBER.fullmatch(word) is not None


def _is_covered(index: int, size: int, plain: Sequence[tuple[int, int]]) -> bool:
    """Whether a phrase is part of one that means nothing and is at least as long: "place my order" is no "my order"."""
    return any(start < index + size and index < start + length and length >= size for start, length in plain)


def _counts(phrase: _Phrase, index: int, end: int, pieces: Sequence[tuple[int, int]]) -> bool:
    """A verb counts where a label puts it; several words together count anywhere. Parts of words never count."""
    if phrase.whole:
        return (index, end) in pieces
    if phrase.anywhere:
        return True
    return any(index == start or (phrase.may_end and end == last) for start, last in pieces)


def _spellings(text: str, openings: frozenset[str]) -> Iterator[_Label]:
    pieces = [words_of(part) for part in _PARTS.split(text)]
    yield _label(pieces)
    if "\u202e" in text:
        seen = _TURNED.sub(lambda turned: turned[1][::-1], text)
        yield _label([words_of(part) for part in _PARTS.split(seen)])
    if _INNER_SIGN.search(text) is not None:
        # "P.a.y", "De-lete" and "P a y" are seen as one word each.
        yield _label([_spelt_apart(text, openings)])


def _label(pieces: Sequence[Words]) -> _Label:
    words: list[str] = []
    places: list[tuple[int, int]] = []
    for piece in pieces:
        if piece:
            places.append((len(words), len(words) + len(piece)))
            words.extend(piece)
    return _Label(tuple(words), tuple(places))


def _spelt_apart(text: str, openings: frozenset[str]) -> Words:
    """The words between blanks without any signs in them, and runs of single letters as words."""
    words: list[str] = []
    run = ""
    for token in [*text.split(), ""]:
        word = "".join(words_of(token))
        if len(word) == 1 and not is_unspaced(word):
            run += word
            continue
        if run:
            words.extend(_parted(run, openings))
            run = ""
        if word:
            words.append(word)
    return tuple(words)


def _parted(run: str, openings: frozenset[str]) -> Words:
    """A run of single letters, parted after the verb it begins with: nothing tells where its words end."""
    sizes = range(len(run), _SHORTEST_SPELT - 1, -1)
    size = next((size for size in sizes if run[:size] in openings), len(run))
    return tuple(part for part in (run[:size], run[size:]) if part)


def _phrase(language: str, text: str, words: Words) -> _Phrase:
    enough = _LONG_RUN if all(map(is_unspaced, words)) else 2
    anywhere = len(words) >= enough and language not in _NOUN_FIRST
    return _Phrase(words, text.removeprefix("="), language in _VERB_LAST, anywhere, text.startswith("="))


def _index(lists: Mapping[str, list[str]]) -> dict[str, tuple[_Phrase, ...]]:
    by_first: dict[str, list[_Phrase]] = {}
    for language, phrases in lists.items():
        for text in phrases:
            words = words_of(text)
            by_first.setdefault(words[0], []).append(_phrase(language, text, words))
    return {first: tuple(sorted(found, key=lambda p: -len(p.words))) for first, found in by_first.items()}


@functools.cache
def commit_words() -> CommitWords:
    """The shipped lists."""
    raw = json.loads(files("nova_mcp.browser").joinpath("data/commit_words.json").read_text("utf-8"))
    fillers: dict[str, tuple[Words, ...]] = {}
    for filler in map(words_of, raw.pop("fillers")):
        fillers[filler[0]] = (*fillers.get(filler[0], ()), filler)
    joins = frozenset(word for text in raw.pop("joins") for word in words_of(text))
    tails = tuple(sorted(map(words_of, raw.pop("tails")), key=len, reverse=True))
    phrases = {kind: _index(lists) for kind, lists in raw.items()}
    openings = frozenset(word for kind in LABEL_LISTS for word in phrases[kind])
    return CommitWords(phrases, fillers, joins, tails, openings)


@functools.lru_cache(maxsize=8192)
def _read(text: str) -> Mapping[str, str]:
    words = commit_words()
    plain = words_of(text)
    odd = not text.isascii() or _INNER_SIGN.search(text) is not None or _LETTER_AND_DIGIT.search(text) is not None
    if not odd and words.openings.isdisjoint(plain):
        return {}
    found = {kind: phrase for kind in LABEL_LISTS if (phrase := words.find(kind, text)) is not None}
    if not found and not text.isascii() and mixes_alphabets(plain):
        found[MIXED] = ""
    return found
