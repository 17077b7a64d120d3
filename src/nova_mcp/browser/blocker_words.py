"""Words on the controls of layers in four languages: which of them accept, reject, close, manage or save."""

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Final, Literal

from nova_mcp.browser.wording import words_of

# `decline` turns an offer down, `excuse` does so with words of its own; a request for consent is not refused by those.
Said = Literal["accept", "reject", "decline", "excuse", "close", "save", "manage", "unknown"]
Words = tuple[str, ...]

CLOSE_SIGNS: Final = frozenset("×✕✖✗✘╳⨯🗙❌xX")
_NECESSARY_WORDS: Final = 9
_REJECT_WORDS: Final = 8
_OFFER_WORDS: Final = 12
_SHORT_WORDS: Final = 6
_VERB_LAST: Final = frozenset({"de"})


@dataclass(frozen=True, slots=True)
class PhraseList:
    """Phrases by their first word, and those that may end a label by their last."""

    first: Mapping[str, tuple[Words, ...]]
    last: Mapping[str, tuple[Words, ...]]

    def at(self, words: Words, index: int) -> Words | None:
        """The phrase that stands at this place."""
        found = self.first.get(words[index], ())
        return next((phrase for phrase in found if words[index : index + len(phrase)] == phrase), None)

    def among(self, words: Words) -> bool:
        """Whether one of the phrases stands anywhere, as whole words."""
        return any(self.at(words, index) is not None for index in range(len(words)))

    def leads(self, words: Words, most: int) -> bool:
        """Whether a label is a phrase and little else: it begins with it, or ends with it in German."""
        if not words or len(words) > most:
            return False
        if self.at(words, 0) is not None:
            return True
        return any(words[-len(phrase) :] == phrase for phrase in self.last.get(words[-1], ()))

    def is_exactly(self, words: Words) -> bool:
        return bool(words) and words in self.first.get(words[0], ())


def _phrases(lists: Mapping[str, list[str]]) -> PhraseList:
    first: dict[str, list[Words]] = {}
    last: dict[str, list[Words]] = {}
    for language, phrases in lists.items():
        for text in phrases:
            words = words_of(text)
            first.setdefault(words[0], []).append(words)
            if language in _VERB_LAST:
                last.setdefault(words[-1], []).append(words)
    return PhraseList({w: tuple(found) for w, found in first.items()}, {w: tuple(found) for w, found in last.items()})


@functools.cache
def consent_lists() -> Mapping[str, PhraseList]:
    """The shipped lists; the page reads the same file."""
    raw = json.loads(files("nova_mcp.browser").joinpath("data/consent_words.json").read_text("utf-8"))
    return {name: _phrases(lists) for name, lists in raw.items()}


def _unspoken(words: Words, *known: PhraseList) -> Words:
    """The words of a label that no phrase of these lists covers.

    A label is understood whole or not at all: one more word may turn "only the necessary" into "and the rest".
    """
    spoken: set[int] = set()
    for phrases in known:
        for index in range(len(words)):
            for phrase in phrases.first.get(words[index], ()):
                if words[index : index + len(phrase)] == phrase:
                    spoken.update(range(index, index + len(phrase)))
    return tuple(word for index, word in enumerate(words) if index not in spoken)


def _takes_least(words: Words, lists: Mapping[str, PhraseList]) -> bool:
    """Whether a label with words for the necessary takes that and nothing besides."""
    necessary, negation = lists["consent_necessary"], lists["consent_negation"]
    found = [phrase for index in range(len(words)) if (phrase := necessary.at(words, index)) is not None]
    negated = [negation.among(phrase) for phrase in found]
    rest = _unspoken(words, necessary, lists["label_plain"])
    if any(negated):
        return all(negated) and not rest
    # "Accept only the necessary": one word of acceptance belongs to it.
    return not rest or (len(rest) == 1 and lists["consent_accept"].among(rest))


def said_by(text: str) -> Said | None:
    """What a label says; None when it says nothing.

    The order decides: what takes only the necessary is no acceptance, and whatever accepts is nothing else.
    """
    said = " ".join(text.split())
    if not said:
        return None
    if said in CLOSE_SIGNS:
        return "close"
    lists, words = consent_lists(), words_of(said)
    if not words:
        return "unknown"
    informs = lists["label_informs"].leads(words, 40)
    bounded = not lists["consent_everything"].among(words) and not lists["consent_extras"].among(words)
    if lists["consent_necessary"].among(words) and bounded:
        if informs or len(words) > _NECESSARY_WORDS:
            return "unknown"
        if _takes_least(words, lists):
            return "reject"
    if lists["consent_accept"].among(words) or lists["consent_go_on"].leads(words, 40):
        return "accept"
    return "unknown" if informs else _harmless(words, lists)


def _harmless(words: Words, lists: Mapping[str, PhraseList]) -> Said:
    plain, everything, extras = lists["label_plain"], lists["consent_everything"], lists["consent_extras"]
    reject, save = lists["consent_reject"], lists["consent_save"]
    if reject.leads(words, _REJECT_WORDS):
        return "unknown" if _unspoken(words, reject, plain, lists["label_refused"], everything, extras) else "reject"
    if (offered := _offer(words, lists)) is not None:
        return offered
    if lists["layer_close"].is_exactly(words):
        return "close"
    if save.leads(words, _SHORT_WORDS):
        return "unknown" if _unspoken(words, save, plain) else "save"
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
