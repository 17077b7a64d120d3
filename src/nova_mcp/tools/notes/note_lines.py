"""Notes about a site as lines of text: who wrote them is named, and whatever they say stays on one line."""

from nova_mcp.browser.perceive.element_lines import one_line
from nova_mcp.memory.notes.domain_model import DomainNote, Enforcement


def note_line(note: DomainNote, level: Enforcement, text: str) -> str:
    """A note with its text, or as much of it as the answer has room for."""
    return f"{head(note, level)} {said(text)}"


def head(note: DomainNote, level: Enforcement) -> str:
    kind = "site note" if level == "none" else f"site note ({level})"
    return f"{kind} {note.key} r{note.rev} by {note.source}:"


def said(text: str) -> str:
    # Codes for what is no plain sign may make it longer; nothing is cut here.
    return one_line(" ".join(text.split()), 20 * len(text) + 1)


def stub_line(note: DomainNote) -> str:
    return f"site note {note.key} r{note.rev} unchanged"
