"""Tables and texts as Markdown that says what was measured and nothing else."""

from collections.abc import Sequence

# Signs that would become markup, or end a cell.
_ESCAPED = str.maketrans({"|": "\\|", "<": "&lt;", ">": "&gt;", "*": "\\*", "[": "\\[", "\n": " ", "\r": " "})


def plain(text: str) -> str:
    return text.translate(_ESCAPED).strip()


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: bool = False) -> str:
    """Cells are Markdown already; `numbers` puts all columns but the first to the right."""
    rule = ["---", *(["---:" if numbers else "---"] * (len(columns) - 1))]
    lines = [columns, rule, *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def folded(summary: str, body: str) -> str:
    return f"<details><summary>{summary}</summary>\n\n{body}\n\n</details>"
