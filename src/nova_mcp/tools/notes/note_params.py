"""What tools for notes take: texts that can be kept, hosts, and the screen for secrets."""

from collections.abc import Iterable
from typing import Annotated, Final

from pydantic import AfterValidator, Field, StringConstraints

from nova_mcp.core.hosts import normalize_host
from nova_mcp.errors import InvalidParams
from nova_mcp.memory.notes.rules import secret_reason
from nova_mcp.secrets.store import SecretStore
from nova_mcp.tools.arguments import shown

MAX_DOMAIN_CHARS: Final = 2_048


def _keepable(text: str) -> str:
    """No store takes a zero byte or half a character."""
    if "\x00" in text or any("\ud800" <= sign <= "\udfff" for sign in text):
        raise ValueError("must be text without zero bytes and halves of characters")
    return text


# Counted and kept without the blanks around it.
NoteText = Annotated[str, StringConstraints(strip_whitespace=True), AfterValidator(_keepable)]
PlainText = Annotated[str, AfterValidator(_keepable)]
DomainText = Annotated[str, Field(min_length=1, max_length=MAX_DOMAIN_CHARS), AfterValidator(_keepable)]


def parsed_domain(text: str) -> str:
    """The one spelling of the host a caller names."""
    host = normalize_host(text)
    if host is None:
        raise InvalidParams(
            "invalid_domain",
            f"{shown(text)} names no host.",
            details={"argument": "domain"},
        )
    return host


def secret_like(argument: str, looks: str) -> InvalidParams:
    return InvalidParams(
        "notes.secret_like",
        f"{argument} looks like {looks}; such things are never kept, so nothing was stored.",
        details={"argument": argument},
    )


def refuse_secret_like(given: Iterable[tuple[str, str | None]]) -> None:
    """Nothing that looks like a secret gets into a note, whichever argument it came with."""
    for argument, text in given:
        if text is not None and (looks := secret_reason(text)) is not None:
            raise secret_like(argument, looks)


def refuse_known_secrets(secrets: SecretStore, given: Iterable[tuple[str, str | None]]) -> None:
    """Nor does anything that Nova keeps as a secret itself, whatever it looks like."""
    for argument, text in given:
        if text is not None and secrets.redactor.text(text) != text:
            raise secret_like(argument, "one of the stored secrets")
