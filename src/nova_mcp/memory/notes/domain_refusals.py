"""The word no about notes: what each refusal says and what to do next."""

from nova_mcp.core.values import Json
from nova_mcp.errors import Fix, InvalidParams, NotFound, NovaError, PolicyDenied, Precondition, Unacknowledged
from nova_mcp.memory.notes.domain_model import DomainNote, Due, Repeat
from nova_mcp.memory.notes.domain_rules import MOST_ENFORCED_CHARS, Full, TooLong, UserOwned, repeat_of


def acknowledge_required(due: Due) -> Unacknowledged:
    """Somebody wants these notes read before anything is done on the site; the error is how they are delivered."""
    count = len(due.blocking)
    notes: list[Json] = [_pending(note, due.usual) for note in due.blocking]
    return Unacknowledged(
        "acknowledge_required",
        f"{count} note{'' if count == 1 else 's'} about {due.host} must be acknowledged before this page is acted on.",
        stage="gate",
        fix=Fix(
            "nova.domain_note_ack",
            {"domain": due.host, "key": "*", "targetId": due.target_id, "agentId": due.connection.owner[1]},
        ),
        details={"actionDispatched": False, "targetId": due.target_id, "domain": due.host, "notes": notes},
    )


def _pending(note: DomainNote, usual: Repeat) -> dict[str, Json]:
    repeat = repeat_of(note, usual)
    return {
        "noteId": note.note_id,
        "key": note.key,
        "rev": note.rev,
        "source": note.source,
        "text": note.value,
        "repeatMinutes": repeat.minutes,
        "repeatToolCalls": repeat.calls,
    }


def refusal(outcome: UserOwned | TooLong | Full, domain: str, key: str) -> NovaError:
    """Why the store did not take a note, as the error of its call."""
    match outcome:
        case UserOwned():
            return user_owned(key)
        case TooLong(chars):
            return too_long(chars)
        case Full():
            return full(outcome, domain)


def user_owned(key: str) -> PolicyDenied:
    return PolicyDenied(
        "notes.user_owned",
        f"{key} was written by the operator, so only the operator can change or delete it.",
        "Write a note under another key, or ask a person.",
        stage="precondition",
    )


def too_long(chars: int) -> InvalidParams:
    return InvalidParams(
        "note_too_long",
        f"a note that warns or blocks has at most {MOST_ENFORCED_CHARS} characters (received {chars})",
        details={"argument": "value", "maxChars": MOST_ENFORCED_CHARS, "chars": chars},
    )


def full(refused: Full, domain: str) -> Precondition:
    where = f"for {domain}" if refused.per_host else "in all"
    return Precondition(
        "domain_notes.full",
        f"There are {refused.cap} notes {where} already; nothing is pushed out to make room.",
        stage="precondition",
        details={"cap": refused.cap},
    )


def not_found(domain: str, key: str) -> NotFound:
    return NotFound("domain_note.not_found", f'There is no note "{key}" about {domain}.')


def no_target() -> InvalidParams:
    return InvalidParams("no_target", details={"argument": "targetId"})


def host_mismatch(domain: str, host: str | None, target_id: str) -> InvalidParams:
    stands = f"is on {host}" if host is not None else "shows no web page"
    return InvalidParams(
        "host_mismatch",
        f"{target_id} {stands}, not on {domain}.",
        details={"argument": "domain", "targetId": target_id, "host": host},
    )


def not_delivered(key: str, domain: str) -> Precondition:
    return Precondition(
        "domain_note.not_delivered",
        f"The current text of {key} has not been shown to you in full yet.",
        stage="precondition",
        fix=Fix("nova.domain_notes_list", {"domain": domain, "key": key}),
    )
