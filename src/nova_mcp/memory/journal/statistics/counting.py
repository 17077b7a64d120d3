"""Which figures an event moves; pure. What is counted here when it happens is never counted again from history."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import ceil, log2
from typing import Final

from nova_mcp.evidence.model import CallRecord
from nova_mcp.memory.journal.model import CandidateStatus, Decision

HOUR_MS: Final = 3_600_000
LABEL_LIMIT: Final = 160
OTHER: Final = "(other)"

# Names of the first group sort before all those of a call ("tool…"): a transaction that moves both writes the first
# group first, so that two of them never wait for each other in a circle.
CANDIDATE: Final = "candidate"
CANDIDATE_OF: Final = "candidate.of"
CURATED: Final = "curated"
CURATED_OF: Final = "curated.of"
DECISION: Final = "finalize"
SKIP_REASON: Final = "finalize.skip"
OBSERVATION: Final = "observation"
JOB_DONE: Final = "outbox.done"
PROMOTABLE: Final = "candidate.promotable"

EVENT: Final = "tool"
RUN: Final = "tool.run"
CONTRACT: Final = "tool.contract"
VERIFIED: Final = "tool.verified"
CAUGHT: Final = "tool.caught"
CONTRADICTED: Final = "tool.contradicted"

RUNTIME: Final = ("scrollSmart", "clickNavigation", "dismissBlockers", "screenshotCapture")
LABELLED: Final = ("route", "host", "selector", "reason")
# What pages and callers can invent without end: an hour keeps the first of them by name and the rest as one.
CAPPED: Final = frozenset(
    {f"tool.{name}.{kind}" for name in RUNTIME for kind in LABELLED} | {CANDIDATE_OF + ".top", SKIP_REASON}
)

_EXECUTED: Final = frozenset({"ok", "partial", "failed", "crashed", "cancelled"})
_RUNTIME_TOOLS: Final = {
    "nova.scroll_smart": "scrollSmart",
    "nova.dismiss_blockers": "dismissBlockers",
    "nova.capture_screenshot": "screenshotCapture",
}
_CLICKS: Final = "nova.click_selector"
# Moving the view or the pointer proves little, and a sequence only sums up steps that have records of their own.
_NO_ACTIONS: Final = frozenset({"nova.scroll_smart", "nova.hover", "nova.run_sequence"})
_JUDGED: Final = frozenset({"verified_success", "verified_fail", "indeterminate"})
_BROKEN_OFF: Final = frozenset({"failed", "crashed", "cancelled"})
# A sign-in that a page turns down says so itself; no tool would have taken it for done.
_SAYS_SO_ITSELF: Final = frozenset({"nova.guarded_login"})

Figures = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Tally:
    """Amounts to add: per hour (how often, how often well), per latency bucket, and since the beginning."""

    hours: Mapping[tuple[str, int, str], Figures] = field(default_factory=dict)
    latencies: Mapping[tuple[str, int, int], int] = field(default_factory=dict)
    totals: Mapping[tuple[str, str], int] = field(default_factory=dict)

    def __add__(self, other: "Tally") -> "Tally":
        hours = dict(self.hours)
        for key, (count, good) in other.hours.items():
            had = hours.get(key, (0, 0))
            hours[key] = (had[0] + count, had[1] + good)
        latencies, totals = dict(self.latencies), dict(self.totals)
        for place, amount in other.latencies.items():
            latencies[place] = latencies.get(place, 0) + amount
        for name, amount in other.totals.items():
            totals[name] = totals.get(name, 0) + amount
        return Tally(hours, latencies, totals)


def hour_of(at_ms: int) -> int:
    return at_ms // HOUR_MS


# Whole days are kept under names of their own, beside their hours; the suffix keeps the order of the groups.
DAY: Final = "@day"
DAY_HOURS: Final = 24


def day_of(hour: int) -> int:
    """The hour with which a day begins."""
    return hour - hour % DAY_HOURS


def label(text: str) -> str:
    """As a figure's label; no database keeps a zero byte, and PostgreSQL no half character."""
    kept = text[:LABEL_LIMIT].replace("\x00", "")
    return kept.encode("utf-8", "replace").decode("utf-8")


# -- latencies -------------------------------------------------------------------------------------------------------

# Four buckets per doubling: a percentile read from them is at most a tenth away from the true one.
_PER_DOUBLING: Final = 4


def bucket_of(duration_ms: int) -> int:
    return 0 if duration_ms <= 0 else 1 + ceil(_PER_DOUBLING * log2(duration_ms))


def bucket_middle(bucket: int) -> int:
    """The duration that stands for a bucket."""
    return 0 if bucket == 0 else round(2 ** ((bucket - 1.5) / _PER_DOUBLING)) or 1


def percentile(buckets: Mapping[int, int], share: float) -> int | None:
    """The duration below which that share of the calls ended, within a tenth; None where there were none."""
    total = sum(buckets.values())
    if total <= 0:
        return None
    wanted, seen = ceil(share * total), 0
    for bucket in sorted(buckets):
        seen += buckets[bucket]
        if seen >= wanted:
            return bucket_middle(bucket)
    return None


# -- calls -----------------------------------------------------------------------------------------------------------


def of_call(record: CallRecord) -> Tally:
    """A closed call; an intent announces one and counts nothing."""
    if record.kind == "intent":
        return Tally()
    outcome, hour = record.outcome, hour_of(record.started_at_ms)
    ok = outcome.kind == "ok"
    hours: dict[tuple[str, int, str], Figures] = {(EVENT, hour, ""): (1, int(ok))}
    if outcome.kind in _EXECUTED:
        hours[(RUN, hour, "")] = (1, int(ok))
    for name, good in _action_figures(record):
        hours[(name, hour, "")] = (1, good)
    runtime = runtime_of(record)
    latencies: dict[tuple[str, int, int], int] = {}
    if runtime is not None:
        name, succeeded = runtime
        hours |= _runtime_figures(record, name, hour, succeeded=succeeded)
        latencies[(f"tool.{name}", hour, bucket_of(record.duration_ms))] = 1
    return Tally(hours, latencies, {(EVENT, ""): 1})


def _action_figures(record: CallRecord) -> Iterator[tuple[str, int]]:
    outcome = record.outcome
    if record.effect not in ("act", "commit") or record.tool_name in _NO_ACTIONS:
        return
    if _under_contract(record):
        yield CONTRACT, int(record.signals.contract == "verified_success")
    if not outcome.action_dispatched:
        return
    if outcome.verification == "verified":
        yield VERIFIED, 1
    if is_caught_lie(record):
        yield CAUGHT, 0


def is_caught_lie(record: CallRecord) -> bool:
    """An act that raised no error, so that a plain tool would have called it done, and that its contract showed failed.

    An act without effect is announced as such and deceives no one; so does a sign-in with the wrong password.
    """
    if record.signals.contract != "verified_fail" or record.tool_name in _SAYS_SO_ITSELF:
        return False
    return record.outcome.reason_code in (None, "guarded_commit.postcondition_failed")


def _under_contract(record: CallRecord) -> bool:
    """Whether a contract judged the act, or would have: one that broke off after its intent may have been sent."""
    outcome = record.outcome
    if record.kind == "recovery":
        return record.closes is not None
    if record.signals.contract is not None:
        return bool(outcome.action_dispatched) and record.signals.contract in _JUDGED
    return bool(outcome.action_dispatched) and record.closes is not None and outcome.kind in _BROKEN_OFF


def runtime_of(record: CallRecord) -> tuple[str, bool] | None:
    """The runtime signal a call belongs to, and whether it did what it was for; None for calls that never ran."""
    if record.kind != "call" or record.outcome.kind not in _EXECUTED:
        return None
    ok = record.outcome.kind == "ok"
    if record.tool_name != _CLICKS:
        name = _RUNTIME_TOOLS.get(record.tool_name)
        return None if name is None else (name, ok)
    led = "navigation_committed" in record.touched.flags
    meant = isinstance(record.arguments, dict) and record.arguments.get("waitForNavigation") is True
    return ("clickNavigation", ok and led) if led or meant else None


def _runtime_figures(
    record: CallRecord, name: str, hour: int, *, succeeded: bool
) -> dict[tuple[str, int, str], Figures]:
    figures = (1, int(succeeded))
    route = record.before.route_key or record.after.route_key
    labels = {
        "route": route,
        "host": route.split("/", 1)[0] if route else None,
        "selector": record.touched.selector,
        "reason": None if succeeded else record.outcome.reason_code,
    }
    moved = {(f"tool.{name}", hour, ""): figures}
    return moved | {(f"tool.{name}.{kind}", hour, label(text)): figures for kind, text in labels.items() if text}


def of_contradiction(at_ms: int, count: int = 1) -> Tally:
    """Successes that were verified and have been refuted since."""
    return Tally({(CONTRADICTED, hour_of(at_ms), ""): (count, 0)})


# -- candidates, decisions, jobs -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CandidateStand:
    """How a candidate stands, as far as the figures are concerned."""

    component: str
    status: CandidateStatus
    promotable: bool = False


def of_observations(at_ms: int, count: int = 1) -> Tally:
    return Tally({(OBSERVATION, hour_of(at_ms), ""): (count, 0)}, totals={(OBSERVATION, ""): count})


def of_candidate(before: CandidateStand | None, after: CandidateStand | None, at_ms: int) -> Tally:
    """A candidate that came, changed or went; what no longer holds is taken back."""
    totals: dict[tuple[str, str], int] = {}
    for stand, sign in ((before, -1), (after, 1)):
        for name in () if stand is None else _standings(stand):
            for key in ((name, ""), (name, label(stand.component))) if stand is not None else ():
                totals[key] = totals.get(key, 0) + sign
    hours: dict[tuple[str, int, str], Figures] = {}
    if before is None and after is not None:
        hour, component = hour_of(at_ms), label(after.component)
        hours = {
            (CANDIDATE, hour, ""): (1, 0),
            (CANDIDATE_OF, hour, component): (1, 0),
            (CANDIDATE_OF + ".top", hour, component): (1, 0),
        }
    return Tally(hours, totals={key: amount for key, amount in totals.items() if amount})


def _standings(stand: CandidateStand) -> Iterator[str]:
    yield CANDIDATE
    yield f"{CANDIDATE}.{stand.status}"
    if stand.promotable:
        yield PROMOTABLE


def of_curated(component: str, at_ms: int) -> Tally:
    """A curated entry that was written for the first time; merging into one that exists counts nothing."""
    hour, kept = hour_of(at_ms), label(component)
    return Tally(
        {(CURATED, hour, ""): (1, 0), (CURATED_OF, hour, kept): (1, 0)},
        totals={(CURATED, ""): 1, (CURATED, kept): 1},
    )


def of_decision(decision: Decision, at_ms: int) -> Tally:
    hour, committed = hour_of(at_ms), decision.kind == "commit"
    hours: dict[tuple[str, int, str], Figures] = {(DECISION, hour, ""): (1, int(committed))}
    if not committed:
        hours[(SKIP_REASON, hour, label(decision.reason_code or "unstated"))] = (1, 0)
    return Tally(hours, totals={(DECISION, ""): 1})


def of_job_done(at_ms: int) -> Tally:
    return Tally({(JOB_DONE, hour_of(at_ms), ""): (1, 0)}, totals={(JOB_DONE, ""): 1})
