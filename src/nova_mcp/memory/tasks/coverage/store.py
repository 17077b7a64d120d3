"""Registered scans in the store, the credit they give to units, and what of a run is still uncovered."""

import json
from collections.abc import Collection
from dataclasses import asdict, dataclass

from sqlalchemy import Connection, delete, func, insert, select

from nova_mcp.core.urls import NORMALIZER_VERSION
from nova_mcp.core.values import Owner
from nova_mcp.evidence.page_sights import Channels, ScanMeasures, ScanSeen
from nova_mcp.evidence.rules import DAY_MS
from nova_mcp.memory.tasks.coverage.rules import Judged, Trust
from nova_mcp.memory.tasks.coverage.visit_store import chunks
from nova_mcp.memory.tasks.tables import coverage_observation, task_unit

KEPT_DAYS = 180
FORGOTTEN_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class StoredScan:
    """A scan of a page that an agent made."""

    observation_id: str
    url_hash: str
    at_ms: int
    judged: Judged


@dataclass(frozen=True, slots=True)
class Uncovered:
    """How many pages of a run nobody has covered, and the first of them."""

    remaining: int
    next_url: str | None


def add(conn: Connection, owner: Owner, scan: StoredScan, seen: ScanSeen, trust: Trust) -> None:
    measures = {
        **asdict(seen.measures),
        "agent_scripted": scan.judged.agent_scripted,
        "unanswered": scan.judged.unanswered,
        "asks_channels": scan.judged.asks_channels,
    }
    conn.execute(
        insert(coverage_observation),
        {
            "observation_id": scan.observation_id,
            "principal": owner[0],
            "agent_id": owner[1],
            "url_hash": scan.url_hash,
            "scan_id": seen.scan_id,
            "scan_hash": seen.scan_hash,
            "trusted": trust.trusted,
            "trust_reason": trust.reason,
            "measures": json.dumps(measures, separators=(",", ":"), sort_keys=True),
            "skeleton": seen.skeleton,
            "normalizer_version": NORMALIZER_VERSION,
            "at_ms": scan.at_ms,
        },
    )


def of_pages(conn: Connection, owner: Owner, hashes: Collection[str] | None, since_ms: int) -> list[StoredScan]:
    """The scans of an agent since a moment, of some pages or of all, the earliest first."""
    seen = coverage_observation.c
    wanted = select(seen.observation_id, seen.url_hash, seen.scan_id, seen.trusted, seen.measures, seen.at_ms).where(
        seen.principal == owner[0], seen.agent_id == owner[1], seen.at_ms >= since_ms
    )
    groups = [wanted] if hashes is None else [wanted.where(seen.url_hash.in_(some)) for some in chunks(hashes)]
    found = []
    for group in groups:
        for row in conn.execute(group):
            measures = json.loads(row.measures)
            flags = [measures.pop(name) for name in ("agent_scripted", "asks_channels", "unanswered")]
            channels = Channels(**measures.pop("channels"))
            judged = Judged(row.scan_id, ScanMeasures(channels=channels, **measures), row.trusted, *flags)
            found.append(StoredScan(row.observation_id, row.url_hash, row.at_ms, judged))
    return sorted(found, key=lambda scan: (scan.at_ms, scan.observation_id))


def uncovered(conn: Connection, instance_id: str) -> Uncovered:
    """Pages of a run that are neither excluded nor covered."""
    open_ones = (
        task_unit.c.instance_id == instance_id,
        task_unit.c.url.is_not(None),
        task_unit.c.covered_by_observation_id.is_(None),
        task_unit.c.status != "excluded",
    )
    remaining = conn.execute(select(func.count()).select_from(task_unit).where(*open_ones)).scalar_one()
    if not remaining:
        return Uncovered(0, None)
    return Uncovered(remaining, next(iter(next_urls(conn, instance_id, 1)), None))


def next_urls(conn: Connection, instance_id: str, limit: int) -> list[str]:
    """The first uncovered pages of a run, in the order in which they were found."""
    wanted = (
        select(task_unit.c.url)
        .where(
            task_unit.c.instance_id == instance_id,
            task_unit.c.url.is_not(None),
            task_unit.c.covered_by_observation_id.is_(None),
            task_unit.c.status != "excluded",
        )
        .order_by(task_unit.c.ordinal)
        .limit(limit)
    )
    return [str(url) for url in conn.execute(wanted).scalars()]


def forget(conn: Connection, now_ms: int) -> int:
    """Let go of scans that no run looks back to any more; a unit they covered stays covered."""
    old = select(coverage_observation.c.observation_id).where(
        coverage_observation.c.at_ms < now_ms - KEPT_DAYS * DAY_MS
    )
    gone = list(conn.execute(old.order_by(coverage_observation.c.at_ms).limit(FORGOTTEN_AT_ONCE)).scalars())
    if gone:
        conn.execute(delete(coverage_observation).where(coverage_observation.c.observation_id.in_(gone)))
    return len(gone)
