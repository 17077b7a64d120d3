"""Writes what was generated: candidates at the lowest level, hints, and patches, each with its event in the log."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from sqlalchemy import Connection

from nova_mcp.memory.journal.candidates import Candidate
from nova_mcp.memory.knowledge import store
from nova_mcp.memory.knowledge.model import (
    CANDIDATE,
    MAX_FALLBACKS,
    Action,
    Content,
    DomainHint,
    HintId,
    Level,
    Phenomenon,
    Playbook,
    ScopeName,
    StableId,
)
from nova_mcp.memory.knowledge.store import Birth, Origin, Shelved
from nova_mcp.memory.knowledge.writes.hint_rules import HintWritten
from nova_mcp.memory.knowledge.writes.page_check import PageCheck
from nova_mcp.memory.knowledge.writes.rules import KEPT, Patch, Refused, Upsert, Written
from nova_mcp.memory.knowledge.writes.store import Writer
from nova_mcp.memory.promotion import event_store, steps_store
from nova_mcp.memory.promotion.drafts.model import Hint, Neighbour, Proposal, Skipped
from nova_mcp.memory.promotion.drafts.rules import Surroundings
from nova_mcp.memory.promotion.model import EventKind, LearningEvent

WRITER: Final = Writer(steps_store)


@dataclass(slots=True)
class Drafted:
    """What became of proposals: those that were written, and why the others were not."""

    written: list[Proposal] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Looks:
    """What the open page showed of each proposal, by its candidate key; nothing where nobody looked."""

    now_ms: int
    checks: Mapping[str, PageCheck] = field(default_factory=dict)

    def of(self, proposal: Proposal) -> PageCheck:
        return self.checks.get(proposal.candidate_key) or PageCheck(self.now_ms)


def surroundings(found: Sequence[Shelved], *, semantic_open: bool) -> Surroundings:
    """A scope as generating looks at it: the newest revision of every entry."""
    newest = {one.stable_id: one.kept for one in sorted(found, key=lambda one: one.slot == "pending")}
    phenomena = [one for one in newest.values() if isinstance(one, Phenomenon)]
    hints = (one for one in newest.values() if isinstance(one, DomainHint))
    return Surroundings(
        known=tuple(map(_known, phenomena)),
        semantic_open=semantic_open,
        hinted=frozenset(selector for one in hints for selector in one.selectors),
        entries=len(newest),
    )


def _known(one: Phenomenon) -> Neighbour:
    playbook = one.content.playbook
    actions = () if playbook is None else playbook.actions
    return Neighbour(one.stable_id, one.content.type, one.content.fingerprint.signals, actions, one.deprecated)


# -- what a patch makes of an entry


def content_of(one: Proposal, stored: Content | None) -> Content | None:
    """What an entry would say afterwards: a draft as it stands, a patch merged into what is stored; None for hints."""
    if not isinstance(one.body, Content):
        return None
    return one.body if one.kind != "patch" or stored is None else _merged(one, one.body, stored)


def _merged(one: Proposal, body: Content, stored: Content) -> Content:
    """Only what was seen to be otherwise is changed; what an agent wrote beside it stays."""
    pressed = None if body.playbook is None else body.playbook.actions[0]
    if one.replaces is not None:
        return replace(stored, playbook=_replaced(stored.playbook, one.replaces, pressed))
    signs = replace(stored.fingerprint, signals=body.fingerprint.signals)
    playbook = stored.playbook
    if playbook is None:
        playbook = body.playbook
    elif len(playbook.actions) == 1 and playbook.actions[0].selector is not None:
        playbook = _replaced(playbook, playbook.actions[0].selector, pressed)
    return replace(stored, fingerprint=signs, playbook=playbook)


def _replaced(playbook: Playbook | None, old: str, pressed: Action | None) -> Playbook | None:
    """The playbook with another first choice where the old one stood; other ways that it knew stay."""
    if playbook is None or pressed is None or pressed.selector is None:
        return playbook
    actions = tuple(
        _pressing(one, pressed.selector) if one.selector == old and one.selector != pressed.selector else one
        for one in playbook.actions
    )
    return replace(playbook, actions=actions)


def _pressing(action: Action, selector: str) -> Action:
    kept = tuple(one for one in action.fallbacks if one != selector)[:MAX_FALLBACKS]
    return replace(action, selector=selector, fallbacks=kept, element=None)


# -- writing


def write(conn: Connection, proposals: Sequence[Proposal], looks: Looks, origin: Origin = "generated") -> Drafted:
    """Everything in the caller's transaction; what the rules of writing refuse is skipped with their reason."""
    done = Drafted()
    for one in sorted(proposals, key=lambda one: one.host):
        why = _write(conn, one, looks, Birth(origin, one.candidate_key))
        if why is None:
            done.written.append(one)
        else:
            done.skipped.append(Skipped(one.candidate_key, why))
    return done


def _write(conn: Connection, one: Proposal, looks: Looks, birth: Birth) -> str | None:
    """The reason why it was not written; None when it was."""
    scope = ScopeName(one.host)
    # The scope's row first, as everybody who writes here does: what is found from here on stays as it is.
    store.touch_scope(conn, scope, looks.now_ms, visible=False)
    found = store.find(conn, scope, one.stable_id, lock=True)
    if one.kind == "patch":
        return _patched(conn, one, found, looks)
    if found:
        # Somebody was faster, and what stands there may be more than a draft by now.
        return "already_covered"
    done: Written | HintWritten | Refused
    match one.body:
        case Hint() as body:
            done = WRITER.upsert_hint(conn, scope, _hint(one.stable_id, body, looks.now_ms), birth=birth)
        case Content() as body:
            playbook = KEPT if body.playbook is None else body.playbook
            wish = Upsert(one.stable_id, body.type, body.fingerprint, playbook, body.context, CANDIDATE)
            done = WRITER.upsert(conn, scope, wish, looks.of(one), birth)
    if isinstance(done, Refused):
        return done.problems[0].code
    _log(conn, one, done.written.level, "learn_generate", looks.now_ms)
    return None


def _patched(conn: Connection, one: Proposal, found: tuple[Shelved, ...], looks: Looks) -> str | None:
    entry = store.paired(found)
    if entry is None or entry.newest.deprecated:
        return "entry_retired"
    content = content_of(one, entry.newest.content)
    if content is None or content == entry.newest.content:
        return "already_covered"
    playbook = KEPT if content.playbook is None else content.playbook
    patch = Patch(fingerprint=content.fingerprint, playbook=playbook)
    match WRITER.patch(conn, ScopeName(one.host), one.stable_id, patch, looks.of(one)):
        case Refused(problems):
            return problems[0].code
        case Written(kind, _, written):
            if kind == "unchanged":
                return "already_covered"
            _log(conn, one, written.level, "learn_generate_patch", looks.now_ms)
            return None
        case _:
            return "entry_retired"


def _hint(stable_id: StableId, hint: Hint, now_ms: int) -> DomainHint:
    return DomainHint(HintId(stable_id), hint.kind, hint.selectors, now_ms, now_ms, mode="item_root", level=CANDIDATE)


def log_skipped(conn: Connection, candidates: Sequence[Candidate], skipped: Sequence[Skipped], now_ms: int) -> None:
    """Leaves the reason of every committed candidate that became nothing in the log."""
    reasons = {one.candidate_key: one.reason for one in skipped}
    for one in candidates:
        if one.candidate_key in reasons:
            log_reasons(conn, [one], reasons[one.candidate_key], now_ms)


def log_reasons(conn: Connection, candidates: Sequence[Candidate], reason: str, now_ms: int) -> None:
    for one in candidates:
        last = event_store.last(conn, one.place.host, one.stable_id, "learn_generate")
        if last is None or last.rejection != reason:
            event = LearningEvent(one.stable_id, one.place.host, 0, 0, "learn_generate", now_ms, rejection=reason)
            event_store.add(conn, event)


def _log(conn: Connection, one: Proposal, level: Level, kind: EventKind, now_ms: int) -> None:
    event_store.add(conn, LearningEvent(one.stable_id, one.host, level, level, kind, now_ms))
