"""Task runs: creation, progress, verification and completion."""

__all__ = [
    "awareness",
    "completion",
    "create",
    "event_codec",
    "read",
    "retention",
    "rules",
    "seeds",
    "service",
    "store",
    "transactions",
    "verification_rules",
    "views",
]
