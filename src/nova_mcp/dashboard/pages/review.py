"""What waits for a look: entries that do not guide yet, questions that agents were asked, patterns and claims."""

from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, select

from nova_mcp.dashboard.pages.knowledge import EntryRow, entry_row
from nova_mcp.memory.journal import candidate_store
from nova_mcp.memory.journal.candidates import Candidate, Strength, evidence_score, strength
from nova_mcp.memory.knowledge import store
from nova_mcp.memory.knowledge.codec import decoded
from nova_mcp.memory.knowledge.model import ScopeName
from nova_mcp.memory.knowledge.tables import WAITING as WAITING_ROWS
from nova_mcp.memory.knowledge.tables import knowledge_entry
from nova_mcp.memory.promotion import event_store
from nova_mcp.memory.promotion.drafts.generator import suggestions
from nova_mcp.memory.promotion.model import DAY_MS, ConsentGates, LearningEvent, Opportunity
from nova_mcp.memory.promotion.overview import KnownRevision, progress
from nova_mcp.memory.promotion.prompts import store as semantic_store
from nova_mcp.memory.promotion.prompts.rules import REASONS, WHY_NOT_AUTOMATIC, SemanticOpportunity, site_of
from nova_mcp.memory.promotion.tables import OPEN_QUESTION
from nova_mcp.memory.promotion.tables import semantic_opportunity as held

WAITING: Final = 25
QUESTIONS: Final = 25
PATTERNS: Final = 8
CLAIMS: Final = 12
DECISIONS: Final = 15
DECISION_DAYS: Final = 30


@dataclass(frozen=True, slots=True)
class WaitingEntry:
    scope: ScopeName
    row: EntryRow


@dataclass(frozen=True, slots=True)
class Waiting:
    """Entries to review, the newest first; `next_before` leads on."""

    entries: tuple[WaitingEntry, ...]
    next_before: int | None


@dataclass(frozen=True, slots=True)
class Question:
    """What an agent was asked about a site, in the words it was asked in."""

    site: ScopeName
    asked: SemanticOpportunity
    reason: str
    why: str


@dataclass(frozen=True, slots=True)
class Claim:
    """What an agent, or Nova itself, takes to be worth learning."""

    candidate: Candidate
    score: float
    strength: Strength


@dataclass(frozen=True, slots=True)
class ReviewView:
    waiting: Waiting
    questions: tuple[Question, ...]
    patterns: tuple[Opportunity, ...]
    claims: tuple[Claim, ...]
    decisions: tuple[LearningEvent, ...]


def review(conn: Connection, principal: str, before: int | None, now_ms: int, consent: ConsentGates) -> ReviewView:
    return ReviewView(
        waiting(conn, before, now_ms, consent),
        questions(conn, principal),
        suggestions(conn, None, PATTERNS, now_ms),
        claims(conn),
        tuple(event_store.events(conn, None, max(0, now_ms - DECISION_DAYS * DAY_MS), DECISIONS)),
    )


def waiting(conn: Connection, before: int | None, now_ms: int, consent: ConsentGates) -> Waiting:
    c = knowledge_entry.c
    rows = select(c.entry_id).where(WAITING_ROWS).order_by(c.entry_id.desc()).limit(WAITING + 1)
    found = conn.execute(rows if before is None else rows.where(c.entry_id < before)).scalars().all()
    shown = found[:WAITING]
    entries = sorted(store.by_ids(conn, shown), key=lambda one: -one.entry_id)
    return Waiting(
        tuple(
            WaitingEntry(
                one.scope,
                entry_row(
                    KnownRevision(one, progress(conn, one, now_ms, consent)), now_ms, in_review=one.slot == "pending"
                ),
            )
            for one in entries
        ),
        shown[-1] if len(found) > WAITING else None,
    )


def questions(conn: Connection, principal: str) -> tuple[Question, ...]:
    """What the principal's agents were asked and have not answered; others' questions are theirs to answer."""
    rows = conn.execute(
        select(held.c.body)
        .where(held.c.principal == principal, OPEN_QUESTION)
        .order_by(held.c.updated_at_ms.desc())
        .limit(QUESTIONS)
    )
    return tuple(question(decoded(SemanticOpportunity, row.body)) for row in rows)


def question(one: SemanticOpportunity) -> Question:
    return Question(site_of(one.origin), one, REASONS[one.kind], WHY_NOT_AUTOMATIC[one.kind])


def one_question(conn: Connection, principal: str, opportunity_id: str) -> Question | None:
    found = semantic_store.find(conn, principal, opportunity_id, lock=False)
    return None if found is None else question(found)


def claims(conn: Connection) -> tuple[Claim, ...]:
    found = candidate_store.newest(conn, CLAIMS)
    scored = ((one, evidence_score(one)) for one in found)
    return tuple(Claim(one, score, strength(score)) for one, score in scored)
