"""How a run moves: what a report of progress comes to, and the state that events add up to; pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from nova_mcp.core.values import Json
from nova_mcp.memory.tasks.content_codec import json_bytes
from nova_mcp.memory.tasks.coverage.locators import BadLocator, Declared, Locator, unit_key, unit_locator, url_locator
from nova_mcp.memory.tasks.model import (
    MOST_RESUME_BYTES,
    MOST_UNITS,
    URL_KINDS,
    CheckState,
    DiscoveryState,
    RunStatus,
    Severity,
    UnitKind,
    UnitStatus,
)

EventKind = Literal["progress", "complete", "abort", "expire"]
# What is known about a unit, told by those who name it.
MOST_NAMED: Final = 20
SHORTEST_NOTE: Final = 8

_ORDER: Final[Mapping[DiscoveryState, int]] = {"unknown": 0, "partial": 1, "frozen": 2}
_MOVES: Final[Mapping[UnitStatus, frozenset[UnitStatus]]] = {
    "discovered": frozenset({"checked", "excluded", "blocked", "failed"}),
    "blocked": frozenset({"discovered", "checked", "excluded"}),
    "failed": frozenset({"discovered", "checked", "excluded"}),
    "checked": frozenset(),
    "excluded": frozenset(),
}
_EXPLAINED: Final[frozenset[UnitStatus]] = frozenset({"excluded", "blocked", "failed"})
_NOTED: Final[frozenset[CheckState]] = frozenset({"waived", "not_applicable"})


# -- what a run is


@dataclass(frozen=True, slots=True)
class Unit:
    """One piece of work, as agents speak of it; what was seen of it stands elsewhere."""

    key: str
    label: str = ""
    url: str | None = None
    locator: Locator | None = None
    status: UnitStatus = "discovered"
    reason: str | None = None
    late: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    key: str
    detail: str
    unit_key: str | None = None
    severity: Severity = "info"


@dataclass(frozen=True, slots=True)
class CheckMark:
    state: CheckState = "pending"
    note: str | None = None


@dataclass(frozen=True, slots=True)
class RunState:
    """What events make of a run; a live call knows only those units that it speaks of, a replay knows all."""

    rev: int = 0
    status: RunStatus = "pending"
    discovery: DiscoveryState = "unknown"
    total_units: int = 0
    units: Mapping[str, Unit] = field(default_factory=dict)
    findings: Mapping[str, Finding] = field(default_factory=dict)
    checks: Mapping[str, CheckMark] = field(default_factory=dict)
    resume: Mapping[str, Json] = field(default_factory=dict)
    ended_reason: str | None = None


@dataclass(frozen=True, slots=True)
class Terms:
    """What of a run never changes and decides what it can be told."""

    unit_kind: UnitKind
    target_url: str | None = None
    check_ids: frozenset[str] = frozenset()

    @property
    def counts_urls(self) -> bool:
        return self.unit_kind in URL_KINDS


# -- what an agent reports


@dataclass(frozen=True, slots=True)
class UnitName:
    """A unit by its key, or a URL unit by its address."""

    key: str | None = None
    url: str | None = None

    @property
    def shown(self) -> str:
        return (self.key if self.key is not None else self.url) or ""


@dataclass(frozen=True, slots=True)
class FoundUnit:
    name: UnitName
    label: str = ""
    declared: Declared | None = None


@dataclass(frozen=True, slots=True)
class UnitUpdate:
    name: UnitName
    status: UnitStatus
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class FindingReport:
    key: str
    detail: str
    name: UnitName | None = None
    severity: Severity = "info"


@dataclass(frozen=True, slots=True)
class CheckUpdate:
    check_id: str
    state: CheckState
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """One report of progress; applied in the order of its fields, all of it or nothing."""

    discovered: tuple[FoundUnit, ...] = ()
    updates: tuple[UnitUpdate, ...] = ()
    findings: tuple[FindingReport, ...] = ()
    checks: tuple[CheckUpdate, ...] = ()
    resume: Mapping[str, Json] | None = None
    discovery: DiscoveryState | None = None
    note: str | None = None

    @property
    def empty(self) -> bool:
        lists = (self.discovered, self.updates, self.findings, self.checks)
        return not any(lists) and not self.resume and self.discovery is None and self.note is None


# -- what an event changes


@dataclass(frozen=True, slots=True)
class Move:
    key: str
    status: UnitStatus
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Delta:
    """Everything one event changes; the same deltas in the same order make the same run."""

    units: tuple[Unit, ...] = ()
    moves: tuple[Move, ...] = ()
    findings: tuple[Finding, ...] = ()
    checks: Mapping[str, CheckMark] = field(default_factory=dict)
    # Null takes a key away.
    resume: Mapping[str, Json] = field(default_factory=dict)
    discovery: DiscoveryState | None = None
    status: RunStatus | None = None
    ended_reason: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a report can't be taken, and what of it is to blame."""

    reason_code: str
    message: str
    hint: str
    offenders: tuple[str, ...] = ()


def advance(state: RunState, delta: Delta) -> RunState:
    """The run after one more event."""
    units = {**state.units, **{one.key: one for one in delta.units}}
    for move in delta.moves:
        units[move.key] = replace(units[move.key], status=move.status, reason=move.reason)
    resume = {**state.resume, **delta.resume}
    return RunState(
        rev=state.rev + 1,
        status=delta.status or state.status,
        discovery=delta.discovery or state.discovery,
        total_units=state.total_units + len(delta.units),
        units=units,
        findings={**state.findings, **{one.key: one for one in delta.findings}},
        checks={**state.checks, **delta.checks},
        resume={key: value for key, value in resume.items() if value is not None},
        ended_reason=delta.ended_reason or state.ended_reason,
    )


def replay(beginning: RunState, deltas: Iterable[Delta]) -> RunState:
    state = beginning
    for delta in deltas:
        state = advance(state, delta)
    return state


# -- from report to delta


def named_keys(report: Report, terms: Terms) -> frozenset[str]:
    """The keys of all units that a report speaks of, so that those and no others are read."""
    names = [one.name for one in report.discovered] + [one.name for one in report.updates]
    names += [one.name for one in report.findings if one.name is not None]
    return frozenset(key for key in (key_of(name, terms) for name in names) if key is not None)


def key_of(name: UnitName, terms: Terms) -> str | None:
    if name.key is not None or name.url is None:
        return name.key
    place = url_locator(name.url, terms.target_url)
    return None if isinstance(place, BadLocator) else unit_key(place.value)


def progress(state: RunState, report: Report, terms: Terms) -> Delta | Problem:
    """What a report changes; it knows every unit that the report names and the run has."""
    if report.empty:
        return Problem("empty_update", "There is nothing to apply in this call.", "Report at least one change.")
    found = _found(state, report.discovered, terms)
    if isinstance(found, Problem):
        return found
    known = {**state.units, **{one.key: one for one in found}}
    moves = _moved(known, report.updates, terms)
    if isinstance(moves, Problem):
        return moves
    findings = _findings(known, report.findings, terms)
    if isinstance(findings, Problem):
        return findings
    problem = _check_problem(report.checks, terms) or _state_problem(state, report)
    if problem is not None:
        return problem
    return Delta(
        units=found,
        moves=moves,
        findings=findings,
        checks={one.check_id: CheckMark(one.state, one.note) for one in report.checks},
        resume=dict(report.resume or {}),
        discovery=report.discovery,
        status="active",
        note=report.note,
    )


def _found(state: RunState, reported: Sequence[FoundUnit], terms: Terms) -> tuple[Unit, ...] | Problem:
    new: dict[str, Unit] = {}
    refused: list[str] = []
    for one in reported:
        unit = _unit(one, terms)
        if unit is None:
            refused.append(one.name.shown)
        elif unit.key not in state.units and unit.key not in new:
            new[unit.key] = replace(unit, late=state.discovery == "frozen")
    if refused:
        return _unlocatable(refused, terms)
    if state.total_units + len(new) > MOST_UNITS:
        more = state.total_units + len(new)
        return Problem("size_limit", f"A run has at most {MOST_UNITS} units; this one would have {more}.", _SMALLER)
    return tuple(new.values())


_SMALLER: Final = "Split the work into several runs, or register only what has to be looked at."


def _unit(one: FoundUnit, terms: Terms) -> Unit | None:
    """A unit with its place, or None where it has none that this kind of run can take."""
    text = one.name.url if terms.counts_urls else one.name.key
    if text is None or (one.name.url is not None and one.name.key is not None):
        return None
    place = unit_locator(terms.unit_kind, text, declared=one.declared, target_url=terms.target_url)
    if isinstance(place, BadLocator):
        return None
    if terms.counts_urls and place is not None:
        return Unit(unit_key(place.value), one.label, url=place.value, locator=place)
    return Unit(text, one.label, locator=place)


def _unlocatable(refused: Sequence[str], terms: Terms) -> Problem:
    if terms.counts_urls:
        hint = "Give each unit as url: an http or https address, or a path from / when the run has a targetUrl."
    else:
        hint = "Give each unit a unitKey, and a locator only as url_exact, url_path or selector with a usable value."
    said = f"{len(refused)} of the discovered units can't be placed in a run of {terms.unit_kind} units."
    return Problem("invalid_unit_locator", said, hint, tuple(refused[:MOST_NAMED]))


def _moved(known: Mapping[str, Unit], updates: Sequence[UnitUpdate], terms: Terms) -> tuple[Move, ...] | Problem:
    keys = [key_of(one.name, terms) for one in updates]
    unknown = [one.name.shown for one, key in zip(updates, keys, strict=True) if key not in known]
    if unknown:
        return _unknown_units(unknown)
    silent = [one.name.shown for one in updates if one.status in _EXPLAINED and not one.reason]
    if silent:
        said = "A unit that is excluded, blocked or failed needs a reason."
        return Problem("reason_required", said, "Add reason, 3 to 500 characters, to each.", tuple(silent[:MOST_NAMED]))
    moved: dict[str, Move] = {}
    illegal: list[str] = []
    for one, key in zip(updates, keys, strict=True):
        if key is None:
            continue
        now = moved[key].status if key in moved else known[key].status
        if one.status == now:
            continue
        if one.status not in _MOVES[now]:
            illegal.append(f"{one.name.shown} {now}→{one.status}")
            continue
        moved[key] = Move(key, one.status, one.reason)
    if illegal:
        said = "checked and excluded are final, and nothing becomes blocked or failed but what is discovered."
        hint = "Leave these units as they are, or set blocked and failed ones back to discovered first."
        return Problem("illegal_unit_transition", said, hint, tuple(illegal[:MOST_NAMED]))
    return tuple(moved.values())


def _unknown_units(unknown: Sequence[str]) -> Problem:
    hint = "Register them under discoveredUnits first, or read the keys with nova.task_instance_get."
    return Problem("unknown_unit", f"The run has no such unit ({len(unknown)}).", hint, tuple(unknown[:MOST_NAMED]))


def _findings(
    known: Mapping[str, Unit], reported: Sequence[FindingReport], terms: Terms
) -> tuple[Finding, ...] | Problem:
    kept: dict[str, Finding] = {}
    unknown: list[str] = []
    for one in reported:
        key = None if one.name is None else key_of(one.name, terms)
        if one.name is not None and key not in known:
            unknown.append(one.name.shown)
        kept[one.key] = Finding(one.key, one.detail, key, one.severity)
    return _unknown_units(unknown) if unknown else tuple(kept.values())


def _check_problem(updates: Sequence[CheckUpdate], terms: Terms) -> Problem | None:
    unknown = [one.check_id for one in updates if one.check_id not in terms.check_ids]
    if unknown:
        listed = ", ".join(sorted(terms.check_ids)) or "none"
        hint = f"The run's checks: {listed}."
        return Problem("unknown_check", "The run has no such check.", hint, tuple(unknown[:MOST_NAMED]))
    silent = [one.check_id for one in updates if one.state in _NOTED and len(one.note or "") < SHORTEST_NOTE]
    if silent:
        said = "A check that is waived or not applicable needs a note."
        hint = "Say in 8 to 500 characters why it is not done."
        return Problem("note_required", said, hint, tuple(silent[:MOST_NAMED]))
    return None


def _state_problem(state: RunState, report: Report) -> Problem | None:
    if report.discovery is not None and _ORDER[report.discovery] < _ORDER[state.discovery]:
        said = f"Discovery is {state.discovery} and can't become {report.discovery} again."
        hint = "Units found later are registered all the same and marked as late."
        return Problem("illegal_discovery_transition", said, hint, (f"{state.discovery}→{report.discovery}",))
    resume = {**state.resume, **(report.resume or {})}
    size = json_bytes({key: value for key, value in resume.items() if value is not None})
    if size > MOST_RESUME_BYTES:
        said = f"The resume state would have {size} bytes; {MOST_RESUME_BYTES} are kept."
        return Problem("size_limit", said, "Keep a smaller checkpoint, or remove a key by setting it to null.")
    return None
