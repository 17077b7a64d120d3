"""From stored findings to a plain word about each promise."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from bench.aims import AIMS, Aim
from bench.results import Finding, Section

Word = Literal["met", "missed", "met on a smaller sample", "met in part", "told", "not measured"]


@dataclass(frozen=True, slots=True)
class Told:
    """A finding and the section it comes from."""

    section: Section
    finding: Finding


@dataclass(frozen=True, slots=True)
class Judged:
    """A promise, what was found about it, the benchmarks that owe a finding, and the word."""

    aim: Aim
    told: tuple[Told, ...]
    missing: tuple[str, ...]
    word: Word


def word_of(finding: Finding) -> str:
    """About one figure alone."""
    if finding.met is None:
        return "not measured" if finding.bound else "told"
    if not finding.met:
        return "missed"
    return "met on a smaller sample" if finding.smaller else "met"


def _too_small(told: Sequence[Told]) -> list[Told]:
    """A figure is short of its promise only if no other run of the same measured enough."""
    whole = {(one.section.name, one.finding.what) for one in told if not one.finding.smaller}
    return [one for one in told if one.finding.smaller and (one.section.name, one.finding.what) not in whole]


def enough(one: Judged) -> Judged:
    """Without the figures of smaller samples where a larger one told the same."""
    small = _too_small(one.told)
    return replace(one, told=tuple(told for told in one.told if not told.finding.smaller or told in small))


def _word(told: Sequence[Told], missing: Sequence[str]) -> Word:
    judged = [one for one in told if one.finding.met is not None]
    if not judged:
        return "told" if any(not one.finding.bound for one in told) else "not measured"
    if any(one.finding.met is False for one in judged):
        return "missed"
    if missing:
        return "met in part"
    return "met on a smaller sample" if _too_small(judged) else "met"


def judged(aim: Aim, sections: Sequence[Section]) -> Judged:
    """Sections that broke off owe what they had not yet told, so they count as missing."""
    told = tuple(Told(one, found) for one in sections for found in one.findings if found.aim == aim.key)
    whole = {one.section.name for one in told if one.section.status == "done"}
    missing = tuple(name for name in aim.sections if name not in whole)
    return Judged(aim, told, missing, _word(told, missing))


def verdicts(sections: Sequence[Section]) -> list[Judged]:
    return [judged(aim, sections) for aim in AIMS]
