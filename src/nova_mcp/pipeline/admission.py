"""Reads the facts that the gates judge: stop file, disk, policy, lease, connections, what was seen."""

import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from nova_mcp.browser.claims import Lease
from nova_mcp.browser.targets import Tab
from nova_mcp.clock import Clock
from nova_mcp.observation.model import Caller
from nova_mcp.pipeline.gates import GateFacts
from nova_mcp.policy import NavigationPolicy
from nova_mcp.settings import Settings
from nova_mcp.tools.spec import Params, ToolSpec

DISK_REREAD_MS = 2_000
CONNECTION_LIVES_MS = 30 * 60_000


def stop_requested(stop_file: Path) -> bool:
    """An unreadable stop file counts as set: a stop that can't be checked must hold."""
    try:
        return stop_file.exists()
    except OSError:
        return True


def _within_its_term(lease: Lease | None, now_ms: int) -> Lease | None:
    """No lease runs longer than its term from now: a clock set back would hold a tab until it has caught up."""
    if lease is None or lease.expires_at_ms <= now_ms + lease.ttl_ms:
        return lease
    return replace(lease, expires_at_ms=now_ms + lease.ttl_ms)


@dataclass(slots=True)
class _Connection:
    seen_at_ms: float
    told: bool = False


class Admission:
    """The shell around the gates."""

    def __init__(self, settings: Settings, policy: NavigationPolicy, clock: Clock) -> None:
        self._settings = settings
        self._policy = policy
        self._clock = clock
        self._free: tuple[float, int | None] | None = None
        self._connections: dict[str, dict[str, _Connection]] = {}

    def facts(
        self, spec: ToolSpec, params: Params, caller: Caller, tab: Tab | None, connection: str | None
    ) -> GateFacts:
        url = getattr(params, "url", None)
        now_ms = self._clock.now_ms()
        if tab is not None:
            tab.lease = _within_its_term(tab.lease, now_ms)
        return GateFacts(
            effect=spec.effect,
            owner=caller.owner,
            now_ms=now_ms,
            stopped=stop_requested(self._settings.stop_file),
            free_mb=self._free_mb(),
            makes_artifacts=spec.makes_artifacts,
            url=url if isinstance(url, str) else None,
            policy=self._policy,
            lease=tab.lease if tab is not None else None,
            agent_id_shared=self._shared(caller, connection),
            unseen_document=tab is not None and tab.url != "about:blank" and tab.perceived_epoch != tab.page_epoch,
            target_id=tab.target_id if tab is not None else None,
        )

    def _free_mb(self) -> int | None:
        now = self._clock.monotonic_ms()
        if self._free is None or now - self._free[0] > DISK_REREAD_MS:
            try:
                free = shutil.disk_usage(self._settings.data_dir).free // 1_000_000
            except OSError:
                free = None
            self._free = (now, free)
        return self._free[1]

    def _shared(self, caller: Caller, connection: str | None) -> bool:
        """True once for every connection that shares the default agent id with another live one."""
        if connection is None or caller.agent_id != "default":
            return False
        now = self._clock.monotonic_ms()
        seen = self._connections.setdefault(caller.principal, {})
        mine = seen.setdefault(connection, _Connection(now))
        mine.seen_at_ms = now
        for other in [name for name, one in seen.items() if now - one.seen_at_ms > CONNECTION_LIVES_MS]:
            del seen[other]
        if len(seen) < 2 or mine.told:
            return False
        mine.told = True
        return True
