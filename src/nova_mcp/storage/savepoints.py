"""A part of a transaction that can be taken back by itself."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, NestedTransaction
from sqlalchemy.exc import SQLAlchemyError

from nova_mcp.storage.errors import StoreUnavailable, unavailable


@contextmanager
def savepoint(conn: Connection) -> Iterator[NestedTransaction]:
    """Everything inside is written, or taken back if it fails.

    A store that is full or goes away may give up the whole transaction by itself, the savepoint with it. Whoever went
    on then would write outside of any: that is StoreUnavailable, whatever the part failed of.
    """
    point = conn.begin_nested()
    try:
        yield point
    except BaseException as error:
        try:
            point.rollback()
        except (SQLAlchemyError, conn.dialect.loaded_dbapi.Error) as failed:
            if isinstance(error, StoreUnavailable):
                # A savepoint inside this one has already found out what became of the store.
                raise error from failed
            raise unavailable(error) or unavailable(failed) or StoreUnavailable("down", str(failed)) from error
        raise
    if point.is_active:
        point.commit()
