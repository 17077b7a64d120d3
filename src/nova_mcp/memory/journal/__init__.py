"""LCJ, the candidate journal: evidence that may become knowledge, and what is decided about it when work ends."""

__all__ = [
    "candidate_store",
    "candidates",
    "collector",
    "evidence",
    "finalize_store",
    "model",
    "observations",
    "outbox_store",
    "outbox_worker",
    "retention",
    "rules",
    "service",
    "statistics",
    "store",
    "throttle",
]
