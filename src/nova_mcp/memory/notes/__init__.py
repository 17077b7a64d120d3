"""Notes that somebody wrote on purpose: per site for a user, across tasks for operators, per site for every agent."""

__all__ = [
    "daily_work",
    "domain_model",
    "domain_refusals",
    "domain_rules",
    "domain_service",
    "domain_store",
    "memory_store",
    "model",
    "note_memory",
    "operator_store",
    "playbook",
    "rules",
    "service",
    "tables",
]
