"""What the commands for notes share: whose note it is, its text, and how a refusal is told."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from nova_mcp.cli.terminal import EXIT_CONFIGURATION, EXIT_FAILED, fail
from nova_mcp.errors import InvalidParams, NovaError
from nova_mcp.secrets.store import open_secrets
from nova_mcp.settings import Settings
from nova_mcp.tools.notes.note_params import refuse_known_secrets, refuse_secret_like

LISTED = 500
SHOWN_CHARS = 80
LOCAL = "local"

Text = Annotated[str, typer.Argument(metavar="TEXT", help="What it says; - reads it from standard input.")]
NewText = Annotated[str | None, typer.Option("--text", metavar="TEXT", help="New text; - reads standard input.")]
Whose = Annotated[
    str, typer.Option("--principal", metavar="NAME", help="Whose note it is; over stdio everybody is local.")
]
Everybody = Annotated[bool, typer.Option("--everybody", help="A note for every principal.")]


def given_text(text: str) -> str:
    return sys.stdin.read() if text == "-" else text


@contextmanager
def told() -> Iterator[None]:
    """What a tool would have answered as an error, for a person."""
    try:
        yield
    except NovaError as error:
        code = EXIT_CONFIGURATION if isinstance(error, InvalidParams) else EXIT_FAILED
        fail(error.message, _for_people(error.hint), code)


def _for_people(hint: str) -> str:
    """Hints for agents name tools, which a person does not call."""
    return "" if "nova." in hint.replace("nova.toml", "") or "Nothing ran" in hint else hint


def screened(settings: Settings, texts: Iterable[tuple[str, str | None]]) -> None:
    """The operator's notes are read by every agent: no secret gets into them either."""
    given = list(texts)
    refuse_secret_like(given)
    refuse_known_secrets(open_secrets(settings.data_dir), given)
