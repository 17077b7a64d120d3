"""Reading a page: text, search, tables, screenshots, snapshots."""

__all__ = [
    "coverage",
    "element_area",
    "knowledge_check",
    "marks",
    "patterns",
    "progress",
    "screenshot",
    "search",
    "snapshot_element",
    "snapshot_query",
    "snapshots",
    "table",
    "text",
    "wait",
]
