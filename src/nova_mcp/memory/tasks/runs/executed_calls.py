"""Whether the ledger has seen the calls that a verification asks for."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, and_, or_, select

from nova_mcp.core.urls import normalize_url, redact_query, url_hash
from nova_mcp.evidence.model import CallRecord
from nova_mcp.evidence.rules import effective_page, host_of, record_from_body, storable_text
from nova_mcp.evidence.store import ledger_body
from nova_mcp.memory.tasks.coverage import visit_store
from nova_mcp.memory.tasks.coverage.visits import Visit
from nova_mcp.memory.tasks.model import VerificationStep
from nova_mcp.memory.tasks.runs.store import Member, Run

READ_AT_ONCE: Final = 100


def executed_steps(conn: Connection, run: Run, members: Sequence[Member]) -> dict[str, bool]:
    """For each step whether a member made its call, successfully and on the page it names, since the run began."""
    return {step.step_id: _executed(conn, run, members, step) for step in run.content.verification}


def _executed(conn: Connection, run: Run, members: Sequence[Member], step: VerificationStep) -> bool:
    body = ledger_body.c
    # What a member looked at just before joining counts for units; a verification is of the run's own time.
    theirs = or_(
        *(and_(body.agent_id == one.agent_id, body.at_ms >= max(one.since_ms, run.started_at_ms)) for one in members)
    )
    wanted: list[ColumnElement[bool]] = [
        body.principal == storable_text(run.principal),
        theirs,
        body.tool_name == step.tool,
        body.outcome_kind == "ok",
        body.kind == "call",
    ]
    if run.ended_at_ms is not None:
        wanted.append(body.at_ms <= run.ended_at_ms)
    if step.page_url is None:
        return conn.execute(select(body.at_ms).where(*wanted).limit(1)).first() is not None
    page = normalize_url(step.page_url)
    if page is None:
        return False
    here = select(ledger_body.c.body).where(*wanted, ledger_body.c.host == host_of(page))
    found: Any = conn.execute(here.order_by(ledger_body.c.at_ms.desc())).yield_per(READ_AT_ONCE)
    try:
        calls = (record_from_body(row.body) for row in found)
        return _made_on(page, calls, _visits(conn, run, members, page))
    finally:
        found.close()


def _visits(conn: Connection, run: Run, members: Sequence[Member], page: str) -> list[tuple[str, Visit]]:
    """Who stayed on a page when, where the ledger alone can't say: it keeps only the names in a query."""
    if redact_query(page) == page:
        return []
    digest = url_hash(page)
    return [
        (one.agent_id, visit)
        for one in members
        for visit in visit_store.on_pages(conn, (run.principal, one.agent_id), [digest], one.since_ms)
    ]


def _made_on(page: str, calls: Iterable[CallRecord], visits: Sequence[tuple[str, Visit]]) -> bool:
    kept = redact_query(page)
    for call in calls:
        at = effective_page(call)
        if at.url == page:
            return True
        stays = (visit for agent_id, visit in visits if agent_id == call.caller.agent_id)
        if at.url == kept and any(_during(visit, call, at.target_id) for visit in stays):
            return True
    return False


def _during(visit: Visit, call: CallRecord, target_id: str | None) -> bool:
    return visit.target_id == target_id and visit.started_at_ms <= call.started_at_ms <= visit.last_call_at_ms
