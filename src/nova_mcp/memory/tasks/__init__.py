"""Task memory: what recurring tasks need, how one run of them stands, and what of it is proven."""

__all__ = [
    "answers",
    "condition_rules",
    "content_codec",
    "coverage",
    "effective_context",
    "guidance",
    "instructions",
    "model",
    "overview",
    "profiles",
    "refusals",
    "runs",
    "service",
    "tables",
]
