"""What each section of a platform's playbook holds; pure."""

from typing import Final

from nova_mcp.memory.notes.playbook import SECTIONS

_HOLDS: Final = (
    "what it is for, its hosts, locale, whether you were signed in, date",
    "each surface with URL pattern, purpose and how it is reached",
    "routes, whether pages load whole or in place, deep links, what back does",
    "walls, roles, when a session ends; no secrets",
    "consent layers, modals, paywalls, limits, and what cleared them",
    "selectors that last, kinds of control, what a form refuses",
    "steps with what must hold before and after, tested or not",
    "what sends or changes something, the contract that proves it, what was not tried",
    "how the site shows done, error and busy",
    "what drifts, what was blocked, what is unexplored, and why",
    "the counters, ids of stored entries, candidates, why you stopped if below a floor",
)
SECTION_CONTENTS: Final = tuple(zip(SECTIONS, _HOLDS, strict=True))
