"""What an agent is reminded of: its open runs, how they stand and where to go on; pure."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from nova_mcp.core.keywords import cut
from nova_mcp.core.values import Json
from nova_mcp.memory.tasks.model import DiscoveryState, RunStatus
from nova_mcp.memory.tasks.runs.completion import Tally

MOST_RUNS: Final = 3
MOST_CHARS: Final = 2_000
_SHORTEST: Final = 40


@dataclass(frozen=True, slots=True)
class ResumeHint:
    cursor: Json = None
    last_processed_url: Json = None
    last_action: Json = None
    checkpoint: Json = None


@dataclass(frozen=True, slots=True)
class ActiveRun:
    """One open run of an agent, in a few words."""

    instance_id: str
    profile_id: str | None
    display_name: str
    status: RunStatus
    discovery: DiscoveryState
    instance_rev: int
    target_url: str | None
    tally: Tally
    completion_allowed: bool
    reason_code: str | None
    resume: ResumeHint
    last_activity_at_ms: int


def shortened(run: ActiveRun) -> ActiveRun:
    """The same run in fewer characters: first the checkpoint goes, then long texts are cut."""
    hint = run.resume
    if hint.checkpoint is not None:
        return replace(run, resume=replace(hint, checkpoint=None))
    less = replace(hint, cursor=_cut(hint.cursor), last_action=_cut(hint.last_action))
    less = replace(less, last_processed_url=_cut(hint.last_processed_url))
    target = None if run.target_url is None else run.target_url[: 2 * _SHORTEST]
    return replace(run, resume=less, target_url=target, display_name=run.display_name[:_SHORTEST])


def _cut(value: Json) -> Json:
    text = value if isinstance(value, str) else json.dumps(value)
    return value if value is None or len(text) <= _SHORTEST else cut(text, _SHORTEST)


def fewer_words(runs: Sequence[ActiveRun]) -> tuple[ActiveRun, ...]:
    """One step shorter, from the oldest run on; a run that can't be shortened is left out in the end."""
    for place in reversed(range(len(runs))):
        short = shortened(runs[place])
        if short != runs[place]:
            return (*runs[:place], short, *runs[place + 1 :])
    return tuple(runs[:-1])
