"""What every subsystem forgets and what it asks the ledger to keep, put together for servers and the command line."""

from collections.abc import Callable

from sqlalchemy import Connection

from nova_mcp.browser.claim_retention import claim_states, forget_claims
from nova_mcp.journal.forgetting import JournalRetention, forget, forgettable, referenced_calls
from nova_mcp.observation.rules import Holds
from nova_mcp.settings import RetentionSettings
from nova_mcp.verification.store import DAY_MS, due_to_go, forgetting

Chore = Callable[[Connection, int], int]


def chores(kept: RetentionSettings) -> list[Chore]:
    """Each takes a step and says how many rows went."""
    return [forgetting(kept.transition_days), *journal_chores(kept)]


def journal_chores(kept: RetentionSettings) -> list[Chore]:
    journal, claims = _journal(kept), _claim_days(kept) * DAY_MS
    return [
        lambda conn, now_ms: forget(conn, now_ms, journal),
        lambda conn, now_ms: forget_claims(conn, now_ms - claims),
    ]


def journal_due(conn: Connection, now_ms: int, kept: RetentionSettings) -> int:
    """How many rows of the journal a run would forget."""
    return forgettable(conn, now_ms, _journal(kept))


def transitions_due(conn: Connection, now_ms: int, kept: RetentionSettings) -> int:
    return due_to_go(conn, now_ms - kept.transition_days * DAY_MS)


def holds(conn: Connection) -> Holds:
    """Calls of a live claim stay, those of an ended one may go sooner, and what a candidate rests on stays with it."""
    states = claim_states(conn)
    return Holds(open=states.open, ended=states.ended, referenced=referenced_calls(conn))


def _journal(kept: RetentionSettings) -> JournalRetention:
    return JournalRetention(journal_days=kept.journal_days, event_days=kept.other_days)


def _claim_days(kept: RetentionSettings) -> int:
    # A claim is remembered as long as the bodies of its calls may have to be told apart by it.
    return max(kept.ended_days, kept.gap_days, kept.other_days) + 1
