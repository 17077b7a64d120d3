"""Remembers observations and facts; every function runs inside its caller's transaction."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from sqlalchemy import Connection, Row, bindparam, column, insert, select, table, text, update

from nova_mcp.core.signal_vocabulary import is_core
from nova_mcp.memory.facts.accounts import account_hash
from nova_mcp.memory.facts.model import (
    MOST_CUSTOM,
    Added,
    Agreed,
    BindingId,
    ClaimResult,
    Disputed,
    Fact,
    Full,
    Observation,
    OnlyObserved,
    Page,
    Replaced,
    Scope,
)
from nova_mcp.memory.facts.rules import decide, result_of, worth_noting
from nova_mcp.memory.facts.tables import fact, fact_binding, fact_observation

Taken: TypeAlias = Added | Agreed | Replaced | Disputed | OnlyObserved

_ACCOUNT_KEYS: Final = frozenset({"core.account.email", "core.account.display_name"})
# The browser's own journal, read here only to learn that a target has ended.
TARGETS: Final = table("target_journal", column("target_id"), column("ended_at_ms"))


@dataclass(frozen=True, slots=True)
class Binding:
    """A target on a service, as the store knows it."""

    binding_id: BindingId
    service_key: str
    agent_url_hash: str | None
    account_hash: str | None
    custom_facts: int
    closed_at_ms: int | None


_BINDING = select(fact_binding).where(fact_binding.c.binding_id == bindparam("binding"))
_HELD = _BINDING.with_for_update()
# Both databases read this sentence the same way; whoever comes second waits for the first and finds its row.
_BIND = text(
    "INSERT INTO fact_binding (binding_id, target_id, sandbox_id, principal, service_key, custom_facts, opened_at_ms) "
    "VALUES (:binding, :target, :sandbox, :principal, :service, 0, :now) ON CONFLICT (binding_id) DO NOTHING"
)


def _binding(row: Row[Any] | None) -> Binding | None:
    if row is None:
        return None
    return Binding(
        BindingId(row.binding_id),
        row.service_key,
        row.agent_url_hash,
        row.account_hash,
        row.custom_facts,
        row.closed_at_ms,
    )


def find_binding(conn: Connection, binding_id: BindingId) -> Binding | None:
    return _binding(conn.execute(_BINDING, {"binding": binding_id}).one_or_none())


def _hold(conn: Connection, scope: Scope, now_ms: int) -> Binding | None:
    """The scope's row, held until the transaction ends; None when its target has ended."""
    row = conn.execute(_HELD, {"binding": scope.binding_id}).one_or_none()
    if row is None:
        if _has_ended(conn, scope.target_id):
            return None
        conn.execute(
            _BIND,
            {
                "binding": scope.binding_id,
                "target": scope.target_id,
                "sandbox": scope.sandbox_id,
                "principal": scope.principal,
                "service": scope.service_key,
                "now": now_ms,
            },
        )
        row = conn.execute(_HELD, {"binding": scope.binding_id}).one()
    held = _binding(row)
    return None if held is None or held.closed_at_ms is not None else held


def _has_ended(conn: Connection, target_id: str) -> bool:
    ended = select(TARGETS.c.ended_at_ms).where(TARGETS.c.target_id == target_id)
    return conn.execute(ended).scalar() is not None


# -- reading

_CURRENT = select(fact).where(fact.c.binding_id == bindparam("binding"), fact.c.valid_to_ms.is_(None))
_CURRENT_OF = _CURRENT.where(fact.c.signal_key.in_(bindparam("keys", expanding=True)))


def to_fact(row: Row[Any]) -> Fact:
    return Fact(
        key=row.signal_key,
        version=row.version,
        value=row.value,
        state=row.state,
        confidence=row.confidence,
        certainty=row.certainty,
        source=row.source_kind,
        support=row.support,
        contradictions=row.contradictions,
        corroborated=row.corroborated,
        contradicting=row.contradicting,
        call_id=row.call_id,
        url=row.url,
        url_hash=row.url_hash,
        first_observed_at_ms=row.first_observed_at_ms,
        last_observed_at_ms=row.last_observed_at_ms,
        valid_from_ms=row.valid_from_ms,
        valid_to_ms=row.valid_to_ms,
        superseded_by=row.superseded_by,
    )


def _to_row(binding_id: BindingId, one: Fact) -> dict[str, Any]:
    return {
        "binding_id": binding_id,
        "signal_key": one.key,
        "version": one.version,
        "value": one.value,
        "state": one.state,
        "confidence": one.confidence,
        "certainty": one.certainty,
        "source_kind": one.source,
        "support": one.support,
        "contradictions": one.contradictions,
        "corroborated": one.corroborated,
        "contradicting": one.contradicting,
        "call_id": one.call_id,
        "url": one.url,
        "url_hash": one.url_hash,
        "first_observed_at_ms": one.first_observed_at_ms,
        "last_observed_at_ms": one.last_observed_at_ms,
        "valid_from_ms": one.valid_from_ms,
        "valid_to_ms": one.valid_to_ms,
        "superseded_by": one.superseded_by,
    }


def current_facts(conn: Connection, binding_id: BindingId, keys: Collection[str] | None = None) -> dict[str, Fact]:
    """The current facts of a scope by key, all of them or the named ones."""
    if keys is None:
        rows = conn.execute(_CURRENT, {"binding": binding_id})
    else:
        rows = conn.execute(_CURRENT_OF, {"binding": binding_id, "keys": sorted(keys)})
    return {row.signal_key: to_fact(row) for row in rows}


def closed_versions(conn: Connection, binding_id: BindingId, keys: Collection[str], most: int) -> dict[str, list[Fact]]:
    """What was held true earlier, newest first, at most so many of each key."""
    rows = conn.execute(
        select(fact)
        .where(fact.c.binding_id == binding_id, fact.c.signal_key.in_(sorted(keys)), fact.c.valid_to_ms.is_not(None))
        .order_by(fact.c.signal_key, fact.c.version.desc())
    )
    found: dict[str, list[Fact]] = {}
    for row in rows:
        kept = found.setdefault(row.signal_key, [])
        if len(kept) < most:
            kept.append(to_fact(row))
    return found


def scope_of(conn: Connection, binding_id: BindingId) -> tuple[Binding | None, dict[str, Fact]]:
    """A scope and its current facts in one look."""
    found = find_binding(conn, binding_id)
    return found, {} if found is None else current_facts(conn, binding_id)


# -- writing

_WRITE_OBSERVATION = insert(fact_observation)
_ADD = insert(fact)
_AS_IT_STOOD = (
    fact.c.binding_id == bindparam("of_binding"),
    fact.c.signal_key == bindparam("of_key"),
    fact.c.version == bindparam("of_version"),
    # History is closed, never edited.
    fact.c.valid_to_ms.is_(None),
)
_CHANGED = (
    *("state", "confidence", "certainty", "source_kind", "support", "contradictions", "corroborated"),
    *("contradicting", "url", "url_hash", "last_observed_at_ms", "valid_to_ms", "superseded_by"),
)
_CHANGE = update(fact).where(*_AS_IT_STOOD).values({name: bindparam(name) for name in _CHANGED})


@dataclass(slots=True)
class _Changes:
    """What one call does to a scope, written at once: as many statements for fifty claims as for one."""

    observations: list[Observation] = field(default_factory=list)
    added: dict[tuple[str, int], Fact] = field(default_factory=dict)
    changed: dict[tuple[str, int], Fact] = field(default_factory=dict)

    def take(self, seen: Observation, decision: Taken) -> Fact:
        self.observations.append(seen)
        match decision:
            case Added(new):
                self.added[new.key, new.version] = new
            case Replaced(closed, new):
                self._change(closed)
                self.added[new.key, new.version] = new
            case Agreed(new) | Disputed(new):
                self._change(new)
            case OnlyObserved(new):
                pass
        return new

    def _change(self, one: Fact) -> None:
        where = one.key, one.version
        (self.added if where in self.added else self.changed)[where] = one

    def write(self, conn: Connection, binding_id: BindingId) -> None:
        conn.execute(_WRITE_OBSERVATION, [_observation_row(binding_id, seen) for seen in self.observations])
        # What is closed goes first: there is never more than one current fact, not even for a moment.
        if self.changed:
            conn.execute(_CHANGE, [_changed_row(binding_id, one) for one in self.changed.values()])
        if self.added:
            conn.execute(_ADD, [_to_row(binding_id, one) for one in self.added.values()])


def note(conn: Connection, scope: Scope, seen: Sequence[Observation]) -> tuple[ClaimResult, ...] | None:
    """Take observations in the order given; None when the scope is closed and nothing was written."""
    held = _hold(conn, scope, seen[0].observed_at_ms)
    if held is None:
        return None
    facts = current_facts(conn, held.binding_id, {one.key for one in seen})
    custom, results, changes = held.custom_facts, [], _Changes()
    for one in seen:
        current = facts.get(one.key)
        if one.source == "system" and not worth_noting(current, one):
            continue
        decision = decide(current, one, room=is_core(one.key) or custom < MOST_CUSTOM)
        results.append(result_of(one, decision))
        if not isinstance(decision, Full):
            custom += isinstance(decision, Added) and not is_core(one.key)
            facts[one.key] = changes.take(one, decision)
    if changes.observations:
        changes.write(conn, held.binding_id)
        _touch(conn, held, seen, facts, custom)
    return tuple(results)


def _changed_row(binding_id: BindingId, one: Fact) -> dict[str, Any]:
    row = _to_row(binding_id, one)
    which = {"of_binding": binding_id, "of_key": one.key, "of_version": one.version}
    return {**{name: row[name] for name in _CHANGED}, **which}


def _observation_row(binding_id: BindingId, seen: Observation) -> dict[str, Any]:
    return {
        "binding_id": binding_id,
        "signal_key": seen.key,
        "value": seen.value,
        "certainty": seen.certainty,
        "confidence": seen.confidence,
        "source_kind": seen.source,
        "evidence": seen.evidence,
        "perception_id": seen.perception_id,
        "call_id": seen.call_id,
        "url": seen.page.url,
        "url_hash": seen.page.url_hash,
        "route_key": seen.page.route_key,
        "observed_at_ms": seen.observed_at_ms,
    }


def to_observation(row: Row[Any]) -> Observation:
    return Observation(
        key=row.signal_key,
        value=row.value,
        certainty=row.certainty,
        source=row.source_kind,
        call_id=row.call_id,
        page=Page(row.url, row.url_hash, row.route_key),
        observed_at_ms=row.observed_at_ms,
        evidence=row.evidence,
        perception_id=row.perception_id,
    )


_TOUCH = (
    update(fact_binding)
    .where(fact_binding.c.binding_id == bindparam("of_binding"))
    .values(custom_facts=bindparam("custom"), agent_url_hash=bindparam("agent_url"), account_hash=bindparam("account"))
)


def _touch(
    conn: Connection, held: Binding, seen: Sequence[Observation], facts: Mapping[str, Fact], custom: int
) -> None:
    from_agent = [one.page.url_hash for one in seen if one.source == "agent"]
    agent_url = from_agent[-1] if from_agent else held.agent_url_hash
    account = held.account_hash
    if not _ACCOUNT_KEYS.isdisjoint(facts):
        known = current_facts(conn, held.binding_id, _ACCOUNT_KEYS)
        account = account_hash(held.service_key, {key: json.loads(one.value) for key, one in known.items()})
        _meet(conn, held.service_key, account, seen[-1].observed_at_ms)
    if (custom, agent_url, account) != (held.custom_facts, held.agent_url_hash, held.account_hash):
        values = {"custom": custom, "agent_url": agent_url, "account": account}
        conn.execute(_TOUCH, {"of_binding": held.binding_id, **values})


_MEET = text(
    "INSERT INTO fact_account (service_key, account_hash, first_seen_ms, last_seen_ms) "
    "VALUES (:service, :account, :now, :now) "
    "ON CONFLICT (service_key, account_hash) DO UPDATE SET last_seen_ms = excluded.last_seen_ms"
)


def _meet(conn: Connection, service_key: str, account: str | None, now_ms: int) -> None:
    if account is not None:
        conn.execute(_MEET, {"service": service_key, "account": account, "now": now_ms})
