"""Candidates that Nova raises on its own: one control, proven again and again under different circumstances; pure."""

from dataclasses import dataclass, replace
from typing import Final, Literal

from nova_mcp.core.page.selectors import SelectorClass
from nova_mcp.memory.journal.candidates import candidate_key, stable_id
from nova_mcp.memory.journal.evidence import Direction

SUCCESSES: Final = 3
CONTEXTS: Final = 2
STATES: Final = 2
# More than are asked for say nothing more.
_KEPT: Final = 4

Waiting = Literal[
    "already_raised",
    "unstable_selector",
    "had_failure",
    "needs_successes",
    "needs_navigation_contexts",
    "needs_page_states",
    "held_for_semantic_learning",
]


@dataclass(frozen=True, slots=True)
class Use:
    """One verified or failed use of a control: where the agent came from, and how the page was built."""

    call_id: str
    outcome: Direction
    came_from: str | None = None
    page_state: str | None = None


@dataclass(frozen=True, slots=True)
class Track:
    """What is known of one control of one site."""

    host: str
    selector: str
    selector_class: SelectorClass
    successes: int = 0
    failures: int = 0
    came_from: tuple[str, ...] = ()
    page_states: tuple[str, ...] = ()
    last_call_id: str | None = None
    # What a control has earned once is not raised again, whatever became of it.
    raised: bool = False


@dataclass(frozen=True, slots=True)
class AutoLearn:
    """A candidate at the lowest level, raised without being asked for."""

    host: str
    candidate_key: str
    stable_id: str
    selector: str
    trigger: str
    successes: int


def tracked(track: Track, use: Use) -> Track:
    """A control after one more use; a mere sighting neither proves nor refutes it."""
    if use.outcome == 0 or use.call_id == track.last_call_id:
        return track
    if use.outcome < 0:
        return replace(track, failures=track.failures + 1, successes=0, last_call_id=use.call_id)
    return replace(
        track,
        successes=track.successes + 1,
        came_from=_with(track.came_from, use.came_from),
        page_states=_with(track.page_states, use.page_state),
        last_call_id=use.call_id,
    )


def _with(known: tuple[str, ...], new: str | None) -> tuple[str, ...]:
    return known if new is None or new in known or len(known) >= _KEPT else (*known, new)


def auto_learn(track: Track, *, semantic_open: bool) -> AutoLearn | Waiting:
    """The candidate a control has earned, or the first thing that is missing."""
    if track.raised:
        return "already_raised"
    if track.selector_class != "stable":
        return "unstable_selector"
    if track.failures:
        return "had_failure"
    if track.successes < SUCCESSES:
        return "needs_successes"
    if len(track.came_from) < CONTEXTS:
        return "needs_navigation_contexts"
    if len(track.page_states) < STATES:
        return "needs_page_states"
    if semantic_open:
        return "held_for_semantic_learning"
    key = candidate_key(track.host, "selector", track.selector)
    trigger = f"{track.successes} verified uses, {len(track.came_from)} ways in, {len(track.page_states)} page states"
    return AutoLearn(track.host, key, stable_id(track.host, key), track.selector, trigger, track.successes)
