"""How commands name a site and an entry, and say plainly when there is none."""

from typing import Annotated, NoReturn

import typer
from sqlalchemy import Connection

from nova_mcp.cli.terminal import EXIT_CONFIGURATION, EXIT_FAILED, fail
from nova_mcp.memory.knowledge import store
from nova_mcp.memory.knowledge.model import Problem, ScopeName
from nova_mcp.memory.knowledge.scopes import scope_of

SCOPE_HELP = "A site: its host or an address of it."
Site = Annotated[str | None, typer.Argument(metavar="SCOPE", help=SCOPE_HELP)]
SHOWN_IDS = 20


def named_site(text: str) -> ScopeName:
    found = scope_of(text)
    if isinstance(found, Problem):
        fail(found.message, "name one host, such as shop.example", EXIT_CONFIGURATION)
    return found


def named_entry(text: str) -> str:
    """What can be asked of a store; every other spelling is the id of nothing."""
    return text if text.isprintable() else ascii(text)


def nothing_known(scope: ScopeName) -> NoReturn:
    fail(f"nothing is known of {scope}", "`nova knowledge` lists the sites that something is known of", EXIT_FAILED)


def no_entry(scope: ScopeName, stable_id: str, ids: list[str]) -> NoReturn:
    if not ids:
        nothing_known(scope)
    more = f" and {len(ids) - SHOWN_IDS} more" if len(ids) > SHOWN_IDS else ""
    fail(f"{scope} has no entry {stable_id[:80]}", f"it has {', '.join(ids[:SHOWN_IDS])}{more}", EXIT_FAILED)


def ids_of(conn: Connection, scope: ScopeName) -> list[str]:
    return [str(one.stable_id) for one in store.entries(conn, scope) if one.slot == "current"]
