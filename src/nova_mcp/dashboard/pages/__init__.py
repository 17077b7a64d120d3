"""The pages of the dashboard, one module each."""

__all__ = [
    "activity",
    "call",
    "calls",
    "controls",
    "entry",
    "memory_routes",
    "questions",
    "receipts",
    "review",
    "statistics",
    "work_routes",
]
