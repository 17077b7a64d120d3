"""One call whole: what was asked, what happened, how it was verified, its receipt, and its place in the chain."""

from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, select
from starlette.responses import Response

from nova_mcp.dashboard.context import Outcome, Place, View, Visit, missing
from nova_mcp.dashboard.data.call_lines import CallLine, line_of
from nova_mcp.dashboard.data.chain import Chain, chain_of
from nova_mcp.dashboard.formatting import plain, pretty
from nova_mcp.evidence.model import CallRecord, PageState
from nova_mcp.evidence.store import StoredCall, get_call, ledger_link
from nova_mcp.memory.journal.store import observation
from nova_mcp.verification.store import find_transition
from nova_mcp.verification.transitions import PROOF, StoredTransition

ARGUMENT_CHARS: Final = 20_000
LESSONS: Final = 20
# Observations are written with the record, so they lie in the time of the call and a little after it.
_AFTER_MS: Final = 5_000
PICTURE_TYPES: Final = frozenset({"image/png", "image/jpeg", "image/webp"})


@dataclass(frozen=True, slots=True)
class Proof:
    """How an act was verified, in the words of its receipt."""

    transition_id: str
    verdict: str
    tone: str
    words: str
    reason: str
    element: str
    started_at_ms: int
    completed_at_ms: int | None
    duration_ms: int
    url_before: str
    url_after: str
    requests: tuple[tuple[str, str, str, str], ...]
    appeared: tuple[str, ...]
    contract: tuple[tuple[str, str], ...]
    before: bool
    after: bool
    resolved_by: str
    goal_id: str


@dataclass(frozen=True, slots=True)
class Lesson:
    """What the journal took from a call."""

    kind: str
    well: bool
    host: str
    selector: str


@dataclass(frozen=True, slots=True)
class CallView:
    """Everything about one call."""

    line: CallLine
    record: CallRecord | None
    arguments: str
    pages: tuple[tuple[str, str, str], ...]
    flags: tuple[str, ...]
    chain: Chain
    proof: Proof | None
    lessons: tuple[Lesson, ...]
    related: tuple[tuple[str, str], ...]
    erased_at_ms: int | None


_VERDICTS: Final = {
    "verified_success": ("good", "Verified: there is proof that it worked."),
    "verified_fail": ("bad", "Disproved: there is proof that it did not work."),
    "indeterminate": ("warn", "Undecided: neither success nor failure could be proven."),
    "skipped": ("plain", "Nothing was sent."),
    "pending": ("warn", "Still in flight, or its server ended without a word."),
}


def call_view(conn: Connection, call_id: str) -> CallView | None:
    call = get_call(conn, call_id)
    if call is None:
        return None
    record = call.record
    transition = _transition(conn, call)
    return CallView(
        line=line_of(call),
        record=record,
        arguments="" if record is None or record.arguments in (None, {}) else pretty(record.arguments)[:ARGUMENT_CHARS],
        pages=() if record is None else _pages(record.before, record.after),
        flags=() if record is None else tuple(sorted(flag.replace("_", " ") for flag in record.touched.flags)),
        chain=chain_of(conn, call),
        proof=None if transition is None else proof_of(transition),
        lessons=() if record is None else _lessons(conn, record),
        related=_related(conn, call, transition),
        erased_at_ms=call.erased_at_ms,
    )


def _transition(conn: Connection, call: StoredCall) -> StoredTransition | None:
    """The guarded act of a call: its announcement has the act's own id, its end names it."""
    if call.record is None:
        return None
    wanted = call.link.call_id if call.record.kind == "intent" else call.record.closes
    return None if wanted is None else find_transition(conn, None, wanted)


def proof_of(transition: StoredTransition) -> Proof:
    receipt = transition.as_receipt()
    # A later look may have settled what the receipt left open.
    verdict = PROOF[transition.state]
    tone, words = _VERDICTS[verdict]
    return Proof(
        transition_id=transition.transition_id,
        verdict=verdict,
        tone=tone,
        words=words,
        reason=plain(transition.reason or ""),
        element=plain(receipt.element),
        started_at_ms=receipt.started_at_ms,
        completed_at_ms=receipt.completed_at_ms,
        duration_ms=receipt.duration_ms,
        url_before=plain(receipt.url_before),
        url_after=plain(receipt.url_after),
        requests=tuple((plain(one.method), plain(one.url), *_status(one.status)) for one in receipt.requests),
        appeared=tuple(plain(text) for text in receipt.appeared),
        contract=tuple(_bucket(line) for line in receipt.contract),
        before=receipt.picture_before is not None,
        after=receipt.picture_after is not None,
        resolved_by=plain(transition.resolved_by or ""),
        goal_id=plain(transition.goal_id or ""),
    )


def _status(status: int | None) -> tuple[str, str]:
    if status is None:
        return "no answer seen", "warn"
    return str(status), "good" if status < 400 else "bad"


def _bucket(line: str) -> tuple[str, str]:
    name, _, rest = line.partition(": ")
    return (plain(name), plain(rest)) if rest else ("", plain(line))


def _pages(before: PageState, after: PageState) -> tuple[tuple[str, str, str], ...]:
    rows = (
        ("address", before.url, after.url),
        ("route", before.route_key, after.route_key),
        ("tab", before.target_id, after.target_id),
        ("sandbox", before.sandbox_id, after.sandbox_id),
        ("document", before.page_epoch, after.page_epoch),
    )
    return tuple(
        (name, _shown(was), _shown(became)) for name, was, became in rows if was is not None or became is not None
    )


def _shown(value: str | int | None) -> str:
    return "" if value is None else plain(value)


def _lessons(conn: Connection, record: CallRecord) -> tuple[Lesson, ...]:
    table, start = observation.c, record.started_at_ms
    rows = conn.execute(
        select(table.kind, table.outcome, table.context_host, table.selector_norm)
        .where(
            table.created_at_ms >= start,
            table.created_at_ms <= start + record.duration_ms + _AFTER_MS,
            table.call_id == record.call_id,
        )
        .order_by(table.observation_id)
        .limit(LESSONS)
    )
    return tuple(
        Lesson(
            plain(row.kind).replace("_", " "), row.outcome > 0, plain(row.context_host), plain(row.selector_norm or "")
        )
        for row in rows
    )


def _related(conn: Connection, call: StoredCall, transition: StoredTransition | None) -> tuple[tuple[str, str], ...]:
    """Other records of the same act."""
    found: list[tuple[str, str]] = []
    if call.record is None:
        return ()
    if call.record.closes is not None:
        found.append(("its announcement", call.record.closes))
    if call.record.kind == "intent" and transition is not None and transition.call_id != call.link.call_id:
        found.append(("the call that it announced", transition.call_id))
    return tuple((words, other) for words, other in found if _exists(conn, other))


def _exists(conn: Connection, call_id: str) -> bool:
    wanted = select(ledger_link.c.server_seq).where(ledger_link.c.call_id == call_id)
    return conn.execute(wanted).one_or_none() is not None


async def shown(visit: Visit) -> View:
    found = await visit.desk.read(call_view, visit.part("call_id"))
    if found is None:
        return missing("The ledger holds no call of this name.")
    return View("calls/call.html", {"title": found.line.tool, "call": found})


async def picture(visit: Visit) -> Outcome:
    """What the page looked like before or after the act."""
    which = visit.part("which")
    call = await visit.desk.read(get_call, visit.part("call_id"))
    transition = None if call is None else await visit.desk.read(_transition, call)
    if transition is None or transition.receipt is None:
        return missing("There is no such picture.")
    name = transition.receipt.picture_before if which == "before" else transition.receipt.picture_after
    if name is None or which not in ("before", "after"):
        return missing("There is no such picture.")
    content = await visit.desk.resource(f"nova://screenshot/{name}", transition.caller.principal)
    if content is None or content.data is None or content.mime_type not in PICTURE_TYPES:
        return missing("This picture was not kept.")
    return Response(content.data, media_type=content.mime_type)


PLACES = (
    Place("/calls/{call_id}", "calls", get=shown),
    Place("/calls/{call_id}/picture/{which}", "calls", get=picture),
)
