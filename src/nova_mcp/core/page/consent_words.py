"""Words on the controls of layers in many languages: which of them accept, reject, close, manage or save."""

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Final, Literal

from nova_mcp.core.page.labels import is_unspaced, words_of
from nova_mcp.core.page.look_alikes import as_seen, mixes_alphabets

# `decline` turns an offer down, `excuse` does so with words of its own; a request for consent is not refused by those.
Said = Literal["accept", "reject", "decline", "excuse", "close", "save", "manage", "unknown"]
Words = tuple[str, ...]

CLOSE_SIGNS: Final = frozenset("×✕✖✗✘╳⨯🗙❌xX")
_NECESSARY_WORDS: Final = 9
_REJECT_WORDS: Final = 8
_OFFER_WORDS: Final = 12
_SHORT_WORDS: Final = 6
_LONGEST: Final = 40
# So many characters of a script without spaces are about one word.
_CHARS_A_WORD: Final = 3
# Languages whose labels may end with what they do.
_VERB_LAST: Final = frozenset({"de", "nl", "hu", "tr", "ja", "zh-hans", "zh-hant", "ko"})


@dataclass(frozen=True, slots=True)
class PhraseList:
    """Phrases by their first word, those that may end a label by their last, and the languages of each."""

    first: Mapping[str, tuple[Words, ...]]
    last: Mapping[str, tuple[Words, ...]]
    languages: Mapping[Words, frozenset[str]]

    def at(self, words: Words, index: int) -> Words | None:
        """The phrase that stands at this place."""
        found = self.first.get(words[index], ())
        return next((phrase for phrase in found if words[index : index + len(phrase)] == phrase), None)

    def among(self, words: Words) -> bool:
        """Whether one of the phrases stands anywhere, as whole words."""
        return any(self.at(words, index) is not None for index in range(len(words)))

    def leads(self, words: Words, most: int) -> bool:
        """Whether a label is a phrase and little else: it begins with it, or ends with it where verbs come last."""
        if not words or length_of(words) > most:
            return False
        if self.at(words, 0) is not None:
            return True
        return any(words[-len(phrase) :] == phrase for phrase in self.last.get(words[-1], ()))

    def is_exactly(self, words: Words) -> bool:
        return bool(words) and words in self.first.get(words[0], ())


def length_of(words: Words) -> int:
    """How long a label is, in words as they are written with spaces."""
    unspaced = sum(map(is_unspaced, words))
    return len(words) - unspaced + -(-unspaced // _CHARS_A_WORD)


def may_end(name: str, language: str) -> bool:
    """Whether phrases of a list may end a label.

    "Refuse and go on" ends with the word for going on in some languages, and is no acceptance there.
    """
    return language in _VERB_LAST and (language == "de" or name != "consent_go_on")


def _phrases(name: str, lists: Mapping[str, list[str]]) -> PhraseList:
    languages: dict[Words, set[str]] = {}
    last: dict[str, dict[Words, None]] = {}
    for language, phrases in lists.items():
        for words in map(words_of, phrases):
            languages.setdefault(words, set()).add(language)
            if may_end(name, language):
                last.setdefault(words[-1], {})[words] = None
    # Of two phrases that begin alike the longer one is meant.
    first: dict[str, list[Words]] = {}
    for words in sorted(languages, key=len, reverse=True):
        first.setdefault(words[0], []).append(words)
    return PhraseList(
        {word: tuple(found) for word, found in first.items()},
        {word: tuple(found) for word, found in last.items()},
        {words: frozenset(spoken) for words, spoken in languages.items()},
    )


@functools.cache
def consent_lists() -> Mapping[str, PhraseList]:
    """The shipped lists; the page reads the same file."""
    raw = json.loads(files("nova_mcp.core.page").joinpath("data/consent_words.json").read_text("utf-8"))
    return {name: _phrases(name, lists) for name, lists in raw.items()}


def _unspoken(words: Words, *known: PhraseList) -> Words:
    """The words of a label that no phrase of these lists covers, in the language that covers most.

    A label is understood whole or not at all: one more word may turn "only the necessary" into "and the rest". And it
    is written in one language: a word that says nothing in another one may say a lot in this.
    """
    spoken: dict[str, set[int]] = {}
    for phrases in known:
        for index in range(len(words)):
            for phrase in phrases.first.get(words[index], ()):
                if words[index : index + len(phrase)] == phrase:
                    for language in phrases.languages[phrase]:
                        spoken.setdefault(language, set()).update(range(index, index + len(phrase)))
    most = min(spoken.items(), key=lambda one: (-len(one[1]), one[0]), default=("", set[int]()))[1]
    return tuple(word for index, word in enumerate(words) if index not in most)


def _takes_least(words: Words, lists: Mapping[str, PhraseList]) -> bool:
    """Whether a label with words for the necessary takes that and nothing besides."""
    necessary, negation = lists["consent_necessary"], lists["consent_negation"]
    found = [phrase for index in range(len(words)) if (phrase := necessary.at(words, index)) is not None]
    negated = [negation.among(phrase) for phrase in found]
    rest = _unspoken(words, necessary, lists["label_plain"])
    if any(negated):
        return all(negated) and not rest
    # "Accept only the necessary": one phrase of acceptance belongs to it.
    return not rest or lists["consent_accept"].is_exactly(rest)


def said_by(text: str) -> Said | None:
    """What a label says; None when it says nothing.

    It is read as it is seen: look-alike letters hide no acceptance, and a word that mixes alphabets means nothing else.
    """
    said = " ".join(text.split())
    if not said:
        return None
    if said in CLOSE_SIGNS:
        return "close"
    words = words_of(said)
    if not words:
        return "unknown"
    if _accepts_in_disguise(words):
        return "accept"
    return "unknown" if mixes_alphabets(words) else _said(words)


def _accepts_in_disguise(words: Words) -> bool:
    """Whether words that were not written in Latin letters are seen as words of acceptance."""
    seen, lists = as_seen(words), consent_lists()
    changed = {index for index, word in enumerate(words) if word != seen[index]}
    if not changed:
        return False
    for index in range(len(seen)):
        phrase = lists["consent_accept"].at(seen, index)
        if phrase is not None and not changed.isdisjoint(range(index, index + len(phrase))):
            return True
    return 0 in changed and lists["consent_go_on"].at(seen, 0) is not None


def _said(words: Words) -> Said:
    """The order decides: what takes only the necessary is no acceptance, and whatever accepts is nothing else."""
    lists = consent_lists()
    informs = lists["label_informs"].leads(words, _LONGEST)
    bounded = not lists["consent_everything"].among(words) and not lists["consent_extras"].among(words)
    # Whether it says what is taken or leaves that out: "only the necessary", "only the necessary cookies".
    for told in dict.fromkeys((words, _unspoken(words, lists["consent_things"]))) if bounded else ():
        if lists["consent_necessary"].among(told):
            if informs or length_of(words) > _NECESSARY_WORDS:
                return "unknown"
            if _takes_least(told, lists):
                return "reject"
    if lists["consent_accept"].among(words) or lists["consent_go_on"].leads(words, _LONGEST):
        return "accept"
    return "unknown" if informs else _harmless(words, lists)


def _harmless(words: Words, lists: Mapping[str, PhraseList]) -> Said:
    everything, extras, reject = lists["consent_everything"], lists["consent_extras"], lists["consent_reject"]
    plain, save = (lists["label_plain"], lists["consent_things"]), lists["consent_save"]
    if reject.leads(words, _REJECT_WORDS):
        return "unknown" if _unspoken(words, reject, *plain, lists["label_refused"], everything, extras) else "reject"
    if (offered := _offer(words, lists)) is not None:
        return offered
    if lists["layer_close"].is_exactly(words):
        return "close"
    if save.leads(words, _SHORT_WORDS):
        return "unknown" if _unspoken(words, save, *plain) else "save"
    if everything.among(words) or extras.among(words):
        return "unknown"
    return "manage" if lists["consent_manage"].leads(words, _SHORT_WORDS) else "unknown"


def _offer(words: Words, lists: Mapping[str, PhraseList]) -> Said | None:
    """What is turned down may be refused or put off; whoever adds words of his own is only believed about offers."""
    outcomes: tuple[tuple[str, Said], ...] = (("offer_declined", "decline"), ("offer_postponed", "close"))
    for name, outcome in outcomes:
        if lists[name].leads(words, _OFFER_WORDS):
            return "excuse" if _unspoken(words, lists[name], lists["label_plain"]) else outcome
    return None


def says_all(text: str) -> bool:
    return consent_lists()["consent_everything"].among(words_of(text))
