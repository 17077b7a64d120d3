"""Opens the store for a command, beside whatever servers are running, and says plainly why it can't."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path

from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError

from nova_mcp.cli.terminal import EXIT_CONFIGURATION, EXIT_FAILED, fail
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


def opened(settings: Settings, *, older: bool = False) -> AbstractContextManager[Database]:
    """The store for a command that only reads: a missing or damaged one is an error, and nothing of it is changed.

    An empty answer from a store made on the spot would hide a wrong path or a lost file. `older` accepts the schema of
    an earlier version, for what no migration has changed.
    """
    return _guarded(partial(_open_for_reading, settings, older=older))


def opened_for_writing(settings: Settings, *, create: bool = False) -> AbstractContextManager[Database]:
    """The store for a command that changes it, brought up to date; a damaged one is left to the server to move."""
    return _guarded(partial(Database.open, settings.store_url, create=create, recover=False))


def _open_for_reading(settings: Settings, *, older: bool) -> Database:
    return Database.open_for_reading(settings.store_url, older=older)


@contextmanager
def _guarded(open_store: Callable[[], Database]) -> Iterator[Database]:
    try:
        database = open_store()
    except StoreUnavailable as error:
        fail(error.message, error.hint, EXIT_FAILED)
    except (ArgumentError, ValueError) as error:
        fail(f"store: {error}", code=EXIT_CONFIGURATION)
    with database:
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
