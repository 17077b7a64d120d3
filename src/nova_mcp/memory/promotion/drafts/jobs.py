"""Jobs that follow a commit: candidates of a release become drafts, or leave the reason why not in the log."""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import Connection, select

from nova_mcp.memory.journal import candidate_store, outbox_worker
from nova_mcp.memory.journal.candidates import Candidate, weighed
from nova_mcp.memory.journal.outbox_store import Job
from nova_mcp.memory.journal.outbox_worker import Handler
from nova_mcp.memory.journal.rules import promotable
from nova_mcp.memory.journal.statistics.tables import learning_proposal
from nova_mcp.memory.knowledge import store
from nova_mcp.memory.knowledge.model import Problem
from nova_mcp.memory.knowledge.scopes import scope_of
from nova_mcp.memory.promotion.drafts import draft_store, trace_store
from nova_mcp.memory.promotion.drafts.draft_store import Looks
from nova_mcp.memory.promotion.drafts.model import Skipped
from nova_mcp.memory.promotion.drafts.rules import generate
from nova_mcp.memory.promotion.prompts import store as semantic_store

MOST: Final = 20
# Why a committed candidate is no entry yet: its release ordered something else; a change of an entry needs the page.
NOT_PROPOSED: Final = "not_proposed"
WAITS_FOR_PAGE: Final = "waits_for_open_page"


def take_up(conn: Connection, job: Job, now_ms: int) -> None:
    """Make drafts of the candidates that a release has committed, on the site it was on.

    Nobody looks at the page for it, so selectors stay unconfirmed, and what would change an entry that exists waits for
    an agent that has the site before it. Doing it twice is the same as doing it once.
    """
    outbox_worker.propose(conn, job, now_ms)
    row = conn.execute(
        select(learning_proposal.c.state, learning_proposal.c.candidate_ids)
        .where(learning_proposal.c.job_key == job.job_key)
        .with_for_update()
    ).one_or_none()
    if row is None or row.state != "open":
        return
    sites: dict[str, list[Candidate]] = {}
    named = trace_store.candidates(conn, outbox_worker.candidate_ids(job))
    draft_store.log_reasons(conn, _committed(conn, job, besides=named), NOT_PROPOSED, now_ms)
    for one in named:
        sites.setdefault(one.place.host, []).append(one)
    left = [host for host, found in sorted(sites.items()) if _drafted(conn, host, found, job.principal, now_ms)]
    if not left:
        trace_store.taken_up(conn, [job.job_key])


def leaving_reasons(handler: Handler) -> Handler:
    """For jobs that make no entries of candidates: what was committed with them says so in the log."""

    def handle(conn: Connection, job: Job, now_ms: int) -> None:
        handler(conn, job, now_ms)
        draft_store.log_reasons(conn, _committed(conn, job), NOT_PROPOSED, now_ms)

    return handle


def _committed(conn: Connection, job: Job, besides: Sequence[Candidate] = ()) -> list[Candidate]:
    """What a release has committed, as far as it is still ready."""
    known = {one.candidate_id for one in besides}
    found = candidate_store.candidates_of(conn, job.task_id, lock=False)
    return [one for one in found if one.candidate_id not in known and promotable(weighed(one))]


def _drafted(conn: Connection, host: str, found: list[Candidate], principal: str, now_ms: int) -> bool:
    """Whether something is left that only an agent can bring in."""
    scope = scope_of(host)
    if isinstance(scope, Problem):
        draft_store.log_reasons(conn, found, "no_site", now_ms)
        return False
    traces = trace_store.candidate_traces(conn, found, now_ms)
    held = semantic_store.has_open(conn, principal, scope)
    around = draft_store.surroundings(store.entries(conn, scope), semantic_open=held)
    proposals, skipped = generate(traces, around, MOST)
    done = draft_store.write(conn, [one for one in proposals if one.kind != "patch"], Looks(now_ms))
    waiting = [Skipped(one.candidate_key, WAITS_FOR_PAGE) for one in proposals if one.kind == "patch"]
    draft_store.log_skipped(conn, found, [*skipped, *done.skipped, *waiting], now_ms)
    return bool(waiting)
