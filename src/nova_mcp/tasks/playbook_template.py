"""What each section of a platform's playbook holds; pure."""

from typing import Final

SECTION_CONTENTS: Final[tuple[tuple[str, str], ...]] = (
    ("Platform", "what it is for, its hosts, locale, whether you were signed in, date"),
    ("Surface Map", "each surface with URL pattern, purpose and how it is reached"),
    ("Navigation", "routes, whether pages load whole or in place, deep links, what back does"),
    ("Access and Identity", "walls, roles, when a session ends; no secrets"),
    ("Blockers", "consent layers, modals, paywalls, limits, and what cleared them"),
    ("Controls and Forms", "selectors that last, kinds of control, what a form refuses"),
    ("Workflows", "steps with what must hold before and after, tested or not"),
    ("Commit Points", "what sends or changes something, the contract that proves it, what was not tried"),
    ("Success and Failure Signals", "how the site shows done, error and busy"),
    ("Fragile and Unknown", "what drifts, what was blocked, what is unexplored, and why"),
    ("Evidence", "the counters, ids of stored entries, candidates, why you stopped if below a floor"),
)
