"""Tools for Browser Memory, Operator Notes and Domain Notes."""

__all__ = ["browser_memory", "domain_notes", "note_lines", "note_params", "operator_notes"]
