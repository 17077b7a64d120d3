"""Words of a text as they are compared: one spelling, no filler words; pure."""

import re
import unicodedata
from collections.abc import Collection
from typing import Final

_WORD: Final = re.compile(r"[^\W_]+")
_BLANKS: Final = re.compile(r"\s+")

# Words that say how a sentence is built and nothing about what it is about, in English and German.
STOPWORDS: Final = frozenset(
    {
        *("a", "about", "after", "all", "also", "an", "and", "any", "are", "as", "at", "be", "been", "before", "being"),
        *("between", "but", "by", "can", "could", "did", "do", "does", "doing", "done", "each", "for", "from", "had"),
        *("has", "have", "having", "he", "her", "here", "him", "his", "how", "if", "in", "into", "is", "it", "its"),
        *("just", "may", "me", "more", "most", "must", "my", "no", "nor", "not", "of", "off", "on", "once", "only"),
        *("or", "other", "our", "out", "over", "own", "please", "shall", "she", "should", "so", "some", "such", "than"),
        *("that", "the", "their", "them", "then", "there", "these", "they", "this", "those", "through", "to", "too"),
        *("under", "until", "up", "us", "very", "was", "we", "were", "what", "when", "where", "which", "while", "who"),
        *("whom", "why", "will", "with", "would", "you", "your"),
        *("aber", "alle", "allem", "allen", "aller", "alles", "als", "also", "am", "andere", "auch", "auf", "aus"),
        *("bei", "beim", "bin", "bis", "bitte", "da", "damit", "dann", "das", "dass", "dein", "deine", "dem", "den"),
        *("denn", "der", "des", "dich", "die", "dies", "diese", "diesem", "diesen", "dieser", "dieses", "dir", "doch"),
        *("dort", "du", "durch", "ein", "eine", "einem", "einen", "einer", "eines", "er", "es", "euch", "euer", "für"),
        *("gegen", "hab", "habe", "haben", "hat", "hatte", "hier", "ich", "ihm", "ihn", "ihnen", "ihr", "ihre", "im"),
        *("in", "ins", "ist", "ja", "jede", "jedem", "jeden", "jeder", "jedes", "kann", "kein", "keine", "können"),
        *("man", "mein", "meine", "mich", "mir", "mit", "muss", "müssen", "nach", "nein", "nicht", "noch", "nun"),
        *("nur", "ob", "oder", "ohne", "sehr", "sein", "seine", "sich", "sie", "sind", "so", "soll", "sollen", "über"),
        *("um", "und", "uns", "unser", "unter", "vom", "von", "vor", "war", "waren", "was", "weil", "wenn", "wer"),
        *("werden", "wie", "wir", "wird", "wo", "zu", "zum", "zur", "zwischen"),
    }
)


def folded(text: str) -> str:
    """The one spelling in which texts are compared; doing it twice changes nothing."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()).casefold()


def plain(text: str) -> str:
    """The same with single blanks and nothing around it."""
    return _BLANKS.sub(" ", folded(text)).strip()


def every_word(text: str) -> tuple[str, ...]:
    """All words of two letters or more, each once and in order."""
    return tuple(word for word in dict.fromkeys(_WORD.findall(folded(text))) if len(word) > 1)


def words(text: str, without: Collection[str] = ()) -> tuple[str, ...]:
    """The words that say something: filler and `without` are left out."""
    return tuple(word for word in every_word(text) if word not in STOPWORDS and word not in without)


def has_word(text: str, word: str) -> bool:
    """Whether a folded text has the word as a whole one."""
    start = text.find(word)
    while start >= 0:
        end = start + len(word)
        # A letter or digit beside it would make it another word.
        if not (start and text[start - 1].isalnum()) and not (end < len(text) and text[end].isalnum()):
            return True
        start = text.find(word, start + 1)
    return False


def cut(text: str, most: int) -> str:
    """The text, or its beginning and an ellipsis, in at most so many characters."""
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def some(count: int, one: str, many: str | None = None) -> str:
    """So many of something, as people say it."""
    return f"{count} {one if count == 1 else many or one + 's'}"
