"""Has the gates of entries looked at and applies what passed, while their rows are held."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from nova_mcp.memory.knowledge import store
from nova_mcp.memory.knowledge.model import ACTIVE, Level, ScopeName, StableId
from nova_mcp.memory.knowledge.store import Shelved
from nova_mcp.memory.promotion import event_store, steps_store
from nova_mcp.memory.promotion.gates.entries import entry_of, with_entry
from nova_mcp.memory.promotion.gates.folding import Reviewed, reviewed
from nova_mcp.memory.promotion.gates.gates import event_of, review, worth_logging
from nova_mcp.memory.promotion.model import ConsentGates, Hold, Lower, Mark, Promote, Reject, TransitionKind, Verdict
from nova_mcp.storage.savepoints import savepoint

Skip = Literal["dry_run", "not_approved", "write_failed"]
_ERROR_CHARS: Final = 200


@dataclass(frozen=True, slots=True)
class Wish:
    """Which entries of a site to look at, all without names, which transition, the one that is due without, and the
    gates for banners."""

    scope: ScopeName
    stable_ids: tuple[str, ...] | None = None
    transition: TransitionKind | None = None
    consent: ConsentGates = "standard"


@dataclass(frozen=True, slots=True)
class Decision:
    """What came of one entry."""

    stable_id: str
    verdict: Verdict
    skipped_because: Skip | None = None
    write_error: str | None = None

    @property
    def approved(self) -> bool:
        return isinstance(self.verdict, Promote | Lower)

    @property
    def applied(self) -> bool:
        return self.approved and self.skipped_because is None

    @property
    def from_level(self) -> Level:
        return self.verdict.from_level

    @property
    def to_level(self) -> Level:
        """Where the entry goes if the decision is applied."""
        return self.verdict.to_level if isinstance(self.verdict, Promote | Lower) else self.verdict.from_level

    @property
    def rejection(self) -> str | None:
        return self.verdict.reason if isinstance(self.verdict, Hold | Reject) else None


@dataclass(frozen=True, slots=True)
class _Judged:
    shelved: Shelved
    marks: tuple[Mark, ...]
    verdict: Verdict


def previewed(conn: Connection, wish: Wish, now_ms: int) -> tuple[Decision, ...]:
    """What would be decided now; nothing is written."""
    return tuple(_previewed(name, _judged(conn, found, wish, now_ms), wish) for name, found in _wanted(conn, wish))


def _previewed(name: str, judged: _Judged | None, wish: Wish) -> Decision:
    if judged is None:
        return Decision(name, Reject(wish.transition, "not_found"), "not_approved")
    approved = isinstance(judged.verdict, Promote | Lower)
    return Decision(name, judged.verdict, "dry_run" if approved else "not_approved")


def promote(conn: Connection, wish: Wish, now_ms: int) -> tuple[Decision, ...]:
    """Decide and apply. Promoters of a site queue at its row, so that the second sees what the first has done."""
    if store.state_rev(conn, wish.scope):
        store.touch_scope(conn, wish.scope, now_ms, visible=False)
    return tuple(_promoted(conn, name, found, wish, now_ms) for name, found in _wanted(conn, wish))


def _wanted(conn: Connection, wish: Wish) -> Iterable[tuple[str, list[Shelved]]]:
    """The revisions behind every stable id that was asked for, in the order of asking."""
    every: dict[str, list[Shelved]] = {}
    for one in store.entries(conn, wish.scope):
        every.setdefault(one.stable_id, []).append(one)
    names = every if wish.stable_ids is None else dict.fromkeys(wish.stable_ids)
    return [(name, every.get(name, [])) for name in names]


def _judged(conn: Connection, found: Sequence[Shelved], wish: Wish, now_ms: int) -> _Judged | None:
    """The revision that something is to be said about: one that falls, one that rises, else the newest in review."""
    judged = []
    for shelved in sorted(found, key=lambda one: one.slot, reverse=True):
        marks = steps_store.marks(conn, shelved.entry_id, now_ms)
        judged.append(_Judged(shelved, marks, review(entry_of(shelved), marks, now_ms, wish.transition, wish.consent)))
    return min(judged, key=lambda one: _rank(one.verdict), default=None)


def _rank(verdict: Verdict) -> int:
    match verdict:
        case Lower():
            return 0
        case Promote():
            return 1
        case Hold():
            return 2
        case Reject():
            return 3


def _promoted(conn: Connection, name: str, found: Sequence[Shelved], wish: Wish, now_ms: int) -> Decision:
    judged = _judged(conn, found, wish, now_ms)
    if judged is None:
        return Decision(name, Reject(wish.transition, "not_found"), "not_approved")
    verdict = judged.verdict
    if isinstance(verdict, Reject):
        return Decision(name, verdict, "not_approved")
    try:
        # One entry that can't be written does not keep the others from it.
        with savepoint(conn):
            if isinstance(verdict, Hold):
                _note(conn, judged, verdict, now_ms)
                return Decision(name, verdict, "not_approved")
            _apply(conn, judged, Reviewed(now_ms, wish.transition, wish.consent))
    except (DBAPIError, conn.dialect.loaded_dbapi.Error) as error:
        cause = getattr(error, "orig", None) or error
        return Decision(name, verdict, "write_failed", str(cause).strip().split("\n")[0][:_ERROR_CHARS])
    return Decision(name, verdict)


def _note(conn: Connection, judged: _Judged, verdict: Hold, now_ms: int) -> None:
    shelved = judged.shelved
    if worth_logging(verdict, event_store.last(conn, shelved.scope, shelved.stable_id, verdict.kind)):
        event_store.add(conn, event_of(entry_of(shelved), verdict, now_ms))


def _apply(conn: Connection, judged: _Judged, step: Reviewed) -> None:
    shelved = judged.shelved
    done = reviewed(entry_of(shelved), judged.marks, step)
    steps_store.record(conn, shelved.entry_id, step, step.at_ms)
    if done.event is not None:
        event_store.add(conn, done.event)
    after = with_entry(shelved, done.entry, step.at_ms)
    if shelved.slot == "pending" and after.kept.level == ACTIVE:
        for old in store.find(conn, shelved.scope, shelved.stable_id):
            if old.slot == "current":
                steps_store.forget_entry(conn, old.entry_id)
        store.succeed(conn, after)
    else:
        store.save(conn, after, visible=True)


def proofs(
    conn: Connection, scope: ScopeName, now_ms: int, consent: ConsentGates = "standard"
) -> dict[StableId, tuple[int, int]]:
    """How many successes the shadows of a site have, and how many they need."""
    found = {}
    for shelved in store.entries(conn, scope):
        entry = entry_of(shelved)
        if entry.level == 1 and not entry.deprecated:
            marks = steps_store.marks(conn, shelved.entry_id, now_ms)
            verdict = review(entry, marks, now_ms, "l1_to_l2", consent)
            gates = () if isinstance(verdict, Reject) else verdict.gates
            gate = next((one for one in gates if one.name == "successes"), None)
            if gate is not None:
                found[shelved.stable_id] = (min(int(gate.observed), int(gate.required)), int(gate.required))
    return found
