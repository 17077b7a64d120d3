"""What addresses of pages ask for, read within bounds, and how the address of a further page is written."""

from typing import Final
from urllib.parse import urlencode

from nova_mcp.dashboard.context import Visit

ID_CHARS: Final = 512
_LARGEST: Final = 2**53


def text(visit: Visit, name: str) -> str:
    """What an address asks for; what nobody could have stored asks for nothing."""
    found = visit.query(name, ID_CHARS)
    return found if found.isprintable() else ""


def whole(visit: Visit, name: str) -> int | None:
    """A number that an address carries; None for anything else."""
    given = text(visit, name)
    return int(given) if given.isascii() and given.isdigit() and len(given) < 17 and int(given) < _LARGEST else None


def address(path: str, **values: object) -> str:
    """An address below the root with its question; what is empty is left out."""
    asked = {name: str(value) for name, value in values.items() if value not in (None, "", False)}
    return f"{path}?{urlencode(asked)}" if asked else path
