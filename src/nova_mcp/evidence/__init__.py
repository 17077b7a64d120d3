"""TOB, the tool observation bus: what was actually observed, call by call."""

__all__ = [
    "audit",
    "decision",
    "erasure",
    "grades",
    "janitor",
    "model",
    "outage",
    "page_sights",
    "pruner",
    "reader",
    "recorder",
    "rules",
    "store",
    "tails",
    "targets",
]
