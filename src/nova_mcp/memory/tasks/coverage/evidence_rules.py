"""What of a unit is proven by what was seen of it, so that it only ever rises; pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

from nova_mcp.evidence.grades import WEAKNESS, Grade, GradeName, LocatorKind, SeenWindow, grade
from nova_mcp.memory.tasks.coverage.locators import LocatorType


@dataclass(frozen=True, slots=True)
class UnitEvidence:
    """The evidence columns of a unit: its grade, and the best visit that stands behind it."""

    grade: Grade
    observed: int = 0
    reads: int = 0
    dwell_ms: int = 0
    ended_at_ms: int | None = None


def unseen(locator: LocatorType | None) -> Grade:
    """The grade of a unit of which nothing was seen."""
    return grade(_kind(locator), (), ledger_complete=True)


def as_told(found: Grade, *, ledger_gap: bool) -> Grade:
    """A gap in the ledger turns `none` into `unknown` and nothing else."""
    return Grade("unknown", "ingestion_incomplete") if ledger_gap and found.name == "none" else found


def strength(found: Grade) -> int:
    """Orders grades; what a later look finds counts only where it is stronger."""
    if found.name == "strong":
        return 100
    if found.name == "weak":
        return 10 + (WEAKNESS.index(found.reason_code) if found.reason_code in WEAKNESS else 0)
    return 0


def raised(known: UnitEvidence, locator: LocatorType, seen: Iterable[SeenWindow], observed: int = 0) -> UnitEvidence:
    """A unit's evidence after more was seen of it; never less than it was."""
    windows = list(seen)
    best = max(windows, key=_worth, default=None)
    found = grade(_kind(locator), windows, ledger_complete=True)
    if best is None or strength(found) < strength(known.grade):
        return UnitEvidence(known.grade, known.observed + observed, known.reads, known.dwell_ms, known.ended_at_ms)
    window = best.window
    if strength(found) == strength(known.grade) and (window.reads, window.dwell_ms) < (known.reads, known.dwell_ms):
        return UnitEvidence(found, known.observed + observed, known.reads, known.dwell_ms, known.ended_at_ms)
    return UnitEvidence(found, known.observed + observed, window.reads, window.dwell_ms, window.last_call_end_ms)


def stored_grade(name: str, reason_code: str | None) -> Grade:
    return Grade(cast(GradeName, name), reason_code)


def _kind(locator: LocatorType | None) -> LocatorKind | None:
    return None if locator is None else "selector" if locator == "selector" else "url"


def _worth(seen: SeenWindow) -> tuple[bool, bool, int, int]:
    believable = not seen.error_page and not seen.agent_scripted
    return seen.proves, believable, seen.window.reads, seen.window.dwell_ms
