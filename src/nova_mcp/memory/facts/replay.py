"""Plays observations back and compares: the same observations must give the same facts, to the last field."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace

from sqlalchemy import Connection, select

from nova_mcp.memory.facts.model import Added, Agreed, Disputed, Fact, Full, Observation, OnlyObserved, Replaced
from nova_mcp.memory.facts.rules import decide
from nova_mcp.memory.facts.store import to_fact, to_observation
from nova_mcp.memory.facts.tables import fact, fact_binding, fact_observation


@dataclass(frozen=True, slots=True)
class Difference:
    """One version of a fact that is not what its observations come to."""

    binding_id: str
    key: str
    version: int
    field: str
    stored: str
    replayed: str


@dataclass(frozen=True, slots=True)
class Replayed:
    """A whole store played back."""

    bindings: int
    observations: int
    facts: int
    differences: tuple[Difference, ...]


def rebuilt(seen: Iterable[Observation], closed_at_ms: int | None = None) -> dict[tuple[str, int], Fact]:
    """Every version of every fact that observations of one scope lead to, in their order; pure."""
    versions: dict[tuple[str, int], Fact] = {}
    current: dict[str, Fact] = {}
    for one in seen:
        # What found no room was not written down, so there is room for everything that was.
        match decide(current.get(one.key), one):
            case Replaced(closed, new):
                versions[closed.key, closed.version] = closed
            case Added(new) | Agreed(new) | Disputed(new) | OnlyObserved(new):
                pass
            case Full():
                continue
        current[new.key] = versions[new.key, new.version] = new
    if closed_at_ms is not None:
        for last in current.values():
            versions[last.key, last.version] = replace(last, valid_to_ms=closed_at_ms)
    return versions


def differences(
    binding_id: str, stored: dict[tuple[str, int], Fact], replayed: dict[tuple[str, int], Fact]
) -> Iterator[Difference]:
    for key, version in sorted(stored.keys() | replayed.keys()):
        ours, theirs = stored.get((key, version)), replayed.get((key, version))
        if ours is None or theirs is None:
            there = ("missing" if ours is None else "present", "missing" if theirs is None else "present")
            yield Difference(binding_id, key, version, "version", *there)
            continue
        for each in fields(Fact):
            pair = getattr(ours, each.name), getattr(theirs, each.name)
            if pair[0] != pair[1]:
                yield Difference(binding_id, key, version, each.name, str(pair[0]), str(pair[1]))


def replay(conn: Connection) -> Replayed:
    """Play every scope back, one at a time."""
    bindings = conn.execute(
        select(fact_binding.c.binding_id, fact_binding.c.closed_at_ms).order_by(fact_binding.c.binding_id)
    ).all()
    observations = facts = 0
    found: list[Difference] = []
    for binding in bindings:
        seen = [
            to_observation(row)
            for row in conn.execute(
                select(fact_observation)
                .where(fact_observation.c.binding_id == binding.binding_id)
                .order_by(fact_observation.c.observation_id)
            )
        ]
        rows = conn.execute(select(fact).where(fact.c.binding_id == binding.binding_id))
        stored = {(one.key, one.version): one for one in map(to_fact, rows)}
        observations, facts = observations + len(seen), facts + len(stored)
        found += differences(binding.binding_id, stored, rebuilt(seen, binding.closed_at_ms))
    return Replayed(len(bindings), observations, facts, tuple(found))
