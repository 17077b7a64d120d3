"""Candidates: what might be worth learning, how evidence moves them, and how much they have in their favour; pure."""

import hashlib
import json
import unicodedata
from dataclasses import dataclass, replace
from typing import Final, Literal

from nova_mcp.memory.journal.evidence import EventVerdict, PageEvent
from nova_mcp.memory.journal.model import CandidateEvidence, CandidateOrigin, CandidateStatus

Strength = Literal["weak", "medium", "strong"]

COMPONENT_CHARS: Final = 64
CLAIM_CHARS: Final = 280
DEFAULT_CONFIDENCE: Final = 0.65
DIAGNOSTIC_CONFIDENCE: Final = 0.40
RECOVERED_CONFIDENCE: Final = 0.75
HIGH_SIGNAL_CONFIDENCE: Final = 0.82
# How old the call may be that a manual candidate is taken to have come from.
SOURCE_AGE_MS: Final = 10 * 60_000
FAILURES_TO_DISPROVE: Final = 2
MEDIUM_SCORE: Final = 0.90
STRONG_SCORE: Final = 1.45
# One session to begin with, and as many further ones as count.
SESSIONS_KEPT: Final = 3

_RANK: Final[dict[CandidateStatus, int]] = {"unverified": 0, "verified": 1, "disproven": 2}


@dataclass(frozen=True, slots=True)
class Place:
    """Whose candidate it is and where it holds."""

    principal: str
    agent_id: str
    host: str
    task_id: str | None
    target_id: str | None


@dataclass(frozen=True, slots=True)
class Candidate:
    """A claim with everything that speaks for or against it; id 0 before it is stored."""

    candidate_id: int
    candidate_key: str
    stable_id: str
    place: Place
    component: str
    claim: str
    status: CandidateStatus
    confidence: float
    origin: CandidateOrigin
    created_at_ms: int
    updated_at_ms: int
    level: int = 0
    event_key: str | None = None
    source_event_id: str | None = None
    source_verdict: EventVerdict | None = None
    resolution_event_id: str | None = None
    verified_at_ms: int | None = None
    high_signal: bool = False
    recovered: bool = False
    sessions: tuple[str, ...] = ()
    failures_in_row: int = 0
    last_failure_at_ms: int | None = None

    @property
    def is_open(self) -> bool:
        return self.status != "disproven"


@dataclass(frozen=True, slots=True)
class Raise:
    """A claim that somebody makes: an agent, or Nova from what it saw."""

    place: Place
    component: str
    claim: str
    status: CandidateStatus
    confidence: float
    origin: CandidateOrigin = "semantic"
    high_signal: bool = False
    event_key: str | None = None


@dataclass(frozen=True, slots=True)
class CandidateChange:
    """A candidate that was written; `before` is None for a new one."""

    before: Candidate | None
    after: Candidate


# -- names


def normal_component(component: str) -> str:
    return component.strip().lower()


def normal_claim(claim: str) -> str:
    """Two spellings of one sentence are one claim: blanks, marks that nobody sees, case and the full stop don't
    count."""
    seen = "".join(sign for sign in unicodedata.normalize("NFKC", claim) if unicodedata.category(sign) != "Cf")
    return " ".join(seen.split()).casefold().rstrip(" .!")


def _digest(*parts: str) -> str:
    return hashlib.sha256(json.dumps(parts, separators=(",", ":")).encode("ascii")).hexdigest()


def candidate_key(host: str, component: str, claim: str) -> str:
    return "lcj_ck_" + _digest(host, normal_component(component), normal_claim(claim))[:24]


def stable_id(host: str, key: str) -> str:
    return "lcj_" + _digest(host, key)[:12]


def curated_key(host: str, component: str, claim: str) -> str:
    """What makes two promoted candidates one entry, whoever's they were."""
    return _digest("curated", host, normal_component(component), normal_claim(claim))[:40]


# -- raising


def raised(wish: Raise, source: PageEvent | None, at_ms: int) -> Candidate:
    """A new candidate; its source is the call it came from."""
    place = wish.place
    key = candidate_key(place.host, wish.component, wish.claim)
    return Candidate(
        candidate_id=0,
        candidate_key=key,
        stable_id=stable_id(place.host, key),
        place=place,
        component=wish.component,
        claim=wish.claim,
        status=wish.status,
        confidence=wish.confidence,
        origin=wish.origin,
        created_at_ms=at_ms,
        updated_at_ms=at_ms,
        event_key=wish.event_key or (None if source is None else source.event_key),
        source_event_id=None if source is None else source.call_id,
        source_verdict=None if source is None else source.verdict,
        verified_at_ms=at_ms if wish.status == "verified" else None,
        high_signal=wish.high_signal,
        sessions=() if source is None else (source.session_id,),
        last_failure_at_ms=None,
    )


def repeated(found: Candidate, wish: Raise, source: PageEvent | None, at_ms: int) -> Candidate:
    """The same claim made again: it may only gain, and its status only moves on."""
    status = later(found.status, wish.status)
    again = replace(
        found,
        place=replace(found.place, agent_id=wish.place.agent_id, task_id=wish.place.task_id or found.place.task_id),
        status=status,
        confidence=max(found.confidence, wish.confidence),
        high_signal=found.high_signal or wish.high_signal,
        verified_at_ms=at_ms if _verifies(found, wish) else found.verified_at_ms,
        updated_at_ms=max(found.updated_at_ms, at_ms),
    )
    if found.origin == "diagnostic" and wish.origin == "diagnostic" and found.status == "unverified":
        # Where it failed last is where a success will tell.
        again = replace(again, event_key=wish.event_key, place=replace(again.place, target_id=wish.place.target_id))
    if source is None or not _says_more(source, found):
        return again
    return replace(
        again,
        event_key=source.event_key if found.source_event_id is not None else again.event_key or source.event_key,
        source_event_id=source.call_id,
        source_verdict=source.verdict,
        sessions=(source.session_id,),
    )


def _says_more(source: PageEvent, found: Candidate) -> bool:
    """Whether a call is a better source than the one there is: any is better than none, and one that proved something
    is better than a look at the page."""
    if found.source_event_id is None:
        return True
    silent = found.source_verdict == "neutral" and found.resolution_event_id is None and not found.failures_in_row
    return silent and found.origin == "semantic" and source.verdict != "neutral"


def _verifies(found: Candidate, wish: Raise) -> bool:
    """Whether saying that it holds verifies it: the first time does, and one that follows a failure overcome."""
    if wish.status != "verified" or not found.is_open:
        return False
    return found.verified_at_ms is None or (failed_since_verified(found) and found.failures_in_row == 0)


def later(one: CandidateStatus, other: CandidateStatus) -> CandidateStatus:
    """Status only moves on: from unverified over verified to disproven."""
    return max(one, other, key=lambda status: _RANK[status])


# -- evidence


def after_event(found: Candidate, event: PageEvent) -> Candidate:
    """A candidate after another call on its source's key."""
    if found.origin == "diagnostic" or not found.is_open or event.call_id == found.source_event_id:
        return found
    match event.verdict:
        case "success":
            return _supported(found, event)
        case "failure":
            return _contradicted(found, event)
        case "neutral":
            return found


def _supported(found: Candidate, event: PageEvent) -> Candidate:
    failed_before = found.failures_in_row > 0 or found.source_verdict == "failure"
    return replace(
        found,
        resolution_event_id=found.resolution_event_id or event.call_id,
        recovered=found.recovered or failed_before,
        failures_in_row=0,
        sessions=_with_session(found.sessions, event.session_id),
        updated_at_ms=max(found.updated_at_ms, event.at_ms),
    )


def _contradicted(found: Candidate, event: PageEvent) -> Candidate:
    failures = found.failures_in_row + 1
    return replace(
        found,
        failures_in_row=failures,
        last_failure_at_ms=max(found.last_failure_at_ms or 0, event.at_ms),
        status="disproven" if failures >= FAILURES_TO_DISPROVE else found.status,
        updated_at_ms=max(found.updated_at_ms, event.at_ms),
    )


def _with_session(sessions: tuple[str, ...], session_id: str) -> tuple[str, ...]:
    return sessions if session_id in sessions else (*sessions, session_id)[:SESSIONS_KEPT]


def after_recovery(found: Candidate, event: PageEvent) -> Candidate:
    """A diagnostic candidate once the tool that failed has worked again where it had failed."""
    if found.origin != "diagnostic" or found.status != "unverified":
        return found
    return replace(
        found,
        status="verified",
        confidence=max(found.confidence, RECOVERED_CONFIDENCE),
        resolution_event_id=event.call_id,
        verified_at_ms=event.at_ms,
        recovered=True,
        sessions=_with_session(found.sessions, event.session_id),
        updated_at_ms=max(found.updated_at_ms, event.at_ms),
    )


def newest_unverified(found: list[Candidate]) -> Candidate | None:
    waiting = [one for one in found if one.origin == "diagnostic" and one.status == "unverified"]
    return max(waiting, key=lambda one: (one.updated_at_ms, one.candidate_id), default=None)


# -- worth


def evidence_score(found: Candidate) -> float:
    """What speaks for a candidate, in the open: every part is something that happened."""
    proven = found.resolution_event_id is not None or found.source_verdict == "success"
    backed = found.verified_at_ms is not None and proven
    parts = (
        0.35 if found.source_event_id is not None else 0.0,
        0.35 if found.resolution_event_id is not None else 0.0,
        0.25 if backed else 0.0,
        0.30 if found.high_signal else 0.0,
        0.20 if found.recovered else 0.0,
        min(0.20, 0.10 * max(0, len(found.sessions) - 1)),
        0.50 * found.confidence,
    )
    return round(sum(parts), 4)


def strength(score: float) -> Strength:
    return "weak" if score < MEDIUM_SCORE else "medium" if score < STRONG_SCORE else "strong"


def failed_since_verified(found: Candidate) -> bool:
    """Whether a failure stands against it: newer than its verification, or the last thing that was seen of it, which
    saying that it holds does not undo."""
    if found.failures_in_row > 0:
        return True
    if found.verified_at_ms is None or found.last_failure_at_ms is None:
        return False
    return found.last_failure_at_ms > found.verified_at_ms


def weighed(found: Candidate) -> CandidateEvidence:
    """As finalizing looks at it."""
    return CandidateEvidence(
        found.candidate_id, found.status, evidence_score(found), found.origin, failed_since_verified(found)
    )
