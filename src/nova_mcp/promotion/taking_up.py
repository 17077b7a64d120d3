"""Jobs that follow a commit: candidates of a release become drafts, and an entry that it carries is stored."""

from typing import Final

from sqlalchemy import Connection, select

from nova_mcp.journal import worker
from nova_mcp.journal.candidates import Candidate
from nova_mcp.journal.outbox_store import Job
from nova_mcp.journal.statistics_tables import learning_proposal
from nova_mcp.knowledge import store
from nova_mcp.knowledge.model import Problem
from nova_mcp.knowledge.scopes import scope_of
from nova_mcp.promotion import drafting, semantic_store, trace_store
from nova_mcp.promotion.drafting import Looks
from nova_mcp.promotion.generating import generate

MOST: Final = 20


def take_up(conn: Connection, job: Job, now_ms: int) -> None:
    """Make drafts of the candidates that a release has committed, on the site it was on.

    Nobody looks at the page for it, so selectors stay unconfirmed, and what would change an entry that exists waits for
    an agent that has the site before it. Doing it twice is the same as doing it once.
    """
    worker.propose(conn, job, now_ms)
    row = conn.execute(
        select(learning_proposal.c.state, learning_proposal.c.candidate_ids)
        .where(learning_proposal.c.job_key == job.job_key)
        .with_for_update()
    ).one_or_none()
    if row is None or row.state != "open":
        return
    sites: dict[str, list[Candidate]] = {}
    for one in trace_store.candidates(conn, worker.candidate_ids(job)):
        sites.setdefault(one.place.host, []).append(one)
    left = [host for host, found in sorted(sites.items()) if _drafted(conn, host, found, job.principal, now_ms)]
    if not left:
        trace_store.taken_up(conn, [job.job_key])


def _drafted(conn: Connection, host: str, found: list[Candidate], principal: str, now_ms: int) -> bool:
    """Whether something is left that only an agent can bring in."""
    scope = scope_of(host)
    if isinstance(scope, Problem):
        return False
    traces = trace_store.candidate_traces(conn, found, now_ms)
    held = semantic_store.has_open(conn, principal, scope)
    around = drafting.surroundings(store.entries(conn, scope), semantic_open=held)
    proposals, _ = generate(traces, around, MOST)
    drafting.write(conn, [one for one in proposals if one.kind != "patch"], Looks(now_ms))
    return any(one.kind == "patch" for one in proposals)
