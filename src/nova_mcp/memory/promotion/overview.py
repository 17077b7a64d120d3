"""What is known of one site as a person looks at it: entries with how far they have come, and the life of one."""

from dataclasses import dataclass
from typing import Final, Literal

from sqlalchemy import Connection, select

from nova_mcp.memory.knowledge import store
from nova_mcp.memory.knowledge.health import trust_of
from nova_mcp.memory.knowledge.model import Phenomenon, Scope, ScopeName, StableId, Trust
from nova_mcp.memory.knowledge.store import Shelved
from nova_mcp.memory.knowledge.tables import knowledge_entry
from nova_mcp.memory.promotion import event_store, steps_store
from nova_mcp.memory.promotion.gates.entries import entry_of
from nova_mcp.memory.promotion.gates.gates import evaluate, next_step
from nova_mcp.memory.promotion.model import ConsentGates, Gate, LearningEvent, Reject, TransitionKind

LIFE: Final = 50
# The gate that says most about how far an entry has come, and in what it counts.
_TELLING: Final[dict[TransitionKind, tuple[str, Literal["sightings", "proofs"]]]] = {
    "l0_to_l1": ("support", "sightings"),
    "l1_to_l2": ("successes", "proofs"),
    "revive": ("successes", "proofs"),
}


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an entry is on its way up; `waits_for` are the other gates that still fail."""

    transition: TransitionKind
    have: int
    need: int
    unit: Literal["sightings", "proofs"]
    waits_for: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class KnownRevision:
    """One revision of an entry with its progress; None for one that is active."""

    shelved: Shelved
    progress: Progress | None


@dataclass(frozen=True, slots=True)
class KnownEntry:
    """What one stable id stands for; `pending` is a newer revision that has to earn its place."""

    current: KnownRevision
    pending: KnownRevision | None = None


@dataclass(frozen=True, slots=True)
class KnownSite:
    about: Scope
    trust: Trust
    entries: tuple[KnownEntry, ...]


@dataclass(frozen=True, slots=True)
class Life:
    """One entry with the decisions about it, oldest first; `cut` when there were earlier ones."""

    entry: KnownEntry
    events: tuple[LearningEvent, ...]
    cut: bool


def progress(conn: Connection, shelved: Shelved, now_ms: int, consent: ConsentGates) -> Progress | None:
    entry = entry_of(shelved)
    kind = next_step(entry)
    if kind not in _TELLING:
        return None
    verdict = evaluate(entry, kind, steps_store.marks(conn, shelved.entry_id, now_ms), now_ms, consent)
    if isinstance(verdict, Reject):
        return None
    name, unit = _TELLING[kind]
    return _progress(kind, {gate.name: gate for gate in verdict.gates}, name, unit)


def _progress(
    kind: TransitionKind, gates: dict[str, Gate], name: str, unit: Literal["sightings", "proofs"]
) -> Progress:
    telling = gates[name]
    others = tuple(gate.name for gate in gates.values() if not gate.passed and gate.name != name)
    return Progress(kind, min(int(telling.observed), int(telling.required)), int(telling.required), unit, others)


def site(conn: Connection, scope: ScopeName, now_ms: int, consent: ConsentGates) -> KnownSite | None:
    """Everything known of a site; None where nothing is."""
    about = store.scope_row(conn, scope)
    if about is None:
        return None
    found: dict[StableId, list[Shelved]] = {}
    for one in store.entries(conn, scope):
        found.setdefault(one.stable_id, []).append(one)
    current = (one.kept for many in found.values() for one in many if one.slot == "current")
    trust = trust_of((one for one in current if isinstance(one, Phenomenon)), now_ms)
    return KnownSite(about, trust, tuple(_entry(conn, many, now_ms, consent) for many in found.values()))


def _entry(conn: Connection, found: list[Shelved], now_ms: int, consent: ConsentGates) -> KnownEntry:
    first, *newer = (KnownRevision(one, progress(conn, one, now_ms, consent)) for one in found)
    return KnownEntry(first, newer[0] if newer else None)


def life(conn: Connection, scope: ScopeName, stable_id: str, now_ms: int, consent: ConsentGates) -> Life | None:
    found = store.find(conn, scope, stable_id)
    if not found:
        return None
    events = event_store.of_entry(conn, scope, stable_id, LIFE + 1)
    return Life(_entry(conn, list(found), now_ms, consent), tuple(events[-LIFE:]), len(events) > LIFE)


def sites_of(conn: Connection, stable_id: str, most: int) -> list[ScopeName]:
    """The sites that have an entry of that name."""
    c = knowledge_entry.c
    found = select(c.scope).where(c.stable_id == stable_id, c.slot == "current").order_by(c.scope).limit(most)
    return [ScopeName(name) for name in conn.execute(found).scalars()]
