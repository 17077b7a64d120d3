"""Admission gates as data with pure verdicts: may this call run, with a warning, or not at all?"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from nova_mcp.browser.claims import Lease, may_mutate
from nova_mcp.errors import Blocked, ClaimMismatch, Fix, NovaError, PolicyDenied
from nova_mcp.observation.model import MUTATING, Effect
from nova_mcp.policy import Allowed, Denied, Malformed, NavigationPolicy, judge_url
from nova_mcp.settings import GateMode, GateSettings
from nova_mcp.tools.spec import GateId

GateStatus = Literal["warned", "shadow_blocked"]


@dataclass(frozen=True, slots=True)
class GateFacts:
    """Everything the gates look at, read once before they are asked."""

    effect: Effect
    owner: tuple[str, str]
    now_ms: int
    stopped: bool = False
    free_mb: int | None = None
    makes_artifacts: bool = False
    url: str | None = None
    policy: NavigationPolicy | None = None
    lease: Lease | None = None
    agent_id_shared: bool = False
    unseen_document: bool = False
    target_id: str | None = None


@dataclass(frozen=True, slots=True)
class Notice:
    """A gate that let the call pass with a word."""

    gate_id: GateId
    status: GateStatus
    message: str
    fix: Fix | None = None


@dataclass(frozen=True, slots=True)
class Admitted:
    notices: tuple[Notice, ...] = ()


@dataclass(frozen=True, slots=True)
class Refused:
    gate_id: GateId
    error: NovaError


@dataclass(frozen=True, slots=True)
class Gate:
    """One row of the table: an id, where its mode comes from, and what fires it."""

    gate_id: GateId
    mode: Callable[[GateSettings], GateMode]
    judge: Callable[[GateFacts, GateSettings], NovaError | None]


def _always(_: GateSettings) -> GateMode:
    return "block"


def _emergency_stop(facts: GateFacts, _: GateSettings) -> NovaError | None:
    if not facts.stopped:
        return None
    return Blocked(
        "safety.emergency_stop",
        "The operator has stopped Nova.",
        "Only a person can lift it: remove the STOP file from the data folder.",
        stage="gate",
    )


def _disk_space(facts: GateFacts, settings: GateSettings) -> NovaError | None:
    floor = settings.low_disk_mb if facts.effect in MUTATING or facts.makes_artifacts else settings.critical_disk_mb
    if facts.free_mb is not None and facts.free_mb >= floor:
        return None
    free = "an unknown amount" if facts.free_mb is None else f"{facts.free_mb} MB"
    return Blocked(
        "storage.low_free_space",
        f"The data folder's disk has {free} free; this call needs {floor} MB.",
        "Free disk space or move the data folder; evidence must stay writable.",
        stage="gate",
        retry_after_ms=60_000,
    )


def _domain(facts: GateFacts, _: GateSettings) -> NovaError | None:
    if facts.url is None or facts.policy is None:
        return None
    match judge_url(facts.url, facts.policy):
        case Denied() as denied:
            return PolicyDenied(denied.reason_code, denied.message, denied.hint, stage="gate")
        case Allowed() | Malformed():
            # The shape of an address is the arguments' business, checked before any gate is asked.
            return None


def _claim(facts: GateFacts, _: GateSettings) -> NovaError | None:
    foreign = may_mutate(facts.lease, facts.owner, facts.now_ms) if facts.effect in MUTATING else None
    if foreign is None:
        return None
    return ClaimMismatch(
        "claim.owner_mismatch",
        f'Agent "{foreign.owner_agent_id}" is working on this tab.',
        "Open a tab of your own, or wait for the lease to run out.",
        stage="gate",
        retry_after_ms=foreign.lease_remaining_ms,
        fix=Fix("nova.tab_new", {"agentId": facts.owner[1]}),
        details={"ownerAgentId": foreign.owner_agent_id, "leaseRemainingMs": foreign.lease_remaining_ms},
    )


def _shared_agent(facts: GateFacts, _: GateSettings) -> NovaError | None:
    if not facts.agent_id_shared:
        return None
    return Blocked(
        "agent.shared_id",
        f'Two connections both act as agent "{facts.owner[1]}", so they share one active tab.',
        "Give each client an agentId of its own.",
        stage="gate",
    )


def _perceive_first(facts: GateFacts, _: GateSettings) -> NovaError | None:
    if facts.effect not in ("act", "commit") or not facts.unseen_document:
        return None
    return Blocked(
        "perceive.required",
        "Nobody has looked at this document yet.",
        "Look first, then act on what is really there.",
        stage="gate",
        # The tab is named: the one that was acted on need not be the current one.
        fix=Fix("nova.perceive", {"agentId": facts.owner[1], "targetId": facts.target_id or "active"}),
    )


GATES: tuple[Gate, ...] = (
    Gate("safety.emergency_stop", _always, _emergency_stop),
    Gate("safety.disk_space_low", _always, _disk_space),
    Gate("policy.domain", _always, _domain),
    Gate("claim.owner", _always, _claim),
    Gate("setup.shared_agent_id", lambda settings: settings.shared_agent_id, _shared_agent),
    Gate("safety.perceive_first", lambda settings: settings.perceive_first, _perceive_first),
)


def admit(declared: Iterable[GateId], facts: GateFacts, settings: GateSettings) -> Admitted | Refused:
    """Ask the declared gates in table order; the first one that blocks decides."""
    wanted = frozenset(declared)
    notices: list[Notice] = []
    for gate in GATES:
        mode = gate.mode(settings)
        if gate.gate_id not in wanted or mode == "off":
            continue
        if (error := gate.judge(facts, settings)) is None:
            continue
        if mode == "block":
            return Refused(gate.gate_id, error)
        status: GateStatus = "warned" if mode == "warn" else "shadow_blocked"
        notices.append(Notice(gate.gate_id, status, f"{error.message} {error.hint}", error.fix))
    return Admitted(tuple(notices))
