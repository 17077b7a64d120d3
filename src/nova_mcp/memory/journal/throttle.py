"""How much of the same counts: one observation per key in half a minute, so that a repetition adds nothing; pure."""

import hashlib
import json
from dataclasses import dataclass
from typing import Final, Literal

from nova_mcp.memory.journal.evidence import Observation

WINDOW_MS: Final = 30_000
# A phenomenon is proven by use at most once in this time.
PROOF_WINDOW_MS: Final = 60_000
HARD: Final = 2


def window_ms(observation: Observation) -> int:
    return PROOF_WINDOW_MS if observation.kind == "tob_verified" else WINDOW_MS


def throttle_key(observation: Observation, host: str, target_id: str, tool_name: str) -> str:
    """What makes two observations the same one.

    Failures have keys of their own, so that no success hides one, and so have hard drifts beside light ones.
    """
    about = (
        observation.target_stable_id
        or observation.candidate_key
        or observation.selector_norm
        or observation.fingerprint_hash
        or tool_name
    )
    side = "for" if observation.outcome >= 0 else "hard" if observation.severity == HARD else "against"
    # Proof by use counts per phenomenon and site, whatever tab it came from.
    where = "" if observation.kind == "tob_verified" else target_id
    parts = [observation.kind, host, where, about, side]
    return "thr_" + hashlib.sha256(json.dumps(parts).encode("ascii")).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Held:
    """What a key counted last: when, as which observation, and with what outcome."""

    at_ms: int
    observation_id: int
    outcome: int


def judge(held: Held | None, seen: Observation, at_ms: int) -> Literal["count", "upgrade", "drop"]:
    """Whether an observation counts. Within the window a proof takes the place of a mere sighting: however the retries
    of a call are ordered, they come to one observation, as good as the best of them.

    A clock that was set back by more than the window frees a key as well.
    """
    if held is None or abs(at_ms - held.at_ms) >= window_ms(seen):
        return "count"
    return "upgrade" if held.outcome == 0 and seen.outcome > 0 else "drop"
