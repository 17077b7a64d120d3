"""How well a piece of work is proven by what was observed: strong, weak, none or unknown; pure."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from nova_mcp.evidence.rules import VisitWindow

GradeName = Literal["strong", "weak", "none", "unknown"]
LocatorKind = Literal["url", "selector"]
EvidenceMode = Literal["require_observed", "require_strong"]

STRONG_DWELL_MS: Final = 1_000
TOP_EXCEPTIONS: Final = 10
# Why a grade is only weak; what is farther from proof stands first.
WEAKNESS: Final = ("no_read", "agent_scripted", "error_page", "dwell_too_short", "locator_weak_only")
# Calls that show an agent what a page says; `search_text` counts with a hit, `perceive` beyond a glance.
_READING: Final = frozenset({"nova.read_text", "nova.extract_table", "nova.coverage_scan"})


@dataclass(frozen=True, slots=True)
class Grade:
    name: GradeName
    reason_code: str | None = None


@dataclass(frozen=True, slots=True)
class SeenWindow:
    """A visit that matches what is graded, and whether its document can be believed."""

    window: VisitWindow
    error_page: bool = False
    agent_scripted: bool = False

    @property
    def proves(self) -> bool:
        read = self.window.reads >= 1 and self.window.dwell_ms >= STRONG_DWELL_MS
        return read and not self.error_page and not self.agent_scripted


def is_read_like(tool_name: str, *, mode: str | None = None, hits: int = 0) -> bool:
    if tool_name == "nova.perceive":
        return mode != "state"
    return tool_name in _READING or (tool_name == "nova.search_text" and hits > 0)


def grade(locator: LocatorKind | None, windows: Sequence[SeenWindow], *, ledger_complete: bool) -> Grade:
    """The first row that applies decides; a gap in the ledger turns `none` into `unknown` and nothing else."""
    if locator is None:
        return Grade("unknown", "no_locator")
    if not windows:
        return Grade("none", "no_matching_observation") if ledger_complete else Grade("unknown", "ingestion_incomplete")
    if locator == "selector":
        return Grade("weak", "locator_weak_only")
    if any(seen.proves for seen in windows):
        return Grade("strong")
    return Grade("weak", _weakness(windows))


def _weakness(windows: Sequence[SeenWindow]) -> str:
    """The reason nearest to proof. Coming to a page is the least: who goes on to read it where it can't be believed is
    told that, and not that it was not read."""
    return max((_lacks(seen) for seen in windows), key=WEAKNESS.index)


def _lacks(seen: SeenWindow) -> str:
    if seen.error_page:
        return "error_page"
    if seen.agent_scripted:
        return "agent_scripted"
    return "dwell_too_short" if seen.window.reads else "no_read"


@dataclass(frozen=True, slots=True)
class Claimed:
    """A unit an agent says it has checked, with the grade of what was seen of it."""

    unit_key: str
    grade: Grade


@dataclass(frozen=True, slots=True)
class EvidenceSummary:
    """Claims held against observations."""

    claimed_checked: int
    observed_checked: int
    strong: int
    weak: int
    none: int
    unknown: int
    gap_percent: float
    ingestion_complete: bool
    top_exceptions: tuple[Claimed, ...] = ()


def summarize(
    claims: Iterable[Claimed], mode: EvidenceMode, *, unknown_passes: bool, ledger_complete: bool
) -> EvidenceSummary:
    listed = sorted(claims, key=lambda claim: claim.unit_key)
    accepted = accepted_grades(mode, unknown_passes=unknown_passes)
    short = [claim for claim in listed if claim.grade.name not in accepted]
    return summary_of(Counter(claim.grade.name for claim in listed), short, accepted, ledger_complete=ledger_complete)


def accepted_grades(mode: EvidenceMode, *, unknown_passes: bool) -> frozenset[GradeName]:
    """The grades with which a claim counts as observed."""
    accepted: frozenset[GradeName] = frozenset({"strong"} if mode == "require_strong" else {"strong", "weak"})
    return accepted | {"unknown"} if unknown_passes else accepted


def summary_of(
    count: Mapping[GradeName, int],
    short: Sequence[Claimed],
    accepted: Collection[GradeName],
    *,
    ledger_complete: bool,
) -> EvidenceSummary:
    """The same from counts, where the claims are too many to be listed; `short` are the first that lack proof."""
    claimed = sum(count.values())
    observed = sum(number for name, number in count.items() if name in accepted)
    return EvidenceSummary(
        claimed_checked=claimed,
        observed_checked=observed,
        strong=count.get("strong", 0),
        weak=count.get("weak", 0),
        none=count.get("none", 0),
        unknown=count.get("unknown", 0),
        gap_percent=round(100 * (claimed - observed) / claimed, 1) if claimed else 0.0,
        ingestion_complete=ledger_complete,
        top_exceptions=tuple(short[:TOP_EXCEPTIONS]),
    )


def gap_refused(summary: EvidenceSummary, max_gap_percent: int) -> bool:
    """In whole numbers, so that no rounding decides."""
    missing = summary.claimed_checked - summary.observed_checked
    return 100 * missing > max_gap_percent * summary.claimed_checked
