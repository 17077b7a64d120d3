"""Visit windows as they grow call by call, and what is seen of one since a moment; pure."""

from dataclasses import dataclass, replace

from nova_mcp.evidence.grades import SeenWindow
from nova_mcp.evidence.page_sights import STILL, PageLife
from nova_mcp.evidence.rules import STAY_MS, VisitWindow, is_silent, left_during


@dataclass(frozen=True, slots=True)
class Visit:
    """One stay of an agent on one page of a target. What the page was worth is the same from its first call to its
    last: a page that an agent's script begins to change is another visit."""

    target_id: str
    task_id: str | None
    url_hash: str
    path_hash: str
    started_at_ms: int
    ended_at_ms: int
    last_call_at_ms: int
    last_read_at_ms: int | None
    stayed_ms: int = 0
    settled: bool = False
    calls: int = 1
    reads: int = 0
    error_page: bool = False
    agent_scripted: bool = False
    # Given by the store; none for a visit that has just begun.
    window_id: int | None = None

    @property
    def dwell_ms(self) -> int:
        return self.ended_at_ms - self.started_at_ms + self.stayed_ms


@dataclass(frozen=True, slots=True)
class PageCall:
    """What a visit needs to know of one successful call on a page."""

    target_id: str
    task_id: str | None
    url_hash: str
    path_hash: str
    started_at_ms: int
    ended_at_ms: int
    read: bool
    error_page: bool = False
    agent_scripted: bool = False
    life: PageLife = STILL


@dataclass(frozen=True, slots=True)
class Step:
    """What a call does to an agent's visits on its target: the one that has ended, and the one that goes on."""

    settled: Visit | None
    current: Visit


def stepped(newest: Visit | None, call: PageCall) -> Step:
    if newest is not None and not newest.settled and _goes_on(newest, call):
        return Step(None, _extended(newest, call))
    if newest is None or newest.settled:
        return Step(None, _begun(call))
    span = call.started_at_ms, call.ended_at_ms
    until_ms = call.started_at_ms if call.url_hash == newest.url_hash else left_during(span, call.life)
    return Step(settled(newest, until_ms, call.life), _begun(call))


def settled(visit: Visit, until_ms: int, life: PageLife = STILL) -> Visit:
    """A visit that is over, with the time that its page was still there."""
    return replace(visit, stayed_ms=_stayed(visit, until_ms, life), settled=True)


def finished_at(visit: Visit, now_ms: int, life: PageLife) -> Visit:
    """An open visit as it stands now."""
    return visit if visit.settled else replace(visit, stayed_ms=_stayed(visit, now_ms, life))


def seen_since(visit: Visit, since_ms: int) -> SeenWindow | None:
    """What belongs to a run that looks back so far. Of a visit that began earlier only what is sure to lie inside is
    taken: from the last call that read."""
    if visit.last_call_at_ms < since_ms:
        return None
    if visit.started_at_ms >= since_ms:
        return _seen(visit, visit.started_at_ms, visit.reads, visit.calls)
    read_at = visit.last_read_at_ms
    if read_at is None or read_at < since_ms:
        return _seen(visit, visit.last_call_at_ms, 0, 1)
    return _seen(visit, read_at, 1, 1)


def _seen(visit: Visit, start_ms: int, reads: int, calls: int) -> SeenWindow:
    window = VisitWindow(
        target_id=visit.target_id,
        url=visit.url_hash,
        task_id=visit.task_id,
        started_at_ms=start_ms,
        last_call_end_ms=visit.ended_at_ms,
        dwell_ms=visit.ended_at_ms - start_ms + visit.stayed_ms,
        calls=calls,
        reads=reads,
        flags=frozenset(),
    )
    return SeenWindow(window, visit.error_page, visit.agent_scripted)


def _goes_on(visit: Visit, call: PageCall) -> bool:
    same = (visit.url_hash, visit.task_id, visit.error_page, visit.agent_scripted) == (
        call.url_hash,
        call.task_id,
        call.error_page,
        call.agent_scripted,
    )
    # Recorded later and over before the visit began: the clock was set back, and the time between was not spent here.
    set_back = call.ended_at_ms < visit.started_at_ms
    return same and not set_back and not is_silent(visit.ended_at_ms, call.started_at_ms, call.life.active_at_ms)


def _extended(visit: Visit, call: PageCall) -> Visit:
    read_at = visit.last_read_at_ms
    if call.read:
        read_at = call.started_at_ms if read_at is None else max(read_at, call.started_at_ms)
    return replace(
        visit,
        started_at_ms=min(visit.started_at_ms, call.started_at_ms),
        ended_at_ms=max(visit.ended_at_ms, call.ended_at_ms),
        last_call_at_ms=max(visit.last_call_at_ms, call.started_at_ms),
        last_read_at_ms=read_at,
        calls=visit.calls + 1,
        reads=visit.reads + call.read,
    )


def _begun(call: PageCall) -> Visit:
    return Visit(
        target_id=call.target_id,
        task_id=call.task_id,
        url_hash=call.url_hash,
        path_hash=call.path_hash,
        started_at_ms=call.started_at_ms,
        ended_at_ms=call.ended_at_ms,
        last_call_at_ms=call.started_at_ms,
        last_read_at_ms=call.started_at_ms if call.read else None,
        reads=int(call.read),
        error_page=call.error_page,
        agent_scripted=call.agent_scripted,
    )


def _stayed(visit: Visit, until_ms: int, life: PageLife) -> int:
    left = min((at for at in life.left_at_ms if at >= visit.ended_at_ms), default=until_ms)
    return min(STAY_MS, max(0, min(left, until_ms) - visit.ended_at_ms))
