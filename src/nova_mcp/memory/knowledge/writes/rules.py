"""What becomes of a write: merged per stable id, never into an active entry, retired only on evidence; pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, Literal

from nova_mcp.core.page.selectors import normalize_selector
from nova_mcp.evidence.model import CallRecord
from nova_mcp.memory.knowledge.apply_rules import still_looks_like
from nova_mcp.memory.knowledge.drift import ALWAYS_THERE
from nova_mcp.memory.knowledge.health import DAY_MS
from nova_mcp.memory.knowledge.matching.fingerprints import distinct
from nova_mcp.memory.knowledge.matching.routes import meet
from nova_mcp.memory.knowledge.model import (
    ACTIVE,
    MAX_PHENOMENA,
    SHADOW,
    Action,
    Content,
    Context,
    DomainHint,
    Fingerprint,
    Health,
    Level,
    Phenomenon,
    PhenomenonType,
    Playbook,
    Problem,
    Revisions,
    Signal,
    StableId,
)
from nova_mcp.memory.knowledge.writes.content_rules import LiveVerdict, check_content, unread_words
from nova_mcp.memory.knowledge.writes.stability import action_selectors, fragile_selectors

WriteKind = Literal["created", "updated", "reactivated", "unchanged"]
CONFLICT: Final = "rev_conflict"
EVIDENCE_REQUIRED: Final = "pks.evidence_required"
EVIDENCE_DAYS: Final = 7
_MOST_SHARED: Final = 3


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
    entry: Revisions
    written: Phenomenon
    warnings: tuple[str, ...] = ()

    def on_record(self, record: CallRecord) -> CallRecord:
        return record if self.kind == "unchanged" else record.with_high_signal()


@dataclass(frozen=True, slots=True)
class Refused:
    problems: tuple[Problem, ...]

    @property
    def ordinary(self) -> bool:
        """Said as a plain answer with `ok: false`: the call was fine, and the store said no."""
        return self.problems[0].code == EVIDENCE_REQUIRED

    def on_record(self, record: CallRecord) -> CallRecord:
        return record.with_reason(self.problems[0].code)


@dataclass(frozen=True, slots=True)
class Conflict:
    """Somebody else has written in between."""

    expected: int
    found: int

    def on_record(self, record: CallRecord) -> CallRecord:
        return record.with_reason(CONFLICT)


def _warnings(content: Content, live: Live) -> tuple[str, ...]:
    told = [f'"{one[:80]}" looks generated and may not last.' for one in fragile_selectors(content)]
    if live.verdict.unconfirmed:
        told.append("Some selectors were not found on the open page; the entry stays in review until they are seen.")
    told += [unread_words(*one) for one in live.verdict.unread]
    if content.type in ALWAYS_THERE and not content.context.routes:
        told.append(
            f"Without context.routes a {content.type} is gone wherever it is not shown; name them, or * for all."
        )
    return tuple(told)


def shared_controls(written: Phenomenon, others: Iterable[Phenomenon]) -> tuple[str, ...]:
    """What has to be known of entries that act through the same control: a press there proves none of them."""
    own, routes = _controls(written), written.content.context.routes
    told: dict[str, str] = {}
    for other in others:
        if other.deprecated or other.stable_id == written.stable_id or not meet(routes, other.content.context.routes):
            continue
        both = [one for one in own if one in _controls(other)]
        if both:
            told[other.stable_id] = (
                f'"{both[0][:80]}" is also pressed by "{other.stable_id}", so a press proves neither: keep one entry'
                " (nova.pks_deprecate), or give each its own context.routes."
            )
    return tuple(told.values())[:_MOST_SHARED]


def _controls(phenomenon: Phenomenon) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(normalize_selector, action_selectors(phenomenon.content.playbook))))


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


def _seen_now(phenomenon: Phenomenon, content: Content, live: Live) -> Phenomenon:
    """The same entry once the page has been looked at; elements that were never seen get their looks from there."""
    missing = set(live.verdict.unconfirmed)
    seen = confirmed(phenomenon, [one for one in phenomenon.unconfirmed if one not in missing])
    old, new = phenomenon.content.playbook, content.playbook
    if old is None or new is None or all(one.element is not None for one in old.actions):
        return seen
    actions = tuple(
        one if one.element is not None else replace(one, element=other.element)
        for one, other in zip(old.actions, new.actions, strict=True)
    )
    return replace(seen, content=replace(seen.content, playbook=replace(old, actions=actions)))


def same_words(one: Content, other: Content) -> bool:
    """Whether two contents say the same; what the page showed of an element is not said by anybody."""
    return _wordless(one) == _wordless(other)


def _same(content: Content, old: Content) -> bool:
    """Whether nothing new was said and the page shows the elements as they were learned. One under another label is
    pressed only by a revision that has earned it."""
    return same_words(content, old) and not any(
        now.element is not None and was.element is not None and still_looks_like(was.element, now.element) is None
        for now, was in zip(_actions(content), _actions(old), strict=True)
    )


def _actions(content: Content) -> tuple[Action, ...]:
    return () if content.playbook is None else content.playbook.actions


def _wordless(content: Content) -> Content:
    if content.playbook is None:
        return content
    actions = tuple(replace(one, element=None) for one in content.playbook.actions)
    return replace(content, playbook=replace(content.playbook, actions=actions))


def _rewritten(found: Phenomenon, content: Content, level: Level, live: Live) -> Phenomenon:
    """New content of a revision that does not guide anybody yet: it takes the place of the old."""
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


def _as_shadow(entry: Revisions, content: Content, live: Live) -> Phenomenon:
    """Changed content of an active entry has to earn its level; the old revision goes on meanwhile."""
    fresh = _fresh(entry.current.stable_id, content, SHADOW, live)
    return replace(fresh, revision=entry.current.revision + 1)


def _of_retired(found: Phenomenon, content: Content, level: Level, live: Live) -> tuple[WriteKind, Phenomenon]:
    """What is retired comes back to review once the page confirms it."""
    same = _same(content, found.content)
    if not live.verdict.passed:
        return ("unchanged", found) if same else ("updated", _rewritten(found, content, level, live))
    back = _seen_now(found, content, live) if same else _rewritten(found, content, level, live)
    return "reactivated", replace(back, deprecated_reason=None, level=SHADOW, updated_at_ms=live.now_ms)


def _again(found: Phenomenon, content: Content, level: Level, live: Live) -> tuple[WriteKind, Phenomenon]:
    """The same content once more: what was not seen before may be seen now, and a draft becomes an entry."""
    seen = _seen_now(found, content, live)
    if level <= found.level:
        return "unchanged", seen
    return "updated", replace(seen, level=level, updated_at_ms=live.now_ms)


def _merged(entry: Revisions, content: Content, level: Level, live: Live) -> Written:
    """New content goes to the newest revision; that of an active entry only ever stands beside it."""
    current, found = entry.current, entry.newest
    told = _warnings(content, live)
    kind: WriteKind
    if not current.deprecated and _same(content, current.content):
        kind, same = _again(current, content, level, live)
        return Written(kind, replace(entry, current=same), same, told)
    if found.deprecated:
        kind, after = _of_retired(found, content, level, live)
        told = told if kind == "reactivated" else (*told, "It stays retired until its selectors are seen.")
    elif found.level == ACTIVE:
        kind, after = "updated", _as_shadow(entry, content, live)
    elif _same(content, found.content):
        kind, after = _again(found, content, level, live)
    else:
        kind, after = "updated", _rewritten(found, content, level, live)
    if current.may_guide:
        told = (*told, "The active revision stays until this one has proven itself.")
        return Written(kind, replace(entry, pending=after), after, told)
    beside = entry.pending is not None
    return Written(kind, replace(entry, pending=after) if beside else Revisions(after), after, told)


def wished_content(old: Content | None, wish: Upsert) -> Content:
    playbook = wish.playbook if not isinstance(wish.playbook, Kept) else (old.playbook if old else None)
    context = wish.context if not isinstance(wish.context, Kept) else (old.context if old else Context())
    return Content(wish.type, wish.fingerprint, playbook, context)


def upserted(found: Revisions | None, wish: Upsert, live: Live, *, entries: int) -> Written | Refused:
    """An entry written by hand. `entries` counts what the scope holds."""
    content = wished_content(None if found is None else found.newest.content, wish)
    if problems := (*check_content(content), *live.verdict.problems):
        return Refused(problems)
    if found is not None:
        return _merged(found, content, wish.level, live)
    if entries >= MAX_PHENOMENA:
        return Refused((Problem("pks.scope_full", f"A scope holds at most {MAX_PHENOMENA} entries."),))
    fresh = _fresh(wish.stable_id, content, wish.level, live)
    return Written("created", Revisions(fresh), fresh, _warnings(content, live))


def patched_content(old: Content, patch: Patch) -> Content:
    context = Context() if patch.context is None else patch.context
    return Content(
        old.type if isinstance(patch.type, Kept) else patch.type,
        old.fingerprint if isinstance(patch.fingerprint, Kept) else patch.fingerprint,
        old.playbook if isinstance(patch.playbook, Kept) else patch.playbook,
        old.context if isinstance(context, Kept) else context,
    )


def patched(found: Revisions, patch: Patch, live: Live) -> Written | Refused | Conflict:
    """An entry with some sections replaced; a retired one comes back only if that was asked for."""
    if patch.expected_revision is not None and patch.expected_revision != found.newest.revision:
        return Conflict(patch.expected_revision, found.newest.revision)
    content = patched_content(found.newest.content, patch)
    if problems := (*check_content(content), *live.verdict.problems):
        return Refused(problems)
    if found.newest.deprecated and not patch.revive:
        if _same(content, found.newest.content):
            return Written("unchanged", found, found.newest, _warnings(content, live))
        kept = _rewritten(found.newest, content, found.newest.level, live)
        after = Revisions(kept) if found.pending is None else replace(found, pending=kept)
        return Written("updated", after, kept, _warnings(content, live))
    return _merged(found, content, found.newest.level if found.pending is None else SHADOW, live)


def deprecation_problem(kept: Phenomenon | DomainHint, now_ms: int) -> Problem | None:
    """An active entry is retired only if something spoke against it in the last week."""
    if not kept.may_guide:
        return None
    health, since = kept.health, now_ms - EVIDENCE_DAYS * DAY_MS
    if any(at is not None and at > since for at in (health.last_failure_at_ms, health.last_drift_at_ms)):
        return None
    return Problem("pks.evidence_required", "An active entry is retired after a failure or drift in the last 7 days.")


def deprecated(phenomenon: Phenomenon, reason: str, now_ms: int) -> Phenomenon:
    return replace(phenomenon, deprecated_reason=" ".join(reason.split())[:500], updated_at_ms=now_ms)
