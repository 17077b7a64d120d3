"""What becomes of a write: merged per stable id, never into an active entry, retired only on evidence; pure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, Literal

from nova_mcp.knowledge.fingerprints import distinct
from nova_mcp.knowledge.health import DAY_MS
from nova_mcp.knowledge.model import (
    ACTIVE,
    MAX_PHENOMENA,
    SHADOW,
    Content,
    Context,
    Entry,
    Fingerprint,
    Health,
    Level,
    Phenomenon,
    PhenomenonType,
    Playbook,
    Problem,
    Signal,
    StableId,
)
from nova_mcp.knowledge.refusing import LiveVerdict, check_content
from nova_mcp.knowledge.stability import fragile_selectors

WriteKind = Literal["created", "updated", "reactivated", "unchanged"]
EVIDENCE_DAYS: Final = 7


class Kept(Enum):
    """A section that a patch doesn't mention stays as it is, which is not the same as clearing it."""

    KEPT = "kept"


KEPT: Final = Kept.KEPT


@dataclass(frozen=True, slots=True)
class Upsert:
    """An entry as an agent gives it; what it leaves out stays. `level` is lower only for Nova's own drafts."""

    stable_id: StableId
    type: PhenomenonType
    fingerprint: Fingerprint
    playbook: Playbook | Kept = KEPT
    context: Context | Kept = KEPT
    level: Level = SHADOW


@dataclass(frozen=True, slots=True)
class Patch:
    """Sections to be replaced; None clears the context, `revive` takes back a deprecation."""

    type: PhenomenonType | Kept = KEPT
    fingerprint: Fingerprint | Kept = KEPT
    playbook: Playbook | Kept = KEPT
    context: Context | Kept | None = KEPT
    revive: bool = False
    expected_revision: int | None = None


@dataclass(frozen=True, slots=True)
class Live:
    """What the open page said when it was written, and which signals held there."""

    verdict: LiveVerdict
    held: frozenset[Signal]
    now_ms: int


@dataclass(frozen=True, slots=True)
class Written:
    """An entry after the write. `revision` is the one that was written or confirmed."""

    kind: WriteKind
    entry: Entry
    written: Phenomenon
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Refused:
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class Conflict:
    """Somebody else has written in between."""

    expected: int
    found: int


def _warnings(content: Content, live: Live) -> tuple[str, ...]:
    told = [f'"{one[:80]}" looks generated and may not last.' for one in fragile_selectors(content)]
    if live.verdict.unconfirmed:
        told.append("Some selectors were not found on the open page; the entry stays in review until they are seen.")
    return tuple(told)


def _baseline(content: Content, live: Live) -> frozenset[Signal]:
    """What held when it was written; where nothing could be seen, what is claimed."""
    signals = distinct(content.fingerprint.signals)
    return frozenset(one for one in signals if one in live.held) or frozenset(signals)


def _fresh(stable_id: StableId, content: Content, level: Level, live: Live) -> Phenomenon:
    seen = live.now_ms if live.verdict.passed else None
    return Phenomenon(
        stable_id=stable_id,
        content=content,
        level=level,
        created_at_ms=live.now_ms,
        updated_at_ms=live.now_ms,
        health=Health(last_confirmed_at_ms=seen),
        baseline=_baseline(content, live),
        unconfirmed=live.verdict.unconfirmed,
    )


def confirmed(phenomenon: Phenomenon, seen: Sequence[str]) -> Phenomenon:
    """An entry once some of its selectors have been seen on a page."""
    left = tuple(one for one in phenomenon.unconfirmed if one not in seen)
    return phenomenon if left == phenomenon.unconfirmed else replace(phenomenon, unconfirmed=left)


def _seen_now(phenomenon: Phenomenon, live: Live) -> Phenomenon:
    missing = set(live.verdict.unconfirmed)
    return confirmed(phenomenon, [one for one in phenomenon.unconfirmed if one not in missing])


def _rewritten(found: Phenomenon, content: Content, level: Level, live: Live) -> Phenomenon:
    """New content of an entry that does not guide anybody yet: it takes the place of the old."""
    return replace(
        found,
        content=content,
        level=max(found.level, level) if not found.deprecated else found.level,
        revision=found.revision + 1,
        updated_at_ms=live.now_ms,
        baseline=_baseline(content, live),
        drift_debt=0.0,
        unconfirmed=live.verdict.unconfirmed,
    )


def _revived(found: Phenomenon, live: Live) -> Phenomenon:
    return replace(found, deprecated_reason=None, level=SHADOW, updated_at_ms=live.now_ms)


def _as_shadow(entry: Entry, content: Content, live: Live) -> Entry:
    """Changed content of an active entry has to earn its level; the old revision goes on meanwhile."""
    fresh = _fresh(entry.current.stable_id, content, SHADOW, live)
    return replace(entry, pending=replace(fresh, revision=entry.newest.revision + 1))


def _merged(entry: Entry, content: Content, level: Level, live: Live) -> Written:
    current, newest = entry.current, entry.newest
    told = _warnings(content, live)
    if current.deprecated:
        found = current if content == current.content else _rewritten(current, content, level, live)
        if live.verdict.passed:
            back = _revived(_seen_now(found, live), live)
            return Written("reactivated", Entry(back), back, told)
        kind: WriteKind = "unchanged" if found is current else "updated"
        return Written(kind, Entry(found), found, (*told, "It stays retired until its selectors are seen."))
    for known in (newest, current):
        if content == known.content:
            same = replace(_seen_now(known, live), level=max(known.level, level))
            kept = replace(entry, current=same) if known is current else replace(entry, pending=same)
            return Written("unchanged" if same.level == known.level else "updated", kept, same, told)
    if current.level == ACTIVE:
        after = _as_shadow(entry, content, live)
        return Written(
            "updated", after, after.newest, (*told, "The active revision stays until this one has proven itself.")
        )
    rewritten = _rewritten(current, content, level, live)
    return Written("updated", Entry(rewritten), rewritten, told)


def upserted(found: Entry | None, wish: Upsert, live: Live, *, entries: int) -> Written | Refused:
    """An entry written by hand. `entries` counts what the scope holds."""
    old = None if found is None else found.newest.content
    playbook = wish.playbook if not isinstance(wish.playbook, Kept) else (old.playbook if old else None)
    context = wish.context if not isinstance(wish.context, Kept) else (old.context if old else Context())
    content = Content(wish.type, wish.fingerprint, playbook, context)
    if problems := (*check_content(content), *live.verdict.problems):
        return Refused(problems)
    if found is not None:
        return _merged(found, content, wish.level, live)
    if entries >= MAX_PHENOMENA:
        return Refused((Problem("pks.scope_full", f"A scope holds at most {MAX_PHENOMENA} entries."),))
    fresh = _fresh(wish.stable_id, content, wish.level, live)
    return Written("created", Entry(fresh), fresh, _warnings(content, live))


def patched_content(old: Content, patch: Patch) -> Content:
    context = Context() if patch.context is None else patch.context
    return Content(
        old.type if isinstance(patch.type, Kept) else patch.type,
        old.fingerprint if isinstance(patch.fingerprint, Kept) else patch.fingerprint,
        old.playbook if isinstance(patch.playbook, Kept) else patch.playbook,
        old.context if isinstance(context, Kept) else context,
    )


def patched(found: Entry, patch: Patch, live: Live) -> Written | Refused | Conflict:
    """An entry with some sections replaced; a retired one comes back only if that was asked for."""
    if patch.expected_revision is not None and patch.expected_revision != found.newest.revision:
        return Conflict(patch.expected_revision, found.newest.revision)
    content = patched_content(found.newest.content, patch)
    if problems := (*check_content(content), *live.verdict.problems):
        return Refused(problems)
    if found.current.deprecated and not patch.revive:
        if content == found.current.content:
            return Written("unchanged", found, found.current, _warnings(content, live))
        kept = _rewritten(found.current, content, found.current.level, live)
        return Written("updated", Entry(kept), kept, _warnings(content, live))
    return _merged(found, content, found.newest.level if found.pending is None else SHADOW, live)


def deprecation_problem(phenomenon: Phenomenon, now_ms: int) -> Problem | None:
    """An active entry is retired only if something spoke against it in the last week."""
    if phenomenon.level != ACTIVE or phenomenon.deprecated:
        return None
    health, since = phenomenon.health, now_ms - EVIDENCE_DAYS * DAY_MS
    if any(at is not None and at > since for at in (health.last_failure_at_ms, health.last_drift_at_ms)):
        return None
    return Problem("pks.evidence_required", "An active entry is retired after a failure or drift in the last 7 days.")


def deprecated(phenomenon: Phenomenon, reason: str, now_ms: int) -> Phenomenon:
    return replace(phenomenon, deprecated_reason=" ".join(reason.split())[:500], updated_at_ms=now_ms)


def readers_see_change(before: Entry | None, after: Entry) -> bool:
    """Whether a scope's `contentRev` moves: counters and sightings alone don't change what is known."""
    if before is None:
        return True

    def shown(one: Phenomenon | None) -> tuple[object, ...]:
        return () if one is None else (one.content, one.level, one.deprecated_reason, one.revision)

    return (shown(before.current), shown(before.pending)) != (shown(after.current), shown(after.pending))
