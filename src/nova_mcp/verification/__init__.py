"""CLS, the closed-loop system: an action counts as done only when the page shows it."""

__all__ = [
    "contracts",
    "coordinator",
    "goals",
    "kill_switches",
    "model",
    "outcome",
    "receipts",
    "request",
    "retention",
    "store",
    "transitions",
    "verifier",
    "wire",
    "witness",
]
