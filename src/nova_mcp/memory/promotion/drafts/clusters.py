"""Which observations belong together, and the counters of a cluster as they grow by one observation; pure."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from nova_mcp.memory.journal.evidence import Observation, ObservationKind
from nova_mcp.memory.journal.observations import cluster_key_of
from nova_mcp.memory.promotion.model import DAY_MS, Cluster, ClusterDay, ClusterKey

WINDOW_DAYS: Final = 30
SUPPORT_NEEDED: Final = 2
SESSIONS_KEPT: Final = 16
# Of kinds that are equally frequent the one that says more gives the cluster its name.
_TELLING: Final[tuple[ObservationKind, ...]] = (
    "selector_drift",
    "action_failure",
    "blocker_dismissed",
    "tob_verified",
    "telemetry_confirmed",
    "action_success",
    "perceive_signature",
)


def cluster_key(seen: Observation, host: str, tool_name: str) -> ClusterKey:
    return ClusterKey(host, cluster_key_of(seen, tool_name))


def day_of(at_ms: int) -> int:
    return at_ms // DAY_MS


def first_day(now_ms: int) -> int:
    """The oldest day that still counts. Counters are kept by the day, so the window may reach into one day more."""
    return day_of(now_ms) - WINDOW_DAYS


def with_observation(
    had: ClusterDay | None, seen: Observation, session_id: str, at_ms: int, *, upgraded: bool = False
) -> ClusterDay:
    """The counters of a day after one more observation. One that took a sighting's place is support already."""
    day = had or ClusterDay(day_of(at_ms))
    kinds = Counter(dict(day.kinds))
    kinds[seen.kind] += 0 if upgraded else 1
    return replace(
        day,
        kinds=tuple(sorted(kinds.items())),
        successes=day.successes + (seen.outcome > 0),
        failures=day.failures + (seen.outcome < 0),
        drifts=day.drifts + (seen.kind == "selector_drift"),
        sessions=_with_session(day.sessions, session_id),
        last_at_ms=max(day.last_at_ms, at_ms),
    )


def _with_session(sessions: tuple[str, ...], session_id: str) -> tuple[str, ...]:
    if session_id in sessions or len(sessions) >= SESSIONS_KEPT:
        return sessions
    return (*sessions, session_id)


def cluster_of(key: ClusterKey, days: Iterable[ClusterDay], now_ms: int) -> Cluster | None:
    """The cluster as it stands now; None where too little, or nothing but looks at the page, has come together."""
    counted = [day for day in days if day.day >= first_day(now_ms)]
    kinds: Counter[ObservationKind] = Counter()
    for day in counted:
        kinds.update(dict(day.kinds))
    support = kinds.total()
    if support < SUPPORT_NEEDED or support == kinds["perceive_signature"]:
        return None
    return Cluster(
        key=key,
        dominant_kind=min(kinds, key=lambda kind: (-kinds[kind], _TELLING.index(kind))),
        support=support,
        successes=sum(day.successes for day in counted),
        failures=sum(day.failures for day in counted),
        drifts=sum(day.drifts for day in counted),
        distinct_sessions=len({session for day in counted for session in day.sessions}),
        last_at_ms=max(day.last_at_ms for day in counted),
    )
