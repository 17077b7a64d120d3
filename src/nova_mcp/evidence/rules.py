"""Pure decisions of the evidence ledger: canonical bodies, chain hashes, visit windows and retention."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urlsplit

from nova_mcp.evidence.model import (
    ActionKind,
    Caller,
    CallOutcome,
    CallRecord,
    Effect,
    Flag,
    OutcomeKind,
    PageState,
    ServerId,
    Touched,
)
from nova_mcp.evidence.page_sights import STILL, PageLife
from nova_mcp.evidence.soundness import sound

BODY_VERSION = 1
HASH_SIZE = 32
_GENESIS_TAG = b"nova-ledger/genesis/1\n"
_LINK_TAG = b"nova-ledger/link/1\n"
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)

_ACTION_KINDS: Mapping[Effect, ActionKind] = {
    "read": "read",
    "navigate": "navigate",
    "act": "interact",
    "commit": "interact",
    "write": "write",
    "admin": "meta",
}


def action_kind(effect: Effect) -> ActionKind:
    return _ACTION_KINDS[effect]


# -- bodies ----------------------------------------------------------------------------------------------------------


def canonical_body(record: CallRecord) -> bytes:
    """The one byte string of a record: sorted keys, no blanks, UTF-8; NaN and infinities raise ValueError.

    A lone surrogate has no UTF-8 form and is written as its JSON escape.
    """
    outcome, touched = record.outcome, record.touched
    body = {
        "v": BODY_VERSION,
        "call_id": record.call_id,
        "kind": record.kind,
        "caller": {
            "principal": record.caller.principal,
            "agent_id": record.caller.agent_id,
            "server_id": record.caller.server_id,
        },
        "tool_name": record.tool_name,
        "effect": record.effect,
        "via": record.via,
        "task_id": record.task_id,
        "instance_id": record.instance_id,
        "started_at_ms": record.started_at_ms,
        "duration_ms": record.duration_ms,
        "before": _page_body(record.before),
        "after": _page_body(record.after),
        "outcome": {
            "kind": outcome.kind,
            "error_code": outcome.error_code,
            "reason_code": outcome.reason_code,
            "gate_id": outcome.gate_id,
            "action_dispatched": outcome.action_dispatched,
            "verification": outcome.verification,
        },
        "touched": {
            "selector": touched.selector,
            "selector_hash": touched.selector_hash,
            "fingerprint_id": touched.fingerprint_id,
            "flags": sorted(touched.flags),
        },
        "arguments": record.arguments,
        "closes": record.closes,
    }
    return _ENCODER.encode(body).encode("utf-8", "backslashreplace")


def _page_body(page: PageState) -> dict[str, str | int | None]:
    return {
        "target_id": page.target_id,
        "sandbox_id": page.sandbox_id,
        "url": page.url,
        "route_key": page.route_key,
        "page_epoch": page.page_epoch,
    }


def record_from_body(body: bytes) -> CallRecord:
    """The record a body was made from; ValueError when the bytes are no body of a known version."""
    try:
        data: Any = json.loads(body.decode("utf-8"))
        if data["v"] != BODY_VERSION:
            raise ValueError(f"unknown body version {data['v']!r}")
        flags: frozenset[Flag] = frozenset(data["touched"].pop("flags"))
        record = CallRecord(
            call_id=data["call_id"],
            kind=data["kind"],
            caller=Caller(**data["caller"]),
            tool_name=data["tool_name"],
            effect=data["effect"],
            via=data["via"],
            task_id=data["task_id"],
            instance_id=data["instance_id"],
            started_at_ms=data["started_at_ms"],
            duration_ms=data["duration_ms"],
            before=PageState(**data["before"]),
            after=PageState(**data["after"]),
            outcome=CallOutcome(**data["outcome"]),
            touched=Touched(flags=flags, **data["touched"]),
            arguments=data["arguments"],
            closes=data["closes"],
        )
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"not a ledger body: {error}") from error
    return sound(record)


def effective_page(record: CallRecord) -> PageState:
    """Where the call ended, or where it began when nothing could be read afterwards."""
    return record.after if record.after.url is not None else record.before


def host_of(url: str | None) -> str | None:
    if url is None:
        return None
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class IndexColumns:
    """The few fields of a body that are also stored beside it, so that filters need not open bodies."""

    at_ms: int
    kind: str
    principal: str
    agent_id: str
    tool_name: str
    target_id: str | None
    outcome_kind: str
    reason_code: str | None
    host: str | None
    task_id: str | None
    instance_id: str | None
    closes: str | None


def index_columns(record: CallRecord) -> IndexColumns:
    return IndexColumns(
        at_ms=record.started_at_ms,
        kind=record.kind,
        principal=storable_text(record.caller.principal),
        agent_id=storable_text(record.caller.agent_id),
        tool_name=storable_text(record.tool_name),
        target_id=_optional_text(record.after.target_id or record.before.target_id),
        outcome_kind=record.outcome.kind,
        reason_code=_optional_text(record.outcome.reason_code),
        host=_optional_text(host_of(effective_page(record).url)),
        task_id=_optional_text(record.task_id),
        instance_id=_optional_text(record.instance_id),
        closes=_optional_text(record.closes),
    )


def storable_text(value: str) -> str:
    """PostgreSQL text holds neither NUL nor lone surrogates; a caller who sends one must still be recorded."""
    if value.isascii():
        return value.replace("\0", "\ufffd") if "\0" in value else value
    return value.replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")


def _optional_text(value: str | None) -> str | None:
    return None if value is None else storable_text(value)


# -- chain format 1 --------------------------------------------------------------------------------------------------


def body_hash(body: bytes) -> bytes:
    return hashlib.sha256(body).digest()


def genesis_hash(server_id: ServerId) -> bytes:
    """What the first link of a server's chain names as its predecessor."""
    return hashlib.sha256(_GENESIS_TAG + server_id.encode("utf-8")).digest()


def link_hash(prev_hash: bytes, server_seq: int, body_digest: bytes) -> bytes:
    """SHA-256 over tag, 32 bytes of predecessor, 8 bytes of big-endian sequence, 32 bytes of body hash.

    All parts have a fixed width, so no two different triples share a layout.
    """
    if len(prev_hash) != HASH_SIZE or len(body_digest) != HASH_SIZE:
        raise ValueError("a chain hash has 32 bytes")
    return hashlib.sha256(_LINK_TAG + prev_hash + server_seq.to_bytes(8, "big") + body_digest).digest()


# -- visit windows ---------------------------------------------------------------------------------------------------

SILENCE_MS = 2_500
STAY_MS = 2_500


@dataclass(frozen=True, slots=True)
class VisitCall:
    """What a visit window needs to know of one call; whose calls belong together is the asker's choice."""

    target_id: str
    url: str
    task_id: str | None
    started_at_ms: int
    ended_at_ms: int
    read: bool
    flags: frozenset[Flag] = frozenset()


@dataclass(frozen=True, slots=True)
class VisitWindow:
    """Consecutive calls on one target, one URL and one claim."""

    target_id: str
    url: str
    task_id: str | None
    started_at_ms: int
    last_call_end_ms: int
    dwell_ms: int
    calls: int
    reads: int
    flags: frozenset[Flag]


def visit_windows(
    calls: Iterable[VisitCall], now_ms: int, life: Mapping[str, PageLife] | None = None
) -> tuple[VisitWindow, ...]:
    """Windows ordered by start; a window still open is finished at `now_ms`."""
    by_target: dict[str, list[VisitCall]] = {}
    for call in sorted(calls, key=lambda call: (call.started_at_ms, call.ended_at_ms, call.url, call.task_id or "")):
        by_target.setdefault(call.target_id, []).append(call)
    windows: list[VisitWindow] = []
    for target_id, ordered in by_target.items():
        page = (life or {}).get(target_id, STILL)
        groups = _consecutive(ordered, page)
        for group, following in zip(groups, [*groups[1:], None], strict=True):
            limit_ms = now_ms if following is None else _over_at(group[0], following[0], page)
            windows.append(_window(group, min(limit_ms, now_ms), page))
    return tuple(sorted(windows, key=lambda window: (window.started_at_ms, window.target_id)))


def _over_at(visit: VisitCall, following: VisitCall, page: PageLife) -> int:
    if following.url == visit.url:
        return following.started_at_ms
    return left_during((following.started_at_ms, following.ended_at_ms), page)


def left_during(call: tuple[int, int], page: PageLife) -> int:
    """When a call that leads to another page left the old one: on its way if that is known, else at its start."""
    start, end = call
    return min((at for at in page.left_at_ms if start <= at <= end), default=start)


def _consecutive(ordered: Sequence[VisitCall], page: PageLife) -> list[list[VisitCall]]:
    groups: list[list[VisitCall]] = []
    last_sign = 0
    for call in ordered:
        previous = groups[-1][-1] if groups else None
        if (
            previous is not None
            and (call.url, call.task_id) == (previous.url, previous.task_id)
            and not is_silent(last_sign, call.started_at_ms, page.active_at_ms)
        ):
            groups[-1].append(call)
            last_sign = max(last_sign, call.ended_at_ms)
        else:
            groups.append([call])
            last_sign = call.ended_at_ms
    return groups


def is_silent(since_ms: int, until_ms: int, active_at_ms: Sequence[int]) -> bool:
    """Whether nothing stirred for longer than a visit lasts."""
    signs = sorted(at for at in active_at_ms if since_ms < at < until_ms)
    return any(
        later - earlier > SILENCE_MS for earlier, later in zip([since_ms, *signs], [*signs, until_ms], strict=True)
    )


def _window(group: Sequence[VisitCall], limit_ms: int, page: PageLife) -> VisitWindow:
    first, last_end = group[0], max(call.ended_at_ms for call in group)
    left = min((at for at in page.left_at_ms if at >= last_end), default=limit_ms)
    stayed = max(0, min(left, limit_ms) - last_end)
    return VisitWindow(
        target_id=first.target_id,
        url=first.url,
        task_id=first.task_id,
        started_at_ms=first.started_at_ms,
        last_call_end_ms=last_end,
        dwell_ms=last_end - first.started_at_ms + min(stayed, STAY_MS),
        calls=len(group),
        reads=sum(call.read for call in group),
        flags=frozenset[Flag]().union(*(call.flags for call in group)),
    )


# -- retention -------------------------------------------------------------------------------------------------------

DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """Days a body stays, by what became of the work it belongs to."""

    ended_days: int = 7
    gap_days: int = 30
    other_days: int = 30

    def __post_init__(self) -> None:
        if min(self.ended_days, self.gap_days, self.other_days) < 0:
            raise ValueError("a retention period is not negative")

    @property
    def shortest_days(self) -> int:
        return min(self.ended_days, self.gap_days, self.other_days)


@dataclass(frozen=True, slots=True)
class Holds:
    """State of claims and runs (by task or instance id), and the calls that something alive refers to.

    `members` are those who work on open runs, by principal and agent: since when what they do belongs to one.
    """

    open: frozenset[str] = frozenset()
    ended: frozenset[str] = frozenset()
    with_gaps: frozenset[str] = frozenset()
    referenced: frozenset[str] = frozenset()
    members: Mapping[tuple[str, str], int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RetentionSubject:
    """What the rule looks at in one stored body."""

    call_id: str
    at_ms: int
    outcome_kind: OutcomeKind | str
    task_id: str | None = None
    instance_id: str | None = None
    open_intent: bool = False
    owner: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class KeepBody:
    reason: Literal["young", "open_run", "referenced", "open_intent"]


@dataclass(frozen=True, slots=True)
class EraseBody:
    rule: Literal["ended", "gaps", "other"]


_NO_HOLDS: Holds = Holds()
Retention = KeepBody | EraseBody


def _of_member(subject: RetentionSubject, holds: Holds) -> bool:
    since = None if subject.owner is None else holds.members.get(subject.owner)
    return since is not None and subject.at_ms >= since


def retention(subject: RetentionSubject, now_ms: int, policy: RetentionPolicy, holds: Holds = _NO_HOLDS) -> Retention:
    """Whether a body may go; a doubt (unknown claim or run) gets the longer period."""
    groups = {group for group in (subject.task_id, subject.instance_id) if group is not None}
    if subject.open_intent:
        return KeepBody("open_intent")
    if groups & holds.open or _of_member(subject, holds):
        return KeepBody("open_run")
    if subject.call_id in holds.referenced:
        return KeepBody("referenced")
    rule: Literal["ended", "gaps", "other"]
    if subject.outcome_kind == "blocked_preflight" or not groups & holds.ended:
        rule, days = "other", policy.other_days
    elif groups & holds.with_gaps:
        rule, days = "gaps", policy.gap_days
    else:
        rule, days = "ended", policy.ended_days
    return EraseBody(rule) if now_ms - subject.at_ms > days * DAY_MS else KeepBody("young")
