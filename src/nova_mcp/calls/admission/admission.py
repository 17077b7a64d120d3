"""Reads the facts that the gates judge: stop file, disk, policy, lease, connections, what was seen and used up."""

import shutil
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from nova_mcp.browser.targets.registry import Tab
from nova_mcp.calls.admission.gates import GateFacts
from nova_mcp.calls.admission.session_budget import (
    SESSION_GAP_MS,
    Caps,
    Demand,
    Session,
    asked,
    charged,
    exhausted,
    pictured,
    session_at,
)
from nova_mcp.core.clock import Clock
from nova_mcp.core.connections import AgentConnection, AgentConnections
from nova_mcp.core.leases import Lease
from nova_mcp.core.policy import NavigationPolicy
from nova_mcp.core.stop_file import stop_requested
from nova_mcp.core.values import Owner
from nova_mcp.evidence.model import Caller
from nova_mcp.settings import Settings
from nova_mcp.tools.spec import Params, ToolSpec

DISK_REREAD_MS = 2_000
SESSIONS_KEPT = 1_000
# What tells an agent how to work here, or which tools there are.
PREPARING = frozenset({"get_instructions", "tools_bundle"})
# Since when a connection has been reminded of instructions, or has loaded them: the beginning of its owner's session.
REMINDED: Final = "instructions reminder"
PREPARED: Final = "instructions"
SHARED_ID: Final = "shared agent id"
NEVER: Final = -1


def _within_its_term(lease: Lease | None, now_ms: int) -> Lease | None:
    """No lease runs longer than its term from now: a clock set back would hold a tab until it has caught up."""
    if lease is None or lease.expires_at_ms <= now_ms + lease.ttl_ms:
        return lease
    return replace(lease, expires_at_ms=now_ms + lease.ttl_ms)


def _demand(spec: ToolSpec, params: Params) -> Demand:
    return Demand(
        navigates=spec.effect == "navigate",
        pictures=spec.makes_artifacts or bool(getattr(params, "include_screenshot", False)),
    )


def _covered(tab: Tab, params: Params) -> str | None:
    """What lies over the target, as far as the last look told; a selector is known by the refs that were given it."""
    ref, selector = getattr(params, "ref", None), getattr(params, "selector", None)
    if (ref is None and selector is None) or tab.blockers.over(tab.page_epoch, None) is None:
        return None
    known = tab.perception.get(ref) if ref is not None else tab.perception.selected_by(str(selector), tab.page_epoch)
    if known is not None and known.facts.frame:
        return None
    return tab.blockers.over(tab.page_epoch, None if known is None else known.node)


class Admission:
    """The shell around the gates."""

    def __init__(self, settings: Settings, policy: NavigationPolicy, clock: Clock) -> None:
        self._settings = settings
        self._policy = policy
        self._clock = clock
        self._free: tuple[float, int | None] | None = None
        self.connections = AgentConnections(clock)
        self._sessions: dict[Owner, Session] = {}
        gates = settings.gates
        self._caps = Caps(
            gates.session_calls, gates.session_navigations, gates.session_minutes, gates.session_image_bytes
        )

    def facts(self, spec: ToolSpec, params: Params, connection: AgentConnection, tab: Tab | None) -> GateFacts:
        url = getattr(params, "url", None) or getattr(params, "start_url", None)
        now_ms = self._clock.now_ms()
        if tab is not None:
            tab.lease = _within_its_term(tab.lease, now_ms)
        session = self._session(connection.owner)
        return GateFacts(
            effect=spec.effect,
            owner=connection.owner,
            now_ms=now_ms,
            stopped=stop_requested(self._settings.stop_file),
            free_mb=self._free_mb(),
            makes_artifacts=spec.makes_artifacts,
            url=url if isinstance(url, str) else None,
            policy=self._policy,
            lease=tab.lease if tab is not None else None,
            unprepared=self._unprepared(connection, session),
            agent_id_shared="setup.shared_agent_id" in spec.gates and self._shares_id(connection),
            unseen_document=tab is not None and tab.url != "about:blank" and tab.perceived_epoch != tab.page_epoch,
            covered_by=None if tab is None or "safety.overlay_detected" not in spec.gates else _covered(tab, params),
            target_id=tab.target_id if tab is not None else None,
            exhausted=exhausted(session, _demand(spec, params), self._caps, self._now()),
        )

    def entered(self, spec: ToolSpec, params: Params, connection: AgentConnection) -> None:
        """The gates have let a call in; it counts from here on, whatever comes of it."""
        session = self._sessions[connection.owner] = charged(self._session(connection.owner), _demand(spec, params))
        if spec.name in PREPARING:
            connection.deliver(PREPARED, session.began_at_ms)

    def answered(self, gates: Iterable[str], connection: AgentConnection) -> None:
        """What these gates had to say goes out with the answer; a call that broke off has delivered nothing."""
        for gate_id in gates:
            if gate_id == "setup.bootstrap":
                connection.deliver(REMINDED, self._session(connection.owner).began_at_ms)
            elif gate_id == "setup.shared_agent_id":
                connection.deliver(SHARED_ID)

    def _unprepared(self, connection: AgentConnection, session: Session) -> bool:
        """Whether the connection is to hear that it lacks instructions: once, or every time where that stops it."""
        if connection.delivered(PREPARED, NEVER) == session.began_at_ms:
            return False
        again = self._settings.gates.bootstrap == "block"
        return again or connection.delivered(REMINDED, NEVER) != session.began_at_ms

    def _shares_id(self, connection: AgentConnection) -> bool:
        """Whether the connection is to hear that another one acts under the default agent id as well."""
        if connection.owner[1] != "default" or connection.delivered(SHARED_ID, otherwise=False):
            return False
        return self.connections.shares_owner(connection)

    def pictured(self, caller: Caller, image_bytes: int) -> None:
        if image_bytes:
            self._sessions[caller.owner] = pictured(self._session(caller.owner), image_bytes)

    def _session(self, owner: Owner) -> Session:
        now = self._now()
        session = self._sessions[owner] = asked(session_at(self._sessions.get(owner), now), now)
        if len(self._sessions) > SESSIONS_KEPT:
            over = [name for name, one in self._sessions.items() if now - one.last_at_ms > SESSION_GAP_MS]
            for name in over:
                del self._sessions[name]
        return session

    def _now(self) -> int:
        # Not the time of day, which somebody may set.
        return int(self._clock.monotonic_ms())

    def _free_mb(self) -> int | None:
        now = self._clock.monotonic_ms()
        if self._free is None or now - self._free[0] > DISK_REREAD_MS:
            try:
                free = shutil.disk_usage(self._settings.data_dir).free // 1_000_000
            except OSError:
                free = None
            self._free = (now, free)
        return self._free[1]
