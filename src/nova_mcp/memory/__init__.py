"""What Nova remembers between calls: journal, knowledge, promotion, facts, tasks, notes and claims."""

__all__ = ["claims", "facts", "journal", "knowledge", "notes", "promotion", "retention", "tasks"]
