"""Perception: scanning a page and describing it within a token budget."""

__all__ = [
    "auth_surface",
    "element_lines",
    "element_ranking",
    "elements",
    "look",
    "page_facts",
    "perception",
    "refs",
    "report",
    "rules",
    "scan_values",
]
