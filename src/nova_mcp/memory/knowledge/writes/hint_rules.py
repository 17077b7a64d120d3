"""What becomes of a written hint: as with phenomena, never into an active one; pure."""

from dataclasses import dataclass, replace

from nova_mcp.evidence.model import CallRecord
from nova_mcp.memory.knowledge.model import ACTIVE, MAX_PHENOMENA, SHADOW, DomainHint, Problem
from nova_mcp.memory.knowledge.writes.content_rules import check_hint
from nova_mcp.memory.knowledge.writes.rules import Refused, WriteKind
from nova_mcp.memory.knowledge.writes.stability import is_fragile


@dataclass(frozen=True, slots=True)
class HintPair:
    """The hint that counts, and a newer one that has to earn its place."""

    current: DomainHint
    pending: DomainHint | None = None

    @property
    def newest(self) -> DomainHint:
        return self.pending or self.current


@dataclass(frozen=True, slots=True)
class HintWritten:
    kind: WriteKind
    pair: HintPair
    written: DomainHint
    warnings: tuple[str, ...] = ()

    def on_record(self, record: CallRecord) -> CallRecord:
        return record if self.kind == "unchanged" else record.with_high_signal()


def _words(hint: DomainHint) -> tuple[object, ...]:
    return hint.kind, hint.selectors, hint.mode, hint.extract, hint.enumerate_max


def _rewritten(found: DomainHint, wish: DomainHint) -> DomainHint:
    return replace(
        found,
        kind=wish.kind,
        selectors=wish.selectors,
        mode=wish.mode,
        extract=wish.extract,
        enumerate_max=wish.enumerate_max,
        level=found.level if found.deprecated else max(found.level, SHADOW),
        revision=found.revision + 1,
        updated_at_ms=wish.updated_at_ms,
    )


def _newer(found: DomainHint, wish: DomainHint, *, seen: bool) -> tuple[WriteKind, DomainHint]:
    same = _words(found) == _words(wish)
    if found.deprecated:
        if not seen:
            return ("unchanged", found) if same else ("updated", _rewritten(found, wish))
        back = found if same else _rewritten(found, wish)
        return "reactivated", replace(back, deprecated_reason=None, level=SHADOW, updated_at_ms=wish.updated_at_ms)
    if not same:
        return "updated", _rewritten(found, wish)
    if found.level >= SHADOW:
        return "unchanged", found
    return "updated", replace(found, level=SHADOW, updated_at_ms=wish.updated_at_ms)


def hint_warnings(hint: DomainHint, missing: tuple[str, ...] = ()) -> tuple[str, ...]:
    told = [f'"{one[:80]}" looks generated and may not last.' for one in hint.selectors if is_fragile(one)]
    told += [f'"{one[:80]}" was not found on the open page.' for one in missing]
    return tuple(told)


def hint_upserted(
    found: HintPair | None, wish: DomainHint, missing: tuple[str, ...], *, entries: int
) -> HintWritten | Refused:
    """A hint written by hand; `missing` are selectors that the open page lacks, `entries` is what the scope holds."""
    if problems := check_hint(wish):
        return Refused(problems)
    told, seen = hint_warnings(wish, missing), len(missing) < len(wish.selectors)
    if found is None:
        if entries >= MAX_PHENOMENA:
            return Refused((Problem("pks.scope_full", f"A scope holds at most {MAX_PHENOMENA} entries."),))
        return HintWritten("created", HintPair(wish), wish, told)
    current, newest = found.current, found.newest
    if not current.deprecated and _words(current) == _words(wish):
        kind, same = _newer(current, wish, seen=seen)
        return HintWritten(kind, replace(found, current=same), same, told)
    if newest.level == ACTIVE and not newest.deprecated:
        fresh = replace(wish, revision=newest.revision + 1)
        told = (*told, "The active revision stays until this one has proven itself.")
        return HintWritten("updated", replace(found, pending=fresh), fresh, told)
    kind, after = _newer(newest, wish, seen=seen)
    if after.deprecated:
        told = (*told, "It stays retired until its selectors are seen.")
    pair = HintPair(after) if found.pending is None else replace(found, pending=after)
    return HintWritten(kind, pair, after, told)
