"""What a recorded call proves about units of work, in the transaction that records it."""

import threading
from dataclasses import dataclass, replace
from typing import Final

from sqlalchemy import Connection

from nova_mcp.core.values import Owner
from nova_mcp.evidence.grades import is_read_like
from nova_mcp.evidence.model import CallRecord, Link
from nova_mcp.evidence.page_sights import Credit, ScanHint, ScanSeen, Sight
from nova_mcp.memory.tasks.coverage import evidence_store, site_urls, store, visit_store
from nova_mcp.memory.tasks.coverage.evidence_store import Findings, Run, Unit
from nova_mcp.memory.tasks.coverage.rules import (
    EXCLUDED,
    EXTRA_SCOPE,
    OK,
    Judged,
    is_error,
    policy_of,
    recommended_scan,
    scan_eligibility,
    scan_trust,
)
from nova_mcp.memory.tasks.coverage.store import StoredScan, Uncovered
from nova_mcp.memory.tasks.coverage.visits import PageCall, Step, stepped
from nova_mcp.memory.tasks.model import BEFORE_JOINING_MS

SCAN: Final = "nova.coverage_scan"
# A sequence has a record of its own besides those of its steps; the steps are what was done on pages.
SEQUENCE: Final = "nova.run_sequence"
# The ways a call may come whose answer reaches whoever made it.
HEARD: Final = frozenset({None, "call"})


@dataclass(frozen=True, slots=True)
class _Call:
    """One successful call on a page, taken apart."""

    record: CallRecord
    sight: Sight
    owner: Owner
    target_id: str
    read: bool

    @property
    def at_ms(self) -> int:
        return self.record.started_at_ms

    @property
    def ended_at_ms(self) -> int:
        return self.record.started_at_ms + self.record.duration_ms

    @property
    def selector_hash(self) -> str | None:
        return self.record.touched.selector_hash


class EvidenceCollector:
    """Keeps visits, scans and known addresses, and raises the units of the runs that a call belongs to."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._missed: dict[Owner, int] = {}
        self._marking: dict[Owner, int] = {}
        self._marked_by: str | None = None

    def missed(self, record: CallRecord) -> None:
        """A record was not written; the runs it may have belonged to learn of it with the next one that is."""
        with self._lock:
            for owner, at_ms in self._marking.items():
                self._missed.setdefault(owner, at_ms)
            self._marking = {}
            self._missed.setdefault(record.caller.owner, record.started_at_ms)

    def collect(self, conn: Connection, record: CallRecord, link: Link) -> None:
        self.mark_gaps(conn, record)
        call = _page_call(record)
        if call is None:
            return
        step = _visited(conn, call)
        fresh = step.current.window_id is None
        # Coming back to the page that one is on, by another spelling of its address, goes on with the same visit.
        if call.sight.redirected and (fresh or not call.sight.steady):
            visit_store.redirected(conn, call.owner, call.sight.redirected, call.sight.url_hash, call.ended_at_ms)
        if call.selector_hash is not None:
            visit_store.touch(conn, call.owner, call.selector_hash, call.at_ms)
        scan = _scanned(conn, call)
        _remember_addresses(conn, call, scan, fresh=fresh)
        runs = [_belonging(run, call) for run in evidence_store.open_runs(conn, call.owner)]
        if not runs:
            return
        found = _findings(conn, call, step, scan, min(run.since_ms for run in runs))
        led_here = {one.from_hash for one in found.redirects if one.to_hash == call.sight.url_hash}
        observed = {call.sight.url_hash, call.sight.path_hash} | led_here
        if call.selector_hash is not None:
            observed.add(call.selector_hash)
        units = evidence_store.apply(conn, runs, found, call.ended_at_ms, observed=observed)
        here = [unit for unit in units if unit.locator_hash in observed]
        if scan is not None:
            record.signals.credits.extend(_credits(conn, runs, here, scan))
        _hint(call, runs, here)

    def mark_gaps(self, conn: Connection, record: CallRecord) -> None:
        """Best effort: what this transaction marks is kept in mind until the next one shows that it was committed.

        A call that commits a write is preceded by it, so that no run is judged in ignorance of a gap.
        """
        if not self._missed and not self._marking:
            return
        with self._lock:
            if self._marked_by == record.call_id:
                return
            self._marked_by = record.call_id
            due, self._marking, self._missed = self._missed, self._missed, {}
        for owner in sorted(due):
            evidence_store.mark_gap(conn, owner, due[owner])


def _page_call(record: CallRecord) -> _Call | None:
    sight = record.signals.sight
    target_id = record.after.target_id or record.before.target_id
    if record.kind != "call" or record.outcome.kind != "ok" or sight is None or target_id is None:
        return None
    if record.tool_name == SEQUENCE:
        return None
    arguments = record.arguments if isinstance(record.arguments, dict) else {}
    mode = arguments.get("mode")
    hits = 1 if "content_exposed" in record.touched.flags else 0
    reads = is_read_like(record.tool_name, mode=mode if isinstance(mode, str) else None, hits=hits)
    scan = record.signals.scan
    # A scan that failed has shown nobody anything.
    shown = scan is None or not scan.measures.failed
    return _Call(record, sight, record.caller.owner, target_id, reads and shown and sight.steady)


def _belonging(run: Run, call: _Call) -> Run:
    """A member's call that was over before the member joined, and is recorded only now, was dated by a clock that has
    been set back: it belongs to the run all the same."""
    if call.ended_at_ms >= run.since_ms + BEFORE_JOINING_MS:
        return run
    return replace(run, since_ms=min(run.since_ms, call.at_ms))


def _visited(conn: Connection, call: _Call) -> Step:
    sight = call.sight
    page_call = PageCall(
        target_id=call.target_id,
        task_id=call.record.task_id,
        url_hash=sight.url_hash,
        path_hash=sight.path_hash,
        started_at_ms=call.at_ms,
        ended_at_ms=call.ended_at_ms,
        read=call.read,
        error_page=sight.error_page,
        agent_scripted=sight.agent_scripted,
        life=sight.life,
    )
    step = stepped(visit_store.newest(conn, call.owner, call.target_id), page_call)
    if step.settled is not None:
        visit_store.settle(conn, step.settled)
    visit_store.save(conn, call.owner, step.current)
    return step


def _remember_addresses(conn: Connection, call: _Call, scan: StoredScan | None, *, fresh: bool) -> None:
    sight, seen = call.sight, call.record.signals.scan
    answered = sight.http_status is not None and not is_error(sight.http_status)
    visited = [sight.url] if fresh and answered and sight.keepable else []
    believed = scan is not None and scan.judged.trusted and not scan.judged.error_page
    links = seen.links if seen is not None and believed else ()
    if visited or links:
        site_urls.note(conn, call.owner[0], call.ended_at_ms, visited=visited, links=links)


def _scanned(conn: Connection, call: _Call) -> StoredScan | None:
    """Write a scan down, whoever made it; a run that opens soon may look back to it."""
    seen: ScanSeen | None = call.record.signals.scan
    if seen is None:
        return None
    trust = scan_trust(seen.measures)
    judged = Judged(
        scan_id=seen.scan_id,
        measures=seen.measures,
        trusted=trust.trusted,
        agent_scripted=call.sight.agent_scripted,
        asks_channels=seen.asks_channels,
        unanswered=call.sight.error_page and not is_error(seen.measures.http_status),
    )
    scan = StoredScan(call.record.call_id, seen.measures.url_hash, call.at_ms, judged)
    store.add(conn, call.owner, scan, seen, trust)
    return scan


def _findings(conn: Connection, call: _Call, step: Step, scan: StoredScan | None, since_ms: int) -> Findings:
    visits = [visit for visit in (step.settled, step.current) if visit is not None]
    scans = [] if scan is None else [scan]
    if call.sight.redirected:
        # What was seen of the page before anybody knew that this address leads to it.
        here = [call.sight.url_hash]
        visits += visit_store.on_pages(conn, call.owner, here, since_ms)
        scans += store.of_pages(conn, call.owner, here, since_ms)
    touched = None if call.selector_hash is None else {call.selector_hash: call.at_ms}
    pages = {visit.url_hash for visit in visits}
    return Findings(visits, scans, touched, visit_store.leads_to(conn, call.owner, pages, since_ms))


def _credits(conn: Connection, runs: list[Run], here: list[Unit], scan: StoredScan) -> list[Credit]:
    """What the scan came to in each run over pages."""
    told = []
    for run in runs:
        if not run.counts_urls:
            continue
        reason: str = scan_eligibility(scan.judged, policy_of(run.task_kind))
        left = store.uncovered(conn, run.instance_id)
        units = [unit for unit in here if unit.instance_id == run.instance_id and unit.locator_type == "url_exact"]
        if not units:
            told.append(_credit(run, None, EXTRA_SCOPE, left))
        for unit in units:
            excluded = reason == OK and unit.status == "excluded"
            told.append(_credit(run, unit.unit_key, EXCLUDED if excluded else reason, left))
    return told


def _credit(run: Run, unit_key: str | None, reason: str, left: Uncovered) -> Credit:
    return Credit(run.instance_id, unit_key, reason == OK, reason, left.remaining, left.next_url)


def _hint(call: _Call, runs: list[Run], here: list[Unit]) -> None:
    """A page that has to be covered was read in a way that covers nothing; which connection hears of it comes later."""
    if not call.read or call.record.tool_name == SCAN or call.record.via not in HEARD:
        return
    for run in runs:
        if not run.exhaustive or not run.counts_urls:
            continue
        bare = (one for one in here if one.instance_id == run.instance_id and one.covered_by is None)
        if (unit := next((one for one in bare if one.status != "excluded"), None)) is not None:
            hint = ScanHint(run.instance_id, unit.unit_key, recommended_scan(run.task_kind))
            call.record.signals.hints.append(hint)
