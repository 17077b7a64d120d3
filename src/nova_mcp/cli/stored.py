"""Opens the store for a command, beside whatever servers are running, and says plainly why it can't."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError

from nova_mcp.cli.terminal import EXIT_CONFIGURATION, EXIT_FAILED, fail, note, visible
from nova_mcp.settings import Settings
from nova_mcp.storage.engine import Database
from nova_mcp.storage.errors import StoreUnavailable

SHOWN_CHARS = 200


def store_file(settings: Settings) -> Path | None:
    """The database file, or None when the store is a server."""
    url = make_url(settings.store_url)
    return Path(url.database) if url.get_backend_name() == "sqlite" and url.database else None


def shown_url(settings: Settings) -> str:
    """The store's address without its password."""
    return make_url(settings.store_url).render_as_string(hide_password=True)


@contextmanager
def opened(settings: Settings, *, create: bool = False) -> Iterator[Database]:
    """The store, brought up to date. Reading commands do not create one: an empty answer would hide a wrong path."""
    try:
        path = store_file(settings)
        if path is not None and not create and not path.exists():
            fail(
                f"there is no store at {path} yet",
                "a server creates it on its first call; check --data-dir",
                EXIT_FAILED,
            )
        database = Database.open(settings.store_url)
    except StoreUnavailable as error:
        fail(error.message, error.hint, EXIT_FAILED)
    except (ArgumentError, ValueError) as error:
        fail(f"store: {error}", code=EXIT_CONFIGURATION)
    with database:
        for notice in database.notices:
            note(f"nova: {visible(notice)}")
        try:
            yield database
        except StoreUnavailable as error:
            fail(error.message, error.hint, EXIT_FAILED)
        except DBAPIError as error:
            fail(
                f"the store does not hold what a Nova store holds: {error.orig}",
                "a table was removed or changed from outside; restore a copy",
                EXIT_FAILED,
            )
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            # Whoever reads a row that another program has written fails in their own way.
            fail(
                f"the store holds something that can't be read: {type(error).__name__}: {str(error)[:SHOWN_CHARS]}",
                "restore a copy; if only Nova has written into it, please report this",
                EXIT_FAILED,
            )
