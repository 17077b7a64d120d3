"""Admission gates as data with pure verdicts: may this call run, with a warning, or not at all?"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from nova_mcp.calls.admission.session_budget import Exhausted
from nova_mcp.core.leases import Lease
from nova_mcp.core.policy import Allowed, Denied, Malformed, NavigationPolicy, judge_url
from nova_mcp.core.values import Owner
from nova_mcp.errors import (
    Blocked,
    BudgetExhausted,
    ClaimMismatch,
    CommitRefused,
    Fix,
    Killed,
    NovaError,
    PolicyDenied,
    Unacknowledged,
)
from nova_mcp.evidence.model import MUTATING, Effect
from nova_mcp.memory.claims.rules import Reclaimed, held_by_other, may_mutate
from nova_mcp.memory.facts.policies import Lacking, capability_missing
from nova_mcp.memory.notes.domain_model import Due
from nova_mcp.memory.notes.domain_refusals import acknowledge_required
from nova_mcp.settings import GateMode, GateSettings
from nova_mcp.tools.spec import GateId

GateStatus = Literal["warned", "shadow_blocked"]
# An answer shows no more than these; more at once would bury what the call itself has to say.
MOST_SHOWN = 5


@dataclass(frozen=True, slots=True)
class GateFacts:
    """Everything the gates look at, read once before they are asked."""

    effect: Effect
    owner: Owner
    now_ms: int
    stopped: bool = False
    free_mb: int | None = None
    makes_artifacts: bool = False
    url: str | None = None
    policy: NavigationPolicy | None = None
    lease: Lease | None = None
    # An owner that loaded neither instructions nor a bundle in its session, and has not heard of it yet.
    unprepared: bool = False
    agent_id_shared: bool = False
    unseen_document: bool = False
    # The kind of a layer that was last seen to cover the page and not to hold the target.
    covered_by: str | None = None
    target_id: str | None = None
    # A capability that the operator demands here and no fact proves.
    lacking: Lacking | None = None
    exhausted: Exhausted | None = None
    # What somebody has to have read about the page's host; and whether notes only warn, by the operator's word.
    site: Due | None = None
    notes_only_warn: bool = False
    # Gates whose facts could not be read: unknown is not the same as fine.
    unreadable: frozenset[GateId] = frozenset()


@dataclass(frozen=True, slots=True)
class Notice:
    """A gate that let the call pass with a word."""

    gate_id: GateId | Literal["claim.reclaimed"]
    status: GateStatus
    message: str
    fix: Fix | None = None
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Admitted:
    notices: tuple[Notice, ...] = ()


@dataclass(frozen=True, slots=True)
class Refused:
    gate_id: GateId
    error: NovaError


@dataclass(frozen=True, slots=True)
class Gate:
    """One row of the table: an id, where its mode comes from, what fires it, and how it fails when nobody can tell."""

    gate_id: GateId
    mode: Callable[[GateSettings], GateMode]
    judge: Callable[[GateFacts, GateSettings], NovaError | None]
    family: type[NovaError]
    reason: str
    # Whether what fired is meant as a word only, even where the gate blocks.
    only_warns: Callable[[GateFacts], bool] = lambda _: False

    def verdict(self, facts: GateFacts, settings: GateSettings) -> NovaError | None:
        if self.gate_id not in facts.unreadable:
            return self.judge(facts, settings)
        return self.family(
            self.reason,
            f"Whether {self.gate_id} holds this call back can't be told right now.",
            "Try again in a moment; the server's log may say what could not be read.",
            stage="gate",
            retry_after_ms=UNREADABLE_AGAIN_MS,
        )


UNREADABLE_AGAIN_MS = 2_000


def _always(_: GateSettings) -> GateMode:
    return "block"


def _emergency_stop(facts: GateFacts, _: GateSettings) -> NovaError | None:
    if not facts.stopped:
        return None
    return Blocked("safety.emergency_stop", stage="gate")


def _disk_space(facts: GateFacts, settings: GateSettings) -> NovaError | None:
    floor = settings.low_disk_mb if facts.effect in MUTATING or facts.makes_artifacts else settings.critical_disk_mb
    if facts.free_mb is not None and facts.free_mb >= floor:
        return None
    free = "an unknown amount" if facts.free_mb is None else f"{facts.free_mb} MB"
    return Blocked(
        "storage.low_free_space",
        f"The data folder's disk has {free} free; this call needs {floor} MB.",
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


def _capability(facts: GateFacts, _: GateSettings) -> NovaError | None:
    if (lacking := facts.lacking) is None:
        return None
    return capability_missing(lacking, facts.owner[1], facts.target_id or "active")


_SPENT = {
    "calls": "calls",
    "navigations": "navigations",
    "minutes": "minutes",
    "imageBytes": "bytes of pictures",
}


def _session_budget(facts: GateFacts, _: GateSettings) -> NovaError | None:
    if (spent := facts.exhausted) is None:
        return None
    return BudgetExhausted(
        "budget.exhausted",
        f"This session has used up its {spent.cap} {_SPENT[spent.counter]}.",
        stage="gate",
        retry_after_ms=spent.retry_after_ms,
        details={"counter": spent.counter, "cap": spent.cap},
    )


def _claim(facts: GateFacts, _: GateSettings) -> NovaError | None:
    foreign = may_mutate(facts.lease, facts.owner, facts.now_ms) if facts.effect in MUTATING else None
    return None if foreign is None else held_by_other(foreign, facts.owner[1])


def _domain_note(facts: GateFacts, _: GateSettings) -> NovaError | None:
    if facts.site is None or not facts.site.blocking:
        return None
    return acknowledge_required(facts.site)


def _bootstrap(facts: GateFacts, _: GateSettings) -> NovaError | None:
    if not facts.unprepared:
        return None
    return Blocked(
        "bootstrap.required",
        stage="gate",
        fix=Fix("nova.get_instructions", {"agentId": facts.owner[1]}),
    )


def _shared_agent(facts: GateFacts, _: GateSettings) -> NovaError | None:
    if not facts.agent_id_shared:
        return None
    return Blocked(
        "agent.shared_id",
        f'Two connections both act as agent "{facts.owner[1]}", so they share one active tab.',
        stage="gate",
    )


def _perceive_first(facts: GateFacts, _: GateSettings) -> NovaError | None:
    if facts.effect not in ("act", "commit", "write") or not facts.unseen_document:
        return None
    return Blocked(
        "perceive.required",
        stage="gate",
        # The tab is named: the one that was acted on need not be the current one.
        fix=Fix("nova.perceive", {"agentId": facts.owner[1], "targetId": facts.target_id or "active"}),
    )


def _overlay(facts: GateFacts, _: GateSettings) -> NovaError | None:
    if facts.covered_by is None:
        return None
    return Blocked(
        "blocking_overlay_active",
        f"A layer ({facts.covered_by}) covers the page, and the target is not on it.",
        stage="gate",
        fix=Fix("nova.dismiss_blockers", {"agentId": facts.owner[1], "targetId": facts.target_id or "active"}),
    )


GATES: tuple[Gate, ...] = (
    Gate("safety.emergency_stop", _always, _emergency_stop, Blocked, "safety.emergency_stop"),
    Gate("safety.disk_space_low", _always, _disk_space, Blocked, "storage.low_free_space"),
    Gate("policy.domain", _always, _domain, PolicyDenied, "policy.host_denied"),
    Gate(
        "policy.capability",
        lambda settings: settings.capability,
        _capability,
        PolicyDenied,
        "policy.capability_missing",
        only_warns=lambda facts: facts.lacking is not None and facts.lacking.decision == "warn",
    ),
    Gate(
        "safety.session_budget",
        lambda settings: settings.session_budget,
        _session_budget,
        BudgetExhausted,
        "budget.exhausted",
    ),
    Gate("claim.owner", _always, _claim, ClaimMismatch, "claim.owner_mismatch"),
    Gate(
        "user.domain_note",
        _always,
        _domain_note,
        Unacknowledged,
        "acknowledge_required",
        only_warns=lambda facts: facts.notes_only_warn,
    ),
    Gate("setup.bootstrap", lambda settings: settings.bootstrap, _bootstrap, Blocked, "bootstrap.required"),
    Gate("setup.shared_agent_id", lambda settings: settings.shared_agent_id, _shared_agent, Blocked, "agent.shared_id"),
    Gate(
        "safety.perceive_first", lambda settings: settings.perceive_first, _perceive_first, Blocked, "perceive.required"
    ),
    Gate(
        "safety.overlay_detected",
        lambda settings: settings.overlay_detected,
        _overlay,
        Blocked,
        "blocking_overlay_active",
    ),
)

# Whether an action commits is known only once its element is found, so these two stop a call from inside; the ledger
# and the answer name them like any other gate.
MET_ON_THE_WAY: Mapping[str, type[NovaError]] = {
    "safety.kill_switch": Killed,
    "safety.guarded_commit": CommitRefused,
}


def admit(declared: Iterable[GateId], facts: GateFacts, settings: GateSettings) -> Admitted | Refused:
    """Ask the declared gates in table order; the first one that blocks decides."""
    wanted = frozenset(declared)
    notices: list[Notice] = []
    for gate in GATES:
        mode = gate.mode(settings)
        if gate.gate_id not in wanted or mode == "off":
            continue
        if (error := gate.verdict(facts, settings)) is None:
            continue
        if mode == "block" and gate.only_warns(facts):
            mode = "warn"
        if mode == "block":
            return Refused(gate.gate_id, error)
        status: GateStatus = "warned" if mode == "warn" else "shadow_blocked"
        notices.append(Notice(gate.gate_id, status, error.message, error.fix, error.hint))
    return Admitted(tuple(notices[:MOST_SHOWN]))


def shadow_gate(notices: Iterable[Notice]) -> str | None:
    """The first gate that would have stopped the call if it were not being tried out."""
    return next((notice.gate_id for notice in notices if notice.status == "shadow_blocked"), None)


def reclaimed(words: Sequence[Reclaimed]) -> tuple[Notice, ...]:
    """One notice for an owner that lost what it held, whatever its next call is about."""
    if not words:
        return ()
    lost, takers = dict.fromkeys(w.target_id for w in words), dict.fromkeys(f'"{w.by_agent_id}"' for w in words)
    message = f"Agent {', '.join(takers)} took over {', '.join(lost)}."
    hint = "Your claim there has ended and its token is void; work elsewhere, or settle it with that agent."
    return (Notice("claim.reclaimed", "warned", message, Fix("nova.tabs", {"outputDetail": "full"}), hint),)
