"""Reads what was seen of a site's clusters, and of the candidates that were put forward, for making entries of it."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, get_args

from sqlalchemy import Connection, select, update
from sqlalchemy import text as sql

from nova_mcp.core.page.control_labels import BlockerKind
from nova_mcp.memory.journal import candidate_store
from nova_mcp.memory.journal.candidates import Candidate
from nova_mcp.memory.journal.statistics.tables import learning_proposal
from nova_mcp.memory.knowledge.matching.routes import ANYWHERE, ROOT, is_pattern
from nova_mcp.memory.knowledge.model import Polarity, Signal, SignalKind
from nova_mcp.memory.promotion.drafts.clusters import first_day
from nova_mcp.memory.promotion.drafts.model import Glimpse, Trace
from nova_mcp.memory.promotion.model import DAY_MS
from nova_mcp.storage.prepared import Prepared

GLIMPSES: Final = 200
CLUSTERS: Final = 40
PROPOSALS: Final = 50
_BY_PRESS: Final = frozenset({"reject", "close"})
_KINDS: Final = frozenset(get_args(BlockerKind))
_POLARITIES: Final = frozenset(get_args(Polarity))
_SIGNAL_KINDS: Final = frozenset(get_args(SignalKind))

_TOP: Final = Prepared(
    sql(
        "SELECT key FROM learning_cluster WHERE host = :host AND rank >= 0 AND last_at_ms >= :since "
        "ORDER BY rank DESC, last_at_ms DESC LIMIT :most"
    )
)
_SEEN: Final = Prepared(
    sql(
        "SELECT kind, outcome, created_at_ms, call_id, activity_session_id, selector_norm, candidate_key, "
        "target_stable_id, payload FROM observation WHERE context_host = :host AND cluster_key = :key "
        "ORDER BY observation_id DESC LIMIT :most"
    )
)

# How many of a site's newest observations are looked through for lists.
LATELY: Final = 500
_USES: Final = frozenset({"action_success", "action_failure"})
_LATELY: Final = Prepared(
    sql(
        "SELECT kind, outcome, created_at_ms, call_id, activity_session_id, selector_norm, candidate_key, "
        "target_stable_id, payload FROM observation WHERE context_host = :host AND created_at_ms >= :since "
        "ORDER BY created_at_ms DESC LIMIT :most"
    )
)


def traces(conn: Connection, host: str, now_ms: int) -> list[Trace]:
    """What was seen of the clusters of a site that matter most."""
    values = {"host": host, "since": first_day(now_ms) * DAY_MS, "most": CLUSTERS}
    keys = [row[0] for row in _TOP.run(conn, values).fetchall()]
    return [*(trace(conn, host, key, now_ms) for key in keys), *lists(conn, host, now_ms)]


def lists(conn: Connection, host: str, now_ms: int) -> list[Trace]:
    """What was lately done with entries of lists, list by list: each entry is a control of its own, the list recurs."""
    since = first_day(now_ms) * DAY_MS
    rows = _LATELY.run(conn, {"host": host, "since": since, "most": LATELY}).fetchall()
    found: dict[str, list[Glimpse]] = {}
    for row in reversed(rows):
        told = json.loads(row[8])
        if isinstance(items := told.get("items"), list) and row[0] in _USES:
            found.setdefault(items[0], []).append(
                replace(_glimpse(row), selector=items[0], items=items[1], led_to=None)
            )
    return [Trace(host, f"items {selector}", tuple(seen)) for selector, seen in sorted(found.items())]


def trace(conn: Connection, host: str, key: str, now_ms: int) -> Trace:
    """The newest observations of one cluster, oldest first."""
    since = first_day(now_ms) * DAY_MS
    rows = _SEEN.run(conn, {"host": host, "key": key, "most": GLIMPSES}).fetchall()
    rows = [row for row in reversed(rows) if row[2] >= since and row[0] != "perceive_signature"]
    return Trace(
        host,
        key,
        tuple(_glimpse(row) for row in rows),
        candidate_key=next((row[6] for row in reversed(rows) if row[6] is not None), None),
        target_stable_id=next((row[7] for row in reversed(rows) if row[7] is not None), None),
    )


def _glimpse(row: Sequence[Any]) -> Glimpse:
    kind, outcome, at_ms, call_id, session_id, selector, _, _, body = row
    told = json.loads(body)
    layer = _layer(told)
    return Glimpse(
        kind=kind,
        outcome=outcome,
        at_ms=at_ms,
        call_id=call_id,
        session_id=session_id,
        selector=selector if kind != "blocker_dismissed" or _pressed_once(told, layer) else None,
        failed_selector=told.get("failedSelector"),
        route=route_pattern(told.get("route")),
        led_to=told.get("ledTo"),
        layers=() if layer is None else (layer,),
        polarity=told["polarity"] if told.get("polarity") in _POLARITIES else None,
        signals=tuple(_signals(told.get("signals", ()))),
        commits=told.get("commits") is True,
    )


def _layer(told: Mapping[str, Any]) -> BlockerKind | None:
    """The layer that was pressed in; a call that met several says which one by that."""
    kinds = list(told.get("layers") or ())
    kind = told.get("layer") or (kinds[0] if len(kinds) == 1 else None)
    return kind if kind in _KINDS else None


def _pressed_once(told: Mapping[str, Any], layer: BlockerKind | None) -> bool:
    """Whether one press did it, in the layer that the observation is about; a key or several presses are no recipe."""
    if told.get("failedSelector") is not None:
        return True
    return told.get("method") in _BY_PRESS and told.get("layers", [layer])[0] == layer


def _signals(told: Iterable[Sequence[Any]]) -> Iterable[Signal]:
    return (Signal(kind, match, locale) for kind, match, locale in told if kind in _SIGNAL_KINDS)


def route_pattern(route_key: str | None) -> str | None:
    """The part of a site that a route belongs to, as entries name it."""
    if not route_key:
        return None
    place, _, fragment = route_key.partition("#")
    path = [part for part in place.partition("/")[2].split("/") if part]
    parts = path or [part for part in fragment.lstrip("!").split("/") if part]
    if not parts:
        return ROOT
    # An identifier names one thing; what was seen there holds for others too.
    return parts[0] if is_pattern(parts[0]) and "{" not in parts[0] else ANYWHERE


# -- candidates that a commit has put forward


def candidate_traces(conn: Connection, candidates: Iterable[Candidate], now_ms: int) -> list[Trace]:
    """What was seen of the controls that candidates came from, under the names of the candidates."""
    found = []
    for one in candidates:
        key = _cluster_behind(conn, one)
        seen = Trace(one.place.host, one.candidate_key, ()) if key is None else trace(conn, one.place.host, key, now_ms)
        found.append(
            Trace(
                seen.host,
                seen.key,
                seen.glimpses,
                candidate_key=one.candidate_key,
                target_stable_id=seen.target_stable_id,
                status=one.status,
                origin=one.origin,
            )
        )
    return found


_BEHIND: Final = Prepared(
    sql(
        "SELECT o.cluster_key FROM tool_event e JOIN observation o ON o.context_host = e.context_host "
        "AND o.created_at_ms = e.created_at_ms AND o.call_id = e.event_id "
        "WHERE e.event_id = :call AND o.kind != 'perceive_signature' ORDER BY o.observation_id LIMIT 1"
    )
)


def _cluster_behind(conn: Connection, found: Candidate) -> str | None:
    """The cluster that the call belongs to which proved a candidate, else the one it came from."""
    for call in (found.resolution_event_id, found.source_event_id):
        row = None if call is None else _BEHIND.run(conn, {"call": call}).fetchone()
        # What was observed before observations had clusters belongs to none.
        if row is not None and row[0] is not None:
            return str(row[0])
    return None


def proposed(conn: Connection, host: str) -> list[tuple[str, list[Candidate]]]:
    """Open proposals that hold candidates of a site, with those; the newest ones."""
    open_ones = select(learning_proposal.c.job_key, learning_proposal.c.candidate_ids).where(
        learning_proposal.c.state == "open"
    )
    rows = conn.execute(open_ones.order_by(learning_proposal.c.proposed_at_ms.desc()).limit(PROPOSALS)).all()
    found = [(job_key, candidates(conn, json.loads(ids), host)) for job_key, ids in rows]
    return [(job_key, ones) for job_key, ones in found if ones]


def candidates(conn: Connection, ids: Iterable[int], host: str | None = None) -> list[Candidate]:
    found = (candidate_store.find_candidate(conn, one) for one in ids)
    return [one for one in found if one is not None and host in (None, one.place.host)]


def taken_up(conn: Connection, job_keys: Iterable[str]) -> None:
    for job_key in sorted(job_keys):
        conn.execute(update(learning_proposal).where(learning_proposal.c.job_key == job_key).values(state="taken"))
