"""What every subsystem forgets and what it asks the ledger to keep, put together for servers and the command line."""

from collections.abc import Callable
from dataclasses import replace

from sqlalchemy import Connection

from nova_mcp.evidence.rules import DAY_MS, Holds
from nova_mcp.memory.claims import retention as claim_retention
from nova_mcp.memory.facts import retention as fact_endings
from nova_mcp.memory.journal.retention import JournalRetention, forget, forgettable, referenced_calls
from nova_mcp.memory.notes import domain_store, memory_store
from nova_mcp.memory.notes.daily_work import daily
from nova_mcp.memory.promotion import retention as learning
from nova_mcp.memory.promotion.drafts import cluster_store, track_store
from nova_mcp.memory.tasks.coverage import site_urls, store, visit_store
from nova_mcp.memory.tasks.instructions import learn_store
from nova_mcp.memory.tasks.runs import retention as run_retention
from nova_mcp.settings import NoteSettings, RetentionSettings
from nova_mcp.verification.retention import due_to_go, forgetting

Chore = Callable[[Connection, int], int]


def chores(kept: RetentionSettings) -> list[Chore]:
    """Each takes a step and says how many rows went."""
    return [
        forgetting(kept.transition_days),
        claim_retention.forgetting(kept.claim_days),
        journal_chore(kept),
        fact_endings.forgetting(kept.fact_days),
        learning_chore(kept),
        cluster_store.forget,
        track_store.forget,
        visit_store.forget,
        store.forget,
        site_urls.forget,
        learn_store.forgetting(kept.claim_days),
        run_retention.forgetting,
    ]


def note_chores(kept: NoteSettings) -> list[Chore]:
    """What notes forget, once a day."""
    return [daily(memory_store.pruning(kept.browser_memory.retention_days)), daily(domain_store.forget)]


def journal_chore(kept: RetentionSettings) -> Chore:
    journal = _journal(kept)
    return lambda conn, now_ms: forget(conn, now_ms, journal)


def journal_due(conn: Connection, now_ms: int, kept: RetentionSettings) -> int:
    """How many rows of the journal a run would forget."""
    return forgettable(conn, now_ms, _journal(kept))


def learning_chore(kept: RetentionSettings) -> Chore:
    return learning.forgetting(kept.journal_days)


def learning_due(conn: Connection, now_ms: int, kept: RetentionSettings) -> int:
    """How many rows of what happened to knowledge a run would forget."""
    return learning.due_to_go(conn, now_ms, kept.journal_days)


def transitions_due(conn: Connection, now_ms: int, kept: RetentionSettings) -> int:
    return due_to_go(conn, now_ms - kept.transition_days * DAY_MS)


def claims_due(conn: Connection, now_ms: int, kept: RetentionSettings) -> int:
    """How many claims, tabs and sandboxes a run would forget."""
    return claim_retention.due_to_go(conn, now_ms - kept.claim_days * DAY_MS)


def facts_due(conn: Connection, now_ms: int, kept: RetentionSettings) -> int:
    """How many scopes of live facts a run would forget."""
    return fact_endings.due_to_go(conn, now_ms - kept.fact_days * DAY_MS)


def runs_due(conn: Connection, now_ms: int, kept: RetentionSettings) -> int:
    """How many runs of tasks would end for being idle, or lose their details."""
    return run_retention.due_to_go(conn, now_ms)


def holds(conn: Connection) -> Holds:
    """Calls of a live claim or run stay, those of an ended one may go sooner, and what a candidate rests on stays with
    it."""
    return run_retention.run_holds(conn, replace(claim_retention.claim_holds(conn), referenced=referenced_calls(conn)))


def _journal(kept: RetentionSettings) -> JournalRetention:
    return JournalRetention(journal_days=kept.journal_days, event_days=kept.other_days)
