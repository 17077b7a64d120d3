"""Fingerprints: how surely a situation is recognised from the signals that hold on a page; pure."""

import functools
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, get_args

from nova_mcp.core.page.selectors import normalize_selector
from nova_mcp.memory.knowledge.model import Fingerprint, Signal, SignalKind

# In hundredths: whole numbers keep every comparison exact.
WEIGHTS: Final[dict[SignalKind, int]] = {"dom": 100, "vendor": 85, "text": 70, "interaction": 60, "layout": 55}
KINDS: Final[tuple[SignalKind, ...]] = get_args(SignalKind)


@dataclass(frozen=True, slots=True)
class ObservedSignal:
    """A signal that holds on the page; without a kind it stands for any."""

    match: str
    kind: SignalKind | None = None


@dataclass(frozen=True, slots=True)
class SignalMatch:
    signal: Signal
    weight: float
    applicable: bool
    matched: bool


@dataclass(frozen=True, slots=True)
class Match:
    """How far a page fits a fingerprint, signal by signal."""

    confidence: float
    min_confidence: float
    signals: tuple[SignalMatch, ...]

    @property
    def reached(self) -> bool:
        """A page without a single matching signal is no match, however little was asked for."""
        return self.confidence > 0 and self.confidence >= self.min_confidence

    @property
    def half_reached(self) -> bool:
        return self.confidence > 0 and self.confidence >= self.min_confidence / 2


def plain(text: str) -> str:
    """One spelling of a text: case, blanks and compatible characters don't count."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


# The signals of a scope are compared with every page of it.
@functools.lru_cache(maxsize=16_384)
def spelled(kind: SignalKind, match: str) -> str:
    return normalize_selector(match) if kind == "dom" else plain(match)


def _subtags(locale: str) -> list[str]:
    return [part for part in locale.replace("_", "-").lower().split("-") if part]


def same_locale(one: str | None, other: str | None) -> bool:
    """Whether two locales don't exclude each other: `de` covers `de-AT`, and what is not said excludes nothing."""
    if not one or not other:
        return True
    left, right = _subtags(one), _subtags(other)
    size = min(len(left), len(right))
    return left[:size] == right[:size]


def applies(signal: Signal, locale: str | None) -> bool:
    return signal.kind != "text" or same_locale(signal.locale, locale)


def distinct(signals: Iterable[Signal]) -> tuple[Signal, ...]:
    """Signals without repetitions: saying the same thing twice doesn't make it weigh more."""
    found: dict[tuple[str, str, str | None], Signal] = {}
    for one in signals:
        locale = one.locale if one.kind == "text" else None
        found.setdefault((one.kind, spelled(one.kind, one.match), locale and locale.lower()), one)
    return tuple(found.values())


@dataclass(frozen=True, slots=True)
class PageSignals:
    """Everything that holds on a page, spelled once for all the fingerprints it is compared with."""

    by_kind: Mapping[SignalKind, frozenset[str]]

    def holds(self, signal: Signal) -> bool:
        return spelled(signal.kind, signal.match) in self.by_kind[signal.kind]


def page_signals(observed: Iterable[ObservedSignal]) -> PageSignals:
    named = list(observed)
    return PageSignals(
        {
            kind: frozenset(spelled(kind, one.match) for one in named if one.kind is None or one.kind == kind)
            for kind in KINDS
        }
    )


def holding(fingerprint: Fingerprint, observed: Iterable[ObservedSignal] | PageSignals) -> frozenset[Signal]:
    """The signals of a fingerprint that hold on the page, whatever its language."""
    seen = observed if isinstance(observed, PageSignals) else page_signals(observed)
    return frozenset(one for one in fingerprint.signals if seen.holds(one))


def match(
    fingerprint: Fingerprint, observed: Iterable[ObservedSignal] | PageSignals, locale: str | None = None
) -> Match:
    """Weight of what matched by weight of what could have."""
    held = {(one.kind, spelled(one.kind, one.match)) for one in holding(fingerprint, observed)}
    rows: list[SignalMatch] = []
    matched = applicable = 0
    for signal in distinct(fingerprint.signals):
        weight, fits = WEIGHTS[signal.kind], applies(signal, locale)
        hit = fits and (signal.kind, spelled(signal.kind, signal.match)) in held
        applicable += weight if fits else 0
        matched += weight if hit else 0
        rows.append(SignalMatch(signal, weight / 100, fits, hit))
    confidence = matched / applicable if applicable else 0.0
    return Match(confidence, fingerprint.min_confidence, tuple(rows))


def told(text: str) -> ObservedSignal:
    """A signal as a caller spells it: `kind:match`, or a bare match of any kind."""
    kind, colon, rest = text.partition(":")
    for known in KINDS:
        if colon and kind.strip().lower() == known and rest.strip():
            return ObservedSignal(rest.strip(), known)
    return ObservedSignal(text.strip())


def explained(fingerprint: Fingerprint, signals: Sequence[str], locale: str | None = None) -> Match:
    return match(fingerprint, [told(one) for one in signals], locale)
