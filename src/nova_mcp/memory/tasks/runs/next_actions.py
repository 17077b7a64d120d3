"""What an agent should do next about each reason that keeps its run open; pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from nova_mcp.core.keywords import cut
from nova_mcp.memory.tasks.model import ScanId, VerificationStep
from nova_mcp.memory.tasks.runs.completion import Reason, Standing

MOST: Final = 5
_SHOWN: Final = 3
_NAME_CHARS: Final = 120


@dataclass(frozen=True, slots=True)
class NextAction:
    tool: str
    why: str


@dataclass(frozen=True, slots=True)
class Pointers:
    """The names that make a hint concrete: units, pages and steps that are still to be done."""

    instance_id: str
    remaining: tuple[str, ...] = ()
    stuck: tuple[str, ...] = ()
    uncovered: tuple[str, ...] = ()
    unproven: tuple[str, ...] = ()
    steps: tuple[VerificationStep, ...] = ()
    scan_id: ScanId = "nova_full_page_text_v1"


def next_actions(standing: Standing, reasons: Sequence[Reason], names: Pointers) -> tuple[NextAction, ...]:
    """One action per reason, in the order of the reasons; the first clears what is asked for first."""
    found = [_action(one.reason_code, standing, names) for one in reasons]
    return tuple(dict.fromkeys(found))[:MOST]


def _action(code: str, standing: Standing, names: Pointers) -> NextAction:
    urls = standing.condition.counts_urls
    match code:
        case "pending_mandatory_checks":
            checks = _some(standing.pending_checks)
            return _report(f"do the checks, then send mandatoryCheckUpdates with state satisfied for {checks}")
        case "discovery_not_frozen":
            return _report('register what is still missing as discoveredUnits, then send setDiscoveryState "frozen"')
        case "no_units_discovered":
            how = "url" if urls else "unitKey"
            return _report(f"send the pieces of work as discoveredUnits, each with its {how}")
        case "units_blocked_or_failed":
            return _report(f"set {_some(names.stuck)} to discovered and try again, or to excluded with a reason")
        case "units_remaining" | "no_units_checked":
            return _remaining(names, urls=urls)
        case "threshold_not_met" | "minimum_not_met":
            return _metric(standing)
        case "url_units_remaining":
            return _cover(names)
        case "evidence_gap":
            return _prove(names, urls=urls, placeless=_placeless(standing))
        case _:
            return _verify(standing, names)


def _report(why: str) -> NextAction:
    return NextAction("nova.task_instance_progress", why)


def _remaining(names: Pointers, *, urls: bool) -> NextAction:
    if not names.remaining:
        return _report("check at least one unit and send its unitUpdates with status checked")
    if urls:
        why = f"open {_some(names.remaining)}, read it, then report it checked, or excluded with a reason"
        return NextAction("nova.navigate", why)
    return _report(f"work on {_some(names.remaining)}, then report each checked, or excluded with a reason")


def _metric(standing: Standing) -> NextAction:
    wanted = standing.condition.stop_value or 1
    if standing.condition.stop_metric == "checked_units":
        return _report(f"check more units until {wanted} are checked")
    seen = ", each with the unit it was seen on" if standing.condition.evidence.mode != "none" else ""
    return _report(f"send more findings until there are {wanted}{seen}; a page counts once it was opened and read")


def _cover(names: Pointers) -> NextAction:
    why = f"open {_some(names.uncovered)} and scan each with scanId {names.scan_id}, or exclude it with a reason"
    return NextAction("nova.coverage_scan", why)


def _placeless(standing: Standing) -> bool:
    """Whether nothing that lacks proof is anywhere to be seen."""
    lacking = standing.evidence.top_exceptions
    return bool(lacking) and all(one.grade.reason_code == "no_locator" for one in lacking)


def _prove(names: Pointers, *, urls: bool, placeless: bool) -> NextAction:
    if placeless:
        why = f"{_some(names.unproven)} has no locator, so that nothing can be seen of it: start another run"
        return NextAction("nova.task_instance_create", f"{why} and register units with one, or ask for no evidence")
    if urls:
        why = f"open {_some(names.unproven)} again and stay at least a second; a page counts when it was read"
        return NextAction("nova.read_text", why)
    return NextAction("nova.perceive", f"look at {_some(names.unproven)} where it is found; nothing was seen of it yet")


def _verify(standing: Standing, names: Pointers) -> NextAction:
    still = set(standing.open_steps)
    step = next((one for one in names.steps if one.step_id in still), None)
    if step is None:
        return NextAction("nova.task_instance_verify", "report the verification steps in evidenceReport")
    where = f" on {cut(step.page_url, _NAME_CHARS)}" if step.page_url is not None else ""
    return NextAction(step.tool, f"run step {step.step_id}{where}, then send its result in evidenceReport")


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(cut(one, _NAME_CHARS) for one in names[:_SHOWN])
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return (shown or "the units named in currentState") + more
