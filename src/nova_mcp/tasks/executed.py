"""Whether the ledger has seen the calls that a verification asks for."""

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, and_, or_, select

from nova_mcp.observation.rules import effective_page, host_of, record_from_body, storable_text
from nova_mcp.observation.store import ledger_body
from nova_mcp.tasks.model import VerificationStep
from nova_mcp.tasks.run_store import Member, Run
from nova_mcp.urls import normalize_url, redact_query

READ_AT_ONCE: Final = 100


def executed_steps(conn: Connection, run: Run, members: Sequence[Member]) -> dict[str, bool]:
    """For each step whether a member made its call, successfully and on the page it names, since the run began."""
    return {step.step_id: _executed(conn, run, members, step) for step in run.content.verification}


def _executed(conn: Connection, run: Run, members: Sequence[Member], step: VerificationStep) -> bool:
    body = ledger_body.c
    theirs = or_(*(and_(body.agent_id == one.agent_id, body.at_ms >= one.since_ms) for one in members))
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
    return _on_page(conn, wanted, step.page_url)


def _on_page(conn: Connection, wanted: list[ColumnElement[bool]], page_url: str) -> bool:
    """Evidence keeps only the names in a query, so that two pages which differ in its values are one here."""
    page = normalize_url(page_url)
    if page is None:
        return False
    pages = {page, redact_query(page)}
    here = select(ledger_body.c.body).where(*wanted, ledger_body.c.host == host_of(page))
    found: Any = conn.execute(here.order_by(ledger_body.c.at_ms.desc())).yield_per(READ_AT_ONCE)
    try:
        return any(effective_page(record_from_body(row.body)).url in pages for row in found)
    finally:
        found.close()
