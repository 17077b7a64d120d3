"""Which scans can be believed, and for which runs they cover a page; pure."""

from dataclasses import dataclass
from typing import Final, Literal

from nova_mcp.evidence.page_sights import ScanMeasures
from nova_mcp.memory.tasks.model import KindPolicy, ScanId

FULL_TEXT: Final[ScanId] = "nova_full_page_text_v1"
SPELLING: Final[ScanId] = "nova_i18n_spellcheck_v1"
STRUCTURE: Final[ScanId] = "nova_structured_dom_v1"
TEXT_SCANS: Final = frozenset({FULL_TEXT, SPELLING})

TrustReason = Literal["scan_failed", "effective_url_mismatch", "extraction_exceeds_measure", "server_registered_scan"]
Ineligible = Literal[
    "untrusted",
    "error_page",
    "agent_scripted",
    "hydration_unchecked",
    "hydration_unstable",
    "scan_not_accepted_for_kind",
    "no_measurable_text",
    "text_coverage_below_0_85",
    "channels_missing",
    "iframes_not_included",
]
OK: Final = "ok"
EXTRA_SCOPE: Final = "extra_scope_url"
EXCLUDED: Final = "unit_excluded"

# Percentages in whole numbers, so that no rounding decides.
COVERED_PERCENT: Final = 85
SLACK_PERCENT: Final = 2
SLACK_CHARS: Final = 4
FIRST_ERROR: Final = 400

_POLICIES: Final[dict[str, KindPolicy]] = {"route_inventory": "min3", "exploratory": "min3", "ui_smoke": "min2"}
_RECOMMENDED: Final[dict[str, ScanId]] = {
    "content_audit": SPELLING,
    "compliance": SPELLING,
    "legal": SPELLING,
    "route_inventory": STRUCTURE,
    "ui_smoke": STRUCTURE,
}


@dataclass(frozen=True, slots=True)
class Trust:
    reason: TrustReason

    @property
    def trusted(self) -> bool:
        return self.reason == "server_registered_scan"


@dataclass(frozen=True, slots=True)
class Judged:
    """A scan as it is held against a run: what was measured, and what its document was worth."""

    scan_id: str
    measures: ScanMeasures
    trusted: bool
    agent_scripted: bool
    asks_channels: bool = True
    # The browser's own page where no server answered: it has no status to be known by.
    unanswered: bool = False

    @property
    def error_page(self) -> bool:
        return self.unanswered or is_error(self.measures.http_status)


def scan_trust(measures: ScanMeasures) -> Trust:
    """The first failure wins. What is extracted is held against a measure that the script has no part in."""
    if measures.failed:
        return Trust("scan_failed")
    if measures.url_changed:
        return Trust("effective_url_mismatch")
    over = measures.extracted_chars - measures.measured_chars
    if over > SLACK_CHARS and 100 * over > SLACK_PERCENT * measures.measured_chars:
        return Trust("extraction_exceeds_measure")
    return Trust("server_registered_scan")


def scan_eligibility(scan: Judged, policy: KindPolicy) -> Ineligible | Literal["ok"]:
    """Whether a scan may cover a page of a run with that policy; the first failure wins."""
    measures, is_text = scan.measures, scan.scan_id in TEXT_SCANS
    if not scan.trusted:
        return "untrusted"
    if scan.error_page:
        return "error_page"
    if scan.agent_scripted:
        return "agent_scripted"
    if measures.hydration == "unchecked":
        return "hydration_unchecked"
    if measures.hydration == "unstable":
        return "hydration_unstable"
    if policy == "all" and not is_text:
        return "scan_not_accepted_for_kind"
    return _text_eligibility(scan) if is_text else "ok"


def _text_eligibility(scan: Judged) -> Ineligible | Literal["ok"]:
    measures = scan.measures
    if measures.measured_chars == 0:
        return "no_measurable_text"
    if not measures.whole or 100 * measures.extracted_chars < COVERED_PERCENT * measures.measured_chars:
        return "text_coverage_below_0_85"
    if scan.asks_channels and not measures.channels.complete:
        return "channels_missing"
    if measures.frames and not measures.frames_included:
        return "iframes_not_included"
    return "ok"


def is_error(http_status: int | None) -> bool:
    return http_status is not None and http_status >= FIRST_ERROR


def coverage_ratio(measures: ScanMeasures) -> float | None:
    """Nothing for a page without text."""
    if measures.measured_chars == 0:
        return None
    return round(measures.extracted_chars / measures.measured_chars, 4)


def policy_of(task_kind: str | None) -> KindPolicy:
    """What a kind of task asks of scans; a kind that nobody named asks for everything."""
    return "all" if task_kind is None else _POLICIES.get(task_kind, "all")


def recommended_scan(task_kind: str | None) -> ScanId:
    return FULL_TEXT if task_kind is None else _RECOMMENDED.get(task_kind, FULL_TEXT)
