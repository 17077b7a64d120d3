"""Which addresses can be read as MCP resources."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Template:
    uri_template: str
    name: str
    title: str
    description: str
    mime_type: str

    @property
    def prefix(self) -> str:
        return self.uri_template.partition("{")[0]


TEMPLATES: tuple[Template, ...] = (
    Template(
        "nova://ledger/{callId}",
        "ledger",
        "Evidence of a call",
        "What the ledger holds about one tool call.",
        "application/json",
    ),
    Template(
        "nova://screenshot/{id}",
        "screenshot",
        "Screenshot",
        "A picture that an earlier call took.",
        "image/png",
    ),
    Template(
        "nova://receipt/{id}",
        "receipt",
        "Receipt of a commit",
        "What one guarded action sent, what came back and what that proves; the id is its transitionId.",
        "application/json",
    ),
    Template(
        "nova://playbook/{scope}",
        "playbook",
        "Playbook of a site",
        "What an agent that mapped a host wrote down about it, as Markdown; the scope is the host.",
        "text/markdown",
    ),
)


def is_readable(uri: str) -> bool:
    """Whether an address belongs to a template and names exactly one thing."""
    return any(
        uri.startswith(template.prefix) and uri != template.prefix and "/" not in uri[len(template.prefix) :]
        for template in TEMPLATES
    )
