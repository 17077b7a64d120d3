"""Registered scans: proof that a page was taken in as a whole, and what that is worth to open runs."""

from dataclasses import replace
from typing import Literal

from pydantic import Field

from nova_mcp.browser.page import scan_hash
from nova_mcp.browser.perceive.element_lines import one_line
from nova_mcp.browser.read.coverage import Block, ScanLook, ScanOptions, Skeleton, scan, seen
from nova_mcp.browser.read.text import as_page_text
from nova_mcp.core.keywords import some
from nova_mcp.errors import InvalidParams
from nova_mcp.evidence.page_sights import Credit, Hydration
from nova_mcp.memory.tasks.coverage.rules import coverage_ratio, scan_trust
from nova_mcp.memory.tasks.model import SCAN_IDS
from nova_mcp.tools.catalogue import Catalogue
from nova_mcp.tools.context import ToolContext
from nova_mcp.tools.spec import LONGEST_URL, Params, Part, Result, TargetParams, maybe, tool

LABELLED = "nova_i18n_spellcheck_v1"
# Waiting for the page, then three questions to it.
SCANNING_MS = 35_000


class ScopeOptions(Params):
    include_shadow_dom: bool = True
    include_iframes: bool = True
    wait_for_hydration: bool = True
    hydration_timeout_ms: int = Field(5_000, ge=0, le=30_000)


class CoverageScanParams(TargetParams):
    scan_id: str = Field(min_length=1, max_length=64)
    max_text_chars: int = Field(8_000, ge=0, le=200_000)
    scope_options: ScopeOptions = ScopeOptions()


class DocumentPart(Part):
    effective_url: str
    http_status: int | None
    visible_text_chars_measured: int
    node_count: int
    iframe_count: int
    opaque_frames: int
    shadow_root_count: int
    hydration: Hydration


class SkeletonPart(Part):
    tag_order: list[str]
    landmarks: list[str]
    roles: list[str]
    counts: dict[str, int]


class HiddenTextPart(Part):
    elements: int
    chars: int


class ExtractionPart(Part):
    text_chars: int
    text_coverage_ratio: float | None
    included_visible_text: bool
    included_aria_labels: bool
    included_inputs: bool
    included_alt_text: bool
    included_shadow_dom: bool
    included_iframes: bool
    hidden_text: HiddenTextPart | None = maybe()
    dom_skeleton: SkeletonPart


class TrustPart(Part):
    trusted: bool
    reason: str


class EvidencePart(Part):
    version: int = 1
    producer: Literal["nova_registered_scan"] = "nova_registered_scan"
    registered_scan_id: str
    scan_hash: str
    document: DocumentPart
    extraction: ExtractionPart
    trust: TrustPart


class CreditPart(Part):
    instance_id: str
    unit_key: str | None
    eligible: bool
    reason_code: str
    remaining: int
    next_url: str | None

    def line(self) -> str:
        after = f", next {one_line(self.next_url, 300)}" if self.next_url else ""
        return f"run {self.instance_id}: {self.reason_code}, {some(self.remaining, 'page')} left{after}"


class CoverageScanResult(Result):
    target_id: str
    url_before: str
    url_after: str
    coverage_evidence: EvidencePart
    page_text: str = Field(serialization_alias="text")
    text_truncated: bool
    credited: list[CreditPart] = Field(default_factory=list)

    def text(self) -> str:
        """What Nova says comes first; everything below the blank line is the page's."""
        evidence = self.coverage_evidence
        ratio = evidence.extraction.text_coverage_ratio
        about = [
            f"{self.target_id} {one_line(self.url_after, 300)} · {evidence.registered_scan_id}",
            f"{evidence.extraction.text_chars} of {evidence.document.visible_text_chars_measured} characters"
            + ("" if ratio is None else f" ({ratio:.0%})"),
            f"hydration {evidence.document.hydration}",
            evidence.trust.reason if evidence.trust.trusted else f"untrusted: {evidence.trust.reason}",
        ]
        if evidence.document.opaque_frames:
            about.append(f"{evidence.document.opaque_frames} frames of other sites not read")
        lines = [" · ".join(about), *(credit.line() for credit in self.credited)]
        cut = "\n[cut: raise maxTextChars for more]" if self.text_truncated else ""
        return "\n".join(lines) + f"\n\n{as_page_text(self.page_text)}{cut}" if self.page_text else "\n".join(lines)


def _known(p: CoverageScanParams, catalogue: Catalogue) -> None:
    if p.scan_id not in SCAN_IDS:
        raise InvalidParams(
            "unknown_scan",
            f"There is no registered scan {p.scan_id!r}.",
            details={"knownScanIds": list(SCAN_IDS)},
        )


@tool(
    title="Scan a page for coverage",
    effect="read",
    bundles=("page_reading", "task_memory"),
    deadline_ms=lambda p: p.scope_options.hydration_timeout_ms + SCANNING_MS,
    check=_known,
)
async def coverage_scan(ctx: ToolContext, p: CoverageScanParams) -> CoverageScanResult:
    """Takes a whole page in by a registered scan and credits it to your open runs over pages. Changes nothing."""
    ctx.tab.require_ready()
    scope = p.scope_options
    await ctx.call.progress(0, None, "waiting for the page to settle")
    options = ScanOptions(
        p.scan_id,
        scope.include_shadow_dom,
        scope.include_iframes,
        scope.hydration_timeout_ms if scope.wait_for_hydration else None,
        p.max_text_chars,
    )
    look = await scan(ctx.tab, options)
    redacts = ctx.secrets.redactor.text
    look = replace(look, links=tuple(link for link in look.links if redacts(link) == link))
    skeleton = _skeleton(look.skeleton)
    ctx.evidence.signals = replace(
        ctx.evidence.signals, scan=seen(look, p.scan_id, skeleton.model_dump_json(by_alias=True))
    )
    if not look.measures.failed:
        ctx.evidence.flags |= {"content_exposed", "dom_exposed", "full_document"}
    told = _told(ctx.tab.target_id, p, look, skeleton)
    # Which runs it covers is decided in the transaction that records the scan.
    credited = await ctx.commit_derived(lambda conn, record, link: record.signals.credits)
    return told.model_copy(update={"credited": [_credit(one) for one in credited]})


def _told(target_id: str, p: CoverageScanParams, look: ScanLook, skeleton: SkeletonPart) -> CoverageScanResult:
    page_text, truncated = _page_text(p, look)
    measures, channels = look.measures, look.measures.channels
    trust = scan_trust(measures)
    return CoverageScanResult(
        target_id=target_id,
        url_before=one_line(look.url_before, LONGEST_URL),
        url_after=one_line(look.url_after, LONGEST_URL),
        coverage_evidence=EvidencePart(
            registered_scan_id=p.scan_id,
            scan_hash=scan_hash(p.scan_id),
            document=DocumentPart(
                effective_url=one_line(look.url_after, LONGEST_URL),
                http_status=measures.http_status,
                visible_text_chars_measured=measures.measured_chars,
                node_count=measures.nodes,
                iframe_count=measures.iframes,
                opaque_frames=measures.opaque_frames,
                shadow_root_count=measures.shadow_roots,
                hydration=measures.hydration,
            ),
            extraction=ExtractionPart(
                text_chars=measures.extracted_chars,
                text_coverage_ratio=coverage_ratio(measures) if channels.visible_text else None,
                included_visible_text=channels.visible_text,
                included_aria_labels=channels.aria_labels,
                included_inputs=channels.inputs,
                included_alt_text=channels.alt_text,
                included_shadow_dom=measures.shadow_included,
                included_iframes=measures.frames_included,
                hidden_text=None
                if look.hidden is None
                else HiddenTextPart(elements=look.hidden[0], chars=look.hidden[1]),
                dom_skeleton=skeleton,
            ),
            trust=TrustPart(trusted=trust.trusted, reason=trust.reason),
        ),
        page_text=page_text,
        text_truncated=truncated,
    )


def _page_text(p: CoverageScanParams, look: ScanLook) -> tuple[str, bool]:
    whole = "\n".join(_line(block, named=p.scan_id == LABELLED) for block in look.blocks)
    handed = sum(len(block.text) for block in look.blocks)
    cut = len(look.blocks) < look.total or handed < look.length or len(whole) > p.max_text_chars
    return whole[: p.max_text_chars], cut


def _line(block: Block, *, named: bool) -> str:
    """Visible text as it stands; what is said in another way is marked with it, and with its language where asked."""
    marks = [block.lang or "?"] if named else []
    if block.channel != "text":
        marks.append(block.channel)
    return f"[{' '.join(marks)}] {block.text}" if marks else block.text


def _skeleton(found: Skeleton) -> SkeletonPart:
    return SkeletonPart(
        tag_order=list(found.tag_order),
        landmarks=list(found.landmarks),
        roles=list(found.roles),
        counts=dict(found.counts),
    )


def _credit(credit: Credit) -> CreditPart:
    return CreditPart(
        instance_id=credit.instance_id,
        unit_key=credit.unit_key,
        eligible=credit.eligible,
        reason_code=credit.reason_code,
        remaining=credit.remaining,
        next_url=credit.next_url,
    )
