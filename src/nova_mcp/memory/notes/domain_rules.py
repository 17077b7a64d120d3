"""Decides what a note about a host comes to: how far it goes, when it is due again, how it is told; pure."""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from nova_mcp.evidence.model import CallRecord
from nova_mcp.memory.notes.domain_model import (
    Ack,
    DomainNote,
    Enforcement,
    Form,
    Heard,
    Keep,
    NoteMode,
    NoteScope,
    Repeat,
    Wish,
)
from nova_mcp.memory.notes.model import EVERYBODY

REV_CONFLICT: Final = "rev_conflict"
MOST_CHARS: Final = 100_000
MOST_ENFORCED_CHARS: Final = 2_000
MOST_PER_HOST: Final = 20
MOST_PER_PRINCIPAL: Final = 2_000
MOST_STUBS: Final = 25
HINT_CHARS: Final = 200
HASH_CHARS: Final = 24
MINUTE_MS: Final = 60_000
DAY_MS: Final = 24 * 60 * MINUTE_MS
UNUSED_MS: Final = 180 * DAY_MS

_STRENGTH: Final[dict[str, int]] = {"none": 0, "off": 0, "warn": 1, "block": 2}
_LEVELS: Final[tuple[Enforcement, ...]] = ("none", "warn", "block")


# -- how far a note goes


def scope_of(note: DomainNote, host: str) -> NoteScope:
    return "host" if note.domain == host else "parent"


def level_of(note: DomainNote, host: str, mode: NoteMode) -> Enforcement:
    """What a note does on a host: only its own host can be held to it, and never further than the operator lets it."""
    if note.domain != host:
        return "none"
    return _LEVELS[min(_STRENGTH[note.enforcement], _STRENGTH[mode])]


def in_order(notes: Iterable[DomainNote], host: str, mode: NoteMode) -> list[DomainNote]:
    """What stops a call first, then what warns, then hints; the host's own before its parent's."""

    def rank(note: DomainNote) -> tuple[int, bool, str, bool, str]:
        level = _STRENGTH[level_of(note, host, mode)]
        return -level, note.domain != host, note.key, note.principal != EVERYBODY, note.note_id

    return sorted(notes, key=rank)


# -- when it has to be heard again


def repeat_of(note: DomainNote, usual: Repeat) -> Repeat:
    """A note's own triggers, or the usual ones where it names none."""
    return Repeat(
        usual.minutes if note.repeat_minutes is None else note.repeat_minutes,
        usual.calls if note.repeat_tool_calls is None else note.repeat_tool_calls,
    )


def ack_valid(ack: Ack | None, rev: int, repeat: Repeat, now_ms: int, calls: int) -> bool:
    """Whether what was acknowledged still counts; `calls` are all that were dispatched on the target so far."""
    if ack is None or ack.rev != rev:
        return False
    in_time = repeat.minutes == 0 or now_ms - ack.at_ms < repeat.minutes * MINUTE_MS
    return in_time and (repeat.calls == 0 or calls - ack.calls_at < repeat.calls)


@dataclass(frozen=True, slots=True)
class Moment:
    """Where and when notes are asked for: the host, how far notes may go, the time, the calls on the target."""

    host: str
    mode: NoteMode
    now_ms: int
    calls: int
    usual: Repeat


def pending_notes(
    notes: Iterable[DomainNote], level: Enforcement, heard: Callable[[DomainNote], Ack | None], moment: Moment
) -> tuple[DomainNote, ...]:
    """The notes of a level that are due: never answered for, changed since, or too long ago."""
    return tuple(
        note
        for note in in_order(notes, moment.host, moment.mode)
        if level_of(note, moment.host, moment.mode) == level
        and not ack_valid(heard(note), note.rev, repeat_of(note, moment.usual), moment.now_ms, moment.calls)
    )


# -- how it is told


def form_of(heard: Heard | None, rev: int) -> Form:
    """In full once, then by name; in full again after so many names that the text may be out of sight."""
    return "stub" if heard is not None and heard.rev == rev and heard.stubs < MOST_STUBS else "full"


def after_telling(heard: Heard | None, rev: int, form: Form) -> Heard | None:
    """What a caller has once it was told; a name alone delivers nothing."""
    if form == "full":
        return Heard(rev)
    if heard is None or heard.rev != rev:
        return heard
    return Heard(rev, heard.stubs + 1)


def notes_hash(notes: Iterable[DomainNote]) -> str:
    """Names a set of notes as they stand."""
    pairs = sorted((note.note_id, note.rev) for note in notes)
    text = "\n".join(f"{note_id}:{rev}" for note_id, rev in pairs)
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:HASH_CHARS]


# -- writing


@dataclass(frozen=True, slots=True)
class Create:
    note: Wish
    enforcement: Enforcement
    repeat: tuple[int | None, int | None]


@dataclass(frozen=True, slots=True)
class Change:
    """The note as it will be."""

    note: DomainNote


@dataclass(frozen=True, slots=True)
class Unchanged:
    note: DomainNote


@dataclass(frozen=True, slots=True)
class RevConflict:
    """Somebody else was faster; `current_rev` is 0 where there is no such note."""

    current_rev: int

    def on_record(self, record: CallRecord) -> CallRecord:
        return record.with_reason(REV_CONFLICT)


@dataclass(frozen=True, slots=True)
class UserOwned:
    """The operator wrote it, so an agent leaves it alone."""


@dataclass(frozen=True, slots=True)
class TooLong:
    chars: int


@dataclass(frozen=True, slots=True)
class Full:
    """No more notes of that principal fit, for that host or in all."""

    cap: int
    per_host: bool


Refused = RevConflict | UserOwned | TooLong | Full
Decision = Create | Change | Unchanged | Refused


def decide_write(wish: Wish, current: DomainNote | None, of_host: int, of_principal: int, now_ms: int) -> Decision:
    """What a wish comes to beside what is stored: of the same key, of its host, and of its principal in all."""
    if current is not None and current.source == "user" and wish.source == "agent":
        return UserOwned()
    if wish.expected_rev is not None and wish.expected_rev != (0 if current is None else current.rev):
        return RevConflict(0 if current is None else current.rev)
    kept: Enforcement = "none" if current is None else current.enforcement
    enforcement = kept if isinstance(wish.enforcement, Keep) else wish.enforcement
    if enforcement != "none" and len(wish.value) > MOST_ENFORCED_CHARS:
        return TooLong(len(wish.value))
    minutes, calls = _repeats(wish, current)
    if current is not None:
        return _changed(wish, current, enforcement, (minutes, calls), now_ms)
    if of_host >= MOST_PER_HOST:
        return Full(MOST_PER_HOST, per_host=True)
    if of_principal >= MOST_PER_PRINCIPAL:
        return Full(MOST_PER_PRINCIPAL, per_host=False)
    return Create(wish, enforcement, (minutes, calls))


def _repeats(wish: Wish, current: DomainNote | None) -> tuple[int | None, int | None]:
    minutes, calls = wish.repeat_minutes, wish.repeat_tool_calls
    if isinstance(minutes, Keep):
        minutes = None if current is None else current.repeat_minutes
    if isinstance(calls, Keep):
        calls = None if current is None else current.repeat_tool_calls
    return minutes, calls


def _changed(
    wish: Wish, current: DomainNote, enforcement: Enforcement, repeat: tuple[int | None, int | None], now_ms: int
) -> Change | Unchanged:
    before = (current.value, current.enforcement, current.repeat_minutes, current.repeat_tool_calls)
    # A note that the operator edits is the operator's from then on.
    if before == (wish.value, enforcement, *repeat) and current.source == wish.source:
        return Unchanged(current)
    return Change(
        DomainNote(
            note_id=current.note_id,
            principal=current.principal,
            domain=current.domain,
            key=current.key,
            value=wish.value,
            source=wish.source,
            enforcement=enforcement,
            repeat_minutes=repeat[0],
            repeat_tool_calls=repeat[1],
            rev=current.rev + 1,
            created_at_ms=current.created_at_ms,
            updated_at_ms=now_ms,
            last_delivered_at_ms=current.last_delivered_at_ms,
            chars=len(wish.value),
        )
    )


@dataclass(frozen=True, slots=True)
class Delete:
    note: DomainNote


@dataclass(frozen=True, slots=True)
class NoSuchNote:
    """There is nothing to delete."""


Removal = Delete | NoSuchNote | RevConflict | UserOwned


def decide_removal(found: Sequence[DomainNote], wish_of: tuple[str, bool], expected_rev: int | None) -> Removal:
    """What deleting comes to; `wish_of` is the principal and whether it is the operator who asks.

    Notes for everybody are the operator's: an agent that has none of its own under the key is told so.
    """
    principal, operator = wish_of
    mine = next((note for note in found if note.principal == principal), None)
    if mine is None:
        return UserOwned() if found and not operator else NoSuchNote()
    if mine.source == "user" and not operator:
        return UserOwned()
    if expected_rev is not None and expected_rev != mine.rev:
        return RevConflict(mine.rev)
    return Delete(mine)
