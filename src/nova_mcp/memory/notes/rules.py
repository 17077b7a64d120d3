"""Decides what notes come to: how fast memory fades, what is never kept, which note fits, which one has to go; pure."""

import hashlib
import math
import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from nova_mcp.core.hosts import HostRule, is_ip, own_labels, site, under
from nova_mcp.core.keywords import folded, has_word, plain, words
from nova_mcp.memory.notes.model import ExclusionReason, MemoryType, NoteScore, OperatorNote, Ranked, Source

DAY_MS: Final = 24 * 60 * 60 * 1000
HALF_LIFE_MS: Final[dict[MemoryType, int]] = {
    "preference": 120 * DAY_MS,
    "note": 60 * DAY_MS,
    "context": 14 * DAY_MS,
}
# At this score a memory counts as forgotten.
FORGOTTEN: Final = 0.05
_FRESH_HALF_LIVES: Final = math.log2(1 / FORGOTTEN)
_LEAST_SCORE: Final = 2.0**-1000

REINFORCED_EVERY_MS: Final = DAY_MS
REINFORCEMENT: Final = 0.25

FRESHNESS_HALF_LIFE_DAYS: Final = 180
CONTENT_WEIGHT: Final = 0.7
IDLE_MS: Final = 90 * DAY_MS


# -- fading


def decay_score(memory_type: MemoryType, expires_at_ms: int, now_ms: int) -> float:
    """How present a memory is: 1 when fresh, halved after every half-life, 0.05 at the instant it expires."""
    half_lives = (expires_at_ms - now_ms) / HALF_LIFE_MS[memory_type]
    return min(1.0, max(_LEAST_SCORE, FORGOTTEN * math.exp2(min(half_lives, _FRESH_HALF_LIVES))))


def expiry_for(memory_type: MemoryType, score: float, now_ms: int) -> int:
    """The instant at which a memory of that score will have faded."""
    return now_ms + round(HALF_LIFE_MS[memory_type] * math.log2(score / FORGOTTEN))


def reinforce(memory_type: MemoryType, expires_at_ms: int, reinforced_at_ms: int | None, now_ms: int) -> int | None:
    """Until when a memory lives once it was recalled; None where recalling it changes nothing."""
    if now_ms >= expires_at_ms:
        return None
    if reinforced_at_ms is not None and now_ms - reinforced_at_ms < REINFORCED_EVERY_MS:
        return None
    score = decay_score(memory_type, expires_at_ms, now_ms)
    return max(expires_at_ms, expiry_for(memory_type, score + REINFORCEMENT * (1 - score), now_ms))


# -- identity


def text_identity(text: str) -> str:
    """Texts that differ only in blanks or in how letters are composed are the same."""
    return _digest(_settled(text))


def folded_identity(text: str) -> str:
    """The same for texts that may also differ in case."""
    return _digest(_settled(_settled(text).casefold()))


def memory_identity(domain: str, memory_type: MemoryType, url_pattern: str | None, text: str) -> str:
    return _digest("\x1f".join((domain, memory_type, url_pattern or "", text_identity(text))))


def content_fold(text: str) -> str:
    """How remembered text is searched."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def _settled(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


# -- secrets

_SHAPES: Final = (
    ("a key in PEM form", re.compile(r"-----BEGIN [A-Z0-9 ]+-----")),
    ("a signed token", re.compile(r"(?<![A-Za-z0-9])eyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]*")),
    ("an access key", re.compile(r"AKIA[0-9A-Z]{16}")),
    ("an access token", re.compile(r"gh[pousr]_[A-Za-z0-9]{36}")),
    ("an API key", re.compile(r"(?<![A-Za-z0-9])sk-[A-Za-z0-9_-]{20}")),
)
# `pin` ends many words; the others don't, and stand inside names such as accessToken.
_NAMED: Final = re.compile(
    r"(?:password|passwort|secret|token|(?<![a-z])pin)[\"'`*]*[^\S\n]*[:=][^\S\n]*(\S{4,})", re.IGNORECASE
)
_LETTERS: Final = re.compile(r"[^\W\d_]*")
# Written at one go, or in the groups that cards are printed in.
_NUMBERS: Final = re.compile(r"(?<!\d)(?:\d{13,19}|\d{4}([ -])\d{4}\1\d{4}\1\d{1,7}|\d{4}([ -])\d{6}\2\d{4,5})(?!\d)")


def secret_reason(text: str) -> str | None:
    """What in a text must not be kept, in words that don't repeat it; None when it may be."""
    seen = unicodedata.normalize("NFKC", text)
    for name, shape in _SHAPES:
        if shape.search(seen) is not None:
            return name
    if any(_passes_luhn(found.group()) for found in _NUMBERS.finditer(seen)):
        return "a card number"
    if any(_LETTERS.fullmatch(found.group(1)) is None for found in _NAMED.finditer(seen)):
        return "a credential"
    return None


def _passes_luhn(number: str) -> bool:
    digits = [int(sign) for sign in reversed(number) if sign.isdigit()]
    doubled = [2 * digit - 9 * (digit > 4) for digit in digits[1::2]]
    return (sum(digits[0::2]) + sum(doubled)) % 10 == 0


# -- hosts that nothing is remembered of

SENSITIVE_SUFFIXES: Final = frozenset(
    {"bank", "insurance", "creditcard", "health", "hospital", "clinic", "doctor", "dentist", "pharmacy"}
)
SENSITIVE_WORDS: Final = frozenset(
    {
        *("bank", "banking", "onlinebanking", "pay", "payment", "payments"),
        *("health", "healthcare", "medical", "patient"),
    }
)
SENSITIVE_CATEGORIES: Final = frozenset({"banking", "health"})


@dataclass(frozen=True, slots=True)
class Exclusions:
    """What the user listed, what is shipped, and how tenants are told apart."""

    listed: tuple[HostRule, ...] = ()
    allowed: tuple[str, ...] = ()
    sensitive_sites: frozenset[str] = frozenset()
    multi_tenant: frozenset[str] = frozenset()


def exclusion_reason(host: str, rules: Exclusions, categories: Collection[str] = ()) -> ExclusionReason | None:
    """Why nothing about a normalised host is remembered; `categories` is what kind of service it is known as."""
    if any(rule.covers(host) for rule in rules.listed):
        return "user_list"
    if any(under(host, one) for one in rules.allowed):
        return None
    name, _, last = host.rpartition(".")
    if name and last in SENSITIVE_SUFFIXES:
        return "sensitive_suffix"
    if site(host, rules.multi_tenant) in rules.sensitive_sites:
        return "sensitive_site"
    if not is_ip(host) and not SENSITIVE_WORDS.isdisjoint(_host_words(host)):
        return "sensitive_word"
    return None if SENSITIVE_CATEGORIES.isdisjoint(categories) else "sensitive_category"


def _host_words(host: str) -> Iterable[str]:
    return (word for label in own_labels(host) for word in label.split("-"))


def path_matches(pattern: str | None, path: str) -> bool:
    """Whether a memory's pattern takes the whole path; `*` stands for any run of characters."""
    if pattern is None:
        return True
    head, *rest = pattern.split("*")
    if not rest:
        return path == head
    *middle, tail = rest
    if not path.startswith(head) or len(path) < len(head) + len(tail) or not path.endswith(tail):
        return False
    at, end = len(head), len(path) - len(tail)
    for piece in middle:
        found = path.find(piece, at, end)
        if found < 0:
            return False
        at = found + len(piece)
    return True


# -- which memory has to go


@dataclass(frozen=True, slots=True)
class Evictable:
    """A memory as far as making room goes."""

    memory_id: int
    memory_type: MemoryType
    source: Source
    refreshed_at_ms: int
    expires_at_ms: int


def pick_evictions(rows: Iterable[Evictable], wanted: int, now_ms: int) -> tuple[int, ...] | None:
    """The faintest memories that agents wrote, the oldest first among equals; None when there are too few of them."""
    if wanted <= 0:
        return ()
    theirs = [row for row in rows if row.source == "agent"]
    if len(theirs) < wanted:
        return None
    theirs.sort(key=lambda row: (_presence(row, now_ms), row.refreshed_at_ms, row.memory_id))
    return tuple(row.memory_id for row in theirs[:wanted])


def _presence(row: Evictable, now_ms: int) -> float:
    """Orders as the score does, without its limits."""
    return (row.expires_at_ms - now_ms) / HALF_LIFE_MS[row.memory_type]


def pick_idle(notes: Iterable[OperatorNote], wanted: int, now_ms: int) -> tuple[str, ...] | None:
    """Agents' notes that nobody asked for and nobody touched for long, the oldest first; None when they don't do."""
    idle = [
        one for one in notes if one.source == "agent" and one.match_count == 0 and now_ms - one.updated_at_ms >= IDLE_MS
    ]
    if len(idle) < wanted:
        return None
    idle.sort(key=lambda one: (one.updated_at_ms, one.note_id))
    return tuple(one.note_id for one in idle[: max(0, wanted)])


# -- which note fits


@dataclass(frozen=True, slots=True)
class Keyword:
    text: str
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Hits:
    """Which keywords a note answers to, in their order: by its tags, and by its text."""

    tags: tuple[bool, ...]
    content: tuple[bool, ...]


def keywords(given: Iterable[str]) -> tuple[Keyword, ...]:
    """What is looked for; a keyword of filler words alone is none, and saying one twice adds nothing."""
    found = {plain(one): words(one) for one in given}
    return tuple(Keyword(text, parts) for text, parts in found.items() if parts)


def hits(note: OperatorNote, wanted: Sequence[Keyword]) -> Hits:
    names = {plain(tag) for tag in note.tags}
    tag_words = {word for tag in note.tags for word in words(tag)}
    text = f"{folded(note.content)}\n{folded(note.category or '')}"
    return Hits(
        tuple(one.text in names or tag_words.issuperset(one.words) for one in wanted),
        tuple(all(has_word(text, word) for word in one.words) for one in wanted),
    )


def rarity(every: Sequence[Hits]) -> tuple[float, ...]:
    """How much each keyword's being in a text tells, by how few texts it is in."""
    count = len(every)
    found = [sum(column) for column in zip(*(one.content for one in every), strict=True)]
    return tuple(math.log(1 + (count - number + 0.5) / (number + 0.5)) for number in found)


def score_note(found: Hits, weights: Sequence[float], age_ms: int) -> NoteScore:
    """How well a note answers; being asked for never makes it answer better."""
    asked = len(found.tags)
    total = sum(weights)
    tag = sum(found.tags) / asked if asked else 0.0
    content = sum(weight for weight, hit in zip(weights, found.content, strict=True) if hit) / total if total else 0.0
    # Sums of parts in another order than the whole may come out a hair above one.
    content = min(1.0, content)
    relevance = 1 - (1 - tag) * (1 - CONTENT_WEIGHT * content)
    freshness = 0.5 + 0.5 * math.exp2(-max(0, age_ms) / DAY_MS / FRESHNESS_HALF_LIFE_DAYS)
    return NoteScore(tag, content, relevance, freshness, relevance * freshness)


def rank_notes(notes: Sequence[OperatorNote], given: Iterable[str], now_ms: int, min_score: float) -> list[Ranked]:
    """The notes that answer to the keywords, best first."""
    wanted = keywords(given)
    if not wanted or not notes:
        return []
    found = [hits(note, wanted) for note in notes]
    weights = rarity(found)
    ranked = [
        Ranked(note, score_note(hit, weights, now_ms - note.updated_at_ms))
        for note, hit in zip(notes, found, strict=True)
    ]
    kept = [one for one in ranked if one.score.score >= min_score]
    return sorted(kept, key=lambda one: (-one.score.score, -one.note.updated_at_ms, one.note.note_id))
