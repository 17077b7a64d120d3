"""The record of an erasure: which bodies went, on whose word, why and when; and what such records cover."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from sqlalchemy import Connection

from nova_mcp.core.values import Json
from nova_mcp.evidence.model import Caller, CallOutcome, CallRecord, ServerId
from nova_mcp.evidence.store import ServerInfo, append_call, ensure_registered

LEDGER_TOOL = "ledger"
# Set by the migration that introduced these records, for what had been erased before.
BEFORE_RECORDS = "before_records"

# Numbers of a chain, first and last included.
Range = tuple[int, int]
Place = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Eraser:
    """Who erases, and the chain that the erasure is recorded in.

    `info` registers a chain for a program that is no server, once there is something to record.
    """

    server_id: ServerId
    new_call_id: Callable[[], str]
    who: str
    info: ServerInfo | None = None


def record_erasure(conn: Connection, by: Eraser, places: Iterable[Place], why: Mapping[str, int], now_ms: int) -> None:
    """Append the record; in the transaction that erases, so that there is never one without the other."""
    if by.info is not None:
        ensure_registered(conn, by.info)
    append_call(conn, erasure_record(by, places, why, now_ms))


def erasure_record(by: Eraser, places: Iterable[Place], why: Mapping[str, int], now_ms: int) -> CallRecord:
    links: dict[str, Json] = {
        server_id: [list(one) for one in ranges] for server_id, ranges in ranges_of(places).items()
    }
    return CallRecord(
        call_id=by.new_call_id(),
        caller=Caller("", "", by.server_id),
        tool_name=LEDGER_TOOL,
        effect="admin",
        started_at_ms=now_ms,
        duration_ms=0,
        outcome=CallOutcome("ok"),
        kind="erasure",
        arguments={"by": by.who, "why": dict(why), "links": links},
    )


def ranges_of(places: Iterable[Place]) -> dict[str, list[Range]]:
    """Places in chains as the fewest ranges."""
    found: dict[str, list[Range]] = {}
    for server_id, seq in sorted(set(places)):
        ranges = found.setdefault(server_id, [])
        if ranges and ranges[-1][1] == seq - 1:
            ranges[-1] = (ranges[-1][0], seq)
        else:
            ranges.append((seq, seq))
    return found


def erased_ranges(record: CallRecord) -> dict[str, list[Range]]:
    """What an erasure record says went; ValueError when it says nothing that can be read."""
    arguments = record.arguments
    links = arguments.get("links") if isinstance(arguments, dict) else None
    if not isinstance(links, dict):
        raise ValueError("an erasure names no links")
    return {server_id: [_range(one) for one in _list(ranges)] for server_id, ranges in links.items()}


def _list(value: Json) -> list[Json]:
    if not isinstance(value, list):
        raise ValueError("an erasure names no ranges")
    return value


def _range(value: Json) -> Range:
    match value:
        case [int(first), int(last)] if 1 <= first <= last:
            return first, last
    raise ValueError(f"not a range of links: {value!r}")


def is_from_before(record: CallRecord) -> bool:
    return isinstance(record.arguments, dict) and BEFORE_RECORDS in _reasons(record.arguments)


def _reasons(arguments: Mapping[str, Json]) -> Mapping[str, Json]:
    why = arguments.get("why")
    return why if isinstance(why, dict) else {}


@dataclass(slots=True)
class Coverage:
    """The links that erasure records cover, gathered while chains are walked."""

    ranges: dict[str, list[Range]] = field(default_factory=dict)
    # Those that were erased before there were such records, as far as one record says so.
    before: dict[str, list[Range]] = field(default_factory=dict)

    def add(self, record: CallRecord) -> None:
        kept = self.before if is_from_before(record) else self.ranges
        for server_id, ranges in erased_ranges(record).items():
            kept.setdefault(server_id, []).extend(ranges)

    def merge(self) -> None:
        """Sort and join what was added, so that it can be searched."""
        for kept in (self.ranges, self.before):
            for server_id, ranges in kept.items():
                kept[server_id] = _joined(ranges)

    def covers(self, server_id: str, seq: int) -> bool:
        return _within(self.ranges, server_id, seq) or self.covers_from_before(server_id, seq)

    def covers_from_before(self, server_id: str, seq: int) -> bool:
        return _within(self.before, server_id, seq)

    def every(self) -> Iterable[tuple[str, Range]]:
        for kept in (self.ranges, self.before):
            for server_id, ranges in kept.items():
                for one in ranges:
                    yield server_id, one


def _joined(ranges: Iterable[Range]) -> list[Range]:
    joined: list[Range] = []
    for first, last in sorted(ranges):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    return joined


def _within(kept: Mapping[str, list[Range]], server_id: str, seq: int) -> bool:
    ranges = kept.get(server_id, [])
    place = bisect_right(ranges, seq, key=lambda one: one[0])
    return place > 0 and seq <= ranges[place - 1][1]
