"""One owner's session: what it may use up and what of it is gone; pure.

A session is an owner's calls without a gap of more than half an hour. Refused calls belong to it as well: an agent that
goes on asking does not earn a new session by being refused.
"""

from dataclasses import dataclass, replace
from typing import Final, Literal

SESSION_GAP_MS: Final = 30 * 60_000

Counter = Literal["calls", "navigations", "minutes", "imageBytes"]


@dataclass(frozen=True, slots=True)
class Caps:
    """What the operator allows; None means as much as wanted."""

    calls: int | None = None
    navigations: int | None = None
    minutes: int | None = None
    image_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Session:
    """What an owner has used since its session began."""

    began_at_ms: int
    last_at_ms: int
    calls: int = 0
    navigations: int = 0
    image_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Demand:
    """What a call would use."""

    navigates: bool = False
    pictures: bool = False


@dataclass(frozen=True, slots=True)
class Exhausted:
    """A cap that is spent, and how long the owner has to keep still for a new session."""

    counter: Counter
    cap: int
    retry_after_ms: int


def session_at(session: Session | None, now_ms: int) -> Session:
    """The session that a call at this moment belongs to; a clock that was set back does not end one."""
    if session is None or now_ms - session.last_at_ms > SESSION_GAP_MS:
        return Session(now_ms, now_ms)
    return session


def exhausted(session: Session, demand: Demand, caps: Caps, now_ms: int) -> Exhausted | None:
    """The first cap that leaves no room for the call; a cap holds back only what would use it up."""
    used: tuple[tuple[Counter, int, int | None], ...] = (
        ("calls", session.calls, caps.calls),
        ("navigations", session.navigations, caps.navigations if demand.navigates else None),
        ("minutes", max(0, now_ms - session.began_at_ms) // 60_000, caps.minutes),
        ("imageBytes", session.image_bytes, caps.image_bytes if demand.pictures else None),
    )
    for counter, spent, cap in used:
        if cap is not None and spent >= cap:
            return Exhausted(counter, cap, SESSION_GAP_MS + 1)
    return None


def asked(session: Session, now_ms: int) -> Session:
    """The session after a call came, whatever becomes of it."""
    return replace(session, last_at_ms=max(session.last_at_ms, now_ms))


def charged(session: Session, demand: Demand) -> Session:
    """The session after a call was let in."""
    return replace(session, calls=session.calls + 1, navigations=session.navigations + (1 if demand.navigates else 0))


def pictured(session: Session, image_bytes: int) -> Session:
    """The session after pictures were made."""
    return replace(session, image_bytes=session.image_bytes + image_bytes)
